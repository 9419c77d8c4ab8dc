"""The composition root of stories with several hats: a bench, and a crew whose members play in clones of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

from ralph_mission.agents.command import CommandAgent
from ralph_mission.agents.crew import MOST, Crew, Kit
from ralph_mission.agents.fallback import FallbackAgent
from ralph_mission.agents.scripted import ScriptedAgent
from ralph_mission.bootstrap import cages
from ralph_mission.bootstrap.asked import Asked
from ralph_mission.bootstrap.loop import Bench
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.workspace.parallel import Part, WorkspaceApart
from ralph_mission.gateways.workspace.user import User
from ralph_mission.loop import patterns, ralplan, team, ultrawork
from ralph_mission.loop.model import Guidance, Signal
from ralph_mission.loop.order import Account, Order
from ralph_mission.loop.ports import Agent, Job, Ports
from ralph_mission.loop.ports import Crew as CrewPort
from ralph_mission.loop.ports import Papers as PapersPort
from ralph_mission.stores.loop.desk import Desk
from ralph_mission.stores.loop.papers import Papers
from ralph_mission.trouble import Trouble


class Story(Protocol):
    """One of the three."""

    def __call__(self, order: Order, ports: Ports, crew: CrewPort, papers: PapersPort) -> Account:
        """The whole run."""
        ...


STORIES: Mapping[str, Story] = {"ralplan": ralplan.run, "ultrawork": ultrawork.run, "team": team.run}
"""What `--pattern` names besides the patterns of hats."""


def named(pattern: str) -> str:
    """The story that `pattern` names, "" for what may be a pattern of hats. Raises Trouble for nearly a story."""
    key = pattern.strip().lower()
    near = get_close_matches(key, (*STORIES, *patterns.PATTERNS, *patterns.ALIASES), 1)
    if near and near[0] in STORIES and near[0] != key:
        raise Trouble(f"no pattern {pattern!r}", f"did you mean {near[0]}?", usage=True)
    return key if key in STORIES else ""


def chosen(asked: Asked) -> str:
    """The story that is asked for, "" for any other run. Raises Trouble (usage) for options it has no use for."""
    name = named(asked.pattern)
    if name and asked.stories:
        raise _no_gate(name)
    if asked.build and name != "ralplan":
        raise Trouble("--build builds what a critic approved", "give it with --pattern ralplan", usage=True)
    return name


def play(made: Bench, name: str, most: int = MOST, build: bool = False) -> Account:
    """Run the order of `made` as the story `name` tells it, with `most` sessions at the same time. Raises Trouble.

    `build`: what ralplan approves is built.
    """
    if made.order.persistent:
        what = f"event_loop.persistent goes from task to task, and {name} ends with one"
        raise Trouble(what, "take event_loop.persistent out of ralph.yml, or run without --pattern", usage=True)
    if made.order.preset.stories:
        raise _no_gate(name)
    git = Git.open(made.root)
    story: Story = partial(ralplan.run, build=True) if build else STORIES[name]
    return story(made.order, made.ports, crew(made, git, most), Papers(made.root / ".ralph"))


def _no_gate(name: str) -> Trouble:
    """Its end is a verdict on one task: stories would neither be worked through nor be asked for."""
    what = f"{name} works on one task, not through the stories of prd.json"
    mend = "give it the task in words, or run the stories without --pattern or with a pattern of hats"
    return Trouble(what, mend, usage=True)


def crew(made: Bench, git: Git, most: int = MOST) -> Crew:
    """Members that play as the bench's agent does, each in a clone below `.ralph/apart`."""
    ports, user = made.ports, User.of(git)

    def equip(part: Part, job: Job, ended: Callable[[], bool]) -> Kit:
        place = WorkspaceApart(git, part.folder, user=user)
        desk = DeskApart(part, place, ports, ended)
        home = made.root / ".ralph/loop/apart" / job.name  # not in the run's own home, which nobody else may enter
        return Kit(replace(ports, agent=moved(ports.agent, part.git, home, job.name), workplace=place, desk=desk),
                   Papers(part.folder / ".ralph"), place)  # fmt: skip  # one value

    return Crew(git, made.root / ".ralph/apart", equip, user, most)


def moved(agent: Agent, git: Git, home: Path, task: str) -> Agent:
    """The same agent in another checkout, with a home that stays for the task, whose name is `RALPH_TASK`."""
    if isinstance(agent, CommandAgent):
        return _elsewhere(agent, git, home, task)
    if isinstance(agent, ScriptedAgent):
        return agent.apart(_elsewhere(agent.agent, git, home, task), task)
    if isinstance(agent, FallbackAgent):
        return replace(agent, agents=tuple(moved(one, git, home, task) for one in agent.agents))
    inner = getattr(agent, "agent", None)
    if inner is None:
        raise TypeError(f"nobody knows how {agent.name} works elsewhere")
    return replace(agent, agent=moved(inner, git, home, task))  # type: ignore[type-var]  # every one of ours is a dataclass


def _elsewhere(agent: CommandAgent, git: Git, home: Path, task: str) -> CommandAgent:
    env, cage = {**agent.extra_env, "RALPH_TASK": task}, cages.elsewhere(agent.cage, git)
    return replace(agent, work_tree=git.work_tree or agent.work_tree, home=home, extra_env=env, cage=cage)


class DeskApart(Desk):
    """The desk of a session in a clone: its files are there, a person's word is the one said to the run."""

    def __init__(self, part: Part, place: WorkspaceApart, ports: Ports, ended: Callable[[], bool]) -> None:
        super().__init__(part.folder, part.git.git_dir, place.tree, ports.clock.now)
        self._ports, self._ended = ports, ended

    def signal(self) -> Signal:
        """As in `ports.Desk`; an interrupt ends the session as a cancel does."""
        return "cancel" if self._ended() else self._ports.desk.signal()

    def heard(self) -> bool:
        """As in `ports.Desk`."""
        return bool(self.signal())

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """Nothing: the run that handed it out knows."""
