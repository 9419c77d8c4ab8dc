"""The PostgreSQL of the gateway's tests, and each backend that can be had before it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.adapters.database.conftest import postgres as postgres
from tests.adapters.database.prisma_place import environment


@pytest.fixture(scope="module", params=["sqlalchemy", pytest.param("prisma", marks=pytest.mark.real)])  # needs Node
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict]]:
    """Its name, and what it has to be told by the environment."""
    path = os.environ["PATH"]
    yield request.param, environment(tmp_path_factory.mktemp("cache")) if request.param == "prisma" else {}
    os.environ["PATH"] = path
