"""`ralph pr`, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.model.effects import OpenPull, PushBranch, marker
from ralph_mission.safety.patch import Edit, FileDelta
from tests.helpers import NOON, Result, cli_here, commit, git, make_repo

KEY = "a1" * 8


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with pull request #1 of the bot's: README.md from `# Sample` to `# Better`."""
    path = make_repo(tmp_path / "repo")
    bot = forge(path)
    change = FileDelta("README.md", "100644", (Edit(0, 1, ("# Better\n",)),))
    bot.perform(PushBranch(KEY, "ralph/fix", bot.default_branch().sha, "Fix", NOON, (change,)))
    assert bot.perform(OpenPull(KEY, "Fix a typo", f"Why not.\n{marker(KEY)}", "ralph/fix", "main", 1)).number == 1
    return path


def forge(repo: Path) -> LocalForge:
    return LocalForge(Git.open(repo))


def ralph(repo: Path, *arguments: str, stdin: str = "") -> Result:
    return cli_here("pr", *arguments, "--as", "mara", repo=repo, stdin=stdin)


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "ralph/fix")


def test_pulls_are_listed_with_their_branches(repo: Path) -> None:
    assert ralph(repo, "list").out == "#1  open  ralph[bot]  ralph/fix -> main  Fix a typo\n"
    assert ralph(repo, "list", "--state", "closed").out == "No pull requests.\n"


def test_show_tells_everything(repo: Path) -> None:
    ralph(repo, "request-changes", "1", "Too loud.")
    shown = ralph(repo, "show", "1").out
    for words in (
        "#1 Fix a typo",
        f"ralph/fix -> main at {head(repo)[:12]}",
        "Why not.",
        f"--- mara requested changes to {head(repo)[:12]} on 2",
        "Too loud.",
    ):
        assert words in shown


def test_diff_is_gits(repo: Path) -> None:
    out = ralph(repo, "diff", "1").out
    assert "\n-# Sample\n+# Better\n" in out and "--- a/README.md" in out


def test_diff_writes_out_what_a_terminal_would_hide(repo: Path) -> None:
    git(repo, "switch", "--quiet", "--create", "odd")
    commit(repo, {"a.txt": "x\x1b[2J\u202ey\r\n\tz\n"})
    number = Person(forge(repo), "mara").open_pull("odd", "main", "Odd")
    assert "+x<U+001B>[2J<U+202E>y<U+000D>\n+\tz\n" in ralph(repo, "diff", str(number)).out
    assert "\x1b" in ralph(repo, "diff", str(number), "--json").json["diff"]


def test_diff_of_a_merged_pull_is_still_there(repo: Path) -> None:
    ralph(repo, "merge", "1")
    assert "+# Better" in ralph(repo, "diff", "1").out


def test_approval_names_the_commit_and_what_happens_next(repo: Path) -> None:
    said = ralph(repo, "approve", "1", "Nice.")
    assert said.out.splitlines() == [
        f"Approved #1 at {head(repo)[:12]}; the next cycle merges it.",
        f"next: ralph cycle --repo {repo}",
    ]
    (review,) = forge(repo).pull(1).reviews
    assert (review.state, review.sha, review.body, review.author.login) == ("approved", head(repo), "Nice.", "mara")


def test_approval_says_when_no_cycle_merges_it(repo: Path) -> None:
    git(repo, "branch", "dev")
    file = repo / ".ralph/forge/pulls/0001.md"
    file.write_text(file.read_text().replace("base: main", "base: dev"))
    said = ralph(repo, "approve", "1").out
    assert "its base is dev and not main" in said and "ralph pr merge 1" in said and "next cycle" not in said


def test_labels_of_a_pull_are_set_as_those_of_an_issue(repo: Path) -> None:
    said = cli_here("issue", "label", "1", "ralph:mission", "--as", "mara", repo=repo)
    assert said.code == 0 and "ralph:mission" in forge(repo).pull(1).labels, said.err
    again = cli_here("issue", "label", "1", "ralph:mission", "--as", "mara", repo=repo)
    assert again.code == 2 and "--remove" in again.err


def test_a_comment_on_a_pull_is_one_as_on_an_issue(repo: Path) -> None:
    assert cli_here("issue", "comment", "1", "/ralph review", "--as", "mara", repo=repo).out == "Commented on #1.\n"
    assert [one.body for one in forge(repo).pull(1).remarks] == ["/ralph review"]


def test_changes_are_asked_for_from_standard_input(repo: Path) -> None:
    said = ralph(repo, "request-changes", "1", "-", stdin="Too loud.\n").out
    assert "no agent is configured (hands.agent) to make them, so the next cycle will ask you" in said
    (review,) = forge(repo).pull(1).reviews
    assert (review.state, review.body) == ("changes_requested", "Too loud.\n")


@pytest.mark.parametrize("method", ["squash", "merge"])
def test_merge_moves_the_checked_out_tree(repo: Path, method: str) -> None:
    said = ralph(repo, "merge", "1", "--method", method)
    assert said.out == f"Merged #1 into main as {git(repo, 'rev-parse', 'main')[:12]}.\n"
    assert git(repo, "status", "--porcelain") == "" and (repo / "README.md").read_text() == "# Better\n"


def test_merge_into_a_dirty_tree_says_how_to_mend_it(repo: Path) -> None:
    (repo / "README.md").write_text("edited\n")
    result = ralph(repo, "merge", "1")
    assert result.code == 1
    assert "uncommitted changes (README.md). Commit or stash them" in result.err


def test_merged_pull_is_neither_approved_nor_closed(repo: Path) -> None:
    ralph(repo, "merge", "1")
    for verb in ("approve", "close"):
        result = ralph(repo, verb, "1")
        assert result.code == 1 and "merged" in result.err


def test_close_says_what_happens_next(repo: Path) -> None:
    assert "takes it as a rejection" in ralph(repo, "close", "1").out
    pull = forge(repo).pull(1)
    assert (pull.state, pull.closed_by and pull.closed_by.login) == ("closed", "mara")


def test_json_is_one_document(repo: Path) -> None:
    assert ralph(repo, "list", "--json").json["pulls"][0]["head_sha"] == head(repo)
    shown = ralph(repo, "show", "1", "--json").json
    assert shown["touches"] == [{"path": "README.md", "first": 1, "last": 1}]
    assert ralph(repo, "merge", "1", "--json").json["state"] == "merged"


@pytest.mark.parametrize("command", [("show",), ("show", "--diff"), ("approve",), ("merge",), ("close",)])
def test_missing_pull_is_one_line(repo: Path, command: tuple[str, ...]) -> None:
    result = ralph(repo, *command, "9")
    assert (result.code, result.err) == (1, f"error: there is no pull request #9. See: ralph pr list --repo {repo}\n")


def test_a_number_of_the_other_kind_is_told(repo: Path) -> None:
    assert cli_here("issue", "create", "--title", "Tides are late", repo=repo).code == 0
    assert ralph(repo, "show", "2").err == "error: there is no pull request #2. #2 is an issue\n"
    assert cli_here("issue", "show", "1", repo=repo).err == "error: there is no issue #1. #1 is a pull request\n"
