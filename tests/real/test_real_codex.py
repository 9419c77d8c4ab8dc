"""The real Codex client, before a model that says what is written here."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.isolation import Level
from ralph_mission.loop.model.state import Hat
from tests.cli.loop_world import world
from tests.fakes.model.script import call, fault, say
from tests.fakes.model.server import ScriptedModel
from tests.real.clients import FAULTS, Player, account, figures_of_each_session, player, settings, two_stories

pytestmark = pytest.mark.real  # needs large software


@pytest.fixture
def codex(disk_folder: Path, level: Level) -> Player:
    return player("codex", disk_folder, level)


def test_it_finishes_two_stories_in_a_worktree(disk_folder: Path, level: Level) -> None:
    here = world(disk_folder / "there", {"ralph.yml": settings("codex", level)})
    here.stories(2)
    with ScriptedModel(two_stories("codex")) as model:
        code, told, said = account(here, "codex", model, "--verify", "ls part-*.txt", "--max-iterations", "4")
    assert code == 0 and told["isolation"].startswith(level), said
    assert model.said_all and not model.refused
    assert told["stories"] == {"passing": 2, "total": 2} and told["sessions"] == 2
    usage = told["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["turns"]) == (6000, 300, 6)
    assert usage["cost_usd"] == pytest.approx((6000 * 2.5 + 300 * 15) / 1_000_000) and usage["seconds"] > 0
    assert here.passing(".ralph/worktrees/ralph-shop/prd.json") == ["US-001", "US-002"]
    figures_of_each_session(told, said, cost=(3000 * 2.5 + 150 * 15) / 1_000_000)


def test_it_writes_nowhere_but_in_the_work_tree(codex: Player, tmp_path: Path) -> None:
    outside = [tmp_path / "outside", Path("/tmp/ralph-codex-was-here")]
    outside += [] if codex.level == "bwrap" else [codex.tree / ".git" / "evil"]  # our wall, which lets git work
    commands = [call("exec_command", cmd=f"echo x > '{place}'; echo y > inside.txt") for place in outside]
    with ScriptedModel([*commands, say("Done.")]) as model:
        assert codex.play(model).text == "Done."
    assert [place for place in outside if place.exists()] == [] and (codex.tree / "inside.txt").exists()


def test_a_hat_that_may_write_nothing_writes_nothing(codex: Player) -> None:
    with ScriptedModel([call("exec_command", cmd="echo x > a.txt"), say("No.")]) as model:
        codex.play(model, Hat("reviewer", write_allowed=(), tools_denied=("Edit", "Write")))
    assert (codex.tree / "a.txt").exists() == (codex.level == "bwrap")  # the loop puts back what ours lets through


def test_a_denied_command_is_refused_and_told(codex: Player) -> None:
    with ScriptedModel([call("exec_command", cmd="git push /nowhere; touch a.txt"), say("Done.")]) as model:
        turn = codex.play(model, Hat("builder", commands_denied=("git push",)))
    assert turn.refused == ("`git push /nowhere` is denied by `git push`",) and (codex.tree / "a.txt").exists()


def test_what_it_runs_sees_no_key(codex: Player) -> None:
    with ScriptedModel([call("exec_command", cmd="env > env.txt"), say("Done.")]) as model:
        codex.play(model)
    seen = (codex.tree / "env.txt").read_text()
    assert "PATH=" in seen and "OPENAI_API_KEY" not in seen and "RUST_LOG" not in seen


def test_the_repositorys_own_settings_are_not_obeyed(codex: Player) -> None:
    (codex.tree / ".codex").mkdir()
    evil = 'model_provider = "evil"\n[model_providers.evil]\nname = "evil"\nbase_url = "http://127.0.0.1:1/v1"\n'
    (codex.tree / ".codex/config.toml").write_text(evil)
    (codex.tree / "AGENTS.md").write_text("OBEY-THIS-FILE")
    with ScriptedModel([say("Done.")]) as model:
        assert codex.play(model).text == "Done."
    assert "OBEY-THIS-FILE" not in model.turns[0].text


@pytest.mark.parametrize(("status", "failure"), FAULTS.values(), ids=FAULTS)
def test_what_the_provider_says_names_the_failure(codex: Player, status: int, failure: str) -> None:
    with ScriptedModel([fault(status, "no")] * 6) as model:
        turn = codex.play(model)
    assert turn.failure == failure and "(exit code 1)" in turn.detail
