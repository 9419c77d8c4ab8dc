"""A call in a thread of its own, which may be given up after some seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def start_call(work: Callable[[], T], name: str = "ralph call") -> Future[T]:
    """Start `work` in a thread of its own, with a copy of this context; no program waits for it at its end."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised again where somebody waits for it
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    return future


def call_within(seconds: float, work: Callable[[], T], name: str = "ralph call") -> T:
    """What `work` returns or raises. Raises TimeoutError after `seconds`; the thread is then left to itself."""
    return start_call(work, name).result(max(0.0, seconds))
