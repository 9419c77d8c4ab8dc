"""A whole run: its planning if it has no stories yet, then one loop of hats, or a team with members in clones.

The composition root of teams and of planning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from ralph_mission.adapters.agents.client import CommandAgent
from ralph_mission.adapters.agents.clients import FallbackAgent, HatAgents
from ralph_mission.adapters.agents.scripted import ScriptedAgent
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.setup import NOTHING
from ralph_mission.adapters.storage.loop import state
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.adapters.storage.loop.state import FileArtifactStore
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.workspace.land import User
from ralph_mission.adapters.workspace.parallel import MOST, ClonePool, Part, SessionTools, WorkspaceApart
from ralph_mission.app import workplaces
from ralph_mission.app.run import SCRIPTED, RunSetup, build_run, describe_work
from ralph_mission.app.run_options import RunOptions, needs_planning, recall_planning
from ralph_mission.app.workplaces import open_checkout
from ralph_mission.errors import UserError
from ralph_mission.loop import hats, planning
from ralph_mission.loop.model.spec import SIDE_BY_SIDE, RunResult, RunSpec
from ralph_mission.loop.model.state import Guidance, Prd, StopSignal
from ralph_mission.loop.ports import Agent, ArtifactStore, ParallelSession, RunPorts, RunProgress, SessionPool
from ralph_mission.loop.run import run_loop
from ralph_mission.loop.teams import ralplan, team, ultrawork

TeamRun = Callable[[RunSpec, RunPorts, SessionPool, ArtifactStore], RunResult]
TEAMS: Mapping[str, TeamRun] = {
    "ralplan": ralplan.run_ralplan,
    "ultrawork": ultrawork.run_ultrawork,
    "team": team.run_team,
}
"""Values of `--pattern` besides the patterns of hats."""


def play_run(options: RunOptions, progress: RunProgress) -> tuple[RunResult, RunSetup]:
    """One run, and its setup; a task without stories is planned first. Raises UserError."""
    team_name = choose_team(options)
    plan_options = due(options)
    if plan_options is None:
        return _play(options, team_name, progress)
    progress.note("no stories yet: a planner writes them first")
    setup, first = write_stories(plan_options, progress, follows=True)
    if first.ending.code:
        return first, _report_end(setup, first, progress)
    setup.unaltered()
    account, setup = _play(plan_options, team_name, progress, setup.root)
    return replace(account, outputs=(*first.outputs, *account.outputs)), setup


def _play(
    options: RunOptions, team_name: str, progress: RunProgress, planned: Path | None = None
) -> tuple[RunResult, RunSetup]:
    setup = build_run(replace(options, pattern="") if team_name else options, progress, planned)
    for note in setup.notes:
        progress.note(f"note: {note}")
    if team_name:
        account = play(setup, team_name, build=options.build)
    elif options.parallel > 1:
        account = _play_stories(setup, options.parallel)
    else:
        account = run_loop(setup.spec, setup.ports)
    return account, _report_end(setup, account, progress, simulated=options.agent == SCRIPTED)


def _report_end(setup: RunSetup, account: RunResult, progress: RunProgress, simulated: bool = False) -> RunSetup:
    for line in () if simulated else describe_work(setup, account):
        progress.note(line)
    for complaint in setup.store.complaints:
        progress.note(f"note: {complaint}")
    for line in setup.after:
        progress.note(line)
    return setup


def find_team(pattern: str) -> str:
    """The team that `pattern` names, "" for a possible pattern of hats. Raises UserError for a misspelt team."""
    key = pattern.strip().lower()
    near = get_close_matches(key, (*TEAMS, *hats.PATTERNS, *hats.PATTERN_ALIASES), 1)
    if near and near[0] in TEAMS and near[0] != key:
        raise UserError(f"no pattern {pattern!r}", f"did you mean {near[0]}?", usage=True)
    return key if key in TEAMS else ""


def choose_team(options: RunOptions) -> str:
    """The requested team, "" for any other run. Raises UserError (usage) for options that it cannot use."""
    name = find_team(options.pattern)
    if name and options.stories:
        raise _no_gate(name)
    if options.build and name != "ralplan":
        raise UserError("--build builds what a critic approved", "give it with --pattern ralplan", usage=True)
    return name


def play(setup: RunSetup, name: str, most: int = MOST, build: bool = False) -> RunResult:
    """Run the team `name`, with `most` simultaneous sessions. Raises UserError.

    `build`: build the plan that ralplan approves.
    """
    if setup.spec.persistent:
        what = f"event_loop.persistent works on one task after another, and {name} on a single one"
        raise UserError(what, "take event_loop.persistent out of ralph.yml, or run without --pattern", usage=True)
    if setup.spec.preset.stories:
        raise _no_gate(name)
    git = Git.open(setup.root)
    run_team: TeamRun = partial(ralplan.run_ralplan, build=True) if build else TEAMS[name]
    return run_team(setup.spec, setup.ports, pool(setup, git, most), FileArtifactStore(setup.root / ".ralph"))


def _play_stories(setup: RunSetup, most: int) -> RunResult:
    if not setup.spec.preset.stories:
        raise UserError("--parallel builds stories side by side", "give it with --prd or --prd-file", usage=True)
    clones = pool(setup, Git.open(setup.root), most)
    return ultrawork.run_stories(setup.spec, setup.ports, clones, FileArtifactStore(setup.root / ".ralph"), most)


def _no_gate(name: str) -> UserError:
    """The error for stories in a team that ends with a verdict on one task."""
    what = f"{name} works on one task, not through the stories of prd.json"
    hint = "give it the task in words, or run the stories without --pattern or with a pattern of hats"
    return UserError(what, hint, usage=True)


def pool(setup: RunSetup, git: Git, most: int = MOST) -> ClonePool:
    """Team members with the run's agent, each in a clone below `.ralph/apart`."""
    ports, user = setup.ports, User.of(git)

    def equip(part: Part, job: ParallelSession, ended: Callable[[], bool]) -> SessionTools:
        lists = (
            job.snapshot.paths.engine_files if job.spec.kind == SIDE_BY_SIDE else ()
        )  # the run alone says what passes
        place = WorkspaceApart(git, part.folder, user=user, lists=lambda: lists)
        store = ApartRunStore(part, place, ports, ended)
        home = setup.root / ".ralph/loop/apart" / job.name  # not in the run's home, which other sessions may not enter
        lent = setup.project.lend_apart(part.folder, part.base) if setup.project else NOTHING
        place.exclude(lent.names)
        agent = move_agent(ports.agent, part.git, home, job.name, lent.environment)
        moved = replace(ports, agent=agent, workplace=place, store=store)
        return SessionTools(moved, FileArtifactStore(part.folder / ".ralph"), place)

    return ClonePool(git, setup.root / ".ralph/apart", equip, user, most)


