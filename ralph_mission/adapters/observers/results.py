"""Parses a tool's results from JSON by JMESPath, or from a SARIF 2.1.0 log.

`items` selects a list; with `nested`, each item's inner list is read instead, and inner objects inherit missing fields
(ESLint and Knip name the file outside).

Of SARIF (OASIS, 2020) results of kind `fail` are reported that nobody suppressed and that the tool's own baseline
does not already know.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from ralph_mission.config.observers import ItemFields
from ralph_mission.values import compile_regex, dataclass

_UNNAMEABLE = compile_regex(r"[\x00-\x1f\x7f\ud800-\udfff]")  # invalid in a file name


class GarbledOutput(Exception):
    """A tool's output is not in the expected format."""


@dataclass(frozen=True, slots=True)
class Result:
    """A result. `path`: relative to the repository, "" if outside or unknown. `line`: 1-based or 0.

    `level`: error, warning, note or "" if unknown. `identity`: the tool's own stable id, `snippet`: the text it saw,
    both "" if unknown.
    """

    path: str = ""
    line: int = 0
    code: str = ""
    message: str = ""
    level: str = ""
    identity: str = ""
    snippet: str = ""


def inside(path: str, root: Path) -> str:
    """`path` relative to `root`, with `/`; "" if it is elsewhere."""
    if _UNNAMEABLE.search(path):
        return ""
    clean = posixpath.normpath(path) if path else ""
    for folder in (str(root), str(root.resolve())):
        clean = clean.removeprefix(folder.rstrip("/") + "/")
    return "" if clean in (".", "..") or clean.startswith(("/", "../")) else clean


def whole_number(value: object) -> int:
    """A line number, or 0."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if re.fullmatch(r"[0-9]{1,8}", text) else 0


def level(value: object) -> str:
    """A tool's severity as error, warning or note, or ""."""
    word = str(value).lower()
    words = {"2": "error", "fatal": "error", "1": "warning", "warn": "warning", "info": "note", "information": "note"}
    word = words.get(word, word)
    return word if word in ("error", "warning", "note") else ""


TITLES: tuple[tuple[str, str], ...] = (
    ("F401 W0611 unused-import unused-imports/no-unused-imports", "{0} is imported and never used"),
    ("F811 E0102 function-redefined no-redef no-redeclare TS2451", "{0} is defined twice"),
    ("F821 E0602 undefined-variable no-undef name-defined reportUndefinedVariable TS2304", "{0} is not defined"),
    ("F841 W0612 unused-variable no-unused-vars @typescript-eslint/no-unused-vars TS6133 unused_variables",
     "{0} is never used"),
    ("E0606 possibly-undefined possibly-used-before-assignment reportPossiblyUnbound reportPossiblyUnboundVariable "
     "TS2454", "{0} may be unset"),
    ("E0601 used-before-assignment no-use-before-define TS2448", "{0} is used before it is set"),
    ("E1101 no-member attr-defined", "{0} has no {1}"),
    ("TS2339 TS2551", "{1} has no {0}"),
    ("TS2307 import/no-unresolved n/no-missing-import reportMissingImports", "{0} cannot be imported"),
    ("arg-type TS2345 reportArgumentType", "an argument has the wrong type"),
    ("return-value TS2322 assignment", "a value has the wrong type"),
    ("B006 W0102 dangerous-default-value", "a default argument is shared between calls"),
    ("E722 W0702 bare-except", "a bare `except` hides every error"),
    ("react-hooks/rules-of-hooks", "{0} breaks the rules of hooks"),
    ("no-dupe-keys F601", "{0} is given twice"),
    ("no-unreachable W0101 unreachable TS7027 unreachable_code", "some code is never reached"),
    ("errcheck", "the error of {0} is ignored"),
    ("SC2086", "a variable without quotes is split into words"),
)  # fmt: skip  # a table
"""Titles for codes of common linters and type checkers; `{0}` is the first name in the message."""
_BY_CODE = {code: title for codes, title in TITLES for code in codes.split()}
_NAMES = compile_regex(r"[`'\"\u2018]([\w.$/@-]{1,40})[`'\"\u2019]")
TITLE_LENGTH = 70  # characters of a tool's own words in a title


def title_of(result: Result, place: str) -> str:
    """A title such as "`found` may be unset in cli.py:61" if the code is known, else the tool's message, shortened."""
    codes = (result.code, *reversed(result.code.split("/")))
    label = next((_BY_CODE[code] for code in codes if code in _BY_CODE), "")
    try:
        label = label.format(*(f"`{name}`" for name in _NAMES.findall(result.message)))
    except IndexError:  # an unknown message format
        label = ""
    words = " ".join(result.message.split())
    short = words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1].rsplit(' ', 1)[0]}…"
    title = f"{label[:1].upper()}{label[1:]}" if label else short.rstrip(".")
    return f"{title} in {place}" if place and place not in title else title


def _search(expression: str, document: Any) -> Any:
    import jmespath  # takes a while to load

    return jmespath.search(expression, document)


