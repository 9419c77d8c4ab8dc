"""Observes the code of one commit: what was committed since the last look, and which markers are new.

The first observation counts existing markers, one signal per kind; later ones compare changed files, where moved,
renamed or re-indented markers are not new. Overdue markers are always findings of their own; so is, later, an import
against the direction between two folders. Authors and dates come
from `git blame`, within limits on files and seconds.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.git.git import Git, GitError, Identity
from ralph_mission.adapters.observers.looking import age_days, block, one_line, split_lines, surroundings, valid_path
from ralph_mission.adapters.observers.markers import Hit, excluder, is_test_data, marker, scan
from ralph_mission.adapters.observers.overdue import KIND, OverdueSearch
from ralph_mission.adapters.observers.overdue import MOST as MOST_OVERDUE
from ralph_mission.config.observers import CodeSettings
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge, Observer
from ralph_mission.mission.proposals.wording import is_ours
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun, stamp

FILES = 30  # blamed per observation
LINES = 50  # of one file
SECONDS = 5.0  # for all of them
AT_A_TIME = 4
LATEST = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())
DIGITS = 18  # digits of a time: the calendar ends long before
NAMES = {"todo": "TODO"}  # what people call a kind of markers, where it is not its key

Place = tuple[str, int]
"""A path and a 1-based line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The author, time and commit of a line."""

    author: str
    at: datetime
    commit: str = ""


def origins(
    git: Git, commit: str, places: Mapping[str, Sequence[int]], seconds: float = SECONDS
) -> dict[Place, Origin]:
    """The origins of lines by path, for the first `FILES` paths and at most `seconds`.

    Lines without history in a shallow repository are left out.
    """
    deadline = time.monotonic() + seconds
    shallow = (git.common_dir / "shallow").exists()

    def one(path: str) -> dict[Place, Origin]:
        remaining = deadline - time.monotonic()
        found = _blame(git, commit, path, places[path][:LINES], remaining) if remaining > 0 else b""
        return {(path, line): origin for line, origin in _read(found, shallow)}

    if not places:
        return {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return {place: origin for found in pool.map(one, list(places)[:FILES]) for place, origin in found.items()}


def _blame(git: Git, commit: str, path: str, lines: Sequence[int], seconds: float) -> bytes:
    ranges = [part for line in lines for part in ("-L", f"{line},{line}")]
    flags = ("--line-porcelain", "--no-textconv", "--ignore-revs-file=")
    try:
        return git.run("blame", *flags, *ranges, commit, "--", path, timeout=seconds)
    except GitError:  # too slow, or unreadable history: no author then
        return b""


def _read(raw: bytes, shallow: bool) -> Iterator[tuple[int, Origin]]:
    facts: dict[bytes, bytes] = {}
    number, commit = 0, ""
    for line in raw.split(b"\n"):
        name, _, value = line.partition(b" ")
        if line.startswith(b"\t"):
            if not (shallow and b"boundary" in facts):
                yield number, _origin(facts, commit)
            facts, number = {}, 0
        elif not number and value:
            number, commit = int(value.split()[1]), name.decode()
        else:
            facts[name] = value


def _origin(facts: Mapping[bytes, bytes], commit: str) -> Origin:
    when = facts.get(b"author-time", b"").decode("ascii", "replace")
    return Origin(facts.get(b"author", b"").decode("utf-8", "replace"), moment(when), commit)


def find_ours(git: Git, written: Mapping[Place, Origin]) -> frozenset[Place]:
    """Those whose line a commit of ours wrote: people reviewed that change, so it is not news.

    On GitHub such a commit has the author of the token that made it; its message tells.
    """
    commits = sorted({origin.commit for origin in written.values() if origin.commit})
    ours = set[str]()
    if commits:
        text = git.text("log", "--no-walk=unsorted", "-z", "--format=%H %B", *commits, "--")
        ours = {record[: record.index(" ")] for record in text.split("\0") if is_ours(record.partition(" ")[2])}
    name = Identity().name
    return frozenset(place for place, origin in written.items() if origin.author == name or origin.commit in ours)


def moment(text: str) -> datetime:
    """Parse git's time. The author of a commit chose it, even an invalid year."""
    return datetime.fromtimestamp(min(int(text[:DIGITS] or 0), LATEST), UTC)


