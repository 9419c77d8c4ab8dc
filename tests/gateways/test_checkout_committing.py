"""What the engine commits, what it keeps aside of a session that died, what it says of the tree."""

from __future__ import annotations

from tests.gateways.checkout_ways import deleted, hook, untracked
from tests.gateways.checkout_world import opened
from tests.helpers import commit, git


def test_commits_as_the_user_and_only_what_came_since_the_mark(repo, checkout):
    (repo / "note.txt").write_text("mine\n")
    mark = checkout.mark()
    commit(repo, {"src/b.py": "b\n"})
    (repo / "src/c.py").write_text("c\n")
    made = checkout.commit("feat: [1] - One", mark)
    assert git(repo, "log", "-1", "--format=%an <%ae> %s", made) == "Mara <mara@example.org> feat: [1] - One"
    assert git(repo, "show", "--format=", "--name-only", "HEAD").split() == ["src/b.py", "src/c.py"]
    assert git(repo, "status", "--porcelain") == "?? note.txt" and git(repo, "rev-parse", "HEAD") == made


def test_commits_all_that_stands_uncommitted_and_nothing_when_there_is_nothing(repo, checkout):
    (repo / "src/b.py").write_text("b\n")
    deleted(repo)
    assert checkout.commit("All") == git(repo, "rev-parse", "HEAD")
    assert git(repo, "show", "--format=", "--name-status", "HEAD").split() == ["D", "docs/guide.md", "A", "src/b.py"]
    assert checkout.commit("Nothing") == "" and git(repo, "status", "--porcelain") == ""


def test_no_hook_runs_on_a_commit(repo, checkout, tmp_path):
    hook(repo)
    (repo / "src/b.py").write_text("b\n")
    checkout.commit("All")
    assert not (tmp_path / "hooked").exists()


def test_line_ends_are_committed_as_the_repository_has_them(repo, checkout):
    commit(repo, {".gitattributes": "*.txt text eol=crlf\n"})
    (repo / "x.txt").write_bytes(b"a\r\nb\r\n")
    checkout.commit("Lines")
    assert git(repo, "cat-file", "blob", "HEAD:x.txt") == "a\nb" and git(repo, "status", "--porcelain") == ""


def test_the_rest_of_a_session_that_died_is_kept_aside(repo, tmp_path):
    mark = opened(repo, tmp_path).mark()
    commit(repo, {"src/b.py": "done\n"}, message="Done")
    (repo / "src/b.py").write_text("half\n")
    (repo / "docs/guide.md").write_text("half\n")
    (repo / "new.txt").write_text("half\n")
    hook(repo)
    told = opened(repo, tmp_path).set_aside(mark)
    assert {change.path for change in told} == {".git/hooks/pre-commit", "docs/guide.md", "new.txt", "src/b.py"}
    assert (repo / "src/b.py").read_text() == "done\n" and git(repo, "log", "-1", "--format=%s") == "Done"
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "show", f"refs/ralph/aside/{mark[:12]}/rest:new.txt") == "half"
    assert opened(repo, tmp_path).set_aside(mark) == ()


def test_the_tree_tells_branch_head_commits_and_dirt(repo, checkout):
    commit(repo, {"src/b.py": "b\n"}, message="Second")
    tree = checkout.tree()
    assert (tree.branch, tree.head, tree.dirty) == ("main", git(repo, "rev-parse", "HEAD"), False)
    assert [entry.message for entry in tree.commits] == ["Second", "Start"]
    untracked(repo)
    assert checkout.tree().dirty


def test_a_tree_that_git_cannot_read_is_told_as_such(repo, checkout):
    (repo / ".git/index").write_bytes(b"nonsense")
    assert not checkout.tree().readable
