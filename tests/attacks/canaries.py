"""Values that must not leave, every way an attacker writes them, and a search of its own for what is left of them.

The search shares nothing with the product: it looks for any ten letters and digits in a row of a canary, in each of its
writings, in bytes as they are, decompressed, and decoded.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import gzip
import html
import re
import socket
import subprocess
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from unittest import mock
from urllib.parse import quote, unquote
from weakref import WeakSet

from tests.helpers import git

CANARY = "Zq9x" + "Rt2Lm7ZpW4vKd8NsB3yHc6Tj"
PASSPHRASE = "mast-Kelp-41-harbour-Ninety-rope"
ENVIRONMENT = MappingProxyType({"HARBOUR_TOKEN": CANARY, "STORE_PASSWORD": PASSPHRASE})
"""Of no format that anybody knows: that they are secret is known from the environment alone."""
WINDOW = 10


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _64(text: str, before: str = "") -> str:
    return base64.b64encode((before + text).encode()).decode()


def _percent(text: str) -> str:
    return "".join(f"%{octet:02X}" for octet in text.encode())


def _wide(text: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


TRANSFORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "plain": str,
        "upper case": str.upper,
        "lower case": str.lower,
        "swapped case": str.swapcase,
        "reversed": lambda text: text[::-1],
        "its beginning dropped": lambda text: text[4:],
        "its end dropped": lambda text: text[:-4],
        "rot13": lambda text: codecs.encode(text, "rot13"),
        "base64": _64,
        "base64, second alignment": lambda text: _64(text, "a"),
        "base64, third alignment": lambda text: _64(text, "ab"),
        "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
        "base64 of the reverse": lambda text: _64(text[::-1]),
        "base64 of base64": lambda text: _64(_64(text)),
        "base64 in pieces": lambda text: " ".join(_cut(_64(text), 6)),
        "base32": lambda text: base64.b32encode(text.encode()).decode(),
        "gzip and base64": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
        "zlib and base64": lambda text: base64.b64encode(zlib.compress(text.encode())).decode(),
        "gzip and hex": lambda text: gzip.compress(text.encode(), mtime=0).hex(),
        "hex": lambda text: text.encode().hex(),
        "upper hex": lambda text: text.encode().hex().upper(),
        "hex in pairs": lambda text: text.encode().hex(":"),
        "hex of base64": lambda text: _64(text).encode().hex(),
        "escapes": lambda text: "".join(f"\\x{octet:02x}" for octet in text.encode()),
        "unicode escapes": lambda text: "".join(f"\\u{octet:04x}" for octet in text.encode()),
        "octal escapes": lambda text: "".join(f"\\{octet:03o}" for octet in text.encode()),
        "numbers": lambda text: ", ".join(str(octet) for octet in text.encode()),
        "bits": lambda text: " ".join(f"{octet:08b}" for octet in text.encode()),
        "url-encoded": _percent,
        "url-encoded in part": lambda text: quote(text).replace(text[2], _percent(text[2])),
        "url-encoded twice": lambda text: quote(_percent(text)),
        "entities": lambda text: "".join(f"&#{octet};" for octet in text.encode()),
        "entities in hex": lambda text: "".join(f"&#x{octet:X};" for octet in text.encode()),
        "entities twice": lambda text: "".join(f"&amp;#{octet};" for octet in text.encode()),
        "over lines": lambda text: "\n".join(_cut(text, 5)),
        "with spaces": " ".join,
        "with dashes": lambda text: "-".join(_cut(text, 4)),
        "with dots": ".".join,
        "as two strings": lambda text: f'"{text[:9]}" + "{text[9:]}"',
        "with zero-width spaces": "\u200b".join,
        "with the tag block": "\U000e0041".join,
        "with soft hyphens": "\u00ad".join,
        "with bidirectional marks": lambda text: f"\u202e{text[:8]}\u202c{text[8:]}",
        "with terminal colours": "\x1b[31m".join,
        "with emphasis": lambda text: "".join(f"**{piece}**" for piece in _cut(text, 4)),
        "with tags": lambda text: "<b></b>".join(_cut(text, 4)),
        "with comments": lambda text: "<!-- x -->".join(_cut(text, 4)),
        "with links": lambda text: "".join(f"[{piece}](docs/guide.md)" for piece in _cut(text, 4)),
        "with code spans": lambda text: "".join(f"`{piece}`" for piece in _cut(text, 4)),
        "with backslashes": "\\".join,
        "in wide letters": _wide,
        "with strokes": "\u0336".join,
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
        if letters and any(window in reading for window in _windows(how, letters) for reading in readings):
            yield how


def _windows(how: str, letters: str) -> Iterator[str]:
    wide = {"numbers": 3, "bits": 8, "octal escapes": 3, "with links": 3}  # a link's address alone is ten letters long
    size = WINDOW * wide.get(how, 2 if "hex" in how or "escapes" in how else 1)
    size = len(letters) if "gzip" in how or "zlib" in how or "entities" in how else size
    yield from (letters[at : at + size] for at in range(max(1, len(letters) - size + 1)))


def _squeezed(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


def _readings(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "replace")
    yield text
    for reading in (unquote(unquote(text)), html.unescape(html.unescape(text)), unicodedata.normalize("NFKC", text)):
        if reading != text:
            yield reading
    yield re.sub(r"<[^<>]*>|\]\([^()]*\)", "", text)
    yield "\n".join(one.decode("latin-1") for one in _unpacked(text, 3))


def _unpacked(text: str, rounds: int) -> Iterator[bytes]:
    for run in set(re.findall(r"[A-Za-z0-9+/_=-]{20,}", text)):
        for decode in (base64.b64decode, base64.urlsafe_b64decode, bytes.fromhex):
            with suppress(binascii.Error, ValueError):
                data = decode(run + "=" * (-len(run) % 4) if decode is not bytes.fromhex else run)
                for wbits in (31, 15):
                    with suppress(zlib.error):
                        data = zlib.decompress(data, wbits)
                yield data
                if rounds:
                    yield from _unpacked(data.decode("latin-1"), rounds - 1)


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
