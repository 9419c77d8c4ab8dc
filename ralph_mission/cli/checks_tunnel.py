"""Whether the tunnel stands that `ralph init --server` wrote down: its unit, its port, and what answers there."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check
from ralph_mission.cli.server import EXAMPLE, SETTINGS, TUNNEL

if TYPE_CHECKING:
    from ralph_mission.gateways.database.address import Address
    from ralph_mission.gateways.database.tunnel import Door, State, Unit

NAME = "database tunnel"
FORWARD = "TUNNEL_FORWARD"
DOCS = "docs/server.md"


@dataclass(frozen=True, slots=True)
class Tunnel:
    """One of this host: `unit` is its name, `seen` what systemd says of it, `told` its settings."""

    unit: str
    seen: Unit | None
    told: dict[str, str]

    @property
    def scope(self) -> str:
        """Before a command of systemctl or journalctl."""
        return " --user" if self.seen is None or self.seen.scope == "--user" else ""

    @property
    def why(self) -> str:
        """How a person finds out what became of it."""
        return f"journalctl{self.scope} -u {shlex.quote(self.unit)} tells why"


def tunnel(work_tree: Path | None, address: Address | None) -> Iterator[Check]:
    """Its lines; none where nobody set one up. Of where it leads nothing is shown."""
    from ralph_mission.gateways.database import tunnel as gateway

    asked = _doors(address) if address else ()
    here = work_tree is not None and (work_tree / SETTINGS).is_file()
    if not here and not any(_local(one.host) for one in asked):
        return
    found = _own(work_tree) if here and work_tree else _running()
    if found is None:
        return
    door = gateway.door(found.told.get(FORWARD, ""))
    if asked and not any(_same_host(one, door) for one in asked):
        yield Check(NAME, "note", "the database's address does not lead through it", f"use it or end it: {DOCS}")
        return
    state = gateway.knocked(door) if door else "nobody"
    yield _unit(found, state)
    yield from _settings(found, door, asked)
    if door:
        yield _end(found, state)


def _own(work_tree: Path) -> Tunnel:
    """The one of this very folder."""
    from ralph_mission.gateways.database import tunnel as gateway
    from ralph_mission.wakers.timer import instance

    name = TUNNEL.replace("@", f"@{instance(work_tree)}")
    return Tunnel(name, gateway.unit(name), _read(work_tree / SETTINGS))


def _running() -> Tunnel | None:
    """One of another folder: a runner's job has a checkout of its own."""
    from ralph_mission.gateways.database import tunnel as gateway

    seen = next(gateway.units(TUNNEL.replace("@", "@*")), None)
    return Tunnel(seen.name, seen, _read(seen.settings) if seen.settings else {}) if seen else None


def _read(place: Path) -> dict[str, str]:
    from ralph_mission.gateways.database import tunnel as gateway

    with suppress(OSError, UnicodeDecodeError):
        return gateway.assignments(place.read_text(encoding="utf-8"))
    return {}


def _unit(found: Tunnel, state: State) -> Check:
    """Not running is no mistake where the tunnel stands all the same: somebody else opened it."""
    from ralph_mission.gateways.database import tunnel as gateway

    bad, seen, name = "note" if state == "answers" else "wrong", found.seen, shlex.quote(found.unit)
    if seen is None and not gateway.manager():
        return Check(NAME, "note", "no systemd answers here, so its unit cannot be seen", "look whether autossh runs")
    if seen is None:
        start = f"link its unit, then systemctl --user enable --now {name} ({DOCS})"
        return Check(NAME, bad, "systemd does not know its unit", start)
    if not seen.up:
        said = f"its unit is {seen.state}" + (f" ({seen.detail})" if seen.detail != seen.state else "")
        return Check(NAME, bad, said, f"{found.why}; then systemctl{found.scope} restart {name}")
    if seen.enabled != "enabled":
        mend = f"systemctl{found.scope} enable {name}"
        return Check(NAME, "note", "its unit runs, and nothing starts it after a reboot", mend)
    return Check(NAME, "ok", "its unit runs and is enabled")


def _settings(found: Tunnel, door: Door | None, asked: tuple[Door, ...]) -> Iterator[Check]:
    name = f"{NAME} settings"
    if door is None:
        mend = f"write it as ADDRESS:PORT:HOST:PORT in {SETTINGS}"
        yield Check(name, "wrong", f"{FORWARD} is missing, or no forwarding that ssh -L takes", mend)
    elif asked and not any(one.port == door.port for one in asked):
        said = f"the database's address and {FORWARD} name different ports"
        yield Check(name, "wrong", said, f"make the address's port the first one of {FORWARD} in {SETTINGS}")
    if found.told.get("TUNNEL_HOST", EXAMPLE) == EXAMPLE:
        yield Check(name, "wrong", "TUNNEL_HOST names nobody yet", f"name the database's host in {SETTINGS}")


def _end(found: Tunnel, state: State) -> Check:
    far = f"look at the end of {FORWARD}, at permitopen of that user, and whether PostgreSQL runs there"
    said = {
        "answers": ("PostgreSQL answers", ""),
        "nobody": ("nothing listens", found.why),
        "closed": ("it is closed at once: nobody answers at the other end", far),
        "silent": ("whoever listens says nothing", far),
        "stranger": ("who listens there is not PostgreSQL", f"ss -ltnp tells who; name a free port in {FORWARD}"),
    }
    words, mend = said[state]
    return Check(f"{NAME} end", "wrong" if mend else "ok", words, mend)


def _doors(address: Address) -> tuple[Door, ...]:
    """Where clients of PostgreSQL go by an address, which may name several."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    from ralph_mission.gateways.database.tunnel import Door

    try:
        told = conninfo_to_dict(address.url) if address.url else {}
    except ProgrammingError:
        return ()
    hosts = str(told.get("hostaddr") or told.get("host") or "").split(",")
    ports = str(told.get("port") or "5432").split(",")
    pairs = zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=False)
    return tuple(
        Door(host, int(port or 5432))
        for host, port in pairs
        if host and not host.startswith(("/", "@")) and re.fullmatch(r"[0-9]{0,5}", port)
    )


def _local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _same_host(one: Door, door: Door | None) -> bool:
    return _local(one.host) or (door is not None and one.host == door.host)
