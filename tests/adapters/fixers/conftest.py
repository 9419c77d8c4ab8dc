"""A look at a repository's head as a cycle gives it to an observer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers import FIXERS
from ralph_mission.adapters.fixers.verify import FixerObserver
from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext

Look = Callable[..., Observation]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


@pytest.fixture
def look(tmp_path: Path, scratch: Path) -> Look:
    """`look(repo, "typos")`: what the fixer sees at HEAD."""

    def at(repo: Path, fixer: str, cache: Path = tmp_path / "cache") -> Observation:
        source = Git.open(repo)
        head = Branch("main", source.resolve("HEAD"))
        context = ObservationContext(head, datetime(2026, 5, 4, tzinfo=UTC), None, "", str(scratch))
        return FixerObserver(source, FIXERS[fixer], cache).observe(context)

    return at
