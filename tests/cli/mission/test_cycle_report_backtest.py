"""`ralph backtest`, from a repository with a past to a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.app.backtest import read_dated_line
from tests.helpers import cli_here, commit, git, make_repo

START = datetime(2025, 1, 6, 12, tzinfo=UTC)
PROSE = "We hope that you can use this guide and that it is of use to all of you who read it.\n"
WRONG = "You will recieve the answer when the server has it.\n"
RIGHT = WRONG.replace("recieve", "receive")
STAYS = "This is seperate from the rest of the guide for you.\n"


def at(week: int) -> datetime:
    return START + timedelta(weeks=week)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A year: one misspelling that a person corrects after three weeks, one that nobody does."""
    place = make_repo(tmp_path / "harbour", {"README.md": PROSE, "a.py": "x = 1\n"}, date=START)
    commit(place, {"docs/guide.md": PROSE + WRONG, "docs/other.md": PROSE + STAYS}, date=at(1))
    commit(place, {"docs/guide.md": PROSE + RIGHT}, date=at(4))
    for week in (10, 20, 30, 40):
        commit(place, {"a.py": f"x = {week}\n"}, date=at(week))
    return place


def test_what_people_fixed_later_is_told_from_what_stayed_with_its_commit(repo: Path) -> None:
    told = cli_here("backtest", "--json", repo=repo)
    assert told.code == 0, told.err
    fates = {one["what"]: one["fate"] for one in told.json["items"]}
    assert fates == {"recieve → receive": "fixed", "seperate → separate": "stayed"}
    (fixed,) = [one["commit"] for one in told.json["items"] if one["fate"] == "fixed"]
    assert fixed == git(repo, "log", "--format=%H", "-1", "--", "docs/guide.md")
    (kind,) = told.json["kinds"]
    assert (kind["kind"], kind["precision"]) == ("spelling", 0.5)
    assert [one["action"] for one in told.json["threads"]] == ["open-fix"]
    assert told.json["threads"][0]["verdict"] == "partly"
    without = "With GITHUB_TOKEN and GITHUB_REPOSITORY set, its issues, pull requests, runs and alerts are used too."
    assert told.json["remarks"].count(without) == 1


@pytest.mark.parametrize(
    "message",
    [
        "Correct it\n\nWhy: it misleads.\n\nApproved by mara at 0123456789ab in #8.\nTo reject: revert this commit.\n",
        "Merge pull request #8 from mara/ralph/spelling-0123abcd\n\nCorrect it\n",
    ],
)
def test_what_ralph_s_own_pull_request_fixed_counts_for_nobody(tmp_path: Path, message: str) -> None:
    place = make_repo(tmp_path / "harbour", {"docs/guide.md": PROSE + WRONG}, date=START)
    commit(place, {"docs/guide.md": PROSE + RIGHT}, message=message, date=at(4))
    commit(place, {"a.py": "x = 2\n"}, date=at(40))
    told = cli_here("backtest", "--json", repo=place).json
    assert [one["fate"] for one in told["items"]] == ["fixed by Ralph"]
    (kind,) = told["kinds"]
    assert (kind["fixed"], kind["precision"]) == (0, None)
    assert any(remark.startswith("1 fixed by Ralph's own pull requests") for remark in told["remarks"])


