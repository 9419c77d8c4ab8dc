"""Runs with several roles (Ralplan, Ultrawork, Team): a story decides the next session, here or in a separate clone.
Limits and people's signals are checked before each session.

A session without a valid event in time ends the story: `RunOver` carries the result. A plan is read as sections, `## `
headings outside of fences: approved ones stay unchanged if the rest is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from ralph_mission.loop.hats import DENIED
from ralph_mission.loop.model.spec import RunEnding, RunResult, RunSpec
from ralph_mission.loop.model.state import CheckResult, Hat, HatOutput, LoopEvent, RunSnapshot, SessionUsage
from ralph_mission.loop.ports import ArtifactStore, ParallelResult, ParallelSession, RunPorts, SessionPool
from ralph_mission.loop.prompt import situation
from ralph_mission.loop.rules import completion
from ralph_mission.loop.run import SIGNAL_ENDINGS, LoopRun, account, run_loop, session
from ralph_mission.values import compile_regex, dataclass


class RunOver(Exception):
    """The run is over, at any point of the story."""

    def __init__(self, ending: RunEnding) -> None:
        super().__init__(ending.reason)
        self.ending = ending


@dataclass(frozen=True, slots=True)
class SessionPart:
    """A session's part. `item`: the task it counts for; `artifacts`: files for a session in a separate clone."""

    name: str
    hat: Hat
    event: LoopEvent
    item: str = ""
    feedback: str = ""
    artifacts: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Orchestration:
    """One run of a story, with its separate sessions and its record."""

    this: LoopRun
    pool: SessionPool
    artifacts: ArtifactStore
    apart: RunSpec | None = None  # what sessions apart are asked, where that is not what the run is

    @property
    def spec(self) -> RunSpec:
        """The spec."""
        return self.this.spec

    @property
    def ports(self) -> RunPorts:
        """The run's own."""
        return self.this.ports

    @property
    def fresh(self) -> bool:
        """Whether no session has run, in this process or an earlier one."""
        return self.this.state.iteration == 0

    def play(self, part: SessionPart) -> HatOutput:
        """Run the session in this checkout; a failed one is repeated. Raises RunOver."""
        feedback = part.feedback
        while True:
            self._check()
            self.this.state = replace(self.this.state, pending=part.event, item=part.item, stale=0, feedback=feedback)
            session(self.this, self.ports.store.snapshot(), with_own_settings(self.spec, part.hat))
            output = self.this.outputs[-1]
            if not output.failure:
                return output
            feedback = "\n".join(filter(None, (part.feedback, f"The last attempt failed: {output.reason}")))

    def together(self, parts: Sequence[SessionPart], last: HatOutput | None = None) -> tuple[ParallelResult, ...]:
        """Run the sessions in separate clones: one `ParallelResult` each, in order. Those beyond a limit do not start.

        Their prompts include the session `last`, usually the previous one.
        """
        self._check()
        last = last or self.this.state.last
        snapshot = self.ports.store.snapshot()
        failures = self.this.state.failures
        capacity = self.spec.limits.iterations - self.this.state.iteration
        jobs = [self._make_job(part, number, snapshot, last) for number, part in enumerate(parts[:capacity])]
        for job in jobs:
            self.ports.progress.session(self.spec, job.state, job.hat.name, snapshot)
        self.ports.store.keep(self.this.state, None)
        dones = self.pool.together(jobs, self._may_start)
        self.ports.store.acknowledge(situation.pending_guidance(snapshot))
        for part, job, done in zip(parts, jobs, dones, strict=False):
            self._account(part, job, done)
        self._count(failures, dones)
        return (*dones, *(ParallelResult(part.name) for part in parts[capacity:]))

    def insist(self, parts: Sequence[SessionPart]) -> dict[str, ParallelResult]:
        """Run the sessions in separate clones; failed ones are repeated until each has emitted its event. Raises
        RunOver.

        A repetition gets the first attempt's prompt, without news of successful ones.
        """
        found: dict[str, ParallelResult] = {}
        last = self.this.state.last
        while missing := [part for part in parts if part.name not in found]:
            dones = self.together(missing, last)
            found |= {done.name: done for done in dones if done.output and not done.output.failure}
        return found

    def verify(self) -> CheckResult:
        """The present results of the project's own checks."""
        found = self.ports.workplace.verify()
        self.this.standing = found.standing
        return found

    def say(self, topic: str, payload: str = "") -> None:
        """An event of the story itself."""
        self.ports.store.record(LoopEvent(topic, payload, at=self.ports.clock.now()))

    def finished(self, detail: str) -> RunEnding:
        """The end, unless tasks on the list are open."""
        why = completion.open_tasks(self.spec, self.ports.store.snapshot())
        if why:
            return RunEnding(
                "stuck", f"{detail}, but {why}", "work them off with ralph run, or close them: ralph agent task"
            )
        return RunEnding("complete", detail)

    def _check(self) -> None:
        self.this.hold()
        if ending := SIGNAL_ENDINGS.get(self.ports.store.signal()) or self._reached_limit(SessionUsage()):
            raise RunOver(ending)

    def _reached_limit(self, more: SessionUsage) -> RunEnding | None:
        """Only shared limits count: a story has its own bounds for repeated failures."""
        state = replace(self.this.state, idle=0, redispatches=0, usage=self.this.state.usage + more)
        return completion.reached_limit(self.spec.limits, state, self.this.elapsed)

    def _may_start(self, more: SessionUsage) -> bool:
        return not self.ports.store.signal() and self._reached_limit(more) is None

    def _make_job(
        self, part: SessionPart, number: int, snapshot: RunSnapshot, last: HatOutput | None
    ) -> ParallelSession:
        state = replace(
            self.this.state, iteration=self.this.state.iteration + number, pending=part.event, item=part.item, stale=0,
            feedback=part.feedback, last=last, elapsed=self.this.elapsed,
        )  # fmt: skip  # one value
        view = replace(snapshot, prd=None, tasks=())  # the list is in this checkout, where the session is not
        return ParallelSession(
            part.name,
            self.apart or self.spec,
            state,
            view,
            self.spec.bound(with_own_settings(self.spec, part.hat)),
            part.artifacts,
        )

    def _account(self, part: SessionPart, job: ParallelSession, done: ParallelResult) -> None:
        if done.output is None:
            return
        self.this.state = replace(self.this.state, pending=part.event, item=part.item, stale=0)
        if done.output.event:
            self.ports.store.record(done.output.event)
        account(self.this, done.output)

    def _count(self, before: int, dones: Sequence[ParallelResult]) -> None:
        """Parallel sessions are one step, which failed if none succeeded."""
        failed = [bool(done.output.failure) for done in dones if done.output]
        count = before + 1 if failed and all(failed) else 0
        self.this.state = replace(self.this.state, failures=count if failed else before)


