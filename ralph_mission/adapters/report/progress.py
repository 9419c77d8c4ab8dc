"""A cycle's progress (always on stderr), and fitting text into a terminal's rows.

A terminal gets a live line that vanishes at the end, except for important notes (`note: …`); anything else (a log, a
pipe), and verbose mode, gets one plain line per event. A closed pipe never stops a cycle. Redaction is the last step.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, TextIO

from ralph_mission.errors import Stopped
from ralph_mission.loop.model.spec import UNWATCHED, RunEvent, RunWatch
from ralph_mission.mission.model.memory import CycleNote
from ralph_mission.mission.model.mission import WaitingLine
from ralph_mission.mission.ports import CycleProgress
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import sanitise
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import capitalise, count_noun, spell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

WIDTH = 80


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """A cycle's requests to the forge, and those answered as unchanged (304)."""

    total: int
    unchanged: int = 0

    def __str__(self) -> str:
        return f"{count_noun(self.total, 'request')} to the forge, {self.unchanged} of them unchanged"


def safe(text: str) -> str:
    """Untrusted text as one harmless line."""
    return " ".join(sanitise(text, "log").split())


def shorten(text: str, width: int = WIDTH) -> str:
    """`text` in at most `width` columns."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def rows(text: str, width: int = WIDTH) -> int:
    """The number of terminal rows `text` takes."""
    return sum(max(1, -(-len(line) // width)) for line in text.split("\n"))


def cap_lines(lines: Sequence[str], space: int, where: str) -> list[str]:
    """Those of `lines` that fit in `space` rows; the rest is counted, and `where` names its place."""
    if sum(map(rows, lines)) <= space:
        return list(lines)
    first = _fitting(lines, space - 1)
    if not first and space > 1:  # a count alone says nothing: as many rows of the first as there is room for
        first = ["\n".join(_fitting(lines[0].split("\n"), space - 1)) or shorten(lines[0], WIDTH * (space - 1))]
        if len(lines) == 1:
            return [*first, f"  … the rest: {where}"]
    return [*first, f"  … and {len(lines) - len(first)} more: {where}"]


def _fitting(lines: Iterable[str], space: int) -> list[str]:
    first: list[str] = []
    for line in lines:
        if sum(map(rows, (*first, line))) > space:
            break
        first.append(line)
    return first


def indent_lines(lines: Iterable[str]) -> list[str]:
    """Each line below its heading, cut to the width."""
    return [shorten(f"  {safe(line)}") for line in lines]


def fold_lines(lines: Iterable[str], most: int = 3) -> list[str]:
    """Each line below its heading, in up to `most` rows."""
    return ["\n".join(_few_rows(safe(line), most)) for line in lines]


def waiting_blocks(waiting: Iterable[WaitingLine]) -> list[str]:
    """Each mission with its possible actions, as one block: a command is never split."""
    blocks = []
    for line in waiting:
        thread = f"{'Pull request' if line.pull else 'Issue'} #{line.number}"
        head = fold_lines([f"{thread}: {line.title}", *filter(None, [capitalise(line.note)])])
        width = max((len(word) for word, _ in line.ways), default=0)
        ways = (f"    {word:<{width}}  {safe(command)}" for word, command in line.ways)
        blocks.append("\n".join([*head, *ways]))
    return blocks


def wrap_text(text: str) -> list[str]:
    """All of a safe text, in as many rows as needed."""
    return _harmless(
        textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    )


def _few_rows(text: str, most: int) -> list[str]:
    rows = textwrap.wrap(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        max_lines=most,
        placeholder=" …",
        break_on_hyphens=False,
    )
    return _harmless(rows)


def _harmless(rows: Iterable[str]) -> list[str]:
    """Text within a line may start a row, where a GitHub runner would obey it."""
    return [sanitise(row, "log") for row in rows]


def unread(notes: Iterable[CycleNote]) -> list[tuple[str, str]]:
    """What the last cycle that looked could not look at, and why. `notes`: memory's, newest first."""
    lines = next((note.observed for note in notes if any(map(_LOOKED.match, note.observed))), ())
    found = filter(None, map(_UNREAD.match, lines))
    return [(NAMES.get(one[1], one[1]) if one[1] else one[2], one[3]) for one in found]


_LOOKED = compile_regex(r"[\w.-]+(?: unavailable)?: |not checked: ")
_UNREAD = compile_regex(r"(?:([\w.-]+) unavailable|not checked: ([^:]+)): (.*)")
NAMES = {"fixers.project": "this repository's formatters"}
"""Observers by a better name, for people."""


