"""Observes social networks: what became of our posts, who asks us something, what is talked about, how many follow.

Each network is asked once in a while; one that is missing, refuses or is slow disables itself alone. Strangers' words
are quoted.

Discord: reactions to our webhook's posts; with a bot's token, questions in one channel.

Telegram by its Bot API: subscribers of the channel, reactions to our posts, questions in the bot's groups. Reactions
arrive as updates, if the bot is an administrator of the channel. Views are not in the Bot API. Updates are delivered
once: those read while looking for commands are reused, and reading here confirms none.

X by version 2 of its API, with a bearer token: our posts, who asks us something, topics where the tier has them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ralph_mission.adapters.chat import ADDRESS, ALLOWED, AT_ONCE, TOKEN, Bot, read_updates
from ralph_mission.adapters.chat import API as TELEGRAM_API
from ralph_mission.adapters.observers.looking import age_days, block, is_jump, milestone, one_line, quote, too_soon
from ralph_mission.config.observers import SocialSettings
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
from ralph_mission.mission.model.forge import Measured, Posted
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.markdown import without_invisible
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun, stamp

MOST = 10  # questions per observation and network
EXCERPT = 600  # characters of a quotation
LARGEST = 10**12  # more reactions than people exist
QUESTION = "?\uff1f\u061f"  # Latin and most others, Chinese and Japanese, Arabic
UNTRUSTED = "untrusted words of strangers, quoted"


@dataclass(frozen=True, slots=True)
class NetworkNews:
    """`words`: for people, without the network's name. `followers` None: unknown."""

    words: str
    measured: tuple[Measured, ...] = ()
    signals: tuple[Signal, ...] = ()
    followers: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkQuestion:
    """A question: `id`: the network's. `url`: where to answer it, or ""."""

    id: str
    text: str
    at: datetime
    url: str = ""


def is_question(text: str) -> bool:
    """Whether it ends with a question mark, in any script that has one."""
    return any(mark in text for mark in QUESTION)


def questions(network: str, found: Iterable[NetworkQuestion], now: datetime) -> tuple[Signal, ...]:
    """Unanswered questions, newest first."""
    newest = sorted(found, key=lambda question: question.at, reverse=True)[:MOST]
    return tuple(_question_signal(network, question, now) for question in newest)


def _question_signal(network: str, question: NetworkQuestion, now: datetime) -> Signal:
    text = without_invisible(question.text)
    where = f"{question.url or network}, {stamp(question.at)} ({UNTRUSTED})"
    return Signal(
        observer="social",
        kind="question",
        title=one_line(f"{network}: {text}"),
        essence=("social", network, question.id),
        confidence=0.6,
        detail=block(f"{where}:\n{quote(block(text, EXCERPT))}"),
        age_days=age_days(question.at, now),
        facts=(("network", network),),
    )


def following(network: str, before: int | None, now: int | None, since: datetime | None) -> tuple[Signal, ...]:
    """Followers, reported only if a round number was passed, or at a jump."""
    if before is None or now is None or since is None or now <= before:
        return ()
    gained, passed = now - before, milestone(before, now)
    facts = (("network", network), ("followers", now), ("gained", gained), ("since", f"{since:%Y-%m-%d}"))
    if passed:
        essence, title = ("social", network, "followers", str(passed)), f"{passed:,} people follow on {network}"
    elif is_jump(before, now):
        essence, title = ("social", network, "followers", "jump"), f"{gained:,} more people follow on {network}"
    else:
        return ()
    occurrence = "" if passed else f"{since:%Y-%m-%d}"
    return (Signal("social", "community", title, essence, occurrence, Severity.LOW, 0.9, facts=facts),)


def topics(network: str, names: Sequence[str], now: datetime) -> tuple[Signal, ...]:
    """Trending topics."""
    if not names:
        return ()
    listing = "\n".join(f"> {one_line(without_invisible(name), 80)}" for name in names[:MOST])
    title = one_line(f"talked about on {network}: {', '.join(without_invisible(name) for name in names[:3])}")
    detail = block(f"{network}, {now:%Y-%m-%d} ({UNTRUSTED}):\n{listing}")
    essence = ("social", network, "topics")
    return (Signal("social", "news", title, essence, f"{now:%Y-%m-%d}", Severity.LOW, 0.4, detail=detail,
                   facts=(("network", network),)),)  # fmt: skip  # one value


