"""What happens with an agent's result for a mission: a pull request, a question, an answer to a review, a retry. Pure.

A change that no rule objects to becomes a pull request for review. One that is too large, or on a protected path, is
shown on the mission's issue by its digest, and pushed after that digest is approved. An answer to a review is offered
while its pull request is in review (`Mission.offered_until`): a newer review or another head voids it. What may never
be sent is reported by rules and paths, never by a value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ralph_mission.mission.coder import conditions, tasks
from ralph_mission.mission.findings.identity import touched_by
from ralph_mission.mission.lifecycle import approval, ownership
from ralph_mission.mission.lifecycle.approval import APPROVED, about
from ralph_mission.mission.lifecycle.ownership import Change, change_remark, facts_of
from ralph_mission.mission.lifecycle.step_builder import StepBuilder, build_step, count_wait, tell_once
from ralph_mission.mission.lifecycle.table import advance
from ralph_mission.mission.lifecycle.waiting import ANSWER_QUESTION, WAITS_FOR_AGENT
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult
from ralph_mission.mission.model.cycle import MissionEvent, MissionFacts, MissionStep, StepContext
from ralph_mission.mission.model.effects import Comment, Effect, Label, OpenPull, PushBranch
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.ledger import EffectRecord, key_of
from ralph_mission.mission.model.mission import Action, Mission, Status, update_mission
from ralph_mission.mission.model.proposal import reason
from ralph_mission.mission.ports import Coder
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.proposals.draft import PATCH_LINES, showable
from ralph_mission.mission.proposals.wording import plain
from ralph_mission.safety.objections import DENIES, Objection, inspect, verdict
from ralph_mission.safety.patch import Patch, deltas, measure, patch_ids
from ralph_mission.safety.secrets import redact, strip_known
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun


def offer_effects(
    mission: Mission,
    facts: MissionFacts,
    patch: Patch,
    planned: Sequence[Change],
    rules: Sequence[str],
    digest: str = "",
    proof: str = "",
) -> tuple[Effect, ...]:
    """The comment that shows a change. An existing approval label was for something else and is removed.

    `digest`: that of the issue's text, if approval covers that too; without one the change answers a review.
    """
    assert facts.issue is not None
    key = change_remark(mission, map(ownership.change_digest, planned))
    named = ownership.announcement_line(planned, needs_approval=True)
    answers = 0 if digest else mission.pull
    comment = Comment(key, mission.thread, tasks.offer_text(patch, rules, named, digest, key, answers, proof))
    if APPROVED not in facts.issue.labels:
        return (comment,)
    return Label(key_of(mission.key, "label", f"offered {key}"), mission.thread, remove=(APPROVED,)), comment


def offer_answer(
    begun: Mission,
    facts: MissionFacts,
    result: AgentResult,
    push: PushBranch,
    rules: Sequence[str],
    context: StepContext,
) -> MissionStep:
    """Show the answer to a review and ask for approval. It counts as a round, or there would be no end of them."""
    assert result.patch is not None
    until = result.answered_at or tasks.answered_until(facts)
    step = build_step(begun, context).advance(MissionEvent.OFFERED).clear_failures()
    step = step.change(
        pending=(push.key,), rounds=begun.review.rounds + 1, offered_until=until, waiting_since=context.now, turns=0
    )
    line = f"an agent answered the review with a change that needs approval ({', '.join(rules)})"
    step = step.tell(line, "Approve or reject the change that the issue shows.")
    step = step.send(*offer_effects(begun, facts, result.patch, (push,), rules, proof=result.proof)).send_story()
    return step.propose(Action.ANSWER, planned=(push,))


def push_offer(mission: Mission, facts: MissionFacts, context: StepContext, who: str) -> MissionStep:
    """Push an answer that `who` approved: exactly what was shown, on top of what was reviewed."""
    strange = not _matches_offer(mission, facts, context)
    until = mission.review.offered_until or mission.review.answered_at
    interim = update_mission(mission, answered_at=until, offered_until=None)
    interim = advance(interim, MissionEvent.APPROVED, context.now) if interim.status is not Status.FIXING else interim
    step = replace(build_step(mission, context), after=interim)
    step = mark_revised(step, f"approved by {who}; the answer to the review is pushed")
    step = step.send(*_kept_pushes(mission, context)).send_story()
    objections = ("approval-content",) if strange else ()
    approver = "" if strange else who
    return step.propose(Action.REVISE, approver, interim=interim, approved=not strange, objections=objections)


def resume_offer(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep | None:
    """Retry the push if it failed and the approval still stands; else None."""
    issue, pull = facts.issue, facts.pull
    if issue is None or pull is None or pull.head_sha != mission.head_sha:
        return None
    changes = approval.on_pull(pull, mission, facts.authorised).state == "changes"
    answer = approval.on_offer(issue, mission, facts.authorised, facts.offered_at)
    if changes or answer.state != "approved" or not _matches_offer(mission, facts, context):
        return None
    return push_offer(mission, facts, context, wording.person_name(answer.actor))


def void_offer(mission: Mission) -> Mission:
    """The mission without the offered answer: approving it has no effect any more, and the review is still open."""
    return update_mission(mission, pending=(), offered_until=None) if mission.review.offered_until else mission


def mark_revised(step: StepBuilder, line: str) -> StepBuilder:
    """Mark the review as answered."""
    step = step.advance(MissionEvent.REVISED).clear_failures()
    step = step.change(pending=(), waiting_since=step.context.now, turns=0)
    return step.tell(f"{line} (round {step.after.review.rounds} of {tasks.ROUNDS})", "Review the pull request again.")


def _matches_offer(mission: Mission, facts: MissionFacts, context: StepContext) -> bool:
    """Whether what is stored is what was shown, on top of the current head."""
    pushes = _kept_pushes(mission, context)
    return bool(pushes) and all(
        ownership.change_digest(p) in facts.offered and p.onto == mission.head_sha for p in pushes
    )


def _kept_pushes(mission: Mission, context: StepContext) -> tuple[PushBranch, ...]:
    """The stored pushes to the mission's own branch, ignoring anything else in memory."""
    records = [context.records.get(key) for key in mission.pending]
    own = [record for record in records if isinstance(record, EffectRecord) and record.mission == mission.id]
    effects = [record.effect for record in own]
    return tuple(e for e in effects if isinstance(e, PushBranch) and e.branch == mission.branch)


