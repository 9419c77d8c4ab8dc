"""What the issue agent sends: a plan for each open state of the work on an issue, and what its receipts lead to. Pure.

The keys of a plan's effects never change, so that whoever goes on after a crash sends what is missing and nothing
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.findings.overlap import touched_by
from ralph_mission.mission.issues import texts
from ralph_mission.mission.issues.model import FAILED, READY, TRIES, WORKING, WorkResult
from ralph_mission.mission.issues.record import KIND, asked_again, change_keys, pull_key, release_issue, slot_key
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.model.effects import (
    MARKER,
    Comment,
    EditComment,
    Effect,
    Label,
    OpenPull,
    PushBranch,
    Receipt,
)
from ralph_mission.mission.model.ledger import (
    NEEDS_PERSON,
    NOT_ATTEMPTED,
    SETTLED,
    EffectRecord,
    Record,
    WorkRecord,
    is_settled,
)
from ralph_mission.mission.model.mission import Action
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.model.threads import Issue
from ralph_mission.mission.policy.rules import RULES
from ralph_mission.mission.proposals.wording import plain
from ralph_mission.safety.patch import Patch, deltas, patch_ids, sketch

REFUSALS = 3  # times in a row that an open state may be stuck until it is given up
UNSAID = "why may not be told here; the log of its run says it"
LEFT_TO_REVIEW = frozenset({"diff-size", "kind-tier"})
"""Rules about size and kind hold back what nobody asked for; this change a person asked for, and a person reviews it.
Protected paths, modes, secrets, hidden text and every rule about texts and branches stand."""
WORK_RULES = tuple(rule for rule in RULES if rule.id not in LEFT_TO_REVIEW)

UnsentChange = tuple[tuple[PushBranch | OpenPull, ...], Patch | None]
"""What of an announced change is still to be sent, and, with a branch to be pushed, as a patch."""


def work_proposal(record: WorkRecord, issue: Issue, effects: Sequence[Effect], patch: Patch | None = None) -> Proposal:
    """A plan as policy judges it."""
    title = f"#{issue.number} {texts.title(issue)}, {record.state}"
    return Proposal(slot_key(record, record.state), Action.WORK, KIND, title, tuple(effects), patch=patch)


def beginning(record: WorkRecord, others: Sequence[str] = ()) -> tuple[Effect, ...]:
    """The label swap and the one comment at the start. A label that names the agent stays: only people may set it.

    `others` ask for the same work, and go, so that one label alone says that it is wanted.
    """
    comment = slot_key(record, "begin")
    gone = tuple(sorted({READY, *others}))
    return (
        Label(slot_key(record, "take"), record.issue, add=(WORKING,), remove=gone),
        Comment(comment, record.issue, texts.beginning(record, TRIES, comment)),
    )


def change(
    record: WorkRecord, issue: Issue, played: WorkResult, base: str, now: datetime
) -> tuple[PushBranch, OpenPull]:
    """The branch and the pull. Raises UnicodeDecodeError for a change that is not text."""
    assert played.patch is not None
    push = PushBranch(
        slot_key(record, "push_branch"), record.branch, played.patch.base, texts.message(issue), now,
        deltas(played.patch), issue=record.issue,
    )  # fmt: skip  # one effect
    pull = pull_key(record)
    body = texts.pull(issue, played.patch, played.words, played.learned, pull)
    same = tuple(sorted(patch_ids(played.patch)))
    return push, OpenPull(
        pull, texts.pull_title(issue), body, record.branch, base, record.issue, (), same, touched_by(played.patch)
    )


def announcing(record: WorkRecord, remark: int, made: Sequence[PushBranch | OpenPull]) -> tuple[EditComment, ...]:
    """Our comment of the start, edited to name the change: whoever goes on after a crash sends exactly that."""
    if not remark:
        return ()
    comment = slot_key(record, "begin")
    body = texts.beginning(record, TRIES, comment, ownership.announcement_line(made, asked=False))
    return (EditComment(slot_key(record, "announce"), record.issue, remark, body),)


def own_remark(record: WorkRecord, issue: Issue, us: int) -> tuple[int, str]:
    """Our comment of this try's start, by author and marker: its number and text; 0 when there is none."""
    wanted = slot_key(record, "begin")
    for remark in issue.remarks:
        if remark.author.id == us and MARKER.findall(remark.body)[-1:] == [wanted]:
            return remark.id, remark.body
    return 0, ""


def unsent_change(record: WorkRecord, records: Mapping[str, Record], issue: Issue, us: int) -> UnsentChange | None:
    """What of the change was not sent yet, and it as a patch; None when our comment does not name it.

    Memory kept it, and memory grants nothing: only what our own account announced on the issue goes out.
    """
    named = ownership.announced_digests(own_remark(record, issue, us)[1], False)
    found = [records.get(one) for one in change_keys(record)]
    if not all(isinstance(one, EffectRecord) for one in found):
        return None
    left = [one.effect for one in found if isinstance(one, EffectRecord) and not is_settled(one)]
    effects = tuple(effect for effect in left if isinstance(effect, PushBranch | OpenPull))
    if len(effects) < len(left) or not {ownership.change_digest(effect) for effect in effects} <= named:
        return None
    pushed = next((effect for effect in effects if isinstance(effect, PushBranch)), None)
    return effects, sketch(pushed.files, pushed.base_sha) if pushed else None


