"""One PostgreSQL for the tests of a session, with the database of `world` in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.database import world
from tests.postgres_server import Server, Unavailable, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    try:
        with running() as server:
            server.run(*world.TABLES, *world.ROWS, *world.GRANTS)
            yield server
    except Unavailable as missing:
        pytest.skip(str(missing))  # the text says what would bring one
