"""One mission's texts published now, outside of the schedule: the steps that a cycle would take of it, and no others.

Each is carried out as in a cycle: judged by every rule, intended before it is sent, written down with its receipts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ralph_mission.flows.carrying import Carried, Errand, Receipts, carry
from ralph_mission.flows.strokes import BRIEF, Busy, Open, Sleep, Stroke, stroke
from ralph_mission.mission import belonging, concluding, posting, reflect, succession
from ralph_mission.mission.acting import Act, Deed, stopped
from ralph_mission.mission.chronicle import Journal
from ralph_mission.mission.content_steps import REVIEW
from ralph_mission.mission.effects import Publish, Receipt
from ralph_mission.mission.facts import facts_about
from ralph_mission.mission.ledger import NOT_ATTEMPTED, SETTLED, Batch, OpenState, Record
from ralph_mission.mission.lifecycle import PUBLISHED, Facts, read
from ralph_mission.mission.memory_text import trimmed
from ralph_mission.mission.model import Action, Mission, Status, Verdict
from ralph_mission.mission.posts import Posted
from ralph_mission.mission.proposal import Decision
from ralph_mission.mission.rules import LIFTED_BY
from ralph_mission.mission.step_parts import Circumstances, Step
from ralph_mission.mission.steps import step
from ralph_mission.trouble import Lost

STEPS = 4
"""Steps taken at most: the texts, the receipts, and what may come before them."""
GO_ON = "`ralph resume`, or RALPH_PAUSED"
FAILED = ("failed", "refused", "unknown", "unfinished")
"""Outcomes with exit code 1; every other one ends with 0."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. `outcome`: published, nothing (nothing to do, `reason` says why), asked (the text was edited, a
    yes to it is waited for), held (a rule lets it wait), rejected, paused, lost (somebody else is at it), refused (by a
    rule), unfinished (a network may be tried again later), failed, unknown (nobody can tell what one of them did).

    `receipts`: what each network answered in this run.
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
class Publisher:
    """What the flow needs. `say` tells a person."""

    opened: Open
    sleep: Sleep
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Course:
    """How far it came: the mission as it stands, what networks answered, and why it stopped, if it had to."""

    mission: Mission
    receipts: tuple[tuple[str, Receipt], ...] = ()
    stopped: str = ""
    reason: str = ""


def once(publisher: Publisher, number: int) -> Report:
    """Publish what issue `number` shows, if somebody who may said yes to it. Raises Trouble, Missing for no issue."""
    try:
        return stroke(publisher.opened, publisher.sleep, partial(_publish, number), BRIEF)
    except Busy as busy:
        return Report("lost", number, f"{busy.what}; {busy.next_step}")


def lines(report: Report) -> Iterator[str]:
    """The report for people."""
    yield f"#{report.issue}: {report.outcome}" + (f": {report.reason}" if report.reason else "")
    for network, receipt in report.receipts:
        said = receipt.url if receipt.status in SETTLED else receipt.detail
        yield f"{network}: {receipt.status}{f', {said}' if said else ''}"


# --- the steps ------------------------------------------------------------------------


def _publish(number: int, this: Stroke) -> Report:
    mission = next((one for one in this.state.missions if one.issue == number), None)
    if mission is None or mission.action is not Action.PUBLISH:
        return Report("nothing", number, _why_nothing(this, number))
    course = _Course(mission)
    for _ in range(STEPS):
        if course.stopped or course.mission.status in (Status.COMPLETED, Status.REJECTED):
            break
        moved = _next(this, course)
        if moved is None:
            break
        course, this = moved, _again(this)
    return _told(number, course)


def _why_nothing(this: Stroke, number: int) -> str:
    issue = this.ports.forge.issue(number)
    if PUBLISHED in issue.labels:
        return "it was published already"
    if REVIEW in issue.labels:
        return "memory was recovered since: publish it by hand, then close the issue as completed"
    return "it shows no text that waits to be published"


