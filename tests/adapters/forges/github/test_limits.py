from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ralph_mission.adapters.forges.github.limits import (
    FURTHEST,
    LONGEST,
    SECONDARY,
    ApiAnswer,
    error_text,
    refusal_of,
    wait_for,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


SLOWER = {"message": "You have exceeded a secondary rate limit"}


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (ApiAnswer(403, {"retry-after": "7"}), 7.0),
        (ApiAnswer(429, {"retry-after": "9" * 12}), FURTHEST),
        (ApiAnswer(429, {"retry-after": "soon"}), SECONDARY),
        (ApiAnswer(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW.timestamp() + 30:.0f}"}), 30.0),
        (ApiAnswer(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "٣٠"}), SECONDARY),
        (ApiAnswer(403, {}, SLOWER), SECONDARY),
        (ApiAnswer(403, {}, {"message": "Resource not accessible by integration"}), None),
        (ApiAnswer(500, {"retry-after": "7"}, SLOWER), None),
    ],
)
def test_a_limit_is_told_from_a_refusal_and_lasts_a_day_at_most(answer: ApiAnswer, seconds: float | None) -> None:
    assert wait_for(answer, NOW) == seconds


@pytest.mark.attack(52)
def test_a_conflict_at_a_merge_is_a_head_that_moved() -> None:
    assert refusal_of("PUT", "/repos/mara/slackwater/pulls/3/merge", ApiAnswer(409, {})).what == "approval-head"


@pytest.mark.attack(60)
def test_what_was_moved_is_not_sent_on() -> None:
    assert "nothing is sent on" in refusal_of("POST", "/repos/mara/slackwater/issues", ApiAnswer(307, {})).what


@pytest.mark.attack(15)
def test_words_of_githubs_are_few() -> None:
    assert len(error_text(ApiAnswer(422, {}, {"message": "no " * 1_000}))) == LONGEST
