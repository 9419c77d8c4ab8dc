"""What a cycle stores: memory for people, lessons for the ranking, state for the next cycle.

Learned numbers can be recounted from the journal alone, so anybody can check those in Learnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ralph_mission.mission.findings import identity, ranking
from ralph_mission.mission.model.cycle import Lesson
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.ledger import KEPT_POSTS, FindingRecord, Record
from ralph_mission.mission.model.memory import CompletedNote, CycleNote, Memory, MissionNote
from ralph_mission.mission.model.mission import Acceptance, Finding, Mission, Status
from ralph_mission.mission.model.proposal import lookup
from ralph_mission.values import compile_regex
from ralph_mission.words import capitalise

WINDOW = timedelta(days=7)  # lines changed automatically in one file add up over a week
PARKED_FOR = timedelta(days=90)  # later nobody is expected to revive a mission
_VERDICTS = compile_regex(
    r"\((?P<kind>[a-z][a-z0-9-]{0,39})\): people accepted (?P<accepted>\d{1,6}) of (?P<all>\d{1,6});"
)
SHOWN = 8  # findings named in one entry of the observations log


def learn(
    acceptance: Mapping[str, Acceptance], lessons: Iterable[Lesson], records: Mapping[str, Record]
) -> dict[str, Acceptance]:
    """The tallies with each lesson counted once: a verdict that is already on record does not count again."""
    tallies = dict(acceptance)
    for lesson in worth_reporting(lessons, records):
        tallies[lesson.kind] = count_verdict(tallies.get(lesson.kind, Acceptance()), lesson.verdict)
    return tallies


def worth_reporting(lessons: Iterable[Lesson], records: Mapping[str, Record]) -> tuple[Lesson, ...]:
    """The lessons whose verdict is not on record yet."""
    return tuple(lesson for lesson in lessons if not _already(lesson, records))


def count_verdict(tally: Acceptance, verdict: str) -> Acceptance:
    """Add a verdict to the tally."""
    if verdict == "accepted":
        return replace(tally, accepted=tally.accepted + 1)
    return replace(tally, rejected=tally.rejected + 1)


def _already(lesson: Lesson, records: Mapping[str, Record]) -> bool:
    known = [records.get(member) for member in lesson.members]
    verdicts = {record.verdict for record in known if isinstance(record, FindingRecord)}
    return verdicts == {lesson.verdict}


def apply_lessons(lessons: Iterable[Lesson], records: Mapping[str, Record]) -> tuple[FindingRecord, ...]:
    """Add people's verdicts to the finding records: a rejection marks every member and each of its corrections."""
    return tuple(
        replace(
            record, key=key, parts=record.parts if key == member else (), verdict=lesson.verdict, reason=lesson.reason
        )
        for lesson in lessons
        for member in lesson.members
        if isinstance(record := records.get(member), FindingRecord)
        for key in (member, *record.parts)
    )


def acted_on(
    members: Iterable[Finding], records: Mapping[str, Record], cycle: int, mission: int
) -> tuple[FindingRecord, ...]:
    """Mark these instances in the finding records as acted on."""
    return tuple(_acted_on(finding, records.get(finding.fingerprint), cycle, mission) for finding in members)


def _acted_on(finding: Finding, before: Record | None, cycle: int, mission: int) -> FindingRecord:
    signal, parts = finding.signal, identity.keys_of_parts(finding.signal)
    if not isinstance(before, FindingRecord):
        record = FindingRecord(finding.fingerprint, finding.kind, finding.title, (signal.occurrence,), cycle, mission)
        return replace(record, observer=signal.observer, parts=parts)
    occurrences = tuple(dict.fromkeys((*before.occurrences, signal.occurrence)))[-50:]
    mission, parts = mission or before.mission, parts or before.parts
    return replace(before, occurrences=occurrences, cycle=cycle, mission=mission, observer=signal.observer, parts=parts)


def not_acted_on(record: FindingRecord) -> FindingRecord:
    """Unmark the newest instance, as it turned out that nothing was done about it."""
    return replace(record, occurrences=record.occurrences[:-1])


def not_said(record: FindingRecord, occurrence: str) -> FindingRecord:
    """Unmark this instance, as it turned out that its post was never sent."""
    return replace(record, occurrences=tuple(known for known in record.occurrences if known != occurrence))


def learnings(acceptance: Mapping[str, Acceptance], posts: Sequence[Posted]) -> tuple[str, ...]:
    """The lines under `### Measured by Ralph`; `recount_learnings` counts each number again from the journal."""
    return (*_verdicts(acceptance), *ranking.engagement_lines(posts))


