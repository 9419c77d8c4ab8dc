"""Planning: the stories of a task as the first part of its run, with the limits, endings and account of that run."""

from __future__ import annotations

import pytest

from ralph_mission.loop import planning
from ralph_mission.loop.model.spec import LoopPreset, RunLimits, RunSpec
from ralph_mission.loop.model.state import AgentTurn, Hat, Prd, SessionUsage, UserStory
from tests.loop.fakes import FakeWorld, PlannedAgent

GOOD = Prd("Shop", "ralph/shop", "A shop.", (
    UserStory("US-001", "Count the shelf", "As a keeper I see what is left.",
          ("an empty shelf counts 0", "Typecheck passes"), 1),
))  # fmt: skip  # one value
VAGUE = Prd("Shop", "ralph/shop", "A shop.", (UserStory("US-001", "Shelf", "It is good.", ("works well",), 1),))
TURN = AgentTurn("done", usage=SessionUsage(1, 1, 1, 5.0))


class Here:
    """A world with a planner, and what it has written."""

    def __init__(self, *turns, prd=None):
        self.prd = prd
        self.world = FakeWorld(PlannedAgent(*turns))

    @property
    def store(self):
        return self.world.store

    @property
    def prompts(self):
        return self.world.agent.prompts

    def writes(self, prd, turn=TURN):
        """A session that writes this list."""

        def play(session):
            self.prd = prd
            return turn

        return play

    def plan(self, follows="", replacing=False, hats=(), **limits):
        usual = RunSpec("A shop.", LoopPreset("prd", RunLimits(**limits), "COMPLETE", True, hats), persistent=True)
        read = lambda: (self.prd, "")  # noqa: E731  # one value
        return planning.plan_stories(planning.planning_spec(usual), self.world.ports, read, follows, replacing)


def planned(*prds, **more):
    """A world whose planner writes these lists, one in each session."""
    here = Here(**more)
    here.world.agent.turns = [here.writes(prd) for prd in prds]
    return here


def test_stories_that_can_be_run_complete_it():
    here = planned(GOOD)
    account = here.plan()
    assert (account.ending.reason, account.ending.code) == ("complete", 0)
    assert here.store.closed is account and here.store.run_dir
    assert "Write the user stories of this task" in here.prompts[0] and "> A shop." in here.prompts[0]


def test_stories_that_cannot_be_run_go_back_with_the_reason():
    here = planned(VAGUE, GOOD)
    assert here.plan().ending.reason == "complete"
    assert "The stories cannot be run" in here.prompts[1] and "works well" in here.prompts[1]


def test_after_three_sessions_without_any_a_person_has_to_look():
    here = planned(None, None, None)
    account = here.plan()
    assert (account.ending.reason, account.ending.code, len(here.prompts)) == ("stuck", 1, 3)
    assert "no stories after 3 sessions" in account.ending.detail and "holds no userStories" in account.ending.detail


def test_a_planner_that_crashes_ends_as_failures():
    here = Here(*[AgentTurn(failure="exit", detail="it crashed")] * 3)
    account = here.plan()
    assert (account.ending.reason, account.ending.code) == ("failures", 1)


@pytest.mark.parametrize("failure", ["missing", "auth"])
def test_where_there_is_no_planner_nobody_asks_for_one_again(failure):
    here = Here(*[AgentTurn(failure=failure, detail="no such program")] * 3)
    account = here.plan()
    assert (account.ending.reason, account.ending.code, len(here.prompts)) == ("failures", 1, 1)
    assert account.ending.detail == "no such program" and "--continue" in account.ending.next_step


@pytest.mark.parametrize(
    ("limits", "reason", "calls"),
    [({"usd": 1.0}, "cost", 1), ({"usd": 6.0}, "cost", 2), ({"iterations": 1}, "iterations", 1)],
)
def test_limits_are_asked_before_each_planner(limits, reason, calls):
    here = planned(None, None, None)
    account = here.plan(**limits)
    assert (account.ending.reason, account.ending.code, len(here.prompts)) == (reason, 2, calls)


