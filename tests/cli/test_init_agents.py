"""`ralph init --work --review`: the workflows in which agents act, and what only a person can do for them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ralph_mission.cli.setup import workflow
from tests.cli.init_place import LOOP, PINNED, SHA, TOOLS, hosted, states
from tests.helpers import Result, cli_here

pytestmark = pytest.mark.usefixtures("known_commit")
ROOT = Path(__file__).resolve().parents[2]
PLACES = {mode: place for mode, place in workflow.PLACES.items() if mode != "cycle"}


def init(repo: Path, *options: str) -> Result:
    told = cli_here("init", "--json", *options, repo=repo)
    assert told.code == 0, told.err
    return told


def flow(repo: Path, mode: str) -> dict[str, Any]:
    return yaml.load((repo / PLACES[mode]).read_text(), yaml.BaseLoader)


def job(document: dict[str, Any]) -> dict[str, Any]:
    (only,) = document["jobs"].values()
    return only


def test_agents_act_only_where_somebody_asked_for_it(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    assert states(init(repo)) == {"ralph.yml": "new", "ralph-loop.yml": "new"}
    assert states(init(repo, "--work"))["ralph-work.yml"] == "new"
    assert not (repo / PLACES["review"]).exists()


def test_both_at_once_with_the_runner_and_the_commit_that_were_named(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo, "--work", "--review", "--publish", "--runner", "self-hosted, gpu")
    for mode in PLACES:
        act = job(flow(repo, mode))
        assert act["runs-on"] == ["self-hosted", "gpu"]
        assert act["steps"][0]["uses"] == PINNED
        assert act["steps"][0]["with"]["mode"] == mode


def test_another_action_renews_what_is_there_and_keeps_its_runner(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo, "--review", "--runner", "self-hosted, gpu")
    other = f"mara/ralph_mission@{SHA[::-1]}"
    assert cli_here("init", "--action", other, repo=repo).code == 2
    told = states(init(repo, "--action", other, "--force"))
    assert (told["ralph-review.yml"], "ralph-work.yml" in told) == ("replaced", False)
    assert job(flow(repo, "review"))["steps"][0]["uses"] == other
    assert job(flow(repo, "review"))["runs-on"] == ["self-hosted", "gpu"]


def test_a_persons_workflow_of_that_name_is_not_overwritten(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo)
    (repo / PLACES["work"]).write_text("name: mine\n")
    assert "ralph-work.yml is there already" in cli_here("init", "--work", repo=repo).err
    assert "ralph-work.yml" not in states(init(repo, "--wake", "heartbeat"))


def test_a_loop_of_a_persons_own_stays_beside_it(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo)
    (repo / LOOP).write_text("name: mine\n")
    told = init(repo, "--work")
    assert (states(told)["ralph-loop.yml"], states(told)["ralph-work.yml"]) == ("kept", "new")
    assert any("listen to ralph-loop-trigger" in step for step in told.json["steps"])


def test_what_only_a_person_can_do_is_said(tmp_path: Path) -> None:
    steps = init(hosted(tmp_path), "--work", "--review").json["steps"]
    committed = f"commit ralph.yml, {LOOP}, {PLACES['work']} and {PLACES['review']} to the default branch and push them"
    assert committed in steps
    assert [step for step in steps if "hands: {agent:" in step] and [
        step for step in steps if "ANTHROPIC_API_KEY" in step
    ]


def test_settings_that_name_an_agent_are_enough(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("hands: {agent: {kind: codex}}\n")
    assert not [step for step in init(repo, "--work").json["steps"] if "hands:" in step]


def test_publishing_asks_for_no_agent_and_every_network_is_optional(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    steps = init(repo, "--publish").json["steps"]
    assert not [step for step in steps if "agent" in step]
    assert [step for step in steps if "networks" in step and "optional" in step]
    act = job(flow(repo, "publish"))
    assert act["if"].endswith("github.event.label.name == 'content:approved'")
    given = act["steps"][0]["with"]
    assert {name for name in given if given[name].startswith("${{ secrets.")} == {
        "twitter-api-key", "twitter-api-secret", "twitter-access-token", "twitter-access-token-secret",
        "telegram-bot-token", "telegram-channel-id", "discord-webhook-url",
    }  # fmt: skip  # one set
    assert act["permissions"]["pull-requests"] == "read"


@pytest.mark.parametrize("runner", ["self-hosted", "self-hosted,linux,x64", "ubuntu-latest"])
def test_they_pass_githubs_schema_an_audit_and_a_runner(tmp_path: Path, runner: str) -> None:
    repo = hosted(tmp_path)
    init(repo, "--work", "--review", "--publish", "--runner", runner)
    files = [repo / place for place in PLACES.values()]
    for command in (
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files],
        ["zizmor", "--offline", "--quiet", "--no-config", "--persona=pedantic", *files],
        *(["act", "--validate", "--strict", "--workflows", file] for file in files),
    ):
        done = subprocess.run([TOOLS / command[0], *command[1:]], capture_output=True, text=True, check=False, cwd=repo)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mode", PLACES)
def test_nothing_foreign_stands_where_a_shell_or_a_stranger_could_use_it(tmp_path: Path, mode: str) -> None:
    repo = hosted(tmp_path)
    init(repo, f"--{mode}")
    document = flow(repo, mode)
    assert document["permissions"] == {}
    assert not [step for step in job(document)["steps"] if "run" in step]
    assert "pull_request_target" not in document["on"] and "issue_comment" not in document["on"]
    assert job(document)["permissions"].keys() == {"contents", "issues", "pull-requests", "actions"}
    assert job(document)["concurrency"]["cancel-in-progress"] == "false"


@pytest.mark.parametrize("mode", PLACES)
def test_every_input_that_they_give_is_one_of_the_action(tmp_path: Path, mode: str) -> None:
    repo = hosted(tmp_path)
    init(repo, f"--{mode}")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert job(flow(repo, mode))["steps"][0]["with"].keys() <= action["inputs"].keys()


@pytest.mark.parametrize("mode", PLACES)
def test_this_repositorys_own_differ_in_nothing_but_the_action_that_they_use(tmp_path: Path, mode: str) -> None:
    repo = hosted(tmp_path)
    init(repo, f"--{mode}")
    written, own = flow(repo, mode), flow(ROOT, mode)
    (used,), (checkout, acts) = job(written).pop("steps"), job(own).pop("steps")
    assert json.dumps(own) == json.dumps(written)
    assert (acts["with"], acts.get("env"), acts["uses"]) == (used["with"], used.get("env"), "./")
    default = {"ref": "${{ github.event.repository.default_branch }}"} if mode == "review" else {}
    assert checkout["with"] == {"persist-credentials": "false", **default}
