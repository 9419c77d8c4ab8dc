"""A timer's memory of its wakes: one for each due time, again after ten minutes, and never past the cap.

Who starts the review of what we propose: GitHub, or a dispatch of ours.

Which way of waking is set up here, and which one `wake: auto` takes.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.wakers import (
    WAKERS,
    Calls,
    DispatchAnswer,
    DispatchWaker,
    WakeFacts,
    best,
    by_dispatch,
    dump,
    instance,
    load,
    look,
    objection,
    record_wake,
)
from ralph_mission.cli.setup.files import ActionReference, render_workflow
from ralph_mission.config.settings import Schedule
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Urgency
from tests.adapters.wakers.test_wakers_dispatch import Line
from tests.helpers import NOON

HEADER = Header(generation=5, today="2026-05-04")
ONCE = record_wake(Calls(), HEADER, NOON)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


NEXT = replace(HEADER, generation=6)
ASKED = replace(NEXT, next_due_at=NOON, last_cycle_at=NOON)


@pytest.mark.parametrize(
    ("calls", "header", "later", "limit", "why"),
    [
        (Calls(), HEADER, 0, 48, ""),
        (Calls(), HEADER, 0, 0, "used up"),
        (ONCE, HEADER, 1, 48, "woken for generation 5 less than 10 minutes ago"),
        (ONCE, HEADER, 9.9, 48, "woken for"),
        (ONCE, HEADER, 10, 48, ""),
        (ONCE, HEADER, 300, 48, ""),
        (ONCE, HEADER, -5, 48, "woken for"),  # a clock that was a few minutes ahead wakes nobody twice
        (ONCE, HEADER, -48 * 60, 48, ""),  # one that was wrong by days holds nothing up
        (ONCE, HEADER, 48 * 60, 48, ""),
        (ONCE, NEXT, 1, 48, ""),  # another due time is another wake
        (ONCE, replace(NEXT, dispatches=36, wake=True), 0, 48, ""),
        (ONCE, replace(NEXT, dispatches=36, wake=False), 0, 48, "today's wakes are used up, the cap is 48"),
        (ONCE, ASKED, 9, 48, "requested the next one"),
        (ONCE, ASKED, 10, 48, ""),
    ],
)
def test_each_due_time_has_one_wake_and_another_after_ten_minutes(
    calls: Calls, header: Header, later: float, limit: int, why: str
) -> None:
    said = objection(calls, header, NOON + minutes(later), limit)
    assert why in said if why else said == ""


def test_a_new_day_starts_at_nothing():
    full = replace(ONCE, days=(("2026-05-04", 12),))
    assert objection(full, HEADER, NOON + minutes(11), 48) != ""
    assert objection(full, HEADER, NOON + timedelta(days=1), 48) == ""


def test_a_clock_that_jumps_by_days_and_back_does_not_start_the_count_anew():
    full = replace(ONCE, days=(("2026-05-04", 12),))
    elsewhere = record_wake(full, HEADER, NOON + timedelta(days=2))
    assert "used up" in objection(elsewhere, HEADER, NOON + minutes(11), 48)


def test_the_notes_do_not_grow_for_ever():
    calls = Calls()
    for day in range(40):
        calls = record_wake(calls, HEADER, NOON + timedelta(days=day))
    assert [day for day, _ in calls.days] == [f"2026-06-{day:02}" for day in range(12, 4, -1)]


def test_what_is_written_is_read():
    assert load(dump(ONCE)) == ONCE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        pytest.param(b"[" * 200_000, id="nested"),
        b"\xff",
        b'{"generation": "5"}',
        b'{"at": "soon"}',
        b'{"strange": 1}',
        b'{"at": 5}',
        b'{"at": "", "days": []}',
        b'{"generation": 1, "at": "2026-05-04", "days": {"2026-05-04": "9"}}',
    ],
)
def test_nonsense_counts_as_never_called(content):
    assert load(content) == Calls()


JOB, APP = "github-actions[bot]", "ralph-app[bot]"


@pytest.mark.parametrize(
    ("account", "ok", "why"),
    [
        (JOB, True, "a workflow's own token"),
        (APP, False, "by GitHub: what ralph-app[bot] opens starts workflows"),
        ("mara", False, "by GitHub"),
    ],
)
def test_a_dispatch_wakes_it_where_github_starts_none(tmp_path: Path, account: str, ok: bool, why: str) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "any.yml").write_text("on: {repository_dispatch: {types: [ralph-review-trigger]}}\n")
    standing = by_dispatch(account, tmp_path)
    assert (standing.ok, why in standing.reason) == (ok, True), standing


@pytest.mark.parametrize("text", ["", "# types: [ralph-review-trigger]\n", "on: {issues: {}}\n"])
def test_where_no_workflow_listens_nobody_is_woken(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "any.yml").write_text(text)
    assert by_dispatch(JOB, tmp_path).reason == "no workflow here listens to ralph-review-trigger"
    assert not by_dispatch(JOB, None).ok


def test_the_request_names_the_pull_and_nothing_more() -> None:
    line = Line(DispatchAnswer(204))
    assert DispatchWaker("mara/harbour", line).review(8).status == "done"
    body = {"event_type": "ralph-review-trigger", "client_payload": {"pull_request": 8}}
    assert line.sent == [("/repos/mara/harbour/dispatches", body)]


PLAIN = render_workflow("cycle", ActionReference("a/b", "v1"), ("self-hosted",))
HERE = "srv-harbour"
TIMERS = frozenset({f"ralph-wake@{HERE}.timer"})


def name_of_best(facts: WakeFacts) -> str:
    way = best(facts)
    return way.name if way else ""


def test_nothing_is_set_up_where_nothing_is():
    assert best(WakeFacts()) is None
    assert not any(way.set_up(WakeFacts()).ok for way in WAKERS.values())


def test_the_table_holds_every_way_that_can_be_configured():
    wake = Schedule.model_fields["wake"].annotation
    assert {"auto", *WAKERS} == set(wake.__args__)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (WakeFacts(PLAIN), "heartbeat"),
        (WakeFacts(PLAIN, TIMERS, HERE), "timer"),
        (WakeFacts("", TIMERS, HERE), ""),
        (WakeFacts(PLAIN, TIMERS, "elsewhere"), "heartbeat"),
    ],
)
def test_the_most_punctual_way_that_is_set_up_is_the_best(facts, name):
    assert name_of_best(facts) == name


def test_a_timer_for_another_folder_is_named():
    standing = WAKERS["timer"].set_up(WakeFacts(PLAIN, TIMERS, "srv-other"))
    assert not standing.ok
    assert f"ralph-wake@{HERE}.timer" in standing.reason


def test_a_commented_cron_is_no_heartbeat():
    text = PLAIN.replace("    - cron", "    # - cron")
    facts = replace(WakeFacts(), workflow=look_at(text))
    assert not WAKERS["heartbeat"].set_up(facts).ok


def look_at(text: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ".github" / "workflows" / "any-name.yaml"
        place.parent.mkdir(parents=True)
        place.write_text(text)
        return look(Path(folder), "", ()).workflow


def test_the_workflow_is_found_by_what_it_listens_to(tmp_path):
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text("on: push\n# ralph-loop-trigger\n")
    (folder / "latin.yml").write_bytes(b"\xff")
    assert look(tmp_path, "", ()).workflow == ""
    (folder / "loop.yml").write_text(PLAIN)
    assert "ralph-loop-trigger" in look(tmp_path, "", ()).workflow


def test_a_bare_repository_has_no_workflow_to_look_at():
    assert look(None, "", ()) == WakeFacts()


def test_enabled_timers_are_found_where_systemd_links_them(tmp_path):
    wants = tmp_path / "timers.target.wants"
    wants.mkdir()
    (wants / "ralph-wake@srv-a.timer").symlink_to(tmp_path / "gone")
    (wants / "fstrim.timer").touch()
    assert look(None, "x", (tmp_path, tmp_path / "missing")).timers == {"ralph-wake@srv-a.timer"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/harbour", "srv-harbour"),
        ("/srv/my repo/.x-y/ü%", r"srv-my\x20repo-.x\x2dy-\xc3\xbc\x25"),
        ("/.hidden//twice/", r"\x2ehidden-twice"),
        ("/", "-"),
    ],
)
def test_an_instance_is_named_as_systemd_names_it(path, name):
    assert instance(Path(path)) == name
    if shutil.which("systemd-escape"):
        told = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True)
        assert told.stdout.rstrip("\n") == name


# --- Cycles and a timer wake the loop at once and without end: together they keep to one cap a day. ---

RHYTHM = Rhythm(*[timedelta(minutes=15)] * 3)


@dataclass
class Loop:
    """What memory says, what the timer noted, and every wake that was sent, by day."""

    limit: int
    header: Header = field(default_factory=Header)
    calls: Calls = field(default_factory=Calls)
    sent: Counter[str] = field(default_factory=Counter)

    def cycle(self, now: datetime, ready: bool) -> None:
        """One that ends now; `ready`: with work that need not wait."""
        day = f"{now:%Y-%m-%d}"
        dispatches, wake = schedule.count_granted_wakes(self.header, day, self.limit)
        header = replace(self.header, today=day, dispatches=dispatches, wake=wake, last_cycle_at=now)
        self.header = schedule.plan_next(header, Urgency.HIGH, RHYTHM, now, at_once=ready and wake)
        self.sent[day] += ready and wake

    def timer(self, now: datetime) -> bool:
        """Its minute."""
        due = schedule.is_due(self.header.next_due_at, now, RHYTHM.longest)
        if due and not objection(self.calls, self.header, now, self.limit):
            self.calls = record_wake(self.calls, self.header, now)
            self.sent[f"{now:%Y-%m-%d}"] += 1
            return True
        return False


def play(limit: int, seed: int, lost: float, days: int = 3) -> Loop:
    """Every minute the timer looks; a wake that is not lost is a cycle a minute later; cron comes now and then."""
    chance, loop = random.Random(seed), Loop(limit)
    arrives = None
    for minute in range(days * 24 * 60):
        now = NOON + timedelta(minutes=minute)
        woke = loop.timer(now)
        if woke and chance.random() >= lost:
            arrives = minute + 1
        if arrives == minute or chance.random() < 0.02:
            arrives = None
            loop.cycle(now, chance.random() < 0.5)
            if loop.header.next_due_at == loop.header.last_cycle_at and chance.random() >= lost:
                arrives = minute + 1
    return loop


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 48])
@pytest.mark.parametrize("lost", [0.0, 0.4, 1.0])
def test_no_day_has_more_wakes_than_the_cap_whoever_sends_them(limit, lost):
    for seed in range(5):
        loop = play(limit, seed, lost)
        assert max(loop.sent.values()) <= limit


@pytest.mark.parametrize("limit", [2, 7, 48])
def test_every_day_has_some(limit):
    loop = play(limit, 1, lost=0.0)
    assert len(loop.sent) == 4
    assert all(loop.sent.values())


def test_a_loop_that_sleeps_over_midnight_with_nothing_left_is_woken_on_the_next_day():
    """A timer alone, and no cron: otherwise nobody would ever begin the new day."""
    loop = Loop(1)
    loop.cycle(NOON, ready=True)
    loop.cycle(NOON + timedelta(minutes=1), ready=True)
    assert not loop.timer(NOON + timedelta(hours=11))
    assert loop.timer(NOON + timedelta(hours=13))
