"""The steps by which a mission is set aside, and brought back: escalated, parked, revived, let go.

The steps by which a mission ends: merged, refused, done by a person, gone.

The steps after a yes: what was planned, or did not get through, is sent while the yes still stands.

The next step of a mission: from what the facts mean to a worded proposal, or none.

One function per event. A step that changes the outside is a `Proposal` and goes through
policy like everything else; a step that only changes what we know is applied as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralph_mission.mission.coder import results, tasks
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.approval import about, on_issue, stands
from ralph_mission.mission.lifecycle.step_parts import (
    TICK,
    add_to_story,
    close_issue,
    close_pull,
    count_wait,
    deny_step,
    finish_mission,
    lesson,
    propose_step,
    story_comment,
)
from ralph_mission.mission.lifecycle.table import ESCALATED_FOR, advance
from ralph_mission.mission.model.cycle import Interpretation, MissionEvent, MissionFacts, MissionStep, StepContext
from ralph_mission.mission.model.effects import Comment, Effect, Label, MergePull, OpenPull, PushBranch
from ralph_mission.mission.model.ledger import EffectRecord, key_of
from ralph_mission.mission.model.mission import Action, Mission, Status
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.publishing import steps

CLAIM_IT = (
    "A person looks: if it is Ralph's after all, set the label `ralph:mission` on the issue anew; "
    "if not, memory was tampered with: `ralph memory verify`."
)


def escalate_stuck(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """It cannot go on by itself."""
    return escalate(mission, mission, facts, reading, around, reading.words)


def escalate(
    mission: Mission, at: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext, why: str
) -> MissionStep:
    """A person is asked to decide, where it stands: in the mission's story, by a remark and by labels."""
    actor = reading.opinion.actor
    who = wording.person_name(actor) if actor and reading.event is MissionEvent.CHANGES_REQUESTED else ""
    after = _mark_seen(advance(at, MissionEvent.STUCK, around.now), facts)
    line = f"escalated: {f'{who} ' if who else ''}{why}"
    choices = "mend that, edit the text," if mission.action is Action.PUBLISH else "push to the branch, merge,"
    after = add_to_story(after, around, line, f"A person decides: {choices} close, or take the label off.")
    words = reading.words if who else ""
    slot = f"escalated {mission.rounds} {len(mission.story)}"
    key = key_of(mission.key, "comment", slot)
    body = wording.story(after, key, wording.escalation(around.owners, words, who))
    label = Label(key_of(mission.key, "label", slot), mission.issue, add=("ralph:escalated",), assign=around.owners)
    on_pull = _on_pull(mission, facts, slot, add=("ralph:escalated",))
    effects: tuple[Effect, ...] = (Comment(key, mission.issue, body), label, *on_pull)
    step_ = propose_step(Action.ANSWER, mission, after, effects, "", None)
    assert step_.proposal is not None
    proposal = replace(step_.proposal, pings=around.owners, objections=())
    return replace(step_, proposal=proposal)


