"""Git as plumbing: what it writes is what was asked for, what it reads is told apart whatever it is called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import EMPTY_TREE, Git, GitError
from tests.helpers import NOON, git, make_repo

ODD = ["a b.txt", "new\nline.txt", 'quote".txt', "naïve.txt", "tab\t.txt", "x missing", "bad\udcff.txt"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"README.md": "# Sample\n", "src/a.py": "a = 1\n"})


@pytest.fixture
def plumbing(repo: Path) -> Git:
    return Git.open(repo)


def tree_of(plumbing: Git, tree: str) -> dict[str, bytes]:
    return {entry.path: plumbing.blobs([entry.oid])[entry.oid] for entry in plumbing.listing(tree)}


def test_a_tree_has_what_was_set_and_not_what_was_removed(plumbing):
    tree = plumbing.write_tree("HEAD", {"b.sh": ("100755", b"true\n"), "src/a.py": None, "never/was": None})
    assert tree_of(plumbing, tree) == {"README.md": b"# Sample\n", "b.sh": b"true\n"}
    assert {entry.path: entry.mode for entry in plumbing.listing(tree)}["b.sh"] == "100755"


def test_a_tree_of_nothing_is_the_empty_tree(plumbing):
    assert plumbing.write_tree("", {}) == EMPTY_TREE


@pytest.mark.parametrize("path", [".git/config", "../out.txt", "a/../b", "/etc/passwd", "src/.GIT/hooks/x", "a//b"])
@pytest.mark.attack(45)
def test_a_path_that_git_refuses_is_refused_aloud(plumbing, path):
    with pytest.raises(GitError, match="refuses the path"):
        plumbing.write_tree("HEAD", {path: ("100644", b"x\n"), "good.txt": ("100644", b"y\n")})


def test_a_file_and_a_folder_of_one_name_are_refused_aloud(plumbing):
    with pytest.raises(GitError, match="refuses the path"):
        plumbing.write_tree("HEAD", {"a": ("100644", b"x\n"), "a/b": ("100644", b"y\n")})


@pytest.mark.parametrize("path", ODD)
def test_a_tree_and_its_blobs_keep_any_name(plumbing, path):
    tree = plumbing.write_tree("HEAD", {path: ("100644", b"x\n")})
    assert plumbing.blobs([f"{tree}:{path}"]) == {f"{tree}:{path}": b"x\n"}


@pytest.mark.parametrize("path", [*ODD, "a\nb missing", "\n", "a\n0123 blob 7"])
def test_a_name_that_is_missing_does_not_confuse_the_others(plumbing, repo, path):
    there, after = "HEAD:README.md", "HEAD:src/a.py"
    found = plumbing.blobs([there, f"HEAD:{path}", after])
    assert found == {there: b"# Sample\n", after: b"a = 1\n"}


def test_the_commit_of_a_submodule_is_left_out(plumbing, repo):
    commit = git(repo, "rev-parse", "HEAD")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    tree = git(repo, "write-tree")
    assert plumbing.blobs([f"{tree}:sub", f"{commit}:README.md"]) == {f"{commit}:README.md": b"# Sample\n"}


def test_objects_are_read_one_after_the_other_and_a_missing_one_is_none(plumbing):
    first, empty, large = (plumbing.write_blob(content) for content in (b"a\n\nb\n", b"", b"x" * 500_000))
    oids = [first, "1" * 40, empty, plumbing.text("rev-parse", "HEAD"), large, first]
    found = list(plumbing.each_blob(oids))
    assert found[:3] + found[4:] == [b"a\n\nb\n", None, b"", b"x" * 500_000, b"a\n\nb\n"]
    assert found[3].startswith(b"tree ")  # a file's entry in a tree may name anything
    assert list(plumbing.each_blob([])) == []


SHORT = (
    "",
    "echo {oid} blob 9; echo short",
    "printf '{oid} blob 9\\n123456789'",
    "printf {oid}",
    "printf '{oid} blob'",
)
OTHER = ("printf '{oid} missing'", "echo 1234 missing", "echo {oid} missing too; head -c 500000 /dev/zero")


@pytest.mark.parametrize("answer", [*SHORT, *OTHER])
def test_an_answer_that_is_not_whole_is_an_error(plumbing, tmp_path, monkeypatch, answer):
    oid = plumbing.write_blob(b"123456789")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f"#!/bin/sh\n{answer.format(oid=oid)}\n")
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(GitError):
        list(plumbing.each_blob([oid]))


def test_a_commit_of_files_moves_no_ref_and_reads_as_it_was_written(plumbing, repo):
    before = git(repo, "for-each-ref")
    made = plumbing.commit_files(git(repo, "rev-parse", "HEAD"), {"m/x.md": b"one\n", "src/a.py": None}, "Say", NOON)
    assert tree_of(plumbing, made) == {"README.md": b"# Sample\n", "m/x.md": b"one\n"}
    assert git(repo, "for-each-ref") == before and git(repo, "log", "-1", "--format=%an %s", made) == "Ralph Say"


@pytest.mark.parametrize("path", ["two\nlines", '"quoted'])
def test_a_commit_of_files_refuses_a_path_it_cannot_say(plumbing, path):
    with pytest.raises(ValueError, match="no path for a commit"):
        plumbing.commit_files("HEAD", {path: b""}, "Say", NOON)


def test_a_ref_is_moved_only_from_where_it_was_expected(plumbing, repo):
    head = git(repo, "rev-parse", "HEAD")
    assert plumbing.move_ref("refs/heads/x", head, "") and not plumbing.move_ref("refs/heads/x", head, "")
    assert not plumbing.move_ref("refs/heads/x", head, "1" * 40)


def test_what_git_says_of_a_signature_is_no_part_of_an_answer(plumbing, repo):
    head, tree = git(repo, "rev-parse", "HEAD").strip(), git(repo, "rev-parse", "HEAD^{tree}").strip()
    who = "Inge <inge@slackwater.example> 1700000000 +0000"
    signature = "gpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n -----END SSH SIGNATURE-----"
    raw = f"tree {tree}\nparent {head}\nauthor {who}\ncommitter {who}\n{signature}\n\nSigned\n"
    signed = plumbing.text("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw.encode()).strip()
    git(repo, "config", "log.showSignature", "true")
    assert plumbing.text("show", "--no-patch", "--format=%P%n%B", signed).split() == [head, "Signed"]


def test_a_first_commit_has_its_files_whatever_a_clone_shows_of_it(plumbing, repo):
    git(repo, "config", "log.showRoot", "false")
    first = plumbing.text("rev-list", "--max-parents=0", "HEAD").strip()
    listed = plumbing.text("log", "--format=", "--name-only", first)
    assert listed.split() == plumbing.text("ls-tree", "-r", "--name-only", first).split()


@pytest.mark.parametrize("setting", ["i18n.commitEncoding", "i18n.logOutputEncoding"])
def test_a_commit_is_the_same_whatever_encoding_a_clone_prefers(plumbing, repo, setting):
    head, at = git(repo, "rev-parse", "HEAD").strip(), NOON
    tree = plumbing.write_tree(head, {"n.txt": ("100644", b"n")})
    before = plumbing.commit_tree(tree, [head], "Fix the naïve café", at)
    git(repo, "config", setting, "ISO-8859-1")
    assert plumbing.commit_tree(tree, [head], "Fix the naïve café", at) == before
    assert plumbing.text("show", "--no-patch", "--format=%B", before).strip() == "Fix the naïve café"


def test_a_question_that_takes_too_long_is_an_error_that_says_so(plumbing, monkeypatch):
    def slow(*_: object, **options: object) -> None:
        raise subprocess.TimeoutExpired("git", 3.0)

    monkeypatch.setattr(subprocess, "run", slow)
    with pytest.raises(GitError, match="no answer within 3 s"):
        plumbing.run("log", timeout=3.0)


@pytest.mark.parametrize("said", ["fatal: write error: No space left on device", "error: Disk quota exceeded"])
def test_without_room_the_next_step_is_to_make_some_whatever_failed(said):
    assert GitError(["fast-import"], 128, said).next_step("git fsck") == "free some disk space, then run again"
    assert GitError(["fast-import"], 128, "fatal: bad object").next_step("git fsck") == "git fsck"
