"""A run from its task to its end, with any kind of turn-taking: several hats have a bench, and a crew has members in
clones of it.

The composition root of a planning: the stories of a task, as the first part of the run that builds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

from ralph_mission.adapters.agents.client import CommandAgent
from ralph_mission.adapters.agents.clients import FallbackAgent, HatAgents
from ralph_mission.adapters.agents.scripted import ScriptedAgent
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.loop import state
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.adapters.storage.loop.state import FileArtifactStore
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.workspace.land import User
from ralph_mission.adapters.workspace.parallel import MOST, ClonePool, Part, SessionTools, WorkspaceApart
from ralph_mission.app import sandboxes
from ralph_mission.app.checkouts import open_checkout
from ralph_mission.app.run import RunSetup, build_run, describe_work
from ralph_mission.app.run_options import RunOptions, needs_planning, recall_planning
from ralph_mission.errors import UserError
from ralph_mission.loop import hats, planning
from ralph_mission.loop.model.spec import RunResult, RunSpec
from ralph_mission.loop.model.state import Guidance, Prd, StopSignal
from ralph_mission.loop.ports import Agent, ParallelSession, RunPorts, RunProgress
from ralph_mission.loop.ports import ArtifactStore as ArtifactsPort
from ralph_mission.loop.ports import SessionPool as PoolPort
from ralph_mission.loop.run import run_loop
from ralph_mission.loop.teams import ralplan, stories, team, ultrawork


class TeamRun(Protocol):
    """One of the three kinds."""

    def __call__(self, spec: RunSpec, ports: RunPorts, pool: PoolPort, artifacts: ArtifactsPort) -> RunResult:
        """The whole run."""
        ...


TEAMS: Mapping[str, TeamRun] = {
    "ralplan": ralplan.run_ralplan,
    "ultrawork": ultrawork.run_ultrawork,
    "team": team.run_team,
}
"""Values of `--pattern` besides the patterns of hats."""


def play_run(asked: RunOptions, progress: RunProgress) -> tuple[RunResult, RunSetup]:
    """One run, and its folder; a task without stories is planned first. Raises UserError."""
    story = choose_team(asked)
    wanted = due(asked)
    if wanted is None:
        return _play(asked, story, progress)
    progress.note("no stories yet: a planner writes them first")
    made, first = write_stories(wanted, progress, follows=True)
    if first.ending.code:
        return first, _tell_end(made, first, progress)
    made.unaltered()
    account, made = _play(wanted, story, progress, made.root)
    return replace(account, outputs=(*first.outputs, *account.outputs)), made


def _play(
    asked: RunOptions, story: str, progress: RunProgress, planned: Path | None = None
) -> tuple[RunResult, RunSetup]:
    made = build_run(replace(asked, pattern="") if story else asked, progress, planned)
    for note in made.notes:
        progress.note(f"note: {note}")
    if story:
        account = play(made, story, build=asked.build)
    elif asked.parallel > 1:
        account = _play_stories(made, asked.parallel)
    else:
        account = run_loop(made.spec, made.ports)
    return account, _tell_end(made, account, progress)


def _tell_end(made: RunSetup, account: RunResult, progress: RunProgress) -> RunSetup:
    for line in describe_work(made, account):
        progress.note(line)
    for complaint in made.store.complaints:
        progress.note(f"note: {complaint}")
    for line in made.after:
        progress.note(line)
    return made


def find_team(pattern: str) -> str:
    """The story that `pattern` names, "" for a possible pattern of hats. Raises UserError for a misspelt story."""
    key = pattern.strip().lower()
    near = get_close_matches(key, (*TEAMS, *hats.PATTERNS, *hats.PATTERN_ALIASES), 1)
    if near and near[0] in TEAMS and near[0] != key:
        raise UserError(f"no pattern {pattern!r}", f"did you mean {near[0]}?", usage=True)
    return key if key in TEAMS else ""


def choose_team(asked: RunOptions) -> str:
    """The requested story, "" for any other run. Raises UserError (usage) for options that it cannot use."""
    name = find_team(asked.pattern)
    if name and asked.stories:
        raise _no_gate(name)
    if asked.build and name != "ralplan":
        raise UserError("--build builds what a critic approved", "give it with --pattern ralplan", usage=True)
    return name


def play(made: RunSetup, name: str, most: int = MOST, build: bool = False) -> RunResult:
    """Run `made` as the story `name`, with `most` simultaneous sessions. Raises UserError.

    `build`: build the plan that ralplan approves.
    """
    if made.spec.persistent:
        what = f"event_loop.persistent goes from task to task, and {name} ends with one"
        raise UserError(what, "take event_loop.persistent out of ralph.yml, or run without --pattern", usage=True)
    if made.spec.preset.stories:
        raise _no_gate(name)
    git = Git.open(made.root)
    story: TeamRun = partial(ralplan.run_ralplan, build=True) if build else TEAMS[name]
    return story(made.spec, made.ports, pool(made, git, most), FileArtifactStore(made.root / ".ralph"))


def _play_stories(made: RunSetup, most: int) -> RunResult:
    if not made.spec.preset.stories:
        raise UserError("--parallel builds stories side by side", "give it with --prd or --prd-file", usage=True)
    clones = pool(made, Git.open(made.root), most)
    return stories.run_stories(made.spec, made.ports, clones, FileArtifactStore(made.root / ".ralph"), most)


def _no_gate(name: str) -> UserError:
    """It ends with a verdict on one task: stories are neither worked through nor required."""
    what = f"{name} works on one task, not through the stories of prd.json"
    hint = "give it the task in words, or run the stories without --pattern or with a pattern of hats"
    return UserError(what, hint, usage=True)


def pool(made: RunSetup, git: Git, most: int = MOST) -> ClonePool:
    """Members that run like the bench's agent, each in a clone below `.ralph/apart`."""
    ports, user = made.ports, User.of(git)

    def equip(part: Part, job: ParallelSession, ended: Callable[[], bool]) -> SessionTools:
        place = WorkspaceApart(git, part.folder, user=user)
        store = ApartRunStore(part, place, ports, ended)
        home = made.root / ".ralph/loop/apart" / job.name  # not in the run's own home, which others may not enter
        lent = made.project.lend_apart(part.folder, part.base) if made.project else {}
        agent = move_agent(ports.agent, part.git, home, job.name, lent)
        moved = replace(ports, agent=agent, workplace=place, store=store)
        return SessionTools(moved, FileArtifactStore(part.folder / ".ralph"), place)

    return ClonePool(git, made.root / ".ralph/apart", equip, user, most)


