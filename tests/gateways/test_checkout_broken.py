"""What a session leaves in the repository itself neither hangs nor ends a run: it is put back before git is asked."""

from __future__ import annotations

import os
import shutil
import socket
import zlib
from pathlib import Path

import pytest

from ralph_mission.gateways import checkout as checkouts
from ralph_mission.gateways import git as plumbing
from ralph_mission.loop.ports import Work
from ralph_mission.trouble import Trouble
from tests.gateways.checkout_world import WHO, after, opened, state
from tests.helpers import commit, git

pytestmark = pytest.mark.long  # takes ten seconds or more


def pipe(path: Path) -> None:
    gone(path)
    os.mkfifo(path)


def link(path: Path) -> None:
    beside = path.parents[len(path.parts) - path.parts.index("repo") - 1] / f"moved-{path.name}"
    shutil.move(path, beside) if path.exists() else beside.write_text("")
    path.symlink_to(beside)


def folder(path: Path) -> None:
    gone(path)
    (path / "x").mkdir(parents=True)
    (path / "x/y").write_text("y")


def sock(path: Path) -> None:
    gone(path)
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's name is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def junk(path: Path) -> None:
    gone(path)
    path.write_bytes(b"\0junk\xff\n")


def empty(path: Path) -> None:
    gone(path)
    path.touch()


def gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


LEFTS = (pipe, link, folder, sock, junk, empty, gone)
WAYS = [(place, left) for place in ("HEAD", "index", "packed-refs", "refs/heads/main", "refs") for left in LEFTS]
WAYS += [(place, left) for place in ("refs/heads", "info", "logs") for left in (pipe, link, sock, junk)]
WAYS += [("logs/HEAD", left) for left in (pipe, link, folder, sock)]


@pytest.fixture
def packed(repo: Path) -> Path:
    git(repo, "pack-refs", "--all")
    commit(repo, {"src/a.py": "a = 2\n"}, message="Second")
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("*.tmp\n")
    return repo


@pytest.mark.parametrize(("place", "left"), WAYS, ids=lambda value: getattr(value, "__name__", value))
def test_what_git_stumbles_over_is_as_it_was_and_told(place, left, packed, checkout):
    before, mark = state(packed), checkout.mark()
    left(packed / ".git" / place)
    (packed / "docs/guide.md").write_text("mine\n")
    work, told = after(checkout, mark)
    assert "docs/guide.md" in told and work == Work()
    assert len(told) > 1 or (place, left) == ("packed-refs", empty)  # all of them stand beside it
    assert state(packed) == before
    assert git(packed, "fsck", "--no-dangling") == "" and after(checkout, checkout.mark()) == (Work(), set())


@pytest.mark.parametrize("place", ["index", "refs/heads/main"])
@pytest.mark.parametrize("left", [pipe, link, junk, gone], ids=lambda left: left.__name__)
def test_a_later_process_puts_it_back_as_well(place, left, repo, tmp_path):
    commit(repo, {"src/a.py": "a = 2\n"}, message="Second")
    before, mark = state(repo), opened(repo, tmp_path).mark()
    later = opened(repo, tmp_path)
    left(repo / ".git" / place)
    later.set_aside(mark)
    assert state(repo) == before


@pytest.mark.parametrize("left", [pipe, junk, gone], ids=lambda left: left.__name__)
def test_what_was_committed_stays_when_the_index_is_put_back(left, packed, checkout):
    (packed / "README.md").write_text("staged\n")
    git(packed, "add", "README.md")
    mark = checkout.mark()
    git(packed, *WHO, "commit", "--quiet", "-m", "Mine", "--only", "--", "README.md")
    commit(packed, {"src/b.py": "b\n"}, message="Work")
    left(packed / ".git/index")
    work = checkout.changed(mark)
    assert [entry.message for entry in work.commits] == ["Work", "Mine"]
    assert [change.path for change in work.foreign] == [".git/index"]
    assert git(packed, "status", "--porcelain") == ""


