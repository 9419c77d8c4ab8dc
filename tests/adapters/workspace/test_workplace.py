"""A clone as the place of a loop's sessions: what it holds before one, what is judged after it, and what lands."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph_mission.adapters.workspace import snapshot, workplace
from ralph_mission.adapters.workspace.workplace import Workspace
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CheckResult, NetChange
from ralph_mission.loop.ports import SessionWork
from tests.adapters.workspace.ways import WAYS, folder_symlinked, hook
from tests.adapters.workspace.world import FILES, WHO, after, by, opened, state
from tests.cli.loop_world import until
from tests.helpers import commit, git, make_repo


def changed(workspace, mark):
    """Path -> how."""
    return {change.path: change.how for change in workspace.changed(mark).changes}


def landed(workspace, message="Built", lists=True):
    """The id of the commit, judged as it stands."""
    return workspace.land(message, lists)


def test_a_clone_has_the_files_of_the_last_commit_and_marking_changes_nothing_of_the_users(repo, workspace, clone):
    (repo / "README.md").write_text("dirty\n")
    (repo / "note.txt").write_text("mine\n")
    before, index = state(repo), (repo / ".git/index").read_bytes()
    assert workspace.changed(workspace.begin_session()) == SessionWork()
    assert state(repo) == before and (repo / ".git/index").read_bytes() == index
    assert (clone / "README.md").read_text() == "# Sample\n" and not (clone / "note.txt").exists()
    assert landed(workspace) == "" and state(repo) == before


def test_what_is_judged_lands_as_one_commit_of_the_user(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "src/a.py").write_text("a = 2\n")
    (clone / "src/run").write_text("run\n")
    (clone / "src/run").chmod(0o755)
    (clone / "src/link").symlink_to("a.py")
    (clone / "README.md").unlink()
    (clone / "docs/guide.md").unlink()
    (clone / "docs").rmdir()
    (clone / "docs").write_text("a file\n")
    workspace.changed(mark)
    told = []
    made = workspace.land("Built\n\nWith care.", True, told.append)
    assert told == [made] == [git(repo, "rev-parse", "main")]
    assert git(repo, "log", "-1", "--format=%an <%ae>%n%cn%n%B") == "Mara <mara@example.org>\nMara\nBuilt\n\nWith care."
    rows = git(repo, "diff", "--raw", "--no-renames", "main~1", "main").split("\n")
    assert sorted(" ".join(row.split()[i] for i in (1, 4, 5)) for row in rows) == [
        "000000 D README.md", "000000 D docs/guide.md", "100644 A docs", "100644 M src/a.py", "100755 A src/run",
        "120000 A src/link",
    ]  # fmt: skip  # one table
    assert git(repo, "status", "--porcelain") == "" and (repo / "src/link").is_symlink()


def test_session_after_session_lands(repo, workspace, clone):
    for number in range(3):
        mark = workspace.begin_session()
        (clone / "src/a.py").write_text(f"a = {number + 5}\n")
        assert changed(workspace, mark) == {"src/a.py": "modified"}
        assert landed(workspace, f"Session {number}")
    assert git(repo, "log", "--format=%s").split("\n")[:3] == ["Session 2", "Session 1", "Session 0"]
    assert git(clone, "status", "--porcelain") in ("", " M src/a.py")


def test_the_first_commit_of_a_repository_lands_too(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch", "main")
    workspace = opened(repo)
    mark = workspace.begin_session()
    (workspace.clone.folder / "a.py").write_text("a\n")
    workspace.changed(mark)
    assert landed(workspace) and git(repo, "log", "--format=%s", "--name-status") == "Built\n\nA\ta.py"
    assert git(repo, "status", "--porcelain") == "" and (repo / "a.py").exists()
    assert workspace.changed(workspace.begin_session()) == SessionWork()


def test_a_detached_checkout_advances(repo, workspace, clone):
    git(repo, "checkout", "--quiet", "--detach")
    mark = workspace.begin_session()
    (clone / "src/a.py").write_text("a = 2\n")
    workspace.changed(mark)
    assert landed(workspace) == git(repo, "rev-parse", "HEAD") != git(repo, "rev-parse", "main")


def test_what_was_undone_does_not_land(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "src/a.py").write_text("a = 2\n")
    (clone / "README.md").write_text("mine\n")
    (clone / "new.txt").write_text("mine\n")
    workspace.changed(mark)
    workspace.undo(mark, ["README.md", "new.txt"])
    assert (clone / "README.md").read_text() == "# Sample\n" and not (clone / "new.txt").exists()
    landed(workspace)
    assert git(repo, "diff", "--name-only", "main~1", "main") == "src/a.py"


def test_what_git_cannot_hold_is_told_and_never_lands(repo, workspace, clone, monkeypatch):
    monkeypatch.setattr("ralph_mission.adapters.workspace.snapshot.LARGEST", 1000)
    mark = workspace.begin_session()
    os.mkfifo(clone / "src/pipe")
    (clone / "src/large").write_bytes(b"x" * 1001)
    (clone / "src/b.py").write_text("b\n")
    work = workspace.changed(mark)
    assert changed_by(work) == {"src/b.py": "created"}
    assert {one.path: one.reverted for one in work.foreign} == {
        "src/large": "it is too large, so that no commit can hold it",
        "src/pipe": "it is not a plain file, so that no commit can hold it",
    }
    assert workspace.since(mark) == NetChange(("src/b.py",))
    landed(workspace)
    assert git(repo, "diff", "--name-only", "main~1", "main") == "src/b.py"
    workspace.begin_session()
    assert sorted(os.listdir(clone / "src")) == ["a.py", "b.py"]


def test_more_than_fits_into_memory_lands_as_well(repo, workspace, clone, monkeypatch):
    monkeypatch.setattr(workplace, "IN_MEMORY", 10)
    mark = workspace.begin_session()
    for name in "bcd":
        (clone / f"src/{name}.py").write_text(f"{name} = 'twelve bytes'\n")
    workspace.changed(mark)
    landed(workspace)
    assert (repo / "src/d.py").read_text() == "d = 'twelve bytes'\n"


# --- what git ignores -----------------------------------------------------------------


def test_what_a_session_has_ignored_is_judged_and_does_not_land(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / ".gitignore").write_text("build/\nnode_modules/\n")
    (clone / "node_modules/x").mkdir(parents=True)
    (clone / "node_modules/x/index.js").write_text("x\n")
    assert changed(workspace, mark) == {".gitignore": "modified", "node_modules/x/index.js": "created"}
    landed(workspace)
    assert git(repo, "diff", "--name-only", "main~1", "main") == ".gitignore"
    mark = workspace.begin_session()
    assert (clone / "node_modules/x/index.js").exists() and workspace.changed(mark) == SessionWork()


@pytest.mark.parametrize(
    ("rules", "path", "hidden"),
    [
        ({".gitignore": "*.log\n!keep.log\n"}, "x.log", True),
        ({".gitignore": "*.log\n!keep.log\n"}, "src/keep.log", False),
        ({"src/.gitignore": "/out/\n"}, "src/out/x", True),
        ({"src/.gitignore": "/out/\n"}, "out/x", False),
        ({".gitignore": "out/*\n!out/kept\n"}, "out/kept", False),
        ({".gitignore": "out/*\n!out/kept\n"}, "out/other", True),
        ({".gitignore": "out/\n"}, "out", False),
        ({"src/.gitignore": "*\n"}, "src/deep/er/x", True),
        ({}, "a\nb.py", False),
    ],
)
def test_ignored_is_what_git_says(rules, path, hidden, repo, workspace, clone):
    commit(repo, {**rules, "src/x.txt": "x\n"})
    mark = workspace.begin_session()
    (clone / path).parent.mkdir(parents=True, exist_ok=True)
    (clone / path).write_text("x\n")
    assert (workspace.changed(mark) == SessionWork()) is hidden
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text("x\n")
    assert (git(repo, "status", "--porcelain") == "") is hidden


def test_a_path_that_nothing_may_have_is_undone_and_said(workspace, clone):
    mark = workspace.begin_session()
    (clone / "a:b.txt").write_text("x\n")
    work = workspace.changed(mark)
    assert work.changes == ()
    assert [(c.path, c.how, "colon" in c.reverted) for c in work.foreign] == [("a:b.txt", "created", True)]
    assert not (clone / "a:b.txt").exists() and landed(workspace) == ""


def test_a_folder_that_ignores_itself_is_a_tools_cache(workspace, clone):
    mark = workspace.begin_session()
    (clone / ".pytest_cache").mkdir()
    (clone / ".pytest_cache/.gitignore").write_text("# made by a tool\n*\n")
    (clone / ".pytest_cache/x").write_text("x\n")
    assert workspace.changed(mark) == SessionWork()


def test_the_users_own_rules_hold(repo, tmp_path, monkeypatch):
    (tmp_path / "home/.config/git").mkdir(parents=True)
    (tmp_path / "home/.config/git/ignore").write_text("*.swp\n")
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("local.txt\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    workspace = opened(repo)
    mark = workspace.begin_session()
    for name in ("x.swp", "local.txt"):
        (workspace.clone.folder / name).write_text("x\n")
    assert workspace.changed(mark) == SessionWork()


# --- the engine's lists ---------------------------------------------------------------

LISTS = ("prd.json", "progress.txt")


@pytest.mark.parametrize("lists", [True, False])
def test_lists_land_when_they_are_part_of_it(lists, repo, tmp_path):
    workspace = opened(repo, lists=LISTS)
    workspace.prepare()
    clone = workspace.clone.folder
    (clone / "prd.json").write_text("before\n")
    (repo / "prd.json").write_text("before\n")
    mark = workspace.begin_session()
    (clone / "prd.json").write_text("after\n")
    (clone / "src/b.py").write_text("b\n")
    assert changed(workspace, mark) == {"prd.json": "modified", "src/b.py": "created"}
    workspace.land("Built", lists)
    named = git(repo, "diff", "--name-only", "main~1", "main").split("\n")
    assert named == (["prd.json", "src/b.py"] if lists else ["src/b.py"])
    assert (repo / "prd.json").read_text() == "before\n"  # the desk takes it back
    assert git(repo, "status", "--porcelain") == (" M prd.json" if lists else "?? prd.json")


@pytest.mark.parametrize("place", ["prd.json", ".ralph/prd.json"])
def test_a_list_that_git_ignores_never_lands(place, repo):
    commit(repo, {".gitignore": "prd.json\n"})
    workspace = opened(repo, lists=(place,))
    workspace.prepare()
    listed = workspace.clone.folder / place
    listed.parent.mkdir(exist_ok=True)
    listed.write_text("before\n")
    mark = workspace.begin_session()
    listed.write_text("after\n")
    assert changed(workspace, mark) == {place: "modified"}
    assert workspace.land("Built", True) == ""


def test_what_the_engine_writes_into_a_list_after_the_session_is_what_lands(repo):
    workspace = opened(repo, "grep -q judged prd.json", lists=LISTS)
    mark = workspace.begin_session()
    listed = workspace.clone.folder / "prd.json"
    listed.write_text("claimed\n")
    workspace.changed(mark)
    listed.write_text("judged\n")
    assert workspace.verify().green and listed.read_text() == "judged\n"
    workspace.land("Built", True)
    assert git(repo, "show", "main:prd.json") == "judged"


# --- checks ---------------------------------------------------------------------------


def test_without_checks_nothing_was_proven(workspace):
    assert workspace.verify() == CheckResult()


@pytest.mark.parametrize(
    "damage",
    [
        "echo x > README.md", "rm run.sh", "rm -r docs", "ln -sf / docs/guide.md", "git rm -q README.md",
        "git commit -qam x --allow-empty", "rm -rf .git", "echo x > src/new.py && git add src/new.py",
        "mkdir src/inner && git init -q src/inner", "chmod +x README.md", "mkfifo src/pipe",
    ],
)  # fmt: skip  # one list
def test_what_a_check_does_is_undone_and_is_in_no_commit(damage, repo, clone):
    workspace = opened(repo, damage)
    mark = workspace.begin_session()
    (clone / "src/b.py").write_text("b\n")
    workspace.changed(mark)
    found = workspace.verify()
    assert found.green and (clone / "README.md").read_text() == "# Sample\n" and not (clone / "src/new.py").exists()
    assert all(change.reverted == "a check changed it" for change in found.undone)
    landed(workspace)
    assert git(repo, "diff", "--name-only", "main~1", "main") == "src/b.py"


def test_checks_run_on_what_was_judged_one_by_one_until_one_fails(repo, clone):
    workspace = opened(repo, "test -e src/b.py", "echo no; exit 3", "touch ../third")
    mark = workspace.begin_session()
    (clone / "src/b.py").write_text("b\n")
    workspace.changed(mark)
    (clone / "src/b.py").unlink()
    found = workspace.verify()
    assert (found.green, found.said) == (False, "echo no; exit 3: exit 3: no\nno") and not (
        clone.parent / "third"
    ).exists()


def test_a_check_before_any_session_sees_the_last_commit(repo, clone):
    assert opened(repo, "grep -q 'guide 2' docs/guide.md").verify().green


def test_what_builds_left_that_is_ignored_stays_after_a_check(repo, clone):
    workspace = opened(repo, "mkdir -p build && echo x > build/x")
    assert workspace.verify().undone == () and (clone / "build/x").exists()


# --- going on -------------------------------------------------------------------------


def test_what_a_session_left_that_died_is_a_patch_and_the_clone_is_as_the_branch(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "src/a.py").write_text("half\n")
    (clone / "docs/guide.md").unlink()
    (clone / "src/b.bin").write_bytes(bytes(range(256)))
    os.mkfifo(clone / "src/pipe")
    before = state(repo)
    told = opened(repo).set_aside(mark)
    [kept] = {change.reverted for change in told}
    assert [change.path for change in told] == ["docs/guide.md", "src/a.py", "src/b.bin", "src/pipe"]
    assert state(repo) == before
    patch = Path(kept.removeprefix("kept in "))
    git(repo, "apply", str(patch))
    assert (repo / "src/a.py").read_text() == "half\n" and (repo / "src/b.bin").read_bytes() == bytes(range(256))
    assert (clone / "src/a.py").read_text() == "a = 1\n" and not (clone / "src/pipe").exists()


def test_what_had_landed_when_a_session_died_is_not_set_aside(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "src/b.py").write_text("b\n")
    workspace.changed(mark)
    landed(workspace)
    commit(repo, {"README.md": "a person's\n"})
    (clone / "src/c.py").write_text("c\n")
    assert [change.path for change in opened(repo).set_aside(mark)] == ["src/c.py"]


@pytest.mark.parametrize("mark", ["0" * 40, "refs/ralph/mark/x", "empty"])
def test_a_mark_of_another_version_sets_nothing_aside(mark, repo, workspace):
    workspace.begin_session()
    assert opened(repo).set_aside(mark) == ()


def test_a_clone_that_is_gone_is_made_anew(repo, workspace, clone, tmp_path):
    mark = workspace.begin_session()
    clone.rename(tmp_path / "elsewhere")
    later = opened(repo)
    assert later.set_aside(mark) == ()
    later.begin_session()
    assert git(clone, "status", "--porcelain") == "" and (clone / "run.sh").exists()


def test_what_a_person_commits_between_two_sessions_is_there_for_the_next(repo, workspace, clone):
    workspace.begin_session()
    commit(repo, {"src/theirs.py": "x\n", "README.md": None})
    mark = workspace.begin_session()
    assert (clone / "src/theirs.py").exists() and not (clone / "README.md").exists()
    assert workspace.changed(mark) == SessionWork() and git(clone, "status", "--porcelain") == ""


def test_a_branch_that_is_gone_ends_the_run(repo, workspace):
    workspace.begin_session()
    git(repo, "checkout", "--quiet", "--detach")
    git(repo, "branch", "--quiet", "-D", "main")
    with pytest.raises(UserError, match="refs/heads/main no longer exists"):
        workspace.begin_session()


def test_objects_that_are_gone_end_the_run_and_say_what_to_do(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "README.md").unlink()
    workspace.changed(mark)
    oid = git(repo, "rev-parse", "HEAD:README.md")
    (repo / ".git/objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(UserError, match=r"README.md cannot be put back.*has lost") as error:
        workspace.undo(mark, ["README.md"])
    assert "git fsck" in error.value.next_step


# --- where a repository is not plain --------------------------------------------------


def test_a_submodule_is_there_as_files_and_what_is_done_to_it_does_not_land(repo, tmp_path, clone):
    inner = make_repo(tmp_path / "inner", {"x.py": "x\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "vendor/inner")
    commit(repo, {}, message="Submodule")
    workspace = opened(repo)
    mark = workspace.begin_session()
    assert (clone / "vendor/inner/x.py").read_text() == "x\n" and not (clone / "vendor/inner/.git").exists()
    (clone / "vendor/inner/x.py").write_text("mine\n")
    (clone / "src/b.py").write_text("b\n")
    assert changed(workspace, mark) == {"src/b.py": "created"}
    landed(workspace)
    assert git(repo, "status", "--porcelain") == "" and (repo / "vendor/inner/x.py").read_text() == "x\n"
    assert "160000 commit" in git(repo, "ls-tree", "-r", "main")


def test_a_linked_work_tree_has_a_clone_of_its_own(repo, tmp_path):
    linked = tmp_path / "more/linked"
    git(repo, "worktree", "add", "--quiet", str(linked), "other")
    workspace = opened(linked)
    mark = workspace.begin_session()
    (workspace.clone.folder / "src/b.py").write_text("b\n")
    workspace.changed(mark)
    landed(workspace)
    assert git(repo, "log", "-1", "--format=%s", "other") == "Built" and (linked / "src/b.py").exists()
    assert git(linked, "status", "--porcelain") == "" and git(repo, "status", "--porcelain") == ""


def test_a_repository_of_long_ids_is_worked_in_as_any(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch", "main", "--object-format=sha256")
    commit(repo, {"a.py": "a\n"})
    workspace = opened(repo)
    mark = workspace.begin_session()
    clone = workspace.clone.folder
    (clone / "a.py").write_text("b\n")
    by(clone, "commit", "--quiet", "--all", "--message", "Mine")
    assert workspace.changed(mark).messages == ("Mine",)
    assert landed(workspace) and git(repo, "status", "--porcelain") == "" and (repo / "a.py").read_text() == "b\n"


def test_line_ends_land_as_the_session_wrote_them(repo, workspace, clone):
    commit(repo, {".gitattributes": "*.txt text eol=lf\n"})
    mark = workspace.begin_session()
    (clone / "x.bin").write_bytes(b"one\r\ntwo\n")
    workspace.changed(mark)
    landed(workspace)
    assert (repo / "x.bin").read_bytes() == b"one\r\ntwo\n"


def test_what_configures_agents_goes_though_it_is_ignored(repo, clone):
    commit(repo, {".gitignore": ".claude/*.local.json\n.mcp.json\n", ".claude/settings.json": "{}"})
    (theirs := repo.parent / "theirs").mkdir()
    workspace = opened(repo, no_agent_settings=True)
    workspace.begin_session()
    (clone / ".claude/x.local.json").write_text("{}")
    (clone / ".mcp.json").symlink_to(theirs)
    workspace.begin_session()
    assert os.listdir(clone / ".claude") == ["settings.json"] and theirs.is_dir()
    assert not (clone / ".mcp.json").is_symlink()
    own = opened(repo)
    own.begin_session()
    (clone / ".claude/x.local.json").write_text("{}")
    own.begin_session()
    assert (clone / ".claude/x.local.json").exists()


def test_sessions_share_the_engines_folder_by_links(repo, workspace, clone):
    workspace.begin_session()
    ours = repo.parent / "ours"
    assert (clone / ".ralph/agent").readlink() == ours / "agent"
    (clone / ".ralph/agent").unlink()
    (clone / ".ralph/agent").mkdir()
    workspace.begin_session()
    assert (clone / ".ralph/agent").readlink() == ours / "agent"


def test_the_tree_tells_branch_head_and_commits(repo, workspace):
    tree = workspace.tree()
    assert (tree.branch, tree.head, tree.dirty) == ("main", git(repo, "rev-parse", "HEAD"), False)
    assert [one.message for one in tree.commits] == ["Second", "Start"]
    assert workspace.landed(tree.head) and not workspace.landed("x") and not workspace.landed("0" * 40)


def test_a_tree_that_git_cannot_read_is_told_as_such(repo, workspace):
    (repo / ".git/HEAD").write_text("nonsense")
    assert not workspace.tree().readable


# --- what is remembered ---------------------------------------------------------------


def wait_until_settled(place: Path) -> None:
    """Until a further change of it certainly gets another time."""
    changed = place.stat().st_ctime_ns
    fresh = snapshot.FRESH if changed % 10**9 else snapshot.FRESH_COARSE
    until(lambda: time.time_ns() > changed + fresh)


def test_a_content_that_keeps_size_and_time_is_seen(workspace, clone):
    mark = workspace.begin_session()
    place = clone / "src/a.py"
    wait_until_settled(place)
    workspace.changed(mark)
    before = place.stat()
    place.write_text("a = 9\n")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed(workspace, mark) == {"src/a.py": "modified"}


def test_a_name_that_keeps_its_folders_time_is_seen(workspace, clone):
    mark = workspace.begin_session()
    wait_until_settled(clone / "src")
    workspace.changed(mark)
    before = (clone / "src").stat()
    (clone / "src/new.py").write_text("x\n")
    os.utime(clone / "src", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed(workspace, mark) == {"src/new.py": "created"}


def test_the_index_of_a_session_knows_the_times_of_the_files(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "src/a.py").write_text("a = 2\n")
    by(clone, *WHO, "commit", "--quiet", "--all", "--message", "Mine")
    workspace.changed(mark)
    landed(workspace)
    workspace.begin_session()
    assert git(clone, "diff-files", "--name-only").split() in ([], ["src/a.py"])


# --- hostile sessions ---

WRITES = """
import pathlib
while True:
    pathlib.Path("src/b.py").write_text("evil = 1\\n")
    pathlib.Path("src/c.py").write_text("evil = 1\\n")
