"""Hats as data, and the patterns in which they take turns. An event decides who is next, never a model (seed 001).

plan.complete -> builder · build.complete -> reviewer · review.verdict with issues -> fixer, without -> the end ·
fix.complete -> reviewer · verification.failed -> builder, with what failed. In every pattern whoever builds also
listens to plan.complete, which the engine says when work is left, and the first hat listens to task.resume.

The ways to loop as data: each of the originals is one row over the same engine. Numbers are theirs.

- loop: 100 sessions, 4 hours, 3 failures in a row, 3 redispatches, LOOP_COMPLETE (seed 000, its termination table).
- fresh: 20 sessions, 100 turns and 45 minutes each, 3 retries 5 seconds apart, stuck after 3, TASK_COMPLETE
  (seed 002 §7.3, §7.6 and §8.3); it has no limit over all of them but their product, 15 hours.
- prd: 10 sessions, 2 seconds between them, COMPLETE, one commit per story (seed 004 and its script); their product
  likewise: 10 times 45 minutes.
- issue: 50 sessions per issue (seed 000, proposal A), else as loop.
- hats, and one row per pattern: as loop, until the reviewer has nothing critical left to say (seed 001: 100 at most).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ralph_mission.errors import UserError
from ralph_mission.loop.model.order import LoopPreset, RunLimits
from ralph_mission.loop.model.state import PLANNED, RESUME, START, VERDICT, VERIFICATION_FAILED, Hat

BUILT, FIXED, TESTED, DIAGNOSED = "build.complete", "fix.complete", "tests.written", "diagnosis.complete"
BEGIN = (START, RESUME)
WORK = (PLANNED, VERIFICATION_FAILED)
DOCS = ("docs/**", "doc/**")
TESTS = (
    "tests/**", "test/**", "spec/**", "**/__tests__/**", "**/test_*.py", "**/*_test.*", "**/*.test.*", "**/*.spec.*",
    "**/conftest.py",
)  # fmt: skip  # one list
PLANS = ("PLAN.md", "plans/**")
WRITING = ("Edit", "MultiEdit", "Write", "NotebookEdit")
"""Tools that change files, by the names that coding agents give them."""
DENIED = ("git push --force", "git reset --hard", "git clean -fdx", "git rebase", "rm -rf /", "sudo")
"""What no session may run while nobody watches; what `shims.DANGEROUS` names is denied besides."""


@dataclass(frozen=True, slots=True)
class HatPattern:
    """Hats that take turns at one kind of task. `fits` says when to take it."""

    name: str
    hats: tuple[Hat, ...]
    fits: str


PLANNER = Hat(
    "planner", BEGIN, (PLANNED,),
    description="decides what is to be done, in small steps",
    instructions="Read what the objective touches before you decide anything. Write the plan as tasks (`ralph task "
    "add`), each small enough for one session, with what it needs first, how to see that it is done, and what must "
    "stay as it is. Say which files each of them touches. A plan costs little: when one exists and does not work, "
    "write another. Build nothing.",
    write_allowed=PLANS, commands_denied=DENIED,
)  # fmt: skip  # who, what, where
BUILDER = Hat(
    "builder", WORK, (BUILT,),
    description="builds one planned step",
    instructions="Take the first step that is ready and build exactly that, in the manner of the code around it. "
    "When you were called because checks failed, mend their cause and leave the checks alone. Run the checks, commit, "
    "close the task. Do not judge your own work: somebody else does.",
    write_denied=(*DOCS, *TESTS), commands_denied=DENIED, payload=("the files changed", "how it was checked"),
)  # fmt: skip  # as above
REVIEWER = Hat(
    "reviewer", (BUILT, FIXED), (VERDICT,),
    description="judges what was built, and changes nothing",
    instructions="You have not seen this being written, and you owe nobody anything. Read the change and what it "
    "touches, run it and its tests, try the cases that its author did not think of. Report what breaks, what is "
    "missing and what contradicts the objective or the plan, each with file, line and kind, and how severe it is: "
    "critical must be fixed, major should be, minor may stay. Matters of taste are no issues.",
    write_allowed=(), tools_denied=WRITING, commands_denied=DENIED, payload=("issues",),
)  # fmt: skip  # as above
FIXER = Hat(
    "fixer", (VERDICT,), (FIXED,),
    description="mends what the reviewer found",
    instructions="Mend every issue of the verdict, the critical ones first, and nothing besides. Show the fault with "
    "a test before you mend it where that can be done. When an issue is none, leave the code and say why.",
    commands_denied=DENIED, payload=("what was mended", "what was left and why"),
)  # fmt: skip  # as above
TESTER = Hat(
    "tester", BEGIN, (TESTED,),
    description="writes the tests that say what is wanted",
    instructions="Write tests for what the objective asks, through the interfaces that its users see: what must "
    "hold, its limits, and what must be refused. Run them: those for what is not built yet must fail, and for that "
    "reason only. Do not build it.",
    write_allowed=TESTS, commands_denied=DENIED, payload=("the tests", "why they fail now"),
)  # fmt: skip  # as above
DEBUGGER = Hat(
    "debugger", BEGIN, (DIAGNOSED,),
    description="finds the cause of a fault and shows it with a test",
    instructions="Make the fault happen, reliably, in the smallest test that shows it. Then narrow it down: one "
    "assumption at a time, each tried and not believed. Name the cause, with file and line, and what else it can "
    "break. Do not mend it.",
    write_allowed=TESTS, commands_denied=DENIED, payload=("the cause with file and line", "the failing test"),
)  # fmt: skip  # as above
REFACTORER = Hat(
    "refactorer", (TESTED, *WORK), (BUILT,),
    description="changes the shape of code and nothing of what it does",
    instructions="Change one thing about the shape of the code at a time, run the tests after each, commit each. What "
    "it does stays the same: when a test has to change, stop and say so. Features and faults are not yours.",
    write_denied=(*DOCS, *TESTS), commands_denied=DENIED, payload=("what changed its shape", "how it was checked"),
)  # fmt: skip  # as above
GUARD = replace(
    TESTER,
    description="writes tests for what the code does now",
    instructions="Before anything is moved, write tests for what the code in question does now, right or wrong, as "
    "its callers see it. They pass today and must pass afterwards. Do not change the code.",
    payload=("the tests", "what they hold on to"),
)

HATS: Mapping[str, Hat] = {hat.name: hat for hat in (PLANNER, BUILDER, REVIEWER, FIXER, TESTER, DEBUGGER, REFACTORER)}
"""Every hat by its name."""

PATTERNS: Mapping[str, HatPattern] = {
    pattern.name: pattern
    for pattern in (
        # Nobody else writes tests here, so its builder may.
        HatPattern("plan-build-review", (PLANNER, replace(BUILDER, write_denied=DOCS), REVIEWER, FIXER),
                "a feature of several steps"),
        HatPattern("test-first", (TESTER, replace(BUILDER, triggers=(TESTED, *WORK)), REVIEWER, FIXER),
                "behaviour that can be said as tests"),
        HatPattern("refactor", (GUARD, REFACTORER, REVIEWER, FIXER), "another shape, the same behaviour"),
        HatPattern("debug", (DEBUGGER, replace(FIXER, triggers=(DIAGNOSED, VERDICT, *WORK)), REVIEWER),
                "a fault whose cause nobody knows"),
    )
}  # fmt: skip  # one table
"""Every pattern by its name."""
ALIASES: Mapping[str, str] = {
    "pbr": "plan-build-review", "feature": "plan-build-review", "tdd": "test-first", "refactoring": "refactor",
    "debugging": "debug", "bugfix": "debug",
}  # fmt: skip  # one table


def find_pattern(name: str) -> HatPattern:
    """The pattern of this name or alias. Raises UserError that names the nearest."""
    key = name.strip().lower().replace("_", "-")
    found = PATTERNS.get(ALIASES.get(key, key))
    if found is None:
        near = get_close_matches(key, (*PATTERNS, *ALIASES), 1)
        mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(PATTERNS)}"
        raise UserError(f"no pattern {name!r}", mend, usage=True)
    return found


def assign_models(pattern: HatPattern, models: Mapping[str, str]) -> tuple[Hat, ...]:
    """The pattern's hats, each with its model where one is named for it; "*" is for the others."""
    return tuple(replace(hat, model=models.get(hat.name, models.get("*", hat.model))) for hat in pattern.hats)


