"""What a failing test tells to type is understood, and plays that case and no other."""

from __future__ import annotations

import shlex

import pytest

from tests.crash import __main__ as replaying
from tests.crash.cases import Case
from tests.crash.test_pairs import command

NAME = "an approved proposal is carried on"
HERE = ".venv/bin/python -m tests.crash"


def arguments(told: str) -> list[str]:
    """What stands after the program."""
    assert told.startswith(f"{HERE} ")
    return shlex.split(told.removeprefix(HERE))


def test_what_is_told_of_a_fault_is_understood() -> None:
    asked = replaying.parse_arguments(arguments(Case(NAME, "crash-after", 4).command))
    assert (asked.stage, asked.kind, asked.at) == (NAME, "crash-after", 4)


@pytest.mark.long  # takes five seconds
def test_what_is_told_of_a_pair_plays_it(capsys) -> None:
    assert replaying.main(arguments(command(NAME, {1: "death", 2: "502_applied"}))) == 0
    assert f"[replayed] {NAME}: 1 pairs" in capsys.readouterr().out


@pytest.mark.long  # takes five seconds
def test_a_pair_that_cannot_be_struck_goes_wrong(capsys) -> None:
    assert replaying.main(arguments(command(NAME, {1: "death", 900: "500"}))) == 1
    assert "it goes wrong" in capsys.readouterr().out
