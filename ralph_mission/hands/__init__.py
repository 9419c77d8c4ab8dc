"""Deterministic fixers and the repository's own checks. A new fixer is one module and one line here."""

from __future__ import annotations

from ralph_mission.hands import codespell, ruff
from ralph_mission.hands.fixer import Fixer

FIXERS: dict[str, Fixer] = {
    "codespell": codespell.FIXER,
    "ruff": ruff.FIXER,
}
