"""A tunnel to a database as it stands on this host: what systemd says of its unit, and who answers at its end here."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Scope = Literal["--user", "--system"]
State = Literal["answers", "silent", "closed", "stranger", "nobody"]

SCOPES: tuple[Scope, ...] = ("--user", "--system")
SEEN = ("PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")  # of our environment, by systemctl
PROPERTIES = ("LoadState", "ActiveState", "SubState", "UnitFileState", "EnvironmentFiles")
SECONDS = 5.0  # for systemd, and for whoever listens
SSL_REQUEST = bytes.fromhex("0000000804d2162f")
"""What a client of PostgreSQL may say first. The answer is one letter: S or N; E of very old servers."""
FORWARD = re.compile(r"(?:(?P<bind>\[[^\]]*\]|[^:\[\]]*):)?(?P<port>\d{1,5}):(?:\[[^\]]+\]|[^:\[\]]+):\d{1,5}")
"""What `ssh -L` takes: [address:]port:host:port."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one systemd says of a unit. `state`: active, failed, …; `enabled`: enabled, disabled, linked, …, or ""."""

    name: str
    scope: Scope
    state: str
    detail: str
    enabled: str
    settings: Path | None = None

    @property
    def up(self) -> bool:
        """Whether it runs now."""
        return self.state == "active"


@dataclass(frozen=True, slots=True)
class Door:
    """Where the tunnel begins on this host; never shown."""

    host: str = field(repr=False)
    port: int = field(repr=False)


def unit(name: str) -> Unit | None:
    """This unit, the user's before the system's. None where neither systemd knows it, or there is none."""
    return next((found for scope in SCOPES if (found := _shown(scope, name))), None)


def units(pattern: str) -> Iterator[Unit]:
    """Every unit whose name fits, such as `ralph-tunnel@*`."""
    for scope in SCOPES:
        said = _systemctl(scope, "list-units", "--all", "--plain", "--no-legend", "--full", pattern) or ""
        names = [line.split()[0] for line in said.splitlines() if line.strip()]
        yield from (found for name in names if (found := _shown(scope, name)))


def manager() -> bool:
    """Whether a systemd answers here at all."""
    return any(_systemctl(scope, "show", "--property", "Version") is not None for scope in SCOPES)


def assignments(text: str) -> dict[str, str]:
    """`NAME=value` lines as systemd reads them, of which the last one counts."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#;"]
    return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}


def door(forward: str) -> Door | None:
    """Where `ssh -L` of such a word listens; None for what is no such word."""
    found = FORWARD.fullmatch(forward)
    if not found or not 0 < int(found["port"]) < 65_536:
        return None
    bind = (found["bind"] or "").strip("[]")
    return Door("127.0.0.1" if bind in ("", "*", "0.0.0.0", "localhost", "::") else bind, int(found["port"]))


def knocked(at: Door, seconds: float = SECONDS) -> State:
    """Who listens there: PostgreSQL, somebody who says nothing, closes at once or is another, or nobody."""
    try:
        with socket.create_connection((at.host, at.port), seconds) as opened:
            opened.settimeout(seconds)
            return _greeted(opened)
    except (OSError, UnicodeError):  # a host that is no name
        return "nobody"


def _greeted(opened: socket.socket) -> State:
    try:
        opened.sendall(SSL_REQUEST)
        said = opened.recv(1)
    except TimeoutError:
        return "silent"
    except OSError:  # reset
        return "closed"
    if not said:
        return "closed"
    return "answers" if said in b"SNE" else "stranger"


def _shown(scope: Scope, name: str) -> Unit | None:
    said = _systemctl(scope, "show", "--property", ",".join(PROPERTIES), "--", name)
    told = dict(line.partition("=")[::2] for line in (said or "").splitlines())
    if told.get("LoadState") != "loaded":
        return None
    place = told.get("EnvironmentFiles", "").partition(" (ignore_errors=")[0]
    state, detail, enabled = (told.get(name, "") for name in ("ActiveState", "SubState", "UnitFileState"))
    return Unit(name, scope, state, detail, enabled, Path(place) if place else None)


def _systemctl(scope: Scope, *words: str) -> str | None:
    """What it prints; None where there is none, or it cannot reach its systemd."""
    command: Sequence[str] = ("systemctl", scope, "--no-pager", *words)
    environment: Mapping[str, str] = {name: os.environ[name] for name in SEEN if name in os.environ} | {"LC_ALL": "C"}
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, env=environment, timeout=SECONDS, check=False
        )
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None
    return None
