"""Encoded parts of a text: a stream without a header is read too, noise is no stream, and each part is read once."""

from __future__ import annotations

import base64
import gzip
import random
import zlib
from collections.abc import Callable

import pytest

from ralph_mission.safety import unpacking
from ralph_mission.safety.secrets import find_secrets, redact

KNOWN = "tidal-harbour-" + "canary-4711"
AROUND = "".join(f"line {number} of what the harbour says\n" for number in range(400))


def bare(content: str, level: int = 9) -> bytes:
    stream = zlib.compressobj(level, wbits=-15)
    return stream.compress(content.encode()) + stream.flush()


@pytest.mark.attack(33)
@pytest.mark.parametrize("level", [1, 6, 9])
@pytest.mark.parametrize("content", [f"say {KNOWN}", AROUND + KNOWN], ids=["one block", "its own code"])
def test_a_known_value_in_a_stream_without_a_header_is_found(content: str, level: int) -> None:
    packed = bare(content, level)
    for written in (base64.b64encode(packed).decode(), base64.encodebytes(packed).decode(), packed.hex()):
        assert find_secrets(f"see {written} there", [KNOWN]) == ("known-value",)
        assert written.strip() not in redact(f"see {written} there", [KNOWN])


@pytest.mark.attack(33)
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_wrong_checksum_hides_nothing(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(f"say {KNOWN}, and then something else".encode()))
    packed[-1] ^= 1
    packed[-4] ^= 1
    assert find_secrets(f"see {base64.b64encode(packed).decode()} there", [KNOWN]) == ("known-value",)


@pytest.mark.attack(33)
def test_a_stream_without_a_header_that_unpacks_to_more_than_we_read_is_no_way_out() -> None:
    packed = base64.b64encode(bare("\0" * 1_100_000 + KNOWN)).decode()
    assert redact(f"see {packed} there", [KNOWN]) == "see [redacted: packed-data]"


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("size", [12, 15, 20, 32, 57, 64, 1_000])
def test_noise_is_no_stream(size: int) -> None:
    noise = random.Random(size)
    lines = [base64.b64encode(noise.randbytes(size)).decode() for _ in range(24_000 // size)]
    text = "\n\n".join(lines)
    assert redact(text, [KNOWN]) == text


@pytest.mark.parametrize("end", ["\n", " ", "\n\n"])
def test_each_of_many_short_parts_is_decoded_once(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise, decoded = random.Random(1), list[str]()
    parts = [base64.b64encode(noise.randbytes(15), b"xx").decode() for _ in range(200)]

    def counted(part: str) -> bytes:
        decoded.append(part)
        return base64.b64decode(part)

    monkeypatch.setattr(unpacking, "a2b_base64", counted)
    assert redact(end.join(parts), [KNOWN]) == end.join(parts)
    assert [part for part in decoded if len(part) == 20] == parts
    assert len(decoded) <= len(parts) + 1  # and what the lines are together
