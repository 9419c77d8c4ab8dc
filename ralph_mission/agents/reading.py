"""What an agent's process gave, read as a turn: its last message, what it took, and why it failed if it did.

Pure: bytes and an exit code in, a value out. A time-out is decided before any word is read, so that it is never
taken for a provider's limit; and words are looked at only when the process failed or says itself that it did, so
that an agent may write about rate limits as much as it likes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ralph_mission.agents.waits import seconds_until
from ralph_mission.loop.model import Failure, Turn, Usage
from ralph_mission.safety.text import sanitise

LAST_LINES, LAST_CHARACTERS = 5, 600
LOOKED_AT = 30  # lines of errors: what ended a process stands at its end. Of its words the last few are enough
READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
MISSING = re.compile(r"not found|No such file or directory|Permission denied|cannot execute", re.IGNORECASE)

STATUS = r"(?:API Error|HTTP(?:/[\d.]+)?|status(?:[ _]?code)?|error(?:[ _]code)?|code)\W{0,5}"
FAULTS: tuple[tuple[Failure, str, str], ...] = (
    # failure, what is looked for, who says it
    ("server", r"tool use concurrency", "Claude Code: API Error: 400 due to tool use concurrency issues"),
    ("rate_limit", STATUS + r"429\b|\b429 Too Many Requests", "RFC 6585; Codex: last status: 429 Too Many Requests"),
    ("rate_limit", r"\brate_limit_(?:error|exceeded)\b", "error types of the Anthropic and OpenAI APIs"),
    ("rate_limit", r"\brate[ -]?limit\b.{0,40}\b(?:reached|exceeded|hit)\b", "OpenAI: Rate limit reached for …"),
    ("rate_limit", r"\brate[ -]?limited\b|\bexceed (?:your|the).{0,40}rate limit", "OpenRouter; Anthropic"),
    ("rate_limit", r"\b(?:usage|session|weekly|5-hour) limit reached", "Claude Code: usage limit reached|1753088400"),
    ("rate_limit", r"\bhit your (?:\w+ )?limit\b", "Claude Code, Codex: You've hit your session limit · resets …"),
    ("rate_limit", r"\bRESOURCE_EXHAUSTED\b|\bquota exceeded\b|\binsufficient_quota\b", "Google; OpenAI"),
    ("server", STATUS + r"5\d\d\b", "RFC 9110 §15.6; Anthropic adds 529"),
    ("server", r"\b50[0234] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)", "RFC 9110"),
    ("server", r"\boverloaded_error\b|\berror\W{1,3}overloaded\b", "Anthropic: 529 overloaded"),
    ("server", r"\b(?:api_error|server_error|internal_server_error)\b", "error types of the same APIs"),
    ("server", r"\b(?:ECONNRESET|ETIMEDOUT|stream disconnected)\b", "Node.js; Codex: stream disconnected before …"),
)  # fmt: skip  # one table
"""The first that matches names the failure. Nothing here is looked for in the words of a turn that went well."""
_FAULTS = tuple((failure, re.compile(pattern, re.IGNORECASE)) for failure, pattern, _ in FAULTS)


NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Gave:
    """What is left of a process: streams, exit code, how it was ended by us, wall time in seconds."""

    stdout: bytes
    stderr: bytes = b""
    code: int = 0
    timed_out: bool = False
    stopped: bool = False
    truncated: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """The last message, the error that the output itself reports ("" none), and tokens and cost where it tells them."""

    text: str
    error: str = ""
    usage: Usage = NOTHING


def turn(gave: Gave, now: datetime) -> Turn:
    """The turn that this process played; `now` is what reset times are counted from."""
    said = message(gave.stdout.decode(errors="replace"))
    usage = replace(said.usage, sessions=1, seconds=gave.seconds)
    failure = _ended(gave)
    if failure:
        return Turn(said.text, failure, _how(gave), usage=usage)
    if not gave.code and not said.error:
        return Turn(said.text, usage=usage)
    told = _told(gave, said)
    failure = _missing(gave, told) or fault(told)
    wait = seconds_until(told, now) if failure in ("rate_limit", "server") else 0.0
    return Turn(said.text, failure, _detail(gave, said), wait, _turned_away(failure, usage))


def _turned_away(failure: Failure, usage: Usage) -> Usage:
    """A program that is not there, and one that was turned away before it told of any token, cost nothing."""
    nothing = usage.cost_usd is None and not (usage.input_tokens or usage.output_tokens)
    return replace(usage, cost_usd=0.0) if nothing and failure in ("missing", "rate_limit") else usage


def message(stdout: str) -> Said:
    """The last message in an agent's output: plain text, or a JSON document (whole, or the last line).

    `claude -p --output-format json` prints one object (`stream-json`: one per line, this one last) with `type`
    "result", `subtype`, `is_error`, `result`, `usage` and `total_cost_usd`.
    """
    whole = stdout.strip()
    before, _, last = whole.rpartition("\n")
    found, rest = _document(whole), ""
    if found is None:
        found, rest = _document(last.strip()), before
    if found is None:
        return Said(whole)
    result = found.get("result")
    text = result if isinstance(result, str) else "" if _stream(rest) else rest.strip()
    return Said(text, _error(found), _usage(found))


def fault(text: str) -> Failure:
    """What kind of failure the last lines of a failed turn speak of; "exit" when it is none of a provider's."""
    return next((failure for failure, pattern in _FAULTS if pattern.search(text)), "exit")


