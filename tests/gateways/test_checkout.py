"""A session may change what its hat may write: all else is told and gone, however it was done."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from ralph_mission.gateways.checkout import Checkout
from ralph_mission.gateways.git import Git
from ralph_mission.loop import scope
from ralph_mission.loop.model import Hat
from ralph_mission.loop.ports import Work
from ralph_mission.trouble import Trouble
from tests.helpers import commit, git, make_repo

FILES = {
    "README.md": "# Sample\n",
    "src/a.py": "a = 1\n",
    "docs/guide.md": "guide\n",
    "run.sh": "true\n",
    ".gitignore": "build/\n",
}
BUILDER = Hat("builder", write_allowed=("src/**",))
WHO = ("-c", "user.name=Agent", "-c", "user.email=agent@example.org")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    git(repo, "config", "user.name", "Mara")
    git(repo, "config", "user.email", "mara@example.org")
    git(repo, "branch", "other")
    git(repo, "tag", "v1")
    (repo / ".git/hooks").mkdir(exist_ok=True)
    return repo


@pytest.fixture
def checkout(repo: Path, tmp_path: Path) -> Checkout:
    return opened(repo, tmp_path)


def opened(repo: Path, tmp_path: Path, *checks: str) -> Checkout:
    return Checkout(Git.open(repo), checks, tmp_path / "home", 60)


def state(repo: Path) -> dict[str, object]:
    """Everything that counts: files, index, refs, HEAD, what git obeys."""
    files = {
        place.relative_to(repo).as_posix(): _seen(place)
        for place in sorted(repo.rglob("*"))
        if ".git" not in place.relative_to(repo).parts and (place.is_symlink() or not place.is_dir())
    }
    refs = [
        line
        for line in git(repo, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
        if "refs/ralph/" not in line
    ]
    obeyed = {
        place.relative_to(repo).as_posix(): _seen(place)
        for folder in ("hooks", "info")
        for place in (repo / ".git" / folder).rglob("*")
    }
    return {
        "files": files,
        "refs": refs,
        "obeyed": obeyed,
        "config": (repo / ".git/config").read_bytes(),
        "head": (repo / ".git/HEAD").read_text(),
        "index": git(repo, "ls-files", "--stage"),
        "dirty": git(repo, "status", "--porcelain", "--untracked-files=all"),
    }


def _seen(place: Path) -> tuple[object, ...]:
    status = place.lstat()
    kind = stat.S_IFMT(status.st_mode)
    if place.is_symlink():
        return kind, os.readlink(place)
    return kind, status.st_mode & 0o111, place.read_bytes() if place.is_file() else b""


def after(checkout: Checkout, mark: str, hat: Hat = BUILDER) -> tuple[Work, set[str]]:
    """What the engine does after a session; the paths that were told as undone."""
    work = checkout.changed(mark)
    outside = [change.path for change in scope.outside(hat, work.changes)]
    if outside:
        checkout.undo(mark, outside)
    return checkout.changed(mark), {*outside, *(change.path for change in work.foreign)}


def by(repo: Path, *arguments: str) -> None:
    git(repo, *WHO, *arguments)


def committed(repo: Path) -> None:
    commit(repo, {"docs/guide.md": "mine\n"}, author="Agent <agent@example.org>")


def uncommitted(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")


def untracked(repo: Path) -> None:
    (repo / "docs/new").mkdir()
    (repo / "docs/new/x.md").write_text("mine\n")


def deleted(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()


def renamed(repo: Path) -> None:
    by(repo, "mv", "docs/guide.md", "docs/other.md")


def renamed_into_scope(repo: Path) -> None:
    (repo / "docs/guide.md").rename(repo / "src/guide.md")


def symlinked(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()
    (repo / "docs/guide.md").symlink_to("../src/a.py")


def folder_symlinked(repo: Path) -> None:
    (repo / "docs").rename(repo.parent / "elsewhere")
    (repo / "docs").symlink_to(repo.parent / "elsewhere")
    (repo / "docs/guide.md").write_text("beyond the link\n")


def folder_becomes_file(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()
    (repo / "docs").rmdir()
    (repo / "docs").write_text("a file\n")


def file_becomes_folder(repo: Path) -> None:
    (repo / "README.md").unlink()
    (repo / "README.md").mkdir()
    (repo / "README.md/x").write_text("x\n")


def special(repo: Path) -> None:
    (repo / "docs/guide.md").unlink()
    os.mkfifo(repo / "docs/guide.md")


def executable(repo: Path) -> None:
    (repo / "run.sh").chmod(0o755)


def hook(repo: Path) -> None:
    place = repo / ".git/hooks/pre-commit"
    place.write_text(f"#!/bin/sh\ntouch {repo.parent}/hooked\n")
    place.chmod(0o755)


def hooks_linked(repo: Path) -> None:
    (repo / ".git/hooks").rmdir()
    (repo.parent / "evil").mkdir()
    (repo.parent / "evil/post-commit").write_text("x")
    (repo / ".git/hooks").symlink_to(repo.parent / "evil")


def config(repo: Path) -> None:
    git(repo, "config", "core.fsmonitor", f"touch {repo.parent}/monitored")
    git(repo, "config", "filter.evil.clean", f"touch {repo.parent}/filtered")


def attributes(repo: Path) -> None:
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("* filter=evil\n")


def exclude(repo: Path) -> None:
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("*\n")
    (repo / "docs/hidden.md").write_text("x\n")


def ignored(repo: Path) -> None:
    (repo / ".gitignore").write_text("build/\nsecret/\n")
    (repo / "secret").mkdir()
    (repo / "secret/x").write_text("x\n")


def ignored_by_itself(repo: Path) -> None:
    (repo / "docs/.gitignore").write_text("*\n")
    (repo / "docs/hidden.md").write_text("x\n")


def other_branch(repo: Path) -> None:
    by(repo, "update-ref", "refs/heads/other", commit_object(repo))


def new_branch(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "-b", "feature")
    committed(repo)


def branch_renamed(repo: Path) -> None:
    by(repo, "branch", "-m", "main", "main/x")


def branch_deleted(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "--detach")
    by(repo, "branch", "--quiet", "-D", "main", "other")


def detached(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "--detach")
    committed(repo)


def tag(repo: Path) -> None:
    by(repo, "tag", "v2")
    by(repo, "tag", "-f", "v1", commit_object(repo))


def stashed(repo: Path) -> None:
    uncommitted(repo)
    by(repo, "stash")


def amended(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")
    by(repo, "commit", "--quiet", "--all", "--amend", "--message", "Amended")


def reset(repo: Path) -> None:
    by(repo, "reset", "--quiet", "--hard", "HEAD~1")


def staged_only(repo: Path) -> None:
    (repo / "docs/guide.md").write_text("mine\n")
    by(repo, "add", "docs/guide.md")
    (repo / "docs/guide.md").write_text("guide 2\n")


def nested(repo: Path) -> None:
    make_repo(repo / "src/inner", {"x.py": "x\n"})
    make_repo(repo / "vendor", {"x.py": "x\n"})


def newline(repo: Path) -> None:
    (repo / "docs/a\nb.md").write_text("x\n")


def unicode(repo: Path) -> None:
    (repo / "docs/na\u00efve.md").write_text("x\n")
    (repo / "docs/nai\u0308ve.md").write_text("x\n")
    (repo / "DOCS").mkdir()
    (repo / "DOCS/guide.md").write_text("x\n")


def not_utf8(repo: Path) -> None:
    with open(os.fsencode(repo) + b"/docs/\xff", "wb") as file:
        file.write(b"x")


def assumed_unchanged(repo: Path) -> None:
    by(repo, "update-index", "--assume-unchanged", "docs/guide.md")
    (repo / "docs/guide.md").write_text("mine\n")
    by(repo, "update-index", "--skip-worktree", "README.md")
    (repo / "README.md").write_text("mine\n")


def same_size_and_time(repo: Path) -> None:
    place = repo / "docs/guide.md"
    before = place.stat()
    place.write_text("GUIDE 2\n")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))


def merging(repo: Path) -> None:
    by(repo, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit(repo, {"docs/guide.md": "side\n"})
    by(repo, "checkout", "--quiet", "main")
    with pytest.raises(AssertionError):
        by(repo, "merge", "side")


def broken_index(repo: Path) -> None:
    (repo / ".git/index").write_bytes(b"nonsense")
    (repo / "docs/guide.md").write_text("mine\n")


def locked(repo: Path) -> None:
    (repo / ".git/index.lock").touch()


def commit_object(repo: Path) -> str:
    return git(repo, *WHO, "commit-tree", "HEAD^{tree}", "-m", "x")


GUIDE = {"docs/guide.md"}
WAYS = {
    committed: GUIDE,
    uncommitted: GUIDE,
    untracked: {"docs/new/x.md"},
    deleted: GUIDE,
    renamed: {"docs/guide.md", "docs/other.md"},
    renamed_into_scope: GUIDE,
    symlinked: GUIDE,
    folder_symlinked: {"docs", "docs/guide.md"},
    folder_becomes_file: {"docs", "docs/guide.md"},
    file_becomes_folder: {"README.md", "README.md/x"},
    special: GUIDE,
    executable: {"run.sh"},
    hook: {".git/hooks/pre-commit"},
    hooks_linked: {".git/hooks"},
    config: {".git/config"},
    attributes: {".git/info/attributes"},
    exclude: {".git/info/exclude", "docs/hidden.md"},
    ignored: {".gitignore", "secret/x"},
    ignored_by_itself: {"docs/.gitignore", "docs/hidden.md"},
    other_branch: {"refs/heads/other"},
    new_branch: {"HEAD", "refs/heads/feature", "docs/guide.md"},
    branch_renamed: {"HEAD", "refs/heads/main", "refs/heads/main/x"},
    branch_deleted: {"HEAD", "refs/heads/main", "refs/heads/other"},
    detached: {"HEAD", "docs/guide.md"},
    tag: {"refs/tags/v1", "refs/tags/v2"},
    stashed: {"refs/stash"},
    amended: {"refs/heads/main", "docs/guide.md"},
    reset: {"refs/heads/main", "docs/guide.md"},
    staged_only: GUIDE,
    nested: {"src/inner/.git", "vendor/.git", "vendor/x.py"},
    newline: {"docs/a\nb.md"},
    unicode: {"docs/na\u00efve.md", "docs/nai\u0308ve.md", "DOCS/guide.md"},
    not_utf8: {"docs/\udcff"},
    assumed_unchanged: {"docs/guide.md", "README.md"},
    same_size_and_time: GUIDE,
    merging: {".git/MERGE_HEAD", "refs/heads/side", "docs/guide.md"},
    broken_index: GUIDE,
    locked: {".git/index.lock"},
}


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


def test_checks_run_one_by_one_until_one_fails(repo, tmp_path):
    verdict = opened(repo, tmp_path, "true", "echo no; echo why >&2; exit 3", "touch never").verify()
    assert (verdict.green, verdict.ran) == (False, True)
    assert "exit 3" in verdict.said and "no" in verdict.said and "why" in verdict.said
    assert not (repo / "never").exists()


def test_without_checks_nothing_was_proven(checkout):
    assert not checkout.verify().ran


def test_a_check_that_takes_too_long_is_red(repo, tmp_path):
    verdict = Checkout(
        Git.open(repo), (f"exec {sys.executable} -c 'import time; time.sleep(60)'",), tmp_path / "h", 0.2
    )
    assert "took over 0.2 s" in verdict.verify().said


def test_what_checks_leave_behind_is_not_committed(repo, tmp_path):
    checkout = opened(repo, tmp_path, "mkdir -p cache && touch cache/x && echo b >> src/a.py")
    (repo / "src/b.py").write_text("b\n")
    assert checkout.verify().green
    checkout.commit("Work")
    assert git(repo, "status", "--porcelain") == "?? cache/"


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


def test_what_a_check_that_was_due_once_left_is_never_committed(repo, tmp_path):
    due = ["touch left-by-the-browser"]
    checkout = Checkout(Git.open(repo), ("true",), tmp_path / "home", 60, lambda: tuple(due))
    assert checkout.verify().green
    due.clear()
    (repo / "src/a.py").write_text("a = 2\n")
    assert checkout.verify().green and checkout.commit("step")
    assert "left-by-the-browser" not in git(repo, "ls-files")
