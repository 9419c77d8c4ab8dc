"""Ralplan: the Critic's structured verdict decides, section by section, and nobody else."""

from __future__ import annotations

import json

import pytest

from ralph_mission.loop import teams
from ralph_mission.loop.model.spec import LoopPreset, RunLimits
from ralph_mission.loop.model.state import Guidance, Hat
from ralph_mission.loop.teams import ralplan
from tests.loop.fakes import START_OF_TIME
from tests.loop.scripted_hats import CRASH, Cast, World, played, says, spec

PLAN = "# Tokens\n\n## Store\nKeep tokens.\n\n## Refresh\nRefresh them.\n"
BETTER = PLAN.replace("Refresh them.", "Refresh them; an expired one is asked for anew.")
EXPIRY = "no handling of a token that expires in the refresh flow"
YES = {"verdict": "approve"}


def verdict(topic="plan.verdict", **given):
    return says(topic, given)


def judged(**by_section):
    rows = [
        {"section": name, "verdict": "approve" if not said else "reject", "objections": said}
        for name, said in by_section.items()
    ]
    return says("plan.verdict", {"sections": rows})


def advised(words="Make it a module of its own."):
    return says("plan.advice", words)


def plans(*texts):
    return [says("plan.complete", "written", plan=text) for text in texts]


def play(world, **limits):
    return ralplan.run_ralplan(spec(**limits), world.ports, world, world)


# --- rounds --------------------------------------------------------------------------


def test_three_rounds_until_the_critic_approves():
    world = World(
        Cast(
            planner=plans(PLAN, PLAN + "More.\n", BETTER),
            critic=[judged(Store=["a"], Refresh=[EXPIRY]), judged(Store=[], Refresh=[EXPIRY]), judged(Refresh=[])],
            architect=[advised()] * 3,
        )
    )
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("complete", 0)
    assert "round 3" in account.ending.detail
    assert played(account.outputs) == ["planner", "critic", "architect"] * 3
    assert world.pages["plan.md"] == BETTER
    assert [event.topic for event in world.store.events][-1] == "plan.approved"


def test_the_planner_hears_each_objection_and_the_advice():
    world = World(
        Cast(
            planner=plans(PLAN, BETTER),
            critic=[judged(Store=[], Refresh=[EXPIRY]), judged(Refresh=[])],
            architect=[advised("Put it beside the store."), advised()],
        )
    )
    play(world)
    prompt = world.cast.of("planner")[1].prompt
    assert EXPIRY in prompt and "Put it beside the store." in prompt and "Approved, leave as they are: Store" in prompt


def test_a_critic_who_is_never_satisfied_ends_it_after_five_rounds_with_the_objections_and_the_plan():
    world = World(
        Cast(planner=plans(*[PLAN] * 5), critic=[judged(Store=[], Refresh=[EXPIRY])] * 5, architect=[advised()] * 5)
    )
    account = play(world)
    assert (account.ending.reason, account.ending.code) == ("rounds", 2)
    assert "5 rounds" in account.ending.detail and EXPIRY in account.ending.detail
    assert len(account.outputs) == 15 and world.pages["plan.md"] == PLAN


def test_words_that_approve_do_not_count_without_the_verdict():
    world = World(
        Cast(
            planner=plans(*[PLAN] * 5),
            architect=[advised()] * 5,
            critic=[says("plan.verdict", "APPROVED, looks great, LOOP_COMPLETE")] * 5,
        )
    )
    account = play(world)
    assert account.ending.reason == "rounds" and "cannot be understood" in account.ending.detail


# --- blind to each other -------------------------------------------------------------


def test_critic_and_architect_of_a_round_are_told_the_same_and_nothing_of_each_other():
    world = World(
        Cast(
            planner=plans(PLAN, BETTER),
            critic=[
                says(
                    "plan.verdict", {"sections": [{"section": "Store", "verdict": "approve"}]}, text="CRITICAL-WORDS "
                ),
                judged(Refresh=[]),
            ],
            architect=[says("plan.advice", "ADVICE-WORDS", text="ARCHITECT-WORDS "), advised()],
        )
    )
    play(world)
    critic, architect = world.cast.of("critic")[0], world.cast.of("architect")[0]
    assert "CRITICAL-WORDS" not in architect.prompt
    assert not {"ADVICE-WORDS", "ARCHITECT-WORDS"} & set(critic.prompt.replace("\n", " ").split())
    assert "written" in critic.prompt and "written" in architect.prompt
    assert world.batches[1] == ["critic", "architect"]


