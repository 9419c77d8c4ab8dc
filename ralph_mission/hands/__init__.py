"""Deterministic fixers and the repository's own checks. A new fixer is one module and one line here."""

from __future__ import annotations

from ralph_mission.hands import ruff, typos
from ralph_mission.hands.fixer import Fixer

FIXERS: dict[str, Fixer] = {
    "typos": typos.FIXER,
    "ruff": ruff.FIXER,
}