def ours(posted: Iterable[Posted], network: str) -> dict[str, Posted]:
    """Our posts on a network that can be measured, by the network's id."""
    return {post.id: post for post in posted if post.network == network and post.id}


def number(found: object) -> int:
    """A count in an answer, or 0."""
    return found if type(found) is int and 0 <= found <= LARGEST else 0


def _objects(found: object) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _dated_question(found: Mapping[str, Any], text: object, when: str, url: str) -> NetworkQuestion | None:
    """The question in an entry with an id of digits and an ISO time; `url` ends before its id."""
    id = str(found.get("id", ""))
    if not (id.isascii() and id.isdigit() and isinstance(text, str) and is_question(text)):
        return None
    with suppress(ValueError):
        at = datetime.fromisoformat(str(found.get(when)))
        return NetworkQuestion(id, text, at if at.tzinfo else at.replace(tzinfo=UTC), url and f"{url}{id}")
    return None


def _told_words(measured: Sequence[Measured], signals: Sequence[Signal]) -> str:
    return f"{count_noun(len(measured), 'post')} measured, {count_noun(len(signals), 'question')}"


DISCORD = "Discord"
DISCORD_API = "https://discord.com/api/v10"
DISCORD_AT_ONCE = 30  # posts per observation, each with a request
LISTED = 50  # messages of a channel


@dataclass(frozen=True, slots=True)
class DiscordReader:
    """A webhook, a bot, or both. Reading `channel` needs the bot's token."""

    webhook: str = field(repr=False)
    token: str = field(repr=False)
    api: str
    channel: str = ""
    seconds: float = 15.0

    def look(self, posted: Iterable[Posted], now: datetime) -> NetworkNews:
        """Everything that is asked of it. Raises UserError."""
        measured = tuple(self._measured(ours(posted, "discord"))) if self.webhook else ()
        signals = questions(DISCORD, self._read_questions(), now) if self.token and self.channel else ()
        return NetworkNews(_told_words(measured, signals), measured, signals)

    def _read(self, address: str, headers: Mapping[str, str] | None = None, **query: str) -> Any:
        from ralph_mission.adapters.http.client import open_session, read_json  # takes a while to load

        return read_json(DISCORD, open_session(self.seconds), address, headers, **query)

    def _measured(self, posts: Mapping[str, Posted]) -> Iterable[Measured]:
        """The metrics of messages; deleted ones are skipped."""
        address = self.webhook.partition("?")[0].rstrip("/")
        for id, post in [(id, post) for id, post in posts.items() if id.isascii() and id.isdigit()][:DISCORD_AT_ONCE]:
            try:
                found = self._read(f"{address}/messages/{id}")
            except UserError as problem:
                if problem.what.endswith("404"):
                    continue
                raise
            reactions = _objects(found.get("reactions") if isinstance(found, dict) else None)
            yield Measured(post.key, sum(number(one.get("count")) for one in reactions))

    def _read_questions(self) -> tuple[NetworkQuestion, ...]:
        address = f"{self.api.rstrip('/')}/channels/{self.channel}/messages"
        messages = _objects(self._read(address, {"Authorization": f"Bot {self.token}"}, limit=str(LISTED)))
        answered = {str(reference.get("message_id")) for one in messages
                    if isinstance(reference := one.get("message_reference"), dict)}  # fmt: skip  # one set
        waiting = (one for one in messages if str(one.get("id")) not in answered)
        return tuple(question for one in waiting if (question := _discord_question(one)))


def _discord_question(found: Mapping[str, Any]) -> NetworkQuestion | None:
    author = found.get("author")
    person = isinstance(author, dict) and not author.get("bot") and not found.get("webhook_id")
    return _dated_question(found, found.get("content"), "timestamp", "") if person else None


TELEGRAM = "Telegram"
Update = Mapping[str, Any]
Overheard = Callable[[], Sequence[Update]]
"""Updates read in this cycle while looking for commands."""


