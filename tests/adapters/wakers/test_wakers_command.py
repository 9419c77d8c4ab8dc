"""`ralph wake` against a server on loopback: it reads the server's memory, and asks it to wake up once."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.adapters.storage.memory.making import batch, on_server, server_store
from tests.fakes.github.server import FakeGitHub
from tests.helpers import NOON, Result, cli_here, git, make_repo

pytestmark = pytest.mark.long  # takes ten seconds or more

LATER = NOON + timedelta(hours=6)


@dataclass
class Post:
    """A host with a clone, a timer's credentials, and the server."""

    fake: FakeGitHub
    clone: Path
    env: dict[str, str]

    def remember(self, due: datetime | None, **header: object) -> None:
        """Another runner's cycle: memory on the server says when the next one is due."""
        store = server_store(self.clone.parent / "runner", self.fake, self.env["GITHUB_TOKEN"])
        past = store.recall()
        made = batch(past)
        changed = replace(made.memory.header, next_due_at=due, generation=made.memory.header.generation + 1, **header)
        store.commit(replace(made, memory=replace(made.memory, header=changed)), past)

    def wake(self, now: datetime, *options: str) -> Result:
        return cli_here("wake", "--now", now.isoformat(), *options, repo=self.clone, env=self.env)

    @property
    def payloads(self) -> list[object]:
        return [dispatch.client_payload for dispatch in self.fake.dispatches]


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    repo = make_repo(tmp_path / "repo")
    with on_server(repo, tmp_path / "server.git") as fake:
        for name in ("clone", "runner"):
            git(repo, "clone", "--quiet", ".", str(tmp_path / name))
        env = {
            "GITHUB_TOKEN": fake.token(),
            "GITHUB_REPOSITORY": fake.repository,
            "GITHUB_API_URL": fake.api_url,
            "GITHUB_SERVER_URL": fake.url,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        yield Post(fake, tmp_path / "clone", env)


def test_before_the_due_minute_nobody_is_woken(post):
    post.remember(LATER)
    told = post.wake(LATER - timedelta(seconds=1))
    assert (told.code, told.out) == (10, "not due until 2026-05-04T18:00Z\n")
    assert post.payloads == []


@pytest.mark.attack(46)
def test_behind_a_link_in_the_place_of_our_folder_nothing_is_noted_and_nobody_is_woken(post, tmp_path):
    post.remember(LATER)
    (theirs := tmp_path / "theirs").mkdir()
    ours = post.clone / ".git" / "ralph"
    ours.symlink_to(theirs)
    told = post.wake(LATER)
    assert told.code == 1 and f"{ours} is a link" in told.err and post.payloads == []
    assert list(theirs.iterdir()) == []


def test_in_the_due_minute_the_loop_is_woken_once(post):
    post.remember(LATER)
    codes = [post.wake(LATER + timedelta(minutes=minute)).code for minute in range(10)]
    assert codes == [0] * 10
    assert post.payloads == [{"not_before": "2026-05-04T18:00:00Z", "generation": 1}]
    assert post.fake.dispatches[0].event_type == "ralph-loop-trigger"


def test_a_wake_of_which_nothing_came_is_repeated_after_ten_minutes(post):
    post.remember(LATER)
    post.wake(LATER)
    post.wake(LATER + timedelta(minutes=10))
    assert len(post.payloads) == 2


def test_another_runners_cycle_counts_although_this_clone_was_never_fetched(post):
    post.remember(LATER)
    post.wake(LATER)
    post.remember(LATER + timedelta(minutes=15))
    assert post.wake(LATER + timedelta(minutes=1)).code == 10
    assert post.wake(LATER + timedelta(minutes=15)).code == 0
    assert [payload["generation"] for payload in post.payloads] == [1, 2]


def test_a_cycle_that_ran_since_the_gate_was_asked_wakes_nobody(post, monkeypatch):
    post.remember(LATER)
    monkeypatch.setattr("ralph_mission.adapters.storage.memory.due.due_on_server", lambda *_, **__: (True, NOON, "due"))
    told = post.wake(NOON)
    assert (told.code, told.out) == (10, "not due: another was first\n")
    assert post.payloads == []


def test_without_memory_the_first_cycle_is_woken(post):
    assert post.wake(NOON).code == 0
    assert post.payloads == [{"not_before": "2026-05-04T12:00:00Z", "generation": 0}]


def test_a_paused_loop_is_left_alone(post):
    post.remember(LATER, paused=True)
    assert post.wake(LATER).code == 10
    assert post.payloads == []


def test_the_daily_cap_holds(post):
    (post.clone / "ralph.yml").write_text("limits: {dispatches_per_day: 2}\n")
    post.remember(NOON, today="2026-05-04", dispatches=1, last_cycle_at=NOON - timedelta(hours=1))
    told = [post.wake(NOON + timedelta(minutes=10 * turn)).out for turn in range(4)]
    assert len(post.payloads) == 2
    assert told[3] == "today's wakes are used up, the cap is 2\n"


def test_a_due_time_that_memory_grants_no_wake_wakes_nobody(post):
    post.remember(LATER, today="2026-05-04", dispatches=36, wake=False)
    assert post.wake(LATER).out == "today's wakes are used up, the cap is 48\n"
    assert post.wake(LATER + timedelta(hours=6)).code == 0
    assert len(post.payloads) == 1


def test_memory_elsewhere_is_found_by_the_settings(post):
    (post.clone / "ralph.yml").write_text("memory: {branch: other-memory}\n")
    post.remember(LATER)
    assert post.wake(NOON).code == 0  # the branch it looks at does not exist


@pytest.mark.parametrize(
    ("fault", "told"),
    [("403", "contents: write"), ("502_applied", "502"), ("reset_applied", "answer"), ("redirect", "was renamed")],
)
def test_a_wake_that_failed_is_one_line_and_waits_its_ten_minutes(post, fault, told):
    post.remember(LATER)
    post.fake.fail(fault, ("POST", "/dispatches"))
    first = post.wake(LATER)
    assert first.code == 1
    assert told in first.err
    assert first.err.startswith("error (forge): nothing was started: ")
    assert post.wake(LATER + timedelta(minutes=1)).code == 0
    assert post.fake.count(method="POST", below="/dispatches") == 1


def test_the_token_stands_in_no_output_and_in_no_file(post):
    post.remember(LATER)
    post.fake.fail("401", ("POST", "/dispatches"))
    told = post.wake(LATER, "--json")
    token = post.env["GITHUB_TOKEN"]
    assert token not in told.out + told.err
    files = [path for path in (post.clone / ".git" / "ralph").rglob("*") if path.is_file()]
    assert files
    assert not any(token.encode() in path.read_bytes() for path in files)


def test_json_is_one_document(post):
    post.remember(LATER)
    told = post.wake(LATER, "--json")
    assert told.json == {
        "due": True,
        "next_due_at": "2026-05-04T18:00:00Z",
        "sent": True,
        "reason": "woke harbour/slackwater for generation 1",
    }


def test_without_credentials_it_is_wrong_usage(post):
    told = cli_here("wake", repo=post.clone)
    assert told.code == 2
    assert "GITHUB_REPOSITORY" in told.err


def test_notes_that_cannot_be_written_send_nothing(post, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    post.remember(LATER)
    monkeypatch.setattr("ralph_mission.adapters.files.write", full)
    told = post.wake(LATER)
    assert told.code == 1
    assert "no space left on device" in told.err
    assert post.payloads == []
