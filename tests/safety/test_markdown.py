from __future__ import annotations

import pytest

from ralph_mission.safety.markdown import code_spans

TABLE = "| a | b | c |\n|---|---|---|\n"


@pytest.mark.attack(28)
@pytest.mark.parametrize(
    "row",
    [
        "| `a\\|@b` | `a|@b` |",  # the first cell's code looks as if it stood in the next two, which are live
        "| \\`@b`\\| | `@b` |",  # the second cell's as if it stood in the first
    ],
)
def test_code_whose_place_is_in_doubt_hides_nothing(row: str) -> None:
    assert code_spans(f"{TABLE}{row}\n") == ()


@pytest.mark.attack(28)
@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("| \\`@b` | `@b` |", [10]),  # the first cell's name is live
        ("| `@b` | `@b` |", [2, 9]),
        ("| @b | `@b` |", [7]),
        ("|  | `@b` |", [5]),
        ("`@b` | `@b`", [0, 7]),
    ],
)
def test_equal_cells_of_a_row_are_told_apart(row: str, code: list[int]) -> None:
    begin = len(TABLE)
    assert code_spans(f"{TABLE}{row}\n") == tuple((begin + at, begin + at + len("`@b`")) for at in code)
