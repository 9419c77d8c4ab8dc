"""The way to a provider: its key and address from the environment, and an HTTP client that reads only so much.

`httpx2` is imported when a model is asked, and not before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ralph_mission.trouble import UserError

if TYPE_CHECKING:
    import httpx2

ANSWER = 512 * 1024  # bytes
VARIABLES = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-chat": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
}
"""By provider: where its key stands, and where it listens if not at its usual place."""


class TooLong(Exception):
    """An answer of more bytes than anybody may send us."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who is asked, as whom and where; `base_url` None is the provider's own."""

    provider: str
    model: str
    key: str
    base_url: str | None = None


def access(model: str, environ: Mapping[str, str]) -> Access:
    """What is needed to ask `provider:name`. Raises Trouble that names the missing key."""
    provider, _, name = model.partition(":")
    key, base = VARIABLES[provider]
    if not environ.get(key):
        raise UserError(f"{key} is not set", f"set {key} in the environment")
    return Access(provider, name, environ[key], environ.get(base) or None)


def client(seconds: float, limit: int = ANSWER) -> httpx2.AsyncClient:
    """A client that follows nothing, waits at most `seconds` for anything, and raises TooLong beyond `limit` bytes."""
    import httpx2

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, inner: httpx2.AsyncByteStream) -> None:
            self._inner, self._left = inner, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._inner:
                self._left -= len(piece)
                if self._left < 0:
                    raise TooLong
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":  # it could grow without end
            raise TooLong
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Counted(response.stream)

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(seconds),
        headers={"accept-encoding": "identity"},
        follow_redirects=False,
        event_hooks={"response": [bound]},
    )