def test_a_link_in_the_repository_leads_no_writing_elsewhere(packed, checkout, tmp_path):
    mark = checkout.mark()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/exclude").write_text("a person's\n")
    shutil.rmtree(packed / ".git/info")
    (packed / ".git/info").symlink_to(tmp_path / "mine")
    _, told = after(checkout, mark)
    assert ".git/info" in told and (tmp_path / "mine/exclude").read_text() == "a person's\n"
    assert (packed / ".git/info/exclude").read_text() == "*.tmp\n" and not (packed / ".git/info").is_symlink()


def test_links_of_a_person_stay(packed, checkout, tmp_path):
    (packed / ".git/info").rename(tmp_path / "info")
    (packed / ".git/info").symlink_to(tmp_path / "info")
    assert after(checkout, checkout.mark()) == (Work(), set()) and (packed / ".git/info").is_symlink()


def test_locks_of_refs_and_refs_that_name_nothing_go(packed, checkout):
    mark = checkout.mark()
    (packed / ".git/refs/heads/main.lock").touch()
    (packed / ".git/HEAD.lock").touch()
    (packed / ".git/refs/heads/new").write_text("nothing\n")
    (packed / ".git/HEAD").write_text("ref: refs/heads/other\n")
    _, told = after(checkout, mark)
    assert told == {".git/HEAD.lock", ".git/refs/heads/main.lock", ".git/refs/heads/new", "HEAD"}
    assert not list(packed.glob(".git/**/*.lock"))


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".gitmodules"])
@pytest.mark.parametrize("inside", ["", "src/", "brand/new/"])
def test_a_pipe_of_a_name_that_git_opens_is_not_waited_at(inside, name, repo, checkout, monkeypatch):
    monkeypatch.setattr(checkouts, "PATIENCE", 2)
    before, mark = state(repo), checkout.mark()
    (repo / inside).mkdir(parents=True, exist_ok=True)
    pipe(repo / inside / name)
    (repo / inside / "x.py").write_text("x\n")
    work = checkout.changed(mark)
    assert [change.path for change in work.changes] == [f"{inside}x.py"]
    checkout.commit("Work", mark)
    assert git(repo, "log", "-1", "--format=", "--name-only") == f"{inside}x.py"
    assert {**state(repo)["files"], f"{inside}x.py": 0} == {
        **before["files"],
        f"{inside}x.py": 0,
    } or inside == "brand/new/"


