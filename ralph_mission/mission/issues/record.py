"""The state of the work on an issue, and the effects of each state. Pure.

The work on an issue is a `WorkRecord`; each of its open states has one plan. The number of an attempt is part of its
keys, like a review round: it is on the memory branch before the attempt's first effect, and the keys of a plan's
effects never change, so that a process that resumes after a crash sends what is missing and nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.coder.tasks import change_commit, pull_text
from ralph_mission.mission.findings.identity import touched_by
from ralph_mission.mission.issues import tasks
from ralph_mission.mission.issues.tasks import FAILED, READY, SPARED, TRIES, WORKING, WorkTask
from ralph_mission.mission.lifecycle import approval, ownership
from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.effects import Comment, EditComment, Effect, Label, OpenPull, PushBranch, Receipt
from ralph_mission.mission.model.forge import Branch, Issue
from ralph_mission.mission.model.ledger import SETTLED, EffectRecord, Record, WorkRecord, key_of, may_be_done, work_key
from ralph_mission.mission.model.memory import KEEP_ISSUES, IssueNote
from ralph_mission.mission.model.mission import Action, FailureReason
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.policy import RULES
from ralph_mission.mission.proposals.wording import append_number, person_name, plain
from ralph_mission.safety.patch import Patch, deltas, patch_ids, sketch

KIND = "issue"
BRANCHES = 10  # names that are tried
OPEN = ("working", "ending", "closing", "releasing", "withdrawing")


def slot_key(record: WorkRecord, what: str) -> str:
    """The key of an effect of the record's present attempt."""
    return key_of("work", str(record.issue), what, str(record.tries))


def pull_key(record: WorkRecord) -> str:
    """The key of the pull request, the same for every attempt."""
    return key_of("work", str(record.issue), "open_pull")


def change_keys(record: WorkRecord) -> tuple[str, str]:
    """The keys of the change's effects: branch and pull request."""
    return slot_key(record, "push_branch"), pull_key(record)


def free_branch(issue: Issue, before: WorkRecord | None, exists: Callable[[str], bool]) -> str:
    """The branch of a new attempt: that of the previous one, unless it exists or had a pull request.

    A taken name gets a number. If none is free it is the last one, and the push reports the problem.
    """
    first = (before.branch if before else "") or tasks.issue_branch(issue)
    numbered = (f"{tasks.issue_branch(issue)}-{number}" for number in range(2, BRANCHES))
    names = (first, *numbered)
    return next((name for name in names if not exists(name)), names[-1])


def begin_try(
    task: WorkTask, before: WorkRecord | None, at: Branch, holder: str, usd: float, now: datetime
) -> WorkRecord:
    """The record of a new attempt. `at`: its branch, and the commit that it begins from."""
    tries, spent = (before.tries + 1, before.usd) if before else (1, 0.0)
    spared = 0 if before is None else before.tries if tasks.is_given_up(before) else before.spared  # asked again
    issue, until = task.issue, [before.guided_at] if before and before.guided_at else []
    return WorkRecord(
        work_key(issue.number), issue.number, at.name, at.sha, "working", tries, holder, now, usd,
        spent, reason=before.reason if before and not before.away else "",
        title=tasks.issue_title(issue), call=task.call,
        guided_at=max([*until, *(word.said_at for word in task.words if word.said_at)], default=None),
        heard=(
            *(tasks.guidance_summary(word.who, word.text, word.id) for word in task.words),
            *(tasks.describe_altered(who) for who in task.altered),
        ),
        spared=spared,
    )  # fmt: skip  # one record


def update_notes(notes: Sequence[IssueNote], record: WorkRecord) -> tuple[IssueNote, ...]:
    """Memory's notes about issues, newest first, with this new state of one of them."""
    rest = [note for note in notes if note.issue != record.issue]
    if record.state == "withdrawn":
        return tuple(rest)
    state = "working" if record.state in OPEN else record.state
    title = record.title or f"Issue {record.issue}"
    return _trim_notes([IssueNote(record.issue, title, state, record.number, record.pull), *rest])


