"""Publishes one mission's texts now, outside the schedule, with the steps a cycle would take.

Each step is carried out as in a cycle: judged by every rule, intended before it is sent, stored with its receipts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from ralph_mission.errors import Lost
from ralph_mission.mission import conclude
from ralph_mission.mission.commit import Journal
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision, is_stopped
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.approval import APPROVAL_RULES
from ralph_mission.mission.lifecycle.facts import facts_about
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.lifecycle.table import PUBLISHED, interpret_facts
from ralph_mission.mission.memory import learning
from ralph_mission.mission.memory.text import trim_memory
from ralph_mission.mission.model.cycle import MissionFacts, MissionStep, StepContext
from ralph_mission.mission.model.effects import Publish, Receipt
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.ledger import SETTLED, MemoryBatch, OpenState, Record
from ralph_mission.mission.model.mission import Action, Mission, Status, Verdict
from ralph_mission.mission.model.proposal import Decision
from ralph_mission.mission.policy import LIFTED_BY
from ralph_mission.mission.publishing import posting
from ralph_mission.mission.publishing.posting import REVIEW
from ralph_mission.mission.transaction import (
    BRIEF,
    Busy,
    ExecutionRequest,
    ExecutionResult,
    Open,
    Receipts,
    Sleep,
    Transaction,
    execute_plan,
    run_transaction,
)
from ralph_mission.values import dataclass

STEPS = 4
"""The most steps taken: the texts, the receipts, and what may precede them."""
GO_ON = "`ralph resume`, or RALPH_PAUSED"
FAILED = ("failed", "refused", "unknown", "unfinished")
"""Outcomes with exit code 1; all others have 0."""


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The result. `outcome`: published, nothing (nothing to do, see `reason`), asked (the text was edited and needs
    approval again), held (by a rule), rejected, paused, lost (another runner is at it), refused (by a rule), unfinished
    (a network may be tried again later), failed, unknown (a network's answer is in doubt).

    `receipts`: each network's answer in this run.
    """

    outcome: str
    issue: int
    reason: str = ""
    receipts: tuple[tuple[str, Receipt], ...] = ()

    @property
    def code(self) -> int:
        """The exit code."""
        return int(self.outcome in FAILED)


@dataclass(frozen=True, slots=True)
class PublishSetup:
    """What publishing needs. `say` reports to a person."""

    opened: Open
    sleep: Sleep
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Course:
    """The progress: the mission, the networks' answers, and why it stopped, if it did."""

    mission: Mission
    receipts: tuple[tuple[str, Receipt], ...] = ()
    stopped: str = ""
    reason: str = ""


def publish_once(publisher: PublishSetup, number: int) -> PublishReport:
    """Publish what issue `number` shows, if it is approved. Raises UserError, or Missing if there is no such issue."""
    try:
        return run_transaction(publisher.opened, publisher.sleep, partial(_publish, number), BRIEF)
    except Busy as busy:
        return PublishReport("lost", number, f"{busy.what}; {busy.next_step}")


def publish_lines(report: PublishReport) -> Iterator[str]:
    """The report for people."""
    yield f"#{report.issue}: {report.outcome}" + (f": {report.reason}" if report.reason else "")
    for network, receipt in report.receipts:
        detail = receipt.url if receipt.status in SETTLED else receipt.explanation
        yield f"{network}: {receipt.status}{f', {detail}' if detail else ''}"


# --- the steps ------------------------------------------------------------------------


def _publish(number: int, tx: Transaction) -> PublishReport:
    mission = next((one for one in tx.state.missions if one.issue == number), None)
    if mission is None or mission.action is not Action.PUBLISH:
        return PublishReport("nothing", number, _why_nothing(tx, number))
    course = _Course(mission)
    for _ in range(STEPS):
        if course.stopped or course.mission.status.ended:
            break
        moved = _next(tx, course)
        if moved is None:
            break
        course, tx = moved, _again(tx)
    return _publish_report(number, course)


def _why_nothing(tx: Transaction, number: int) -> str:
    issue = tx.ports.forge.issue(number)
    if PUBLISHED in issue.labels:
        return "it was published already"
    if REVIEW in issue.labels:
        return "memory was recovered since: publish it by hand, then close the issue as completed"
    return "it shows no text that waits to be published"


