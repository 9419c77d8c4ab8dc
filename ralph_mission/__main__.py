"""`python -m ralph_mission` is `ralph`."""

from __future__ import annotations

from ralph_mission.cli.main import main

if __name__ == "__main__":
    main()