@dataclass(frozen=True, slots=True)
class TelegramReader:
    """A bot and its channel. `overheard` None: nothing else reads the bot's updates."""

    bot: Bot
    channel: str
    overheard: Overheard | None = None

    def look(self, posted: Iterable[Posted], now: datetime) -> NetworkNews:
        """Everything that is asked of it. Raises UserError."""
        members = number(self.bot.ask("getChatMemberCount", chat_id=self.channel)) if self.channel else None
        updates = self.overheard() if self.overheard else self._waiting()
        return self.heard(updates, posted, now, members)

    def heard(
        self, updates: Sequence[Update], posted: Iterable[Posted], now: datetime, members: int | None = None
    ) -> NetworkNews:
        """What updates contain, without requests."""
        measured = _measure_reactions(updates, ours(posted, "telegram"), self.channel)
        signals = questions(TELEGRAM, _open_questions(updates), now)
        return NetworkNews(_told_words(measured, signals), measured, signals, members)

    def _waiting(self) -> list[Update]:
        """The pending updates. Without an offset nothing is confirmed: they are delivered again, for a day."""
        return read_updates(self.bot.ask("getUpdates", limit=AT_ONCE, timeout=0, allowed_updates=list(ALLOWED)))


def _measure_reactions(updates: Iterable[Update], posts: Mapping[str, Posted], channel: str) -> tuple[Measured, ...]:
    """The latest count of each post."""
    found: dict[str, Measured] = {}
    for update in updates:
        update_counts = update.get("message_reaction_count")
        if not isinstance(update_counts, dict) or not _is(update_counts.get("chat"), channel):
            continue
        post, counts = posts.get(str(update_counts.get("message_id"))), update_counts.get("reactions")
        if post and isinstance(counts, list):
            total = sum(number(one.get("total_count")) for one in counts if isinstance(one, dict))
            found[post.key] = Measured(post.key, total)
    return tuple(found.values())


def _is(chat: object, channel: str) -> bool:
    """Whether this is the channel, by number or name."""
    if not isinstance(chat, dict) or not channel:
        return False
    return channel in (str(chat.get("id")), f"@{chat.get('username', '')}")


def _open_questions(updates: Iterable[Update]) -> tuple[NetworkQuestion, ...]:
    """People's unanswered questions in groups."""
    messages = [m for update in updates if isinstance(m := update.get("message"), dict)]
    answered = {_name(m, to) for m in messages if isinstance(to := m.get("reply_to_message"), dict)}
    waiting = (m for m in messages if _name(m, m) not in answered)
    return tuple(question for m in waiting if (question := _telegram_question(m)))


