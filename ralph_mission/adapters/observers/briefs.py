"""Observes standing briefs in `missions/` and texts in `content/` that people put into the repository.

Both are Markdown with front matter, read from the default branch only, so whoever may merge there decides. A file only
counts if its front matter has one of our keys, as site generators also use `content/`. When one is due depends on the
day and the file alone, so all runners agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.looking import one_line, plain
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.mission import BRIEFS, Observation, Quote, Severity, Signal, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.front_matter import Document, YamlError, parse_front_matter
from ralph_mission.safety.front_matter import Path as KeyPath
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

if TYPE_CHECKING:
    from ralph_mission.adapters.observers.research import Researcher
    from ralph_mission.config.observers import BriefHeader, TextHeader

NAME = BRIEFS
MISSIONS, CONTENT, INTEGRATION = "missions", "content", "integration"
OURS = {
    MISSIONS: compile_regex(r"^(?:every|done_when)[ \t]*:", re.MULTILINE),
    CONTENT: compile_regex(r"^networks[ \t]*:", re.MULTILINE),
}
"""By folder: a key that marks our files."""
MONDAY = date(1970, 1, 5)  # the default start of periods
HEAD = 4_000  # characters in which the key is searched for
LARGEST, LONGEST, MOST = 20_000, 4_000, 50
"""Limits: bytes of a file, characters shown in an issue, files in a folder."""
LOOK, OVER = 2_400.0, 3
"""Seconds for an observation with research, and how often a brief is researched at most."""


@dataclass(frozen=True, slots=True)
class DueBrief:
    """A brief and its period: the first day, "" for a single one; None if not due."""

    path: str
    header: BriefHeader | TextHeader
    words: str
    period: str | None

    @property
    def name(self) -> str:
        """The file's name without folder and ending."""
        return self.path.rpartition("/")[2].removesuffix(".md")


@dataclass(frozen=True, slots=True)
class BriefObserver:
    """Reads two folders of a commit. With a `researcher`, a brief is researched once per period, before it is reported.

    `begun`: fingerprints with a mission; those are not researched.
    """

    git: Git
    cache: Path | None = None
    researcher: Callable[[], Researcher] | None = None
    begun: Callable[[], Collection[str]] = tuple
    name: str = NAME

    @property
    def seconds(self) -> float:
        """The time limit of an observation."""
        return LOOK if self.researcher else 0.0

    def observe(self, context: ObservationContext) -> Observation:
        """What is due now; an unreadable file is reported and does not affect others."""
        commit = context.head.sha
        found, wrong = self._read_all(commit, context.now) if commit else ([], [])
        due = [one for one in found if one.period is not None]
        look = _BriefLook(self, context, commit, Researched.parse(context.cursor))
        signals = [
            signal for one in due for signal in (look.tell(one) if _is_mission(one) else [_content(one, commit)])
        ]
        counted = f"{count_noun(len(found), 'file')}, {len(due)} due" if found or wrong else "none"
        detail = one_line("; ".join([counted, *look.notes, *wrong]), 300)
        # An error in a file, or pending research, must not close the brief's issue.
        whole, cursor = not (wrong or look.waits), look.done.dump(commit, [_name(one) for one in due])
        return Observation(NAME, "ok", tuple(signals), detail=detail, cursor=cursor, complete=whole, usage=look.usage)

    def asks(self, context: ObservationContext) -> bool:
        """Whether a due brief needs research."""
        commit = context.head.sha if self.researcher else ""
        found, _ = self._read_all(commit, context.now) if commit else ([], [])
        done = Researched.parse(context.cursor)
        due = [one for one in found if one.period is not None and _is_researched(one) and not done.is_over(one)]
        return any(not self.is_begun(one) for one in due)

    def is_begun(self, one: DueBrief) -> bool:
        """Whether the brief has a mission, of this or an earlier period."""
        (finding,) = identify((_mission(one, ""),))
        return finding.fingerprint in self.begun()

    def _read_all(self, commit: str, now: datetime) -> tuple[list[DueBrief], list[str]]:
        found, wrong = list[DueBrief](), list[str]()
        for path, text in self._files(commit):
            try:
                found.append(_read(path, text, now))
            except UserError as problem:
                wrong.append(f"{problem.what}; {problem.next_step}")
        return found, wrong

    def _files(self, commit: str) -> Iterator[tuple[str, str]]:
        """Our files, by path."""
        listed = self.git.listing(commit, f"{MISSIONS}/", f"{CONTENT}/", recursive=False)
        pages = [one for one in listed if one.mode.startswith("100") and one.path.endswith(".md")]
        blobs = self.git.blobs(one.oid for one in pages)
        for page in pages:
            text = plain(blobs.get(page.oid, b"").decode("utf-8", "replace"))
            if text.startswith("---") and OURS[page.path.partition("/")[0]].search(text[:HEAD]):
                yield page.path, text


