"""`ralph init --pull-request`: the files on a branch, a staged cycle as the text, and the checkout as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ralph_mission.cli.setup.onboarding import BRANCH, LONGEST, render_text
from ralph_mission.mission.model.cycle import CycleSummary, ObserverLine, ThreadLine
from tests.adapters.report.samples import REPORT
from tests.cli.init_place import PINNED, hosted
from tests.helpers import cli_here, commit, git


def test_the_files_stand_on_a_branch_and_the_text_tells_what_a_first_cycle_would_open(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    commit(repo, {"docs/guide.md": "This is teh guide that you will recieve.\n"}, message="Begin a guide")
    before = git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")
    told = cli_here("init", "--pull-request", "--action", PINNED, repo=repo)
    assert told.code == 0, told.err
    assert (git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")) == before
    assert git(repo, "diff", "--name-only", f"HEAD..{BRANCH}").splitlines() == [
        ".github/workflows/ralph-loop.yml",
        "ralph.yml",
    ]
    text = (repo / ".ralph/onboarding.md").read_text()
    assert "- `ralph.yml`: the settings" in text and "recieve" in text and "<!--" not in text
    assert f"git push -u origin {BRANCH}" in told.out and "commit ralph.yml" not in told.out + text
    assert not (repo / ".ralph/forge").exists() and not git(repo, "branch", "--list", "ralph-memory")


def test_a_second_run_renews_the_branch_and_one_with_work_of_a_person_stays(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    asked = ("init", "--pull-request", "--json")
    first = json.loads(cli_here(*asked, repo=repo).out)
    second = json.loads(cli_here(*asked, "--action", PINNED, repo=repo).out)
    assert first["branch"] == second["branch"] == BRANCH
    assert git(repo, "rev-parse", BRANCH) == second["commit"] and git(repo, "rev-parse", f"{BRANCH}^") == git(
        repo, "rev-parse", "HEAD"
    )
    git(repo, "checkout", "--quiet", BRANCH)
    commit(repo, {"mine.txt": "x"}, message="Mine")
    git(repo, "checkout", "--quiet", "-")
    mine = git(repo, "rev-parse", BRANCH)
    refused = cli_here("init", "--pull-request", repo=repo)
    assert refused.code == 2 and BRANCH in refused.err and git(repo, "rev-parse", BRANCH) == mine


def test_the_branch_begins_at_the_default_one_and_holds_nothing_that_is_private(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    default = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "--quiet", "-b", "secret-work")
    commit(repo, {"private.txt": "x"}, message="Private")
    assert cli_here("init", "--pull-request", repo=repo).code == 0
    assert git(repo, "rev-parse", f"{BRANCH}^") == default
    assert "private.txt" not in git(repo, "ls-tree", "--name-only", BRANCH)


def test_where_nobody_knows_which_branch_is_the_default_one_nothing_is_made(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    git(repo, "branch", "-m", "one")
    git(repo, "branch", "two")
    refused = cli_here("init", "--pull-request", repo=repo)
    assert refused.code == 2 and "one, two" in refused.err and not git(repo, "branch", "--list", BRANCH)


def test_a_branch_that_is_checked_out_anywhere_is_not_moved(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    assert cli_here("init", "--pull-request", repo=repo).code == 0
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"), BRANCH)
    refused = cli_here("init", "--pull-request", "--action", PINNED, repo=repo)
    assert refused.code == 2 and str(tmp_path / "elsewhere") in refused.err


def test_a_branch_in_the_way_is_told_with_what_to_do_by_the_set_up_and_by_a_cycle(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    git(repo, "branch", "ralph")
    for asked in (("init", "--pull-request"), ("cycle", "--force")):
        refused = cli_here(*asked, repo=repo)
        assert refused.code == 2 and "git branch -m ralph ANOTHER-NAME" in refused.err


def test_units_of_a_host_are_no_part_of_a_pull_request(tmp_path: Path) -> None:
    refused = cli_here("init", "--pull-request", "--service", repo=hosted(tmp_path))
    assert refused.code == 2 and "systemd" in refused.err


def test_the_text_shows_threads_whole_while_there_is_room_and_by_title_after_that() -> None:
    threads = tuple(ThreadLine(str(n), f"Thread {n}", f"<!-- ralph:key={n} -->\n{'word ' * 1000}") for n in range(40))
    text = render_text(replace(REPORT, staged=True), CycleSummary(threads=threads), ("ralph.yml",), ("allow it",))
    assert len(text) <= LONGEST and all(f"Thread {n}" in text for n in range(40)) and "ralph:key" not in text
    assert 1 < text.count("<details>") == text.count("</details>") < 40
    assert "What was looked at" in text


def test_a_cycle_that_would_open_nothing_says_so() -> None:
    assert "Nothing. It found nothing worth an issue" in render_text(
        replace(REPORT, observers=()), CycleSummary(), (), ()
    )


def test_a_fix_that_the_checks_hold_back_and_what_was_not_looked_at_are_told() -> None:
    seen = (ObserverLine("typos", "ok", 3, 0.1, ""), ObserverLine("ci", "unavailable", 0, 0.1, "not done after 120 s"))
    summary = CycleSummary(held=("Correct it: `pytest`: exit code 1; it fails without the change too",), watched=("A",))
    text = render_text(replace(REPORT, observers=seen), summary, (), ())
    assert "Nothing, as what it would open is held back" in text and "it fails without the change too" in text
    assert "Not everything could be looked at: ci" in text and "could not look: not done after 120 s" in text
    assert "- typos: 3 results" in text and "### What it would only watch\n\n- A" in text