SESSION = 45 * 60.0
"""Seconds that one session may take (seed 002 §7.6)."""
LOOP = RunLimits(iterations=100, runtime=4 * 3600.0, failures=3, redispatches=3)
FRESH = RunLimits(iterations=20, runtime=20 * SESSION, session=SESSION, turns=100, stuck=3, retries=3, retry_pause=5.0)
PRD = RunLimits(iterations=10, runtime=10 * SESSION, session=SESSION, pause=2.0)
ISSUE = replace(LOOP, iterations=50)
PERSISTENT = replace(LOOP, iterations=10_000, runtime=86_400.0, usd=50.0, unpriced=True)
"""Of a loop that goes from issue to issue: 10,000 sessions, a day, $50 (seed 000, proposal B)."""
IDLE_PAUSE, ISSUE_PAUSE, ERROR_PAUSE = 300.0, 30.0, 60.0
"""Seconds to wait: without an issue, between two issues, after an error (seed 000, proposal A and its wrapper)."""

PRESETS: Mapping[str, LoopPreset] = {
    preset.name: preset
    for preset in (
        LoopPreset("loop", LOOP, "LOOP_COMPLETE"),
        LoopPreset("fresh", FRESH, "TASK_COMPLETE"),
        LoopPreset("prd", PRD, "COMPLETE", stories=True),
        LoopPreset("issue", ISSUE, "LOOP_COMPLETE"),
        LoopPreset("hats", LOOP, "LOOP_COMPLETE"),
        *(LoopPreset(pattern.name, LOOP, "LOOP_COMPLETE", hats=pattern.hats) for pattern in PATTERNS.values()),
    )
}  # fmt: skip  # one table
"""Every preset by its name. `fresh` has stories where a prd.json is: that is for whoever reads the files to say."""


def find_preset(name: str) -> LoopPreset:
    """The preset of this name, or of a pattern's alias. Raises UserError that names the nearest."""
    key = name.strip().lower().replace("_", "-")
    found = PRESETS.get(ALIASES.get(key, key))
    if found is None:
        near = get_close_matches(key, (*PRESETS, *ALIASES), 1)
        mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(PRESETS)}"
        raise UserError(f"no preset {name!r}", mend, usage=True)
    return found
