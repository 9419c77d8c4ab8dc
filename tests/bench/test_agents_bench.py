"""The benchmark of real agents, in small; without their programs it says what brings them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bench import agents
from ralph_mission.adapters.sandbox.isolation import missing_bwrap
from tests import conftest

NUMBER = r"[\d,]+\.\d"


def test_without_the_clients_it_says_what_brings_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(agents, "PLACE", tmp_path)
    assert agents.main(1) == 0
    said = capsys.readouterr()
    assert said.out == "" and "make test-real installs them" in " ".join(said.err.split())


@pytest.mark.parametrize("cold", [False, True])
def test_nothing_is_downloaded_unasked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, cold: bool
) -> None:
    asked_for: list[Path] = []
    (tmp_path / "installed").touch()
    monkeypatch.setattr(agents, "PLACE", tmp_path)
    monkeypatch.setattr(agents, "LIMITS", {})
    monkeypatch.setattr(agents, "set_up", lambda folder, rounds: asked_for.append(folder))
    assert agents.main(1, cold) == 0
    assert bool(asked_for) is cold and ("420 MB" in capsys.readouterr().err) is cold


def test_the_command_line_of_make_bench_asks_for_no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench.agents"])
    assert agents.parse_arguments() == (agents.ROUNDS, False)
    assert "bench.agents\n" in (agents.ROOT / "Makefile").read_text()


@pytest.mark.real  # real clients
def test_every_client_stands_beside_itself_without_us(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agents, "SESSIONS", 1)
    monkeypatch.setattr(conftest, "AGENTS", ())  # they are ours, installed for this, and ask a scripted model alone
    before = dict(os.environ)
    assert agents.main(1) == 0 and dict(os.environ) == before
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert [row[0] for row in rows if row[0]] == ["a session of claude", "a session of codex"]
    levels = ("env",) if missing_bwrap()[0] else ("env", "bwrap")
    assert [row[1] for row in rows].count("the client alone") == 2
    assert {f"ralph run, {level}" for level in levels} <= {row[1] for row in rows}
    assert all(re.fullmatch(NUMBER, figure) for row in rows for figure in row[2:5])
