"""On which line of a text something stands: for each entry of a lock file, at the cost of reading it once."""

from __future__ import annotations

import re
from bisect import bisect_left


class Lines:
    """The lines of one text, from 1 on. What is looked for stands mostly behind what was looked for before."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def at(self, offset: int) -> int:
        """The line of a character."""
        return bisect_left(self._ends, offset) + 1

    def of(self, mark: str, then: str = "") -> int:
        """The line of a mark, or of what follows on it; 0 when it is not there."""
        at = self._text.find(mark, self._at)
        at = self._text.find(mark) if at < 0 else at
        if at < 0:
            return 0
        self._at = at
        there = self._text.find(then, at)
        return self.at(there) if there >= 0 else 0
