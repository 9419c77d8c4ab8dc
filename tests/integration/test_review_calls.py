"""Waking the review on GitHub: each head that we proposed once, whoever dies, refuses or comes between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.errors import Lost
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.operations import control
from ralph_mission.mission.reviews.reviewer import CallReport, call_due_reviews
from tests.helpers import Result, cli_here
from tests.integration.at_review import proposed
from tests.integration.at_work import FILES, Place, on_hub, on_this_machine
from tests.integration.world import CALM

LISTENS = "on: {repository_dispatch: {types: [ralph-review-trigger]}}\njobs: {}\n"
WITH_REVIEW = {**FILES, ".github/workflows/ralph-review.yml": LISTENS}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with on_hub(tmp_path, files=WITH_REVIEW) as found:
        yield found


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """Where it makes no difference which forge it is: the quick one."""
    with on_this_machine(tmp_path) as found:
        yield found


class Line:
    """Whoever is asked for a review: `answers` come one after the other, the last one stays; `asked` are the pulls."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = answers or ("done",), list[int]()

    def __call__(self, pull: int) -> Receipt:
        self.asked.append(pull)
        status = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return Receipt("k", status, detail="" if status == "done" else "HTTP 403: no")  # type: ignore[arg-type]  # a fate


def wake(place: Place, line: Line) -> CallReport:
    return call_due_reviews(place.worker(None).opened, place.slept.append, line)


def count(place: Place) -> int:
    recalled = place.house().store.recall()
    assert recalled is not None
    return recalled.memory.header.dispatches


def test_every_open_pull_of_ours_is_called_for_once_and_counted(place: Place) -> None:
    first, second = proposed(place), proposed(place, "ralph/issue-2-ebb", {"src/ebb.py": "print('ebb')\n"})
    line = Line()
    assert wake(place, line).pulls == (first, second)
    assert wake(place, line) == CallReport(reason="no pull waits for its review to be woken")
    assert (line.asked, count(place)) == ([first, second], 2)


def test_a_push_makes_another_call(place: Place) -> None:
    number, line = proposed(place), Line()
    wake(place, line)
    place.person().push("ralph/issue-1-tide", {"src/tide.py": b"print('flood')\n"})
    assert wake(place, line).pulls == (number,)


def test_pulls_of_people_and_closed_ones_wake_nobody(place: Place) -> None:
    closed, mara, line = proposed(place), place.person(), Line()
    mara.close_pull(closed)
    mara.push("ralph/mine", {"x.txt": b"x\n"})
    mara.open_pull("ralph/mine", "main", "Mine")
    assert (wake(place, line).pulls, line.asked) == ((), [])


def test_a_call_stands_in_memory_before_it_is_made(here: Place) -> None:
    proposed(here)

    def dies(pull: int) -> Receipt:
        assert count(here) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_due_reviews(here.worker(None).opened, here.slept.append, dies)
    assert wake(here, Line()).pulls == ()


def test_a_refusal_is_told_and_tried_again_and_each_try_counts(here: Place) -> None:
    number, line = proposed(here), Line("failed", "done")
    told = wake(here, line)
    assert (told.pulls, told.refusal) == ((), "HTTP 403: no")
    assert wake(here, line).pulls == (number,)
    assert (wake(here, line).pulls, count(here)) == ((), 2)


def test_what_the_day_has_no_wake_for_waits_and_says_so(tmp_path: Path) -> None:
    with on_hub(tmp_path, CALM + "limits: {dispatches_per_day: 2}\n", WITH_REVIEW) as place:
        first = proposed(place)
        second = proposed(place, "ralph/issue-2-ebb", {"src/ebb.py": "print('ebb')\n"})
        assert wake(place, Line()) == CallReport((first,), "today's wakes are used up, 1 wait")
        assert wake(place, Line()) == CallReport(reason="today's wakes are used up, 1 wait")
        assert place.hub is not None
        place.hub.now += timedelta(days=2)
        assert wake(place, Line()).pulls == (), "the one wake of that day is owed to the loop"
        assert second > first


def test_who_is_paused_wakes_nobody(here: Place) -> None:
    proposed(here)
    control.pause(here.house().store)
    assert wake(here, Line()) == CallReport(reason="paused")


def test_somebody_who_writes_memory_first_is_let_through_and_the_call_is_decided_anew(here: Place) -> None:
    number, line, lost = proposed(here), Line(), [1]
    opened = here.worker(None).opened

    class Interrupted:
        def __init__(self, store: object) -> None:
            self.store = store

        def __getattr__(self, name: str) -> object:
            return getattr(self.store, name)

        def commit(self, *arguments: object) -> object:
            if lost:
                lost.pop()
                raise Lost("somebody was first", "nothing")
            return self.store.commit(*arguments)  # type: ignore[attr-defined]  # a store

    def interrupted() -> object:
        house = opened()
        return replace(house, store=Interrupted(house.store))  # type: ignore[arg-type]  # enough of one

    assert call_due_reviews(interrupted, here.slept.append, line).pulls == (number,)  # type: ignore[arg-type]  # a house
    assert line.asked == [number]


# --- `ralph wake --review` --------------------------------------------------------------


def woken(place: Place, **environment: str) -> Result:
    assert place.hub is not None
    return cli_here("wake", "--review", "--json", repo=place.hub.clone, env={**place.hub.environ, **environment})


def test_the_command_dispatches_with_the_workflows_own_token(place: Place) -> None:
    number = proposed(place)
    told = woken(place)
    assert (told.code, told.json["pulls"]) == (0, [number]), told.err
    assert place.hub is not None
    (sent,) = place.hub.fake.dispatches
    assert (sent.event_type, sent.client_payload) == ("ralph-review-trigger", {"pull_request": number})
    assert (woken(place).json["pulls"], len(place.hub.fake.dispatches)) == ([], 1)


def test_with_a_token_of_another_account_github_is_left_to_it(place: Place) -> None:
    proposed(place)
    assert place.hub is not None
    told = woken(place, GITHUB_TOKEN=place.hub.fake.token("ralph-app[bot]"))
    assert (told.code, told.json["pulls"]) == (0, [])
    assert "what ralph-app[bot] opens starts workflows" in told.json["reason"]
    assert place.hub.fake.dispatches == []


def test_a_token_that_may_not_dispatch_is_named_as_the_reason(place: Place) -> None:
    proposed(place)
    assert place.hub is not None
    place.hub.fake.fail("403", ("POST", "/dispatches"))
    told = woken(place)
    assert told.code == 1
    assert "the review was not woken" in told.json["error"]["what"] and "contents: write" in told.json["error"]["what"]


@pytest.mark.parametrize(
    ("settings", "files", "account", "sent"),
    [
        ("schedule: {review: never}\n", WITH_REVIEW, "github-actions[bot]", 0),
        ("schedule: {review: always}\n", WITH_REVIEW, "ralph-app[bot]", 1),
        ("", FILES, "github-actions[bot]", 0),
    ],
    ids=["never", "always", "nobody listens"],
)
def test_settings_and_workflows_decide_whether_a_dispatch_is_sent(
    tmp_path: Path, settings: str, files: dict[str, str | bytes], account: str, sent: int
) -> None:
    with on_hub(tmp_path, CALM + settings, files) as place:
        assert place.hub is not None
        place.hub.token = place.hub.fake.token(account)
        proposed(place)
        assert len(woken(place).json["pulls"]) == sent
        assert json.dumps([one.event_type for one in place.hub.fake.dispatches]).count("review") == sent
