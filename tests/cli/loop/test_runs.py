"""A run that ended is resumed as it was begun, with more of the limit that it reached."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import live
from ralph_mission.cli.loop.runs import resume_command


def test_a_run_is_resumed_by_the_words_that_began_it() -> None:
    words = ["run", "make ralph status faster", "--command", "tool --max-iterations 5 --continue", "--detach"]
    record = live.LiveRecord("run-1", "run", shlex.join([*words, "--max-iterations=3", "--repo", "other"]))
    there = Path("other")
    assert shlex.split(resume_command(record, there))[1:] == [
        *words[:4],
        "--max-iterations=3",
        "--continue",
        "--repo",
        "other",
    ]
    limited = replace(record, doing="iterations: 3 sessions", sessions=3)
    assert shlex.split(resume_command(limited, there))[1:] == [
        *words[:4], "--continue", "--max-iterations", "6", "--repo", "other"
    ]  # fmt: skip  # one command
    late, spent, unpriced = (
        shlex.split(resume_command(replace(record, doing=doing), there))
        for doing in ("runtime: 3605 s", "cost: $5.10 of $5.00", "cost: the cost is unknown: 1 of 1 sessions")
    )
    assert late[-4:-2] == ["--max-runtime", "7210"] and spent[-4:-2] == ["--max-cost", "10.20"]
    assert "--max-cost" not in unpriced


@pytest.mark.parametrize(
    ("doing", "more"),
    [
        ("cost: $0.00 of $0.00", "--max-cost 0.02"),
        ("runtime: 0 s", "--max-runtime 2"),
        ("runtime: the agent's own words", ""),
        ("runtime", ""),
        ("cost: $$", ""),
    ],
)
def test_a_run_is_resumed_with_a_limit_that_allows_more(doing: str, more: str) -> None:
    record = live.LiveRecord("run-1", "run", "run it", doing=doing)
    assert resume_command(record, Path()).partition("--continue")[2].removesuffix(" --repo .").strip() == more
