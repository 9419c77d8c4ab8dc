"""A provider's word on when to come back, in each of the ways it is said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ralph_mission.agents.waits import LONGEST, seconds_until

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Retry-After: 120", 120),
        ('"retry_after": 30.5', 30.5),
        ("retry-after-seconds=7", 7),
        ("Retry-After: Mon, 02 Mar 2026 09:01:30 GMT", 90),
        (f"Claude AI usage limit reached|{int(NOW.timestamp()) + 600}", 600),
        ("Rate limit reached for gpt. Please try again in 1.2s.", 1.2),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 6m0s.", 360),
        ("You've hit your usage limit. Try again in 2 days 3 hours 5 minutes.", 183_900),
        ("try again in 1 hour and 5 minutes", 3_900),
        ("usage limit reached; resets at 2026-03-02T10:00:00Z", 3_600),
        ("You've hit your limit · resets 10:30am (Europe/Berlin)", 1_800),
        ("You've hit your session limit · resets 2am (Europe/Berlin)", 57_600),
        ("resets 12am (UTC)", 54_000),
        ("resets 12pm (UTC)", 10_800),
    ],
)
def test_every_way_of_saying_when_is_understood(text: str, seconds: float) -> None:
    assert seconds_until(text, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "rate limited", "Retry-After: soon", "resets 99pm (UTC)", "resets 3pm (Atlantis/Nowhere)",
     "resets at 2026-99-02T10:00:00Z", "resets at 2026-03-02T08:00:00Z", "limit reached|0000000001", "try again later"],
)  # fmt: skip  # one list
def test_what_says_nothing_or_is_past_gives_no_wait(text: str) -> None:
    assert seconds_until(text, NOW) == 0


def test_no_wait_is_longer_than_a_week() -> None:
    assert seconds_until("Retry-After: 99999999999", NOW) == LONGEST
