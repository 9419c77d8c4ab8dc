from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.model import Acceptance, Severity
from ralph_mission.mission.ranking import rank, score
from tests.mission.build import finding


def test_impact_confidence_and_acceptance_raise_the_score_and_effort_lowers_it():
    plain = score(finding(), {}, {})
    assert score(finding(confidence=0.4), {}, {}) < plain
    assert score(finding(effort=4.0), {}, {}) < plain
    assert score(finding(severity=Severity.HIGH), {}, {}) > plain
    assert score(finding(), {"spelling": Acceptance(accepted=5)}, {}) > plain
    assert score(finding(), {}, {"spelling": 2.0}) == 2 * plain


def test_a_kind_that_people_reject_sinks_below_one_that_they_accept():
    found = [finding(kind="spelling"), finding(kind="lint-fix")]
    said = {"lint-fix": Acceptance(rejected=4), "spelling": Acceptance(accepted=4)}
    assert [t.kind for t in rank(found, said, {})] == ["spelling", "lint-fix"]
    assert [t.kind for t in rank(found, {}, {})] == ["lint-fix", "spelling"]


def test_fixes_of_one_kind_make_one_thought_and_bugs_one_each():
    fixes = [finding(essence=(str(n),)) for n in range(3)]
    bugs = [finding(kind="bug", essence=(str(n),)) for n in range(2)]
    thoughts = rank([*fixes, *bugs], {}, {})
    assert sorted((t.kind, len(t.members)) for t in thoughts) == [("bug", 1), ("bug", 1), ("spelling", 3)]


def test_the_order_in_which_findings_come_changes_nothing():
    found = [finding(essence=(str(n),)) for n in range(4)]
    assert rank(found, {}, {}) == rank(found[::-1], {}, {})


def test_the_explanation_names_what_the_score_rests_on():
    thought = rank([finding(age_days=40.0)], {"spelling": Acceptance(3, 1)}, {})[0]
    for part in ("number 1 of 1", "40 days old", "impact 2 of 10", "accepted 3 of 4", f"({thought.score:.2f})"):
        assert part in thought.why


@given(st.integers(0, 200), st.integers(0, 200))
def test_acceptance_is_the_mean_of_a_beta_posterior(accepted, rejected):
    mean = Acceptance(accepted, rejected).mean
    assert 0 < mean < 1
    assert Acceptance(accepted, rejected + 1).mean < mean < Acceptance(accepted + 1, rejected).mean
