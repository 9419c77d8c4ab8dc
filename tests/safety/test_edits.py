"""The compact form of a patch is exact, also for large files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.safety.edits import Edit, apply, deltas, edits
from tests.safety.making import change, numbered, patch

texts = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\u2028", "é", "x\n"]), max_size=40).map("".join)


@given(old=texts, new=texts)
def test_applying_the_edits_gives_the_new_text(old: str, new: str) -> None:
    assert apply(old.encode(), edits(old.encode(), new.encode())) == new.encode()


def test_two_edits_in_a_large_file_stay_two_small_edits() -> None:
    old = b"head\n" + numbered(20_000) + b"}\n" * 5_000 + b"tail\n"
    new = old.replace(b"head", b"HEAD").replace(b"tail", b"TAIL")
    assert edits(old, new) == (Edit(0, 1, ("HEAD\n",)), Edit(25_001, 1, ("TAIL\n",)))


def test_a_hostile_large_file_still_has_an_exact_form() -> None:
    old = b"".join(b"%d\n" % (index % 7) for index in range(30_000))
    new = b"".join(b"%d\n" % (index * 3 % 7) for index in range(30_000))
    assert apply(old, edits(old, new)) == new


def test_an_edit_past_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="past the end"):
        apply(b"a\n", (Edit(1, 1, ()),))


def test_a_deleted_file_has_no_mode() -> None:
    assert deltas(patch(change(old=b"a\n", new=None)))[0].mode == ""


def test_what_is_not_text_has_no_compact_form() -> None:
    with pytest.raises(UnicodeDecodeError):
        deltas(patch(change(old=b"", new=b"\xff")))