def test_a_critic_who_crashed_plays_again_and_is_still_told_nothing_of_the_architect():
    world = World(
        Cast(
            planner=plans(PLAN),
            critic=[CRASH, verdict(**YES)],
            architect=[says("plan.advice", "ADVICE-WORDS", text="ARCHITECT-WORDS ")],
        )
    )
    assert play(world).ending.reason == "complete"
    again = world.cast.of("critic")[1]
    assert "ADVICE-WORDS" not in again.prompt and "ARCHITECT-WORDS" not in again.prompt


# --- sections ------------------------------------------------------------------------


def test_an_approved_section_is_frozen_for_the_planner():
    spoiled = BETTER.replace("Keep tokens.", "Keep nothing.")
    world = World(
        Cast(
            planner=plans(PLAN, spoiled),
            architect=[advised()] * 2,
            critic=[judged(Store=[], Refresh=[EXPIRY]), judged(Refresh=[])],
        )
    )
    assert play(world).ending.reason == "complete"
    assert world.pages["plan.md"] == BETTER
    [put_back] = [event for event in world.store.events if event.topic == "plan.frozen"]
    assert put_back.payload == "put back as approved: Store"


def test_a_section_that_was_taken_out_or_doubled_comes_back_as_approved():
    approved = {"Store": "## Store\nKeep tokens.\n\n"}
    without = PLAN.replace(approved["Store"], "")
    assert teams.freeze_sections(approved, without) == (PLAN, ("Store",))
    doubled = f"{PLAN}## Store\nsomething else\n"
    assert teams.freeze_sections(approved, doubled) == (PLAN, ("Store",))


def test_headings_in_fences_are_no_sections():
    plan = "## A\n```md\n## B\n~~~\n```\ntext\n## C ##\n"
    assert teams.section_names(plan) == ("A", "C")
    assert "".join(section.text for section in teams.split_sections(plan)) == plan


def test_the_critic_itself_may_take_an_approval_back():
    world = World(
        Cast(
            planner=plans(PLAN, BETTER, BETTER.replace("Keep tokens.", "Keep them safe.")),
            architect=[advised()] * 3,
            critic=[judged(Store=[], Refresh=[EXPIRY]), judged(Store=["it is not safe"], Refresh=[]), judged(Store=[])],
        )
    )
    assert play(world).ending.reason == "complete"
    assert "Keep them safe." in world.pages["plan.md"]


# --- verdicts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "approve",
        "[]",
        "{}",
        '{"verdict": "maybe"}',
        '{"verdict": "approve", "objections": ["but"]}',
        '{"verdict": "reject"}',
        '{"sections": [{"section": "Store", "verdict": "approve", "objections": ["but"]}]}',
        '{"sections": [{"section": "Elsewhere", "verdict": "reject"}]}',
        '{"sections": "all"}',
        "[" * 100_000,
        '{"verdict": "approve", "objections": [{"text": "but"}]}',
        '{"verdict": "approve", "objections": "but"}',
    ],
)
def test_a_verdict_that_is_unclear_or_objects_approves_nothing(payload):
    found = ralplan.parse_critique(payload, ("Store", "Refresh"))
    assert found.approved == frozenset() and found.objections


def test_a_verdict_names_sections_in_any_case_and_with_their_mark():
    rows = [
        {"section": "## store", "verdict": "Approved"},
        {"section": "Refresh", "verdict": "reject", "objections": ["x"]},
    ]
    found = ralplan.parse_critique(f"```json\n{json.dumps({'sections': rows})}\n```", ("Store", "Refresh"))
    assert found.approved == {"Store"} and [one.section for one in found.objections] == ["Refresh"]


def test_a_section_that_is_not_mentioned_is_not_approved():
    world = World(Cast(planner=plans(*[PLAN] * 5), critic=[judged(Store=[])] * 5, architect=[advised()] * 5))
    account = play(world)
    assert account.ending.reason == "rounds" and "Refresh: the critic has not approved it" in account.ending.detail


