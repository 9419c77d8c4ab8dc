"""Tells of markers that are overdue: with the line itself, and the line that proves it.

What one fact made overdue is one finding, however many markers wait for it. Looked at once for each commit and day.

A marker may also name an issue of the repository's own. The lists of what is open are at hand; only what is on none of
them is asked for, a few at a look, and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from typing import Any

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.looking import age_days, block, one_line, split_lines, surroundings, valid_path
from ralph_mission.adapters.observers.markers import Hit, is_test_data
from ralph_mission.adapters.observers.overdue.rules import OverdueMarker, declared_versions, may_wait, overdue
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.model.mission import Quote, Severity, Signal, SignalPart
from ralph_mission.mission.ports import Forge
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

KIND = "overdue-marker"
ENCODING = 3  # of what is kept
MOST = 20  # findings of one look
QUOTED = 8  # lines of one finding
TAG = compile_regex(r"\([\w@.-]{1,40}\)")  # whose a marker is, or what it is for
LOOKED_UP = 30  # markers of a commit whose history is looked at


Essence = tuple[str, ...]
Written = Callable[[Sequence[Hit]], Mapping[tuple[str, int], tuple[str, datetime]]]
"""Who wrote markers and when, by path and line, as far as that is known."""
ISSUES_READ = 5  # issues that are read in one look
CACHE_KEY = "closed-issues"
_REFERENCE = compile_regex(r"(?<![\w/&#])#(\d{1,7})\b|https?://([\w.-]+/[\w.-]+/[\w.-]+)/issues/(\d{1,7})\b")
_HISTORY = compile_regex(
    r"\b(?:original\w*|introduced|added|since|from|pr|pull request|fixed|like|as)\W+(?:\w+\W+){0,2}$"
)


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
        return {
            essence: _build_signal(essence, group, reading, commit, now) for essence, group in [*groups.items()][:MOST]
        }

    def essences(self, commit: str, now: datetime, hits: Sequence[Hit]) -> set[Essence]:
        """Those that these markers of a commit may have had."""
        named = {(KIND, f"issue {one.number}") for one in named_issues(hits)}
        return {*self._by_essence(commit, self._among(commit, now, hits)), *named} if hits else set()

    def _read(self, commit: str, now: datetime, hits: Sequence[Hit], written: Written) -> OverdueReading:
        found, named = self._among(commit, now, hits), list(named_issues(hits))[:LOOKED_UP]
        origins = written([*(one.hit for one in found[:LOOKED_UP]), *(one.hit for one in named)])
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
        """They by what tells one finding from another: the cause that they share, or the line and its neighbours."""
        found = tuple(found)
        blobs = self.git.blobs(f"{commit}:{one.hit.path}" for one in found if not one.cause)
        lines = {name: split_lines(content) for name, content in blobs.items()}
        groups: dict[Essence, list[OverdueMarker]] = {}
        for one in found:
            alone = () if one.cause else surroundings(lines[f"{commit}:{one.hit.path}"], one.hit.line)
            groups.setdefault((KIND, *(alone or (one.cause,))), []).append(one)
        return groups


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


def _marker(hit: dict[str, Any], cause: str, why: str, proof: dict[str, Any] | None) -> OverdueMarker:
    return OverdueMarker(Hit(**hit), cause, why, Quote(**proof) if proof else None)


def _build_signal(
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
        parts=() if first.cause else (SignalPart(essence[1], essence[1], 0),),
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
        if not may_wait(hit):
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
        entry = self.cache.get(CACHE_KEY)
        known = entry if isinstance(entry, dict) else {}
        questions = [number for number in numbers if str(number) not in known][:ISSUES_READ]
        if questions:
            answers = {str(number): self._ask(number) for number in questions}
            known = {**known, **{number: answer for number, answer in answers.items() if answer is not None}}
            self.cache.put(CACHE_KEY, known)
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
