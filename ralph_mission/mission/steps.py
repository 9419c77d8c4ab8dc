"""The next step of a mission: from what the facts mean to a worded proposal, or none.

One function per event. A step that changes the outside is a `Proposal` and goes through
policy like everything else; a step that only changes what we know is applied as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralph_mission.mission import announced, coded, coding, content_steps, offering, wording
from ralph_mission.mission.approval import about, on_issue, stands
from ralph_mission.mission.effects import (
    Comment,
    Effect,
    Label,
    MergePull,
    OpenPull,
    PushBranch,
)
from ralph_mission.mission.ledger import EffectRecord, key_of
from ralph_mission.mission.lifecycle import ESCALATED_FOR, Event, Facts, Reading, advance
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.proposal import Proposal
from ralph_mission.mission.step_parts import (
    TICK,
    Circumstances,
    Lesson,
    Step,
    close_issue,
    close_pull,
    finished,
    lesson,
    proposed,
    story,
    told,
    waited,
)

__all__ = ["Circumstances", "Lesson", "Step", "step"]

CLAIM_IT = (
    "A person looks: if it is Ralph's after all, set the label `ralph:mission` on the issue anew; "
    "if not, memory was tampered with: `ralph memory verify`."
)
UNNAMED = "the change kept for it is not named in this issue and is not sent"
BY_HAND = "No fixer can do this: do it by hand, then close the issue as completed."


def step(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> tuple[Step, ...]:
    """What follows from this reading: usually one step; a refused yes and a new question are two."""
    if facts.foreign:
        return (_kept_away(mission, facts, around),)
    refused = (_refused(mission, facts, reading),) if reading.opinion.rules else ()
    if reading.event is not None:
        return (*refused, _BY_EVENT[reading.event](mission, facts, reading, around))
    if mission.action is Action.PUBLISH:
        return (*refused, _publish(mission, facts, around))
    if _edited(mission, facts):
        return (*refused, _ask_again(mission, facts, around))
    if mission.status in (Status.PLANNED, Status.EXECUTING) and mission.pending:
        return (_resume(mission, facts, around),)
    if mission.status is Status.FIXING and facts.coder and mission.pending:
        return (*refused, offering.resumed(mission, facts, around) or coded.unanswered(mission))
    if facts.coder and coding.answered(mission, facts):
        return (*refused, coded.answered(mission, around))
    if made := around.made.get(mission.id):
        return (*refused, coded.follow(mission, facts, made, around))
    return refused or (_waiting(mission, facts, around),)


def _publish(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    if why := content_steps.refused_everywhere(mission, facts, around):
        return _escalated(mission, mission, facts, Reading(Event.STUCK), around, why)
    return content_steps.follow(mission, facts, around)


def _waiting(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """Nothing happened. An agent that cannot be told what to do says so: in the mission's story, once."""
    untold = facts.coder and mission.status in coding.WAITS and facts.issue and coding.why_not(mission, facts)
    if not untold:
        return Step(waited(mission))
    line = f"no agent takes it: {untold}"
    stays = replace(mission, next_step=f"N{line[1:]}.")
    if any(said.endswith(line) for said in mission.story):
        return Step(stays)
    after = told(mission, around, line, stays.next_step)
    step = proposed(Action.ANSWER, mission, after, (story(after, around),), "", None)
    return replace(step, mission=stays)  # it waits for a person, and not for us


