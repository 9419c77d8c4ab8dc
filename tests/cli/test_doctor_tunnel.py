"""`ralph doctor`: the tunnel that `ralph init --server` wrote down runs, fits the address, and PostgreSQL answers."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.cli.checks_tunnel import tunnel
from ralph_mission.gateways.database.address import read
from ralph_mission.gateways.database.tunnel import assignments, door, knocked
from ralph_mission.wakers.timer import instance
from tests.gateways.web_server import serving
from tests.helpers import cli_here, make_repo

SETTINGS = "observers:\n  database:\n    watches:\n      - {name: top, table: chains, top: {order_by: supply}}\n"
UP = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "UnitFileState": "enabled"}
SYSTEMCTL = """#!/bin/sh
# Knows one unit of one systemd; the other one cannot be reached.
[ "$1" = "{scope}" ] || {{ echo 'Failed to connect to bus' >&2; exit 1; }}
case "$*" in
  *list-units*) echo '{unit} loaded active running A tunnel' ;;
  *"{unit}"*) printf '{said}' ;;
  *--property\\ Version*) echo Version=252 ;;
  *) echo LoadState=not-found ;;
esac
"""
Told = dict[str, tuple[str, str]]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS})


@pytest.fixture
def systemd(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A systemctl that knows the unit of a folder, or with no state none at all."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()

    def make(state: dict[str, str] | None, scope: str = "--user", of: Path = repo) -> str:
        unit = f"ralph-tunnel@{instance(of)}.service"
        said = "".join(f"{name}={value}\\n" for name, value in (state or {"LoadState": "not-found"}).items())
        program = tmp_path / "bin/systemctl"
        words = {"scope": scope, "unit": unit.replace("\\", "\\\\"), "said": said}
        program.write_text(SYSTEMCTL.format(**words))
        program.chmod(0o755)
        return unit

    return make


def settings(repo: Path, forward: str, host: str = "me@far") -> None:
    place = repo / ".ralph/tunnel.env"
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"# ours\nTUNNEL_HOST={host}\nTUNNEL_FORWARD={forward}\n")


def asked(repo: Path, port: int | None, host: str = "127.0.0.1") -> tuple[Told, str]:
    url = f"postgresql://somebody:hunter2hunter2@{host}:{port}/of-another?connect_timeout=2"
    told = cli_here("doctor", "--json", repo=repo, env={"DATABASE_URL": url if port else ""})
    checks = [one for one in told.json["checks"] if one["name"].startswith("database tunnel")]
    assert all(one["mend"] for one in checks if one["status"] != "ok")
    secrets = ("somebody", "hunter2", "of-another", "me@far", f":{port}")
    assert not any(secret in str(checks) + told.err for secret in secrets)
    found = {one["name"].removeprefix("database tunnel").strip(): (one["status"], one["found"]) for one in checks}
    return found, " ".join(one["mend"] for one in checks)


def postgres(plug: socket.socket, _: bytes) -> None:
    """Says what PostgreSQL says when it is asked for TLS that it has not, and then nothing more."""
    if plug.recv(8) == bytes.fromhex("0000000804d2162f"):
        plug.sendall(b"N")


def closes(plug: socket.socket, _: bytes) -> None:
    plug.recv(8)


def web(plug: socket.socket, _: bytes) -> None:
    plug.recv(8)
    plug.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_tunnel_that_stands_is_told_in_full(repo: Path, systemd: Callable[..., str]) -> None:
    systemd(UP)
    with serving(postgres, listens=False) as server:
        settings(repo, f"127.0.0.1:{server.port}:127.0.0.1:5432")
        told, _ = asked(repo, server.port)
    assert told == {"": ("ok", "its unit runs and is enabled"), "end": ("ok", "PostgreSQL answers")}


@pytest.mark.parametrize(
    ("state", "said", "advice"),
    [
        (None, "systemd does not know its unit", "link its unit, then systemctl --user enable --now ralph-tunnel@"),
        (UP | {"ActiveState": "failed", "SubState": "failed"}, "its unit is failed", "journalctl --user -u ralph-t"),
        (
            UP | {"ActiveState": "activating", "SubState": "auto-restart"},
            "its unit is activating (auto-restart)",
            "systemctl --user restart ralph-tunnel@",
        ),
    ],
)
def test_a_unit_that_does_not_run(
    repo: Path, systemd: Callable[..., str], state: dict[str, str] | None, said: str, advice: str
) -> None:
    systemd(state)
    with socket.create_server(("127.0.0.1", 0)) as plug:
        port = plug.getsockname()[1]
    settings(repo, f"{port}:localhost:5432")
    told, mend = asked(repo, port)
    assert told == {"": ("wrong", said), "end": ("wrong", "nothing listens")}
    assert advice in mend.replace("'", "")


def test_one_that_nothing_starts_again_and_one_that_somebody_else_opened(
    repo: Path, systemd: Callable[..., str]
) -> None:
    with serving(postgres, listens=False) as server:
        settings(repo, f"{server.port}:localhost:5432")
        systemd(UP | {"UnitFileState": "linked"}, "--system")
        told, mend = asked(repo, server.port)
        assert told[""] == ("note", "its unit runs, and nothing starts it after a reboot")
        assert "systemctl enable" in mend
        systemd(UP | {"ActiveState": "inactive", "SubState": "dead"})
        assert asked(repo, server.port)[0][""] == ("note", "its unit is inactive (dead)")
        systemd(UP, "none-answers")
        assert asked(repo, server.port)[0][""] == ("note", "no systemd answers here, so its unit cannot be seen")


@pytest.mark.parametrize(
    ("speak", "said", "advice"),
    [
        (closes, "it is closed at once: nobody answers at the other end", "permitopen"),
        (web, "who listens there is not PostgreSQL", "ss -ltnp"),
    ],
)
def test_what_listens_there_has_to_be_postgresql(
    repo: Path, systemd: Callable[..., str], speak: Callable[[socket.socket, bytes], None], said: str, advice: str
) -> None:
    systemd(UP)
    with serving(speak, listens=False) as server:
        settings(repo, f"127.0.0.1:{server.port}:127.0.0.1:5432")
        told, mend = asked(repo, server.port)
    assert told["end"] == ("wrong", said) and advice in mend


def test_the_address_has_to_lead_to_the_tunnels_port(repo: Path, systemd: Callable[..., str]) -> None:
    systemd(UP)
    with serving(postgres, listens=False) as server:
        settings(repo, f"127.0.0.1:{server.port}:127.0.0.1:5432")
        told, mend = asked(repo, 1)
        assert told["settings"] == ("wrong", "the database's address and TUNNEL_FORWARD name different ports")
        assert "make the address's port the first one of TUNNEL_FORWARD" in mend
        settings(repo, "5432", "ralph@db.example.org")
        told, _ = asked(repo, server.port)
    assert told["settings"] == ("wrong", "TUNNEL_HOST names nobody yet")
    assert "end" not in told


@pytest.mark.parametrize("port", ["5432x", "-1", "٣"])
def test_a_port_that_is_none_leads_through_no_tunnel(port: str) -> None:
    address = read(f"postgresql://a:b@127.0.0.1/c?port={port}", "DATABASE_URL")
    assert list(tunnel(None, address)) == []


def test_a_database_that_is_asked_directly_needs_none(repo: Path, systemd: Callable[..., str], tmp_path: Path) -> None:
    systemd(None)
    assert asked(repo, 1) == ({}, "")
    settings(repo, "5432:localhost:5432")
    assert asked(repo, 1, "0.0.0.0")[0] == {"": ("note", "the database's address does not lead through it")}
    other = make_repo(tmp_path / "other", {})
    settings(other, "5432:localhost:5432")
    assert asked(other, None) == ({}, "")


def test_the_checkout_of_a_runner_sees_the_tunnel_of_the_folder_it_was_set_up_in(
    repo: Path, systemd: Callable[..., str], tmp_path: Path
) -> None:
    home = make_repo(tmp_path / "some home", {})
    with serving(postgres, listens=False) as server:
        settings(home, f"{server.port}:localhost:5432")
        place = home / ".ralph/tunnel.env"
        systemd(UP | {"EnvironmentFiles": f"{place} (ignore_errors=no)"}, of=home)
        told, _ = asked(repo, server.port)
        assert told == {"": ("ok", "its unit runs and is enabled"), "end": ("ok", "PostgreSQL answers")}
        assert asked(repo, 1, "0.0.0.0") == ({}, "")


@pytest.mark.parametrize(
    ("forward", "place"),
    [
        ("5432:localhost:5432", ("127.0.0.1", 5432)),
        (":5432:localhost:5432", ("127.0.0.1", 5432)),
        ("*:6000:[::1]:5432", ("127.0.0.1", 6000)),
        ("[::1]:6000:db.intern:5432", ("::1", 6000)),
        ("10.0.0.5:6000:db.intern:5432", ("10.0.0.5", 6000)),
        ("0:localhost:5432", None),
        ("70000:localhost:5432", None),
        ("/run/socket:localhost:5432", None),
        ("5432 -o ProxyCommand=x:localhost:5432", None),
        ("", None),
    ],
)
def test_where_ssh_would_listen(forward: str, place: tuple[str, int] | None) -> None:
    found = door(forward)
    assert (found and (found.host, found.port)) == place


def test_nobody_listens_where_a_host_is_no_name() -> None:
    place = door(f"{'a' * 64}..x:5432:127.0.0.1:5432")
    assert place and knocked(place) == "nobody"


def test_settings_are_read_as_systemd_reads_them() -> None:
    assert assignments("# A=1\n; B=2\n\nC = 'x=y' \nC=\"z\"\nodd\n") == {"C": "z", "odd": ""}