def step_from_result(mission: Mission, facts: MissionFacts, result: AgentResult, context: StepContext) -> MissionStep:
    """The step that follows from the agent's work in this cycle."""
    if result.blocked:
        return tell_once(mission, context, conditions.held_line(result.reason), result.blocked)
    if result.outcome == "held":
        return MissionStep(replace(mission, next_step=f"An agent continues it when it is allowed to: {result.reason}."))
    begun = advance(mission, MissionEvent.STARTED, context.now) if mission.status is Status.PLANNED else mission
    begun = update_mission(begun, guided_at=result.guided_at or begun.review.guided_at)
    if result.outcome == "goes on":
        return _goes_on(begun, result, context)
    if result.unseen and facts.issue and not conditions.was_asked(mission, facts):
        return _ask_author(begun, facts.issue, result, context)
    if result.outcome == "failed" or result.patch is None or not result.patch.changes:
        return _record_failure(mission, begun, result, context)
    return _send_change(mission, begun, facts, result, result.patch, context)


def _goes_on(begun: Mission, result: AgentResult, context: StepContext) -> MissionStep:
    stalled = 0 if result.progressed else begun.progress.stalled_cycles + 1
    step = build_step(begun, context).tell(f"{_effort(result)}, not finished ({result.reason})", WAITS_FOR_AGENT)
    return _tell_effort(step.change(stalled_cycles=stalled, turns=begun.progress.turns + 1))


def _tell_effort(step: StepBuilder) -> MissionStep:
    """Record what an agent did, whether or not it can be reported."""
    return replace(step, before=step.after).send_story().propose(Action.ANSWER)


def _record_failure(mission: Mission, begun: Mission, result: AgentResult, context: StepContext) -> MissionStep:
    """The third failed attempt escalates, whatever the reasons."""
    reason = result.reason if result.outcome == "failed" else "it was declared done, and no file was changed"
    step = build_step(begun, context).tell(f"{_effort(result)}, came to nothing: {reason}", WAITS_FOR_AGENT)
    return _tell_effort(step.change(failure=reason, failure_reason=None, failures=begun.progress.failures + 1))


