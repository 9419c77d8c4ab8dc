"""What a client of `ralph mcp` sends, as the package can read it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import BinaryIO

import anyio
from pydantic_core import from_json

LAST = 100  # times that the loop is let go on for answers that nobody may wait for, 10 ms each

ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u[dD][89a-fA-F]\w\w|.)")
"""An escape in JSON; a pair of surrogates is one, so that half a pair can be told from it."""
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{}]')
"""In JSON: a string, or where something begins or ends."""
CALL = re.compile(r'\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")')
"""What stands after a message's "id"."""
UNREADABLE = "none: your message cannot be read. Send fewer digits, fewer lists in lists, and whole JSON"


CHUNK = 1024 * 1024
"""Bytes read at once; a line may be longer."""


async def lines(descriptor: int, wire: Wire) -> AsyncIterator[str]:
    """Lines of JSON as the package can read them: it drops what it cannot parse and never answers such a call.

    Half a surrogate pair became U+FFFD; any other call became one that is answered with an error. No thread reads
    them: the package's own way costs a fifth of a call. The end is told only when what was asked is answered: the
    package lets go of everything then.
    """
    async for line in _whole_lines(descriptor):
        readable = _answerable(ESCAPE.sub(_whole, line.decode("utf-8", "replace")))
        wire.expected += _is_call(readable)
        yield readable
    for _ in range(LAST):
        if wire.answered < wire.expected:
            await anyio.sleep(0.01)


async def _whole_lines(descriptor: int) -> AsyncIterator[bytes | bytearray]:
    kept = bytearray()
    while chunk := await _chunk(descriptor):
        kept += chunk
        if b"\n" in chunk:
            *whole, kept = kept.split(b"\n")
            for line in whole:
                yield line
    if kept:
        yield kept


async def _chunk(descriptor: int) -> bytes:
    with suppress(PermissionError):  # a file: it has its content at once, and no kernel tells when
        await anyio.wait_readable(descriptor)
    return os.read(descriptor, CHUNK)


def _is_call(line: str) -> bool:
    """Whether it is one that is answered."""
    try:
        said = from_json(line)
    except ValueError:
        return False
    return isinstance(said, dict) and "id" in said and "method" in said


def _answerable(line: str) -> str:
    try:
        from_json(line)
    except ValueError:
        if call := _call(line):
            asked = {"name": UNREADABLE, "arguments": {}}
            return f'{{"jsonrpc": "2.0", "id": {call}, "method": "tools/call", "params": {json.dumps(asked)}}}\n'
    return line


def _call(line: str) -> str:
    """The id of the call, as it is spelled in a line that no parser reads; "" when it is none."""
    depth = 0
    for token in TOKEN.finditer(line):
        depth += (token[0] in "{[") - (token[0] in "]}")
        if depth == 1 and token[0] == '"id"' and (found := CALL.match(line, token.end())):
            return found[1]
    return ""


def _whole(match: re.Match[str]) -> str:
    escape = match.group()
    return r"\ufffd" if len(escape) == 6 and escape[1:3] in ("ud", "uD") else escape


class Wire:
    """Where answers go. They are short, and nobody waits for anything else meanwhile, so no thread writes them: the
    package's own way costs a third of a call.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.expected = self.answered = 0

    async def write(self, text: str) -> None:
        """A whole line: an answer, as nothing else is said to a client here."""
        self.answered += 1
        with suppress(BrokenPipeError):
            self._raw.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        """Send what was written; a client that has gone hears nothing."""
        with suppress(BrokenPipeError):
            self._raw.flush()


def claimed() -> Wire:
    """Standard output for answers alone; what anything else prints from now on goes to standard error."""
    sys.stdout.flush()
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return Wire(wire)
