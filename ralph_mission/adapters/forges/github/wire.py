"""How requests to GitHub are sent: by PyGithub's requester over our client, without anything it would do on its own.

It follows a 301 even for a POST, which sends it a second time; so it is handed answers in which it finds nothing to
follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import requests

AGENT = "ralph_mission"
VERSION = "2022-11-28"
IDLE = 15.0  # seconds after which a connection is not used again
LARGEST = 32 * 1024 * 1024  # bytes of a reply, unpacked: a page of 100 bodies of 65,536 characters of 4 bytes fits
SLOWEST = 60.0  # seconds until a reply must have ended, from asking on; GitHub itself gives up after 10


class GitHubRequester:
    """A connection to one API with one token, which stands in no error, address or log."""

    def __init__(self, api_url: str, token: str, timeout: float) -> None:
        self.api_url, self._token, self.timeout = api_url.rstrip("/"), token, timeout

    def request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, dict[str, str], str]:
        """Status, headers (lower case; a redirect's place is `x-location`) and text. Raises NoAnswer."""
        from ralph_mission.adapters.http.client import NoAnswer

        accepted = {"Accept": "application/vnd.github+json", **headers}
        try:
            status, found, text = self._requester.requestJson(method, path, None, accepted, body, self._line)
        except ValueError as error:  # a header that is no number, where it has to be one
            raise NoAnswer(f"sent an answer that cannot be read ({type(error).__name__})") from None
        return status, found, text

    @property
    def graphql(self) -> str:
        """The address of the GraphQL API."""
        return str(self._requester.graphql_url)

    @cached_property
    def _requester(self) -> Any:
        from github import Auth, Github

        return Github(
            base_url=self.api_url,
            auth=Auth.Token(self._token),
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            user_agent=AGENT,
            timeout=max(1, int(self.timeout)),
            per_page=100,
            api_version=VERSION,
        ).requester

    @cached_property
    def _line(self) -> Any:
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

        from ralph_mission.adapters.http.client import HttpLimits, HttpSession

        place = urlsplit(self.api_url)
        kind: Any = HTTPRequestsConnectionClass if place.scheme == "http" else HTTPSRequestsConnectionClass
        line = kind(place.hostname, place.port)
        line.session = HttpSession(HttpLimits(SLOWEST, self.timeout, LARGEST), idle=IDLE)
        line.session.hooks["response"] = [_make_plain]
        return line


def _make_plain(response: requests.Response, **_: Any) -> None:
    """Leave nothing to be followed, and no encoding to be guessed."""
    response.encoding = "utf-8"
    if "location" in response.headers:
        response.headers["x-location"] = response.headers.pop("location")