def drift(seconds: int) -> str:
    """A cycle's delay: `this one started 9 min after it was due`."""
    return (
        f"this one started {spell(timedelta(seconds=seconds))} after it was due" if seconds else "this one was not late"
    )


SAFE = ("check", "observe", "think", "work", "act")
"""Phases that start at a safe point. There is no pause before `act`, as it uses the state as read."""
LOOK = 0.2  # seconds between two polls for requests


def rest(watch: RunWatch, seconds: float = 0.0, *, stays: bool = True) -> None:
    """A safe point outside loops: wait so long, and, while it `stays`, as long as a person pauses it.

    Raises Stopped.
    """
    until, paused_once = time.monotonic() + seconds, False
    while True:
        order = watch.current_order()
        if order == "stop":
            raise Stopped
        if stays and paused_once != (order == "pause"):
            paused_once = not paused_once
            watch.tell(RunEvent("held", "paused" if paused_once else ""))
        remaining = until - time.monotonic()
        if remaining <= 0 and not paused_once:
            return
        time.sleep(LOOK if paused_once else min(remaining, LOOK))


def begin_phase(watch: RunWatch, name: str, note: str) -> None:
    """Report a phase to the watcher; before a safe point, handle its requests."""
    watch.tell(RunEvent("phase", f"{name}: {safe(note)}" if note else name))
    if name in SAFE:
        rest(watch, stays=name != "act")


@contextmanager
def speaking(
    stream: TextIO, secrets: Sequence[str], watch: RunWatch = UNWATCHED, verbose: bool = False
) -> Iterator[CycleProgress]:
    """Progress on `stream` during a cycle, live on a terminal, plain elsewhere, without `secrets`.
    `watch` receives all of it too."""
    if verbose or not stream.isatty():
        yield PlainProgress(stream, secrets, watch)
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    with console.status("starting") as status:
        yield LiveProgress(console, status, secrets, watch)


@dataclass(frozen=True, slots=True)
class PlainProgress:
    """One line per event, for logs and pipes."""

    stream: TextIO
    secrets: Sequence[str]
    watch: RunWatch = UNWATCHED

    def phase(self, name: str, note: str = "") -> None:
        """`check: 2 missions`"""
        self._say(f"{name}: {safe(note)}" if note else name)
        begin_phase(self.watch, name, note)

    def note(self, text: str) -> None:
        """An indented line below its phase."""
        self.watch.tell(RunEvent("note", safe(text)))
        self._say(f"  {safe(text)}")

    def _say(self, line: str) -> None:
        print_redacted(line, self.stream, self.secrets)


def print_redacted(line: str, stream: TextIO, secrets: Sequence[str]) -> None:
    """Print a line without `secrets`, to a stream that may be closed or full."""
    with suppress(OSError, ValueError):  # ValueError: the stream was closed
        print(redact(line, secrets), file=stream, flush=True)


PHASES = {
    "check": "Checking the work it has open",
    "observe": "Looking around",
    "think": "Ranking what it found",
    "work": "Working on a mission",
    "act": "Acting",
    "reflect": "Writing down what it learned",
}
"""A cycle's phases, for people."""


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """One line with a spinner that names the current step, and vanishes at the end."""

    console: Console
    status: Status
    secrets: Sequence[str]
    watch: RunWatch = UNWATCHED
    phases: list[str] = field(default_factory=list)  # in words; the last one is the present one

    def phase(self, name: str, note: str = "") -> None:
        """Its name stays beside the spinner until the next one."""
        self.phases.append(PHASES.get(name, name.capitalize()))
        self._show(note)
        begin_phase(self.watch, name, note)

    def note(self, text: str) -> None:
        """An event within a phase, beside the spinner; important notes stay above it."""
        self.watch.tell(RunEvent("note", safe(text)))
        if text.startswith("note: "):
            from rich.text import Text

            with suppress(OSError):
                self.console.print(Text(self._worded(text)), soft_wrap=True)
        else:
            self._show(text)

    def _show(self, note: str) -> None:
        from rich.text import Text

        phase = self.phases[-1] if self.phases else "Starting"
        space = max(20, self.console.width - len(phase) - 8)
        with suppress(OSError):
            self.status.update(Text.assemble((phase, "bold"), (f"  {shorten(self._worded(note), space)}", "dim")))

    def _worded(self, text: str) -> str:
        return redact(safe(text), self.secrets)
