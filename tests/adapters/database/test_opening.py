"""TLS to a PostgreSQL whose certificate an authority of one's own vouches for; what does not fit is one clear line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.model import Interest, Query, RowOrder
from ralph_mission.adapters.database.sql import open_sql
from ralph_mission.errors import UserError
from tests.adapters.database import world
from tests.adapters.database.tls_world import Trusted, speaking_tls


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusted]:
    with speaking_tls(tmp_path_factory.mktemp("authorities")) as trusted:
        yield trusted


def words(url: str) -> list[str]:
    with open_sql(read_address(url, "DATABASE_URL"), world.SCHEMA) as database:
        database.describe(Interest("Tag"))
        return [str(row["word"]) for row in database.rows(Query("Tag", ("word",), order=(RowOrder("id"),)))]


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_an_authority_of_ones_own_is_believed(trusted: Trusted, mode: str) -> None:
    assert words(trusted.url(mode, trusted.authority)) == ["pos", "ibc", "unused"]


def test_the_connection_is_encrypted(trusted: Trusted) -> None:
    with open_sql(read_address(trusted.url("verify-full", trusted.authority), "DATABASE_URL")) as database:
        own = Interest("query tls", (), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        database.describe(own)
        assert database.rows(Query("query tls", ("ssl",))) == [{"ssl": True}]


@pytest.mark.parametrize(
    ("mode", "root", "host", "said"),
    [
        ("verify-full", "other", "localhost", "the database's certificate is not signed by a trusted authority"),
        ("verify-full", "authority", "127.0.0.1", "the database's certificate is for another host"),
        ("verify-full", "missing", "localhost", "the file of sslrootcert cannot be read"),
        ("verify-ca", "other", "127.0.0.1", "the database's certificate is not signed by a trusted authority"),
    ],
)
def test_what_does_not_fit_is_one_line_without_an_address(
    trusted: Trusted, mode: str, root: str, host: str, said: str
) -> None:
    place = getattr(trusted, root, trusted.other.with_name("none.crt"))
    with pytest.raises(UserError) as caught:
        words(trusted.url(mode, place, host))
    assert caught.value.what == said
    assert "ssl" in caught.value.next_step + caught.value.what
    told = f"{caught.value.what} {caught.value.next_step} {caught.value!r}"
    assert not any(secret in told for secret in (host, str(trusted.server.port), "reader", "a-Pass", str(place.parent)))


def test_a_name_is_only_asked_for_where_the_mode_says_so(trusted: Trusted) -> None:
    assert words(trusted.url("verify-ca", trusted.authority, "127.0.0.1")) == ["pos", "ibc", "unused"]
