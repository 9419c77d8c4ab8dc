"""Observes the forge: what issues and pulls wait for, what is said twice, reports that name our lines, how it fares.

Ours (by the author's id) and bots' are left out. Cost is bounded however many issues there are: lists show
what is stale, and in full a few are read on each look, in turns (`turns`), so that all come up over time.

What an instance is: for a stale issue the day of its last activity, for a waiting pull the commit
that waits, for a question the remark that asks. New activity is thus a new instance.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path

from ralph_mission.adapters.cache import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import turns
from ralph_mission.adapters.observers.forge.duplicates import (
    DuplicatePair,
    duplicate_signal,
    likely_duplicates,
    names,
)
from ralph_mission.adapters.observers.forge.pulls import PullFacts, conflicts_with, waiting_pull
from ralph_mission.adapters.observers.forge.traces import TracedCommit, trace_signal, traced_lines, traces
from ralph_mission.adapters.observers.text import age_days, block, one_line, quote
from ralph_mission.adapters.observers.turns import ForgeCursor, Item, Told, fair
from ralph_mission.config.observers import ForgeSettings
from ralph_mission.errors import Missing
from ralph_mission.mission.model.forge import Actor, Issue, Pull
from ralph_mission.mission.model.mission import Observation, Quote, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge, Observer
from ralph_mission.values import compile_regex, dataclass

NAME = "forge"
MOST = 50  # signals of one kind
ISSUES, PULLS = 6, 4  # read in full on one look; on GitHub an issue costs two requests, a pull three
SECONDS = 60.0  # for reading them
PAIRS = 2  # likely duplicates among what is read in full on one look
TRACES = 100  # issues with stack traces that are looked at, the newest first
QUOTE = 500  # characters of a question
_QUESTION = compile_regex(r"\?[\s()\[\]\"'*_`>!.:;^-\U0001F600-\U0001F64F]{0,20}$")
_HIDDEN = compile_regex(r"<!--.*?(?:-->|$)", re.DOTALL)


def build(settings: ForgeSettings, forge: Forge, git: Git, cache: Path | None = None) -> Observer:
    """The observer of a forge and of the repository it is about; `cache` is a folder for what traces lead to."""
    return ForgeObserver(settings, forge, git, FileCache(cache / NAME if cache else None))


@dataclass(frozen=True, slots=True)
class OpenQuestionRemark:
    """A person's last word on an issue or pull, when it asks something. `remark` 0 is the opening text."""

    remark: int
    author: Actor
    body: str
    at: datetime


@dataclass(frozen=True, slots=True)
class OpenLists:
    """What people have open, and what of it may turn out to wait: `stale` by itself, the others once read in full."""

    issues: Sequence[Issue]
    pulls: Sequence[Pull]
    stale: Sequence[Issue]
    quiet: Sequence[Issue]
    aged: Sequence[Pull]
    twins: Sequence[DuplicatePair] = ()

    @property
    def to_read(self) -> int:
        """How many would have to be read to know everything."""
        return len(self.quiet) + len(self.aged)

    def unchanged(self, before: ForgeCursor) -> frozenset[int]:
        """What is still open and has had no activity since the last look."""
        everything: list[Issue | Pull] = [*self.issues, *self.pulls]
        return frozenset(one.number for one in everything if before.at and one.updated_at < before.at)

    def waiting_still(self, before: ForgeCursor, items: Sequence[Issue | Pull]) -> frozenset[Told]:
        """What was told before and was not looked at now, but cannot have changed either."""
        stale, looked = {issue.number for issue in self.stale}, {item.number for item in items}
        unchanged = self.unchanged(before)
        return frozenset(
            (kind, number)
            for kind, number in before.told
            if number in unchanged
            and kind != "trace"  # all of them are looked at each time: the commit is another one
            and (number in stale if kind == "stale-issue" else number not in looked)
        )


