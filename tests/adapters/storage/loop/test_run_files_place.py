"""Where a session made a link of a folder, nothing that it leads to is moved, written or removed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import ralph_mission
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.loop import archive, events, inbox, lock, state
from ralph_mission.adapters.storage.loop import run_files as place_place
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.notes import Memories, ProgressLog
from ralph_mission.adapters.storage.loop.run_files import PUT_BACK
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.adapters.storage.loop.state import FileArtifactStore
from ralph_mission.adapters.storage.loop.stories import CopiedLists, Stories
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.app import hosting
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import HatOutput, PathChange
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STANDING, STORIES, Make

SECRET = "CANARY-of-somebody-else"
BOTH = ("prd.json", "progress.txt")
LINK = PathChange("scripts/ralph", "made a link", PUT_BACK)

# --- a folder of people's that a session made a link out of the work tree --------------


def led_out(root: Path, folder: str, *names: str) -> Path:
    """Somebody's folder with files of these names, to which a session has `folder` lead."""
    theirs = root.parent / "theirs"
    theirs.mkdir()
    for name in names:
        (theirs / name).write_text(SECRET)
    shutil.rmtree(root / folder)
    (root / folder).symlink_to(theirs)
    return theirs


def untouched(theirs: Path, *names: str) -> bool:
    return {path.name: path.read_text() for path in theirs.iterdir()} == dict.fromkeys(names, SECRET)


@pytest.mark.attack(46)
@pytest.mark.parametrize("folder", ["scripts/ralph", ".omc", "docs"])
def test_a_link_in_the_place_of_the_lists_folder_has_nothing_moved_or_written_elsewhere(
    tmp_path: Path, folder: str
) -> None:
    (place := (root := tmp_path / "work") / folder).mkdir(parents=True)
    (place / "prd.json").write_text(json.dumps(PRD))
    stories = Stories(root, place / "prd.json" if folder == "docs" else None)
    (log := ProgressLog(place, root)).begin(NOON)
    assert stories.read() and log.read() is not None
    theirs = led_out(root, folder, *BOTH)
    told = [(change.path, change.how) for change in (*stories.restore(), *log.restore())]
    assert told[0] == (folder, "made a link") and untouched(theirs, *BOTH)
    assert told[1:] == [(f"{folder}/{name}", "deleted") for name in BOTH]
    assert json.loads((place / "prd.json").read_text()) == PRD and not place.is_symlink()
    assert not (root / ".ralph/loop/prd.broken.json").exists()


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_logs_folder_has_nothing_written_elsewhere(tmp_path: Path) -> None:
    (place := (root := tmp_path / "work") / "scripts/ralph").mkdir(parents=True)
    (log := ProgressLog(place, root)).begin(NOON)
    log.read()
    theirs = led_out(root, "scripts/ralph", *BOTH)
    assert [change.path for change in log.restore()] == ["scripts/ralph", "scripts/ralph/progress.txt"]
    assert untouched(theirs, *BOTH) and (place / "progress.txt").is_file()


