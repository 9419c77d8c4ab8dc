"""The token stays where it belongs."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.github.forge import GitHubForge
from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import key_of
from tests.adapters.forges.github.making import new_branch
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import open_issue


@pytest.mark.attack(43)
def test_token_stands_in_no_receipt_error_note_log_file_or_argument(
    world: GitHubWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(1)
    arguments = _recorded_git(tmp_path, monkeypatch)
    told: list[object] = []
    for kind in ("401", "403", "422", "500", "timeout_not_applied", "reset_applied", "garbage", "redirect"):
        world.fake.fail(kind, ("*", "/issues"), times=5)
        world.fake.fail(kind.replace("timeout", "reset"), ("POST", "/git-receive-pack"))
        forge = world.connected(timeout=0.2)
        told += [repr(forge.api.place), repr(forge.remote), repr(vars(forge.threads))]
        told += [forge.perform(new_branch(world, kind)), forge.perform(open_issue(key_of(kind), labels=()))]
        told.append(_trouble(forge))
        forge.close()
        world.fake.faults.clear()
    kept = [path.read_bytes() for path in (world.clone / ".git").rglob("*") if path.is_file()]
    everything = " ".join([*map(str, told), *world.notes, caplog.text, arguments.read_text()])
    assert " push " in arguments.read_text() and "failed" in everything and "GET" in caplog.text
    for form in _forms(world.token):
        assert form not in everything
        assert not any(form.encode() in content for content in kept)


def _trouble(forge: GitHubForge) -> str:
    try:
        return str(forge.issues("all"))
    except UserError as trouble:
        return f"{trouble.what} {trouble.next_step} {trouble.__context__!r} {trouble.__cause__!r}"


def _recorded_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git on the path that writes its arguments down first."""
    place, log = folder / "bin", folder / "arguments"
    place.mkdir()
    (place / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    (place / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return log


def _forms(token: str) -> tuple[str, ...]:
    return token, token[::-1], base64.b64encode(f"x-access-token:{token}".encode()).decode(), token.encode().hex()