def _trim_notes(notes: Iterable[IssueNote]) -> tuple[IssueNote, ...]:
    """The notes on open work, and as many others as there is room for."""
    ordered = sorted(notes, key=lambda note: note.state != "working")
    return tuple(note for place, note in enumerate(ordered) if place < KEEP_ISSUES or note.state == "working")


def end_try(record: WorkRecord, played: AgentResult) -> WorkRecord:
    """The record after the loop: next the change is sent, or the issue released."""
    record = replace(record, usd=round(record.usd + played.usd, 6), reserved=0.0, code=played.code)
    if played.code == 0 and played.patch is not None and played.patch.changes:
        return replace(record, state="ending", reason="")
    reason = played.reason if played.code else "it was declared done, and no file was changed"
    away = played.away and record.spared < SPARED
    return release_issue(replace(record, spared=record.spared + away, away=away), reason, played.code or 1)


def release_issue(record: WorkRecord, reason: str, code: int, final: bool = False) -> WorkRecord:
    """The record of a failed attempt."""
    final = final or record.tries - record.spared >= TRIES
    return replace(record, state="releasing", reason=reason, code=code, final=final, reserved=0.0, refusals=0)


def abandon_try(record: WorkRecord, usd: float) -> WorkRecord:
    """The record of an attempt whose runner is gone after it spent `usd`. It does not count as a failure.

    After `SPARED` of these it does: something in it ends every runner.
    """
    spared = record.spared < SPARED
    abandoned = replace(record, usd=round(record.usd + usd, 6), spared=record.spared + spared, away=spared)
    return replace(release_issue(abandoned, DIED, 1), reserved=max(0.0, record.reserved - usd))


def cancel_try(record: WorkRecord, before: WorkRecord | None, announced: bool) -> WorkRecord:
    """The record of an attempt that a stop prevented: it does not count, and people's guidance is still undelivered.

    `announced`: whether the issue may already show something of it, which is then corrected.
    """
    heard_until, reason = (before.guided_at, before.reason) if before else (None, "")
    cancelled = replace(record, spared=record.spared + 1, away=True, guided_at=heard_until, reason=reason, holder="")
    if announced:
        return release_issue(cancelled, "it was paused before a session began", 1)
    return replace(cancelled, state="waiting", reserved=0.0)


def is_withdrawn(record: WorkRecord, issue: Issue | None, us: int) -> bool:
    """Whether a person withdrew the issue during work: closed it, or removed our label.

    Setting the label again later is a new request. A missing label alone proves nothing: swapping labels takes two
    requests, and we may have died between them.
    """
    if issue is None or issue.state != "open":
        return True
    if record.state == "working" or WORKING in issue.labels:
        return False
    if _when_taken_off(issue, us, WORKING) is not None:
        return True
    return READY not in issue.labels and _when_taken_off(issue, us, WORKING, READY) is not None


def is_asked_again(record: WorkRecord, issue: Issue, us: int) -> bool:
    """Whether the label that named the agent was set again after a person withdrew the issue."""
    event, gone = approval.standing_label(issue, record.call), _when_taken_off(issue, us, WORKING)
    return event is not None and gone is not None and event.at > gone


def _when_taken_off(issue: Issue, us: int, *labels: str) -> datetime | None:
    """When a person removed the last of these labels; None if nobody did, it was set again, or Ralph removed it."""
    events = sorted((e for e in issue.events if e.label in labels), key=lambda e: e.at)
    last = events[-1] if events else None
    return last.at if last and not last.added and last.actor.id != us else None


DIED = "its runner ended before it could say how"
REFUSALS = 3  # attempts in a row to leave an open state
HIDDEN_REASON = "the reason may not be shown here; it is in the log of the run"
LEFT_TO_REVIEW = frozenset({"diff-size", "kind-tier"})
"""Rules about size and kind are for unrequested changes; a person requested this one, and a person reviews it. The
rules about protected paths, modes, secrets, hidden text, texts and branches apply."""
WORK_RULES = tuple(rule for rule in RULES if rule.id not in LEFT_TO_REVIEW)

