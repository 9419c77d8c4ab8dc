"""`ralph guidance`: a person steers from wherever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.inbox import Guide
from tests.helpers import cli_here, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.mark.parametrize("words", [("Wrap the existing code",), ("Wrap", "the", "existing", "code")])
def test_words_wait_for_the_next_session(repo: Path, words: tuple[str, ...]) -> None:
    result = cli_here("guidance", *words, "--json", repo=repo)
    assert result.code == 0
    (said,) = Guide(repo / ".ralph").pending()
    assert (said.id, said.text) == (result.json["id"], "Wrap the existing code")


def test_the_list_tells_what_was_given(repo: Path) -> None:
    assert cli_here("guidance", "--list", repo=repo).out == "No guidance.\n"
    cli_here("guidance", "First", repo=repo)
    cli_here("guidance", "Second", repo=repo)
    guide = Guide(repo / ".ralph")
    guide.acknowledge([guide.pending()[0].id])
    listed = cli_here("guidance", "--list", "--json", repo=repo).json["guidance"]
    assert [(one["text"], one["given"]) for one in listed] == [("First", True), ("Second", False)]
    first, second = cli_here("guidance", "--list", repo=repo).out.splitlines()
    assert "given" in first
    assert "waiting" in second


@pytest.mark.parametrize("arguments", [(), ("words", "--list"), ("--nope",)])
def test_wrong_usage_ends_with_64(repo: Path, arguments: tuple[str, ...]) -> None:
    result = cli_here("guidance", *arguments, repo=repo)
    assert (result.code, result.out) == (64, "")
    assert result.err.startswith("error: ")


def test_no_words_are_no_guidance(repo: Path) -> None:
    assert cli_here("guidance", "  ", repo=repo).code == 1
    assert Guide(repo / ".ralph").all() == ()
