"""What OSV knows is asked for within a time of its own, and what is missing is said.

Which versions an advisory is about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers import bumps
from ralph_mission.adapters.http.guard import CAP, NONE, WebAnswer
from ralph_mission.adapters.observers.dependencies import SECONDS, observer
from ralph_mission.adapters.packages.advisories import MOST, UNKNOWN_VERSIONS, Advisories, Affected, Subject, of_osv
from ralph_mission.adapters.packages.registries import AnswerCache
from ralph_mission.errors import UserError

BUOY: Subject = ("PyPI", "buoy", "1.4.2")
NOW = datetime(2030, 6, 1, tzinfo=UTC)


@dataclass
class Slow:
    """An OSV whose every answer takes `each` seconds."""

    ids: list[str]
    each: float = 0.0
    more: bool = False
    nested: bool = False
    broken: frozenset[str] = frozenset()
    now: float = 0.0
    asked: list[str] = field(default_factory=list)

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str] = NONE, cap: int = CAP) -> WebAnswer:
        vulns = [{"id": id, "modified": "2030"} for id in self.ids]
        rows = [
            {"vulns": vulns, **({"next_page_token": "x"} if self.more else {})} for _ in json.loads(body)["queries"]
        ]
        return self._answer({"results": rows})

    def get(
        self, url: str, *, etag: str = "", modified: str = "", headers: Mapping[str, str] = NONE, cap: int = CAP
    ) -> WebAnswer:
        self.asked.append(url.rpartition("/")[2])
        return self._answer({"id": self.asked[-1]}, 500 if self.asked[-1] in self.broken else 200)

    def _answer(self, said: object, status: int = 200) -> WebAnswer:
        self.now += self.each
        content = b"[" * 100_000 if self.nested else json.dumps(said).encode()
        return WebAnswer("https://osv.example.org", status, content, "application/json", "", "")


def advisories(osv: Slow, cache: Path) -> Advisories:
    clock = lambda: osv.now  # noqa: E731 (a clock is a function)
    return Advisories(osv, "https://osv.example.org", AnswerCache(cache), NOW, timedelta(hours=6), 60.0, clock)


def test_what_is_not_asked_in_time_is_said_and_asked_first_at_the_next_look(tmp_path: Path) -> None:
    osv = Slow([f"GHSA-{n}" for n in range(10)], each=15.0)
    known = advisories(osv, tmp_path).about([BUOY])
    assert (len(known.advisories), str(known)) == (3, "advisories not asked in time: 7")
    again = advisories(osv, tmp_path).about([BUOY])
    assert (len(again.advisories), again.late) == (7, 3)
    assert osv.asked == [f"GHSA-{n}" for n in range(7)]


def test_more_advisories_than_one_look_reads_are_counted_and_follow(tmp_path: Path) -> None:
    osv = Slow([f"GHSA-{n}" for n in range(MOST + 5)])
    known = advisories(osv, tmp_path).about([BUOY])
    assert (len(known.advisories), str(known)) == (MOST, f"advisories beyond the {MOST} of one look: 5")
    again = advisories(osv, tmp_path).about([BUOY])
    assert (len(again.advisories), str(again)) == (MOST + 5, "")


def test_a_package_with_more_advisories_than_osv_tells_at_once_is_counted_though_the_answer_is_kept(
    tmp_path: Path,
) -> None:
    osv = Slow(["GHSA-1"], more=True)
    for _ in range(2):
        known = advisories(osv, tmp_path).about([BUOY])
        assert (known.more, str(known)) == (1, "packages with more advisories than OSV returns at once: 1")


def test_an_advisory_whose_text_cannot_be_had_costs_itself_alone_and_is_asked_again(tmp_path: Path) -> None:
    osv = Slow(["GHSA-1", "GHSA-2", "GHSA-3"], broken=frozenset({"GHSA-2"}))
    known = advisories(osv, tmp_path).about([BUOY])
    assert [(advisory.id, advisory.bare) for advisory in known.advisories] == [
        ("GHSA-1", False),
        ("GHSA-2", True),
        ("GHSA-3", False),
    ]
    assert str(known) == "advisories of which OSV gives the name alone: 1"
    osv.broken = frozenset()
    assert str(advisories(osv, tmp_path).about([BUOY])) == "" and osv.asked[3:] == ["GHSA-2"]


def test_an_answer_nested_without_end_is_no_answer(tmp_path: Path) -> None:
    osv = Slow([], nested=True)
    with pytest.raises(UserError, match="does not answer"):
        advisories(osv, tmp_path).about([BUOY])


def test_packages_that_are_too_many_for_the_time_are_counted(tmp_path: Path) -> None:
    osv = Slow([], each=61.0)
    known = advisories(osv, tmp_path).about([("npm", f"p{n}", "1.0.0") for n in range(1_500)])
    assert (known.unasked, str(known)) == (500, "packages whose advisories were not asked in time: 500")


def test_a_look_at_dependencies_has_the_time_that_its_parts_may_take() -> None:
    settings = observer.DependencySettings()
    assert 2 * settings.seconds + bumps.ALTOGETHER + bumps.VERSION + 2 * 60.0 <= SECONDS


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
        (UNKNOWN_VERSIONS, "1.4.2", ""),
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
