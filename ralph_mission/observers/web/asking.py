"""How a source is asked: politely where it is somebody else's, by the environment's endpoint where it is a search."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ralph_mission.extras import require_extra
from ralph_mission.gateways.http.address import AddressRefused, parse_address
from ralph_mission.gateways.http.guard import GuardedWeb, WebAnswer
from ralph_mission.observers import cache
from ralph_mission.observers.result import Result
from ralph_mission.observers.web.errands import Errands
from ralph_mission.observers.web.robots import Robots
from ralph_mission.trouble import UserError

KEPT = 100_000  # characters of a robots.txt that is kept for the day


class SearchUnset(UserError):
    """Nobody said where to search."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the last answer said of itself, so that it need not be sent again."""

    etag: str
    modified: str


def search(endpoint: str, query: str, allow: Collection[str], seconds: float) -> WebAnswer:
    """Send a query. Raises Unset without an endpoint, Trouble as the web does."""
    if not endpoint:
        raise SearchUnset("not configured: nobody says where to search", "set SEARCH_URL in the environment")
    words = quote(query, safe="")
    usual = f"{endpoint.rstrip('/')}/search?format=json&q={words}"  # as SearXNG has it
    url = endpoint.replace("{query}", words) if "{query}" in endpoint else usual
    try:
        own = parse_address(url).door  # whoever names an endpoint in the environment means it, private or not
    except AddressRefused as refused:
        raise UserError(f"SEARCH_URL: {refused.what}", "set it to a plain http or https address", who="you") from None
    return GuardedWeb((*allow, own), seconds).get(url, headers={"Accept": "application/json"})


def fetch(
    web: GuardedWeb, url: str, since: Conditions, folder: Path | None, now: datetime, errands: Errands | None = None
) -> WebAnswer:
    """Ask for a page as its host's robots.txt allows, which is kept in `folder` for the day. Raises Trouble.

    `errands` ask a host for it once for all sources that look at once.
    """
    require_extra("web", "sources of the web need")
    today = cache.key("robots", f"{now:%Y-%m-%d}")
    known = {one.path: one.message for one in cache.load(folder, today) or ()}
    robots = Robots(web, dict(known), partial((errands or Errands()).once, now))
    answer = replace(web, permit=robots.permit).get(url, etag=since.etag, modified=since.modified)
    if robots.known != known:
        texts = [(origin, text) for origin, text in robots.known.items() if len(text) <= KEPT]
        cache.save(folder, today, [Result(path=origin, message=text) for origin, text in texts])
    return answer
