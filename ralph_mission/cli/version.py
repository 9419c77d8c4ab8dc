"""Which commit this program was made of, where that is known."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

SHOWN = 12  # digits of a commit


def find_commit() -> str:
    """The commit of the checkout that we run from, or that pip or uv installed; "" of a release."""
    root = Path(__file__).parents[2]
    if (root / ".git").exists() and (root / "pyproject.toml").exists():
        return _of_checkout(root)
    try:
        told = metadata.distribution("ralph-mission").read_text("direct_url.json")
        return str(json.loads(told)["vcs_info"]["commit_id"])[:SHOWN] if told else ""
    except (metadata.PackageNotFoundError, KeyError, ValueError):
        return ""


def _of_checkout(root: Path) -> str:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.errors import UserError

    try:
        return Git.open(root).resolve("HEAD")[:SHOWN]
    except UserError:
        return ""