@pytest.mark.attack(46)
@pytest.mark.parametrize("names", [(), BOTH])
def test_a_verdict_and_a_new_log_are_written_in_the_work_tree_whatever_a_check_made_of_the_folder(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    (place := (root := tmp_path / "work") / "scripts/ralph").mkdir(parents=True)
    (place / "prd.json").write_text(json.dumps(PRD))
    prd = (stories := Stories(root)).read()
    theirs = led_out(root, "scripts/ralph", *names)
    assert prd is not None
    told = stories.write(prd)
    assert untouched(theirs, *names) and (place / "prd.json").is_file() and not place.is_symlink()
    shutil.rmtree(theirs)
    theirs = led_out(root, "scripts/ralph", *names)
    assert told == ProgressLog(place, root).append("## an entry\n", NOON) == (LINK,)
    assert untouched(theirs, *names) and (place / "progress.txt").is_file() and not place.is_symlink()


@pytest.mark.attack(46)
def test_lists_are_put_into_a_clone_by_no_link(tmp_path: Path) -> None:
    (home := tmp_path / "shop/scripts/ralph").mkdir(parents=True)
    for name in BOTH:
        (home / name).write_text("ours")
    carried = CopiedLists(tmp_path / "shop", root := tmp_path / "work")
    carried.bring()
    theirs = led_out(root, "scripts/ralph", *BOTH)
    carried.take_back()
    assert [(home / name).read_text() for name in BOTH] == ["ours", "ours"]
    assert len(carried.put_back(tmp_path / "shop/.ralph/loop/runs/one", lambda _: False)) == 2
    assert untouched(theirs, *BOTH) and [(root / "scripts/ralph" / name).read_text() for name in BOTH] == ["ours"] * 2


@pytest.mark.attack(46)
@pytest.mark.parametrize("folder", [".omc", ".omc/state"])
def test_what_another_tool_is_told_stays_in_the_work_tree(tmp_path: Path, folder: str) -> None:
    (root := tmp_path / "work").joinpath(folder).mkdir(parents=True)
    theirs = led_out(root, folder)
    lock.brief(root, "the prompt")
    assert untouched(theirs) and (root / ".omc/state/iteration-prompt.txt").read_text() == "the prompt"


def test_what_a_check_made_a_link_is_told_a_person(store_at: Make, root: Path) -> None:
    (place := root / "scripts/ralph").mkdir(parents=True)
    (place / "prd.json").write_text(json.dumps(PRD))
    with (store := store_at()).exclusive(STORIES):
        store.keep(store.open(STORIES, NOON), None)
        prd = store.snapshot().prd
        assert prd is not None
        theirs = led_out(root, "scripts/ralph", *BOTH)
        store.stories(prd)
        assert store.complaints == ["scripts/ralph was made a link; put back"] and untouched(theirs, *BOTH)
        shutil.rmtree(theirs)
        theirs = led_out(root, "scripts/ralph", *BOTH)
        store.note("## an entry\n")
    assert len(store.complaints) == 2 and untouched(theirs, *BOTH)


# --- a person's own link ---------------------------------------------------------------


@pytest.mark.parametrize("link", [".omc", ".omc/state"])
def test_a_link_of_a_persons_stays_where_no_stories_are_told(store_at: Make, root: Path, link: str) -> None:
    (theirs := root.parent / "theirs").mkdir()
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(theirs)
    (root / ".omc/prd.json").write_text(json.dumps(PRD))
    left = {path.name: path.read_bytes() for path in theirs.iterdir()}
    with (store := store_at()).exclusive(FREE):
        now = store.open(FREE, NOON)
        store.snapshot()
        store.brief("do it")
        assert store.restore() == ()
        store.keep(now, HatOutput("ralph", 1))
    assert (root / link).is_symlink() and {path.name: path.read_bytes() for path in theirs.iterdir()} == left


@pytest.mark.parametrize("folder", ["scripts/ralph", ".omc", "docs"])
def test_stories_that_a_link_of_a_persons_leads_to_are_refused_before_a_session(
    store_at: Make, root: Path, folder: str
) -> None:
    (theirs := root.parent / "theirs").mkdir()
    (theirs / "prd.json").write_text(json.dumps(PRD))
    (place := root / folder).parent.mkdir(exist_ok=True)
    place.symlink_to(theirs)
    named = place / "prd.json" if folder == "docs" else None
    store = FileRunStore(root, root / ".git", lambda: STANDING, lambda: NOON, prd=named)
    with pytest.raises(UserError, match=re.escape(f"{place} leads out of the work tree")), store.exclusive(STORIES):
        pass
    assert place.is_symlink() and [path.name for path in theirs.iterdir()] == ["prd.json"]


def test_a_log_that_a_link_of_a_persons_leads_to_has_nothing_put_back(tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    (theirs / "progress.txt").write_text("theirs")
    (tmp_path / "work/scripts").mkdir(parents=True)
    (link := tmp_path / "work/scripts/ralph").symlink_to(theirs)
    (log := ProgressLog(link, tmp_path / "work")).read()
    assert log.restore() == () and link.is_symlink() and (theirs / "progress.txt").read_text() == "theirs"


def test_an_archive_that_is_a_link_is_for_a_person_to_look_at(tmp_path: Path) -> None:
    (half := tmp_path / "theirs" / f"{archive.HALF}abcd_123").mkdir(parents=True)
    (tmp_path / "archive").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="archive"):
        archive.archive_stories(tmp_path, "ralph/one", "{}", "", NOON)
    assert list((tmp_path / "theirs").iterdir()) == [half]


# --- folders of ours -------------------------------------------------------------------


@pytest.mark.attack(46)
@pytest.mark.parametrize("name", place_place.FOLDERS)
def test_a_link_in_the_place_of_a_folder_of_ours_is_taken_away_and_told(store_at: Make, root: Path, name: str) -> None:
    (theirs := root.parent / "theirs").mkdir()
    with (store := store_at()).exclusive(FREE):
        store.keep(store.open(FREE, NOON), None)
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(theirs)
        assert name in [change.path for change in store.restore()]
    assert not (root / name).is_symlink() and list(theirs.iterdir()) == []


def test_every_folder_below_ralphs_own_is_known() -> None:
    product = "".join(path.read_text() for path in Path(ralph_mission.__file__).parent.rglob("*.py"))
    named = {f".ralph/{name}" for name in re.findall(r'state_dir / "([a-z]+)"', product)}
    assert {".ralph/cycles", ".ralph/cache"} <= named <= set(place_place.FOLDERS)
    assert {".ralph/missions", ".ralph/work"} <= set(place_place.FOLDERS)


@pytest.mark.attack(46)
@pytest.mark.parametrize("linked", [".ralph", ".ralph/missions", ""])
def test_clones_that_nobody_needs_any_more_are_removed_behind_no_link(root: Path, linked: str) -> None:
    (theirs := root.parent / "theirs/missions").mkdir(parents=True)
    if linked:
        (root / linked).parent.mkdir(exist_ok=True)
        (root / linked).symlink_to(theirs if "/" in linked else theirs.parent)
    else:
        theirs.parent.rename(root / ".ralph")
    hosting.abandon_clones(Git.open(root), {})
    assert theirs.is_dir() == (root / ".ralph/missions").is_dir() == bool(linked)


# --- Whatever a session puts in the place of a file that is read, nothing that it leads to is read, kept or copied. ---

MEMORY = f"## Patterns\n\n### mem-1737372000-a1b2\n> {SECRET}\n<!-- tags: x | created: 2026-05-04 -->\n"
LOG = f"## Codebase Patterns\n- {SECRET}\n\n---\n"
LIST = json.dumps(PRD | {"project": SECRET})
LEFT = json.dumps({"original_prompt": SECRET, "iteration": 1})
SAID = json.dumps({"topic": "build.done", "payload": SECRET, "id": "x", "title": SECRET, "text": SECRET})
READERS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "memories": (".ralph/agent/memories.md", lambda root: Memories(root / ".ralph").all(), MEMORY),
    "tasks": (".ralph/agent/tasks.jsonl", lambda root: Tasks(root / ".ralph").all(), SAID),
    "said": (".ralph/agent/said.jsonl", lambda root: events.read_events(root / ".ralph"), SAID),
    "guidance": (".ralph/loop/guidance.jsonl", lambda root: Guide(root / ".ralph").all(), SAID),
    "signal": (".ralph/loop/signal", lambda root: inbox.read(root / ".ralph"), "stop"),
    "papers": (".ralph/plan.md", lambda root: FileArtifactStore(root / ".ralph").read("plan.md"), SECRET),
    "state": (".ralph/loop/state.json", state.load, SECRET),
    "progress": ("progress.txt", lambda root: (ProgressLog(root).read(), ProgressLog(root).text()), LOG),
    "agents.md": ("AGENTS.md", lambda root: ProgressLog(root).read(), LOG),
    "claude.md": ("CLAUDE.md", lambda root: ProgressLog(root).read(), LOG),
    "stories": ("prd.json", lambda root: Stories(root).read(), LIST),
    "named stories": ("list/prd.json", lambda root: Stories(root, root / "list/prd.json").read(), LIST),
    "last branch": (".last-branch", archive.last_branch, SECRET),
    "handoff": (".omc/state/ralph-fresh-handoff.json", lock.left_by_others, LEFT),
}  # fmt: skip  # one table
WAYS = ("link", "folder", "second name")


