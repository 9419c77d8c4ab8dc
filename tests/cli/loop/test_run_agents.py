"""Who plays a run: hats on programs of their own, and what is looked at before the first session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.loop_world import World, world

HATS = """
hats:
  builder: {triggers: [loop.start], publishes: [build.complete]}
  reviewer: {triggers: [build.complete], publishes: [review.verdict], write_allowed: [], KEY: codex}
"""
BUILDS = """change()
print('<event topic="build.complete">built</event>')
"""
CODEX = """#!/usr/bin/env python3
import json, sys
if "--version" in sys.argv: print("codex-cli 9"); sys.exit()
sys.stdin.read()
verdict = '<event topic="review.verdict">{"issues": []}</event>'
print(json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": verdict}}))
print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}))
"""


def shop(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch, program: str = CODEX) -> World:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    if program:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/codex").write_text(program)
        (tmp_path / "bin/codex").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return world(tmp_path, {"ralph.yml": HATS.replace("KEY", key)})


def test_a_reviewer_plays_on_another_program_than_the_builder(tmp_path, monkeypatch):
    here = shop(tmp_path, "agent", monkeypatch)
    done = here.run("build it", *here.agent(BUILDS))
    assert (done.code, done.json["ending"], here.calls) == (0, "complete", ["builder"]), done.err
    assert [(one["hat"], one["agent"]) for one in done.json["played"]] == [
        ("builder", "command"),
        ("reviewer", "codex"),
    ]


def test_the_backend_of_ralph_orchestrator_counts_where_the_command_line_names_no_agent(tmp_path, monkeypatch):
    here = shop(tmp_path, "backend", monkeypatch)
    (here.repo / "ralph.yml").write_text(
        (here.repo / "ralph.yml").read_text() + f"cli: {{backend: custom, command: {here.aside}/agent}}\n"
    )
    _, command = here.agent(BUILDS)
    (here.aside / "agent").write_text(f"#!/bin/sh\nexec {command}\n")
    (here.aside / "agent").chmod(0o755)
    done = here.run("build it")
    assert [one["agent"] for one in done.json["played"]] == ["command", "codex"], done.err


def test_the_backend_of_ralph_orchestrator_counts_beside_a_command_for_the_run(tmp_path, monkeypatch):
    here = shop(tmp_path, "backend", monkeypatch)
    done = here.run("build it", *here.agent(BUILDS))
    assert [one["agent"] for one in done.json["played"]] == ["command", "codex"], done.err


@pytest.mark.parametrize("backend", ["{type: custom, command: ./other}", "{command: ./other, args: [x]}"])
def test_a_hats_own_program_of_ralph_orchestrator_is_named_as_not_used(tmp_path, backend):
    settings = HATS.replace("KEY: codex", f"backend: {backend}") + "cli: {backend: custom, command: ./other}\n"
    here = world(tmp_path, {"ralph.yml": settings})
    done = here.run("build it", *here.agent(BUILDS), "--max-iterations", "1")
    assert "hats.reviewer.backend is a program of its own: the run's agent is used" in done.err


@pytest.mark.parametrize(
    ("key", "environment", "said"),
    [("agent", {"PATH": os.environ["PATH"]}, "a hat names codex: codex is not installed here"),
     ("agent", {"OPENAI_API_KEY": ""}, "a hat names codex: codex has no key here")],
)  # fmt: skip  # one table
def test_whoever_cannot_play_is_told_before_the_first_session(tmp_path, monkeypatch, key, environment, said):
    here = shop(tmp_path, key, monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = here.run("build it", *here.agent(BUILDS))
    assert (done.code, here.calls) == (1, [])
    assert said in done.json["error"]["what"], done.out


def test_an_agent_that_is_not_there_is_said_at_once_with_what_brings_it(tmp_path, monkeypatch):
    here = shop(tmp_path, "model", monkeypatch, "")
    done = here.run("build it", "--agent", "codex")
    assert (done.code, "codex is not installed here" in done.json["error"]["what"]) == (1, True)
    assert "npm install" in done.json["error"]["next"]


@pytest.mark.parametrize("command", ["no-such-prog", "no-such-prog --model 'x y'"])
def test_a_program_that_is_not_on_the_path_is_named_before_the_first_session(tmp_path, command):
    here = world(tmp_path)
    done = here.run("build it", "--command", command)
    assert (done.code, done.json["error"]["what"]) == (1, "there is no program no-such-prog on the PATH"), done.err
    assert "[1/" not in done.err


@pytest.mark.parametrize("command", ["exec true", "no-such-prog || true", "NAME=x true", "true"])
def test_what_a_shell_can_run_is_not_taken_for_a_program_that_is_missing(tmp_path, command):
    here = world(tmp_path)
    done = here.run("build it", "--command", command, "--max-iterations", "1")
    assert (done.code, done.json["ending"]) == (2, "iterations"), done.err
