"""What is asked of a loop, and what its sessions say, in few words."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.loop.hats import PRESETS
from ralph_mission.loop.model.spec import RunLimits, RunResult, RunSpec
from ralph_mission.loop.model.state import VERDICT, AgentTurn, CheckResult, Prd, UserStory
from ralph_mission.loop.run import run_loop
from tests.loop.fakes import FakeStore, FakeWorkplace, FakeWorld, PlannedAgent

GREEN, RED = CheckResult(True, True), CheckResult(False, True, "2 tests failed")
DONE = AgentTurn("All of it is there.\nLOOP_COMPLETE")
NOTHING = AgentTurn("I looked around.")


def spec(preset="loop", **options) -> RunSpec:
    limits = {name: options.pop(name) for name in list(options) if name in RunLimits.__dataclass_fields__}
    chosen = PRESETS[preset] if isinstance(preset, str) else preset
    return RunSpec("Build the thing", replace(chosen, limits=replace(chosen.limits, **limits)), **options)


def passing(prd: Prd, *names: str) -> Prd:
    return replace(prd, stories=tuple(replace(s, passes=s.passes or s.id in names) for s in prd.stories))


def world(*turns, forever=False, files=None, checks=(), **store) -> FakeWorld:
    agent = PlannedAgent(*turns, forever=forever)
    return FakeWorld(agent, FakeWorkplace(files, *checks), FakeStore(**store))


def played(wanted: RunSpec, made: FakeWorld) -> RunResult:
    return run_loop(wanted, made.ports)


def stories(*passes: bool) -> Prd:
    return Prd("thing", "ralph/thing", "", tuple(
        UserStory(f"US-{number}", f"Story {number}", priority=number, passes=passed)
        for number, passed in enumerate(passes, 1)
    ))  # fmt: skip  # one list


def says(topic: str, payload: str = "") -> AgentTurn:
    return AgentTurn(f'Done here.\n<event topic="{topic}">{payload}</event>')


def verdict(*messages: str) -> AgentTurn:
    listed = ", ".join(f'{{"message": "{message}", "file": "a.py"}}' for message in messages)
    return says(VERDICT, f'{{"issues": [{listed}]}}')


def pbr(**options) -> RunSpec:
    return spec("plan-build-review", **options)