def lead(root: Path, name: str, text: str, way: str) -> None:
    """Have `name` in `root` lead to a file elsewhere that holds `text`."""
    place, theirs = root / name, root.parent / "theirs" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text(text)
    if way == "folder" and place.parent != root:
        place.parent.parent.mkdir(parents=True, exist_ok=True)
        place.parent.symlink_to(theirs.parent)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        (os.link if way == "second name" else os.symlink)(theirs, place)


def outcome(read: Callable[[Path], object], root: Path) -> str:
    try:
        return repr(read(root))
    except UserError as problem:
        return repr(problem)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", READERS)
def test_nothing_is_read_by_a_link(tmp_path: Path, name: str, way: str) -> None:
    path, read, text = READERS[name]
    (root := tmp_path / "work").mkdir()
    lead(root, path, text, way)
    told = outcome(read, root)
    assert SECRET not in told and "stop" not in told


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_its_own_is_read(tmp_path: Path, name: str) -> None:
    path, read, text = READERS[name]
    (root := tmp_path / "work").mkdir()
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    if name != "state":
        assert SECRET in (told := outcome(read, root)) or told == repr("stop")


def test_links_within_the_work_tree_are_peoples_own_but_for_gits_folder(tmp_path: Path) -> None:
    for folder in ("docs", ".git"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "guide").write_text(LOG)
    (tmp_path / "AGENTS.md").symlink_to("docs/guide")
    assert ProgressLog(tmp_path).read().patterns == (SECRET,)
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").symlink_to(".git/guide")
    assert ProgressLog(tmp_path).read().patterns == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what belongs to others")
