"""The table of what the API knows, and what a handler gets to see of a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlencode

from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import REPOSITORY_ID, Account, Comment, Event, Request, Thread, Token
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.state import World

REPO = "/repos/{owner}/{repo}"
PAGING = ("per_page", "page")
LIMIT = 65_536  # characters of a body
LONGEST_LABEL = 50
T = TypeVar("T")
Lagging = TypeVar("Lagging", Thread, Comment, Event)


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. `needs`: an installation's permission ("issues:write"; "" for none, "!" for never);
    `role`: the least level of a person; `query`, `body`: the keys that are known."""

    method: str
    template: str
    handler: Callable[[Call], Any]
    needs: str
    role: str
    query: frozenset[str]
    body: frozenset[str]
    pattern: re.Pattern[str]


@dataclass(slots=True)
class Call:
    """One authorised request, as a handler sees it."""

    world: World
    request: Request
    token: Token | None
    route: Route
    parts: dict[str, str]
    root: str  # the address the client used for the API
    accept: str = ""
    used: set[str] = field(default_factory=set)

    @property
    def actor(self) -> Account:
        assert self.token
        return self.token.account

    @property
    def query(self) -> dict[str, str]:
        return self.request.query

    @property
    def body(self) -> dict[str, Any]:
        body = self.request.body or {}
        return {"labels": body} if isinstance(body, list) else body

    def text(self, key: str, *, limit: int | None = None, resource: str = "Issue") -> str | None:
        """A text of the body, None when it is not there; 422 for another type or one that is too long."""
        value = self.body.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise Refusal(422, f"Invalid request.\n\nFor 'properties/{key}', {value!r} is not a string.")
        if limit and len(value) > limit:
            raise Refusal.custom(resource, f"{key} is too long (maximum is {limit} characters)", key)
        return value

    def texts(self, key: str) -> list[str] | None:
        """A list of texts of the body; labels may also be objects with a name."""
        value = self.body.get(key)
        if value is None:
            return None
        names = [item.get("name") if isinstance(item, dict) else item for item in _listed(key, value)]
        if not all(isinstance(name, str) for name in names):
            raise Refusal(422, f"Invalid request.\n\nFor 'properties/{key}', {value!r} is not a list of strings.")
        if key == "labels" and any(len(str(name)) > LONGEST_LABEL for name in names):
            raise Refusal.custom("Label", f"name is too long (maximum is {LONGEST_LABEL} characters)", "name")
        return [str(name) for name in names]

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        """A query parameter with known values; an unknown value is not known to the fake either."""
        value = self.query.get(key, default)
        if value not in allowed:
            raise Unknown(f"query {key}={value}")
        return value

    def thread(self, *, pull: bool | None = None) -> Thread:
        """The issue or pull in the path: 404 when missing, 410 when deleted."""
        found = self.world.threads.get(int(self.parts["number"]))
        if found is None or (pull is True and not found.pull):
            raise Refusal(404, "Not Found")
        if found.deleted:
            raise Refusal(410, "This issue was deleted")
        if "|" in self.route.needs and not found.pull and self.token and self.token.kind == "installation":
            self._may(*self.route.needs.partition("|")[0].split(":"))
        return found

    def _may(self, permission: str, level: str) -> None:
        """What may be done to pulls by either permission takes that of issues for an issue."""
        assert self.token
        if not self.token.allows(permission, level):
            raise Refusal(403, "Resource not accessible by integration")

    def visible(self, items: Iterable[Lagging]) -> list[Lagging]:
        """What a list shows: not what is too new; being left out counts."""
        shown = []
        for item in items:
            if item.lag > 0:
                item.lag -= 1
            else:
                shown.append(item)
        return shown

    def page(self, items: Sequence[T], shape: Callable[[World, T], Any], wrap: str = "") -> Response:
        """One page of a list, with links to the others."""
        size = min(self._number("per_page", 30), self.world.page_size_cap) or 30
        last = max(1, -(-len(items) // size))
        number = max(1, self._number("page", 1))
        shown: Any = [shape(self.world, item) for item in items[(number - 1) * size : number * size]]
        if wrap:
            shown = {"total_count": len(items), wrap: shown}
        links = self._links(number, last)
        return Response(200, {"Link": links} if links else {}, shown)

    def _number(self, key: str, default: int) -> int:
        value = self.query.get(key, "")
        return int(value) if value.isdigit() else default

    def _links(self, number: int, last: int) -> str:
        wanted = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
        if number <= 1:
            del wanted["prev"], wanted["first"]
        if number >= last:
            del wanted["next"], wanted["last"]
        # GitHub links to the repository by its number.
        home, numbered = f"/repos/{self.world.full_name}", f"/repositories/{REPOSITORY_ID}"
        place = self.root + self.request.quoted.replace(home, numbered, 1)
        return ", ".join(
            f'<{place}?{urlencode(self.query | {"page": str(page)})}>; rel="{name}"'
            for name, page in wanted.items()
            if 1 <= page <= last
        )


ROUTES: list[Route] = []


def route(
    method: str,
    template: str,
    *,
    needs: str = "",
    role: str = "none",
    query: Iterable[str] = (),
    body: Iterable[str] = (),
    paged: bool = False,
) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    """Put a handler into the table. It returns a Response, or the JSON of a 200; it may raise Refusal, Unknown."""

    def register(handler: Callable[[Call], Any]) -> Callable[[Call], Any]:
        known = frozenset(query) | (frozenset(PAGING) if paged else frozenset())
        ROUTES.append(Route(method, template, handler, needs, role, known, frozenset(body), _pattern(template)))
        return handler

    return register


def find(request: Request) -> tuple[Route, dict[str, str]]:
    """The route of a request and the parts of its path. Raises Unknown."""
    for known in ROUTES:
        if known.method == request.method and (match := known.pattern.fullmatch(request.quoted or request.path)):
            return known, {name: unquote(part) for name, part in match.groupdict().items()}
    raise Unknown(f"{request.method} {request.path}")


def _pattern(template: str) -> re.Pattern[str]:
    kinds = {"": "[^/]+", ":int": "[0-9]+", ":path": ".+"}
    parts = re.split(r"\{(\w+)((?::\w+)?)\}", template)
    return re.compile(
        "".join(
            re.escape(parts[i]) if i % 3 == 0 else f"(?P<{parts[i]}>{kinds[parts[i + 1]]})" if i % 3 == 1 else ""
            for i in range(len(parts))
        )
    )


def _listed(key: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise Refusal(422, f"Invalid request.\n\nFor 'properties/{key}', {value!r} is not an array.")
