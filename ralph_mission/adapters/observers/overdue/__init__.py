"""Tells of markers that are overdue: with the line itself, and the line that proves it.

What one fact made overdue is one finding, however many markers wait for it; so are markers that name the same day, or
that say the same. Looked at once for each commit and day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from typing import Any

from ralph_mission.adapters.cache import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.markers import Hit, is_test_data
from ralph_mission.adapters.observers.overdue.closed import ClosedIssues, NamedIssue, named_issues
from ralph_mission.adapters.observers.overdue.rules import OverdueMarker, overdue
from ralph_mission.adapters.observers.overdue.versions import declared_versions
from ralph_mission.adapters.observers.text import age_days, block, one_line, split_lines, surroundings, valid_path
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.mission.ports import Forge
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

KIND = "overdue-marker"
ENCODING = 2  # of what is kept
MOST = 20  # findings of one look
QUOTED = 8  # lines of one finding
TAG = compile_regex(r"\([\w@.-]{1,40}\)")  # whose a marker is, or what it is for
LOOKED_UP = 30  # markers of a commit whose history is looked at


Essence = tuple[str, ...]
Written = Callable[[Sequence[Hit]], Mapping[tuple[str, int], tuple[str, datetime]]]
"""Who wrote markers and when, by path and line, as far as that is known."""


@dataclass(frozen=True, slots=True)
class OverdueReading:
    """What the markers of one commit say: those that are overdue, those that name issues, and who wrote which when."""

    found: Sequence[OverdueMarker]
    named: Sequence[NamedIssue]
    origins: Mapping[tuple[str, int], tuple[str, str]]  # author, ISO time


@dataclass(frozen=True, slots=True)
class OverdueSearch:
    """Looks for them in one repository, and asks its forge about issues that they name."""

    git: Git
    excluded: Callable[[str], bool]
    cache: FileCache = FileCache(None)
    forge: Forge | None = None

    def look(
        self, commit: str, now: datetime, hits: Callable[[], Sequence[Hit]], written: Written, settings: str
    ) -> dict[Essence, Signal]:
        """What is overdue at a commit; its markers (`hits`) are asked for once a day. Raises GitError."""
        question = cache_key(str(ENCODING), commit, now.date().isoformat(), settings)
        reading = _restore(self.cache.get(question))
        if reading is None:
            reading = self._read(commit, now, hits(), written)
            self.cache.put(question, _encode(reading))
            self.cache.tidy()
        groups = self._by_essence(commit, (*reading.found, *self._closed(reading.named)))
        return {essence: _told(essence, group, reading, commit, now) for essence, group in [*groups.items()][:MOST]}

    def essences(self, commit: str, now: datetime, hits: Sequence[Hit]) -> set[Essence]:
        """Those that these markers of a commit may have had."""
        if not hits:
            return set()
        found = self._among(commit, now, hits)
        named = {(KIND, f"issue {one.number}") for one in named_issues(hits)}
        like = {(KIND, one.like) for one in found if one.like}
        return {*named, *like, *self._surrounded(commit, found).values(), *self._by_essence(commit, found)}

    def _read(self, commit: str, now: datetime, hits: Sequence[Hit], written: Written) -> OverdueReading:
        found, named = self._among(commit, now, hits)[:LOOKED_UP], list(named_issues(hits))[:LOOKED_UP]
        origins = written([*(one.hit for one in found), *(one.hit for one in named)])
        authors = {place: (author, at.isoformat()) for place, (author, at) in origins.items()}
        dated = [replace(one, written=authors.get((one.hit.path, one.hit.line), ("", ""))[1]) for one in named]
        return OverdueReading(found, dated, authors)

    def _among(self, commit: str, now: datetime, hits: Iterable[Hit]) -> list[OverdueMarker]:
        def wanted(path: str) -> bool:
            return not self.excluded(path) and not is_test_data(path)

        return list(overdue(hits, cache(lambda: declared_versions(self.git, commit, wanted)), now.date()))

    def _closed(self, named: Sequence[NamedIssue]) -> Sequence[OverdueMarker]:
        if self.forge is None:
            return ()
        try:
            return list(ClosedIssues(self.forge, self.cache).overdue(named))
        except UserError:  # the forge observer tells why
            return ()

    def _by_essence(self, commit: str, found: Iterable[OverdueMarker]) -> dict[Essence, list[OverdueMarker]]:
        """They by what tells one finding from another: the cause that they share, what they have in common, or the
        line and its neighbours."""
        found = tuple(found)
        like = Counter(one.like for one in found if not one.cause)
        alone = self._surrounded(commit, (one for one in found if not one.cause and like[one.like] == 1))
        groups: dict[Essence, list[OverdueMarker]] = {}
        for one in found:
            groups.setdefault(alone.get(one.hit) or (KIND, one.cause or one.like), []).append(one)
        return groups

    def _surrounded(self, commit: str, found: Iterable[OverdueMarker]) -> dict[Hit, Essence]:
        """What tells one from others where it stands alone: the line and its neighbours."""
        found = tuple(found)
        blobs = self.git.blobs({f"{commit}:{one.hit.path}": None for one in found})
        lines = {name: split_lines(content) for name, content in blobs.items()}
        return {one.hit: (KIND, *surroundings(lines[f"{commit}:{one.hit.path}"], one.hit.line)) for one in found}


def _encode(reading: OverdueReading) -> dict[str, Any]:
    return {
        "found": [asdict(one) for one in reading.found],
        "named": [asdict(one) for one in reading.named],
        "origins": [[*place, *origin] for place, origin in reading.origins.items()],
    }


def _restore(document: Any) -> OverdueReading | None:
    """What was kept, None where that cannot be read."""
    try:
        return OverdueReading(
            [_marker(**one) for one in document["found"]],
            [NamedIssue(Hit(**one.pop("hit")), **one) for one in document["named"]],
            {(path, line): (author, at) for path, line, author, at in document["origins"]},
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return None


def _marker(hit: dict[str, Any], cause: str, why: str, proof: dict[str, Any] | None, like: str) -> OverdueMarker:
    return OverdueMarker(Hit(**hit), cause, why, Quote(**proof) if proof else None, like)


def _told(
    essence: Essence, group: Sequence[OverdueMarker], reading: OverdueReading, commit: str, now: datetime
) -> Signal:
    author, at = reading.origins.get((group[0].hit.path, group[0].hit.line), ("", ""))
    return overdue_signal(essence, group, commit, author, age_days(datetime.fromisoformat(at), now) if at else 0.0)


def overdue_signal(essence: Essence, found: Sequence[OverdueMarker], commit: str, author: str, age: float) -> Signal:
    """One finding; `author` and `age` (days) are those of its first marker."""
    first = found[0]
    hit = first.hit
    behind = hit.text.partition(hit.word)[2]
    tagged = TAG.match(behind)
    tag = tagged[0] if tagged else ""
    note = behind[len(tag) :].strip(" :-*/")
    more = f" (and {count_noun(len(found) - 1, 'marker')} more)" if len(found) > 1 else ""
    lines = [Quote(one.hit.text.strip(), valid_path(one.hit.path), one.hit.line, commit) for one in found[:QUOTED]]
    who = f"\nLast changed by {one_line(author)}, {age:.0f} days ago." if author else ""
    return Signal(
        observer="code",
        kind=KIND,
        title=one_line(f"Overdue {hit.word}{tag} in {hit.path}:{hit.line}{more}: {note}"),
        essence=essence,
        severity=Severity.LOW if first.cause else Severity.MEDIUM,
        confidence=0.9,
        effort=1.0,
        detail=block(f"{first.why}.{who}"),
        path=valid_path(hit.path),
        line=hit.line,
        author=one_line(author),
        age_days=age,
        quotes=(*lines, *((first.proof,) if first.proof else ())),
    )