def _name(there: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    """The identity of a message as replies refer to it, even if the reply is unreadable."""
    return f"{_chat(there)}:{message.get('message_id')}"


def _chat(message: Mapping[str, Any]) -> object:
    chat = message.get("chat")
    return chat.get("id") if isinstance(chat, dict) else None


def _telegram_question(message: Mapping[str, Any]) -> NetworkQuestion | None:
    text, at, sender = message.get("text"), message.get("date"), message.get("from")
    chat = message.get("chat")
    group = isinstance(chat, dict) and chat.get("type") in ("group", "supergroup")
    person = isinstance(sender, dict) and sender.get("is_bot") is False
    if not (group and person and isinstance(text, str) and is_question(text)) or text.startswith("/"):
        return None
    if type(at) is not int or not 0 <= at < 2**33:
        return None
    return NetworkQuestion(_name(message, message), text, datetime.fromtimestamp(at, UTC))


X_NAME = "X"
USUAL = "https://api.twitter.com"  # as in tweepy's messages
X_AT_ONCE = 100  # posts per request, the API's maximum
NOT_HERE = "topics are not in this tier of the API"
REACTIONS = ("like_count", "retweet_count", "reply_count", "quote_count", "bookmark_count")


@dataclass(frozen=True, slots=True)
class XReader:
    """The account's public side."""

    token: str = field(repr=False)
    api: str
    settings: SocialSettings
    seconds: float = 15.0

    def look(self, posted: Iterable[Posted], now: datetime) -> NetworkNews:
        """Read everything configured. Raises UserError if it does not answer about our own posts or account."""
        client = self._client()
        measured = self._measured(client, ours(posted, "twitter"))
        account, mentioned = self._account(client) if self.settings.account else (None, ())
        names, remark = self._topics(client) if self.settings.trends else ((), "")
        signals = questions(X_NAME, mentioned, now)
        words = ", ".join(filter(None, (_told_words(measured, signals), remark)))
        return NetworkNews(words, measured, (*signals, *topics(X_NAME, names, now)), account)

    def _client(self) -> Any:
        require_extra("x", "reading X needs")
        import requests
        import tweepy  # both slow to import

        from ralph_mission.adapters.http.client import open_session

        client = tweepy.Client(self.token, return_type=requests.Response, wait_on_rate_limit=False)
        client.session = open_session(self.seconds, {USUAL: self.api})
        return client

    def _measured(self, client: Any, posts: Mapping[str, Posted]) -> tuple[Measured, ...]:
        ids = [id for id in posts if id.isascii() and id.isdigit()][:X_AT_ONCE]
        if not ids:
            return ()
        found = _data(lambda: client.get_tweets(ids, tweet_fields=["public_metrics"]))
        pairs = ((posts.get(str(one.get("id"))), one.get("public_metrics")) for one in _objects(found))
        return tuple(_measure(post, metrics) for post, metrics in pairs if post and isinstance(metrics, dict))

    def _account(self, client: Any) -> tuple[int | None, tuple[NetworkQuestion, ...]]:
        name = (self.settings.account or "").lstrip("@")
        user = _data(lambda: client.get_user(username=name, user_fields=["public_metrics"]))
        if not isinstance(user, dict) or not str(user.get("id", "")).isdigit():
            raise UserError(f"X knows no account {name}", "fix observers.social.account in ralph.yml")
        fields = ["created_at", "public_metrics"]
        found = _data(lambda: client.get_users_mentions(user["id"], tweet_fields=fields, max_results=50))
        metrics = user.get("public_metrics")
        followers = number(metrics.get("followers_count")) if isinstance(metrics, dict) else None
        return followers, tuple(question for one in _objects(found) if (question := _open_mention(one)))

    def _topics(self, client: Any) -> tuple[tuple[str, ...], str]:
        """Names, or why there are none: an API tier without them is no failure."""
        route = f"/2/trends/by/woeid/{self.settings.trends}"
        try:
            found = _data(lambda: client.request("GET", route))
        except UserError as problem:
            lacking = any(f"answers {status}" in problem.what for status in (402, 403, 404))
            return (), NOT_HERE if lacking else f"no topics ({problem.what})"
        names = tuple(one["trend_name"] for one in _objects(found) if isinstance(one.get("trend_name"), str))
        return names, count_noun(len(names), "topic")


def _data(call: Callable[[], Any]) -> Any:
    """The `data` of an answer, or None. Raises UserError, without quoting exceptions."""
    import tweepy

    from ralph_mission.adapters.http.client import ask_network, refusal

    try:
        body = ask_network(X_NAME, call).json()
    except tweepy.HTTPException as error:
        raise refusal(X_NAME, error.response.status_code) from None
    except (tweepy.TweepyException, ValueError, RecursionError):
        what = "X answers with something unreadable"
        raise UserError(what, "look at TWITTER_API_URL", who="network") from None
    return body.get("data") if isinstance(body, dict) else None


def _measure(post: Posted, metrics: Mapping[str, object]) -> Measured:
    reactions = sum(number(metrics.get(name)) for name in REACTIONS)
    return Measured(post.key, reactions, number(metrics.get("impression_count")))


def _open_mention(found: Mapping[str, Any]) -> NetworkQuestion | None:
    """A mention with an unanswered question."""
    metrics = found.get("public_metrics")
    replied = number(metrics.get("reply_count")) if isinstance(metrics, dict) else 0
    return None if replied else _dated_question(found, found.get("text"), "created_at", "https://x.com/i/status/")


OBSERVER = "social"
FRESH = timedelta(days=30)  # older posts are not reacted to any more, or not for what they were
NOTHING = "not configured: no network has its token in the environment (docs/publishing.md)"


Network = DiscordReader | TelegramReader | XReader


@dataclass(frozen=True, slots=True)
class Before:
    """What is remembered from look to look: when it was, and how many followed us on each network."""

    at: datetime | None = None
    followers: Mapping[str, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Before:
        """From the memory file; what cannot be read is a first look."""
        try:
            found = json.loads(text)
            at, counts = datetime.fromisoformat(found["at"]), dict(found["followers"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return cls()
        good = at.tzinfo and all(type(count) is int and 0 <= count <= LARGEST for count in counts.values())
        return cls(at, counts) if good else cls()

    def dump(self) -> str:
        """On one line."""
        at = self.at.isoformat(timespec="seconds") if self.at else None
        return json.dumps({"at": at, "followers": dict(self.followers or {})}, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Social:
    """`networks` by the names that people know. `posted` gives what went out, newest first."""

    networks: Mapping[str, Network]
    every: timedelta
    posted: Callable[[], Iterable[Posted]]
    name: str = OBSERVER

    def observe(self, context: ObservationContext) -> Observation:
        """One look at all of them; within `every` only what came by itself."""
        if not self.networks:
            return Observation(self.name, "skipped", detail=NOTHING, cursor=context.cursor)
        before = Before.parse(context.cursor)
        posts = [post for post in self.posted() if context.now - post.at < FRESH]
        if soon := too_soon(self.name, before.at, self.every, context):
            return self._in_between(soon, posts, context)
        return self._look(before, posts, context)

    def _look(self, before: Before, posts: list[Posted], context: ObservationContext) -> Observation:
        news, problems = dict[str, NetworkNews](), dict[str, str]()
        for name, network in self.networks.items():
            try:
                news[name] = network.look(posts, context.now)
            except UserError as problem:
                problems[name] = f"{problem.what}; {problem.next_step}"
        known = dict(before.followers or {})
        now = known | {name: one.followers for name, one in news.items() if one.followers is not None}
        signals = tuple(s for name in news for s in following(name, known.get(name), now.get(name), before.at))
        words = [f"{name}: {news[name].words if name in news else problems[name]}" for name in self.networks]
        found = self._build_observation(news.values(), "; ".join(words), Before(context.now, now).dump())
        if not news:
            return replace(found, status="unavailable", cursor=context.cursor)
        return replace(found, signals=(*found.signals, *signals))

    def _in_between(self, soon: Observation, posts: list[Posted], context: ObservationContext) -> Observation:
        """Telegram delivers an update once: what was read while looking for commands counts before the next look."""
        chat = self.networks.get("Telegram")
        updates = chat.overheard() if isinstance(chat, TelegramReader) and chat.overheard else ()
        if not updates or not isinstance(chat, TelegramReader):
            return soon
        news = chat.heard(updates, posts, context.now)
        return self._build_observation([news], f"{soon.detail}; Telegram: {news.words}", context.cursor)

    def _build_observation(self, news: Iterable[NetworkNews], detail: str, cursor: str) -> Observation:
        every = list(news)
        signals = tuple(signal for one in every for signal in one.signals)
        measured = tuple(number for one in every for number in one.measured)
        return Observation(self.name, "ok", signals, detail=detail, cursor=cursor, complete=False, measured=measured)


def build(
    settings: SocialSettings,
    posted: Callable[[], Iterable[Posted]],
    overheard: Overheard | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Social:
    """The observer of every network that has its token in the environment."""
    return Social(dict(find_networks(settings, environment, overheard)), settings.every, posted)


def find_networks(
    settings: SocialSettings, environment: Mapping[str, str], overheard: Overheard | None = None
) -> Iterator[tuple[str, Network]]:
    """Those that can be asked, by the names that people know."""
    if bearer := environment.get("TWITTER_BEARER_TOKEN"):
        yield X_NAME, XReader(bearer, environment.get("TWITTER_API_URL") or USUAL, settings)
    if token := environment.get(TOKEN):
        bot = Bot(token, environment.get(ADDRESS) or TELEGRAM_API)
        yield TELEGRAM, TelegramReader(bot, environment.get("TELEGRAM_CHANNEL_ID", ""), overheard)
    hook, token = environment.get("DISCORD_WEBHOOK_URL", ""), environment.get("DISCORD_BOT_TOKEN", "")
    if hook or (token and settings.channel):
        api = environment.get("DISCORD_API_URL") or DISCORD_API
        yield DISCORD, DiscordReader(hook, token, api, settings.channel or "")
