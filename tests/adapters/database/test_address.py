"""Addresses as SQLAlchemy, libpq and Prisma write them."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.database.address import read_address
from ralph_mission.errors import UserError


@pytest.mark.parametrize(
    ("said", "url", "schema"),
    [
        ("postgres://u:p@h/db", "postgresql://u:p@h/db", ""),
        ("postgresql+psycopg://u@h:5/db?sslmode=require", "postgresql://u@h:5/db?sslmode=require", ""),
        ("postgresql://u@h/db?schema=app&connection_limit=2&pgbouncer=true", "postgresql://u@h/db", "app"),
        ("postgresql://u@h/db?sslmode=disable&sslaccept=strict", "postgresql://u@h/db?sslmode=disable", ""),
        (
            "postgresql://u@h/db?sslmode=require&sslaccept=strict",
            "postgresql://u@h/db?sslrootcert=system&sslmode=verify-full",
            "",
        ),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=%2Frun%2Fpostgresql", ""),
    ],
)
def test_a_server(said, url, schema):
    found = read_address(f" {said}\n", "DATABASE_URL")
    assert (found.kind, found.url, found.schema) == ("postgresql", url, schema)


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("sqlite:///dev.db", "dev.db"),
        ("sqlite:////srv/a%20b.db", "/srv/a b.db"),
        ("file:./dev.db?connection_limit=1", "./dev.db"),
        ("file:/srv/dev.db", "/srv/dev.db"),
    ],
)
def test_a_file(said, path):
    assert read_address(said, "DATABASE_URL").path == path


@pytest.mark.parametrize(
    "said",
    ["", "hunter2hunter2", "mysql://u:hunter2@h/db", "postgresql://u:hunter2@h:port/db", "postgresql:", "sqlite://"],
)
def test_anything_else_is_refused_without_being_quoted(said):
    with pytest.raises(UserError) as caught:
        read_address(said, "APP_DATABASE_URL")
    assert caught.value.what == "APP_DATABASE_URL is not a database address"


def test_it_never_shows_itself():
    found = read_address("postgresql://user:hunter%402hunter@host/db", "DATABASE_URL")
    assert repr(found) == "Address(kind='postgresql', schema='')"
    assert "hunter@2hunter" in found.secrets


@pytest.mark.parametrize(
    "said", ["postgresql://u:hunter%402hunter@h/db", "postgresql://h/db?password=hunter%402hunter"]
)
def test_a_password_is_a_secret_wherever_it_stands_and_however_it_is_written(said):
    assert "hunter@2hunter" in read_address(said, "DATABASE_URL").secrets