def run_orchestration(
    spec: RunSpec,
    ports: RunPorts,
    pool: SessionPool,
    artifacts: ArtifactStore,
    story: Callable[[Orchestration], RunEnding],
) -> RunResult:
    """Run `spec` as `story` directs. Raises UserError as `run` does."""

    def orchestrate(this: LoopRun) -> RunEnding:
        try:
            return story(Orchestration(this, pool, artifacts))
        except RunOver as over:
            return over.ending

    return run_loop(replace(spec, preset=replace(spec.preset, stories=False)), ports, orchestrate)


def with_own_settings(spec: RunSpec, hat: Hat) -> Hat:
    """The hat, with the user's settings for its name: model, budget, denials and habits."""
    denied = tuple(dict.fromkeys((*hat.commands_denied, *DENIED)))
    own = next((one for one in spec.hats if one.name == hat.name), None)
    if own is None:
        return replace(hat, commands_denied=denied)
    return replace(
        hat,
        instructions="\n\n".join(filter(None, (hat.instructions, own.instructions))),
        write_denied=(*hat.write_denied, *own.write_denied),
        tools_denied=(*hat.tools_denied, *own.tools_denied),
        commands_denied=(*denied, *own.commands_denied),
        context=own.context,
        agent=own.agent,
        model=own.model,
        max_tokens=own.max_tokens,
    )


HEADING = compile_regex(r"##[ \t]+(\S.*?)[ \t]*#*[ \t]*\r?\n?")
FENCE = compile_regex(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class PlanSection:
    """One section with its heading; the lines before the first heading have no name."""

    name: str
    text: str


def split_sections(plan: str) -> tuple[PlanSection, ...]:
    """The sections in order; `"".join` of their texts is the plan."""
    found = [PlanSection("", "")]
    fence = ""
    for line in plan.splitlines(keepends=True):
        heading = None if fence else HEADING.fullmatch(line)
        if heading:
            found.append(PlanSection(heading[1], line))
        else:
            found[-1] = PlanSection(found[-1].name, found[-1].text + line)
        fence = _open_fence(fence, line)
    return tuple(section for section in found if section.text)


def section_names(plan: str) -> tuple[str, ...]:
    """The sections to approve, in order."""
    return tuple(section.name for section in split_sections(plan) if section.name)


def find_section_faults(plan: str) -> str:
    """Why this plan cannot be judged, or ""."""
    found = section_names(plan)
    twice = sorted({name for name in found if found.count(name) > 1})
    if not plan.strip():
        return "there is no plan in .ralph/plan.md"
    if not found:
        return "the plan has no sections: start each with a line `## Name`"
    return f"sections with the same name: {', '.join(twice)}" if twice else ""


def freeze_sections(approved: Mapping[str, str], plan: str) -> tuple[str, tuple[str, ...]]:
    """The plan with every approved section (name -> text) restored, and the names of restored ones.

    A missing one returns after its approved predecessor; of duplicates the first stays.
    """
    new, put_back, names = list[PlanSection](), list[str](), set[str]()
    for section in split_sections(plan):
        if section.name in approved and section.name in names:
            put_back.append(section.name)
            continue
        names.add(section.name)
        copy = PlanSection(section.name, approved.get(section.name, section.text))
        if copy.text.rstrip() != section.text.rstrip():
            put_back.append(section.name)
        new.append(copy)
    before = ""
    for name, text in approved.items():
        if name not in names:
            new.insert(_section_after(new, before), PlanSection(name, text))
            put_back.append(name)
        before = name
    return "".join(map(_with_newline, new)), tuple(dict.fromkeys(put_back))


def _section_after(sections: Sequence[PlanSection], name: str) -> int:
    """The index for a section after `name`; without one, before every heading."""
    after = [at + 1 for at, section in enumerate(sections) if section.name == name]
    return after[0] if after else 0


def _with_newline(section: PlanSection) -> str:
    return section.text if section.text.endswith("\n") else f"{section.text}\n"


def _open_fence(open_one: str, line: str) -> str:
    """The fence that is open after this line."""
    match = FENCE.match(line)
    if match is None:
        return open_one
    if not open_one:
        return match[1]
    closes = match[1].startswith(open_one) and not line.strip().strip(open_one[0])
    return "" if closes else open_one
