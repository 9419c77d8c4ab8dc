"""Finds and redacts secrets in outgoing text: known values, and common token formats.

A known value is found verbatim, URL-encoded and in base64, whatever surrounds it; terminal colours, invisible
characters and entities within it do not hide it. Other encodings (hex, reversed, split, compressed) do: this prevents
accidental leaks, and cannot stop somebody who has a secret and wants to send it. Results name kinds, never values.

Token formats are those their issuers publish (most are also in gitleaks' rules). Each has a distinctive part, or is
preceded by a word that says what it is, so ordinary text, hashes, URLs and encoded data do not match.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, takewhile
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from ralph_mission.safety.detect import decode_entities
from ralph_mission.safety.markdown import without_unseen
from ralph_mission.values import compile_regex

_KINDS = {  # by kind: its pattern, and words one of which every match holds
    "github-token": (
        r"\bgh[pousr]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{22,255}",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    ),
    "gitlab-token": (r"\bgl(?:pat|ptt|dt|rt)-[\w-]{20,}", "glpat- glptt- gldt- glrt-"),
    "aws-key": (r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", "AKIA ASIA ABIA ACCA"),
    "slack-token": (
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
        "xox xapp- hooks.slack.com",
    ),
    "google-key": (r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[\w-]{30,}|\bGOCSPX-[\w-]{28}", "AIza ya29. GOCSPX-"),
    "anthropic-key": (r"\bsk-ant-[A-Za-z0-9_-]{16,}", "sk-ant-"),
    "openai-key": (r"\bsk-(?!ant-)(?=[\w-]{0,60}[0-9])(?=[\w-]{0,60}[A-Z])[\w-]{20,}", "sk-"),
    "model-key": (
        r"\bgsk_[A-Za-z0-9]{40,}|\bxai-[A-Za-z0-9]{60,}|\bpplx-[A-Za-z0-9]{40,}|\br8_[A-Za-z0-9]{37,}",
        "gsk_ xai- pplx- r8_",
    ),
    "stripe-key": (r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}", "_live_ _test_ whsec_"),
    "square-token": (r"\bsq0[a-z]{3}-[\w-]{22,43}", "sq0"),
    "shopify-token": (r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b", "shpat_ shpca_ shppa_ shpss_"),
    "twilio-key": (r"\bSK[0-9a-f]{32}\b", "SK"),
    "mailchimp-key": (r"\b[0-9a-f]{32}-us\d{1,2}\b", "-us"),
    "telegram-token": (r"\b[0-9]{8,10}:AA[\w-]{32,34}(?![\w-])", ":AA"),
    "discord-token": (r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])", ""),
    "discord-webhook": (r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,20}/[\w-]{40,}", "/webhooks/"),
    "twitter-bearer": (r"\bA{20,24}[A-Za-z0-9]{2,80}(?:%[0-9A-Fa-f]{2}[A-Za-z0-9]{0,80}){1,9}", "AAAAAAAAAAAAAAAAAAAA"),
    "private-key": (
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\bPuTTY-User-Key-File-\d"
        r"|\bAGE-SECRET-KEY-1[A-Z0-9]{50,}",
        "PRIVATE PuTTY-User-Key-File- AGE-SECRET-KEY-1",
    ),
    "jwt": (r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,2000}\.[\w-]{10,}", "eyJ"),
    "npm-token": (r"\bnpm_[A-Za-z0-9]{36}|_authToken\s{0,3}=\s{0,3}[A-Za-z0-9][\w./+=-]{15,}", "npm_ _authToken"),
    "pypi-token": (r"\bpypi-[\w-]{70,}", "pypi-"),
    "rubygems-key": (r"\brubygems_[a-f0-9]{48}\b", "rubygems_"),
    "docker-token": (r"\bdckr_(?:pat|oat)_[\w-]{20,}", "dckr_"),
    "hugging-face-token": (r"\bhf_[A-Za-z0-9]{34}", "hf_"),
    "sendgrid-key": (r"\bSG\.[\w-]{16,64}\.[\w-]{16,}", "SG."),
    "azure-key": (r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{43,88}={0,2}", "AccountKey= SharedAccessKey="),
    "signed-address": (r"[?&](?:sig=[A-Za-z0-9%+/]{40,}|X-Amz-Signature=[0-9a-f]{64})", "sig= X-Amz-Signature="),
    "digitalocean-token": (r"\bdo[opr]_v1_[a-f0-9]{64}\b", "_v1_"),
    "databricks-token": (r"\bdapi[a-f0-9]{32}\b", "dapi"),
    "heroku-key": (r"\bHRKU-[\w-]{30,}", "HRKU-"),
    "supabase-key": (r"\bsbp_[a-f0-9]{40}\b|\bsb_secret_[\w-]{20,}", "sbp_ sb_secret_"),
    "vault-token": (r"\bhv[sbr]\.[\w-]{24,}", "hvs. hvb. hvr."),
    "doppler-token": (r"\bdp\.(?:pt|st|ct|sa)\.[\w.-]{40,}", "dp."),
    "pulumi-token": (r"\bpul-[a-f0-9]{40}\b", "pul-"),
    "terraform-token": (r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}", ".atlasv1."),
    "1password-token": (r"\bops_eyJ[\w+/=-]{60,}", "ops_eyJ"),
    "grafana-token": (r"\bgl(?:c|sa)_[A-Za-z0-9+/=_-]{32,}", "glc_ glsa_"),
    "sentry-token": (r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}", "sntry"),
    "new-relic-key": (r"\bNRAK-[A-Z0-9]{27}\b", "NRAK-"),
    "sonar-token": (r"\bsq[apu]_[a-f0-9]{40}\b", "sqa_ sqp_ squ_"),
    "atlassian-token": (r"\bATATT3[\w=-]{60,}|\bATBB[A-Za-z0-9]{28,}", "ATATT3 ATBB"),
    "linear-key": (r"\blin_api_[A-Za-z0-9]{40}\b", "lin_api_"),
    "notion-token": (r"\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b", "ntn_ secret_"),
    "authorization": (
        r"(?i:\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3})[\w+/.~-]{16,}",
        "",
    ),
}


def _quick(pattern: str) -> str:
    """The same pattern, arranged so that a search can skip to its first letters."""
    return re.sub(r"\\b([A-Za-z0-9_]+)(?![\w?*+{])", r"\1(?<=\\b\1)", pattern)


FORMATS = {kind: compile_regex(_quick(pattern)) for kind, (pattern, _) in _KINDS.items()}
HINTS = {kind: hints.split() for kind, (_, hints) in _KINDS.items() if hints}
"""Words that a kind requires: most texts are only searched for these, which is much faster."""
CORES = {
    "discord-token": compile_regex(r"\.[\w-]{6}\.[\w-]{27}"),
    "authorization": compile_regex("authorization", re.IGNORECASE),
}
"""The same for kinds without such a word, each of which needs a row here."""
PLACEHOLDERS = compile_regex(
    r"(?:pass(?:word|wd|phrase)?|secret|changeme|example|user(?:name)?|token|x+|\*+|\.+|postgres|root|admin|test|[<${%\[].*)$",
    re.IGNORECASE,
)
ASSIGNABLE = ("apikey", "api_key", "secret", "token", "passw", "credent", "accesskey", "access_key")
"""The same for what is assigned, in any case."""
URL_PASSWORD = compile_regex(
    r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@'\"<>]{0,100}:(?P<value>[^\s/@'\"<>]{3,200})@", re.IGNORECASE
)
ASSIGNED = compile_regex(
    r"(?:api_?key|secret|token|passw(?:or)?d|credential|access_?key)[\w-]{0,20}[\"']?\s{0,9}(?::=|[:=])\s{0,9}[\"']?"
    r"(?P<value>[A-Za-z0-9+/_=-]{24,})",
    re.IGNORECASE,
)

Span = tuple[int, int, str]


def find_formats(text: str) -> Iterator[Span]:
    """The spans and kinds of known formats in a text."""
    for kind, pattern in FORMATS.items():
        if any(hint in text for hint in HINTS[kind]) if kind in HINTS else CORES[kind].search(text):
            yield from ((*match.span(), kind) for match in pattern.finditer(text))
    for match in URL_PASSWORD.finditer(text) if "://" in text else ():
        if not PLACEHOLDERS.match(match["value"]):
            yield (*match.span("value"), "url-password")
    folded = _fold(text)
    for match in ASSIGNED.finditer(text) if any(word in folded for word in ASSIGNABLE) else ():
        if _looks_random(match["value"]):
            yield (*match.span("value"), "assigned-secret")


def _fold(text: str) -> str:
    """The text as case-insensitive patterns read it: dotless and dotted letters are equal."""
    folded = text.casefold()
    return folded if folded.isascii() else folded.replace("\u0307", "").replace("\u0131", "i")


def _looks_random(value: str) -> bool:
    """Whether it has digits, both cases, and more than 3.5 bits per character: not an identifier or a path."""
    shares = [count / len(value) for count in Counter(value).values()]
    return is_mixed(value) and -sum(share * math.log2(share) for share in shares) > 3.5


def is_placeholder(value: str) -> bool:
    """Whether it is a well-known value, such as `postgres` and `password` of a test database."""
    return value.isalnum() and bool(PLACEHOLDERS.match(value))


def is_mixed(value: str) -> bool:
    """Whether it contains digits and letters in both cases."""
    return all(re.search(group, value) for group in ("[0-9]", "[a-z]", "[A-Z]"))


SHORTEST = 8
"""Characters below which a known value is too common to search for."""
LONG_LINE = 16
"""Characters from which a single line of a multi-line value, such as a key, is searched for."""
KEY_BODY = 800
"""Characters of a private key's body that are examined: a dozen lines."""
CUT = "…"
"""Ellipses: where a text was cut within a secret value, the rest is still secret."""
PLAIN = compile_regex(r"[a-z]+|[A-Z]+|[0-9.]+")
"""Values that are settings rather than secrets, and common words."""
ENCODED = compile_regex(r"[A-Za-z0-9+/_-]{8,}={0,2}")
Value = TypeVar("Value")


