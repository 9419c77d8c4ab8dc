"""A marker that names an issue of this repository, and the issue is closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.observers import code
from ralph_mission.adapters.observers.markers import Hit
from ralph_mission.adapters.observers.overdue import ISSUES_READ, named_issues
from ralph_mission.mission.model.mission import Signal
from tests.adapters.observers.forge_world import World
from tests.helpers import NOON, commit


@pytest.fixture(params=[True, False], ids=["kept", "not kept"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "cache" if request.param else None


def overdue(world: World, cache: Path | None = None, cursor: str = "") -> list[Signal]:
    observer = code.build(code.CodeSettings(), world.place.git, cache, world.forge)
    seen = observer.observe(world.place.context(cursor, now=world.now))
    return [signal for signal in seen.signals if signal.kind == "overdue-marker"]


def write(world: World, number: int, days: float = 1) -> str:
    text = f"def wait():\n    # TODO: drop this once #{number} is solved\n    sleep(9)\n"
    return commit(world.place.path, {"a.py": text}, date=NOON + timedelta(days=days))


def test_a_marker_whose_issue_is_closed_is_told_with_both(world: World, cache: Path | None) -> None:
    number = world.mara.create_issue("The queue is slow")
    head = write(world, number)
    assert overdue(world, cache) == []
    world.later(5)
    world.mara.close_issue(number)
    (signal,) = overdue(world, cache, cursor=head)  # nothing was committed since
    line, issue = signal.quotes
    assert (line.path, line.line, issue.reference, issue.text) == ("a.py", 2, number, "The queue is slow")
    assert signal.detail.startswith(f"Issue #{number} was closed as completed on 2")


def test_an_issue_that_was_closed_is_asked_for_once(world: World, tmp_path: Path) -> None:
    number = world.mara.create_issue("The queue is slow")
    write(world, number)
    world.later(5)
    world.mara.close_issue(number)
    first = overdue(world, tmp_path / "cache")
    read = list(world.forge.read)
    assert overdue(world, tmp_path / "cache") == first
    assert (read, world.forge.read) == ([number], [number])


@pytest.mark.parametrize(("days", "told"), [(1, 0), (3, 1), (6, 0)], ids=["before", "while it was open", "after"])
def test_a_marker_means_an_issue_that_was_open_when_it_was_written(world: World, days: int, told: int) -> None:
    world.later(2)
    number = world.mara.create_issue("The queue is slow")
    world.later(2)
    world.mara.close_issue(number)
    world.later(5)
    write(world, number, days)
    assert len(overdue(world)) == told


def test_an_issue_that_is_opened_again_is_waited_for_again(world: World, tmp_path: Path) -> None:
    number = world.mara.create_issue("The queue is slow")
    write(world, number)
    world.later(5)
    world.mara.close_issue(number)
    assert len(overdue(world, tmp_path / "cache")) == 1
    store = world.forge.store
    store.write(replace(store.require("issue", number), state="open", closed_at=None))
    assert overdue(world, tmp_path / "cache") == []


def test_a_pull_and_a_number_that_is_nobody_s_are_nothing(world: World) -> None:
    number = world.pull()
    write(world, number)
    world.later(5)
    world.mara.close_pull(number)
    assert overdue(world) == []
    write(world, 99)
    assert overdue(world) == []


def test_few_issues_are_read_in_one_look(world: World, tmp_path: Path) -> None:
    numbers = [world.mara.create_issue(f"Fault {n}") for n in range(ISSUES_READ + 2)]
    lines = "".join(f"# TODO: wait for #{number}\nx = {number}\n" for number in numbers)
    commit(world.place.path, {"a.py": lines}, date=NOON + timedelta(days=1))
    world.later(5)
    for number in numbers:
        world.mara.close_issue(number)
    assert len(overdue(world, tmp_path / "cache")) == ISSUES_READ
    assert len(overdue(world, tmp_path / "cache")) == ISSUES_READ + 2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("# TODO: remove once #12 is fixed", 12),
        ("// FIXME(mara): see #12", 12),
        ("# TODO https://github.com/acme/shop/issues/12", 12),
        ("// HACK remove ending hardline, original PR: #12", 0),
        ("# TODO: tidy what was introduced in #12", 0),
        ("# TODO: as with acme/other#12", 0),
        ("# TODO: colour #12ab34 is wrong", 0),
        ("# TODO: &#12; is no number", 0),
    ],
)
def test_which_numbers_a_marker_waits_for(text: str, number: int) -> None:
    word = next(word for word in ("TODO", "FIXME", "HACK") if word in text)
    found = list(named_issues([Hit("todo", "a.py", 1, text, word)]))
    assert [one.number for one in found] == ([number] if number else [])
