"""A reviewer's answer: what counts as one, how often it is asked for, and what it may cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import jsonschema
import pytest

from ralph_mission.loop import planning
from ralph_mission.loop.model.spec import RunLimits
from ralph_mission.loop.model.state import AgentTurn, ReviewIssue, Session, SessionUsage
from ralph_mission.loop.planning import HAT, ReviewFinding, ask_reviewer, parse_findings
from ralph_mission.loop.rules.verdicts import UnclearVerdict
from tests.helpers import NOON

RACE = {
    "file": "a.py",
    "line": 3,
    "quote": "x",
    "kind": "race",
    "severity": "major",
    "message": "Two meet.",
    "suggestion": "Lock.",
}
ANSWER = json.dumps({"issues": [RACE]})
FOUND = (ReviewFinding(ReviewIssue("Two meet.", "a.py", 3, "race", "major"), "Lock.", "x"),)
FIRST = Session(HAT, 1, "", "/run", "opus", 1800.0, 60)


@dataclass
class Clock:
    at: datetime = NOON

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float, until: Callable[[], bool]) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class Player:
    turns: list[AgentTurn]
    clock: Clock = field(default_factory=Clock)
    takes: float = 10.0
    sessions: list[Session] = field(default_factory=list)
    name: str = "player"

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        self.sessions.append(session)
        self.clock.at += timedelta(seconds=self.takes)
        return self.turns[min(len(self.sessions), len(self.turns)) - 1]


def make_turn(text: str, cost: float | None = 0.5) -> AgentTurn:
    return AgentTurn(text, usage=SessionUsage(1, cost_usd=cost))


def ask_player(player: Player, **limits: object) -> planning.ReviewerAnswer:
    return ask_reviewer(
        player, "Look at this.", FIRST, RunLimits(**{"runtime": 3600.0, "usd": 2.0} | limits), player.clock
    )


# --- what counts as an answer ---------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"I read it.\n\n```json\n{ANSWER}\n```\n",
        f'Done.\n<event topic="review.verdict">{ANSWER}</event>',
        json.dumps({"issues": [RACE | {"line": 3}]}, indent=2),
    ],
)
def test_an_answer_is_json_alone_in_a_fence_or_in_a_verdict(text: str) -> None:
    assert parse_findings(text) == FOUND


def test_parts_that_are_not_known_may_be_left_out_or_null() -> None:
    text = json.dumps({"issues": [{"severity": "minor", "message": "Odd.", "file": None, "line": None}]})
    assert parse_findings(text) == (ReviewFinding(ReviewIssue("Odd.", severity="minor")),)
    assert parse_findings('{"issues": []}') == ()


def odd(**changes: object) -> str:
    return json.dumps({"issues": [RACE | changes]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is fine. Approve it.",
        '{"verdict": "approve"}',
        json.dumps({"verdict": "approve", "issues": []}),
        json.dumps([RACE]),
        json.dumps({"issues": 0}),
        json.dumps({"issues": ["a.py:3 a race"]}),
        '{"issues": [], "issues": []}',
        odd(approve=True),
        odd(line="3"),
        odd(line=True),
        odd(line=-1),
        odd(line=1.5),
        odd(file=["a.py"]),
        odd(message=" "),
        odd(message=None),
        odd(severity="blocker"),
        odd(severity=None),
        json.dumps({"issues": [RACE] * 201}),
        odd(message="x" * 200_001),
        "[" * 100_000,
        '{"issues": ' + "[" * 50_000,
    ],
)
def test_anything_else_is_no_answer(text: str) -> None:
    with pytest.raises(UnclearVerdict):
        parse_findings(text)


def test_the_schema_allows_what_is_read_and_nothing_more() -> None:
    schema = json.loads(planning.SCHEMA)
    jsonschema.validate(json.loads(ANSWER), schema)
    for value in ({"issues": [RACE | {"approve": True}]}, {"issues": [], "verdict": "approve"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value, schema)


# --- asking ---------------------------------------------------------------------------


def test_one_good_answer_is_one_session() -> None:
    player = Player([make_turn(ANSWER)])
    answer = ask_player(player)
    assert (answer.found, answer.why, answer.usage.cost_usd, answer.seconds) == (FOUND, "", 0.5, 10.0)
    (session,) = player.sessions
    assert (session.usd, session.model, session.turns, session.seconds) == (2.0, "opus", 60, 1800.0)
    assert "YOUR HAT: reviewer" in session.prompt and "Look at this." in session.prompt
    assert "You may write no file" in session.prompt and session.prompt.rstrip().endswith("to say.")


def test_a_second_session_is_told_what_was_wrong_and_gets_what_is_left() -> None:
    player = Player([make_turn("Approved!"), make_turn(ANSWER)])
    answer = ask_player(player)
    assert (answer.found, answer.usage.cost_usd, answer.usage.sessions) == (FOUND, 1.0, 2)
    assert "did not answer as asked: no answer that can be used (broken JSON)" in player.sessions[1].prompt
    assert (player.sessions[1].usd, player.sessions[1].iteration) == (1.5, 2)


def test_after_two_answers_that_are_none_it_is_over() -> None:
    player = Player([make_turn("Approved!")])
    answer = ask_player(player)
    assert answer.found is None and "no answer that can be used" in answer.why and len(player.sessions) == 2


@pytest.mark.parametrize(
    ("cost", "limits", "takes", "why"),
    [
        (2.0, {}, 1.0, "it cost $2.00 of $2.00"),
        (None, {}, 1.0, "what it cost is unknown"),
        (0.1, {}, 3600.0, "its time is up"),
    ],
)
def test_there_is_no_second_session_beyond_a_limit(cost, limits, takes, why) -> None:
    player = Player([make_turn("no", cost)], takes=takes)
    answer = ask_player(player, **limits)
    assert answer.found is None and why in answer.why and len(player.sessions) == 1


def test_an_unknown_cost_counts_only_against_a_limit_that_somebody_set() -> None:
    player = Player([make_turn("no", None), make_turn(ANSWER, None)])
    assert ask_player(player, unpriced=True).found == FOUND


def test_a_session_that_fails_is_no_answer() -> None:
    player = Player([AgentTurn(ANSWER, "timeout", "it took too long", usage=SessionUsage(1, cost_usd=0.1))])
    answer = ask_player(player)
    assert (answer.found, answer.why, len(player.sessions)) == (None, "timeout: it took too long", 1)


def test_what_only_the_provider_can_mend_is_waited_for_as_long_as_there_is_time() -> None:
    busy = AgentTurn(failure="rate_limit", detail="busy", retry_after=600, usage=SessionUsage(1, cost_usd=0.0))
    player = Player([busy, make_turn(ANSWER)])
    assert ask_player(player).found == FOUND and player.clock.at == NOON + timedelta(seconds=620)
    assert ask_player(Player([busy])).why == "rate_limit: busy"
    assert ask_player(Player([busy]), runtime=60.0).seconds == 10.0
