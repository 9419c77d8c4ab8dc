"""Reads an agent process's output as a turn: its last message, usage, failure, and how long to wait.

Pure: bytes and an exit code in, a value out. A time-out is decided before any text is read, so that it is never
mistaken for a provider's limit; and text is only searched if the process failed or reports a failure, so that an agent
may freely write about rate limits. For a client that reports errors in its own records, only those count: a model that
ends its client cannot choose the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from zoneinfo import ZoneInfo

from ralph_mission.loop.model.state import AgentTurn, Failure, SessionUsage
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import sanitise, truncate
from ralph_mission.values import compile_regex, dataclass

LAST_LINES, LAST_CHARACTERS = 5, 600
MOST_USD, MOST = 1_000.0, 10_000_000_000
"""The maximum plausible cost, tokens and turns of a session: many times the dearest model's use in a day. More is a
mistake or a lie, which must not use up others' money; it counts as unreported."""
CALLS, CALL_CHARACTERS = 2_000, 2_000  # per session, and characters of each: only a flood has as many
MAIN_ARGUMENTS = ("command", "cmd", "file_path", "filePath", "notebook_path", "path", "pattern", "query", "url")
"""Tool arguments that describe a call, for all clients."""
LOOKED_AT = 30  # lines of errors: the cause is at the end. Of its messages the last few are enough
READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
MISSING = compile_regex(r"not found|No such file or directory|Permission denied|cannot execute", re.IGNORECASE)

STATUS = r"(?:API Error|HTTP(?:/[\d.]+)?|status(?:[ _]?code)?|error(?:[ _]code)?|code)\W{0,5}"
FAULTS: tuple[tuple[Failure, str, str], ...] = (
    # failure, pattern, source
    ("server", r"tool use concurrency", "Claude Code: API Error: 400 due to tool use concurrency issues"),
    ("auth", STATUS + r"401\b|\b401 Unauthorized", "RFC 9110 §15.5.2"),
    ("auth", r"\bplease run /login\b|\bnot logged in\b", "Claude Code: Invalid API key · Please run /login; Codex"),
    ("auth", r"\b(?:authentication_error|invalid_api_key|UNAUTHENTICATED)\b", "Anthropic, OpenAI, Google"),
    ("rate_limit", STATUS + r"429\b|\b429 Too Many Requests", "RFC 6585; Codex: last status: 429 Too Many Requests"),
    ("rate_limit", r"\brate_limit_(?:error|exceeded)\b", "error types of the Anthropic and OpenAI APIs"),
    ("rate_limit", r"\brate[ -]?limit\b.{0,40}\b(?:reached|exceeded|hit)\b", "OpenAI: Rate limit reached for …"),
    ("rate_limit", r"\brate[ -]?limited\b|\bexceed (?:your|the).{0,40}rate limit", "OpenRouter; Anthropic"),
    ("rate_limit", r"\b(?:usage|session|weekly|5-hour) limit reached", "Claude Code: usage limit reached|1753088400"),
    ("rate_limit", r"\bhit your (?:\w+ )?limit\b", "Claude Code, Codex: You've hit your session limit · resets …"),
    ("rate_limit", r"\bRESOURCE_EXHAUSTED\b|\bquota exceeded\b|\binsufficient_quota\b", "Google; OpenAI"),
    ("server", STATUS + r"5\d\d\b", "RFC 9110 §15.6; Anthropic adds 529"),
    ("server", r"\bexperiencing high demand\b", "Codex, of a 500"),
    ("server", r"\b50[0234] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)", "RFC 9110"),
    ("server", r"\boverloaded_error\b|\berror\W{1,3}overloaded\b", "Anthropic: 529 overloaded"),
    ("server", r"\b(?:api_error|server_error|internal_server_error)\b", "error types of the same APIs"),
    ("server", r"\b(?:ECONNRESET|ETIMEDOUT|stream disconnected)\b", "Node.js; Codex: stream disconnected before …"),
)  # fmt: skip  # one table
"""The first match names the failure. Texts of successful turns are not searched."""
_FAULTS = tuple((failure, compile_regex(pattern, re.IGNORECASE)) for failure, pattern, _ in FAULTS)