def read_items(raw: bytes, fields: ItemFields, root: Path) -> list[Result]:
    """The results that `fields` select. Raises GarbledOutput if there is no such list."""
    try:
        found = _search(fields.items, json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise GarbledOutput(f"no JSON that fits ({type(error).__name__})") from None
    if not isinstance(found, list):
        raise GarbledOutput("`items` gives no list")
    try:
        return [_result(item, fields, root) for outer in found for item in _inner(outer, fields)]
    except ValueError as error:  # a function got an invalid argument
        raise GarbledOutput(f"an expression does not fit: {str(error).splitlines()[0]}") from None


def _inner(outer: Any, fields: ItemFields) -> Iterator[Any]:
    if not fields.nested:
        yield outer
        return
    for inner in _search(fields.nested, outer) or []:
        yield {**outer, **inner} if isinstance(outer, dict) and isinstance(inner, dict) else inner


def _result(item: Any, fields: ItemFields, root: Path) -> Result:
    message, path = _text(_search(fields.message, item)), _text(_search(fields.path, item))
    if not message:
        raise GarbledOutput("a result has no message")
    line, code = _search(fields.line, item), _text(_search(fields.code, item))
    return Result(inside(path, root), whole_number(line), code, message, level(_search(fields.level, item)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


VERSION = "2.1.0"
NO_FINGERPRINT = "requires login"  # semgrep's placeholder without a login
NESTING = 8  # of base ids that refer to base ids


def read_sarif(raw: bytes, root: Path) -> list[Result]:
    """The results of a log, with paths relative to `root`. Raises GarbledOutput if it is not SARIF 2.1.0."""
    try:
        log = json.loads(raw)
        if log["version"] != VERSION:
            raise GarbledOutput(f"SARIF version is not {VERSION}")
        results = [result for run in log["runs"] for result in _run(run, root)]
        if not results and any(_has_failed(run) for run in log["runs"]):
            raise GarbledOutput("the tool says in its log that it failed")
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RecursionError):
        raise GarbledOutput("not a SARIF log") from None
    return results


def _run(run: Mapping[str, Any], root: Path) -> Iterator[Result]:
    rules = run["tool"]["driver"].get("rules", [])
    for result in run.get("results") or []:
        if _counts(result):
            rule = _rule(result, rules)
            path, line = _place(result, run, root)
            identity = result.get("ruleId") or result.get("rule", {}).get("id") or rule.get("id", "")
            yield Result(
                path,
                line,
                str(identity),
                _message(result, rule),
                _level(result, rule),
                _identity(result),
                _snippet(result),
            )


def _identity(result: Mapping[str, Any]) -> str:
    """The tool's own fingerprints (§3.27.17), which outlast line numbers."""
    prints = result.get("fingerprints") or result.get("partialFingerprints") or {}
    return " ".join(f"{name}={prints[name]}" for name in sorted(prints) if prints[name] != NO_FINGERPRINT)


def _snippet(result: Mapping[str, Any]) -> str:
    """The text the tool saw (§3.30.13)."""
    locations: list[dict[str, Any]] = result.get("locations") or [{}]
    region = locations[0].get("physicalLocation", {}).get("region", {})
    return str(region.get("snippet", {}).get("text", ""))


def _has_failed(run: Mapping[str, Any]) -> bool:
    return any(one.get("executionSuccessful") is False for one in run.get("invocations", []))


def _counts(result: Mapping[str, Any]) -> bool:
    # §3.27.23: suppressed when there are suppressions and none is rejected or still under review.
    waived = result.get("suppressions") or []
    suppressed = waived and all(one.get("status", "accepted") == "accepted" for one in waived)
    news = result.get("baselineState", "new") in ("new", "updated")
    return not suppressed and news and result.get("kind", "fail") == "fail"


def _rule(result: Mapping[str, Any], rules: list[dict[str, Any]]) -> dict[str, Any]:
    index = result.get("ruleIndex", result.get("rule", {}).get("index", -1))
    if isinstance(index, int) and 0 <= index < len(rules):
        return rules[index]
    return next((rule for rule in rules if rule.get("id") == result.get("ruleId")), {})


def _level(result: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    grade = result.get("level") or rule.get("defaultConfiguration", {}).get("level", "warning")
    return level(grade) or "note"


def _message(result: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    message = result["message"]
    strings: Mapping[str, Any] = rule.get("messageStrings", {})
    template: Mapping[str, Any] = strings.get(message.get("id", "")) or {}
    text = message.get("text") or template.get("text", "")
    for number, argument in enumerate(message.get("arguments", [])):
        text = text.replace(f"{{{number}}}", str(argument))
    return str(text)


def _place(result: Mapping[str, Any], run: Mapping[str, Any], root: Path) -> tuple[str, int]:
    locations: list[dict[str, Any]] = result.get("locations") or [{}]
    physical = locations[0].get("physicalLocation", {})
    location = physical.get("artifactLocation", {})
    artifacts, index = run.get("artifacts", []), location.get("index", -1)
    if "uri" not in location and 0 <= index < len(artifacts):
        location = artifacts[index]["location"]
    uri = _resolve_uri(location, run.get("originalUriBaseIds", {}))
    return _path(uri, root), whole_number(physical.get("region", {}).get("startLine", 0))


def _resolve_uri(location: Mapping[str, Any], bases: Mapping[str, Any], depth: int = 0) -> str:
    uri = str(location.get("uri", ""))
    parent = bases.get(location.get("uriBaseId", ""))
    return uri if parent is None or depth > NESTING else urljoin(_resolve_uri(parent, bases, depth + 1), uri)


def _path(uri: str, root: Path) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return ""
    return inside(unquote(parts.path), root)
