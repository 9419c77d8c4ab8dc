"""Finds secrets in any text that would leave, and takes them out: known values, and common token formats.

A known value is found as it stands, as addresses quote it, and in base64, whatever stands around it there; terminal
colours, invisible characters and entities within it do not hide it. Any other writing (hex, reversed, split,
compressed) does: this is against leaks by accident, not against somebody who holds a secret and means to send it.
Answers name kinds, never values.

Token formats are those that their issuers publish (most are in gitleaks' rules, too). Each begins with letters that
nothing else begins with, or stands beside a word that says what it is, so that ordinary text, hashes, addresses and
encoded data hold none.
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
from ralph_mission.safety.markdown import without_controls, without_invisible
from ralph_mission.values import compile_regex

_KINDS = {
    "github-token": r"\bgh[pousr]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{22,255}",
    "gitlab-token": r"\bgl(?:pat|ptt|dt|rt)-[\w-]{20,}",
    "aws-key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "slack-token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    "google-key": r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[\w-]{30,}|\bGOCSPX-[\w-]{28}",
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    "openai-key": r"\bsk-(?!ant-)(?=[\w-]{0,60}[0-9])(?=[\w-]{0,60}[A-Z])[\w-]{20,}",
    "model-key": r"\bgsk_[A-Za-z0-9]{40,}|\bxai-[A-Za-z0-9]{60,}|\bpplx-[A-Za-z0-9]{40,}|\br8_[A-Za-z0-9]{37,}",
    "stripe-key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}",
    "square-token": r"\bsq0[a-z]{3}-[\w-]{22,43}",
    "shopify-token": r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    "twilio-key": r"\bSK[0-9a-f]{32}\b",
    "mailchimp-key": r"\b[0-9a-f]{32}-us\d{1,2}\b",
    "telegram-token": r"\b[0-9]{8,10}:AA[\w-]{32,34}(?![\w-])",
    "discord-token": r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])",
    "discord-webhook": r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,20}/[\w-]{40,}",
    "twitter-bearer": r"\bA{20,24}[A-Za-z0-9]{2,80}(?:%[0-9A-Fa-f]{2}[A-Za-z0-9]{0,80}){1,9}",
    "private-key": r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\bPuTTY-User-Key-File-\d"
    r"|\bAGE-SECRET-KEY-1[A-Z0-9]{50,}",
    "jwt": r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,2000}\.[\w-]{10,}",
    "npm-token": r"\bnpm_[A-Za-z0-9]{36}|_authToken\s{0,3}=\s{0,3}[A-Za-z0-9][\w./+=-]{15,}",
    "pypi-token": r"\bpypi-[\w-]{70,}",
    "rubygems-key": r"\brubygems_[a-f0-9]{48}\b",
    "docker-token": r"\bdckr_(?:pat|oat)_[\w-]{20,}",
    "hugging-face-token": r"\bhf_[A-Za-z0-9]{34}",
    "sendgrid-key": r"\bSG\.[\w-]{16,64}\.[\w-]{16,}",
    "azure-key": r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{43,88}={0,2}",
    "signed-address": r"[?&](?:sig=[A-Za-z0-9%+/]{40,}|X-Amz-Signature=[0-9a-f]{64})",
    "digitalocean-token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    "databricks-token": r"\bdapi[a-f0-9]{32}\b",
    "heroku-key": r"\bHRKU-[\w-]{30,}",
    "supabase-key": r"\bsbp_[a-f0-9]{40}\b|\bsb_secret_[\w-]{20,}",
    "vault-token": r"\bhv[sbr]\.[\w-]{24,}",
    "doppler-token": r"\bdp\.(?:pt|st|ct|sa)\.[\w.-]{40,}",
    "pulumi-token": r"\bpul-[a-f0-9]{40}\b",
    "terraform-token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}",
    "1password-token": r"\bops_eyJ[\w+/=-]{60,}",
    "grafana-token": r"\bgl(?:c|sa)_[A-Za-z0-9+/=_-]{32,}",
    "sentry-token": r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}",
    "new-relic-key": r"\bNRAK-[A-Z0-9]{27}\b",
    "sonar-token": r"\bsq[apu]_[a-f0-9]{40}\b",
    "atlassian-token": r"\bATATT3[\w=-]{60,}|\bATBB[A-Za-z0-9]{28,}",
    "linear-key": r"\blin_api_[A-Za-z0-9]{40}\b",
    "notion-token": r"\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b",
    "authorization": r"(?i:\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3})[\w+/.~-]{16,}",
}


def _quick(pattern: str) -> str:
    """The same, said so that a search can leap from one place with its first letters to the next."""
    return re.sub(r"\\b([A-Za-z0-9_]+)(?![\w?*+{])", r"\1(?<=\\b\1)", pattern)


FORMATS = {kind: compile_regex(_quick(pattern)) for kind, pattern in _KINDS.items()}
HINTS = {
    "github-token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "gitlab-token": ("glpat-", "glptt-", "gldt-", "glrt-"),
    "aws-key": ("AKIA", "ASIA", "ABIA", "ACCA"),
    "slack-token": ("xox", "xapp-", "hooks.slack.com"),
    "google-key": ("AIza", "ya29.", "GOCSPX-"),
    "anthropic-key": ("sk-ant-",),
    "openai-key": ("sk-",),
    "model-key": ("gsk_", "xai-", "pplx-", "r8_"),
    "stripe-key": ("_live_", "_test_", "whsec_"),
    "square-token": ("sq0",),
    "shopify-token": ("shpat_", "shpca_", "shppa_", "shpss_"),
    "twilio-key": ("SK",),
    "mailchimp-key": ("-us",),
    "telegram-token": (":AA",),
    "discord-webhook": ("/webhooks/",),
    "twitter-bearer": ("AAAAAAAAAAAAAAAAAAAA",),
    "private-key": ("PRIVATE KEY", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"),
    "jwt": ("eyJ",),
    "npm-token": ("npm_", "_authToken"),
    "pypi-token": ("pypi-",),
    "rubygems-key": ("rubygems_",),
    "docker-token": ("dckr_",),
    "hugging-face-token": ("hf_",),
    "sendgrid-key": ("SG.",),
    "azure-key": ("AccountKey=", "SharedAccessKey="),
    "signed-address": ("sig=", "X-Amz-Signature="),
    "digitalocean-token": ("_v1_",),
    "databricks-token": ("dapi",),
    "heroku-key": ("HRKU-",),
    "supabase-key": ("sbp_", "sb_secret_"),
    "vault-token": ("hvs.", "hvb.", "hvr."),
    "doppler-token": ("dp.",),
    "pulumi-token": ("pul-",),
    "terraform-token": (".atlasv1.",),
    "1password-token": ("ops_eyJ",),
    "grafana-token": ("glc_", "glsa_"),
    "sentry-token": ("sntry",),
    "new-relic-key": ("NRAK-",),
    "sonar-token": ("sqa_", "sqp_", "squ_"),
    "atlassian-token": ("ATATT3", "ATBB"),
    "linear-key": ("lin_api_",),
    "notion-token": ("ntn_", "secret_"),
}
"""Words without which a text holds nothing of a kind: most texts are searched for words alone, which is much faster."""
PLACEHOLDERS = compile_regex(
    r"(?:pass(?:word|wd|phrase)?|secret|changeme|example|user(?:name)?|token|x+|\*+|\.+|postgres|root|admin|test|[<${%\[].*)$",
    re.IGNORECASE,
)
CORES = {
    "discord-token": compile_regex(r"\.[\w-]{6}\.[\w-]{27}"),
    "authorization": compile_regex("authorization", re.IGNORECASE),
}
"""The same for those without such a word."""
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
    """Where something of a known format stands, and what."""
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
    """As patterns read it that take no notice of case: dotless and dotted letters are the same to them."""
    folded = text.casefold()
    return folded if folded.isascii() else folded.replace("\u0307", "").replace("\u0131", "i")


def _looks_random(value: str) -> bool:
    """Digits and letters in both cases, and more than 3.5 bits a character: no identifier, no path."""
    shares = [count / len(value) for count in Counter(value).values()]
    return is_mixed(value) and -sum(share * math.log2(share) for share in shares) > 3.5


def is_placeholder(value: str) -> bool:
    """Whether it stands for a value that everybody may say: the `postgres` and `password` of a test database."""
    return value.isalnum() and bool(PLACEHOLDERS.match(value))


def is_mixed(value: str) -> bool:
    """Whether there are digits and letters in both cases in it."""
    return all(re.search(group, value) for group in ("[0-9]", "[a-z]", "[A-Z]"))


SHORTEST = 8
"""Characters below which a known value is too common a word to look for."""
LONG_LINE = 16
"""Characters from which on a line of a value that has several, as keys do, is looked for alone."""
KEY_BODY = 800
"""Characters of a private key's body that are looked at: a dozen lines of it."""
CUT = "…"
"""What stands where a text was cut: of a value that it went through, the rest is no less secret for it."""
PLAIN = compile_regex(r"[a-z]+|[A-Z]+|[0-9.]+")
"""What a setting is rather than a secret, and what any text may say."""
ENCODED = compile_regex(r"[A-Za-z0-9+/_-]{8,}={0,2}")
Value = TypeVar("Value")


