"""Where the work on an issue stands: its record, from a try that begins to its end. Pure.

The work on an issue is a `WorkRecord`; each of its open states has one plan (`work_plans`). The number of a try is a
slot of keys, like a review round: it stands on the memory branch before anything of that try is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.issues import texts
from ralph_mission.mission.issues.model import READY, SPARED, TRIES, WORKING, WorkResult, WorkTask
from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.memory.model import KEEP_ISSUES, IssueNote
from ralph_mission.mission.model.ledger import WorkRecord, key_of, work_key
from ralph_mission.mission.model.threads import Branch, Issue

KIND = "issue"
BRANCHES = 10  # names that are looked at for one that is free
OPEN = ("working", "ending", "closing", "releasing", "withdrawing")


def slot_key(record: WorkRecord, what: str) -> str:
    """The key of a deed of the record's present try."""
    return key_of("work", str(record.issue), what, str(record.tries))


def pull_key(record: WorkRecord) -> str:
    """The key of the pull: one for ever, whichever try it comes of."""
    return key_of("work", str(record.issue), "open_pull")


def change_keys(record: WorkRecord) -> tuple[str, str]:
    """The keys of what carries the change: branch and pull."""
    return slot_key(record, "push_branch"), pull_key(record)


def free_branch(issue: Issue, before: WorkRecord | None, taken: Callable[[str], bool]) -> str:
    """The branch of a try that begins: that of the one before it, unless something stands there, or had a pull.

    A name that is taken gets a number. Without any that is free it is the last one, and pushing says why not.
    """
    first = (before.branch if before else "") or texts.branch(issue)
    numbered = (f"{texts.branch(issue)}-{number}" for number in range(2, BRANCHES))
    names = (first, *numbered)
    return next((name for name in names if not taken(name)), names[-1])


def begin_try(
    task: WorkTask, before: WorkRecord | None, at: Branch, holder: str, usd: float, now: datetime
) -> WorkRecord:
    """The record of a try that begins. `at`: the branch that is to be made, and the commit that it begins from."""
    tries, spent = (before.tries + 1, before.usd) if before else (1, 0.0)
    issue, until = task.issue, [before.guided_at] if before and before.guided_at else []
    return WorkRecord(
        work_key(issue.number), issue.number, at.name, at.sha, "working", tries, holder, now, usd,
        spent, reason=before.reason if before else "", title=texts.title(issue), call=task.call,
        guided_at=max([*until, *(word.said_at for word in task.words if word.said_at)], default=None),
        heard=(
            *(texts.guidance_summary(word.who, word.text, word.id) for word in task.words),
            *(texts.left_out(who) for who in task.altered),
        ),
        spared=before.spared if before else 0,
    )  # fmt: skip  # one record


def update_notes(notes: Sequence[IssueNote], record: WorkRecord) -> tuple[IssueNote, ...]:
    """What people read about issues in memory, the newest first, once this is where one of them stands."""
    rest = [note for note in notes if note.issue != record.issue]
    if record.state == "withdrawn":
        return tuple(rest)
    state = "working" if record.state in OPEN else record.state
    title = record.title or f"Issue {record.issue}"
    return _trim_notes([IssueNote(record.issue, title, state, record.number, record.pull), *rest])


def _trim_notes(notes: Iterable[IssueNote]) -> tuple[IssueNote, ...]:
    """Those that are worked on, and as many of the others as there is room for."""
    ordered = sorted(notes, key=lambda note: note.state != "working")
    return tuple(note for place, note in enumerate(ordered) if place < KEEP_ISSUES or note.state == "working")


def end_try(record: WorkRecord, played: WorkResult) -> WorkRecord:
    """The record once the loop is over: the change is to be sent, or the issue given back."""
    record = replace(record, usd=round(record.usd + played.usd, 6), reserved=0.0, code=played.code)
    if played.code == 0 and played.patch is not None and played.patch.changes:
        return replace(record, state="ending", reason="")
    reason = played.reason if played.code else "it was declared done, and no file was changed"
    away = played.away and record.spared < SPARED
    return release_issue(replace(record, spared=record.spared + away, away=away), reason, played.code or 1)


def release_issue(record: WorkRecord, reason: str, code: int, final: bool = False) -> WorkRecord:
    """The record of a try that came to nothing."""
    final = final or record.tries - record.spared >= TRIES
    return replace(record, state="releasing", reason=reason, code=code, final=final, reserved=0.0, refusals=0)


def unbegun(record: WorkRecord, before: WorkRecord | None, said: bool) -> WorkRecord:
    """The record of a try that a stop kept from beginning: it does not count, and what people said is still to be told.

    `said`: whether anything of it may stand on the issue already, which is then to be put right.
    """
    heard_until, reason = (before.guided_at, before.reason) if before else (None, "")
    left = replace(record, spared=record.spared + 1, away=True, guided_at=heard_until, reason=reason, holder="")
    return (
        release_issue(left, "it was paused before a session began", 1)
        if said
        else replace(left, state="waiting", reserved=0.0)
    )


def withdrawn(record: WorkRecord, issue: Issue | None, us: int) -> bool:
    """Whether a person took the issue back while it was worked on: closed it, or took our label off.

    That asking anew is another wish changes nothing of it. And that no label is there says nothing: a swap of labels
    is two requests, and we may have died between them.
    """
    if issue is None or issue.state != "open":
        return True
    if record.state == "working" or WORKING in issue.labels:
        return False
    if _taken_off(issue, us, WORKING) is not None:
        return True
    return READY not in issue.labels and _taken_off(issue, us, WORKING, READY) is not None


def asked_again(record: WorkRecord, issue: Issue, us: int) -> bool:
    """Whether the label that named the agent was set anew after a person took the issue back."""
    event, gone = approval.standing_label(issue, record.call), _taken_off(issue, us, WORKING)
    return event is not None and gone is not None and event.at > gone


def _taken_off(issue: Issue, us: int, *labels: str) -> datetime | None:
    """When a person took the last of these labels off; None when nobody did, or it was set again, or it was we."""
    events = sorted((e for e in issue.events if e.label in labels), key=lambda e: e.at)
    last = events[-1] if events else None
    return last.at if last and not last.added and last.actor.id != us else None