def park(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """Nobody answered: its slot is free until somebody wants it again."""
    after = _mark_seen(advance(mission, MissionEvent.UNANSWERED, around.now), facts)
    after = add_to_story(
        after, around, f"parked: {reading.words}", "Set the label `ralph:mission` again to bring it back."
    )
    after = replace(after, outcome="parked")
    label = Label(key_of(mission.key, "label", f"parked {len(mission.story)}"), mission.issue, add=("ralph:parked",))
    return propose_step(Action.ANSWER, mission, after, (story_comment(after, around), label), "", None)


def revive(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A person brought it back: it begins where it can."""
    assert reading.event is not None
    after = advance(mission, reading.event, around.now)
    if after.status is Status.DISCOVERED and not _asks(mission):
        after = advance(after, MissionEvent.APPROVED, around.now)
    after = replace(after, outcome="", failure="", failure_reason=None, failures=0, turns=0, waiting_since=around.now)
    if after.status is Status.IN_REVIEW and facts.pull:
        after = after if facts.pull.head_sha == after.head_sha else results.void_offer(after)
        after = replace(after, head_sha=facts.pull.head_sha)  # a person looked at it; it is merged only as approved
    after = add_to_story(after, around, "brought back by a person", "Waiting for a person's answer.")
    slot, ours = f"revived {len(mission.story)}", ("ralph:parked", "ralph:escalated")
    label = Label(key_of(mission.key, "label", slot), mission.issue, remove=ours)
    effects: tuple[Effect, ...] = (story_comment(after, around), label, *_on_pull(mission, facts, slot, remove=ours))
    return propose_step(Action.ANSWER, mission, after, effects, "", None)


def _asks(mission: Mission) -> bool:
    """Whether there is a text that a person can say yes to. Else bringing it back is all the yes there can be."""
    return bool(mission.proposal_hash) or mission.action is Action.PUBLISH


def _mark_seen(mission: Mission, facts: MissionFacts) -> Mission:
    """The mission with how far it was looked at: only what people say after that brings it back."""
    heard = max(filter(None, (mission.heard_at, facts.heard_at)), default=None)
    return replace(mission, seen_at=facts.seen_at, heard_at=heard)


def _on_pull(
    mission: Mission, facts: MissionFacts, slot: str, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> tuple[Label, ...]:
    """The same labels on the pull that waits: whoever looks there sees how it stands, and its text links the issue."""
    pull = facts.pull
    if pull is None or pull.state != "open" or not (add or pull.labels & set(remove)):
        return ()
    return (Label(key_of(mission.key, "label", slot, "pull"), pull.number, add=add, remove=remove),)


def kept_away(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """What memory says of it the forge does not bear out: nothing is sent, nothing learned, and a person is asked.

    A person's own mission ends with the label; any other gives its slot back after a week.
    """
    if mission.kind == "human" and not facts.ours:
        return _let_go(mission, facts, around)
    if mission.status is Status.PARKED:
        return MissionStep(mission)
    if mission.status is Status.ESCALATED:
        over = around.now - mission.changed_at >= ESCALATED_FOR
        return MissionStep(
            replace(advance(mission, MissionEvent.UNANSWERED, around.now), outcome="parked") if over else mission
        )
    stuck = _mark_seen(advance(mission, MissionEvent.STUCK, around.now), facts)
    return MissionStep(add_to_story(stuck, around, f"nothing is written: {facts.foreign}", CLAIM_IT))


def _let_go(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """The label is off: the issue is only its author's again, and of ours the open pull is left."""
    line = "no longer labelled `ralph:mission`"
    gone = add_to_story(advance(mission, MissionEvent.GONE, around.now), around, line, "Nothing.")
    gone = finish_mission(gone, around, "let go", "the label was taken off")
    effects = close_pull(mission, facts.left, f"the issue #{mission.issue} is {line}")
    return propose_step(Action.FINISH, mission, gone, effects, "", None) if effects else MissionStep(gone)


def merge(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A pull that was approved at its head is merged there; its issue is closed."""
    assert facts.pull is not None
    if facts.pull.base != around.default.name:  # the yes was to another merge than this would be
        refused = replace(reading.opinion, state="refused", rules=("approval-content",))
        return deny_step(mission, facts, replace(reading, opinion=refused))
    who = wording.person_name(reading.opinion.actor)
    merge = MergePull(
        key_of(mission.key, "merge_pull", mission.head_sha),
        facts.pull.number,
        mission.head_sha,
        around.merge_method,
        wording.merge_message(mission, who),
        facts.pull.base,
        reading.opinion.actor.id if reading.opinion.actor else 0,
    )
    after = _close_accepted(mission, around, who)
    effects = (merge, story_comment(after, around), *close_issue(mission, facts, "completed"))
    return propose_step(Action.FINISH, mission, after, effects, who, lesson(mission, "accepted"))


def catch_up(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """The base is merged into the branch, never the branch rebased; what then stands there is reviewed anew."""
    base = around.default
    key = key_of(mission.key, "push_branch", mission.head_sha, base.sha)
    push = PushBranch(
        key,
        mission.branch,
        base.sha,
        wording.catch_up_message(mission, base),
        around.now,
        (),
        onto=mission.head_sha,
        issue=mission.issue,
    )
    after = replace(results.void_offer(mission), failure="", failure_reason=None, failures=0, waiting_since=around.now)
    after = add_to_story(after, around, f"merged {base.name} in, which it was behind of", "Review the pull once more.")
    return propose_step(Action.REVISE, mission, after, (push, story_comment(after, around)), "", None)


def _close_accepted(mission: Mission, around: StepContext, who: str) -> Mission:
    line = f"approved by {who} at `{mission.head_sha[:8]}` and merged"
    after = add_to_story(advance(mission, MissionEvent.MERGED, around.now), around, line, "Nothing is left to do.")
    return finish_mission(after, around, "merged", f"{who} accepted it")


def close_merged(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A person merged it, or we did in a run that ended before it could tell."""
    who = wording.person_name(reading.opinion.actor)
    if facts.pull and facts.pull.merged_by and facts.pull.merged_by.is_bot:
        after = _close_accepted(mission, around, who)  # by us, in a run that ended before it could tell
    else:
        after = add_to_story(
            advance(mission, MissionEvent.MERGED, around.now), around, f"merged by {who}", "Nothing is left to do."
        )
        after = finish_mission(after, around, "merged", f"{who} merged it")
    effects = (story_comment(after, around), *close_issue(mission, facts, "completed"))
    return propose_step(Action.FINISH, mission, after, effects, who, lesson(mission, "accepted"))


def refused_for_good(
    mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext
) -> MissionStep:
    """A person's no: everything of it is closed, and it is learned."""
    who = wording.person_name(reading.opinion.actor)
    reason = wording.plain(reading.words, 200)
    after = advance(mission, MissionEvent.REFUSED, around.now)
    after = add_to_story(
        after, around, f"{who} said no{f': {reason}' if reason else ''}", "Nothing. It will not come back."
    )
    after = finish_mission(after, around, "rejected", f"{who} said no" + (f": {reason}" if reason else ""))
    label = Label(key_of(mission.key, "label", "rejected"), mission.issue, add=("ralph:rejected",))
    said = close_pull(mission, facts.pull, f"{who} said no to #{mission.issue}{f': {reason}' if reason else ''}")
    effects = (*said, story_comment(after, around), label, *close_issue(mission, facts, "not_planned"))
    return propose_step(Action.FINISH, mission, after, effects, who, lesson(mission, "rejected", reason))


def close_gone(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """Nobody said no, so nothing is learned; what is left of it is cleared away."""
    after = add_to_story(advance(mission, MissionEvent.GONE, around.now), around, reading.words, "Nothing.")
    after = finish_mission(after, around, "rejected", reading.words)
    return propose_step(Action.FINISH, mission, after, close_pull(mission, facts.pull, reading.words), "", None)


def close_done(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A person did it by hand."""
    who = wording.person_name(reading.opinion.actor)
    after = add_to_story(
        advance(mission, MissionEvent.DONE, around.now), around, f"done by {who}", "Nothing is left to do."
    )
    after = finish_mission(after, around, "done by a person", f"{who} did it")
    said = close_pull(mission, facts.pull, f"the issue #{mission.issue} was completed by {who}")
    return propose_step(
        Action.FINISH, mission, after, (*said, story_comment(after, around)), who, lesson(mission, "accepted")
    )


UNNAMED = "the change kept for it is not named in this issue and is not sent"
BY_HAND = "No fixer can do this: do it by hand, then close the issue as completed."


def start_approved(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    """A yes, to a proposal, an offer or a text: what it is to is released."""
    who = wording.person_name(reading.opinion.actor)
    if mission.action is Action.PUBLISH:
        return steps.release_posts(mission, facts, around, who)
    if mission.offered_until:
        return results.push_offer(mission, facts, around, who)
    planned = advance(mission, MissionEvent.APPROVED, around.now)
    if not mission.pending or not (facts.announced or facts.offered):  # our issue names no change to say yes to
        unnamed = f"; {UNNAMED}" if mission.pending else ""
        then = tasks.WAITS_FOR_AGENT if facts.coder else BY_HAND
        after = replace(add_to_story(planned, around, f"approved by {who}{unnamed}", then), pending=())
        return propose_step(
            Action.ANSWER, mission, after, (story_comment(after, around),), who, lesson(mission, "accepted")
        )
    executing = advance(planned, MissionEvent.STARTED, around.now)
    executing = add_to_story(
        executing, around, f"approved by {who}; the branch is pushed for review", "Review the pull."
    )
    return _carried_out(mission, executing, facts, around, who)


def resume(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """What did not get through, sent now; where a person was asked, only while the yes still stands."""
    started = advance(mission, MissionEvent.STARTED, around.now) if mission.status is Status.PLANNED else mission
    if not mission.proposal_hash:
        if facts.coder and not facts.announced:  # we died before we could name it: what was made is still there
            return MissionStep(replace(count_wait(mission), pending=()))
        return _carried_out(mission, started, facts, around, "")
    who = said_yes(mission, facts)
    if not who:
        return MissionStep(count_wait(mission))
    return _carried_out(mission, started, facts, around, who)


def said_yes(mission: Mission, facts: MissionFacts) -> str:
    """Whose yes to a proposal stands now, "" when there is none."""
    if facts.issue is None or not mission.proposal_hash:
        return ""
    said = on_issue(facts.issue, mission, facts.authorised, facts.offered_at, facts.yes, facts.edited_at)
    return wording.person_name(said.actor) if said.state == "approved" else ""


def _carried_out(
    mission: Mission, executing: Mission, facts: MissionFacts, around: StepContext, who: str
) -> MissionStep:
    """The effects that were planned or did not get through, sent now.

    A branch and a pull, and nothing else that memory may hold: it grants nothing, a merge least of all. Nor any
    other branch and pull than the mission's issue names: nobody was shown those, so nobody's yes is to them.
    """
    records = [around.records.get(key) for key in mission.pending]
    kept = [record for record in records if isinstance(record, EffectRecord)]
    effects = tuple(record.effect for record in kept if isinstance(record.effect, PushBranch | OpenPull))
    named = facts.announced | facts.offered if who else facts.announced
    shown = all(ownership.change_digest(effect) in named for effect in effects)
    strange = not shown or any(record.mission != mission.id for record in kept)
    who = "" if strange else who
    after = replace(advance(executing, MissionEvent.PULL_OPENED, around.now), pending=(), waiting_since=around.now)
    proposal = Proposal(
        key_of(mission.key, "carry-out"),
        Action.OPEN_FIX,
        mission.kind,
        mission.title,
        effects,
        before=mission,
        interim=executing,
        after=after,
        approved=bool(who),
        approver=who,
        objections=("approval-content",) if strange else (),
        wished=not facts.unasked,
    )
    return MissionStep(count_wait(mission), proposal, lesson(mission, "accepted") if who else None)


def next_step(
    mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext
) -> tuple[MissionStep, ...]:
    """What follows from this reading: usually one step; a refused yes and a new question are two."""
    if facts.foreign:
        return (kept_away(mission, facts, around),)
    refused = (deny_step(mission, facts, reading),) if reading.opinion.rules else ()
    if reading.event is not None:
        return (*refused, _BY_EVENT[reading.event](mission, facts, reading, around))
    if mission.action is Action.PUBLISH:
        return (*refused, _publish(mission, facts, around))
    if _was_edited(mission, facts):
        return (*refused, _ask_again(mission, facts, around))
    if mission.status in (Status.PLANNED, Status.EXECUTING) and mission.pending:
        return (resume(mission, facts, around),)
    if mission.status is Status.FIXING and facts.coder and mission.pending:
        return (*refused, results.resume_offer(mission, facts, around) or results.retry_answer(mission))
    if facts.coder and tasks.is_review_answered(mission, facts):
        return (*refused, results.close_answered_review(mission, around))
    if made := around.made.get(mission.id):
        return (*refused, results.step_from_result(mission, facts, made, around))
    return refused or (_waiting(mission, facts, around),)


def _publish(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    if why := steps.refused_everywhere(mission, facts, around):
        return escalate(mission, mission, facts, Interpretation(MissionEvent.STUCK), around, why)
    return steps.follow(mission, facts, around)


def _waiting(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """Nothing happened. An agent that cannot be told what to do says so: in the mission's story, once."""
    untold = facts.coder and mission.status in tasks.WAITS and facts.issue and tasks.why_not(mission, facts)
    if not untold:
        return MissionStep(count_wait(mission))
    line = f"no agent takes it: {untold}"
    stays = replace(mission, next_step=f"N{line[1:]}.")
    if any(said.endswith(line) for said in mission.story):
        return MissionStep(stays)
    after = add_to_story(mission, around, line, stays.next_step)
    step = propose_step(Action.ANSWER, mission, after, (story_comment(after, around),), "", None)
    return replace(step, mission=stays)  # it waits for a person, and not for us


def _changes_requested(
    mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext
) -> MissionStep:
    mission = results.void_offer(mission)
    fixing = replace(advance(mission, MissionEvent.CHANGES_REQUESTED, around.now), answered_before=mission.answered_at)
    if facts.coder and mission.rounds < tasks.ROUNDS:
        who = wording.person_name(reading.opinion.actor)
        after = add_to_story(fixing, around, f"{who} asked for changes", tasks.WAITS_FOR_AGENT)
        return propose_step(Action.ANSWER, mission, after, (story_comment(after, around),), "", None)
    if facts.coder:
        words = f"asked for changes again after {mission.rounds} answers"
        return escalate(mission, fixing, facts, reading, around, words)
    return escalate(mission, fixing, facts, reading, around, "asked for changes that no fixer can make")


def _pull_opened(mission: Mission, facts: MissionFacts, reading: Interpretation, around: StepContext) -> MissionStep:
    if mission.status is not Status.EXECUTING:
        return revive(mission, facts, reading, around)
    assert facts.pull is not None
    opened = advance(mission, MissionEvent.PULL_OPENED, around.now)
    opened = replace(opened, pull=facts.pull.number, pending=(), waiting_since=around.now)
    return MissionStep(opened, lesson=lesson(mission, "accepted") if said_yes(mission, facts) else None)


_BY_EVENT: dict[MissionEvent, Callable[[Mission, MissionFacts, Interpretation, StepContext], MissionStep]] = {
    MissionEvent.MERGEABLE: merge,
    MissionEvent.BEHIND: catch_up,
    MissionEvent.MERGED: close_merged,
    MissionEvent.REFUSED: refused_for_good,
    MissionEvent.DONE: close_done,
    MissionEvent.PUBLISHED: steps.over,
    MissionEvent.APPROVED: start_approved,
    MissionEvent.CHANGES_REQUESTED: _changes_requested,
    MissionEvent.STUCK: escalate_stuck,
    MissionEvent.UNANSWERED: park,
    MissionEvent.GONE: close_gone,
    MissionEvent.REVIVED: revive,
    MissionEvent.PULL_OPENED: _pull_opened,
}


def _was_edited(mission: Mission, facts: MissionFacts) -> bool:
    issue = facts.issue
    asked = mission.status is Status.DISCOVERED and mission.proposal_hash and issue is not None
    return bool(asked) and issue is not None and not stands(issue, mission)


def _ask_again(mission: Mission, facts: MissionFacts, around: StepContext) -> MissionStep:
    """The text is someone else's now, so the planned change that stood in it is not what a yes would mean."""
    assert facts.issue is not None
    bound = about(mission, facts.issue.title, facts.issue.body)
    key, digest = key_of(mission.key, "comment", bound.proposal_sha256), bound.proposal_hash
    asked = facts.issue.updated_at + TICK  # by the forge's clock: ours may be fast, and an earlier yes is no answer
    after = replace(bound, proposal_at=asked, pending=(), waiting_since=around.now)
    comment = Comment(key, mission.issue, wording.ask_again(digest, key))
    return propose_step(Action.ANSWER, mission, after, (comment,), "", None)