MOST = 1_000  # commits read at most


@dataclass(frozen=True, slots=True)
class HistoryCommit:
    """A commit; a merge has no paths."""

    origin: Origin
    paths: tuple[str, ...]


def history(git: Git, *revisions: str) -> tuple[HistoryCommit, ...]:
    """The newest `MOST` commits of `revisions`, in `git log` syntax."""
    fence = "\x01" + os.urandom(8).hex()  # a random separator, as a file may have any name
    shape = ("-z", "--name-only", "--no-renames", f"--format={fence}%an%x00%at%x00%H")
    raw = git.run("log", *shape, f"--max-count={MOST}", *revisions, "--")
    records = raw.decode("utf-8", "surrogateescape").split(fence)[1:]
    return tuple(_commit(record) for record in records)


def sole_origins(commits: Sequence[HistoryCommit]) -> dict[str, Origin]:
    """By path, the origin for files touched by a single commit."""
    touched = Counter(path for commit in commits for path in commit.paths)
    complete = len(commits) < MOST
    return {path: one.origin for one in commits for path in one.paths if complete and touched[path] == 1}


def _commit(record: str) -> HistoryCommit:
    author, at, oid, rest = record.split("\0", 3)  # AUTHOR NUL TIME NUL ID NUL [LF PATH NUL PATH NUL …]
    name = author.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    paths = rest.removeprefix("\n").split("\0")
    return HistoryCommit(Origin(name, moment(at), oid), tuple(path for path in paths if path))


NAME = "code"
MANY = 50  # new markers of a kind; more are counted, not listed
SAMPLED = 3  # files of a kind whose history is read at first
TOP = 5  # files listed with a count
FIRST_LOOK = timedelta(hours=6)  # the original specification: `git log --since="6 hours ago"`
URGENT = ("FIXME", "HACK", "XXX", "BUG")
ROOM = 50  # characters for places in a title
QUOTED = 5  # markers of a kind that are shown
SUSPICIOUS = compile_regex(
    r"\b(?:temporar\w*|wrong\w*|broken|fails?|failing|revert\w*|remov\w*|hard-?coded|unsafe|insecure|race|leak\w*|"
    r"for testing|test-)\b|\bhack\b",
    re.IGNORECASE,
)


T = TypeVar("T")


def build(settings: CodeSettings, git: Git, cache: Path | None = None, forge: Forge | None = None) -> Observer:
    """The observer of a repository's code; `cache`: results by commit, `forge`: for issues."""
    return Code(settings, git, FileCache(cache / NAME if cache else None), forge)


