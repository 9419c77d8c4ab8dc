"""Whole cycles of the real command against X, Telegram, Discord, two feeds and a database, all on loopback."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adapters.web_server import Server, reply, serving, site
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.serving import Fault
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer
from tests.helpers import Result, cli_here, git, make_repo

pytestmark = pytest.mark.long  # starts the real command many times

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
ROWS = [("Osmosis", 100.0, "2026-04-20 12:00:00"), ("Osmosis", 145.0, "2026-05-04 11:00:00")]
SAID = "Osmosis TVL up 45% this week"


@dataclass
class Town:
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

    def command(self, hour: int) -> tuple[str, ...]:
        return ("cycle", "--json", "--force", "--now", f"2026-05-04T{hour}:00:00Z")

    @property
    def texts(self) -> list[list[str]]:
        return [self.x.texts, self.telegram.texts, self.discord.texts]


def feed(*titles: str) -> bytes:
    items = "".join(f"<item><guid>{title}</guid><title>{title}</title></item>" for title in titles)
    return reply(f"<rss version='2.0'><channel>{items}</channel></rss>".encode(), Content_Type="text/xml")


def locked(path: Path) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("create table locked (id integer primary key, chain text, value real, at timestamp)")
        database.executemany("insert into locked (chain, value, at) values (?, ?, ?)", ROWS)
    database.close()
    return path


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    pages = {"/rivals": feed("Mintscan: @everyone risk scores, closes #1"), "/chains": feed("Aztec votes")}
    with ExitStack() as stack:
        x, telegram, discord = (stack.enter_context(one()) for one in (XServer, TelegramServer, DiscordServer))
        feeds = stack.enter_context(serving(site(pages)))
        repo = make_repo(tmp_path / "repo", {"ralph.yml": SETTINGS.format(url=feeds.url)})
        env = {"DATABASE_URL": f"sqlite:///{locked(tmp_path / 'a.db')}", "RALPH_WEB_ALLOW": feeds.place}
        yield Town(repo, x, telegram, discord, feeds, env | x.environment | telegram.environment | discord.environment)


def fates(told: Result) -> list[str]:
    return [effect["status"] for effect in told.json["effects"] if effect["kind"] == "publish"]


def test_a_cycle_posts_once_on_each_network_and_looks_at_all_four_sources(town):
    told = town.cycle(12)
    assert town.texts == [[SAID]] * 3, told.err
    assert fates(told) == ["done"] * 3
    seen = {line["name"]: line["status"] for line in told.json["observers"]}
    assert {seen[name] for name in ("database", "web.rivals", "web.chains", "code")} == {"ok"}
    again = town.cycle(13)
    assert (fates(again), town.texts) == ([], [[SAID]] * 3)
    state = git(town.repo, "show", "ralph-memory:memory/open.json")
    assert all(f'"id": "{one.delivered[0].id}"' in state for one in (town.x, town.telegram, town.discord))
    assert not any(secret in state for secret in town.env.values())


def test_a_500_of_one_network_leaves_the_others_and_nobody_is_told_twice(town):
    town.telegram.fail(Fault(500))
    told = town.cycle(12)
    assert fates(told) == ["done", "unknown", "done"]
    again = town.cycle(13)
    assert (fates(again), town.texts) == ([], [[SAID], [], [SAID]])
    assert "ralph journal resolve" in git(town.repo, "show", "ralph-memory:README.md")


def test_a_rate_limit_is_waited_for_by_the_one_network_that_has_it(town):
    limit = {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 5}}
    town.telegram.fail(Fault(429, body=limit))
    assert fates(town.cycle(12)) == ["done", "failed", "done"]
    assert fates(town.cycle(13)) == ["done"]
    assert town.texts == [[SAID]] * 3


def test_a_kill_between_send_and_receipt_leaves_one_delivery_and_one_doubt(town):
    town.x.fail(Fault(hang=True, delivered=True))
    run = [sys.executable, "-m", "ralph_mission", *town.command(12), "--repo", str(town.repo)]
    runner = subprocess.Popen(run, env={**os.environ, **town.env}, stdout=subprocess.DEVNULL)
    while not town.x.delivered and runner.poll() is None:
        time.sleep(0.05)
    os.kill(runner.pid, signal.SIGKILL)
    assert runner.wait() == -signal.SIGKILL
    for hour in (13, 14):
        town.cycle(hour)
    assert town.x.texts == [SAID]
    assert all(len(texts) <= 1 for texts in town.texts)
    assert git(town.repo, "show", "ralph-memory:README.md").count("--not-sent") == 3  # the others may have been sent


def test_nothing_set_up_posts_nothing_but_a_file_for_a_person(town):
    bare = {name: value for name, value in town.env.items() if name in ("DATABASE_URL", "RALPH_WEB_ALLOW")}
    told = cli_here(*town.command(12), repo=town.repo, env=bare)
    assert (told.code, town.texts) == (0, [[]] * 3)
    (file,) = (town.repo / ".ralph" / "outbox").glob("*.md")
    assert SAID in file.read_text()
    assert git(town.repo, "status", "--porcelain") == ""


def test_quiet_hours_hold_the_post_until_they_are_over(town):
    settings = (town.repo / "ralph.yml").read_text() + "  quiet_hours: '22:00-13:00'\n"
    (town.repo / "ralph.yml").write_text(settings)
    told = town.cycle(12)
    (held,) = (line for line in told.json["decisions"] if line["action"] == "publish")
    assert (held["verdict"], held["rules"], town.texts) == ("hold", ["quiet-hours"], [[]] * 3)
    town.cycle(13)
    assert town.texts == [[SAID]] * 3
