"""When real Claude Code is down, real Codex takes over, in the same session of the same run."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.isolation import Level
from tests.cli.loop_world import World, world
from tests.fakes.model.script import Fault, Reply, fault, say
from tests.fakes.model.server import ScriptedModel
from tests.real.clients import MODELS, PROGRAMS, environment, options, shell

pytestmark = pytest.mark.real  # needs large software


def shop(disk_folder: Path, level: Level) -> World:
    here = world(
        disk_folder / "there",
        {"ralph.yml": f"hands: {{agent: {{kind: claude, fallback: [codex], sandbox: {level}}}}}\n"},
    )
    (here.aside / "bin").mkdir()
    program = here.aside / "bin" / "codex"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAMS["codex"])} -c model={MODELS["codex"]} "$@"\n')
    program.chmod(0o755)
    return here


def run(here: World, script: list[Reply | Fault], *how: str) -> tuple[dict[str, object], ScriptedModel]:
    with ScriptedModel(script) as model:
        ours = environment(model)
        ours["PATH"] = f"{here.aside / 'bin'}{os.pathsep}{ours['PATH']}"
        done = here.run_apart("Take notes", "--max-iterations", "1", *how, env=ours)
    (played,) = json.loads(done.out)["played"]
    assert (here.repo / "note.txt").exists() and not model.refused, done.err
    return played, model


WORK = [shell("codex", "echo x > note.txt"), say("Done.")]


def test_a_key_that_its_provider_does_not_know(disk_folder: Path, level: Level) -> None:
    refusals = [fault(401, "invalid x-api-key")] * 2  # it tries once more by itself
    played, model = run(shop(disk_folder, level), [*refusals, *WORK], *options("claude"))
    assert (played["agent"], played["failure"]) == ("codex", "")
    assert [request.dialect for request in model.turns] == ["anthropic"] * 2 + ["responses"] * 2


def test_a_program_that_is_not_there(disk_folder: Path) -> None:
    played, _ = run(shop(disk_folder, "env"), WORK, "--agent", "claude", "--command", "/no/such/claude")
    assert (played["agent"], played["failure"]) == ("codex", "")
