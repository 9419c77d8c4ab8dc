"""The dashboard, which people read and tick: Markdown for phones, as a pure function of memory.

Items that wait for a person come first. It has no clock, counter or score: it only changes with events, and the same
memory always makes the same page. On GitHub it is an issue, on the local forge a file, and the memory branch's README
is a copy without boxes. For boxes and their bindings see `mission/lifecycle/checkboxes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial

from ralph_mission.adapters.report.progress import unread
from ralph_mission.mission.lifecycle.checkboxes import box, explain
from ralph_mission.mission.lifecycle.waiting import (
    CLOSED_BY_PEOPLE,
    CLOSES_BY_ITSELF,
    DO_IT,
    UNASKED,
    describe_red,
    is_stuck,
    needs_person,
    review_failure,
    waits_for_click,
)
from ralph_mission.mission.model.ledger import HeldFix, MonitorRecord, OpenState
from ralph_mission.mission.model.memory import CompletedNote, IssueNote, Memory
from ralph_mission.mission.model.mission import Finding, Mission, Status
from ralph_mission.mission.model.proposal import name_findings
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline_words, sanitise
from ralph_mission.values import compile_regex
from ralph_mission.words import capitalise, count_noun

TITLE = 120  # characters
NEXT, SHOWN = 5, 20  # findings not started, and items of any other list
MOST = 50_000  # characters of the optional part; GitHub's limit is 65,536 in all
WEEK = timedelta(days=7)
_ESCAPED_OR_LINKING = compile_regex(r"\\.|(\\$|[\[\]|])")
_LIVE = compile_regex(r"[\\`*_{}\[\]()<>#~|!$^]")
_START = compile_regex(r"\A(\d*)([-+=.)])")  # what would start a list, or make a heading of the line above
_CODE = compile_regex(r"(`[^`\s][^`]*`)(?!`)")
_PAGE = compile_regex(r"[ :]{0,2}\(?(https?://[^\s()<>\[\],;“”]+)\)?")
_PLAIN_PAGE = compile_regex(r"https?://[\w.:-]+(?:/[\w./#?=&%:+-]*)?")
_LISTED = compile_regex(r"(\[(?:#\d+|`[^`\]]+`)\]\(https?://[\w./#:%~@+-]+\))")


def foreign(text: str, limit: int = TITLE) -> str:
    """One line of untrusted text, without live markup."""
    return _START.sub(r"\1\\\2", _LIVE.sub(r"\\\g<0>", inline_words(text, limit))) or "\\-"


def titled(text: str) -> str:
    """A title, whose only markup is code between backticks."""
    parts = _CODE.split(inline_words(text, TITLE))
    line = "".join(part if place % 2 else _LIVE.sub(r"\\\g<0>", part) for place, part in enumerate(parts))
    return _START.sub(r"\1\\\2", line) or "\\-"


def ours(text: str) -> str:
    """One line of our own text: code spans stay, links and tags in quotes do not.

    It is joined to one line first: indented, it would pass for code. Escaped characters stay as they are: another
    backslash would activate them.
    """
    line = " ".join(sanitise(" ".join(text.split()), "summary").split())
    return _ESCAPED_OR_LINKING.sub(lambda found: f"\\{found[0]}" if found[1] else found[0], line)


Link = Callable[[int], str]
Words = Callable[[str], str]


def dashboard(memory: Memory, state: OpenState, repository: str, link: Link = lambda number: "") -> str:
    """The whole page. `link`: an issue's or pull request's number to its URL, or ""."""
    missions = [mission for mission in state.missions if mission.thread]
    waiting = [mission for mission in missions if _waits(mission)]
    under_way = [mission for mission in missions if mission.status.active and mission not in waiting]
    aside = [mission for mission in missions if not mission.status.active]
    requests = (
        [f"Ralph looks after {foreign(repository)}."],
        ["**Paused.** Nothing is done until somebody runs `ralph resume`."] if memory.header.paused else [],
        _waiting(waiting, state, link),
        _under_way(under_way, memory.issues, link),
    )
    background = (
        _held_section(state.held),
        _next(state.backlog, {member for one in state.held for member in one.members}),
        _done_lines(memory, state),
        *(_watched(one, one.kind in state.silenced, link) for one in state.watched),
        _aside(aside, link),
    )
    ends = (["---"], [] if memory.header.paused else _controls(state.obeyed), [_health(memory)])
    page = "\n\n".join("\n".join(part) for part in (*requests, *_fit(background, requests), *ends) if part) + "\n"
    return explain(page, {order: foreign(why) for order, why in state.ignored})


def _fit(parts: Sequence[list[str]], before: Iterable[list[str]]) -> Iterator[list[str]]:
    """Those of them that fit behind the preceding text."""
    space, omitted = MOST - sum(len(line) for part in before for line in part), 0
    for part in parts:
        space -= (needs := sum(len(line) + 1 for line in part))
        if space >= 0:
            yield part
        else:
            space, omitted = space + needs, omitted + 1
    if omitted:
        yield [f"{count_noun(omitted, 'list')} left out: this page would be too long."]


def _cut(lines: Sequence[str], most: int = SHOWN) -> list[str]:
    """The first of them, and the number of further ones."""
    more = [f"- and {len(lines) - most} more"] if len(lines) > most else []
    return [*lines[:most], *more]


# --- waiting for you ------------------------------------------------------------------


def _waits(mission: Mission) -> bool:
    """Whether it waits for a person."""
    if mission.status is Status.DISCOVERED:
        return bool(mission.question.proposal_hash and mission.issue)
    if mission.status is Status.IN_REVIEW:
        return bool(mission.pull)
    return is_stuck(mission.status, mission.next_step)


def _waiting(missions: Sequence[Mission], state: OpenState, link: Link) -> list[str]:
    requests = [f"- **{capitalise(ours(line))}.**" for line in describe_red(state.red)]
    requests += [_ask(mission, link) for mission in sorted(missions, key=waits_for_click, reverse=True)]
    requests += [
        "- **Was this sent?** Ralph cannot tell. Check, then run one of\n"
        f"  - `ralph journal resolve {key} --sent`\n  - `ralph journal resolve {key} --not-sent`"
        for key in state.unknown
    ]
    if not needs_person(missions, state.unknown, state.red.checks, state.held):
        return ["## Waiting for you", "", "Nothing needs you."]
    return ["## Waiting for you", "", *_cut(requests)] if requests else []


def _ask(mission: Mission, link: Link) -> str:
    boxes = "".join(f"\n  {line}" for line in _boxes(mission))
    return f"- **{_named(mission, link)}**{_why(mission, link)}{boxes}"


def _why(mission: Mission, link: Link) -> str:
    """The information a person needs before ticking."""
    if failure := review_failure(mission, lambda text: _with_links(text, partial(foreign, limit=300), link)):
        return f": {failure}"
    if is_stuck(mission.status, mission.next_step):
        return f": {_with_links(mission.next_step, ours, link)}" if mission.next_step else ""
    if mission.review.offered_until:
        return ": an answer to the review is shown in its issue"
    if mission.next_step == CLOSED_BY_PEOPLE:
        return f": {DO_IT}"
    if mission.next_step == CLOSES_BY_ITSELF:
        return ": for your information; it closes by itself once it is fixed"
    return ""


def _boxes(mission: Mission) -> Iterator[str]:
    """The boxes, each bound to what was shown: a text, a commit, the time it got stuck."""
    number, since = mission.thread, f"{int(mission.changed_at.timestamp()):x}"
    if mission.status is Status.DISCOVERED and mission.next_step not in UNASKED:
        yield box("Go ahead", f"approve {mission.issue} {mission.question.proposal_hash}")
    if mission.status is Status.IN_REVIEW and mission.head_sha and not mission.review.offered_until:
        yield box("Approve and merge", f"approve {mission.pull} {mission.head_sha}")
    if mission.status is Status.ESCALATED:
        yield box("Try again", f"retry {number} {since}")
    yield box("Not now", f"park {number} {since}")
    yield box("No, and don't ask again", f"reject {number}")


# --- the rest -------------------------------------------------------------------------


def _under_way(missions: Sequence[Mission], issues: Sequence[IssueNote], link: Link) -> list[str]:
    lines = [
        f"- {_named(one, link)}{f': {_with_links(one.next_step, ours, link)}' if one.next_step else ''}"
        for one in missions
    ]
    lines += [
        f"- {foreign(note.title)} {_numbers((note.issue, note.pull), link)}: {_STANDS[note.state]}" for note in issues
    ]
    return ["## Under way", "", *_cut(lines)] if lines else []


_STANDS = {
    "working": "an agent is working on it",
    "waiting": "failed once; it will be tried again",
    "failed": "failed; it needs a person",
    "done": "done, in its pull request",
}
"""The state of an issue assigned to an agent."""


def _held_section(fixes: Sequence[HeldFix]) -> list[str]:
    """Fixes that are ready but for the repository's own checks."""
    lines = [f"- {titled(one.title)}: {foreign(one.why, 300)}{RETRIED if one.ran else ''}" for one in fixes]
    return ["## Held back", "", *_cut(lines), "", "“Run now” tries again."] if lines else []