def closing(record: WorkRecord) -> tuple[Effect, ...]:
    """The comment at the end with the pull's number, and the label off."""
    comment = slot_key(record, "end")
    return (
        Label(slot_key(record, "close"), record.issue, remove=_ours(record)),
        Comment(comment, record.issue, texts.done_comment(record, comment)),
    )


def releasing(record: WorkRecord) -> tuple[Effect, ...]:
    """The comment that says why, and the label back for a second try, or `ralph-failed`.

    A label that names the agent still stands, unless a person has taken it off: then nobody asks for a second try.
    """
    comment = slot_key(record, "end")
    back = (READY,) if record.call == READY else ()
    add, remove = ((FAILED,), (*_ours(record), READY)) if record.final else (back, (WORKING,))
    return (
        Label(slot_key(record, "release"), record.issue, add=add, remove=remove),
        Comment(comment, record.issue, texts.given_back(record, TRIES, comment)),
    )


def taking_off(record: WorkRecord, issue: Issue | None, us: int) -> tuple[Effect, ...]:
    """What is left to do on an issue that a person took back: nothing may ask for it that stood there before."""
    if issue is None:
        return ()
    ours = tuple(sorted(issue.labels & ({WORKING} if asked_again(record, issue, us) else {*_ours(record)})))
    return (Label(slot_key(record, "withdraw"), record.issue, remove=ours),) if ours else ()


def _ours(record: WorkRecord) -> tuple[str, ...]:
    """What an issue is labelled with while it is worked on."""
    return (WORKING,) if record.call == READY else (WORKING, record.call)


# --- how it went ----------------------------------------------------------------------


def advance_record(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    """The record once the receipts of its state's plan are in; what could not leave the state is counted."""
    after = _AFTER[record.state](record, receipts)
    if after.state != record.state or record.state == "working":
        return replace(after, refusals=0)
    if record.refusals + 1 < REFUSALS:
        return replace(after, refusals=record.refusals + 1)
    if record.state == "ending":
        return release_issue(record, "the pull could not be opened", 1, final=True)
    return given_up(record)


def given_up(record: WorkRecord) -> WorkRecord:
    """The record of a state at the end of the work that cannot be left as it should be."""
    states = {"closing": "done", "releasing": "failed", "withdrawing": "withdrawn"}
    return replace(record, state=states[record.state], holder="")


def _after_label(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    """Without the label nobody sees whose it is: then it is not worked on."""
    taken = receipts.get(slot_key(record, "take"))
    if taken is None or taken.status in SETTLED:
        return record
    left = release_issue(record, f"it could not be labelled: {_why(taken)}", 1)
    return replace(left, reserved=record.reserved)  # no session began, so it is given back


def _after_change(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    pull = receipts.get(pull_key(record))
    if pull is not None and pull.status in SETTLED:
        return replace(record, state="closing", pull=pull.number)
    refused = next((r for r in receipts.values() if r.status == "failed" and not _may_pass(r)), None)
    if refused is None:
        return record
    pushed = receipts.get(slot_key(record, "push_branch"))
    where = f" (the change is on the branch {record.branch})" if pushed and pushed.status in SETTLED else ""
    return release_issue(record, f"the pull could not be opened: {_why(refused)}{where}", 1, final=True)


def _may_pass(receipt: Receipt) -> bool:
    """Whether a failure says nothing about the effect itself, so that it is sent again later."""
    return receipt.detail.startswith((NOT_ATTEMPTED, "not there after a lost answer"))


def _after_close(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    return replace(record, state="done", holder="", code=0) if _all_in(receipts) else record


def _given_back(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    return replace(record, state="failed" if record.final else "waiting", holder="") if _all_in(receipts) else record


def _withdrawn(record: WorkRecord, receipts: Mapping[str, Receipt]) -> WorkRecord:
    return replace(record, state="withdrawn", holder="") if _all_in(receipts) else record


_AFTER = {
    "working": _after_label,
    "ending": _after_change,
    "closing": _after_close,
    "releasing": _given_back,
    "withdrawing": _withdrawn,
}


def _all_in(receipts: Mapping[str, Receipt]) -> bool:
    """Whether nothing is left to be sent: a comment in doubt never is, and what was refused for good neither."""
    return not any(r.status == "failed" and _may_pass(r) for r in receipts.values())


def _why(receipt: Receipt) -> str:
    detail = receipt.detail.removeprefix(NOT_ATTEMPTED).removeprefix(NEEDS_PERSON)
    return plain(detail, 300) or receipt.status
