"""The project's own checks, as foreign programs in the work tree."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.loop.model.state import CheckResult

LINES = 40
"""Of a failed check's output, from the end, that are told."""
GRACE = 1.0  # seconds between TERM and KILL: Ctrl-C is answered within two


def verdict(checks: Iterable[str], top: Path, seconds: float, cage: Sandbox = OPEN) -> CheckResult:
    """Run shell commands in `top` one after another until one fails, each at most `seconds`, kept apart by `cage`.

    Each has a HOME that nobody has been in: start-up files that a session, or its code in a check, left in one would
    judge the next. Raises UserError when it cannot be kept as far apart as `cage` wants.
    """
    for check in checks:
        with tempfile.TemporaryDirectory(prefix="ralph-check-", ignore_cleanup_errors=True) as home:
            done = run_foreign(check, cwd=top, home=Path(home), timeout=seconds, grace=GRACE, cage=cage)
        if done.code:
            said = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()[-LINES:]
            why = f"took over {seconds:g} s" if done.timed_out else f"exit {done.code}"
            return CheckResult(False, True, "\n".join((f"{check}: {why}", *said)))
    return CheckResult(True, True, "")
