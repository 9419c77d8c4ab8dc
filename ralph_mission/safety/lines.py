"""Line differences with a bounded cost: Myers' O(ND), so a hostile file cannot make it quadratic.

Shared by the measuring of patches and by their compact form. Where the budget runs out the
whole middle counts as replaced: more than really changed, never less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Line = TypeVar("Line", str, bytes)
Span = tuple[int, int, int, int]
"""`old[a:b]` became `new[c:d]`, 0-based and half-open."""

DEEPEST = 500
"""Edits looked for. Ten times the largest automatic change; beyond it the exact number matters to nobody."""
BUDGET = 4_000_000
"""Steps of the inner loop, about a second."""


def changed(old: Sequence[Line], new: Sequence[Line]) -> tuple[Span, ...]:
    """The spans that differ, in order and apart. Minimal within the budget."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    return tuple((a + head, b + head, c + head, d + head) for a, b, c, d in _middle(before, after))


def _common(old: Sequence[Line], new: Sequence[Line]) -> int:
    shorter = min(len(old), len(new))
    return next((index for index in range(shorter) if old[index] != new[index]), shorter)


def _middle(old: Sequence[Line], new: Sequence[Line]) -> list[Span]:
    if not old and not new:
        return []
    numbers: dict[Line, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    trace = _frontiers(a, b, min(DEEPEST, BUDGET // (len(a) + len(b))))
    return [(0, len(a), 0, len(b))] if trace is None else _spans(trace, len(a), len(b))


def _frontiers(a: list[int], b: list[int], deepest: int) -> list[dict[int, int]] | None:
    """How far each diagonal got before each edit; None when more than `deepest` edits are needed."""
    frontier, trace = {1: 0}, []
    for depth in range(deepest + 1):
        trace.append(dict(frontier))
        for k in range(-depth, depth + 1, 2):
            x = frontier[k + 1] if _goes_down(frontier, k, depth) else frontier[k - 1] + 1
            while x < len(a) and 0 <= x - k < len(b) and a[x] == b[x - k]:
                x += 1
            frontier[k] = x
            if x >= len(a) and x - k >= len(b):
                return trace
    return None


def _goes_down(frontier: dict[int, int], k: int, depth: int) -> bool:
    return k == -depth or (k != depth and frontier[k - 1] < frontier[k + 1])


def _spans(trace: list[dict[int, int]], x: int, y: int) -> list[Span]:
    """Walk back from the end: the edits, joined where they touch."""
    spans: list[Span] = []
    for depth in range(len(trace) - 1, 0, -1):
        down = _goes_down(trace[depth], x - y, depth)
        k = x - y + (1 if down else -1)
        x = trace[depth][k]
        y = x - k
        edit = (x, x, y, y + 1) if down else (x, x + 1, y, y)
        if spans and spans[-1][0] == edit[1] and spans[-1][2] == edit[3]:
            edit = (edit[0], spans[-1][1], edit[2], spans.pop()[3])
        spans.append(edit)
    return spans[::-1]
