"""The extras a configuration needs. As a program: `python -m ralph_mission.app.extras DIR [FILE]` prints the missing
ones, for `make run` and the action; nothing for an unreadable configuration, which the next command reports.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.config.reading import read
from ralph_mission.config.settings import NETWORKS, Config
from ralph_mission.errors import UserError
from ralph_mission.extras import missing_module

WORKFLOWS = ".github/workflows"


def needed_extras(config: Config, folder: Path | None = None) -> tuple[str, ...]:
    """The extras that the configuration needs, in alphabetical order.

    `folder` is the top of the repository: if it has workflows, their scanner is needed, too.
    """
    observers, publishers, agent = config.observers, config.publishers, config.hands.agent
    posts = any(getattr(publishers, name) for name in NETWORKS)
    agents = {config.cli.backend, *((agent.kind, *agent.fallback) if agent else ())}
    needs = {
        "acp": any(name.partition(":")[0] == "acp" for name in agents),
        "charts": posts and publishers.charts and observers.database is not None,  # the only source of series
        "claude": "claude" in agents,
        "database": observers.database is not None and observers.database.backend == "sqlalchemy",
        "llm": config.thinker.kind == "llm",
        "prisma": observers.database is not None and observers.database.backend == "prisma",
        "web": any(source.kind != "search" for source in observers.web),
        "workflows": folder is not None and (folder / WORKFLOWS).is_dir(),
        "x": publishers.twitter is not None or observers.social is not None,
    }
    return tuple(extra for extra, is_needed in needs.items() if is_needed)


def main(arguments: Sequence[str]) -> None:
    """Print the names of the missing extras on one line."""
    if config := _configured(arguments):
        print(*(extra for extra in needed_extras(config, Path(arguments[0])) if missing_module(extra)))


def names_agent(arguments: Sequence[str]) -> bool:
    """Whether the configuration uses an agent; for the action."""
    config = _configured(arguments)
    return config is not None and (config.hands.agent is not None or bool(config.cli.backend))


def _configured(arguments: Sequence[str]) -> Config | None:
    folder, file = Path(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    try:
        return read(Git.open(folder), read_shared, folder / file if file else None)
    except (UserError, GitError, OSError):
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
