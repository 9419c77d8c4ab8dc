"""`ralph doctor`: what is wrong is said with how to fix it, and only then is the exit code 1."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.app.workplaces import project_setup
from ralph_mission.config.reading import load
from ralph_mission.errors import UserError
from tests.cli.init_place import LOOP, PINNED, hosted
from tests.helpers import Result, cli_here, commit, git, make_repo


def checks(told: Result) -> dict[str, dict[str, Any]]:
    """The checks by name."""
    return {check["name"]: check for check in told.json["checks"]}


def test_a_sound_repository_has_nothing_wrong(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("doctor", "-v", repo=repo)
    assert told.code == 0
    assert told.out.splitlines()[-1] == "nothing is wrong, but see the notes"
    plain = ("Python", "git", "repository", "branch", "commits", "disk", "configuration", "forge", "memory")
    for name in (*plain, "fixer typos", "fixer ruff", "agent codex"):
        assert f"ok    {name}: " in told.out
    assert " isolation: env: " in told.out
    brief = cli_here("doctor", repo=repo).out.splitlines()
    assert len(brief) <= 8 and not any("not configured\n" in line or "Python:" in line for line in brief)
    assert "not configured; to list them: ralph doctor" in brief[-2]


def test_what_the_setup_still_has_to_install_is_noted_and_a_failed_setup_is_wrong(tmp_path: Path) -> None:
    settings = "hands: {setup: ['false'], verify: ['no-such-program --x']}\n"
    repo = make_repo(tmp_path, {"ralph.yml": settings})
    told = checks(cli_here("doctor", "--json", repo=repo))
    assert told["verify"]["status"] == "ok" and told["setup"]["status"] == "note"
    assert "not installed here yet: no-such-program" in told["setup"]["found"]
    setup = project_setup(load(settings), Git.open(repo), Git.open(repo).state_dir / "setup")
    with pytest.raises(UserError):
        setup.lend(git(repo, "rev-parse", "HEAD"), tmp_path / "clone", tmp_path / "tools")
    told = checks(cli_here("doctor", "--json", repo=repo))
    assert told["setup"]["status"] == "wrong" and re.match(
        r"failed at \d\d:\d\d UTC: `false`: exit code 1", told["setup"]["found"]
    )
    assert "or now: ralph cycle --force" in told["setup"]["hint"]


def test_a_check_that_no_package_of_the_project_brings_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    settings = "hands: {verify: ['ruff check .', 'mypy .']}\n"
    files = {"ralph.yml": settings, "ruff.toml": "", "requirements.txt": "mypy\n"}
    found = checks(cli_here("doctor", "--json", repo=make_repo(tmp_path, files)))
    assert "not installed here yet: mypy;" in found["setup"]["found"]
    lines = cli_here("doctor", repo=tmp_path).out
    assert "WRONG verify: ruff is not installed, and the project's packages do not bring it\n" in lines
    assert "-> remove it from hands.verify, or add ruff to the project's packages\n" in lines


@pytest.mark.parametrize(
    ("verify", "found"),
    [
        ("npm run tset", "package.json has no script tset"),
        ("make tset", "Makefile has no target tset"),
        ("npm run test", ""),
        ("make lint", ""),
        ("npm run tset -w core", ""),  # of a workspace
        ("make hello", ""),  # by make's own rule
    ],
)
def test_a_check_that_names_no_script_or_target_is_wrong(tmp_path: Path, verify: str, found: str) -> None:
    files = {"package.json": '{"scripts": {"test": "node --test"}}', "Makefile": "lint:\n\ttrue\n", "hello.c": ""}
    files["ralph.yml"] = f"hands: {{setup: [], verify: ['{verify}']}}\n"
    told = checks(cli_here("doctor", "--json", repo=make_repo(tmp_path, files)))["verify"]
    assert (told["status"], told["found"]) == (("wrong", f"{verify}: {found}") if found else ("ok", verify))


def test_a_program_of_the_packages_is_no_missing_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yarn = tmp_path / "bin" / "yarn"
    yarn.parent.mkdir()
    yarn.write_text("#!/bin/sh\n")
    yarn.chmod(0o755)
    monkeypatch.setenv("PATH", f"{yarn.parent}:{os.environ['PATH']}")
    settings = "hands: {setup: [], verify: [yarn run jest]}\n"
    files = {"package.json": '{"scripts": {"test": "jest"}}', "ralph.yml": settings}
    assert checks(cli_here("doctor", "--json", repo=make_repo(tmp_path / "a", files)))["verify"]["status"] == "ok"


def test_a_target_that_a_variable_may_name_is_not_missed(tmp_path: Path) -> None:
    files = {
        "Makefile": "ALL = lint test\n$(ALL):\n\ttrue\n",
        "ralph.yml": "hands: {setup: [], verify: ['make lint']}\n",
    }
    assert checks(cli_here("doctor", "--json", repo=make_repo(tmp_path, files)))["verify"]["status"] == "ok"


def test_what_a_finished_set_up_did_not_leave_is_wrong(tmp_path: Path) -> None:
    settings = "hands: {setup: ['true'], verify: ['no-such-program --x']}\n"
    repo = make_repo(tmp_path / "repo", {"ralph.yml": settings})
    setup = project_setup(load(settings), Git.open(repo), Git.open(repo).state_dir / "setup")
    setup.lend(git(repo, "rev-parse", "HEAD"), tmp_path / "clone", tmp_path / "tools")
    found = checks(cli_here("doctor", "--json", repo=repo))
    assert (found["setup"]["status"], found["verify"]["status"]) == ("ok", "wrong")


@pytest.mark.parametrize(
    "command",
    ["cd web && npm test", "set -e; x", "! x", "if true; then x; fi", "(cd web; x)", "$PY x", "~/bin/x", "bin/made"],
)
def test_what_only_a_shell_or_the_set_up_knows_is_not_wrong(tmp_path: Path, command: str) -> None:
    settings = f"hands: {{setup: ['mkdir -p bin; touch bin/made'], verify: ['{command}']}}\n"
    repo = make_repo(tmp_path / "repo", {"ralph.yml": settings})
    setup = project_setup(load(settings), Git.open(repo), Git.open(repo).state_dir / "setup")
    setup.lend(git(repo, "rev-parse", "HEAD"), tmp_path / "clone", tmp_path / "tools")
    assert checks(cli_here("doctor", "--json", repo=repo))["verify"]["status"] == "ok"


def test_it_changes_nothing(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    before = sorted(str(path) for path in repo.rglob("*"))
    cli_here("doctor", repo=repo)
    assert sorted(str(path) for path in repo.rglob("*")) == before


def test_every_wrong_line_says_how_to_mend_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("hands: {verify: ['no-such-program --x']}\n")
    told = cli_here("doctor", "--json", repo=repo)
    assert told.code == 1
    assert told.json["healthy"] is False
    wrong = [check for check in told.json["checks"] if check["status"] == "wrong"]
    assert [check["name"] for check in wrong] == ["verify"]
    assert "no-such-program is not installed" in wrong[0]["found"]
    assert wrong[0]["hint"]


def test_a_folder_without_a_repository_is_wrong(tmp_path: Path) -> None:
    told = cli_here("doctor", "--json", repo=tmp_path)
    assert told.code == 1
    assert checks(told)["repository"]["status"] == "wrong"


def test_a_repository_without_commits_is_wrong(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    told = cli_here("doctor", "--json", repo=tmp_path)
    assert told.code == 1
    assert checks(told)["commits"]["hint"]


def test_a_broken_configuration_is_named_with_its_line(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("schedul: {}\n")
    told = cli_here("doctor", "--json", repo=repo)
    assert told.code == 1
    assert checks(told)["configuration"]["found"] == "ralph.yml line 1: unknown key schedul"


def test_keys_without_effect_are_notes(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("plugins: {}\n")
    told = cli_here("doctor", repo=repo)
    assert told.code == 0
    assert "note  configuration: ralph.yml line 1: plugins is a key of ralph-orchestrator; not used here" in told.out


def test_a_checked_out_memory_branch_is_wrong(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    git(repo, "switch", "--quiet", "--create", "ralph-memory")
    told = cli_here("doctor", "--json", repo=repo)
    assert told.code == 1
    assert checks(told)["memory branch"]["status"] == "wrong"


def test_a_shallow_clone_is_a_note(tmp_path: Path) -> None:
    source = make_repo(tmp_path / "source")
    commit(source, {})
    git(tmp_path, "clone", "--quiet", "--depth", "1", source.as_uri(), "clone")
    told = cli_here("doctor", "--json", repo=tmp_path / "clone")
    assert checks(told)["history"]["status"] == "note"


@pytest.mark.parametrize("command", ["true", "CI=1 true", "./check.sh --all"])
def test_a_command_that_is_there_is_ok(tmp_path: Path, command: str) -> None:
    repo = make_repo(tmp_path, {"check.sh": "#!/bin/sh\n", "ralph.yml": f"hands: {{verify: ['{command}']}}\n"})
    assert checks(cli_here("doctor", "--json", repo=repo))["verify"]["status"] == "ok"


# --- workflows in a clone of a repository on GitHub --------------------------------------


@pytest.mark.usefixtures("unknown_commit")
def test_a_clone_of_a_repository_on_github_without_a_workflow_is_noted_with_the_command(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    told = checks(cli_here("doctor", "--json", repo=repo))
    assert told["workflow"]["status"] == "note" and "GitHub starts no cycle" in told["workflow"]["found"]
    assert told["workflow"]["hint"].startswith("ralph init --action OWNER/NAME@")
    assert "workflow" not in checks(cli_here("doctor", "--json", repo=make_repo(tmp_path / "elsewhere")))
    cli_here("init", "--action", PINNED, repo=repo)
    assert (repo / LOOP).exists() and "workflow" not in checks(cli_here("doctor", "--json", repo=repo))


@pytest.mark.usefixtures("known_commit")
def test_where_the_commit_is_known_plain_init_writes_the_workflow(tmp_path: Path) -> None:
    told = checks(cli_here("doctor", "--json", repo=hosted(tmp_path)))
    assert told["workflow"]["hint"] == "ralph init, then commit and push what it writes"


@pytest.mark.usefixtures("known_commit")
def test_workflows_of_agents_without_an_agent_are_noted(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--work", "--review", repo=repo)
    told = checks(cli_here("doctor", "--json", repo=repo))
    assert told["agent"]["found"] == "ralph-work.yml and ralph-review.yml need one, and ralph.yml names none"
    (repo / "ralph.yml").write_text("hands: {agent: {kind: claude}}\n")
    assert "agent" not in checks(cli_here("doctor", "--json", repo=repo))


@pytest.mark.usefixtures("known_commit")
@pytest.mark.parametrize(
    ("env", "missing"),
    [
        ({}, "GITHUB_TOKEN and GITHUB_REPOSITORY are not set"),
        ({"GITHUB_TOKEN": "x"}, "GITHUB_REPOSITORY is not set"),
        ({"GITHUB_REPOSITORY": "mara/harbour"}, "GITHUB_TOKEN is not set"),
    ],
)
def test_what_asking_github_lacks_is_named(tmp_path: Path, env: dict[str, str], missing: str) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    told = checks(cli_here("doctor", "--json", repo=repo, env=env))
    assert told["GitHub"]["found"] == f"GitHub was not checked: {missing}"
