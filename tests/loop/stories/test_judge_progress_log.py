"""progress.txt as people, snarktank/ralph and oh-my-claudecode write it, and how its past is kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ralph_mission.loop.model.state import ProgressNotes
from ralph_mission.loop.stories import judge

SNARKTANK = """\
## Codebase Patterns
- Use `sql<number>` for sums
- Export types from actions.ts

# Ralph Progress Log
Started: Mon Jan  5 10:00:00 UTC 2026
---

## 2026-01-05 10:20 - US-001
Thread: T-1
- Added the column
- Files changed: schema.ts
- **Learnings for future iterations:**
  - Migrations live in db/
  - **Gotcha:** run them twice
---

## 2026-01-05 11:00 - US-002
- Attempted to implement the badge
- Failed because the token expires
- **Learnings:** refresh it first
---
"""
OMC = """\
# Ralph Progress Log
Started: 2026-01-05T10:00:00.000Z

## Codebase Patterns
(No patterns discovered yet)
- Validate with Zod

---


## [2026-01-05 10:20] - US-001

**What was implemented:**
- Tables

**Files changed:**
- db.ts

**Learnings for future iterations:**
- compare is async

---

## [2026-01-05 11:20] - US-003

**What was implemented:**
- Route

---
"""
NEXT = "\n## 2026-01-05 12:00 - US-003\n- Did it\n---\n"


def test_the_log_of_snarktank_is_read() -> None:
    assert judge.notes(SNARKTANK) == ProgressNotes(
        ("Use `sql<number>` for sums", "Export types from actions.ts"),
        ("Migrations live in db/", "**Gotcha:** run them twice", "refresh it first"),
        "US-001",
    )


def test_the_log_of_oh_my_claudecode_is_read() -> None:
    assert judge.notes(OMC) == ProgressNotes(("Validate with Zod",), ("compare is async",), "US-003")


def test_a_story_that_failed_after_its_entry_is_not_the_last_completed() -> None:
    log = SNARKTANK + "## [2026-01-05 12:00] - US-001\n- Attempted in session 3 (ralph)\n- Failed because red\n---\n"
    assert judge.notes(log).last_completed == ""


def test_a_new_log_is_a_log_for_both() -> None:
    head = judge.header(datetime(2026, 5, 4, 12, 0, tzinfo=UTC))
    assert head.startswith("# Ralph Progress Log\nStarted: 2026-05-04 12:00 UTC\n")
    assert judge.notes(head) == ProgressNotes()
    assert not judge.says(head)
    assert judge.says(head + NEXT)


def test_patterns_of_agents_md_are_read_the_same_way() -> None:
    guide = "# Agents\n\n## Commands\n- make test\n\n## Codebase Patterns\n- One query per page\n\n## Other\n- x\n"
    assert judge.patterns(guide) == ("One query per page",)


@pytest.mark.parametrize("log", [SNARKTANK, OMC])
def test_what_is_added_is_no_loss(log: str) -> None:
    assert not judge.has_lost_entries(log, log + NEXT)
    assert judge.restore_entries(log, log + NEXT) == log + NEXT


def test_patterns_may_be_added_to_and_consolidated() -> None:
    grown = SNARKTANK.replace("- Export types from actions.ts\n", "- Export types\n- Use `IF NOT EXISTS`\n")
    assert not judge.has_lost_entries(SNARKTANK, grown)


def test_patterns_may_be_begun_on_top() -> None:
    old = "# Ralph Progress Log\nStarted: today\n---\n" + NEXT
    assert not judge.has_lost_entries(old, "## Codebase Patterns\n- New one\n\n" + old)


@pytest.mark.parametrize(
    "after", ["", "# Ralph Progress Log\n", SNARKTANK[:300], SNARKTANK.replace("expires", "works")]
)
def test_what_was_cut_or_reworded_is_back(after: str) -> None:
    assert judge.has_lost_entries(SNARKTANK, after)
    mended = judge.restore_entries(SNARKTANK, after)
    assert not judge.has_lost_entries(SNARKTANK, mended)
    assert "Failed because the token expires" in mended


def test_a_log_written_anew_keeps_its_past_and_what_is_new() -> None:
    mended = judge.restore_entries(SNARKTANK, "# Ralph Progress Log\n" + NEXT)
    assert mended == SNARKTANK + NEXT.lstrip("\n")
    assert judge.notes(mended).last_completed == "US-003"


def test_a_line_that_took_the_logs_place_is_kept_behind_it() -> None:
    assert judge.restore_entries(SNARKTANK, "Done with US-002\n") == SNARKTANK + "Done with US-002\n"


def test_patterns_that_were_wiped_are_back() -> None:
    wiped = SNARKTANK[SNARKTANK.index("# Ralph") :]
    assert judge.has_lost_entries(SNARKTANK, wiped)
    assert judge.patterns(judge.restore_entries(SNARKTANK, wiped)) == judge.patterns(SNARKTANK)


def test_new_patterns_survive_a_cut_log() -> None:
    mended = judge.restore_entries(SNARKTANK, "## Codebase Patterns\n- Only this\n\n")
    assert judge.patterns(mended) == ("Only this",)
    assert not judge.has_lost_entries(SNARKTANK, mended)


def test_entries_in_another_order_are_put_back() -> None:
    head, first, second = SNARKTANK.partition("## 2026-01-05 10:20")[0], *SNARKTANK.split("\n## 2026-")[1:]
    assert judge.has_lost_entries(SNARKTANK, f"{head}## 2026-{second}\n## 2026-{first}\n")


def test_mending_twice_changes_nothing() -> None:
    once = judge.restore_entries(SNARKTANK, NEXT)
    assert judge.restore_entries(SNARKTANK, once) == once


def test_a_heading_of_a_million_digits_is_no_entry() -> None:
    assert judge.notes(f"## {'1' * 1_000_000} x") == ProgressNotes()
