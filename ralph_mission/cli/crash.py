"""A report of our own mistake, ready to be pasted into an issue: no secrets, no variables' values."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission import __version__
from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.cli.spelling import repo_of
from ralph_mission.errors import UserError
from ralph_mission.safety.secrets import redact


def write_report(error: Exception, arguments: list[str]) -> Path | None:
    """Where the report of `error` was written, readable by this user only; None when nowhere can be."""
    text = redact(_report(error, arguments), environment_secrets())
    for folder in (*_state_dir(arguments), Path(tempfile.gettempdir())):
        with suppress(OSError):
            return create_report(folder, text)
    return None


def _report(error: Exception, arguments: list[str]) -> str:
    return (
        f"ralph {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"command: ralph {' '.join(arguments)}\n\n{''.join(traceback.format_exception(error))}"
    )


def _state_dir(arguments: list[str]) -> list[Path]:
    # Only if it exists: a crash outside a repository must not create a folder.
    with suppress(UserError, OSError):
        place = Git.open(repo_of(arguments)).state_dir
        return [files.own(place)] if place.is_dir() else []
    return []


def create_report(folder: Path, text: str) -> Path:
    """Write a report that nobody else may read; its path. Raises OSError."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    path = folder / f"ralph-crash-{moment}-{os.getpid()}.txt"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding=sys.getdefaultencoding(), errors="backslashreplace") as file:
        file.write(text)
    return path
