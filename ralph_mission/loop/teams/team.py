"""Team: a Lead that plans and delegates, teammates with their own files, a Tester, bounded fix loops.

Teammates work in parallel, each on their first ready task. Changes outside a teammate's files are reverted and reported
to the Lead, as are conflicts: the Lead decides how to continue. The Tester's issues go to the owner of the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ralph_mission.loop.model.spec import RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import (
    PLANNED,
    START,
    VERDICT,
    VERIFICATION_FAILED,
    Hat,
    LoopEvent,
    ReviewIssue,
)
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, RunPorts, SessionPool
from ralph_mission.loop.rules import scope, verdicts
from ralph_mission.loop.teams import Orchestration, RunOver, SessionPart, assignments, run_orchestration
from ralph_mission.loop.teams.assignments import AssignedTask, Member, UnclearAssignment
from ralph_mission.loop.teams.ultrawork import (
    PLANS,
    REFUSED,
    TaskProgress,
    after,
    describe_red,
    problem,
    task_event,
    task_rows,
    tasks_again,
)
from ralph_mission.values import dataclass

FIXES = 3
"""Fix loops."""
LIST = "team.json"
PROBLEM, DECISION, BUILT, TESTED = "team.trouble", "lead.decision", "build.complete", "verification.passed"
FIX = "Fix what the tester found"
"""The title of a fix loop's task; a failed one goes to the next loop, or ends the run."""
RESERVED = ("lead", "tester")

LEAD = Hat(
    "lead", (START, REFUSED), (PLANNED,), "", "plans, delegates, and resolves what teammates cannot",
    "Make the plan: which teammates are needed, which files are whose, which tasks each of them has. No two own the "
    "same files, and every task is one teammate's. The text of your event is JSON: "
    '{"members": [{"name": "backend", "files": ["api/**", "tests/api/**"]}], '
    '"tasks": [{"id": "users", "title": "…", "description": "what to build, and how it is proven", '
    '"owner": "backend", "needs": []}]}. `needs` names tasks that come before; what needs nothing starts at once.',
    write_allowed=(),
)  # fmt: skip  # its text as it stands in the prompt
JUDGE = replace(
    LEAD,
    triggers=(PROBLEM,),
    publishes=(DECISION,),
    instructions="Teammates met what they cannot resolve alone; the event says what. Decide. The text of your event is "
    'JSON: {"advice": "what everybody has to know", "tasks": [{"id", "title", "description", "owner", "needs"}]}, '
    "whose tasks are new ones for the owners of the files; leave them out when none is needed.",
)
TESTER = Hat(
    "tester", (BUILT,), (TESTED, VERIFICATION_FAILED), "", "proves that it works, or shows where it does not",
    "Try what was built: run it and its tests. When all of it does what it should, say so. Else the text of your event "
    'is JSON: {"issues": [{"file": "api/users.py", "line": 12, "severity": "critical|major|minor", "message": "…"}]}, '
    "where `file` is the one that has to change: its owner is asked.",
    write_allowed=(),
)  # fmt: skip  # as above


@dataclass(frozen=True, slots=True)
class TeamState:
    """A team's state: file owners, tasks, and the Lead's advice to all."""

    members: tuple[Member, ...]
    works: tuple[TaskProgress, ...]
    advice: str = ""


def run_team(
    spec: RunSpec, ports: RunPorts, pool: SessionPool, artifacts: ArtifactStore, fixes: int = FIXES
) -> RunResult:
    """Do `spec.objective` with a team.

    "complete"; "rounds" if the Tester still finds faults after `fixes` loops; "stuck" if the Lead makes no valid plan,
    or if tasks failed (the others are built and tested).
    """
    return run_orchestration(spec, ports, pool, artifacts, lambda stage: _run_team(stage, fixes))


def _run_team(stage: Orchestration, fixes: int) -> RunEnding:
    company = _run_waves(stage, _load(stage) or _delegate(stage))
    if not any(work.status == "done" for work in company.works):
        return _unbuilt_ending(company)
    for loop in range(fixes + 1):
        issues = _test(stage, company)
        if not issues:
            return (
                _unbuilt_ending(company)
                if _failed_works(company)
                else stage.finished(f"{len(company.works)} tasks built and tested")
            )
        if loop == fixes:
            return _not_fixed(issues, fixes)
        company = _run_waves(stage, _route_issues(stage, company, issues, loop + 1))
    raise AssertionError("the last loop returns")


