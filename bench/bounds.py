"""How many times as much a large case may cost as a small one of the same run: `beyond` names what costs more.

Both sides of a bound are measured in one run, so that it says the same on any machine. Where it is of a time it has
room for a machine that became busy between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.spent import Figures, Told

AT_MOST = "at most"
ROOM = 8.0
"""How many times as much of the clock as of processors: where others keep a machine busy, the same cycle took 1.9 s at
one moment and 18 s some minutes later, and 1.4 times as much of processors. What waits more with its size is beyond it
all the same."""


@dataclass(frozen=True, slots=True)
class Most:
    """At most so many times as much, and `each` more for every time as large.

    What is the same for any size and what grows with it stay below, and what grows with its square does not.
    """

    times: float
    each: float = 0.0

    def of(self, larger: float) -> float:
        """The bound where the large case is so many times as large."""
        return round(self.times + self.each * larger, 1)

    @property
    def waited(self) -> Most:
        """The bound of the clock, where this is one of processors."""
        return Most(ROOM * self.times, ROOM * self.each)


Bounds = Mapping[str, Most]


def limits(bounds: Bounds, larger: float) -> Figures:
    """A row of bounds, to stand in a table beside the ratios that it bounds."""
    return {name: most.of(larger) for name, most in bounds.items()}


def beyond(told: Told) -> list[str]:
    """A line for each figure that is more than the table allows where it stands.

    The row `A, at most` bounds all others whose names begin with `A, `.
    """
    ends = f", {AT_MOST}"
    return [
        line
        for title, rows in told.items()
        for bound in rows
        if bound.endswith(ends)
        for line in _beyond(title, rows, bound.removesuffix(AT_MOST), rows[bound])
    ]


def _beyond(title: str, rows: Mapping[str, Figures], begins: str, most: Figures) -> Iterator[str]:
    bounded = {what: figures for what, figures in rows.items() if what.startswith(begins) and figures is not most}
    for what, figures in bounded.items():
        for name, limit in most.items():
            if name in figures and not figures[name] <= limit:
                yield f"beyond its bound: {title}: {what}: {name} is {figures[name]:,g}, at most {limit:,g}"
