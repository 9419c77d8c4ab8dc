"""What a session is asked to leave behind."""

from __future__ import annotations

import pytest

from ralph_mission.loop.model.spec import RunSpec
from ralph_mission.loop.model.state import Hat
from tests.loop.prompt.test_session import BUILDER, FRESH, ORDER, REVIEWER, part, text


@pytest.mark.parametrize(
    ("spec", "hat", "asked"),
    [
        (FRESH, None, True),
        (FRESH, Hat("builder"), True),
        (FRESH, BUILDER, False),  # would be undone
        (FRESH, Hat("builder", write_denied=("*.md",)), False),
        (FRESH, REVIEWER, False),
        (ORDER, None, False),
    ],
)
def test_who_works_through_stories_leaves_lasting_patterns_where_everybody_reads_them(
    spec: RunSpec, hat: Hat | None, asked: bool
) -> None:
    assert ("AGENTS.md" in part(text(spec, hat=hat), "HOW TO WORK")) == asked