def _next(this: Stroke, course: _Course) -> _Course | None:
    """One step further; None when there is nothing more to do now."""
    if stopped(this.ports):
        return replace(course, stopped="paused", reason=GO_ON)
    mission, facts, records = _look(this, course.mission)
    reading = read(mission, facts, this.now)
    steps = step(mission, facts, reading, _around(this, records))
    planned = [one for one in steps if one.proposal]
    if not planned:
        return None if not steps else _waits(course, steps[-1])
    return _carry(this, course, planned[-1], records)


def _waits(course: _Course, last: Step) -> _Course:
    return replace(course, mission=last.mission, stopped="nothing", reason=last.mission.next_step)


def _look(this: Stroke, mission: Mission) -> tuple[Mission, Facts, dict[str, Record]]:
    """The mission as the forge bears it out, what is known of it there, and what the ledger says."""
    forge, store = this.ports.forge, this.house.store
    forge.look_anew()
    facts = facts_about(this.ports, this.house.charter, mission, this.state)
    known = succession.read([succession.of_remark(mission.key)], lambda keys: store.records(keys, this.past))
    remark = belonging.own_remark(mission, known, facts.issue, forge.identity().id)
    keys = {*mission.pending, *mission.members}
    return replace(mission, comment=remark), facts, {**known, **store.records(keys, this.past)}


def _around(this: Stroke, records: Mapping[str, Record]) -> Circumstances:
    charter = this.house.charter
    default, cycle = this.ports.forge.default_branch(), this.memory.header.cycle
    return Circumstances(
        cycle, this.now, charter.owners, charter.merge_method, records, default, charter.limits
    )  # fmt: skip  # one value


def _carry(this: Stroke, course: _Course, step_: Step, records: Mapping[str, Record]) -> _Course:
    plan, issue = step_.proposal, course.mission.issue
    assert plan is not None
    keep = partial(_kept, this, step_, records)
    carried = carry(this, Errand(f"publish-{issue}", f"publishing of #{issue}", keep=keep), plan)
    if carried.refused:
        return _held_back(course, carried)
    answers = {effect.key: effect.network for effect in plan.effects if isinstance(effect, Publish)}
    new = tuple((answers[key], receipt) for key, receipt in carried.receipts.items() if key in answers)
    moved = _moved(step_, carried.receipts, carried.cut)
    told = replace(course, mission=moved, receipts=(*course.receipts, *new))
    return replace(told, stopped="paused", reason=GO_ON) if carried.cut else told


def _held_back(course: _Course, carried: Carried) -> _Course:
    """Rules spoke against it: a yes that does not count is no failure of anybody's, nor is what only has to wait."""
    rules, verdict = carried.decision.rules, carried.decision.verdict
    kind = "held" if verdict is Verdict.HOLD else "paused" if "paused" in rules else "refused"
    if verdict is Verdict.DENY and all(rule.startswith("approval-") for rule in rules):
        kind = "nothing"
    waits = "; ".join(f"{rule}: waits for {LIFTED_BY.get(rule, 'a person')}" for rule in rules)
    return replace(course, stopped=kind, reason=waits)


def _again(this: Stroke) -> Stroke:
    """Memory as it stands after what was just written. Raises Lost when somebody else was there first."""
    past = this.house.store.recall()
    if past is None or past.state.claim is not None:
        raise Lost
    return replace(this, past=past, now=this.ports.clock.now())


# --- what is written down ---------------------------------------------------------------


def _act(step_: Step, receipts: Receipts, cut: bool) -> Act:
    assert step_.proposal is not None
    deeds = (Deed(effect, receipts[effect.key]) for effect in step_.proposal.effects if effect.key in receipts)
    return Act(Decision(step_.proposal, Verdict.ALLOW), tuple(deeds), cut)


def _moved(step_: Step, receipts: Receipts, cut: bool = False) -> Mission:
    return concluding.after(_act(step_, receipts, cut))


