"""From a finding to the texts of each network: what qualifies, whose words they are, and what is never said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.publishers import channel
from ralph_mission.adapters.publishers.channel import OutboxFolder
from ralph_mission.adapters.publishers.publisher import PublisherByNetwork
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.config.settings import Publishers
from ralph_mission.mission.findings.identity import finished_findings as announced
from ralph_mission.mission.model.effects import Publish
from ralph_mission.mission.model.forge import Wording
from ralph_mission.mission.model.ledger import FinishedMission
from ralph_mission.mission.model.mission import Finding, Signal
from ralph_mission.mission.publishing import texts

NOW = datetime(2026, 2, 16, 6, tzinfo=UTC)
CHANGE: tuple[tuple[str, str | int | float], ...] = (
    ("watch", "apr"),
    ("model", "Apr"),
    ("sort", "change"),
    ("group", "7"),
    ("unit", "%"),
    ("value", "13.5"),
    ("previous", "10"),
    ("change_percent", "35"),
    ("direction", "up"),
    ("row.id", 19),
    ("row.createdAt", "2026-02-16T05:00:00Z"),
    ("row.chain.name", "Cosmos Hub"),
)
BY_SORT: dict[str, tuple[tuple[tuple[str, str | int | float], ...], str]] = {
    "change": (CHANGE, "Cosmos Hub: apr went up by 35%, from 10 to 13.5%."),
    "new_since": (
        (("watch", "new-validators"), ("row.moniker", "Node 9"), ("row.chain.name", "Osmosis")),
        "New in new validators: Node 9, Osmosis.",
    ),
    "top": (
        (
            ("watch", "top-apr"),
            ("order_by", "real_apr"),
            ("row.1.id", 7),
            ("row.1.chain.name", "A"),
            ("row.1.real_apr", "19.5"),
            ("row.2.id", 8),
            ("row.2.chain.name", "B"),
        ),
        "Top apr:\n1. A (19.5)\n2. B",
    ),
    "where": ((("watch", "jailed"), ("row.moniker", "Node 9")), "Jailed: Node 9."),
    "threshold": (
        (("watch", "tvl"), ("group", "7"), ("value", "1234567"), ("direction", "above"), ("limit", "1000000")),
        "7: tvl is 1,234,567, above 1,000,000.",
    ),
    "outlier": (
        (("watch", "time"), ("model", "Block"), ("value", "9"), ("usual", "6.1")),
        "Block: time is 9, usual is 6.1.",
    ),
    "missing": ((("watch", "prices"), ("group", "x"), ("age", "2.5")), "x: nothing new in prices for 2.5 hours."),
}


class Quiet:
    """A network that is never spoken to."""

    def __init__(self, network: str) -> None:
        self.network = network

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AssertionError(f"{self.network} was asked to {name}")


def publisher_of(*networks: str, **settings: object) -> PublisherByNetwork:
    channels = tuple(Quiet(name) for name in networks or ("twitter",))
    return PublisherByNetwork(Publishers.model_validate(settings), channels)


def finding(
    told: tuple[tuple[str, str | int | float], ...] = CHANGE,
    kind: str = "anomaly",
    observer: str = "database",
    **more: Any,
) -> Finding:
    return Finding("f" * 16, Signal(observer, kind, "a title @everyone", ("essence",), "o1", facts=told, **more))


def list_parts(wording: Wording | None) -> list[tuple[str, ...]]:
    assert wording is not None
    assert not wording.problem
    return [post.parts for post in wording.posts]


# --- whose words -----------------------------------------------------------------------


def test_the_owners_template_says_it_on_every_network_at_once() -> None:
    publisher = publisher_of(
        "twitter", "telegram", "discord", templates={"anomaly": "{{ row.chain.name }}: {{ value }}{{ unit }}"}
    )
    wording = publisher.word(finding())
    assert list_parts(wording) == [("Cosmos Hub: 13.5%",)] * 3
    assert wording is not None
    assert wording.ready
    assert (wording.fingerprint, wording.occurrence) == ("f" * 16, "o1")
    assert [(post.network, post.lengths, post.limit) for post in wording.posts] == [
        ("twitter", (17,), 280),
        ("telegram", (17,), 4096),
        ("discord", (17,), 2000),
    ]


def written(text: str, *networks: str, kind: str = "content") -> Finding:
    told = tuple(("network", network) for network in networks)
    return finding(told, kind, "briefs", detail=text, path="content/twelve.md")


def test_a_text_of_the_repository_goes_where_its_file_says_and_never_unasked() -> None:
    publisher = publisher_of("twitter", "telegram", templates={"content": "{{ network }}"})
    wording = publisher.word(written("Twelve harbours.\n\nhttps://tides.example.org", "telegram"))
    assert list_parts(wording) == [("Twelve harbours.\n\nhttps://tides.example.org",)]
    assert wording is not None and not wording.ready
    assert publisher.word(written("Read the table.", "telegram", kind="brief")) is None
    assert list_parts(publisher_of("outbox").word(written("Twelve.", "telegram", "twitter"))) == [("Twelve.",)]


def test_a_text_for_a_network_that_is_not_set_up_says_so() -> None:
    wording = publisher_of("twitter").word(written("Twelve harbours.", "telegram"))
    assert wording is not None and not wording.posts
    assert wording.problem == "content/twelve.md on telegram: it is not set up; set it up in publishers of ralph.yml"


def test_the_template_of_a_watch_comes_before_that_of_a_kind() -> None:
    publisher = publisher_of(templates={"anomaly": "by kind", "apr": "by watch"})
    assert list_parts(publisher.word(finding())) == [("by watch",)]


def test_without_a_template_an_anomaly_says_nothing() -> None:
    assert publisher_of().word(finding()) is None


@pytest.mark.parametrize("sort", channel.TEXTS)
def test_a_piece_of_content_gets_a_draft_that_a_person_reads_first(sort: str) -> None:
    told, text = BY_SORT[sort]
    wording = publisher_of().word(finding((*told, ("sort", sort)), kind="content"))
    assert list_parts(wording) == [(text,)]
    assert wording is not None
    assert not wording.ready


def test_every_sort_of_a_watch_has_a_draft() -> None:
    from ralph_mission.adapters.observers.database.watches import SORTS

    assert set(channel.TEXTS) == set(SORTS)


@pytest.mark.parametrize(
    ("days", "when"), [(0, "."), (1, ", a day after it was found."), (3, ", 3 days after it was found.")]
)
def test_what_the_owner_wants_announced_is(days: int, when: str) -> None:
    (done,) = announced([FinishedMission(4, "a" * 16, "spelling", 12, NOW, days, 2)])
    wording = publisher_of(announce=["spelling"]).word(done)
    assert list_parts(wording) == [(f"Merged: misspelling, pull request 12{when}",)]
    assert wording is not None
    assert wording.ready


def test_nothing_is_announced_unless_the_owner_wants_it() -> None:
    (done,) = announced([FinishedMission(4, "a" * 16, "spelling", 12, NOW, 1, 2)])
    assert publisher_of().word(done) is None


def test_a_template_that_says_nothing_says_nothing() -> None:
    assert publisher_of(templates={"apr": "{% if value > 100 %}{{ value }}{% endif %}"}).word(finding()) is None


# --- what is never said ----------------------------------------------------------------


@pytest.mark.attack(35)
@pytest.mark.parametrize("observer", ["web", "code", "commands", "codespell"])
def test_free_text_from_outside_never_reaches_a_network(observer: str) -> None:
    publisher = publisher_of(templates={"anomaly": "{{ watch }}", "news": "hello"})
    assert publisher.word(finding(observer=observer)) is None
    assert publisher.word(finding(observer=observer, kind="news")) is None


@pytest.mark.attack(35)
@pytest.mark.parametrize("name", ["title", "detail", "essence", "author"])
def test_titles_and_details_are_no_facts(name: str) -> None:
    wording = publisher_of(templates={"apr": f"{{{{ {name} }}}}"}).word(finding(detail="free words", author="eve"))
    assert wording is not None
    assert not wording.posts
    assert f"the template apr wants the fact {name}" in wording.problem
    assert "row.chain.name" in wording.problem


@pytest.mark.attack(28, 36)
def test_a_hostile_cell_is_harmless_wherever_it_stands() -> None:
    hostile = "@everyone <b>[x](https://evil.example)</b> closes #1 \u202e" + "x" * 10_000
    told = (*CHANGE[:-1], ("row.chain.name", hostile))
    publisher = publisher_of("discord", templates={"apr": "{{ row.chain.name }} / {{ about }}"})
    ((text,),) = list_parts(publisher.word(finding(told)))
    assert not set("@#<>[]\u202e") & set(text)
    assert len(text) < 170


def test_a_text_that_no_network_takes_is_trouble_with_what_to_do() -> None:
    publisher = publisher_of("discord", "twitter", templates={"apr": f"https://example.com/{'a' * 3_000}"})
    wording = publisher.word(finding())
    assert wording is not None
    assert (wording.posts, wording.ready) == ((), False)
    assert "shorten" in wording.problem


def test_a_text_that_one_network_does_not_take_is_said_on_the_others_and_told() -> None:
    wording = publisher_of("discord", "twitter", templates={"apr": "word " * 700}).word(finding())
    assert wording is not None
    assert ([post.network for post in wording.posts], wording.ready) == (["discord"], True)
    assert wording.problem == "apr on twitter: a post on twitter has 10 parts; shorten it to 9 parts at most"


def test_a_long_text_is_a_thread_where_it_has_to_be() -> None:
    publisher = publisher_of("twitter", "discord", templates={"apr": "A sentence of the owner's. " * 20})
    threads = list_parts(publisher.word(finding()))
    assert [len(parts) for parts in threads] == [2, 1]


def test_facts_by_any_name_and_of_any_number_are_bounded() -> None:
    told = tuple((f"fact{number}", number) for number in range(10_000))
    assert len(texts.template_facts(finding((*CHANGE, *told)))) <= texts.MOST_FACTS + 4
    assert "__class__" not in texts.template_facts(finding((("a b", 1), ("row.__class__", "x"), ("n", 1))))


def test_the_longest_ranking_is_offered_whole() -> None:
    cells = ((f"row.{place}.cell{n}", place * n) for place in range(1, 51) for n in range(8))
    rows = texts.template_facts(finding((*CHANGE, *cells)))["rows"]
    assert [len(row) for row in rows] == [8] * 50


# --- charts, networks, receipts ---------------------------------------------------------


def series(count: int = 10) -> tuple[tuple[datetime, float], ...]:
    return tuple((NOW + timedelta(hours=hour), float(hour % 4)) for hour in range(count))


def test_a_chart_goes_with_a_post_that_has_values_over_time() -> None:
    wording = publisher_of(templates={"apr": "x"}).word(finding(series=series()))
    assert wording is not None
    chart = wording.posts[0].chart
    assert chart is not None
    assert (chart.title, chart.unit, chart.points) == ("Cosmos Hub: apr", "%", series())
    assert chart.alt == (
        "Line chart of Cosmos Hub: apr, 2026-02-16 06:00 to 2026-02-16 15:00 UTC, 10 values: "
        "first 0 %, last 1 %, lowest 0 %, highest 3 %."
    )


def test_a_post_with_its_chart_is_remembered_to_the_letter() -> None:
    wording = publisher_of(templates={"apr": "x 👩🏽\u200d🚀"}).word(finding(series=series(300)))
    assert wording is not None
    effect = Publish("aa11bb22", wording.posts[0])
    assert codec.load(Publish, codec.dump(effect)) == effect
    assert len(codec.dump(effect)) < 10_000


@pytest.mark.parametrize(("settings", "count"), [({"charts": False}, 10), ({}, 2), ({}, 0)])
def test_no_chart_where_it_is_switched_off_or_would_show_nothing(settings: dict[str, bool], count: int) -> None:
    wording = publisher_of(templates={"apr": "x"}, **settings).word(finding(series=series(count)))
    assert wording is not None
    assert wording.posts[0].chart is None


def test_a_network_that_is_not_set_up_any_more_is_refused_by_name(tmp_path: Path) -> None:
    publisher = PublisherByNetwork(Publishers(), (OutboxFolder(tmp_path, lambda: NOW, lambda _: b""),))
    post = publisher.measure("outbox", ("hello",))
    other = publisher.measure("twitter", ("hello",))
    assert publisher.publish(Publish("aa11", other)).status == "failed"
    assert "twitter is not set up" in publisher.publish(Publish("aa11", other)).detail
    assert publisher.find(Publish("aa11", post)) is None
    assert publisher.publish(Publish("aa11", post)).status == "done"
    assert publisher.find(Publish("aa11", post)) is not None