DIGITS = 20  # of an integer; longer ones are ignored
NOTHING = SessionUsage()
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Gave:
    """A process's result: streams, exit code, how we ended it, wall time in seconds; a file in `left`."""

    stdout: bytes
    stderr: bytes = b""
    code: int = 0
    timed_out: bool = False
    stopped: bool = False
    truncated: bool = False
    seconds: float = 0.0
    left: bytes = b""


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The last message, the error that the output reports (or ""), and tokens and cost if reported.

    `failure`: if the output names it instead of describing it; `refused`: the reason for each tool call that the
    program refused; `calls`: all calls, in the form of `called`. `errors`: its stderr, without other log entries.
    `recorded`: it reports errors in its own records, so that other output names no failure.
    """

    text: str
    error: str = ""
    usage: SessionUsage = NOTHING
    failure: Failure = ""
    refused: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    errors: bytes | None = None
    recorded: bool = False


def plain(output: Gave) -> AgentReply:
    """Any program's reply: `message` of its output."""
    return message(output.stdout.decode(errors="replace"))


def turn(output: Gave, now: datetime, read: Callable[[Gave], AgentReply] = plain) -> AgentTurn:
    """The turn of this process; `now`: the base of reset times; `read`: parses its output."""
    reply = read(output)
    output = output if reply.errors is None else replace(output, stderr=reply.errors)
    calls = reply.calls[:CALLS]
    more = (f"and {len(reply.calls) - CALLS} more",) if len(reply.calls) > CALLS else ()
    return replace(_turn(output, now, reply), refused=reply.refused[:CALLS], calls=(*calls, *more))


def describe_call(tool: str, arguments: object) -> str:
    """A tool call as one line for the record: its name and most descriptive argument, no secrets, harmless in a log."""
    fields = arguments if isinstance(arguments, dict) else {}
    what = next((text for name in MAIN_ARGUMENTS if (text := as_text(fields.get(name)))), "") or _dump(arguments)
    return line(f"{tool}: {what}")


def tool_calls(messages: Iterable[Json]) -> Iterator[str]:
    """The calls in a model's messages, in Anthropic's form, as lines for the record."""
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_use":
                yield describe_call(as_text(block.get("name")), block.get("input"))


def line(text: str) -> str:
    """A text of a session or its processes as one line for the record."""
    return " ".join(sanitise(redact(truncate(text, CALL_CHARACTERS)), "log").split())


def _turn(output: Gave, now: datetime, reply: AgentReply) -> AgentTurn:
    usage = replace(_bound_usage(reply.usage), sessions=1, seconds=output.seconds)
    failure = _own_failure(output)
    if failure:
        return AgentTurn(reply.text, failure, _how(output), usage=usage)
    if not output.code and not reply.error:
        return AgentTurn(reply.text, usage=usage)
    text = _error_text(output, reply)
    failure = reply.failure or _is_missing(output) or fault(text)
    wait = seconds_until(text, now) if failure in ("rate_limit", "server") else 0.0
    return AgentTurn(reply.text, failure, _detail(output, reply), wait, usage_when_refused(failure, usage, reply))


def usage_when_refused(failure: Failure, usage: SessionUsage, reply: AgentReply) -> SessionUsage:
    """A missing program, or one that was rejected before it reported any token, cost nothing.

    Not if it called a tool: then its model answered, and may have written these words itself.
    """
    nothing = usage.cost_usd is None and not (usage.input_tokens or usage.output_tokens or reply.calls)
    return replace(usage, cost_usd=0.0) if nothing and failure in ("missing", "rate_limit", "auth") else usage


def message(stdout: str) -> AgentReply:
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
        return AgentReply(whole)
    result = found.get("result")
    text = result if isinstance(result, str) else "" if _stream(rest) else rest.strip()
    return AgentReply(text, _error(found), tokens(found))


def fault(text: str) -> Failure:
    """The kind of failure in the last lines of a failed turn; "exit" if not a provider's."""
    return next((failure for failure, pattern in _FAULTS if pattern.search(text)), "exit")


def by_status(status: object) -> Failure:
    """An HTTP status's kind of failure, or ""."""
    if type(status) is not int or not 400 <= status <= 599:
        return ""
    if status >= 500:
        return "server"
    return "rate_limit" if status == 429 else "auth" if status in (401, 403) else "exit"


def documents(stream: bytes) -> Iterator[Json]:
    """The JSON objects of a stream with one per line; other lines are skipped.

    Lines end at a line feed: JSON texts may contain other line separators (U+2028).
    """
    for line in stream.split(b"\n"):
        value = _load(line.decode(errors="replace")) if line[:1] == b"{" else None
        if isinstance(value, dict):
            yield value


