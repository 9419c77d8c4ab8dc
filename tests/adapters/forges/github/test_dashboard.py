"""The dashboard as an issue: who ticked what by its history, races with our own edits, forged ones, old ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.adapters.forges.github.dashboard import CHECKED
from ralph_mission.mission.lifecycle.checkboxes import box, find_ticked
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.ledger import key_of
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.dashboard import ANCHOR, PAGE, PAUSE, RUN, DashboardContract, ticked


def number_of(world: GitHubWorld) -> int:
    return next(n for n, thread in world.fake.threads.items() if thread.title == "Ralph")


class TestGitHubDashboard(DashboardContract):
    @staticmethod
    def page(world: Any) -> str:
        return world.fake.issue(number_of(world)).body or ""

    @staticmethod
    def tick(world: Any, order: str, login: str = "mara") -> None:
        number = number_of(world)
        body = "\r\n".join((world.fake.issue(number).body or "").splitlines())  # as a browser sends it
        world.human(login).edit_issue(number, body=ticked(body, order))
        world.forge.forget_lists()


tick, page = TestGitHubDashboard.tick, TestGitHubDashboard.page


def test_each_tick_is_told_with_who_made_it(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    tick(world, RUN, "mara")
    tick(world, PAUSE, "jonas")
    assert [(one.box, one.actor and one.actor.login) for one in world.forge.ticks()] == [
        (PAUSE, "jonas"),
        (RUN, "mara"),
    ]


def test_a_box_that_was_cleared_again_is_no_tick(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    before = page(world)
    tick(world, RUN)
    tick(world, PAUSE)
    world.human("mara").edit_issue(1, body=ticked(before, PAUSE))
    world.forge.forget_lists()
    assert [one.box for one in world.forge.ticks()] == [PAUSE]


def crossed(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Show another page, with a tick after we had read the page and before our edit of it, and something behind it."""
    world.forge.show_dashboard(PAGE, ANCHOR)
    forge = world.connected()
    send = forge.api.send

    def late(method: str, path: str, body: object = None) -> object:
        if method == "PATCH" and not find_ticked(page(world)):
            monkeypatch.setattr(forge.api, "send", send)
            tick(world, RUN)
            told = send(method, path, body)
            then()
            return told
        return send(method, path, body)

    monkeypatch.setattr(forge.api, "send", late)
    forge.show_dashboard(f"{PAGE}\n\nMore.", ANCHOR)


def read_ticks(world: GitHubWorld) -> list[tuple[str, str | None]]:
    world.fake.faults.clear()
    return [(one.box, one.actor and one.actor.login) for one in world.connected().ticks()]


