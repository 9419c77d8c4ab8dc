"""Networks that take posts: X, Telegram and Discord.

A request is bounded in time and bytes, without retries or redirects, and never quoted, as URLs and exceptions may
contain a secret. Failures are classified by the question that counts: may the request have got through?

X by version 2 of its API through tweepy, as a user (OAuth 1.0a). A duplicate that X refuses is already out, so it
counts as delivered. Media use `/2/media/upload`, which tweepy does not support yet; the old endpoint is closed.
Telegram by a bot: its texts are plain, escaped for the parse mode HTML. Discord by a webhook, whose messages never
mention anybody.
"""

from __future__ import annotations

import html
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

import requests

from ralph_mission.adapters.http.client import HttpLimits, HttpSession, NoAnswer
from ralph_mission.adapters.publishers.channel import Channel, Draw, read_secrets
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
from ralph_mission.mission.model.effects import Fate, Receipt
from ralph_mission.mission.model.forge import Chart, Post
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.mission.publishing.texts import units
from ralph_mission.safety.text import inline_words, truncate
from ralph_mission.values import compile_regex, dataclass

PATIENCE = 20.0  # seconds to connect, and between pieces of an answer
WHOLE = 60.0  # seconds for a request and its answer
BYTES = 1_000_000  # of an answer
LONGEST = 300  # characters of a detail


@dataclass(frozen=True, slots=True)
class Answer:
    """A network's answer. `status` 0: none; then `sent`: whether the request may have got through, and `why`. `body` is
    {} if the answer is not a JSON object."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: bool = True
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded, even with an unreadable body."""
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """The network's own words about a failure, by whatever name it has for them, or ""."""
        words = (self.body.get(name) for name in ("detail", "title", "description", "message"))
        return inline_words(next((one for one in words if isinstance(one, str) and one), ""), 120)

    def part(self, name: str) -> Mapping[str, Any]:
        """An object in the body, or {}."""
        found = self.body.get(name)
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of a part: `id` and `url` of the network; `detail`, `reason` and `wait` as in a receipt."""

    status: Fate
    id: str = ""
    url: str = ""
    detail: str = ""
    wait: float = 0.0
    reason: FailureReason | None = None

    @property
    def out(self) -> bool:
        """Whether it is public."""
        return self.status in ("done", "adopted")


def open_session(patience: float = PATIENCE, rewrite: Mapping[str, str] | None = None) -> HttpSession:
    """A session with a new connection for each request. `rewrite` replaces beginnings of URLs."""
    return HttpSession(HttpLimits(WHOLE, patience, BYTES), rewrite)


def ask(call: Callable[[], requests.Response]) -> Answer:
    """Make a request. Never raises for network failures, nor quotes exceptions, which may contain a secret."""
    try:
        response = call()
    except NoAnswer as error:
        return Answer(0, sent=error.sent, why=str(error))
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    return Answer(response.status_code, body if isinstance(body, Mapping) else {}, response.headers)


def no(network: str, answer: Answer, hints: Mapping[int, str], wait: object = None) -> PartResult:
    """The result of a post without a clear success. `hints`: what to do, by status."""
    if not answer.sent:
        return PartResult("failed", detail=f"{network} {answer.why}", reason=FailureReason.LATER)
    if answer.status == 429:
        seconds = _seconds(wait if wait is not None else answer.headers.get("retry-after"))
        detail = f"{network} asks to wait{f' {seconds:.0f} s' if seconds else ''}"
        return PartResult("failed", detail=detail, wait=seconds, reason=FailureReason.LATER)
    if not answer.status or answer.ok or answer.status == 408 or answer.status >= 500:
        plain = "accepted it without saying what it made of it" if answer.ok else f"answered {answer.status}"
        return PartResult("unknown", detail=f"{network} {answer.why or plain}: look there whether it is out")
    hint = hints.get(answer.status, "") or f"look at what {network} says of it"
    reason = f" ({answer.reason})" if answer.reason else ""
    return PartResult("failed", detail=f"{network} refuses it with {answer.status}{reason}: {hint}")


def _seconds(wait: object) -> float:
    """The waiting time a network asks for, if plausible, else 0."""
    try:
        seconds = float(wait) if isinstance(wait, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0 < seconds < 10**7 else 0.0


def base(environment: Mapping[str, str], name: str, usual: str) -> str:
    """The base URL of a network's API: from the environment, else the default. Raises UserError."""
    url = environment.get(name, "").strip().rstrip("/") or usual
    if not url.startswith(("https://", "http://")) or "@" in url or any(one.isspace() for one in url):
        raise UserError(f"{name} is not an address", f"set {name} to one that begins with https://, or unset it")
    return url


