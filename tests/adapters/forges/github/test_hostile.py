"""Answers that no GitHub gives: a list without an end, a redirect in a circle, numbers and depths beyond reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ralph_mission.adapters.forges.commits import ForgeRefused
from ralph_mission.adapters.forges.github.api import LONGEST, Api, ReadCache
from ralph_mission.adapters.forges.github.limits import Absent, Doubt
from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.errors import UserError

HOME = "https://api.example.org"
DEEP = "[" * 100_000 + "]" * 100_000

Reply = tuple[int, dict[str, str], str]


def api(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str, int], Reply], most: int = 20) -> Api:
    """An API that answers a path, and how often anything was asked, like this; it is not asked without end."""
    made = Api(
        RepositoryPlace("o/r", HOME, "https://example.org", "t"),
        ReadCache(None, ""),
        sleep=lambda seconds: None,
        pace=0,
    )

    def request(method: str, path: str, body: object, headers: object) -> Reply:
        assert made.counts.total <= most
        return answer(path, made.counts.total)

    monkeypatch.setattr(made._wire, "request", request)
    return made


def test_list_whose_next_page_is_itself_ends_as_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    link = f'<{HOME}/repos/o/r/issues>; rel="next"'
    with pytest.raises(UserError, match="no end"):
        api(monkeypatch, lambda path, count: (200, {"link": link}, "[1]")).all("/issues")


def test_list_that_always_has_another_page_ends_as_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(path: str, count: int) -> Reply:
        return 200, {"link": f'<{HOME}/repos/o/r/issues?page={count}>; rel="next"'}, "[1]"

    with pytest.raises(UserError, match="no end"):
        api(monkeypatch, answer, most=LONGEST).all("/issues")


def test_list_that_goes_on_at_another_address_is_not_taken_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    link = '<https://evil.example/repos/o/r/issues?page=2>; rel="next"'
    with pytest.raises(UserError, match="another address"):
        api(monkeypatch, lambda path, count: (200, {"link": link}, "[1]")).all("/issues")


@pytest.mark.parametrize("below", ["", "/issues"])
def test_redirect_in_a_circle_is_followed_once(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    def answer(path: str, count: int) -> Reply:
        if below and path == "/repos/o/r":
            return 200, {}, '{"id": 5}'
        return 301, {"x-location": f"{HOME}/repositories/5{below}"}, "{}"

    with pytest.raises(Absent):
        api(monkeypatch, answer).get(below)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_json_of_any_depth_is_trouble_with_the_forge(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    with pytest.raises(UserError) as caught:
        api(monkeypatch, lambda path, count: (200, {}, "[" * depth + "]" * depth)).get("/issues")
    assert caught.value.who == "forge"


def test_deed_whose_answer_is_too_deep_to_read_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Doubt):
        api(monkeypatch, lambda path, count: (201, {}, DEEP)).send("POST", "/issues", {})


@pytest.mark.parametrize("said", ["\xb2", "9" * 400, "9" * 15, "-1", "nan", "", "1e9"])
@pytest.mark.parametrize("header", ["retry-after", "x-ratelimit-reset"])
def test_wait_that_makes_no_sense_is_a_rate_limit_like_any(
    monkeypatch: pytest.MonkeyPatch, header: str, said: str
) -> None:
    def answer(path: str, count: int) -> Reply:
        return 403, {"x-ratelimit-remaining": "0", header: said}, "{}"

    with pytest.raises(UserError, match="rate limit"):
        api(monkeypatch, answer).get("/issues")
    with pytest.raises(ForgeRefused, match="rate limit"):
        api(monkeypatch, answer).send("POST", "/issues", {})


def test_date_beyond_all_calendars_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    date = "Mon, 04 May 2026 12:00:00 +99999999999999"
    assert api(monkeypatch, lambda path, count: (200, {"date": date}, "{}")).get("/issues") == {}
