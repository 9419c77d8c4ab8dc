"""Decide a recorded cycle again: the same inputs must give the same decisions.

Cycling without anybody who calls us: wait until memory says that a cycle is due, run it, wait again.

Memory is the only due time there is. It is read again at least once a minute, so that a person's change or
another runner's cycle counts; between two cycles lies a minute at least, so that nothing can spin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.errors import UserError
from ralph_mission.mission.decide import Situation, decide
from ralph_mission.mission.model.cycle_report import CycleReport
from ralph_mission.mission.model.proposal import Decision
from ralph_mission.mission.ports import CycleClock
from ralph_mission.safety.secrets import strip_known


def differences(situation: Situation, recorded: Sequence[Decision], secrets: tuple[str, ...]) -> tuple[str, ...]:
    """How today's decisions differ from the recorded ones, one line each; empty when they are the same.

    A recording does without the values that the runner knows, so both are compared without them.
    """
    now = {decision.proposal.key: strip_known(decision, secrets) for decision in decide(situation, secrets).decisions}
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
    return f"{key} {then.proposal.title}: {before} then, {after} now" if before != after else f"{key}: worded otherwise"


def _decision_text(decision: Decision) -> str:
    return f"{decision.verdict} ({', '.join(decision.rules) or 'no rule'})"


LOOK = 60.0  # seconds at most between two looks at memory
LONGEST_PAUSE = 60  # minutes after failures in a row: 1, 2, 4 …
USAGE = 2  # the exit code of a mistake that no waiting mends

Gate = Callable[[], tuple[bool, datetime | None, str]]
"""(due, when next, why), as `ralph due` answers. May raise UserError."""


@dataclass(frozen=True, slots=True)
class WatchSetup:
    """What watching needs from the world. `sleep` takes seconds; `cycle` and `gate` may raise UserError."""

    clock: CycleClock
    sleep: Callable[[float], None]
    gate: Gate
    cycle: Callable[[], CycleReport]
    say: Callable[[str], None]


def watch_cycles(watcher: WatchSetup, once: bool = False) -> None:
    """Cycle until interrupted; `once` ends after one cycle that ran to its end.

    Raises UserError for wrong usage or configuration, and with `once` for any other reason too.
    """
    failures, told = 0, LastLine()
    while True:
        try:
            report, told = _turn(watcher, told)
        except UserError as trouble:
            if once or trouble.exit_code == USAGE:
                raise
            minutes = min(2**failures, LONGEST_PAUSE)
            failures += 1
            watcher.say(f"{trouble.what}; {trouble.next_step}; trying again in {minutes} min")
            watcher.sleep(minutes * 60.0)
            continue
        failures = 0
        if once and report and report.outcome in RAN:
            return
        watcher.sleep(LOOK if report else _until(told.next_due_at, watcher.clock.now()))


@dataclass(frozen=True, slots=True)
class LastLine:
    """What was said last, so that what does not change is said once. `cycle`: it was a cycle's own line."""

    line: str = ""
    next_due_at: datetime | None = None
    cycle: bool = False


def _turn(watcher: WatchSetup, told: LastLine) -> tuple[CycleReport | None, LastLine]:
    """One look at the gate, and a cycle when one is due. Raises UserError."""
    due, next_due_at, reason = watcher.gate()
    if due:
        report = watcher.cycle()
        now = LastLine(_line(report), report.next_due_at, report.outcome in RAN)
    else:
        report, now = None, LastLine(reason, next_due_at)
    announced = told.cycle and not due and now.next_due_at == told.next_due_at
    if now.cycle or not (announced or now.line == told.line):
        watcher.say(now.line)
    return report, now


def _until(next_due_at: datetime | None, now: datetime) -> float:
    """Seconds until the next look: to the due second, but a minute at most and a second at least."""
    left = (next_due_at - now).total_seconds() if next_due_at else LOOK
    return min(max(left, 1.0), LOOK)


def _line(report: CycleReport) -> str:
    if report.outcome == "failed":
        return f"cycle {report.cycle}: everything that it tried was refused"
    if report.outcome not in RAN:
        return f"no cycle: {WHY.get(report.outcome, report.outcome)}"
    done = sum(effect.status in ("done", "adopted") for effect in report.effects)
    effects = "1 effect" if done == 1 else f"{done} effects"
    when = f"{report.next_due_at:%Y-%m-%d %H:%M UTC}" if report.next_due_at else "now"
    return f"cycle {report.cycle}: {effects}; urgency {report.urgency}; next {when}"


RAN = ("done", "failed")  # outcomes of a cycle that was not left at once
WHY = {
    "lost": "another runner has it",
    "paused": "paused",
    "not_due": "another runner was first",
    "failed": "it failed; see ralph status",
}
