"""A level is there when something really ran in it; what keeps it away is told with who must do what."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.gateways import isolation_bwrap as bwrap
from ralph_mission.gateways import isolation_probe
from ralph_mission.gateways.isolation_probe import best, demand, probe
from ralph_mission.trouble import Trouble


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What other tests found on the real machine."""
    for found in (probe, bwrap.keeps_open):
        found.cache_clear()
    yield
    for found in (probe, bwrap.keeps_open):
        found.cache_clear()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bwrap that says what is written into it, before the real ones on PATH; we are an ordinary user."""
    made = tmp_path / "bwrap"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return made


def says(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_env_is_always_there() -> None:
    assert probe("env").available


def test_bwrap_that_the_kernel_refuses_is_not_there_and_says_why(program: Path) -> None:
    says(program, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = probe("bwrap")
    assert (found.available, found.why) == (False, "bwrap: setting up uid map: Permission denied")
    assert "apparmor_restrict_unprivileged_userns" in found.mend
    assert best().level == "env"


def test_bwrap_that_does_not_run_what_it_is_given_is_not_there(program: Path) -> None:
    says(program, "exit 1")
    assert probe("bwrap").why == "exit 1"


def test_a_network_that_cannot_be_closed_is_told(program: Path) -> None:
    refuses = 'case "$*" in *--unshare-net*) echo "bwrap: loopback: Failed RTM_NEWADDR" >&2; exit 1;; esac; exit 0'
    says(program, refuses)
    assert probe("bwrap").open_because == "bwrap: loopback: Failed RTM_NEWADDR"


def test_bwrap_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bwrap, "program", lambda: "")
    found = probe("bwrap")
    assert "not installed" in found.why and "apt-get install bubblewrap" in found.mend


def test_uid_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in probe("uid").why and "bwrap" in probe("uid").mend


@pytest.mark.skipif(os.geteuid() != 0, reason="only root plays sessions as another user")
def test_uid_is_not_there_where_our_own_python_lies_out_of_the_reach_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "python").symlink_to(shutil.which("true") or "")
    monkeypatch.setattr(isolation_probe, "PROGRAM", [*isolation_probe.PROGRAM[:-1], str(tmp_path / "python")])
    assert "Permission denied" in probe("uid").why and "/root" in probe("uid").mend and "bwrap" in probe("uid").mend


def test_what_is_demanded_and_missing_is_an_error_and_never_something_weaker(program: Path) -> None:
    says(program, "echo no >&2; exit 1")
    with pytest.raises(Trouble, match="sandbox: bwrap cannot be had: no"):
        demand("bwrap")
    assert demand("env").level == "env"


def test_another_system_has_env_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation_probe.sys, "platform", "darwin")
    assert "Linux" in probe("uid").why and best().level == "env"
