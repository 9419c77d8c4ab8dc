"""What comes no nearer: a reviewer that goes on asking for as much is warned about, planned anew, and ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from ralph_mission.loop.hats import PATTERNS, PRESETS
from ralph_mission.loop.model.spec import RunResult, RunSpec
from ralph_mission.loop.model.state import (
    PLANNED,
    RESUME,
    START,
    VERDICT,
    AgentTurn,
    CheckResult,
    Hat,
    LoopTask,
    Prd,
    Session,
    UserStory,
)
from ralph_mission.loop.run import run_loop
from tests.loop.fakes import FakeStore, FakeWorkplace, FakeWorld, PlannedAgent

RED, GREEN = CheckResult(False, True, "2 tests failed"), CheckResult(True, True)


class Troupe:
    """Every hat does its part and changes a file; the reviewer finds so many issues, verdict by verdict."""

    def __init__(self, *found: int) -> None:
        self.found = list(found)
        self.world = FakeWorld(PlannedAgent(self.play, forever=True), FakeWorkplace(), FakeStore())

    def play(self, session: Session) -> AgentTurn:
        if session.hat.name == "reviewer":
            return says(VERDICT, issues(self.found.pop(0) if len(self.found) > 1 else self.found[0]))
        self.world.workplace.write(f"src/{session.iteration}.py")
        return says(session.hat.publishes[0], f"step {session.iteration}")

    def stuck_in(self, prompts: Sequence[str]) -> list[int]:
        return [number for number, prompt in enumerate(prompts, 1) if "## STUCK" in prompt or "# STUCK" in prompt]


def says(topic: str, payload: str = "") -> AgentTurn:
    return AgentTurn(f'<event topic="{topic}">{payload}</event>')


def issues(number: int) -> str:
    return json.dumps({"issues": [{"message": f"fault {n}", "severity": "major"} for n in range(number)]})


def ordered(pattern: str = "plan-build-review", iterations: int = 60) -> RunSpec:
    preset = replace(PRESETS["hats"], name=pattern, hats=PATTERNS[pattern].hats)
    return RunSpec("Build the thing", replace(preset, limits=replace(preset.limits, iterations=iterations)))


def played(troupe: Troupe, spec: RunSpec) -> RunResult:
    return run_loop(spec, troupe.world.ports)


def hats(troupe: Troupe) -> list[str]:
    return troupe.world.agent.hats


def test_a_reviewer_that_never_agrees_ends_stuck_after_a_warning_and_another_plan() -> None:
    troupe = Troupe(2)
    account = played(troupe, ordered())
    assert account.ending.reason == "stuck" and account.ending.code == 1
    assert "6 reviews in a row" in account.ending.detail and "2 issues are left" in account.ending.detail
    assert hats(troupe).count("reviewer") == 7
    assert hats(troupe).count("planner") == 2
    replanned = len(hats(troupe)) - hats(troupe)[::-1].index("planner")
    assert hats(troupe)[:replanned].count("reviewer") == 5


def test_the_warning_comes_first_and_the_new_planner_hears_what_was_found() -> None:
    troupe = Troupe(2)
    played(troupe, ordered())
    told = troupe.stuck_in(troupe.world.agent.prompts)
    again = [number for number, hat in enumerate(hats(troupe), 1) if hat == "planner"][1]
    assert told and told[0] < again
    assert "fault 1" in troupe.world.agent.prompts[again - 1]


def test_a_review_that_finds_less_each_time_takes_as_many_rounds_as_it_needs() -> None:
    troupe = Troupe(9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
    account = played(troupe, ordered())
    assert account.ending.reason == "complete"
    assert hats(troupe).count("reviewer") == 10 and hats(troupe).count("planner") == 1


def test_a_pattern_without_a_planner_is_told_to_throw_its_plan_away_and_ends_stuck_too() -> None:
    for pattern in ("test-first", "refactor", "debug"):
        troupe = Troupe(3)
        assert played(troupe, ordered(pattern)).ending.reason == "stuck", pattern
        assert any("plan is disposable" in prompt for prompt in troupe.world.agent.prompts), pattern


def test_clean_verdicts_over_red_checks_end_stuck() -> None:
    troupe = Troupe(0)
    troupe.world.workplace.checks = [RED] * 50
    account = played(troupe, ordered())
    assert account.ending.reason == "stuck" and "checks stay red" in account.ending.detail
    assert troupe.world.workplace.verified >= 6


def test_a_task_that_is_skipped_under_review_gives_the_next_one_to_the_builder() -> None:
    troupe = Troupe(2)
    troupe.world.store.tasks = [
        LoopTask("t-1", "one", status="ready", priority=1),
        LoopTask("t-2", "two", status="ready"),
    ]
    troupe.world.store.tasks[1] = troupe.world.store.tasks[1]._replace(priority=2)
    account = played(troupe, ordered())
    assert account.ending.reason == "stuck" and account.state.skipped == {"t-1", "t-2"}
    first = next(n for n, prompt in enumerate(troupe.world.agent.prompts) if "CURRENT TASK: t-2" in prompt)
    assert hats(troupe)[first] == "builder" and "t-1 was skipped" in troupe.world.agent.prompts[first]


def test_free_form_without_a_list_is_warned_when_nothing_moves() -> None:
    world = FakeWorld(PlannedAgent(AgentTurn("I looked around."), forever=True), FakeWorkplace(), FakeStore())
    assert run_loop(RunSpec("Build the thing", PRESETS["loop"]), world.ports).ending.reason == "idle"
    told = ["STUCK" in prompt for prompt in world.agent.prompts]
    assert told == [False] * 3 + [True] * 5
    assert "plan is disposable" in world.agent.prompts[4] and "plan is disposable" not in world.agent.prompts[3]


def test_planned_anew_once_and_not_at_every_verdict() -> None:
    troupe = Troupe(2)
    played(troupe, ordered())
    topics = [event.topic for event in troupe.world.store.events]
    assert topics.count(PLANNED) == 2


def claiming(made: FakeWorld, said: str) -> None:
    def play(session: Session) -> AgentTurn:
        made.workplace.write(f"{session.iteration}.py")
        return AgentTurn(said)

    made.agent.turns = [play]


def open_task() -> FakeStore:
    return FakeStore(tasks=[LoopTask("t-1", "one", status="ready")])


def test_who_claims_the_end_over_an_open_task_again_and_again_is_stuck() -> None:
    for said in ("LOOP_COMPLETE", "I am at it."):
        made = FakeWorld(PlannedAgent(forever=True), FakeWorkplace(), open_task())
        claiming(made, said)
        account = run_loop(RunSpec("Build the thing", PRESETS["loop"]), made.ports)
        assert (account.ending.reason, len(account.outputs)) == ("stuck", 6), said
        assert any("# STUCK" in prompt for prompt in made.agent.prompts)


def test_clean_verdicts_over_a_task_that_stays_open_end_stuck() -> None:
    troupe = Troupe(0)
    troupe.world.store.tasks = [LoopTask("t-1", "one", status="ready")]
    account = played(troupe, ordered())
    assert account.ending.reason == "stuck" and account.state.skipped == {"t-1"}


def test_hats_without_a_reviewer_are_stuck_after_as_many_rounds_as_one_agent_after_sessions() -> None:
    for number in (1, 2):
        hats = tuple(
            Hat(f"hat-{n}", (START, PLANNED, f"go-{n}") if not n else (f"go-{n}",), (f"go-{(n + 1) % number}",))
            for n in range(number)
        )
        made = FakeWorld(PlannedAgent(forever=True), FakeWorkplace(), open_task())

        def play(session: Session, made: FakeWorld = made) -> AgentTurn:
            made.workplace.write(f"{session.iteration}.py")
            return says(session.hat.publishes[0], str(session.iteration))

        made.agent.turns = [play]
        account = run_loop(RunSpec("Build the thing", replace(PRESETS["hats"], hats=hats)), made.ports)
        assert (account.ending.reason, len(account.outputs)) == ("stuck", 6 * number)


def test_every_story_of_a_pattern_is_built_and_reviewed_by_its_hats() -> None:
    troupe = Troupe(1, 0, 0, 1, 0)
    prd = Prd("thing", "ralph/thing", "", tuple(UserStory(f"US-{n}", f"Story {n}", priority=n) for n in (1, 2, 3)))
    store = troupe.world.store = FakeStore(prd=prd)
    about: list[tuple[str, str]] = []
    play = troupe.play

    def flips(session: Session) -> AgentTurn:
        about.append((session.hat.name, session.prompt.partition("CURRENT STORY: ")[2][:4]))
        turn = play(session)
        if session.hat.name == "builder":
            first = store.prd.todo[0]
            stories = tuple(replace(one, passes=one.passes or one == first) for one in store.prd.stories)
            store.prd = replace(store.prd, stories=stories)
        return turn

    troupe.world.agent.turns = [flips]
    spec = ordered()
    account = played(troupe, replace(spec, preset=replace(spec.preset, stories=True)))
    assert account.ending.reason == "complete"
    assert about == [
        ("planner", "US-1"), ("builder", "US-1"), ("reviewer", "US-1"), ("fixer", "US-1"), ("reviewer", "US-1"),
        ("builder", "US-2"), ("reviewer", "US-2"),
        ("builder", "US-3"), ("reviewer", "US-3"), ("fixer", "US-3"), ("reviewer", "US-3"),
    ]  # fmt: skip  # story by story


def test_nothing_of_a_piece_of_work_is_seen_by_the_next_of_a_persistent_loop() -> None:
    made = FakeWorld(PlannedAgent(), FakeWorkplace(), FakeStore())
    hat = Hat("worker", (START, RESUME))

    def notes(_: Session) -> AgentTurn:
        made.store.tasks = (LoopTask("t-1", "one", status="done"),)
        return AgentTurn("LOOP_COMPLETE")

    made.agent.turns = [notes, AgentTurn("I am at it."), AgentTurn("I am at it.")]
    preset = replace(PRESETS["hats"], hats=(hat,), limits=replace(PRESETS["hats"].limits, iterations=3))
    run_loop(RunSpec("Look after it", preset, persistent=True), made.ports)
    assert made.store.tidied == 1
    assert not any("1 closed" in prompt for prompt in made.agent.prompts)
