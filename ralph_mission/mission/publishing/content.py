"""Texts that a person reads before they are published: shown in an issue, and read back from it verbatim.

What is published is what the approved issue shows, never what memory holds. Each part of a text is in its own fenced
block below a heading with its network, and a person may edit it there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace

from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.comment_commands import read_command
from ralph_mission.mission.model.cycle import MissionFacts, ShownPosts
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Chart, Post, ThreadComment
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.mission import Action, Finding, Mission, Status
from ralph_mission.mission.model.proposal import lookup, reason
from ralph_mission.mission.ports import PostPublisher
from ralph_mission.mission.proposals.wording import HOW_TO_SAY_NO
from ralph_mission.safety import detect
from ralph_mission.safety.markdown import FENCE, PARAGRAPH, Block, blocks, has_html, invisible, without_controls
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import capitalise

HEADING = 3
PLAIN = ("", "text")
"""Allowed info strings of a block: GitHub renders other kinds as pictures instead of text."""
_CHART = compile_regex(r"With a chart, `([0-9a-f]{16})`: ")
LONG = 100
"""Characters of a line that fit a block on a phone; blocks do not wrap."""
BLANKS = 8
_BLANKS = compile_regex(rf"[^\S\n]{{{BLANKS + 1}}}")
_INDENT = compile_regex(r"[ \t]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PostDraft:
    """What an issue shows for one network, before measuring."""

    network: str
    parts: tuple[str, ...]


FOREIGN = ShownPosts(wrong=("somebody else wrote the issue",))


def showable(words: str) -> str:
    """The text as a fenced block shows it and approval binds it: without trailing blanks."""
    words = words.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    return _INDENT.sub("", without_controls(words)).strip("\n")


def prepare_posts(posts: Iterable[Post]) -> tuple[Post, ...]:
    """The posts with every part made showable."""
    return tuple(replace(post, parts=tuple(map(showable, post.parts))) for post in posts)


# --- to show --------------------------------------------------------------------------


def render(posts: Iterable[Post]) -> str:
    """Markdown that shows these posts, each part in a block that it cannot end, with its length and limit."""
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
    """Below a block with lines too long for a phone, the same text in a quote that wraps. Edits ignore it."""
    quoted = wrap_quote(words)
    return f"\n\nThe same with its long lines wrapped, as it was first asked about:\n\n{quoted}" if quoted else ""


def wrap_quote(words: str) -> str:
    """A wrapping quote with exactly the text of a block; "" if no line needs it."""
    if max(map(len, words.split("\n"))) <= LONG:
        return ""
    return "\n".join(f"> {_span(line)}\\" if line else ">" for line in words.split("\n")).removesuffix("\\")


def _span(line: str) -> str:
    """A line as inline code, which wraps and is inert."""
    ticks = "`" * max([1, *(len(run) + 1 for run in re.findall("`+", line))])
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _chart(chart: Chart | None) -> Iterator[str]:
    if chart:
        yield f"With a chart, `{chart_digest(chart)}`: {inline_words(chart.alt)}"


def chart_digest(chart: Chart) -> str:
    """Sixteen hex digits over everything a chart shows: approving a text that names them approves the chart."""
    return key_of("chart", json.dumps(asdict(chart), default=str, sort_keys=True))


# --- to read back ---------------------------------------------------------------------


def read(body: str) -> tuple[tuple[PostDraft, ...], tuple[str, ...]]:
    """What an issue shows, and what prevents posting it. Hidden, quoted or nested code does not count as shown."""
    drafts: dict[str, list[str]] = {}
    wrong: list[str] = []
    for network, block in _below(body):
        if block.level == HEADING and network in drafts:
            wrong.append(f"{inline(network, 40)} stands there twice")
        elif block.level == HEADING:
            drafts[network] = []
        elif block.level == FENCE:
            drafts[network].append(showable(block.text))
            if block.info not in PLAIN:
                wrong.append(f"{inline(network, 40)} has a block of {inline(block.info, 40)} and not of text")
    wrong += [f"{inline(name, 40)} has no text" for name, parts in drafts.items() if not all(parts) or not parts]
    if has_html(body):
        wrong.append("there is HTML, which may hide a text")
    found = tuple(PostDraft(name, tuple(parts)) for name, parts in drafts.items())
    return found, tuple(wrong) if found else ("no text stands below the name of a network",)


def charts(body: str) -> frozenset[tuple[str, str]]:
    """The charts an issue's text names: by network and digest."""
    lines = ((network, _CHART.match(block.text)) for network, block in _below(body) if block.level == PARAGRAPH)
    return frozenset((network, found[1]) for network, found in lines if found)


def _below(body: str) -> Iterator[tuple[str, Block]]:
    """Each heading that names a network, with the text below it."""
    network = ""
    for block in blocks(body):
        if block.level > FENCE:
            network = block.text if block.level == HEADING else ""
        if network:
            yield network, block


