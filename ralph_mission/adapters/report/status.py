"""The status, from memory only: a document for machines, about twenty lines for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from ralph_mission.adapters.report.progress import cap_lines, fold_lines, indent_lines, safe, unread, waiting_blocks
from ralph_mission.mission.lifecycle.waiting import describe_held, describe_red, needs_person
from ralph_mission.mission.memory.schedule import day_of, is_due, spent_today
from ralph_mission.mission.model.ledger import MemorySnapshot, OpenState, Record, Rhythm, WorkRecord
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Limits, Mission, WaitingLine
from ralph_mission.mission.model.proposal import lookup
from ralph_mission.words import capitalise, count_noun, spell, stamp

NOTABLE_DELAY = timedelta(
    hours=1
)  # a delay: GitHub's schedule is often minutes late, and a person types when they like

NOT_STARTED = ("no cycle has run here yet", "to see what it would do: ralph cycle --staged", "to start: ralph cycle")


def facts(
    recalled: MemorySnapshot | None,
    limits: Limits,
    now: datetime,
    waiting: Sequence[str] = (),
    rhythm: Rhythm = Rhythm(),
    answers: Mapping[int, str] | None = None,
    working: Iterable[Record] = (),
) -> dict[str, Any]:
    """The document of `ralph status --json`; the same keys with or without memory.

    `waiting`: a person's possible actions now, in words. `answers`: by mission id, events on the forge since the last
    cycle. `working`: the records of issues an agent works on.
    """
    header = recalled.memory.header if recalled else Header()
    missions = recalled.state.missions if recalled else ()
    begun = sum(mission.status.begun for mission in missions)
    return {
        "started": recalled is not None,
        "cycle": header.cycle,
        "paused": header.paused,
        "urgency": header.urgency.value,
        "last_cycle_at": _iso(header.last_cycle_at),
        "next_due_at": _iso(header.next_due_at),
        "due": not header.paused and is_due(header.next_due_at, now, rhythm.longest),
        "due_in_seconds": _until(header.next_due_at, now),
        "drift_seconds": header.drift_seconds,
        "slots": {"used": begun, "total": limits.active_missions},
        "missions": [_mission(mission, now, (answers or {}).get(mission.id, "")) for mission in missions],
        "issues": [asdict(note) for note in recalled.memory.issues] if recalled else [],
        "waiting": list(waiting),
        "unknown": list(recalled.state.unknown) if recalled else [],
        "unfinished": list(recalled.state.effects) if recalled else [],
        "held": list(describe_held(recalled.state.held)) if recalled else [],
        "red_checks": list(describe_red(recalled.state.red)) if recalled else [],
        "watched": [f"{name}: {''.join(listed)}" for name, listed in list_watched(recalled.state, 1)]
        if recalled
        else [],
        "unchecked": [f"{what}: {why}" for what, why in (unread(recalled.memory.observations) if recalled else ())],
        "backlog": len(recalled.state.backlog) if recalled else 0,
        "spend": {**_spend(header, now, working), "limit_usd": limits.usd_per_day},
    }


def list_watched(state: OpenState, most: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each list of watched findings: its name and number, and its newest lines; without those that people do not
    want."""
    for one in state.watched:
        if one.total and one.kind not in state.silenced:
            yield f"{lookup(one.kind).plural} ({one.total})", tuple(map(_plain, one.lines[:most]))


def _plain(line: str) -> str:
    return line.removeprefix("- ").replace("`", "").strip()


