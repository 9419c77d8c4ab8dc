"""The real Claude Code by its own command line, as people have it on their PATH, with a key or a login."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.isolation import Level
from ralph_mission.loop.model.state import Hat
from tests.cli.loop_world import world
from tests.fakes.model.script import call, fault, say
from tests.fakes.model.server import ScriptedModel
from tests.real.clients import MODELS, PROGRAMS, Player, account, player, settings, two_stories

pytestmark = pytest.mark.real  # needs large software
NAME = "claude-cli"


@pytest.fixture
def claude(disk_folder: Path, level: Level) -> Player:
    return player(NAME, disk_folder, level)


def test_it_finishes_two_stories_and_says_what_they_cost(disk_folder: Path, level: Level) -> None:
    here = world(disk_folder / "there", {"ralph.yml": settings(NAME, level)})
    here.stories(2)
    with ScriptedModel(two_stories(NAME)) as model:
        code, told, said = account(here, NAME, model, "--verify", "ls part-*.txt", "--max-iterations", "4")
    assert code == 0 and model.said_all and not model.refused, said
    assert told["stories"] == {"passing": 2, "total": 2} and told["sessions"] == 2
    assert told["usage"]["cost_usd"] == pytest.approx((6000 * 3 + 300 * 15) / 1_000_000)
    assert told["usage"]["turns"] == 6


def test_what_a_hat_may_not_write_is_denied_by_the_client_or_undone(claude: Player) -> None:
    hat = Hat("writer", write_allowed=("docs/**",), write_denied=("docs/api.md",), tools_denied=("Bash",))
    script = [
        call("Write", file_path=str(claude.tree / "docs/a.md"), content="a"),
        call("Write", file_path=str(claude.tree / "src.py"), content="a"),
        call("Write", file_path=str(claude.tree / "docs/api.md"), content="a"),
        say("Done."),
    ]
    with ScriptedModel(script) as model:
        turn = claude.play(model, hat)
    assert turn.failure == "" and turn.text == "Done.", turn
    assert (claude.tree / "docs/a.md").read_text() == "a"
    assert not (claude.tree / "src.py").exists() and not (claude.tree / "docs/api.md").exists()
    assert any("src.py" in why for why in turn.refused) and len(turn.calls) == 3
    asked = [request for request in model.journal if not request.aside]
    assert "Write" in asked[-1].tools and "Bash" not in asked[-1].tools


def test_a_file_that_a_prompt_names_is_not_read_into_it(claude: Player, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    with ScriptedModel([say("Done.")]) as model:
        turn = claude.play(model, prompt=f"Look at @{tmp_path}/secret and at @README.md.")
    assert turn.failure == "" and all(b"of somebody else" not in request.raw for request in model.journal)


@pytest.mark.parametrize(("status", "failure"), [(401, "auth"), (529, "server")])
def test_what_the_provider_refuses_is_named(claude: Player, status: int, failure: str) -> None:
    with ScriptedModel([fault(status)] * 4) as model:
        assert claude.play(model).failure == failure


def test_a_login_in_the_home_of_a_person_is_enough_and_is_told(disk_folder: Path) -> None:
    here = world(disk_folder / "there", {"ralph.yml": f"hands: {{agent: {{model: {MODELS[NAME]}}}}}\n"})
    home, program = disk_folder / "home", disk_folder / "bin/claude"
    (home / ".claude").mkdir(parents=True)
    oauth = {
        "accessToken": "sk-ant-oat01-of-nobody",
        "refreshToken": "sk-ant-ort01-of-nobody",
        "expiresAt": int(time.time() * 1000) + 3_600_000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
    (home / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": oauth}))
    program.parent.mkdir()
    program.symlink_to(PROGRAMS[NAME][0])
    here.stories(2)
    with ScriptedModel(two_stories(NAME), key=None) as model:
        path = f"{program.parent}:{os.environ['PATH']}"
        env = {"HOME": str(home), "ANTHROPIC_BASE_URL": model.url, "PATH": path}
        done = here.run_apart("--prd", "--agent", "claude", "--verify", "ls part-*.txt", env=env)
    assert done.code == 0, done.err
    assert f"uses your login in {home}/.claude" in done.err and "isolation: env: " in done.err
    asked = [request for request in model.journal if not request.aside]
    assert asked and all(b"Bearer sk-ant-oat01-of-nobody" in request.raw for request in asked)