def _ask_author(begun: Mission, issue: Issue, result: AgentResult, context: StepContext) -> MissionStep:
    """No test showed the bug: ask one question, and wait."""
    step = build_step(begun, context).clear_failures().change(stalled_cycles=0, turns=0)
    step = step.tell(f"{_effort(result)}; {conditions.QUESTION_NOTE}", ANSWER_QUESTION)
    return step.send(conditions.question(begun, issue, result)).send_story().propose(Action.ANSWER)


def _effort(result: AgentResult) -> str:
    spent = f", ${result.usage.cost_usd:.2f}" if result.usage.cost_usd else ""
    return f"an agent worked on it ({count_noun(result.sessions, 'session')}{spent})"


def _send_change(
    mission: Mission, begun: Mission, facts: MissionFacts, result: AgentResult, patch: Patch, context: StepContext
) -> MissionStep:
    why = inspect(patch, max_lines=context.limits.auto_pr_lines, recent=context.recent)
    rules = _rules(why)
    if reason := explain_refusal(patch, why):
        return _record_failure(mission, begun, replace(result, outcome="failed", reason=reason), context)
    if begun.status is Status.FIXING:
        return _answer(begun, facts, result, patch, rules, context)
    push, pull = change_effects(begun, result, patch, context)
    if rules:
        return _offer_change(begun, facts, result, patch, (push, pull), rules, context)
    named = ownership.announcement_line((push, pull), needs_approval=False)
    remark = change_remark(mission, [ownership.change_digest(effect) for effect in (push, pull)])
    comment = Comment(remark, mission.issue, tasks.announcement_text(patch, named, remark))
    step = replace(build_step(mission, context), after=begun).clear_failures()
    step = step.change(pending=(push.key, pull.key), stalled_cycles=0, turns=0)
    step = step.tell(f"{_effort(result)}; its change is in a pull request", "Review it.")
    interim = step.after
    step = step.advance(MissionEvent.PULL_OPENED).change(pending=(), waiting_since=context.now)
    step = step.send(comment, push, pull)
    key = key_of(mission.key, "carry-out", *(effect.key for effect in step.effects))
    return step.propose(Action.OPEN_FIX, key=key, patch=patch, interim=interim, requested=not facts.unasked)


def change_effects(
    mission: Mission, result: AgentResult, patch: Patch, context: StepContext
) -> tuple[PushBranch, OpenPull]:
    """The branch and pull request of a change. Their keys are derived from the change."""
    same = tuple(sorted(patch_ids(patch)))
    branch = mission.branch or tasks.mission_branch(mission)
    why = reason(mission.kind)
    push = PushBranch(
        key_of(mission.key, "push_branch", patch.base, *same), branch, patch.base,
        tasks.change_commit(mission.title, mission.issue, why), context.now, deltas(patch), issue=mission.issue,
    )  # fmt: skip  # one effect
    key = key_of(mission.key, "open_pull")
    facts = facts_of(mission) | {"issue": str(mission.issue)}
    body = tasks.pull_text(
        mission.issue, why, patch, result.words, result.learned, key, facts, result.standing, result.proof
    )
    return push, OpenPull(
        key, mission.title, body, branch, context.default.name, mission.issue, ("ralph:mission",), same,
        touched_by(patch),
    )  # fmt: skip  # one effect


def _offer_change(
    begun: Mission,
    facts: MissionFacts,
    result: AgentResult,
    patch: Patch,
    planned: tuple[PushBranch, OpenPull],
    rules: tuple[str, ...],
    context: StepContext,
) -> MissionStep:
    """Show the change and ask for approval; an earlier one was for the request, not for this."""
    issue = facts.issue
    assert issue is not None
    bound = about(begun, issue.title, issue.body)
    step = replace(build_step(begun, context), after=bound).advance(MissionEvent.OFFERED).clear_failures()
    step = step.change(pending=tuple(effect.key for effect in planned), waiting_since=context.now, turns=0)
    step = step.tell(f"an agent made a change that needs approval ({', '.join(rules)})", "Approve or reject it.")
    digest = bound.question.proposal_hash
    step = step.send(*offer_effects(begun, facts, patch, planned, rules, digest, result.proof)).send_story()
    return step.propose(Action.ANSWER, planned=planned)


