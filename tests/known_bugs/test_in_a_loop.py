"""What other loops took for done, put away wrongly or never counted, each as a loop that does not.

Every docstring names the fault first. The whole family of faults, with all tests that hold them off, is
`tests/loop/test_family.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.loop.model.state import AgentTurn
from tests.adapters.storage.loop.test_archive import begin, text
from tests.helpers import cli_here as ralph
from tests.helpers import make_repo
from tests.loop.making import played, spec, stories, world

QUOTED = "When all stories pass I am to end with `COMPLETE`. None passes yet, so I do not say COMPLETE.\n> COMPLETE\n"


@pytest.mark.parametrize("words", [QUOTED, "COMPLETE"])
def test_a_promise_that_is_quoted_completes_nothing(words: str) -> None:
    """The agent says what it was told to say once all is done, and the run ends as completed with 0 of 4 stories.

    The script of snarktank/ralph looks for the words anywhere in the output.
    """
    made = world(AgentTurn(words), forever=True, prd=stories(*[False] * 4))
    account = played(spec("prd", iterations=3), made)
    assert (account.ending.reason, account.ending.code, len(account.outputs)) == ("iterations", 2, 3)


def test_nor_does_one_that_is_quoted_where_there_are_no_stories(tmp_path: Path) -> None:
    """The same, in a real process and without a list: an agent that echoes its prompt, promise and all."""
    repo = make_repo(tmp_path / "repo")
    done = ralph("run", "build it", "--command", "cat", "--max-iterations", "2", repo=repo)
    assert done.code == 2, done.err


def test_the_archive_is_of_the_run_that_ended(tmp_path: Path) -> None:
    """The list is copied away once the new branch's has taken its place: the new one is archived, the old one lost.

    snarktank/ralph does so.
    """
    begin(tmp_path, "ralph/one")
    put = begin(tmp_path, "ralph/two")
    assert put is not None
    assert (put / "prd.json").read_text() == text("ralph/one")
    assert "Did ralph/one" in (put / "progress.txt").read_text()
    assert (tmp_path / "prd.json").read_text() == text("ralph/two")


def test_who_is_stuck_is_counted() -> None:
    """What the count compares with is never written, so it stays at 1, and nobody is ever stuck.

    ralph-fresh of oh-my-claudecode writes it in its tests alone.
    """
    made = world(AgentTurn("Still at it."), forever=True, prd=stories(False))
    account = played(spec("prd", iterations=100, idle=100), made)
    assert [state.stale for state, output in made.store.kept if output is not None] == [1, 2, 3, 4, 5, 6]
    assert "another way" in made.agent.prompts[3]
    assert (account.ending.reason, account.ending.code, account.state.skipped) == ("stuck", 1, {"US-1"})