def words(stream: bytes) -> str:
    """The end of a JSON client's output outside its documents."""
    lines = stream[-20_000:].decode(errors="replace").split("\n")
    return last_lines("\n".join(line for line in lines if line[:1] != "{"))


def last_document(stream: bytes) -> Json:
    """The last object of a stream, over one or more lines; an empty one if it ends otherwise."""
    text = stream.decode(errors="replace").rstrip()
    start = text.rfind("\n{\n") + 1 if "\n{\n" in text else 0
    value = _load(text[start:])
    return value if isinstance(value, dict) else {}


def inner(value: Json, *keys: str) -> Json:
    """The object at `keys`, or an empty one."""
    for key in keys:
        found = value.get(key)
        value = found if isinstance(found, dict) else {}
    return value


def last_lines(text: str) -> str:
    """The end of an output, as plain text of a few lines."""
    lines = [line.strip() for line in sanitise(text[-20_000:], "log").splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]


def _own_failure(output: Gave) -> Failure:
    """Our own failures, independent of the agent's output."""
    if output.timed_out:
        return "timeout"
    return "exit" if output.stopped or output.truncated else ""


def _how(output: Gave) -> str:
    if output.timed_out:
        return f"not done after {output.seconds:.0f} s"
    return "ended on request" if output.stopped else "ended: too much output"


def _is_missing(output: Gave) -> Failure:
    words = _end(output.stderr, LOOKED_AT)
    return "missing" if output.code in (126, 127) and not output.stdout.strip() and MISSING.search(words) else ""


def _error_text(output: Gave, reply: AgentReply) -> str:
    if reply.recorded:
        return reply.error
    words = _end(output.stdout, LAST_LINES) if output.code else ""
    return "\n".join((reply.error, words, _end(output.stderr, LOOKED_AT)))


def _end(stream: bytes, lines: int) -> str:
    return "\n".join(stream[-20_000:].decode(errors="replace").strip().splitlines()[-lines:])


def _detail(output: Gave, reply: AgentReply) -> str:
    how = f"exit code {output.code}" if output.code else ""
    streams = (reply.error, output.stderr.decode(errors="replace"), reply.text)
    first, *rest = next(filter(None, map(last_lines, streams)), "").split("\n")
    return "\n".join((f"{first} ({how})" if first and how else first or how or "it reports an error", *rest))


# --- JSON -----------------------------------------------------------------------------


def _load(text: str) -> Any:
    """The JSON value, or None. Too long numbers do not lose the rest."""
    try:
        return json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= DIGITS else float(digits)


