"""A run that was asked to restart: this process becomes a new one of the same command line."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ralph_mission.trouble import UserError

if TYPE_CHECKING:
    from ralph_mission.bootstrap.asked import RunOptions
    from ralph_mission.bootstrap.loop import RunSetup

RESTART = "RALPH_RESTART"
"""`exit` in the environment: whoever started us starts us again, so a restart ends with its code 3.
`done`: we are the new process, and find what the last session left uncommitted."""


def mark_restarted(asked: RunOptions) -> RunOptions:
    """What was asked, of a process that was restarted."""
    return replace(asked, restarted=True) if os.environ.get(RESTART) == "done" else asked


def again(made: RunSetup) -> None:
    """Become a new process; returns where somebody else starts it. Raises Trouble when the settings have changed."""
    made.unaltered()
    if os.environ.get(RESTART) != "exit":
        _replace_ourselves()


def _replace_ourselves() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, RESTART: "done"})
    except OSError as error:
        trouble = UserError(f"cannot restart: {(error.strerror or 'no reason given').lower()}", "run it again")
        trouble.exit_code = 3
        raise trouble from None