# --- the lead ------------------------------------------------------------------------


def _delegate(stage: Orchestration) -> TeamState:
    event, wrong = LoopEvent(START), ""
    for _ in range(PLANS):
        output = stage.play(SessionPart("plan", LEAD, event))
        try:
            members, pieces = assignments.parse_company(output.event.payload if output.event else "", RESERVED)
        except UnclearAssignment as unclear:
            wrong = str(unclear)
            event = LoopEvent(REFUSED, f"Nothing was handed out, because {wrong}. Plan again.")
            continue
        return _save(stage, TeamState(members, tuple(map(TaskProgress, pieces))))
    raise RunOver(RunEnding("stuck", f"the lead made no plan: {wrong}", "write one yourself, or run it without a team"))


def _ask_lead(stage: Orchestration, company: TeamState, problems: Sequence[str]) -> TeamState:
    """The Lead's reaction: advice for all, and more tasks if valid."""
    output = stage.play(SessionPart("decide", JUDGE, LoopEvent(PROBLEM, "\n".join(problems))))
    payload = output.event.payload if output.event else ""
    try:
        value = assignments.parse_document(payload)
        more = _parse_more(value, company) if value.get("tasks") else ()
    except UnclearAssignment:
        return _save(stage, replace(company, advice=payload))
    advice = str(value.get("advice", ""))
    return _save(stage, replace(company, works=(*company.works, *map(TaskProgress, more)), advice=advice))


def _parse_more(value: Any, company: TeamState) -> tuple[AssignedTask, ...]:
    pieces = assignments.parse_delegated_tasks(value, company.members, [work.piece.id for work in company.works])
    return pieces if len(pieces) + len(company.works) <= assignments.MOST else ()


# --- the teammates -------------------------------------------------------------------


def _run_waves(stage: Orchestration, company: TeamState) -> TeamState:
    """Run waves: each teammate's next task; between waves the Lead learns of problems."""
    while wave := _next_wave(company):
        dones = {done.name: done for done in stage.together([_session_part(company, work) for work in wave])}
        works = tuple(_settle_task(work, dones[work.piece.id]) if work in wave else work for work in company.works)
        company = _save(stage, replace(company, works=works, advice=""))
        found = ((work.piece, problem(dones[work.piece.id])) for work in wave)
        if problems := [f"{piece.owner}, {piece.id}: {why}" for piece, why in found if why]:
            company = _ask_lead(stage, company, problems)
    return _save(stage, replace(company, works=tuple(_give_up(work) for work in company.works)))


def _next_wave(company: TeamState) -> list[TaskProgress]:
    """Each teammate's first ready task. One with a conflict is repeated alone."""
    done = {work.piece.id for work in company.works if work.status == "done"}
    ready = [work for work in company.works if work.status == "todo" and done.issuperset(work.piece.needs)]
    again = [work for work in ready if work.tries]
    first = {work.piece.owner: work for work in reversed(ready)}
    return again[:1] or [work for work in ready if first[work.piece.owner] is work]


def _session_part(company: TeamState, work: TaskProgress) -> SessionPart:
    piece = work.piece
    files = next(member.files for member in company.members if member.name == piece.owner)
    hat = Hat(
        piece.owner, (PLANNED,), (BUILT,), BUILT, "a teammate with files of their own",
        "Do the task of the event. The other teammates own all other files: say in the text of your event what you "
        "need of them.",
        write_allowed=files,
    )  # fmt: skip  # its text as it stands in the prompt
    advice = f"The Lead says: {company.advice}" if company.advice else ""
    return SessionPart(piece.id, hat, task_event(piece), piece.id, "\n".join(filter(None, (work.why, advice))))


def _settle_task(work: TaskProgress, done: ParallelResult) -> TaskProgress:
    """A task after its session. Changes outside its files are reverted and reported; the task still counts."""
    clean = bool(done.output and not done.output.failure and not done.conflicts)
    return replace(work, status="done", tries=work.tries + 1, why="") if clean else after(work, done)


def _give_up(work: TaskProgress) -> TaskProgress:
    """Nothing is ready any more: the remaining tasks wait for failed ones."""
    waits = f"it waits for {', '.join(work.piece.needs)}, which failed"
    return replace(work, status="failed", why=waits) if work.status == "todo" else work


