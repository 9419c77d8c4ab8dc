from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Limits
from tests.mission import build


def test_a_try_has_no_more_money_than_the_day_and_the_issue_have():
    now = build.NOW
    header, limits = Header("lineage", 1), Limits()
    spent = replace(header, today=now.date().isoformat(), spend_usd=limits.usd_per_day - 1)
    assert schedule.allowance(spent, now, limits, 5.0) == 1
    assert schedule.allowance(header, now, limits, 0.5) == 0.5
    assert not schedule.enough(0.01, 5.0)
    assert schedule.book_spending(header, now, 2.0).spend_usd == 2
