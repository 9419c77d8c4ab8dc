"""Checks run what a session wrote: what they do to the checkout is put back, as after the session itself."""

from __future__ import annotations

import shlex
import sys

import pytest

from ralph_mission.gateways.checkout import Checkout
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import Trouble
from tests.gateways.checkout_world import FILES, opened, state
from tests.helpers import git

EVIL = (
    "echo evil > README.md",
    "rm README.md",
    "git config filter.x.clean 'sed s/a/b/'",
    "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
    "mkdir -p .git/hooks; echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "git branch made-by-a-check",
    "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m sneaked",
)


@pytest.mark.parametrize("command", EVIL)
def test_what_a_check_changes_is_put_back(command, repo, tmp_path):
    before = state(repo)
    assert opened(repo, tmp_path, command).verify().ran
    now = state(repo)
    assert {key: now[key] for key in now if key != "index"} == {key: before[key] for key in before if key != "index"}


def test_a_check_may_leave_new_files_which_are_not_committed(repo, tmp_path):
    here = opened(repo, tmp_path, "echo cache > cache.txt")
    mark = here.mark()
    (repo / "src.py").write_text("a = 1\n")
    assert here.verify().green and (repo / "cache.txt").exists()
    here.commit("Work", mark)
    assert "cache.txt" not in git(repo, "ls-tree", "-r", "--name-only", "HEAD")
    assert "src.py" in git(repo, "ls-tree", "-r", "--name-only", "HEAD")


def test_what_a_check_stages_is_not_committed_either(repo, tmp_path):
    here = opened(repo, tmp_path, "echo x > sneaked.py; git add sneaked.py; echo y > other.py; git add -N other.py")
    mark = here.mark()
    (repo / "src/b.py").write_text("b\n")
    assert here.verify().green
    here.commit("Work", mark)
    assert git(repo, "show", "--format=", "--name-only", "HEAD") == "src/b.py"
    assert git(repo, "status", "--porcelain") == "?? other.py\n?? sneaked.py"


def test_the_mark_of_the_session_outlives_a_check(repo, tmp_path):
    here = opened(repo, tmp_path, "true")
    mark = here.mark()
    here.verify()
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/ralph/mark").endswith(mark)


def test_what_git_has_lost_is_not_said_to_be_put_back(repo, checkout):
    path = next(iter(FILES))
    mark, oid = checkout.mark(), git(repo, "rev-parse", f"HEAD:{path}")
    (repo / ".git/objects" / oid[:2] / oid[2:]).unlink()
    (repo / path).write_text("evil\n")
    with pytest.raises(Trouble, match="cannot be put back"):
        checkout.undo(mark, [path])


def test_checks_run_one_by_one_until_one_fails(repo, tmp_path):
    verdict = opened(repo, tmp_path, "true", "echo no; echo why >&2; exit 3", "touch never").verify()
    assert (verdict.green, verdict.ran) == (False, True)
    assert "exit 3" in verdict.said and "no" in verdict.said and "why" in verdict.said
    assert not (repo / "never").exists()


def test_without_checks_nothing_was_proven(checkout):
    assert not checkout.verify().ran


def test_a_check_that_takes_too_long_is_red(repo, tmp_path):
    verdict = Checkout(Git.open(repo), (f"exec {shlex.quote(sys.executable)} -c 'import time; time.sleep(60)'",), 0.2)
    assert "took over 0.2 s" in verdict.verify().said


def test_what_checks_leave_behind_is_not_committed(repo, tmp_path):
    checkout = opened(repo, tmp_path, "mkdir -p cache && touch cache/x && echo b >> src/a.py")
    (repo / "src/b.py").write_text("b\n")
    assert checkout.verify().green
    checkout.commit("Work")
    assert git(repo, "status", "--porcelain") == "?? cache/"


def test_what_a_check_that_was_due_once_left_is_never_committed(repo, tmp_path):
    due = ["touch left-by-the-browser"]
    checkout = Checkout(Git.open(repo), ("true",), 60, lambda: tuple(due))
    assert checkout.verify().green
    due.clear()
    (repo / "src/a.py").write_text("a = 2\n")
    assert checkout.verify().green and checkout.commit("step")
    assert "left-by-the-browser" not in git(repo, "ls-files")
