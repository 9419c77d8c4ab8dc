"""The weekly job that runs `make crash`: its figures reach the page of the job, and its failure the job."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.action.runner import ROOT

SAID = """\
....
[races] merging, at once: 20 races, 0 duplicates, 19 lost
[races] all 1: 20 races, 0 duplicates, 19 lost
[100%] nothing: of the kind
"""


def run(tmp_path: Path, code: int) -> tuple[int, str]:
    """Exit code and page of the job, with `make` saying what it may say."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "crash", tmp_path / ".ci")
    (tmp_path / "said").write_text(SAID)
    (tmp_path / "make").write_text(
        f'#!/bin/sh\n[ "$*" = "crash" ] || exit 9\ncat "{tmp_path}/said"\necho "4 passed in 0.1s"\nexit {code}\n'
    )
    (tmp_path / "make").chmod(0o755)
    page = tmp_path / "page"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": path, "GITHUB_STEP_SUMMARY": str(page)}
    done = subprocess.run([tmp_path / ".ci" / "crash"], env=given, capture_output=True, check=False)
    return done.returncode, page.read_text()


@pytest.mark.parametrize(("code", "words"), [(0, "## make crash: passed"), (2, "## make crash: FAILED (exit code 2)")])
def test_the_figures_are_on_the_page_however_it_ends(tmp_path: Path, code: int, words: str) -> None:
    ended, page = run(tmp_path, code)
    assert ended == code
    assert page.splitlines()[0] == words
    assert [line for line in page.splitlines() if line.startswith("| races")] == [
        "| races | merging, at once | 20 races, 0 duplicates, 19 lost |",
        "| races | all 1 | 20 races, 0 duplicates, 19 lost |",
    ]
    assert "`4 passed in 0.1s`" in page and "of the kind" not in page


def test_it_runs_every_week_and_by_hand_with_nothing_but_a_checkout() -> None:
    job = yaml.load((ROOT / ".github" / "workflows" / "crash.yml").read_text(), yaml.BaseLoader)
    (line,) = job["on"]["schedule"]
    assert line["cron"].split()[2:] == ["*", "*", "0"] and "workflow_dispatch" in job["on"]
    (crash,) = job["jobs"].values()
    assert (job["permissions"], crash["permissions"]) == ({}, {"contents": "read"})
    assert crash["steps"][-1] == {"run": ".ci/crash"}
