"""Texts that a person reads before they are published: shown in an issue, and read back from it to the letter.

What is published is what the approved issue shows, and nothing that memory holds: each part of a text stands in a
fenced block of its own below a heading that names its network, and a person may edit it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace

from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import MissionFacts, ShownPosts
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Chart, Post, ThreadComment
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.mission import Action, Finding, Mission, Status
from ralph_mission.mission.model.proposal import capitalise, lookup, reason
from ralph_mission.mission.ports import PostPublisher
from ralph_mission.mission.proposals.wording import HOW_TO_SAY_NO
from ralph_mission.safety import text
from ralph_mission.safety.markdown import FENCE, PARAGRAPH, Block, blocks, has_html, invisible, without_controls
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words
from ralph_mission.values import compile_regex, dataclass

HEADING = 3
PLAIN = ("", "text")
"""What a block may say of itself: GitHub draws other kinds, and shows no text then."""
_CHART = compile_regex(r"With a chart, `([0-9a-f]{16})`: ")
LONG = 100
"""Characters of a line that a block shows without wrapping, and a phone only in part."""
BLANKS = 8
_BLANKS = compile_regex(rf"[^\S\n]{{{BLANKS + 1}}}")
_INDENT = compile_regex(r"[ \t]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PostDraft:
    """What an issue shows for one network, not measured yet."""

    network: str
    parts: tuple[str, ...]


FOREIGN = ShownPosts(wrong=("somebody else wrote the issue",))


def showable(words: str) -> str:
    """The words as a fenced block can show them and an approval binds them: no blanks at the end of a line."""
    words = words.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    return _INDENT.sub("", without_controls(words)).strip("\n")


def prepare_posts(posts: Iterable[Post]) -> tuple[Post, ...]:
    """The posts with every part as it can be shown."""
    return tuple(replace(post, parts=tuple(map(showable, post.parts))) for post in posts)


# --- to show --------------------------------------------------------------------------


def render(posts: Iterable[Post]) -> str:
    """The markdown that shows these posts, each part in a block that it cannot leave, with its length and limit."""
    return "\n\n".join(_section(post) for post in posts)


def _section(post: Post) -> str:
    parts = (f"{_measure(post, at)}:\n\n{_fence(part)}{_first(part)}" for at, part in enumerate(post.parts))
    return "\n\n".join([f"{'#' * HEADING} {post.network}", *parts, *_chart(post.chart)])


def _measure(post: Post, at: int) -> str:
    which = f"Part {at + 1} of {len(post.parts)}, " if len(post.parts) > 1 else ""
    return f"{which}{post.lengths[at]} of {post.limit}"


def _fence(words: str) -> str:
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", words))])
    return f"{fence}text\n{words}\n{fence}"


def _first(words: str) -> str:
    """Below a block whose lines run out of a phone's sight, the same in a quote that wraps. An edit leaves it alone."""
    quoted = wrap_quote(words)
    return f"\n\nThe same with its long lines wrapped, as it was first asked about:\n\n{quoted}" if quoted else ""


def wrap_quote(words: str) -> str:
    """A quote that any screen wraps, letter by letter what a block shows; "" where none of its lines needs that."""
    if max(map(len, words.split("\n"))) <= LONG:
        return ""
    return "\n".join(f"> {_span(line)}\\" if line else ">" for line in words.split("\n")).removesuffix("\\")


def _span(line: str) -> str:
    """A line as code within a text, which wraps and does nothing."""
    ticks = "`" * max([1, *(len(run) + 1 for run in re.findall("`+", line))])
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _chart(chart: Chart | None) -> Iterator[str]:
    if chart:
        yield f"With a chart, `{chart_digest(chart)}`: {text.inline_words(chart.alt)}"


def chart_digest(chart: Chart) -> str:
    """Sixteen hex digits over all that a chart shows: an approval of the text that names them is one of the chart."""
    return key_of("chart", json.dumps(asdict(chart), default=str, sort_keys=True))


# --- to read back ---------------------------------------------------------------------


def read(body: str) -> tuple[tuple[PostDraft, ...], tuple[str, ...]]:
    """What an issue shows, and what keeps it from being said. Code that is hidden, quoted or nested is not shown."""
    drafts: dict[str, list[str]] = {}
    wrong: list[str] = []
    for network, block in _below(body):
        if block.level == HEADING and network in drafts:
            wrong.append(f"{text.inline(network, 40)} stands there twice")
        elif block.level == HEADING:
            drafts[network] = []
        elif block.level == FENCE:
            drafts[network].append(showable(block.text))
            if block.info not in PLAIN:
                wrong.append(f"{text.inline(network, 40)} has a block of {text.inline(block.info, 40)} and not of text")
    wrong += [f"{text.inline(name, 40)} has no text" for name, parts in drafts.items() if not all(parts) or not parts]
    if has_html(body):
        wrong.append("there is HTML, which may hide a text")
    found = tuple(PostDraft(name, tuple(parts)) for name, parts in drafts.items())
    return found, tuple(wrong) if found else ("no text stands below the name of a network",)


def charts(body: str) -> frozenset[tuple[str, str]]:
    """The charts that an issue's text names: below which network, and by which digest."""
    lines = ((network, _CHART.match(block.text)) for network, block in _below(body) if block.level == PARAGRAPH)
    return frozenset((network, found[1]) for network, found in lines if found)


def _below(body: str) -> Iterator[tuple[str, Block]]:
    """Each heading that names a network, and what stands below it, with that name."""
    network = ""
    for block in blocks(body):
        if block.level > FENCE:
            network = block.text if block.level == HEADING else ""
        if network:
            yield network, block


