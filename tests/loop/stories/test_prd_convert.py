"""Markdown PRDs as people and agents write them become ordered stories with the criteria that every story has."""

from __future__ import annotations

import pytest

from ralph_mission.loop.stories import lint
from ralph_mission.loop.stories import prd as convert
from ralph_mission.loop.stories.prd import UnreadablePrd

DOCUMENT = """\
# PRD: Due dates

Tasks say when they are due.

**Project:** Shop

## User Stories

### US-001: Show due date on task cards
**Description:** As a user, I want to see
when a task is due.

**Acceptance Criteria:**
- [ ] Each card shows the date
- [x] Overdue dates are red
- [ ] **[UI stories only]** Verify in browser using dev-browser skill

### US-002: Add due date to database
**Description:** As a developer, I need it stored.

**Acceptance Criteria:**
- [ ] Migration adds `due_on`
- [ ] Typecheck/lint passes

## Functional Requirements

- FR-1: The system must store dates

```markdown
### US-009: An example in a code block
- [ ] nothing
```
"""


def test_a_document_becomes_ordered_stories() -> None:
    prd = convert.convert_prd(DOCUMENT)
    assert (prd.project, prd.branch, prd.description) == (
        "Shop", "ralph/due-dates", "Due dates - Tasks say when they are due.",
    )  # fmt: skip  # one tuple
    assert [(story.id, story.priority, story.passes) for story in prd.stories] == [
        ("US-002", 1, False),
        ("US-001", 2, False),
    ]
    assert prd.stories[0].criteria == ("Migration adds `due_on`", "Typecheck/lint passes")
    assert prd.stories[1].description == "As a user, I want to see when a task is due."
    assert prd.stories[1].criteria == (
        "Each card shows the date", "Overdue dates are red", "Verify in browser using dev-browser skill",
        "Typecheck passes",
    )  # fmt: skip  # one tuple
    assert lint.lint_prd(prd) == ()


def test_standing_criteria_are_added_where_they_are_missing() -> None:
    prd = convert.convert_prd("### US-001: Show a badge\nText.\n\n- Red\n")
    assert prd.stories[0].criteria == ("Red", "Typecheck passes", "Verify in browser")


def test_as_written_nothing_is_added_or_moved() -> None:
    prd = convert.convert_prd(DOCUMENT, complete=False)
    assert [story.id for story in prd.stories] == ["US-001", "US-002"]
    assert len(prd.stories[0].criteria) == 3


@pytest.mark.parametrize(
    ("heading", "name", "title"),
    [("### US-007 - Add a table", "US-007", "Add a table"), ("## Story 3: Add a table", "US-003", "Add a table"),
     ("#### TASK-12 Add a table", "TASK-12", "Add a table"), ("### [US-001] Add a table", "US-001", "Add a table")],
)  # fmt: skip  # a table
def test_headings_as_people_write_them(heading: str, name: str, title: str) -> None:
    story = convert.convert_prd(f"# X\n\n{heading}\n\nIt is stored.\n").stories[0]
    assert (story.id, story.title) == (name, title)


def test_a_number_without_end_names_no_story() -> None:
    prd = convert.convert_prd(f"# X\n\n## User Stories\n\n### Story {'9' * 5_000}: Add a table\n\nIt is stored.\n")
    assert [story.id for story in prd.stories] == ["US-001"]


def test_plain_headings_below_user_stories_are_stories() -> None:
    prd = convert.convert_prd(
        "# X\n## User Stories\n### Add a table\nStored.\n### Show it\nSeen.\n## Non-Goals\n### No\n"
    )
    assert [(story.id, story.title) for story in prd.stories] == [("US-001", "Add a table"), ("US-002", "Show it")]


def test_requirements_are_stories_when_there_are_none() -> None:
    text = "# Task status\n\n## Requirements\n- Show status badge on each task\n- Persist status in database\n"
    prd = convert.convert_prd(text)
    assert [story.title for story in prd.stories] == ["Persist status in database", "Show status badge on each task"]


def test_a_branch_that_the_document_names_is_taken() -> None:
    assert convert.convert_prd("# X\n\n**Branch:** `ralph/y`\n\n### US-001: Add a table\n").branch == "ralph/y"


@pytest.mark.parametrize("text", ["", "# Title\n\nOnly prose.\n", "```\n### US-001: x\n```\n", "x" * 4_000_001])
def test_a_document_without_stories_is_refused(text: str) -> None:
    with pytest.raises(UnreadablePrd):
        convert.convert_prd(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Add Task Priorities!", "add-task-priorities"),
        ("…", "feature"),
        ("../../etc/passwd", "etc-passwd"),
        ("word " * 40, "word-" * 9 + "word"),
    ],
)
def test_names_in_kebab_case(text: str, name: str) -> None:
    assert convert.slug_of(text) == name