def find_secrets(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds of secrets in `text`: `known-value`, or a format's name. Never a value."""
    look = partial(find_spans, known=tuple(known))
    return tuple(dict.fromkeys(kind for reading in (text, _as_sanitised(text)) for _, _, kind in look(reading)))


def secret_values(text: str) -> frozenset[tuple[str, str]]:
    """The secrets in `text` by format: (kind, value), each on one line, to search for elsewhere.

    The value of a private key is the longest line of its body, as all keys share the first line.
    """
    return frozenset(
        (kind, _value(kind, reading, start, end))
        for reading in dict.fromkeys((text, without_terminal_codes(text)))
        for start, end, kind in find_formats(reading)
    )


def _value(kind: str, text: str, start: int, end: int) -> str:
    if kind == "url-password":  # possibly a word: include its surroundings
        return text[start - 1 : end + 1]
    body = text[end : end + KEY_BODY].partition("-----")[0] if kind == "private-key" else ""
    return max(map(str.strip, body.splitlines()), key=len, default="") or text[start:end].strip()


def redact(text: str, known: Sequence[str] = ()) -> str:
    """`text` with every secret replaced by `[redacted: kind]`."""
    return _without_spans(text, partial(find_spans, known=tuple(known)))


def without(text: str, known: Sequence[str]) -> str:
    """`text` without these known values; formats stay.

    Values of only lower-case letters, only upper-case letters, or digits and dots stay too: this cleans prompts, memory
    and recordings, where a test database's password may be the project's name or a version. Issues, pull requests and
    posts use `redact`, which spares none.
    """
    distinctive = tuple(value for value in known if not PLAIN.fullmatch(value))
    return _without_spans(text, lambda reading: tuple(_known_values(reading, distinctive))) if distinctive else text


def _without_spans(text: str, look: Callable[[str], tuple[Span, ...]]) -> str:
    text = _cut_out(text, look(text))
    bare = _as_sanitised(text)
    remaining = look(bare) if bare != text else ()
    return _cut_out(bare, remaining) if remaining else text


def without_terminal_codes(text: str) -> str:
    """The text without anything a sink removes or decodes, such as terminal colours, which could hide a secret."""
    return without_unseen(decode_entities(without_unseen(text)))


_as_sanitised = lru_cache(maxsize=256)(without_terminal_codes)


@lru_cache(maxsize=256)  # every rule and sink asks about the same texts
def find_spans(text: str, known: tuple[str, ...]) -> tuple[Span, ...]:
    """The spans of known formats and known values in a text."""
    return (*find_formats(text), *_known_values(text, known))


def _known_values(text: str, known: tuple[str, ...]) -> Iterator[Span]:
    plain = list(chain.from_iterable(map(_plain_forms, known)))
    encoded = list(chain.from_iterable(map(_encoded_forms, known)))
    for form in plain:
        yield from ((start, start + len(form), "known-value") for start in _places(form, text))
    if here := [form for form in encoded if form in text]:  # if part of an encoded run is known, all of it goes
        runs = ENCODED.finditer(text)
        yield from ((*run.span(), "known-value") for run in runs if any(form in run[0] for form in here))
    for form in (*plain, *encoded) if CUT in text else ():
        yield from _cut_values(form, text)


def _cut_values(form: str, text: str) -> Iterator[Span]:
    """The remains of values that were cut."""
    for start in _places(form[:SHORTEST], text):
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(form, text[start : start + len(form)], strict=False))
        end = start + sum(1 for _ in pairs)
        if text.startswith(CUT, end):
            yield (start, end, "known-value")


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


