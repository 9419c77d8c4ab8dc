"""Posts in the cycle: said once on each network, never again in doubt, and one network's trouble is no other's."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.report.summary import summary
from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.errors import UserError
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.memory.learning import recount_learnings
from ralph_mission.mission.memory.text import parse_memory, render_memory
from ralph_mission.mission.model.forge import Measured, Post, Wording
from ralph_mission.mission.operations import control
from ralph_mission.mission.operations.control import differences
from ralph_mission.mission.operations.recover import recover_memory
from tests.adapters.web_server import Server, feed, serving, site
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.serving import Fault
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer
from tests.helpers import Result, cli_here, git, make_repo
from tests.integration.dying import dying
from tests.integration.publishing import NETWORKS, Networks, Numbers, Publishing, publishing, spike
from tests.integration.world import statuses, verdicts

pytestmark = pytest.mark.long  # real repositories, many cycles

SOON, ONCE = timedelta(minutes=15), {"twitter": 1, "telegram": 1, "discord": 1}
CALLS = ((BranchStore, "commit"), (Networks, "publish"))


@dataclass
class SlowClock:
    """Each look at it is two hours after the one before."""

    at: datetime

    def now(self) -> datetime:
        self.at += timedelta(hours=2)
        return self.at - timedelta(hours=2)


def fates(report) -> list[str]:
    return [effect.status for effect in report.effects if effect.kind == "publish"]


def copied(hub: Publishing, path) -> Publishing:
    shutil.copytree(hub.repo, path, symlinks=True)
    return replace(hub, repo=path, publisher=Networks(), numbers=Numbers())


# --- once ------------------------------------------------------------------------------


def test_what_the_owner_has_words_for_is_said_once_on_each_network_and_logged(tmp_path):
    hub = publishing(tmp_path)
    report, cycle_summary = hub.cycle()
    assert verdicts(report) == [("publish", "allow", ())]
    assert (fates(report), hub.counts) == (["done"] * 3, ONCE)
    assert [(p.network, p.id, p.kind) for p in hub.state.posted] == [(n, "1", "anomaly") for n in NETWORKS]
    assert hub.publisher.delivered["twitter"] == ["anomaly: name Osmosis, change 45.0"]
    for text in (summary(report, cycle_summary), hub.git("show", "ralph-memory:README.md")):
        assert "twitter" in text
        assert "twitter.test" in text
    assert "anomaly: name Osmosis" in summary(report, cycle_summary)
    again, _ = hub.cycle()
    assert (again.decisions, hub.counts, hub.issues) == ((), ONCE, ())


def test_without_words_of_the_owner_a_person_is_asked_and_nothing_is_posted(tmp_path):
    hub = publishing(tmp_path, publisher=Networks(kinds=frozenset()))
    report, _ = hub.cycle()
    assert [line.action for line in report.decisions] == ["open-proposal"]
    assert hub.counts == dict.fromkeys(NETWORKS, 0)


def test_staged_shows_the_exact_text_with_its_length_and_says_nothing(tmp_path):
    hub = publishing(tmp_path)
    report, cycle_summary = hub.cycle(staged=True)
    shown = summary(report, cycle_summary)
    assert fates(report) == ["staged"] * 3
    assert "twitter (34 of 280)" in shown
    assert "anomaly: name Osmosis, change 45.0" in shown
    assert "staged/twitter.md" in shown
    assert hub.counts == dict.fromkeys(NETWORKS, 0)
    hub.cycle()
    assert hub.counts == ONCE


def test_a_recorded_cycle_decides_the_same_again(tmp_path):
    hub = publishing(tmp_path)
    report, _ = hub.cycle()
    house = hub.house()
    recorded = dict(house.recordings.load(report.cycle_id))
    situation, decisions = recorded["situation"], recorded["decisions"]
    assert [wording.ready for wording in situation.wordings] == [True]
    assert len(decisions) == 1
    assert differences(situation, decisions, house.secrets) == ()


# --- one network in trouble ------------------------------------------------------------


def test_a_network_out_of_reach_is_tried_again_and_the_others_are_not(tmp_path):
    hub = publishing(tmp_path)
    hub.publisher.fails("telegram", ("failed", "later: 429, in 40 s"))
    report, cycle_summary = hub.cycle()
    assert (fates(report), hub.counts) == (["done", "failed", "done"], {**ONCE, "telegram": 0})
    assert "telegram: not posted yet, tried again in the next cycle: 429, in 40 s" in cycle_summary.remarks
    again, _ = hub.cycle(after=SOON)
    assert (fates(again), hub.counts) == (["done"], ONCE)
    assert hub.cycle(after=SOON)[0].decisions == ()


def test_cycles_while_a_network_wants_to_be_left_alone_use_up_no_try(tmp_path):
    hub = publishing(tmp_path)
    hub.publisher.wait = 7200
    hub.publisher.fails("telegram", ("failed", "later: 429, in 7200 s"))
    hub.cycle()
    for _ in range(4):
        report, _ = hub.cycle(after=SOON)
        assert (report.decisions, hub.counts) == ((), {**ONCE, "telegram": 0})
    hub.cycle(after=timedelta(hours=1))
    assert hub.counts == ONCE


@pytest.mark.parametrize(("pauses", "counted"), [([SOON] * 4, 3), ([timedelta(hours=25)], 1)])
def test_after_three_tries_or_a_day_it_is_given_up(tmp_path, pauses, counted):
    hub = publishing(tmp_path)
    hub.publisher.fails("telegram", *[("failed", "later: refused")] * 9)
    reports = [hub.cycle(), *(hub.cycle(after=pause) for pause in pauses)]
    tried = sum(len([e for e in report.effects if e.status == "failed"]) for report, _ in reports)
    assert (tried, hub.counts) == (counted, {**ONCE, "telegram": 0})
    assert reports[-1][0].decisions == ()
    if counted == 3:
        assert "telegram: not posted, and not tried again: refused" in reports[2][1].remarks


def test_half_a_thread_is_told_to_a_person(tmp_path, monkeypatch):
    hub = publishing(tmp_path)
    two = lambda self, network, parts: Post(network, ("one (1/2)", "two (2/2)"), (9, 9), 280)  # noqa: E731  # of two parts
    monkeypatch.setattr(Networks, "measure", two)
    hub.publisher.fails("twitter", ("done", "id=7 1 of 2 parts are out; X refuses it with 403"))
    _, cycle_summary = hub.cycle()
    told = "not all of it was posted, and the rest is not tried again: 1 of 2 parts are out; X refuses it with 403"
    assert [line for line in cycle_summary.remarks if "parts" in line] == [f"twitter: {told}"]


def test_doubt_is_told_to_a_person_and_never_resent(tmp_path):
    hub = publishing(tmp_path)
    hub.publisher.fails("twitter", ConnectionError("cut after it was sent"))
    report, cycle_summary = hub.cycle()
    (key,) = hub.state.unknown
    assert fates(report) == ["unknown", "done", "done"]
    assert any(f"`ralph journal resolve {key} --sent|--not-sent`" in line for line in cycle_summary.remarks)
    assert any("the post on twitter" in line for line in hub.cycle(after=SOON)[1].remarks)
    assert (hub.counts, hub.state.unknown) == (ONCE, (key,))


@pytest.mark.parametrize(("sent", "told"), [(True, 1), (False, 2)])
@pytest.mark.parametrize("complete", [True, False])
def test_a_persons_word_settles_doubt_and_only_a_no_sends_it_once_more(tmp_path, sent, told, complete):
    hub = publishing(tmp_path, numbers=Numbers(complete=complete))
    hub.publisher.fails("twitter", ConnectionError("cut"))
    hub.cycle()
    if not complete:
        hub.numbers.signals = ()
        hub.cycle(after=SOON)
    control.resolve(hub.house().store, hub.state.unknown[0], sent)
    for _ in range(2):
        hub.cycle(after=SOON)
    assert hub.counts == {**ONCE, "twitter": told}
    assert hub.state.unknown == ()
    assert {post.network for post in hub.state.posted} == set(NETWORKS)


# --- how much, and when ----------------------------------------------------------------


def test_a_network_that_had_its_share_of_the_day_holds_the_post_until_tomorrow(tmp_path):
    hub = publishing(tmp_path)
    for day in range(4):
        hub.numbers.signals = tuple(spike(f"{day}-{n}", name=f"Chain {n}") for n in range(3))
        hub.cycle(after=SOON)
    assert hub.counts == dict.fromkeys(NETWORKS, 10)
    held, _ = hub.cycle(after=SOON)
    assert {line.rules for line in held.decisions} == {("posts-day",)}
    hub.cycle(after=timedelta(hours=20))
    assert hub.counts["twitter"] > 10


def test_between_two_posts_on_one_network_there_is_the_pause_that_the_owner_wants(tmp_path):
    hub = publishing(tmp_path, pause=timedelta(minutes=20))
    hub.numbers.signals = tuple(spike("w1", name=f"Chain {n}") for n in range(2))
    report, _ = hub.cycle()
    assert [line.rules for line in report.decisions] == [(), ("posts-pause",)]
    assert hub.counts == ONCE
    held, _ = hub.cycle(after=SOON)
    assert ([line.rules for line in held.decisions], hub.counts) == ([("posts-pause",)], ONCE)
    hub.cycle(after=SOON)
    assert hub.counts == dict.fromkeys(NETWORKS, 2)


# --- dying -----------------------------------------------------------------------------


def test_quiet_hours_that_begin_while_a_cycle_is_at_work_are_quiet_too(tmp_path):
    hub = publishing(tmp_path)
    house, clock = hub.house(), SlowClock(hub.now)
    evening = (hub.now + timedelta(hours=1)).time(), (hub.now + timedelta(hours=9)).time()
    ports = replace(house.ports, clock=clock)
    report, _ = run_cycle(ports, replace(house.settings, quiet_hours=evening), CycleRequest(force=True), house.secrets)
    assert verdicts(report) == [("publish", "hold", ("quiet-hours",))]
    assert hub.counts == dict.fromkeys(NETWORKS, 0)


def test_a_death_at_any_point_leaves_one_delivery_or_one_doubt_and_never_two(tmp_path):
    start = publishing(tmp_path / "start")
    start.numbers.signals = ()
    start.cycle()
    calm = copied(start, tmp_path / "calm")
    with dying(calls=CALLS) as undisturbed:
        calm.cycle(after=SOON)
    assert len([moment for moment in undisturbed.moments if "publish" in moment]) == 6
    for at, moment in enumerate(undisturbed.moments, 1):
        hub = copied(start, tmp_path / str(at))
        with dying(at, CALLS) as death:
            hub.cycle(after=SOON)
        assert death.moments[-1] == moment
        for _ in range(2):
            report, _ = hub.cycle(after=SOON)
        assert report.decisions == ()
        counts, doubt = hub.counts, len(hub.state.unknown)
        assert all(count <= 1 for count in counts.values()), moment
        assert sum(counts.values()) + doubt >= 3, moment
        assert hub.state.effects == ()
        shutil.rmtree(hub.repo)


def test_of_two_runners_one_speaks(tmp_path):
    hub = publishing(tmp_path)
    publish = hub.publisher.publish
    seen = []

    def meanwhile(effect):
        seen.append(hub.cycle(after=timedelta(0))[0].outcome)
        return publish(effect)

    hub.publisher.publish = meanwhile
    hub.cycle()
    assert (set(seen), hub.counts) == ({"lost"}, ONCE)


@pytest.mark.parametrize("wiped", [False, True])
def test_after_recovery_nothing_is_said_twice(tmp_path, wiped):
    hub = publishing(tmp_path)
    hub.cycle()
    if wiped:
        hub.git("update-ref", "-d", "refs/heads/ralph-memory")
        with pytest.raises(UserError):
            hub.cycle(after=SOON)
    house = hub.house()
    recover_memory(house.store, house.forge, hub.now)
    for pause in (SOON, SOON, timedelta(hours=26)):
        hub.cycle(after=pause)
    assert hub.counts == ONCE
    hub.numbers.signals = (spike("2026-06-01"),)
    hub.cycle()
    assert hub.counts == dict.fromkeys(NETWORKS, 2)


# --- finished missions -----------------------------------------------------------------


def merged(hub: Publishing) -> None:
    hub.numbers.signals = ()
    hub.cycle()
    (pull,) = hub.pulls
    hub.person().review(pull.number, "approved")


def test_a_merged_mission_is_announced_once_in_the_cycle_after_the_merge(tmp_path):
    hub = publishing(tmp_path, announce=("spelling",))
    merged(hub)
    assert hub.counts == dict.fromkeys(NETWORKS, 0)
    report, _ = hub.cycle()
    assert (statuses(report), hub.counts) == (["COMPLETED"], dict.fromkeys(NETWORKS, 0))
    assert report.next_due_at == report.started_at
    assert re.search(r"^- \*\*Next cycle:\*\* \w+ \(at once: work is ready\)$", hub.memory(), re.MULTILINE)
    assert render_memory(parse_memory(hub.memory())).rstrip() == hub.memory()
    after, _ = hub.cycle(after=SOON)
    assert [line.kind for line in after.decisions] == ["completed"]
    assert hub.counts == ONCE
    (said,) = hub.publisher.delivered["twitter"]
    assert said == "completed: mission 1, what misspelling, pull 1, days 0, cycles 2"
    assert hub.state.finished == ()
    assert hub.cycle(after=SOON)[0].decisions == ()
    assert hub.counts == ONCE
    past = hub.house().store.recall()
    assert past is not None
    assert "people accepted 1 of 1" in past.memory.measured[0]
    assert past.memory.measured == recount_learnings(hub.house().store.journal())


def unworded(folder):
    """A publishing hub whose announcement waits, because it has no words; and how it finds words otherwise."""
    hub = publishing(folder, announce=("spelling",))
    merged(hub)
    hub.cycle()
    word = hub.publisher.word
    hub.publisher.word = lambda finding: Wording(finding.fingerprint, "", problem="the template names no such fact")
    hub.cycle(after=SOON)
    return hub, word


def test_an_announcement_waits_for_words_that_can_be_mended(tmp_path):
    hub, word = unworded(tmp_path)
    assert (hub.counts, len(hub.state.finished)) == (dict.fromkeys(NETWORKS, 0), 1)
    hub.publisher.word = word
    hub.cycle(after=SOON)
    assert (hub.counts, hub.state.finished) == (ONCE, ())


def test_an_announcement_that_waits_is_not_lost_when_a_person_speaks(tmp_path):
    hub, word = unworded(tmp_path)
    waiting, lateness = hub.state.finished, hub.state.wakes
    house = hub.house()
    run_cycle(house.ports, house.settings, CycleRequest(trigger="person"), house.secrets)
    assert (hub.state.finished, hub.state.wakes) == (waiting, lateness) and waiting
    hub.publisher.word = word
    hub.cycle(after=SOON)
    assert (hub.counts, hub.state.finished) == (ONCE, ())


@pytest.mark.parametrize(
    ("announce", "kinds"), [((), {"completed"}), (("bug",), {"completed"}), (("spelling",), {"anomaly"})]
)
def test_what_nobody_wants_announced_or_has_words_for_is_not(tmp_path, announce, kinds):
    hub = publishing(tmp_path, announce=("spelling",), publisher=Networks(kinds=frozenset(kinds)))
    hub.announce = ("spelling",)
    merged(hub)
    hub.announce = announce
    for _ in range(3):
        hub.cycle(after=SOON)
    assert hub.counts == dict.fromkeys(NETWORKS, 0)
    assert hub.state.finished == ()
    assert (len(hub.pulls), hub.issues) == (1, ())


# --- what is learned -------------------------------------------------------------------


def test_learnings_say_which_posts_people_react_to_and_the_journal_bears_them_out(tmp_path):
    hub = publishing(tmp_path, publisher=Networks(kinds=frozenset({"anomaly", "community"})))
    for week, likes in enumerate((12, 30)):
        hub.numbers.signals = (spike(f"w{week}"), spike(f"w{week}", "community", "Stars"))
        hub.cycle()
        kinds = {post.key: post.kind for post in hub.state.posted if not post.measured_at}
        told = (Measured(key, likes if kind == "anomaly" else 2, 100) for key, kind in kinds.items())
        hub.numbers.measured = (*hub.numbers.measured, *told)
    hub.cycle()
    memory = hub.memory()
    assert "on twitter: 2 posts measured, 21 reactions at the median; Ralph gives the next one" in memory
    past = hub.house().store.recall()
    assert past is not None
    assert past.memory.measured == recount_learnings(hub.house().store.journal())
    assert len(past.memory.measured) == 6
    assert deque(post.reactions for post in past.state.posted if post.kind == "community") == deque([2] * 6)


# --- Whole cycles of the real command against X, Telegram, Discord, two feeds and a database, all on loopback. ---

SETTINGS = """hands: {{fixers: []}}
observers:
  code: {{markers: {{}}}}
  database:
    watches:
      - {{name: tvl, table: locked, value: value, by: chain, at: at, change: {{over: 30%, within: 7d}}, unit: ' ATOM'}}
  web:
    - {{name: rivals, kind: feed, url: '{url}/rivals'}}
    - {{name: chains, kind: feed, url: '{url}/chains'}}
