"""The content of `ralph report` for a repository: missions' states and results, and what was learned.

It is built from memory, its journal and the forge's present state. A mission's change is dated by the cycle that saw
it: no earlier time is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ralph_mission.adapters.report.status import list_watched
from ralph_mission.adapters.report.summary import SHOWN
from ralph_mission.mission.lifecycle.waiting import describe_held, describe_red
from ralph_mission.mission.memory.schedule import day_of
from ralph_mission.mission.model.ledger import MemorySnapshot
from ralph_mission.mission.model.mission import Limits, Status, WaitingLine
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

MOST_CYCLES = 200  # the journal's newest
MOST_ENDED = 20  # ended missions, newest first
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MissionMark:
    """A mission's new state, as seen by a cycle."""

    at: datetime
    cycle: int
    status: Status


@dataclass(frozen=True, slots=True)
class MissionStory:
    """A mission from its beginning to its end, or to now; `issue` and `pull_request` are numbers or null."""

    id: int
    title: str
    status: Status
    issue: int | None
    pull_request: int | None
    url: str
    marks: tuple[MissionMark, ...]
    next_step: str = ""
    outcome: str = ""  # its result
    lines: tuple[str, ...] = ()  # its story as its issue shows it


@dataclass(frozen=True, slots=True)
class CycleFacts:
    """One cycle of the past. `late`: seconds after it was due; null if unknown. `done`: effects visible to people."""

    cycle: int
    started_at: datetime
    seconds: float
    trigger: str
    outcome: str
    urgency: str
    late: int | None
    found: int
    done: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """One of the last loops on this machine. `state`: how it ended, or what it does; `usd`: null if unknown."""

    run: str
    began_at: datetime | None
    state: str
    sessions: int
    stories: tuple[int, int] | None  # those that pass, and all
    usd: float | None


@dataclass(frozen=True, slots=True)
class KindVerdicts:
    """The numbers of accepted and rejected findings of a kind."""

    kind: str
    accepted: int
    rejected: int


@dataclass(frozen=True, slots=True)
class ObserverHealth:
    """An observer's result in the last cycle."""

    name: str
    status: str  # ok, partly, unavailable or skipped
    detail: str
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryReport:
    """The whole report. Missions and cycles are newest first; money is in USD."""

    repository: str
    made_at: datetime
    cycle: int
    paused: bool
    urgency: str
    last_cycle_at: datetime | None
    next_due_at: datetime | None
    waiting: tuple[WaitingLine, ...]
    unknown: tuple[str, ...]  # effects that only a person can verify
    slots_used: int
    slots: int
    missions: tuple[MissionStory, ...]  # in progress or parked
    ended: tuple[MissionStory, ...]
    red_checks: tuple[str, ...]  # the repository's own, red without any change, in one sentence
    held: tuple[str, ...]  # fixes whose checks failed or could not be run
    backlog: tuple[str, ...]  # titles, best first
    watched: tuple[tuple[str, tuple[str, ...]], ...]  # the dashboard's lists of findings: a name and lines
    verdicts: tuple[KindVerdicts, ...]
    learned: tuple[str, ...]
    cycles: tuple[CycleFacts, ...]
    observers: tuple[ObserverHealth, ...]
    usd_today: float
    usd_per_day: float
    remark: str = ""  # why the forge's present state is missing
    loops: tuple[LoopFacts, ...] = ()  # newest first