@dataclass(frozen=True, slots=True)
class Researched:
    """How often each due brief was researched, by name and period; `OVER` means finished."""

    tries: Mapping[str, int]

    @classmethod
    def parse(cls, cursor: str) -> Researched:
        """Parse from memory; anything unreadable counts as not researched."""
        with suppress(ValueError, AttributeError, TypeError):
            found = json.loads(cursor.partition(" ")[2])
            return cls({str(name): int(count) for name, count in found.items()})
        return cls({})

    def is_over(self, one: DueBrief) -> bool:
        """Whether a brief needs no more research."""
        return self.tries.get(_name(one), 0) >= OVER

    def dump(self, commit: str, due: Sequence[str]) -> str:
        """What is still due, on one line after the commit."""
        tries = {name: count for name, count in self.tries.items() if name in due}
        return f"{commit} {json.dumps(tries, sort_keys=True)}" if tries else commit


class _BriefLook:
    """An observation of briefs: its signals and cost."""

    def __init__(self, observer: BriefObserver, context: ObservationContext, commit: str, done: Researched) -> None:
        self.observer, self.context, self.commit, self.done = observer, context, commit, done
        self.cache = FileCache(observer.cache / NAME if observer.cache else None, most=MOST)
        self.notes, self.waits, self.usage = list[str](), False, Usage()

    def tell(self, one: DueBrief) -> list[Signal]:
        """Report the brief with its research and text; nothing while that is pending."""
        key, sources = cache_key("research", _name(one)), _sources(one)
        compared = bool(sources) and getattr(one.header, "kind", "") == INTEGRATION and self.cache.folder is not None
        wanted = compared or (self.observer.researcher and _is_researched(one))
        if wanted and not self.done.is_over(one) and not self.observer.is_begun(one):
            try:
                self.cache.put(key, self._research(one, sources, compared))
            except UserError as problem:
                self.notes.append(f"{one.path}: {problem.what}; {problem.next_step}")
                self._count(one, 1)
            if self.observer.researcher and not self.done.is_over(one):
                self.waits = True
                return []
        result = self.cache.get(key)
        return _with_research(one, self.commit, result if isinstance(result, dict) else {})

    def _research(self, one: DueBrief, sources: tuple[str, ...], compared: bool) -> dict[str, Any]:
        from ralph_mission.adapters.observers.research import GuardedPages, uses_of_ended

        left, researcher = self.context.usd - self.usage.cost_usd, self.observer.researcher
        if researcher and left <= 0:
            raise UserError("its research waits for money", "raise limits.usd_per_day, or wait until tomorrow")
        pages = GuardedPages(self.observer.cache, Path(self.context.scratch), self.context.now)
        uses = uses_of_ended(sources, pages, self.observer.git, self.commit) if compared else []
        result: dict[str, Any] = {"uses": [asdict(use) for use in uses or ()]}
        answered = uses is not None
        if researcher:
            networks = tuple(one.header.networks)
            research = researcher().research(one.words, sources, networks, pages, self.commit, left)
            self.usage += research.usage
            self.notes += filter(None, (f"{one.path}: {count_noun(len(research.sections), 'section')}", research.why))
            answered = bool(research.sections or research.text or research.dropped)
            result |= {"sections": [asdict(section) for section in research.sections], "text": research.text}
        self._count(one, OVER if answered else 1)
        return result

    def _count(self, one: DueBrief, tries: int) -> None:
        before = self.done.tries.get(_name(one), 0)
        self.done = Researched({**self.done.tries, _name(one): before + tries})


def _sources(one: DueBrief) -> tuple[str, ...]:
    return getattr(one.header, "sources", ())


def _is_researched(one: DueBrief) -> bool:
    """Whether there is something to research or write, and an agent for it."""
    return _is_mission(one) and bool(_sources(one) or one.header.networks)


def _name(one: DueBrief) -> str:
    return f"{one.name} {one.period}".strip()


