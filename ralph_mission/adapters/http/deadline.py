"""Calls in their own thread, which can be abandoned after some seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def start_call(work: Callable[[], T], name: str = "ralph call") -> Future[T]:
    """Start `work` in a daemon thread with a copy of this context."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised again in the waiting thread
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    return future


def call_within(seconds: float, work: Callable[[], T], name: str = "ralph call") -> T:
    """What `work` returns or raises. Raises TimeoutError after `seconds`, and abandons the thread."""
    return start_call(work, name).result(max(0.0, seconds))
