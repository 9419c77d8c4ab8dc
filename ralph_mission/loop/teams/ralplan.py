"""Ralplan: a plan must convince a critic before anything is built.

Planner → Critic and Architect, in parallel and independently → Planner, until the Critic approves every section, in at
most five rounds. Approved sections are frozen for the Planner; the Critic itself may withdraw approval. Every session
runs in its own clone: planning never changes the checkout, and reviewers cannot read each other's verdicts. An unclear
verdict approves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

from ralph_mission.loop import teams as sections
from ralph_mission.loop.model.spec import RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import PLANNED, START, VERIFICATION_FAILED, Hat, LoopEvent
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, RunPorts, SessionPool
from ralph_mission.loop.teams import Orchestration, SessionPart, run_orchestration
from ralph_mission.loop.teams.assignments import UnclearAssignment, parse_document
from ralph_mission.safety.text import truncate
from ralph_mission.values import dataclass

APPROVALS, REFUSALS = ("approve", "approved", "accept", "accepted"), ("reject", "rejected", "revise")
NONE_GIVEN = "rejected without a reason"
MOST, LONGEST = 100, 1_000


@dataclass(frozen=True, slots=True)
class PlanObjection:
    """An objection; `section` "" means the whole plan."""

    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Critique:
    """The approved sections, and the objections to the others."""

    approved: frozenset[str] = frozenset()
    objections: tuple[PlanObjection, ...] = ()


def parse_critique(payload: str, names: Sequence[str]) -> Critique:
    """A verdict on the sections `names`.

    `{"verdict": "approve|reject", "objections": […], "sections": [{"section", "verdict", "objections": […]}]}`; an
    approval of the whole counts for sections that are not mentioned, when nothing at all speaks against it.
    """
    try:
        return _parse_critique(parse_document(payload), names)
    except UnclearAssignment as unclear:
        why = f"the verdict cannot be understood ({unclear}): {truncate(payload, 200)}"
        return Critique(objections=(PlanObjection("", why),))


def _parse_critique(value: Mapping[str, Any], names: Sequence[str]) -> Critique:
    known = {name.casefold(): name for name in names}
    approved, objections = set[str](), [PlanObjection("", text) for text in _read_texts(value)]
    for row in _read_rows(value):
        name = str(row.get("section") or row.get("name") or "").strip().removeprefix("##").strip()
        section, texts = known.get(name.casefold(), ""), _read_texts(row)
        if _approves(row) and not texts:
            approved.add(section)
        else:
            prefix = f"{name}: " if not section and name else ""
            objections += [PlanObjection(section, prefix + text) for text in texts or (NONE_GIVEN,)]
    approved -= {objection.section for objection in objections} | {""}
    if "verdict" in value and _approves(value) and not objections:
        approved = set(names)
    if "verdict" in value and not _approves(value) and not objections:
        objections.append(PlanObjection("", NONE_GIVEN))
    return Critique(frozenset(approved), tuple(objections[:MOST]))


def _approves(row: Mapping[str, Any]) -> bool:
    word = str(row.get("verdict", "")).strip().lower()
    if word not in (*APPROVALS, *REFUSALS):
        raise UnclearAssignment(f"{word[:40]!r} is neither approve nor reject")
    return word in APPROVALS


def _read_rows(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = value.get("sections", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnclearAssignment("sections is not a list of objects")
    if not rows and "verdict" not in value:
        raise UnclearAssignment("it has neither a verdict nor sections")
    return rows


def _read_texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The objections; one that is not a text counts too."""
    value = row.get("objections") or []
    texts = value if isinstance(value, list) else [value]
    return tuple(truncate(" ".join(str(text).split()), LONGEST) or NONE_GIVEN for text in texts[:MOST])


ROUNDS, FIXES = 5, 3
PLAN, TABLE, OBJECTIONS = "plan.md", "plan.json", "objections.md"
"""Files: the plan, for people and sessions; approvals and objections, for resuming and for the planner."""
REJECTED, APPROVED, JUDGED, ADVISED, BUILT = (
    "plan.rejected", "plan.approved", "plan.verdict", "plan.advice", "build.complete",
)  # fmt: skip  # one list

