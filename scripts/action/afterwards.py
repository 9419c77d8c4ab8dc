"""See the last of runs that were killed: `afterwards.py FOLDER...`, as root.

An agent that played as a user of its own may have left processes that nobody can find by their environment, and
folders that still belong to that user. Standard library, and what of ralph_mission needs no more.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from ralph_mission.gateways import isolation_lending as lending
from ralph_mission.gateways import isolation_uid as users
from ralph_mission.trouble import Trouble


def main(folders: list[str]) -> None:
    """End what is left, then take back what is left. Raises Trouble, OSError."""
    users.end_abandoned()
    for folder in folders:
        lending.take_back(Path(folder))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Trouble, OSError) as error:
        sys.exit(str(error))
