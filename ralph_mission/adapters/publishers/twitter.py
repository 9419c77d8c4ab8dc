"""X: posts by version 2 of its API through tweepy, as a user (OAuth 1.0a).

A duplicate that X refuses is already out, so it counts as delivered. Media use `/2/media/upload`, which tweepy does not
support yet; the old endpoint is closed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import requests

from ralph_mission.adapters.http.client import NoAnswer
from ralph_mission.adapters.publishers.channel import Draw, read_secrets
from ralph_mission.adapters.publishers.publisher import PartResult, in_order
from ralph_mission.adapters.publishers.wire import PATIENCE, Answer, ask, base, no, open_session
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Chart, Post
from ralph_mission.safety.text import inline_words, truncate
from ralph_mission.values import dataclass

NAMES = ("TWITTER_API_KEY", "TWITTER_API_SECRET", "TWITTER_ACCESS_TOKEN", "TWITTER_ACCESS_TOKEN_SECRET")
USUAL = "https://api.twitter.com"  # as in tweepy's messages
DUPLICATE = 187
ALT = 1_000  # characters
KEYS = f"look at {', '.join(NAMES)} and whether the app may write"
HINTS = {401: KEYS, 403: KEYS, 402: "the plan of the account does not include it"}


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
        answer = self._asked(lambda: client.get_me(user_auth=True))
        name = _data(answer).get("username")
        if not answer.ok or not isinstance(name, str):
            raise UserError(no("X", answer, _reason(answer), HINTS).detail, KEYS)
        return f"as {inline_words(name, 60)}"

    def _client(self) -> Any:
        import tweepy  # takes a while to load

        client = tweepy.Client(None, *self.keys, return_type=requests.Response, wait_on_rate_limit=False)
        client.session = open_session(self.patience, {USUAL: self.url})
        return client

    def _say(self, client: Any, text: str, to: str, medium: str) -> PartResult:
        more: dict[str, Any] = {"in_reply_to_tweet_id": to} if to else {}
        more |= {"media_ids": [medium]} if medium else {}
        answer = self._asked(lambda: client.create_tweet(text=text, **more))
        name = _data(answer).get("id")
        if answer.ok and isinstance(name, str) and name.isdigit():
            return PartResult("done", name, f"https://x.com/i/status/{name}")
        if answer.status == 403 and _duplicate(answer):
            return PartResult("adopted", detail="X has it already: it refuses a duplicate")
        return no("X", answer, _reason(answer), HINTS, _wait(answer))

    def _medium(self, client: Any, chart: Chart) -> str:
        """The media id of the chart, or "": a failure never blocks the text."""
        picture = self.draw(chart)
        if not picture:
            return ""
        files = {"media": ("chart.png", picture, "image/png")}
        answer = self._post(client, "/2/media/upload", data={"media_category": "tweet_image"}, files=files)
        name = _data(answer).get("id")
        if not answer.ok or not isinstance(name, str):
            return ""
        alt = {"id": name, "metadata": {"alt_text": {"text": truncate(chart.alt, ALT)}}}
        return name if self._post(client, "/2/media/metadata", json=alt).ok else ""

    def _post(self, client: Any, path: str, **content: Any) -> Answer:
        from tweepy import OAuth1UserHandler

        sign = OAuth1UserHandler(*self.keys).apply_auth()
        return ask(lambda: client.session.request("POST", USUAL + path, auth=sign, **content))

    def _asked(self, call: Callable[[], requests.Response]) -> Answer:
        """tweepy's answer, which its exceptions also hold."""
        from tweepy import HTTPException

        def told() -> requests.Response:
            try:
                return call()
            except HTTPException as refusal:
                return cast("requests.Response", refusal.response)
            except (ValueError, AttributeError, TypeError):  # it fails on bodies that X never sends
                raise NoAnswer("gave no answer that can be read") from None

        return ask(told)


def build(draw: Draw, environment: Mapping[str, str] = os.environ) -> TwitterChannel:
    """Build it. Raises Unset without its secrets, UserError for an invalid URL or without the extra."""
    keys = read_secrets(environment, NAMES, "twitter")
    require_extra("x", "posts on X need")
    return TwitterChannel(base(environment, "TWITTER_API_URL", USUAL), keys, draw)


def _data(answer: Answer) -> Mapping[str, Any]:
    data = answer.body.get("data")
    return data if isinstance(data, Mapping) else {}


def _reason(answer: Answer) -> str:
    detail = answer.body.get("detail") or answer.body.get("title")
    return inline_words(detail, 120) if isinstance(detail, str) else ""


def _wait(answer: Answer) -> float | None:
    """Seconds until X accepts requests again, or None."""
    reset = answer.headers.get("x-rate-limit-reset", "")
    return int(reset) - time.time() if reset.isdecimal() and len(reset) < 12 else None


def _duplicate(answer: Answer) -> bool:
    errors = answer.body.get("errors")
    codes = [one.get("code") for one in errors if isinstance(one, Mapping)] if isinstance(errors, list) else []
    return DUPLICATE in codes or "duplicate content" in str(answer.body.get("detail", "")).lower()
