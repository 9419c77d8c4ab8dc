"""The dashboard: the memory branch's README. A pure function of memory; markdown out, made for a phone.

Short lists, what waits for a person first, and missions along the calendar. Ages count up to the last cycle, so the
same memory always makes the same page. It is a file of a repository, not an issue: texts are escaped for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from statistics import median

from ralph_mission.adapters.report.progress import count_noun, spell, stamp
from ralph_mission.mission.lifecycle.waiting import review_failure, waits_for_agent
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.memory import CompletedNote, Header, IssueNote, Memory
from ralph_mission.mission.model.mission import Acceptance, Mission, Status
from ralph_mission.safety.text import inline_words, sanitise
from ralph_mission.values import compile_regex

TITLE = 120  # characters
_ESCAPED_OR_LINKING = compile_regex(r"\\.|(\\$|[\[\]|])")
_LIVE = compile_regex(r"[\\`*_{}\[\]()<>#~|!$^]")


def foreign(text: str, limit: int = TITLE) -> str:
    """One line of anybody's words, in which nothing is mark-up."""
    return _LIVE.sub(r"\\\g<0>", inline_words(text, limit)) or "\\-"


def ours(text: str) -> str:
    """One line of our own words: their code spans stay, links and tags of whatever is quoted in them do not.

    It is one line before it is judged: indented, it would pass for code. What is escaped already stays so: one more
    backslash would bring it to life.
    """
    line = " ".join(sanitise(" ".join(text.split()), "summary").split())
    return _ESCAPED_OR_LINKING.sub(lambda found: f"\\{found[0]}" if found[1] else found[0], line)


def link_number(number: int, address: str) -> str:
    """`#12`, as a link where there is an address: in a file it does not become one by itself."""
    return f"[#{number}]({address})" if address else f"#{number}"


def command_text(how: str) -> str:
    """What to type as code; in a sentence that holds an address, the address as a short link."""
    if "://" in how:
        return re.sub(r"https?://\S+", lambda address: f"[it]({address[0]})", how)
    return f"`{how}`" if how else ""


