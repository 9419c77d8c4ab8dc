"""Builders work apart; what they made is merged in one order, and no clone outlives them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.workspace import parallel
from tests.helpers import commit, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.py": "a\n", "b.py": "b\n", "old/x.py": "x\n", ".gitignore": "*.log\n"})


@pytest.fixture
def plumbing(repo: Path) -> Git:
    return Git.open(repo)


def merged(plumbing: Git, repo: Path, scratch: Path, *works) -> parallel.Merged:
    base = git(repo, "rev-parse", "HEAD")
    names = [f"builder-{number}" for number, _ in enumerate(works)]
    built = []
    with parallel.make_parts(plumbing, base, names, scratch) as parts:
        for part, work in zip(parts, works, strict=True):
            workspace = parallel.WorkspaceApart(plumbing, part.folder)
            mark = workspace.begin_session()
            work(part.folder)
            workspace.changed(mark)
            workspace.land(f"Work of {part.name}", True)
            built.append(parallel.Built(part.name, workspace.built))
    return parallel.merge(plumbing, base, built)


def writes(**files: str | None):
    def work(folder: Path) -> None:
        for name, content in files.items():
            place = folder / name.replace("__", "/").replace("_", ".")
            if content is None:
                place.unlink()
            else:
                place.parent.mkdir(exist_ok=True)
                place.write_text(content)

    return work


def test_disjoint_work_is_applied_in_order_and_the_checkout_is_untouched(repo, plumbing, tmp_path):
    before = git(repo, "for-each-ref"), git(repo, "status", "--porcelain")
    found = merged(
        plumbing, repo, tmp_path / "s", writes(a_py="A\n"), writes(c_py="C\n", old__x_py=None), writes(b_py="B\n")
    )
    assert tuple(found.commits) == ("builder-0", "builder-1", "builder-2") and found.left_out == {}
    log = git(repo, "log", "--reverse", "--format=%s", "--name-status", f"HEAD..{found.judged.commit}").split("\n")
    assert [line for line in log if line] == [
        "Work of builder-0",
        "M\ta.py",
        "Work of builder-1",
        "A\tc.py",
        "D\told/x.py",
        "Work of builder-2",
        "M\tb.py",
    ]
    assert (git(repo, "for-each-ref"), git(repo, "status", "--porcelain")) == before


@pytest.mark.parametrize(
    ("later", "path"),
    [
        ({"a_py": "other\n"}, "a.py"),
        ({"a_py": None}, "a.py"),
        ({"new__y_py": "y\n"}, "new/y.py"),
    ],
)
def test_who_meets_an_earlier_one_is_left_out_and_told(later, path, repo, plumbing, tmp_path):
    found = merged(
        plumbing,
        repo,
        tmp_path / "s",
        writes(a_py="A\n", new="a file\n"),
        writes(c_py="c\n", **later),
        writes(b_py="B\n"),
    )
    assert tuple(found.commits) == ("builder-0", "builder-2")
    [change] = found.left_out["builder-1"]
    assert (change.path, change.how, change.reverted) == (path, "conflict", "builder-0 had it first")
    assert "c.py" not in git(repo, "ls-tree", "-r", "--name-only", found.judged.commit)


def test_the_same_work_gives_the_same_tree(repo, plumbing, tmp_path):
    works = writes(a_py="A\n"), writes(b_py="B\n")
    found = [merged(plumbing, repo, tmp_path / "s", *works).judged.commit for _ in range(2)]
    assert len({git(repo, "rev-parse", f"{made}^{{tree}}") for made in found}) == 1


def test_commits_deletions_links_and_modes_of_a_builder_count_as_what_they_leave(repo, plumbing, tmp_path):
    def work(folder: Path) -> None:
        commit(folder, {"c.py": "c\n"})
        (folder / "link").symlink_to("a.py")
        (folder / "a.py").chmod(0o755)
        (folder / "x.log").write_text("ignored\n")
        (folder / "b.py").unlink()

    found = merged(plumbing, repo, tmp_path / "s", work)
    rows = git(repo, "ls-tree", "-r", found.judged.commit).split("\n")
    assert [(row.split()[0], row.split("\t")[1]) for row in rows] == [
        ("100644", ".gitignore"),
        ("100755", "a.py"),
        ("100644", "c.py"),
        ("120000", "link"),
        ("100644", "old/x.py"),
    ]


def test_what_a_builder_does_to_its_repository_moves_nothing_of_the_users(repo, plumbing, tmp_path):
    before = git(repo, "for-each-ref"), (repo / ".git/config").read_bytes()

    def work(folder: Path) -> None:
        git(folder, "config", "filter.evil.clean", f"touch {tmp_path}/filtered")
        (folder / ".git/info/attributes").write_text("* filter=evil\n")
        (folder / ".git/info/exclude").write_text("*\n")
        (folder / "c.py").write_text("c\n")
        git(folder, "branch", "mine")
        git(folder, "tag", "v1")

    found = merged(plumbing, repo, tmp_path / "s", work)
    assert "c.py" in git(repo, "ls-tree", "--name-only", found.judged.commit) and not (tmp_path / "filtered").exists()
    assert (git(repo, "for-each-ref"), (repo / ".git/config").read_bytes()) == before


def test_nothing_done_is_nothing_merged(repo, plumbing, tmp_path):
    found = merged(plumbing, repo, tmp_path / "s", writes(), writes())
    assert (found.judged.commit, tuple(found.commits), found.left_out) == (git(repo, "rev-parse", "HEAD"), (), {})


def test_a_clone_is_a_checkout_on_a_branch_without_remotes(repo, plumbing, tmp_path):
    with parallel.make_parts(plumbing, git(repo, "rev-parse", "HEAD"), ["one"], tmp_path / "s") as [part]:
        assert git(part.folder, "symbolic-ref", "HEAD") == "refs/heads/work" and git(part.folder, "remote") == ""
        assert git(part.folder, "status", "--porcelain") == "" and part.git.resolve("HEAD") == part.base


def test_no_clone_outlives_an_error(repo, plumbing, tmp_path):
    with pytest.raises(ZeroDivisionError), parallel.make_parts(plumbing, "HEAD", ["one", "two"], tmp_path / "s"):
        raise ZeroDivisionError
    assert list((tmp_path / "s").iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_start_and_running_ones_stay(repo, plumbing, tmp_path):
    scratch = tmp_path / "s"
    program = """