def _with_research(one: DueBrief, commit: str, result: Mapping[str, Any]) -> list[Signal]:
    """The brief with sections and quotes, and the text, which needs approval like any other."""
    text, sections = str(result.get("text") or ""), result.get("sections") or ()
    mission = _mission(one, commit, writes=not text)
    if sections:
        from ralph_mission.mission.proof.exploring import ResearchSection, describe_sections

        found = [ResearchSection(**{name: str(value) for name, value in row.items()}) for row in sections]
        detail = f"{mission.detail}\n\nWhat its sources say, as an agent read them:\n\n{describe_sections(found)}"
        quotes = tuple(Quote(" ".join(each.quote.split()), url=each.source) for each in found)
        mission = replace(mission, detail=detail, quotes=(*mission.quotes, *quotes))
    if uses := [Quote(**row) for row in result.get("uses") or ()]:
        note = "A source speaks of the end of something that is used here: the quotes show both."
        mission = replace(mission, detail=f"{mission.detail}\n\n{note}", quotes=(*mission.quotes, *uses))
    draft = replace(_content(replace(one, words=text), commit), title=one_line(f"Text: {one.header.title}"))
    return [mission, draft] if text else [mission]


def _is_mission(one: DueBrief) -> bool:
    return one.path.startswith(f"{MISSIONS}/")


def _read(path: str, text: str, now: datetime) -> DueBrief:
    """Read one of our files. Raises UserError with what its author has to change."""
    from pydantic import ValidationError

    from ralph_mission.config.reading import explain
    from ralph_mission.config.shared import problem

    model = _header_of(path.partition("/")[0])
    if len(text) > LARGEST:
        raise problem(path, 0, f"longer than {LARGEST:,} characters", "shorten it")
    try:
        front = parse_front_matter(text)
    except YamlError as error:
        raise problem(path, error.line, error.what, "correct its front matter") from None
    lines: dict[KeyPath, int] = {(): 1} | {(key,): line for key, line in front.lines.items()}
    try:
        header = model.model_validate(front.value)
    except ValidationError as error:
        raise explain(error, Document(front.value, lines), path, model) from None
    words = front.body.strip()
    if not words or len(words) > LONGEST:
        complaint = f"its text has {len(words):,} characters" if words else "it has no text"
        raise problem(path, front.body_line, complaint, f"write one of at most {LONGEST:,} characters")
    return DueBrief(path, header, words, period_of(now, header.every, header.after))


@cache
def _header_of(folder: str) -> type[Any]:
    """The parser, imported on demand: most repositories have no such files."""
    from ralph_mission.config.observers import BriefHeader, TextHeader

    return BriefHeader if folder == MISSIONS else TextHeader


def period_of(now: datetime, every: timedelta | None, after: date | None) -> str | None:
    """The first day of the current period, "" for a single one, None before its start.

    Periods are counted from `after`, or else from a Monday, in UTC.
    """
    begin = datetime.combine(after or MONDAY, time(), UTC)
    if now < begin:
        return None
    return (begin + (now - begin) // every * every).date().isoformat() if every else ""


def _mission(one: DueBrief, commit: str, writes: bool = True) -> Signal:
    """The signal of a due brief. Its identity only depends on the period, not on edits.

    `writes`: whoever carries it out also writes its text.
    """
    header: Any = one.header
    lists = (("Sources", header.sources), ("Done when", (header.done_when,) if header.done_when else ()))
    parts = [one.words, *(f"{name}:\n" + "\n".join(f"- {each}" for each in those) for name, those in lists if those)]
    if header.networks and writes:
        parts.append(
            f"Write the text to be published into content/{one.name}-{one.period or 'text'}.md, below front matter "
            f"with title: and networks: [{', '.join(header.networks)}]. A person reads it before it goes out."
        )
    return Signal(
        NAME,
        header.kind,
        one_line(header.title),
        ("mission", one.name),
        one.period or "",
        Severity.MEDIUM,
        confidence=1.0,
        detail="\n\n".join(parts),
        path=one.path,
        quotes=(Quote(one_line(header.title), one.path, 1, commit),),
    )


def _content(one: DueBrief, commit: str) -> Signal:
    """The signal of a due text. An edited text is a new one: earlier rejections do not apply."""
    header: Any = one.header
    return Signal(
        NAME,
        CONTENT,
        one_line(header.title),
        (CONTENT, one.name, sha256(one.words.encode()).hexdigest()[:16]),
        one.period or "",
        Severity.MEDIUM,
        confidence=1.0,
        detail=one.words,
        path=one.path,
        facts=tuple(("network", network) for network in header.networks),
        quotes=(Quote(one_line(header.title), one.path, 1, commit),),
    )
