"""Finds secrets in any text that would leave: known values in every usual disguise, and common token formats.

Answers name kinds, never values. Formats are facts published by their issuers (and collected
in gitleaks' rules); known values come from the caller.
"""

from __future__ import annotations

import base64
import html
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from ralph_mission.safety.hidden import CONTROL, ESCAPE, INVISIBLE

SHORTEST = 8
"""Characters below which a known value is too common a word to look for."""
PLACEHOLDERS = re.compile(
    r"(?:pass(?:word|wd|phrase)?|secret|changeme|example|user(?:name)?|token|x+|\*+|\.+|postgres|root|admin|test|[<${%\[].*)$",
    re.IGNORECASE,
)

PLAIN = re.compile(r"[a-z]+|[A-Z]+|[0-9.]+")
"""What a setting is rather than a secret, and what any text may say."""

_KINDS = {
    "github-token": r"\bgh[pousr]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{22,255}",
    "gitlab-token": r"\bgl(?:pat|ptt|dt|rt)-[\w-]{20,}",
    "aws-key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "slack-token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
    "google-key": r"\bAIza[0-9A-Za-z_-]{35}",
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    "openai-key": r"\bsk-(?!ant-)(?=[\w-]{0,60}[0-9])(?=[\w-]{0,60}[A-Z])[\w-]{20,}",
    "stripe-key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}",
    "telegram-token": r"\b[0-9]{8,10}:AA[\w-]{32,34}(?![\w-])",
    "discord-webhook": r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,20}/[\w-]{40,}",
    "private-key": r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "jwt": r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,2000}\.[\w-]{10,}",
    "npm-token": r"\bnpm_[A-Za-z0-9]{36}",
    "pypi-token": r"\bpypi-[\w-]{70,}",
    "hugging-face-token": r"\bhf_[A-Za-z0-9]{34}",
    "sendgrid-key": r"\bSG\.[\w-]{16,64}\.[\w-]{16,}",
}
FORMATS = {kind: re.compile(pattern) for kind, pattern in _KINDS.items()}
URL_PASSWORD = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@'\"<>]{0,100}:(?P<value>[^\s/@'\"<>]{3,200})@", re.IGNORECASE
)
ASSIGNED = re.compile(
    r"(?:api_?key|secret|token|passw(?:or)?d|credential|access_?key)[\w-]{0,20}[\"']?\s{0,9}(?::=|[:=])\s{0,9}[\"']?"
    r"(?P<value>[A-Za-z0-9+/_=-]{24,})",
    re.IGNORECASE,
)

Span = tuple[int, int, str]


def find_secrets(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds of secrets in `text`: `known-value`, or a format's name. Never a value."""
    views = dict.fromkeys((text, _bare(text), unquote(text), html.unescape(text)))
    return tuple(dict.fromkeys(kind for view in views for _, _, kind in (*_formats(view), *_known(view, known))))


def redact(text: str, known: Sequence[str] = ()) -> str:
    """`text` with every secret replaced by `[redacted: kind]`; withheld whole when it cannot be cut out."""
    for start, end, kind in _apart(sorted((*_formats(text), *_known(text, known)))):
        text = f"{text[:start]}[redacted: {kind}]{text[end:]}"
    left = find_secrets(text, known)
    return f"[withheld: it holds {', '.join(left)}]" if left else text


def without(text: str, known: Sequence[str]) -> str:
    """`text` without these known values; formats are left alone, and values that are one plain word or number."""
    telling = [value for value in known if not PLAIN.fullmatch(value)]
    for start, end, kind in _apart(sorted(_known(text, telling))):
        text = f"{text[:start]}[redacted: {kind}]{text[end:]}"
    return text


def _bare(text: str) -> str:
    return INVISIBLE.sub("", CONTROL.sub("", ESCAPE.sub("", text)))


def _formats(text: str) -> Iterator[Span]:
    for kind, pattern in FORMATS.items():
        yield from ((*match.span(), kind) for match in pattern.finditer(text))
    for match in URL_PASSWORD.finditer(text):
        if not PLACEHOLDERS.match(match["value"]):
            yield (*match.span("value"), "url-password")
    for match in ASSIGNED.finditer(text):
        if _looks_random(match["value"]):
            yield (*match.span("value"), "assigned-secret")


def _looks_random(value: str) -> bool:
    """Digits and letters in both cases, and more than 3.5 bits a character: no identifier, no path."""
    mixed = all(re.search(group, value) for group in ("[0-9]", "[a-z]", "[A-Z]"))
    shares = [count / len(value) for count in Counter(value).values()]
    return mixed and -sum(share * math.log2(share) for share in shares) > 3.5


def _known(text: str, known: Sequence[str]) -> Iterator[Span]:
    """Known values, compared by letters and digits alone: no splitting, quoting or padding hides one."""
    if not any(len(value) >= SHORTEST for value in known):
        return
    places = [index for index, letter in enumerate(text) if _counts(letter)]
    squeezed = "".join(text[index] for index in places).lower()
    for form in (form for value in known for form in _forms(value)):
        for match in re.finditer(re.escape(form), squeezed):
            yield (*_whole_word(text, places[match.start()], places[match.end() - 1] + 1), "known-value")
    for value in (value for value in known if len(value) >= SHORTEST > len(_squeeze(value))):
        for match in re.finditer(re.escape(value), text):
            yield (*match.span(), "known-value")


def _whole_word(text: str, start: int, end: int) -> tuple[int, int]:
    """A part was recognised; what stands around it without a space may be the rest."""
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


@lru_cache(maxsize=256)
def _forms(value: str) -> frozenset[str]:
    """Every disguise of one value, squeezed: plain, reversed, parts, hex, base64 at each alignment."""
    parts = [value, *_url_secrets(value)] if len(value) >= SHORTEST else []
    forms = {form for part in parts for form in _disguises(part)}
    return frozenset(form for form in forms if len(form) >= SHORTEST)


def _disguises(value: str) -> Iterator[str]:
    raw, plain = value.encode("utf-8", "surrogateescape"), _squeeze(value)
    yield from (plain, plain[::-1])
    if "://" not in value and len(plain) >= 12:  # a URL's beginning and end say nothing
        most = max(10, -(-2 * len(plain) // 3))
        yield from (plain[:most], plain[-most:], plain[:most][::-1], plain[-most:][::-1])
    for octets in (raw, raw[::-1]):
        yield octets.hex()
        yield from (f"{mark}".join(("", *(f"{octet:02x}" for octet in octets))) for mark in ("0x", "x", "u00"))
        yield from _base64(octets)


def _base64(octets: bytes) -> Iterator[str]:
    """The letters that stay the same whatever stands before and after, for each of three alignments."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + octets).decode().rstrip("=")
        yield _squeeze(encoded[-(-shift * 8 // 6) : (shift + len(octets)) * 8 // 6])


def _url_secrets(value: str) -> list[str]:
    if "://" not in value:
        return []
    try:
        parts = urlsplit(value)
        return [part for part in (parts.password or "", parts.path.rsplit("/", 1)[-1]) if len(part) >= SHORTEST]
    except ValueError:
        return []


def _squeeze(text: str) -> str:
    return "".join(letter for letter in text if _counts(letter)).lower()


def _counts(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Overlapping spans joined, last first, so that cutting one moves no other."""
    joined: list[Span] = []
    for start, end, kind in spans:
        if joined and start < joined[-1][1]:
            first, last, known = joined.pop()
            start, end, kind = first, max(last, end), known
        joined.append((start, end, kind))
    return joined[::-1]
