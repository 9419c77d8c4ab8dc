"""Patches from diffs, work trees and commits: exact, and without a trace in the repository."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralph_mission.adapters.git import patches
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.patches import between, from_diff, from_work_tree
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import EXECUTABLE, GITLINK, REGULAR, SYMLINK, FileChange, Patch
from tests.helpers import commit, git, make_repo, name_drivers

FILES = {"a.py": "a = 1\nb = 2\nc = 3\n", "sub/b.txt": "text\n", "run.sh": "echo\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def raw(repo: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, check=True).stdout


def only(patch: Patch) -> FileChange:
    assert len(patch.changes) == 1
    return patch.changes[0]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


# --- the work tree --------------------------------------------------------------------


def test_a_clean_work_tree_is_an_empty_patch(repo: Path) -> None:
    assert from_work_tree(Git.open(repo)) == Patch(git(repo, "rev-parse", "HEAD"), ())


def test_a_changed_file_has_both_contents(repo: Path) -> None:
    (repo / "a.py").write_text("a = 9\n")
    expected = FileChange("a.py", REGULAR, REGULAR, FILES["a.py"].encode(), b"a = 9\n")
    assert only(from_work_tree(Git.open(repo))) == expected


def test_an_untracked_file_is_an_addition_and_an_ignored_one_is_not(repo: Path) -> None:
    commit(repo, {".gitignore": "*.log\n"})
    (repo / "new.py").write_text("x\n")
    (repo / "new.log").write_text("x\n")
    assert only(from_work_tree(Git.open(repo))) == FileChange("new.py", "", REGULAR, None, b"x\n")


def test_a_file_that_was_added_to_the_index_only_is_an_addition(repo: Path) -> None:
    (repo / "new.py").write_text("x\n")
    git(repo, "add", "new.py")
    assert only(from_work_tree(Git.open(repo))).path == "new.py"


def test_a_deleted_file_is_a_deletion(repo: Path) -> None:
    (repo / "a.py").unlink()
    change = only(from_work_tree(Git.open(repo)))
    assert (change.new_mode, change.new) == ("", None)


def test_an_executable_bit_is_seen(repo: Path) -> None:
    (repo / "run.sh").chmod(0o755)
    assert only(from_work_tree(Git.open(repo))).new_mode == EXECUTABLE


def test_a_symlink_is_read_and_not_followed(repo: Path) -> None:
    (repo / "a.py").unlink()
    (repo / "a.py").symlink_to("/etc/hostname")
    change = only(from_work_tree(Git.open(repo)))
    assert (change.new_mode, change.new) == (SYMLINK, b"/etc/hostname")


@pytest.mark.attack(46)
def test_e46_what_lies_behind_a_link_is_not_read(repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("foreign\n")
    (repo / "sub/b.txt").unlink()
    (repo / "sub").rmdir()
    (repo / "sub").symlink_to(outside)
    changes = {change.path: change for change in from_work_tree(Git.open(repo)).changes}
    assert changes["sub/b.txt"].new is None
    assert changes["sub"].new_mode == SYMLINK


def test_a_pipe_is_seen_and_never_opened(repo: Path) -> None:
    (repo / "a.py").unlink()
    os.mkfifo(repo / "a.py")
    assert only(from_work_tree(Git.open(repo))).new_mode not in (REGULAR, "")


def test_a_socket_is_seen_and_never_opened(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "a.py").unlink()
    monkeypatch.chdir(repo)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("a.py")
        assert only(from_work_tree(Git.open(repo))).new_mode not in (REGULAR, "")


@pytest.mark.parametrize(
    "name", ["new\nline.py", " lead", "tab\tname", 'quote".py', "ünï.py", "-dash", "a*b", ":(top)x"]
)
def test_odd_names_are_exact(repo: Path, name: str) -> None:
    (repo / name).write_text("x\n")
    assert only(from_work_tree(Git.open(repo))).path == name


def test_a_name_that_is_not_utf8_is_exact(repo: Path) -> None:
    with open(os.fsencode(repo) + b"/caf\xe9.py", "wb") as file:
        file.write(b"x\n")
    change = only(from_work_tree(Git.open(repo)))
    assert change.path.encode("utf-8", "surrogateescape") == b"caf\xe9.py"


@pytest.mark.attack(47)
def test_e47_a_nested_repository_is_a_gitlink(repo: Path) -> None:
    nested = make_repo(repo / "nested")
    change = only(from_work_tree(Git.open(repo)))
    assert (change.path, change.new_mode, change.new) == ("nested", GITLINK, git(nested, "rev-parse", "HEAD").encode())


@pytest.mark.attack(47)
def test_e47_a_moved_submodule_is_seen_and_an_untouched_one_is_not(repo: Path) -> None:
    nested = make_repo(repo / "nested")
    git(repo, "add", "nested")
    git(repo, "-c", "user.name=x", "-c", "user.email=x@y.z", "commit", "--quiet", "-m", "nested")
    assert from_work_tree(Git.open(repo)).changes == ()
    commit(nested, {"x": "y\n"})
    assert only(from_work_tree(Git.open(repo))).new_mode == GITLINK


@pytest.mark.attack(48)
def test_e48_no_filter_or_text_conversion_runs(repo: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    name_drivers(repo, witness)
    (repo / "a.py").write_text("a = 9\n")
    patch = from_work_tree(Git.open(repo))
    from_diff(Git.open(repo), DIFF)
    assert set(patch.paths) == {".gitattributes", "a.py"}
    assert not witness.exists()


@pytest.mark.attack(48)
def test_e48_no_hook_or_monitor_runs(repo: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    hook = repo / ".git/hooks/any"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    for name in ("fsmonitor-watchman", "post-index-change", "post-checkout", "applypatch-msg", "pre-applypatch"):
        (hook.parent / name).symlink_to(hook)
    git(repo, "config", "core.fsmonitor", str(hook))
    from_work_tree(Git.open(repo))
    from_diff(Git.open(repo), DIFF)
    assert not witness.exists()


def test_reading_the_work_tree_leaves_the_index_and_every_file_alone(repo: Path) -> None:
    (repo / "a.py").write_text("a = 9\n")
    os.utime(repo / "sub/b.txt", (1, 1))
    before = snapshot(repo)
    from_work_tree(Git.open(repo))
    assert snapshot(repo) == before


def test_a_file_left_out_of_a_sparse_checkout_is_not_deleted(repo: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "sub/b.txt")
    (repo / "sub/b.txt").unlink()
    assert from_work_tree(Git.open(repo)).changes == ()


def test_before_the_first_commit_everything_is_an_addition(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--template=")
    (tmp_path / "a").write_text("x\n")
    assert only(from_work_tree(Git.open(tmp_path))).old is None


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "--template=")
    with pytest.raises(UserError, match="bare"):
        from_work_tree(Git.open(tmp_path))


# --- two commits ----------------------------------------------------------------------


def test_between_two_commits_a_rename_is_a_deletion_and_an_addition(repo: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    git(repo, "mv", "a.py", "z.py")
    head = commit(repo, {})
    assert [
        (change.path, change.old is None, change.new is None) for change in between(Git.open(repo), base, head).changes
    ] == [("a.py", False, True), ("z.py", True, False)]


def test_between_names_that_do_not_exist_is_trouble(repo: Path) -> None:
    with pytest.raises(UserError, match="cannot compare"):
        between(Git.open(repo), "HEAD", "nowhere")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_work_tree_diff_and_commits_agree(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    names, content = ["a", "sub/b", "c d"], st.binary(max_size=20)
    repo = make_repo(
        tmp_path_factory.mktemp("any") / "repo", data.draw(st.fixed_dictionaries(dict.fromkeys(names, content)))
    )
    for name in data.draw(st.sets(st.sampled_from([*names, "new"]))):
        (repo / name).write_bytes(data.draw(content))
    seen = from_work_tree(Git.open(repo))
    git(repo, "add", "--all")
    said = from_diff(Git.open(repo), raw(repo, "diff", "--cached", "--binary", "HEAD"))
    base, head = git(repo, "rev-parse", "HEAD"), commit(repo, {})
    assert seen.changes == said.changes == between(Git.open(repo), base, head).changes


# --- a diff ---------------------------------------------------------------------------

DIFF = b"""diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 a = 1
-b = 2
+b = 9
 c = 3
