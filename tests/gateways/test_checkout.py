"""A session may change what its hat may write: all else is told and gone, however it was done."""

from __future__ import annotations

import os

import pytest

from ralph_mission.loop.ports import Work
from ralph_mission.trouble import Trouble
from tests.gateways.checkout_ways import WAYS, config, folder_symlinked, hook
from tests.gateways.checkout_world import WHO, after, opened, state
from tests.helpers import commit, git, make_repo


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_a_session_does_outside_its_globs_is_gone_and_told(way, repo, checkout, tmp_path):
    commit(repo, {"docs/guide.md": "guide 2\n"}, message="Second")
    before = state(repo)
    mark = checkout.mark()
    way(repo)
    (repo / "src/b.py").write_text("b = 1\n")
    work, told = after(checkout, mark)
    assert WAYS[way] <= told and "src/b.py" not in told
    assert work.readable and {change.path for change in work.changes} >= {"src/b.py"}
    (repo / "src/b.py").unlink()
    for allowed in ("src/inner/x.py", "src/guide.md"):
        (repo / allowed).unlink(missing_ok=True)
    now = state(repo)
    assert {key: value for key, value in now.items() if key != "index"} == {
        key: value for key, value in before.items() if key != "index"
    }
    assert _entries(now) == _entries(before)
    assert not {"hooked", "monitored", "filtered"} & set(os.listdir(tmp_path))


def _entries(seen: dict[str, object]) -> list[str]:
    return [line for line in str(seen["index"]).split("\n") if "src/" not in line]


def test_nothing_beyond_a_link_is_touched(repo, checkout, tmp_path):
    mark = checkout.mark()
    folder_symlinked(repo)
    after(checkout, mark)
    assert (tmp_path / "elsewhere/guide.md").read_text() == "beyond the link\n"
    assert not (repo / "docs").is_symlink() and (repo / "docs/guide.md").read_text() == "guide\n"


def test_a_repository_beyond_a_link_is_left_alone(repo, checkout, tmp_path):
    commit(repo, {"docs/inner/x.md": "x\n"})
    mark = checkout.mark()
    (repo / "docs").rename(tmp_path / "elsewhere")
    make_repo(tmp_path / "elsewhere/inner", {"y.md": "y\n"})
    (repo / "docs").symlink_to(tmp_path / "elsewhere")
    _, told = after(checkout, mark)
    assert told == {"docs", "docs/guide.md", "docs/inner/x.md"} and (tmp_path / "elsewhere/inner/.git").is_dir()
    assert not (repo / "docs").is_symlink() and (repo / "docs/inner/x.md").read_text() == "x\n"


def test_an_untouched_checkout_shows_no_change_and_marking_changes_nothing(repo, checkout):
    (repo / "README.md").write_text("dirty\n")
    git(repo, "add", "README.md")
    (repo / "README.md").write_text("dirtier\n")
    (repo / "note.txt").write_text("mine\n")
    before, index = state(repo), (repo / ".git/index").read_bytes()
    assert checkout.changed(checkout.mark()) == Work()
    assert (repo / ".git/index").read_bytes() == index and state(repo) == before


def test_what_the_user_had_not_committed_is_put_back_as_it_was(repo, checkout):
    (repo / "README.md").write_bytes(b"dirty\r\n")
    (repo / "note.txt").write_text("mine\n")
    (repo / "note.txt").chmod(0o600)
    mark = checkout.mark()
    git(repo, *WHO, "add", "--all")
    git(repo, *WHO, "commit", "--quiet", "--message", "All mine")
    git(repo, *WHO, "rm", "--quiet", "-r", "README.md", "note.txt")
    work, told = after(checkout, mark)
    assert told == {"README.md", "note.txt"} and work == Work()
    assert (repo / "README.md").read_bytes() == b"dirty\r\n" and (repo / "note.txt").stat().st_mode & 0o777 == 0o600
    assert git(repo, "status", "--porcelain") == " M README.md\n?? note.txt"