PLANNER = Hat(
    "planner", (START, REJECTED), (PLANNED,), PLANNED, "writes the plan, and revises what was objected to",
    "Write the plan into `.ralph/plan.md`: a line `# Title`, then sections that start with `## Name` and that can each "
    "be built and judged alone. Say what changes where, what can fail, and how it is proven. When a plan is there, "
    "revise it: answer every objection (in full in `.ralph/objections.md`), "
    "weigh the Architect's advice, and leave approved sections as they are.",
    write_allowed=(),
)  # fmt: skip  # its text as it stands in the prompt
CRITIC = Hat(
    "critic", (PLANNED,), (JUDGED,), "", "finds what is wrong with a plan before it costs anything",
    "Read `.ralph/plan.md` and the code it speaks of. Judge each section that is not approved yet: what is missing, "
    "what will fail, what cannot be proven. An objection is specific: \"no handling of a token that expires while it "
    "is refreshed\", never \"this is bad\". The text of your event is JSON: "
    '{"sections": [{"section": "Name", "verdict": "approve|reject", "objections": ["…"]}], '
    '"objections": ["what is wrong with the plan as a whole"]}. A section that you do not name is not approved. '
    "Reject an approved section only when it turned out wrong.",
    write_allowed=(),
)  # fmt: skip  # as above
ARCHITECT = Hat(
    "architect", (PLANNED,), (ADVISED,), ADVISED, "says how the parts should fit together",
    "Read `.ralph/plan.md` and the code it speaks of. Say in the text of your event how it should be structured: which "
    "modules, which boundaries, what to take from what is there. You advise; you do not approve.",
    write_allowed=(),
)  # fmt: skip  # as above
BUILDER = Hat(
    "builder", (APPROVED,), (BUILT,), BUILT, "builds approved sections while the rest of the plan is revised",
    "Build the sections of the event, as `.ralph/plan.md` has them, and nothing of the others.",
)  # fmt: skip  # as above
FIXER = replace(
    BUILDER, triggers=(VERIFICATION_FAILED,),
    instructions="All of `.ralph/plan.md` is built. Fix the cause of what the checks of the event say, and leave the "
    "checks alone.",
)  # fmt: skip  # as above


@dataclass(frozen=True, slots=True)
class ConsensusState:
    """The state of a consensus: finished rounds, approved sections (name -> text), objections to the rest."""

    rounds: int = 0
    approved: Mapping[str, str] = field(default_factory=dict)
    built: tuple[str, ...] = ()
    objections: tuple[PlanObjection, ...] = ()
    advice: str = ""


def run_ralplan(
    spec: RunSpec,
    ports: RunPorts,
    pool: SessionPool,
    artifacts: ArtifactStore,
    rounds: int = ROUNDS,
    build: bool = False,
) -> RunResult:
    """Plan `spec.objective` until the Critic approves: "complete", or "rounds" with objections and plan stored.

    `build`: build approved sections while the others are revised, and the rest afterwards, until the checks pass;
    `plan.json` records which.
    """
    return run_orchestration(spec, ports, pool, artifacts, lambda stage: _agree(stage, rounds, build))


def _agree(stage: Orchestration, rounds: int, build: bool) -> RunEnding:
    table = _load_state(stage, rounds)
    if stage.fresh:
        stage.artifacts.write(PLAN, "")
    while not _is_agreed(table, stage.artifacts.read(PLAN)):
        if table.rounds == rounds:
            return _never_agreed(table)
        table = _play_round(stage, table, build)
        _keep(stage, table)
    stage.say(APPROVED, f"{len(table.approved)} sections in round {table.rounds}")
    done = f"the critic approved the plan in round {table.rounds}"
    return _build(stage, table, done) if build else RunEnding("complete", done, "it is .ralph/plan.md")


def _is_agreed(table: ConsensusState, plan: str) -> bool:
    names = set(sections.section_names(plan))
    return (
        bool(names)
        and not sections.find_section_faults(plan)
        and not table.objections
        and names <= table.approved.keys()
    )


# --- a round -------------------------------------------------------------------------


def _play_round(stage: Orchestration, table: ConsensusState, build: bool) -> ConsensusState:
    drafted = _draft(stage, table, build)
    plan = stage.artifacts.read(PLAN)
    unfit = sections.find_section_faults(plan)
    judged = _refuse_draft(drafted, unfit) if unfit else _judge(stage, drafted, plan)
    return replace(judged, rounds=table.rounds + 1)


def _draft(stage: Orchestration, table: ConsensusState, build: bool) -> ConsensusState:
    """Revise the plan without its approved sections; meanwhile a builder builds approved ones."""
    before = stage.artifacts.read(PLAN)
    parts = [_planner_part(table, before)]
    due = _reviewers_due(table) if build else ()
    if due:
        parts.append(_builder_part(table, due, before))
    dones = {done.name: done for done in stage.together(parts)}
    drafted = dones["planner"]
    if not _went_through(drafted):
        drafted = stage.insist([parts[0]])["planner"]
    plan, put_back = sections.freeze_sections(table.approved, drafted.artifacts.get(PLAN, before))
    stage.artifacts.write(PLAN, plan)
    if put_back:
        stage.say("plan.frozen", f"put back as approved: {', '.join(put_back)}")
    done = dones.get("builder")
    built = due if done and _went_through(done) and not done.conflicts else ()
    return replace(table, built=(*table.built, *built))


def _planner_part(table: ConsensusState, plan: str) -> SessionPart:
    objections = _objection_text(table) if table.objections else ""
    return SessionPart(
        "planner",
        PLANNER,
        LoopEvent(REJECTED, objections) if objections else LoopEvent(START),
        artifacts={PLAN: plan, OBJECTIONS: objections},
    )


