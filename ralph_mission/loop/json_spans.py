"""Where the parts of a JSON text stand, so that one value can be replaced and every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODE = json.JSONDecoder().raw_decode

Edit = tuple[int, int, str]
"""From, to, and the text that takes the place."""


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one object: key -> where the key and the value start, and where the value ends."""

    opening: int
    spans: dict[str, tuple[int, int, int]]

    def __contains__(self, key: str) -> bool:
        return key in self.spans

    def start(self, key: str) -> int:
        """Where the value of `key` starts."""
        return self.spans[key][1]

    def edit(self, text: str, key: str, value: str) -> Edit:
        """The edit that gives `key` this value; a key that is not there yet comes last, laid out as the others are."""
        if key in self.spans:
            _, start, end = self.spans[key]
            return start, end, value
        if not self.spans:
            return self.opening + 1, self.opening + 1, f'"{key}": {value}'
        first = min(span[0] for span in self.spans.values())
        last = max(span[2] for span in self.spans.values())
        return last, last, f",{text[self.opening + 1 : first]}{json.dumps(key)}: {value}"


def members(text: str, at: int) -> Members:
    """The members of the object that starts at `at` in valid JSON; of a repeated key the last, as parsers do."""
    spans = {}
    for start in _parts(text, at):
        key, end = _DECODE(text, start)
        value = _skip(text, _skip(text, end) + 1)
        spans[key] = (start, value, _DECODE(text, value)[1])
    return Members(at, spans)


def elements(text: str, at: int) -> list[int]:
    """Where the elements of the array that starts at `at` in valid JSON start."""
    return list(_parts(text, at))


def applied(text: str, edits: Iterable[Edit]) -> str:
    """`text` after all edits, which do not overlap; those at one place stand in the order given."""
    for start, end, new in sorted(edits, key=lambda edit: edit[:2])[::-1]:
        text = text[:start] + new + text[end:]
    return text


def _parts(text: str, at: int) -> Iterator[int]:
    closing = "}" if text[at] == "{" else "]"
    place = _skip(text, at + 1)
    while text[place] != closing:
        yield place
        end = _DECODE(text, place)[1]
        after = _skip(text, end)
        if text[after] == ":":
            after = _skip(text, _DECODE(text, _skip(text, after + 1))[1])
        place = _skip(text, after + 1) if text[after] == "," else after


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
