from __future__ import annotations

import pytest

from ralph_mission.mission import belonging
from ralph_mission.mission.effects import marker
from ralph_mission.mission.ledger import key_of, monitor_key
from tests.mission.build import BOT, MARA, OUTSIDER, issue, labelled, mission, pull, remark
from tests.mission.test_acting import LIST


def foreign(there=None, carried=None, authorised=frozenset()):
    return belonging.why_foreign(mission(), there, carried, BOT.id, authorised)


def signed(**more):
    return marker("0123456789abcdef", **belonging.facts_of(mission()), **more)


def test_what_bears_our_marker_and_our_account_belongs_to_the_mission():
    assert foreign(issue(body=signed()), pull(body=signed())) == ""


@pytest.mark.parametrize(
    "carried",
    [
        pull(body=signed(), author=MARA),
        pull(body=signed(), head="ralph/another"),
        pull(body="no marker"),
        pull(body=marker("0123456789abcdef", mission="2", kind="spelling", finding="f1")),
    ],
    ids=["another account", "another branch", "no marker", "another mission"],
)
def test_a_pull_that_only_memory_says_is_ours_is_foreign(carried):
    assert foreign(issue(body=signed()), carried) == "pull #4 does not belong to this mission"


@pytest.mark.attack(17)
def test_an_issue_that_nobody_with_a_say_labelled_is_foreign():
    wish = {"events": (labelled("ralph:mission", OUTSIDER),), "labels": frozenset({"ralph:mission"})}
    assert foreign(issue(author=MARA)) == "issue #3 does not belong to this mission"
    assert foreign(issue(author=MARA, **wish), authorised=frozenset({MARA.id}))
    assert foreign(issue(author=MARA, **wish), authorised=frozenset({OUTSIDER.id})) == ""


def test_a_list_of_somebody_else_is_no_list_of_ours():
    listed = marker(LIST.key)
    assert belonging.is_list(issue(body=listed), monitor_key("spelling"), BOT.id)
    assert not belonging.is_list(issue(body=listed, author=MARA), monitor_key("spelling"), BOT.id)


def test_a_remark_of_somebody_else_is_not_taken_for_our_standing_one():
    standing = marker(key_of(mission().key, "comment", "standing"))

    def remembered(who):
        return belonging.own_remark(mission(comment=0), {}, issue(remarks=(remark(standing, who),)), BOT.id)

    assert (remembered(BOT), remembered(MARA)) == (11, 0)
