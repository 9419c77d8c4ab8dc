"""A PostgreSQL that speaks TLS with a certificate of an authority of its own, for one name alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adapters.database import world
from tests.postgres_server import Server, Unavailable, running


@dataclass(frozen=True)
class Trusted:
    """`authority` vouches for the server's certificate, `other` is a stranger to it."""

    server: Server
    authority: Path
    other: Path

    def url(self, mode: str, root: Path | str = "", host: str = "localhost") -> str:
        query = f"?sslmode={mode}" + (f"&sslrootcert={root}" if root else "")
        return self.server.url(user="reader", query=query).replace("127.0.0.1", host)


@contextmanager
def speaking_tls(folder: Path) -> Iterator[Trusted]:
    """Skips where there is no PostgreSQL or no openssl."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl here: apt install openssl")
    try:
        with running() as server:
            server.run(*world.TABLES, *world.ROWS, *world.GRANTS)
            authority, other = _authority(folder / "ours"), _authority(folder / "theirs")
            _certify(server, folder / "ours", authority)
            yield Trusted(server, authority, other)
    except Unavailable as missing:
        pytest.skip(str(missing))  # the text says what would bring one


def _authority(folder: Path) -> Path:
    folder.mkdir()
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN=CA of {folder.name}"),
        *("-keyout", folder / "ca.key", "-out", folder / "ca.crt"),
    )
    return folder / "ca.crt"


def _certify(server: Server, folder: Path, authority: Path) -> None:
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    _openssl(
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-keyout",
        folder / "key",
        "-out",
        folder / "asked",
    )
    _openssl(
        *("x509", "-req", "-days", "2", "-in", folder / "asked", "-CA", authority, "-CAkey", folder / "ca.key"),
        *("-CAcreateserial", "-extfile", folder / "names", "-out", folder / "crt"),
    )
    data = Path(server.run("SHOW data_directory")[0][0])
    for name in ("key", "crt"):
        place = data / f"server.{name}"
        shutil.copyfile(folder / name, place)
        place.chmod(0o600)
        os.chown(place, data.stat().st_uid, data.stat().st_gid)
    server.run("ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
    while server.run("SHOW ssl") != [("on",)]:
        time.sleep(0.05)


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True)