class Reader(HTMLParser):
    """Every tag with what it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.refers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.refers += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "xlink:href")]


def test_nothing_changes_but_the_page_which_loads_and_runs_nothing(repo: Path) -> None:
    def state() -> tuple[str, str, str]:
        return git(repo, "for-each-ref"), git(repo, "status", "--porcelain"), git(repo, "count-objects")

    before = state()
    told = cli_here("backtest", repo=repo)
    assert told.code == 0, told.err
    assert state() == before
    assert [path.name for path in (repo / ".ralph").iterdir()] == ["backtest.html"]
    assert "wrote" in told.err and "step 1 of" in told.err and "1 week" not in told.out
    text, reader = (repo / ".ralph/backtest.html").read_text(), Reader()
    labels = re.findall('role="region".*?aria-label="([^"]+)"', text)
    assert len(labels) == len(set(labels)) > 2, "a screen reader tells the tables apart"
    reader.feed(text)
    assert reader.refers == [] and not reader.tags & {"script", "link", "img", "iframe", "object"}
    assert {"svg", "table", "title"} <= reader.tags and 'name="viewport"' in text
    assert not re.search(r"url\(|@import", text)
    assert "recieve → receive" in text


def test_text_of_the_repository_is_escaped_on_the_page(tmp_path: Path) -> None:
    name = "docs/<script>alert(1).md"
    place = make_repo(tmp_path / "harbour", {name: PROSE + WRONG}, date=START)
    commit(place, {"a.py": "x = 2\n"}, date=at(20))
    page = tmp_path / "page.html"
    assert cli_here("backtest", "--output", str(page), repo=place).code == 0
    text = page.read_text()
    assert "&lt;script&gt;" in text and "<script" not in text


@pytest.mark.long  # the same run again
def test_a_kind_that_is_only_watched_opens_nothing(repo: Path) -> None:
    (repo / "ralph.yml").write_text("thinker: {watch_only: [spelling]}\n")
    told = cli_here("backtest", "--json", repo=repo).json
    assert told["threads"] == [] and told["kinds"][0]["found"] == 2


def test_settings_are_proposed_for_a_kind_that_nobody_fixes(tmp_path: Path) -> None:
    wrong = ["recieve", "seperate", "occured", "untill", "wich", "acheive"]
    files = {f"docs/{word}.md": f"{PROSE}We hope that this {word} is read by you and the others.\n" for word in wrong}
    place = make_repo(tmp_path / "harbour", files, date=START)
    commit(place, {"a.py": "x = 2\n"}, date=at(30))
    told = cli_here("backtest", repo=place)
    assert "thinker:\n    watch_only: [spelling]\n" in told.out


def test_a_shallow_clone_is_told_how_many_commits_it_has(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", repo.as_uri(), "shallow")
    told = cli_here("backtest", repo=tmp_path / "shallow")
    assert told.code == 1
    assert "1 commit on the default branch, a shallow clone" in told.err and "--unshallow" in told.err


@pytest.mark.long  # the same run again
def test_a_clone_with_a_part_of_the_history_says_where_it_begins(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "3", repo.as_uri(), "shallow")
    told = cli_here("backtest", "--json", repo=tmp_path / "shallow")
    assert told.code == 0, told.err
    assert told.json["remarks"][0].startswith("This clone is shallow: its history begins on 2025-06-")


def test_a_clone_without_the_contents_of_then_is_refused(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", repo.as_uri(), "partial")
    told = cli_here("backtest", repo=tmp_path / "partial")
    assert told.code == 1 and "were never fetched" in told.err and "git fetch --refetch --no-filter" in told.err


def test_a_commit_of_the_far_future_is_no_younger_than_the_next_one_or_now(tmp_path: Path) -> None:
    place = make_repo(tmp_path / "harbour", {"a.py": "x = 1\n"}, date=START)
    told = f"tree {git(place, 'write-tree')}\nparent {git(place, 'rev-parse', 'HEAD')}\n"
    told += "author a <a@b> 1 +0000\ncommitter a <a@b> 99999999999999999 +0000\n\nm\n"
    (tmp_path / "commit").write_text(told)
    far = git(place, "hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "commit"))
    git(place, "reset", "--quiet", "--hard", far)
    commit(place, {"a.py": "x = 2\n"}, date=at(2))
    line = read_dated_line(Git.open(place), "HEAD")
    assert [when for when, _ in line] == [START, at(2), at(2)]


def test_a_history_of_one_day_is_told_that_no_option_helps(tmp_path: Path) -> None:
    place = make_repo(tmp_path / "harbour", {"a.py": "x = 1\n"}, date=START)
    told = cli_here("backtest", "--since", "2001-01-01", repo=place)
    assert told.code == 1 and "Try again when there are some days of history" in told.err


def test_a_kind_to_be_watched_that_nothing_finds_is_refused(repo: Path) -> None:
    (repo / "ralph.yml").write_text("thinker: {watch_only: [speling]}\n")
    told = cli_here("backtest", repo=repo)
    assert told.code == 2 and "Did you mean spelling?" in told.err


def test_a_repository_without_commits_is_told_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "empty")
    told = cli_here("backtest", repo=tmp_path / "empty")
    assert told.code == 1 and "no commits" in told.err


@pytest.mark.parametrize("since", ["yesterday", "0d", "2025-13-40", "9999y", "-1w"])
def test_a_time_that_is_none_is_wrong_usage(repo: Path, since: str) -> None:
    told = cli_here("backtest", f"--since={since}", repo=repo)
    assert told.code == 2 and "Traceback" not in told.err


def test_a_day_after_the_last_commit_is_wrong_usage(repo: Path) -> None:
    told = cli_here("backtest", "--since", "2026-01-01", repo=repo)
    assert told.code == 2 and "the last commit was made on" in told.err


@pytest.mark.long  # the same run again
def test_a_page_that_cannot_be_written_is_told(repo: Path, tmp_path: Path) -> None:
    told = cli_here("backtest", "--output", str(tmp_path / "no" / "page.html"), repo=repo)
    assert told.code == 1 and "--output" in told.err