@dataclass(frozen=True, slots=True)
class SeenMarker:
    """A marker with its essence, which identifies it after moves."""

    hit: Hit
    essence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Reads commits only, never the work tree or the index."""

    settings: CodeSettings
    git: Git
    cache: FileCache = FileCache(None)
    forge: Forge | None = None
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """What is new since the commit in `context.cursor`; if that is unknown, everything, counted."""
        head = context.head.sha
        if not head:
            return Observation(self.name, "ok", detail="no commits yet", cursor=context.cursor)
        before = self._known(context.cursor, head)
        since = context.last_cycle_at or context.now - FIRST_LOOK
        revisions = (f"{before}..{head}",) if before else (f"--since={since.isoformat()}", head)
        commits = history(self.git, *revisions) if before != head else ()
        look = self._news(before, head, commits, context.now) if before else (*self._first(head, context.now), ())
        authors = count_noun(len({commit.origin.author for commit in commits}), "author")
        detail = f"{count_noun(len(commits), 'commit')} by {authors} since {before[:12] or stamp(since)}"
        late = sum(signal.kind == KIND for signal in look[0])
        return Observation(
            self.name, "ok", look[0], detail=f"{look[1]}; {detail}", cursor=head, complete=not before, gone=look[2],
            whole=(KIND,) if late < MOST_OVERDUE else (), at_commit=True,
        )  # fmt: skip  # one look

    def _known(self, cursor: str, head: str) -> str:
        """The commit that was seen last, or ""."""
        if cursor == head:
            return head
        return self.git.resolve(cursor) if re.fullmatch(r"[0-9a-f]{40,64}", cursor) else ""

    def _first(self, head: str, now: datetime) -> tuple[tuple[Signal, ...], str]:
        hits = self._scan(head, None)
        kinds = sorted({hit.kind for hit in hits})
        written = origins(self.git, head, _sample(hits, kinds))
        counts = (_count([h for h in hits if h.kind == kind], written, now, head) for kind in kinds)
        late = self._overdue(head, now, lambda: hits)
        return (*counts, *late.values()), f"{count_noun(len(hits), 'marker')}{_late_words(late)}"

    def _news(
        self, before: str, head: str, commits: Sequence[HistoryCommit], now: datetime
    ) -> tuple[tuple[Signal, ...], str, tuple[tuple[str, ...], ...]]:
        moved = before != head
        raw = self.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, head) if moved else b""
        paths = [name.decode("utf-8", "surrogateescape") for name in raw.split(b"\0") if name]
        then, now_there = (self._essences(commit, self._scan(commit, paths)) for commit in (before, head))
        new, gone = changes(then, now_there)
        written = self._written(head, [marker.hit for marker in new], commits)
        late = self._overdue(head, now, lambda: self._scan(head, None))
        reported = {(quote.path, quote.line) for signal in late.values() for quote in signal.quotes}
        known = reported | find_ours(self.git, written)
        new = [marker for marker in new if (marker.hit.path, marker.hit.line) not in known]
        signals = tuple(
            signal
            for kind in sorted({marker.hit.kind for marker in new})
            for signal in _signals([s for s in new if s.hit.kind == kind], written, now, head)
        )
        over = self._search().essences(before, now, [marker.hit for marker in then]) - late.keys()
        detail = f"{count_noun(len(paths), 'file')} changed, {count_noun(len(new), 'new marker')}"
        detail += _late_words(late)
        turned, undone = self._architecture(before, head, now, paths) if paths else ((), ())
        return (
            (*signals, *late.values(), *turned),
            detail,
            (*(marker.essence for marker in gone), *sorted(over), *undone),
        )

    def _architecture(
        self, before: str, head: str, now: datetime, paths: Iterable[str]
    ) -> tuple[Sequence[Signal], Sequence[tuple[str, ...]]]:
        """Imports against an established direction, and the pairs of folders that no longer import each other."""
        from ralph_mission.adapters.observers import imports  # an idle cycle reads none

        def written(path: str, line: int) -> tuple[str, float]:
            origin = origins(self.git, head, {path: [line]}).get((path, line))
            return (origin.author if origin else "", _age(origin, now))

        excluded = excluder(self.settings.exclude)
        if not any(imports.is_source(path, excluded) for path in paths):
            return (), ()
        then, there = (imports.read_imports(self.git, commit, excluded, self.cache) for commit in (before, head))
        ended = imports.mutual_imports(then) - imports.mutual_imports(there)
        found = imports.architecture_signals(then, there, head, written)
        ours = find_ours(self.git, origins(self.git, head, _by_file(found)))
        news = [signal for signal in found if (signal.path, signal.line) not in ours]
        return news, [*map(imports.essence, sorted(ended))]

    def _overdue(self, head: str, now: datetime, hits: Callable[[], Sequence[Hit]]) -> dict[tuple[str, ...], Signal]:
        """The overdue markers at a commit, by essence."""

        def written(found: Sequence[Hit]) -> dict[Place, tuple[str, datetime]]:
            known = origins(self.git, head, _by_file(found))
            return {place: (origin.author, origin.at) for place, origin in known.items()}

        return self._search().look(head, now, hits, written, repr(self.settings))

    def _search(self) -> OverdueSearch:
        return OverdueSearch(self.git, excluder(self.settings.exclude), self.cache, self.forge)

    def _scan(self, commit: str, paths: Sequence[str] | None) -> tuple[Hit, ...]:
        markers = [marker(kind, pattern) for kind, pattern in self.settings.markers.items()]
        return scan(self.git, commit, markers, excluder(self.settings.exclude), paths)

    def _essences(self, commit: str, hits: Sequence[Hit]) -> list[SeenMarker]:
        blobs = self.git.blobs(f"{commit}:{hit.path}" for hit in hits)
        lines = {name: split_lines(content) for name, content in blobs.items()}
        return [SeenMarker(hit, (hit.kind, *surroundings(lines[f"{commit}:{hit.path}"], hit.line))) for hit in hits]

    def _written(self, head: str, hits: Sequence[Hit], commits: Sequence[HistoryCommit]) -> dict[Place, Origin]:
        sole = sole_origins(commits)
        unclear = _by_file(hit for hit in hits if hit.path not in sole)
        known = {(hit.path, hit.line): sole[hit.path] for hit in hits if hit.path in sole}
        return known | origins(self.git, head, unclear)


def _late_words(late: Mapping[tuple[str, ...], Signal]) -> str:
    return f", {len(late)} overdue" if late else ""


def changes(then: Sequence[SeenMarker], now: Sequence[SeenMarker]) -> tuple[list[SeenMarker], list[SeenMarker]]:
    """The new markers of `now`, and those of `then` that are gone.

    Matched by essence, wherever they moved; the rest by path and text, as editing the line above does not make a marker
    new.
    """
    gone = drop_matched(then, now, lambda marker: marker.essence)
    new = drop_matched(now, then, lambda marker: marker.essence)
    return drop_matched(new, gone, _place_and_text), drop_matched(gone, new, _place_and_text)


def _place_and_text(marker: SeenMarker) -> Hashable:
    return marker.hit.path, marker.essence[:2]


def drop_matched(items: Iterable[T], others: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """The items without a match among `others`; each matches at most one item."""
    counts, rest = Counter(map(key, others)), []
    for item in items:
        if counts[key(item)]:
            counts[key(item)] -= 1
        else:
            rest.append(item)
    return rest


def _signals(markers: Sequence[SeenMarker], written: Mapping[Place, Origin], now: datetime, head: str) -> list[Signal]:
    if len(markers) > MANY:
        return [_count([one.hit for one in markers], written, now, head, new=True)]
    return [_signal(one, written.get((one.hit.path, one.hit.line)), now, head) for one in markers]


def _signal(marker: SeenMarker, origin: Origin | None, now: datetime, head: str) -> Signal:
    hit, age = marker.hit, _age(origin, now)
    label, text = hit.word if hit.word.isalpha() else hit.kind, hit.text.strip()
    text_after = text.partition(hit.word)[2].lstrip(" :") if hit.word.isalpha() else text
    by = f"\nLast changed by {origin.author}, {age:.0f} days ago." if origin else ""
    return Signal(
        observer=NAME,
        kind=hit.kind,
        title=one_line(f"{label} in {hit.path}:{hit.line}: {text_after}"),
        essence=marker.essence,
        severity=Severity.MEDIUM if hit.word in URGENT else Severity.LOW,
        confidence=0.7,
        effort=2.0,
        detail=block(f"{hit.path}:{hit.line}\n{text}{by}"),
        path=valid_path(hit.path),
        line=hit.line,
        author=one_line(origin.author) if origin else "",
        age_days=age,
        quotes=_quotes([hit], head),
    )


def _count(
    hits: Sequence[Hit], written: Mapping[Place, Origin], now: datetime, head: str, *, new: bool = False
) -> Signal:
    """All markers of a kind as one signal: those that are `new` at `head`, or all."""
    kind, files = hits[0].kind, Counter(hit.path for hit in hits)
    dated = [(written[hit.path, hit.line], hit) for hit in hits if (hit.path, hit.line) in written]
    origin, oldest = min(dated, key=lambda pair: pair[0].at, default=(None, None))
    age, news = _age(origin, now), "new " if new else ""
    return Signal(
        observer=NAME,
        kind=kind,
        title=one_line(
            f"{count_noun(len(hits), f'{news}{NAMES.get(kind, kind)} marker')} in {count_noun(len(files), 'file')}: "
            f"{_name_places(hits)}"
        ),
        essence=(kind, "count"),
        occurrence=head[:12] if new else "",
        confidence=0.9,
        effort=4.0,
        detail=block(f"Most are in:\n{_ranking(files)}{_oldest(oldest, origin, age, len(dated))}"),
        author=one_line(origin.author) if origin else "",
        age_days=age,
        facts=(("count", len(hits)), ("files", len(files)), ("oldest_days", round(age, 1))),
        quotes=_quotes(hits, head),
    )


def _name_places(hits: Sequence[Hit]) -> str:
    """The first of them, each file once, as far as there is room: "a.py:3, :7, b.py:1 and 2 more"."""
    hits = list({(hit.path, hit.line): hit for hit in hits}.values())  # a line may have two
    named, before = list[str](), ""
    for hit in hits:
        short = hit.path if len(hit.path) <= ROOM else f"…{hit.path[1 - ROOM :]}"
        place = f":{hit.line}" if hit.path == before else f"{short}:{hit.line}"
        if named and len(", ".join([*named, place])) > ROOM:
            break
        named.append(place)
        before = hit.path
    more = len(hits) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _quotes(hits: Iterable[Hit], head: str) -> tuple[Quote, ...]:
    """A few of the markers: suspicious ones in the project's own code first."""
    first = sorted(hits, key=lambda hit: (is_test_data(hit.path), not SUSPICIOUS.search(hit.text), hit.path, hit.line))
    return tuple(Quote(one_line(hit.text), valid_path(hit.path), hit.line, head) for hit in first[:QUOTED])


