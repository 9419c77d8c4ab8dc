"""`ralph init`: a file that loads, fits the repository, and replaces nobody's work."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ralph_mission import __version__
from ralph_mission.cli.template import render
from ralph_mission.cli.workflow import HOME, Action, action_of
from ralph_mission.config import Config, load, read
from ralph_mission.gateways.git import Git
from ralph_mission.mission.model import Limits
from ralph_mission.observers.recipes import RECIPES
from ralph_mission.wakers.timer import instance
from tests.helpers import Result, cli, cli_here, git, make_repo


def test_the_file_loads_without_warnings(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli("init", repo=repo)
    assert told.code == 0
    assert read(Git.open(repo)).warnings == ()


def test_it_says_what_else_it_did(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", repo=repo)
    assert ".git/info/exclude" in told.out
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / "x").touch()
    assert git(repo, "status", "--porcelain") == "?? ralph.yml"


def test_an_exclude_file_keeps_its_lines_and_gets_ours_once(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    exclude = repo / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("*.swp")
    cli_here("init", repo=repo)
    cli_here("init", "--yes", repo=repo)
    assert exclude.read_text() == "*.swp\n/.ralph/\n"


def test_an_existing_file_is_not_overwritten_without_a_terminal(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    told = cli("init", repo=repo)
    assert told.code == 2
    assert f"ralph init --repo {repo} --yes" in told.err
    assert (repo / "ralph.yml").read_text() == "owners: [mara]\n"


def test_yes_overwrites(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    assert cli_here("init", "--yes", repo=repo).code == 0
    assert read(Git.open(repo)).owners == ()


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    (repo / "ralph.yml").symlink_to(target)
    assert cli_here("init", "--yes", repo=repo).code == 2
    assert target.read_text() == "mine"


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare")
    told = cli_here("init", repo=tmp_path)
    assert told.code == 2
    assert "is bare" in told.err


def test_a_tool_that_is_here_is_switched_on(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": ""})
    told = cli_here("init", "--json", repo=repo)
    assert told.json["commands"] == ["ruff"]
    assert [command.name for command in read(Git.open(repo)).observers.commands] == ["ruff"]


def test_a_tool_that_is_not_here_is_written_as_a_comment(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": ""})
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "git").symlink_to(str(shutil.which("git")))
    told = cli_here("init", "--json", repo=repo, env={"PATH": str(bare)})
    assert told.json["commands"] == []
    assert read(Git.open(repo)).observers.commands == ()
    assert "    # - name: ruff\n" in (repo / "ralph.yml").read_text()


def test_every_recipe_is_written_so_that_it_loads() -> None:
    names = [command.name for command in load(render(RECIPES)).observers.commands]
    assert names == [recipe.settings["name"] for recipe in RECIPES]


def test_a_commented_recipe_loads_once_it_is_uncommented() -> None:
    text = render(RECIPES[:1], RECIPES[1:])
    uncommented = re.sub(r"^    # ((?:-|  ).*)$", r"    \1", text, flags=re.MULTILINE)
    assert len(load(uncommented).observers.commands) == len(RECIPES)


def test_what_is_commented_out_shows_the_default() -> None:
    text = re.sub(r"^( *)# ([a-z]+: .*)$", r"\1\2", render(()), flags=re.MULTILINE)
    config = load(text)
    assert text != render(())
    assert config.limits.limits() == Limits()
    assert (config.schedule, config.memory, config.forge) == (Config().schedule, Config().memory, Config().forge)
    assert config.hands.fixers == Config().hands.fixers
    assert config.observers.code.markers == Config().observers.code.markers


# --- the workflow ---------------------------------------------------------------------

LOOP = ".github/workflows/ralph-loop.yml"
SHA = "0123456789abcdef0123456789abcdef01234567"
PINNED = f"mara/ralph_mission@{SHA}"
TOOLS = Path(sys.executable).parent


def hosted(path: Path, url: str = "https://github.com/mara/harbour.git") -> Path:
    repo = make_repo(path)
    git(repo, "remote", "add", "origin", url)
    return repo


def states(told: Result) -> dict[str, str]:
    return {Path(file["path"]).name: file["state"] for file in told.json["files"]}


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
    assert "ralph init --repo" in cli_here("init", repo=repo).err
    told = cli_here("init", "--wake", "auto", "--yes", "--json", repo=repo)
    assert states(told) == {"ralph.yml": "kept", "ralph-loop.yml": "new"}
    assert told.json["wrote"] is None
    assert (repo / "ralph.yml").read_text() == "owners: [mara]\n"


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("action", [PINNED, "mara/ralph_mission@v0.1.0"])
def test_the_workflow_passes_githubs_schema_and_an_audit(tmp_path: Path, waits: bool, action: str) -> None:
    repo = hosted(tmp_path)
    wake = "environment" if waits else "auto"
    cli_here("init", "--wake", wake, "--runner", "self-hosted, linux", "--action", action, repo=repo)
    schema = [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", repo / LOOP]
    assert subprocess.run(schema, capture_output=True, check=False).returncode == 0
    audit = [TOOLS / "zizmor", "--offline", "--no-config", "--no-progress", "--format", "json", repo / LOOP]
    findings = json.loads(subprocess.run(audit, capture_output=True, text=True, check=False).stdout)
    assert {found["ident"] for found in findings} == (set() if action == PINNED else {"unpinned-uses"})


def workflow(repo: Path) -> dict:
    return yaml.load((repo / LOOP).read_text(), yaml.BaseLoader)


def test_the_workflow_is_woken_by_cron_by_hand_and_by_our_own_dispatch(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--runner", "self-hosted,gpu", "--action", PINNED, repo=repo)
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
    cli_here("init", "--wake", "environment", repo=repo)
    text = (repo / LOOP).read_text().replace("# anthropic", "anthropic")
    action = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())
    jobs = yaml.load(text, yaml.BaseLoader)["jobs"].values()
    assert {name for job in jobs for step in job["steps"] for name in step["with"]} <= set(action["inputs"])
    assert set(re.findall(r"steps\.ralph\.outputs\.([a-z-]+)", text)) <= set(action["outputs"])


def test_environments_wait_as_long_as_the_settings_say_and_no_wait_holds_the_cycle_up(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("schedule: {high: 20m}\n")
    told = cli_here("init", "--wake", "environment", "--json", repo=repo)
    text = workflow(repo)
    waiting = {name: job for name, job in text["jobs"].items() if name != "cycle"}
    assert {name: job["environment"] for name, job in waiting.items()} == {
        f"wake-{urgency}": f"ralph-wait-{urgency}" for urgency in ("high", "medium", "low")
    }
    assert all(job["steps"][0]["with"] == {"mode": "wake"} for job in waiting.values())
    assert "concurrency" not in text
    steps = "\n".join(told.json["steps"])
    assert [f"with a wait timer of {minutes} minutes" in steps for minutes in (20, 60, 360)] == [True] * 3
    assert "schedule: {wake: environment}" in steps


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


class Installed:
    """A distribution that pip wrote this of."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


