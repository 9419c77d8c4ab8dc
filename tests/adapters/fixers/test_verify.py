"""The repository's own checks decide, in a place where they can do no harm."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from ralph_mission.adapters.fixers import verify as verify_module
from ralph_mission.adapters.fixers.verify import CheckRunner
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.detection import DetectedProject, SetupStep
from ralph_mission.adapters.projects.setup import ProjectSetup
from ralph_mission.adapters.sandbox.isolation import of_checkout
from ralph_mission.config.loop import FixerSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.agent_job import BaseChecks
from ralph_mission.mission.ports import PatchVerifier
from ralph_mission.safety.patch import FileChange, Patch
from tests.helpers import commit, git, make_repo
from tests.integration.isolation_attacks import level_or_skip, place


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "good\n"})


@pytest.fixture
def verify(repo, scratch):
    def call(*commands: str, new: bytes = b"better\n", seconds: float = 60, path: str = "a.txt"):
        hands: PatchVerifier = CheckRunner(Git.open(repo), commands, seconds)
        old = b"good\n" if path == "a.txt" else None
        change = FileChange(path, "100644" if old else "", "100644", old, new)
        return hands.verify(Patch(git(repo, "rev-parse", "HEAD"), (change,)), str(scratch))

    return call


@pytest.fixture
def bench(repo, tmp_path):
    def call(*commands: str, seconds: float = 60) -> CheckRunner:
        return CheckRunner(Git.open(repo), commands, seconds, cache=tmp_path / "cache")

    return call


def base(bench: CheckRunner, repo: Path, scratch: Path) -> BaseChecks:
    return bench.base(git(repo, "rev-parse", "HEAD"), str(scratch))


def test_every_check_is_looked_at_on_the_base_and_says_why_it_is_red(bench, repo, scratch):
    found = base(bench("echo 'error: no good' >&2; exit 3", "true", "grep good a.txt", "false"), repo, scratch)
    assert found.green == 2 and [check.command[-5:] for check in found.red] == ["xit 3", "false"]
    assert found.red[0].said == "exit code 3\nerror: no good" and not found.red[0].broken


def test_a_base_is_looked_at_once_for_each_commit_and_a_red_check_twice(bench, repo, scratch, tmp_path):
    counter = tmp_path / "counter"
    hands = bench(f"echo green >> {counter}", f"echo red >> {counter}; exit 1")
    first = base(hands, repo, scratch)
    assert base(hands, repo, scratch) == first
    assert counter.read_text().split() == ["green", "red", "red"]
    commit(repo, {"b.txt": "more\n"})
    base(hands, repo, scratch)
    assert len(counter.read_text().split()) == 6


def test_a_check_that_fails_once_and_then_passes_is_not_red(bench, repo, scratch, tmp_path):
    assert not base(bench(f"test -e {tmp_path}/f || {{ touch {tmp_path}/f; exit 1; }}"), repo, scratch).red


def test_what_was_red_is_looked_at_again_after_hours(bench, repo, scratch, tmp_path, monkeypatch):
    hands = bench(f"test -e {tmp_path}/there")
    assert base(hands, repo, scratch).red
    (tmp_path / "there").touch()
    assert base(hands, repo, scratch).red
    later = verify_module.time.time() + verify_module.RED_FOR + 1
    monkeypatch.setattr(verify_module.time, "time", lambda: later)
    assert not base(hands, repo, scratch).red


@pytest.mark.parametrize(
    "command, why",
    [
        ("no-such-program --all", "no-such-program"),
        ("for n in react next swr a b; do echo \"Error: Cannot find module '$n'\"; done; exit 1", "not set up: react"),
    ],
)
def test_a_check_that_no_change_turns_green_is_told_from_one_that_is_red(bench, repo, scratch, command, why):
    (red,) = base(bench(command), repo, scratch).red
    assert why in red.broken


def test_a_base_that_cannot_be_set_up_is_a_problem_and_no_error(repo, scratch, tmp_path):
    setup = ProjectSetup(Git.open(repo), tmp_path / "kept", ("echo 'error: no left-padd' >&2; exit 1",))
    found = base(CheckRunner(Git.open(repo), ("true",), 60, setup=setup), repo, scratch)
    assert "no left-padd" in found.problem and not found.red


def complain(*lines: str) -> str:
    return f"cat complaints; {' '.join(lines)} exit 1"


@pytest.mark.parametrize("new, ok", [(b"error: a (3)\n", True), (b"error: a (9)\n", True), (b"error: b\n", False)])
def test_a_check_that_was_red_may_stay_so_but_not_get_worse(repo, scratch, bench, new, ok):
    commit(repo, {"complaints": "error: a (3)\n"})
    hands = bench(complain(), "true")
    red = base(hands, repo, scratch).red
    change = FileChange("complaints", "100644", "100644", b"error: a (3)\n", new)
    patch = Patch(git(repo, "rev-parse", "HEAD"), (change,))
    found = hands.verify(patch, str(scratch), red)
    assert (found.ok, found.standing) == (ok, (complain(),) if ok else ())
    assert found.red == (complain(),)
    unasked = hands.verify(patch, str(scratch))  # looks at the base itself
    assert (unasked.ok, unasked.standing) == (found.ok, found.standing)
    assert not hands.verify(patch, str(scratch), ()).ok


def test_a_base_that_cannot_be_looked_at_is_not_taken_for_green(repo, scratch, bench):
    change = FileChange("a.txt", "100644", "100644", b"good\n", b"better\n")
    patch = Patch(git(repo, "rev-parse", "HEAD"), (change,))
    found = bench(f"rm -rf {repo}/.git/objects; exit 1").verify(patch, str(scratch))
    assert (found.ok, found.red_base, found.red) == (False, True, None)


def test_a_change_that_makes_a_red_check_green_leaves_the_base_red(repo, scratch, bench):
    commit(repo, {"mark": "bad\n"})
    change = FileChange("mark", "100644", "100644", b"bad\n", b"good\n")
    patch = Patch(git(repo, "rev-parse", "HEAD"), (change,))
    hands = bench("grep -q good mark")
    assert hands.verify(patch, str(scratch)).red is None, "the base was not looked at"
    base(hands, repo, scratch)
    found = hands.verify(patch, str(scratch))
    assert (found.ok, found.red) == (True, ("grep -q good mark",))


def test_without_commands_every_change_passes(verify):
    assert verify().ok


def test_commands_see_the_change(verify):
    assert verify("grep better a.txt", "test ! -e elsewhere").ok


def test_a_failure_names_the_command_its_code_and_its_last_lines(verify):
    outcome = verify("true", "if grep -q better a.txt; then for n in 1 2 3 4 5 6 7; do echo line $n; done; exit 3; fi")
    assert not outcome.ok and outcome.detail.endswith("exit code 3: line 7\nline 3\nline 4\nline 5\nline 6\nline 7")
    assert "without the change" not in outcome.detail


def test_a_check_that_is_as_red_without_the_change_does_not_hold_it_back_and_the_others_still_count(verify):
    found = verify("echo 'FAILED tests/test_net.py::test_fetch'; exit 1", "test -f a.txt")
    assert found.ok and found.standing == ("echo 'FAILED tests/test_net.py::test_fetch'; exit 1",)
    worse = verify("echo FAILED net; exit 1", "grep good a.txt")
    assert not worse.ok and worse.detail.startswith("`grep good a.txt`") and not worse.red_base


@pytest.mark.parametrize(
    "command",
    [
        "grep -q good a.txt && exit 1; exit 1",  # silent: nothing can be compared
        "echo 'error: lint in other.py'; exit 1",  # alone, and it may have ended before the tests
        "echo 'FAILED one'; grep -q good a.txt && echo '1 failed, 9 passed' || echo '4 failed, 6 passed'; exit 1",
        "echo 'FAILED one'; echo '1 failed'; grep -q good a.txt && exit 1; exit 2",
    ],
)
def test_a_red_check_whose_sameness_its_output_does_not_show_holds_a_change_back(verify, command):
    assert not verify(command).ok
    assert verify("echo 'FAILED one'; echo '1 failed, 9 passed'; exit 1").ok


def test_a_test_that_fails_with_the_change_alone_holds_it_back_beside_one_that_always_fails(verify):
    always = "echo FAILED test_net; "
    found = verify(f"{always} grep good a.txt || echo FAILED test_a; exit 1")
    assert not found.ok and "fails without the change too, with other output" in found.detail and not found.red_base


def test_a_check_that_cannot_pass_at_all_says_which_key_names_another(verify):
    found = verify("true", "no-such-program-anywhere")
    assert found.red_base and "it fails without the change too" in found.detail
    assert "hands.verify" in found.detail.splitlines()[0]


def test_a_base_is_looked_at_once_for_all_changes_of_it(bench, repo, scratch, tmp_path):
    counter = tmp_path / "counter"
    hands = bench(f"cat a.txt >> {counter}; echo '1 failed'; exit 1")
    for new in (b"better\n", b"best\n"):
        change = FileChange("a.txt", "100644", "100644", b"good\n", new)
        assert hands.verify(Patch(git(repo, "rev-parse", "HEAD"), (change,)), str(scratch)).ok
    assert counter.read_text().split() == ["better", "good", "good", "better", "best"]


def test_a_command_after_a_failure_is_not_run(verify, tmp_path):
    verify("grep good a.txt", f"grep better a.txt && touch {tmp_path}/ran")
    assert not (tmp_path / "ran").exists()


def test_a_command_that_takes_too_long_fails(verify):
    outcome = verify("grep good a.txt || sleep 60", seconds=0.5)
    assert not outcome.ok and "not done after" in outcome.detail


def test_a_missing_program_fails(verify):
    outcome = verify("no-such-program-anywhere --all")
    assert not outcome.ok and "exit code 127" in outcome.detail


def test_what_a_command_says_holds_no_control_characters(verify):
    outcome = verify(r"printf '\033[31mred\033[0m \033]8;;http://x\007link\007 a\bb \342\200\256x\n' >&2; exit 127")
    assert "red" in outcome.detail and not set(outcome.detail.replace("\n", "")) & {*map(chr, range(32)), "\u202e"}


def test_commands_get_no_token_and_cannot_reach_the_repository_s_refs(verify, repo, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret-value")
    before = git(repo, "for-each-ref"), git(repo, "status", "--porcelain"), (repo / ".git/config").read_text()
    assert verify(
        'test -z "$GITHUB_TOKEN" && test -z "$(git remote)" && git checkout -q -b other && git config a.b c'
        " && ! git push origin other 2>/dev/null && rm -rf a.txt .git"
    ).ok
    after = git(repo, "for-each-ref"), git(repo, "status", "--porcelain"), (repo / ".git/config").read_text()
    assert before == after


def test_the_change_is_not_made_in_the_repository(verify, repo):
    verify("true")
    assert (repo / "a.txt").read_text() == "good\n"


def test_nothing_is_left_in_the_scratch_folder_but_the_home_of_the_run(verify, scratch):
    verify("touch left", "exit 1")
    assert {place.name for place in scratch.iterdir()} == {"home"}


def test_a_change_with_an_unsafe_path_is_never_tried(verify, tmp_path):
    with pytest.raises(UserError):
        verify(f"touch {tmp_path}/ran", path=".git/hooks/x")
    assert not (tmp_path / "ran").exists()


def test_the_older_name_of_a_fixer_is_understood():
    assert FixerSettings(fixers=["codespell", "ruff"]).fixers == ("typos", "ruff")
    assert FixerSettings(fixers=["typos", "codespell"]).fixers == ("typos",)


def test_both_fixers_are_on_and_no_check_is_run_by_default():
    assert (FixerSettings().fixers, FixerSettings().verify) == (("typos", "ruff", "project"), ())


@pytest.mark.parametrize("settings", [{"fixer": []}, {"fixers": ["black"]}, {"verify": "make"}])
def test_settings_that_mean_nothing_are_errors(settings):
    with pytest.raises(ValidationError):
        FixerSettings(**settings)


def test_commands_are_kept_apart_where_that_is_asked_for() -> None:
    level = level_or_skip("bwrap")
    with place() as made:
        repo = Git.open(make_repo(made.root / "repo", {"a.txt": "good\n"}))
        scratch = Path(tempfile.mkdtemp(dir=made.root))
        command = f"grep better a.txt && echo x > made && (touch {made.root}/out || true)"
        hands = CheckRunner(repo, (command,), sandbox_for=lambda git: of_checkout(level, git, {}, ()))
        change = FileChange("a.txt", "100644", "100644", b"good\n", b"better\n")
        outcome = hands.verify(Patch(repo.resolve("HEAD"), (change,)), str(scratch))
        assert outcome.ok, outcome.detail
        assert not (made.root / "out").exists()


def test_checks_run_with_what_the_set_up_installed_and_a_change_of_what_decides_it_is_set_up_itself(
    repo, scratch, tmp_path
):
    base = commit(repo, {"package.json": "{}"})
    tool = (
        'mkdir -p node_modules/.bin; cp package.json node_modules/asked; printf "#!/bin/sh\\ncat node_modules/asked" '
    )
    step = SetupStep(
        "npm",
        "",
        f"grep conflict package.json && exit 1; {tool}> node_modules/.bin/lint; chmod +x node_modules/.bin/lint",
        (),
        ("package.json",),
    )

    class Detected(ProjectSetup):
        def detect(self, commit: str) -> DetectedProject:
            return DetectedProject((step,), ())

    setup = Detected(Git.open(repo), tmp_path / "kept")
    hands = CheckRunner(Git.open(repo), ("lint | grep -q wanted",), 60, setup=setup)

    def verdict(path: str, old: bytes, new: bytes) -> bool:
        return hands.verify(Patch(base, (FileChange(path, "100644", "100644", old, new),)), str(scratch), ()).ok

    assert not verdict("a.txt", b"good\n", b"wanted")
    assert verdict("package.json", b"{}", b'{"wanted": 1}')
    change = FileChange("package.json", "100644", "100644", b"{}", b"conflict")
    refused = hands.verify(Patch(base, (change,)), str(scratch))  # a fault of this change alone: others are tried
    assert not refused.ok and refused.ran and "the change cannot be set up" in refused.detail


def test_a_set_up_that_fails_says_so_in_the_words_of_its_tool(repo, scratch, tmp_path):
    setup = ProjectSetup(Git.open(repo), tmp_path / "kept", ("echo 'error: no such package left-padd' >&2; exit 1",))
    hands = CheckRunner(Git.open(repo), ("true",), 60, setup=setup)
    change = FileChange("a.txt", "100644", "100644", b"good\n", b"better\n")
    with pytest.raises(UserError, match="no such package left-padd"):
        hands.verify(Patch(git(repo, "rev-parse", "HEAD"), (change,)), str(scratch))
