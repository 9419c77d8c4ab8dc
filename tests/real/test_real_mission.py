"""A whole mission on the fake GitHub whose agent is the real Claude Code client, before a scripted model."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from unittest import mock

import pytest

from tests.fakes.model.script import call, say
from tests.fakes.model.server import ScriptedModel
from tests.integration.coding import agent_world
from tests.integration.world import statuses
from tests.real.clients import MODELS, PROGRAMS, environment

pytestmark = pytest.mark.real  # needs large software

TOLD = [
    call("Write", file_path="src/table.py", content="TABLE = 1\n"),
    say("The table is there.\n\nLOOP_COMPLETE"),
    call("Bash", command="echo 'TIDES = 1' > src/table.py", description="renames it"),
    say("It is called TIDES.\n\nLOOP_COMPLETE"),
]


def claude(aside: Path) -> str:
    program = aside / "claude"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAMS["claude-cli"])} "$@"\n')
    program.chmod(0o755)
    agent = f"{{kind: claude, model: {MODELS['claude']}, sandbox: env, run: {str(program)!r}}}"
    return f"hands:\n  fixers: []\n  agent: {agent}\nobservers:\n  code: {{markers: {{}}}}\n"


def test_claude_code_carries_a_mission_from_the_issue_to_the_merge(tmp_path: Path) -> None:
    with ScriptedModel(TOLD) as model, agent_world(tmp_path, "github", config=claude) as shop:
        with mock.patch.dict(os.environ, environment(model)):
            issue = shop.wanted()
            assert statuses(shop.cycle()[0]) == ["PLANNED"]
            report, _ = shop.cycle()
            assert statuses(report) == ["IN_REVIEW"] and report.usage.cost_usd > 0
            pull = shop.pull()
            assert shop.at(pull.head_sha, "src/table.py") == b"TABLE = 1\n"
            shop.person().review(pull.number, "changes_requested", "call it TIDES")
            assert statuses(shop.cycle()[0]) == ["FIXING"]
            assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
            assert shop.at(shop.pull().head_sha, "src/table.py") == b"TIDES = 1\n"
            shop.person().review(pull.number, "approved")
            assert statuses(shop.cycle()[0]) == ["COMPLETED"]
        assert shop.pull().state == "merged" and shop.issue(issue).state == "closed"
        assert model.said_all and not model.refused
