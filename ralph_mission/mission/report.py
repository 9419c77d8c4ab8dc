"""Builds a cycle's report for machines and its summary for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import decide
from ralph_mission.mission.conclude import Conclusion
from ralph_mission.mission.execute import AppliedEffect, ExecutedDecision
from ralph_mission.mission.findings import identity, ranking
from ralph_mission.mission.lifecycle.waiting import (
    How,
    describe_held,
    describe_red,
    find_waiting,
    needs_person,
    waits_for_agent,
)
from ralph_mission.mission.model.cycle import (
    REPORT_SCHEMA,
    Answer,
    CycleDecisions,
    CycleReport,
    CycleSummary,
    DecisionLine,
    EffectLine,
    FindingLine,
    MissionLine,
    ObserverLine,
    Outcome,
    PostLine,
    Situation,
    ThreadLine,
    Trigger,
)
from ralph_mission.mission.model.effects import OpenIssue, OpenPull, Publish, PushBranch, Receipt, kind_of
from ralph_mission.mission.model.ledger import SETTLED, EffectRecord, MemorySnapshot, OpenState, Record
from ralph_mission.mission.model.mission import (
    Action,
    FailureReason,
    Finding,
    Mission,
    Observation,
    Status,
    Urgency,
    Usage,
    Verdict,
)
from ralph_mission.mission.model.proposal import KINDS, Decision, lookup
from ralph_mission.mission.policy import LIFTED_BY_APPROVAL, name_needs
from ralph_mission.mission.publishing import posting
from ralph_mission.safety.patch import unified_diff
from ralph_mission.words import count_noun, stamp


def lines(acts: Iterable[ExecutedDecision]) -> Iterable[PostLine]:
    """Every post with its exact parts and its result."""
    for act in acts:
        for item in act.applied:
            if isinstance(item.effect, Publish):
                post, receipt = item.effect.post, item.receipt
                yield PostLine(post.network, receipt.status, receipt.url, post.parts, post.lengths, post.limit)


def remarks(effect: Publish, receipt: Receipt, situation: Situation) -> Iterable[str]:
    """What a person must know about a post that was not sent. Reported once, when it happens."""
    if receipt.status == "unknown":
        yield f"{effect.network}: it is unknown whether the post arrived: {receipt.detail}"
    if receipt.status in SETTLED and (missing := _missing(effect, receipt)):
        yield f"{effect.network}: not all of it was posted, and the rest is not tried again: {missing}"
    if receipt.status != "failed" or receipt.not_attempted:
        return
    (record,) = posting.after((effect,), situation.records, {effect.key: receipt}, situation.now).values()
    if posting.is_left(record, situation.now):
        yield f"{effect.network}: not posted yet, tried again in the next cycle: {receipt.detail}"
    else:
        yield f"{effect.network}: not posted, and not tried again: {receipt.detail}"


def _missing(effect: Publish, receipt: Receipt) -> str:
    """A network's reason for the unsent parts of a thread; "" if all were sent."""
    words = " ".join(word for word in receipt.detail.split() if not word.startswith("id="))
    return words if len(effect.post.parts) > 1 else ""


ANSWERS: tuple[Answer, ...] = ("done", "waits", "refused")  # the worst last
LATE = 15 * 60  # seconds of drift worth reporting


def report_skipped(
    outcome: Outcome, past: MemorySnapshot | None, trigger: Trigger, staged: bool, started: datetime, finished: datetime
) -> tuple[CycleReport, CycleSummary]:
    """Report a cycle that did not start."""
    header = past.memory.header if past else None
    missions = past.state.missions if past else ()
    report = CycleReport(
        REPORT_SCHEMA,
        header.cycle if header else 0,
        "",
        outcome,
        trigger,
        staged,
        started,
        finished,
        (),
        (),
        _missions(missions),
        (),
        (),
        header.urgency if header else Urgency.LOW,
        header.next_due_at if header else None,
        Usage(),
    )
    return report, CycleSummary(remarks=(_why_left(outcome, report.next_due_at, staged),))


