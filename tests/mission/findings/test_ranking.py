"""A model's opinions on the rules' thoughts: they order and explain, they may ask more often, and lose nothing.

What posts teach: counted from measured posts alone, modest in what it moves, and the same from the journal.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.thinkers import RulesThinker
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.findings.ranking import (
    ModelRanking,
    apply_model_rankings,
    engagement_factors,
    engagement_lines,
    rank,
    score,
)
from ralph_mission.mission.model.effects import OpenIssue
from ralph_mission.mission.model.forge import Post, Posted, Wording
from ralph_mission.mission.model.ledger import EffectRecord
from ralph_mission.mission.model.mission import Acceptance, Action, Severity, Tier
from ralph_mission.mission.model.proposal import KINDS, Brief, RankedFinding, Route
from ralph_mission.mission.proposals.draft import draft_all
from tests.mission.build import NOW, finding, patch, signal
from tests.mission.proposals.test_draft import fixable, store

A, B, C = "a" * 4, "b" * 4, "c" * 4
GROUP = RankedFinding((A, B), "spelling", 2.0, "by rules")
ALONE = RankedFinding((C,), "bug", 1.0, "by rules")
SECTIONS = (("Risks", "few"),)

names = st.sampled_from([A, B, C, "dddd"])
opinions = st.lists(st.builds(ModelRanking, names, st.text(max_size=5), st.booleans(), st.just(SECTIONS)), max_size=6)


@given(opinions)
def test_whatever_is_said_every_finding_is_thought_about_once_and_none_is_invented(said):
    ranked_findings = apply_model_rankings((GROUP, ALONE), said)
    assert sorted(member for ranked in ranked_findings for member in ranked.members) == [A, B, C]
    assert {(ranked.kind, ranked.score) for ranked in ranked_findings} <= {("spelling", 2.0), ("bug", 1.0)}
    assert all(ranked.why.startswith("by rules") for ranked in ranked_findings)


def test_without_opinions_the_rules_ranking_stands():
    assert apply_model_rankings((GROUP, ALONE), ()) == (GROUP, ALONE)


def test_a_group_stands_where_its_best_member_does_and_begins_with_it():
    first, second = apply_model_rankings((GROUP, ALONE), (ModelRanking(B, "often read"), ModelRanking(C)))
    assert first.members == (B, A)
    assert first.why == "by rules; a model put it at 1: often read"
    assert second.why == "by rules; a model put it at 2"


def test_the_first_word_on_a_finding_counts():
    (ranked,) = apply_model_rankings((ALONE,), (ModelRanking(C, "first"), ModelRanking(C, "second")))
    assert ranked.why.endswith("first")


def test_sections_are_for_what_stands_alone():
    group, alone = apply_model_rankings(
        (GROUP, ALONE), (ModelRanking(A, sections=SECTIONS), ModelRanking(C, sections=SECTIONS))
    )
    assert (group.sections, alone.sections) == ((), SECTIONS)


def test_what_is_to_be_asked_about_leaves_its_group():
    asked, rest, alone = apply_model_rankings((GROUP, ALONE), (ModelRanking(B, ask=True),))
    assert (asked.members, asked.ask) == ((B,), True)
    assert (rest.members, rest.ask) == ((A,), False)
    assert alone == ALONE


@pytest.mark.parametrize(
    "kind", [name for name, row in KINDS.items() if row.route in (Route.FIX, Route.MONITOR) and row.tier is Tier.LOW]
)
def test_asking_turns_what_is_done_at_once_into_a_question(kind):
    makes = fixable("a.md", kind=kind) if KINDS[kind].route is Route.FIX else signal(kind=kind)
    found = identify([makes])
    (ranked,) = rank(found, {}, {})
    (at_once,) = draft_all([ranked], found, store())
    (asked,) = draft_all(apply_model_rankings([ranked], [ModelRanking(found[0].fingerprint, ask=True)]), found, store())
    assert (at_once.tier, asked.tier) == (Tier.LOW, Tier.HIGH)
    assert (asked.action, [effect.labels for effect in asked.effects]) == (
        Action.OPEN_PROPOSAL,
        [("ralph:mission", "ralph:research")],
    )


@pytest.mark.parametrize("kind", ["anomaly", "completed", "todo"])
def test_a_post_that_is_to_be_asked_about_is_shown_and_not_sent(kind):
    found = identify([signal(kind=kind)])
    posts = tuple(Post(network, ("Tides are up.",), (13,), 2000) for network in ("discord", "outbox"))
    ready = Wording(found[0].fingerprint, found[0].signal.occurrence, posts, ready=True)
    place = store(wordings={(ready.fingerprint, ready.occurrence): ready})
    ranked_findings = rank(found, {}, {})
    (at_once,) = draft_all(ranked_findings, found, place)
    asking = apply_model_rankings(ranked_findings, [ModelRanking(found[0].fingerprint, ask=True)])
    (asked,) = draft_all(asking, found, place)
    assert (at_once.action, asked.action) == (Action.PUBLISH, Action.OPEN_PROPOSAL)
    assert (at_once.tier, asked.tier) == (Tier.LOW, Tier.HIGH)
    assert [type(effect) for effect in asked.effects] == [OpenIssue]
    assert "Tides are up." in asked.effects[0].body
    told, left = at_once.effects
    record = EffectRecord(told.key, at_once.key, Action.PUBLISH, kind, "done", told, 0, NOW)
    (rest,) = draft_all(asking, found, replace(place, records={told.key: record}))
    assert (rest.action, rest.effects) == (Action.PUBLISH, (left,))  # one network has it: that is no question any more


@pytest.mark.parametrize("kind", [name for name, row in KINDS.items() if row.route is Route.PROPOSE])
def test_no_opinion_makes_anything_be_done_that_is_asked_about(kind):
    found = identify([signal(kind=kind)])
    ranked_findings = apply_model_rankings(
        rank(found, {}, {}), [ModelRanking(found[0].fingerprint, "do it now", ask=False)]
    )
    assert [draft.action for draft in draft_all(ranked_findings, found, store())] == [Action.OPEN_PROPOSAL]


def test_impact_severity_confidence_and_acceptance_make_the_score():
    plain = score(finding(), {}, {})
    assert score(finding(confidence=0.4), {}, {}) < plain
    assert score(finding(effort=4.0), {}, {}) == plain
    assert score(finding(severity=Severity.HIGH), {}, {}) > plain
    assert score(finding(), {"spelling": Acceptance(accepted=5)}, {}) > plain
    assert score(finding(), {}, {"spelling": 2.0}) == 2 * plain


def test_a_kind_that_people_reject_sinks_below_one_that_they_accept():
    found = [finding(kind="spelling"), finding(kind="lint-fix")]
    said = {"lint-fix": Acceptance(rejected=4), "spelling": Acceptance(accepted=4)}
    assert [t.kind for t in rank(found, said, {})] == ["spelling", "lint-fix"]
    assert [t.kind for t in rank(found, {}, {})] == ["lint-fix", "spelling"]


def test_a_fault_comes_before_any_number_of_small_fixes_that_are_ready():
    unused = [finding(kind="lint-fix", essence=(str(n),), patch=patch(), effort=0.2, confidence=1.0) for n in range(40)]
    bug = finding(kind="bug", essence=("b",), effort=8.0)
    assert [t.kind for t in rank([*unused, bug], {}, {})] == ["bug", "lint-fix"]


def test_among_equals_a_ready_fix_is_first_and_then_what_is_less_work():
    ready = finding(kind="bug", essence=("a",), patch=patch(), effort=8.0)
    quick = finding(kind="bug", essence=("b",), effort=1.0)
    slow = finding(kind="bug", essence=("c",), effort=4.0)
    ordered = rank([slow, quick, ready], {}, {})
    assert [t.members[0] for t in ordered] == [ready.fingerprint, quick.fingerprint, slow.fingerprint]


@pytest.mark.parametrize("kind", ["any", "bug"])
def test_what_is_there_for_longest_is_first_among_those_that_nothing_else_tells_apart(kind):
    there = {age: finding(kind=kind, essence=(str(age),), age_days=float(age)) for age in range(9)}
    order = [member for ranked in rank(tuple(there.values()), {}, {}) for member in ranked.members]
    assert order == [there[age].fingerprint for age in reversed(range(9))]


def test_fixes_of_one_kind_make_one_thought_and_bugs_one_each():
    fixes = [finding(essence=(str(n),)) for n in range(3)]
    bugs = [finding(kind="bug", essence=(str(n),)) for n in range(2)]
    ranked_findings = rank([*fixes, *bugs], {}, {})
    assert sorted((t.kind, len(t.members)) for t in ranked_findings) == [("bug", 1), ("bug", 1), ("spelling", 3)]


def test_the_order_in_which_findings_come_changes_nothing():
    found = [finding(essence=(str(n),)) for n in range(4)]
    assert rank(found, {}, {}) == rank(found[::-1], {}, {})


def test_the_explanation_names_what_the_score_rests_on():
    ranked = rank([finding(age_days=40.0)], {"spelling": Acceptance(3, 1)}, {})[0]
    for part in ("number 1 of 1", "40 days old", "impact 2 of 10", "accepted 3 of 4"):
        assert part in ranked.why


@given(st.integers(0, 200), st.integers(0, 200))
def test_acceptance_is_the_mean_of_a_beta_posterior(accepted, rejected):
    mean = Acceptance(accepted, rejected).mean
    assert 0 < mean < 1
    assert Acceptance(accepted, rejected + 1).mean < mean < Acceptance(accepted + 1, rejected).mean


def post(kind="anomaly", reactions=0, network="twitter", measured=True, key="") -> Posted:
    made = Posted(key or f"{kind}{network}{reactions}", network, kind, NOW, reactions=reactions)
    return replace(made, measured_at=NOW) if measured else made


def test_a_kind_that_people_react_to_gains_and_one_that_they_do_not_loses():
    fared = engagement_factors([post(reactions=30), post(reactions=40), post("news", 1), post("news", 2)])
    assert fared == {"anomaly": 1.125, "news": 0.875}


@pytest.mark.parametrize("silent", [[], [post(measured=False)], [post(network="outbox", reactions=9)]])
def test_what_nobody_measured_teaches_nothing(silent):
    assert (engagement_factors(silent), engagement_lines(silent)) == ({}, ())


def test_posts_are_compared_within_their_network():
    quiet = [post("news", 3, "discord"), post("anomaly", 1, "discord")]
    loud = [post("news", 300), post("anomaly", 900)]
    assert engagement_factors([*quiet, *loud]) == {"anomaly": 1.0, "news": 1.0}


@given(st.lists(st.builds(post, st.sampled_from(["anomaly", "news"]), st.integers(0, 10**6))))
def test_it_never_moves_a_score_by_more_than_a_quarter(posts):
    assert all(0.75 <= factor <= 1.25 for factor in engagement_factors(posts).values())


def test_a_line_names_what_it_was_counted_from():
    (line,) = engagement_lines([post(reactions=10), post(reactions=20)])
    assert line == (
        "Posts about anomalies (anomaly) on twitter: 2 posts measured, 15 reactions at the median; "
        "Ralph gives the next one a 50% chance of doing better than most."
    )


def test_ranking_takes_it_into_account_and_says_so():
    liked, ignored = finding(kind="anomaly", essence=("a",)), finding(kind="feature", essence=("b",))
    fared = {"anomaly": 0.75, "feature": 1.25}
    assert score(liked, {}, {}, fared) == pytest.approx(0.75 * score(liked, {}, {}))
    said = {ranked.kind: ranked.why for ranked in rank([liked, ignored], {}, {}, fared)}
    assert "posts about its kind do worse than most" in said["anomaly"]
    assert "posts about its kind do better than most" in said["feature"]
    assert "posts about" not in rank([liked], {}, {})[0].why


def test_the_rules_thinker_is_told():
    found = finding(kind="anomaly")
    brief = Brief((found,), (), {}, None, None, NOW, {"anomaly": 1.25})  # type: ignore[arg-type]  # the rest is not read
    assert RulesThinker().think(brief).ranked_findings[0].score == pytest.approx(1.25 * score(found, {}, {}))