def _builder_part(table: ConsensusState, due: tuple[str, ...], plan: str) -> SessionPart:
    payload = "\n".join(table.approved[name] for name in due)
    return SessionPart("builder", BUILDER, LoopEvent(APPROVED, payload), artifacts={PLAN: plan})


def _reviewers_due(table: ConsensusState) -> tuple[str, ...]:
    return tuple(name for name in table.approved if name not in table.built)


def _judge(stage: Orchestration, table: ConsensusState, plan: str) -> ConsensusState:
    """The verdict and the advice, from two independent sessions."""
    approved = ", ".join(table.approved) or "none"
    event = LoopEvent(PLANNED, f"Approved so far: {approved}. Sections: {', '.join(sections.section_names(plan))}")
    parts = [
        SessionPart("critic", CRITIC, event, artifacts={PLAN: plan}),
        SessionPart("architect", ARCHITECT, event, artifacts={PLAN: plan}),
    ]
    payloads = {name: _event_payload(done) for name, done in stage.insist(parts).items()}
    verdict = parse_critique(payloads["critic"], sections.section_names(plan))
    return replace(_weigh_verdict(table, verdict, plan), advice=payloads["architect"])


def _weigh_verdict(table: ConsensusState, verdict: Critique, plan: str) -> ConsensusState:
    """Add new approvals and withdraw those objected to. A built section stays: an objection to it applies to the plan,
    which must address it in another section."""
    texts = {section.name: section.text for section in sections.split_sections(plan) if section.name}
    moved = tuple(
        PlanObjection("", f"{one.section} is built already: {one.text}") if one.section in table.built else one
        for one in verdict.objections
    )
    refused = {one.section for one in moved}
    approved = {
        name: text for name, text in texts.items()
        if name not in refused and (name in table.approved or name in verdict.approved)
    }  # fmt: skip  # one mapping
    silent = tuple(
        PlanObjection(name, "the critic has not approved it")
        for name in texts
        if name not in approved | dict.fromkeys(refused)
    )
    return replace(table, approved=approved, objections=(*moved, *(() if moved else silent)))


def _build(stage: Orchestration, table: ConsensusState, done: str) -> RunEnding:
    """Build the remaining sections in the checkout, then fix failing checks."""
    if due := _reviewers_due(table):
        stage.play(_builder_part(table, due, ""))
        _keep(stage, replace(table, built=(*table.built, *due)))
    for fixed in range(FIXES + 1):
        checks = stage.verify()
        if checks.green:
            return stage.finished(f"{done}, and all of it is built")
        if fixed < FIXES:
            stage.play(SessionPart("builder", FIXER, LoopEvent(VERIFICATION_FAILED, checks.said)))
    what = f"{done}, and the checks are red after {FIXES} fixes: {checks.said.strip()[-500:]}"
    return RunEnding("rounds", what, "fix it, or say how with ralph agent guidance, then --continue")


def _refuse_draft(table: ConsensusState, why: str) -> ConsensusState:
    return replace(table, objections=(PlanObjection("", why),), advice="")


# --- words ---------------------------------------------------------------------------


def _objection_text(table: ConsensusState) -> str:
    lines = [f"- {objection.section or 'the plan'}: {objection.text}" for objection in table.objections]
    approved = f"Approved, leave as they are: {', '.join(table.approved)}." if table.approved else ""
    advice = f"The Architect advises:\n{table.advice}" if table.advice else ""
    return "\n".join(filter(None, ("What speaks against the plan:", *lines, approved, advice)))


def _never_agreed(table: ConsensusState) -> RunEnding:
    listed = "; ".join(f"{objection.section or 'the plan'}: {objection.text}" for objection in table.objections[:10])
    what = f"the critic was not satisfied in {table.rounds} rounds: {listed}"
    return RunEnding(
        "rounds", what, "fix .ralph/plan.md, or say with ralph agent guidance what counts, then --continue"
    )


def _event_payload(done: ParallelResult) -> str:
    return done.output.event.payload if done.output and done.output.event else ""


def _went_through(done: ParallelResult) -> bool:
    return done.output is not None and not done.output.failure


# --- between two processes -----------------------------------------------------------


def _keep(stage: Orchestration, table: ConsensusState) -> None:
    stage.artifacts.write(TABLE, json.dumps(asdict(table), indent=2, ensure_ascii=False) + "\n")


def _load_state(stage: Orchestration, rounds: int) -> ConsensusState:
    """Resume an earlier process; resuming after the last round grants as many rounds again."""
    if stage.fresh:
        return ConsensusState()
    try:
        value = json.loads(stage.artifacts.read(TABLE))
        table = ConsensusState(
            int(value["rounds"]),
            {str(name): str(text) for name, text in value["approved"].items()},
            tuple(map(str, value["built"])),
            tuple(PlanObjection(str(one["section"]), str(one["text"])) for one in value["objections"]),
            str(value["advice"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ConsensusState()
    return table if table.rounds < rounds else replace(table, rounds=0)