def _why_left(outcome: Outcome, due: datetime | None, staged: bool) -> str:
    if outcome == "not_due":
        if due is None:
            return "this cycle has run already"
        command = f"ralph cycle{' --staged' if staged else ''} --force"
        return f"not due before {stamp(due)}: nothing was done. To run it anyway: {command}"
    return {
        "paused": "paused: nothing was done. To continue: `ralph resume` (or unset RALPH_PAUSED)",
        "lost": "another runner holds this cycle; if it is certainly dead: `ralph memory recover --take-over`",
    }.get(outcome, outcome)


def report_cycle(
    situation: Situation,
    decided: CycleDecisions,
    acts: Sequence[ExecutedDecision],
    conclusion: Conclusion,
    settled: Sequence[AppliedEffect],
    trigger: Trigger,
    staged: bool,
    finished: datetime,
    how: How,
) -> tuple[CycleReport, CycleSummary]:
    """Report a cycle that ran."""
    report = CycleReport(
        schema_version=REPORT_SCHEMA,
        cycle=situation.cycle,
        cycle_id=situation.cycle_id,
        outcome="paused" if any(act.cut for act in acts) else "failed" if refusal(acts) else "done",
        trigger=trigger,
        staged=staged,
        started_at=situation.now,
        finished_at=finished,
        observers=_observers(situation.observations),
        findings=_findings(situation, situation.findings),
        missions=_missions((*conclusion.missions, *conclusion.ended)),
        decisions=tuple(_decision(decision) for decision in decided.decisions),
        effects=(*_settled_lines(settled), *_effects(acts)),
        urgency=conclusion.header.urgency,
        next_due_at=conclusion.header.next_due_at,
        usage=situation.usage,
    )
    return report, _cycle_summary(situation, decided, acts, conclusion, how, staged)


def report_wake(account: tuple[CycleReport, CycleSummary], receipt: Receipt) -> tuple[CycleReport, CycleSummary]:
    """Add the wake that was requested at the cycle's end."""
    report, summary = account
    line = EffectLine(receipt.key, "wake", "dispatch", receipt.status, receipt.url)
    report = replace(report, effects=(*report.effects, line))
    if receipt.status == "done":
        return report, summary
    return report, replace(
        summary, remarks=(*summary.remarks, f"the next cycle could not be requested: {receipt.detail}")
    )


def _observers(observations: Iterable[Observation]) -> tuple[ObserverLine, ...]:
    return tuple(
        ObserverLine(s.name, s.status, len(s.signals), round(s.seconds, 3), s.detail, s.unchecked) for s in observations
    )


def _findings(situation: Situation, findings: Iterable[Finding]) -> tuple[FindingLine, ...]:
    scores = {member: ranked.score for ranked in situation.plan.ranked_findings for member in ranked.members}
    return tuple(
        FindingLine(
            f.fingerprint,
            f.signal.occurrence,
            f.kind,
            f.title,
            scores.get(f.fingerprint, 0.0),
            not decide.still_to_handle((f,), situation),
        )
        for f in findings
    )


def _missions(missions: Iterable[Mission]) -> tuple[MissionLine, ...]:
    return tuple(
        MissionLine(m.id, m.title, m.status, m.issue or None, m.pull or None, m.started_cycle) for m in missions
    )


def _decision(decision: Decision) -> DecisionLine:
    proposal = decision.proposal
    return DecisionLine(proposal.key, proposal.action, proposal.kind, proposal.tier, decision.verdict, decision.rules)


def _settled_lines(applied: Iterable[AppliedEffect]) -> tuple[EffectLine, ...]:
    return tuple(
        EffectLine(d.effect.key, "reconcile", kind_of(d.effect), d.receipt.status, d.receipt.url) for d in applied
    )


def _effects(acts: Iterable[ExecutedDecision]) -> tuple[EffectLine, ...]:
    return tuple(
        EffectLine(
            item.effect.key, act.decision.proposal.action, kind_of(item.effect), item.receipt.status, item.receipt.url
        )
        for act in acts
        for item in act.applied
    )


# --- for people -----------------------------------------------------------------------


