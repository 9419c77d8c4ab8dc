"""The next agent takes over when one is missing or down, and only then.

A provider's word on when to come back, in each of the ways it is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from ralph_mission.adapters.agents.clients import FallbackAgent
from ralph_mission.adapters.agents.reading import LONGEST, seconds_until
from ralph_mission.loop.model.state import AgentTurn, Hat, Session, SessionUsage

SESSION = Session(Hat("builder"), 1, "do it", "/run", "a-model-of-the-first")


@dataclass
class Agent:
    """Answers with its turns, one a session, and refuses to play once more."""

    name: str
    turns: list[AgentTurn]
    played: list[Session] = field(default_factory=list)

    def play(self, session, stopped):
        self.played.append(session)
        return self.turns.pop(0)


def spent(failure="", **more):
    return AgentTurn(
        "did it" if not failure else "", failure, f"{failure} it was", usage=SessionUsage(1, 10, 5, 0.5), **more
    )


def played(*agents, stopped=lambda: False, patience=300.0):
    return FallbackAgent(agents, patience).play(SESSION, stopped)


@pytest.mark.parametrize("failure", ["missing", "auth", "server"])
def test_the_next_one_takes_over_when_one_is_not_there(failure):
    first, second, third = Agent("claude", [spent(failure)]), Agent("codex", [spent()]), Agent("gemini", [])
    turn = played(first, second, third)
    assert (turn.text, turn.failure, turn.agent) == ("did it", "", "codex")


@pytest.mark.parametrize("failure", ["", "exit", "timeout", "event"])
def test_what_an_agent_did_wrong_itself_is_nobody_elses_session(failure):
    turn = played(Agent("claude", [spent(failure)]), Agent("codex", []))
    assert (turn.failure, turn.agent) == (failure, "claude")


@pytest.mark.parametrize(("wait", "who"), [(0.0, "claude"), (300.0, "claude"), (301.0, "codex")])
def test_a_limit_is_waited_for_unless_it_lasts_too_long(wait, who):
    turn = played(Agent("claude", [spent("rate_limit", retry_after=wait)]), Agent("codex", [spent()]))
    assert turn.agent == who


def test_the_last_ones_failure_is_the_turns_and_every_ones_is_told():
    turn = played(Agent("claude", [spent("missing")]), Agent("codex", [spent("auth")]))
    assert (turn.failure, turn.agent) == ("auth", "codex")
    assert turn.detail == "claude: missing: missing it was\nauth it was"


def test_what_those_before_took_is_in_the_turn_which_is_one_session():
    usage = played(Agent("claude", [spent("server")]), Agent("codex", [spent()])).usage
    assert (usage.sessions, usage.input_tokens, usage.cost_usd) == (1, 20, 1.0)


def test_a_cost_that_one_of_them_did_not_tell_stays_unknown():
    untold = AgentTurn(failure="server", usage=SessionUsage(1, 10, 5))
    assert played(Agent("claude", [untold]), Agent("codex", [spent()])).usage.untold == 1


def test_nobody_takes_over_when_the_run_is_to_stop():
    second = Agent("codex", [])
    assert played(Agent("claude", [spent("server")]), second, stopped=lambda: True).failure == "server"
    assert second.played == []


def test_each_session_begins_with_the_favourite():
    first, second = Agent("claude", [spent("server"), spent()]), Agent("codex", [spent()])
    agent = FallbackAgent((first, second))
    assert [agent.play(SESSION, lambda: False).agent for _ in range(2)] == ["codex", "claude"]


def test_a_model_is_named_for_the_favourite_alone():
    first, second = Agent("claude", [spent("missing")]), Agent("codex", [spent()])
    played(first, second)
    assert (first.played[0].model, second.played[0].model) == ("a-model-of-the-first", "")


def test_what_the_first_one_tried_stays_told_when_another_takes_over():
    tried = spent("server", refused=("`git push -f` is denied",), calls=("Bash: git push -f",), left_running=("sleep",))
    turn = played(Agent("claude", [tried]), Agent("codex", [spent(calls=("command_execution: ls",))]))
    assert turn.refused == tried.refused and turn.left_running == ("sleep",)
    assert turn.calls == ("Bash: git push -f", "command_execution: ls")


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
