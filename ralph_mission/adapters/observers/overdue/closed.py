"""Markers that name an issue of the repository's own, and which of these issues are closed.

The lists of what is open are at hand; only what is on none of them is asked for, a few at a look, and remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from ralph_mission.adapters.cache import FileCache
from ralph_mission.adapters.observers.markers import PROSE, Hit, is_test_data
from ralph_mission.adapters.observers.overdue.rules import WORDS, OverdueMarker
from ralph_mission.errors import Missing
from ralph_mission.mission.model.mission import Quote
from ralph_mission.mission.ports import Forge
from ralph_mission.values import compile_regex, dataclass

ASKED = 5  # issues that are read in one look
KEPT = "closed-issues"
_REFERENCE = compile_regex(r"(?<![\w/&#])#(\d{1,7})\b|https?://([\w.-]+/[\w.-]+/[\w.-]+)/issues/(\d{1,7})\b")
_HISTORY = compile_regex(
    r"\b(?:original\w*|introduced|added|since|from|pr|pull request|fixed|like|as)\W+(?:\w+\W+){0,2}$"
)


@dataclass(frozen=True, slots=True)
class NamedIssue:
    """A marker, the number that it names, and the place of its address ("" for a mere number)."""

    hit: Hit
    number: int
    place: str = ""
    written: str = ""  # when the marker was, in ISO; "" where that is not known


def named_issues(hits: Iterable[Hit]) -> Iterator[NamedIssue]:
    """The markers that wait for an issue, as far as their words tell: where something comes from is no such thing."""
    for hit in hits:
        if hit.word not in WORDS or is_test_data(hit.path) or hit.path.lower().endswith(PROSE):
            continue
        text = hit.text.partition(hit.word)[2]
        for found in _REFERENCE.finditer(text):
            if not _HISTORY.search(text[: found.start()].lower()):
                yield NamedIssue(hit, int(found[1] or found[3]), found[2] or "")
                break


@dataclass(frozen=True, slots=True)
class ClosedIssues:
    """What a forge says of issues that markers name; `cache` remembers those that were closed."""

    forge: Forge
    cache: FileCache

    def overdue(self, named: Sequence[NamedIssue]) -> Iterator[OverdueMarker]:
        """The markers whose issue is closed, if they were written while it was open. Raises UserError."""
        if not named:
            return
        there = {issue.number for issue in self.forge.issues("open")} | {p.number for p in self.forge.pulls("open")}
        known = self._known(sorted({one.number for one in named} - there))
        for one in named:
            issue = known.get(str(one.number))
            if one.number not in there and issue and _is_meant(one, issue):
                why = f"Issue #{one.number} was closed {issue['reason']} on {issue['closed'][:10]}"
                proof = Quote(issue["title"], reference=one.number)
                yield OverdueMarker(one.hit, f"issue {one.number}", why, proof)

    def _known(self, numbers: Sequence[int]) -> dict[str, Any]:
        """What is remembered or asked of these; an empty entry is no issue that was ever closed here."""
        entry = self.cache.get(KEPT)
        known = entry if isinstance(entry, dict) else {}
        questions = [number for number in numbers if str(number) not in known][:ASKED]
        if questions:
            answers = {str(number): self._ask(number) for number in questions}
            known = {**known, **{number: answer for number, answer in answers.items() if answer is not None}}
            self.cache.put(KEPT, known)
        return known

    def _ask(self, number: int) -> dict[str, str] | None:
        """What is worth remembering; None for an issue that is open after all."""
        try:
            issue = self.forge.issue(number)
        except Missing:
            return {}  # none, or a pull
        if issue.state != "closed" or issue.closed_at is None:
            return None
        return {
            "title": issue.title,
            "url": issue.url,
            "created": issue.created_at.isoformat(),
            "closed": issue.closed_at.isoformat(),
            "reason": "as not planned" if issue.state_reason == "not_planned" else "as completed",
        }


def _is_meant(named: NamedIssue, issue: dict[str, str]) -> bool:
    """Whether the number is that of this issue: a marker from before it means another one, one from after it knew."""
    if named.place and not issue["url"].lower().startswith(f"https://{named.place.lower()}/"):
        return False
    if not named.written:
        return True
    written = datetime.fromisoformat(named.written)
    return datetime.fromisoformat(issue["created"]) <= written < datetime.fromisoformat(issue["closed"])
