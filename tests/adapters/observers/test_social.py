"""The social observer: numbers of our posts, questions, followers, topics, and what a network takes away that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.observers import social
from ralph_mission.config.observers import SocialSettings
from ralph_mission.mission.model.forge import Branch, Measured, Posted
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext, Route, lookup
from tests.fakes.networks.bot_api import OWNER, TOKEN, BotApi, bot_api
from tests.fakes.networks.discord import DiscordServer, Message
from tests.fakes.networks.serving import Asked, Refused
from tests.fakes.networks.x import XServer
from tests.helpers import NOON
from tests.integration.world import CALM
from tests.integration.world import World as World_social_cycle
from tests.integration.world import world as world_social_cycle

BEARER, CHANNEL = "scripted-bearer-token", "-100777"
POSTS = (
    Posted("k1", "twitter", "anomaly", NOON - timedelta(hours=5), "501"),
    Posted("k2", "telegram", "anomaly", NOON - timedelta(hours=5), "61"),
    Posted("k3", "discord", "anomaly", NOON - timedelta(hours=5), "900000000000000001"),
    Posted("k4", "twitter", "anomaly", NOON - timedelta(days=60), "400"),
    Posted("k5", "outbox", "anomaly", NOON, ""),
)


class PublicX(XServer):
    """The side of X that a bearer token sees."""

    def __init__(self) -> None:
        super().__init__()
        self.posts: dict[str, Mapping[str, Any]] = {
            "501": {"like_count": 4, "retweet_count": 2, "impression_count": 310}
        }
        self.mentions: list[Mapping[str, Any]] = []
        self.followers, self.topics = 240, ["tides", "harbours"]
        self.status = 0
        self.tier = True

    def endpoints(self):
        return {
            ("GET", "/2/tweets"): self._tweets,
            ("GET", "/2/users/by/username/(?P<name>[^/]+)"): self._user,
            ("GET", "/2/users/77/mentions"): self._mentions,
            ("GET", "/2/trends/by/woeid/1"): self._trends,
        }

    def _let_in(self, asked: Asked) -> None:
        if self.status:
            raise Refused(self.status, {"title": f"no, {BEARER}"})
        assert asked.headers["authorization"] == f"Bearer {BEARER}"

    def _tweets(self, asked: Asked) -> Mapping[str, Any]:
        self._let_in(asked)
        ids = asked.query["ids"].split(",")
        return {"data": [{"id": id, "text": "x", "public_metrics": self.posts[id]} for id in ids if id in self.posts]}

    def _user(self, asked: Asked) -> Mapping[str, Any]:
        self._let_in(asked)
        return {"data": {"id": "77", "public_metrics": {"followers_count": self.followers}}}

    def _mentions(self, asked: Asked) -> Mapping[str, Any]:
        self._let_in(asked)
        return {"data": self.mentions}

    def _trends(self, asked: Asked) -> Mapping[str, Any]:
        self._let_in(asked)
        if not self.tier:
            raise Refused(403, {"title": "Client Forbidden"})
        return {"data": [{"trend_name": name, "tweet_count": 9} for name in self.topics]}


class World:
    """Three networks, one observer of them, and the time."""

    def __init__(self, x: PublicX, bot: BotApi, discord: DiscordServer) -> None:
        self.x, self.bot, self.discord = x, bot, discord
        self.settings = SocialSettings(account="harbour", trends=1, channel="199737254929760256")
        self.environment = {
            "TWITTER_BEARER_TOKEN": BEARER,
            "TWITTER_API_URL": x.url,
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_URL": bot.url,
            "TELEGRAM_CHANNEL_ID": CHANNEL,
            "DISCORD_BOT_TOKEN": "scripted-discord-bot-token",
            "DISCORD_API_URL": f"{discord.url}/api/v10",
            **discord.environment,
        }
        self.messages: list[Mapping[str, Any]] = []
        self.overheard: list[Mapping[str, Any]] | None = None
        self.now = NOON

    def look(self, cursor: str = "", after: timedelta = timedelta()) -> Observation:
        self.now += after
        heard = self.overheard
        made = social.build(
            self.settings, lambda: POSTS, (lambda: heard) if heard is not None else None, self.environment
        )
        return made.observe(ObservationContext(Branch("main", "a" * 40), self.now, None, cursor, ""))


@pytest.fixture
def world() -> Iterator[World]:
    with PublicX() as x, bot_api() as bot, DiscordServer() as discord:
        made = World(x, bot, discord)

        def listed(asked: Asked) -> Any:
            assert asked.headers["authorization"] == "Bot scripted-discord-bot-token"
            return made.messages

        discord.more["GET", "/api/v10/channels/199737254929760256/messages"] = listed
        discord.delivered = [Message("900000000000000001", "hello")]
        discord.reactions["900000000000000001"] = [{"count": 3}, {"count": 1}]
        yield made


def reaction(message: int, *counts: int, chat: str = CHANNEL) -> dict[str, Any]:
    found = [{"type": {"type": "emoji", "emoji": "👍"}, "total_count": count} for count in counts]
    return {"chat": {"id": int(chat), "type": "channel"}, "message_id": message, "date": 1, "reactions": found}


def make_mention(text: str, **more: Any) -> dict[str, Any]:
    at = (NOON - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    return {"id": "8", "text": text, "created_at": at, "public_metrics": {"reply_count": 0}, **more}


def test_our_posts_are_measured_on_each_network(world: World) -> None:
    world.bot.update(message_reaction_count=reaction(61, 1))
    world.bot.update(message_reaction_count=reaction(61, 5, 2))
    world.bot.update(message_reaction_count=reaction(61, 99, chat="-100888"))
    world.bot.update(message_reaction_count=reaction(62, 99))
    seen = world.look()
    assert seen.measured == (Measured("k1", 6, 310), Measured("k2", 7), Measured("k3", 4))
    assert len(world.bot.updates) == 4  # to look confirms nothing
    assert world.x.journal[0].query["ids"] == "501"  # nobody reacts to what is old


def test_within_its_time_nobody_is_asked(world: World) -> None:
    cursor = world.look().cursor
    requests = (len(world.x.journal), len(world.bot.asked), len(world.discord.journal))
    again = world.look(cursor, timedelta(hours=20))
    assert (again.status, again.cursor, again.measured) == ("skipped", cursor, ())
    assert requests == (len(world.x.journal), len(world.bot.asked), len(world.discord.journal))
    assert world.look(cursor, timedelta(hours=2)).status == "ok"


def test_what_telegram_told_whoever_looked_for_orders_is_used_at_any_time(world: World) -> None:
    world.overheard = []
    cursor = world.look().cursor
    world.overheard = [{"update_id": 1, "message_reaction_count": reaction(61, 8)}]
    again = world.look(cursor, timedelta(hours=6))
    assert (again.status, again.cursor, again.measured) == ("ok", cursor, (Measured("k2", 8),))
    assert "getUpdates" not in [method for method, _ in world.bot.asked]


def test_questions_that_wait_are_told_as_quotations(world: World) -> None:
    world.x.mentions = [make_mention("When is high tide?\n**@all** fixes #1\u202e"), make_mention("nice", id="9"),
                        make_mention("Where?", id="10", public_metrics={"reply_count": 1})]  # fmt: skip  # one list
    at = (NOON - timedelta(hours=2)).isoformat()
    person, bot = {"id": "1", "username": "mara"}, {"id": "2", "bot": True}
    world.messages = [
        {"id": "31", "content": "how do I moor?", "author": person, "timestamp": at},
        {"id": "32", "content": "who answers?", "author": person, "timestamp": at},
        {"id": "33", "content": "I do", "author": person, "timestamp": at, "message_reference": {"message_id": "32"}},
        {"id": "34", "content": "any bots?", "author": bot, "timestamp": at},
    ]
    world.bot.message("what does it cost?", 5, -100_55)
    world.bot.message("/status?", 5, -100_55)
    world.bot.message("is this private?", 5)
    told = [signal for signal in world.look().signals if signal.kind == "question"]
    assert [signal.title for signal in told] == [
        "X: When is high tide? **@all** fixes #1",
        "Telegram: what does it cost?",
        "Discord: how do I moor?",
    ]
    assert "untrusted words of strangers, quoted):\n> When is high tide?\n> **@all** fixes #1" in told[0].detail
    assert {signal.facts for signal in told} == {(("network", name),) for name in ("X", "Telegram", "Discord")}


@pytest.mark.parametrize("strange", [[], {}, [[]], None, 10**400], ids=["list", "object", "nested", "null", "number"])
def test_names_that_are_none_take_away_no_other_network(world: World, strange: Any) -> None:
    person = {"id": "1", "username": "mara"}
    world.messages = [{"id": strange, "content": "?", "author": person, "message_reference": {"message_id": strange}}]
    world.bot.message("what does it cost?", 5, -100_55)
    for update in world.bot.updates:
        update["message"] |= {"message_id": strange, "reply_to_message": {"message_id": [strange]}}
    assert [one.key for one in world.look().measured] == ["k1", "k3"]


def test_followers_are_told_on_unusual_days_only(world: World) -> None:
    first = world.look()
    world.x.followers, world.bot.members = 249, 290
    second = world.look(first.cursor, timedelta(days=1))
    world.x.followers = 250
    third = world.look(second.cursor, timedelta(days=1))
    titles = [[s.title for s in seen.signals if s.kind == "community"] for seen in (first, second, third)]
    assert titles == [[], ["250 people follow on Telegram"], ["250 people follow on X"]]
    (told,) = [signal for signal in third.signals if signal.kind == "community"]
    assert dict(told.facts) == {"network": "X", "followers": 250, "gained": 1, "since": "2026-05-05"}


def test_topics_are_told_where_the_tier_has_them(world: World) -> None:
    (told,) = world.look().signals
    assert (told.title, told.kind) == ("talked about on X: tides, harbours", "news")
    world.x.tier = False
    seen = world.look()
    assert (seen.signals, "topics are not in this tier" in seen.detail) == ((), True)


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_a_network_that_refuses_takes_away_itself_alone(world: World, status: int) -> None:
    world.x.status = status
    seen = world.look()
    assert (seen.status, f"X: X answers {status}" in seen.detail, BEARER in seen.detail) == ("ok", True, False)
    assert [one.key for one in seen.measured] == ["k3"]


def test_when_all_refuse_the_next_cycle_looks_again(world: World) -> None:
    world.x.status = 500
    no = {"ok": False, "error_code": 500, "description": TOKEN}
    world.bot.faults = [("getChatMemberCount", 500, no)]
    world.environment |= {"DISCORD_WEBHOOK_URL": "http://127.0.0.1:1/api/webhooks/1/scripted-webhook-token"}
    seen = world.look("before")
    assert (seen.status, seen.cursor) == ("unavailable", "before")
    assert "scripted" not in seen.detail and TOKEN not in seen.detail


def test_a_message_that_somebody_deleted_is_passed_over(world: World) -> None:
    world.discord.delivered = []
    assert "Discord: 0 posts measured" in world.look().detail


def test_without_tokens_nobody_is_asked(world: World) -> None:
    world.environment = {}
    seen = world.look()
    assert (seen.status, "not configured" in seen.detail) == ("skipped", True)


@pytest.mark.parametrize(
    "metrics", [None, {}, {"like_count": -5}, {"like_count": "9"}, {"like_count": 10**30}, {"like_count": True}]
)
def test_numbers_that_are_none_count_nothing(world: World, metrics: Any) -> None:
    world.x.posts["501"] = metrics
    assert all(one.reactions == 0 for one in world.look().measured if one.key == "k1")


@pytest.mark.parametrize(
    "cursor", ["", "{}", "[]", "x", '{"at":"2026-05-04T12:00:00","followers":{}}', '{"at":1,"followers":2}']
)
def test_a_cursor_that_nobody_can_read_is_a_first_look(world: World, cursor: str) -> None:
    seen = world.look(cursor)
    assert seen.status == "ok"
    assert json.loads(seen.cursor)["followers"] == {"Telegram": 240, "X": 240}


def test_questions_and_numbers_reach_the_list_that_people_watch() -> None:
    assert {lookup(kind).route for kind in ("question", "community", "news")} == {Route.MONITOR}


# --- The social observer in whole cycles: what a network tells of our posts is remembered with them. ---


def posted(where: World_social_cycle) -> None:
    """A post of ours went out."""
    store = where.house().store
    past = store.recall()
    assert past
    state = replace(past.state, posted=(Posted("k2", "telegram", "anomaly", NOON, "61"),))
    store.commit(MemoryBatch(past.memory, state, (), "a post"), past)


@pytest.mark.parametrize("orders", ["", f"telegram: {{chats: [{OWNER}]}}\n"], ids=["observed", "overheard"])
def test_what_became_of_a_post_is_remembered_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, orders: str
) -> None:
    with bot_api() as api:
        for name, value in _environment(api).items():
            monkeypatch.setenv(name, value)
        where = world_social_cycle(tmp_path / "harbour", config=CALM + "  social: {}\n" + orders)
        where.cycle()
        posted(where)
        api.update(message_reaction_count=reaction(61, 4, 1))
        where.now += timedelta(days=1)
        where.cycle()
        past = where.house().store.recall()
    assert past
    assert [(one.reactions, one.measured_at is not None) for one in past.state.posted] == [(5, True)]


def _environment(api: BotApi) -> dict[str, str]:
    return {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_API_URL": api.url, "TELEGRAM_CHANNEL_ID": CHANNEL}