UnsentChange = tuple[tuple[PushBranch | OpenPull, ...], Patch | None]
"""The unsent effects of an announced change, and its patch if a branch is among them."""


def work_proposal(record: WorkRecord, issue: Issue, effects: Sequence[Effect], patch: Patch | None = None) -> Proposal:
    """The plan's proposal for policy."""
    title = f"#{issue.number} {tasks.issue_title(issue)}, {record.state}"
    return Proposal(slot_key(record, record.state), Action.WORK, KIND, title, tuple(effects), patch=patch)


def begin_effects(record: WorkRecord, others: Sequence[str] = ()) -> tuple[Effect, ...]:
    """The label swap and the one comment at the start. A label that names the agent stays: only people may set it.

    `others` request the same work and are removed, so that a single label stands for the request.
    """
    comment = slot_key(record, "begin")
    gone = tuple(sorted({READY, FAILED, *others}))
    return (
        Label(slot_key(record, "take"), record.issue, add=(WORKING,), remove=gone),
        Comment(comment, record.issue, tasks.begin_comment(record, TRIES, comment)),
    )


def work_effects(
    record: WorkRecord, issue: Issue, played: AgentResult, base: str, now: datetime
) -> tuple[PushBranch, OpenPull]:
    """The branch and the pull request. Raises UnicodeDecodeError for a change that is not text."""
    assert played.patch is not None
    title, why = tasks.issue_title(issue), f"{person_name(issue.author)} asked for it in #{issue.number}"
    push = PushBranch(
        slot_key(record, "push_branch"), record.branch, played.patch.base,
        change_commit(title, issue.number, why), now, deltas(played.patch), issue=record.issue,
    )  # fmt: skip  # one effect
    pull = pull_key(record)
    facts = ownership.work_facts(issue.number)
    body = pull_text(issue.number, why, played.patch, played.words, played.learned, pull, facts, played.standing)
    same = tuple(sorted(patch_ids(played.patch)))
    return push, OpenPull(
        pull,
        append_number(title, issue.number),
        body,
        record.branch,
        base,
        record.issue,
        (),
        same,
        touched_by(played.patch),
    )


def announce_effects(
    record: WorkRecord, remark: int, changes: Sequence[PushBranch | OpenPull]
) -> tuple[EditComment, ...]:
    """The first comment, edited to name the change: a process that resumes after a crash sends exactly that."""
    if not remark:
        return ()
    comment = slot_key(record, "begin")
    body = tasks.begin_comment(record, TRIES, comment, ownership.announcement_line(changes, needs_approval=False))
    return (EditComment(slot_key(record, "announce"), record.issue, remark, body),)


def find_own_comment(record: WorkRecord, issue: Issue, us: int) -> tuple[int, str]:
    """Our first comment of this attempt, by author and marker: its number and text; 0 if there is none."""
    ours = ownership.own_remarks(issue, slot_key(record, "begin"), us)
    return (ours[0].id, ours[0].body) if ours else (0, "")


def find_unsent_change(record: WorkRecord, records: Mapping[str, Record], issue: Issue, us: int) -> UnsentChange | None:
    """The unsent part of the change, with its patch; None if our comment does not name it.

    Memory stores it but authorises nothing: only a change that our account announced on the issue is sent.
    """
    named = ownership.announced_digests(find_own_comment(record, issue, us)[1], False)
    found = [records.get(one) for one in change_keys(record)]
    if not all(isinstance(one, EffectRecord) for one in found):
        return None
    unsent = [one.effect for one in found if isinstance(one, EffectRecord) and not may_be_done(one)]
    effects = tuple(effect for effect in unsent if isinstance(effect, PushBranch | OpenPull))
    if len(effects) < len(unsent) or not {ownership.change_digest(effect) for effect in effects} <= named:
        return None
    pushed = next((effect for effect in effects if isinstance(effect, PushBranch)), None)
    return effects, sketch(pushed.files, pushed.base_sha) if pushed else None