def in_order(key: str, parts: Sequence[str], say: Callable[[int, str, str], PartResult]) -> Receipt:
    """Send each part once, in order: `say` gets its index, its text and the last known id.

    Once the first part is out, the receipt says so, and what is missing; doubt about a later part is doubt about the
    whole.
    """
    first = last = say(0, parts[0], "")
    if not first.out:
        return Receipt(key, first.status, detail=first.detail[:LONGEST], wait=first.wait, reason=first.reason)
    for at, part in enumerate(parts[1:], 1):
        if not last.id:  # nothing to reply to: a second part alone makes no sense
            return _receipt(key, first.status, first, f"{first.detail}; the other parts were not sent")
        now = say(at, part, last.id)
        if not now.out:
            detail = f"{at} of {len(parts)} parts are out; {now.detail}"
            return _receipt(key, "unknown" if now.status == "unknown" else first.status, first, detail)
        last = now if now.id else last
    return _receipt(key, first.status, first, first.detail)


def _receipt(key: str, status: Fate, first: PartResult, detail: str) -> Receipt:
    name = f"id={first.id} " if first.id else ""
    return Receipt(key, status, url=first.url, detail=f"{name}{detail}".strip()[:LONGEST])


# --- X --------------------------------------------------------------------------------

X_KEYS = ("TWITTER_API_KEY", "TWITTER_API_SECRET", "TWITTER_ACCESS_TOKEN", "TWITTER_ACCESS_TOKEN_SECRET")
X_API = "https://api.twitter.com"  # as in tweepy's messages
X_ALT = 1_000  # characters
X_HINT = f"look at {', '.join(X_KEYS)} and whether the app may write"
X_HINTS = {401: X_HINT, 403: X_HINT, 402: "the plan of the account does not include it"}
DUPLICATE = 187


