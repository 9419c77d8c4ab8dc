"""The action run for real, without Docker: a local runner, a copy of the action, and GitHub on loopback.

Every job starts with an emptied environment, an empty home and a workflow of three steps: the
action, a look for what it left behind, and what it said.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ralph_mission.cli.setup.files import ActionReference
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git, make_repo

ROOT = Path(__file__).resolve().parent.parent.parent
LOCKS = tuple(sorted(path.name for path in ROOT.glob("requirements*.lock")))
ACTION = ("action.yml", "pyproject.toml", *LOCKS, "README.md", "LICENSE", "scripts", "ralph_mission")
CHECKOUT = re.search(r"uses: (actions/checkout@[0-9a-f]{40})", (ROOT / "action.yml").read_text())
REPOSITORY = "harbour/slackwater"
INSTALLED = ActionReference("ralph/mission", "a" * 40)  # as `ralph init` names it in workflows

WORKFLOW = """\
on:
  schedule: [{cron: '7 * * * *'}]
  workflow_dispatch:
  repository_dispatch: {types: [ralph-loop-trigger]}
  issues:
  pull_request:
jobs:
  cycle:
    runs-on: self-hosted
    env: ENVIRONMENT
    steps:
      - id: ralph
        uses: ralph/mission@v1
        with: INPUTS
      - if: always()
        env:
          TOKEN: ${{ secrets.GITHUB_TOKEN }}
        run: |
          basic="$(printf 'x-access-token:%s' "$TOKEN" | base64 | tr -d '\\n')"
          key="${ANTHROPIC_API_KEY:-$TOKEN}"
          grep -rlF -e "$TOKEN" -e "$basic" -e "$key" \\
            "$GITHUB_WORKSPACE" "$RUNNER_TEMP" "$HOME/.config" "$HOME/.gitconfig" >"$RESULTS/leaks" 2>/dev/null || true
          find "$RUNNER_TEMP" -mindepth 1 -maxdepth 1 ! -empty -printf "%f\\n" >"$RESULTS/temporary"
          find "$GITHUB_WORKSPACE" "$RUNNER_TEMP" "$HOME" -name owned >"$RESULTS/executed"
      - if: always()
        env:
          OUTPUTS: ${{ toJSON(steps.ralph.outputs) }}
          SUMMARY: ${{ steps.ralph.outputs.summary-path }}
        run: |
          printf %s "$OUTPUTS" >"$RESULTS/outputs.json"
          echo "afterwards: $GITHUB_REPOSITORY"
          [ -z "$SUMMARY" ] || cp "$SUMMARY" "$RESULTS/summary.md"
