"""A runner that dies at a request to GitHub (by HTTP or by git) or to a network: nothing of it goes on after that.

`before`: the request is dropped, and nothing of it was done. `after`: it was done, and nobody heard the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from unittest import mock
from urllib.parse import urlsplit

from ralph_mission.adapters.forges.github.api import ReadCache
from ralph_mission.adapters.forges.github.limits import GitHubRequester
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.publishers import networks
from tests.fakes.github.faults import Crash
from tests.fakes.github.nouns import Request
from tests.integration.dying import is_local_git
from tests.integration.hub import Hub

WAYS_OUT = ((GitHubRequester, "request"), (Git, "run"), (ReadCache, "save"))
MUTATION = re.compile(r"mutation\([^)]*\) \{ (\w+)\(")
NETWORKS = {"/2/": "twitter", "/bot": "telegram", "/api/webhooks/": "discord"}  # by how their paths begin


class Died(BaseException):
    """The end of the process."""


@dataclass
class Life:
    """Ends at request number `at` (from 1; 0 never); `requests` are those that were sent."""

    at: int = 0
    kind: str = "before"
    over: bool = False
    requests: list[Request] = field(default_factory=list)

    def coming(self, request: Request) -> None:
        """A request has arrived."""
        if self.over:
            raise Crash
        self.requests.append(request)
        self._perhaps("before", request)

    def answered(self, request: Request, response: object) -> None:
        """A request was carried out."""
        if not self.over:
            self._perhaps("after", request)

    def _perhaps(self, kind: str, request: Request) -> None:
        """The request that has that number: another runner's whole cycle may lie between it and its answer."""
        if self.kind == kind and self.at and any(one is request for one in self.requests[self.at - 1 : self.at]):
            self.over = True
            raise Crash


def writes(request: Request) -> bool:
    """Whether a request may change anything."""
    if request.transport in ("git", "graphql"):
        return request.below == "/git-receive-pack" or bool(mutation(request))
    return request.transport in ("rest", "network") and request.method != "GET"


def describe_request(request: Request) -> str:
    """A request in a few words."""
    return f"{request.method} {request.below} {mutation(request)}".rstrip()


def mutation(request: Request) -> str:
    """What a query changes by GraphQL, such as `enqueuePullRequest`; "" for nothing. A commit is a push."""
    found = MUTATION.match(request.body.get("query", "")) if request.below == "/graphql" and request.body else None
    return found[1] if found else ""


@contextmanager
def dying(hub: Hub, at: int = 0, kind: str = "before") -> Iterator[Life]:
    """Count the requests of what is run inside, and end it at one of them."""
    life = Life(at, kind)
    undo = [hub.fake.before(life.coming), hub.fake.after(life.answered)]
    patches = [mock.patch.object(owner, name, _mortal(owner, name, life)) for owner, name in WAYS_OUT]
    patches.append(mock.patch.object(networks, "HttpSession", _counted(life)))
    try:
        for patch in patches:
            patch.start()
        with suppress(Died):
            yield life
    finally:
        for patch in patches:
            patch.stop()
        for end in undo:
            end()


def _mortal(owner: type, name: str, life: Life):
    original = getattr(owner, name)

    def call(self, *arguments, **options):
        if is_local_git(self, arguments):
            return original(self, *arguments, **options)
        _require(life)
        try:
            return original(self, *arguments, **options)
        finally:
            _require(life)

    return call


def _counted(life: Life):
    """A session for posts whose requests are counted on their way out: the networks' servers know no hooks."""

    class Counted(networks.HttpSession):
        def request(self, method, url, **options):
            _require(life)
            path = urlsplit(url).path
            network = next(name for begins, name in NETWORKS.items() if path.startswith(begins))
            asked = Request(method, path, {}, transport="network", below=f"/{network}")
            try:
                life.coming(asked)
                answer = super().request(method, url, **options)
                life.answered(asked, answer)
            except Crash:
                raise Died from None
            return answer

    return Counted


def _require(life: Life) -> None:
    if life.over:
        raise Died


@contextmanager
def dying_after(hub: Hub, what: str, surely: bool = True) -> Iterator[Life]:
    """End what is run inside before it hears the answer to its first request that is told so, from the beginning on.

    `surely`: that there is one.
    """
    with dying(hub, kind="after") as life:

        def chosen(request: Request) -> None:
            life.at = life.at or (describe_request(request).startswith(what) and len(life.requests)) or 0

        undo = hub.fake.before(chosen)
        try:
            yield life
        finally:
            undo()
    assert life.over or not surely
