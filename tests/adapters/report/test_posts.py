"""Posts in reports: where, what came of them, and the exact words; within the rows that a person reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.report.dashboard import dashboard
from ralph_mission.adapters.report.step_summary import step_summary
from ralph_mission.adapters.report.summary import ROWS, summary
from ralph_mission.adapters.report.voice import WIDTH, rows
from ralph_mission.mission.model.cycle import CycleSummary, PostLine
from ralph_mission.mission.model.forge import Posted
from tests.adapters.report.samples import MEMORY, NOON, REPORT, STATE

SAID = "Osmosis TVL up 45% this week"
POSTS = (
    PostLine("twitter", "done", "https://x.test/7", (SAID,), (28,), 280),
    PostLine("telegram", "unknown", "", (SAID,), (28,), 4096),
    PostLine("discord", "failed", "", ("Longer words", "in two parts"), (12, 12), 2000),
)
texts = st.text(max_size=400)
lines = st.lists(texts, max_size=40).map(tuple)
posts = st.lists(
    st.builds(
        lambda network, text: PostLine(network, "done", "", (text, text), (len(text),) * 2, 280), st.text(), texts
    ),
    max_size=6,
).map(tuple)


def test_the_summary_names_each_network_with_its_fate_and_how_the_post_begins() -> None:
    shown = summary(REPORT, CycleSummary(posts=POSTS)).splitlines()
    start = shown.index("said")
    assert shown[start + 1 : start + 5] == [
        "  twitter https://x.test/7, telegram unknown",
        f"    {SAID}",
        "  discord failed",
        "    Longer words",
    ]


def test_before_anything_is_sent_all_of_it_stands_there_with_its_length() -> None:
    thread = replace(POSTS[0], status="staged", url="", parts=("one " * 60, "two"), lengths=(240, 3))
    shown = summary(replace(REPORT, staged=True), CycleSummary(posts=(thread,)))
    assert "would be said\n  twitter (240, 3 of 280)\n" in shown
    assert " ".join(shown.split()).count("one") >= 60
    assert "/ two" in " ".join(shown.split())


@pytest.mark.parametrize("staged", [False, True])
@given(lines, lines, lines, lines, posts)
def test_posts_take_no_rows_that_are_not_there(staged, why, held, waiting, remarks, said) -> None:
    told = CycleSummary(why, held, waiting, remarks, posts=said)
    shown = summary(replace(REPORT, staged=staged), told).split("\n")
    assert sum(rows(line, WIDTH) for line in shown) <= ROWS


def test_the_page_of_a_job_holds_the_exact_words_and_no_markup_of_theirs() -> None:
    hostile = replace(POSTS[0], parts=("<b>a</b> [b](https://evil.test) @mara fixes #1",))
    page = step_summary(REPORT, CycleSummary(posts=(*POSTS, hostile)))
    assert f"- twitter done (28 of 280): {SAID}" in page
    assert "- telegram unknown (28 of 4096)" in page
    assert "Longer words / in two parts" in page
    assert "<b>" not in page
    assert "](https://evil.test" not in page


def test_the_dashboard_shows_the_last_posts_and_how_people_reacted() -> None:
    out = [Posted(f"k{n}", "twitter", "anomaly", NOON - timedelta(days=n), url=f"https://x.test/{n}") for n in range(9)]
    out[0] = replace(out[0], reactions=12, measured_at=NOON)
    page = dashboard(MEMORY, replace(STATE, posted=tuple(out)), "harbour")
    part = page[page.index("## Posts") :].split("## ")[1]
    assert part.count("**twitter**") == 5
    assert ", 12 reactions" in part
    assert "## Posts" not in dashboard(MEMORY, STATE, "harbour")
