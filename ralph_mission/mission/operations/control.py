"""What a person does to memory by hand (pause, resume, resolve, replay), and `ralph watch`.

The due time is in memory alone. It is read again at least once a minute, so that a person's change or another runner's
cycle counts; at least a minute passes between two cycles, so that nothing can spin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from ralph_mission.errors import UserError
from ralph_mission.mission.commit import settle_open
from ralph_mission.mission.decide import decide, with_findings
from ralph_mission.mission.execute import AppliedEffect
from ralph_mission.mission.model.cycle import CycleReport, Situation, thread_number
from ralph_mission.mission.model.effects import OpenIssue, Publish, Receipt, skip_effect
from ralph_mission.mission.model.ledger import EffectRecord, MemoryBatch, MemorySnapshot, settle
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.proposal import Decision
from ralph_mission.mission.ports import CycleClock, Store
from ralph_mission.safety.secrets import strip_known
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun, stamp


class Editable(Store, Protocol):
    """A store that accepts a person's edits and shows its journal."""

    def edit(self, memory: Memory, after: MemorySnapshot, message: str) -> None:
        """Commit a person's edit (Learnings, Do Not Repeat, `paused`)."""

    def journal(self) -> Iterable[dict[str, Any]]:
        """Every cycle's journal document, oldest first."""


def pause(store: Editable) -> bool:
    """Pause before the next effect; False if it is paused already. Raises UserError if there is no memory."""
    return _set_paused(store, True)


def resume(store: Editable) -> bool:
    """Resume; False if it is not paused. Raises UserError if there is no memory."""
    return _set_paused(store, False)


def _set_paused(store: Editable, paused: bool) -> bool:
    past = _present(store)
    if past.memory.header.paused is paused:
        return False
    header = replace(past.memory.header, paused=paused)
    store.edit(replace(past.memory, header=header), past, f"ralph: {'paused' if paused else 'resumed'} by a person")
    return True


def _present(store: Editable) -> MemorySnapshot:
    past = store.recall()
    if past is None:
        raise UserError(
            "no cycle has run here yet", "run one first: ralph cycle; RALPH_PAUSED=1 keeps any from starting"
        )
    return past


def resolve(store: Editable, key: str, sent: bool, number: int = 0) -> None:
    """A person says whether an effect in doubt happened; `number`: the issue or comment it created.

    Raises UserError if there is no such effect, or a cycle is running.
    """
    with store.exclusive() as ours:
        if not ours:
            raise UserError("a cycle is running", "wait until it has ended")
        past = _present(store)
        record = store.records([key], past).get(key)
        if not isinstance(record, EffectRecord) or key not in past.state.unknown:
            raise UserError(f"no effect {key} is waiting for an answer", "see `ralph journal`")
        if sent and not number and isinstance(record.effect, OpenIssue):  # without its issue a mission waits for ever
            raise UserError(f"{key} opens an issue: which one is it?", "add: --number NUMBER", usage=True)
        receipt = Receipt(key, "adopted", number) if sent else skip_effect(key, "not sent, says a person")
        store.commit(_settled_batch(store, past, record, receipt), past)


def _settled_batch(store: Store, past: MemorySnapshot, record: EffectRecord, receipt: Receipt) -> MemoryBatch:
    """The batch that settles the effect as reconciling would, without changing the cycle."""
    subject = f"ralph: {record.key} settled by a person"
    if record.effect is None:  # in recovered memory nothing depends on it any more
        unknown = tuple(key for key in past.state.unknown if key != record.key)
        return MemoryBatch(past.memory, replace(past.state, unknown=unknown), (settle(record, receipt),), subject)
    members = {m for mission in past.state.missions if mission.id == record.mission for m in mission.members}
    about = {record.effect.finding} - {""} if isinstance(record.effect, Publish) else set()
    records = {record.key: record, **store.records({*members, *about}, past)}
    batch = settle_open(past, [AppliedEffect(record.effect, receipt)], records)
    return replace(batch, state=replace(batch.state, claim=past.state.claim), message=subject)


def journal(store: Editable) -> list[dict[str, Any]]:
    """All effects ever carried out, oldest first: cycle, when, key, action, kind, state, url, number (0) and title ("")
    of its thread, where known."""
    entries, titles = list[dict[str, Any]](), dict[int, str]()
    for document in store.journal():
        report, threads = document["report"], document["telling"].get("threads", ())
        opened = {thread["key"]: thread["title"] for thread in threads}
        for one in report["missions"]:
            titles |= dict.fromkeys(filter(None, (one["issue"], one["pull_request"])), one["title"])
        for effect in report["effects"]:
            number = thread_number(effect["url"])
            title = opened.get(effect["key"], "") or (titles.get(number, "") if number else "")
            titles[number] = title
            entries.append(
                {
                    "cycle": report["cycle"],
                    "at": report["started_at"],
                    "key": effect["key"],
                    "action": effect["action"],
                    "kind": effect["kind"],
                    "state": effect["status"],
                    "url": effect["url"],
                    "number": number,
                    "title": title,
                }
            )
    return entries


