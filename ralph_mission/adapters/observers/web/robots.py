"""What a host's robots.txt (RFC 9309) says of an address, asked through the guard like any other.

Without one (4xx) everything may be read; one that cannot be read (5xx, no connection) forbids everything until it can.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import field

from ralph_mission.adapters.http.guard import AGENT, GuardedWeb
from ralph_mission.errors import UserError
from ralph_mission.safety.address import parse_address
from ralph_mission.values import dataclass

CAP = 512_000  # bytes: RFC 9309 wants 500 KiB at least


@dataclass(frozen=True, slots=True)
class Robots:
    """Asks each origin once; `known` are the texts, by origin. `once` may have an answer for an origin already."""

    web: GuardedWeb
    known: MutableMapping[str, str] = field(default_factory=dict)
    once: Callable[[str, Callable[[], str]], str] = lambda origin, ask: ask()

    def permit(self, url: str) -> None:
        """Nothing when `url` may be read. Raises UserError when it may not, or when nobody can tell."""
        from protego import Protego

        there = parse_address(url)
        if there.origin not in self.known:
            self.known[there.origin] = self.once(there.origin, lambda: self._text(there.origin))
        if not Protego.parse(self.known[there.origin]).can_fetch(there.url, AGENT):
            what = f"{there.authority} asks programs not to read this (robots.txt)"
            raise UserError(what, "take the source out of ralph.yml, or ask its owner", who="network")

    def _text(self, origin: str) -> str:
        answer = self.web.get(f"{origin}/robots.txt", cap=CAP)
        if answer.status >= 500 or answer.status == 429:
            host = parse_address(origin).authority
            what = f"{host} cannot say what programs may read (robots.txt, status {answer.status})"
            raise UserError(what, "nothing was lost; the next cycle tries again", who="network")
        return answer.content.decode("utf-8", "replace") if answer.status == 200 else ""
