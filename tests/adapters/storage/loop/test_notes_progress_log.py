"""progress.txt on disk: appended to whole, mended after a session that cut it."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.notes import MAX_BYTES, ProgressLog

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
OLD = (
    "# Ralph Progress Log\nStarted: x\n\n## Codebase Patterns\n- Use Zod\n\n---\n\n"
    "## [2026-05-01 10:00] - US-001\n- Did it\n---\n"
)
ENTRY = "## [2026-05-04 12:00] - US-002\n- Attempted in session 1 (ralph)\n- Failed because red\n---\n"


def log(root: Path, text: str | None = OLD) -> ProgressLog:
    if text is not None:
        (root / "progress.txt").write_text(text)
    return ProgressLog(root)


def test_a_log_begins_with_its_head(tmp_path: Path) -> None:
    log(tmp_path, None).append(ENTRY, NOW)
    text = (tmp_path / "progress.txt").read_text()
    assert text.startswith("# Ralph Progress Log\nStarted: 2026-05-04 12:00 UTC\n")
    assert text.endswith(ENTRY)


def test_what_was_there_stays_byte_for_byte(tmp_path: Path) -> None:
    log(tmp_path).append(ENTRY, NOW)
    assert (tmp_path / "progress.txt").read_text() == OLD + ENTRY


def test_an_entry_starts_on_a_line_of_its_own(tmp_path: Path) -> None:
    log(tmp_path, OLD.rstrip("\n")).append(ENTRY, NOW)
    assert (tmp_path / "progress.txt").read_text() == OLD + ENTRY


@pytest.mark.parametrize("damage", ["", "# Ralph Progress Log\n", OLD[:90]])
def test_a_log_that_a_session_truncated_is_whole_again(tmp_path: Path, damage: str) -> None:
    store = log(tmp_path)
    store.read()
    (tmp_path / "progress.txt").write_text(damage)
    assert [change.path for change in store.restore()] == ["progress.txt"]
    assert (tmp_path / "progress.txt").read_text() == OLD
    assert store.restore() == ()


def test_a_log_that_a_session_deleted_is_back(tmp_path: Path) -> None:
    store = log(tmp_path)
    store.read()
    (tmp_path / "progress.txt").unlink()
    assert [change.how for change in store.restore()] == ["deleted"]
    assert (tmp_path / "progress.txt").read_text() == OLD


def test_a_log_that_a_session_wrote_anew_keeps_both(tmp_path: Path) -> None:
    store = log(tmp_path)
    store.read()
    (tmp_path / "progress.txt").write_text(ENTRY)
    store.restore()
    assert (tmp_path / "progress.txt").read_text() == OLD + ENTRY


def test_what_a_session_appends_is_left_alone(tmp_path: Path) -> None:
    store = log(tmp_path)
    store.read()
    (tmp_path / "progress.txt").write_text(OLD + ENTRY)
    assert store.restore() == ()
    assert (tmp_path / "progress.txt").read_text() == OLD + ENTRY


def test_a_link_that_leads_out_is_neither_read_nor_appended_to(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "secret.txt"
    root.mkdir()
    outside.write_text(OLD)
    store = log(root)
    store.read()
    (root / "progress.txt").unlink()
    (root / "progress.txt").symlink_to(outside)
    assert ProgressLog(root).read().patterns == ()
    store.append(ENTRY, NOW)
    assert outside.read_text() == OLD
    assert (root / "progress.txt").read_text() == OLD + ENTRY


def test_a_folder_in_the_logs_place_is_moved_aside(tmp_path: Path) -> None:
    store = log(tmp_path)
    store.read()
    (tmp_path / "progress.txt").unlink()
    (tmp_path / "progress.txt").mkdir()
    store.restore()
    assert (tmp_path / "progress.txt").read_text() == OLD


def test_a_disk_that_is_full_adds_nothing_to_the_log_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = log(tmp_path), os.write
    monkeypatch.setattr(os, "write", lambda where, content: real(where, content[:10]))
    with pytest.raises(OSError, match="No space left"):
        store.append(ENTRY, NOW)
    assert (tmp_path / "progress.txt").read_text() == OLD


def test_appending_mends_first(tmp_path: Path) -> None:
    store = log(tmp_path)
    store.read()
    (tmp_path / "progress.txt").write_text("")
    store.append(ENTRY, NOW)
    assert (tmp_path / "progress.txt").read_text() == OLD + ENTRY


def test_a_log_that_a_session_blew_up_is_as_before(tmp_path: Path) -> None:
    store = log(tmp_path)
    store.read()
    with open(tmp_path / "progress.txt", "ab") as file:
        file.write(b"x" * (MAX_BYTES + 1))
    store.restore()
    assert (tmp_path / "progress.txt").read_text() == OLD


def test_a_huge_log_is_read_at_both_ends_and_never_cut(tmp_path: Path) -> None:
    text = OLD + "filling\n" * (MAX_BYTES // 8) + ENTRY + "## [2026-05-04 13:00] - US-003\n- Did it\n---\n"
    store = log(tmp_path, text)
    notes = store.read()
    assert (notes.patterns, notes.last_completed) == (("Use Zod",), "US-003")
    assert "larger than" in store.complaint
    store.append(ENTRY, NOW)
    assert (tmp_path / "progress.txt").read_text() == text + ENTRY


def test_a_log_without_a_readable_letter_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "progress.txt").write_bytes(b"\xff\xfe\x00")
    assert ProgressLog(tmp_path).read().learnings == ()


def test_patterns_of_agents_md_and_claude_md_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# A\n## Codebase Patterns\n- Use Zod\n- One query\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert log(tmp_path).read().patterns == ("Use Zod", "One query")


def test_without_a_log_there_is_nothing_to_learn(tmp_path: Path) -> None:
    store = log(tmp_path, None)
    assert store.read().learnings == ()
    assert (store.complaint, store.restore(), store.text()) == ("", (), "")


def test_entries_appended_at_the_same_time_are_all_whole(tmp_path: Path) -> None:
    log(tmp_path)
    entries = [f"## [2026-05-04 12:00] - US-{n:03}\n- {'x' * 500}\n---\n" for n in range(40)]
    threads = [threading.Thread(target=lambda one=one: ProgressLog(tmp_path).append(one, NOW)) for one in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = (tmp_path / "progress.txt").read_text()
    assert text.startswith(OLD)
    assert all(text.count(entry) == 1 for entry in entries)


@pytest.mark.attack(46)
def test_a_guide_that_is_a_link_out_of_the_work_tree_teaches_nothing(tmp_path: Path) -> None:
    (tree := tmp_path / "tree").mkdir()
    secret = tmp_path / "guide.md"
    secret.write_text("## Codebase Patterns\n- the key is under the mat\n")
    (tree / "AGENTS.md").symlink_to(secret)
    (tree / "CLAUDE.md").write_text("## Codebase Patterns\n- tests stand beside\n")
    assert ProgressLog(tree).read().patterns == ("tests stand beside",)
