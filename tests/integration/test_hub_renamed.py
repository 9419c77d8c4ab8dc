"""Somebody gives the default branch another name between two cycles: what was begun is found and finished, once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.crash.witness import duplicates
from tests.helpers import git
from tests.integration.hub import hub
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more


@pytest.fixture
def harbour(tmp_path):
    """One with an open pull of Ralph's onto `main`, which is called `trunk` from now on."""
    with hub(tmp_path) as made:
        assert statuses(made.cycle()[0]) == ["IN_REVIEW"]
        made.person()
        made.fake.rename_default("trunk")
        yield made


def made_by(report) -> set[str]:
    return {line.kind for line in report.effects if line.status == "done"}


def test_an_open_pull_is_found_again_and_nothing_is_made_twice(harbour):
    before = len(harbour.threads)
    for runner in ("one", "two"):
        harbour.runner = runner
        report, _ = harbour.cycle()
        assert statuses(report) == ["IN_REVIEW"]
        assert made_by(report) == set()
    assert (len(harbour.threads), duplicates(harbour)) == (before, [])
    assert harbour.fake.branch("main") == ""


@pytest.mark.parametrize("runner", ["one", "two"])
def test_an_approved_pull_is_merged_into_the_new_default_branch(harbour, runner):
    issue, pull = harbour.issues[0], harbour.pulls[0]
    head, base = harbour.fake.branch(pull.pull.head), harbour.fake.branch("trunk")
    harbour.person().review(pull.number, "approved")
    harbour.runner = runner
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
    assert harbour.merged(pull.number) and issue.state == "closed"
    assert git(harbour.fake.bare, "rev-parse", "trunk~1") == base
    assert git(harbour.fake.bare, "diff", "--stat", head, "trunk") == ""
    harbour.cycle()
    assert (harbour.fake.branch("main"), duplicates(harbour)) == ("", [])
    assert harbour.fake.count(method="PUT", below="/pulls/*/merge") == 1


def test_a_pull_approved_before_is_merged_after(tmp_path):
    with hub(tmp_path) as harbour:
        harbour.cycle()
        (pull,) = harbour.pulls
        harbour.person().review(pull.number, "approved")
        harbour.fake.rename_default("trunk")
        assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
        assert harbour.merged(pull.number)


def test_settings_and_new_fixes_come_from_the_new_default_branch(tmp_path):
    with hub(tmp_path, {"README.md": "# Harbour\n"}) as harbour:
        harbour.cycle()
        harbour.fake.rename_default("trunk")
        harbour.fake.push("trunk", {"guide.md": b"We recieve the tables.\n"})
        report, _ = harbour.cycle(after=timedelta(days=1))
        assert statuses(report) == ["IN_REVIEW"]
        (pull,) = harbour.pulls
        assert pull.pull.base == "trunk"


def test_a_rename_in_the_middle_of_a_cycle_merges_at_most_once(tmp_path):
    with hub(tmp_path) as harbour:
        harbour.cycle()
        (pull,) = harbour.pulls
        harbour.person().review(pull.number, "approved")

        def renamed(request):
            if request.method == "PUT" and request.below.endswith("/merge"):
                undo()
                harbour.fake.rename_default("trunk")

        undo = harbour.fake.before(renamed)
        harbour.cycle()
        harbour.cycle()
        assert harbour.merged(pull.number) and duplicates(harbour) == []
        assert (pull.pull.base, harbour.issues[0].state) == ("trunk", "closed")
