"""Every command of an example in the documents, run as it stands there, example by example, on the sample.

A small program plays the agent, also where a page names a client: what clients do is for `make test-real`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import cli
from tests.test_docs import ROOT, commands

pytestmark = pytest.mark.long  # forty commands, some of which run sessions

AGENT = """#!/bin/sh
if grep -q '"issues"'; then echo '{"issues": []}'; else echo tide >> tides.txt; echo LOOP_COMPLETE; fi
"""
STORY = {"id": "S1", "title": "Priorities", "acceptanceCriteria": ["a task has one"], "priority": 1, "passes": False}
PRD = "# Priorities\n\n## User Stories\n\n### US-001: Keep a priority\n**Acceptance Criteria:**\n- [ ] it is kept\n"
WITH_AGENT = "hands: {agent: {kind: command, run: ./my-agent}}\nevent_loop: {max_iterations: 2}\n"
FILLED: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("--agent claude", lambda _: "--command ./my-agent"),
    ("OWNER/NAME@COMMIT", lambda _: f"o/n@{'c' * 40}"),
    ("task-1737372000-a1b2", lambda told: re.findall(r"task-\d+-[0-9a-f]{4}", told)[-1]),
    ("work --command", lambda _: "work --once --command"),  # which would wait for issues
)
"""What a reader fills in, by what stands there; given what a page's earlier commands printed."""
ENDS: dict[str, tuple[int, ...]] = {
    "run": (0, 1, 2),  # the program of this test writes neither plans nor verdicts
    "plan": (1, 2),
    "due": (0, 10),
}
"""Exit codes, by the command; of all others 0."""


def examples() -> dict[str, list[str]]:
    """The lines of each example, by its page and line."""
    found: dict[str, list[str]] = {}
    for place, line in commands():
        found.setdefault(place, []).append(line)
    return found


@pytest.fixture(scope="module")
def after_two_cycles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample as the quickstart leaves it."""
    folder = tmp_path_factory.mktemp("documented") / "all"
    sample = folder / "sample/slackwater"
    subprocess.run([sys.executable, str(ROOT / "examples/unpack.py"), str(sample)], check=True, capture_output=True)
    for name in ("my-agent", "my-reviewer"):
        (sample / name).write_text(AGENT)
        (sample / name).chmod(0o755)
    (sample / "tasks").mkdir()
    (sample / "tasks/prd-add-task-priorities.md").write_text(PRD)
    git = ("git", "-C", str(sample), "-c", "user.name=Mara", "-c", "user.email=mara@example.org")
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "Add an agent"], check=True)
    for _ in range(2):
        assert cli("cycle", "--force", repo=sample).code == 0
    (sample / "ralph.yml").unlink()  # what comes next is about a repository without settings
    subprocess.run([*git, "commit", "--all", "--quiet", "--message", "Take the settings out"], check=True)
    return folder


def prepare(place: str, sample: Path) -> None:
    page, lines = place.partition(":")[0], examples()[place]
    if page in ("docs/loop.md", "docs/missions.md"):
        (sample / "ralph.yml").write_text(WITH_AGENT)
        (sample / "PROMPT.md").write_text("Count the tides.\n")
    if any("run --issues" in line for line in lines):
        cli("issue", "label", "7", "ralph-ready", repo=sample)
    if any("run --prd" in line for line in lines):
        (sample / "prd.json").write_text(json.dumps({"project": "x", "branchName": "x", "userStories": [STORY]}))
    if page == "docs/fleet.md":
        (sample / "fleet.yml").write_text("repositories: [.]\n")


@pytest.mark.parametrize("place", examples())
def test_each_command_of_an_example_runs(place: str, after_two_cycles: Path, tmp_path: Path) -> None:
    here = shutil.copytree(after_two_cycles, tmp_path / "all", symlinks=True)
    sample, told = here / "sample/slackwater", ""
    prepare(place, sample)
    for line in examples()[place]:
        typed = line
        for what, fill in FILLED:
            typed = re.sub(rf"(?<!\S){re.escape(what)}", fill(told) if what in typed else "", typed)
        words = shlex.split(typed)
        done = cli(*words, cwd=here if "--repo" in words else sample, env={"HOME": str(tmp_path)})
        told += done.out
        assert done.code in ENDS.get(words[0], (0,)), f"{place}: ralph {typed}: {done.code}\n{done.out}\n{done.err}"
        assert "Traceback" not in done.err
