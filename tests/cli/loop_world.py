"""A repository with a scripted program as its agent, and `ralph run` as a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import Result, cli_here, git, make_repo

RALPH = [sys.executable, "-c", "import sys; from ralph_mission.cli.main import main; sys.exit(main())"]
HEAD = """
import json, os, pathlib, subprocess, sys, time
prompt = sys.stdin.read()
here = pathlib.Path(__file__).parent
calls = here / "calls"
with calls.open("ab", buffering=0) as file:
    file.write(os.environ["RALPH_HAT"].encode() + b"\\n")
    own_end = file.tell()
call = len(calls.read_bytes()[:own_end].split())  # its own number, also beside another session
(here / f"prompt-{call}").write_text(prompt)
starter = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]  # of our shell
(here / f"pid-{call}").write_text(f"{os.getpid()} {starter}")
run_dir = pathlib.Path(os.environ["RALPH_RUN_DIR"])

def change():
    pathlib.Path(f"file-{call}.txt").write_text(str(call))

def commit(message="step"):
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-qm", message], check=True)

def flip(*ids):
    prd = json.loads(pathlib.Path("prd.json").read_text())
    for story in prd["userStories"]:
        story["passes"] = story["passes"] or story["id"] in ids
    pathlib.Path("prd.json").write_text(json.dumps(prd, indent=2))

def todo():
    prd = json.loads(pathlib.Path("prd.json").read_text())
    return [story["id"] for story in prd["userStories"] if not story["passes"]]
"""
ONE_STORY = "change()\nflip(todo()[0])\nprint('did it')"
"""What an agent does that lets one story pass in each session."""


@dataclass(frozen=True, slots=True)
class World:
    """A repository at `repo`; what the agent leaves for the test is beside it."""

    repo: Path
    aside: Path

    @property
    def clone(self) -> Path:
        """Where sessions work."""
        return self.repo / ".ralph/workspace/tree"

    @property
    def calls(self) -> list[str]:
        """The hat of each session so far."""
        path = self.aside / "calls"
        return path.read_text().split() if path.exists() else []

    def prompt(self, call: int) -> str:
        """What the session was told."""
        return (self.aside / f"prompt-{call}").read_text()

    def pids(self, call: int) -> tuple[int, int]:
        """The process of the session's agent, and of the run that started its shell."""
        agent, starter = (self.aside / f"pid-{call}").read_text().split()
        return int(agent), int(starter)

    def end(self, process: subprocess.Popen[str]) -> None:
        """Kill the run as a crash of the machine would; then its agent, which such a kill leaves behind."""
        process.kill()
        process.communicate()
        for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            if str(self.aside / "agent.py") in _command(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def agent(self, script: str) -> list[str]:
        """The options that name a program of these lines of Python as the agent."""
        (self.aside / "agent.py").write_text(HEAD + script)
        # Nothing of an environment's packages is wanted there, and to look for them takes half of its time.
        return ["--command", f"{shlex.quote(sys.executable)} -S {shlex.quote(str(self.aside / 'agent.py'))}"]

    def run(self, *options: str, env: Mapping[str, str] | None = None) -> Result:
        """`ralph run … --json` to its end, in this process."""
        return self.ralph("run", *options, "--json", env=env)

    def run_apart(self, *options: str, env: Mapping[str, str] | None = None) -> Result:
        """The same as a process of its own, for what is about processes and their environment."""
        done = subprocess.run(self.line(options), capture_output=True, text=True, check=False, cwd=self.repo,
                              env=os.environ | dict(env or {}))  # fmt: skip  # one call
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *options: str) -> subprocess.Popen[str]:
        """The same, going on beside the test."""
        return subprocess.Popen(self.line(options), text=True, cwd=self.repo,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip  # one call

    def line(self, options: Sequence[str]) -> list[str]:
        """The command line."""
        return [*RALPH, "run", *options, "--json"]

    def ralph(self, *arguments: str, env: Mapping[str, str] | None = None) -> Result:
        """Any other command, in this process."""
        return cli_here(*arguments, env=env, cwd=self.repo)

    def stories(self, count: int, branch: str = "ralph/shop", place: str = "prd.json") -> None:
        """A list of `count` stories, none of which passes."""
        listed = [{"id": f"US-{number:03}", "title": f"Part {number}", "description": "x", "priority": number,
                   "acceptanceCriteria": ["it is there"], "passes": False, "notes": ""}
                  for number in range(1, count + 1)]  # fmt: skip  # one list
        prd = {"project": "Shop", "branchName": branch, "description": "A shop", "userStories": listed}
        (self.repo / place).parent.mkdir(exist_ok=True)
        (self.repo / place).write_text(json.dumps(prd, indent=2))

    def passing(self, place: str = "prd.json") -> list[str]:
        """The stories that pass."""
        listed = json.loads((self.repo / place).read_text())["userStories"]
        return [story["id"] for story in listed if story["passes"]]

    def messages(self) -> list[str]:
        """The subjects of the commits on this branch, newest first."""
        return git(self.repo, "log", "--format=%s").splitlines()


def world(folder: Path, files: Mapping[str, str] | None = None) -> World:
    """A new repository in `folder`."""
    aside = folder / "aside"
    aside.mkdir(parents=True)
    repo = make_repo(folder / "shop", {"README.md": "# Shop\n", **(files or {})})
    with (repo / ".git/config").open("a") as config:
        config.write("[user]\n\tname = Mara Quint\n\temail = mara@example.org\n")
    return World(repo, aside)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def works(pid: int) -> bool:
    """Whether the process still does something: one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def until(true: Callable[[], Any], seconds: float = 300) -> None:
    """Wait for a condition; a test that waits in vain fails."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)