def test_time_that_planners_take_counts():
    here = Here()
    here.world.agent.turns = [lambda session: here.world.clock.pass_by(100.0)] * 3
    account = here.plan(runtime=150.0)
    assert (account.ending.reason, len(here.prompts)) == ("runtime", 2)


def test_what_follows_goes_on_from_the_account_of_the_planner():
    here = planned(VAGUE, GOOD)
    here.plan("prd")
    left, _ = here.store.kept[-1]
    assert (left.iteration, left.usage.cost_usd, left.kind, left.objective) == (2, 10.0, "prd", "A shop.")
    assert [name for name, _ in left.by_hat] == ["planner"]
    assert (left.pending.topic, left.feedback, left.last, left.failures) == ("loop.start", "", None, 0)


@pytest.mark.parametrize("signal", ["stop", "cancel", "restart"])
def test_a_persons_word_ends_it_before_the_next_planner(signal):
    here = planned(None)
    first = here.world.agent.turns[0]

    def asks(session):
        here.store.asked = signal
        return first(session)

    here.world.agent.turns = [asks]
    account = here.plan()
    assert (account.ending.reason, len(here.prompts)) == (signal, 1)


@pytest.mark.parametrize(("follows", "reason"), [("prd", "stop"), ("", "complete")])
def test_who_asks_to_stop_in_the_last_session_means_what_follows(follows, reason):
    here = planned(GOOD)
    write = here.world.agent.turns[0]

    def asks(session):
        here.store.asked = "stop"
        return write(session)

    here.world.agent.turns = [asks]
    assert here.plan(follows).ending.reason == reason
    assert here.store.kept[-1][0].kind == follows


def test_an_interrupt_is_an_ending_that_can_be_gone_on_from():
    here = Here(KeyboardInterrupt())
    account = here.plan("prd")
    assert (account.ending.reason, account.ending.code) == ("interrupted", 130)
    again = planned(GOOD)
    left = next(state for state, _ in here.store.kept if state.mark)
    again.store.left = left
    again.world.workplace.remember(left.mark)
    assert again.plan("prd").ending.reason == "complete"


def test_stories_that_somebody_mended_meanwhile_need_no_planner():
    cut = planned(None, None, None)
    left = cut.plan().state
    again = Here(prd=GOOD)
    again.store.left = left
    assert (again.plan("prd").ending.reason, again.prompts) == ("complete", [])


def test_stories_that_are_to_be_replaced_are_not_taken_for_the_new_ones():
    other = Prd("Shop", "ralph/other", "Another.", GOOD.stories)
    here = planned(other, GOOD, prd=other)
    assert here.plan(replacing=True).ending.reason == "complete"
    assert len(here.prompts) == 2 and "as it was before" in here.prompts[1]


def test_the_users_planner_lends_its_model_and_not_its_aim():
    own = Hat("planner", model="large", instructions="Write tasks.", commands_denied=("npm publish",))
    here = planned(GOOD)
    here.plan(hats=(own,))
    session = here.world.agent.sessions[0]
    assert session.model == "large" and "npm publish" in session.hat.commands_denied
    assert "Write tasks." not in session.prompt


def test_a_plan_that_was_agreed_on_is_told_to_every_planner():
    here = planned(VAGUE, GOOD)
    consented = planned(GOOD).plan().state
    here.store.left = planning.state_after_agreement(consented, "# Plan\n\n## Store\nOne table.")
    account = here.plan()
    assert account.ending.reason == "complete" and account.state.iteration == 3
    assert all("One table." in prompt and "This plan was agreed on" in prompt for prompt in here.prompts)


def test_a_planner_writes_the_list_and_nothing_else():
    here = planned(GOOD)
    write = here.world.agent.turns[0]

    def more(session):
        here.world.workplace.write("src.py")
        return write(session)

    here.world.agent.turns = [more]
    account = here.plan()
    assert [change.path for change in account.outputs[0].reverted] == ["src.py"]