@pytest.mark.parametrize(
    ("told", "action"),
    [
        (None, Action(HOME, f"v{__version__}")),
        ('{"url": "file:///srv/x", "dir_info": {"editable": true}}', Action(HOME, f"v{__version__}")),
        ("{", Action(HOME, f"v{__version__}")),
        (f'{{"url": "https://git.example/x", "vcs_info": {{"commit_id": "{SHA}"}}}}', Action(HOME, SHA)),
        (f'{{"url": "https://github.com/a/b.git", "vcs_info": {{"commit_id": "{SHA}"}}}}', Action("a/b", SHA)),
        ('{"url": "https://github.com/a/b", "vcs_info": {"commit_id": "main"}}', Action(HOME, f"v{__version__}")),
    ],
)
def test_the_action_is_the_commit_that_is_installed(monkeypatch, told: str | None, action: Action) -> None:
    monkeypatch.setattr("ralph_mission.cli.workflow.distribution", lambda _: Installed(told))
    assert action_of(None) == action


def test_a_server_is_not_part_of_this_version(tmp_path: Path) -> None:
    told = cli_here("init", "--server", repo=make_repo(tmp_path))
    assert told.code == 2
    assert "not part of this version" in told.err


# --- units ----------------------------------------------------------------------------


def sections(text: str) -> dict[str, dict[str, str]]:
    """A unit file, read as strictly as it can be: no key twice, nothing outside a section."""
    parser = configparser.RawConfigParser(strict=True, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # keys are case-sensitive there
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@pytest.mark.parametrize(("options", "names"), [
    (("--wake", "timer"), ["ralph-wake@.service", "ralph-wake@.timer"]),
    (("--service",), ["ralph-watch@.service"]),
])  # fmt: skip
def test_units_are_what_systemd_accepts(tmp_path: Path, options: tuple[str, ...], names: list[str]) -> None:
    repo, folder = make_repo(tmp_path / "repo"), tmp_path / "some units 100%"
    cli_here("init", *options, "--units", str(folder), repo=repo)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    for name in names:
        unit = sections((folder / name).read_text())
        assert unit.get("Service", {}).get("ExecStart", "repo %f").endswith("repo %f")
    if shutil.which("systemd-analyze"):
        verify = ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in names)]
        done = subprocess.run(verify, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_credentials_stand_in_a_file_for_their_owner_and_in_no_unit(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", "--wake", "timer", "--json", repo=repo, env={"GITHUB_TOKEN": "ghs_secret_of_somebody"})
    folder = repo / ".ralph"
    assert (folder / "ralph.env").stat().st_mode & 0o777 == 0o600
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any("ghs_secret" in text for text in texts)
    unit = sections((folder / "units" / "ralph-wake@.service").read_text())
    assert unit["Service"]["EnvironmentFile"] == "%f/.ralph/ralph.env"
    assert git(repo, "status", "--porcelain", "--untracked-files=all").splitlines() == [f"?? {LOOP}", "?? ralph.yml"]
    commands = [step for step in told.json["steps"] if step.startswith("systemctl ")]
    assert len(commands) == 2
    assert commands[1].startswith("systemctl --user enable --now ")
    assert instance(repo) in commands[1]


def test_two_repositories_of_a_host_share_their_units_and_not_their_credentials(tmp_path: Path) -> None:
    folder = tmp_path / "units"
    one, two = (make_repo(tmp_path / name) for name in ("one", "two"))
    cli_here("init", "--wake", "timer", "--units", str(folder), repo=one)
    told = cli_here("init", "--wake", "timer", "--units", str(folder), "--json", repo=two)
    assert states(told)["ralph-wake@.service"] == states(told)["ralph-wake@.timer"] == "unchanged"
    assert states(told)["ralph.env"] == "new"


def test_credentials_that_a_person_filled_in_are_never_overwritten(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    cli_here("init", "--wake", "timer", repo=repo)
    place = repo / ".ralph" / "ralph.env"
    place.write_text("GITHUB_TOKEN=x\n")
    told = cli_here("init", "--wake", "timer", "--yes", "--json", repo=repo)
    assert states(told)["ralph.env"] == "kept"
    assert place.read_text() == "GITHUB_TOKEN=x\n"


# --- again, and away ------------------------------------------------------------------


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--wake", "timer", repo=repo)
    told = cli_here("init", "--wake", "timer", "--json", repo=repo)
    assert set(states(told).values()) == {"unchanged"}


def test_our_own_unedited_workflow_is_replaced_without_a_question(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    told = cli_here("init", "--wake", "environment", "--json", repo=repo)
    assert states(told)["ralph-loop.yml"] == "replaced"


def test_what_was_chosen_once_stays_chosen(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--wake", "environment", "--runner", "self-hosted,gpu", repo=repo)
    assert states(cli_here("init", "--action", PINNED, "--json", repo=repo))["ralph.yml"] == "unchanged"
    jobs = workflow(repo)["jobs"]
    assert len(jobs) == 4
    assert states(cli_here("init", "--json", repo=repo))["ralph.yml"] == "unchanged"
    assert all(job["runs-on"] == ["self-hosted", "gpu"] for job in jobs.values())
    cli_here("init", "--wake", "timer", repo=repo)
    assert read(Git.open(repo)).schedule.wake == "timer"
    assert len(workflow(repo)["jobs"]) == 1


def test_an_edited_workflow_is_in_the_way_and_nothing_is_written(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    edited = (repo / LOOP).read_text().replace("timeout-minutes: 60", "timeout-minutes: 30")
    (repo / LOOP).write_text(edited)
    told = cli_here("init", "--wake", "timer", repo=repo)
    assert told.code == 2
    assert "ralph-loop.yml is there already" in told.err
    assert (repo / LOOP).read_text() == edited
    assert not (repo / ".ralph").exists()


def test_a_folder_that_is_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    repo, elsewhere = hosted(tmp_path / "repo"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repo / ".github").symlink_to(elsewhere)
    assert cli_here("init", "--yes", repo=repo).code == 2
    assert list(elsewhere.iterdir()) == []


def test_uninstall_leaves_the_repository_as_it_was(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    before = sorted(path for path in repo.rglob("*") if path != repo / ".git" / "info")
    cli_here("init", "--wake", "timer", "--service", repo=repo)
    told = cli_here("init", "--uninstall", "--json", repo=repo)
    assert set(states(told).values()) == {"removed", "cleaned"}
    exclude = repo / ".git" / "info" / "exclude"
    assert exclude.read_text() == ""
    after = sorted(path for path in repo.rglob("*") if path not in (exclude, exclude.parent))
    assert after == before


def test_uninstall_keeps_and_names_what_was_edited(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    with (repo / "ralph.yml").open("a") as file:
        file.write("owners: [mara]\n")
    told = cli_here("init", "--uninstall", repo=repo)
    assert "kept " in told.out
    assert (repo / "ralph.yml").exists()
    assert not (repo / LOOP).exists()
    assert cli_here("init", "--uninstall", "--yes", repo=repo).code == 0
    assert not (repo / "ralph.yml").exists()


def test_uninstall_never_removes_what_init_did_not_write(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"ralph.yml": "owners: [mara]\n", LOOP: "on: push\n"})
    told = cli_here("init", "--uninstall", "--yes", "--json", repo=repo)
    assert set(states(told).values()) == {"kept"}
    assert git(repo, "status", "--porcelain") == ""


def test_line_endings_that_git_changed_are_no_edit(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    (repo / LOOP).write_bytes((repo / LOOP).read_bytes().replace(b"\n", b"\r\n"))
    assert states(cli_here("init", "--uninstall", "--json", repo=repo))["ralph-loop.yml"] == "removed"


def test_uninstall_where_nothing_is_says_so(tmp_path: Path) -> None:
    told = cli_here("init", "--uninstall", repo=make_repo(tmp_path))
    assert (told.code, told.out) == (0, "there is nothing of ralph init here\n")
