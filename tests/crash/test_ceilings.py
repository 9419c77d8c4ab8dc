"""Who watches the server for broken limits sees each kind of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.limit_checks import beyond
from tests.fakes.github.nouns import Dispatch, Request
from tests.helpers import commit, git
from tests.integration.hub import Hub, open_hub

BOT = "github-actions[bot]"


@pytest.fixture
def hub(tmp_path) -> Iterator[Hub]:
    with open_hub(tmp_path) as made:
        yield made


def missions(hub: Hub, count: int, labels: tuple[str, ...] = ("ralph:mission", "ralph:approved")) -> list[int]:
    bot = hub.fake.bot(BOT)
    return [bot.create_issue(f"Mission {n}", labels=labels) for n in range(count)]


def merged(hub: Hub, status: int) -> tuple[int, str]:
    """A pull that we merged, by a request that was answered so."""
    hub.fake.push("ralph/x", {"x.md": b"x\n"})
    bot = hub.fake.bot(BOT)
    number, sha = bot.open_pull("ralph/x", "main", "A fix"), hub.fake.branch("ralph/x")
    bot.merge(number)
    below = f"/pulls/{number}/merge"
    path = f"/repos/{hub.fake.repository}{below}"
    hub.fake.journal.append(Request("PUT", path, {}, body={"sha": sha}, status=status, below=below))
    return number, sha


def test_three_missions_are_fine_and_a_fourth_is_not_unless_a_person_brought_it_back(hub):
    first, *_ = missions(hub, 3)
    missions(hub, 2, labels=("ralph:mission",))
    assert beyond(hub) == [], "two questions wait, which takes no slot"
    missions(hub, 1)
    assert beyond(hub) == ["4 missions are under way: [1, 2, 3, 6]"]
    hub.person().close_issue(first)
    hub.person().reopen(first)
    assert beyond(hub) == []


@pytest.mark.parametrize("status", [200, 502, 0])
def test_a_merge_that_nobody_said_yes_to_is_seen_whatever_its_answer_was(hub, status):
    number, sha = merged(hub, status)
    assert beyond(hub) == [f"#{number} was merged at {sha[:8]}, to which nobody had said yes"]


def test_a_merge_that_was_refused_is_none(hub):
    merged(hub, 409)
    assert beyond(hub) == []


@pytest.mark.parametrize(
    ("lines", "by", "seen"), [(49, "", False), (50, "", True), (50, "mara", False), (50, BOT, True)]
)
def test_a_change_of_fifty_lines_is_seen_unless_a_person_said_yes_to_it(hub, lines, by, seen):
    git(hub.clone, "checkout", "--quiet", "-b", "ralph/x")
    commit(hub.clone, {"long.md": "line\n" * lines}, "Ralph <ralph@localhost>")
    git(hub.clone, "push", "--quiet", str(hub.fake.bare), "ralph/x")
    bot = hub.fake.bot(BOT)
    (issue,) = missions(hub, 1, labels=("ralph:mission",))
    bot.label(bot.open_pull("ralph/x", "main", "A fix", f"Part of #{issue}.\n"), ("ralph:auto-fix",))
    if by:
        (bot if by == BOT else hub.person(by)).label(issue, ("ralph:approved",))
    assert any(f"changes {lines} lines" in what for what in beyond(hub)) is seen


@pytest.mark.parametrize("payloads", [[{"generation": 1}] * 2, [{"generation": n} for n in range(5)]])
def test_a_second_wake_for_one_time_and_too_many_in_a_day_are_seen(hub, payloads):
    for payload in payloads:
        hub.fake.dispatches.append(Dispatch("ralph-loop-trigger", payload, hub.now, BOT))
    assert len(beyond(hub, wakes=4)) == 1