"""


@pytest.mark.attack(41)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_a_session_does_never_reaches_the_checkout(way, repo, workspace, clone, tmp_path):
    before = state(repo)
    mark = workspace.begin_session()
    way(clone)
    (clone / "src/b.py").write_text("b = 1\n")
    work, told = after(workspace, mark)
    assert WAYS[way] <= told and "src/b.py" not in told
    assert "src/b.py" in {change.path for change in work.changes}
    assert all(change.path.startswith("src/") for change in work.changes)
    assert state(repo) == before
    assert workspace.land("Built", lists=True)
    touched = git(repo, "diff", "--name-only", "main~1", "main").split("\n")
    assert "src/b.py" in touched and all(path.startswith("src/") for path in touched)
    now = state(repo)
    same = ("obeyed", "config", "head", "dirty")
    assert {key: now[key] for key in same} == {key: before[key] for key in same}
    assert [ref for ref in now["refs"] if "/main " not in ref] == [ref for ref in before["refs"] if "/main " not in ref]
    assert not {"hooked", "monitored", "filtered"} & set(os.listdir(tmp_path))
    workspace.begin_session()  # the next session begins as if nothing had been
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "log", "--format=%s") == git(repo, "log", "--format=%s")
    assert git(clone, "show-ref") == git(repo, "show-ref")
    assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/main" and not (clone / ".git/hooks").exists()


@pytest.mark.long  # every way again, for a session that died
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_later_process_finds_what_a_session_left_that_died(way, repo, workspace, clone):
    before = state(repo)
    mark = workspace.begin_session()
    way(clone)
    (clone / "src/b.py").write_text("b = 1\n")
    later = opened(repo)
    told = {change.path: change.reverted for change in later.set_aside(mark)}
    assert "src/b.py" in told and state(repo) == before
    later.begin_session()
    assert git(clone, "status", "--porcelain") == "" and not (clone / "src/b.py").exists()


@pytest.mark.attack(46)
def test_a_program_that_outlives_its_session_writes_in_the_clone_alone(repo, workspace, clone):
    mark = workspace.begin_session()
    (clone / "src/b.py").write_text("b = 1\n")
    (clone / "src/c.py").write_text("c = 1\n")
    work = workspace.changed(mark)
    process = subprocess.Popen([sys.executable, "-c", WRITES], cwd=clone)
    try:
        until(lambda: (clone / "src/b.py").read_text() == "evil = 1\n")
        assert {change.path for change in work.changes} == {"src/b.py", "src/c.py"}
        workspace.land("Built", lists=True)
    finally:
        process.kill()
        process.wait()
    assert (repo / "src/b.py").read_text() == "b = 1\n" and (repo / "src/c.py").read_text() == "c = 1\n"
    assert git(repo, "status", "--porcelain") == ""


def test_nothing_beyond_a_link_is_touched(repo, workspace, clone, tmp_path):
    mark = workspace.begin_session()
    folder_symlinked(clone)
    after(workspace, mark)
    assert (tmp_path / "elsewhere/guide.md").read_text() == "beyond the link\n"
    assert not (clone / "docs").is_symlink() and (clone / "docs/guide.md").read_text() == "guide 2\n"


def test_a_repository_beyond_a_link_is_left_alone(workspace, clone, tmp_path):
    mark = workspace.begin_session()
    make_repo(tmp_path / "elsewhere", {"y.md": "y\n"})
    (clone / "linked").symlink_to(tmp_path / "elsewhere")
    _, told = after(workspace, mark)
    assert told == {"linked"} and (tmp_path / "elsewhere/.git").is_dir() and not (clone / "linked").is_symlink()


def test_a_link_for_the_clone_itself_gives_way(repo, workspace, clone, tmp_path):
    workspace.begin_session()
    clone.rename(tmp_path / "moved")
    clone.symlink_to(repo)
    before = state(repo)
    opened(repo).begin_session()
    assert not clone.is_symlink() and (clone / "run.sh").exists() and state(repo) == before


def test_no_hook_of_the_user_runs_when_it_lands(repo, workspace, clone, tmp_path):
    hook(repo)
    mark = workspace.begin_session()
    (clone / "src/b.py").write_text("b = 1\n")
    workspace.changed(mark)
    workspace.land("Built", lists=True)
    assert not (tmp_path / "hooked").exists() and (repo / "src/b.py").exists()


def test_a_session_has_no_remote_no_credential_and_no_setting_of_the_user(repo, workspace, clone):
    git(repo, "remote", "add", "origin", "https://mara:secret@example.invalid/x.git")
    git(repo, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(repo, "config", "alias.x", "!touch ran")
    workspace.begin_session()
    assert git(clone, "remote") == "" and "secret" not in (clone / ".git/config").read_text()
    assert "remotes" not in git(clone, "for-each-ref") and "alias" not in (clone / ".git/config").read_text()


def test_two_histories_that_a_session_makes_of_one_land_as_one_commit(repo, workspace, clone):
    mark = workspace.begin_session()
    for number in (1, 2):
        (clone / "src/b.py").write_text(f"b = {number}\n")
        by(clone, "add", ".")
        by(clone, "commit", "--quiet", "--message", f"Step {number}")
    work = workspace.changed(mark)
    assert work.messages == ("Step 1", "Step 2")
    workspace.land("\n\n".join(work.messages), lists=True)
    assert git(repo, "log", "--format=%an: %s", "main~1..main") == "Mara: Step 1"


@pytest.mark.parametrize("base", ["", "HEAD~1"], ids=["no parent", "another base"])
def test_messages_of_another_history_are_read_no_further_than_their_bounds(base, repo, workspace, clone):
    mark = workspace.begin_session()
    tree = git(clone, "rev-parse", "HEAD^{tree}")
    tip = ""
    for number in range(30):
        parents = ("-p", tip) if tip else (("-p", base) if base else ())
        tip = git(clone, *WHO, "commit-tree", tree, *parents, "-m", f"Step {number}")
    git(clone, "update-ref", "refs/heads/main", tip)
    assert len(workspace.changed(mark).messages) <= 20


@pytest.mark.parametrize("content", [b"", b"ref: ../../../x\n", b"ref: refs/heads/none\n", b"\xff" * 10_000, b"0" * 40])
def test_a_head_that_names_nothing_gives_no_messages(content, workspace, clone):
    mark = workspace.begin_session()
    (clone / ".git/HEAD").write_bytes(content)
    assert workspace.changed(mark).messages == ()


def test_what_was_ignored_when_the_session_began_stays_for_the_next(repo, workspace: Workspace, clone: Path) -> None:
    mark = workspace.begin_session()
    (clone / "build").mkdir()
    (clone / "build/x.o").write_text("object\n")
    (clone / "src/b.py").write_text("b = 1\n")
    workspace.changed(mark)
    workspace.land("Built", lists=True)
    workspace.begin_session()
    assert (clone / "build/x.o").read_text() == "object\n" and not (repo / "build").exists()
    assert FILES[".gitignore"] == "build/\n"


def test_a_check_that_ran_no_test_is_red(repo: Path) -> None:
    found = opened(repo, "echo collected 0 items").verify()
    assert not found.green and "ran no test" in found.said


KEY = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def test_a_file_that_would_bring_a_credential_into_a_commit_is_put_back(repo: Path, workspace, clone: Path) -> None:
    mark = workspace.begin_session()
    (clone / "src/a.py").write_text(f"token = '{KEY}'\n")
    (clone / "src/new.py").write_text(f"a = 1\ntoken = '{KEY}'\n")
    (clone / "src/fine.py").write_text("b = 1\n")
    work = workspace.changed(mark)
    assert changed_by(work) == {"src/fine.py": "created"}
    assert {one.path: one.reverted for one in work.foreign} == dict.fromkeys(
        ("src/a.py", "src/new.py"), "it holds a secret (github-token)"
    )
    workspace.land("Built", True)
    assert KEY not in git(repo, "log", "-p", "--all") and (repo / "src/fine.py").exists()


def test_a_credential_that_stood_there_before_stops_no_change_beside_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"src/a.py": f"token = '{KEY}'\n"})
    workspace = opened(repo)
    mark = workspace.begin_session()
    (workspace.clone.folder / "src/a.py").write_text(f"token = '{KEY}'\nb = 1\n")
    assert changed_by(workspace.changed(mark)) == {"src/a.py": "modified"}


def leaking(repo: Path, files: dict[str, str | bytes | None]) -> tuple[Workspace, SessionWork]:
    """What is judged of a session that writes these files, or removes them."""
    workspace = opened(repo)
    mark = workspace.begin_session()
    for path, content in files.items():
        where = workspace.clone.folder / path
        if content is None:
            where.unlink()
        else:
            where.write_bytes(content if isinstance(content, bytes) else content.encode())
    return workspace, workspace.changed(mark)


FIXTURE = f"first\nsecond\ntoken = '{KEY}'\n"


@pytest.mark.parametrize(
    "files",
    [
        {"src/b.py": FIXTURE, "src/a.py": None},
        {"src/a.py": f"def test_a():\n    token = '{KEY}'\n"},
        {"src/b.py": f"copied = '{KEY}'\n"},
    ],
    ids=["renamed", "on an edited line", "copied"],
)
def test_a_secret_that_the_last_commit_holds_anywhere_is_not_new(tmp_path: Path, files: dict[str, str | None]) -> None:
    _, work = leaking(make_repo(tmp_path / "repo", {"src/a.py": FIXTURE}), dict(files))
    assert work.foreign == () and set(changed_by(work)) == set(files)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("src/b.py", b"x = 1  # pad\n" * 80_000 + f"token = '{KEY}'\n".encode()),
        ("src/b.bin", f"\0\ntoken={KEY}\n".encode()),
        ("src/b.txt", f"token={KEY}\n".encode("utf-16")),
        (f"src/{KEY}.txt", b"x\n"),
    ],
    ids=["far down", "after a NUL", "UTF-16", "in a name"],
)
def test_a_new_secret_is_found_wherever_it_hides(repo: Path, path: str, content: bytes) -> None:
    _, work = leaking(repo, {path: content})
    assert [(one.path, one.reverted) for one in work.foreign] == [(path, "it holds a secret (github-token)")]


def test_what_was_moved_and_is_put_back_comes_back_under_its_old_name(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"src/a.py": "first\nsecond\nthird\n", "src/c.py": "other\n"})
    files = {"src/b.py": f"first\nsecond\nthird\ntoken = '{KEY}'\n", "src/a.py": None, "src/c.py": None}
    workspace, work = leaking(repo, dict(files))
    assert changed_by(work) == {"src/c.py": "deleted"} and {one.path for one in work.foreign} == {
        "src/a.py",
        "src/b.py",
    }
    workspace.land("Built", True)
    assert git(repo, "ls-files", "src") == "src/a.py"


def test_a_change_that_was_taken_back_is_none_since_the_run_began(repo: Path, workspace, clone: Path) -> None:
    first = workspace.begin_session()
    old = (clone / "src/a.py").read_text()
    (clone / "src/a.py").write_text("changed\n")
    workspace.changed(first)
    assert workspace.since(first).paths == ("src/a.py",)
    workspace.land("One", True)
    second = workspace.begin_session()
    assert workspace.since(first).paths == ("src/a.py",) and workspace.since(second) == NetChange()
    (clone / "src/a.py").write_text(old)
    workspace.changed(second)
    assert workspace.since(first) == NetChange() and workspace.since(second).paths == ("src/a.py",)


def test_tests_of_a_change_are_those_that_stand_and_files_that_a_check_names(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"tests/test_a.py": "def test_a():\n    assert f()\n", "check.sh": "true\n"})
    workspace = opened(repo, "sh ./check.sh --all")
    mark = workspace.begin_session()
    folder = workspace.clone.folder
    (folder / "tests/test_a.py").unlink()
    (folder / "tests/README.md").write_text("assert\n")
    (folder / "tests/test_b.py").write_text("def test_b():\n    assert f()\n")
    (folder / "check.sh").write_text("test -s a.py\n")
    workspace.changed(mark)
    assert workspace.since(mark) == NetChange(
        ("check.sh", "tests/README.md", "tests/test_a.py", "tests/test_b.py"), ("check.sh", "tests/test_b.py")
    )


def test_what_git_is_told_to_ignore_is_not_committed_by_force(repo: Path, workspace, clone: Path) -> None:
    mark = workspace.begin_session()
    (clone / "build").mkdir()
    (clone / "build/out.txt").write_text("x")
    git(clone, "add", "--force", "build/out.txt")
    git(clone, *WHO, "commit", "--quiet", "--message", "By force")
    assert changed_by(workspace.changed(mark)) == {}


def changed_by(work: SessionWork) -> dict[str, str]:
    return {change.path: change.how for change in work.changes}


def test_what_a_set_up_made_is_no_change_until_a_session_edits_the_file(repo, clone):
    workspace = opened(repo, "grep -q 2 made.py")
    workspace.begin_session()
    (clone / "lib/x").mkdir(parents=True)
    (clone / "lib/x/y.py").write_text("1\n")
    (clone / "made.py").write_text("1\n")
    workspace.exclude(("lib", "made.py"))
    mark = workspace.begin_session()
    assert git(clone, "status", "--porcelain") == ""
    assert (workspace.changed(mark).changes, (clone / "lib/x/y.py").exists()) == ((), True)
    mark = workspace.begin_session()
    (clone / "made.py").write_text("2\n")
    assert [change.path for change in workspace.changed(mark).changes] == ["made.py"]
    assert workspace.verify().green
    assert git(repo, "show", f"{workspace.land('Edit it', False)}:made.py") == "2"
