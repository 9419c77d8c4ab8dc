"""Researches a standing brief and drafts its text: a model reads, code fetches.

The model has no network: it gets pages fetched through the guard, and may request more. A statement is kept if its
quote is in the page, which is fetched again. Once per brief and period, whatever the result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import web
from ralph_mission.errors import UserError
from ralph_mission.loop.hats import RESEARCHER, WRITER
from ralph_mission.mission.model.mission import Finding, Quote, Usage
from ralph_mission.mission.ports import AgentQuestion, AskAgent
from ralph_mission.mission.proof.exploring import (
    QUOTE,
    ROUNDS,
    ResearchSection,
    addresses_in,
    describe_sections,
    parse_research,
    researcher_prompt,
    why_dropped,
)
from ralph_mission.mission.publishing.drafting import find_unknown, parse_texts, writer_prompt
from ralph_mission.safety.objections import TEST_PATH
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

SESSION = 600.0  # seconds for one answer
SHARE = 0.25
"""Share of the remaining money that an answer may cost, as more pages and a text may follow."""
WATCHES = ("database", "dependencies", "social", "forge")


class Pages(Protocol):
    """The web, as texts."""

    @property
    def searches(self) -> bool:
        """Whether a search is configured."""
        ...

    def fetch(self, address: str) -> str:
        """A page's text. Raises UserError."""
        ...

    def search(self, words: str) -> str:
        """Search results as text. Raises UserError."""
        ...


@dataclass(frozen=True, slots=True)
class GuardedPages:
    """`Pages` through the guard, respecting robots.txt."""

    cache: Path | None
    scratch: Path
    now: datetime
    searches: bool = bool(os.environ.get(web.ENDPOINT))

    def fetch(self, address: str) -> str:
        """A page's text without mark-up."""
        return web.read_once({"name": "brief", "url": address, "kind": "page"}, self.cache, self.scratch, self.now)

    def search(self, words: str) -> str:
        """Titles, URLs and excerpts."""
        return web.read_once({"name": "brief", "query": words, "kind": "search"}, self.cache, self.scratch, self.now)


@dataclass(frozen=True, slots=True)
class Research:
    """The result. `text` "": not requested, or dropped; `why` explains what was dropped."""

    sections: tuple[ResearchSection, ...] = ()
    text: str = ""
    dropped: int = 0
    why: str = ""
    usage: Usage = Usage()


def watched_lines(backlog: Iterable[Finding]) -> str:
    """Open findings of watches, one line each."""
    news = (one for one in backlog if one.signal.observer.split(".")[0] in WATCHES)
    lines = (f"- {one.title}: " + ", ".join(f"{name} {value}" for name, value in one.signal.facts[:20]) for one in news)
    return "\n".join(list(lines)[:40])


@dataclass(frozen=True, slots=True)
class Researcher:
    """Uses the configured agent. `watched`: returns recent findings of watches."""

    ask: AskAgent
    watched: Callable[[], str] = str

    def research(
        self, brief: str, sources: Iterable[str], networks: tuple[str, ...], pages: Pages, base: str, usd: float
    ) -> Research:
        """Research sections with sources, and a text from them. Raises UserError if no agent can run."""
        read, why = dict[str, str](), list[str]()
        for source in sources:
            try:
                read[source] = pages.fetch(source)
            except UserError as problem:
                why.append(f"{source}: {problem.what}")
        watched = self.watched()
        found, usage = Research(), Usage()
        if read or pages.searches:
            found, usage = self._read(brief, read, watched, pages, base, usd)
        text = ""
        if networks:
            sections = (describe_sections(found.sections), watched) if found.sections or watched else ()
            text, dropped, spent = self._write(brief, networks, tuple(filter(None, sections)), base, usd)
            usage, why = usage + spent, [*why, *filter(None, (dropped,))]
        why = [*filter(None, (found.why,)), *why]
        return Research(found.sections, text, found.dropped, "; ".join(why), usage)

    def _read(
        self, brief: str, read: dict[str, str], watched: str, pages: Pages, base: str, usd: float
    ) -> tuple[Research, Usage]:
        shown, results, usage = dict(read), list[str](), Usage()
        for round_ in range(1, ROUNDS + 1):
            more = round_ < ROUNDS
            known = addresses_in((brief, *shown.values(), *results)) | set(shown)
            texts = {**shown, **{f"search {at}": text for at, text in enumerate(results, 1)}}
            prompt = partial(_prompt, brief, texts, watched, more, pages.searches)
            question = AgentQuestion(RESEARCHER, base, prompt, usd * SHARE, SESSION)
            answer, why, spent = self.ask(question, partial(parse_research, known, more))
            usage += spent
            if answer is None:
                return Research(why=f"the researcher gave no answer: {why}"), usage
            if not (answer.fetch or answer.search):
                return _checked(answer.sections, known, pages), usage
            for address in answer.fetch:
                shown[address] = _or_problem(partial(pages.fetch, address))
            if answer.search and pages.searches:
                results.append(_or_problem(partial(pages.search, answer.search)))
        return Research(why="the researcher did not come to an end"), usage

    def _write(
        self, brief: str, networks: tuple[str, ...], given: tuple[str, ...], base: str, usd: float
    ) -> tuple[str, str, Usage]:
        """The text, or why there is none."""
        name = " and ".join(networks)  # one text for all networks
        data = "\n".join((brief, *given))
        prompt = partial(writer_prompt, (name,), brief, given)
        question = AgentQuestion(WRITER, base, prompt, usd * SHARE, SESSION)
        found, why, spent = self.ask(question, partial(parse_texts, (name,), data))
        return (found[name], "", spent) if found else ("", f"no text was kept: {why}", spent)