def _answer(
    begun: Mission, facts: MissionFacts, result: AgentResult, patch: Patch, rules: tuple[str, ...], context: StepContext
) -> MissionStep:
    """Push on top of what was reviewed, or ask first if a rule objects."""
    same = sorted(patch_ids(patch))
    push = PushBranch(
        key_of(begun.key, "push_branch", begun.head_sha, *same), begun.branch, begun.base_sha,
        tasks.answer_commit(begun, patch), context.now, deltas(patch), onto=begun.head_sha,
        issue=begun.thread,
    )  # fmt: skip  # one effect
    if rules:
        return offer_answer(begun, facts, result, push, rules, context)
    step = build_step(begun, context)
    step = step.change(rounds=begun.review.rounds + 1, answered_at=result.answered_at, pending=(push.key,))
    interim = step.after
    step = mark_revised(step, f"{_effort(result)} and answered the review").send(push).send_story()
    return step.propose(Action.REVISE, patch=patch, interim=interim)


def close_answered_review(mission: Mission, context: StepContext) -> MissionStep:
    """The step if the push of an answer was found after a crash, or the review was withdrawn."""
    step = mark_revised(build_step(mission, context), "nothing is left of the review to answer")
    return step.send_story().propose(Action.ANSWER)


def retry_answer(mission: Mission) -> MissionStep:
    """The step if the answer did not get through: it is still there, and sent again."""
    before = mission.review.answered_before
    rounds = max(0, mission.review.rounds - 1)
    return MissionStep(update_mission(count_wait(mission), pending=(), rounds=rounds, answered_at=before))


@dataclass(frozen=True, slots=True)
class RedactingCoder:
    """Wraps a coder so that it gets no secret, and none in its words or changes reaches memory, a recording or a log.

    `secrets`: the values this runner knows. The author of an issue may have written one.
    """

    coder: Coder
    secrets: tuple[str, ...]

    def work(self, job: AgentJob) -> AgentResult:
        """As in the port."""
        return redact_result(self.coder.work(strip_known(job, self.secrets)), self.secrets)

    def tidy(self, missions: Collection[int]) -> None:
        """As in the port."""
        self.coder.tidy(missions)


def redact_result(result: AgentResult, secrets: Sequence[str]) -> AgentResult:
    """An agent's result with its words redacted; a change that contains a secret is a failed attempt."""
    result = redact_words(result, secrets)
    found = inspect(result.patch, secrets=secrets) if result.patch else ()
    if result.patch is None or "secret" not in _rules(found):
        return result
    if result.outcome == "made":
        result = replace(result, outcome="failed", reason=explain_refusal(result.patch, found))
    return replace(result, patch=None)


def redact_words(result: AgentResult, secrets: Sequence[str]) -> AgentResult:
    """An agent's result with secrets in its words redacted; its change is judged when it is sent."""
    learned = tuple(redact(line, secrets) for line in result.learned)
    reason, words, proof = (redact(text, secrets) for text in (result.reason, result.words, result.proof))
    return replace(result, reason=reason, words=words, learned=learned, proof=proof)


def explain_refusal(patch: Patch, found: Sequence[Objection]) -> str:
    """Why no approval could send a change, given the objections; "" if it can be asked about."""
    if verdict(found) == "deny":
        return _refusal_text(", ".join(rule for rule in _rules(found) if rule in DENIES))
    return "" if showable(patch) else _refusal_text(_unshown(patch))


def _unshown(patch: Patch) -> str:
    """Why a person cannot be shown all of it."""
    size = measure(patch)
    binary = [plain(file.path, 80) for file in size.files if file.binary]
    if binary:
        more = f" and {len(binary) - 1} more" if len(binary) > 1 else ""
        return f"`{binary[0]}`{more} is not UTF-8 text, and what cannot be shown cannot be approved"
    if size.lines > PATCH_LINES:
        return f"{size.lines:,} changed lines are more than can be shown whole ({PATCH_LINES:,})"
    return "its lines are too long to be shown whole"


def _refusal_text(why: str) -> str:
    return f"its change may not be sent: {why}"


def _rules(found: Iterable[Objection]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(objection.rule for objection in found))
