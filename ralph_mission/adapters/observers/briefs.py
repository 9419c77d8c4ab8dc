"""Observes what people wrote into the repository to be done: standing briefs in `missions/`, texts in `content/`.

Both are Markdown with front matter, read from the default branch alone, so whoever may merge there decides. A file is
one of ours only if its front matter has a key of ours: `content/` is also where site generators keep their pages. When
one is due follows from the day and from the file, never from what was told before, so it is the same for every runner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.text import count_noun, one_line, plain
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import BRIEFS
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.front_matter import Document, YamlError, parse_front_matter
from ralph_mission.safety.front_matter import Path as KeyPath
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from ralph_mission.config.briefs import BriefHeader, TextHeader

NAME = BRIEFS
MISSIONS, CONTENT = "missions", "content"
OURS = {
    MISSIONS: compile_regex(r"^(?:every|done_when)[ \t]*:", re.MULTILINE),
    CONTENT: compile_regex(r"^networks[ \t]*:", re.MULTILINE),
}
"""By folder: a key without which a file is somebody else's."""
MONDAY = date(1970, 1, 5)  # periods are counted from it where a file names no day
HEAD = 4_000  # characters among which the key is looked for
LARGEST, LONGEST, MOST = 20_000, 4_000, 50
"""Bytes of a file, characters of what an issue shows of it, and files in a folder."""


@dataclass(frozen=True, slots=True)
class DueBrief:
    """A file of ours and its period: the first day of it, "" for what is done once; None where it is not due."""

    path: str
    header: BriefHeader | TextHeader
    words: str
    period: str | None

    @property
    def name(self) -> str:
        """The file's name without folder and ending."""
        return self.path.rpartition("/")[2].removesuffix(".md")


def build(git: Git) -> BriefObserver:
    """The observer of briefs and texts that the repository holds."""
    return BriefObserver(git)


@dataclass(frozen=True, slots=True)
class BriefObserver:
    """Reads two folders of one commit."""

    git: Git
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """What is due now; a file that cannot be read is named in the report, and holds up no other."""
        commit = self.git.resolve(context.head.sha) if context.head.sha else ""
        found, wrong = list[DueBrief](), list[str]()
        for path, text in self._files(commit) if commit else ():
            try:
                found.append(_read(path, text, context.now))
            except UserError as problem:
                wrong.append(f"{problem.what}; {problem.next_step}")
        due = [one for one in found if one.period is not None]
        signals = tuple(_mission(one, commit) if _is_mission(one) else _content(one, commit) for one in due)
        counted = f"{count_noun(len(found), 'file')}, {len(due)} due" if found or wrong else "no briefs"
        detail = one_line("; ".join([counted, *wrong]), 300)
        # A slip in a file does not mean that what it asks for is gone, and its issue with it.
        return Observation(NAME, "ok", signals, detail=detail, cursor=commit, complete=not wrong)

    def _files(self, commit: str) -> Iterator[tuple[str, str]]:
        """The files of ours, by path."""
        listed = self.git.listing(commit, f"{MISSIONS}/", f"{CONTENT}/", recursive=False)
        pages = [one for one in listed if one.mode.startswith("100") and one.path.endswith(".md")]
        blobs = self.git.blobs(one.oid for one in pages)
        for page in pages:
            text = plain(blobs.get(page.oid, b"").decode("utf-8", "replace"))
            if text.startswith("---") and OURS[page.path.partition("/")[0]].search(text[:HEAD]):
                yield page.path, text


def _is_mission(one: DueBrief) -> bool:
    return one.path.startswith(f"{MISSIONS}/")


def _read(path: str, text: str, now: datetime) -> DueBrief:
    """A file of ours. Raises UserError for what its author has to change."""
    from pydantic import ValidationError

    from ralph_mission.config.reading import explain, problem

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
        said = f"its text has {len(words):,} characters" if words else "it has no text"
        raise problem(path, front.body_line, said, f"write one of at most {LONGEST:,} characters")
    return DueBrief(path, header, words, period_of(now, header.every, header.after))


@cache
def _header_of(folder: str) -> type[Any]:
    """Loaded with the first file: most repositories have none."""
    from ralph_mission.config.briefs import BriefHeader, TextHeader

    return BriefHeader if folder == MISSIONS else TextHeader


def period_of(now: datetime, every: timedelta | None, after: date | None) -> str | None:
    """The first day of the period that `now` lies in, "" for what comes once, None before the day it begins.

    Periods are counted from `after`, without it from a Monday, in UTC.
    """
    begin = datetime.combine(after or MONDAY, time(), UTC)
    if now < begin:
        return None
    return (begin + (now - begin) // every * every).date().isoformat() if every else ""


def _mission(one: DueBrief, commit: str) -> Signal:
    """A brief that is due. It is the same thing in each period, whatever is edited in it."""
    header: Any = one.header
    lists = (("Sources", header.sources), ("Done when", (header.done_when,) if header.done_when else ()))
    parts = [one.words, *(f"{name}:\n" + "\n".join(f"- {each}" for each in those) for name, those in lists if those)]
    if header.networks:
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
    """A text that is due. Another text is another thing: a no to the one before does not count for it."""
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