def move_agent(agent: Agent, git: Git, home: Path, task: str, environment: Mapping[str, str]) -> Agent:
    """The same agent in another checkout, with a home that persists for the task named `RALPH_TASK`. `environment`: the
    environment of the project's set-up there."""
    if isinstance(agent, CommandAgent):
        return _move_command_agent(agent, git, home, task, environment)
    if isinstance(agent, ScriptedAgent):
        return agent.apart(_move_command_agent(agent.agent, git, home, task, environment), task)
    if isinstance(agent, FallbackAgent):
        return replace(agent, agents=tuple(move_agent(one, git, home, task, environment) for one in agent.agents))
    if isinstance(agent, HatAgents):
        others = {name: move_agent(one, git, home, task, environment) for name, one in agent.others.items()}
        return replace(agent, agent=move_agent(agent.agent, git, home, task, environment), others=others)
    inner = getattr(agent, "agent", None)
    if inner is None:
        raise TypeError(f"cannot move {agent.name} to another checkout")
    return replace(agent, agent=move_agent(inner, git, home, task, environment))  # type: ignore[type-var]  # all our agents are dataclasses


def _move_command_agent(
    agent: CommandAgent, git: Git, home: Path, task: str, environment: Mapping[str, str]
) -> CommandAgent:
    env, sandbox = (
        {**agent.extra_env, **environment, "RALPH_TASK": task},
        workplaces.writable_elsewhere(agent.sandbox, git),
    )
    return replace(agent, work_tree=git.work_tree or agent.work_tree, home=home, extra_env=env, sandbox=sandbox)


class ApartRunStore(FileRunStore):
    """The store of a session in a clone: its files are there, but people's messages come from the run."""

    def __init__(self, part: Part, place: WorkspaceApart, ports: RunPorts, ended: Callable[[], bool]) -> None:
        super().__init__(part.folder, part.git.git_dir, place.tree, ports.clock.now)
        self._ports, self._ended = ports, ended

    def signal(self) -> StopSignal:
        """A person's request to the running loop. An interrupt ends the session like a cancel."""
        return "cancel" if self._ended() else self._ports.store.signal()

    def heard(self) -> bool:
        """Whether there is an unhandled signal."""
        return bool(self.signal())

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """Do nothing: the run that passed it on handles it."""


def due(options: RunOptions) -> RunOptions | None:
    """The planning to start or resume, or None."""
    root = open_checkout(options.repo)[1]
    named = recall_planning(options, root)
    return named if needs_planning(named, root) else None


def write_stories(
    options: RunOptions, progress: RunProgress, follows: bool = False, replacing: bool = False
) -> tuple[RunSetup, RunResult]:
    """Write and check the stories; returns the planning's setup and result. If a run `follows`, it continues from that
    state. Raises UserError."""
    setup = build_run(replace(options, planning=True, worktree=False), progress)

    def read() -> tuple[Prd | None, str]:
        stories = Stories(setup.root)
        return stories.read(), stories.complaint

    kind = setup.spec.kind if follows else ""
    return setup, planning.plan_stories(planning.planning_spec(setup.spec), setup.ports, read, kind, replacing)


def agree_on_plan(options: RunOptions, progress: RunProgress) -> tuple[RunSetup, RunResult]:
    """Ralplan on a task. If the Critic approved, continuing the run writes stories from the plan. Raises
    UserError."""
    setup = build_run(replace(options, planning=True, worktree=False), progress)
    account = play(replace(setup, spec=replace(setup.spec, persistent=False)), "ralplan")
    if account.ending.reason == "complete":
        plan = FileArtifactStore(setup.root / ".ralph").read(ralplan.PLAN)
        state.save(setup.root, planning.state_after_agreement(account.state, plan))
    return setup, account