"""
NEW = b"diff --git a/%(name)b b/%(name)b\nnew file mode %(mode)b\n--- /dev/null\n+++ b/%(name)b\n@@ -0,0 +1 @@\n+hi\n"


def new_file(name: bytes, mode: bytes = b"100644") -> bytes:
    return NEW % {b"name": name, b"mode": mode}


def test_a_diff_is_applied_to_head_and_not_to_the_work_tree(repo: Path) -> None:
    (repo / "a.py").write_text("something else\n")
    assert only(from_diff(Git.open(repo), DIFF)).new == b"a = 1\nb = 9\nc = 3\n"


def test_nothing_is_written_to_the_repository(repo: Path) -> None:
    before = snapshot(repo)
    from_diff(Git.open(repo), DIFF + new_file(b"new.txt"))
    assert snapshot(repo) == before


def test_a_repository_whose_path_holds_a_colon_can_be_judged(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / 'odd:"name', FILES)
    assert only(from_diff(Git.open(repo), DIFF)).path == "a.py"


def test_a_plain_unified_diff_is_understood(repo: Path) -> None:
    plain = DIFF.split(b"\n", 1)[1].replace(b"a/a.py", b"a/a.py\t2026-05-04 12:00:00")
    assert only(from_diff(Git.open(repo), plain)).path == "a.py"


def test_an_empty_diff_is_an_empty_patch(repo: Path) -> None:
    assert from_diff(Git.open(repo), b"").changes == ()


@pytest.mark.parametrize(
    "text",
    [
        b"no diff at all\n",
        b"\0\xff",
        DIFF.replace(b"b = 2", b"b = 7"),
        DIFF[:-20],
        new_file(b"a.py"),
        new_file(b"x").replace(b"+1", b"+1," + b"9" * 5_000),
    ],
    ids=["none", "binary", "other lines", "cut off", "there already", "endless number"],
)
def test_what_does_not_apply_is_trouble(repo: Path, text: bytes) -> None:
    with pytest.raises(UserError):
        from_diff(Git.open(repo), text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"../x", "../x"),
        (b".git/config", ".git/config"),
        (b".GIT/hooks/x", ".GIT/hooks/x"),
        (b"git~1/x", "git~1/x"),
        (b"/etc/passwd", "/etc/passwd"),
        (b"a/../../x", "a/../../x"),
        (b".g\xe2\x80\x8cit/x", ".g\u200cit/x"),
    ],
)
@pytest.mark.attack(45)
def test_e45_an_unsafe_path_becomes_a_change_that_the_rules_can_name(repo: Path, written: bytes, meant: str) -> None:
    assert meant in from_diff(Git.open(repo), DIFF + new_file(written)).paths
    assert not (repo.parent / "x").exists()


@pytest.mark.attack(45)
def test_e45_a_c_quoted_unsafe_path_is_read(repo: Path) -> None:
    quoted = new_file(b"N").replace(b"a/N", rb'"a/.g\342\200\214it/x"').replace(b"b/N", rb'"b/.g\342\200\214it/x"')
    assert only(from_diff(Git.open(repo), quoted)).path == ".g\u200cit/x"


@pytest.mark.attack(45)
def test_e45_a_plain_diff_with_an_absolute_path_is_named(repo: Path) -> None:
    text = b"--- /dev/null\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+hi\n"
    assert only(from_diff(Git.open(repo), text)).path == "/etc/passwd"


@pytest.mark.attack(45)
def test_e45_a_header_inside_a_hunk_is_content(repo: Path) -> None:
    text = DIFF.replace(b"+b = 9\n", b"+++ b/../x\n").replace(b"-b = 2", b"-b = 2")
    assert only(from_diff(Git.open(repo), text)).new == b"a = 1\n++ b/../x\nc = 3\n"


@pytest.mark.attack(46)
def test_e46_a_write_through_a_new_symlink_does_not_apply(repo: Path) -> None:
    text = new_file(b"out", b"120000").replace(b"+hi\n", b"+/tmp\n\\ No newline at end of file\n") + new_file(b"out/x")
    with pytest.raises(UserError, match="does not apply"):
        from_diff(Git.open(repo), text)


def test_a_rename_in_a_diff_is_a_deletion_and_an_addition(repo: Path) -> None:
    text = b"diff --git a/a.py b/z.py\nsimilarity index 100%\nrename from a.py\nrename to z.py\n"
    assert from_diff(Git.open(repo), text).paths == ("a.py", "z.py")


def test_a_rename_out_of_the_repository_is_named(repo: Path) -> None:
    text = b"diff --git a/a.py b/../z.py\nsimilarity index 100%\nrename from a.py\nrename to ../z.py\n"
    assert "../z.py" in from_diff(Git.open(repo), text).paths


def test_a_binary_diff_is_understood(repo: Path) -> None:
    (repo / "a.py").write_bytes(b"\0\1\2")
    text = raw(repo, "diff", "--binary")
    assert only(from_diff(Git.open(repo), text)).new == b"\0\1\2"


def test_repository_settings_do_not_soften_how_a_diff_applies(repo: Path) -> None:
    git(repo, "config", "apply.whitespace", "fix")
    git(repo, "config", "apply.ignoreWhitespace", "change")
    assert only(from_diff(Git.open(repo), DIFF.replace(b"+b = 9", b"+b = 9   "))).new == b"a = 1\nb = 9   \nc = 3\n"
    with pytest.raises(UserError):
        from_diff(Git.open(repo), DIFF.replace(b"-b = 2", b"-b  =  2"))


def test_what_a_nested_repository_links_to_is_not_told(repo: Path, tmp_path: Path) -> None:
    nested = make_repo(repo / "nested")
    git(repo, "add", "nested")
    (tmp_path / "theirs").write_text("a secret")
    (nested / ".git/HEAD").unlink()
    (nested / ".git/HEAD").symlink_to(tmp_path / "theirs")
    assert patches.read_submodule(str(nested).encode()) == (GITLINK, b"unknown")


def test_a_file_with_a_second_name_that_not_everybody_may_read_is_not_taken(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("a secret")
    (tmp_path / "theirs").chmod(0o600)
    os.link(tmp_path / "theirs", repo / "mine")
    with pytest.raises(UserError, match="second name"):
        patches.read_content(str(repo / "mine").encode(), "mine", 8)
    (tmp_path / "theirs").chmod(0o644)
    assert patches.read_content(str(repo / "mine").encode(), "mine", 8) == b"a secret"