def _ranking(files: Counter[str]) -> str:
    most = sorted(files.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return "\n".join(f"- {one_line(path)}: {number}" for path, number in most)


def _oldest(hit: Hit | None, origin: Origin | None, age: float, dated: int) -> str:
    if hit is None or origin is None:
        return ""
    return (
        f"\nOldest of the {dated} whose history was looked at (in the files with most of them): "
        f"{one_line(hit.path)}:{hit.line}, by {one_line(origin.author)}, {age:.0f} days ago."
    )


def _sample(hits: Sequence[Hit], kinds: Sequence[str]) -> dict[str, list[int]]:
    chosen: dict[str, list[int]] = {}
    for kind in kinds:
        mine = _by_file(hit for hit in hits if hit.kind == kind)
        for path in sorted(mine, key=lambda path: (-len(mine[path]), path))[:SAMPLED]:
            chosen[path] = sorted({*chosen.get(path, []), *mine[path]})
    return chosen


def _by_file(hits: Iterable[Hit | Signal]) -> dict[str, list[int]]:
    files: dict[str, list[int]] = {}
    for hit in hits:
        if hit.line not in files.setdefault(hit.path, []):
            files[hit.path].append(hit.line)
    return files


def _age(origin: Origin | None, now: datetime) -> float:
    return age_days(origin.at, now) if origin else 0.0