def _next(tx: Transaction, course: _Course) -> _Course | None:
    """Take one step; None if nothing is left to do now."""
    if is_stopped(tx.ports):
        return replace(course, stopped="paused", reason=GO_ON)
    mission, facts, records = _reread(tx, course.mission)
    reading = interpret_facts(mission, facts, tx.now)
    steps = next_step(mission, facts, reading, _step_context(tx, records))
    planned = [step for step in steps if step.proposal]
    if not planned:
        return None if not steps else _waits(course, steps[-1])
    return _carry(tx, course, planned[-1], records)


def _waits(course: _Course, last: MissionStep) -> _Course:
    return replace(course, mission=last.mission, stopped="nothing", reason=last.mission.next_step)


def _reread(tx: Transaction, mission: Mission) -> tuple[Mission, MissionFacts, dict[str, Record]]:
    """Read the mission, the forge's facts about it, and its records."""
    forge = tx.ports.forge
    forge.forget_lists()
    facts = facts_about(tx.ports, tx.settings, mission, tx.state)
    known = ownership.read_successors([ownership.of_remark(mission.key)], tx.records)
    remark = ownership.own_remark(mission, known, facts.issue, forge.identity().id)
    keys = {*mission.pending, *mission.members}
    return replace(mission, comment=remark), facts, {**known, **tx.records(keys)}


def _step_context(tx: Transaction, records: Mapping[str, Record]) -> StepContext:
    settings = tx.settings
    default, cycle = tx.ports.forge.default_branch(), tx.memory.header.cycle
    return StepContext(
        cycle, tx.now, settings.owners, settings.merge_method, records, default, settings.limits
    )  # fmt: skip  # one value


def _carry(tx: Transaction, course: _Course, step_: MissionStep, records: Mapping[str, Record]) -> _Course:
    plan, issue = step_.proposal, course.mission.issue
    assert plan is not None
    keep = partial(_keep_mission, tx, step_, records)
    execution = execute_plan(tx, ExecutionRequest(f"publish-{issue}", f"publishing of #{issue}", keep=keep), plan)
    if execution.refused:
        return _held_back(course, execution)
    answers = {effect.key: effect.network for effect in plan.effects if isinstance(effect, Publish)}
    new = tuple((answers[key], receipt) for key, receipt in execution.receipts.items() if key in answers)
    moved = _move_mission(step_, execution.receipts, execution.cut)
    moved_on = replace(course, mission=moved, receipts=(*course.receipts, *new))
    return replace(moved_on, stopped="paused", reason=GO_ON) if execution.cut else moved_on


def _held_back(course: _Course, execution: ExecutionResult) -> _Course:
    """Rules objected. An approval that does not count is not a failure, nor is having to wait."""
    rules, verdict = execution.decision.rules, execution.decision.verdict
    kind = "held" if verdict is Verdict.HOLD else "paused" if "paused" in rules else "refused"
    if verdict is Verdict.DENY and APPROVAL_RULES.issuperset(rules):
        kind = "nothing"
    waits = "; ".join(f"{rule}: waits for {LIFTED_BY.get(rule, 'a person')}" for rule in rules)
    return replace(course, stopped=kind, reason=waits)


def _again(tx: Transaction) -> Transaction:
    """Memory after what was just written. Raises Lost if another runner committed first."""
    past = tx.store.recall()
    if past is None or past.state.claim is not None:
        raise Lost
    return replace(tx, past=past, now=tx.ports.clock.now())


# --- what is written down ---------------------------------------------------------------


def _act(step_: MissionStep, receipts: Receipts, cut: bool) -> ExecutedDecision:
    assert step_.proposal is not None
    applied = (
        AppliedEffect(effect, receipts[effect.key]) for effect in step_.proposal.effects if effect.key in receipts
    )
    return ExecutedDecision(Decision(step_.proposal, Verdict.ALLOW), tuple(applied), cut)