def differences(situation: Situation, recorded: Sequence[Decision], secrets: tuple[str, ...]) -> tuple[str, ...]:
    """The differences between today's decisions and the recorded ones, one line each.

    Recordings omit the secret values that the runner knows, so both are compared without them.
    """
    decided = decide(with_findings(situation), secrets)
    now = {decision.proposal.key: strip_known(decision, secrets) for decision in decided.decisions}
    then = {decision.proposal.key: strip_known(decision, secrets) for decision in recorded}
    lines = [_difference(key, then.get(key), now.get(key)) for key in dict.fromkeys((*then, *now))]
    return tuple(line for line in lines if line)


def _difference(key: str, then: Decision | None, now: Decision | None) -> str:
    if then is None or now is None:
        decision, word = (now, "was not decided then") if then is None else (then, "is not decided now")
        assert decision is not None
        return f"{key} {decision.proposal.title}: {word}"
    if then == now:
        return ""
    before, after = _decision_text(then), _decision_text(now)
    change = f"{before} then, {after} now" if before != after else "the same decision, worded differently"
    return f"{key} {then.proposal.title}: {change}"


def _decision_text(decision: Decision) -> str:
    return f"{decision.verdict} ({', '.join(decision.rules) or 'no rule'})"


LOOK = 60.0  # longest time in seconds between two reads of memory
LONGEST_PAUSE = 60  # minutes after repeated failures: 1, 2, 4 …
USAGE = 2  # the exit code of an error that waiting cannot fix

Gate = Callable[[], tuple[bool, datetime | None, str]]
"""Returns (due, next due time, reason), as `ralph due` does. May raise UserError."""


@dataclass(frozen=True, slots=True)
class WatchSetup:
    """What watching needs. `sleep` takes seconds; `answer` runs a cycle that acts on what people asked meanwhile, if
    anything. `cycle`, `gate` and `answer` may raise UserError."""

    clock: CycleClock
    sleep: Callable[[float], None]
    gate: Gate
    cycle: Callable[[], CycleReport]
    say: Callable[[str], None]
    answer: Callable[[], CycleReport | None] = lambda: None


def watch_cycles(watcher: WatchSetup, once: bool = False) -> None:
    """Run cycles until interrupted; `once`: end after one complete cycle.

    Raises UserError for wrong usage or configuration, and with `once` for any other problem too.
    """
    failures, last_line = 0, LastLine()
    while True:
        try:
            report, last_line = _turn(watcher, last_line)
        except UserError as problem:
            if once or problem.exit_code == USAGE:
                raise
            minutes = min(2**failures, LONGEST_PAUSE)
            failures += 1
            watcher.say(f"{problem.what}; {problem.next_step}; trying again in {minutes} min")
            watcher.sleep(minutes * 60.0)
            continue
        failures = 0
        if once and report and report.outcome in RAN:
            return
        watcher.sleep(LOOK if report else _until(last_line.next_due_at, watcher.clock.now()))


@dataclass(frozen=True, slots=True)
class LastLine:
    """The last line shown, so that it is not repeated. `cycle`: it came from a cycle."""

    line: str = ""
    next_due_at: datetime | None = None
    cycle: bool = False


def _turn(watcher: WatchSetup, last_line: LastLine) -> tuple[CycleReport | None, LastLine]:
    """Check whether a cycle is due or a person spoke, and run it. Raises UserError."""
    due, next_due_at, reason = watcher.gate()
    if report := watcher.cycle() if due else watcher.answer():
        now = LastLine(_line(report), report.next_due_at, report.outcome in RAN)
    else:
        now = LastLine(reason, next_due_at)
    announced = last_line.cycle and not due and now.next_due_at == last_line.next_due_at
    if now.cycle or not (announced or now.line == last_line.line):
        watcher.say(now.line)
    return report, now


def _until(next_due_at: datetime | None, now: datetime) -> float:
    """Seconds until the next check: until due, but at most a minute and at least a second."""
    seconds = (next_due_at - now).total_seconds() if next_due_at else LOOK
    return min(max(seconds, 1.0), LOOK)


def _line(report: CycleReport) -> str:
    if report.outcome == "failed":
        return f"cycle {report.cycle}: everything that it tried was refused"
    if report.outcome not in RAN:
        return f"no cycle: {WHY.get(report.outcome, report.outcome)}"
    done = sum(effect.status in ("done", "adopted") for effect in report.effects)
    when = stamp(report.next_due_at) if report.next_due_at else "now"
    return f"cycle {report.cycle}: {count_noun(done, 'effect')}; urgency {report.urgency}; next {when}"


RAN = ("done", "failed")  # outcomes of a cycle that actually ran
WHY = {
    "lost": "another runner has it",
    "paused": "paused",
    "not_due": "another runner was first",
}
