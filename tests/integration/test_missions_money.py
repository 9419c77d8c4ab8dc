"""Money that was set aside for an agent is given back by a price that was told, however the agent's work ends."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.fixers.coder import AgentCoder
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.app import clone_runs, reviews
from ralph_mission.app import issues as work_root
from ralph_mission.app.issues import LoopHands
from ralph_mission.errors import UserError
from tests.integration.at_review import ONE, proposed, read, reader
from tests.integration.at_work import SCRIPT, Place, on_this_machine
from tests.integration.coding import Yard, yard
from tests.integration.dying import dying
from tests.integration.test_after_a_death import NOW
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

SET_ASIDE = 2.0  # limits.usd_per_cycle
PRICE = 0.25
CLIENT = """\
import json, os, pathlib, signal, sys, time
sys.stdin.read()
{deed}
said = {{"type": "result", "subtype": "success", "is_error": False, "result": {words!r}, "total_cost_usd": {price}}}
print(json.dumps(said))
"""
MAKE = "pathlib.Path('src/table.py').write_text('TABLE = 1\\n')"
KILLED = f"{MAKE}; os.kill(os.getpid(), signal.SIGTERM)"
CRASHED = "os._exit(3)"
UNREADABLE = "print('{half a result'); os._exit(0)"
FULL = OSError(28, "No space left on device", "state.json")


def claude(shop_aside: Path, deed: str, words: str = "Done.\n\nLOOP_COMPLETE") -> None:
    """A program that stands for Claude Code: whatever it does, its price is the last that it tells."""
    (shop_aside / "client.py").write_text(CLIENT.format(deed=deed, words=words, price=PRICE))


def settings(aside: Path) -> str:
    claude(aside, MAKE)
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(aside / 'client.py'))}"
    agent = f"hands:\n  fixers: []\n  agent: {{kind: claude, sandbox: env, run: {program!r}}}\n"
    return f"{agent}observers:\n  code: {{markers: {{}}}}\nwork: {{max_iterations: 1}}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Yard]:
    """A mission that an agent begins in the next cycle."""
    with yard(tmp_path, "local", config=settings) as made:
        made.wanted()
        made.cycle(after=NOW)
        yield made


def spent(shop: Yard) -> float:
    return float(shop.house().store.recall().memory.header.spend_usd)


def test_a_price_that_is_told_is_all_that_is_spent(shop):
    report, _ = shop.cycle(after=NOW)
    assert (spent(shop), statuses(report)) == (PRICE, ["IN_REVIEW"])


@pytest.mark.parametrize("deed", [KILLED, CRASHED, UNREADABLE], ids=["SIGTERM", "crash", "unreadable result"])
def test_a_client_that_ends_without_its_price_may_have_cost_all_that_was_set_aside(shop, deed):
    claude(shop.aside, deed)
    report, _ = shop.cycle(after=NOW)
    assert spent(shop) == SET_ASIDE == report.usage.cost_usd
    claude(shop.aside, MAKE)
    shop.cycle(after=NOW)
    assert spent(shop) == SET_ASIDE + PRICE


def test_a_session_that_takes_too_long_may_have_cost_all_of_it(shop):
    claude(shop.aside, "time.sleep(60)")
    limited = clone_runs.build_run

    def short(*arguments):
        made = limited(*arguments)
        limits = replace(made.order.limits, session=1.0)
        return replace(made, order=replace(made.order, preset=replace(made.order.preset, limits=limits)))

    with mock.patch.object(clone_runs, "build_run", short):
        report, _ = shop.cycle(after=NOW)
    assert (spent(shop), statuses(report)) == (SET_ASIDE, ["EXECUTING"])
    assert "unexpectedly" not in "".join(shop.said(1))


def after_a_session(error: Exception) -> Callable[..., object]:
    """The desk's record of a session that cannot be kept: the session itself is over, or under way."""
    keep = FileRunStore.keep

    def kept(self, state, output, *more):
        if output is not None:
            raise error
        return keep(self, state, output, *more)

    return kept


@pytest.mark.parametrize("error", [FULL, UserError("it is full", "make room"), ValueError("odd")])
def test_a_loop_that_breaks_off_after_a_session_has_cost_what_that_told(shop, error):
    with mock.patch.object(FileRunStore, "keep", after_a_session(error)):
        report, _ = shop.cycle(after=NOW)
    assert spent(shop) == PRICE and statuses(report) == ["EXECUTING"]


