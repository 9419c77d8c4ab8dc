"""What issues and remarks say of texts that wait to be published. Text in, text out, as in `wording`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ralph_mission.mission import content
from ralph_mission.mission.content import ShownPosts
from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.kinds import capitalise, lookup, reason
from ralph_mission.mission.model import Finding
from ralph_mission.mission.posts import Post
from ralph_mission.mission.wording import HOW_TO_SAY_NO
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words

_LINK = re.compile(r"https://[\w.-]+(?:/[\w./-]*)?")


def content_issue_body(finding: Finding, why: str, posts: Sequence[Post]) -> str:
    """The text of an issue that shows what would be published, down to (not including) the line that names its hash."""
    what = "this text" if len(posts) == 1 else f"these texts, on {len(posts)} networks,"
    ranked = inline_words(redact(why))
    return "\n\n".join(
        [
            f"**{capitalise(lookup(finding.kind).noun)}**: shall {what} be published, exactly as it stands here?",
            f"**Why:** {reason(finding.kind)}.",
            content.render(posts),
            "---",
            f"**Evidence:** found by the {inline(finding.signal.observer, 60)} observer. Ranked by: {ranked}.",
            "**To change it:** edit the blocks. What is published is what they show when you say yes; take a heading "
            "out with its block, and that network gets nothing.",
            "**To say yes:** label it `content:approved` or comment `/ralph approve`.",
            HOW_TO_SAY_NO,
        ]
    )


def as_it_stands(shown: ShownPosts) -> str:
    """What an edited text measures, or why it cannot be published."""
    if shown.wrong:
        return "\n".join(["As it stands nothing can be published:", "", *(f"- {wrong}" for wrong in shown.wrong)])
    lengths = (f"- {post.network}: {', '.join(map(str, post.lengths))} of {post.limit}" for post in shown.posts)
    counted = "\n".join(["As the networks count it:", "", *lengths])
    return "\n\n".join([counted, *_long(shown.posts)])


def _long(posts: Iterable[Post]) -> Iterator[str]:
    """What blocks show only in part on a phone, as it is now: the quotes in the issue are of its first text."""
    for post in posts:
        for quoted in filter(None, map(content.wrap_quote, post.parts)):
            yield f"{post.network}, with its long lines wrapped:\n\n{quoted}"


def receipt_line(network: str, key: str, receipt: Receipt | None) -> str:
    """What came of one network's post; None is as good as doubt."""
    if receipt is None or receipt.status == "unknown":
        settle = f"`ralph journal resolve {key} --sent` or `--not-sent`"
        return f"- {network}: nobody can tell whether it arrived, and it is not sent again. Look there; then {settle}."
    if receipt.status == "failed":
        return f"- {network}: refused: {inline_words(redact(receipt.detail), 200)}"
    return f"- {network}: {_address(receipt.url) or 'published'}"


def _address(url: str) -> str:
    """A link that leads where it says; anything else as the name of a place."""
    return f"<{url}>" if _LINK.fullmatch(url) else inline(url, 200) if url else ""
