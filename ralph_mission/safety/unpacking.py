"""What the encoded parts of a text hold: hex, base32 and base64, in lines too, compressed or not, in one another.

All of it is bounded. A run of letters costs a decoding or two, so this is written for texts that are full of them.
"""

from __future__ import annotations

import re
import zlib
from binascii import a2b_base64
from collections.abc import Iterator
from itertools import islice

from ralph_mission.safety.hidden import CONTROL

ROUNDS = 4
"""How often a text may be encoded in itself."""
LARGEST = 1 << 20
"""Bytes that the encoded parts of a text may unpack to beyond their own length, all together."""
LEAST = 16
"""Letters below which a run is no encoded part: nothing that is looked for fits in."""
RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}")
HEX = re.compile("[0-9a-fA-F]{16,}")
BASE32 = re.compile("[A-Z2-7]+")
SEPARATOR = re.compile("[/_-]")
LINES = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+(?:\r?\n[ \t>]{0,9}[A-Za-z0-9+/_-]++)+")
BREAKS = re.compile(r"[\s>]+")
GZIP = "H4sI"
"""How gzip begins, in base64."""
WRAPPED = 47
"""What zlib calls gzip or its own format, whichever it is; and, bare, what has no header at all."""
BARE = -15
DEFLATED = frozenset((2, 3, 4, 5))
"""The last three bits of a bare stream's first octet, where it compresses."""
DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghijklmnopqrstuv")
"""Base32's letters as Python writes numbers to that base."""


def unpacked(text: str, rounds: int = ROUNDS) -> Iterator[tuple[int, int, str]]:
    """What the encoded parts of a text hold, as letters of one byte each, with where they stand; however deep."""
    for start, end, run in _runs(text):
        for data in _decoded(run):
            for octets in _inflated(data):
                inner = octets.decode("latin-1")
                yield start, end, inner
                if rounds > 1 and len(inner) >= LEAST and octets.isascii() and not CONTROL.search(inner):
                    yield from ((start, end, deeper) for _, _, deeper in unpacked(inner, rounds - 1))


def _runs(text: str) -> Iterator[tuple[int, int, str]]:
    for match in RUN.finditer(text):
        start, end, run = *match.span(), match[0]
        yield start, end, run
        if GZIP in run or SEPARATOR.search(run):
            yield from ((start, end, part) for part in _begun(run))
        for digits in HEX.finditer(run):
            if digits[0] != run:
                yield start + digits.start(), start + digits.end(), digits[0]
    for match in LINES.finditer(text):
        yield (*match.span(), BREAKS.sub("", match[0]))


def _begun(run: str) -> Iterator[str]:
    """What of a run may be one by itself: where gzip begins, or behind the folders of a path."""
    if GZIP in run[1:]:
        yield run[run.index(GZIP, 1) :]
    if len(run) < 4_096:
        behind = (run[match.end() :] for match in islice(SEPARATOR.finditer(run), 8))
        yield from (part for part in behind if len(part) >= LEAST)


def _decoded(run: str) -> list[bytes]:
    left = len(run) % 4  # a single letter more is too few bits for an octet
    whole = run[:-1] if left == 1 else run + "=" * (-left % 4)
    found = [a2b_base64(whole.replace("-", "+").replace("_", "/"))]
    if HEX.fullmatch(run):
        found.append(bytes.fromhex(run[: len(run) // 2 * 2]))
    if BASE32.fullmatch(run):
        groups = len(run) // 8
        found.append(int(run[: groups * 8].translate(DIGITS), 32).to_bytes(groups * 5, "big"))
    return found


def _inflated(data: bytes) -> tuple[bytes, ...]:
    """What was compressed, up to a size that is too much; anything else as it is.

    What has no header may be anything: as a stream it counts beside what it is itself.
    """
    if data[:2] == b"\x1f\x8b" or (data[:1] == b"\x78" and int.from_bytes(data[:2], "big") % 31 == 0):
        bare = data[10 if data[0] == 0x1F else 2 :]  # a wrong checksum keeps nobody from reading it
        return (_stream(data, WRAPPED)[0] or _stream(bare, BARE)[0] or data,)
    inner, left = _stream(data, BARE) if data and data[0] & 7 in DEFLATED else (b"", 0)
    ended = left == 0 or 0 < left <= len(data) - LEAST  # of noise a few octets may make one
    return (data, inner) if inner and ended else (data,)


def _stream(data: bytes, form: int) -> tuple[bytes, int]:
    """What a stream holds, and how many octets follow on it: -1 where it has no end."""
    stream = zlib.decompressobj(form)
    try:
        inner = stream.decompress(data, 2 * LARGEST)
    except zlib.error:
        return b"", -1
    return inner, len(stream.unused_data) if stream.eof or stream.unconsumed_tail else -1