@pytest.mark.parametrize("error", [FULL, UserError("no such agent", "name one")])
def test_what_goes_wrong_before_any_session_costs_nothing(shop, error):
    with mock.patch.object(clone_runs, "build_run", side_effect=error):
        shop.cycle(after=NOW)
    assert spent(shop) == 0.0


@pytest.mark.parametrize("error", [RuntimeError("odd"), MemoryError()])
def test_hands_that_break_may_have_cost_all_of_it(shop, error):
    with mock.patch.object(AgentCoder, "work", side_effect=error):
        report, _ = shop.cycle(after=NOW)
    assert spent(shop) == SET_ASIDE and statuses(report) == ["EXECUTING"]


def test_an_interrupt_and_a_death_leave_it_spent_and_the_next_cycle_counts_it(shop):
    with mock.patch.object(AgentCoder, "work", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        shop.cycle(after=NOW)
    assert spent(shop) == SET_ASIDE
    with dying(1, ((AgentCoder, "work"),)):
        shop.cycle(after=NOW)
    assert spent(shop) == 2 * SET_ASIDE
    report, _ = shop.cycle(after=NOW)
    assert (spent(shop), report.usage.cost_usd) == (2 * SET_ASIDE + PRICE, PRICE)


# --- ralph work, ralph review ---------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with on_this_machine(tmp_path) as made:
        yield made


def hands(place: Place, tmp_path: Path) -> LoopHands:
    (tmp_path / "script.toml").write_text(SCRIPT)
    return place.real(tmp_path / "script.toml")


@pytest.mark.parametrize("error", [FULL, UserError("it is full", "make room")])
def test_work_on_an_issue_that_breaks_off_has_cost_what_was_told(place, tmp_path, error):
    place.ready()
    with mock.patch.object(FileRunStore, "keep", after_a_session(error)):
        report = place.work(hands(place, tmp_path))
    assert report.code == 1 and place.spent() == PRICE


@pytest.mark.parametrize(
    ("where", "name", "error"), [(clone_runs, "run", RuntimeError("odd")), (work_root, "_change", MemoryError())]
)
def test_work_on_an_issue_that_fails_unexpectedly_may_have_cost_all_of_it(place, tmp_path, where, name, error):
    place.ready()
    with mock.patch.object(where, name, side_effect=error):
        assert place.work(hands(place, tmp_path)).code == 1
    assert place.spent() == 5.0


@pytest.mark.parametrize("error", [FULL, UserError("no room", "make some")])
def test_work_whose_clone_cannot_be_made_costs_nothing(place, tmp_path, error):
    place.ready()
    with mock.patch.object(work_root, "parts", side_effect=error):
        assert place.work(hands(place, tmp_path)).code == 1
    assert place.spent() == 0.0


def test_work_that_is_interrupted_in_a_session_may_have_cost_all_of_it(place, tmp_path):
    place.ready()
    with mock.patch("ralph_mission.adapters.agents.scripted.ScriptedAgent.play", side_effect=KeyboardInterrupt):
        report = place.work(hands(place, tmp_path))
    assert report.code == 130 and place.spent() == 5.0


def reviewed(place: Place, tmp_path: Path, **steps: object) -> object:
    number, script = proposed(place), tmp_path / "review.json"
    step = {"text": ONE, "usage": {"cost_usd": PRICE}} | steps
    script.write_text(json.dumps({"hats": {"reviewer": [step]}}))
    return read(place, number, reader(place, agent="scripted", command=str(script)))


def test_a_review_whose_clone_cannot_be_removed_costs_what_was_told(place, tmp_path):
    ask = reviews.reviewing.ask

    def broken(*arguments):
        ask(*arguments)
        raise UserError("it is full", "make room")

    with mock.patch.object(reviews.reviewing, "ask", broken):
        report = reviewed(place, tmp_path)
    assert report.outcome == "failed" and place.spent() == PRICE


def test_a_review_that_breaks_off_before_any_session_costs_nothing(place, tmp_path):
    with mock.patch.object(reviews.reviewing, "ask", side_effect=UserError("no agent", "name one")):
        assert reviewed(place, tmp_path).outcome == "failed"
    assert place.spent() == 0.0


def test_a_reviewer_that_crashed_may_have_cost_all_of_it(place, tmp_path):
    with mock.patch.object(reviews, "PRICED", frozenset({"scripted"})):
        assert reviewed(place, tmp_path, failure="exit").outcome == "failed"
    assert place.spent() == SET_ASIDE
