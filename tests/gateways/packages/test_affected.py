"""Which versions an advisory is about."""

from __future__ import annotations

import pytest

from ralph_mission.gateways.packages.affected import UNTOLD, Affected, of_osv

TWICE = Affected(
    (
        (("introduced", "0"), ("fixed", "1.4.3")),
        (("fixed", "1.4.6"), ("introduced", "1.4.4")),
    )
)
ONE_AFTER_THE_OTHER = Affected(
    ((("introduced", "0"), ("fixed", "1.4.3"), ("introduced", "1.4.3"), ("fixed", "1.4.6")),)
)
LAST = Affected(((("introduced", "1.0.0"), ("last_affected", "1.4.3")),))


@pytest.mark.parametrize("ecosystem", ["npm", "PyPI"])
@pytest.mark.parametrize(
    ("affected", "hold", "free"),
    [
        (TWICE, "0.0.1 1.4.2 1.4.4 1.4.5", "1.4.3 1.4.6 2.0.0"),
        (ONE_AFTER_THE_OTHER, "1.4.2 1.4.3 1.4.5", "1.4.6"),
        (LAST, "1.0.0 1.4.3", "0.9.9 1.4.4"),
        (Affected(versions=("1.4.2", "1.4.4")), "1.4.2 1.4.4", "1.4.3"),
        (Affected(TWICE.ranges, ("3.0.0",)), "1.4.5 3.0.0", "1.4.3"),
        (Affected(((("introduced", "0"), ("fixed", "soon")),)), "1.4.2 9.0.0", ""),
        (UNTOLD, "1.4.2", ""),
    ],
)
def test_a_version_is_affected_where_the_latest_event_before_it_began_it(
    ecosystem, affected: Affected, hold: str, free: str
) -> None:
    assert [version for version in hold.split() if not affected.holds(ecosystem, version)] == []
    assert [version for version in free.split() if affected.holds(ecosystem, version)] == []


def test_what_osv_says_of_other_packages_and_of_commits_is_left_out() -> None:
    events = [{"introduced": "0"}, {"fixed": "1.4.3"}]
    told = {
        "affected": [
            {"package": {"ecosystem": "PyPI", "name": "Buoy"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]},
            {"package": {"ecosystem": "PyPI", "name": "buoy"}, "ranges": [{"type": "GIT", "events": events}]},
            {"package": {"ecosystem": "PyPI", "name": "buoy"}, "versions": ["2.0"]},
            {"package": {"ecosystem": "npm", "name": "buoy"}, "versions": ["3.0"]},
        ]
    }
    assert of_osv(told, "PyPI", "buoy") == Affected(((("introduced", "0"), ("fixed", "1.4.3")),), ("2.0",))
