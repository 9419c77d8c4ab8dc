"""How many issues short of critical may be left: one number per kind of task, set by people or learned from them.

What a reviewer's verdict says: JSON or lines of text in, issues out. What nobody understands is critical.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ralph_mission.loop.model.state import VERDICT, LoopEvent, ReviewIssue, Severity
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex, dataclass

DEFAULTS: Mapping[str, int] = {"refactor": 1}
"""Kinds (a pattern's name) whose default is not 0: a refactoring always leaves one suggestion."""
MEAN, ENOUGH = 0.6, 3
"""What counts as accepted: mean of Beta(1 + accepted, 1 + refused), over at least so many verdicts."""


@dataclass(frozen=True, slots=True)
class AcceptanceVerdict:
    """A person took or refused work of this kind with `left` issues short of critical in it."""

    kind: str
    left: int
    accepted: bool


def read_verdicts(records: Iterable[object]) -> tuple[AcceptanceVerdict, ...]:
    """The verdicts among `records` ({kind, left, accepted}); what is anything else says nothing."""
    return tuple(
        AcceptanceVerdict(record["kind"], record["left"], record["accepted"])
        for record in records
        if isinstance(record, Mapping)
        and isinstance(record.get("kind"), str)
        and type(record.get("left")) is int
        and record["left"] >= 0
        and type(record.get("accepted")) is bool
    )


def threshold(kind: str, settings: Mapping[str, object] | str, verdicts: Iterable[AcceptanceVerdict]) -> int:
    """Issues short of critical that may be left in work of this kind: what `settings` fix, else what people accept.

    A setting that is not a number (`learn`, for one kind or for all) leaves it to people. Nobody's word is stretched:
    beyond the largest number that people accepted nothing is allowed, and a default that they refuse becomes 0.
    """
    fixed = settings.get(kind) if isinstance(settings, Mapping) else None
    if type(fixed) is int and fixed >= 0:
        return fixed
    votes = [verdict for verdict in verdicts if verdict.kind == kind]
    default = DEFAULTS.get(kind, 0)
    fine = [count for count in {verdict.left for verdict in votes} if _is_acceptable(votes, count) is True]
    return max([*fine, 0 if _is_acceptable(votes, default) is False else default])


def _is_acceptable(votes: list[AcceptanceVerdict], count: int) -> bool | None:
    """Whether people take work with so many left; None while too few have judged.

    Who takes more takes so many too, and who refuses fewer refuses so many too.
    """
    yes = sum(verdict.accepted and verdict.left >= count for verdict in votes)
    no = sum(not verdict.accepted and verdict.left <= count for verdict in votes)
    return (1 + yes) / (2 + yes + no) >= MEAN if yes + no >= ENOUGH else None


SEVERITIES: dict[str, Severity] = {
    **dict.fromkeys(("major", "medium", "moderate", "warning"), "major"),
    **dict.fromkeys(("minor", "low", "suggestion", "nit", "nitpick", "info", "note", "style", "trivial"), "minor"),
    **dict.fromkeys(("critical", "blocker", "blocking", "high", "error", "fatal", "severe"), "critical"),
}
LISTS = ("issues", "issues_found", "findings", "problems")
MESSAGE = ("message", "description", "title", "text", "detail", "summary")
FILE = ("file", "path", "filename", "location")
KIND = ("kind", "category", "type", "violation", "violation_type", "rule")
LINE = ("line", "line_number", "lineno")
REFUSALS = compile_regex(r"reject|fail|change|block|not", re.IGNORECASE)
MOST, LONGEST = 500, 1_000

NOTHING = r"(?:0|no|zero) issues?(?: found| left| remain(?:ing)?)?|issues?(?:[ _]found)?\s*[:=]\s*0"
NONE = compile_regex(rf"[*_#\s-]*(?:{NOTHING})[*_.!\s]*", re.IGNORECASE)
COUNT = compile_regex(r"\bissues?(?:[ _]found)?\s*[:=]\s*(\d{1,9})\b|\b(\d{1,9}) (?:\w+ )?issues?\b", re.IGNORECASE)
BULLET = compile_regex(r"^\s{0,8}(?:[-*•]|\d{1,3}[.)])\s+(\S.*)$")
PLACE = compile_regex(r"^`?([^\s`:\[\]]+[./][^\s`:\[\]]*?|[A-Z]\w*file)(?::(\d+)(?:[-:]\d+)*)?`?(?=[\s:\]]|$)[:\s—-]*")
MARK = compile_regex(r"^\[([^\]]{1,60})\][:\s—-]*")
WORD = compile_regex(r"^\**([A-Za-z]+)\**\s*[:—]\s+")
FENCE = compile_regex(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL | re.IGNORECASE)


class UnclearVerdict(ValueError):
    """This is not something that can be understood."""


def parse_issues(event: LoopEvent) -> tuple[ReviewIssue, ...]:
    """The issues of a `review.verdict`, () for any other topic and for a verdict that says it found none.

    Understands `{"issues": [{file, line, kind, severity, message}]}` and its synonyms, a list, a count, and lines
    such as `- src/a.py:12 [race] message`. A count without details gives critical issues without a name; a payload
    that cannot be understood is one critical issue: unknown is never waved through.
    """
    if event.topic != VERDICT:
        return ()
    payload = event.payload.strip()
    try:
        return _parse_payload(payload)[:MOST]
    except (UnclearVerdict, RecursionError) as error:
        return (ReviewIssue(f"the verdict cannot be understood ({error}): {truncate(payload, 200) or 'it is empty'}"),)


def _parse_payload(payload: str) -> tuple[ReviewIssue, ...]:
    fenced = FENCE.search(payload)
    for text in (payload, fenced[1].strip() if fenced else ""):
        if text[:1] in ("{", "["):
            return _parse_document(_parse_json(text))
    return _text(payload)


# --- JSON ---------------------------------------------------------------------------


def parse_json(payload: str) -> Any:
    """The JSON of a verdict, alone or in a fence. Raises UnclearVerdict for what is none, or says one key twice."""
    fenced = FENCE.search(payload)
    text = payload.strip()
    try:
        return _parse_json(fenced[1].strip() if fenced and text[:1] not in ("{", "[") else text)
    except RecursionError:
        raise UnclearVerdict("broken JSON") from None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_refuse_doubles)
    except ValueError as error:
        raise error if isinstance(error, UnclearVerdict) else UnclearVerdict("broken JSON") from None


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice says two things, and the second would hide the first."""
    if len(dict(pairs)) < len(pairs):
        raise UnclearVerdict("a key stands twice")
    return dict(pairs)


def _parse_document(value: Any) -> tuple[ReviewIssue, ...]:
    if isinstance(value, list):
        return tuple(_parse_item(item) for item in value[:MOST])
    lists = [value[key] for key in LISTS if key in value]
    if not lists:
        raise UnclearVerdict(f"none of {', '.join(LISTS)} is in it")
    found = tuple(_parse_item(item) for part in lists if isinstance(part, list) for item in part[:MOST])
    counted = max((_parse_count(part) for part in lists if not isinstance(part, list)), default=0)
    found = (*found, *_unnamed_issues(counted - len(found)))
    if not found and any(REFUSALS.search(str(value.get(key, ""))) for key in ("verdict", "status", "decision")):
        raise UnclearVerdict("it refuses and names nothing")
    return found


def _parse_count(value: Any) -> int:
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str):
        return len(_text(value))
    raise UnclearVerdict("issues are neither a list nor a number")


def _parse_item(item: Any) -> ReviewIssue:
    if isinstance(item, str) and item.strip():
        return _line(item.strip())
    if not isinstance(item, Mapping):
        return ReviewIssue(f"an issue that cannot be understood: {truncate(str(item), 200)}")
    file, line = _format_place(_first_of(item, FILE), _first_of(item, LINE))
    severity = SEVERITIES.get(str(item.get("severity", "")).strip().lower(), "critical")
    message = _first_of(item, MESSAGE) or "(no message)"
    return ReviewIssue(
        truncate(message, LONGEST), truncate(file, LONGEST), line, truncate(_first_of(item, KIND), 100), severity
    )


def _first_of(item: Mapping[str, Any], names: Iterable[str]) -> str:
    """The first of these that says something, as text."""
    return next((str(item[name]).strip() for name in names if item.get(name) not in (None, "", False)), "")


def _format_place(file: str, line: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*?):(\d{1,9})(?:[:-]\d+)*", file)
    file, line = (match[1], line or match[2]) if match else (file, line)
    number = re.match(r"\d{1,9}", line)
    return file, int(number[0]) if number else 0


# --- text ---------------------------------------------------------------------------


def _text(payload: str) -> tuple[ReviewIssue, ...]:
    if NONE.fullmatch(payload):
        return ()
    found = tuple(islice(_parse_bullets(payload), MOST))
    rest = [row for row in payload.splitlines() if not BULLET.match(row)]
    counted = max((int(first or second) for row in rest for first, second in COUNT.findall(row)), default=0)
    if not found and not counted:
        raise UnclearVerdict("it neither lists issues nor says that there are none")
    return (*found, *_unnamed_issues(counted - len(found)))


def _parse_bullets(payload: str) -> Iterator[ReviewIssue]:
    for row in payload.splitlines():
        bullet = BULLET.match(row)
        if bullet and not NONE.fullmatch(bullet[1]):
            yield _line(bullet[1])


def _line(text: str) -> ReviewIssue:
    """`src/a.py:12 [race] message`, in any order, each part but the message optional."""
    file, line, kind, severity, text = "", 0, "", "", truncate(text, 2 * LONGEST)
    while text:
        mark, place, word = MARK.match(text), PLACE.match(text), WORD.match(text)
        if mark and mark[1].strip().lower() in SEVERITIES:
            severity, text = mark[1].strip().lower(), text[mark.end() :]
        elif mark and not kind:
            kind, text = mark[1].strip(), text[mark.end() :]
        elif place and not file:
            file, line, text = place[1], int((place[2] or "0")[:9]), text[place.end() :]
        elif word and not severity and word[1].lower() in SEVERITIES:
            severity, text = word[1].lower(), text[word.end() :]
        else:
            break
    message = truncate(text or "(no message)", LONGEST)
    return ReviewIssue(message, truncate(file, LONGEST), line, kind, SEVERITIES.get(severity, "critical"))


def _unnamed_issues(number: int) -> tuple[ReviewIssue, ...]:
    return (ReviewIssue("the reviewer counted it and did not say what it is"),) * min(max(number, 0), MOST)
