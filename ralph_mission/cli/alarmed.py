"""Somebody hears how each whole cycle ends, so that one that fails again and again is noticed.

So do wakes of a workflow that never get as far as a cycle: the gate fails, or what comes before it. They share the
counter and the issue of the cycles, and nothing heavy is imported until there is something to tell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.gateways.place import acts_on_github
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.bootstrap.cycle import Household
    from ralph_mission.gateways.git import Git
    from ralph_mission.mission.account import CycleReport, Outcome
    from ralph_mission.mission.ports import Forge
    from ralph_mission.stores.failures import FailureFile

STAGED = "RALPH_STAGED"  # "true" in the environment of a wake that may change nothing
EARLY = "failed-before-a-cycle"  # a file that is there when the last failure was one of those


@dataclass(slots=True)
class Course:
    """How far a cycle came: its household once there is one, its report once there is one.

    `refusal`: why everything that it tried was refused, "" otherwise.
    """

    house: Household | None = None
    report: CycleReport | None = None
    refusal: str = ""


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
        from ralph_mission.flows.alarm import ended

        _hear(repo, course, ended(course.report.outcome, course.refusal), staged)


def _hear(repo: Path, course: Course, outcome: Outcome | Exception, staged: bool) -> None:
    from ralph_mission.bootstrap.known import known_secrets
    from ralph_mission.flows.alarm import Bell, hear
    from ralph_mission.gateways.git import Git
    from ralph_mission.stores.failures import FailureFile, place

    if sys.stderr.isatty() and not acts_on_github(os.environ):
        return  # a person sees it herself; some runners have a terminal, too, and nobody before it
    try:
        git = course.house.git if course.house else Git.open(repo)
    except Trouble:
        return  # no repository, so nothing that could go silent
    counter = FailureFile(place(git.common_dir, os.environ))
    bell = Bell(counter, _forge(course, git), datetime.now(UTC), _say, known_secrets(), _run())
    hear(bell, outcome, staged=staged)


def _forge(course: Course, git: Git) -> Forge | None:
    from ralph_mission.bootstrap.hosting import bare_forge

    if course.house:
        return course.house.forge
    try:
        return bare_forge(git)
    except Trouble:
        return None


# --- before a cycle -------------------------------------------------------------------


@contextmanager
def gated() -> Iterator[None]:
    """Around the gate of a workflow, or an agent's work in one: it fails as a cycle does, and when it comes to an end
    what failed before it is over.
    """
    if not acts_on_github(os.environ) or os.environ.get(STAGED) == "true":
        yield
        return
    try:
        yield
    except Exception as error:
        unreached(error)
        raise
    _answered()


def unreached(
    error: Exception, forge: Forge | None = None, secrets: tuple[str, ...] = (), *, early: bool = True
) -> None:
    """Count a wake that failed before its cycle, with nothing checked out. Never raises.

    `forge` takes the place of the real one, which is more than a bare Python can import; `secrets` are then all.
    `early`: an answer of the gate will prove that it is over.
    """
    import tempfile

    from ralph_mission.flows.alarm import Bell, hear

    try:
        with tempfile.TemporaryDirectory(prefix="ralph-alarm-") as folder:
            ours = forge or _bare(Path(folder))
            hear(Bell(_outside(), ours, datetime.now(UTC), _say, secrets or _secrets(), _run()), error)
            _mark(_early(), early)
    except Exception as problem:  # the alarm must not hide the failure that it is about
        _say(f"the alarm could not be seen to: {problem.what if isinstance(problem, Trouble) else problem!r}")


def _mark(place: Path, early: bool) -> None:
    if early:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    else:
        place.unlink(missing_ok=True)


def _answered() -> None:
    """In a row means in a row: the next failure before a cycle is a first one. What stands is for a cycle to close."""
    try:
        early = _early()
        if early.exists():
            counter = _outside()
            counter.write(replace(counter.read(), identity="", count=0, since=None))
            early.unlink(missing_ok=True)
    except (OSError, Trouble) as problem:
        _say(f"the alarm could not be seen to: {problem}")


def _bare(folder: Path) -> Forge | None:
    """The real forge over a repository without anything in it."""
    from ralph_mission.bootstrap.hosting import bare_forge
    from ralph_mission.gateways.git import Git

    git = Git(folder, folder, None)
    git.run("init", "--quiet", "--bare", str(folder))
    return bare_forge(git)


def _secrets() -> tuple[str, ...]:
    from ralph_mission.bootstrap.known import known_secrets

    return known_secrets()


def _early() -> Path:
    """Beside what the gate keeps, whose place costs it nothing to find. Raises Trouble."""
    from ralph_mission.cli.gate import kept
    from ralph_mission.gateways.place import place

    return kept(place(os.environ).git_url) / EARLY


def _outside() -> FailureFile:
    """The counter of the cycles, from outside of a clone: in a runner's tool cache. Raises Trouble."""
    from ralph_mission.stores.failures import FailureFile, place

    return FailureFile(place(_early().parent, os.environ))


def _run() -> str:
    """The page of this workflow run, "" outside of one."""
    server, repository, run = (os.environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run.isdigit() else ""


def _say(line: str) -> None:
    print(line, file=sys.stderr)
