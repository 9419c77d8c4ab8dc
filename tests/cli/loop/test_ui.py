"""The terminal interface, driven by Textual's own pilot over files that a run writes."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RichLog
from textual.widgets.data_table import RowKey

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.loop import live
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.live import LiveRun
from ralph_mission.cli.loop import ui
from ralph_mission.cli.loop.ui import RunsApp
from ralph_mission.loop.model.spec import RunEvent
from tests.helpers import commit, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a": "a"})


def test_runs_are_shown_and_held_with_keys(repo: Path) -> None:
    home = repo / ".ralph"
    ended, run = LiveRun(home, "work"), LiveRun(home, "run")
    ended.tell(RunEvent("note", "looks for issues"))
    ended.end(0)
    run.tell(RunEvent("session", "[1/9] builder", 1, "builder", "r1", 0, (1, 3)))
    run.tell(RunEvent("tool", "Bash: [red]make[/red] test", 1))

    async def watched() -> None:
        app = RunsApp(Git.open(repo))
        async with app.run_test(size=(140, 30)) as pilot:
            await pilot.pause()
            table, steps = app.query_one("#runs", DataTable), app.query_one("#steps", RichLog)
            rows = [[str(cell) for cell in table.get_row_at(at)] for at in range(table.row_count)]
            assert rows[1] == ["run-2", "running", "0", "1/3", "", "[1/9] builder"] and rows[0][1] == "ended"
            assert table.size.width == 140  # nothing beside it cuts off what a run does
            assert any("[red]make[/red] test" in str(line.text) for line in steps.lines)  # as it was said

            await pilot.press("p")
            assert run.current_order() == "pause"
            await pilot.press("r")
            assert run.current_order() == ""
            await pilot.press("g", *"hi", "enter")
            assert [said.text for said in Guide(home).pending()] == ["hi"]
            assert not app.query_one("#word", Input).display

            commit(repo, {"b": "news"}, date=datetime.now(UTC))
            await pilot.press("d")
            await pilot.pause()
            assert any("+news" in line.text for line in steps.lines)

            await pilot.press("s")
            assert run.current_order() == "stop"
            await pilot.press("up")
            await pilot.pause()
            assert steps.lines[0].text.endswith("looks for issues")
            await pilot.press("p")  # nobody is there to hear it
            assert live.read_order(home / live.FOLDER / "work-1") == ""

    asyncio.run(watched())


def test_a_window_that_closes_slowly_ends_without_an_error(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "LOOK", 0.01)

    async def closed() -> None:
        app = RunsApp(Git.open(repo))
        async with app.run_test() as pilot:
            looked = asyncio.Event()
            await app.screen.remove_children()
            asyncio.get_running_loop().call_later(5 * ui.LOOK, looked.set)
            await looked.wait()
            await pilot.pause()

    asyncio.run(closed())


async def until(pilot: Pilot[None], seen: Callable[[], bool]) -> None:
    """Until a look of the window had its effect."""
    for _ in range(2000):
        if seen():
            return
        await pilot.pause(ui.LOOK)
    raise AssertionError("nothing of the kind came")


@pytest.mark.parametrize("chosen", range(4))
def test_runs_that_are_removed_while_they_are_shown_leave_the_window_open(
    repo: Path, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "LOOK", 0.01)
    home = repo / ".ralph"
    for number in range(4):
        LiveRun(home, "run").tell(RunEvent("note", f"old {number}"))

    async def watched() -> None:
        app = RunsApp(Git.open(repo))
        async with app.run_test() as pilot:
            table, steps = app.query_one("#runs", DataTable), app.query_one("#steps", RichLog)
            table.move_cursor(row=chosen)
            await until(pilot, lambda: [line.text.split()[-1] for line in steps.lines] == [str(chosen)])

            shutil.rmtree(home / live.FOLDER)
            await until(pilot, lambda: not table.row_count)

            again = LiveRun(home, "run")
            again.tell(RunEvent("note", "new"))
            assert again.folder.name == "run-1"
            await until(pilot, lambda: [line.text.split()[-1] for line in steps.lines] == ["new"])

    asyncio.run(watched())


def test_a_choice_that_is_told_when_its_row_has_gone_changes_nothing(repo: Path) -> None:
    LiveRun(repo / ".ralph", "run").tell(RunEvent("note", "works"))

    async def watched() -> None:
        app = RunsApp(Git.open(repo))
        async with app.run_test() as pilot:
            table, steps = app.query_one("#runs", DataTable), app.query_one("#steps", RichLog)
            await until(pilot, lambda: len(steps.lines) == 1)
            app.on_data_table_row_highlighted(DataTable.RowHighlighted(table, table.cursor_row, RowKey("run-7")))
            assert len(steps.lines) == 1

    asyncio.run(watched())


def test_a_request_that_cannot_be_written_is_told_in_the_window(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, told = LiveRun(repo / ".ralph", "run"), list[str]()
    run.tell(RunEvent("note", "works"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def watched() -> None:
        app = RunsApp(Git.open(repo))
        monkeypatch.setattr(app, "notify", lambda message, **_: told.append(message))
        async with app.run_test() as pilot:
            await pilot.pause()
            monkeypatch.setattr(live, "give_order", full)
            await pilot.press("s")

    asyncio.run(watched())
    assert len(told) == 1 and "No space left on device" in told[0] and run.current_order() == ""
