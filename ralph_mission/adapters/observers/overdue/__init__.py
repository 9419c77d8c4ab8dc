"""Tells of markers that are overdue: with the line itself, and the line that proves it.

What one fact made overdue is one finding, however many markers wait for it. Looked at once for each commit and day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from functools import cache
from typing import Any

from ralph_mission.adapters.cache import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.markers import Hit, is_test_data
from ralph_mission.adapters.observers.overdue.rules import OverdueMarker, overdue
from ralph_mission.adapters.observers.overdue.versions import declared_versions
from ralph_mission.adapters.observers.text import block, count_noun, one_line, split_lines, surroundings
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.values import dataclass

KIND = "overdue-marker"
ENCODING = 1  # of what is kept
MOST = 20  # findings of one look
QUOTED = 8  # lines of one finding


@dataclass(frozen=True, slots=True)
class OverdueSearch:
    """Looks for them in one repository."""

    git: Git
    excluded: Callable[[str], bool]
    cache: FileCache = FileCache(None)

    def known(self, commit: str, today: date, hits: Callable[[], Iterable[Hit]], settings: str) -> list[OverdueMarker]:
        """Those at a commit; `hits` are its markers, asked for when it was not looked at today. Raises GitError."""
        question = cache_key(str(ENCODING), commit, today.isoformat(), settings)
        with suppress(TypeError, KeyError, ValueError):
            return [_restore(**one) for one in self.cache.get(question)]
        found = self.among(commit, today, hits())
        self.cache.put(question, [asdict(one) for one in found])
        self.cache.tidy()
        return found

    def among(self, commit: str, today: date, hits: Iterable[Hit]) -> list[OverdueMarker]:
        """Those among markers of a commit."""
        declared = cache(
            lambda: declared_versions(self.git, commit, lambda path: not self.excluded(path) and not is_test_data(path))
        )
        return list(overdue(hits, declared, today))

    def essences(self, commit: str, found: Sequence[OverdueMarker]) -> dict[tuple[str, ...], list[OverdueMarker]]:
        """They by what tells one finding from another: the cause that they share, or the line and its neighbours."""
        blobs = self.git.blobs(f"{commit}:{one.hit.path}" for one in found if not one.cause)
        lines = {name: split_lines(content) for name, content in blobs.items()}
        groups: dict[tuple[str, ...], list[OverdueMarker]] = {}
        for one in found:
            alone = () if one.cause else surroundings(lines[f"{commit}:{one.hit.path}"], one.hit.line)
            groups.setdefault((KIND, *(alone or (one.cause,))), []).append(one)
        return groups


def _restore(hit: dict[str, Any], cause: str, why: str, proof: dict[str, Any] | None) -> OverdueMarker:
    return OverdueMarker(Hit(**hit), cause, why, Quote(**proof) if proof else None)


def overdue_signal(
    essence: tuple[str, ...], found: Sequence[OverdueMarker], commit: str, author: str, age_days: float
) -> Signal:
    """One finding; `author` and `age_days` are those of its first marker."""
    first = found[0]
    hit, said = first.hit, first.hit.text.partition(first.hit.word)[2].strip(" :-*/")
    more = f" (and {count_noun(len(found) - 1, 'marker')} more)" if len(found) > 1 else ""
    lines = [Quote(one.hit.text.strip(), one.hit.path, one.hit.line, commit) for one in found[:QUOTED]]
    who = f"\nWritten by {author}, {age_days:.0f} days ago." if author else ""
    return Signal(
        observer="code",
        kind=KIND,
        title=one_line(f"Overdue {hit.word} in {hit.path}:{hit.line}{more}: {said}"),
        essence=essence,
        severity=Severity.LOW if first.cause else Severity.MEDIUM,
        confidence=0.9,
        effort=1.0,
        detail=block(f"{first.why}.{who}"),
        path=hit.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        line=hit.line,
        author=one_line(author),
        age_days=age_days,
        quotes=(*lines, *((first.proof,) if first.proof else ())),
    )