def _prompt(brief: str, pages: Mapping[str, str], watched: str, more: bool, searches: bool, why: str) -> str:
    return researcher_prompt(brief, pages, watched, more, searches, why)


def _checked(sections: Iterable[ResearchSection], known: Iterable[str], pages: Pages) -> Research:
    results, wrong, pages_by_source = list[ResearchSection](), list[str](), dict[str, str]()
    known = set(known)
    for one in sections:
        if one.source in known and one.source not in pages_by_source:
            pages_by_source[one.source] = _or_problem(partial(pages.fetch, one.source))
        page = pages_by_source.get(one.source, "")
        why = why_dropped(one, page, pages_by_source)
        if not why and (
            figures := [figure for figure in find_unknown(one.text, page) if any(map(str.isdigit, figure))]
        ):
            why = f"{figures[0]} is not in the source"
        if why:
            wrong.append(why)
        else:
            results.append(one)
    remark = f"{count_noun(len(wrong), 'section')} dropped: {', '.join(dict.fromkeys(wrong))}" if wrong else ""
    return Research(tuple(results), dropped=len(wrong), why=remark)


def _or_problem(ask: Callable[[], str]) -> str:
    """A page, or a line why there is none, so that a model can look elsewhere."""
    try:
        return ask()
    except UserError as problem:
        return f"(unavailable: {problem.what})"


# --- without a model ------------------------------------------------------------------

ENDED = compile_regex(
    r"\b(?:deprecat\w+|sunset\w*|retir(?:ed|es|ing|ement)|shut(?:ting)?[ -]?down|discontinu\w+|decommission\w*|"
    r"end[ -]of[ -]life|no longer (?:available|supported|served|maintained))\b",
    re.IGNORECASE,
)
DENIED = compile_regex(r"\b(?:not|never|un-?deprecat\w*)\b|n[\u2019']t\b", re.IGNORECASE)
PLACE = compile_regex(
    r"https?://[\w-]+(?:\.[\w-]+)+(?:/[\w.{}:-]+)*|(?<![\w/.:-])(?:/[\w{}-]+)*/v\d+(?:(?:alpha|beta|\.)\d+)*(?:/[\w{}-]+)*"
)
"""A URL, or the versioned path of an API."""
USES, MOST_ENDED = 2, 5
OUTSIDE = compile_regex(r"^(?:docs?|missions|content)/|\.(?:md|mdx|rst|txt|lock)$|[-.]lock\.\w+$", re.IGNORECASE)
"""Paths without our own source code."""


def uses_of_ended(sources: Iterable[str], pages: Pages, git: Git, commit: str) -> list[Quote] | None:
    """Sentences of the sources about the end of exactly one API, each with the lines of code that use it; None if no
    source could be read."""
    found, read = list[Quote](), 0
    for source in sources:
        try:
            page = pages.fetch(source)
        except UserError:
            continue
        read += 1
        for sentence, place in ended_places(page):
            uses = _lines_with(place, git, commit)
            if uses and len(found) < MOST_ENDED * (USES + 1):
                found += [Quote(sentence, url=source), *uses]
    return found if read else None


def ended_places(page: str) -> Iterable[tuple[str, str]]:
    """Sentences about an end of life that name exactly one API, with its URL or path."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n", page):
        places = {one.rstrip(".:") for one in PLACE.findall(sentence)}
        if len(places) == 1 and len(sentence) <= QUOTE and ENDED.search(sentence) and not DENIED.search(sentence):
            yield " ".join(sentence.split()), places.pop()


def _lines_with(place: str, git: Git, commit: str) -> list[Quote]:
    """Lines of source code, without tests, that name exactly this API."""
    output = git.try_text("grep", "-nIF", "-z", "-e", place, commit)
    begins = r"(?<![\w/.-])" if place.startswith("/") else ""
    whole = re.compile(rf"{begins}{re.escape(place)}(?![\w.-])")
    rows = (row.split("\0") for row in output.split("\n") if row.count("\0") == 2)
    lines = ((path.partition(":")[2], int(number), text) for path, number, text in rows)
    fit = (one for one in lines if whole.search(one[2]) and not OUTSIDE.search(one[0]) and not TEST_PATH.search(one[0]))
    return [Quote(text.strip(), path, number, commit) for path, number, text in islice(fit, USES)]
