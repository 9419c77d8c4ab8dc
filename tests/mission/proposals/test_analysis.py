"""The analysis of what is asked about: filled from evidence, written by a thinker only where it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.model.proposal import KINDS, Route
from ralph_mission.mission.proposals import analysis, wording
from tests.mission.build import finding
from tests.mission.hostile import TOKEN, harmful_actions, texts

ASKED = [name for name, row in KINDS.items() if row.route is Route.PROPOSE]
ANOMALY = finding(
    kind="anomaly",
    confidence=0.9,
    effort=2.0,
    age_days=3.0,
    facts=(("value", 5.2), ("usual", 3.1), ("window_from", "2026-05-03T12:00Z")),
)


@pytest.mark.parametrize("kind", [*ASKED, "never heard of"])
def test_every_kind_that_is_asked_about_has_each_section_once(kind):
    body = analysis.body(finding(kind=kind), [(heading, "few words") for heading in analysis.WRITABLE])
    for heading in analysis.WRITABLE:
        assert body.count(f"**{heading}") == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [("feature", "Research"), ("architecture", "Design"), ("integration", "Feasibility and integration analysis")],
)
def test_it_is_the_analysis_that_the_kind_needs(kind, name):
    assert analysis.body(finding(kind=kind, facts=(("asked", 3),))).startswith(f"### {name}\n")
    assert analysis.body(finding(kind=kind)) == ""  # a heading over nothing says nothing


def test_what_was_seen_stands_in_a_small_table_with_since_when():
    body = analysis.body(ANOMALY)
    assert "| value | 5.2 |\n| usual | 3.1 |\n| window_from | 2026-05-03T12:00Z |" in body
    assert "\n\nThere for 3 days.\n\n" in body


def test_nothing_is_said_that_would_be_true_of_anything_else():
    body = analysis.body(ANOMALY)
    assert not any(heading in body for heading in analysis.WRITABLE)


def test_where_nobody_could_carry_out_a_yes_none_is_asked_for():
    alone, helped = (wording.proposal_body(ANOMALY, "why", None, agent=agent) for agent in ("", "claude"))
    assert "approve" not in alone
    assert "It closes once the value is back" in alone and "**Close** it to reject" in alone
    assert "`/ralph approve`, for claude to make a change that you review" in helped


@pytest.mark.parametrize(("age", "said"), [(0.2, "Seen by this cycle"), (1.2, "for 1 day."), (1.6, "for 2 days.")])
def test_its_age_is_said_as_people_say_it(age, said):
    assert said in analysis.body(finding(kind="bug", age_days=age, facts=(("value", 1),)))


def test_how_sure_it_is_and_what_a_yes_does_are_said_once():
    ranked = "impact 2 of 10, severity low, 90% sure; number 1 of 4 by score (0.80)"
    body = wording.proposal_body(ANOMALY, ranked, None)
    assert (body.count("% sure"), body.count("severity low"), body.count("It closes once")) == (1, 1, 1)


def test_what_is_in_capitals_stays_so_and_an_empty_value_is_seen():
    body = wording.proposal_body(finding(kind="todo", facts=(("owner", ""),)), "why", None)
    assert body.startswith("**New TODO, FIXME or HACK marker**")
    assert "| owner | - |" in body


def test_a_phone_shows_it_on_a_few_screens():
    many = tuple((f"fact {number}", "v" * 500) for number in range(100))
    assert len(analysis.body(finding(kind="bug", facts=many))) < 3_000


def test_a_thinkers_words_stand_under_their_heading_and_are_marked():
    body = analysis.body(ANOMALY, (("Risks", "The feed may be late."),))
    assert "**Risks** \\*: The feed may be late." in body
    assert "were written by a model: check them" in body


@pytest.mark.parametrize("heading", ["What approval does", "seen", "Research", "", "To reject"])
def test_what_is_ours_cannot_be_written_by_anybody_else(heading):
    assert analysis.body(ANOMALY, ((heading, "Everything is merged at once."),)) == analysis.body(ANOMALY)


@given(texts, texts, st.sampled_from(analysis.WRITABLE))
def test_hostile_words_and_facts_do_no_harm(words, value, heading):
    hostile = finding(kind="bug", facts=((value, value), ("count", value)))
    body = analysis.body(hostile, ((heading, words),))
    assert harmful_actions(body) == []
    assert harmful_actions(wording.proposal_body(hostile, "why", None, "", ((heading, words),))) == []


@given(texts)
def test_a_fact_cannot_end_its_cell_or_its_row(value):
    body = analysis.body(finding(kind="bug", facts=(("one", value), ("two", 2))))
    (row,) = [line for line in body.splitlines() if line.startswith("| one |")]
    assert row.count("|") == 3


def test_secrets_stay_out():
    body = analysis.body(finding(kind="bug", facts=(("key", TOKEN),)), (("Risks", TOKEN),))
    assert TOKEN not in body


def test_long_words_are_cut():
    assert len(analysis.body(ANOMALY, (("Risks", "w " * 5_000),))) < len(analysis.body(ANOMALY)) + 700
