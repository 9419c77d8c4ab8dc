"""Reads a SARIF 2.1.0 log (OASIS, 2020) into results.

Reported: results of kind `fail` that nobody suppressed and that the tool's own baseline does not
already know. Left out: everything else of the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from ralph_mission.adapters.observers.commands.results import GarbledOutput, Result, inside, level, whole_number

VERSION = "2.1.0"
NO_FINGERPRINT = "requires login"  # what semgrep says of every result where nobody is logged in
NESTING = 8  # of base ids that refer to base ids


def read(raw: bytes, root: Path) -> list[Result]:
    """The results of a log; paths are made relative to `root`. Raises Garbled when it is no SARIF 2.1.0."""
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
    """The tool's own fingerprints (§3.27.17): they outlast a stale line number."""
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
    said = result.get("level") or rule.get("defaultConfiguration", {}).get("level", "warning")
    return level(said) or "note"


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
