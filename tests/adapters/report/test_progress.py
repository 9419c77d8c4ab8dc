"""The voice: plain lines where nobody watches, and never the end of a cycle."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ralph_mission.adapters.report.progress import speaking


def test_a_log_gets_one_plain_line_per_event() -> None:
    stream = io.StringIO()
    with speaking(stream, ()) as progress:
        progress.phase("check", "2 missions")
        progress.note("mission 7: merged")
        progress.phase("observe")
    assert stream.getvalue() == "check: 2 missions\n  mission 7: merged\nobserve\n"


def test_what_was_observed_stays_one_harmless_line() -> None:
    stream = io.StringIO()
    with speaking(stream, ()) as progress:
        progress.note("\x1b[31mred\nsecond line")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


@pytest.mark.attack(33)
def test_a_known_secret_is_in_no_line() -> None:
    stream = io.StringIO()
    with speaking(stream, ("violet-Kettle-41-harbour",)) as progress:
        progress.phase("code", "bad key violet-Kettle-41-harbour")
        progress.note("bad key violet-Kettle-41-harbour")
    assert stream.getvalue() == "code: bad key [redacted: known-value]\n  bad key [redacted: known-value]\n"


def test_a_reader_that_left_does_not_stop_the_cycle() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", buffering=1) as stream:
        with speaking(stream, ()) as progress:
            progress.phase("check")
            progress.note("still here")
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, stream.fileno())  # what is still buffered must go somewhere
        os.close(devnull)


def test_a_terminal_sees_what_is_being_done_and_keeps_what_has_to_be_known() -> None:
    parent, child = pty.openpty()
    with os.fdopen(child, "w") as stream, speaking(stream, ("violet-Kettle-41-harbour",)) as progress:
        progress.phase("think", "3 findings of violet-Kettle-41-harbour")
        progress.note("spelling first, then violet-Kettle-41-harbour")
        progress.note("note: an unknown key")
    seen = "".join(_chunks(parent))
    assert "violet" not in seen
    assert "Ranking what it found" in seen
    assert "spelling first" in seen
    assert seen.rpartition("\x1b[2K")[2].strip() == "", "the line is gone at the end"
    assert "note: an unknown key\r\n" in seen


def _chunks(terminal: int) -> Iterator[str]:
    with suppress(OSError):  # EIO: the other side is closed and everything was read
        while chunk := os.read(terminal, 65536):
            yield chunk.decode()
    os.close(terminal)