@dataclass(frozen=True, slots=True)
class TwitterChannel:
    """X, with a user's keys of an app."""

    url: str
    keys: Sequence[str] = field(repr=False)
    draw: Draw
    patience: float = PATIENCE
    network: str = "twitter"

    def publish(self, key: str, post: Post) -> Receipt:
        """A post, or a thread of replies to it; the chart goes with the first part."""
        client = self._client()
        media = self._medium(client, post.chart) if post.chart else ""
        return in_order(key, post.parts, lambda at, part, to: self._say(client, part, to, "" if at else media))

    def find(self, key: str) -> Receipt | None:
        """None: earlier posts are not searched."""
        return None

    def check(self) -> str:
        """The posting user. Raises UserError."""
        client = self._client()
        answer = self._call_tweepy(lambda: client.get_me(user_auth=True))
        name = answer.part("data").get("username")
        if not answer.ok or not isinstance(name, str):
            raise UserError(no("X", answer, X_HINTS).detail, X_HINT)
        return f"as {inline_words(name, 60)}"

    def _client(self) -> Any:
        import tweepy  # takes a while to load

        client = tweepy.Client(None, *self.keys, return_type=requests.Response, wait_on_rate_limit=False)
        client.session = open_session(self.patience, {X_API: self.url})
        return client

    def _say(self, client: Any, text: str, to: str, medium: str) -> PartResult:
        more: dict[str, Any] = {"in_reply_to_tweet_id": to} if to else {}
        more |= {"media_ids": [medium]} if medium else {}
        answer = self._call_tweepy(lambda: client.create_tweet(text=text, **more))
        name = answer.part("data").get("id")
        if answer.ok and isinstance(name, str) and name.isdigit():
            return PartResult("done", name, f"https://x.com/i/status/{name}")
        if answer.status == 403 and _duplicate(answer):
            return PartResult("adopted", detail="X has it already: it refuses a duplicate")
        reset = answer.headers.get("x-rate-limit-reset", "")
        wait = int(reset) - time.time() if reset.isdecimal() and len(reset) < 12 else None
        return no("X", answer, X_HINTS, wait)

    def _medium(self, client: Any, chart: Chart) -> str:
        """The media id of the chart, or "": a failure never blocks the text."""
        picture = self.draw(chart)
        if not picture:
            return ""
        files = {"media": ("chart.png", picture, "image/png")}
        answer = self._post(client, "/2/media/upload", data={"media_category": "tweet_image"}, files=files)
        name = answer.part("data").get("id")
        if not answer.ok or not isinstance(name, str):
            return ""
        alt = {"id": name, "metadata": {"alt_text": {"text": truncate(chart.alt, X_ALT)}}}
        return name if self._post(client, "/2/media/metadata", json=alt).ok else ""

    def _post(self, client: Any, path: str, **content: Any) -> Answer:
        from tweepy import OAuth1UserHandler

        sign = OAuth1UserHandler(*self.keys).apply_auth()
        return ask(lambda: client.session.request("POST", X_API + path, auth=sign, **content))

    def _call_tweepy(self, call: Callable[[], requests.Response]) -> Answer:
        """tweepy's answer, which its exceptions also hold."""
        from tweepy import HTTPException

        def get_response() -> requests.Response:
            try:
                return call()
            except HTTPException as refusal:
                return cast("requests.Response", refusal.response)
            except (ValueError, AttributeError, TypeError):  # it fails on bodies that X never sends
                raise NoAnswer("gave no answer that can be read") from None

        return ask(get_response)


def _duplicate(answer: Answer) -> bool:
    errors = answer.body.get("errors")
    codes = [one.get("code") for one in errors if isinstance(one, Mapping)] if isinstance(errors, list) else []
    return DUPLICATE in codes or "duplicate content" in str(answer.body.get("detail", "")).lower()


def build_twitter(draw: Draw, environment: Mapping[str, str] = os.environ) -> TwitterChannel:
    """Build it. Raises Unset without its secrets, UserError for an invalid URL or without the extra."""
    keys = read_secrets(environment, X_KEYS, "twitter")
    require_extra("x", "posts on X need")
    return TwitterChannel(base(environment, "TWITTER_API_URL", X_API), keys, draw)


# --- Telegram -------------------------------------------------------------------------

BOT_KEYS = ("TELEGRAM_BOT_TOKEN", "TELEGRAM_CHANNEL_ID")
BOT_API = "https://api.telegram.org"
CAPTION = 1_024  # UTF-16 units
BOT_HINT = f"look at {' and '.join(BOT_KEYS)}, and whether the bot may write there"
BOT_HINTS = dict.fromkeys((400, 401, 403, 404), BOT_HINT)


