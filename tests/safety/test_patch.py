"""Sizes: every way around a line count (attacks on `git diff --numstat`), and a second opinion."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralph_mission.safety.patch import EXECUTABLE, GITLINK, SYMLINK, WIDTH, Edit, apply, deltas, edits, measure
from tests.safety.checker import fewest_changed_lines, numstat
from tests.safety.making import change, numbered, patch

SEPARATORS = ["\n", "\r", "\r\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\x1d", "\x1e"]
pieces = st.lists(st.sampled_from(["a", "b", "{", "}", "", "é", *SEPARATORS]), max_size=40)
contents = pieces.map(lambda parts: "".join(parts).encode())


def lines(old: bytes | None, new: bytes | None) -> int:
    return measure(patch(change(old=old, new=new))).lines


def test_a_replaced_line_counts_as_one_deleted_and_one_added() -> None:
    assert lines(b"a\nb\nc\n", b"a\nB\nc\n") == 2


def test_a_line_at_each_end_of_a_long_file_counts_only_those_lines() -> None:
    body = numbered(5_000)
    assert lines(b"first\n" + body + b"last\n", b"First\n" + body + b"Last\n") == 4


@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
@pytest.mark.attack(50)
def test_e50_every_separator_ends_a_line(separator: str) -> None:
    assert lines(b"", separator.join(f"x{n}" for n in range(300)).encode()) == 300


@pytest.mark.attack(50)
def test_e50_a_line_of_800_kb_is_not_one_line() -> None:
    assert lines(b"", b"x" * 800_000) == 800_000 // WIDTH


def test_a_paragraph_of_prose_on_one_line_is_one_line() -> None:
    assert lines(b"", b"word " * (WIDTH // 5)) == 1


@pytest.mark.attack(50)
def test_e50_a_nul_byte_hides_no_line() -> None:
    size = measure(patch(change(old=b"", new=b"\0\n" * 60)))
    assert size.lines == 60
    assert size.files[0].binary


@pytest.mark.attack(50)
def test_e50_bytes_that_are_not_utf8_are_binary() -> None:
    assert measure(patch(change(old=b"", new=b"\xff\xfe\n"))).files[0].binary


@pytest.mark.attack(50)
def test_e50_a_pure_rename_counts_as_deletion_and_addition() -> None:
    body = numbered(30)
    size = measure(patch(change("a.py", body, None), change("b.py", None, body)))
    assert [file.status for file in size.files] == ["D", "A"]
    assert size.lines == 60


@pytest.mark.attack(50)
def test_e50_a_mode_change_counts_as_a_line() -> None:
    size = measure(patch(change(old=b"x\n", new=b"x\n", new_mode=EXECUTABLE)))
    assert (size.lines, size.files[0].mode) == (1, EXECUTABLE)


@pytest.mark.attack(50)
def test_e50_an_empty_new_file_counts_as_a_line() -> None:
    assert lines(None, b"") == 1


@pytest.mark.attack(50)
def test_e50_a_file_that_becomes_a_symlink_is_a_change_of_type() -> None:
    size = measure(patch(change(old=b"a", new=b"a", new_mode=SYMLINK)))
    assert (size.files[0].status, size.lines) == ("T", 2)


@pytest.mark.attack(50)
def test_e50_a_gitlink_is_seen() -> None:
    size = measure(patch(change(old=None, new=b"1" * 40, new_mode=GITLINK)))
    assert (size.files[0].status, size.files[0].mode, size.lines) == ("A", GITLINK, 1)


def test_bytes_are_those_of_the_changed_lines() -> None:
    assert measure(patch(change(old=b"same\nold\n", new=b"same\nnewer\n"))).bytes == len(b"old\nnewer\n")


def test_a_file_whose_difference_is_too_costly_counts_whole() -> None:
    old = b"".join(b"%d\n" % (index % 7) for index in range(40_000))
    new = b"".join(b"%d\n" % (index * 3 % 7) for index in range(40_000))
    assert lines(old, new) > 79_000


@given(old=contents, new=contents)
@pytest.mark.attack(50)
def test_never_fewer_lines_than_the_longest_common_subsequence_leaves(old: bytes, new: bytes) -> None:
    assert lines(old, new) >= fewest_changed_lines(old, new)


@given(old=contents)
def test_a_deletion_and_an_addition_count_the_same(old: bytes) -> None:
    assert lines(old, b"") == lines(b"", old)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(old=contents, new=contents)
@pytest.mark.attack(50)
def test_never_fewer_lines_than_git_counts_on_normalised_blobs(tmp_path: Path, old: bytes, new: bytes) -> None:
    assert lines(old, new) >= numstat(tmp_path, old, new)


def test_the_second_opinion_itself_counts_what_numstat_hides(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"")
    (tmp_path / "new").write_bytes(b"x\r" * 500)
    command = ["git", "diff", "--no-index", "--numstat", "old", "new"]
    naive = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert naive.split()[0] == "1"
    assert numstat(tmp_path, b"", b"x\r" * 500) >= 500


# --- the compact form ------------------------------------------------------------------

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
