"""Values that must not leave, every way they are looked for, and a search of its own for what is left of them.

The search shares nothing with the product: it looks for any ten letters and digits in a row of a canary, in each of its
writings, in bytes as they are, decompressed, and decoded.
"""

from __future__ import annotations

import base64
import binascii
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from unittest import mock
from urllib.parse import quote, unquote
from weakref import WeakSet

from tests.helpers import git

CANARY = "Zq9x" + "Rt2Lm7ZpW4vKd8NsB3yHc6Tj"
PASSPHRASE = "mast-Kelp-41-fathom-Ninety-rope"
ENVIRONMENT = MappingProxyType({"HARBOUR_TOKEN": CANARY, "STORE_PASSWORD": PASSPHRASE})
"""Of no format that anybody knows: that they are secret is known from the environment alone."""
WINDOW = 10


def _64(text: str, before: str = "") -> str:
    return base64.b64encode((before + text).encode()).decode()


TRANSFORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "plain": str,
        "base64": _64,
        "base64, second alignment": lambda text: _64(text, "a"),
        "base64, third alignment": lambda text: _64(text, "ab"),
        "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
        "url-encoded": lambda text: quote(text, safe=""),
    }
)


def echoes(value: str = CANARY) -> Mapping[str, str]:
    """A value in every writing, by its name."""
    return {name: written(value) for name, written in TRANSFORMS.items()}


# --- what is left -----------------------------------------------------------------------


def left_in(data: bytes, values: Mapping[str, str] = ENVIRONMENT) -> list[str]:
    """Which values can be told from these bytes, each with how it stands there."""
    readings = [_squeezed(reading) for reading in _readings(data)]
    return sorted({f"{name}: {how}" for name, value in values.items() for how in _standing(value, readings)})


def _standing(value: str, readings: list[str]) -> Iterator[str]:
    for how, written in TRANSFORMS.items():
        letters = _squeezed(written(value))
        windows = [letters[at : at + WINDOW] for at in range(len(letters) - WINDOW + 1)]
        if any(window in reading for window in windows for reading in readings):
            yield how


def _squeezed(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


def _readings(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "replace")
    yield text
    yield unquote(text)
    yield "\n".join(one.decode("latin-1") for one in _decoded(text))


def _decoded(text: str) -> Iterator[bytes]:
    for run in set(re.findall(r"[A-Za-z0-9+/_=-]{20,}", text)):
        for decode in (base64.b64decode, base64.urlsafe_b64decode):
            with suppress(binascii.Error, ValueError):
                yield decode(run + "=" * (-len(run) % 4))


# --- where to look ----------------------------------------------------------------------


def every_object(repo: Path) -> bytes:
    """All that a repository keeps: every object, whoever it belongs to, names of refs and the log of their moves."""
    command = ("git", "-C", str(repo), "cat-file", "--batch-all-objects", "--batch")
    return subprocess.run(command, capture_output=True, check=True).stdout + git(repo, "for-each-ref").encode()


def every_file(folder: Path, but: Callable[[Path], bool] = lambda path: False) -> Iterator[tuple[Path, bytes]]:
    """Name and content of everything below a folder."""
    for path in sorted(folder.rglob("*")):
        if not but(path.relative_to(folder)) and path.is_file() and not path.is_symlink():
            yield path, str(path.relative_to(folder)).encode("utf-8", "surrogateescape") + b"\n" + path.read_bytes()


@contextmanager
def listening() -> Iterator[list[bytes]]:
    """Every byte that this process sends on connections of its own making."""
    sent: list[bytes] = []
    ours: WeakSet[socket.socket] = WeakSet()  # what is gone has left its number to another one
    connect, send, send_all = socket.socket.connect, socket.socket.send, socket.socket.sendall

    def connected(self: socket.socket, address: object) -> None:
        ours.add(self)
        connect(self, address)  # type: ignore[arg-type]  # whatever it was called with

    def heard(call: Callable[..., object]) -> Callable[..., object]:
        def sending(self: socket.socket, data: bytes, *flags: int) -> object:
            if self in ours:
                sent.append(bytes(data))
            return call(self, data, *flags)

        return sending

    with (
        mock.patch.object(socket.socket, "connect", connected),
        mock.patch.object(socket.socket, "send", heard(send)),
        mock.patch.object(socket.socket, "sendall", heard(send_all)),
    ):
        yield sent


def without_authorization(sent: list[bytes]) -> bytes:
    """What was sent, but for the headers that are there to carry a secret."""
    return re.sub(rb"(?im)^(?:authorization|x-api-key):[^\r\n]*", b"", b"\n".join(sent))
