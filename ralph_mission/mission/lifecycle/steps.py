"""The next step of a mission: from the interpreted facts to a proposal with its texts, or none.

One function per event. A step with effects is a `Proposal` and goes through policy like everything else; a step that
only changes memory is applied as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.coder import conditions, results, tasks
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.approval import APPROVAL_RULES, about, find_commands, on_pull, stands
from ralph_mission.mission.lifecycle.step_builder import (
    TICK,
    StepBuilder,
    build_step,
    count_wait,
    deny_step,
    lesson,
    tell_once,
    wait_step,
)
from ralph_mission.mission.lifecycle.table import ESCALATED_FOR, SET_ASIDE, UNAPPROVED, checks_failed, waits_for_person
from ralph_mission.mission.lifecycle.waiting import ANSWER_QUESTION, NO_AGENT, WAITS_FOR_AGENT
from ralph_mission.mission.model.cycle import (
    Interpretation,
    MissionEvent,
    MissionFacts,
    MissionStep,
    PersonVerdict,
    StepContext,
)
from ralph_mission.mission.model.effects import (
    Comment,
    EditComment,
    Label,
    LeaveQueue,
    MergePull,
    OpenPull,
    PushBranch,
    marker,
)
from ralph_mission.mission.model.forge import Actor, Pull
from ralph_mission.mission.model.ledger import EffectRecord, key_of
from ralph_mission.mission.model.mission import HUMAN, Action, FailureReason, Mission, Status, update_mission
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.publishing import posting
from ralph_mission.words import capitalise

CLAIM_IT = (
    "If somebody rewrote its text and it is Ralph's after all, take the label `ralph:mission` off there and set it "
    "again, or approve the pull request; if not, memory was tampered with: `ralph memory verify`."
)
REFUSALS = {
    "approval-head": ("it was for an earlier commit", "Review the pull request again."),
    "foreign-commit": (
        "its branch has a commit that is not Ralph's",
        "Comment `/ralph retry`; it is merged once its last commit is approved.",
    ),
    "approval-content": (
        "it was for an earlier text, or had more to say",
        "Set the label `ralph:approved` again, or comment `/ralph approve` and nothing else.",
    ),
}
"""Why an authorised person's approval is refused, by rule, and what to do."""
APPROVE_PULL = "approve the pull request by a review or the dashboard's box"
UNNAMED = "the change kept for it is not named in its issue and is not sent"
NOBODY_HERE = f"{NO_AGENT} Close the issue once it is done."
SOLVED_BY_ITSELF = f"{NO_AGENT} This issue closes once the change is made."
LOOK_AT_CHECKS = "Look at its checks."
NOTHING_LEFT = "Nothing is left to do."


def next_step(
    mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext
) -> tuple[MissionStep, ...]:
    """The steps that follow from this interpretation: usually one; a refused approval and a new question are two."""
    if facts.foreign:
        return (suspend(mission, facts, context),)
    mission = _without_stale_failure(mission, facts)
    refused = (deny_step(mission, facts, reading, context),) if reading.verdict.rules else ()
    if _is_queued_in_vain(mission, facts, reading):
        return (*refused, _leave_queue(mission, facts, context))
    if reading.event is not None:
        return (*refused, _BY_EVENT[reading.event](mission, facts, reading, context))
    if mission.action is Action.PUBLISH:
        return (*refused, _publish(mission, facts, context))
    if _was_edited(mission, facts):
        return (*refused, _ask_again(mission, facts, context))
    if mission.status in (Status.PLANNED, Status.EXECUTING) and mission.pending:
        return (_resume(mission, facts, context),)
    if mission.status is Status.FIXING and facts.coder and mission.pending:
        return (*refused, results.resume_offer(mission, facts, context) or results.retry_answer(mission))
    if facts.coder and tasks.is_review_answered(mission, facts):
        return (*refused, results.close_answered_review(mission, context))
    if result := context.results.get(mission.id):
        return (*refused, results.step_from_result(mission, facts, result, context))
    if refused and (explained := _explain_refusal(mission, facts, reading.verdict, context)):
        return (*refused, explained)
    return refused or (_wait(mission, facts, context),)


