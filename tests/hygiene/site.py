"""One self-hosted runner between two jobs: its home, its tool cache, its workspace, and the steps of action.yml."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.action.runner import REPOSITORY, ROOT, bare_environment
from tests.helpers import make_repo

STEPS = {step["name"]: step for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]}
PREPARED = r"steps\.prepare\.outputs\.(python|scratch)"
OTHERS = r"inputs\.[a-z-]+|steps\.[a-z]+\.outcome"


@dataclass(frozen=True, slots=True)
class Site:
    """`source` is the repository on its server; `owned` a file that only executed text can have made."""

    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temp(self) -> Path:
        return self.root / "temp"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def scratch(self) -> Path:
        return self.temp / "ralph-abcdEF12"

    @property
    def owned(self) -> Path:
        return self.root / "owned"

    @property
    def harm(self) -> str:
        """A program that leaves its mark and gives back what it is given."""
        program = self.root / "harm"
        program.write_text(f'#!/bin/sh\necho "$0 $*" >>"{self.owned}"\n')
        program.chmod(0o755)
        return str(program)

    def environment(self, **more: str) -> dict[str, str]:
        """What the runner gives every step."""
        places = {
            "GITHUB_WORKSPACE": self.workspace,
            "GITHUB_ACTION_PATH": ROOT,
            "GITHUB_OUTPUT": self.temp / "output",
            "GITHUB_STEP_SUMMARY": self.temp / "page",
            "RUNNER_TEMP": self.temp,
            "RUNNER_TOOL_CACHE": self.tools,
        }
        named = {name: str(place) for name, place in places.items()}
        return bare_environment(self.home, GITHUB_REPOSITORY=REPOSITORY, **named, **more)

    def given(self, name: str, said: Mapping[str, str] | None = None) -> dict[str, str]:
        """What action.yml itself gives this step; `said` is what its expressions come to. Others are refused."""
        known = {
            "steps.install.outputs.python": sys.executable,
            "inputs.agent == 'claude' && 'claude' || ''": "",
            "steps.prepare.outputs.scratch": str(self.scratch),
            "steps.checkout.outcome": "success",
        }

        def value(found: re.Match[str]) -> str:
            assert found[1] in known or re.fullmatch(f"{PREPARED}|{OTHERS}", found[1]), found[1]
            return {**known, **(said or {})}.get(found[1], "")

        step: dict[str, Any] = STEPS[name]
        return {key: re.sub(r"\$\{\{ (.+?) \}\}", value, text) for key, text in step.get("env", {}).items()}

    def run(self, name: str, said: Mapping[str, str] | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """A step of action.yml by its name, as the runner would start it."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]],
            cwd=self.workspace, env=self.environment(**self.given(name, said), **more), text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip  # one call

    def check_out(self, **settings: str) -> None:
        """What actions/checkout does to a folder that it may know, by the same commands of git."""
        if self._git("config", "--local", "--get", "remote.origin.url", **settings) != f"{self.source}\n":
            for place in self.workspace.iterdir():
                shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
            self._git("init", ".", **settings)
            self._git("remote", "add", "origin", str(self.source), **settings)
        else:
            for words in ("checkout --detach", "clean -ffdx", "reset --hard HEAD"):
                self._git(*words.split(), **settings)
        self._git("config", "--local", "gc.auto", "0", **settings)
        self._git("fetch", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*", **settings)
        self._git("checkout", "--force", "-B", "main", "refs/remotes/origin/main", **settings)

    def _git(self, *words: str, **settings: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.workspace, env=self.environment(**settings), text=True, check=False, capture_output=True,
        )  # fmt: skip  # one call
        return done.stdout


FILES = {"ralph.yml": "limits: {}\n", "tide.py": "print('tide')\n"}


def built(root: Path) -> Site:
    """A runner whose last job went well."""
    site = Site(root)
    for place in (site.home, site.temp, site.tools, site.workspace):
        place.mkdir(parents=True)
    make_repo(site.source, FILES)
    site.check_out()
    return site


def tampered(site: Site) -> dict[str, str]:
    """What stands in the checkout and is not what its server has."""
    there = {name: (site.workspace / name).read_text() for name in FILES if (site.workspace / name).is_file()}
    return {name: there.get(name, "is missing") for name in FILES if there.get(name) != FILES[name]}


def moved(site: Site, root: Path) -> Site:
    """A copy of its own, with the address of the server in it."""
    shutil.copytree(site.root, root, symlinks=True)
    settings = root / "workspace" / ".git" / "config"
    settings.write_text(settings.read_text().replace(str(site.root), str(root)))
    return Site(root)


def alive(process: int) -> bool:
    """Whether it runs; one that is over and not yet collected does not."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
