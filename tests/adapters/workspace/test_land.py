"""What was judged reaches the user's branch, beside whatever the user does meanwhile, or nothing is changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.workspace.land import meeting
from ralph_mission.errors import UserError
from tests.adapters.workspace.world import state
from tests.helpers import commit, git


@pytest.fixture
def land(workspace, clone):
    """Judge a session that wrote these files while `meanwhile` went on, and land it."""

    def landing(meanwhile, **files):
        mark = workspace.begin_session()
        for name, content in (files or {"src/a.py": "a = 2\n"}).items():
            (clone / name).write_text(content)
        workspace.changed(mark)
        meanwhile()
        return workspace.land("Built", True)

    return landing


def kept(error: UserError) -> Path:
    """The patch that a refusal names."""
    found = re.search(r"is in (\S+\.patch)", error.what)
    assert found, error.what
    return Path(found[1])


def test_what_is_uncommitted_elsewhere_stays(repo, land):
    def mine():
        (repo / "README.md").write_text("half\n")
        (repo / "note.txt").write_text("mine\n")
        git(repo, "add", "README.md")

    assert land(mine)
    assert git(repo, "status", "--porcelain") == "M  README.md\n?? note.txt"
    assert (repo / "src/a.py").read_text() == "a = 2\n"


@pytest.mark.parametrize("path", ["src/a.py", "src/new.py"])
def test_what_stands_in_the_way_changes_nothing_and_is_named(path, repo, land):
    def mine():
        (repo / path).write_text("mine\n")
        seen.update(state(repo))

    seen: dict[str, object] = {}
    with pytest.raises(UserError, match=r"cannot be taken over: .*" + path) as error:
        land(mine, **{"src/a.py": "a = 2\n", "src/new.py": "x\n"})
    assert state(repo) == seen and "commit or stash" in error.value.next_step
    (repo / path).unlink()
    git(repo, "checkout", "--quiet", "--", ".")
    git(repo, "apply", str(kept(error.value)))
    assert (repo / "src/a.py").read_text() == "a = 2\n"


def test_a_file_that_was_only_touched_is_in_nobodys_way(repo, land):
    assert land(lambda: (repo / "src/a.py").write_text("a = 1\n"))
    assert git(repo, "status", "--porcelain") == ""


def test_it_goes_on_top_of_what_was_committed_meanwhile(repo, workspace, land):
    assert land(lambda: commit(repo, {"README.md": "theirs\n"}, message="Theirs")) == git(repo, "rev-parse", "main")
    assert git(repo, "log", "-2", "--format=%s") == "Built\nTheirs" and git(repo, "status", "--porcelain") == ""
    mark = workspace.begin_session()
    assert workspace.changed(mark).changes == ()


@pytest.mark.parametrize("path", ["src/a.py", "src"])
def test_what_meets_a_commit_made_meanwhile_is_a_patch(path, repo, land):
    def theirs():
        commit(repo, {"src/a.py": None if path == "src" else "theirs\n"})
        if path == "src":
            (repo / "src").rmdir()
            commit(repo, {"src": "a file\n"})
        seen.update(state(repo))

    seen: dict[str, object] = {}
    with pytest.raises(UserError, match="was committed in the checkout meanwhile") as error:
        land(theirs)
    assert state(repo) == seen and "a = 2" in kept(error.value).read_text()


def test_a_branch_that_was_rewritten_meanwhile_is_left_alone(repo, land):
    def rewritten():
        git(repo, "reset", "--quiet", "--hard", "HEAD~1")
        seen.update(state(repo))

    seen: dict[str, object] = {}
    with pytest.raises(UserError, match="the branch moved") as error:
        land(rewritten)
    assert state(repo) == seen and kept(error.value).is_file()


def test_a_checkout_on_another_branch_keeps_its_files(repo, land):
    made = land(lambda: git(repo, "checkout", "--quiet", "other"))
    assert made == git(repo, "rev-parse", "main") and git(repo, "rev-parse", "other") != made
    assert (repo / "src/a.py").read_text() == "a = 1\n" and git(repo, "status", "--porcelain") == ""


def test_a_locked_index_changes_nothing(repo, land):
    before = git(repo, "rev-parse", "main")
    with pytest.raises(UserError, match=r"index\.lock"):
        land((repo / ".git/index.lock").touch)
    assert git(repo, "rev-parse", "main") == before


def test_the_users_filters_write_the_files(repo, land):
    git(repo, "config", "core.autocrlf", "true")
    assert land(lambda: None, **{"src/a.py": "a = 2\n"})


def test_paths_meet_above_below_and_at_one():
    assert meeting(("a", "b/c", "d", "ab"), ("a", "b", "d/e")) == ("a", "b/c", "d")


class Killed(BaseException):
    """The process ends here."""


def die(*_: object, **__: object) -> None:
    raise Killed


CHANGES = {"src/a.py": "a = 2\n", "src/new.py": "x\n", "README.md": "other\n"}


def cut_off(repo: Path, land, monkeypatch, written: tuple[str, ...]) -> dict[str, object]:
    """A landing that died when only `written` of its files stood there; how everything was before."""
    before = state(repo)
    with monkeypatch.context() as patched:
        patched.setattr(Git, "move_ref", die)
        with pytest.raises(Killed):
            land(lambda: None, **CHANGES)
    if len(written) < len(CHANGES):  # git writes its index last
        later = {path: (repo / path).read_bytes() for path in written}
        git(repo, "reset", "--quiet", "--hard")
        for path, content in later.items():
            (repo / path).write_bytes(content)
    return before


@pytest.mark.parametrize(
    "written", [(), ("src/new.py",), ("src/a.py", "src/new.py"), ("src/a.py", "src/new.py", "README.md")]
)
def test_a_landing_that_was_killed_is_taken_back_wherever_it_was(written, repo, workspace, land, monkeypatch):
    before = cut_off(repo, land, monkeypatch, written)
    workspace.undo_cut_off()
    assert state(repo) == before and git(repo, "status", "--porcelain") == ""
    workspace.undo_cut_off()
    assert land(lambda: None, **CHANGES) and git(repo, "status", "--porcelain") == ""


def test_what_a_person_wrote_after_a_landing_was_killed_stays(repo, workspace, land, monkeypatch):
    cut_off(repo, land, monkeypatch, ("src/a.py", "src/new.py"))
    (repo / "src/new.py").write_text("mine\n")
    (repo / "README.md").write_text("mine, too\n")
    workspace.undo_cut_off()
    assert git(repo, "status", "--porcelain") == " M README.md\n?? src/new.py"
    assert (repo / "src/new.py").read_text() == "mine\n" and (repo / "README.md").read_text() == "mine, too\n"


def test_a_landing_that_was_killed_is_left_alone_once_a_person_has_committed(repo, workspace, land, monkeypatch):
    cut_off(repo, land, monkeypatch, tuple(CHANGES))
    git(repo, "commit", "--quiet", "--all", "--message", "Mine")
    before = state(repo)
    workspace.undo_cut_off()
    assert state(repo) == before


def test_a_killed_landing_is_taken_back_after_an_unrelated_commit_of_a_person(repo, workspace, land, monkeypatch):
    cut_off(repo, land, monkeypatch, ("src/a.py", "src/new.py"))
    (repo / "doc").write_text("mine\n")
    git(repo, "add", "doc")
    git(repo, "commit", "--quiet", "--message", "Mine")
    workspace.undo_cut_off()
    assert git(repo, "status", "--porcelain") == "" and (repo / "doc").exists()


def test_while_the_index_is_locked_a_killed_landing_waits_for_the_next_start(repo, workspace, land, monkeypatch):
    before = cut_off(repo, land, monkeypatch, ("src/a.py", "src/new.py"))
    (repo / ".git/index.lock").touch()
    with pytest.raises(UserError, match=r"index\.lock"):
        workspace.undo_cut_off()
    (repo / ".git/index.lock").unlink()
    workspace.undo_cut_off()
    assert state(repo) == before and git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("note", ["{", "[]", '{"tip": "HEAD", "base": "nothing", "commit": "--all"}', "{}"])
def test_a_note_of_a_landing_that_says_nothing_changes_nothing(note, repo, workspace, land):
    before = state(repo)
    (repo.parent / "ours").mkdir()
    (repo.parent / "ours/landing.json").write_text(note)
    workspace.undo_cut_off()
    assert state(repo) == before