def collect_report(
    repository: str,
    recalled: MemorySnapshot,
    journal: Iterable[Document],
    limits: Limits,
    now: datetime,
    waiting: Sequence[WaitingLine] = (),
    answers: Mapping[int, str] | None = None,
    find_url: Callable[[int], str] = lambda _number: "",
    loops: Sequence[LoopFacts] = (),
) -> RepositoryReport:
    """The report. `journal`: documents, oldest first. `answers`: by mission id, events on the forge since
    the last cycle. `find_url`: the URL of an issue or a pull request by its number, or ""."""
    memory, state, header = recalled.memory, recalled.state, recalled.memory.header
    documents = tuple(journal)[-MOST_CYCLES:]
    stories = _stories(documents, find_url)
    outcomes = {note.title: note.outcome for note in memory.completed}
    active = {mission.id: mission for mission in state.missions if mission.thread}
    missions = tuple(
        replace(
            stories.get(id) or _story(mission.title, mission.status, mission.issue, mission.pull, id, find_url),
            next_step=(answers or {}).get(id) or mission.next_step,
            lines=mission.story,
        )
        for id, mission in reversed(active.items())
    )
    ended = tuple(
        replace(story, outcome=outcomes.get(story.title, ""))
        for story in sorted(stories.values(), key=lambda story: story.marks[-1].at, reverse=True)
        if story.status.ended and story.id not in active
    )
    looks = (one["report"]["observers"] for one in reversed(documents))  # a cycle that only answered looked at nothing
    last = next(filter(None, looks), ())
    return RepositoryReport(
        repository=repository,
        made_at=now,
        cycle=header.cycle,
        paused=header.paused,
        urgency=header.urgency.value,
        last_cycle_at=header.last_cycle_at,
        next_due_at=header.next_due_at,
        waiting=tuple(waiting),
        unknown=state.unknown,
        slots_used=sum(mission.status.begun for mission in state.missions),
        slots=limits.active_missions,
        missions=missions,
        ended=ended[:MOST_ENDED],
        red_checks=tuple(describe_red(state.red)),
        held=tuple(describe_held(state.held)),
        backlog=tuple(finding.title for finding in state.backlog),
        watched=tuple(list_watched(state, 10)),
        verdicts=tuple(KindVerdicts(kind, tally.accepted, tally.rejected) for kind, tally in state.acceptance),
        learned=memory.measured,
        cycles=tuple(_cycle(one) for one in reversed(documents)),
        observers=tuple(_health(one) for one in last),
        usd_today=header.spend_usd if header.today == day_of(header, now) else 0.0,
        usd_per_day=limits.usd_per_day,
        loops=tuple(loops),
    )


def _story(title: str, status: Status, issue: int, pull: int, id: int, find_url: Callable[[int], str]) -> MissionStory:
    return MissionStory(id, title, status, issue or None, pull or None, find_url(pull or issue), ())


def _stories(documents: Iterable[Document], find_url: Callable[[int], str]) -> dict[int, MissionStory]:
    """Each mission's story, from the journal."""
    stories: dict[int, MissionStory] = {}
    for document in documents:
        report = document["report"]
        at = datetime.fromisoformat(report["started_at"])
        for line in report["missions"]:
            status, id = Status(line["status"]), line["id"]
            issue, pull = line["issue"] or 0, line["pull_request"] or 0
            if not issue and not pull:
                continue  # what it was to live in was not opened
            before = stories.get(id)
            marks = before.marks if before else ()
            if not marks or marks[-1].status is not status:
                marks += (MissionMark(at, report["cycle"], status),)
            stories[id] = replace(_story(line["title"], status, issue, pull, id, find_url), marks=marks)
    return stories


def _health(line: Document) -> ObserverHealth:
    unchecked = tuple(line.get("unchecked", ()))  # an earlier version has none
    status = "partly" if unchecked and line["status"] == "ok" else line["status"]
    return ObserverHealth(line["name"], status, line["detail"] or count_noun(line["signals"], "result"), unchecked)


def _cycle(document: Document) -> CycleFacts:
    report, summary = document["report"], document.get("telling", {})
    start, end = (datetime.fromisoformat(report[name]) for name in ("started_at", "finished_at"))
    done = [one for one in report["effects"] if one["kind"] in SHOWN and one["status"] in ("done", "adopted")]
    return CycleFacts(
        cycle=report["cycle"],
        started_at=start,
        seconds=round((end - start).total_seconds(), 3),
        trigger=report["trigger"],
        outcome=report["outcome"],
        urgency=report["urgency"],
        late=summary.get("late"),
        found=sum(not finding["known"] for finding in report["findings"]),
        done=len(done),
        cost_usd=report["usage"]["cost_usd"],
    )