publishers:
  twitter: {{}}
  telegram: {{}}
  discord: {{}}
  charts: false
  templates: {{tvl: '{{{{ group }}}} TVL {{{{ direction }}}} {{{{ change_percent | percent }}}} this week'}}
"""
BEFORE, AFTER = ("Osmosis", 100.0, "2026-04-20 12:00:00"), ("Osmosis", 145.0, "2026-05-04 12:30:00")
SAID = "Osmosis TVL up 45% this week"


@dataclass
class PublishingWorld:
    """A repository, its database, its networks and its feeds; time passes only when told."""

    repo: Path
    x: XServer
    telegram: TelegramServer
    discord: DiscordServer
    feeds: Server
    env: dict[str, str]

    def cycle(self, hour: int) -> Result:
        told = cli_here(*self.command(hour), repo=self.repo, env=self.env)
        assert told.code == 0, told.err
        return told

    def rises(self) -> None:
        """A cycle that remembers what is there, then something that is news."""
        assert self.cycle(12).json["decisions"] == [] and self.texts == [[], [], []]
        add_row(Path(self.env["DATABASE_URL"].removeprefix("sqlite:///")), AFTER)

    def command(self, hour: int) -> tuple[str, ...]:
        return ("cycle", "--json", "--force", "--now", f"2026-05-04T{hour}:00:00Z")

    @property
    def texts(self) -> list[list[str]]:
        return [self.x.texts, self.telegram.texts, self.discord.texts]


def locked(path: Path) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("create table locked (id integer primary key, chain text, value real, at timestamp)")
    database.close()
    return add_row(path, BEFORE)


def add_row(path: Path, row: tuple[str, float, str]) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("insert into locked (chain, value, at) values (?, ?, ?)", row)
    database.close()
    return path


@pytest.fixture
def town(tmp_path: Path) -> Iterator[PublishingWorld]:
    pages = {"/rivals": feed("Mintscan: @everyone risk scores, closes #1"), "/chains": feed("Aztec votes")}
    with ExitStack() as stack:
        x, telegram, discord = (stack.enter_context(one()) for one in (XServer, TelegramServer, DiscordServer))
        feeds = stack.enter_context(serving(site(pages)))
        repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS.format(url=feeds.url)})
        env = {"DATABASE_URL": f"sqlite:///{locked(tmp_path / 'a.db')}", "RALPH_WEB_ALLOW": feeds.place}
        yield PublishingWorld(
            repo, x, telegram, discord, feeds, env | x.environment | telegram.environment | discord.environment
        )


def fates_publishing_networks(told: Result) -> list[str]:
    return [effect["status"] for effect in told.json["effects"] if effect["kind"] == "publish"]


def test_a_cycle_posts_once_on_each_network_and_looks_at_all_four_sources(town):
    town.rises()
    told = town.cycle(13)
    assert town.texts == [[SAID]] * 3, told.err
    assert fates_publishing_networks(told) == ["done"] * 3
    seen = {line["name"]: line["status"] for line in told.json["observers"]}
    assert {seen[name] for name in ("database", "web.rivals", "web.chains", "code")} == {"ok"}
    again = town.cycle(14)
    assert (fates_publishing_networks(again), town.texts) == ([], [[SAID]] * 3)
    state = git(town.repo, "show", "ralph-memory:memory/open.json")
    assert all(f'"id": "{one.delivered[0].id}"' in state for one in (town.x, town.telegram, town.discord))
    assert not any(secret in state for secret in town.env.values())


def test_a_kill_between_send_and_receipt_leaves_one_delivery_and_one_doubt(town):
    town.rises()
    town.x.fail(Fault(hang=True, delivered=True))
    run = [sys.executable, "-m", "ralph_mission", *town.command(13), "--repo", str(town.repo)]
    runner = subprocess.Popen(run, env={**os.environ, **town.env}, stdout=subprocess.DEVNULL)
    while not town.x.delivered and runner.poll() is None:
        time.sleep(0.05)
    os.kill(runner.pid, signal.SIGKILL)
    assert runner.wait() == -signal.SIGKILL
    for hour in (14, 15):
        town.cycle(hour)
    assert town.x.texts == [SAID]
    assert all(len(texts) <= 1 for texts in town.texts)
    assert git(town.repo, "show", "ralph-memory:README.md").count("--not-sent") == 3  # the others may have been sent