def _cycle_summary(
    situation: Situation,
    decided: CycleDecisions,
    acts: Sequence[ExecutedDecision],
    conclusion: Conclusion,
    how: How,
    staged: bool,
) -> CycleSummary:
    newest = sorted(conclusion.missions, key=lambda one: one.started_cycle != situation.cycle)  # what was just opened
    waiting = find_waiting(newest, how)
    refusals = [decision for decision in decided.decisions if decision.verdict is not Verdict.ALLOW]
    for_people = [decision for decision in refusals if LIFTED_BY_APPROVAL.intersection(decision.rules)]
    return CycleSummary(
        why=(
            *dict.fromkeys(_why(act) for act in acts if act.decision.proposal.action is not Action.MONITOR),
            *(f"not proposed: {refused}" for refused in situation.refused),
        ),
        held=(
            *describe_held(situation.state.held),
            *map(_held_line, refusals),
            *decide.conflicting_fixes(situation),
        ),
        waiting=waiting,
        remarks=tuple(_remarks(situation, acts, conclusion)),
        threads=tuple(_opened(acts, staged)),
        posts=tuple(lines(acts)),
        watched=tuple(
            member.title
            for act in acts
            if act.complete and act.decision.proposal.monitor
            for member in act.decision.proposal.members
        ),
        refusal=refusal(acts),
        late=conclusion.header.drift_seconds,
        taken=sum(map(_was_done, acts)),
        subjects=tuple((item.effect.key, act.decision.proposal.title) for act in acts for item in act.applied),
        answers=tuple(_answers(decided.decisions, {act.decision.proposal.key: act for act in acts}).items()),
        paused=conclusion.header.paused,
        needs_person=needs_person(
            waiting, situation.state.unknown, decide.red_base(situation).checks, (*situation.state.held, *for_people)
        ),
    )


def _was_done(act: ExecutedDecision) -> bool:
    """Whether all of it was done for certain."""
    return act.complete and all(item.receipt.status in SETTLED for item in act.applied)


def _answers(decisions: Iterable[Decision], acts: Mapping[str, ExecutedDecision]) -> dict[int, Answer]:
    """What came of the steps of known missions, by issue and pull request; of several steps, the worst."""
    found: dict[int, Answer] = {}
    for decision in decisions:
        mission, act = decision.proposal.before, acts.get(decision.proposal.key)
        answer: Answer = "done" if act and _was_done(act) else "waits"
        answer = "refused" if decision.verdict is Verdict.DENY else answer
        for number in {mission.issue, mission.pull} - {0} if mission else ():
            found[number] = max(found.get(number, answer), answer, key=ANSWERS.index)
    return found


def _opened(acts: Iterable[ExecutedDecision], staged: bool) -> Iterator[ThreadLine]:
    for act in acts:
        for effect in (item.effect for item in act.applied):
            if isinstance(effect, OpenIssue | OpenPull):
                patch = act.decision.proposal.patch if staged and isinstance(effect, OpenPull) else None
                yield ThreadLine(effect.key, effect.title, effect.body, unified_diff(patch) if patch else "")


def refusal(acts: Sequence[ExecutedDecision]) -> str:
    """The reason, if everything that was tried was refused and only a person can change that; else "".

    A branch without a pull request does not count.
    """
    tried = (item for act in acts for item in act.applied if act.complete or not isinstance(item.effect, PushBranch))
    receipts = [item.receipt for item in tried if not item.receipt.not_attempted]
    refused = [r.detail for r in receipts if r.status == "failed" and r.reason is FailureReason.NEEDS_PERSON]
    return refused[0] if refused and len(refused) == len(receipts) else ""


def _why(act: ExecutedDecision) -> str:
    proposal = act.decision.proposal
    if proposal.why:
        return f"{proposal.title}: {proposal.why}"
    if proposal.after is None:
        return proposal.title
    if not act.complete:
        return f"{proposal.title} is not {_status_words(proposal.after)} yet: {_why_incomplete(act)}"
    return f"{proposal.title} is {_status_words(proposal.after)}: {proposal.after.last_action}"