def _dump(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (ValueError, RecursionError):
        return "too deep to be shown"


def _document(text: str) -> Mapping[str, Any] | None:
    """The object at the end of an agent's output; None for ordinary text or another object."""
    if text[:1] not in ("{", "["):
        return None
    value = _load(text)
    last = value[-1] if isinstance(value, list) and value else value
    return last if isinstance(last, dict) and (_is_result(last) or _error(last)) else None


def _is_result(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "result" or bool(value.keys() & {"usage", "total_cost_usd"})


def _stream(rest: str) -> bool:
    """Whether the output before the last object is a stream of objects, not text."""
    return rest.lstrip()[:1] == "{"


def _error(value: Mapping[str, Any]) -> str:
    """The document's own error: `is_error`, an `error_…` subtype, or an API's error object."""
    subtype = as_text(value.get("subtype"))
    if value.get("is_error") is True or subtype.startswith("error"):
        named = "" if subtype == "success" else subtype
        return "\n".join(filter(None, (named, as_text(value.get("result"))))) or "error"
    error = value.get("error")
    if isinstance(error, dict):
        return ": ".join(filter(None, (as_text(error.get("type") or error.get("code")), as_text(error.get("message")))))
    return as_text(value.get("message") or error) or "error" if value.get("type") == "error" else ""


def as_text(value: object) -> str:
    """A text or a number as text, anything else as ""."""
    known = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).encode("utf-8", "replace").decode() if known else ""  # half a character cannot be written


def as_texts(value: object) -> tuple[str, ...]:
    """The texts of a list, none for anything else."""
    return tuple(filter(None, map(as_text, value))) if isinstance(value, list) else ()


def tokens(value: Mapping[str, Any]) -> SessionUsage:
    """Tokens and cost from a document's `usage` and `total_cost_usd`."""
    counts = value.get("usage")
    usage = counts if isinstance(counts, dict) else {}
    read = sum(as_count(usage.get(name)) for name in READ)
    return SessionUsage(0, read, as_count(usage.get("output_tokens")), as_cost(value.get("total_cost_usd")))


def as_cost(value: object) -> float | None:
    """An amount in USD, None if invalid or implausible for a session."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= MOST_USD else None


def as_count(value: object) -> int:
    """A count, 0 if invalid or implausible for a session."""
    return value if type(value) is int and 0 <= value <= MOST else 0


def _bound_usage(usage: SessionUsage) -> SessionUsage:
    """The same for sums."""
    read, written, turns = map(as_count, (usage.input_tokens, usage.output_tokens, usage.turns))
    return SessionUsage(0, read, written, as_cost(usage.cost_usd), turns=turns)


SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
UNIT = r"(?:days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|ms|m|seconds?|secs?|s)"
LONGEST = 7 * 86_400.0  # seconds: no provider's limit is longer than a week

AFTER_WORD = r"retry[-_ ]after(?:[-_ ]seconds)?[\"']?\s*[:=]?\s*[\"']?"
DAY = r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} [\d:]{8} GMT"
AFTER = compile_regex(rf"{AFTER_WORD}(\d+(?:\.\d+)?)(?![\d:])", re.IGNORECASE)
DATE = compile_regex(rf"{AFTER_WORD}({DAY})", re.IGNORECASE)
EPOCH = compile_regex(r"limit reached\|(\d{10})\b", re.IGNORECASE)
LENGTH = rf"\d+(?:\.\d+)?\s*{UNIT}(?![a-z])"
SPAN = compile_regex(
    rf"(?:try again|retry|resets?) in:?\s+((?:{LENGTH}[\s,]*(?:and\s+)?)+|(?:\d+{UNIT})+)", re.IGNORECASE
)
PART = compile_regex(rf"(\d+(?:\.\d+)?)\s*({UNIT})", re.IGNORECASE)
MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
ISO = compile_regex(rf"resets? (?:at )?({MOMENT})", re.IGNORECASE)
HOUR = r"(1[0-2]|0?[1-9])(?::([0-5]\d))?\s*([ap]m)"
CLOCK = compile_regex(rf"resets? (?:at )?{HOUR}(?:\s*\(([\w+/-]{{1,40}})\))?", re.IGNORECASE)


def seconds_until(text: str, now: datetime) -> float:
    """Seconds from `now` (aware) until the provider takes requests again; 0 if unknown.

    Understood: Retry-After as seconds or date (RFC 9110 §10.2.3), `…limit reached|1753088400` and `resets 10:30pm
    (Europe/Berlin)` (Claude Code), `try again in 6m0s` or `in 2 days 3 hours` (OpenAI, Codex), `resets at <ISO 8601>`.
    A time of day without a zone is local to this machine.
    """
    for pattern, read in READERS:
        match = pattern.search(text)
        seconds = _try_read(read, match, now) if match else 0.0
        if seconds > 0:
            return min(seconds, LONGEST)
    return 0.0


def _try_read(read: Callable[[re.Match[str], datetime], float], match: re.Match[str], now: datetime) -> float:
    try:
        return read(match, now)
    except (ValueError, OverflowError, OSError, LookupError):  # no such hour, year or zone
        return 0.0


def _span(match: re.Match[str], _: datetime) -> float:
    return sum(float(number) * SECONDS[_parse_unit(word)] for number, word in PART.findall(match[1]))


def _parse_unit(word: str) -> str:
    lower = word.lower()
    return "ms" if lower.startswith(("ms", "milli")) else lower[0]


def _iso(match: re.Match[str], now: datetime) -> float:
    return (datetime.fromisoformat(match[1]) - now).total_seconds()


def _clock(match: re.Match[str], now: datetime) -> float:
    hour, minute, half, zone = match.groups()
    here = now.astimezone(ZoneInfo(zone) if zone else None)
    at = here.replace(
        hour=int(hour) % 12 + 12 * (half.lower() == "pm"), minute=int(minute or 0), second=0, microsecond=0
    )
    return ((at if at > here else at + timedelta(days=1)) - here).total_seconds()


READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], float]], ...] = (
    (AFTER, lambda match, _: float(match[1])),
    (DATE, lambda match, now: (parsedate_to_datetime(match[1]) - now).total_seconds()),
    (EPOCH, lambda match, now: (datetime.fromtimestamp(int(match[1]), UTC) - now).total_seconds()),
    (SPAN, _span),
    (ISO, _iso),
    (CLOCK, _clock),
)
