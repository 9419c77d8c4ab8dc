"""The Prisma client believes an authority of one's own as libpq does, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.model import Query, RowOrder
from ralph_mission.adapters.database.prisma import open_prisma
from ralph_mission.errors import UserError
from tests.adapters.database import world
from tests.adapters.database.prisma_place import place as place
from tests.adapters.database.tls_world import Trusted, speaking_tls

pytestmark = pytest.mark.real  # needs Node.js and 25 MB of packages


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory, place: dict[str, str]) -> Iterator[Trusted]:
    with speaking_tls(tmp_path_factory.mktemp("authorities")) as trusted:
        trusted.server.run("ALTER SYSTEM SET log_connections = on", "SELECT pg_reload_conf()")
        yield trusted


def words(url: str, place: dict[str, str]) -> list[str]:
    with open_prisma(read_address(url, "DATABASE_URL"), world.SCHEMA, place) as database:
        return [str(row["word"]) for row in database.rows(Query("Tag", ("word",), order=(RowOrder("id"),)))]


@pytest.mark.parametrize("mode", ["prefer", "require", "verify-ca", "verify-full"])
def test_an_authority_of_ones_own_is_believed(trusted: Trusted, place: dict[str, str], mode: str) -> None:
    assert words(trusted.url(mode, trusted.authority), place) == ["pos", "ibc", "unused"]
    log = next(Path(trusted.server.run("SHOW data_directory")[0][0]).parent.glob("log")).read_text()
    mine = [line for line in log.splitlines() if "user=reader" in line]
    assert len(mine) >= 2 and all("SSL enabled" in line for line in mine)


@pytest.mark.parametrize(("root", "host"), [("other", "localhost"), ("authority", "127.0.0.1")])
def test_what_does_not_fit_is_one_line(trusted: Trusted, place: dict[str, str], root: str, host: str) -> None:
    with pytest.raises(UserError, match="the database's certificate"):
        words(trusted.url("verify-full", getattr(trusted, root), host), place)