def finish_effects(record: WorkRecord) -> tuple[Effect, ...]:
    """The final comment with the pull request's number, and the label's removal."""
    comment = slot_key(record, "end")
    return (
        Label(slot_key(record, "close"), record.issue, remove=_ours(record)),
        Comment(comment, record.issue, tasks.done_comment(record, comment)),
    )


def release_effects(record: WorkRecord) -> tuple[Effect, ...]:
    """The comment with the reason, and the label for a second attempt, or `ralph-failed`.

    A label that names the agent is still set, unless a person removed it: then there is no second attempt.
    """
    comment = slot_key(record, "end")
    back = (READY,) if record.call == READY else ()
    add, remove = ((FAILED,), (*_ours(record), READY)) if record.final else (back, (WORKING,))
    return (
        Label(slot_key(record, "release"), record.issue, add=add, remove=remove),
        Comment(comment, record.issue, tasks.release_comment(record, TRIES, comment)),
    )


def withdraw_effects(record: WorkRecord, issue: Issue | None, us: int) -> tuple[Effect, ...]:
    """The remaining effects on a withdrawn issue: earlier labels must not request it again."""
    if issue is None:
        return ()
    ours = tuple(sorted(issue.labels & ({WORKING} if is_asked_again(record, issue, us) else {*_ours(record)})))
    return (Label(slot_key(record, "withdraw"), record.issue, remove=ours),) if ours else ()


def _ours(record: WorkRecord) -> tuple[str, ...]:
    """The issue's labels during work."""
    return (WORKING,) if record.call == READY else (WORKING, record.call)


# --- how it went ----------------------------------------------------------------------


def advance_record(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    """The record after the receipts of its state's plan; a state that could not be left is counted."""
    if record.state == "working":
        after = _after_label(record, receipts)
    elif record.state == "ending":
        after = _after_change(record, receipts)
    else:
        after = _close(record) if _all_in(receipts) else record
    if after.state != record.state or record.state == "working":
        return replace(after, refusals=0)
    if record.refusals + 1 < REFUSALS:
        return replace(after, refusals=record.refusals + 1)
    if record.state == "ending":
        return release_issue(record, "the pull request could not be opened", 1, final=True)
    return give_up(record)


def give_up(record: WorkRecord) -> WorkRecord:
    """The record after giving up on a final state that cannot be left regularly."""
    return _close(replace(record, final=True))


def _close(record: WorkRecord) -> WorkRecord:
    """The record of a finished attempt."""
    released = "failed" if record.final else "waiting"
    states = {"closing": "done", "releasing": released, "withdrawing": "withdrawn"}
    return replace(record, state=states[record.state], holder="")


def _after_label(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    """Without the label nobody sees who works on it: then work does not begin."""
    receipt = receipts.get(slot_key(record, "take"))
    if receipt is None or receipt.status in SETTLED:
        return record
    released = release_issue(record, f"it could not be labelled: {_why(receipt)}", 1)
    return replace(released, reserved=record.reserved)  # no session began, so it is released


def _after_change(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    pull = receipts.get(pull_key(record))
    if pull is not None and pull.status in SETTLED:
        return replace(record, state="closing", pull=pull.number)
    refused = next((r for r in receipts.values() if r.status == "failed" and not _may_pass(r)), None)
    if refused is None:
        return record
    pushed = receipts.get(slot_key(record, "push_branch"))
    where = f" (the change is on the branch {record.branch})" if pushed and pushed.status in SETTLED else ""
    return release_issue(record, f"the pull request could not be opened: {_why(refused)}{where}", 1, final=True)


def _may_pass(receipt: Receipt) -> bool:
    """Whether a failure is temporary, so that the effect is sent again later."""
    return receipt.reason in (FailureReason.NOT_ATTEMPTED, FailureReason.NOT_FOUND)


def _all_in(receipts: Mapping[str, Receipt]) -> bool:
    """Whether nothing is left to send: a comment in doubt is never sent again, nor is an effect refused for good."""
    return not any(r.status == "failed" and _may_pass(r) for r in receipts.values())


def _why(receipt: Receipt) -> str:
    return plain(receipt.detail, 300) or receipt.status
