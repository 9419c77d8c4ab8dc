"""`ralph ui`: what runs here, in one terminal: a list of runs, the steps of one of them, and keys to hold it.

It reads and writes the files that `ralph logs`, `pause`, `resume`, `stop` and `guidance` do, and no others. What
agents say is shown as plain text: nothing in it is markup.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Header, Input, RichLog

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.loop import live
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.cli.loop.runs import COLUMNS, describe_commits, event_line, run_cells
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import HoldOrder

LOOK = 0.5  # seconds between two polls of the files


class RunsApp(App[None]):
    """The runs of the repository whose state is in `home`."""

    TITLE = "ralph"
    CSS = "#runs { height: auto; max-height: 40%; } #steps { height: 1fr; } #word { display: none; dock: bottom; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "order('pause')", "pause"),
        Binding("r", "order('')", "resume"),
        Binding("s", "order('stop')", "stop"),
        Binding("g", "guide", "guidance"),
        Binding("d", "diff", "diff"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, git: Git) -> None:
        super().__init__()
        self._git, self._home = git, git.state_dir
        self._shown, self._read = "", 0
        self._states: dict[str, str] = {}
        # Held, not looked up: a look may still come when a slow window has taken them down already.
        self._table: DataTable[Text] = DataTable(id="runs", cursor_type="row", zebra_stripes=True)
        self._steps = RichLog(id="steps", wrap=True, markup=False, highlight=False)

    def compose(self) -> ComposeResult:
        """The list above the steps, and a line for guidance that is there when it is asked for."""
        yield Header()
        yield self._table
        yield self._steps
        yield Input(id="word", placeholder="what the next session has to know")
        yield Footer()

    def on_mount(self) -> None:
        """Look now, and go on looking."""
        for name in COLUMNS:
            self._table.add_column(name, key=name)
        self._look()
        self.set_interval(LOOK, self._look)
        self._table.focus()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the steps of another run, once one was chosen; its row may have gone since."""
        chosen = event.row_key.value if event.row_key in self._table.rows else ""
        if self._shown and chosen and chosen != self._shown and self._table.cursor_row == event.cursor_row:
            self._show(chosen)

    def action_order(self, order: HoldOrder) -> None:
        """Ask the run that is shown to wait, to go on or to end."""
        if record := self._find():
            try:
                live.give_order(self._home, record, order)
                self.notify(f"{record.id}: {order or 'resume'} at the next safe point")
            except (UserError, OSError) as error:
                self.notify(str(error), severity="error")

    def action_guide(self) -> None:
        """Ask for a line of guidance."""
        word = self.query_one("#word", Input)
        word.display = True
        word.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Leave it for the next session."""
        try:
            Guide(self._home).say(event.value)
            self.notify("the next session gets it")
        except (UserError, OSError) as error:
            self.notify(str(error), severity="error")
        event.input.clear()
        event.input.display = False
        self._table.focus()

    def action_diff(self) -> None:
        """Show what was committed here since the run began."""
        known = next((one for one in live.list_runs(self._home) if one.id == self._shown), None)
        if known:
            self._steps.write(Text(describe_commits(self._git, known)))

    def _find(self) -> live.LiveRecord | None:
        """The shown run, if it can receive requests."""
        found = next((one for one in live.list_runs(self._home) if one.id == self._shown and one.alive), None)
        if found is None:
            self.notify("it no longer runs", severity="warning")
        return found

    def _look(self) -> None:
        """Update the list and the shown run. A run that ends or waits rings the bell."""
        known = {one.id: one for one in live.list_runs(self._home)}
        for key in [row.key.value for row in self._table.ordered_rows if row.key.value not in known]:
            if key:
                self._table.remove_row(key)
        for name, one in known.items():
            cells = run_cells(one)
            if name in {row.key.value for row in self._table.ordered_rows}:
                for column, cell in zip(COLUMNS, cells, strict=True):
                    self._table.update_cell(name, column, Text(cell), update_width=True)
            else:
                self._table.add_row(*map(Text, cells), key=name)
            if self._states.get(name) not in (None, one.state) and one.state != "running":
                self.bell()
            self._states[name] = one.state
        if self._shown not in known:
            self._shown = ""  # its files were removed; another run may get its id
        if not self._shown and known:
            self._show(next((one.id for one in reversed(known.values()) if one.alive), next(reversed(known))))
        self._follow()

    def _show(self, name: str) -> None:
        self._shown, self._read = name, 0
        self._steps.clear()
        self._table.move_cursor(row=self._table.get_row_index(name))
        self._follow()

    def _follow(self) -> None:
        events, self._read = live.read_events(self._home, self._shown, self._read) if self._shown else ([], 0)
        for line in filter(None, map(event_line, events)):
            self._steps.write(Text(line))


def show_runs(repo: Path) -> None:
    """Until it is left. Raises UserError outside of a repository."""
    RunsApp(Git.open(repo)).run()
