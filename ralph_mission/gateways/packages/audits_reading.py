"""What the audits of npm, yarn and pnpm print, as values. Their words are those of strangers.

Three shapes: npm's report (version 2: vulnerabilities by package), the registry's own answer (advisories by number:
pnpm, yarn 3, and one by one in yarn 1's lines), and the lines of yarn 4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ralph_mission.gateways.packages.advisories import SEVERITIES
from ralph_mission.gateways.packages.rooms import OUTPUT
from ralph_mission.gateways.process import Finished

LONGEST = 300  # characters of a title that are kept
_GHSA = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}", re.IGNORECASE)
_CVE = re.compile(r"CVE-\d{4}-\d{4,10}")
_STATUS = re.compile(r'(?:"message": ?"|responded with |Response [Cc]ode:? |returned a )([45]\d\d)\b')


@dataclass(frozen=True, slots=True)
class Finding:
    """One advisory against a package; `vulnerable` are the ranges of versions that it is about, "" when not told."""

    name: str
    id: str
    aliases: tuple[str, ...]
    title: str
    severity: str
    vulnerable: str

    @property
    def row(self) -> list[Any]:
        """Plain JSON."""
        return [self.name, self.id, list(self.aliases), self.title, self.severity, self.vulnerable]

    @classmethod
    def of(cls, row: list[Any]) -> Finding:
        """From `row`."""
        name, id, aliases, *rest = row
        return cls(name, id, tuple(aliases), *rest)


def read(said: bytes, code: int) -> tuple[Finding, ...] | None:
    """All that was found; None when this is no answer. Their exit codes tell findings from none, not from failure."""
    try:
        documents = list(_documents(said.decode("utf-8", "replace")))
        found = tuple(dict.fromkeys(f for document in documents for f in _findings(document)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    answered = any(map(_answers, documents)) or (code == 0 and not documents)  # yarn 4 prints nothing for nothing
    return found if answered else None


def why(done: Finished) -> str:
    """Why there is no answer, in our words."""
    if done.timed_out or done.stopped:
        return "it took too long"
    if done.truncated:
        return f"it says more than {OUTPUT // 1_000_000} MB"
    found = _STATUS.search((done.stdout + b"\n" + done.stderr).decode(errors="replace"))
    return f"the registry answers {found[1]}" if found else "its answer cannot be read"


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    """One document, or one in each line."""
    try:
        whole = [json.loads(text)]
    except ValueError:
        whole = [json.loads(line) for line in text.splitlines() if line.strip()]
    yield from (document for document in whole if isinstance(document, dict))


def _answers(document: Mapping[str, Any]) -> bool:
    """Whether it is an answer as a whole: yarn 1 tells its findings first, and sums them up when it is through."""
    return bool({"auditReportVersion", "advisories", "children"} & set(document)) or (
        document.get("type") == "auditSummary"
    )


def _findings(document: Mapping[str, Any]) -> Iterator[Finding]:
    if "auditReportVersion" in document:
        causes = (cause for entry in document["vulnerabilities"].values() for cause in entry["via"])
        for told in (cause for cause in causes if isinstance(cause, dict)):  # a name says: because of that one
            yield _finding(told["name"], told["source"], told, told.get("range"))
    elif "advisories" in document:
        yield from map(_registered, document["advisories"].values())
    elif document.get("type") == "auditAdvisory":
        yield _registered(document["data"]["advisory"])
    elif "children" in document:
        told = {key.lower(): value for key, value in document["children"].items()}
        if told.get("url") or told.get("vulnerable versions"):  # else it says that a package is deprecated
            title = {**told, "title": told.get("issue")}
            yield _finding(document["value"], told["id"], title, told.get("vulnerable versions"))


def _registered(told: Mapping[str, Any]) -> Finding:
    return _finding(told["module_name"], told["id"], told, told.get("vulnerable_versions"))


def _finding(name: Any, number: Any, told: Mapping[str, Any], vulnerable: Any) -> Finding:
    id = _GHSA.search(f"{told.get('github_advisory_id') or ''} {told.get('url') or ''}")
    cves = told.get("cves") if isinstance(told.get("cves"), Iterable) else ()
    aliases = tuple(str(cve) for cve in cves or () if _CVE.fullmatch(str(cve)))
    title = " ".join(str(told.get("title") or "").split())[:LONGEST]
    severity = str(told.get("severity", "")).lower()
    digits = re.sub(r"[^0-9]", "", str(number))[:12]  # a name is told in our words, so it is none of theirs
    known = f"GHSA{id[0][4:].lower()}" if id else f"npm:{digits}"
    return Finding(str(name), known, aliases, title, severity if severity in SEVERITIES else "", str(vulnerable or ""))