@dataclass(frozen=True, slots=True)
class TelegramChannel:
    """A chat, channel or group, through a bot. Its token is part of every URL."""

    url: str
    token: str = field(repr=False)
    chat: str
    draw: Draw
    patience: float = PATIENCE
    network: str = "telegram"

    def publish(self, key: str, post: Post) -> Receipt:
        """Send a message for each part. The chart has the first as its caption, or else follows."""
        picture = self.draw(post.chart) if post.chart else b""
        return in_order(key, post.parts, lambda at, part, to: self._say(part, to, b"" if at else picture))

    def find(self, key: str) -> Receipt | None:
        """None: a bot cannot read a chat's history."""
        return None

    def check(self) -> str:
        """Which bot writes in which chat. Raises UserError."""
        bot = self._get("getMe").get("username")
        chat = self._get("getChat", chat_id=self.chat)
        title = chat.get("title") or chat.get("username") or "a private chat"
        return f"as {inline_words(str(bot), 60)} in {inline_words(str(title), 60)}"

    def _get(self, method: str, **query: str) -> Mapping[str, Any]:
        answer = self._ask("GET", method, params=query)
        if _result(answer) is None:
            raise UserError(_refused(answer).detail, BOT_HINT)
        return _result(answer) or {}

    def _say(self, text: str, to: str, picture: bytes) -> PartResult:
        if picture and units(text) <= CAPTION:
            first = self._photo(picture, to, caption=html.escape(text, quote=False), parse_mode="HTML")
            if first.status != "failed" or first.reason is FailureReason.LATER:
                return first
            picture = b""  # refused, so certainly not there
        answer = self._post("sendMessage", to, text=html.escape(text, quote=False), parse_mode="HTML")
        result = self._part_result(answer)
        if picture and result.out:
            self._photo(picture, result.id)
        return result

    def _photo(self, picture: bytes, to: str, **fields: str) -> PartResult:
        data = {"chat_id": self.chat, **fields, **({"reply_parameters": json.dumps(_reply(to))} if to else {})}
        files = {"photo": ("chart.png", picture, "image/png")}
        return self._part_result(self._ask("POST", "sendPhoto", data=data, files=files))

    def _post(self, method: str, to: str, **fields: object) -> Answer:
        more = {"reply_parameters": _reply(to)} if to else {}
        return self._ask("POST", method, json={"chat_id": self.chat, **fields, **more})

    def _ask(self, verb: str, method: str, **content: Any) -> Answer:
        url = f"{self.url}/bot{self.token}/{method}"
        return ask(lambda: open_session(self.patience).request(verb, url, **content))

    def _part_result(self, answer: Answer) -> PartResult:
        result = _result(answer)
        name = result.get("message_id") if result else None
        if result and isinstance(name, int):
            return PartResult("done", str(name), _link(result, name))
        return _refused(answer)


def _reply(to: str) -> dict[str, object]:
    return {"message_id": int(to), "allow_sending_without_reply": True}


def _result(answer: Answer) -> Mapping[str, Any] | None:
    result = answer.body.get("result")
    return result if answer.ok and answer.body.get("ok") is True and isinstance(result, Mapping) else None


def _refused(answer: Answer) -> PartResult:
    return no("Telegram", answer, BOT_HINTS, answer.part("parameters").get("retry_after"))


def _link(message: Mapping[str, Any], name: int) -> str:
    """The URL of a message: by name for a public chat, else for members of a channel or large group."""
    chat = message.get("chat")
    place = chat if isinstance(chat, Mapping) else {}
    user, number = str(place.get("username") or ""), str(place.get("id") or "")
    if user.isascii() and user.replace("_", "").isalnum():
        return f"https://t.me/{user}/{name}"
    return f"https://t.me/c/{number[4:]}/{name}" if number.startswith("-100") and number[4:].isdigit() else ""


def build_telegram(draw: Draw, environment: Mapping[str, str] = os.environ) -> TelegramChannel:
    """Build it. Raises Unset without its secrets, UserError for invalid ones."""
    token, chat = read_secrets(environment, BOT_KEYS, "telegram")
    if not token.replace(":", "").replace("-", "").replace("_", "").isalnum():
        raise UserError("TELEGRAM_BOT_TOKEN is not a bot token", "copy it again from @BotFather")
    return TelegramChannel(base(environment, "TELEGRAM_API_URL", BOT_API), token, chat, draw)


# --- Discord --------------------------------------------------------------------------