@lru_cache(maxsize=256)
def _plain_forms(value: str) -> tuple[str, ...]:
    """A known value and its secret parts, verbatim and URL-encoded."""
    return tuple(dict.fromkeys(form for part in _parts(value) for form in (part, quote(part, safe=""))))


@lru_cache(maxsize=256)
def _encoded_forms(value: str) -> tuple[str, ...]:
    octets = (part.encode("utf-8", "surrogateescape") for part in _parts(value))
    return tuple(dict.fromkeys(form for part in octets for form in _in_base64(part)))


def _parts(value: str) -> list[str]:
    return [value, *_lines(value), *_password(value)] if len(value) >= SHORTEST else []


def _lines(value: str) -> list[str]:
    """The lines of a multi-line key, except header and footer."""
    lines = [line.strip() for line in value.replace("\\n", "\n").splitlines()]  # as in a file of NAME=value
    return [line for line in lines if len(line) >= LONG_LINE and not line.startswith("-----")] if lines[1:] else []


def _password(value: str) -> list[str]:
    """The password in a URL, unless it is well known or equals the user."""
    try:
        address = urlsplit(value)
        user, password = address.username or "", address.password or ""
    except ValueError:
        return []
    known = len(password) < SHORTEST or password == user or is_placeholder(password)
    return [] if known else [password, unquote(password)]


