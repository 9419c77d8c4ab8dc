"""A workshop borrows objects and nothing else; what foreign code leaves there is read by content."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.adapters.workspace.clone import changed_since, clone
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import FileChange
from tests.helpers import commit, git, make_repo

FILES = {"README.md": "# Sample\n", "src/a.py": "a = 1\n", "src/b.py": "b = 1\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD").strip()


def files(folder: Path) -> set[str]:
    return {
        place.relative_to(folder).as_posix()
        for place in folder.rglob("*")
        if not place.is_dir() and place.relative_to(folder).parts[0] != ".git"
    }


def test_a_workshop_holds_the_files_of_the_commit(repo, scratch):
    old = head(repo)
    commit(repo, {"README.md": "later\n"})
    with clone(Git.open(repo), old, scratch) as folder:
        assert files(folder) == set(FILES)
        assert (folder / "README.md").read_text() == "# Sample\n"
        assert git(folder, "rev-parse", "HEAD").strip() == old and git(folder, "status", "--porcelain").strip() == ""


def test_a_workshop_is_gone_afterwards(repo, scratch):
    with clone(Git.open(repo), head(repo), scratch) as folder:
        (folder / "locked").mkdir()
        (folder / "locked/x").write_text("x")
        (folder / "locked").chmod(0)
    assert list(scratch.iterdir()) == []


def test_a_workshop_is_gone_after_an_error_and_the_error_is_not_changed(repo, scratch):
    with pytest.raises(ZeroDivisionError), clone(Git.open(repo), head(repo), scratch):
        raise ZeroDivisionError
    assert list(scratch.iterdir()) == []


def test_removing_a_workshop_follows_no_link(repo, scratch, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "x").write_text("x")
    precious.chmod(0o500)
    with clone(Git.open(repo), head(repo), scratch) as folder:
        (folder / "link").symlink_to(precious)
    assert (precious / "x").read_text() == "x" and precious.stat().st_mode & 0o777 == 0o500


def test_only_the_named_paths_are_written(repo, scratch):
    with clone(Git.open(repo), head(repo), scratch, paths=["src/a.py"]) as folder:
        assert files(folder) == {"src/a.py"}


def test_changes_stand_in_the_files_and_in_the_index(repo, scratch):
    changes = (
        FileChange("src/a.py", "100644", "100644", b"a = 1\n", b"a = 2\n"),
        FileChange("src/b.py", "100644", "", b"b = 1\n", None),
        FileChange("run.sh", "", "100755", None, b"#!/bin/sh\n"),
    )
    with clone(Git.open(repo), head(repo), scratch, changes=changes) as folder:
        assert (folder / "src/a.py").read_text() == "a = 2\n"
        assert files(folder) == {"README.md", "src/a.py", "run.sh"}
        assert os.access(folder / "run.sh", os.X_OK)
        assert git(folder, "diff", "--cached", "--name-only", "HEAD").split() == ["run.sh", "src/a.py", "src/b.py"]


def test_making_a_workshop_writes_nothing_into_the_repository(repo, scratch):
    before = snapshot(repo / ".git")
    change = FileChange("src/a.py", "100644", "100644", b"a = 1\n", b"unheard of\n")
    with clone(Git.open(repo), head(repo), scratch, changes=[change]) as folder:
        changed_since(folder, head(repo), Git.open(repo))
    assert snapshot(repo / ".git") == before


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(place): place.read_bytes() for place in folder.rglob("*") if place.is_file()}


@pytest.mark.parametrize("path", ["../outside", ".git/hooks/post-checkout", "a/../../outside", ".GIT/config"])
@pytest.mark.attack(45)
def test_a_change_to_a_path_that_git_refuses_is_refused(repo, scratch, tmp_path, path):
    change = FileChange(path, "", "100644", None, b"x")
    with pytest.raises(UserError), clone(Git.open(repo), head(repo), scratch, changes=[change]):
        pass
    assert not (scratch / "outside").exists() and list(scratch.iterdir()) == []


@pytest.mark.attack(46)
def test_a_change_never_goes_through_a_link(repo, scratch, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / "link").symlink_to(outside)
    git(repo, "add", "link")
    commit(repo, {})
    change = FileChange("link/x", "", "100644", None, b"x")
    with clone(Git.open(repo), head(repo), scratch, changes=[change]) as folder:
        assert not (folder / "link").is_symlink()
    assert list(outside.iterdir()) == []


def test_a_missing_commit_is_trouble(repo, scratch):
    with pytest.raises(UserError), clone(Git.open(repo), "1" * 40, scratch):
        pass


def test_there_are_no_remotes_hooks_credentials_or_settings_of_the_source(repo, scratch):
    git(repo, "remote", "add", "origin", "https://token@example.invalid/x.git")
    git(repo, "config", "http.extraheader", "AUTHORIZATION: secret")
    git(repo, "config", "credential.helper", "store")
    hook(repo, "post-checkout", "touch ran")
    with clone(Git.open(repo), head(repo), scratch) as folder:
        settings = (folder / ".git/config").read_text()
        assert "secret" not in settings and "token" not in settings and "store" not in settings
        assert git(folder, "remote").strip() == ""
        assert not (folder / ".git/hooks").exists() or not list((folder / ".git/hooks").iterdir())


def hook(repo: Path, name: str, script: str) -> None:
    place = repo / ".git/hooks" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)


@pytest.mark.attack(48)
def test_hooks_filters_and_monitors_of_the_source_never_run(repo, scratch, tmp_path):
    ran = tmp_path / "ran"
    touch = f"touch {shlex.quote(str(ran))}; cat"
    for key in (
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "core.fsmonitor",
        "diff.evil.textconv",
        "diff.external",
        "core.sshCommand",
    ):
        git(repo, "config", key, touch)
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        hook(repo, name, f"touch {shlex.quote(str(ran))}")
    (repo / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    source = Git.open(repo)
    tree = source.write_tree(head(repo), {".gitattributes": ("100644", b"* filter=evil diff=evil merge=evil\n")})
    with clone(source, tree_commit(source, tree), scratch) as folder:
        changed_since(folder, git(folder, "rev-parse", "HEAD").strip(), source)
        assert (folder / "src/a.py").read_text() == "a = 1\n"
    assert not ran.exists()


def tree_commit(source: Git, tree: str) -> str:
    from datetime import UTC, datetime

    return source.commit_tree(tree, [], "x", datetime(2024, 1, 1, tzinfo=UTC))


@pytest.mark.attack(48)
def test_attributes_of_the_tree_do_not_change_a_byte(repo, scratch):
    content = "one\ntwo $Id$\n"
    commit(
        repo,
        {
            ".gitattributes": "*.bat eol=crlf\n*.txt ident\n*.u16 working-tree-encoding=UTF-16\n",
            "x.bat": content,
            "x.txt": content,
        },
    )
    with clone(Git.open(repo), head(repo), scratch) as folder:
        assert (folder / "x.bat").read_text() == content and (folder / "x.txt").read_text() == content
        assert changed_since(folder, head(repo), Git.open(repo)).changes == ()


def test_submodules_are_empty_folders(repo, scratch):
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    commit(repo, {})
    with clone(Git.open(repo), head(repo), scratch) as folder:
        assert (folder / "module").is_dir() and not list((folder / "module").iterdir())
        assert changed_since(folder, head(repo), Git.open(repo)).changes == ()


def test_a_shallow_source_works(repo, scratch, tmp_path):
    commit(repo, {"README.md": "two\n"})
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repo}", "shallow")
    with clone(Git.open(tmp_path / "shallow"), head(repo), scratch) as folder:
        assert git(folder, "log", "--format=%H").split() == [head(repo)]


def test_a_linked_work_tree_works(repo, scratch, tmp_path):
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    with clone(Git.open(tmp_path / "linked"), head(repo), scratch) as folder:
        assert files(folder) == set(FILES)


def test_a_bare_source_works(repo, scratch, tmp_path):
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    with clone(Git.open(tmp_path / "bare.git"), head(repo), scratch) as folder:
        assert files(folder) == set(FILES)


def test_a_source_that_borrows_objects_itself_works(repo, scratch, tmp_path):
    git(tmp_path, "clone", "--quiet", "--shared", str(repo), "borrower")
    with clone(Git.open(tmp_path / "borrower"), head(repo), scratch) as folder:
        assert files(folder) == set(FILES)


def test_a_sha256_repository_works(tmp_path, scratch):
    source = tmp_path / "wide"
    source.mkdir()
    git(source, "init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    commit(source, {"x.txt": "x\n"})
    with clone(Git.open(source), head(source), scratch) as folder:
        (folder / "x.txt").write_text("y\n")
        assert len(head(source)) == 64 and changed_since(folder, head(source), Git.open(source)).paths == ("x.txt",)


def test_what_changed_is_read_by_content(repo, scratch):
    with clone(Git.open(repo), head(repo), scratch) as folder:
        (folder / "src/a.py").write_text("a = 2\n")
        (folder / "src/b.py").unlink()
        (folder / "new.txt").write_text("new\n")
        (folder / "README.md").chmod(0o755)
        found = {change.path: change for change in changed_since(folder, head(repo), Git.open(repo)).changes}
    assert set(found) == {"src/a.py", "src/b.py", "new.txt", "README.md"}
    assert (found["src/a.py"].old, found["src/a.py"].new) == (b"a = 1\n", b"a = 2\n")
    assert found["src/b.py"].new is None and found["new.txt"].old is None and found["README.md"].new_mode == "100755"


def test_a_commit_made_in_the_workshop_hides_nothing(repo, scratch):
    base = head(repo)
    with clone(Git.open(repo), base, scratch) as folder:
        commit(folder, {"src/a.py": "a = 2\n"})
        assert changed_since(folder, base, Git.open(repo)).paths == ("src/a.py",)


@pytest.mark.attack(48)
def test_a_tampered_git_folder_hides_and_runs_nothing(repo, scratch, tmp_path):
    base, ran = head(repo), tmp_path / "ran"
    with clone(Git.open(repo), base, scratch) as folder:
        (folder / "new.txt").write_text("new\n")
        run_foreign(
            "git add -f new.txt src && git update-index --assume-unchanged src/a.py"
            " && echo new.txt > .git/info/exclude"
            f" && git config core.fsmonitor 'touch {ran}' && git config filter.x.clean 'touch {ran}; cat'"
            " && echo '* filter=x' > .git/info/attributes && git config core.worktree /nonexistent",
            cwd=folder,
            home=scratch / "home",
            timeout=300,
        )
        (folder / "src/a.py").write_text("a = 9\n")
        assert changed_since(folder, base, Git.open(repo)).paths == ("new.txt", "src/a.py")
    assert not ran.exists()


@pytest.mark.attack(46)
def test_a_folder_that_became_a_link_is_not_read_through(repo, scratch, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("secret\n")
    with clone(Git.open(repo), head(repo), scratch) as folder:
        for place in (folder / "src").iterdir():
            place.unlink()
        (folder / "src").rmdir()
        (folder / "src").symlink_to(outside)
        contents = [change.new or b"" for change in changed_since(folder, head(repo), Git.open(repo)).changes]
    assert not any(b"secret" in content for content in contents)


@pytest.mark.attack(45)
@pytest.mark.parametrize("path", ["../x", ".git/config", "a/.GIT/hooks/x"])
def test_no_change_of_an_unsafe_path_is_made_in_a_clone(path: str, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "unsafe")
    change = FileChange(path, "", "100644", None, b"x")
    made = clone(Git.open(repo), head(repo), tmp_path, changes=[change])
    with pytest.raises(UserError, match=re.escape(repr(path))), made:
        pass
