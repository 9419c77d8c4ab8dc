"""Whole cycles where GitHub says no for good: the person reads the very setting or permission that is to change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleSummary
from tests.integration.hub import Hub, hub
from tests.integration.world import statuses

ALL = {"contents": "write", "issues": "write", "pull_requests": "write", "actions": "read"}
SIGNED = "exempt ralph/** and the memory branch from `Require signed commits` in Settings, Rules"


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Hub]:
    with hub(tmp_path) as made:
        yield made


def may_only(harbour: Hub, **less: str) -> None:
    """From now on the job's token may less."""
    harbour.token = harbour.fake.token(permissions={**ALL, **less})


def escalated(harbour: Hub) -> str:
    """What its issue says after the cycle that was refused and the one that asks a person."""
    _, telling = harbour.cycle()
    report, _ = harbour.cycle()
    assert statuses(report) == ["ESCALATED"]
    (issue,) = harbour.issues
    assert "ralph:escalated" in issue.labels and "+Tides are separate from waves." in issue.body
    return "\n".join((*telling.remarks, *harbour.said(issue.number)))


def refused(telling: CycleSummary, kind: str) -> list[str]:
    return [line for line in telling.remarks if line.startswith(f"{kind} failed")]


def test_a_ruleset_that_wants_signed_commits_on_our_branches_escalates_and_names_its_setting(harbour: Hub) -> None:
    harbour.fake.ruleset("ralph/**", "ralph/-/**", required_signatures=True)
    said = escalated(harbour)
    assert said.count(f"takes signed commits only: {SIGNED}") >= 2
    assert harbour.pulls == []


def test_a_ruleset_that_wants_signed_commits_everywhere_stops_before_anything_and_names_its_setting(
    harbour: Hub,
) -> None:
    harbour.fake.ruleset("**", required_signatures=True)
    for _ in range(2):
        with pytest.raises(UserError) as trouble:
            harbour.cycle()
        assert "ralph-memory takes signed commits only" in trouble.value.what
        assert trouble.value.next_step == SIGNED
    assert (harbour.issues, harbour.pulls) == ([], [])


def test_a_token_that_may_not_open_pulls_escalates_and_names_its_permission(harbour: Hub) -> None:
    may_only(harbour, pull_requests="read")
    said = escalated(harbour)
    assert said.count("give the job `permissions: pull-requests: write`") >= 2


def test_a_token_that_may_not_open_issues_does_nothing_and_names_its_permission(harbour: Hub) -> None:
    may_only(harbour, issues="read")
    report, telling = harbour.cycle()
    assert {line.status for line in report.effects} == {"failed"}
    assert "give the job `permissions: issues: write`" in refused(telling, "open_issue")[0]
    assert "not attempted" in refused(telling, "push_branch")[0]
    assert (harbour.issues, harbour.pulls) == ([], [])


def test_a_token_that_may_not_push_stops_before_anything_and_names_its_permission(harbour: Hub) -> None:
    may_only(harbour, contents="read")
    with pytest.raises(UserError) as trouble:
        harbour.cycle()
    assert trouble.value.next_step == "give the job `permissions: contents: write`"
    assert (harbour.issues, harbour.pulls) == ([], [])