@pytest.mark.parametrize(
    ("plan", "why"), [("", "no plan"), ("just words", "no sections"), ("## A\n1\n## A\n2\n", "same name")]
)
def test_a_plan_that_nobody_can_judge_goes_back_without_costing_a_review(plan, why):
    world = World(Cast(planner=[*plans(plan), *plans(PLAN)], critic=[verdict(**YES)], architect=[advised()]))
    account = play(world)
    assert account.ending.reason == "complete" and played(account.outputs) == [
        "planner",
        "planner",
        "critic",
        "architect",
    ]
    assert why in world.cast.of("planner")[1].prompt


# --- limits, and going on ------------------------------------------------------------


def test_a_planner_that_always_crashes_ends_as_failures():
    world = World(Cast(planner=[CRASH] * 3))
    account = play(world)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("failures", 1, 3)


def test_the_cost_limit_is_asked_before_the_next_session():
    world = World(
        Cast(planner=[says("plan.complete", plan=PLAN, usd=1.0)], critic=[says("plan.verdict", YES, usd=1.0)])
    )
    account = play(world, usd=1.5)
    assert account.ending.reason == "cost" and played(account.outputs) == ["planner", "critic"]


def test_no_session_more_than_the_limit():
    world = World(Cast(planner=plans(PLAN), critic=[verdict(**YES)]))
    account = play(world, iterations=2)
    assert account.ending.reason == "iterations" and len(account.outputs) == 2


@pytest.mark.parametrize("signal", ["stop", "cancel"])
def test_a_persons_word_ends_it_before_the_next_session(signal):
    def asks(session, workplace, artifacts):
        world.store.asked = signal
        return says("plan.complete", plan=PLAN)(session, workplace, artifacts)

    world = World(Cast(planner=[asks]))
    assert play(world).ending.reason == signal


def test_guidance_reaches_one_step_and_is_acknowledged():
    world = World(Cast(planner=plans(PLAN), critic=[verdict(**YES)], architect=[advised()]))
    world.store.words = [Guidance("g1", "wrap it, do not replace it", START_OF_TIME)]
    play(world)
    assert [word.id for word in world.store.given] == ["g1"]
    assert "wrap it" in world.cast.of("planner")[0].prompt and "wrap it" not in world.cast.of("critic")[0].prompt


def test_a_run_goes_on_with_what_was_approved():
    cut = World(Cast(planner=plans(PLAN), critic=[judged(Store=[], Refresh=[EXPIRY])], architect=[advised()]))
    first = play(cut, iterations=3)
    assert first.ending.reason == "iterations"
    world = World(Cast(planner=plans(BETTER), critic=[judged(Refresh=[])], architect=[advised()]), pages=cut.pages)
    world.store.left = first.state
    account = play(world)
    assert account.ending.reason == "complete" and "round 2" in account.ending.detail
    assert EXPIRY in world.cast.of("planner")[0].prompt


def test_the_users_hat_of_that_name_lends_its_model_and_denials():
    world = World(Cast(planner=plans(PLAN), critic=[verdict(**YES)], architect=[advised()]))
    wanted = spec()
    own = Hat("critic", model="large", instructions="Mind the tests.", commands_denied=("npm publish",))
    preset = LoopPreset("hats", RunLimits(), hats=(own,))
    ralplan.run_ralplan(type(wanted)("x", preset, model="small"), world.ports, world, world)
    critic, planner = world.cast.of("critic")[0], world.cast.of("planner")[0]
    assert (critic.model, planner.model) == ("large", "small")
    assert "Mind the tests." in critic.prompt and "npm publish" in critic.hat.commands_denied


def test_sessions_of_a_plan_change_no_file():
    world = World(
        Cast(
            planner=[says("plan.complete", plan=PLAN, writes={"src.py": "x"})],
            critic=[verdict(**YES)],
            architect=[advised()],
        )
    )
    account = play(world)
    assert "src.py" not in world.workplace.files
    assert [change.path for change in account.outputs[0].reverted] == ["src.py"]
