"""What a model took is kept beside the repository, by no link, and what somebody planted there is not believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.mission.memory import Header
from ralph_mission.thinkers import kept

HERE = replace(Header(), lineage="kelp", cycle=3)
PAID = kept.KeptReply(lineage="kelp", cycle=3, paid="3:think", usd=0.25, cursor="c")


def test_what_was_paid_is_known_after_a_death(tmp_path: Path) -> None:
    kept.save(tmp_path / ".ralph", PAID)
    assert kept.load(tmp_path / ".ralph", HERE, ()) == PAID
    assert kept.load(tmp_path / ".ralph", HERE, ("3:think",)).usd == 0


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/cache", ".ralph/cache/thinker.json"])
def test_nothing_is_read_or_written_behind_a_link(tmp_path: Path, link: str) -> None:
    folder = tmp_path / ".ralph" / "cache"
    kept.save(folder, PAID)
    (tmp_path / link).rename(tmp_path / "theirs")
    (tmp_path / link).symlink_to(tmp_path / "theirs")
    assert kept.load(folder, HERE, ()).usd == 0
    before = {path: path.stat().st_mtime_ns for path in [*tmp_path.glob("theirs"), *tmp_path.glob("theirs/**/*")]}
    kept.save(folder, PAID.model_copy(update={"usd": 1.0}))
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(
    "planted", ["{", pytest.param("[" * 200_000, id="nested"), '{"usd": NaN}', "[]"],
)  # fmt: skip  # one list
def test_what_cannot_be_read_is_as_good_as_absent(tmp_path: Path, planted: str) -> None:
    (tmp_path / kept.FILE).write_text(planted)
    assert kept.load(tmp_path, HERE, ()) == kept.KeptReply(lineage="kelp", cycle=3)