HEAD = ("## Timeline", "", "```mermaid", "gantt", "  dateFormat YYYY-MM-DDTHH:mm", "  axisFormat %d %b")
NAME = 32  # characters of a title; a phone has room for no more
DAY = compile_regex(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
SHORTEST = timedelta(hours=1)  # a bar of no length is not seen


def timeline(missions: Iterable[Mission], completed: Iterable[CompletedNote], now: datetime | None) -> list[str]:
    """The lines of the section; none when there is nothing to show."""
    active = [mission for mission in missions if mission.status.active] if now else []
    bars = [
        *_section("Active", (_bar(mission, now) for mission in active if now)),
        *_section("Over", (_milestone(note) for note in completed if DAY.fullmatch(note.date))),
    ]
    return [*HEAD, *bars, "```"] if bars else []


def _section(name: str, lines: Iterable[str]) -> Iterator[str]:
    lines = list(lines)
    if lines:
        yield f"  section {name}"
        yield from lines


def _bar(mission: Mission, now: datetime) -> str:
    end = max(now, mission.started_at + SHORTEST)
    return f"  {mission.id}. {_name(mission.title)} :active, {_minute(mission.started_at)}, {_minute(end)}"


def _milestone(note: CompletedNote) -> str:
    return f"  - {_name(note.title)} :milestone, done, {note.date}T12:00, 0d"


def _minute(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M")


def _name(title: str) -> str:
    # Mermaid has no escapes: what could end a name, or open a directive, is left out. What stands before the
    # name keeps one that is a keyword (click, section, title) from being read as such.
    plain = " ".join("".join(char if char.isalnum() or char in "-_.,()/" else " " for char in title).split())
    return (plain if len(plain) <= NAME else plain[: NAME - 1].rstrip() + "…") or "mission"


SLOTS = 3  # the original specification: at most three active missions
POSTS = 5
REJECTED = ("rejected", "parked")  # outcomes that are no success
ASKING = {
    Status.DISCOVERED: ("approve or reject the proposal", "issue"),
    Status.PLANNED: ("carry it out, or decide otherwise", ""),
    Status.IN_REVIEW: ("review the change", "pull"),
    Status.ESCALATED: ("it is stuck: look and decide", ""),
}
"""What a person is asked for, and what there is to say yes to."""
STANDS = {
    "working": "an agent is at it",
    "waiting": "in vain: it is ready for a second one",
    "failed": "in vain: it needs a person",
    "done": "done: see its pull request",
}
"""Where an issue stands that was given to an agent."""

Link = Callable[[int], str]
How = Callable[[str, int], str]


def _nowhere(_number: int) -> str:
    return ""


def _unsaid(_deed: str, _number: int) -> str:
    return ""


def dashboard(
    memory: Memory, state: OpenState, repository: str, slots: int = SLOTS, link: Link = _nowhere, how: How = _unsaid
) -> str:
    """The whole page; `slots` is how many missions may be active.

    `link`: an issue's or pull's number to its address, "" where there is none; a file's `#12` is no link by
    itself. `how`: as `Forge.how`, what a person types or clicks for a deed.
    """
    now = memory.header.last_cycle_at
    active = [mission for mission in state.missions if mission.status.active]
    begun = sum(mission.status.begun for mission in active)
    parts = (
        _head(memory.header, state, repository, begun, slots),
        _waiting(state, link, how),
        _missions(f"## Missions ({begun} of {slots} slots)", active, now, link) or ["## Missions", "", "None."],
        _missions("## Parked", [m for m in state.missions if not m.status.active], now, link),
        _issues(memory.issues, link),
        _done_lines(memory.completed),
        _posts(state.posted),
        _learned_lines(memory.completed, state.acceptance),
        _wakes(state.wakes),
        timeline(state.missions, memory.completed, now),
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _head(header: Header, state: OpenState, repository: str, used: int, slots: int) -> list[str]:
    last = f"cycle {header.cycle}, {stamp(header.last_cycle_at)}" if header.last_cycle_at else "none yet"
    due = [f"- **Next:** {stamp(header.next_due_at)}, urgency {header.urgency.value}"] if header.next_due_at else []
    paused = ["**Paused.** Nothing is done until `ralph resume`.", ""] if header.paused else []
    return [
        f"# Ralph looks after {foreign(repository)}",
        "",
        *paused,
        f"- **Slots:** {'●' * used}{'○' * (slots - used)} {used} of {slots}",
        f"- **Last:** {last}",
        *due,
        f"- **Backlog:** {count_noun(len(state.backlog), 'finding')}",
        f"- **Spent {header.today or 'so far'}:** ${header.spend_usd:.2f}, "
        f"{count_noun(header.dispatches, 'wake')} granted",
    ]


# --- waiting for you ------------------------------------------------------------------


def _waiting(state: OpenState, link: Link, how: How) -> list[str]:
    asks = [line for mission in state.missions if _waits(mission) for line in _ask(mission, link, how)]
    for key in state.unknown:
        asks += [
            "- **Was it sent?** Nobody can tell. Look, then",
            f"  - `ralph journal resolve {key} --sent`",
            f"  - or `ralph journal resolve {key} --not-sent`",
        ]
    return ["## Waiting for you", "", *(asks or ["Nothing."])]


def _ask(mission: Mission, link: Link, how: How) -> Iterator[str]:
    what, thing = ASKING[Status.DISCOVERED if mission.review.offered_until else mission.status]
    number, kind = (mission.pull, "pull") if thing == "pull" or not mission.issue else (mission.issue, "issue")
    failure = review_failure(mission)
    yield f"- **{foreign(mission.title)}** {_links(mission, link)}: {what}"
    if failure:
        yield f"  - failed: {foreign(failure, 300)}"
    if look := command_text(how(f"show_{kind}", number)):
        yield f"  - look: {look}"
    if thing and (yes := command_text(how(f"approve_{kind}", number))):
        yield f"  - approve: {yes}{' (unless it is approved)' if failure else ''}"


def _waits(mission: Mission) -> bool:
    if mission.status is Status.DISCOVERED:
        return bool(mission.question.proposal_hash and mission.issue)
    if mission.status is Status.IN_REVIEW:
        return bool(mission.pull)
    return mission.status in ASKING and bool(mission.thread) and not waits_for_agent(mission)


# --- missions -------------------------------------------------------------------------


def _missions(heading: str, missions: Sequence[Mission], now: datetime | None, link: Link) -> list[str]:
    lines = [line for mission in missions for line in _mission(mission, now, link)]
    return [heading, "", *lines] if lines else []


def _mission(mission: Mission, now: datetime | None, link: Link) -> Iterator[str]:
    age = f", {spell(max(now, mission.started_at) - mission.started_at)} old" if now else ""
    yield f"- **{foreign(mission.title)}** {_links(mission, link)}".rstrip()
    yield f"  - {mission.status.value}{age}"
    if mission.next_step:
        yield f"  - next: {ours(mission.next_step)}"


def _issues(notes: Sequence[IssueNote], link: Link) -> list[str]:
    """What an agent was given to do, whatever became of it."""
    lines = [line for note in notes for line in _issue(note, link)]
    return ["## Issues at work", "", *lines] if lines else []


def _issue(note: IssueNote, link: Link) -> Iterator[str]:
    numbers = (link_number(number, link(number)) for number in (note.issue, note.pull) if number)
    yield f"- **{foreign(note.title)}** {', '.join(numbers)}"
    yield f"  - try {note.tries}, {STANDS[note.state]}"


def _links(mission: Mission, link: Link) -> str:
    return ", ".join(link_number(number, link(number)) for number in (mission.issue, mission.pull) if number)


# --- what became of it ----------------------------------------------------------------


def _done_lines(completed: Sequence[CompletedNote]) -> list[str]:
    lines = [_note(note) for note in completed if note.outcome not in REJECTED]
    return ["## Done", "", *lines] if lines else []


def _posts(posts: Sequence[Posted]) -> list[str]:
    """The last things that were said in public, and how many people reacted."""
    lines = [line for post in posts[:POSTS] for line in _post(post)]
    return ["## Posts", "", *lines] if lines else []


def _post(post: Posted) -> Iterator[str]:
    told = f", {count_noun(post.reactions, 'reaction')}" if post.measured_at else ""
    yield f"- **{foreign(post.network)}**, {foreign(post.kind)}"
    yield f"  - {post.at.date().isoformat()}{told}{f': {foreign(post.url)}' if post.url else ''}"


def _learned_lines(completed: Sequence[CompletedNote], acceptance: Sequence[tuple[str, Acceptance]]) -> list[str]:
    said_no = [_note(note) for note in completed if note.outcome in REJECTED]
    rates = [
        f"- {foreign(kind)}: {of.accepted} of {of.accepted + of.rejected} accepted, the next with {of.mean:.0%}"
        for kind, of in acceptance
    ]
    return ["## Rejected and learned", "", *said_no, *rates] if said_no or rates else []


def _note(note: CompletedNote) -> str:
    why = f": {foreign(note.learning)}" if note.learning else ""
    return f"- **{foreign(note.title)}**\n  - {foreign(note.date)}, {foreign(note.outcome)}{why}"


# --- wakes ----------------------------------------------------------------------------


def _wakes(wakes: Sequence[tuple[datetime, int]]) -> list[str]:
    if not wakes:
        return []
    drifts = [drift for _, drift in wakes]
    rows = [f"| {start:%m-%d %H:%M} | {_late(drift)} |" for start, drift in reversed(wakes)]
    return [
        "## Wakes",
        "",
        f"- late by {_late(int(median(drifts)))} at the median, {_late(max(drifts))} at most",
        "",
        f"<details><summary>The last {len(wakes)}</summary>",
        "",
        "| Woke (UTC) | Late |",
        "| --- | --- |",
        *rows,
        "",
        "</details>",
    ]


def _late(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