@dataclass(frozen=True, slots=True)
class ForgeObserver:
    """Reads lists first, and in full only what may turn out to wait."""

    settings: ForgeSettings
    forge: Forge
    git: Git
    cache: FileCache = FileCache(None)
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """What waits, as far as it was looked at, and what waits no longer."""
        us, before = self.forge.identity().id, ForgeCursor.parse(context.cursor)
        lists = self._lists(us, context.now)
        changes = turns.look(self.forge.pulse, before, context, len(lists.issues), lambda who: _foreign(who, us))
        items, had = self._in_full(lists, before)
        waits = (*self._waits(lists, items, us, context), *self._traces(lists.issues, context.head.sha))
        told = lists.waiting_still(before, items) | {(signal.essence[0], signal.reference) for signal in waits}
        return Observation(
            self.name,
            "ok",
            (*waits, *changes.signals),
            detail=f"{len(lists.issues)} open issues and {len(lists.pulls)} open pull requests of people, "
            f"{len(told)} wait for someone{changes.detail}",
            cursor=ForgeCursor(context.now, changes.since, changes.stars, had, told).dump(),
            complete=before.at is None and len(lists.stale) <= MOST and len(items) == lists.to_read,
            gone=tuple((kind, str(number)) for kind, number in sorted(before.told - told)),
        )

    def _lists(self, us: int, now: datetime) -> OpenLists:
        after = self.settings
        issues = [issue for issue in self.forge.issues("open") if _foreign(issue.author, us)]
        pulls = [pull for pull in self.forge.pulls("open") if _foreign(pull.author, us)]
        return OpenLists(
            issues,
            pulls,
            [issue for issue in issues if not issue.assignees and now - issue.updated_at > after.stale_after],
            [issue for issue in issues if now - issue.updated_at > after.answer_after],
            [pull for pull in pulls if now - pull.created_at > min(after.review_after, after.answer_after)],
            likely_duplicates(issues),
        )

    def _in_full(self, lists: OpenLists, before: ForgeCursor) -> tuple[list[Issue | Pull], frozenset[int]]:
        """Those whose turn it is, read in full, and everyone who had it in this round."""
        deadline, read = time.monotonic() + SECONDS, before.read & lists.unchanged(before)
        issues, had_issues = _read(self.forge.issue, lists.quiet, read, ISSUES, deadline, _first(lists.twins, read))
        pulls, had_pulls = _read(self.forge.pull, lists.aged, read, PULLS, deadline)
        return [*issues, *pulls], had_issues | had_pulls

    def _waits(
        self, lists: OpenLists, items: Sequence[Issue | Pull], us: int, context: ObservationContext
    ) -> tuple[Signal, ...]:
        now, after = context.now, self.settings
        conflicts = partial(conflicts_with, self.git, context.head, Path(context.scratch))
        facts = PullFacts(us, self.forge.may_approve, self.forge.is_ready, conflicts)
        pulls = [item for item in items if isinstance(item, Pull)]
        issues = {item.number: item for item in items if isinstance(item, Issue)}
        return (
            *(_stale(issue, now) for issue in fair(lists.stale, MOST)),
            *(s for pull in pulls if (s := waiting_pull(pull, facts, now, after.review_after, after.answer_after))),
            *(s for item in items if (s := self._question(item, us, now))),
            *(duplicate_signal(pair) for pair in lists.twins if _still_apart(pair, issues)),
        )

    def _traces(self, issues: Sequence[Issue], commit: str) -> Iterable[Signal]:
        """Reports whose stack traces name lines of the commit; looked up once for what they say and the commit."""
        newest = sorted((issue for issue in issues if traces(issue.body)), key=lambda issue: -issue.number)[:TRACES]
        if not newest or not commit:
            return ()
        question = cache_key(commit, *(f"{issue.number} {issue.body}" for issue in newest))
        known = self.cache.get(question)
        if not isinstance(known, dict):
            traced = TracedCommit(self.git, commit)
            found = {str(issue.number): list(traced_lines(traced, issue.body)) for issue in newest}
            known = {number: [asdict(quote) for quote in lines] for number, lines in found.items()}
            self.cache.put(question, known)
            self.cache.tidy()
        told = {issue: [Quote(**one) for one in known.get(str(issue.number), ())] for issue in newest}
        return [trace_signal(issue, lines) for issue, lines in told.items() if lines]

    def _question(self, item: Issue | Pull, us: int, now: datetime) -> Signal | None:
        asked = last_word(item)
        if not _foreign(asked.author, us) or not asks(asked.body) or now - asked.at <= self.settings.answer_after:
            return None
        # A member's question may well be one to the reporter, who is then the one to answer.
        member = asked.author.id != item.author.id and self.forge.may_approve(asked.author)
        said = quote(block(_HIDDEN.sub("", asked.body), QUOTE))
        age = age_days(asked.at, now)
        return Signal(
            observer=NAME,
            kind="question",
            title=one_line(f"#{item.number} has a question without an answer: {item.title}"),
            essence=("question", str(item.number)),
            occurrence=f"remark-{asked.remark}",
            confidence=0.5 if member else 0.8,
            detail=block(f"#{item.number}, asked by {one_line(asked.author.login)} {age:.0f} days ago:\n{said}"),
            author=one_line(asked.author.login),
            age_days=age,
            reference=item.number,
        )