@pytest.mark.parametrize("pointer", [False, True])
def test_a_nested_repository_whose_head_is_a_pipe_is_not_waited_at(pointer, repo, checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(checkouts, "PATIENCE", 2)
    mark = checkout.mark()
    inner = tmp_path / "far" if pointer else repo / "src/inner/.git"
    for name in ("objects", "refs"):
        (inner / name).mkdir(parents=True)
    os.mkfifo(inner / "HEAD")
    (repo / "src/inner").mkdir(exist_ok=True)
    (repo / "src/inner/x.py").write_text("x\n")
    if pointer:
        (repo / "src/inner/.git").write_text(f"gitdir: {inner}\n")
    work = checkout.changed(mark)
    assert [change.path for change in work.changes] == ["src/inner/x.py"]
    assert git(repo, "status", "--porcelain", "--untracked-files=all") == "?? src/inner/x.py"


def test_the_file_that_names_a_submodules_repository_is_put_back(repo, checkout, tmp_path):
    inner = commit_submodule(repo, tmp_path)
    pointer = (inner / ".git").read_text()
    mark = checkout.mark()
    (inner / ".git").write_text(f"gitdir: {tmp_path}\n")
    _, told = after(checkout, mark)
    assert told == {"vendor/inner/.git"} and (inner / ".git").read_text() == pointer


def commit_submodule(repo: Path, tmp_path: Path) -> Path:
    from tests.helpers import make_repo

    made = make_repo(tmp_path / "inner", {"x.py": "x\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(made), "vendor/inner")
    commit(repo, {}, message="Submodule")
    return repo / "vendor/inner"


def test_a_forged_index_names_nothing_outside(repo, checkout, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("a person's\n")
    mark = checkout.mark()
    forge_index(repo, "src/a.py", "../victim")
    _, told = after(checkout, mark)
    assert told == {".git/index"} and victim.read_text() == "a person's\n"
    assert git(repo, "status", "--porcelain") == ""


def forge_index(repo: Path, old: str, new: str) -> None:
    """Another name of a path in the index, with the checksum that belongs to it."""
    import hashlib

    path = repo / ".git/index"
    raw = path.read_bytes()[:-20]
    start = raw.index(old.encode()) - 62
    end = start + (62 + len(old)) // 8 * 8 + 8
    entry = raw[start : start + 60] + len(new).to_bytes(2, "big") + new.encode()
    raw = raw[:start] + entry + b"\0" * (8 - len(entry) % 8) + raw[end:]
    path.write_bytes(raw + hashlib.sha1(raw, usedforsecurity=False).digest())


def test_a_tree_that_leads_outside_ends_the_run_and_touches_nothing_there(repo, checkout, tmp_path):
    (tmp_path / "victim").write_text("a person's\n")
    mark = checkout.mark()
    blob = git(repo, "rev-parse", "HEAD:README.md")
    inner = git(repo, "mktree", stdin=f"100644 blob {blob}\tvictim\n")
    listed = f"{git(repo, 'ls-tree', 'HEAD')}\n040000 tree {inner}\t..\n"
    tree = git(repo, "mktree", stdin=listed)
    made = git(repo, *WHO, "commit-tree", tree, "-p", "HEAD", "-m", "x")
    git(repo, "update-ref", "refs/heads/main", made)
    with pytest.raises(Trouble, match="git cannot work in this checkout"):
        after(checkout, mark)
    assert (tmp_path / "victim").read_text() == "a person's\n"


def test_objects_that_are_gone_end_the_run_and_say_what_to_do(repo, tmp_path):
    checkout = opened(repo, tmp_path, "true")
    mark = checkout.mark()
    shutil.rmtree(repo / ".git/objects")
    (repo / ".git/objects").mkdir()
    (repo / "src/a.py").write_text("a = 3\n")
    with pytest.raises(Trouble) as caught:
        checkout.changed(mark)
        checkout.verify()
    assert "git fsck" in caught.value.next_step and "--continue" in caught.value.next_step


def test_an_object_with_other_bytes_is_not_put_back_for_the_real_one(repo, checkout):
    mark, oid = checkout.mark(), git(repo, "rev-parse", "HEAD:README.md")
    place = repo / ".git/objects" / oid[:2] / oid[2:]
    place.unlink()
    place.write_bytes(zlib.compress(b"blob 5\0evil\n"))
    (repo / "README.md").write_text("x\n")
    with pytest.raises(Trouble, match=r"README\.md cannot be put back"):
        checkout.undo(mark, ["README.md"])


def test_a_pipe_for_an_object_is_not_waited_at(repo, checkout):
    mark, oid = checkout.mark(), git(repo, "rev-parse", "HEAD:README.md")
    pipe(repo / ".git/objects" / oid[:2] / oid[2:])
    (repo / "README.md").write_text("x\n")
    with pytest.raises(Trouble, match=r"README\.md cannot be put back"):
        after(checkout, mark)


def test_a_history_that_a_commit_graph_forges_is_not_believed(repo, checkout):
    mark = checkout.mark()
    commit(repo, {"docs/guide.md": "mine\n"}, message="Outside")
    git(repo, "commit-graph", "write", "--reachable")
    forge_graph(repo)
    work, told = after(checkout, mark)
    assert told == {"docs/guide.md"} and work == Work()


def forge_graph(repo: Path) -> None:
    """The tree of the newest commit becomes that of the one before, as far as the graph says."""
    place = repo / ".git/objects/info/commit-graph"
    new, old = (bytes.fromhex(git(repo, "rev-parse", f"{name}^{{tree}}")) for name in ("HEAD", "HEAD~1"))
    raw = place.read_bytes()
    assert new in raw
    place.chmod(0o644)
    place.write_bytes(raw.replace(new, old))
    assert git(repo, "log", "-1", "--format=", "--name-only") == ""


def test_a_repository_whose_head_is_a_pipe_is_told_and_not_waited_for(repo, monkeypatch):
    monkeypatch.setattr(plumbing, "ANSWER", 0.5)
    pipe(repo / ".git/HEAD")
    with pytest.raises(Trouble, match="gives no answer") as caught:
        plumbing.Git.open(repo)
    assert "symbolic-ref" in caught.value.next_step
