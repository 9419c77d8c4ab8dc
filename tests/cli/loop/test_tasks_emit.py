"""`ralph emit`: the one event that ends a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import events
from tests.helpers import cli_here, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def test_an_event_carries_its_hat_and_iteration(repo: Path) -> None:
    env = {"RALPH_HAT": "builder", "RALPH_ITERATION": "4"}
    result = cli_here("emit", "build.complete", "two files", "--json", repo=repo, env=env)
    assert result.code == 0
    assert result.json == {"topic": "build.complete", "payload": "two files", "hat": "builder", "iteration": 4}
    (event,) = events.read_events(repo / ".ralph")
    assert (event.topic, event.payload, event.hat, event.iteration) == ("build.complete", "two files", "builder", 4)
    assert event.at is not None


def test_a_payload_that_has_to_be_json_is_checked(repo: Path) -> None:
    assert cli_here("emit", "review.verdict", '{"issues":[]}', "--json-payload", repo=repo).code == 0
    result = cli_here("emit", "review.verdict", "{issues}", "--json-payload", repo=repo)
    assert result.code == 64
    assert "not JSON" in result.err
    assert [event.payload for event in events.read_events(repo / ".ralph")] == ['{"issues": []}']


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'TOPIC'"),
        (("two words",), "no topic"),
        (("",), "no topic"),
        (("a\nb",), "no topic"),
        (("x" * 101,), "no topic"),
        (("a.b", "payload", "more"), "unexpected extra argument"),
        (("a.b", "x" * 100_001), "too long"),
        (("a.b", "--nope"), "--nope"),
    ],
)
def test_wrong_usage_ends_with_64(repo: Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli_here("emit", *arguments, repo=repo)
    assert (result.code, result.out) == (64, "")
    assert message in result.err
    assert events.read_events(repo / ".ralph") == ()


def test_an_event_without_a_loop_waits_for_one(repo: Path) -> None:
    cli_here("emit", "loop.note", repo=repo, env={"RALPH_ITERATION": "many"})
    (event,) = events.read_events(repo / ".ralph")
    assert (event.payload, event.hat, event.iteration) == ("", "", 0)
