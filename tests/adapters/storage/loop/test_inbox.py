"""A person's words to the next session, and signals to the running loop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import inbox
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import Guidance
from tests.helpers import NOON


def _guide(folder: Path) -> Guide:
    return Guide(folder, lambda: NOON)


def test_guidance_is_given_once_and_in_order(tmp_path: Path) -> None:
    first, second = _guide(tmp_path).say("Wrap the existing code"), _guide(tmp_path).say("Leave the\ntests alone ü")
    assert _guide(tmp_path).pending() == (first, second)
    _guide(tmp_path).acknowledge([first.id, first.id, "guidance-unknown"])
    assert _guide(tmp_path).pending() == (second,)
    assert _guide(tmp_path).all() == ((first, True), (second, False))


def test_what_was_acknowledged_stays_on_record(tmp_path: Path) -> None:
    said = _guide(tmp_path).say("Stop")
    before = _guide(tmp_path).path.read_bytes()
    _guide(tmp_path).acknowledge([said.id])
    assert _guide(tmp_path).path.read_bytes().startswith(before)


@pytest.mark.parametrize("text", ["", " \n", "x" * 4001])
def test_guidance_has_words_and_is_no_book(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="guidance"):
        _guide(tmp_path).say(text)
    assert not _guide(tmp_path).path.exists()


def test_lines_that_are_no_guidance_hide_none(tmp_path: Path) -> None:
    path = _guide(tmp_path).path
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "g1", "ts": "yesterday", "text": "Wrap"}\n{"id": 5}\nnonsense\n[]\n{"id": "g2", "te')
    said = _guide(tmp_path).say("Also this")
    assert [one.text for one in _guide(tmp_path).pending()] == ["Wrap", "Also this"]
    assert said == Guidance(said.id, "Also this", NOON)


@pytest.mark.parametrize("word", ["stop", "cancel", "restart"])
def test_a_signal_is_one_word_in_a_file(tmp_path: Path, word: str) -> None:
    assert inbox.read(tmp_path) == ""
    inbox.write(tmp_path, inbox.WORDS[word])
    assert inbox.read(tmp_path) == word
    inbox.clear(tmp_path)
    inbox.clear(tmp_path)
    assert inbox.read(tmp_path) == ""


@pytest.mark.parametrize("content", ["", "halt", "stop it", "x" * 100, "\xff"])
def test_anything_else_is_no_signal(tmp_path: Path, content: str) -> None:
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "signal").write_text(content, encoding="latin-1")
    assert inbox.read(tmp_path) == ""


def test_a_pipe_in_place_of_the_signal_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "loop").mkdir()
    os.mkfifo(tmp_path / "loop" / "signal")
    assert inbox.read(tmp_path) == ""
