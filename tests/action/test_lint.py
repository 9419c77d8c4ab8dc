"""The action and the workflows, as the field's own linters see them, and the house's promises about them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ralph_mission.cli.mission.fleet import render_fleet_workflows
from ralph_mission.cli.setup.files import ActionReference, labels_of, render_workflow
from tests.action.runner import ROOT, bare_environment

BIN = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EVERY = [ROOT / "action.yml", *WORKFLOWS]
SECRETS = """anthropic-api-key database-url twitter-api-key twitter-api-secret twitter-access-token
    twitter-access-token-secret twitter-bearer-token telegram-bot-token telegram-channel-id discord-webhook-url
    discord-bot-token""".split()
PUBLISHING = [name for name in SECRETS[2:] if name not in ("twitter-bearer-token", "discord-bot-token")]


def lint(tmp_path: Path, program: str, *arguments: object) -> None:
    """Run a linter, offline and without anybody's settings; what it says is the failure."""
    done = subprocess.run(
        [BIN / program, *map(str, arguments)],
        cwd=ROOT,
        env=bare_environment(tmp_path),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def steps() -> list[dict[str, Any]]:
    """The action's steps."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    return list(action["runs"]["steps"])


def test_the_action_obeys_its_schema(tmp_path: Path) -> None:
    lint(tmp_path, "check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "action.yml")


def test_the_workflows_obey_their_schema(tmp_path: Path) -> None:
    lint(tmp_path, "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    lint(tmp_path, "zizmor", "--offline", "--quiet", "--persona=pedantic", "--no-config", *EVERY)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_a_finding_that_is_waived_says_why(path: Path) -> None:
    waived = [line for line in path.read_text().splitlines() if "zizmor:" in line]
    assert [line for line in waived if not re.search(r"# zizmor: ignore\[[a-z-]+\] -- \w+ \w+ .+", line)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_runner_can_read_every_workflow(tmp_path: Path, workflow: Path) -> None:
    lint(tmp_path, "act", "--validate", "--strict", "--workflows", workflow)


@pytest.mark.parametrize("labels", ["self-hosted", "self-hosted,linux,x64", "ubuntu-latest"])
def test_a_runner_can_read_every_workflow_that_init_writes(tmp_path: Path, labels: str) -> None:
    (tmp_path / "loop.yml").write_text(
        render_workflow("cycle", ActionReference("mara/ralph", "a" * 40), labels_of(labels))
    )
    lint(tmp_path, "act", "--validate", "--strict", "--workflows", tmp_path / "loop.yml")


def test_the_workflows_of_a_fleet_are_clean(tmp_path: Path) -> None:
    for name, text in render_fleet_workflows(ActionReference("mara/ralph", "a" * 40)).items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        lint(tmp_path, "act", "--validate", "--strict", "--workflows", place)
    written = sorted(place.parent.glob("*.yml"))
    lint(tmp_path, "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *written)
    lint(tmp_path, "zizmor", "--offline", "--quiet", "--persona=pedantic", "--no-config", *written)
    waived = [line for one in written for line in one.read_text().splitlines() if "zizmor:" in line]
    assert all(re.search(r"# zizmor: ignore\[[a-z-]+\] -- \w+ \w+ .+", line) for line in waived)
    checkouts = [line for one in written for line in re.findall(r"uses: (actions/checkout\S+ # \S+)", one.read_text())]
    assert checkouts == re.findall(r"uses: (actions/checkout\S+ # \S+)", (ROOT / "action.yml").read_text())


def test_the_image_of_a_runner_is_clean_and_copies_what_is_there(tmp_path: Path) -> None:
    dockerfile = ROOT / "scripts" / "Dockerfile"
    lint(tmp_path, "hadolint", "--no-color", dockerfile)
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile.read_text(), re.MULTILINE)
    assert all(any(ROOT.glob(name)) for line in copies for name in line.split())
    pinned = re.search(r"astral-sh/uv:(\S+) AS", dockerfile.read_text())
    assert pinned and f"\nuv=={pinned[1]} " in (ROOT / "requirements-dev.lock").read_text()


def test_a_workflow_that_a_runner_cannot_read_is_noticed(tmp_path: Path) -> None:
    text = render_workflow("cycle", ActionReference("mara/ralph", "a" * 40), ("self-hosted",)).replace(
        "timeout-minutes:", "time-out-minutes:"
    )
    (tmp_path / "odd.yml").write_text(text)
    with pytest.raises(AssertionError, match="time-out-minutes"):
        lint(tmp_path, "act", "--validate", "--strict", "--workflows", tmp_path / "odd.yml")


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_what_is_used_is_pinned_to_a_commit_and_says_which_version(path: Path) -> None:
    used = re.findall(r"\buses: (?!\./)(.+)", path.read_text())
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_one_version_of_an_action_is_used_everywhere() -> None:
    used = {line for path in EVERY for line in re.findall(r"\buses: ([\w./-]+@\S+)", path.read_text())}
    assert len({line.split("@")[0] for line in used}) == len(used)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_no_expression_stands_in_a_command(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"^ *(- )?run: .*\$\{\{", text, re.MULTILINE) is None
    assert "run: |" not in text


def test_every_command_says_its_shell_and_quotes_its_path() -> None:
    commands = [step for step in steps() if "run" in step]
    assert {step["shell"] for step in commands} == {"bash"}
    for step in commands:
        assert re.fullmatch(r'(exec )?bash "\$GITHUB_ACTION_PATH/scripts/action/[a-z]+\.sh"', step["run"])
        assert (ROOT / re.sub(r'.*PATH/|"', "", step["run"])).is_file()


def test_every_secret_is_an_input_that_no_step_sees_but_the_one_that_needs_it() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    seen: dict[str, list[str]] = {}
    for step in steps():
        for value in {**step.get("env", {}), **step.get("with", {})}.values():
            for name in re.findall(r"inputs\.([a-z-]+)", str(value)):
                seen.setdefault(name, []).append(step["name"])
    agents = {"anthropic-api-key": ["Run the cycle", "Let an agent work or review"]}
    networks = {name: ["Run the cycle", "Publish a text"] for name in PUBLISHING}
    acting = ["Run the cycle", "Let an agent work or review", "Publish a text"]
    assert seen["private-key"] == acting and seen["app-id"] == ["Install", *acting]
    assert {name: seen[name] for name in SECRETS} == {name: ["Run the cycle"] for name in SECRETS} | agents | networks
    known = {
        *"mode repository config staged force issue pull-request agent extras github-token app-id private-key".split(),
        *SECRETS,
    }
    assert set(action["inputs"]) == known
    assert set(seen) == known


def test_the_token_is_not_kept_by_any_checkout() -> None:
    checkouts = [step for path in EVERY for step in _steps_of(path) if "actions/checkout@" in step.get("uses", "")]
    assert checkouts
    assert {step["with"]["persist-credentials"] for step in checkouts} == {False}


@pytest.mark.parametrize(
    ("name", "beyond"),
    [("loop", ()), ("work", ("security-events",)), ("review", ("checks", "statuses", "security-events"))],
)
def test_permissions_of_our_workflows_are_the_documented_ones(name: str, beyond: tuple[str, ...]) -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / f"ralph-{name}.yml").read_text())
    text = (ROOT / "docs" / "action.md").read_text()
    documented = dict(re.findall(r"^- `([a-z-]+): ([a-z]+)`", text, re.MULTILINE))
    least = {permission: level for permission, level in documented.items() if permission not in beyond}
    assert flow["permissions"] == {}
    assert [job["permissions"] for job in flow["jobs"].values()] == [least]


def test_publishing_only_looks_at_pulls() -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ralph-publish.yml").read_text())
    assert flow["permissions"] == {}
    least = {"contents": "write", "issues": "write", "pull-requests": "read", "actions": "read"}
    assert [job["permissions"] for job in flow["jobs"].values()] == [least]


def test_a_pull_request_has_no_say_in_what_is_checked_out_for_its_review() -> None:
    review = _steps_of(ROOT / ".github" / "workflows" / "ralph-review.yml")
    (ours,) = [step["with"]["ref"] for step in steps() if "actions/checkout@" in step.get("uses", "")]
    (its,) = [step["with"]["ref"] for step in review if "actions/checkout@" in step.get("uses", "")]
    assert its == "${{ github.event.repository.default_branch }}"
    asked = "(inputs.mode == 'review' || startsWith(github.event_name, 'pull_request'))"
    assert " ".join(ours.split()) == f"${{{{ {asked} && github.event.repository.default_branch || '' }}}}"


def _steps_of(path: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load(path.read_text())
    jobs = document["jobs"].values() if "jobs" in document else [document["runs"]]
    return [step for job in jobs for step in job["steps"]]
