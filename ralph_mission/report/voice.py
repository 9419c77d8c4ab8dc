"""What a person sees while a cycle runs: the phases, and what happened in each. Always on stderr.

A terminal gets a live line; everything else (a log, a pipe) gets one plain line per event. A
reader that has gone away never stops a cycle. What is said is redacted as the last step, whoever said it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ralph_mission.mission.ports import CycleProgress
from ralph_mission.report.lines import safe
from ralph_mission.safety.secrets import redact

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


@contextmanager
def speaking(stream: TextIO, secrets: Sequence[str]) -> Iterator[CycleProgress]:
    """A voice on `stream` for the length of a cycle, live on a terminal, plain elsewhere; `secrets` are never said."""
    if not stream.isatty():
        yield PlainProgress(stream, secrets)
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    with console.status("starting") as status:
        yield LiveProgress(console, status, secrets)


@dataclass(frozen=True, slots=True)
class PlainProgress:
    """One line per event, for logs and pipes."""

    stream: TextIO
    secrets: Sequence[str]

    def phase(self, name: str, note: str = "") -> None:
        """`check: 2 missions`"""
        self._say(f"{name}: {safe(note)}" if note else name)

    def note(self, text: str) -> None:
        """An indented line below its phase."""
        self._say(f"  {safe(text)}")

    def _say(self, line: str) -> None:
        with suppress(OSError, ValueError):  # ValueError: the stream was closed
            print(redact(line, self.secrets), file=self.stream, flush=True)


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """A spinner that names what is being done, above it what happened."""

    console: Console
    status: Status
    secrets: Sequence[str]

    def phase(self, name: str, note: str = "") -> None:
        """The phase as a heading; its name stays beside the spinner until the next one."""
        from rich.text import Text

        self.status.update(Text(f"{name} …"))
        self._say(Text.assemble((name, "bold"), self._worded(note) if note else ""))

    def note(self, text: str) -> None:
        """A dim line below its phase."""
        from rich.text import Text

        self._say(Text(self._worded(text), style="dim"))

    def _worded(self, text: str) -> str:
        return f"  {redact(safe(text), self.secrets)}"

    def _say(self, line: object) -> None:
        with suppress(OSError):
            self.console.print(line, soft_wrap=True)