def _kept_away(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """What memory says of it the forge does not bear out: nothing is sent, nothing learned, and a person is asked.

    A person's own mission ends with the label; any other gives its slot back after a week.
    """
    if mission.kind == "human" and not facts.ours:
        return _let_go(mission, facts, around)
    if mission.status is Status.PARKED:
        return Step(mission)
    if mission.status is Status.ESCALATED:
        over = around.now - mission.changed_at >= ESCALATED_FOR
        return Step(replace(advance(mission, Event.UNANSWERED, around.now), outcome="parked") if over else mission)
    stuck = advance(mission, Event.STUCK, around.now)
    return Step(told(stuck, around, f"nothing is written: {facts.foreign}", CLAIM_IT))


def _let_go(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """The label is off: the issue is only its author's again, and of ours the open pull is left."""
    line = "no longer labelled `ralph:mission`"
    gone = told(advance(mission, Event.GONE, around.now), around, line, "Nothing.")
    gone = finished(gone, around, "let go", "the label was taken off")
    effects = close_pull(mission, facts.left, f"the issue #{mission.issue} is {line}")
    return proposed(Action.FINISH, mission, gone, effects, "", None) if effects else Step(gone)


# --- one per event --------------------------------------------------------------------


def _merge(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    assert facts.pull is not None
    if facts.pull.base != around.default.name:  # the yes was to another merge than this would be
        refused = replace(reading.opinion, state="refused", rules=("approval-content",))
        return _refused(mission, facts, replace(reading, opinion=refused))
    who = wording.person(reading.opinion.actor)
    merge = MergePull(
        key_of(mission.key, "merge_pull", mission.head_sha),
        facts.pull.number,
        mission.head_sha,
        around.merge_method,
        wording.merge_message(mission, who),
        facts.pull.base,
        reading.opinion.actor.id if reading.opinion.actor else 0,
    )
    after = _accepted(mission, around, who)
    effects = (merge, story(after, around), *close_issue(mission, facts, "completed"))
    return proposed(Action.FINISH, mission, after, effects, who, lesson(mission, "accepted"))


def _catch_up(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
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
    after = replace(offering.void(mission), failure="", failures=0, waiting_since=around.now)
    after = told(after, around, f"merged {base.name} in, which it was behind of", "Review the pull once more.")
    return proposed(Action.REVISE, mission, after, (push, story(after, around)), "", None)


def _accepted(mission: Mission, around: Circumstances, who: str) -> Mission:
    line = f"approved by {who} at `{mission.head_sha[:8]}` and merged"
    after = told(advance(mission, Event.MERGED, around.now), around, line, "Nothing is left to do.")
    return finished(after, around, "merged", f"{who} accepted it")


def _merged(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    who = wording.person(reading.opinion.actor)
    if facts.pull and facts.pull.merged_by and facts.pull.merged_by.is_bot:
        after = _accepted(mission, around, who)  # by us, in a run that ended before it could tell
    else:
        after = told(advance(mission, Event.MERGED, around.now), around, f"merged by {who}", "Nothing is left to do.")
        after = finished(after, around, "merged", f"{who} merged it")
    effects = (story(after, around), *close_issue(mission, facts, "completed"))
    return proposed(Action.FINISH, mission, after, effects, who, lesson(mission, "accepted"))


def _refused_for_good(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    who = wording.person(reading.opinion.actor)
    reason = wording.plain(reading.words, 200)
    after = advance(mission, Event.REFUSED, around.now)
    after = told(after, around, f"{who} said no{f': {reason}' if reason else ''}", "Nothing. It will not come back.")
    after = finished(after, around, "rejected", f"{who} said no" + (f": {reason}" if reason else ""))
    label = Label(key_of(mission.key, "label", "rejected"), mission.issue, add=("ralph:rejected",))
    said = close_pull(mission, facts.pull, f"{who} said no to #{mission.issue}{f': {reason}' if reason else ''}")
    effects = (*said, story(after, around), label, *close_issue(mission, facts, "not_planned"))
    return proposed(Action.FINISH, mission, after, effects, who, lesson(mission, "rejected", reason))


def _gone(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    """Nobody said no, so nothing is learned; what is left of it is cleared away."""
    after = told(advance(mission, Event.GONE, around.now), around, reading.words, "Nothing.")
    after = finished(after, around, "rejected", reading.words)
    return proposed(Action.FINISH, mission, after, close_pull(mission, facts.pull, reading.words), "", None)


def _done(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    who = wording.person(reading.opinion.actor)
    after = told(advance(mission, Event.DONE, around.now), around, f"done by {who}", "Nothing is left to do.")
    after = finished(after, around, "done by a person", f"{who} did it")
    said = close_pull(mission, facts.pull, f"the issue #{mission.issue} was completed by {who}")
    return proposed(Action.FINISH, mission, after, (*said, story(after, around)), who, lesson(mission, "accepted"))


def _approved(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    who = wording.person(reading.opinion.actor)
    if mission.action is Action.PUBLISH:
        return content_steps.released(mission, facts, around, who)
    if mission.offered_until:
        return offering.released(mission, facts, around, who)
    planned = advance(mission, Event.APPROVED, around.now)
    if not mission.pending or not (facts.announced or facts.offered):  # our issue names no change to say yes to
        unnamed = f"; {UNNAMED}" if mission.pending else ""
        then = coding.WAITS_FOR_AGENT if facts.coder else BY_HAND
        after = replace(told(planned, around, f"approved by {who}{unnamed}", then), pending=())
        return proposed(Action.ANSWER, mission, after, (story(after, around),), who, lesson(mission, "accepted"))
    executing = advance(planned, Event.STARTED, around.now)
    executing = told(executing, around, f"approved by {who}; the branch is pushed for review", "Review the pull.")
    return _carried_out(mission, executing, facts, around, who)


def _resume(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """What did not get through, sent now; where a person was asked, only while the yes still stands."""
    started = advance(mission, Event.STARTED, around.now) if mission.status is Status.PLANNED else mission
    if not mission.proposal_hash:
        if facts.coder and not facts.announced:  # we died before we could name it: what was made is still there
            return Step(replace(waited(mission), pending=()))
        return _carried_out(mission, started, facts, around, "")
    who = _said_yes(mission, facts)
    if not who:
        return Step(waited(mission))
    return _carried_out(mission, started, facts, around, who)


def _said_yes(mission: Mission, facts: Facts) -> str:
    """Whose yes to a proposal stands now, "" when there is none."""
    if facts.issue is None or not mission.proposal_hash:
        return ""
    said = on_issue(facts.issue, mission, facts.authorised, facts.offered_at, facts.yes, facts.edited_at)
    return wording.person(said.actor) if said.state == "approved" else ""


def _carried_out(mission: Mission, executing: Mission, facts: Facts, around: Circumstances, who: str) -> Step:
    """The effects that were planned or did not get through, sent now.

    A branch and a pull, and nothing else that memory may hold: it grants nothing, a merge least of all. Nor any
    other branch and pull than the mission's issue names: nobody was shown those, so nobody's yes is to them.
    """
    records = [around.records.get(key) for key in mission.pending]
    kept = [record for record in records if isinstance(record, EffectRecord)]
    effects = tuple(record.effect for record in kept if isinstance(record.effect, PushBranch | OpenPull))
    named = facts.announced | facts.offered if who else facts.announced
    shown = all(announced.digest(effect) in named for effect in effects)
    strange = not shown or any(record.mission != mission.id for record in kept)
    who = "" if strange else who
    after = replace(advance(executing, Event.PULL_OPENED, around.now), pending=(), waiting_since=around.now)
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
    )
    return Step(waited(mission), proposal, lesson(mission, "accepted") if who else None)


def _changes_requested(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    mission = offering.void(mission)
    fixing = replace(advance(mission, Event.CHANGES_REQUESTED, around.now), answered_before=mission.answered_at)
    if facts.coder and mission.rounds < coding.ROUNDS:
        who = wording.person(reading.opinion.actor)
        after = told(fixing, around, f"{who} asked for changes", coding.WAITS_FOR_AGENT)
        return proposed(Action.ANSWER, mission, after, (story(after, around),), "", None)
    if facts.coder:
        words = f"asked for changes again after {mission.rounds} answers"
        return _escalated(mission, fixing, facts, reading, around, words)
    return _escalated(mission, fixing, facts, reading, around, "asked for changes that no fixer can make")


def _stuck(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    return _escalated(mission, mission, facts, reading, around, reading.words)


def _escalated(mission: Mission, at: Mission, facts: Facts, reading: Reading, around: Circumstances, why: str) -> Step:
    actor = reading.opinion.actor
    who = wording.person(actor) if actor and reading.event is Event.CHANGES_REQUESTED else ""
    after = advance(at, Event.STUCK, around.now)
    line = f"escalated: {f'{who} ' if who else ''}{why}"
    choices = "mend that, edit the text," if mission.action is Action.PUBLISH else "push to the branch, merge,"
    after = told(after, around, line, f"A person decides: {choices} close, or take the label off.")
    words = reading.words if who else ""
    slot = f"escalated {mission.rounds} {len(mission.story)}"
    key = key_of(mission.key, "comment", slot)
    body = wording.story(after, key, wording.escalation(around.owners, words, who))
    label = Label(key_of(mission.key, "label", slot), mission.issue, add=("ralph:escalated",), assign=around.owners)
    on_pull = _on_pull(mission, facts, slot, add=("ralph:escalated",))
    effects: tuple[Effect, ...] = (Comment(key, mission.issue, body), label, *on_pull)
    step_ = proposed(Action.ANSWER, mission, after, effects, "", None)
    assert step_.proposal is not None
    proposal = replace(step_.proposal, pings=around.owners, objections=())
    return replace(step_, proposal=proposal)


def _on_pull(
    mission: Mission, facts: Facts, slot: str, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> tuple[Label, ...]:
    """The same labels on the pull that waits: whoever looks there sees how it stands, and its text links the issue."""
    pull = facts.pull
    if pull is None or pull.state != "open" or not (add or pull.labels & set(remove)):
        return ()
    return (Label(key_of(mission.key, "label", slot, "pull"), pull.number, add=add, remove=remove),)


def _parked(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    after = advance(mission, Event.UNANSWERED, around.now)
    after = told(after, around, f"parked: {reading.words}", "Set the label `ralph:mission` again to bring it back.")
    after = replace(after, outcome="parked")
    label = Label(key_of(mission.key, "label", f"parked {len(mission.story)}"), mission.issue, add=("ralph:parked",))
    return proposed(Action.ANSWER, mission, after, (story(after, around), label), "", None)


def _revived(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    assert reading.event is not None
    after = advance(mission, reading.event, around.now)
    after = replace(after, outcome="", failure="", failures=0, turns=0, waiting_since=around.now)
    if after.status is Status.IN_REVIEW and facts.pull:
        after = after if facts.pull.head_sha == after.head_sha else offering.void(after)
        after = replace(after, head_sha=facts.pull.head_sha)  # a person looked at it; it is merged only as approved
    after = told(after, around, "brought back by a person", "Waiting for a person's answer.")
    slot, ours = f"revived {len(mission.story)}", ("ralph:parked", "ralph:escalated")
    label = Label(key_of(mission.key, "label", slot), mission.issue, remove=ours)
    effects: tuple[Effect, ...] = (story(after, around), label, *_on_pull(mission, facts, slot, remove=ours))
    return proposed(Action.ANSWER, mission, after, effects, "", None)


def _pull_opened(mission: Mission, facts: Facts, reading: Reading, around: Circumstances) -> Step:
    if mission.status is not Status.EXECUTING:
        return _revived(mission, facts, reading, around)
    assert facts.pull is not None
    opened = advance(mission, Event.PULL_OPENED, around.now)
    opened = replace(opened, pull=facts.pull.number, pending=(), waiting_since=around.now)
    return Step(opened, lesson=lesson(mission, "accepted") if _said_yes(mission, facts) else None)


_BY_EVENT: dict[Event, Callable[[Mission, Facts, Reading, Circumstances], Step]] = {
    Event.MERGEABLE: _merge,
    Event.BEHIND: _catch_up,
    Event.MERGED: _merged,
    Event.REFUSED: _refused_for_good,
    Event.DONE: _done,
    Event.PUBLISHED: content_steps.over,
    Event.APPROVED: _approved,
    Event.CHANGES_REQUESTED: _changes_requested,
    Event.STUCK: _stuck,
    Event.UNANSWERED: _parked,
    Event.GONE: _gone,
    Event.REVIVED: _revived,
    Event.PULL_OPENED: _pull_opened,
}


# --- a yes that does not count ----------------------------------------------------------


def _refused(mission: Mission, facts: Facts, reading: Reading) -> Step:
    """Shown as a denied decision, so that whoever said yes can see which rule it ran into."""
    action = Action.FINISH if facts.pull else Action.OPEN_FIX
    proposal = Proposal(
        key_of(mission.key, "refused", *reading.opinion.rules),
        action,
        mission.kind,
        mission.title,
        before=mission,
        interim=mission,
        after=mission,
        approver=wording.person(reading.opinion.actor),
        objections=reading.opinion.rules,
    )
    return Step(waited(mission), proposal)


def _edited(mission: Mission, facts: Facts) -> bool:
    issue = facts.issue
    asked = mission.status is Status.DISCOVERED and mission.proposal_hash and issue is not None
    return bool(asked) and issue is not None and not stands(issue, mission)


def _ask_again(mission: Mission, facts: Facts, around: Circumstances) -> Step:
    """The text is someone else's now, so the planned change that stood in it is not what a yes would mean."""
    assert facts.issue is not None
    bound = about(mission, facts.issue.title, facts.issue.body)
    key, digest = key_of(mission.key, "comment", bound.proposal_sha256), bound.proposal_hash
    asked = facts.issue.updated_at + TICK  # by the forge's clock: ours may be fast, and an earlier yes is no answer
    after = replace(bound, proposal_at=asked, pending=(), waiting_since=around.now)
    comment = Comment(key, mission.issue, wording.ask_again(digest, key))
    return proposed(Action.ANSWER, mission, after, (comment,), "", None)
