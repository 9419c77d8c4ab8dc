"""What sessions did and tried stays on record, whatever a later session makes of the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import state
from ralph_mission.adapters.storage.loop.state import Records
from ralph_mission.loop.model.state import HatOutput

NAME = ".ralph/loop/runs/run-a/session-0001.json"


@pytest.fixture
def kept(tmp_path: Path) -> Records:
    made = Records(tmp_path)
    made.keep("run-a", HatOutput("builder", 1, calls=("Bash: git push --force",)))
    return made


def _link(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to("moved")


def _pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def _folder(place: Path) -> None:
    place.unlink()
    (place / "deep").mkdir(parents=True)


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (Path.unlink, "deleted"),
    "with_its_folder": (lambda place: shutil.rmtree(place.parents[1]), "deleted"),
    "emptied": (lambda place: place.write_text(""), "modified"),
    "of_the_same_length": (lambda place: place.write_bytes(place.read_bytes().replace(b"push", b"pull")), "modified"),
    "made_a_link": (_link, "modified"),
    "made_a_pipe": (_pipe, "modified"),
    "made_a_folder": (_folder, "modified"),
}


@pytest.mark.parametrize("what", HARM)
def test_a_record_is_put_back_and_told(kept: Records, tmp_path: Path, what: str) -> None:
    place, before = tmp_path / NAME, (tmp_path / NAME).read_bytes()
    harm, how = HARM[what]
    harm(place)
    assert [(change.path, change.how) for change in kept.restore()] == [(NAME, how)]
    assert place.read_bytes() == before and not place.is_symlink()
    assert kept.restore() == ()


def test_only_the_latest_are_held(kept: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "HELD", 1)
    kept.keep("run-a", HatOutput("builder", 2))
    (tmp_path / NAME).unlink()
    assert kept.restore() == ()
