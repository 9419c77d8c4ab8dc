"""`ralph init` on a clone of a GitHub repository: the workflow, and the commit of the action that it runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ralph_mission.adapters.git.git import Git
from ralph_mission.config.reading import read
from tests.cli.init_place import LOOP, PINNED, TOOLS, hosted, states, workflow
from tests.helpers import cli_here, git, make_repo

pytestmark = pytest.mark.usefixtures("known_commit")


@pytest.mark.parametrize(
    "url", ["https://github.com/mara/harbour", "git@github.com:mara/harbour.git", "ssh://git@github.com/mara/harbour"]
)
def test_a_repository_on_github_gets_a_workflow(tmp_path: Path, url: str) -> None:
    told = cli_here("init", "--json", repo=hosted(tmp_path, url))
    assert states(told) == {"ralph.yml": "new", "ralph-loop.yml": "new"}


@pytest.mark.parametrize("url", ["https://gitlab.example/mara/harbour", "https://github.com.evil.example/a/b", "../x"])
def test_a_repository_elsewhere_gets_none_unasked(tmp_path: Path, url: str) -> None:
    repo = hosted(tmp_path, url)
    assert states(cli_here("init", "--json", repo=repo)) == {"ralph.yml": "new"}
    assert states(cli_here("init", "--json", "--wake", "heartbeat", repo=repo))["ralph-loop.yml"] == "new"


def test_asking_for_the_workflow_leaves_a_persons_settings_alone(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    assert cli_here("init", repo=repo).code == 2
    told = cli_here("init", "--wake", "auto", "--json", repo=repo)
    assert states(told) == {"ralph.yml": "kept", "ralph-loop.yml": "new"}
    assert told.json["wrote"] is None
    assert (repo / "ralph.yml").read_text() == "owners: [mara]\n"


def test_the_workflow_passes_githubs_schema_and_an_audit(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--runner", "self-hosted, linux", repo=repo)
    schema = [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", repo / LOOP]
    assert subprocess.run(schema, capture_output=True, check=False).returncode == 0
    audit = [TOOLS / "zizmor", "--offline", "--no-config", "--no-progress", "--format", "json", repo / LOOP]
    findings = json.loads(subprocess.run(audit, capture_output=True, text=True, check=False).stdout)
    assert findings == []


def test_the_workflow_is_woken_by_cron_by_hand_and_by_our_own_dispatch(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--runner", "self-hosted,gpu", repo=repo)
    text = workflow(repo)
    assert {line["cron"].split()[0] for line in text["on"]["schedule"]} == {"7,22,37,52", "41"}
    assert text["on"]["repository_dispatch"] == {"types": ["ralph-loop-trigger"]}
    assert set(text["on"]["workflow_dispatch"]["inputs"]) == {"staged", "force"}
    assert text["permissions"] == {}
    (job,) = text["jobs"].values()
    assert job["runs-on"] == ["self-hosted", "gpu"]
    assert job["concurrency"] == {"group": "ralph-loop", "cancel-in-progress": "false"}
    assert job["steps"][0]["uses"] == PINNED


def test_every_input_and_output_that_it_names_is_one_of_the_action(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    text = (repo / LOOP).read_text().replace("# anthropic", "anthropic")
    action = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())
    jobs = yaml.load(text, yaml.BaseLoader)["jobs"].values()
    assert {name for job in jobs for step in job["steps"] for name in step["with"]} <= set(action["inputs"])
    assert set(re.findall(r"steps\.ralph\.outputs\.([a-z-]+)", text)) <= set(action["outputs"])


def test_a_way_of_waking_that_is_gone_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    told = cli_here("init", "--wake", "environment", repo=hosted(tmp_path))
    assert (told.code, "'auto', 'timer', 'heartbeat'" in told.err) == (2, True)


def test_fresh_settings_say_what_wakes(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    told = cli_here("init", "--wake", "heartbeat", "--json", repo=repo)
    assert read(Git.open(repo)).schedule.wake == "heartbeat"
    assert not any("schedule:" in step for step in told.json["steps"])


@pytest.mark.parametrize("text", ["self-hosted]\nx", "a b'", "", ",", "${{ x }}"])
def test_a_label_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    told = cli_here("init", f"--runner={text}", repo=make_repo(tmp_path))
    assert told.code == 2
    assert git(tmp_path, "status", "--porcelain") == ""


@pytest.mark.parametrize("text", ["mara", "mara/x", "mara/x@", "mara/x@v1 # y", "./@v1", "a/b@x\ny", "a/..@v1"])
def test_an_action_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    told = cli_here("init", f"--action={text}", repo=make_repo(tmp_path))
    assert told.code == 2
    assert "owner/name@commit" in told.err
    assert git(tmp_path, "status", "--porcelain") == ""