def move_agent(agent: Agent, git: Git, home: Path, task: str, lent: Mapping[str, str]) -> Agent:
    """The same agent in another checkout, with a home that persists for the task named `RALPH_TASK`. `lent`: the
    environment of the project's set-up there."""
    if isinstance(agent, CommandAgent):
        return _elsewhere(agent, git, home, task, lent)
    if isinstance(agent, ScriptedAgent):
        return agent.apart(_elsewhere(agent.agent, git, home, task, lent), task)
    if isinstance(agent, FallbackAgent):
        return replace(agent, agents=tuple(move_agent(one, git, home, task, lent) for one in agent.agents))
    if isinstance(agent, HatAgents):
        others = {name: move_agent(one, git, home, task, lent) for name, one in agent.others.items()}
        return replace(agent, agent=move_agent(agent.agent, git, home, task, lent), others=others)
    inner = getattr(agent, "agent", None)
    if inner is None:
        raise TypeError(f"nobody knows how {agent.name} works elsewhere")
    return replace(agent, agent=move_agent(inner, git, home, task, lent))  # type: ignore[type-var]  # every one of ours is a dataclass


def _elsewhere(agent: CommandAgent, git: Git, home: Path, task: str, lent: Mapping[str, str]) -> CommandAgent:
    env, sandbox = {**agent.extra_env, **lent, "RALPH_TASK": task}, sandboxes.writable_elsewhere(agent.sandbox, git)
    return replace(agent, work_tree=git.work_tree or agent.work_tree, home=home, extra_env=env, sandbox=sandbox)


class ApartRunStore(FileRunStore):
    """The store of a session in a clone: its files are there, but a person's messages are the run's."""

    def __init__(self, part: Part, place: WorkspaceApart, ports: RunPorts, ended: Callable[[], bool]) -> None:
        super().__init__(part.folder, part.git.git_dir, place.tree, ports.clock.now)
        self._ports, self._ended = ports, ended

    def signal(self) -> StopSignal:
        """A person's request to the running loop. An interrupt ends the session like a cancel."""
        return "cancel" if self._ended() else self._ports.store.signal()

    def heard(self) -> bool:
        """Whether a person's signal or guidance is unhandled."""
        return bool(self.signal())

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """Does nothing: the run that passed it on handles it."""


def due(asked: RunOptions) -> RunOptions | None:
    """The planning to start or resume, or None."""
    root = open_checkout(asked.repo)[1]
    named = recall_planning(asked, root)
    return named if needs_planning(named, root) else None


def write_stories(
    asked: RunOptions, progress: RunProgress, follows: bool = False, replacing: bool = False
) -> tuple[RunSetup, RunResult]:
    """Write and check the stories; returns what it was done with. If a run `follows`, it continues from the resulting
    state. Raises UserError."""
    made = build_run(replace(asked, planning=True, worktree=False), progress)

    def read() -> tuple[Prd | None, str]:
        stories = Stories(made.root)
        return stories.read(), stories.complaint

    kind = made.spec.kind if follows else ""
    return made, planning.plan_stories(planning.planning_spec(made.spec), made.ports, read, kind, replacing)


def agree_on_plan(asked: RunOptions, progress: RunProgress) -> tuple[RunSetup, RunResult]:
    """Ralplan on a task. If the Critic approved, continuing the run writes stories from the plan. Raises
    UserError."""
    made = build_run(replace(asked, planning=True, worktree=False), progress)
    account = play(replace(made, spec=replace(made.spec, persistent=False)), "ralplan")
    if account.ending.reason == "complete":
        plan = FileArtifactStore(made.root / ".ralph").read(ralplan.PLAN)
        state.save(made.root, planning.state_after_agreement(account.state, plan))
    return made, account
