"""Somebody hears how each whole cycle ends, so that one that fails again and again is noticed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.bootstrap import Household
    from ralph_mission.gateways.git import Git
    from ralph_mission.mission.account import CycleReport, Outcome
    from ralph_mission.mission.ports import Forge


@dataclass(slots=True)
class Course:
    """How far a cycle came: its household once there is one, its report once there is one."""

    house: Household | None = None
    report: CycleReport | None = None


@contextmanager
def alarmed(repo: Path, staged: bool = False) -> Iterator[Course]:
    """Around one whole cycle: three equal failures in a row open an issue, the next success closes it."""
    course = Course()
    try:
        yield course
    except Exception as error:
        _hear(repo, course, error, staged)
        raise
    if course.report:
        _hear(repo, course, course.report.outcome, staged)


def _hear(repo: Path, course: Course, outcome: Outcome | Exception, staged: bool) -> None:
    from ralph_mission.bootstrap import known_secrets
    from ralph_mission.flows.alarm import Bell, hear
    from ralph_mission.gateways.git import Git
    from ralph_mission.stores.failures import FailureFile, place

    if sys.stderr.isatty():
        return  # a person sees it herself
    try:
        git = course.house.git if course.house else Git.open(repo)
    except Trouble:
        return  # no repository, so nothing that could go silent
    counter = FailureFile(place(git.common_dir, os.environ))
    bell = Bell(counter, _forge(course, git), datetime.now(UTC), _say, known_secrets(), _run())
    hear(bell, outcome, staged=staged)


def _forge(course: Course, git: Git) -> Forge | None:
    from ralph_mission.bootstrap import bare_forge

    if course.house:
        return course.house.forge
    try:
        return bare_forge(git)
    except Trouble:
        return None


def _run() -> str:
    """The page of this workflow run, "" outside of one."""
    server, repository, run = (os.environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run.isdigit() else ""


def _say(line: str) -> None:
    click.echo(line, err=True)
