"""What people say to a loop that runs: signals, an interrupt, guidance."""

from __future__ import annotations

import pytest

from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import AgentTurn, Guidance
from tests.loop.fakes import START_OF_TIME
from tests.loop.making import DONE, NOTHING, played, spec, world


@pytest.mark.parametrize(("signal", "code"), [("stop", 1), ("cancel", 1), ("restart", 3)])
def test_a_signal_ends_it_after_the_session(signal, code):
    made = world(lambda _: setattr(made.store, "asked", signal))
    account = played(spec(), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == (signal, code, 1)


def test_work_that_is_done_counts_before_a_signal():
    made = world(lambda _: (setattr(made.store, "asked", "stop"), DONE)[1])
    assert played(spec(), made).ending.reason == "complete"


def test_an_interrupt_puts_aside_what_the_session_left_and_tells_it():
    def interrupted(_):
        made.workplace.write("half.py")
        raise KeyboardInterrupt

    made = world(NOTHING, interrupted)
    account = played(spec(), made)
    assert (account.ending.reason, account.ending.code) == ("interrupted", 130)
    assert [(change.path, change.reverted) for change in account.cut] == [("half.py", "kept aside")]
    assert made.workplace.files == {} and made.workplace.aside == {"half.py": "new"}
    state, output = made.store.kept[-1]
    assert (state.mark, state.iteration, output) == ("", 1, None) and not made.store.held
    assert "1 files" in state.feedback


def test_a_second_interrupt_leaves_the_mark_for_whoever_goes_on():
    made = world(KeyboardInterrupt())
    made.workplace.set_aside = lambda mark: (_ for _ in ()).throw(KeyboardInterrupt)
    assert played(spec(), made).ending.reason == "interrupted"
    assert made.store.kept[-1][0].mark


def test_guidance_reaches_the_next_session_once():
    made = world(NOTHING, NOTHING, DONE, words=[Guidance("g-1", "Wrap the existing code", START_OF_TIME)])
    played(spec(), made)
    assert ["Wrap the existing code" in prompt for prompt in made.agent.prompts] == [True, False, False]
    assert [word.id for word in made.store.given] == ["g-1"]


@pytest.mark.parametrize("failure", ["missing", "server", "exit", "timeout"])
def test_guidance_is_kept_while_no_agent_has_read_it(failure):
    made = world(
        AgentTurn(failure=failure, detail="x"), AgentTurn("ok"), DONE, words=[Guidance("g-1", "Wrap it", START_OF_TIME)]
    )
    played(spec(retries=0), made)
    assert ["Wrap it" in prompt for prompt in made.agent.prompts] == [True, True, False]


def test_a_checkout_that_is_taken_starts_nothing():
    made = world(taken=True)
    with pytest.raises(UserError, match="another loop runs"):
        played(spec(), made)
    assert made.agent.sessions == []


def test_guidance_that_a_prompt_had_no_room_for_goes_to_the_next_session():
    words = [Guidance(f"g-{number}", f"word {number}", START_OF_TIME) for number in range(45)]
    made = world(NOTHING, NOTHING, words=words)
    played(spec(iterations=2), made)
    assert "g-44:" not in made.agent.prompts[0] and "g-44:" in made.agent.prompts[1] and not made.store.words
