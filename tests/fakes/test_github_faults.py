"""The fake GitHub: everything that can go wrong really goes wrong, and applied means applied."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.faults import AFTER, KINDS, Crash
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


def test_hook_that_fails_is_remembered(bare: Path) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"), FakeGitHub(bare) as fake:
        fake.before(lambda request: 1 / 0)
        with pytest.raises(LOST):
            Client(fake, fake.token())("GET", ".")