RETRIED = " (tried again on the next commit)"


def _next(backlog: Sequence[Finding], fingerprints: Collection[str]) -> list[str]:
    """Findings that are not started, best first."""
    waiting = (finding for finding in backlog if finding.fingerprint not in fingerprints)
    rows = _cut([f"- {foreign(redact(finding.title))}" for finding in waiting], NEXT)
    return ["## Also found", "", *rows] if rows else []


def _done_lines(memory: Memory, state: OpenState) -> list[str]:
    """Missions that ended within a week before the last cycle."""
    now = memory.header.last_cycle_at
    since = (now - WEEK).date().isoformat() if now else ""
    lines = [_note(note) for note in memory.completed if note.date >= since]
    lines += [
        f"- Posted on {foreign(post.network)}{f': {foreign(post.url)}' if post.url else ''}"
        for post in state.posted
        if now and now - post.at < WEEK
    ]
    return ["## Done this week", "", *_cut(lines)] if lines else []


def _note(note: CompletedNote) -> str:
    return f"- {titled(note.title)}: {foreign(note.outcome)}"


def _watched(record: MonitorRecord, silenced: bool, link: Link) -> list[str]:
    """A collapsed list that needs no answer."""
    plural = name_findings(record.kind)
    if silenced:
        return _fold(f"Not listed: {plural}", [box("List these again", f"list {record.kind}")])
    more = [f"- and {record.total - SHOWN} seen earlier"] if record.total > SHOWN else []
    rows = (_listed(line, link) for line in record.lines[:SHOWN])  # from memory, which grants no permission
    lines = [*rows, *more, "", box("Stop listing these", f"unlist {record.kind}")]
    return _fold(f"Watched: {plural}", lines)


