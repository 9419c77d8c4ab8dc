"""Commits and refs of a session: what may stay keeps author, message and dates; nothing is thrown away."""

from __future__ import annotations

import fcntl

import pytest

from ralph_mission.loop.ports import Work
from tests.gateways.checkout_ways import amended
from tests.gateways.checkout_world import WHO, after, opened
from tests.helpers import commit, git


def test_commits_keep_author_message_and_dates_and_lose_what_was_outside(repo, checkout):
    head = git(repo, "rev-parse", "HEAD")
    mark = checkout.mark()
    commit(repo, {"src/b.py": "b\n", "docs/guide.md": "x\n"}, author="Agent <agent@example.org>", message="Both\n\nwhy")
    commit(repo, {"docs/guide.md": "y\n"}, message="Only outside")
    commit(repo, {"src/c.py": "c\n"}, message="Inside")
    work, told = after(checkout, mark)
    assert told == {"docs/guide.md"} and [entry.message for entry in work.commits] == ["Inside", "Both"]
    log = git(repo, "log", "--format=%an|%s|%b|%ad", "--date=unix", "--name-only", f"{head}..HEAD")
    assert "Agent|Both|why" in log and "guide" not in log
    assert git(repo, "status", "--porcelain") == "" and (repo / "docs/guide.md").read_text() == "guide\n"


def test_what_a_commit_adds_and_the_next_takes_back_leaves_no_trace(repo, checkout):
    mark = checkout.mark()
    commit(repo, {"docs/secret.md": "s3cret\n"})
    commit(repo, {"docs/secret.md": None, "src/b.py": "b\n"}, message="Take back")
    work, told = after(checkout, mark)
    assert told == {"docs/secret.md"} and [entry.message for entry in work.commits] == ["Take back"]
    assert "secret" not in git(repo, "log", "--all", "--exclude=refs/ralph/*", "--name-only", "main")


def test_a_merge_made_in_the_session_stays_one(repo, checkout):
    mark = checkout.mark()
    git(repo, "checkout", "--quiet", "-b", "side")
    commit(repo, {"src/side.py": "s\n", "docs/side.md": "s\n"}, message="Side")
    git(repo, "checkout", "--quiet", "main")
    commit(repo, {"src/main.py": "m\n"}, message="Main")
    git(repo, *WHO, "merge", "--quiet", "--no-edit", "side")
    work, told = after(checkout, mark)
    assert told == {"refs/heads/side", "docs/side.md"}
    assert len(git(repo, "rev-list", "--merges", "main").split()) == 1
    assert {change.path for change in work.changes} == {"src/side.py", "src/main.py"}


@pytest.mark.parametrize("flag", ["--ff-only", "--no-ff"])
def test_a_branch_of_others_that_was_merged_brings_nothing_from_outside(flag, repo, checkout):
    git(repo, "checkout", "--quiet", "other")
    theirs = commit(repo, {"src/theirs.py": "t\n", "docs/theirs.md": "t\n"}, message="Theirs")
    git(repo, "checkout", "--quiet", "main")
    mark = checkout.mark()
    git(repo, *WHO, "merge", "--quiet", "--no-edit", flag, "other")
    work, told = after(checkout, mark)
    assert told == {"docs/theirs.md"} and {change.path for change in work.changes} == {"src/theirs.py"}
    assert git(repo, "rev-parse", "other") == theirs and not (repo / "docs/theirs.md").exists()


def test_an_amended_commit_is_one_commit_on_the_old_head_with_what_is_allowed(repo, checkout):
    head = commit(repo, {"src/a.py": "a = 2\n"}, message="Users")
    mark = checkout.mark()
    (repo / "src/a.py").write_text("a = 3\n")
    amended(repo)
    work, told = after(checkout, mark)
    assert told == {"refs/heads/main", "docs/guide.md"}
    assert git(repo, "rev-parse", "HEAD~1") == head and [entry.message for entry in work.commits] == ["Amended"]
    assert git(repo, "status", "--porcelain") == "" and (repo / "src/a.py").read_text() == "a = 3\n"


def test_what_a_session_had_to_give_back_is_kept_aside(repo, checkout):
    mark = checkout.mark()
    git(repo, "checkout", "--quiet", "-b", "feature")
    made = commit(repo, {"docs/guide.md": "mine\n"})
    after(checkout, mark)
    assert git(repo, "rev-parse", f"refs/ralph/aside/{mark[:12]}/heads/feature") == made


def test_the_first_commit_of_a_repository_can_be_undone(tmp_path):
    repo = tmp_path / "repo"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "repo")
    checkout = opened(repo, tmp_path)
    mark = checkout.mark()
    commit(repo, {"docs/x.md": "x\n"})
    _, told = after(checkout, mark)
    assert told == {"docs/x.md"} and git(repo, "for-each-ref", "refs/heads") == "" and not (repo / "docs").exists()


def test_a_detached_checkout_may_advance_and_is_cleaned_as_well(repo, checkout):
    git(repo, "checkout", "--quiet", "--detach")
    mark = checkout.mark()
    commit(repo, {"src/b.py": "b\n", "docs/guide.md": "x\n"}, message="Both")
    work, told = after(checkout, mark)
    assert told == {"docs/guide.md"} and [entry.message for entry in work.commits] == ["Both"]
    assert git(repo, "status", "--porcelain") == ""


def test_a_symbolic_ref_comes_back_as_one(repo, checkout):
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
    mark = checkout.mark()
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/other")
    _, told = after(checkout, mark)
    assert told == {"refs/remotes/origin/HEAD"}
    assert git(repo, "symbolic-ref", "refs/remotes/origin/HEAD") == "refs/heads/main"


def test_the_branch_of_a_loop_in_another_work_tree_is_its_own(repo, checkout, tmp_path):
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"), "other")
    with open(repo / ".git/worktrees/linked/ralph-running", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        mark = checkout.mark()
        theirs = commit(tmp_path / "linked", {"src/b.py": "b\n"}, message="Theirs")
        git(repo, "update-ref", "refs/ralph/aside/theirs/rest", theirs)
        assert after(checkout, mark) == (Work(), set()) and git(repo, "rev-parse", "other") == theirs
    commit(tmp_path / "linked", {"src/c.py": "c\n"}, message="Its last")
    assert after(checkout, mark) == (Work(), set())  # it ended while our session ran
    mark = checkout.mark()
    commit(tmp_path / "linked", {"src/d.py": "d\n"}, message="Nobody's")
    assert after(checkout, mark)[1] == {"refs/heads/other"}


def test_only_a_commit_behind_head_has_landed(repo, checkout):
    first = git(repo, "rev-parse", "HEAD").strip()
    commit(repo, {"b": "b\n"})
    beside = git(repo, *WHO, "commit-tree", "-m", "Beside", "HEAD^{tree}").strip()
    assert checkout.landed(first) and checkout.landed(git(repo, "rev-parse", "HEAD").strip())
    assert not any(map(checkout.landed, (beside, "0" * 40, "", "HEAD", "--all", first[:12])))
