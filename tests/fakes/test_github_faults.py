"""The fake GitHub: everything that can go wrong really goes wrong, and applied means applied."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.faults import AFTER, KINDS, Crash, Response
from tests.fakes.github.nouns import Request
from tests.fakes.github.server import FakeGitHub

LOST = (ConnectionError, http.client.HTTPException)
ISSUE = {"title": "One"}


@pytest.mark.parametrize("kind", ["401", "403", "404", "409", "422", "500", "502_not_applied"])
def test_refusal_is_not_applied(fake: FakeGitHub, api: Client, kind: str) -> None:
    fake.fail(kind)
    answer = api("POST", "./issues", ISSUE)
    assert answer.status == int(kind[:3]) and not fake.threads
    assert kind.startswith("502") or answer.json["status"] == kind
    assert api("POST", "./issues", ISSUE).status == 201


def test_bad_gateway_after_the_deed(fake: FakeGitHub, api: Client) -> None:
    fake.fail("502_applied")
    assert api("POST", "./issues", ISSUE).status == 502
    assert [thread.title for thread in fake.threads.values()] == ["One"]


@pytest.mark.parametrize(("kind", "applied"), [("reset_applied", True), ("reset_not_applied", False)])
def test_reset_closes_without_an_answer(fake: FakeGitHub, api: Client, kind: str, applied: bool) -> None:
    fake.fail(kind)
    with pytest.raises(LOST):
        api("POST", "./issues", ISSUE)
    assert bool(fake.threads) is applied
    assert fake.journal[-1].status == 0


@pytest.mark.parametrize(("kind", "applied"), [("timeout_applied", True), ("timeout_not_applied", False)])
def test_timeout_answers_nothing(fake: FakeGitHub, api: Client, kind: str, applied: bool) -> None:
    fake.fail(kind)
    with pytest.raises(TimeoutError):
        Client(fake, api.token, timeout=0.3)("POST", "./issues", ISSUE)
    assert bool(fake.threads) is applied


def test_waiting_client_does_not_keep_the_fake_open(bare: Path) -> None:
    with FakeGitHub(bare) as fake:
        place = http.client.HTTPConnection(fake.url.removeprefix("http://"), timeout=20)
        fake.fail("timeout_applied", ("GET", "/repos/*"))
        place.request("GET", f"/repos/{fake.repository}", headers={"Authorization": f"Bearer {fake.token()}"})
    with pytest.raises(LOST):
        place.getresponse()


def test_primary_limit_tells_when_it_ends(fake: FakeGitHub, api: Client) -> None:
    fake.fail("rate_primary")
    answer = api("POST", "./issues", ISSUE)
    assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (403, "0")
    assert int(answer.headers["x-ratelimit-reset"]) > fake.clock.present().timestamp()
    assert not fake.threads


@pytest.mark.parametrize(("kind", "status"), [("rate_secondary", 403), ("rate_secondary_429", 429)])
def test_secondary_limit_says_how_long_to_wait(fake: FakeGitHub, api: Client, kind: str, status: int) -> None:
    fake.fail(kind)
    answer = api("POST", "./issues", ISSUE)
    assert (answer.status, answer.headers["retry-after"]) == (status, "60")
    assert "secondary rate limit" in answer.json["message"] and not fake.threads


def test_garbage_is_applied_and_no_json(fake: FakeGitHub, api: Client) -> None:
    fake.fail("garbage")
    answer = api("POST", "./issues", ISSUE)
    assert answer.status == 200 and len(fake.threads) == 1
    with pytest.raises(ValueError, match="Expecting value"):
        _ = answer.json


def test_redirect_leads_to_the_same_thing(fake: FakeGitHub, api: Client) -> None:
    fake.person("mara").create_issue("One")
    fake.fail("redirect", ("GET", "/issues/1"))
    fake.fail("redirect", ("POST", "/issues"))
    moved = api("GET", "./issues/1")
    assert moved.status == 301
    assert api("GET", moved.headers["location"].removeprefix(fake.api_url)).json["title"] == "One"
    posted = api("POST", "./issues", ISSUE)
    assert posted.status == 307 and len(fake.threads) == 1
    assert api("POST", posted.headers["location"].removeprefix(fake.api_url), ISSUE).status == 201


def test_fault_strikes_when_and_what_it_is_told_to(fake: FakeGitHub, api: Client) -> None:
    fault = fake.fail("500", ("*", "/issues/*"), times=2, after=1)
    fake.person("mara").create_issue("One")
    seen = [api("GET", path).status for path in ("./issues", "./issues/1", "./issues/1", "./issues/1", "./issues/1")]
    assert (seen, fault.used, fake.faults) == ([200, 200, 500, 500, 200], 2, [])


def test_faults_strike_one_after_the_other(fake: FakeGitHub, api: Client) -> None:
    fake.fail("500", ("GET", "/repos/*"))
    fake.fail("404", ("GET", "/repos/*"))
    assert [api("GET", ".").status for _ in range(3)] == [500, 404, 200]


def test_refused_request_stays_refused_under_a_fault_that_applies(fake: FakeGitHub, api: Client) -> None:
    fake.fail("502_applied")
    assert api("POST", "./issues", {"title": ""}).status == 422 and not fake.threads


def test_no_such_fault(fake: FakeGitHub) -> None:
    with pytest.raises(ValueError, match="no such fault"):
        fake.fail("418")


def test_every_applied_kind_is_known() -> None:
    assert set(AFTER) == {kind for kind in KINDS if kind.endswith("_applied") and "not" not in kind} | {"garbage"}


def test_crash_before_leaves_nothing_and_after_everything(fake: FakeGitHub, api: Client) -> None:
    def crash(*_: object) -> None:
        raise Crash

    for hook, there in ((fake.before, 0), (fake.after, 1)):
        remove = hook(crash)
        with pytest.raises(LOST):
            api("POST", "./issues", ISSUE)
        remove()
        assert len(fake.threads) == there


def test_hooks_see_request_and_response(fake: FakeGitHub, api: Client) -> None:
    seen: list[object] = []

    def note(request: Request, response: Response) -> None:
        seen.append((request.below, request.body, response.status))

    fake.after(note)
    api("POST", "./issues", ISSUE)
    assert seen == [("/issues", ISSUE, 201)]


def test_hook_may_change_the_world_in_between(fake: FakeGitHub, api: Client) -> None:
    mara = fake.person("mara")
    mara.create_issue("One")
    fake.before(lambda request: mara.close_issue(1))
    assert api("GET", "./issues/1").json["state"] == "closed"


def test_hook_that_fails_is_remembered(bare: Path) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"), FakeGitHub(bare) as fake:
        fake.before(lambda request: 1 / 0)
        with pytest.raises(LOST):
            Client(fake, fake.token())("GET", ".")