def last_lines(text: str) -> str:
    """The end of an output, as plain text of a few lines."""
    lines = [line.strip() for line in sanitise(text[-20_000:], "log").splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]


def _ended(gave: Gave) -> Failure:
    """The failures that are ours: nothing that the agent printed has a say in them."""
    if gave.timed_out:
        return "timeout"
    return "exit" if gave.stopped or gave.truncated else ""


def _how(gave: Gave) -> str:
    if gave.timed_out:
        return f"not done after {gave.seconds:.0f} s"
    return "ended: somebody asked for it" if gave.stopped else "ended: too much output"


def _missing(gave: Gave, told: str) -> Failure:
    return "missing" if gave.code in (126, 127) and not gave.stdout.strip() and MISSING.search(told) else ""


def _told(gave: Gave, said: Said) -> str:
    words = _end(gave.stdout, LAST_LINES) if gave.code else ""
    return "\n".join((said.error, words, _end(gave.stderr, LOOKED_AT)))


def _end(stream: bytes, lines: int) -> str:
    return "\n".join(stream[-20_000:].decode(errors="replace").strip().splitlines()[-lines:])


def _detail(gave: Gave, said: Said) -> str:
    how = f"exit code {gave.code}" if gave.code else "it reports an error"
    streams = (said.error, gave.stderr.decode(errors="replace"), said.text)
    return "\n".join(filter(None, (how, next(filter(None, map(last_lines, streams)), ""))))


# --- JSON -----------------------------------------------------------------------------


def _document(text: str) -> Mapping[str, Any] | None:
    """The object that ends an agent's output; None when this is ordinary text or an object of something else."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    last = value[-1] if isinstance(value, list) and value else value
    return last if isinstance(last, dict) and (_known(last) or _error(last)) else None


def _known(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "result" or bool(value.keys() & {"usage", "total_cost_usd"})


def _stream(rest: str) -> bool:
    """Whether what stands before the last object is more of a stream of objects, rather than words."""
    return rest.lstrip()[:1] == "{"


def _error(value: Mapping[str, Any]) -> str:
    """What the document itself calls an error: `is_error`, an `error_…` subtype, or an API's error object."""
    subtype = str(value.get("subtype", ""))
    if value.get("is_error") is True or subtype.startswith("error"):
        return "\n".join(filter(None, (subtype if subtype != "success" else "", _text(value.get("result"))))) or "error"
    error = value.get("error")
    if isinstance(error, dict):
        return ": ".join(filter(None, (_text(error.get("type") or error.get("code")), _text(error.get("message")))))
    return _text(value.get("message") or error) or "error" if value.get("type") == "error" else ""


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _usage(value: Mapping[str, Any]) -> Usage:
    told = value.get("usage")
    usage = told if isinstance(told, dict) else {}
    read = sum(_count(usage.get(name)) for name in READ)
    return Usage(0, read, _count(usage.get("output_tokens")), _cost(value.get("total_cost_usd")))


def _cost(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
