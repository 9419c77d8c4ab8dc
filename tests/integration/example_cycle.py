"""A project that watches validators, as in the days before its cycle: its server, runner, database, feed and networks.

Every source and every network is a real client's request to a server on loopback; time passes only when told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.database import sql
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.observers import database, web
from ralph_mission.adapters.report.summary import summary
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from tests.adapters.observers.web_world import unhurried
from tests.adapters.web_server import reply, serving, site
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer
from tests.integration.coding import AgentWorld, agent_world, settings
from tests.integration.hub import Hub

START = {"README.md": "# ValidatorInfo\n", "src/server.ts": "export const port = 3000;\n"}
MISSPELT = {"docs/apr.md": b"# APR\n\nThe rate is definately seperate for each chain.\n"}
SILENCED = {"src/votes.ts": b"// @ts-ignore\nimport a from 'a';\n// @ts-ignore\nimport b from 'b';\n"}
PATIENCE = 600.0  # seconds for a database to answer, on however busy a machine
SETTINGS = """\
work: {{max_iterations: 2}}
thinker: {{kind: rules, weights: {{feature: 3, content: 2, ts-ignore: 2, stale-issue: 0.5}}}}
observers:
  code: {{markers: {{ts-ignore: '@ts-ignore'}}}}
  database:
    watches:
      - {{name: tvl, table: locked, value: value, by: chain, at: at, kind: content, severity: low,
          change: {{over: 30%, within: 7d}}}}
  web:
    - {{name: rivals, kind: feed, url: '{feed}/rivals', finding: feature}}
publishers:
  twitter: {{}}
  telegram: {{}}
  discord: {{}}
  charts: false
  templates:
    tvl: '{{{{ group }}}} TVL surges {{{{ change_percent | percent }}}} this week. Full metrics at validatorinfo.com'
    completed: 'Merged after {{{{ cycles }}}} cycles: one more {{{{ what }}}} is gone.'
  announce: [spelling]
"""


@dataclass
class Project:
    """What a person, the world and Ralph do to it."""

    shop: AgentWorld
    x: XServer
    telegram: TelegramServer
    discord: DiscordServer
    pages: dict[str, Any]
    rows: Path

    @property
    def hub(self) -> Hub:
        assert isinstance(self.shop.place, Hub)
        return self.shop.place

    def cycle(self, after: timedelta) -> tuple[CycleReport, CycleSummary, str]:
        """One cycle, some time later, and what a person reads of it."""
        report, cycle_summary = self.hub.cycle(after=after)
        return report, cycle_summary, summary(report, cycle_summary)

    # --- what happens in the world ------------------------------------------------------

    def pushed(self, files: dict[str, bytes]) -> None:
        """Somebody's work comes to the default branch."""
        self.hub.person().push("main", files)

    def locked(self, chain: str, value: float, at: datetime) -> None:
        """What is locked on a chain, as the database has it."""
        with sqlite3.connect(self.rows) as rows:
            rows.execute("insert into locked (chain, value, at) values (?, ?, ?)", (chain, value, f"{at:%F %T}"))
        rows.close()

    def told_by_rivals(self, *titles: str) -> None:
        """What competitors' feed has."""
        items = "".join(f"<item><guid>{title}</guid><title>{title}</title></item>" for title in titles)
        feed = f"<rss version='2.0'><channel>{items}</channel></rss>"
        self.pages["/rivals"] = reply(feed.encode(), Content_Type="text/xml")

    # --- what came of it ----------------------------------------------------------------

    @property
    def said(self) -> list[list[str]]:
        """What X, Telegram and Discord were told, oldest first."""
        return [self.x.texts, self.telegram.texts, self.discord.texts]

    @property
    def fix(self) -> int:
        """The pull that Ralph opened by itself."""
        (pull,) = (pull.number for pull in self.hub.pulls if "ralph:auto-fix" in pull.labels)
        return int(pull)

    @property
    def research(self) -> Any:
        """The issue that asks a person about what rivals do."""
        (issue,) = (issue for issue in self.hub.issues if "ralph:research" in issue.labels)
        return issue

    def under(self, heading: str) -> str:
        """What the memory file says there, up to the next heading of that rank."""
        rank = heading.partition(" ")[0]
        return self.hub.memory().partition(f"\n{heading}")[2].partition(f"\n{rank} ")[0]


def ranked(report: CycleReport) -> list[str]:
    """The kinds of what is new, best first."""
    new = sorted((one for one in report.findings if not one.known), key=lambda one: -one.score)
    return list(dict.fromkeys(one.kind for one in new))


def acted(report: CycleReport) -> list[str]:
    """What was done, in order."""
    return [str(one.action) for one in report.decisions if one.verdict.value == "allow"]


def held(report: CycleReport) -> list[tuple[str, tuple[str, ...]]]:
    """The kinds of what was not, and by which rules."""
    return [(one.kind, one.rules) for one in report.decisions if one.verdict.value == "hold"]


def stand(report: CycleReport) -> dict[str, str]:
    """Where each mission stands."""
    return {one.title: one.status.value for one in report.missions}


def sources(report: CycleReport) -> dict[str, str]:
    """How each source fared."""
    return {one.name: one.status for one in report.observers}


@contextmanager
def project(
    folder: Path,
    environment: pytest.MonkeyPatch,
    settings_of: Callable[[Path, str], str] | None = None,
    files: dict[str, str] | None = None,
) -> Iterator[Project]:
    """The project before Ralph's first look. `settings_of` makes other settings of the folder aside and the feed."""
    with ExitStack() as stack:
        x, telegram, discord = (stack.enter_context(one()) for one in (XServer, TelegramServer, DiscordServer))
        pages: dict[str, Any] = {}
        feed = stack.enter_context(serving(site(pages)))
        rows = folder / "metrics.db"
        told = {"DATABASE_URL": f"sqlite:///{rows}", "RALPH_WEB_ALLOW": feed.place}
        for name, value in (told | x.environment | telegram.environment | discord.environment).items():
            environment.setenv(name, value)
        environment.setattr(web, "build", lambda *given, build=web.build, **named: unhurried(build(*given, **named)))
        environment.setattr(
            database, "build", lambda *given, build=database.build: replace(build(*given), patience=PATIENCE)
        )
        environment.setattr(sql, "Caps", lambda: Caps(PATIENCE, PATIENCE, connect_seconds=int(PATIENCE)))
        config = partial(settings_of, feed=feed.url) if settings_of else _settings(feed.url)
        start = {**START, **(files or {})}
        shop = stack.enter_context(agent_world(folder / "hub", "github", files=start, config=config))
        made = Project(shop, x, telegram, discord, pages, rows)
        with sqlite3.connect(rows) as table:
            table.execute("create table locked (id integer primary key, chain text, value real, at timestamp)")
        table.close()
        made.told_by_rivals("Mintscan is five years old")
        yield made


def _settings(feed: str) -> Any:
    def config(aside: Path) -> str:
        agent = settings(aside).partition("observers:")[0].replace("fixers: []", "fixers: [typos]")
        return agent + SETTINGS.format(feed=feed)

    return config