def _aside(missions: Sequence[Mission], link: Link) -> list[str]:
    lines = [
        f"- {_named(one, link)}\n  {box('Resume', f'retry {one.thread} {int(one.changed_at.timestamp()):x}')}"
        for one in missions
    ]
    return _fold(f"Set aside: {count_noun(len(missions), 'mission')}", _cut(lines)) if lines else []


def _fold(summary: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{foreign(summary)}</summary>", "", *lines, "", "</details>"]


def _controls(number: int) -> list[str]:
    return [box("Run now", f"run {number}"), box("Pause Ralph", f"pause {number}")]


def _health(memory: Memory) -> str:
    """One line: whether all observers succeeded."""
    missed = unread(memory.observations)
    if not missed:
        return "All sources were read."
    return "Not checked: " + "; ".join(f"{foreign(what)} ({foreign(why, 300)})" for what, why in missed) + "."


def _listed(line: str, link: Link) -> str:
    """A list item, made harmless except for its links to this repository, on any server."""
    here = link(1).casefold().rpartition("/issues/")[0]
    return "".join(
        part if here and f"]({here}/" in part.casefold() and place % 2 else sanitise(part, "summary")
        for place, part in enumerate(_LISTED.split(line))
    )


def _with_links(text: str, words: Words, link: Link) -> str:
    """A line in `words`, with pages of this repository as links and no others."""
    here = link(1).casefold().rpartition("/issues/")[0]
    line = ""
    for place, part in enumerate(_PAGE.split(redact(text))):
        if place % 2 == 0:
            line += f" {words(part)}" if line and part[:1] == " " else words(part) if part.strip() else ""
        elif here and part.casefold().startswith(f"{here}/") and _PLAIN_PAGE.fullmatch(part):
            line += f" ([details]({part}))"
    return line


def _named(mission: Mission, link: Link) -> str:
    return f"{titled(mission.title)} {_numbers((mission.issue, mission.pull), link)}".rstrip()


def _numbers(numbers: Iterable[int], link: Link) -> str:
    """`#12`, as a link if it has a URL: in a file it does not become one by itself."""
    known = ((number, link(number)) for number in numbers if number)
    return ", ".join(f"[#{number}]({address})" if address else f"#{number}" for number, address in known)
