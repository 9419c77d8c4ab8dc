"""Checks run what a session wrote: what they do to the checkout is put back, as after the session itself."""

from __future__ import annotations

import pytest

from ralph_mission.trouble import Trouble
from tests.gateways.test_checkout import FILES, checkout, opened, repo, state  # noqa: F401  # fixtures
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
def test_what_a_check_changes_is_put_back(command, repo, tmp_path):  # noqa: F811  # a fixture
    before = state(repo)
    assert opened(repo, tmp_path, command).verify().ran
    now = state(repo)
    assert {key: now[key] for key in now if key != "index"} == {key: before[key] for key in before if key != "index"}


def test_a_check_may_leave_new_files_which_are_not_committed(repo, tmp_path):  # noqa: F811  # a fixture
    here = opened(repo, tmp_path, "echo cache > cache.txt")
    mark = here.mark()
    (repo / "src.py").write_text("a = 1\n")
    assert here.verify().green and (repo / "cache.txt").exists()
    here.commit("Work", mark)
    assert "cache.txt" not in git(repo, "ls-tree", "-r", "--name-only", "HEAD")
    assert "src.py" in git(repo, "ls-tree", "-r", "--name-only", "HEAD")


def test_the_mark_of_the_session_outlives_a_check(repo, tmp_path):  # noqa: F811  # a fixture
    here = opened(repo, tmp_path, "true")
    mark = here.mark()
    here.verify()
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/ralph/mark").endswith(mark)


def test_what_git_has_lost_is_not_said_to_be_put_back(repo, checkout):  # noqa: F811  # fixtures
    path = next(iter(FILES))
    mark, oid = checkout.mark(), git(repo, "rev-parse", f"HEAD:{path}")
    (repo / ".git/objects" / oid[:2] / oid[2:]).unlink()
    (repo / path).write_text("evil\n")
    with pytest.raises(Trouble, match="cannot be put back"):
        checkout.undo(mark, [path])