# --- the tester ----------------------------------------------------------------------


def _test(stage: Orchestration, company: TeamState) -> tuple[ReviewIssue, ...]:
    """The problems found by the project's checks and the Tester, or ()."""
    checks = stage.verify()
    rows = "\n".join(
        f"- {work.piece.id} ({work.status}, {work.piece.owner}): {work.piece.title}" for work in company.works
    )
    output = stage.play(SessionPart("test", TESTER, LoopEvent(BUILT, rows), feedback=describe_red(checks)))
    event = output.event or LoopEvent(VERIFICATION_FAILED)
    red = () if checks.green else (ReviewIssue(describe_red(checks)),)
    if event.topic == TESTED:
        return red
    return verdicts.parse_issues(replace(event, topic=VERDICT)) or red or (ReviewIssue("the tester names nothing"),)


def _route_issues(stage: Orchestration, company: TeamState, issues: Sequence[ReviewIssue], loop: int) -> TeamState:
    """A task for each owner of a file that has to change. The Lead assigns the rest, or else it is for anyone."""
    owners = {issue: _find_owner(company, issue) for issue in issues}
    unowned = [issue for issue, owner in owners.items() if not owner]
    before = company.works
    if unowned:
        company = _ask_lead(stage, company, [f"nobody owns this: {_line(issue)}" for issue in unowned])
    lost = unowned if company.works == before else []
    found = {
        member.name: [issue for issue, owner in owners.items() if owner == member.name] + lost
        for member in company.members
    }
    ids = {work.piece.id for work in company.works}
    more = [
        TaskProgress(AssignedTask(_free_name(f"fix-{loop}-{name}", ids), FIX, _issue_lines(mine), owner=name))
        for name, mine in found.items() if mine
    ]  # fmt: skip  # one list
    return _save(stage, replace(company, works=(*company.works, *more)))


def _find_owner(company: TeamState, issue: ReviewIssue) -> str:
    path = issue.file.removeprefix("./")
    if not path or path.startswith("/") or scope.ours(path):
        return ""
    hats = (Hat(member.name, write_allowed=member.files) for member in company.members)
    return next((hat.name for hat in hats if not scope.why_outside(hat, path)), "")


def _free_name(name: str, ids: set[str]) -> str:
    return next(
        one for one in (name, *(f"{name}.{number}" for number in range(2, 2 * assignments.MOST))) if one not in ids
    )


# --- words ---------------------------------------------------------------------------


def _issue_lines(issues: Sequence[ReviewIssue]) -> str:
    return "\n".join(map(_line, issues))[: assignments.LONGEST]


def _line(issue: ReviewIssue) -> str:
    place = f"{issue.file}{f':{issue.line}' if issue.line else ''}: " if issue.file else ""
    return f"- [{issue.severity}] {place}{issue.message}"


def _not_fixed(issues: Sequence[ReviewIssue], fixes: int) -> RunEnding:
    found = "; ".join(" ".join(_line(issue)[2:].split()) for issue in issues[:10])
    return RunEnding(
        "rounds", f"not fixed in {fixes} fix loops: {found}", "say how with ralph agent guidance, then --continue"
    )


def _unbuilt_ending(company: TeamState) -> RunEnding:
    listed = "; ".join(
        f"{work.piece.id} ({work.piece.owner}): {work.why.splitlines()[0]}" for work in _failed_works(company)
    )
    return RunEnding("stuck", f"tasks failed: {listed}", "--continue tries them again; the others are built")


def _failed_works(company: TeamState) -> list[TaskProgress]:
    return [work for work in company.works if work.status == "failed" and work.piece.title != FIX]


# --- between two processes -----------------------------------------------------------


def _save(stage: Orchestration, company: TeamState) -> TeamState:
    members = [asdict(member) for member in company.members]
    value = {"members": members, "tasks": task_rows(company.works), "advice": company.advice}
    stage.artifacts.write(LIST, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    return company


def _load(stage: Orchestration) -> TeamState | None:
    """An earlier process's state, with failed tasks reset, or None if unreadable."""
    if stage.fresh:
        return None
    text = stage.artifacts.read(LIST)
    try:
        members, pieces = assignments.parse_company(text, RESERVED)
        value = assignments.parse_document(text)
    except UnclearAssignment:
        return None
    return TeamState(members, tasks_again(pieces, value["tasks"]), str(value.get("advice", "")))
