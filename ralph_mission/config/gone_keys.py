"""Keys of `ralph.yml` that older versions had: a file that still has one loads, and is told what became of it.

What was a limit stays one: no file allows more than it did because a key of it went out of use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ralph_mission.safety.front_matter import Path as KeyPath

ANY = "*"
_WEIGHT = "thinker.weights says how much its kind of finding counts"
GONE: Mapping[tuple[str, ...], str] = {
    ("observers", "web", ANY, "severity"): _WEIGHT,
    ("hats", ANY, "context"): "name the files in the hat's instructions, or write a hat file",
    ("hats", ANY, "payload"): "say it in the hat's instructions, or write a hat file",
    ("event_loop", "prompt"): "write it into PROMPT.md, or give it to ralph run",
    ("event_loop", "starting_hat"): "give that hat the trigger that starting_event names",
    ("telegram", "checkin_interval_seconds"): "a running loop is told of every five minutes",
    ("RObot", "checkin_interval_seconds"): "a running loop is told of every five minutes",
    ("core", "scratchpad"): "agents keep their notes in .ralph/agent/scratchpad.md",
}
"""Where each stood (`*`: in every list item, or below every name), and what to know about it now."""
_FORGE = "its patience is forge.stale_after, 3 days for a review and 2 for an answer"
_THINKER = "money is bounded by limits.usd_per_cycle"
STRICTER: Mapping[tuple[str, ...], str] = {
    ("schedule", "review"): "the review is woken wherever GitHub does not start it by itself",
    ("observers", "patience"): "an observer has five minutes, or as long as its own commands may take",
    ("observers", "commands", ANY, "output_cap"): "four million bytes are read",
    ("observers", "commands", ANY, "severity"): "a result is as bad as the tool and its kind say",
    ("observers", "database", "address"): "the address stands in DATABASE_URL",
    ("observers", "database", "raw_sql"): "a watch may be SQL of its own",
    ("observers", "database", "watches", ANY, "outlier", "score"): "a value is far out at 3.5 deviations",
    ("observers", "database", "watches", ANY, "outlier", "least"): "a window needs 8 values to be judged",
    ("observers", "dependencies", "advisories"): "OSV is asked; OSV_API_URL names another place",
    ("observers", "dependencies", "every"): "answers are believed for 6 hours",
    ("observers", "dependencies", "most"): "300 packages are asked about in one look",
    ("observers", "dependencies", "seconds"): "one look may ask for a minute",
    ("observers", "forge"): _FORGE,
    ("thinker", "max_findings"): f"a model is asked about 20 findings, and {_THINKER}",
    ("thinker", "max_memory_chars"): f"it reads 4,000 characters of memory, and {_THINKER}",
    ("thinker", "max_tokens"): f"its answer may have 4,000 tokens, and {_THINKER}",
    ("thinker", "seconds"): f"it has 90 seconds, and {_THINKER}",
    ("thinker", "tries"): f"it is asked twice at most, and {_THINKER}",
    ("loop", "stuck"): "a session is warned after three without progress on one story",
    ("hands", "verify_timeout"): "a check may take half an hour",
    ("work", "max_runtime"): "a try may take four hours",
    ("hats", ANY, "max_tokens"): "a hat is told of no number of tokens",
    ("event_loop", "max_consecutive_failures"): "the preset of the run says how many",
    ("memories", "budget"): "a prompt holds as many memories as its preset allows",
}
"""Limits of older files, and what is usual now: one that is stricter is obeyed, any other counts as what is usual."""


def drop_gone(value: Any, path: KeyPath = ()) -> Any:
    """`value` without the keys that are gone."""
    if isinstance(value, dict):
        return {key: drop_gone(item, (*path, key)) for key, item in value.items() if not advice((*path, key))}
    if isinstance(value, list):
        return [drop_gone(item, (*path, place)) for place, item in enumerate(value)]
    return value


def advice(path: KeyPath) -> str:
    """What became of the key at `path`; "" when it is not gone."""
    return next((said for known, said in GONE.items() if _matches(path, known)), "")


def gone_in(paths: Mapping[KeyPath, int]) -> Iterator[tuple[int, str, str]]:
    """Line, dotted name and advice of each key in a file that is gone."""
    for path, line in paths.items():
        if said := advice(path):
            yield line, ".".join(map(str, path)), said


def stricter_in(paths: Mapping[KeyPath, int]) -> Iterator[tuple[int, str, str]]:
    """Line, dotted name and what is usual now of each older limit in a file."""
    for path, line in paths.items():
        if said := next((usual for known, usual in STRICTER.items() if _matches(path, known)), ""):
            yield line, ".".join(map(str, path)), said


def _matches(path: KeyPath, known: tuple[str, ...]) -> bool:
    return len(path) == len(known) and all(name in (ANY, part) for part, name in zip(path, known, strict=True))