def _without_stale_failure(mission: Mission, facts: MissionFacts) -> Mission:
    """The mission without what kept a merge waiting, once no approval of it stands any more."""
    reason, failure = mission.progress.failure_reason, mission.progress.failure
    merging = reason in (FailureReason.NOT_ATTEMPTED, FailureReason.BEHIND) or failure in APPROVAL_RULES
    if not (merging and facts.pull and mission.status is Status.IN_REVIEW):
        return mission
    if on_pull(facts.pull, mission, facts.authorised).state == "approved":
        return mission
    return update_mission(mission, failure="", failure_reason=None, failures=0)


def _explain_refusal(
    mission: Mission, facts: MissionFacts, verdict: PersonVerdict, context: StepContext
) -> MissionStep | None:
    """Say once in its thread why an approval does not count. Strangers get no answer, which would be noise.

    The line holds what was refused, so that another approval is answered again. A question that was asked again after
    an edit has answered all approvals before it.
    """
    rule = next((rule for rule in verdict.rules if rule in REFUSALS), "")
    if not rule or verdict.actor is None or verdict.actor.id not in facts.authorised:
        return None
    if rule == "approval-content" and not _speaks_since_asked(mission, facts):
        return None
    if rule == "foreign-commit" and not _approves_head(facts.pull, verdict.actor):
        return None
    who, (why, then) = wording.person_name(verdict.actor), REFUSALS[rule]
    head = facts.pull.head_sha if facts.pull and rule == "foreign-commit" else mission.head_sha
    about = mission.question.proposal_hash if rule == "approval-content" else head
    return tell_once(mission, context, f"the approval by {who} does not count for `{about[:8]}`: {why}", then)


def _approves_head(pull: Pull | None, actor: Actor) -> bool:
    reviews = pull.reviews if pull else ()
    return any((one.author, one.state, one.sha) == (actor, "approved", pull.head_sha) for one in reviews if pull)


def _speaks_since_asked(mission: Mission, facts: MissionFacts) -> bool:
    proposal_at, issue = mission.question.proposal_at, facts.issue
    if proposal_at is None or issue is None:
        return True
    return any(remark.created_at > proposal_at and remark.author.id in facts.authorised for remark in issue.remarks)


# --- set aside, and brought back ------------------------------------------------------


