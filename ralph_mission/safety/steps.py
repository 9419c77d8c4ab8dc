"""How far one version is from another: the one rule of what a patch is, for all who judge or propose one.

A patch leaves alone what a release breaks with. Below 1.0 that is the leftmost number that is not zero (as npm's `^`
has it): 0.3.1 → 0.3.2 is patch, 0.3 → 0.4 and 0.0.3 → 0.0.4 are major.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

NUMBER = r"\d{1,18}"
"""One of a version's numbers; what is longer is none."""
Numbers = tuple[int, ...]


class Step(IntEnum):
    """How far a version is from another: smaller steps promise more."""

    PATCH = 1
    MINOR = 2
    MAJOR = 3

    @property
    def word(self) -> str:
        """patch, minor or major."""
        return self.name.lower()


def numbers(spelled: str) -> Numbers:
    """The numbers of a version as it is written."""
    return tuple(map(int, re.findall(NUMBER, spelled)))


def series(version: Sequence[int]) -> Numbers:
    """The numbers that every patch of a version has in common with it."""
    return tuple(version[:2] if any(version[:2]) else version[:3])


def size(old: Sequence[int], new: Sequence[int]) -> Step:
    """How large the step is between the numbers of two versions that differ."""
    if series(old) == series(new):
        return Step.PATCH
    return Step.MINOR if old[0] == new[0] != 0 else Step.MAJOR


def is_patch(old: str, new: str) -> bool:
    """Whether `new` is newer than `old`, and a patch of it."""
    before, after = numbers(old), numbers(new)
    return before < after and size(before, after) is Step.PATCH