"""


@dataclass(frozen=True, slots=True)
class Job:
    """How a job ended.

    `checkouts`: depth and persistence of each; `leaks`: files with the token in them; `temporary`: what is left in
    the runner's folder; `owned`: files that only an executed text can have made; `starts`: for each start of ralph
    its command and its environment, and in that its ARGUMENTS.
    """

    code: int
    log: str
    outputs: Mapping[str, str]
    summary: str
    checkouts: list[str]
    leaks: list[str]
    temporary: list[str]
    owned: list[str]
    starts: list[tuple[str, Mapping[str, str]]] = field(repr=False)


def assert_nothing_began(job: Job, github: FakeGitHub, line: str) -> None:
    """It stopped before anything, and says so, with what to write instead."""
    assert job.code != 0 and "exit status 2" in job.log
    assert "Summary - **Ralph could not start.**" in job.log and line in job.log
    assert (job.starts, job.checkouts, job.owned, github.journal) == ([], [], [], [])


def release(folder: Path) -> Path:
    """The action as a runner downloads it."""
    for name in ACTION:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    return folder


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    """What is left after `env -i`, with the Python of the tests on the path."""
    path = os.pathsep.join((f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"))
    return {"PATH": path, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), **more}


def wait_for(path: Path) -> None:
    """Until somebody made `path`; an assertion fails when nobody does within a minute."""
    deadline = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Runner:
    """One self-hosted runner: `home` is what it keeps between jobs, `action` a copy of the action.

    `options` are more of the local runner's own; `environment` is what its jobs find beside what every job finds;
    `repository` is the one whose jobs it takes.
    """

    home: Path
    action: Path
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    repository: str = REPOSITORY

    @property
    def tools(self) -> Path:
        """Its tool cache."""
        return self.home / ".cache" / "act" / "tool_cache"

    def seed(self, noise: str = "", python: str = sys.executable, files: Mapping[str, str] | None = None) -> None:
        """Make it warm: an environment that starts the ralph of these tests, and notes down how it was started.

        `noise` is what it says on standard error before; `python` may be something that does nothing; `files` are those
        of the repository, with or without workflows.
        """
        flows = {".github/workflows/loop.yml": ""}
        for held in ({}, flows, files or {}, {**flows, **(files or {})}):
            self._seed(self.place(held), noise, python)

    def _seed(self, place: Path, noise: str, python: str) -> None:
        (place / "bin").mkdir(parents=True, exist_ok=True)
        for name in ("python", "ralph"):
            (place / "bin" / name).write_text(
                f'#!/bin/sh\n[ "$2" != -m ] || printf "%s\\0" "$4" "$(env; echo "ARGUMENTS=$*")" >>"$RESULTS/starts"\n'
                f"printf %s {shlex.quote(noise)} >&2\n"
                f'exec "{python}" "$@"\n'
            )
            (place / "bin" / name).chmod(0o755)

    def place(self, files: Mapping[str, str] | None = None) -> Path:
        """Where the action looks for its environment, with a checkout of these files."""
        command = ["bash", str(self.action / "scripts" / "action" / "environment.sh"), "--place"]
        with tempfile.TemporaryDirectory(dir=self.home) as folder:
            for name, text in (files or {}).items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text)
            environment = bare_environment(self.home, RUNNER_TOOL_CACHE=str(self.tools), GITHUB_WORKSPACE=folder)
            return Path(subprocess.check_output(command, env=environment, text=True).strip())

    def run(
        self,
        token: str,
        server: str,
        event: str = "schedule",
        inputs: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        payload: Mapping[str, object] | None = None,
        workflow: str = "",
    ) -> Job:
        """One job, from the event to its end. `workflow` takes the place of ours, which looks at what is left."""
        results = self.home / f"job-{len(list(self.home.glob('job-*')))}"
        text = workflow or workflow_of(inputs, environment)
        repository = make_repo(results / "repository", {".github/workflows/loop.yml": text})
        git(repository, "remote", "add", "origin", f"https://github.com/{self.repository}")
        (results / "event.json").write_text(json.dumps(payload or {}))
        done = subprocess.run(
            self.act_command(event, token, server, results),
            cwd=repository,
            env=bare_environment(self.home),
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return _job(done.returncode, done.stdout, results)

    def act_command(self, event: str, token: str, server: str, results: Path) -> list[str]:
        assert CHECKOUT, "action.yml pins no checkout"
        stand_in = ROOT / "tests" / "action" / "checkout"
        variables = {
            "RESULTS": str(results),
            "GITHUB_SERVER_URL": server,
            "GITHUB_API_URL": f"{server}/api/v3",
            "GITHUB_REPOSITORY": self.repository,
            "NO_PROXY": "127.0.0.1",
            **self.environment,
        }
        return [
            str(Path(sys.executable).with_name("act")),
            event,
            *self.options,
            "--eventpath",
            str(results / "event.json"),
            "--platform",
            "self-hosted=-self-hosted",
            "--no-cache-server",
            "--pull=false",
            "--action-offline-mode",
            "--no-skip-checkout",
            "--secret",
            f"GITHUB_TOKEN={token}",
            "--local-repository",
            f"ralph/mission@v1={self.action}",
            "--local-repository",
            f"{INSTALLED}={self.action}",
            "--local-repository",
            f"{CHECKOUT[1]}={stand_in}",
            *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
        ]


def workflow_of(inputs: Mapping[str, str] | None, environment: Mapping[str, str] | None) -> str:
    # JSON is YAML.
    text = WORKFLOW.replace("INPUTS", json.dumps(dict(inputs or {})))
    return text.replace("ENVIRONMENT", json.dumps(dict(environment or {})))


def _job(code: int, log: str, results: Path) -> Job:
    def text(name: str) -> str:
        return (results / name).read_text() if (results / name).exists() else ""

    words = text("starts").split("\0")
    return Job(
        code,
        log,
        outputs=json.loads(text("outputs.json") or "{}"),
        summary=text("summary.md"),
        checkouts=text("checkouts").splitlines(),
        leaks=text("leaks").splitlines(),
        temporary=text("temporary").splitlines(),
        owned=text("executed").splitlines(),
        starts=[(command, _pairs(variables)) for command, variables in zip(words[:-1:2], words[1::2], strict=True)],
    )


def _pairs(environment: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in environment.splitlines())
    return {name: value for name, equals, value in pairs if equals}
