"""Finds secrets in any text that would leave: known values in every usual disguise, and common token formats.

Answers name kinds, never values. Formats are in `token_formats`; known values come from the caller, and how they may be
disguised is in `disguises`.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, takewhile

from ralph_mission.safety.disguises import SHORTEST, UNCOUNTED, forms, squeezed, views
from ralph_mission.safety.token_formats import Span, formats
from ralph_mission.safety.unpacking import LARGEST, unpacked

PLAIN = re.compile(r"[a-z]+|[A-Z]+|[0-9.]+")
"""What a setting is rather than a secret, and what any text may say."""
CUT = "…"
"""What stands where a text was cut: of a value that it went through, the rest is no less secret for it."""


def find_secrets(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds of secrets in `text`: `known-value`, or a format's name. Never a value."""
    return _find(text, tuple(known))


@lru_cache(maxsize=256)  # each rule and each sink asks about the same texts
def _find(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    return _kinds(views(text), known)


def _kinds(readings: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for reading in readings for _, _, kind in _spans(reading, known)))


def redact(text: str, known: Sequence[str] = ()) -> str:
    """`text` with every secret replaced by `[redacted: kind]`; withheld whole when it cannot be cut out."""
    return _redact(text, tuple(known))


@lru_cache(maxsize=256)
def _redact(text: str, known: tuple[str, ...]) -> str:
    found = tuple(_spans(text, known))
    text = _cut_out(text, found)
    left = _kinds(views(text)[0 if found else 1 :], known)  # of what nothing was cut out, itself was read already
    return f"[withheld: it holds {', '.join(left)}]" if left else text


def without(text: str, known: Sequence[str]) -> str:
    """`text` without these known values; a line that holds one in disguise goes whole. Formats are left alone.

    So are values of lower-case letters alone, of upper-case letters alone, or of digits and dots: this cleans what a
    prompt, memory or a recording says, where a test database's password may be the name of the project or a version,
    and nobody could work on a text without these. Issues, pulls and posts are for `redact`, which spares none.
    """
    telling = [value for value in known if not PLAIN.fullmatch(value)]
    text = _cut_out(text, _known(text, telling))
    if not _holds(text, telling):
        return text
    return "".join(_line_without(line, telling) for line in text.splitlines(keepends=True))


def _line_without(line: str, known: Sequence[str]) -> str:
    end = line[len(line.rstrip("\r\n")) :]
    return f"[redacted: known-value]{end}" if _holds(line, known) else line


def _holds(text: str, known: Sequence[str]) -> bool:
    return any(True for view in views(text) for _ in _known(view, known))


def _spans(text: str, known: Sequence[str]) -> Iterator[Span]:
    return _anywhere(text, lambda part: chain(formats(part), _standing(part, known)))


def _known(text: str, known: Sequence[str]) -> Iterator[Span]:
    """Known values, compared by letters and digits alone: no splitting, quoting, padding or packing hides one."""
    return _anywhere(text, lambda part: _standing(part, known)) if known else iter(())


def _anywhere(text: str, look: Callable[[str], Iterator[Span]]) -> Iterator[Span]:
    yield from look(text)
    yield from _within(text, look)


def _within(text: str, look: Callable[[str], Iterator[Span]]) -> Iterator[Span]:
    """What is found in the encoded parts of a text, as spans of those parts; `packed-data` is more than we unpack."""
    parts, ends, grown = list[tuple[int, int, str]](), array("L"), 0
    for start, end, inner in unpacked(text):
        grown += max(0, len(inner) - (end - start))
        if grown > LARGEST:
            yield (start, len(text), "packed-data")
            break
        parts.append((start, end, inner))
        ends.append((ends[-1] + 1 if ends else 0) + len(inner))
    found = look("\n".join(inner for _, _, inner in parts))  # one look is cheaper than many
    for at in sorted({at for first, last, _ in found for at in range(bisect(ends, first), bisect(ends, last - 1) + 1)}):
        start, end, inner = parts[at]
        yield from ((start, end, kind) for _, _, kind in look(inner))


def _standing(text: str, known: Sequence[str]) -> Iterator[Span]:
    known = [value for value in known if len(value) >= SHORTEST]
    if not known:
        return
    letters = squeezed(text)
    written = {form for value in known for form in forms(value)}
    cut = CUT in text
    present = [form for form in written if (form[:SHORTEST] if cut else form) in letters]
    places = array("L", chain.from_iterable(_counted(text))) if present else array("L")
    for form in present:
        yield from _whole(form, text, letters, places)
        if cut:
            yield from _begun(form, text, letters, places)
    for value in (value for value in known if len(squeezed(value)) < SHORTEST):
        for at in _found(value, text):
            yield (at, at + len(value), "known-value")


def _whole(form: str, text: str, letters: str, places: Sequence[int]) -> Iterator[Span]:
    end = 0
    for at in _found(form, letters):
        if places[at + len(form) - 1] >= end:  # else it is in the word that went with the one before
            start, end = _whole_word(text, places[at], places[at + len(form) - 1] + 1)
            yield (start, end, "known-value")


def _begun(form: str, text: str, letters: str, places: Sequence[int]) -> Iterator[Span]:
    """What a cut has left of a value that it took the rest of."""
    for at in _found(form[:SHORTEST], letters):
        last = at + _shared(form, letters[at : at + len(form)])
        end = places[last] if last < len(places) else len(text)  # where something else begins
        cut = text.rfind(CUT, places[at + SHORTEST - 1], end)
        if cut >= 0:
            yield (places[at], max(cut, places[last - 1] + 1), "known-value")


def _shared(one: str, other: str) -> int:
    """How many letters two words begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _counted(text: str) -> Iterator[range]:
    """The places of what `squeezed` keeps."""
    begin = 0
    for match in UNCOUNTED.finditer(text):
        yield range(begin, match.start())
        begin = match.end()
    yield range(begin, len(text))


def _found(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _whole_word(text: str, start: int, end: int) -> tuple[int, int]:
    """A part was recognised; what stands around it without a space may be the rest."""
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


def _cut_out(text: str, spans: Iterable[Span]) -> str:
    pieces, end = list[str](), 0
    for start, stop, kind in _apart(sorted(spans)):
        pieces += (text[end:start], f"[redacted: {kind}]")
        end = stop
    return "".join((*pieces, text[end:]))


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Overlapping spans joined, in order."""
    joined: list[Span] = []
    for start, end, kind in spans:
        if joined and start < joined[-1][1]:
            first, last, known = joined.pop()
            start, end, kind = first, max(last, end), known
        joined.append((start, end, kind))
    return joined
