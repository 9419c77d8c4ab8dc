"""Servers on loopback that speak bytes: well-behaved ones, and such as no library would write."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Speak = Callable[[socket.socket, bytes], None]
"""Answers a request (its head, as bytes) on a socket."""


@dataclass
class Server:
    """Where it listens, and what it was asked: the heads of requests, in order. `connections` counts every caller."""

    port: int
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0
    family: str = "127.0.0.1"

    @property
    def place(self) -> str:
        return f"{self.family}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    @property
    def paths(self) -> list[str]:
        return [head.split(b" ")[1].decode() for head in self.asked]


@contextmanager
def serving(speak: Speak, tls: ssl.SSLContext | None = None, listens: bool = True) -> Iterator[Server]:
    """A server for the time being; `speak` runs once per connection, in a thread, at once unless it `listens`."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = Server(door.getsockname()[1])
        threading.Thread(target=_accept, args=(door, server, speak, tls, listens), daemon=True).start()
        yield server
        with suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)


def _accept(door: socket.socket, server: Server, speak: Speak, tls: ssl.SSLContext | None, listens: bool) -> None:
    while True:
        try:
            plug, _ = door.accept()
        except OSError:
            return
        server.connections += 1
        threading.Thread(target=_answer, args=(plug, server, speak, tls, listens), daemon=True).start()


def _answer(plug: socket.socket, server: Server, speak: Speak, tls: ssl.SSLContext | None, listens: bool) -> None:
    with suppress(OSError), tls.wrap_socket(plug, server_side=True) if tls else plug as plug:
        head = b""
        while listens and b"\r\n\r\n" not in head:
            if not (came := plug.recv(65_536)):
                return
            head += came
        server.asked.append(head)
        speak(plug, head)
        plug.shutdown(socket.SHUT_WR)
        while plug.recv(65_536):  # until the other side is done
            pass


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """One whole answer; names of headers with underscores."""
    told = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def feed(*titles: str) -> bytes:
    """An answer with an RSS feed of these."""
    items = "".join(f"<item><guid>{title}</guid><title>{title}</title></item>" for title in titles)
    return reply(f"<rss version='2.0'><channel>{items}</channel></rss>".encode(), Content_Type="text/xml")


def saying(answer: bytes) -> Speak:
    """Always the same answer."""
    return lambda plug, _: plug.sendall(answer)


def site(pages: dict[str, bytes | Callable[[bytes], bytes]]) -> Speak:
    """Answers by path; a callable is given the request's head. Everything else is not found."""

    def speak(plug: socket.socket, head: bytes) -> None:
        page = pages.get(head.split(b" ")[1].decode().partition("?")[0], reply(b"", "404 Not Found"))
        plug.sendall(page(head) if callable(page) else page)

    return speak


def for_ever(start: bytes, more: bytes, pause: float = 0.0) -> Speak:
    """`start`, and then `more` again and again until nobody listens."""

    def speak(plug: socket.socket, _: bytes) -> None:
        plug.sendall(start)
        waiting = threading.Event()
        while not waiting.wait(pause):
            plug.sendall(more)

    return speak
