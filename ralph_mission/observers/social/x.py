"""X by version 2 of its API, with a bearer token: our posts, who asks us something, topics where the tier has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ralph_mission.extras import require_extra
from ralph_mission.mission.posts import Measured, Posted
from ralph_mission.observers.social.seen import (
    NetworkNews,
    NetworkQuestion,
    is_question,
    number,
    ours,
    questions,
    topics,
)
from ralph_mission.observers.social.settings import SocialSettings
from ralph_mission.observers.text import count_noun
from ralph_mission.trouble import UserError

X_NAME = "X"
X_NETWORK = "twitter"
USUAL = "https://api.twitter.com"  # what tweepy says, whatever the place is called today
X_AT_ONCE = 100  # posts of one request, as many as there may be
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
        """Everything that is asked of it. Raises Trouble when it says nothing about our own posts or account."""
        client = self._client()
        measured = self._measured(client, ours(posted, X_NETWORK))
        account, mentioned = self._account(client) if self.settings.account else (None, ())
        names, remark = self._topics(client) if self.settings.trends else ((), "")
        asked = questions(X_NAME, mentioned, now)
        told = (count_noun(len(measured), "post") + " measured", count_noun(len(asked), "question"), remark)
        return NetworkNews(", ".join(filter(None, told)), measured, (*asked, *topics(X_NAME, names, now)), account)

    def _client(self) -> Any:
        require_extra("x", "reading X needs")
        import requests
        import tweepy  # both take a while to load

        from ralph_mission.gateways.networks import open_session

        client = tweepy.Client(self.token, return_type=requests.Response, wait_on_rate_limit=False)
        client.session = open_session(self.seconds, {USUAL: self.api})
        return client

    def _measured(self, client: Any, posts: Mapping[str, Posted]) -> tuple[Measured, ...]:
        ids = [id for id in posts if id.isascii() and id.isdigit()][:X_AT_ONCE]
        if not ids:
            return ()
        found = _data(lambda: client.get_tweets(ids, tweet_fields=["public_metrics"]))
        told = ((posts.get(str(one.get("id"))), one.get("public_metrics")) for one in _objects(found))
        return tuple(_measure(post, metrics) for post, metrics in told if post and isinstance(metrics, dict))

    def _account(self, client: Any) -> tuple[int | None, tuple[NetworkQuestion, ...]]:
        name = (self.settings.account or "").lstrip("@")
        user = _data(lambda: client.get_user(username=name, user_fields=["public_metrics"]))
        if not isinstance(user, dict) or not str(user.get("id", "")).isdigit():
            raise UserError(f"X knows no account {name}", "mend observers.social.account in ralph.yml")
        fields = ["created_at", "public_metrics"]
        found = _data(lambda: client.get_users_mentions(user["id"], tweet_fields=fields, max_results=50))
        metrics = user.get("public_metrics")
        followers = number(metrics.get("followers_count")) if isinstance(metrics, dict) else None
        return followers, tuple(asked for one in _objects(found) if (asked := _open_mention(one)))

    def _topics(self, client: Any) -> tuple[tuple[str, ...], str]:
        """Names, or why there are none: a tier that lacks them is no failure."""
        route = f"/2/trends/by/woeid/{self.settings.trends}"
        try:
            found = _data(lambda: client.request("GET", route))
        except UserError as trouble:
            lacking = any(f"answers {status}" in trouble.what for status in (402, 403, 404))
            return (), NOT_HERE if lacking else f"no topics ({trouble.what})"
        names = tuple(one["trend_name"] for one in _objects(found) if isinstance(one.get("trend_name"), str))
        return names, count_noun(len(names), "topic")


def _data(call: Callable[[], Any]) -> Any:
    """The `data` of an answer, None where there is none. Raises Trouble; words of exceptions may hold anything."""
    import tweepy

    from ralph_mission.gateways.networks import ask_network, refusal

    try:
        body = ask_network(X_NAME, call).json()
    except tweepy.HTTPException as error:
        raise refusal(X_NAME, error.response.status_code) from None
    except (tweepy.TweepyException, ValueError, RecursionError):
        what = "X answers with something that nobody can read"
        raise UserError(what, "look at TWITTER_API_URL", who="network") from None
    return body.get("data") if isinstance(body, dict) else None


def _objects(found: object) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _measure(post: Posted, metrics: Mapping[str, object]) -> Measured:
    reactions = sum(number(metrics.get(name)) for name in REACTIONS)
    return Measured(post.key, reactions, number(metrics.get("impression_count")))


def _open_mention(found: Mapping[str, Any]) -> NetworkQuestion | None:
    """A mention that asks something and that nobody replied to."""
    id, text, metrics = str(found.get("id", "")), found.get("text"), found.get("public_metrics")
    replied = number(metrics.get("reply_count")) if isinstance(metrics, dict) else 0
    if not (id.isascii() and id.isdigit() and isinstance(text, str) and is_question(text)) or replied:
        return None
    with suppress(ValueError):
        at = datetime.fromisoformat(str(found.get("created_at")))
        return NetworkQuestion(id, text, at if at.tzinfo else at.replace(tzinfo=UTC), f"https://x.com/i/status/{id}")
    return None