def escalate_stuck(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """The mission is stuck."""
    return _escalate(build_step(mission, context), facts, reading, reading.words)


def _escalate(step: StepBuilder, facts: MissionFacts, reading: Interpretation, why: str) -> MissionStep:
    """Ask a person to decide, in the mission's thread: by the story comment and by labels."""
    mission, owners = step.before, step.context.owners
    is_request = reading.verdict.actor and reading.event is MissionEvent.CHANGES_REQUESTED
    who = wording.person_name(reading.verdict.actor) if is_request else ""
    choices = "merge or close it yourself" if facts.pull else "do it by hand, or close it"
    choices = "edit the text, or close it" if mission.action is Action.PUBLISH else choices
    step = step.advance(MissionEvent.STUCK).change(**_last_seen(mission, facts))
    stuck = f"{who} {why}" if who else why
    then = f"{wording.retry_after(f'It is stuck: {stuck}' if who else capitalise(why))}; or {choices}."
    step = step.tell(f"escalated: {stuck}", then)
    slot = f"escalated {mission.review.rounds} {len(mission.story)}"
    key = key_of(mission.key, "comment", slot)
    if facts.issue and (questions := ownership.own_remarks(facts.issue, key, facts.us)):  # its label failed
        step = step.change(seen_at=questions[0].created_at)
    body = wording.story(step.after, key, wording.escalation(owners, reading.words if who else "", who))
    label = Label(key_of(mission.key, "label", slot), mission.thread, add=("ralph:escalated",), assign=owners)
    step = step.send(Comment(key, mission.thread, body), label)
    return step.send(*_label_pull(mission, facts, slot, add=label.add)).propose(Action.ANSWER, pings=owners)


def park(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Nobody answered, or a person wants it: free its slot until somebody revives it."""
    step = build_step(mission, context).advance(MissionEvent.UNANSWERED).change(**_last_seen(mission, facts))
    step = step.tell(f"parked: {reading.words}", "Remove the label `ralph:parked` to bring it back.")
    slot = f"parked {len(mission.story)}"
    label = Label(key_of(mission.key, "label", slot), mission.thread, add=("ralph:parked",))
    step = step.change(outcome="parked").send_story().send(label)
    return step.send(*_label_pull(mission, facts, slot, add=label.add)).propose(Action.ANSWER)


def _revive(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """A person revived it: it continues where it can."""
    assert reading.event is not None
    step = build_step(mission, context).advance(reading.event)
    can_be_approved = mission.question.proposal_hash or mission.action is Action.PUBLISH
    if step.after.status is Status.DISCOVERED and not can_be_approved:  # reviving it is the approval
        step = step.advance(MissionEvent.APPROVED)
    step = step.clear_failures().change(outcome="", turns=0, waiting_since=context.now)
    if step.after.status is Status.IN_REVIEW and facts.pull:
        if facts.pull.head_sha != mission.head_sha:
            step = replace(step, after=results.void_offer(step.after))
        step = step.change(head_sha=facts.pull.head_sha)  # a person looked at it; it still needs approval to merge
    step = step.tell("brought back by a person", "Waiting for a person's answer.")
    return step.send_story().send(*_unlabel(mission, facts)).propose(Action.ANSWER)


def _unlabel(mission: Mission, facts: MissionFacts) -> tuple[Label, ...]:
    """Take off what says that the mission was set aside."""
    slot, ours = f"revived {len(mission.story)}", tuple(sorted(SET_ASIDE))
    label = Label(key_of(mission.key, "label", slot), mission.thread, remove=ours)
    return label, *_label_pull(mission, facts, slot, remove=ours)


def _last_seen(mission: Mission, facts: MissionFacts) -> dict[str, datetime | None]:
    """The newest activity seen: only later activity revives it."""
    heard_at = max(filter(None, (mission.question.heard_at, facts.heard_at)), default=None)
    return {"seen_at": facts.seen_at, "heard_at": heard_at}


def _label_pull(
    mission: Mission, facts: MissionFacts, slot: str, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> tuple[Label, ...]:
    """Put the same labels on the mission's pull request, if its issue is the thread, so that its state shows there."""
    pull = facts.pull
    if pull is None or not mission.issue or not (add or pull.labels & set(remove)):
        return ()
    return (Label(key_of(mission.key, "label", slot, "pull"), pull.number, add=add, remove=remove),)


def suspend(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """The forge contradicts memory: nothing is sent, nothing learned, and a person is asked.

    A mission that a person requested ends with its label; any other frees its slot after a week.
    """
    step = build_step(mission, context)
    if mission.kind == HUMAN and not facts.ours:
        return _let_go(step, facts)
    if mission.status is Status.ESCALATED and context.now - mission.changed_at >= ESCALATED_FOR:
        return MissionStep(step.advance(MissionEvent.UNANSWERED).change(outcome="parked").after)
    if mission.status in (Status.PARKED, Status.ESCALATED):
        return MissionStep(mission)
    step = step.advance(MissionEvent.STUCK).change(**_last_seen(mission, facts))
    return MissionStep(step.tell(f"nothing is written: {facts.foreign}", CLAIM_IT).after)


def _let_go(step: StepBuilder, facts: MissionFacts) -> MissionStep:
    """Nobody asks for it now: the issue is its author's again; only our open pull request is left."""
    line = "neither a label on its issue nor its pull request asks for it now"
    step = step.advance(MissionEvent.GONE).tell(line, "Nothing.").finish("let go", line)
    step = step.close_pull(facts.left, f"the issue #{step.before.issue} is no longer labelled `ralph:mission`")
    return step.propose(Action.FINISH) if step.effects else MissionStep(step.after)


# --- at its end -----------------------------------------------------------------------


def _merge(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Merge a pull request approved at its head, and close its issue. One that was set aside is in review again."""
    assert facts.pull is not None
    set_aside = mission.status in (Status.PARKED, Status.ESCALATED)
    labels = facts.pull.labels | (facts.issue.labels if facts.issue else frozenset())
    unlabel = _unlabel(mission, facts) if set_aside or labels & SET_ASIDE else ()  # an earlier try may have failed
    if set_aside:
        back = build_step(mission, context).advance(MissionEvent.PULL_OPENED).clear_failures()
        mission = back.change(outcome="", waiting_since=context.now).after
    if facts.pull.base != context.default.name:  # the approval was for another merge
        refused = replace(reading.verdict, state="refused", rules=("approval-content",))
        base, ours = facts.pull.base, context.default.name
        why = f"its base is {base}, and approved changes go to {ours} alone: set the base back, or merge it yourself"
        led = update_mission(mission, failure=why, failure_reason=FailureReason.NEEDS_PERSON)
        led = replace(led, next_step=f"{capitalise(why)}.")
        return deny_step(led, facts, replace(reading, verdict=refused), context)
    who = wording.person_name(reading.verdict.actor)
    merge = MergePull(
        key_of(mission.key, "merge_pull", mission.head_sha),
        facts.pull.number,
        mission.head_sha,
        context.merge_method,
        wording.merge_message(mission, who, facts.pull.unchecked),
        facts.pull.base,
        reading.verdict.actor.id if reading.verdict.actor else 0,
    )
    step = _accept(build_step(mission, context), who, facts.pull.unchecked).send(*unlabel, merge)
    return step.tell_merged(facts.issue).propose(Action.FINISH, who)


ENDS = (MissionEvent.MERGED, MissionEvent.REFUSED, MissionEvent.DONE, MissionEvent.SOLVED, MissionEvent.GONE)
"""What closes its pull, and a closed pull leaves the queue."""


def _is_queued_in_vain(mission: Mission, facts: MissionFacts, reading: Interpretation) -> bool:
    """Whether a queue may merge what nobody wants merged any more: the yes was taken back, or it was set aside."""
    if mission.progress.failure_reason is not FailureReason.QUEUED or facts.pull is None or reading.event in ENDS:
        return False
    verdict = on_pull(facts.pull, mission, facts.authorised)
    return verdict.state != "approved" or reading.event is MissionEvent.UNANSWERED


def _leave_queue(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """First it leaves the queue; what else people asked for follows in the next cycle.

    No comment is written: GitHub shows who took it out, and after a run that died it may never have been queued.
    """
    assert facts.pull is not None
    leave = LeaveQueue(key_of(mission.key, "leave_queue", str(context.cycle)), facts.pull.number)
    return build_step(mission, context).clear_failures().send(leave).propose(Action.ANSWER)


def _accept(step: StepBuilder, who: str, unchecked: bool = False) -> StepBuilder:
    """It was merged, approved by `who`; `unchecked`: where no check ran."""
    line = f"approved by {who} at `{step.before.head_sha[:8]}` and merged{'; no check ran on it' if unchecked else ''}"
    step = step.advance(MissionEvent.MERGED).tell(line, NOTHING_LEFT)
    return step.finish("merged", f"{who} accepted it").teach("accepted")


def _close_merged(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """A person merged it, or we did in a run that died before recording it."""
    who, step = wording.person_name(reading.verdict.actor), build_step(mission, context)
    if facts.pull and facts.pull.merged_by and facts.pull.merged_by.is_bot:
        step = _accept(step, who)
    else:
        step = step.advance(MissionEvent.MERGED).tell(f"merged by {who}", NOTHING_LEFT)
        step = step.finish("merged", f"{who} merged it").teach("accepted")
    step = step.drop_branch(facts.pull) if facts.pull else step
    return step.tell_merged(facts.issue).propose(Action.FINISH, who)


def _catch_up(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Merge the base into the branch (never rebase); the result needs a new review."""
    base = context.default
    push = PushBranch(
        key_of(mission.key, "push_branch", mission.head_sha, base.sha),
        mission.branch,
        base.sha,
        wording.catch_up_message(mission, base),
        context.now,
        (),
        onto=mission.head_sha,
        issue=mission.thread,
    )
    step = replace(build_step(mission, context), after=results.void_offer(mission))
    step = step.clear_failures().change(waiting_since=context.now)
    step = step.tell(f"merged {base.name} in, which it was behind of", "Review the pull request again.")
    return step.send(push).send_story().propose(Action.REVISE)


def _refuse(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """A person rejected it: close everything, and learn from it."""
    who, reason = wording.person_name(reading.verdict.actor), wording.plain(reading.words, 200)
    why = f": {reason}" if reason else ""
    step = build_step(mission, context).advance(MissionEvent.REFUSED)
    step = step.tell(f"{who} rejected this{why}", "It will not be proposed again.")
    step = step.finish("rejected", f"{who} rejected this{why}").teach("rejected", reason)
    label = Label(key_of(mission.key, "label", "rejected"), mission.thread, add=("ralph:rejected",))
    step = step.close_pull(facts.pull, f"{who} rejected #{mission.thread}{why}").send_story().send(label)
    step = step.send(*_label_pull(mission, facts, "rejected", add=label.add))
    return step.close_issue(facts.issue, "not_planned").propose(Action.FINISH, who)


def _close_gone(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Its thread is gone without a verdict: clean up, learn nothing."""
    step = build_step(mission, context).advance(MissionEvent.GONE).tell(reading.words, "Nothing.")
    return step.finish("rejected", reading.words).close_pull(facts.pull, reading.words).propose(Action.FINISH)


def _close_done(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """A person did it by hand. A proposal that could have been looked for, and was not, teaches nothing where nobody
    picked the reason."""
    who = wording.person_name(reading.verdict.actor)
    step = build_step(mission, context).advance(MissionEvent.DONE).tell(f"done by {who}", NOTHING_LEFT)
    step = step.finish("done by a person", f"{who} did it")
    unsure = facts.usual_reason and facts.certain and not facts.solved and mission.status in UNAPPROVED
    step = step if unsure else step.teach("accepted")
    step = step.close_pull(facts.pull, f"the issue #{mission.issue} was completed by {who}")
    return step.send_story().propose(Action.FINISH, who)


def _close_solved(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Its findings are gone. Nobody judged it, so nothing is learned."""
    approved = mission.status in (Status.PLANNED, Status.ESCALATED)
    outcome = "done by a person" if approved else "gone by itself"
    line = f"{outcome}: it was looked for at `{context.default.sha[:8]}` and is no longer found"
    step = build_step(mission, context).advance(MissionEvent.SOLVED).tell(line, NOTHING_LEFT)
    step = step.finish(outcome, "it was no longer found").send_story().close_issue(facts.issue, "completed")
    return step.close_pull(facts.pull, line).propose(Action.FINISH)


# --- after a yes ----------------------------------------------------------------------


def _start_approved(
    mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext
) -> MissionStep:
    """A proposal, an offered change or a text was approved: release it."""
    who = wording.person_name(reading.verdict.actor)
    if mission.action is Action.PUBLISH:
        return posting.release_posts(mission, facts, context, who)
    if mission.review.offered_until:
        return results.push_offer(mission, facts, context, who)
    step = build_step(mission, context).advance(MissionEvent.APPROVED)
    if not mission.pending or not (facts.announced or facts.offered):  # our issue announces no change to approve
        unnamed = f"; {UNNAMED}" if mission.pending else ""
        then = WAITS_FOR_AGENT if facts.coder else SOLVED_BY_ITSELF
        step = step.tell(f"approved by {who}{unnamed}", then).change(pending=()).send_story()
        return step.teach("accepted").propose(Action.ANSWER, who)
    step = step.advance(MissionEvent.STARTED)
    step = step.tell(f"approved by {who}; the branch is pushed for review", "Review the pull request.")
    return _carry_out(step, facts, who)


def _resume(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """Send what failed before; if it needed approval, only while that still stands."""
    step = build_step(mission, context)
    if mission.status is Status.PLANNED:
        step = step.advance(MissionEvent.STARTED)
    if not mission.question.proposal_hash and facts.coder and not facts.announced:
        # We died before announcing it: the result is still there.
        return MissionStep(replace(count_wait(mission), pending=()))
    who = posting.said_yes(mission, facts)
    if mission.question.proposal_hash and not who:
        return wait_step(mission)
    return _carry_out(step, facts, who)


def _carry_out(step: StepBuilder, facts: MissionFacts, who: str) -> MissionStep:
    """Send the effects that were planned or failed.

    Only a branch and a pull request, whatever memory holds: memory grants nothing, least of all a merge. And only those
    that the mission's issue announces: nobody was shown others, so nobody approved them.
    """
    mission, executing = step.before, step.after
    records = [step.context.records.get(key) for key in mission.pending]
    planned_effects = [record for record in records if isinstance(record, EffectRecord)]
    effects = tuple(record.effect for record in planned_effects if isinstance(record.effect, PushBranch | OpenPull))
    named = facts.announced | facts.offered if who else facts.announced
    announced = all(ownership.change_digest(effect) in named for effect in effects)
    strange = not announced or any(record.mission != mission.id for record in planned_effects)
    who = "" if strange else who
    step = step.advance(MissionEvent.PULL_OPENED).change(pending=(), waiting_since=step.context.now).send(*effects)
    return (step.teach("accepted") if who else step).propose(
        Action.OPEN_FIX,
        who,
        key=key_of(mission.key, "carry-out"),
        interim=executing,
        approved=bool(who),
        objections=("approval-content",) if strange else (),
        requested=not facts.unasked,
    )


def _open_pull(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Its pull request is open."""
    if mission.status is not Status.EXECUTING:
        return _revive(mission, facts, reading, context)
    assert facts.pull is not None
    step = build_step(mission, context).advance(MissionEvent.PULL_OPENED)
    step = step.change(pull=facts.pull.number, pending=(), waiting_since=context.now)
    if mission.action is Action.OPEN_FIX:
        action, following = wording.FIX_OPENED
        step = step.change(last_action=action, next_step=following)
    return MissionStep(step.after, lesson=lesson(mission, "accepted") if posting.said_yes(mission, facts) else None)


def _answer_review(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """A person requested changes: an agent makes them, or else a person."""
    mission = results.void_offer(mission)
    step = build_step(mission, context).advance(MissionEvent.CHANGES_REQUESTED)
    step = step.change(answered_before=mission.review.answered_at)
    if facts.coder and mission.review.rounds < tasks.ROUNDS:
        who = wording.person_name(reading.verdict.actor)
        return step.tell(f"{who} asked for changes", WAITS_FOR_AGENT).send_story().propose(Action.ANSWER)
    if facts.coder:
        return _escalate(step, facts, reading, f"requested changes again after {mission.review.rounds} answers")
    return _escalate(step, facts, reading, "requested changes, and no agent is configured to make them")


def _answer_failed_checks(
    mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext
) -> MissionStep:
    """Its checks failed: an agent sees why and fixes it, as it answers a review, or one comment asks a person."""
    assert facts.pull is not None
    line, step = checks_failed(facts.pull), build_step(mission, context)
    if facts.coder and mission.review.rounds < tasks.ROUNDS:
        step = replace(step, after=results.void_offer(mission)).advance(MissionEvent.CHECKS_FAILED)
        step = step.change(answered_before=mission.review.answered_at)
        return step.tell(line, WAITS_FOR_AGENT).send_story().propose(Action.ANSWER)
    key = _key_of_checks(mission, facts.pull)
    comment = Comment(key, facts.pull.number, wording.failed_checks(facts.pull.failed, key))
    return step.tell(line, LOOK_AT_CHECKS).send(comment).propose(Action.ANSWER)


def _key_of_checks(mission: Mission, pull: Pull) -> str:
    return key_of(mission.key, "comment", "checks failed", pull.head_sha)


def _update_checks(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep | None:
    """Our comment on failed checks says so once they passed in another run, and is put back if they fail again."""
    pull = facts.pull
    if pull is None or pull.state != "open" or bool(pull.failed) == pull.passed:
        return None
    key = _key_of_checks(mission, pull)
    ours = (remark for remark in pull.remarks if remark.author.id == facts.us and marker(key) in remark.body)
    passed = wording.passed_checks(key)
    comment = next((remark for remark in ours if (remark.body.strip() == passed) != pull.passed), None)
    if comment is None:
        return None
    body = passed if pull.passed else wording.failed_checks(pull.failed, key)
    line = f"checks passed at `{pull.head_sha[:8]}`" if pull.passed else checks_failed(pull)
    edit = EditComment(
        key_of(mission.key, "edit_comment", str(len(mission.story)), body), pull.number, comment.id, body
    )
    step = build_step(mission, context).tell(line, "Review the pull request." if pull.passed else LOOK_AT_CHECKS)
    return step.send(edit).propose(Action.ANSWER)


_BY_EVENT: dict[MissionEvent, Callable[[Mission, MissionFacts, Interpretation, StepContext], MissionStep]] = {
    MissionEvent.MERGEABLE: _merge,
    MissionEvent.BEHIND: _catch_up,
    MissionEvent.MERGED: _close_merged,
    MissionEvent.REFUSED: _refuse,
    MissionEvent.DONE: _close_done,
    MissionEvent.SOLVED: _close_solved,
    MissionEvent.PUBLISHED: posting.over,
    MissionEvent.APPROVED: _start_approved,
    MissionEvent.CHANGES_REQUESTED: _answer_review,
    MissionEvent.CHECKS_FAILED: _answer_failed_checks,
    MissionEvent.STUCK: escalate_stuck,
    MissionEvent.UNANSWERED: park,
    MissionEvent.GONE: _close_gone,
    MissionEvent.REVIVED: _revive,
    MissionEvent.PULL_OPENED: _open_pull,
}


# --- where nothing happened -----------------------------------------------------------


def _publish(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    if why := posting.refused_everywhere(mission, facts, context):
        return _escalate(build_step(mission, context), facts, Interpretation(MissionEvent.STUCK), why)
    return posting.follow(mission, facts, context)


def _wait(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """Nothing happened. If a person needs to know something, the story says so once."""
    if step := _update_checks(mission, facts, context):
        return step
    if facts.untold:
        verdict = f"{APPROVE_PULL}, or comment here `/ralph reject`"
        ways = verdict if facts.pull else "comment here `/ralph approve`, `reject`"
        again = "It is unclear who ticked its box on the dashboard. Untick it and tick it again"
        again = f"{again}, or {ways}, `park` or `retry`."
        return tell_once(mission, context, "a box was ticked on the dashboard, and it is unclear by whom", again)
    if facts.pull and find_commands(facts.pull.as_issue(), "approve", facts.authorised):
        line = "a comment cannot approve a pull request, because it names no commit"
        return tell_once(mission, context, line, f"{capitalise(APPROVE_PULL)}.")
    if mission.status is Status.PLANNED and waits_for_person(mission, facts):
        return MissionStep(mission)  # progress is up to a person
    if conditions.waits_for_answer(mission, facts):
        return MissionStep(replace(mission, next_step=ANSWER_QUESTION))
    why_not = facts.coder and mission.status in tasks.WAITS and facts.issue and tasks.why_not(mission, facts)
    if not why_not:
        return wait_step(mission)
    return tell_once(mission, context, f"no agent can take it: {why_not}", f"No agent can take it: {why_not}.")


def _was_edited(mission: Mission, facts: MissionFacts) -> bool:
    is_question = mission.status is Status.DISCOVERED and bool(mission.question.proposal_hash)
    return is_question and facts.issue is not None and not stands(facts.issue, mission)


def _ask_again(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """Somebody else edited the text, so approval would no longer mean the planned change."""
    assert facts.issue is not None
    bound = about(mission, facts.issue.title, facts.issue.body)
    key, digest = key_of(mission.key, "comment", bound.question.proposal_sha256), bound.question.proposal_hash
    asked_at = facts.issue.updated_at + TICK  # by the forge's clock: ours may be fast, and earlier approvals are void
    step = replace(build_step(mission, context), after=bound)
    step = step.change(proposal_at=asked_at, pending=(), waiting_since=context.now)
    return step.send(Comment(key, mission.issue, wording.ask_again(digest, key))).propose(Action.ANSWER)
