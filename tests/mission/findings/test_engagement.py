"""What posts teach: counted from measured posts alone, modest in what it moves, and the same from the journal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.thinkers.rules import RulesThinker
from ralph_mission.mission.findings.engagement import factors, lines
from ralph_mission.mission.findings.ranking import rank, score
from ralph_mission.mission.model.posts import Posted
from ralph_mission.mission.ports import Brief
from tests.mission.build import NOW, finding


def post(kind="anomaly", reactions=0, network="twitter", measured=True, key="") -> Posted:
    made = Posted(key or f"{kind}{network}{reactions}", network, kind, NOW, reactions=reactions)
    return replace(made, measured_at=NOW) if measured else made


def test_a_kind_that_people_react_to_gains_and_one_that_they_do_not_loses():
    fared = factors([post(reactions=30), post(reactions=40), post("news", 1), post("news", 2)])
    assert fared == {"anomaly": 1.125, "news": 0.875}


@pytest.mark.parametrize("silent", [[], [post(measured=False)], [post(network="outbox", reactions=9)]])
def test_what_nobody_measured_teaches_nothing(silent):
    assert (factors(silent), lines(silent)) == ({}, ())


def test_posts_are_compared_within_their_network():
    quiet = [post("news", 3, "discord"), post("anomaly", 1, "discord")]
    loud = [post("news", 300), post("anomaly", 900)]
    assert factors([*quiet, *loud]) == {"anomaly": 1.0, "news": 1.0}


@given(st.lists(st.builds(post, st.sampled_from(["anomaly", "news"]), st.integers(0, 10**6))))
def test_it_never_moves_a_score_by_more_than_a_quarter(posts):
    assert all(0.75 <= factor <= 1.25 for factor in factors(posts).values())


def test_a_line_names_what_it_was_counted_from():
    (line,) = lines([post(reactions=10), post(reactions=20)])
    assert line == (
        "Posts about anomalies (anomaly) on twitter: 2 posts measured, 15 reactions at the median; "
        "the next one is expected to do better than most with 50%."
    )


def test_ranking_takes_it_into_account_and_says_so():
    liked, ignored = finding(kind="anomaly", essence=("a",)), finding(kind="feature", essence=("b",))
    fared = {"anomaly": 0.75, "feature": 1.25}
    assert score(liked, {}, {}, fared) == pytest.approx(0.75 * score(liked, {}, {}))
    said = {thought.kind: thought.why for thought in rank([liked, ignored], {}, {}, fared)}
    assert "posts about its kind do worse than most" in said["anomaly"]
    assert "posts about its kind do better than most" in said["feature"]
    assert "posts about" not in rank([liked], {}, {})[0].why


def test_the_rules_thinker_is_told():
    found = finding(kind="anomaly")
    brief = Brief((found,), (), {}, None, None, NOW, {"anomaly": 1.25})  # type: ignore[arg-type]  # the rest is not read
    assert RulesThinker().think(brief).thoughts[0].score == pytest.approx(1.25 * score(found, {}, {}))