def _kept(this: Stroke, step_: Step, records: Mapping[str, Record], batch: Batch, receipts: Receipts | None) -> Batch:
    """The mission where it stands, what was said and what a person taught by it, all in the commit of the receipts."""
    assert step_.proposal is not None and step_.proposal.interim is not None
    if receipts is None:
        return replace(batch, state=_with(batch.state, step_.proposal.interim))
    state = _with(batch.state, _moved(step_, receipts))
    over = reflect.ended(state.missions, this.now)
    going = tuple(mission for mission in state.missions if mission not in over)
    memory, overflow = trimmed(reflect.retold(batch.memory, going, over))
    out = tuple(_said(this, step_, receipts))
    posts = posting.remembered(state.posted, out)
    archive = ((f"{this.now:%Y-%m}", overflow),) if overflow else ()
    batch = replace(batch, memory=memory, state=replace(state, missions=going, posted=posts), archive=archive)
    if batch.journal and isinstance(batch.journal[1], Journal):
        batch = replace(batch, journal=(batch.journal[0], replace(batch.journal[1], posts=out)))
    return _taught(batch, step_, records, receipts)


def _with(state: OpenState, mission: Mission) -> OpenState:
    missions = tuple(mission if one.id == mission.id else one for one in state.missions)
    return replace(state, missions=missions)


def _said(this: Stroke, step_: Step, receipts: Receipts) -> Iterator[Posted]:
    assert step_.proposal is not None
    for effect in step_.proposal.effects:
        receipt = receipts.get(effect.key)
        if receipt and (found := posting.posted(effect, receipt, step_.proposal.kind, this.now)):
            yield found


def _taught(batch: Batch, step_: Step, records: Mapping[str, Record], receipts: Receipts) -> Batch:
    """The lesson counted, once, and named in the journal, from which it can be counted again."""
    if not step_.lesson or not step_.lesson.members or not _act(step_, receipts, False).complete:
        return batch
    lessons = (step_.lesson,)
    tallies = reflect.learn(dict(batch.state.acceptance), lessons, records)
    state = replace(batch.state, acceptance=tuple(sorted(tallies.items())))
    learned = (*batch.records, *reflect.taught(lessons, records))
    return replace(batch, state=state, records=learned, journal=_signed(batch.journal, step_, records))


def _signed(
    journal: tuple[str, object] | None, step_: Step, records: Mapping[str, Record]
) -> tuple[str, object] | None:
    if journal is None or not isinstance(journal[1], Journal) or not step_.proposal or not step_.lesson:
        return journal
    plan = step_.proposal
    approvers = ((plan.key, plan.approver),) if plan.approver else ()
    lessons = (step_.lesson,)
    counted = reflect.telling(lessons, records)
    return journal[0], replace(journal[1], approvers=approvers, lessons=lessons, counted=counted)


# --- what is told -----------------------------------------------------------------------


def _told(number: int, course: _Course) -> Report:
    receipts, mission = course.receipts, course.mission
    if mission.status is Status.COMPLETED and not course.stopped:
        doubt = any(receipt.status == "unknown" for _, receipt in receipts)
        reason = "nobody can tell whether one of them arrived: look there, then `ralph journal resolve`"
        return Report("unknown" if doubt else "published", number, reason if doubt else "", receipts)
    if mission.status is Status.REJECTED:
        return Report("rejected", number, mission.outcome, receipts)
    if any(receipt.status == "failed" and not receipt.detail.startswith(NOT_ATTEMPTED) for _, receipt in receipts):
        outcome = "unfinished" if mission.status is Status.EXECUTING else "failed"
        return Report(outcome, number, mission.next_step, receipts)
    if course.stopped:
        return Report(course.stopped, number, course.reason, receipts)
    return Report("asked" if mission.status is Status.DISCOVERED else "nothing", number, mission.next_step, receipts)
