"""What a look remembers of the one before is never taken for what stands there now."""

from __future__ import annotations

import itertools
import os
import shutil
import time

import pytest

from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways.checkout_dirty import dirty
from ralph_mission.gateways.checkout_files import FRESH, Reader
from ralph_mission.gateways.checkout_sound import Sweep
from ralph_mission.gateways.git import Git
from tests.gateways.checkout_world import opened
from tests.helpers import git, make_repo

SETTLED = FRESH / 1e9 * 1.5  # seconds


def staged(repo, *rows):
    git(repo, "update-index", "--add", "--index-info", stdin="".join(f"{row}\n" for row in rows))


def written(repo, path="src/a.py"):
    (repo / path).write_text(f"a = {time.time_ns()}\n")


def another_content(repo):
    written(repo)
    git(repo, "add", "src/a.py")


def conflict(repo):
    """Of two conflicts one after the other only the second of three rows differs."""
    ours, theirs = (git(repo, "hash-object", "-w", "--stdin", stdin=text) for text in (f"{time.time_ns()}", "theirs"))
    base = git(repo, "rev-parse", "HEAD:README.md")
    rows = (f"100644 {oid} {stage}\tREADME.md" for stage, oid in enumerate((base, ours, theirs), 1))
    staged(repo, f"0 {'0' * 40}\tREADME.md", *rows)


def repository(repo):
    """A repository where a file was; the list has as many rows as before, and the same paths."""
    (repo / "src/a.py").unlink(missing_ok=True)
    inner = make_repo(repo / "src/a.py", {"evil.py": "evil"})
    staged(repo, f"160000 {git(inner, 'rev-parse', 'HEAD')} 0\tsrc/a.py")


STEPS = {
    "another content": another_content,
    "one less": lambda repo: git(repo, "rm", "--quiet", "--cached", "--ignore-unmatch", "run.sh"),
    "one for another": lambda repo: (
        git(repo, "rm", "--quiet", "docs/guide.md"),
        staged(repo, f"100644 {git(repo, 'rev-parse', 'HEAD:README.md')} 0\tdocs/other.md"),
    ),
    "flagged": lambda repo: git(repo, "update-index", "--assume-unchanged", "src/a.py"),
    "executable": lambda repo: git(repo, "update-index", "--chmod=+x", "src/a.py"),
    "conflict": conflict,
    "another conflict": conflict,
    "untracked": lambda repo: written(repo, "src/new.py"),
}


@pytest.mark.parametrize("order", list(itertools.permutations(STEPS, 2)), ids=" then ".join)
def test_a_reader_that_remembers_sees_what_a_fresh_one_sees(order, repo):
    reader = Reader(Git.open(repo))
    reader.read()
    for step in order:
        STEPS[step](repo)
        assert reader.read() == Reader(Git.open(repo)).read()


def test_a_repository_in_the_place_of_a_file_is_seen_and_unmade(repo, checkout):
    mark = checkout.mark()
    repository(repo)
    git(repo, "commit", "-m", "A repository")
    work = checkout.changed(mark)
    assert "src/a.py/.git" in [change.path for change in work.foreign]
    assert not (repo / "src/a.py/.git").exists()


@pytest.mark.parametrize("target", ["src", "x" * 300], ids=["itself", "too long a name"])
def test_a_folder_made_a_link_that_leads_nowhere_is_seen(target, repo, checkout):
    (repo / "src/inner").mkdir()
    written(repo, "src/inner/b.py")
    time.sleep(SETTLED)
    mark = checkout.mark()
    shutil.rmtree(repo / "src")
    (repo / "src").symlink_to(target)
    assert {"src", "src/a.py", "src/inner/b.py"} <= {change.path for change in checkout.changed(mark).changes}


def test_one_commit_touches_a_submodule_though_diffs_ignore_them(repo):
    first, second = (git(repo, "commit-tree", "-m", text, "HEAD^{tree}") for text in ("1", "2"))
    staged(repo, f"160000 {first} 0\tsub")
    git(repo, "commit", "-m", "A submodule")
    before = history.place(Git.open(repo))
    staged(repo, f"160000 {second} 0\tsub")
    git(repo, "commit", "-m", "Another")
    git(repo, "config", "diff.ignoreSubmodules", "all")
    assert history.touched(Git.open(repo), before, git(repo, "rev-parse", "HEAD")) == {"sub": "committed"}


@pytest.mark.parametrize("name", ["objects/info/x", "refs/heads/x", "worktrees"])
def test_what_is_planted_in_a_folder_that_was_looked_through_is_seen(name, repo):
    folder = (repo / ".git" / name).parent
    folder.mkdir(parents=True, exist_ok=True)
    sweep, before = Sweep(Git.open(repo)), os.stat(folder)
    time.sleep(SETTLED)
    assert not sweep.odd() and not sweep.odd()
    os.mkfifo(repo / ".git" / name)
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert set(sweep.odd()) == {str(repo / ".git" / name)} == set(sweep.odd())


def touched(repo):
    os.utime(repo / "src/a.py", (1, 1))


@pytest.mark.parametrize(
    ("change", "is_dirty"),
    [
        (lambda _: None, False),
        (touched, False),
        (another_content, True),
        (STEPS["untracked"], True),
        (conflict, True),
        (lambda repo: (repo / "src/a.py").unlink(), True),
        (lambda repo: (repo / "run.sh").chmod(0o755), True),
        (lambda repo: ((repo / "build").mkdir(), (repo / "build/x").write_text("x")), False),
        (lambda repo: git(repo, "checkout", "--quiet", "--orphan", "fresh"), True),
    ],
    ids=["nothing", "touched", "staged", "untracked", "conflict", "deleted", "mode", "ignored", "unborn"],
)
def test_dirty_is_what_git_status_says(change, is_dirty, repo):
    change(repo)
    assert dirty(Git.open(repo)) is is_dirty
    assert bool(git(repo, "status", "--porcelain")) is is_dirty


@pytest.mark.parametrize("step", [*STEPS.values(), touched, lambda repo: (repo / "run.sh").unlink()])
def test_after_a_session_dirty_is_what_git_status_says_too(step, repo, checkout):
    mark = checkout.mark()
    step(repo)
    checkout.changed(mark)
    assert checkout.tree().dirty is bool(git(repo, "status", "--porcelain"))


def test_what_was_put_back_is_looked_at_anew(repo, checkout):
    mark = checkout.mark()
    written(repo)
    checkout.changed(mark)
    checkout.undo(mark, ["src/a.py"])
    assert not checkout.tree().dirty


def test_what_a_check_staged_and_what_a_session_ignores_no_more_is_dirty(repo, tmp_path):
    checked = opened(repo, tmp_path, "echo x > gen && git add gen")
    checked.mark()
    checked.verify()
    assert checked.tree().dirty is bool(git(repo, "status", "--porcelain")) is True
    (repo / "build").mkdir()
    (repo / "build/x").write_text("x")
    (repo / "gen").unlink()
    mark = checked.mark()
    (repo / ".gitignore").write_text("")
    git(repo, "commit", "--quiet", "--all", "--message", "Nothing is ignored")
    checked.changed(mark)
    assert checked.tree().dirty is bool(git(repo, "status", "--porcelain")) is True
