"""`ralph mcp`: the loop's files for agents that speak the Model Context Protocol."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import click

from ralph_mission import __version__
from ralph_mission.cli.errors import INTERRUPTED
from ralph_mission.cli.options import named_repo, repo_option
from ralph_mission.extras import require_extra


@click.command()
@repo_option
def mcp(repo: Path) -> int:
    """Serve tasks, events, memories and guidance over standard input and output, until they close.

    Add it to an agent as a server with the command `ralph mcp`.
    """
    require_extra("mcp", "ralph mcp needs")
    from ralph_mission.adapters.mcp.server import RunFiles, serve
    from ralph_mission.adapters.storage.loop import events, lock, run_files
    from ralph_mission.adapters.storage.loop.inbox import Guide
    from ralph_mission.adapters.storage.loop.notes import Memories
    from ralph_mission.adapters.storage.loop.tasks import Tasks
    from ralph_mission.cli.loop import tasks
    from ralph_mission.loop.model.state import LoopEvent

    where = run_files.folder(named_repo(), os.environ)
    run_files.prepare(where)

    def emit(topic: str, payload: str) -> None:
        events.say_event(
            where, LoopEvent(topic, payload, hat=os.environ.get("RALPH_HAT", ""), iteration=tasks.iteration())
        )

    # The thread that waits for the client cannot be woken, and whatever is being written is whole at any moment.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))
    # The agent that speaks to us ends us: while we live, so does whoever claimed through us.
    owner = os.environ.get("RALPH_OWNER") or lock.place(os.getpid())
    serve(RunFiles(Tasks(where), Memories(where), Guide(where), emit, owner), __version__)
    return 0
