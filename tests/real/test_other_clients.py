"""Gemini CLI, Copilot CLI and OpenCode, before the scripted model: where a person has put them (600 MB) into a folder.

`make test-real` does not install them; npm does, with --ignore-scripts --prefix .venv/clients:
@google/gemini-cli@0.61.0 @github/copilot@1.0.102 opencode-ai@1.18.33
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from ralph_mission.adapters.agents.client import CommandAgent
from ralph_mission.adapters.agents.clients import find_client
from ralph_mission.adapters.sandbox.isolation import Level
from ralph_mission.loop.model.state import Hat, Session
from tests.cli.loop_world import world
from tests.conftest import ROOT
from tests.fakes.model.script import call, say
from tests.fakes.model.server import KEY, ScriptedModel
from tests.helpers import make_repo
from tests.real.clients import FLIP, environment
from tests.real.emulator import NODE

pytestmark = pytest.mark.real  # needs large software
PACKAGES = ROOT / ".venv" / "clients" / "node_modules"
PROGRAMS: Mapping[str, tuple[Path, ...]] = {
    "gemini": (NODE, PACKAGES / "@google/gemini-cli/bundle/gemini.js"),
    "copilot": (PACKAGES / "@github/copilot-linux-x64/copilot",),
    "opencode": (PACKAGES / "opencode-linux-x64/bin/opencode",),
}
MODELS = {"gemini": "gemini-2.5-pro", "copilot": "gpt-5.4", "opencode": "scripted"}
SHELLS = {"gemini": "run_shell_command", "copilot": "bash", "opencode": "bash"}
"""What each calls the tool that runs a command."""


@pytest.fixture(params=PROGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    """A client that is there."""
    if not PROGRAMS[request.param][-1].exists():
        pytest.skip(f"{request.param} is not in .venv/clients: see the top of this file")
    return str(request.param)


def seen(model: ScriptedModel) -> dict[str, str]:
    keys = dict.fromkeys(("GEMINI_API_KEY", "COPILOT_PROVIDER_API_KEY", "OPENAI_API_KEY"), KEY)
    addresses = dict.fromkeys(("COPILOT_PROVIDER_BASE_URL", "OPENAI_BASE_URL"), f"{model.url}/v1")
    return {**keys, **addresses, "GOOGLE_GEMINI_BASE_URL": model.url}


def test_it_finishes_two_stories_in_a_worktree(disk_folder: Path, level: Level, name: str) -> None:
    here = world(
        disk_folder / "there", {"ralph.yml": f"hands: {{agent: {{model: {MODELS[name]}, sandbox: {level}}}}}\n"}
    )
    here.stories(2)
    flip = f"sed -i '0,/\"passes\": false/{FLIP}' prd.json"
    commands = [f"echo part > part-{number}.txt; {flip}" for number in (1, 2)]
    script = [step for command in commands for step in (call(SHELLS[name], command=command, description="x"), say("."))]
    options = ["--prd", "--worktree", "--agent", name, "--command", shlex.join(map(str, PROGRAMS[name]))]
    with ScriptedModel(script) as model:
        done = here.run_apart(*options, "--max-iterations", "4", env={**environment(model), **seen(model)})
    told = json.loads(done.out)
    assert (done.code, told["stories"]) == (0, {"passing": 2, "total": 2}), done.err
    assert model.said_all and not model.refused and told["isolation"].startswith(level)
    usage = told["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["turns"]) == (4000, 200, 4)
    assert [one["calls"] for one in told["played"]] == [1, 1] and told["left_running"] == []


def test_opencode_by_the_protocol_has_denied_commands_refused_by_guards(disk_folder: Path) -> None:
    program, tree = PROGRAMS["opencode"][-1], make_repo(disk_folder / "tree", {"README.md": "# Shop\n"})
    if not program.exists():
        pytest.skip("opencode is not in .venv/clients: see the top of this file")
    run_dir = tree / ".ralph" / "loop"
    run_dir.mkdir(parents=True)
    line = (str(program), "acp")
    commands = ("git push /nowhere && touch pushed", "touch made")
    script = [*(call("bash", command=one, description="x") for one in commands), say("Done.")]
    with ScriptedModel(script) as model:
        client = find_client("acp:opencode", line)
        agent = CommandAgent(client.program, tree, run_dir / "home", (), seen(model), client=client, name=client.name)
        hat = Hat("builder", commands_denied=("git push",))
        turn = agent.play(Session(hat, 1, "Do it.", str(run_dir), MODELS["opencode"], seconds=240), lambda: False)
    assert any("git push" in why for why in turn.refused) and not (tree / "pushed").exists(), turn
    assert (tree / "made").exists() and turn.text == "Done.", turn
