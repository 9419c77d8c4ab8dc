"""The composition root of stories with several hats: a bench, and a crew whose members play in clones of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

from ralph_mission.agents.command import CommandAgent
from ralph_mission.agents.crew import MOST, ClonePool, Kit
from ralph_mission.agents.fallback import FallbackAgent
from ralph_mission.agents.scripted import ScriptedAgent
from ralph_mission.bootstrap import cages
from ralph_mission.bootstrap.asked import RunOptions
from ralph_mission.bootstrap.loop import RunSetup
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.workspace.parallel import Part, WorkspaceApart
from ralph_mission.gateways.workspace.user import User
from ralph_mission.loop import patterns, ralplan, team, ultrawork
from ralph_mission.loop.items import Guidance, StopSignal
from ralph_mission.loop.order import RunResult, RunSpec
from ralph_mission.loop.ports import Agent, ParallelSession, RunPorts
from ralph_mission.loop.ports import ArtifactStore as PapersPort
from ralph_mission.loop.ports import SessionPool as CrewPort
from ralph_mission.stores.loop.desk import FileRunStore
from ralph_mission.stores.loop.papers import FileArtifactStore
from ralph_mission.trouble import UserError


class TeamRun(Protocol):
    """One of the three."""

    def __call__(self, order: RunSpec, ports: RunPorts, crew: CrewPort, papers: PapersPort) -> RunResult:
        """The whole run."""
        ...


TEAMS: Mapping[str, TeamRun] = {
    "ralplan": ralplan.run_ralplan,
    "ultrawork": ultrawork.run_ultrawork,
    "team": team.run_team,
}
"""What `--pattern` names besides the patterns of hats."""


def find_team(pattern: str) -> str:
    """The story that `pattern` names, "" for what may be a pattern of hats. Raises Trouble for nearly a story."""
    key = pattern.strip().lower()
    near = get_close_matches(key, (*TEAMS, *patterns.PATTERNS, *patterns.ALIASES), 1)
    if near and near[0] in TEAMS and near[0] != key:
        raise UserError(f"no pattern {pattern!r}", f"did you mean {near[0]}?", usage=True)
    return key if key in TEAMS else ""


def choose_team(asked: RunOptions) -> str:
    """The story that is asked for, "" for any other run. Raises Trouble (usage) for options it has no use for."""
    name = find_team(asked.pattern)
    if name and asked.stories:
        raise _no_gate(name)
    if asked.build and name != "ralplan":
        raise UserError("--build builds what a critic approved", "give it with --pattern ralplan", usage=True)
    return name


def play(made: RunSetup, name: str, most: int = MOST, build: bool = False) -> RunResult:
    """Run the order of `made` as the story `name` tells it, with `most` sessions at the same time. Raises Trouble.

    `build`: what ralplan approves is built.
    """
    if made.order.persistent:
        what = f"event_loop.persistent goes from task to task, and {name} ends with one"
        raise UserError(what, "take event_loop.persistent out of ralph.yml, or run without --pattern", usage=True)
    if made.order.preset.stories:
        raise _no_gate(name)
    git = Git.open(made.root)
    story: TeamRun = partial(ralplan.run_ralplan, build=True) if build else TEAMS[name]
    return story(made.order, made.ports, crew(made, git, most), FileArtifactStore(made.root / ".ralph"))


def _no_gate(name: str) -> UserError:
    """Its end is a verdict on one task: stories would neither be worked through nor be asked for."""
    what = f"{name} works on one task, not through the stories of prd.json"
    mend = "give it the task in words, or run the stories without --pattern or with a pattern of hats"
    return UserError(what, mend, usage=True)


def crew(made: RunSetup, git: Git, most: int = MOST) -> ClonePool:
    """Members that play as the bench's agent does, each in a clone below `.ralph/apart`."""
    ports, user = made.ports, User.of(git)

    def equip(part: Part, job: ParallelSession, ended: Callable[[], bool]) -> Kit:
        place = WorkspaceApart(git, part.folder, user=user)
        desk = ApartRunStore(part, place, ports, ended)
        home = made.root / ".ralph/loop/apart" / job.name  # not in the run's own home, which nobody else may enter
        return Kit(replace(ports, agent=move_agent(ports.agent, part.git, home, job.name), workplace=place, desk=desk),
                   FileArtifactStore(part.folder / ".ralph"), place)  # fmt: skip  # one value

    return ClonePool(git, made.root / ".ralph/apart", equip, user, most)


def move_agent(agent: Agent, git: Git, home: Path, task: str) -> Agent:
    """The same agent in another checkout, with a home that stays for the task, whose name is `RALPH_TASK`."""
    if isinstance(agent, CommandAgent):
        return _elsewhere(agent, git, home, task)
    if isinstance(agent, ScriptedAgent):
        return agent.apart(_elsewhere(agent.agent, git, home, task), task)
    if isinstance(agent, FallbackAgent):
        return replace(agent, agents=tuple(move_agent(one, git, home, task) for one in agent.agents))
    inner = getattr(agent, "agent", None)
    if inner is None:
        raise TypeError(f"nobody knows how {agent.name} works elsewhere")
    return replace(agent, agent=move_agent(inner, git, home, task))  # type: ignore[type-var]  # every one of ours is a dataclass


def _elsewhere(agent: CommandAgent, git: Git, home: Path, task: str) -> CommandAgent:
    env, cage = {**agent.extra_env, "RALPH_TASK": task}, cages.writable_elsewhere(agent.cage, git)
    return replace(agent, work_tree=git.work_tree or agent.work_tree, home=home, extra_env=env, cage=cage)


class ApartRunStore(FileRunStore):
    """The desk of a session in a clone: its files are there, a person's word is the one said to the run."""

    def __init__(self, part: Part, place: WorkspaceApart, ports: RunPorts, ended: Callable[[], bool]) -> None:
        super().__init__(part.folder, part.git.git_dir, place.tree, ports.clock.now)
        self._ports, self._ended = ports, ended

    def signal(self) -> StopSignal:
        """As in `ports.RunStore`; an interrupt ends the session as a cancel does."""
        return "cancel" if self._ended() else self._ports.desk.signal()

    def heard(self) -> bool:
        """As in `ports.RunStore`."""
        return bool(self.signal())

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """Nothing: the run that handed it out knows."""