def lines(
    known: dict[str, Any],
    typed: Callable[[str], str] = str,
    waiting: Sequence[WaitingLine] = (),
    paint: Callable[[str, str], str] = lambda text, _role: text,
    dashboard: str = "",
    answered: bool = False,
) -> list[str]:
    """`facts` for people; `typed` spells the commands in a text, `paint` colours it by role.

    `dashboard`: its file. `answered`: whether people answered where typing a cycle acts on it.
    """
    if not known["started"]:
        return list(map(typed, NOT_STARTED))
    slots, spend = known["slots"], known["spend"]
    parts = [
        paint(f"Cycle {known['cycle']}, {slots['used']} of {slots['total']} missions under way.", "title"),
        *([paint(typed("Paused: nothing is done until ralph resume."), "waits")] if known["paused"] else []),
    ]
    doubts = [
        typed(f"  It is unknown whether it was sent. Check, then: ralph journal resolve {key} --sent|--not-sent")
        for key in known["unknown"]
    ]
    if not needs_person(waiting, known["unknown"], known["red_checks"], known["held"]):
        parts += ["", "Nothing needs you."]
    red = [paint(safe(f"{capitalise(one)}."), "waits") for one in known["red_checks"]]
    parts += ["", *red] if red else []
    listed = {(line.number, line.pull) for line in waiting}
    for heading, role, some, limit in (
        ("Waiting for you", "waits", [*waiting_blocks(waiting), *doubts], 14),
        ("Held back", "waits", fold_lines(map(typed, known["held"]), 4), 8),
        ("Missions", "title", list(_missions(known, listed)), 14),
        ("Issues an agent works on", "title", list(_issues(known)), 8),
        (f"Watched{f', see {dashboard}' if dashboard else ''}", "title", indent_lines(known["watched"]), 4),
        ("Not looked at", "waits", fold_lines(known["unchecked"], 4), 6),
    ):
        if some:
            parts += ["", paint(heading, role), *cap_lines(some, limit, typed("ralph status --json"))]
    backlog = f"{count_noun(known['backlog'], 'finding')} not acted on yet. " if known["backlog"] else ""
    reserved = spend["reserved_usd"]
    aside = f", and ${reserved:.2f} set aside for issues an agent works on" if reserved else ""
    spent = f"Spent today: ${spend['usd_today'] - reserved:.2f} of ${spend['limit_usd']:.2f}{aside}."
    return [*parts, "", f"{backlog}{spent}", paint(typed(_wake(known, answered)), "quiet")]


STATES = {
    "DISCOVERED": "proposed",
    "IN_REVIEW": "in review",
    "EXECUTING": "in progress",
    "FIXING": "being revised",
    "ESCALATED": "needs you",
    "PARKED": "set aside",
}
"""A mission's state in words; other states are words themselves."""


def _missions(known: dict[str, Any], listed: Collection[tuple[int, bool]]) -> Iterator[str]:
    """Missions that are not already listed as waiting."""
    for one in known["missions"]:
        pull, issue = one["pull_request"] or 0, one["issue"] or 0
        if (pull, True) in listed or (issue, False) in listed:
            continue
        thread = f" #{pull or issue}" if pull or issue else ""
        state = STATES.get(one["status"], one["status"].lower())
        head = fold_lines(
            [f"{'Pull request' if pull else 'Issue'}{thread}, {state}, {_days(one['age_days'])}: {one['title']}"]
        )
        step = fold_lines([f"  {one['next_step']}"]) if one["next_step"] else []
        yield "\n".join([*head, *(f"  {row}" for row in step)])


def _issues(known: dict[str, Any]) -> Iterator[str]:
    """Issues that an agent works or worked on; finished ones appear as their pull requests."""
    for issue in known["issues"]:
        if issue["state"] != "done":
            where = f"Issue #{issue['issue']}, {issue['state']}, try {issue['tries']}"
            yield from indent_lines([f"{where}: {issue['title']}"])


def _wake(known: dict[str, Any], answered: bool) -> str:
    if known["paused"]:
        return "No cycle runs while it is paused."
    if answered:
        return "Next cycle: type ralph cycle, which acts on your answers"
    if known["next_due_at"] is None:
        return "Next cycle: whenever you type ralph cycle"
    when = stamp(datetime.fromisoformat(known["next_due_at"]))
    late = timedelta(seconds=known["drift_seconds"])
    drift = f"; the last one started {spell(late)} after it was due" if late >= NOTABLE_DELAY else ""
    ahead = known["due"] and known["due_in_seconds"] > 0
    due = "due now; a clock that was ahead wrote" if ahead else "due since" if known["due"] else "due at"
    return f"Next cycle: {due} {when}{drift}"


def _mission(mission: Mission, now: datetime, answer: str) -> dict[str, Any]:
    return {
        "id": mission.id,
        "title": mission.title,
        "status": mission.status.value,
        "issue": mission.issue or None,
        "pull_request": mission.pull or None,
        "age_days": round(max(0.0, (now - mission.started_at).total_seconds()) / 86400, 2),
        "next_step": answer or mission.next_step,
    }


def _spend(header: Header, now: datetime, working: Iterable[Record]) -> dict[str, Any]:
    """What counts as spent today, and how much of it is only reserved; yesterday's does not count."""
    total, tries = spent_today(header, now), [one for one in working if isinstance(one, WorkRecord)]
    reserved = min(total, sum(one.reserved for one in tries if one.at.date() == now.date()))
    return {
        "usd_today": total,
        "reserved_usd": reserved,
        "dispatches_today": header.dispatches if header.today == day_of(header, now) else 0,
    }


def _until(due: datetime | None, now: datetime) -> int:
    return max(0, int((due - now).total_seconds())) if due else 0


def _days(age: float) -> str:
    return f"{count_noun(int(age), 'day')} old" if age >= 1 else "new today"


def _iso(when: datetime | None) -> str | None:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ") if when else None
