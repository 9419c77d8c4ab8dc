"""The local forge keeps the contract of every forge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.adapters.forges.commits import changes
from ralph_mission.adapters.forges.local import RECENT, LocalForge, documents
from ralph_mission.adapters.git.git import Git
from tests.adapters.forges.conftest import LocalWorld
from tests.contract.forge_contract import ForgeContract
from tests.contract.forge_world import merge_pull, new_file, open_issue, pulled


class TestLocalForge(ForgeContract):
    """The fixture `world` of this folder is all that is needed."""


# --- What was closed long ago costs the local forge little: no process, and no reading of more than a line of it. ---

LATER = datetime.now(UTC) + 2 * RECENT


def years_later(world: LocalWorld) -> LocalForge:
    """The forge of a new process, when all that there is was closed long ago."""
    return LocalForge(world.git, now=lambda: LATER)


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> Callable[[], int]:
    """How often something was called from here on."""
    calls, real = [0], getattr(owner, name)

    def counting(*arguments: object, **options: object) -> object:
        calls[0] += 1
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, counting)
    return lambda: calls[0]


def merged(world: LocalWorld, number: int) -> None:
    opened = pulled(world, new_file(f"{number}.txt", f"{number}\n"), branch=f"ralph/fix-{number}")
    assert world.forge.perform(merge_pull(opened)).status == "done"


def test_pulls_merged_long_ago_start_no_git_process_each(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    for number in range(2):
        merged(world, number)
        changes.cache_clear()
        with monkeypatch.context() as patched:
            processes = counted(patched, Git, "run")
            assert len(years_later(world).pulls("all")) == number + 1
            started.append(processes())
    assert started[0] == started[1]


def test_a_pull_merged_lately_still_tells_what_it_changed(world: LocalWorld) -> None:
    merged(world, 1)
    assert [bool(pull.patch_ids) for pull in world.forge.pulls("all")] == [True]
    assert [bool(pull.patch_ids) for pull in years_later(world).pulls("all")] == [False]


def closed_issues(world: LocalWorld, count: int) -> None:
    for number in range(count):
        mara = world.human("mara")
        mara.close_issue(mara.create_issue(f"Issue {number}"))


def test_the_pulse_reads_no_issue_that_was_closed_before(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    before = datetime.now(UTC)
    closed_issues(world, 3)
    open_one = world.human("mara").create_issue("Still open")
    told = LocalForge(world.git).pulse(before - timedelta(seconds=1))
    assert (told.opened, told.closed) == (4, 3)
    parsed = counted(monkeypatch, documents, "parse")
    told = years_later(world).pulse(LATER - RECENT)
    assert (told.opened, told.closed, parsed()) == (0, 0, 1), open_one


def test_looking_for_an_issue_of_ours_reads_those_alone_that_hold_its_key(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_issues(world, 3)
    assert world.forge.perform(open_issue()).status == "done"
    parsed = counted(monkeypatch, documents, "parse")
    receipt = years_later(world).find(open_issue())
    assert receipt is not None and (receipt.status, parsed()) == ("adopted", 1)


CLOSED = "---\nstate: closed\nclosed_at: 2026-05-04T12:00:00.000Z\n---\n"
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "surely"),
    [
        (CLOSED, True),
        (CLOSED.replace("closed\n", "merged\n", 1), True),
        (CLOSED.replace("12:00:00.000Z", "12:00:00.001Z"), False),
        (CLOSED.replace("closed\n", "open\n", 1), False),
        (CLOSED.replace("closed_at", "created_at"), False),
        ("---\nstate: closed\n---\nclosed_at: 2026-05-04T12:00:00.000Z\n", False),
        (CLOSED.replace("2026-05-04T12:00:00.000Z", "4 May 2026"), False),  # as a person may write it: it is read
        (CLOSED.replace("05-04", "05-32"), False),  # no day at all: reading all of it says where that stands
    ],
)
def test_only_what_certainly_was_closed_by_then_is_needless(text: str, surely: bool) -> None:
    assert documents.surely_closed_by(text, NOON) is surely
