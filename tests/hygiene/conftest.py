"""The action as a runner downloads it, from the tests of the action."""

from __future__ import annotations

from tests.action.conftest import action

__all__ = ["action"]
