"""The ways to loop as data: each of the originals is one row over the same engine. Numbers are theirs.

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
from dataclasses import replace
from difflib import get_close_matches

from ralph_mission.loop.order import LoopPreset, RunLimits
from ralph_mission.loop.patterns import ALIASES, PATTERNS
from ralph_mission.trouble import UserError

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
    """The preset of this name, or of a pattern's alias. Raises Trouble that names the nearest."""
    key = name.strip().lower().replace("_", "-")
    found = PRESETS.get(ALIASES.get(key, key))
    if found is None:
        near = get_close_matches(key, (*PRESETS, *ALIASES), 1)
        mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(PRESETS)}"
        raise UserError(f"no preset {name!r}", mend, usage=True)
    return found
