"""An address in the words of Prisma's engines: what it asks of TLS is kept, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from ralph_mission.adapters.database.address import read_address
from ralph_mission.adapters.database.prisma import prisma_url
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.errors import UserError


def read_tls_options(query: str, native: bool = False, encrypted: bool = False) -> dict[str, str]:
    address = read_address(f"postgresql://reader:x@db.example.org/app?{query}", "DATABASE_URL")
    found = dict(parse_qsl(urlsplit(prisma_url(address, Caps(), native, encrypted)).query))
    return {name: value for name, value in found.items() if name.startswith("ssl")}


@pytest.mark.parametrize(
    ("query", "encrypted", "wasm"),
    [
        ("", False, {"sslmode": "disable"}),
        ("", True, {"sslmode": "require"}),
        ("sslmode=prefer&sslrootcert=/ca", True, {"sslmode": "require"}),
        ("sslmode=allow", False, {"sslmode": "disable"}),
        ("sslmode=disable", True, {"sslmode": "disable"}),
        ("sslmode=require", True, {"sslmode": "require"}),
        ("sslmode=require&sslrootcert=/ca", True, {"sslmode": "require", "sslrootcert": "/ca"}),
        ("sslmode=verify-ca&sslrootcert=/ca", True, {"sslmode": "verify-ca", "sslrootcert": "/ca"}),
        ("sslmode=verify-full&sslrootcert=/ca", True, {"sslmode": "verify-full", "sslrootcert": "/ca"}),
        ("sslmode=require&sslaccept=strict", True, {"sslmode": "verify-full"}),
        (
            "sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k",
            True,
            {"sslmode": "verify-full", "sslrootcert": "/ca", "sslcert": "/c", "sslkey": "/k"},
        ),
    ],
)
def test_the_engine_in_webassembly_checks_what_libpq_checks(query: str, encrypted: bool, wasm: dict[str, str]) -> None:
    assert read_tls_options(query, encrypted=encrypted) == wasm


@pytest.mark.parametrize(
    ("query", "own"),
    [
        ("sslmode=require", {"sslmode": "require"}),
        (
            "sslmode=verify-full&sslrootcert=/ca",
            {"sslmode": "require", "sslaccept": "strict", "sslcert": "/ca"},
        ),
        ("sslmode=require&sslaccept=strict", {"sslmode": "require", "sslaccept": "strict"}),
    ],
)
def test_prismas_own_program_is_told_in_its_words(query: str, own: dict[str, str]) -> None:
    assert read_tls_options(query, native=True, encrypted=True) == own


@pytest.mark.parametrize(
    ("query", "native", "said"),
    [
        ("sslmode=verify-ca&sslrootcert=/ca", True, "cannot check an authority by sslmode=verify-ca"),
        ("sslmode=require&sslrootcert=/ca", True, "cannot check an authority by sslmode=require"),
        ("sslmode=verify-full&sslrootcert=/ca&sslkey=/k", True, "no sslcert and sslkey"),
        ("sslmode=verify-full", False, "needs sslrootcert beside sslmode=verify-full"),
        ("sslmode=verify-full", True, "needs sslrootcert beside sslmode=verify-full"),
    ],
)
def test_a_check_that_an_engine_cannot_make_is_refused_and_never_left_out(query: str, native: bool, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        read_tls_options(query, native, True)
    assert "sqlalchemy" in caught.value.next_step


def test_a_relative_file_is_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_tls_options("sslmode=verify-full&sslrootcert=ca.crt")["sslrootcert"] == str(tmp_path / "ca.crt")
