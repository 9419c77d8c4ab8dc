"""Each network: said once, told apart what went wrong, and never again."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ralph_mission.adapters.http.client import NoAnswer
from ralph_mission.adapters.publishers import networks
from ralph_mission.adapters.publishers.channel import Channel
from ralph_mission.adapters.publishers.networks import BUILDS, build_discord, build_telegram, build_twitter
from ralph_mission.errors import Unset, UserError
from ralph_mission.mission.model.forge import Chart, Post
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.mission.publishing.texts import measure_post
from tests.adapters.web_server import reply, saying, serving
from tests.fakes.networks.discord import DiscordServer
from tests.fakes.networks.serving import Fault
from tests.fakes.networks.telegram import TelegramServer
from tests.fakes.networks.x import XServer

PNG = b"\x89PNG\r\n\x1a\n a small picture"
START = datetime(2026, 2, 16, tzinfo=UTC)
CHART = Chart("APR", "%", tuple((START + timedelta(hours=h), float(h)) for h in range(4)), "Line chart of APR, rising.")
SERVERS: dict[str, Callable[[], Any]] = {"twitter": XServer, "telegram": TelegramServer, "discord": DiscordServer}
KEYS = {"twitter": networks.X_KEYS, "telegram": networks.BOT_KEYS, "discord": (networks.WEBHOOK,)}


@pytest.fixture(params=SERVERS)
def network(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(network: str) -> Iterator[Any]:
    with SERVERS[network]() as made:
        yield made


@pytest.fixture
def channel(network: str, server: Any) -> Channel:
    return BUILDS[network](lambda _: PNG, server.environment)


def post(network: str, *parts: str, chart: Chart | None = None) -> Post:
    made = measure_post(network, parts)
    return Post(made.network, made.parts, made.lengths, made.limit, chart)


def secrets(server: Any) -> list[str]:
    return [value.rpartition("/")[2] for name, value in server.environment.items() if not name.endswith("_API_URL")]


# --- said ------------------------------------------------------------------------------


def test_a_post_is_delivered_once_to_the_letter(network: str, server: Any, channel: Channel) -> None:
    said = "APR <up> & *away*: 5 % - 日本 👩🏽‍🚀\n\nmore, it's"
    receipt = channel.publish("aa11bb22", post(network, said))
    assert (receipt.status, receipt.key) == ("done", "aa11bb22")
    assert server.texts == [said]
    assert receipt.detail == f"id={server.delivered[0].id}"
    assert len(server.sent) == 1


def test_where_it_is_to_be_seen_is_told(network: str, server: Any, channel: Channel) -> None:
    receipt = channel.publish("aa11bb22", post(network, "Hello"))
    name = server.delivered[0].id
    urls = {
        "twitter": f"https://x.com/i/status/{name}",
        "telegram": f"https://t.me/ralph_of_tests/{name}",
        "discord": f"https://discord.com/channels/199737254929760257/199737254929760256/{name}",
    }
    assert receipt.url == urls[network]


def test_a_thread_goes_out_in_order(network: str, server: Any, channel: Channel) -> None:
    receipt = channel.publish("aa11bb22", post(network, "one (1/3)", "two (2/3)", "three (3/3)"))
    assert receipt.status == "done"
    assert server.texts == ["one (1/3)", "two (2/3)", "three (3/3)"]
    if network != "discord":
        ids = [str(one.id) for one in server.delivered]
        assert [str(one.reply_to or "") for one in server.delivered] == ["", *ids[:-1]]


def test_a_chart_goes_with_it_and_is_told_in_words(network: str, server: Any, channel: Channel) -> None:
    receipt = channel.publish("aa11bb22", post(network, "APR went up.", chart=CHART))
    (message,) = server.delivered
    assert receipt.status == "done"
    if network == "twitter":
        assert server.media[message.media[0]] == PNG
        assert server.alt[message.media[0]] == CHART.alt
    elif network == "telegram":
        assert message.photo == PNG
    else:
        assert (message.picture, message.alt) == (PNG, CHART.alt)


# --- what goes wrong -------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500),
        Fault(503, delivered=True),
        Fault(502, body=b"<html>bad gateway</html>"),
        Fault(cut=True),
        Fault(cut=True, delivered=True),
        Fault(200, body=b"not JSON", delivered=True),
        Fault(200, body=b"[]", delivered=True),
        Fault(200, body={"ok": True, "data": {}}, delivered=True),
        Fault(408),
    ],
    ids=str,
)
def test_doubt_is_unknown_and_nothing_is_sent_again(network: str, server: Any, channel: Channel, fault: Fault) -> None:
    server.fail(fault)
    receipt = channel.publish("aa11bb22", post(network, "Hello"))
    assert receipt.status == "unknown", receipt
    assert len(server.sent) == 1
    assert len(server.delivered) == fault.delivered


def test_no_answer_in_time_is_doubt(network: str, server: Any) -> None:
    made: Any = BUILDS[network](lambda _: b"", server.environment)
    patient = type(made)(**{**{name: getattr(made, name) for name in made.__slots__}, "patience": 0.3})
    server.fail(Fault(hang=True, delivered=True))
    receipt = patient.publish("aa11bb22", post(network, "Hello"))
    assert (receipt.status, len(server.delivered)) == ("unknown", 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_final_and_says_who_must_act(network: str, server: Any, channel: Channel, status: int) -> None:
    server.fail(Fault(status, body={"detail": "No.", "description": "No.", "message": "No."}))
    receipt = channel.publish("aa11bb22", post(network, "Hello"))
    assert receipt.status == "failed"
    assert receipt.reason is None
    assert f"{status} (No.)" in receipt.detail
    assert not server.delivered


def test_a_rate_limit_is_for_later(network: str, server: Any, channel: Channel) -> None:
    body = {"ok": False, "parameters": {"retry_after": 30}, "retry_after": 30, "title": "Too Many Requests"}
    server.fail(Fault(429, body=body, headers={"x-rate-limit-reset": str(int(time.time()) + 900)}))
    receipt = channel.publish("aa11bb22", post(network, "Hello"))
    assert receipt.status == "failed"
    assert receipt.reason is FailureReason.LATER
    assert receipt.wait == 30 if network != "twitter" else 30 < receipt.wait <= 900
    assert len(server.sent) == 1


def test_a_network_out_of_reach_is_for_later(network: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with SERVERS[network]() as server:
            environment = {name: value.replace(server.url, closed) for name, value in server.environment.items()}
        receipt = BUILDS[network](lambda _: b"", environment).publish("aa11bb22", post(network, "Hello"))
    assert receipt.status == "failed"
    assert receipt.reason is FailureReason.LATER


def test_a_redirect_is_not_followed(network: str, server: Any, channel: Channel) -> None:
    server.fail(Fault(302, headers={"location": f"{server.url}/elsewhere"}))
    receipt = channel.publish("aa11bb22", post(network, "Hello"))
    assert (receipt.status, len(server.journal)) == ("failed", 1)


def test_an_answer_without_an_end_is_doubt(network: str, server: Any, channel: Channel) -> None:
    server.fail(Fault(200, body=b"[" * 1_100_000, delivered=True))
    assert channel.publish("aa11bb22", post(network, "Hello")).status == "unknown"


@pytest.mark.attack(33)
@pytest.mark.parametrize(
    "fault", [Fault(500), Fault(cut=True), Fault(401), Fault(429), Fault(200, body=b"?"), Fault(302)], ids=str
)
def test_no_secret_is_in_what_is_told(
    network: str, server: Any, channel: Channel, fault: Fault, capfd: pytest.CaptureFixture[str]
) -> None:
    server.fail(fault)
    told = [str(channel.publish("aa11bb22", post(network, "Hello"))), repr(channel), *capfd.readouterr()]
    for secret in secrets(server):
        if secret.startswith("@"):  # a chat's name is no secret
            continue
        assert not any(secret in one for one in told)


def test_the_end_of_a_thread_that_fails_is_told(network: str, server: Any, channel: Channel) -> None:
    server.fail(None, Fault(401))
    receipt = channel.publish("cc33dd44", post(network, "one (1/2)", "two (2/2)"))
    assert (receipt.status, server.texts) == ("done", ["one (1/2)"])
    assert receipt.detail.startswith(f"id={server.delivered[0].id} 1 of 2 parts are out")


def test_doubt_about_the_end_of_a_thread_is_doubt_about_it(network: str, server: Any, channel: Channel) -> None:
    server.fail(None, Fault(500))
    receipt = channel.publish("cc33dd44", post(network, "one (1/3)", "two (2/3)", "three (3/3)"))
    assert receipt.status == "unknown"
    assert server.texts == ["one (1/3)"]
    assert receipt.detail.startswith(f"id={server.delivered[0].id} 1 of 3 parts are out")


# --- pictures --------------------------------------------------------------------------


def test_a_picture_that_is_refused_never_costs_the_text(network: str, server: Any, channel: Channel) -> None:
    server.fail(Fault(400))
    receipt = channel.publish("aa11bb22", post(network, "APR went up.", chart=CHART))
    assert receipt.status == "done"
    assert server.texts == ["APR went up."]


def test_a_picture_that_cannot_be_drawn_never_costs_the_text(network: str, server: Any) -> None:
    channel = BUILDS[network](lambda _: b"", server.environment)
    assert channel.publish("aa11bb22", post(network, "APR went up.", chart=CHART)).status == "done"
    assert len(server.sent) == 1


def test_doubt_about_a_text_that_a_picture_carries_is_doubt(network: str, server: Any, channel: Channel) -> None:
    faults = [None, None, Fault(500, delivered=True)] if network == "twitter" else [Fault(500, delivered=True)]
    server.fail(*faults)
    receipt = channel.publish("aa11bb22", post(network, "APR went up.", chart=CHART))
    assert (receipt.status, server.texts) == ("unknown", ["APR went up."])


# --- one by one ------------------------------------------------------------------------


def test_what_x_has_already_counts_as_delivered() -> None:
    with XServer() as server:
        channel = build_twitter(lambda _: b"", server.environment)
        channel.publish("aa11bb22", post("twitter", "Hello"))
        assert channel.publish("cc33dd44", post("twitter", "Hello")).status == "adopted"
        assert server.texts == ["Hello"]


def test_a_duplicate_that_is_told_by_its_code_counts_too() -> None:
    with XServer() as server:
        server.fail(Fault(403, body={"errors": [{"code": 187, "message": "Status is a duplicate."}]}))
        receipt = build_twitter(lambda _: b"", server.environment).publish("aa11bb22", post("twitter", "Hello"))
        assert receipt.status == "adopted"


def test_what_follows_a_duplicate_is_not_sent_alone() -> None:
    with XServer() as server:
        channel = build_twitter(lambda _: b"", server.environment)
        channel.publish("aa11bb22", post("twitter", "one (1/2)"))
        receipt = channel.publish("cc33dd44", post("twitter", "one (1/2)", "two (2/2)"))
        assert (receipt.status, server.texts) == ("adopted", ["one (1/2)"])
        assert "not sent" in receipt.detail


def test_wrong_keys_are_refused_by_the_signature() -> None:
    with XServer() as server:
        environment = {**server.environment, "TWITTER_API_SECRET": "another"}
        receipt = build_twitter(lambda _: b"", environment).publish("aa11bb22", post("twitter", "Hello"))
        assert receipt.status == "failed"
        assert "TWITTER_API_KEY" in receipt.detail


def test_a_long_text_comes_before_its_picture_on_telegram() -> None:
    with TelegramServer() as server:
        channel = build_telegram(lambda _: PNG, server.environment)
        channel.publish("aa11bb22", post("telegram", "x" * 1_025, chart=CHART))
        text, photo = server.delivered
        assert (len(text.text), text.photo) == (1_025, b"")
        assert (photo.text, photo.photo, photo.reply_to) == ("", PNG, text.id)


def test_a_picture_that_was_to_follow_is_never_doubt_about_the_text() -> None:
    with TelegramServer() as server:
        server.fail(None, Fault(500))
        channel = build_telegram(lambda _: PNG, server.environment)
        assert channel.publish("aa11bb22", post("telegram", "x" * 1_025, chart=CHART)).status == "done"


def test_a_private_channel_is_linked_for_its_members() -> None:
    with TelegramServer() as server:
        server.public = False
        receipt = build_telegram(lambda _: b"", server.environment).publish("aa11bb22", post("telegram", "Hello"))
        assert receipt.url == "https://t.me/c/1234567890/1"


@pytest.mark.parametrize("unit", ["a", "😷", "<", "&"])
def test_telegram_takes_what_just_fits(unit: str) -> None:
    with TelegramServer() as server:
        said = unit * (4_096 // (len(unit.encode("utf-16-le")) // 2))
        receipt = build_telegram(lambda _: b"", server.environment).publish("aa11bb22", post("telegram", said))
        assert (receipt.status, server.texts) == ("done", [said])


@pytest.mark.attack(28)
def test_nobody_is_called_on_discord() -> None:
    with DiscordServer() as server:
        said = "@everyone @here <@123> <@&456>"
        build_discord(lambda _: PNG, server.environment).publish("aa11bb22", post("discord", said, chart=CHART))
        build_discord(lambda _: b"", server.environment).publish("cc33dd44", post("discord", said))
        assert [message.pinged for message in server.delivered] == [(), ()]
        assert len(server.sent) == 2


def test_a_webhook_that_names_a_thread_speaks_there() -> None:
    with DiscordServer() as server:
        hook = f"{server.environment['DISCORD_WEBHOOK_URL']}?thread_id=1100000000000000077"
        channel = build_discord(lambda _: b"", {"DISCORD_WEBHOOK_URL": hook})
        receipt = channel.publish("aa11bb22", post("discord", "Hello"))
        assert receipt.status == "done"
        assert server.sent[0].query == {"thread_id": "1100000000000000077", "wait": "true"}
        assert receipt.url.endswith(f"/1100000000000000077/{server.delivered[0].id}")
        assert channel.check() == "as Ralph"


def test_the_fields_of_a_picture_are_what_discord_wants() -> None:
    with DiscordServer() as server:
        build_discord(lambda _: PNG, server.environment).publish("aa11bb22", post("discord", "Hello", chart=CHART))
        assert json.dumps(server.sent[0].fields["attachments"][0], sort_keys=True) == json.dumps(
            {"description": CHART.alt, "filename": "chart.png", "id": 0}
        )


# --- set up ----------------------------------------------------------------------------


def test_who_we_are_is_asked_without_saying_anything(network: str, server: Any, channel: Channel) -> None:
    assert channel.check().startswith("as ")
    assert not server.sent


def test_who_is_not_known_there_is_told_what_to_mend(network: str, server: Any) -> None:
    right = {name for name in server.environment if name.endswith(("_API_URL", "_CHANNEL_ID"))}
    environment = {name: value if name in right else f"{value}x" for name, value in server.environment.items()}
    with pytest.raises(UserError) as told:
        BUILDS[network](lambda _: b"", environment).check()
    assert any(name in told.value.next_step for name in KEYS[network])
    assert not any(secret in told.value.what for secret in secrets(server))


def test_a_missing_secret_is_named(network: str, server: Any) -> None:
    for name in KEYS[network]:
        environment = {key: value for key, value in server.environment.items() if key != name}
        with pytest.raises(Unset, match=name):
            BUILDS[network](lambda _: b"", environment)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TWITTER_API_URL", "api.twitter.com"),
        ("TELEGRAM_API_URL", "ftp://example.org"),
        ("TELEGRAM_BOT_TOKEN", "../../etc"),
        ("DISCORD_WEBHOOK_URL", "https://discord.com/channels/1/2"),
        ("DISCORD_WEBHOOK_URL", "javascript:alert(1)"),
    ],
)
def test_an_address_that_is_none_is_refused_without_being_shown(name: str, value: str) -> None:
    network = name.partition("_")[0].lower()
    environment = dict.fromkeys(KEYS[network], "12345:abc") | {name: value}
    with pytest.raises(UserError, match=name) as told:
        BUILDS[network](lambda _: b"", environment)
    assert value not in told.value.what + told.value.next_step


@pytest.mark.attack(36)
def test_a_caption_is_escaped_like_any_text() -> None:
    with TelegramServer() as server:
        channel = build_telegram(lambda _: PNG, server.environment)
        channel.publish("aa11bb22", post("telegram", "a <b>bold</b> & more", chart=CHART))
        assert [(one.text, one.photo) for one in server.delivered] == [("a <b>bold</b> & more", PNG)]


# --- a request ---


@pytest.mark.parametrize("sent", [True, False])
def test_no_answer_says_whether_it_may_have_got_through(sent: bool) -> None:
    def call() -> None:
        raise NoAnswer("did not answer in time", sent=sent)

    assert networks.ask(call) == networks.Answer(0, sent=sent, why="did not answer in time")


@pytest.mark.parametrize("body", [b'{"a":' + b"[" * 200_000, b'{"a": ' + b"1" * 5_000 + b"}", b"\xff\xfe", b"[]"])
def test_what_is_no_object_is_none(body: bytes) -> None:
    with serving(saying(reply(body))) as server:
        answer = networks.ask(lambda: networks.open_session(60.0).get(server.url))
    assert (answer.status, answer.body) == (200, {})


def test_no_more_is_read_than_an_answer_may_have() -> None:
    with serving(saying(reply(b"x" * (networks.BYTES + 1)))) as server:
        answer = networks.ask(lambda: networks.open_session(60.0).post(server.url))
    assert (answer.status, answer.sent) == (0, True)


@pytest.mark.parametrize(
    ("wait", "header", "seconds"),
    [
        (30, "", 30.0),
        (1.5, "", 1.5),
        (None, "12", 12.0),
        (None, "soon", 0.0),
        (-4, "9", 0.0),
        (10**9, "", 0.0),
        ([], "", 0.0),
    ],
)
def test_how_long_a_network_wants_to_be_left_alone_is_told_as_a_number(
    wait: object, header: str, seconds: float
) -> None:
    answer = networks.Answer(429, headers={"retry-after": header} if header else {})
    assert networks.no("X", answer, {}, wait).wait == seconds
