"""Reading what a session may have broken: what cannot be read is as it last could be, and the doubt is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ralph_mission.trouble import UserError

Value = TypeVar("Value")


class LastKnown:
    """What each named thing was when it last could be read. `doubts` are those of this look, for people to read."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.doubts: list[str] = []

    def look(self) -> None:
        """Begin a new look: earlier doubts were told."""
        self.doubts = []

    def read(self, what: str, read: Callable[[], Value], default: Value) -> Value:
        """What `read` gives, or gave when it last could; `default` where it never could."""
        try:
            self._known[what] = read()
        except UserError as trouble:
            self.doubts.append(f"{trouble.what}; what was known before is used")
        except OSError as error:
            reason = (error.strerror or "no reason given").lower()
            self.doubts.append(f"{what} cannot be read ({reason}); as known before")
        known: Value = self._known.get(what, default)
        return known