import os, signal, sys
from pathlib import Path
from ralph_mission.adapters.workspace import parallel
from ralph_mission.adapters.git.git import Git
with parallel.make_parts(Git.open(Path(sys.argv[1])), "HEAD", ["one"], Path(sys.argv[2])):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program, str(repo), str(scratch)], check=False)
    assert done.returncode == -9 and len(list(scratch.iterdir())) == 1
    with parallel.make_parts(plumbing, git(repo, "rev-parse", "HEAD"), ["one"], scratch) as [first]:
        assert len(list(scratch.iterdir())) == 1
        with parallel.make_parts(plumbing, first.base, ["one"], scratch):
            assert first.folder.is_dir() and len(list(scratch.iterdir())) == 2
    assert list(scratch.iterdir()) == []


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_clones_leads_to_nothing_that_is_removed_or_made(repo, tmp_path):
    (tmp_path / "theirs" / f"{parallel.PREFIX}x").mkdir(parents=True)
    (repo / ".ralph").mkdir()
    (repo / ".ralph/units").symlink_to(tmp_path / "theirs")
    with (
        pytest.raises(OSError, match="units"),
        parallel.make_parts(Git.open(repo), "HEAD", ["a"], repo / ".ralph/units"),
    ):
        pass
    assert [place.name for place in (tmp_path / "theirs").iterdir()] == [f"{parallel.PREFIX}x"]