def _verdicts(acceptance: Mapping[str, Acceptance]) -> tuple[str, ...]:
    return tuple(
        f"{capitalise(lookup(kind).plural)} ({kind}): people accepted {tally.accepted} of "
        f"{tally.accepted + tally.rejected}; expected acceptance {tally.mean:.0%}."
        f"{_silence(kind, tally)}"
        for kind, tally in sorted(acceptance.items())
    )


def read_verdicts(measured: Iterable[str]) -> dict[str, Acceptance]:
    """The tallies in the lines under `### Measured by Ralph`, by kind."""
    found = (_VERDICTS.search(line) for line in measured)
    return {
        one["kind"]: Acceptance(int(one["accepted"]), int(one["all"]) - int(one["accepted"]))
        for one in found
        if one and int(one["accepted"]) <= int(one["all"])
    }


def _silence(kind: str, tally: Acceptance) -> str:
    """What happens to a kind that people keep rejecting, and how they get it back."""
    if not ranking.fell_silent(tally):
        return ""
    return f" They are proposed no more, unless they are grave; {ranking.bring_back(kind)}."


def update_notes(
    memory: Memory,
    missions: Sequence[Mission],
    ended: Sequence[Mission],
    note: CycleNote,
    acceptance: Mapping[str, Acceptance],
    posts: Sequence[Posted] = (),
) -> Memory:
    """The memory file after this cycle; people's own sections stay as they are. Trimming comes later."""
    observations, measured = (note, *memory.observations), learnings(acceptance, posts)
    return replace(update_missions(memory, missions, ended), observations=observations, measured=measured)


def update_missions(memory: Memory, missions: Sequence[Mission], ended: Sequence[Mission]) -> Memory:
    """The memory file after a step outside a cycle: only the missions are updated."""
    completed = (*(_completed_note(mission, memory.header.cycle) for mission in ended), *memory.completed)
    return replace(memory, active=under_way(missions), completed=completed)


def under_way(missions: Iterable[Mission]) -> tuple[MissionNote, ...]:
    """What the memory file says about active missions."""
    return tuple(_note(mission) for mission in missions if mission.status.active)


def _note(mission: Mission) -> MissionNote:
    return MissionNote(
        mission.id,
        mission.title,
        mission.status,
        mission.issue,
        mission.pull,
        mission.started_cycle,
        mission.last_action,
        mission.next_step,
    )


def _completed_note(mission: Mission, cycle: int) -> CompletedNote:
    date = (mission.finished_at or mission.changed_at).date().isoformat()
    cycles = cycle - mission.started_cycle + 1
    return CompletedNote(date, mission.title, cycles, mission.outcome, mission.learning)


def ended_missions(missions: Iterable[Mission], now: datetime) -> tuple[Mission, ...]:
    """Missions that leave the state; their lessons stay in the ledger and the memory file."""
    return tuple(mission for mission in missions if _has_ended(mission, now))


def _has_ended(mission: Mission, now: datetime) -> bool:
    forgotten = mission.status is Status.PARKED and now - mission.changed_at >= PARKED_FOR
    return forgotten or mission.status.ended


Documents = Iterable[Mapping[str, Any]]


def acceptance(documents: Documents) -> dict[str, Acceptance]:
    """Every kind's verdicts."""
    tallies: dict[str, Acceptance] = {}
    for document in documents:
        for lesson in document.get("counted", ()):
            tallies[lesson["kind"]] = count_verdict(tallies.get(lesson["kind"], Acceptance()), lesson["verdict"])
    return tallies


def posts(documents: Documents) -> tuple[Posted, ...]:
    """Every post that still counts, newest first, with its latest metrics."""
    known: dict[str, Posted] = {}
    for document in documents:
        known |= {post["key"]: _post(post) for post in document.get("posts", ())}
    return tuple(sorted(known.values(), key=lambda post: post.at, reverse=True))[:KEPT_POSTS]


def _post(row: Mapping[str, Any]) -> Posted:
    at, measured = datetime.fromisoformat(row["at"]), row["measured_at"]
    return Posted(**{**row, "at": at, "measured_at": datetime.fromisoformat(measured) if measured else None})


def recount_learnings(documents: Documents) -> tuple[str, ...]:
    """The lines that should be under `### Measured by Ralph`."""
    documents = tuple(documents)
    return learnings(acceptance(documents), posts(documents))
