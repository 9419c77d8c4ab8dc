"""Keys of `ralph.yml` that older versions had: a file that still has one loads, and is told what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ralph_mission.safety.front_matter import Path

ANY = "*"
_THINKER = "what a model is asked and may say has fixed bounds; money is bounded by limits.usd_per_cycle"
_FORGE = "3 days for a review and 2 for an answer are fixed; an issue is stale after forge.stale_after"
_WEIGHT = "thinker.weights says how much its kind of finding counts"
_LOOKING = "every look is bounded, and answers are believed for 6 hours"
GONE: Mapping[tuple[str, ...], str] = {
    ("schedule", "review"): "the review is woken wherever GitHub does not start it by itself",
    ("observers", "patience"): "an observer has five minutes, or as long as its own commands may take",
    ("observers", "commands", ANY, "output_cap"): "four million bytes are read; make the command print less",
    ("observers", "database", "address"): "the address stands in DATABASE_URL",
    ("observers", "database", "raw_sql"): "a watch with sql needs no leave any more",
    ("observers", "database", "watches", ANY, "outlier", "score"): "a value is far out at 3.5 deviations",
    ("observers", "database", "watches", ANY, "outlier", "least"): "a window needs 8 values to be judged",
    ("observers", "commands", ANY, "severity"): _WEIGHT,
    ("observers", "dependencies", "advisories"): "OSV is always asked; OSV_API_URL names another place",
    ("observers", "dependencies", "every"): _LOOKING,
    ("observers", "dependencies", "most"): _LOOKING,
    ("observers", "dependencies", "seconds"): _LOOKING,
    ("observers", "forge"): _FORGE,
    ("thinker", "max_findings"): _THINKER,
    ("thinker", "max_memory_chars"): _THINKER,
    ("thinker", "max_tokens"): _THINKER,
    ("thinker", "seconds"): _THINKER,
    ("thinker", "tries"): _THINKER,
    ("loop", "stuck"): "a session is warned after three without progress on one story",
    ("hands", "verify_timeout"): "a check may take half an hour",
    ("observers", "web", ANY, "severity"): _WEIGHT,
    ("work", "max_runtime"): "a try may take four hours; ralph work --max-runtime says less",
    ("hats", ANY, "context"): "name the files in the hat's instructions, or write a hat file",
    ("hats", ANY, "payload"): "say it in the hat's instructions, or write a hat file",
    ("hats", ANY, "max_tokens"): "say it in the hat's instructions, or write a hat file",
    ("event_loop", "prompt"): "write it into PROMPT.md, or give it to ralph run",
    ("event_loop", "max_consecutive_failures"): "the preset of the run says how many",
    ("event_loop", "starting_hat"): "give that hat the trigger that starting_event names",
    ("memories", "budget"): "a prompt holds as many memories as its preset allows",
    ("telegram", "checkin_interval_seconds"): "a running loop is told of every five minutes",
    ("RObot", "checkin_interval_seconds"): "a running loop is told of every five minutes",
    ("core", "scratchpad"): "agents keep their notes in .ralph/agent/scratchpad.md",
}
"""Where each stood (`*`: in every list item, or below every name), and what to know about it now."""


def drop_gone(value: Any, path: Path = ()) -> Any:
    """`value` without the keys that are gone."""
    if isinstance(value, dict):
        return {key: drop_gone(item, (*path, key)) for key, item in value.items() if not advice((*path, key))}
    if isinstance(value, list):
        return [drop_gone(item, (*path, place)) for place, item in enumerate(value)]
    return value


def advice(path: Path) -> str:
    """What became of the key at `path`; "" when it is not gone."""
    return next((said for known, said in GONE.items() if _matches(path, known)), "")


def gone_in(paths: Mapping[Path, int]) -> Iterator[tuple[int, str, str]]:
    """Line, dotted name and advice of each key in a file that is gone."""
    for path, line in paths.items():
        if said := advice(path):
            yield line, ".".join(map(str, path)), said


def _matches(path: Path, known: tuple[str, ...]) -> bool:
    return len(path) == len(known) and all(name in (ANY, part) for part, name in zip(path, known, strict=True))