def test_a_submodule_is_watched_inside(repo, checkout, tmp_path):
    inner = make_repo(tmp_path / "inner", {"x.py": "x\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "vendor/inner")
    commit(repo, {}, message="Submodule")
    mark = checkout.mark()
    (repo / "vendor/inner/x.py").write_text("mine\n")
    git(repo / "vendor/inner", *WHO, "commit", "--quiet", "--all", "--message", "Inside")
    git(repo / "vendor/inner", "config", "core.pager", "evil")
    work, told = after(checkout, mark)
    assert {"vendor/inner/x.py", ".git/modules/vendor/inner/config"} <= told and work == Work()
    assert git(repo, "status", "--porcelain") == ""


def test_a_linked_work_tree_is_guarded_with_the_repository_it_belongs_to(repo, tmp_path):
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "--quiet", str(linked), "other")
    pointer = (linked / ".git").read_text()
    checkout = opened(linked, tmp_path)
    mark = checkout.mark()
    commit(linked, {"src/b.py": "b\n", "docs/guide.md": "x\n"}, message="Both")
    hook(repo)
    git(repo, *WHO, "commit", "--quiet", "--allow-empty", "--message", "Elsewhere")
    (linked / ".git").write_text("gitdir: /nowhere\n")
    work, told = after(checkout, mark)
    assert told == {".git", ".git/hooks/pre-commit", "refs/heads/main", "docs/guide.md"}
    assert (linked / ".git").read_text() == pointer and [change.path for change in work.changes] == ["src/b.py"]


def test_a_session_cannot_take_its_mark_away(repo, checkout):
    (repo / "note.txt").write_text("mine\n")
    mark = checkout.mark()
    git(repo, "update-ref", "-d", f"refs/ralph/mark/{mark}")
    (repo / "note.txt").write_text("x\n")
    _, told = after(checkout, mark)
    assert told == {"note.txt"} and (repo / "note.txt").read_text() == "mine\n"


def test_a_link_that_stands_for_the_engines_folder_is_outside(repo, checkout, tmp_path):
    mark = checkout.mark()
    (repo / ".ralph").symlink_to(tmp_path)
    _, told = after(checkout, mark)
    assert told == {".ralph"} and not (repo / ".ralph").is_symlink()


def test_a_repository_exchanged_for_a_link_is_refused_aloud(repo, checkout, tmp_path):
    mark = checkout.mark()
    (repo / ".git").rename(tmp_path / "moved")
    (repo / ".git").symlink_to(tmp_path / "moved")
    with pytest.raises(Trouble, match="no folder any more"):
        checkout.changed(mark)


def test_what_is_ignored_is_neither_seen_nor_touched(repo, checkout):
    (repo / "build").mkdir()
    (repo / "build/x").write_text("x\n")
    mark = checkout.mark()
    (repo / ".gitignore").unlink()
    (repo / "build/x").write_text("y\n")
    _, told = after(checkout, mark)
    assert told == {".gitignore"} and (repo / "build/x").read_text() == "y\n"


def test_a_mark_is_read_by_a_later_process(repo, tmp_path):
    (repo / "note.txt").write_text("mine\n")
    (repo / "run.sh").unlink()
    mark = opened(repo, tmp_path).mark()
    assert opened(repo, tmp_path).changed(mark) == Work()
    (repo / "note.txt").write_text("changed\n")
    config(repo)
    later = opened(repo, tmp_path)
    work, told = after(later, mark)
    assert told == {"note.txt", ".git/config"} and work == Work() and (repo / "note.txt").read_text() == "mine\n"


def test_a_mark_survives_pruning_and_only_the_last_one_is_kept(repo, checkout):
    (repo / "note.txt").write_text("mine\n")
    checkout.mark()
    mark = checkout.mark()
    (repo / "note.txt").unlink()
    git(repo, "gc", "--quiet", "--prune=now")
    _, told = after(checkout, mark)
    assert told == {"note.txt"} and (repo / "note.txt").read_text() == "mine\n"
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/ralph/mark") == f"refs/ralph/mark/{mark}"
