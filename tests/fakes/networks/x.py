"""X (version 2 of its API), as far as posts go: OAuth 1.0a is verified, duplicates are refused, media are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from oauthlib.oauth1 import Client
from oauthlib.oauth1.rfc5849 import signature

from tests.fakes.networks.serving import Asked, Endpoint, Refused, Server

KEY, SECRET = "scripted-consumer-key", "scripted-consumer-secret"
TOKEN, TOKEN_SECRET = "77-scripted-access-token", "scripted-access-token-secret"
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Tweet:
    """One that was delivered."""

    id: str
    text: str
    reply_to: str = ""
    media: tuple[str, ...] = ()


class XServer(Server):
    """`delivered`: the posts, oldest first; `alt`: alt texts by the id of a medium."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered: list[Tweet] = []
        self.media: dict[str, bytes] = {}
        self.alt: dict[str, str] = {}
        self.metrics: dict[str, Mapping[str, int]] = {}
        self.username = "ralph_of_tests"

    @property
    def environment(self) -> dict[str, str]:
        """What a process is told of it."""
        return {
            "TWITTER_API_URL": self.url,
            "TWITTER_API_KEY": KEY,
            "TWITTER_API_SECRET": SECRET,
            "TWITTER_ACCESS_TOKEN": TOKEN,
            "TWITTER_ACCESS_TOKEN_SECRET": TOKEN_SECRET,
        }

    @property
    def texts(self) -> list[str]:
        """What was delivered, in words."""
        return [tweet.text for tweet in self.delivered]

    def endpoints(self) -> Mapping[tuple[str, str], Endpoint]:
        return {
            ("POST", "/2/tweets"): self._post,
            ("POST", "/2/media/upload"): self._upload,
            ("POST", "/2/media/metadata"): self._describe,
            ("GET", "/2/users/me"): self._me,
        }

    def _me(self, asked: Asked) -> Mapping[str, Any]:
        _signed(asked)
        return {"data": {"id": "77", "name": "Ralph", "username": self.username}}

    def _post(self, asked: Asked) -> Mapping[str, Any]:
        _signed(asked)
        body = dict(asked.fields)
        text, reply, media = body.pop("text", ""), body.pop("reply", {}), body.pop("media", {})
        if body or set(reply) - {"in_reply_to_tweet_id"} or set(media) - {"media_ids"}:
            raise _problem(400, "Invalid Request", f"unknown fields: {body} {reply} {media}")
        if not _valid(text):
            raise _problem(400, "Invalid Request", "text is empty or too long")
        self._known(reply.get("in_reply_to_tweet_id", ""), media.get("media_ids", []))
        if text in self.texts:
            self.twice.append(text)
            raise _problem(403, "Forbidden", "You are not allowed to create a Tweet with duplicate content.")
        ids = tuple(media.get("media_ids", []))
        tweet = Tweet(str(1_700_000_000_000_000_001 + len(self.delivered)), text, _target(reply), ids)
        self.delivered.append(tweet)
        return {"data": {"id": tweet.id, "text": text, "edit_history_tweet_ids": [tweet.id]}}

    def _known(self, reply_to: str, media: list[str]) -> None:
        if reply_to and reply_to not in {tweet.id for tweet in self.delivered}:
            raise _problem(403, "Forbidden", "You attempted to reply to a Tweet that is deleted or not visible to you.")
        if set(media) - set(self.media):
            raise _problem(400, "Invalid Request", "Your media IDs are invalid.")

    def _upload(self, asked: Asked) -> Mapping[str, Any]:
        _signed(asked)
        _, content = asked.files.get("media", ("", b""))
        if set(asked.fields) != {"media_category"} or asked.fields["media_category"] != "tweet_image":
            raise _problem(400, "Invalid Request", "media_category is not what it may be")
        if not content.startswith(PNG):
            raise _problem(400, "Invalid Request", "media is no picture")
        name = str(880_000 + len(self.media))
        self.media[name] = content
        return {"data": {"id": name, "media_key": f"3_{name}", "size": len(content), "expires_after_secs": 86400}}

    def _describe(self, asked: Asked) -> Mapping[str, Any]:
        _signed(asked)
        text = asked.fields.get("metadata", {}).get("alt_text", {}).get("text", "")
        name = asked.fields.get("id", "")
        if set(asked.fields) != {"id", "metadata"} or name not in self.media or not 0 < len(text) <= 1000:
            raise _problem(400, "Invalid Request", "no such medium, or a text that is empty or too long")
        self.alt[name] = text
        return {"data": {"id": name, "associated_metadata": {"alt_text": {"text": text}}}}


def _target(reply: Mapping[str, str]) -> str:
    return reply.get("in_reply_to_tweet_id", "")


def _problem(status: int, title: str, detail: str) -> Refused:
    body = {"title": title, "type": "about:blank", "status": status, "detail": detail}
    return Refused(status, body)


def _valid(text: str) -> bool:
    from twitter_text.parse_tweet import parse_tweet  # 0.4 seconds, and few tests post

    return parse_tweet(text).valid


def _signed(asked: Asked) -> None:
    """Refuses a request whose OAuth 1.0a signature is not that of our keys."""
    header = {"Authorization": asked.headers.get("authorization", "")}
    query = urlsplit(asked.url).query
    told = signature.collect_parameters(query, headers=header, exclude_oauth_signature=False)
    given = {name: value for name, value in told if name.startswith("oauth_")}
    mine = [(name, value) for name, value in told if name != "oauth_signature"]
    if not asked.files and "urlencoded" in asked.headers.get("content-type", ""):
        mine += [(name, str(value)) for name, value in asked.fields.items()]
    base = signature.signature_base_string(
        asked.method, signature.base_string_uri(asked.url), signature.normalize_parameters(mine)
    )
    wanted = signature.sign_hmac_sha1_with_client(base, Client(KEY, SECRET, TOKEN, TOKEN_SECRET))
    whose = (given.get("oauth_consumer_key"), given.get("oauth_token"), given.get("oauth_signature"))
    if whose != (KEY, TOKEN, wanted):
        raise _problem(401, "Unauthorized", "Unauthorized")