def last_word(item: Issue | Pull) -> OpenQuestionRemark:
    """Who spoke last: a remark, or the opening text when there is none."""
    if not item.remarks:
        return OpenQuestionRemark(0, item.author, item.body, item.created_at)
    last = max(item.remarks, key=lambda remark: (remark.created_at, remark.id))
    return OpenQuestionRemark(last.id, last.author, last.body, last.created_at)


def asks(body: str) -> bool:
    """Whether a text ends with a question; quoted lines and hidden comments do not count."""
    said = [line for line in _HIDDEN.sub("", body).splitlines() if line.strip() and not line.lstrip().startswith(">")]
    return bool(said) and bool(_QUESTION.search(said[-1][-200:]))


def _foreign(actor: Actor, us: int) -> bool:
    return actor.id != us and not actor.is_bot


def _first(twins: Sequence[DuplicatePair], read: frozenset[int]) -> list[Issue]:
    """The likely duplicates that are read before all others: each pair at once, and once in a round."""
    fresh = [pair for pair in twins if not {pair.older.number, pair.newer.number} <= read]
    return [issue for pair in fresh[:PAIRS] for issue in (pair.older, pair.newer)]


def _still_apart(pair: DuplicatePair, issues: Mapping[int, Issue]) -> bool:
    """Whether both were read in full, and nobody has said yet that they have to do with each other."""
    older, newer = issues.get(pair.older.number), issues.get(pair.newer.number)
    return bool(older and newer and not names(older, newer.number) and not names(newer, older.number))


def _read(
    full: Callable[[int], Item],
    items: Sequence[Item],
    read: frozenset[int],
    most: int,
    deadline: float,
    first: Sequence[Item] = (),
) -> tuple[list[Item], frozenset[int]]:
    """Whose turn it is, in full, after those that come `first`, and which were read in this round; one that was just
    deleted has had its turn."""
    early = frozenset(item.number for item in first)
    chosen, had = turns.next_up([item for item in items if item.number not in early], read - early, most - len(first))
    found = []
    for item in itertools.chain(first, chosen):
        if time.monotonic() >= deadline:
            break
        had |= {item.number}
        try:
            found.append(full(item.number))
        except Missing:
            continue
    return found, had | (read & early)


def _stale(issue: Issue, now: datetime) -> Signal:
    idle, age = age_days(issue.updated_at, now), age_days(issue.created_at, now)
    return Signal(
        observer=NAME,
        kind="stale-issue",
        title=one_line(f"#{issue.number} has nobody and was quiet for {idle:.0f} days: {issue.title}"),
        essence=("stale-issue", str(issue.number)),
        occurrence=f"{issue.updated_at:%Y-%m-%d}",
        confidence=0.9,
        detail=block(
            f"#{issue.number}, opened by {one_line(issue.author.login)} {age:.0f} days ago, has no assignee; "
            f"last activity on {issue.updated_at:%Y-%m-%d}."
        ),
        author=one_line(issue.author.login),
        age_days=age,
        reference=issue.number,
    )