def measure_posts(publisher: PostPublisher, body: str) -> ShownPosts:
    """What an issue shows, as the networks count it now. Asks no network."""
    drafts, wrong = read(body)
    posts, refused = [], list(wrong)
    for draft in drafts if not wrong else ():
        try:
            posts.append(_post(publisher, draft))
        except UserError as problem:
            refused.append(f"{text.inline(draft.network, 40)}: {text.inline_words(problem.what, 200)}")
    refused += [f"{post.network}: {trap}" for post in posts for trap in find_traps(post)]
    return ShownPosts(tuple(posts), tuple(refused))


def _post(publisher: PostPublisher, draft: PostDraft) -> Post:
    if draft.network not in publisher.networks:
        raise UserError("nothing is published there", "set it up in publishers of ralph.yml")
    return publisher.measure(draft.network, draft.parts)


def find_traps(post: Post) -> Iterator[str]:
    """What the rules would refuse, told early: whoever edits the text should not have to look for it in a report."""
    if any(text.mentions(part, markdown=False) for part in post.parts):
        yield "it mentions somebody with an @"
    if any(text.closing_keywords(part, markdown=False) for part in post.parts):
        yield "it says what closes an issue"
    if any(text.workflow_commands(part) for part in post.parts):
        yield "it holds a command to a runner"
    if any(_BLANKS.search(part.expandtabs()) for part in post.parts):
        yield f"it has more than {BLANKS} blanks in a row, which may put words out of sight"
    if unseen := [name for part in post.parts for name in invisible(part)]:
        yield f"it contains invisible characters ({', '.join(dict.fromkeys(unseen[:5]))})"


_LINK = compile_regex(r"https://[\w.-]+(?:/[\w./-]*)?")


def content_issue_body(finding: Finding, posts: Sequence[Post]) -> str:
    """The text of an issue that shows what would be published, down to (not including) the line that names its hash."""
    what = "this text" if len(posts) == 1 else f"these texts, on {len(posts)} networks,"
    return "\n\n".join(
        [
            f"**{capitalise(lookup(finding.kind).noun)}**: publish {what} exactly as it stands here?",
            render(posts),
            "---",
            "**Go ahead?** Label this `content:approved` or comment `/ralph approve`. What the blocks show then is "
            f"published: edit them, or take a network's out. {HOW_TO_SAY_NO}",
            f"{capitalise(reason(finding.kind))}. Found by the {inline(finding.signal.observer, 60)} observer.",
        ]
    )


def as_it_stands(shown: ShownPosts) -> str:
    """What an edited text measures, or why it cannot be published."""
    if shown.wrong:
        return "\n".join(["Nothing can be published as it is:", "", *(f"- {wrong}" for wrong in shown.wrong)])
    lengths = (f"- {post.network}: {', '.join(map(str, post.lengths))} of {post.limit}" for post in shown.posts)
    counted = "\n".join(["As the networks count it:", "", *lengths])
    return "\n\n".join([counted, *_long(shown.posts)])


def _long(posts: Iterable[Post]) -> Iterator[str]:
    """What blocks show only in part on a phone, as it is now: the quotes in the issue are of its first text."""
    for post in posts:
        for quoted in filter(None, map(wrap_quote, post.parts)):
            yield f"{post.network}, with its long lines wrapped:\n\n{quoted}"


def receipt_line(network: str, key: str, receipt: Receipt | None) -> str:
    """What came of one network's post; None is as good as doubt."""
    if receipt is None or receipt.status == "unknown":
        settle = f"`ralph journal resolve {key} --sent` or `--not-sent`"
        return f"- {network}: nobody can tell whether it arrived, and it is not sent again. Look there; then {settle}."
    if receipt.status == "failed":
        return f"- {network}: refused: {inline_words(redact(receipt.explanation), 200)}"
    return f"- {network}: {_address(receipt.url) or 'published'}"


def _address(url: str) -> str:
    """A link that leads where it says; anything else as the name of a place."""
    return f"<{url}>" if _LINK.fullmatch(url) else inline(url, 200) if url else ""


# --- another draft --------------------------------------------------------------------

REVISE = compile_regex(r"\A(?:[ \t]*\r?\n)* {0,3}/ralph[ \t]+revise(?![\w-])[ \t]*", re.IGNORECASE)
ROUNDS = 5
"""New drafts of one text."""


def find_request(mission: Mission, facts: MissionFacts) -> ThreadComment | None:
    """The newest comment by which somebody who may decide asks for another draft, and that nobody answered yet."""
    if mission.action is not Action.PUBLISH or mission.status is not Status.DISCOVERED or facts.issue is None:
        return None
    said = (
        one
        for one in reversed(facts.issue.remarks)
        if REVISE.match(one.body) and one.author.id in facts.authorised and one.created_at == one.updated_at
    )
    newest = next(said, None)
    answered = mission.review.answered_at
    return newest if newest and (answered is None or newest.created_at > answered) else None


def words_of(request: ThreadComment) -> str:
    """What is wanted."""
    return REVISE.sub("", request.body, count=1).strip()


def why_not_revised(mission: Mission, facts: MissionFacts, request: ThreadComment) -> str:
    """Why no other draft is made, with what to do instead; "" when one may be."""
    edit = "edit the blocks of the issue instead"
    if not facts.coder:
        return f"no agent is set up here (`hands.agent`) that could write another text: {edit}"
    if mission.review.rounds >= ROUNDS:
        return f"it was written anew {ROUNDS} times: {edit}"
    if not words_of(request):
        return "say what to change: `/ralph revise WORDS`"
    if facts.shown.wrong or not facts.shown.posts:
        return f"its blocks cannot be read ({'; '.join(facts.shown.wrong) or 'there are none'}): {edit}"
    return ""
