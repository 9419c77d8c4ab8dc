"""The dashboard: the memory branch's README. A pure function of memory; markdown out.

Ages count up to the last cycle, so the same memory always makes the same page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from ralph_mission.mission.ledger import OpenState
from ralph_mission.mission.memory import CompletedNote, Header, Memory
from ralph_mission.mission.model import Mission, Status
from ralph_mission.report.lines import counted, spell, stamp
from ralph_mission.safety.text import sanitise

SLOTS = 3  # seed 003: at most three active missions
GANTT = ("```mermaid", "gantt", "  dateFormat YYYY-MM-DDTHH:mm", "  axisFormat %d %b")
ASKING = {
    Status.DISCOVERED: "approve or reject the proposal",
    Status.PLANNED: "carry it out, or decide otherwise",
    Status.IN_REVIEW: "review the change",
    Status.ESCALATED: "it is stuck: look and decide",
}


def dashboard(memory: Memory, state: OpenState, repository: str, slots: int = SLOTS) -> str:
    """The whole page; `slots` is how many missions may be active."""
    parts = (
        _head(memory.header, repository),
        _missions(state.missions, memory.header.last_cycle_at, slots),
        _waiting(state),
        _done(memory.completed),
        _learned(memory, state),
        _costs(memory.header, state),
        _timeline(memory, state),
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _head(header: Header, repository: str) -> list[str]:
    last = f"Last cycle: {header.cycle}, {stamp(header.last_cycle_at)}." if header.last_cycle_at else "No cycle yet."
    due = f" Next: {stamp(header.next_due_at)} (urgency {header.urgency.value})." if header.next_due_at else ""
    paused = ["", "**Paused.** Nothing is done until `ralph resume`."] if header.paused else []
    return [f"# Ralph looks after {_cell(repository)}", "", last + due, *paused]


def _missions(missions: Sequence[Mission], now: datetime | None, slots: int) -> list[str]:
    used = sum(mission.status.active for mission in missions)
    heading = f"## Missions ({used} of {slots} slots)"
    if not missions:
        return [heading, "", "None."]
    rows = [(str(m.id), _cell(m.title), m.status.value, _links(m), _age(m, now), _cell(m.next_step)) for m in missions]
    return [heading, "", *_table(("#", "Mission", "Status", "On", "Age", "Next step"), rows)]


def _waiting(state: OpenState) -> list[str]:
    asks = [f"- {_links(mission)} {_cell(mission.title)}: {ASKING[mission.status]}"
            for mission in state.missions if _waits(mission)]  # fmt: skip
    doubts = [f"- unknown whether it was sent: `ralph journal resolve {key} --sent` or `--not-sent`"
              for key in state.unknown]  # fmt: skip
    return ["## Waiting for you", "", *(asks + doubts or ["Nothing."])]


def _waits(mission: Mission) -> bool:
    if mission.status is Status.DISCOVERED:
        return bool(mission.proposal_hash)
    return mission.status in ASKING and bool(mission.issue or mission.pull)


def _done(completed: Sequence[CompletedNote]) -> list[str]:
    if not completed:
        return []
    rows = [(note.date, _cell(note.title), str(note.cycles), _cell(note.outcome), _cell(note.learning))
            for note in completed]  # fmt: skip
    return ["## Done", "", *_table(("Date", "Mission", "Cycles", "Outcome", "Learning"), rows)]


def _learned(memory: Memory, state: OpenState) -> list[str]:
    rows = [(_cell(kind), str(of.accepted), str(of.rejected), f"{of.mean:.0%}") for kind, of in state.acceptance]
    table = ["", *_table(("Kind", "Accepted", "Rejected", "Expected acceptance"), rows)] if rows else []
    lines = ["", *(f"- {_cell(line.removeprefix('- '))}" for line in memory.measured)] if memory.measured else []
    return ["## Rejected and learned", *table, *lines] if table or lines else []


def _costs(header: Header, state: OpenState) -> list[str]:
    day = header.today or "no day yet"
    return [
        "## Spend and drift",
        "",
        f"- {day}: ${header.spend_usd:.2f} on models, {counted(header.dispatches, 'wake')} sent",
        f"- the last cycle started {header.drift_seconds} s after it was due",
        f"- {counted(len(state.backlog), 'finding')} waiting for a free slot",
    ]


def _timeline(memory: Memory, state: OpenState) -> list[str]:
    now = memory.header.last_cycle_at
    bars = [*_bars(state.missions, now), *_milestones(memory.completed)]
    if not bars or now is None:
        return []
    return ["## Timeline", "", *GANTT, *bars, "```"]


def _bars(missions: Iterable[Mission], now: datetime | None) -> Iterator[str]:
    for mission in missions:
        if now is not None and mission.status.active:
            end = max(now, mission.started_at)
            yield f"  {_name(mission.title)} :active, {_minute(mission.started_at)}, {_minute(end)}"


def _milestones(completed: Iterable[CompletedNote]) -> Iterator[str]:
    for note in completed:
        yield f"  {_name(note.title)} :milestone, done, {note.date}T12:00, 0d"


def _minute(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M")


def _links(mission: Mission) -> str:
    return ", ".join(f"#{number}" for number in (mission.issue, mission.pull) if number)


def _age(mission: Mission, now: datetime | None) -> str:
    return spell(max(now, mission.started_at) - mission.started_at) if now else ""


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _cell(text: str) -> str:
    return " ".join(sanitise(text, "summary").split()).replace("|", "&#124;")


def _name(text: str) -> str:
    # Mermaid has no escapes: what could end a name, or open a directive, is left out.
    plain = "".join(char if char.isalnum() or char in " -_.,()/" else " " for char in text)
    return " ".join(plain.split())[:60] or "mission"