def measure_posts(publisher: PostPublisher, body: str) -> ShownPosts:
    """What an issue shows, measured as the networks do. Asks no network."""
    drafts, wrong = read(body)
    posts, refused = [], list(wrong)
    for draft in drafts if not wrong else ():
        try:
            posts.append(_post(publisher, draft))
        except UserError as problem:
            refused.append(f"{inline(draft.network, 40)}: {inline_words(problem.what, 200)}")
    refused += [f"{post.network}: {trap}" for post in posts for trap in find_traps(post)]
    return ShownPosts(tuple(posts), tuple(refused))


def _post(publisher: PostPublisher, draft: PostDraft) -> Post:
    if draft.network not in publisher.networks:
        raise UserError("nothing is published there", "set it up in publishers of ralph.yml")
    return publisher.measure(draft.network, draft.parts)


def find_traps(post: Post) -> Iterator[str]:
    """What the rules would refuse, so that whoever edits the text learns it at once."""
    if any(detect.mentions(part, markdown=False) for part in post.parts):
        yield "it mentions somebody with an @"
    if any(detect.closing_keywords(part, markdown=False) for part in post.parts):
        yield "it says what closes an issue"
    if any(detect.workflow_commands(part) for part in post.parts):
        yield "it holds a command to a runner"
    if any(_BLANKS.search(part.expandtabs()) for part in post.parts):
        yield f"it has more than {BLANKS} blanks in a row, which may put words out of sight"
    if unseen := [name for part in post.parts for name in invisible(part)]:
        yield f"it contains invisible characters ({', '.join(dict.fromkeys(unseen[:5]))})"


_LINK = compile_regex(r"https://[\w.-]+(?:/[\w./-]*)?")


def content_issue_body(finding: Finding, posts: Sequence[Post]) -> str:
    """The text of an issue that shows what would be published, without the line that names its hash."""
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


def as_it_stands(preview: ShownPosts) -> str:
    """The measurements of an edited text, or why it cannot be published."""
    if preview.wrong:
        return "\n".join(["Nothing can be published as it is:", "", *(f"- {wrong}" for wrong in preview.wrong)])
    lengths = (f"- {post.network}: {', '.join(map(str, post.lengths))} of {post.limit}" for post in preview.posts)
    counted = "\n".join(["As the networks count it:", "", *lengths])
    return "\n\n".join([counted, *_long(preview.posts)])


def _long(posts: Iterable[Post]) -> Iterator[str]:
    """The blocks too wide for a phone, as they are now: the quotes in the issue show its first text."""
    for post in posts:
        for quoted in filter(None, map(wrap_quote, post.parts)):
            yield f"{post.network}, with its long lines wrapped:\n\n{quoted}"


def receipt_line(network: str, key: str, receipt: Receipt | None) -> str:
    """The result of one network's post; None counts as doubt."""
    if receipt is None or receipt.status == "unknown":
        settle = f"`ralph journal resolve {key} --sent` or `--not-sent`"
        return f"- {network}: it is unknown whether it arrived, and it is not sent again. Check there; then {settle}."
    if receipt.status == "failed":
        return f"- {network}: refused: {inline_words(redact(receipt.explanation), 200)}"
    return f"- {network}: {_address(receipt.url) or 'published'}"


def _address(url: str) -> str:
    """An honest link; anything else as plain text."""
    return f"<{url}>" if _LINK.fullmatch(url) else inline(url, 200) if url else ""


# --- another draft --------------------------------------------------------------------

ROUNDS = 5
"""New drafts of one text."""


def find_request(mission: Mission, facts: MissionFacts) -> ThreadComment | None:
    """The newest unanswered comment by which an authorised person asks for another draft."""
    if mission.action is not Action.PUBLISH or mission.status is not Status.DISCOVERED or facts.issue is None:
        return None
    requests = (
        remark
        for remark in reversed(facts.issue.remarks)
        if read_command(remark.body)[0] == "revise"
        and remark.author.id in facts.authorised
        and remark.created_at == remark.updated_at
    )
    newest = next(requests, None)
    answered = mission.review.answered_at
    return newest if newest and (answered is None or newest.created_at > answered) else None


def words_of(request: ThreadComment) -> str:
    """What the comment asks for."""
    return read_command(request.body)[1].strip()


def why_not_revised(mission: Mission, facts: MissionFacts, request: ThreadComment) -> str:
    """Why no other draft can be made, with what to do instead; "" if one can."""
    edit = "edit the blocks of the issue instead"
    if not facts.coder:
        return f"no agent is set up here (`hands.agent`) that could write another text: {edit}"
    if mission.review.rounds >= ROUNDS:
        return f"it was rewritten {ROUNDS} times: {edit}"
    if not words_of(request):
        return "say what to change: `/ralph revise WORDS`"
    if facts.shown.wrong or not facts.shown.posts:
        return f"its blocks cannot be read ({'; '.join(facts.shown.wrong) or 'there are none'}): {edit}"
    return ""