def find_secrets(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds of secrets in `text`: `known-value`, or a format's name. Never a value."""
    look = partial(find_spans, known=tuple(known))
    return tuple(dict.fromkeys(kind for reading in (text, _as_sanitised(text)) for _, _, kind in look(reading)))


def secret_values(text: str) -> frozenset[tuple[str, str]]:
    """What in `text` has the form of a secret: (kind, value), each on one line, to be looked for elsewhere.

    Of a private key the value is the longest line of its body: all keys share the line that begins them.
    """
    return frozenset(
        (kind, _value(kind, reading, start, end))
        for reading in dict.fromkeys((text, without_terminal_codes(text)))
        for start, end, kind in find_formats(reading)
    )


def _value(kind: str, text: str, start: int, end: int) -> str:
    if kind == "url-password":  # a word, maybe: with what stands around it
        return text[start - 1 : end + 1]
    body = text[end : end + KEY_BODY].partition("-----")[0] if kind == "private-key" else ""
    return max(map(str.strip, body.splitlines()), key=len, default="") or text[start:end].strip()


def redact(text: str, known: Sequence[str] = ()) -> str:
    """`text` with every secret replaced by `[redacted: kind]`."""
    return _without_spans(text, partial(find_spans, known=tuple(known)))


def without(text: str, known: Sequence[str]) -> str:
    """`text` without these known values. Formats are left alone.

    So are values of lower-case letters alone, of upper-case letters alone, or of digits and dots: this cleans what a
    prompt, memory or a recording says, where a test database's password may be the name of the project or a version,
    and nobody could work on a text without these. Issues, pulls and posts are for `redact`, which spares none.
    """
    distinctive = tuple(value for value in known if not PLAIN.fullmatch(value))
    return _without_spans(text, lambda reading: tuple(_known_values(reading, distinctive))) if distinctive else text


def _without_spans(text: str, look: Callable[[str], tuple[Span, ...]]) -> str:
    text = _cut_out(text, look(text))
    bare = _as_sanitised(text)
    left = look(bare) if bare != text else ()
    return _cut_out(bare, left) if left else text


def without_terminal_codes(text: str) -> str:
    """The text without what any sink takes out or decodes, as terminal colours: it must not uncover a secret."""
    return without_invisible(without_controls(decode_entities(without_invisible(without_controls(text)))))


_as_sanitised = lru_cache(maxsize=256)(without_terminal_codes)


@lru_cache(maxsize=256)  # each rule and each sink asks about the same texts
def find_spans(text: str, known: tuple[str, ...]) -> tuple[Span, ...]:
    """Where tokens of known formats and known values stand in a text."""
    return (*find_formats(text), *_known_values(text, known))


def _known_values(text: str, known: tuple[str, ...]) -> Iterator[Span]:
    plain = list(chain.from_iterable(map(_plain_forms, known)))
    encoded = list(chain.from_iterable(map(_encoded_forms, known)))
    for form in plain:
        yield from ((start, start + len(form), "known-value") for start in _places(form, text))
    if here := [form for form in encoded if form in text]:  # of an encoded part of which some is known, all goes
        runs = ENCODED.finditer(text)
        yield from ((*run.span(), "known-value") for run in runs if any(form in run[0] for form in here))
    for form in (*plain, *encoded) if CUT in text else ():
        yield from _cut_values(form, text)


def _cut_values(form: str, text: str) -> Iterator[Span]:
    """What a cut has left of a value that it took the rest of."""
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
    """A known value and what of it is secret alone, as they stand and as addresses quote them."""
    return tuple(dict.fromkeys(form for part in _parts(value) for form in (part, quote(part, safe=""))))


@lru_cache(maxsize=256)
def _encoded_forms(value: str) -> tuple[str, ...]:
    octets = (part.encode("utf-8", "surrogateescape") for part in _parts(value))
    return tuple(dict.fromkeys(form for part in octets for form in _in_base64(part)))


def _parts(value: str) -> list[str]:
    return [value, *_lines(value), *_password(value)] if len(value) >= SHORTEST else []


def _lines(value: str) -> list[str]:
    """Each line of a key that has several, but for those that say what it is."""
    lines = [line.strip() for line in value.replace("\\n", "\n").splitlines()]  # a file of NAME=value writes them so
    return [line for line in lines if len(line) >= LONG_LINE and not line.startswith("-----")] if lines[1:] else []


def _password(value: str) -> list[str]:
    """The password of an address, but for one that everybody knows or that is its user, too."""
    try:
        address = urlsplit(value)
        user, password = address.username or "", address.password or ""
    except ValueError:
        return []
    known = len(password) < SHORTEST or password == user or is_placeholder(password)
    return [] if known else [password, unquote(password)]


def _in_base64(octets: bytes) -> Iterator[str]:
    """The letters that stay the same whatever stands before and after, for each place in a group of three octets."""
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
    """The same with no secret in any text: sessions say what they read, and some of that is nobody's business."""
    return _map_texts(value, lambda text: redact(text, known) if text else text)


def strip_known(value: Value, known: Sequence[str], but: Collection[str] = ()) -> Value:
    """The same without these known values, whoever wrote them there; texts that are in `but` stay as they are."""
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
