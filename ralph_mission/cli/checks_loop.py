"""What the doctor says of the files of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from ralph_mission.cli.checks_line import Check
from ralph_mission.gateways.git import Git
from ralph_mission.stores.loop.events import EventLog
from ralph_mission.stores.loop.state import STATE

MEND = "see what was changed there; the next run sets it aside"


def event_log(git: Git) -> Iterator[Check]:
    """Whether the log of the last loop here is as that loop wrote it. Another tool's log is not looked at."""
    root = git.work_tree
    log = EventLog(root / ".ralph") if root else None
    if not root or not log or not (log.head.exists() or (root / STATE).exists()):
        return
    wrong = log.verify()
    yield from (Check("event log", "wrong", complaint, MEND) for complaint in wrong)
    if not wrong:
        yield Check("event log", "ok", f"{len(log.read())} events, none edited")