WEBHOOK = "DISCORD_WEBHOOK_URL"
WEBHOOK_ALT = 1_024  # characters
WEBHOOK_HINT = f"look at {WEBHOOK}, and whether the webhook still exists"
WEBHOOK_HINTS = dict.fromkeys((400, 401, 403, 404), WEBHOOK_HINT)
NOBODY: Mapping[str, list[str]] = {"parse": []}
_ADDRESS = compile_regex(r"https?://\S+/webhooks/\d+/[^/?#\s]+(?:\?thread_id=\d+)?")


@dataclass(frozen=True, slots=True)
class DiscordChannel:
    """A channel, through a webhook, whose URL is a secret."""

    url: str = field(repr=False)
    draw: Draw
    patience: float = PATIENCE
    network: str = "discord"

    def publish(self, key: str, post: Post) -> Receipt:
        """Send a message for each part; the chart goes with the first, or is left out if refused."""
        picture = self.draw(post.chart) if post.chart else b""
        receipt = in_order(key, post.parts, lambda at, part, _: self._say(part, post.chart, b"" if at else picture))
        return replace(receipt, url=self._link(receipt.detail)) if receipt.status == "done" else receipt

    def find(self, key: str) -> Receipt | None:
        """None: a webhook cannot read a channel."""
        return None

    def check(self) -> str:
        """The webhook's name. Raises UserError."""
        answer = self._ask("GET")
        if not answer.ok or "id" not in answer.body:
            raise UserError(no("Discord", answer, WEBHOOK_HINTS).detail, WEBHOOK_HINT)
        return f"as {inline_words(str(answer.body.get('name') or 'a webhook'), 60)}"

    def _link(self, detail: str) -> str:
        """The URL of the message, if the webhook reveals its server, or ""."""
        hook = self._ask("GET").body
        thread = self.url.partition("?thread_id=")[2]
        names = (hook.get("guild_id"), thread or hook.get("channel_id"), detail.partition(" ")[0].removeprefix("id="))
        known = all(isinstance(name, str) and name.isdigit() for name in names)
        return f"https://discord.com/channels/{'/'.join(map(str, names))}" if known else ""

    def _say(self, text: str, chart: Chart | None, picture: bytes) -> PartResult:
        content = {"content": text, "allowed_mentions": NOBODY}
        if chart and picture:
            shown = [{"id": 0, "filename": "chart.png", "description": truncate(chart.alt, WEBHOOK_ALT)}]
            files = {"files[0]": ("chart.png", picture, "image/png")}
            result = self._post(data={"payload_json": json.dumps({**content, "attachments": shown})}, files=files)
            if result.status != "failed" or result.reason is FailureReason.LATER:
                return result  # a refused picture does not block the text
        return self._post(json=content)

    def _post(self, **content: Any) -> PartResult:
        answer = self._ask("POST", params={"wait": "true"}, **content)
        name = answer.body.get("id")
        if answer.ok and isinstance(name, str) and name.isdigit():
            return PartResult("done", name)
        return no("Discord", answer, WEBHOOK_HINTS, answer.body.get("retry_after"))

    def _ask(self, verb: str, **content: Any) -> Answer:
        return ask(lambda: open_session(self.patience).request(verb, self.url, **content))


def build_discord(draw: Draw, environment: Mapping[str, str] = os.environ) -> DiscordChannel:
    """Build it. Raises Unset without its secret, UserError if the URL is not a webhook's."""
    read_secrets(environment, (WEBHOOK,), "discord")
    url = base(environment, WEBHOOK, "")
    if not _ADDRESS.fullmatch(url):
        raise UserError(f"{WEBHOOK} is not a webhook address", "copy it again from the channel's settings")
    return DiscordChannel(url, draw)


BUILDS: Mapping[str, Callable[[Draw, Mapping[str, str]], Channel]] = {
    "twitter": build_twitter,
    "telegram": build_telegram,
    "discord": build_discord,
}
"""By the network's name in ralph.yml."""
