"""The action publishes a text that was approved: run for real by a local runner, with a network of loopback."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralph_mission.cli.setup.files import render_workflow
from tests.action.conftest import serving
from tests.action.runner import INSTALLED, Job, Runner
from tests.action.test_action import HOSTILE
from tests.fakes.github.server import FakeGitHub
from tests.fakes.networks.discord import TOKEN, DiscordServer

pytestmark = pytest.mark.long  # takes ten seconds or more
SETTINGS = """\
observers:
  code: {markers: {}}
  database:
    backend: sqlalchemy
    watches:
      - {name: harbours, table: harbour, top: {order_by: berths, take: 3}, include: [name], kind: content}
publishers: {discord: {}, charts: false}
hands: {fixers: []}
"""
FILES = {"README.md": "# Sample\n", "ralph.yml": SETTINGS}
EVENT = {"action": "labeled", "label": {"name": "content:approved"}, "issue": {"number": 2}}


@dataclass(frozen=True, slots=True)
class Publishing:
    """A cycle that shows a text; a job before anybody approved it, the one that the label starts, and one more."""

    asked: Job
    early: Job
    published: Job
    again: Job
    github: FakeGitHub
    discord: DiscordServer


@pytest.fixture(scope="module")
def jobs(action: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publishing]:
    """Four jobs of one runner."""
    folder = tmp_path_factory.mktemp("publishes")
    (folder / "runner").mkdir()
    with sqlite3.connect(folder / "data.db") as connection:
        connection.execute("create table harbour (id integer primary key, name text, berths integer)")
        connection.execute("insert into harbour (name, berths) values ('Oban', 12)")
    runner = Runner(folder / "runner", action)
    runner.seed(files=FILES)
    with serving(folder, FILES) as github, DiscordServer() as discord:
        token, hook = github.token(), discord.environment["DISCORD_WEBHOOK_URL"]
        database = {"database-url": f"sqlite:///{folder / 'data.db'}", "discord-webhook-url": hook}
        assert runner.run(token, github.url, "schedule", database).code == 0  # of a ranking nothing is said at first
        with sqlite3.connect(folder / "data.db") as connection:
            connection.execute("insert into harbour (name, berths) values ('Tobermory', 30)")
        asked = runner.run(token, github.url, "schedule", database | {"force": "true"})
        wanted = {"mode": "publish", "issue": "2", "discord-webhook-url": hook}
        early = runner.run(token, github.url, "workflow_dispatch", wanted)
        github.person("mara").label(2, ("content:approved",))
        published = runner.run(token, github.url, "issues", wanted, payload=EVENT)
        again = runner.run(token, github.url, "issues", wanted, payload=EVENT)
        yield Publishing(asked, early, published, again, github, discord)


def test_a_label_publishes_what_the_issue_shows_once(jobs: Publishing) -> None:
    assert (jobs.asked.code, jobs.early.code, jobs.published.code, jobs.again.code) == (0, 0, 0, 0), jobs.published.log
    (text,) = jobs.discord.texts
    assert "Oban" in text and text in jobs.github.issue(2).body
    outcomes = [job.outputs["outcome"] for job in (jobs.early, jobs.published, jobs.again)]
    assert outcomes == ["nothing", "published", "nothing"]
    assert "content:published" in jobs.github.issue(2).labels and jobs.github.issue(2).state == "closed"


def test_the_page_of_the_job_says_where_it_went(jobs: Publishing) -> None:
    here = f"{jobs.github.url}/harbour/slackwater/issues/2"
    assert jobs.published.summary.startswith(f"## Ralph, texts of issue [#2]({here}): published")
    assert "- discord: done" in jobs.published.summary


def test_it_wakes_nobody_and_leaves_no_secret_behind(jobs: Publishing) -> None:
    for job in (jobs.early, jobs.published, jobs.again):
        assert job.leaks == [] and TOKEN not in job.log
        assert [name for name in job.temporary if not name.startswith("ralph-summary-")] == []
        assert [command for command, _ in job.starts] == ["publish"]
        assert not {name for _, environment in job.starts for name in environment if name.startswith("RALPH_INPUT_")}


def test_the_workflow_that_init_writes_runs_on_the_label(jobs: Publishing, runner: Runner) -> None:
    flow = render_workflow("publish", INSTALLED, ("self-hosted",))
    job = runner.run(jobs.github.token(), jobs.github.url, "issues", payload=EVENT, workflow=flow)
    assert job.code == 0, job.log
    other = {**EVENT, "label": {"name": "bug"}}
    job = runner.run(jobs.github.token(), jobs.github.url, "issues", payload=other, workflow=flow)
    assert job.starts == []


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ({"mode": "publish"}, "write issue: NUMBER"),
        ({"mode": "publish", "issue": HOSTILE}, "write it like 7"),
        ({"mode": "publish", "issue": "7", "force": "true"}, "leave it out"),
    ],
)
def test_an_input_that_means_nothing_stops_before_anything(
    runner: Runner, github: FakeGitHub, inputs: dict[str, str], line: str
) -> None:
    job = runner.run(github.token(), github.url, "workflow_dispatch", inputs)
    assert job.code != 0 and line in job.log
    assert (job.starts, job.owned, github.journal) == ([], [], [])
