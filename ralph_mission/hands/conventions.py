"""Reads a repository's guides from the commit that work starts from: never from a work tree or a pull's head."""

from __future__ import annotations

from ralph_mission.gateways.git import Git
from ralph_mission.loop.conventions import GUIDES, conventions
from ralph_mission.safety.patch import EXECUTABLE, REGULAR


def read(git: Git, base: str) -> str:
    """`loop.conventions` of the commit `base`. A guide that is a link or a folder is none. Raises GitError."""
    found = {entry.path: entry.oid for entry in git.listing(base, *GUIDES) if entry.mode in (REGULAR, EXECUTABLE)}
    held = git.blobs(found.values())
    return conventions({path: held[oid] for path, oid in found.items() if oid in held})
