"""What is not worth a thread of people's: too small, refused again and again, or not seen to be true now."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.findings.ranking import is_silent, not_seen_again, too_small, unwanted
from ralph_mission.mission.model.mission import Acceptance, Observation, Severity
from tests.mission.build import DAY, NOW, finding


def refused(times, accepted=0):
    return Acceptance(accepted, times)


@pytest.mark.parametrize(
    ("kind", "changes", "small"),
    [
        ("todo", {"confidence": 0.7}, True),
        ("todo", {"confidence": 0.9, "severity": Severity.MEDIUM}, False),
        ("any", {"confidence": 0.9}, True),
        ("ts-ignore", {"confidence": 0.9}, True),
        ("spelling", {"confidence": 0.9}, False),
        ("news", {"confidence": 0.4}, False),
        ("dependency-minor", {"confidence": 0.8}, False),
        ("bug", {"confidence": 0.3}, False),
    ],
)
def test_counts_of_markers_are_too_small_for_a_thread_and_what_people_can_act_on_is_not(kind, changes, small):
    one = finding(kind=kind, **changes)
    assert (too_small([one], {}) == (one,)) is small


def test_a_weight_of_the_owners_counts():
    assert too_small([finding(confidence=1.0)], {"spelling": 0.5})
    assert not too_small([finding(kind="any", confidence=0.9)], {"any": 3})


def test_a_list_with_one_grave_line_is_worth_it_as_a_whole_and_a_question_stands_for_itself():
    plain, grave = finding(kind="todo"), finding(kind="todo", essence=("b",), severity=Severity.HIGH)
    assert too_small([plain, grave], {}) == ()
    small, large = (finding(kind="feature", essence=(str(sure),), confidence=sure) for sure in (0.2, 0.9))
    assert too_small([small, large], {}) == (small,)


@pytest.mark.parametrize(("severity", "times"), [(Severity.LOW, 3), (Severity.MEDIUM, 6), (Severity.HIGH, 11)], ids=str)
def test_the_graver_it_is_the_longer_a_kind_is_asked_about_though_it_is_refused(severity, times):
    one = finding(kind="bug", severity=severity)
    assert not is_silent(one, {"bug": refused(times - 1)})
    assert is_silent(one, {"bug": refused(times)})
    assert not is_silent(one, {"bug": refused(times, accepted=times)})


def test_what_an_observer_was_refused_of_other_kinds_counts_half():
    minor, major, patch = (finding(kind=f"dependency-{step}", observer="npm") for step in ("minor", "major", "patch"))
    present = [minor, major, patch]
    once = {"dependency-minor": refused(3)}
    assert unwanted(present, present, once, {}) == (minor,)
    twice = {**once, "dependency-major": refused(3)}
    assert unwanted(present, present, twice, {}) == (minor, major, patch)
    elsewhere = replace(patch, signal=replace(patch.signal, observer="renovate"))
    assert unwanted([elsewhere], [minor, major, elsewhere], twice, {}) == ()


def test_a_weight_that_the_owners_wrote_brings_a_kind_back():
    one = finding()
    assert unwanted([one], [one], {"spelling": refused(9)}, {"spelling": 1.0}) == ()


def look(*signals, **changes):
    return replace(Observation("codespell", "ok", signals), **changes)


def test_a_question_is_asked_only_about_what_this_cycles_look_shows():
    one = replace(finding(kind="bug"), seen_at=NOW)
    assert not_seen_again([one], [look(one.signal)], NOW) == ()
    for blind in (look(status="unavailable"), look(status="skipped", cursor="c"), look(complete=False)):
        assert not_seen_again([one], [blind], NOW) == (one,)
    assert not_seen_again([one], [], NOW) == (one,)


def test_news_that_is_told_once_is_believed_for_a_day():
    one = replace(finding(kind="anomaly"), seen_at=NOW)
    news = [look(complete=False, cursor="row 17")]
    assert not_seen_again([one], news, NOW + timedelta(hours=23)) == ()
    assert not_seen_again([one], news, NOW + DAY) == (one,)


def test_a_list_and_a_fix_need_no_second_look():
    waiting = [finding(kind="todo"), finding(kind="spelling")]
    assert not_seen_again(waiting, [], NOW) == ()