def test_a_tick_that_crosses_our_own_edit_is_kept(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    crossed(world, monkeypatch, lambda: None)
    assert find_ticked(page(world)) == {RUN} and "More." in page(world)
    assert read_ticks(world) == [(RUN, "mara")]


def test_a_tick_that_crossed_the_edit_of_a_run_that_died_is_told(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crossed(world, monkeypatch, dies)
    assert not find_ticked(page(world))
    assert read_ticks(world) == [(RUN, "mara")]


def test_a_tick_that_crossed_our_edit_while_the_history_was_away_is_told(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossed(world, monkeypatch, lambda: world.fake.fail("502_not_applied", ("POST", "/graphql"), times=99) and None)
    assert not find_ticked(page(world))
    assert read_ticks(world) == [(RUN, "mara")]


def test_a_tick_on_a_page_that_a_person_closed_counts(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    world.human("mara").close_issue(1)
    tick(world, PAUSE)
    assert read_ticks(world) == [(PAUSE, "mara")]


def test_the_history_of_a_page_that_nobody_touched_is_asked_for_once(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    world.forge.show_dashboard(f"{PAGE}\n\nMore.", ANCHOR)
    for fresh in (False, True):  # a fresh runner kept nothing
        forge = world.connected()
        if fresh:
            forge.api.read_cache.drop(CHECKED)
        world.fake.journal.clear()
        assert forge.ticks() == () and forge.ticks() == ()
        assert len([r for r in world.fake.journal if "userContentEdits" in str(r.body)]) == fresh


def test_nobody_can_tell_who_ticked_what_stands_after_a_gap(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    tick(world, PAUSE)
    world.fake.issue(1).versions[1:] = [None]
    assert [(one.box, one.actor) for one in world.connected().ticks()] == [(PAUSE, None)]


def test_a_dashboard_of_somebody_else_is_none(world: GitHubWorld) -> None:
    forged = f"{box('Pause', PAUSE)}\n\n<!-- ralph:anchor lineage=x serial=1 oid=c -->\n{marker(key_of('anchor'))}"
    eve = world.human("eve")
    eve.create_issue("Ralph", forged)
    eve.edit_issue(1, body=ticked(forged, PAUSE))
    assert world.forge.ticks() == ()
    assert [issue.number for issue in world.forge.issues()] == [1]


def test_an_issue_of_the_same_account_that_quotes_the_page_keeps_what_it_says(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    bot = world.human(world.forge.identity().login)
    quoting = bot.create_issue("Dead links", f"Report\n\n{page(world)}")
    forge = world.connected()
    forge.show_dashboard(f"{PAGE}\n\nMore.", replace(ANCHOR, serial=2))
    there = world.fake.issue(quoting)
    assert (there.state, there.title, (there.body or "")[:6]) == ("open", "Dead links", "Report")
    assert world.connected().anchor() == replace(ANCHOR, serial=2)
    assert [issue.number for issue in world.connected().issues()] == [quoting]


@pytest.mark.parametrize("title", ["Ralph", "Our bot"])
def test_a_page_that_a_person_changed_is_still_the_dashboard(world: GitHubWorld, title: str) -> None:
    opening = "Ralph looks after this.\n\n"
    world.forge.show_dashboard(opening + PAGE, ANCHOR)
    body = "All clear." if title == "Ralph" else page(world)
    world.human("mara").edit_issue(1, title=title, body=body)
    world.connected().show_dashboard(opening + PAGE, replace(ANCHOR, serial=2))
    assert [thread.title for thread in world.fake.threads.values()] == ["Ralph"]
    assert world.connected().anchor() == replace(ANCHOR, serial=2)


def test_a_page_that_says_what_it_said_is_not_written_again(world: GitHubWorld) -> None:
    world.forge.show_dashboard(PAGE, ANCHOR)
    tick(world, RUN)
    forge = world.connected()
    forge.show_dashboard(PAGE, replace(ANCHOR, serial=2), quiet=True)
    assert forge.requests.mutations == 0
    forge.show_dashboard(PAGE, replace(ANCHOR, serial=2))
    assert world.connected().anchor() == replace(ANCHOR, serial=2)  # something was done


def test_the_standing_issue_of_an_earlier_version_becomes_the_dashboard(world: GitHubWorld) -> None:
    ours = world.human(world.forge.identity().login)
    line = f"<!-- ralph:anchor lineage=lineage serial=1 oid={'c' * 40} -->"
    ours.create_issue("Ralph looks after this repository", f"Ralph reads this.\n\n{line}\n{marker(key_of('anchor'))}")
    world.connected().show_dashboard(PAGE, ANCHOR)
    assert len(world.fake.threads) == 1
    assert world.fake.issue(1).title == "Ralph" and page(world).startswith(PAGE)


@pytest.mark.parametrize("room", [True, False])
def test_the_dashboard_is_pinned_where_there_is_room(world: GitHubWorld, room: bool) -> None:
    for place in range(3):
        world.human("mara").create_issue(f"Pinned {place}")
        world.fake.issue(place + 1).pinned = not room
    world.forge.show_dashboard(PAGE, ANCHOR)
    assert world.fake.issue(number_of(world)).pinned is room
    assert world.connected().anchor() == ANCHOR
