"""Deterministic fixers and the repository's own checks. A new fixer is a module and a line here."""

from __future__ import annotations

from ralph_mission.adapters.fixers import ruff, typos
from ralph_mission.adapters.fixers.fixer import Fixer

FIXERS: dict[str, Fixer] = {
    "typos": typos.FIXER,
    "ruff": ruff.FIXER,
}
