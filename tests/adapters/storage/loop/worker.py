"""One of several processes at work on the same tasks: adds and claims, and says what it did on standard output.

    python -m tests.adapters.storage.loop.worker FOLDER NAME COUNT

What was said is certain; a worker that is killed may have done one thing more than it said.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError


def main(folder: str, name: str, count: int) -> None:
    """Add and claim by turns, then claim until nothing is ready."""
    tasks = Tasks(Path(folder))
    for number in range(count):
        print(
            "added", tasks.add(f"{name} {number}", description="what is to be done, at some length " * 3).id, flush=True
        )
        _claim(tasks, name)
    while _claim(tasks, name):
        pass


def _claim(tasks: Tasks, name: str) -> bool:
    try:
        print("claimed", tasks.claim(name).id, flush=True)
    except UserError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