def _why_incomplete(act: ExecutedDecision) -> str:
    if act.cut:
        return "stopped by the kill switch"
    stopped = next(item for item in act.applied if item.stops)
    return _in_vain(stopped)


def _in_vain(item: AppliedEffect) -> str:
    doubt = "could not" if item.receipt.status == "failed" else "in doubt whether it did"
    return f"{doubt} {_ACTIONS[kind_of(item.effect)]}: {item.receipt.explanation}"


_ACTIONS = {
    "open_issue": "open its issue",
    "push_branch": "push its branch",
    "open_pull": "open its pull request",
    "merge_pull": "merge its pull request",
    "leave_queue": "take it out of the merge queue",
    "close_issue": "close its issue",
    "close_pull": "close its pull request",
    "comment": "comment",
    "edit_comment": "edit its comment",
    "label": "set its labels",
    "review": "review it",
    "edit_review": "edit its review",
    "publish": "post",
}
"""What could not be done, in words."""


def _status_words(mission: Mission) -> str:
    return mission.status.replace("_", " ").lower()


def _held_line(decision: Decision) -> str:
    word = "waits for" if decision.verdict is Verdict.HOLD else "refused, needs"
    return f"{decision.proposal.title}: {word} {name_needs(decision.rules)} ({', '.join(decision.rules)})"


def _remarks(situation: Situation, acts: Sequence[ExecutedDecision], conclusion: Conclusion) -> Iterable[str]:
    yield from describe_red(decide.red_base(situation))
    if conclusion.header.drift_seconds >= LATE:
        yield f"this cycle started {conclusion.header.drift_seconds // 60} minutes after it was due"
    planned = {mission.id for mission in situation.state.missions if mission.status is Status.PLANNED}
    for mission in conclusion.missions:
        if mission.status is Status.PLANNED and mission.id not in planned and waits_for_agent(mission):
            yield f"#{mission.thread} is planned: an agent starts on it in the next cycle"
    for result in situation.made:
        cost = f", ${result.usage.cost_usd:.2f}" if result.usage.cost_usd else ""
        why = f": {result.reason}" if result.reason else ""
        sessions = count_noun(result.sessions, "session")
        yield f"an agent worked on mission {result.mission}, {sessions}{cost}: {result.outcome}{why}"
    for kind in decide.silent_kinds(situation):
        yield f"people refuse {lookup(kind).plural}, so no more are proposed: {ranking.bring_back(kind)}"
    for line in identity.parse_bans(situation.memory.do_not_repeat, frozenset(KINDS))[1]:
        yield f"Do Not Repeat: not understood, so ignored: {line}"
    for act in acts:
        for item in act.applied:
            if isinstance(item.effect, Publish):
                yield from remarks(item.effect, item.receipt, situation)
            elif item.receipt.status in ("failed", "unknown"):
                yield _in_vain(item)
    if any(act.cut for act in acts):
        yield "stopped half-way by the kill switch; what was intended is settled by the next cycle"
    if decide.is_quiet_period(situation) and (silent := decide.findings_fully_posted(situation, {})):
        yield f"memory was recovered: what may have been reported before is not reported again ({len(silent)} findings)"
    yield from unknown(situation.state, acts, situation.records)
    if situation.plan.remark:
        yield situation.plan.remark


def unknown(
    state: OpenState, acts: Sequence[ExecutedDecision] = (), records: Mapping[str, Record] = {}
) -> Iterable[str]:
    """Effects of which only a person can say whether they happened."""
    now = {d.receipt.key: d.effect for act in acts for d in act.applied if d.receipt.status == "unknown"}
    for key in dict.fromkeys((*state.unknown, *now)):
        record = records.get(key)
        effect = now.get(key) or (record.effect if isinstance(record, EffectRecord) else None)
        settle = f"`ralph journal resolve {key} --sent|--not-sent` (an issue's with --number N)"
        if isinstance(effect, Publish):
            settle = f"`ralph journal resolve {key} --sent|--not-sent`"
            key = f"the post on {effect.network} ({effect.post.parts[0][:40]}…)"
        yield f"it is unknown whether {key} was sent: check, then {settle}"
