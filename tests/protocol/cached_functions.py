"""Pure functions are asked each question once: the same facts give the same decisions, in a hundred cycles too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from typing import Any
from unittest import mock

from ralph_mission.mission import cycle, verify
from ralph_mission.safety import secrets
from ralph_mission.safety.secrets import Span

DECIDING = tuple(
    (module, name, getattr(module, name))
    for module, name in ((cycle, "decide"), (verify, "decide_now"), (verify, "drafts"))
)
Memo = dict[tuple[str, str], Any]
SHARED: Memo = {}
"""What was decided before in this process."""


@contextmanager
def remembered(memo: Memo = SHARED) -> Iterator[None]:
    """What is decided in a situation, and which secrets a text holds, is worked out once while this lasts.

    Who decides otherwise than the rest brings a `memo` of its own.
    """
    with ExitStack() as stack:
        for module, name, function in DECIDING:
            stack.enter_context(mock.patch.object(module, name, _by_text(function, memo)))
        stack.enter_context(mock.patch.object(secrets, "find_spans", _spans))
        yield


def _by_text(function: Callable[..., Any], memo: Memo) -> Callable[..., Any]:
    @wraps(function)
    def remember(*arguments: Any) -> Any:
        key = function.__name__, repr(arguments)  # a situation holds records in a dictionary, which has no hash
        if key not in memo:
            memo[key] = function(*arguments)
        return memo[key]

    return remember


_found = secrets.find_spans


@cache
def _all(text: str, known: tuple[str, ...]) -> tuple[Span, ...]:
    return tuple(_found(text, known))


def _spans(text: str, known: tuple[str, ...]) -> Iterator[Span]:
    return iter(_all(text, tuple(known)))
