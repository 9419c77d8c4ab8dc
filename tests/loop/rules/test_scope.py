"""A hat's globs are obeyed for any name a path may have."""

from __future__ import annotations

import pytest

from ralph_mission.loop.model.spec import LoopPreset, RunSpec
from ralph_mission.loop.model.state import Hat, PathChange
from ralph_mission.loop.rules.scope import STEERING, outside, why_outside


def hat(allowed=None, denied=()) -> Hat:
    return Hat("h", write_allowed=allowed, write_denied=denied)


@pytest.mark.parametrize(
    ("allowed", "denied", "path"),
    [
        (None, (), "anything/at all"),
        (("src/**",), (), "src/a/b.py"),
        (("src/",), (), "src/a.py"),
        (("./src/**",), (), "src/a.py"),
        (("*.py",), (), "deep/a.py"),
        ((".",), (), "a/b"),
        (("src/**",), (), "src/a\nb.py"),
        (("src/**",), (), "src/na\u00efve.py"),
        (("src/**",), (), "src/\udcff"),
        (("**", "!docs/**"), (), "src/x"),
        (("src/**",), ("src/secret/**",), "src/a.py"),
        (("src/a b.py",), (), "src/a b.py"),
    ],
)
def test_inside(allowed, denied, path):
    assert why_outside(hat(allowed, denied), path) == ""


@pytest.mark.parametrize(
    ("allowed", "denied", "path"),
    [
        ((), (), "a.py"),
        (("src/**",), (), "srcs/a.py"),
        (("src/**",), (), "src"),
        (("src/**",), (), "SRC/a.py"),
        (("src/",), (), "vendor/src/a.py"),
        (("src/**",), (), "vendor/src/a.py"),
        (("*.py",), (), "a.py\nx"),
        (None, ("docs/**",), "docs/a\nb.md"),
        (None, ("docs/**",), "docs/a.md\n"),
        (("**",), ("*.lock",), "deep/x.lock"),
        (("src/**",), ("src/secret/**",), "src/secret/x"),
        (("**", "!docs/**"), (), "docs/x"),
        (("src/a.py",), (), "src/a.py\n"),
    ],
)
def test_outside(allowed, denied, path):
    assert why_outside(hat(allowed, denied), path).startswith("h may")


@pytest.mark.parametrize(
    "path",
    [
        ".ralph/agent/tasks.jsonl",
        ".omc/prd.json",
        "prd.json",
        "progress.txt",
        ".last-branch",
        "scripts/ralph/prd.json",
        ".prd.json.4711.123456789",
        "scripts/ralph/..last-branch.1.2",
    ],
)
def test_files_that_the_engine_keeps_are_judged_elsewhere(path):
    assert why_outside(hat(()), path) == ""


@pytest.mark.parametrize(
    "path",
    [
        ".ralph",
        ".omc",
        "src/prd.json",
        "docs/progress.txt",
        "x/.ralph/y",
        ".ralphs/x",
        "src/.prd.json.1.2",
        ".prd.json.1",
        ".prd.json.1.2.py",
        ".setup.cfg.1.2",
    ],
)
def test_what_only_looks_like_one_is_not(path):
    assert why_outside(hat(()), path) == "h may write nothing only"


def test_each_change_outside_comes_with_the_reason():
    changes = (PathChange("src/a.py", "modified"), PathChange("docs/x", "created"))
    assert outside(hat(("src/**",)), changes) == (PathChange("docs/x", "created", "h may write src/** only"),)


def test_whoever_may_write_everywhere_may_still_not_configure_agents():
    worn = RunSpec("x", LoopPreset("issue"), no_agent_settings=True).bound(hat())
    assert why_outside(worn, ".claude/settings.json") == why_outside(worn, "src/.MCP.json") == STEERING
    assert not why_outside(worn, "AGENTS.md") and not why_outside(hat(), ".claude/settings.json")
