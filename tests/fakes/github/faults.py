"""A script of what goes wrong, and how each kind of fault looks to a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.github.nouns import REPOSITORY_ID, Request
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.state import World

AFTER = ("502_applied", "timeout_applied", "reset_applied", "garbage")
MESSAGES = {
    "401": "Bad credentials",
    "403": "Resource not accessible by integration",
    "404": "Not Found",
    "409": "Conflict",
    "422": "Validation Failed",
    "500": "Server Error",
}
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
KINDS = (
    *MESSAGES,
    *AFTER,
    "502_not_applied",
    "timeout_not_applied",
    "reset_not_applied",
    "rate_primary",
    "rate_secondary",
    "rate_secondary_429",
    "redirect",
)


class Crash(Exception):
    """Raised by a hook: the connection is dropped here."""


class Silence(Exception):
    """No answer until the client leaves."""


@dataclass(slots=True)
class Response:
    """An answer: `payload` is JSON, `content` bytes instead of it."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    payload: Any = None
    content: bytes | None = None


@dataclass(slots=True, eq=False)
class Fault:
    """One scripted fault; `used` counts how often it struck."""

    kind: str
    match: tuple[str, str]
    times: int = 1
    after: int = 0
    used: int = 0
    passed: int = 0

    @property
    def applies(self) -> bool:
        """Whether the request is carried out all the same."""
        return self.kind in AFTER

    def strikes(self, request: Request) -> bool:
        """Whether it is this request's turn; counts."""
        if self.used >= self.times or not request.matches(*self.match):
            return False
        if self.passed < self.after:
            self.passed += 1
            return False
        self.used += 1
        return True


class Script:
    """The faults to come, and the hooks of a test."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._before: list[Callable[[Request], object]] = []
        self._after: list[Callable[[Request, Response], object]] = []

    def add(self, kind: str, match: tuple[str, str], times: int, after: int) -> Fault:
        """One more."""
        if kind not in KINDS:
            raise ValueError(f"no such fault: {kind}; there are {', '.join(KINDS)}")
        self.faults.append(Fault(kind, match, times, after))
        return self.faults[-1]

    def take(self, request: Request) -> Fault | None:
        """The fault that strikes this request. Those that are used up go."""
        struck = next((fault for fault in self.faults if fault.strikes(request)), None)
        self.faults[:] = [fault for fault in self.faults if fault.used < fault.times]
        return struck

    def before(self, call: Callable[[Request], object]) -> Callable[[], None]:
        """A hook ahead of every request; the function that removes it."""
        self._before.append(call)
        return lambda: self._before.remove(call)

    def after(self, call: Callable[[Request, Response], object]) -> Callable[[], None]:
        """A hook after every request; the function that removes it."""
        self._after.append(call)
        return lambda: self._after.remove(call)

    def tell_before(self, request: Request) -> None:
        for call in list(self._before):
            call(request)

    def tell_after(self, request: Request, response: Response) -> None:
        for call in list(self._after):
            call(request, response)


def strike(fault: Fault, request: Request, world: World) -> Response:
    """What a client sees of a fault. Raises Crash and Silence for what is no answer at all."""
    match fault.kind.removesuffix("_not_applied").removesuffix("_applied"):
        case "timeout":
            raise Silence
        case "reset":
            raise Crash
        case "502":
            return Response(502, {"Content-Type": "text/html"}, content=b"<html><h1>502 Bad Gateway</h1></html>\n")
        case "garbage":
            return Response(200, {"Content-Type": "text/html"}, content=b"<html><body>Unicorn!</body></html>\n")
        case "redirect":
            return _redirect(request, world)
        case "rate_primary":
            return _primary(world)
        case "rate_secondary" | "rate_secondary_429" as kind:
            status = 429 if kind.endswith("429") else 403
            return Response(status, {"Retry-After": "60"}, Refusal(status, SECONDARY).payload)
        case status:
            errors = [{"resource": "Issue", "field": "title", "code": "invalid"}] if status == "422" else None
            return Response(int(status), {}, Refusal(int(status), MESSAGES[status], errors).payload)


def _primary(world: World) -> Response:
    reset = int(world.clock.present().timestamp()) + 1800
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-used": "1000", "x-ratelimit-reset": str(reset)}
    return Response(403, headers, Refusal(403, "API rate limit exceeded for installation.").payload)


def _redirect(request: Request, world: World) -> Response:
    """As after a renaming: the same thing under its number."""
    status, message = (301, "Moved Permanently") if request.method == "GET" else (307, "Temporary Redirect")
    place = f"{world.api}/repositories/{REPOSITORY_ID}{request.below}"
    if request.transport == "git":
        place = f"{world.url}/_moved/{world.full_name}.git{request.below}"
    elif not request.path.startswith("/repos/"):
        place = f"{world.api}{request.path}"
    if request.query and request.transport != "git":
        place += "?" + "&".join(f"{key}={value}" for key, value in request.query.items())
    return Response(status, {"Location": place}, {"message": message, "url": place, "documentation_url": "-"})