def _move_mission(step_: MissionStep, receipts: Receipts, cut: bool = False) -> Mission:
    return conclude.after(_act(step_, receipts, cut))


def _keep_mission(
    tx: Transaction, step_: MissionStep, records: Mapping[str, Record], batch: MemoryBatch, receipts: Receipts | None
) -> MemoryBatch:
    """Store the mission, the posts and the lesson, in the commit of the receipts."""
    assert step_.proposal is not None and step_.proposal.interim is not None
    if receipts is None:
        return replace(batch, state=_with(batch.state, step_.proposal.interim))
    state = _with(batch.state, _move_mission(step_, receipts))
    over = learning.ended_missions(state.missions, tx.now)
    going = tuple(mission for mission in state.missions if mission not in over)
    memory, overflow = trim_memory(learning.update_missions(batch.memory, going, over))
    out = tuple(_new_posts(tx, step_, receipts))
    posts = posting.remember_posts(state.posted, out)
    archive = ((f"{tx.now:%Y-%m}", overflow),) if overflow else ()
    batch = replace(batch, memory=memory, state=replace(state, missions=going, posted=posts), archive=archive)
    if batch.journal and isinstance(batch.journal[1], Journal):
        batch = replace(batch, journal=(batch.journal[0], replace(batch.journal[1], posts=out)))
    return _count_lesson(batch, step_, records, receipts)


def _with(state: OpenState, mission: Mission) -> OpenState:
    missions = tuple(mission if one.id == mission.id else one for one in state.missions)
    return replace(state, missions=missions)


def _new_posts(tx: Transaction, step_: MissionStep, receipts: Receipts) -> Iterator[Posted]:
    assert step_.proposal is not None
    for effect in step_.proposal.effects:
        receipt = receipts.get(effect.key)
        if receipt and (found := posting.to_posted(effect, receipt, step_.proposal.kind, tx.now)):
            yield found


def _count_lesson(
    batch: MemoryBatch, step_: MissionStep, records: Mapping[str, Record], receipts: Receipts
) -> MemoryBatch:
    """Count the lesson once, and store it in the journal, from which it can be recounted."""
    if not step_.lesson or not step_.lesson.members or not _act(step_, receipts, False).complete:
        return batch
    lessons = (step_.lesson,)
    tallies = learning.learn(dict(batch.state.acceptance), lessons, records)
    state = replace(batch.state, acceptance=tuple(sorted(tallies.items())))
    learned = (*batch.records, *learning.apply_lessons(lessons, records))
    return replace(batch, state=state, records=learned, journal=_name_lesson(batch.journal, step_, records))


def _name_lesson(
    journal: tuple[str, object] | None, step_: MissionStep, records: Mapping[str, Record]
) -> tuple[str, object] | None:
    if journal is None or not isinstance(journal[1], Journal) or not step_.proposal or not step_.lesson:
        return journal
    plan = step_.proposal
    approvers = ((plan.key, plan.approver),) if plan.approver else ()
    lessons = (step_.lesson,)
    counted = learning.worth_reporting(lessons, records)
    return journal[0], replace(journal[1], approvers=approvers, lessons=lessons, counted=counted)


# --- the report -------------------------------------------------------------------------


def _publish_report(number: int, course: _Course) -> PublishReport:
    receipts, mission = course.receipts, course.mission
    if mission.status is Status.COMPLETED and not course.stopped:
        doubt = any(receipt.status == "unknown" for _, receipt in receipts)
        reason = "it is unknown whether one of them arrived: check there, then `ralph journal resolve`"
        return PublishReport("unknown" if doubt else "published", number, reason if doubt else "", receipts)
    if mission.status is Status.REJECTED:
        return PublishReport("rejected", number, mission.outcome, receipts)
    if any(receipt.status == "failed" and not receipt.not_attempted for _, receipt in receipts):
        outcome = "unfinished" if mission.status is Status.EXECUTING else "failed"
        return PublishReport(outcome, number, mission.next_step, receipts)
    if course.stopped:
        return PublishReport(course.stopped, number, course.reason, receipts)
    return PublishReport(
        "asked" if mission.status is Status.DISCOVERED else "nothing", number, mission.next_step, receipts
    )
