"""Our end of the way out of a view without a network: to the model's host, and to no other.

A host of this machine (a model server, a test) is reached at its own address and port inside, byte for byte. Any
other is reached as a proxy is (RFC 9110 §9.3.6, CONNECT), so that TLS stays between the agent and the host.
"""

from __future__ import annotations

import ipaddress
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.adapters.sandbox.inside import LINES, pass_on
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

ANTHROPIC = ("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
GEMINI = ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com")
PROVIDERS = (
    ("ANTHROPIC_API_KEY", *ANTHROPIC),
    ("ANTHROPIC_AUTH_TOKEN", *ANTHROPIC),
    ("CLAUDE_CODE_OAUTH_TOKEN", *ANTHROPIC),
    ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com"),
    ("GEMINI_API_KEY", *GEMINI),
    ("GOOGLE_API_KEY", *GEMINI),
    ("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BASE_URL", ""),
    ("AMP_API_KEY", "AMP_URL", "https://ampcode.com"),
)
"""The key's name, the name of another address, the address: as the providers' own clients have them."""
HEAD = 8192  # bytes of a request's head: as most servers take
PATIENCE = 30.0  # seconds for a head, and for a host to answer a connection
TEMPORARY = "/tmp"  # a socket's path has 107 characters at most, which TMPDIR may exceed
ORDINARY = 1024  # ip_unprivileged_port_start of Linux
PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port that is to be reached."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        if self.host == "localhost":
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False

    @property
    def listens(self) -> str:
        """The address at which it is offered inside."""
        return self.host if self.loopback and self.host != "localhost" else "127.0.0.1"


def endpoint(url: str) -> Endpoint:
    """The host of an address. Raises UserError (usage) for one that is none, would carry keys in clear, or cannot be
    offered inside: there, as here, a port below 1024 is root's."""
    parts = urlsplit(url)
    try:
        made = Endpoint(parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0))
    except ValueError:
        made = Endpoint("", 0)
    clear, reserved = parts.scheme == "http" and not made.loopback, made.loopback and made.port < ORDINARY
    if not made.host or not made.port or clear or reserved:
        what = f"{parts.scheme}://{parts.hostname} is no address of a model that an agent at sandbox: bwrap can use"
        raise UserError(what, "use https, or http on this machine with a port from 1024; or sandbox: env", usage=True)
    return made


def of_models(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The hosts of the providers whose key is there, each once. `environ`: what the agent sees."""
    urls = (environ.get(address) or usual for key, address, usual in PROVIDERS if environ.get(key))
    return tuple(dict.fromkeys(endpoint(url) for url in urls if url))


@contextmanager
def relay(endpoints: Sequence[Endpoint]) -> Iterator[Path]:
    """A folder with one socket per endpoint, named by its number, which only we may use."""
    folder = Path(tempfile.mkdtemp(prefix="ralph-way-", dir=TEMPORARY))
    heard: list[socket.socket] = []
    try:
        for number, end in enumerate(endpoints):
            heard.append(_listen(folder / str(number)))
            threading.Thread(target=_serve, args=(heard[-1], end, tuple(endpoints)), daemon=True).start()
        yield folder
    finally:
        for one in heard:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for the next one
            one.close()
        shutil.rmtree(folder, ignore_errors=True)


def _listen(place: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(place))
    place.chmod(0o600)
    made.listen(LINES)
    return made


def _serve(heard: socket.socket, end: Endpoint, allowed: tuple[Endpoint, ...]) -> None:
    while True:
        try:
            came, _ = heard.accept()
        except OSError:
            return
        threading.Thread(target=_onward, args=(came, end, allowed), daemon=True).start()


def _onward(came: socket.socket, end: Endpoint, allowed: tuple[Endpoint, ...]) -> None:
    with came, suppress(OSError):
        wanted = end if end.loopback else _read_connect(came)
        if wanted not in allowed:
            came.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        try:
            onward = socket.create_connection((wanted.host, wanted.port), PATIENCE)
        except OSError:
            if not end.loopback:
                came.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        onward.settimeout(None)
        if not end.loopback:
            came.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pass_on(came, onward)


def _read_connect(came: socket.socket) -> Endpoint | None:
    """The host and port of a CONNECT request; None when it is none. A byte at a time: what follows is not ours."""
    came.settimeout(PATIENCE)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if len(head) > HEAD or not (byte := came.recv(1)):
            return None
        head += byte
    came.settimeout(None)
    method, _, rest = head.decode("latin-1").partition(" ")
    host, _, port = rest.partition(" ")[0].rpartition(":")
    if method != "CONNECT" or not re.fullmatch("[0-9]{1,5}", port):
        return None
    return Endpoint(host.strip("[]").lower(), int(port))