def test_a_file_of_another_user_is_read_where_everybody_may_read_it(tmp_path: Path) -> None:
    (place := tmp_path / ".ralph/agent/memories.md").parent.mkdir(parents=True)
    place.write_text(MEMORY)
    os.chown(place, 12345, 12345)
    assert Memories(tmp_path / ".ralph").all()
    place.chmod(0o600)
    assert SECRET not in outcome(lambda root: Memories(root / ".ralph").all(), tmp_path)
    os.chown(place.parent, 12345, 12345)  # a session's folder with a session's file
    assert Memories(tmp_path / ".ralph").all()


@pytest.mark.parametrize("way", WAYS)
def test_a_desk_tells_no_session_what_a_link_leads_to_and_takes_it_away(store_at: Make, root: Path, way: str) -> None:
    store = store_at()
    with store.exclusive(FREE):
        now = store.open(FREE, NOON)
        Memories(root / ".ralph").add("ours")
        (root / ".ralph/agent/scratchpad.md").write_text("notes")
        before = store.snapshot()
        store.keep(now, None)
        shutil.rmtree(root / ".ralph/agent")
        theirs = root.parent / "theirs"
        theirs.mkdir()
        texts = {"memories.md": MEMORY, "tasks.jsonl": SAID, "scratchpad.md": SECRET, "said.jsonl": SAID}
        for name, text in texts.items():
            (theirs / name).write_text(text)
        if way == "folder":
            (root / ".ralph/agent").symlink_to(theirs)
        else:
            (root / ".ralph/agent").mkdir()
            for name in texts:
                (os.link if way == "second name" else os.symlink)(theirs / name, root / ".ralph/agent" / name)
        assert SECRET not in str(store.snapshot())
        mended = store.restore()
        told = (*store.read_events(), store.snapshot(), *map(asdict, mended))
        assert SECRET not in str(told) and store.snapshot().memories == before.memories
        store.keep(now, HatOutput("ralph", 1))
    assert any("link" in change.how or "no file of its own" in change.how for change in mended)
    assert {name: (theirs / name).read_text() for name in texts} == texts
    assert all(
        SECRET not in path.read_text()
        for path in (root / ".ralph").rglob("*")
        if path.is_file() and path.stat().st_nlink == 1
    )


@pytest.mark.parametrize("name", ["prd.json", "progress.txt"])
def test_no_copy_is_kept_of_what_a_link_leads_to(store_at: Make, root: Path, name: str) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    with (store := store_at()).exclusive(STORIES):
        now = store.open(STORIES, NOON)
        store.snapshot()
        (root / name).unlink(missing_ok=True)
        (root.parent / "theirs").write_text(LIST if name == "prd.json" else LOG)
        (root / name).symlink_to(root.parent / "theirs")
        store.keep(state.load(root) or now, None)
        store.keep(replace(now, mark="abc"), None)
        store.judged("abc")
        assert SECRET not in str(store.snapshot())
    kept = [path for path in (root / ".ralph").rglob("*") if path.is_file()]
    assert kept and all(SECRET not in path.read_text() for path in kept)


def test_a_scratchpad_is_read_by_no_link(store_at: Make, root: Path) -> None:
    place = root / ".ralph/agent/scratchpad.md"
    with (store := store_at()).exclusive(FREE):
        store.open(FREE, NOON)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to("/proc/self/environ")
        snapshot = store.snapshot()
    assert snapshot.scratchpad == "" and any("not a regular file" in one for one in snapshot.complaints)
