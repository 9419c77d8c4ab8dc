"""Memories within a budget: the newest entries, whole, in the order of the file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.loop.prompt.situation import within

FILE = """# Memories

## Patterns

### mem-1
> use the factory
<!-- tags: style | created: 2026-01-03 -->

### mem-2
> old habit
<!-- tags: style | created: 2025-01-01 -->

## Fixes

### mem-3
> the cache was stale
<!-- tags: bug | created: 2026-01-02 -->
"""


def test_what_fits_is_left_as_it_is() -> None:
    assert within(FILE, len(FILE)) == (FILE, 0)


def test_the_newest_stay_in_the_order_of_the_file() -> None:
    kept, left = within(FILE, 160)
    assert kept.index("mem-1") < kept.index("mem-3") and "mem-2" not in kept
    assert left == 1


def test_an_entry_goes_whole_or_not_at_all() -> None:
    kept, left = within(FILE, 80)
    assert kept == "### mem-1\n> use the factory\n<!-- tags: style | created: 2026-01-03 -->"
    assert left == 2


def test_without_dates_those_further_down_are_newer() -> None:
    kept, left = within("\n".join(f"### mem-{n}\n> {n}" for n in range(100)), 50)
    assert kept.endswith("> 99") and "> 0" not in kept.split("\n") and left > 90


def test_a_text_without_entries_keeps_its_tail_at_a_line() -> None:
    assert within("first line\nsecond line\n", 15) == ("second line\n", 1)


def test_a_budget_of_nothing_switches_memories_off() -> None:
    assert within(FILE, 0) == ("", 0)


@given(
    st.lists(st.sampled_from(["### a\n", "## b\n", "> c\n", "created: 2026-01-01\n", "x" * 50])), st.integers(1, 200)
)
def test_the_budget_is_kept_whatever_the_file_says(pieces: list[str], budget: int) -> None:
    assert len(within("".join(pieces), budget)[0]) <= budget
