"""`ralph issue`, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.model.effects import OpenIssue, marker
from tests.helpers import Result, cli_here, make_repo

KEY = "a1" * 8


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def forge(repo: Path) -> LocalForge:
    return LocalForge(Git.open(repo))


def ralph(repo: Path, *arguments: str, stdin: str = "") -> Result:
    return cli_here("issue", *arguments, "--as", "mara", repo=repo, stdin=stdin)


def proposal(repo: Path) -> int:
    return forge(repo).perform(OpenIssue(KEY, "Proposal", f"May I?\n{marker(KEY)}")).number


def test_a_misspelt_word_or_label_is_told(repo: Path) -> None:
    ralph(repo, "create", "--title", "Count")
    assert "nothing that Ralph knows: /ralph approve, reject" in ralph(repo, "comment", "1", "/ralph frobnicate").out
    for fine in ("/ralph park", "/ralph reject: too early", "what about /ralph?", "\n/ralph guidance\nuse it"):
        assert ralph(repo, "comment", "1", fine).out.startswith("Commented on #1."), fine
    assert "nothing that Ralph knows" in ralph(repo, "comment", "1", "/ralph-approve").out
    assert "did you mean ralph:approved?" in ralph(repo, "label", "1", "ralph:aproved").out
    assert "did you mean" not in ralph(repo, "label", "1", "size:small").out


def test_issue_is_created_and_listed(repo: Path) -> None:
    made = ralph(repo, "create", "--title", "Tides are late", "--body", "By an hour.", "--label", "bug")
    assert (made.code, made.out) == (0, "Opened #1: .ralph/forge/issues/0001.md\n")
    assert ralph(repo, "list").out == "#1  open  mara  Tides are late  bug\n"


def test_no_issues_is_said(repo: Path) -> None:
    assert ralph(repo, "list").out == "No open issues. Closed ones: --state all.\n"


def test_list_selects_and_aligns(repo: Path) -> None:
    mara = Person(forge(repo), "mara")
    for n in range(10):
        mara.create_issue(f"Issue {n}", labels=("even",) if n % 2 == 0 else ())
    mara.close_issue(1)
    lines = ralph(repo, "list", "--state", "all", "--label", "even").out.splitlines()
    assert [line.split()[0] for line in lines] == ["#1", "#3", "#5", "#7", "#9"]
    assert len({line.index("mara") for line in lines}) == 1
    assert ralph(repo, "list", "--state", "closed").out.startswith("#1  closed  mara  Issue 0")


def test_text_comes_from_standard_input(repo: Path) -> None:
    ralph(repo, "create", "--title", "T", "--body", "-", stdin="Line one\nLine two\n")
    ralph(repo, "comment", "1", "-", stdin="Said\n")
    issue = forge(repo).issue(1)
    assert (issue.body, issue.remarks[0].body) == ("Line one\nLine two\n", "Said\n")


def test_show_tells_everything(repo: Path) -> None:
    ralph(repo, "create", "--title", "Tides", "--body", "Late.", "--label", "bug")
    ralph(repo, "comment", "1", "By an hour.")
    shown = ralph(repo, "show", "1").out
    facts = ("#1 Tides", "state:   open", "author:  mara", "labels:  bug", "Late.")
    for words in (*facts, "--- mara commented on 2", "By an hour."):
        assert words in shown


def test_a_mission_without_an_agent_stays_with_the_person_and_the_label_says_so(repo: Path) -> None:
    ralph(repo, "create", "--title", "T")
    assert "no agent is configured (hands.agent) to make the change" in ralph(repo, "label", "1", "ralph:mission").out
    (repo / "ralph.yml").write_text("hands: {agent: {kind: claude}}\n")
    ralph(repo, "create", "--title", "U")
    assert "hands.agent" not in ralph(repo, "label", "2", "ralph:mission").out


def test_label_says_what_happens_next(repo: Path) -> None:
    number = str(proposal(repo))
    assert ralph(repo, "label", number, "ralph:approved").out == (
        f"Labelled #1; the next cycle acts on it.\nnext: ralph cycle --repo {repo}\n"
    )
    assert forge(repo).issue(1).labels == {"ralph:approved"}
    assert ralph(repo, "unlabel", number, "ralph:approved").code == 0
    assert not forge(repo).issue(1).labels


@pytest.mark.parametrize(
    ("options", "reason"),
    [((), ""), (("--reason", "completed"), "completed"), (("--reason", "not-planned"), "not_planned")],
)
def test_close_keeps_the_reason(repo: Path, options: tuple[str, ...], reason: str) -> None:
    proposal(repo)
    assert "the next cycle takes it as" in ralph(repo, "close", "1", *options).out
    issue = forge(repo).issue(1)
    assert (issue.state, issue.state_reason, issue.closed_by and issue.closed_by.login) == ("closed", reason, "mara")


def test_closed_issue_is_not_closed_again(repo: Path) -> None:
    proposal(repo)
    ralph(repo, "close", "1")
    again = ralph(repo, "close", "1")
    assert again.code == 1 and "closed already" in again.err


def test_json_is_one_document(repo: Path) -> None:
    made = ralph(repo, "create", "--title", "T", "--label", "b", "--label", "a", "--json").json
    assert (made["number"], made["labels"], made["author"]["login"]) == (1, ["a", "b"], "mara")
    assert made["created_at"].endswith("Z")
    assert [issue["number"] for issue in ralph(repo, "list", "--json").json["issues"]] == [1]
    assert ralph(repo, "comment", "1", "x", "--json").json["remarks"][0]["body"] == "x"


@pytest.mark.attack(38)
def test_terminal_escapes_do_not_reach_the_terminal(repo: Path) -> None:
    ralph(repo, "create", "--title", "T\x1b[31m\u202e!", "--body", "\x1b]0;owned\x07B\x9b2J")
    for out in (ralph(repo, "list").out, ralph(repo, "show", "1").out):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    assert forge(repo).issue(1).title == "T\x1b[31m\u202e!"


@pytest.mark.parametrize(
    "command",
    [("show", "9"), ("comment", "9", "x"), ("label", "9", "x"), ("label", "--remove", "9", "x"), ("close", "9")],
)
def test_missing_issue_is_one_line(repo: Path, command: tuple[str, ...]) -> None:
    result = ralph(repo, *command)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"error: there is no issue #9. See: ralph issue list --repo {repo}\n"


@pytest.mark.parametrize("login", ["ralph[bot]", "Ralph[Bot]"])
def test_nobody_is_the_bot(repo: Path, login: str) -> None:
    result = cli_here("issue", "create", "--title", "x", "--as", login, repo=repo)
    assert result.code == 2 and "bot's name" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("create",),
        ("create", "--title", " "),
        ("create", "--title", "a\nb"),
        ("comment", "x", "y"),
        ("label", "1"),
        ("comment", "1", ""),
    ],
)
def test_wrong_usage_is_two(repo: Path, arguments: tuple[str, ...]) -> None:
    proposal(repo)
    assert ralph(repo, *arguments).code == 2


def test_default_person_is_the_systems_user(repo: Path) -> None:
    import os
    import pwd

    assert cli_here("issue", "create", "--title", "x", repo=repo).code == 0
    assert forge(repo).issue(1).author.login == pwd.getpwuid(os.getuid()).pw_name
