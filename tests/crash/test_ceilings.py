"""Who watches the server for broken limits sees each kind of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.limit_checks import beyond
from tests.fakes.github.nouns import Dispatch, Request
from tests.helpers import commit, git
from tests.integration.hub import Hub, hub

BOT = "github-actions[bot]"


@pytest.fixture
def harbour(tmp_path) -> Iterator[Hub]:
    with hub(tmp_path) as made:
        yield made


def missions(harbour: Hub, count: int, labels: tuple[str, ...] = ("ralph:mission", "ralph:approved")) -> list[int]:
    bot = harbour.fake.bot(BOT)
    return [bot.create_issue(f"Mission {n}", labels=labels) for n in range(count)]


def merged(harbour: Hub, status: int) -> tuple[int, str]:
    """A pull that we merged, by a request that was answered so."""
    harbour.fake.push("ralph/x", {"x.md": b"x\n"})
    bot = harbour.fake.bot(BOT)
    number, sha = bot.open_pull("ralph/x", "main", "A fix"), harbour.fake.branch("ralph/x")
    bot.merge(number)
    below = f"/pulls/{number}/merge"
    path = f"/repos/{harbour.fake.repository}{below}"
    harbour.fake.journal.append(Request("PUT", path, {}, body={"sha": sha}, status=status, below=below))
    return number, sha


def test_three_missions_are_fine_and_a_fourth_is_not_unless_a_person_brought_it_back(harbour):
    first, *_ = missions(harbour, 3)
    missions(harbour, 2, labels=("ralph:mission",))
    assert beyond(harbour) == [], "two questions wait, which takes no slot"
    missions(harbour, 1)
    assert beyond(harbour) == ["4 missions are under way: [1, 2, 3, 6]"]
    harbour.person().close_issue(first)
    harbour.person().reopen(first)
    assert beyond(harbour) == []


@pytest.mark.parametrize("status", [200, 502, 0])
def test_a_merge_that_nobody_said_yes_to_is_seen_whatever_its_answer_was(harbour, status):
    number, sha = merged(harbour, status)
    assert beyond(harbour) == [f"#{number} was merged at {sha[:8]}, to which nobody had said yes"]


def test_a_merge_that_was_refused_is_none(harbour):
    merged(harbour, 409)
    assert beyond(harbour) == []


@pytest.mark.parametrize(
    ("lines", "by", "seen"), [(49, "", False), (50, "", True), (50, "mara", False), (50, BOT, True)]
)
def test_a_change_of_fifty_lines_is_seen_unless_a_person_said_yes_to_it(harbour, lines, by, seen):
    git(harbour.clone, "checkout", "--quiet", "-b", "ralph/x")
    commit(harbour.clone, {"long.md": "line\n" * lines}, "Ralph <ralph@localhost>")
    git(harbour.clone, "push", "--quiet", str(harbour.fake.bare), "ralph/x")
    bot = harbour.fake.bot(BOT)
    (issue,) = missions(harbour, 1, labels=("ralph:mission",))
    bot.label(bot.open_pull("ralph/x", "main", "A fix", f"Part of #{issue}.\n"), ("ralph:auto-fix",))
    if by:
        (bot if by == BOT else harbour.person(by)).label(issue, ("ralph:approved",))
    assert any(f"changes {lines} lines" in what for what in beyond(harbour)) is seen


@pytest.mark.parametrize("payloads", [[{"generation": 1}] * 2, [{"generation": n} for n in range(5)]])
def test_a_second_wake_for_one_time_and_too_many_in_a_day_are_seen(harbour, payloads):
    for payload in payloads:
        harbour.fake.dispatches.append(Dispatch("ralph-loop-trigger", payload, harbour.now, BOT))
    assert len(beyond(harbour, wakes=4)) == 1
