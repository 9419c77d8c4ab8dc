"""A repository on a forge whose missions an agent carries out: a program of the test's, in the real loop."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from tests.integration.hub import Hub, open_hub
from tests.integration.world import World, world

Files = dict[str, str | bytes]
FILES: Files = {"README.md": "# Harbour\n", "src/tide.py": "TIDE = 1\n"}
HEAD = """\
import os, pathlib, sys
here = pathlib.Path({here!r})
prompt = sys.stdin.read()
call = len(list(here.glob("prompt-*"))) + 1
(here / f"prompt-{{call}}").write_text(prompt)
def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)
"""
DONE = "\nprint('The table is there.')\nprint('LOOP_COMPLETE')\n"


@dataclass
class AgentWorld:
    """A world with an agent. `says` replaces what the agent does; `prompts` are what it was told."""

    place: Hub | World
    aside: Path

    def says(self, script: str, done: bool = True) -> None:
        head = HEAD.format(here=str(self.aside))
        (self.aside / "agent.py").write_text(head + script + (DONE if done else ""))

    @property
    def prompts(self) -> list[str]:
        return [(self.aside / f"prompt-{n + 1}").read_text() for n in range(len(list(self.aside.glob("prompt-*"))))]

    def cycle(self, **request: Any) -> tuple[CycleReport, CycleSummary]:
        return self.place.cycle(**request)

    def person(self, *who: Any) -> Any:
        return self.place.person(*who)

    def wanted(self, title: str = "Add a tide table", body: str = "It should show tides.", by: str = "mara") -> int:
        """An issue that a person made a mission."""
        number = self.person(by).create_issue(title, body)
        self.person("mara").label(number, ("ralph:mission",))
        return int(number)

    def house(self) -> Any:
        return self.place.house()

    def issue(self, number: int) -> Any:
        return self.house().forge.issue(number)

    def pulls(self) -> list[Any]:
        return list(self.house().forge.pulls("all"))

    def pull(self) -> Any:
        (one,) = self.pulls()
        return self.house().forge.pull(one.number)

    def said(self, number: int) -> list[str]:
        """What our account wrote there."""
        us = self.house().forge.identity().id
        return [remark.body for remark in self.issue(number).remarks if remark.author.id == us]

    @property
    def repo(self) -> Path:
        return self.place.clone if isinstance(self.place, Hub) else self.place.repo

    def at(self, sha: str, path: str) -> bytes:
        """A file of a commit of ours."""
        return self.house().git.run("show", f"{sha}:{path}")


def settings(aside: Path, more: str = "") -> str:
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(aside / 'agent.py'))}"
    agent = f"hands:\n  fixers: []\n  agent: {{kind: command, run: {program!r}}}\n"
    return f"{agent}observers:\n  code: {{markers: {{}}}}\n{more}"


@contextmanager
def agent_world(
    folder: Path, kind: str, more: str = "", files: Files | None = None, config: Callable[[Path], str] | None = None
) -> Iterator[AgentWorld]:
    """On `github` (the fake) or on the `local` forge. `config` makes other settings, given the folder aside."""
    aside = folder / "aside"
    aside.mkdir(parents=True)
    said = config(aside) if config else settings(aside, more)
    if kind == "local":
        made = AgentWorld(world(folder / "repo", files or FILES, said), aside)
        made.says("write('src/table.py', 'TABLE = 1\\n')")
        yield made
        return
    with open_hub(folder, files or FILES, said) as hub:
        made = AgentWorld(hub, aside)
        made.says("write('src/table.py', 'TABLE = 1\\n')")
        yield made