def _in_base64(octets: bytes) -> Iterator[str]:
    """The base64 letters that do not depend on what surrounds the value, for each offset in a group of three bytes."""
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            letters = encode(b"\0" * shift + octets).decode()
            yield letters[-(-shift * 8 // 6) : (shift + len(octets)) * 8 // 6]


def _cut_out(text: str, spans: Iterable[Span]) -> str:
    pieces, end = list[str](), 0
    for start, stop, kind in _join_spans(sorted(spans)):
        pieces += (text[end:start], f"[redacted: {kind}]")
        end = stop
    return "".join((*pieces, text[end:]))


def _join_spans(spans: Sequence[Span]) -> list[Span]:
    """Overlapping spans as one, in order."""
    joined: list[Span] = []
    for start, end, kind in spans:
        if joined and start < joined[-1][1]:
            first, last, known = joined.pop()
            start, end, kind = first, max(last, end), known
        joined.append((start, end, kind))
    return joined


# --- records: every text of a value, however deep it lies ------------------------------


def redact_record(value: Value, known: Sequence[str]) -> Value:
    """The value with secrets redacted in every text: sessions repeat what they read."""
    return _map_texts(value, lambda text: redact(text, known) if text else text)


def strip_known(value: Value, known: Sequence[str], but: Collection[str] = ()) -> Value:
    """The value without these known values in any text, except texts in `but`."""
    if not any(without(text, known) != text for text in texts(value) if text not in but):
        return value
    return _map_texts(value, lambda text: text if text in but else without(text, known))


def texts(value: object) -> Iterator[str]:
    """Every text of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        yield from texts(tuple(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from texts(getattr(value, one.name))


def _map_texts(value: Value, change: Callable[[str], str]) -> Value:
    mapped: Any = value
    if isinstance(mapped, str):
        mapped = mapped if isinstance(mapped, Enum) else change(mapped)
    elif isinstance(mapped, tuple | list | frozenset):
        mapped = type(mapped)(_map_texts(one, change) for one in mapped)
    elif isinstance(mapped, dict):
        mapped = {key: _map_texts(one, change) for key, one in mapped.items()}
    elif is_dataclass(mapped) and not isinstance(mapped, type):
        mapped = replace(mapped, **{one.name: _map_texts(getattr(mapped, one.name), change) for one in fields(mapped)})
    return mapped  # type: ignore[no-any-return]  # of the type it was
