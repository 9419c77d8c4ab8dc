"""`publishers:` of ralph.yml, the networks that it makes, and what the doctor says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.app.hosting import FixedClock
from ralph_mission.app.ports import build_publishers, outbox
from ralph_mission.cli.doctor import DoctorLine
from ralph_mission.cli.doctor.sources import publishers
from ralph_mission.config.reading import load
from ralph_mission.errors import UserError
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer
from tests.helpers import git

ALL = "publishers: {twitter: {}, telegram: {}, discord: {}}"
CLOCK = FixedClock(datetime(2026, 2, 16, 6, tzinfo=UTC))


@pytest.fixture
def repository(tmp_path: Path) -> Git:
    git(tmp_path, "init", "--quiet")
    return Git.open(tmp_path)


@pytest.fixture
def servers() -> Iterator[tuple[XServer, TelegramServer, DiscordServer]]:
    with ExitStack() as stack:
        enter = stack.enter_context
        yield enter(XServer()), enter(TelegramServer()), enter(DiscordServer())


def environment(servers: tuple[XServer, TelegramServer, DiscordServer]) -> dict[str, str]:
    return {name: value for server in servers for name, value in server.environment.items()}


# --- what can be said ------------------------------------------------------------------


def test_everything_that_is_documented_is_understood() -> None:
    told = load(
        "publishers: {twitter: {}, outbox: {path: posts}, templates: {apr: '{{ value | percent }}'}, "
        "announce: [spelling], quiet_hours: '22:00-07:00', per_day: 4, pause: 90m, charts: false}"
    ).publishers
    assert (told.apart, load("").publishers.apart) == (timedelta(minutes=90), timedelta(0))
    assert told.quiet == (time(22), time(7))
    assert (told.per_day, told.charts, told.announce) == (4, False, ("spelling",))
    assert told.outbox is not None
    assert told.outbox.path == "posts"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("{twiter: {}}", "unknown key publishers.twiter"),
        ("{twitter: {token: x}}", "unknown key publishers.twitter.token"),
        ("{quiet_hours: '22-7'}", "22:00-07:00"),
        ("{quiet_hours: '07:00-07:00'}", "22:00-07:00"),
        ("{per_day: 11}", "10"),
        ("{outbox: {path: ../posts}}", "folder of the repository"),
        ("{outbox: {path: /srv/posts}}", "folder of the repository"),
        ("{outbox: {path: .}}", "folder of the repository"),
        ("{templates: {apr: '{{ value'}}", "the template apr cannot be read"),
        ("{templates: {apr: '{{ value.upper() }}'}}", "the template apr may not use call"),
        ("{templates: {Apr: x}}", "publishers.templates"),
    ],
)
def test_what_is_wrong_is_told_in_words(said: str, complaint: str) -> None:
    with pytest.raises(UserError) as told:
        load(f"publishers: {said}")
    assert complaint in f"{told.value.what} {told.value.next_step}"


def test_a_mistyped_network_is_told_its_nearest() -> None:
    with pytest.raises(UserError) as told:
        load("publishers: {twiter: {}}")
    assert told.value.next_step == "did you mean twitter?"


# --- what it makes ---------------------------------------------------------------------


def test_with_nothing_configured_there_is_the_outbox_alone(repository: Git) -> None:
    notes: list[str] = []
    made = build_publishers(load(""), repository, CLOCK, notes.append, {})
    assert (made.networks, notes) == (("outbox",), [])


def test_networks_that_are_named_and_set_up_are_used_in_order(
    repository: Git, servers: tuple[XServer, TelegramServer, DiscordServer]
) -> None:
    made = build_publishers(load(ALL), repository, CLOCK, pytest.fail, environment(servers))
    assert made.networks == ("twitter", "telegram", "discord")


def test_one_without_its_secrets_is_named_once_and_the_others_go_on(
    repository: Git, servers: tuple[XServer, TelegramServer, DiscordServer]
) -> None:
    notes: list[str] = []
    told = environment(servers)
    del told["TELEGRAM_BOT_TOKEN"]
    made = build_publishers(load(ALL), repository, CLOCK, notes.append, told)
    assert made.networks == ("twitter", "discord")
    (note,) = notes
    assert "telegram is not set up: TELEGRAM_BOT_TOKEN missing" in note


def test_the_outbox_stands_in_when_none_is_left_and_beside_them_when_named(
    repository: Git, servers: tuple[XServer, TelegramServer, DiscordServer]
) -> None:
    assert build_publishers(load(ALL), repository, CLOCK, lambda _: None, {}).networks == ("outbox",)
    both = load("publishers: {discord: {}, outbox: {}}")
    assert build_publishers(both, repository, CLOCK, pytest.fail, environment(servers)).networks == (
        "discord",
        "outbox",
    )


@pytest.mark.parametrize(("said", "place"), [("", ".ralph/outbox"), ("publishers: {outbox: {path: posts}}", "posts")])
def test_where_the_outbox_is(repository: Git, said: str, place: str) -> None:
    assert repository.work_tree is not None
    assert outbox(load(said).publishers, repository, CLOCK).folder == repository.work_tree / place


# --- the doctor ------------------------------------------------------------------------


def lines(said: str, repository: Git, told: dict[str, str]) -> dict[str, DoctorLine]:
    return {check.name: check for check in publishers(load(said), repository, told)}


def test_the_doctor_says_who_we_are_on_each_network(
    repository: Git, servers: tuple[XServer, TelegramServer, DiscordServer]
) -> None:
    checks = lines(ALL, repository, environment(servers))
    found = {name: check.found for name, check in checks.items()}
    assert found == {
        "twitter": "ready: as ralph_of_tests",
        "telegram": "ready: as ralph_of_tests_bot in Ralph",
        "discord": "ready: as Ralph",
    }
    assert not any(server.sent for server in servers)


def test_the_doctor_says_what_is_missing_and_what_stands_in_for_it(repository: Git) -> None:
    checks = lines("publishers: {twitter: {}}", repository, {})
    assert (checks["twitter"].status, checks["discord"].status, checks["outbox"].status) == ("note", "note", "ok")
    assert "TWITTER_API_KEY" in checks["twitter"].hint
    assert "publishers.discord" in checks["discord"].hint


def test_the_doctor_says_what_is_broken_and_shows_no_secret(
    repository: Git, servers: tuple[XServer, TelegramServer, DiscordServer]
) -> None:
    right = ("_API_URL", "_CHANNEL_ID")
    told = {name: v if name.endswith(right) else f"{v}x" for name, v in environment(servers).items()}
    checks = lines(ALL, repository, told)
    assert {check.status for check in checks.values()} == {"wrong"}
    assert "TELEGRAM_BOT_TOKEN" in checks["telegram"].hint
    shown = " ".join(f"{check.found} {check.hint}" for check in checks.values())
    assert not any(value.rpartition("/")[2] in shown for name, value in told.items() if not name.endswith(right))
