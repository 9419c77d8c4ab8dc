"""Whatever a session puts in the place of a file that is read, nothing that it leads to is read, kept or copied."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import archive, events, inbox, legacy, state
from ralph_mission.adapters.storage.loop.artifacts import FileArtifactStore
from ralph_mission.adapters.storage.loop.events import EventLog
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.memories import Memories
from ralph_mission.adapters.storage.loop.progress_log import ProgressLog
from ralph_mission.adapters.storage.loop.run_store import Habits
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import HatOutput
from tests.adapters.storage.loop.run_stores import FREE, NOON, PRD, STORIES, Make

SECRET = "CANARY-of-somebody-else"
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
    "events": (".ralph/events.jsonl", lambda root: EventLog(root / ".ralph").read(), SAID),
    "signal": (".ralph/loop/signal", lambda root: inbox.read(root / ".ralph"), "stop"),
    "papers": (".ralph/plan.md", lambda root: FileArtifactStore(root / ".ralph").read("plan.md"), SECRET),
    "state": (".ralph/loop/state.json", state.load, SECRET),
    "progress": ("progress.txt", lambda root: (ProgressLog(root).read(), ProgressLog(root).text()), LOG),
    "agents.md": ("AGENTS.md", lambda root: ProgressLog(root).read(), LOG),
    "claude.md": ("CLAUDE.md", lambda root: ProgressLog(root).read(), LOG),
    "stories": ("prd.json", lambda root: Stories(root).read(), LIST),
    "named stories": ("list/prd.json", lambda root: Stories(root, root / "list/prd.json").read(), LIST),
    "last branch": (".last-branch", archive.last_branch, SECRET),
    "handoff": (".omc/state/ralph-fresh-handoff.json", legacy.left_by_others, LEFT),
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
    except UserError as trouble:
        return repr(trouble)


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
def test_a_desk_tells_no_session_what_a_link_leads_to_and_takes_it_away(desk_at: Make, root: Path, way: str) -> None:
    desk = desk_at()
    with desk.exclusive(FREE):
        now = desk.open(FREE, NOON)
        Memories(root / ".ralph").add("ours")
        (root / ".ralph/agent/scratchpad.md").write_text("notes")
        before = desk.board()
        desk.keep(now, None)
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
        assert SECRET not in str(desk.board())
        mended = desk.restore()
        told = (*desk.said(), desk.board(), *map(asdict, mended))
        assert SECRET not in str(told) and desk.board().memories == before.memories
        desk.keep(now, HatOutput("ralph", 1))
    assert any("link" in change.how or "no file of its own" in change.how for change in mended)
    assert {name: (theirs / name).read_text() for name in texts} == texts
    assert all(
        SECRET not in path.read_text()
        for path in (root / ".ralph").rglob("*")
        if path.is_file() and path.stat().st_nlink == 1
    )


@pytest.mark.parametrize("name", ["prd.json", "progress.txt"])
def test_no_copy_is_kept_of_what_a_link_leads_to(desk_at: Make, root: Path, name: str) -> None:
    (root / "prd.json").write_text(json.dumps(PRD))
    with (desk := desk_at()).exclusive(STORIES):
        now = desk.open(STORIES, NOON)
        desk.board()
        (root / name).unlink(missing_ok=True)
        (root.parent / "theirs").write_text(LIST if name == "prd.json" else LOG)
        (root / name).symlink_to(root.parent / "theirs")
        desk.keep(state.load(root) or now, None)
        desk.keep(replace(now, mark="abc"), None)
        desk.judged("abc")
        assert SECRET not in str(desk.board())
    kept = [path for path in (root / ".ralph").rglob("*") if path.is_file()]
    assert kept and all(SECRET not in path.read_text() for path in kept)


@pytest.mark.parametrize("where", ["scratchpad.md", "notes/pad.md"])
def test_a_scratchpad_is_read_by_no_link_wherever_it_is(desk_at: Make, root: Path, where: str) -> None:
    place = root / ".ralph/agent/scratchpad.md" if where == "scratchpad.md" else root / where
    desk = desk_at(Habits(scratchpad="" if where == "scratchpad.md" else where))
    with desk.exclusive(FREE):
        desk.open(FREE, NOON)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to("/proc/self/environ")
        board = desk.board()
    assert board.scratchpad == "" and any("not a regular file" in one for one in board.complaints)
