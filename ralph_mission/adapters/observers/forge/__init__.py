"""Observes the forge: what issues and pull requests wait for, duplicates, stack traces that name our lines, and totals.

Ralph's own (by the author's id) and bots' threads are left out. Cost is bounded for any number of issues: lists show
what is stale, and each look reads a few threads in full, in turns (`turns`), so that all come up over time.

An occurrence is, for a stale issue, the day of its last activity; for a waiting pull request, the waiting commit; for a
question, the comment that asks. New activity is thus a new occurrence.

Another observer reads the forge's security alerts, if readable: code scanning and secret scanning. Everybody who can
read the repository can read an issue, but not an alert. So an issue only says that there is one, its kind and severity,
with a link; not its place, and the value of a secret is not even read. The dependency observer reports alerts about
packages.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.forge import turns
from ralph_mission.adapters.observers.forge.turns import ForgeCursor, Item, ItemKey, fair
from ralph_mission.adapters.observers.looking import age_days, block, one_line, quote, unavailable
from ralph_mission.config.observers import ForgeSettings
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.model.forge import Actor, Issue, Pull, SecurityAlert, ThreadComment
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge, Observer
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

if TYPE_CHECKING:
    from ralph_mission.adapters.observers.forge.triage import DuplicatePair


NAME = "forge"
MOST = 50  # signals of one kind
ISSUES, PULLS = 6, 4  # read in full on one look; on GitHub an issue costs two requests, a pull request three
SECONDS = 60.0  # for reading them
PAIRS = 2  # likely duplicates among what is read in full on one look
QUOTE = 500  # characters of a question
_QUESTION = compile_regex(r"\?[\s()\[\]\"'*_`>!.:;^-\U0001F600-\U0001F64F]{0,20}$")
_HIDDEN = compile_regex(r"<!--.*?(?:-->|$)", re.DOTALL)


def build(settings: ForgeSettings, forge: Forge, git: Git, cache: Path | None = None) -> Observer:
    """The observer of a forge and its repository; `cache` is a folder for the results of stack traces."""
    return ForgeObserver(settings, forge, git, FileCache(cache / NAME if cache else None))


@dataclass(frozen=True, slots=True)
class OpenLists:
    """People's open threads, and those that may wait for somebody: `stale` ones certainly, the others once read in
    full."""

    issues: Sequence[Issue]
    pulls: Sequence[Pull]
    stale: Sequence[Issue]
    quiet: Sequence[Issue]
    aged: Sequence[Pull]
    duplicates: Sequence[DuplicatePair] = ()

    @property
    def to_read(self) -> int:
        """How many must be read to know everything."""
        return len(self.quiet) + len(self.aged)

    def unchanged(self, before: ForgeCursor) -> frozenset[int]:
        """Threads that are still open without activity since the last look."""
        everything: list[Issue | Pull] = [*self.issues, *self.pulls]
        return frozenset(one.number for one in everything if before.at and one.updated_at < before.at)

    def waiting_still(self, before: ForgeCursor, items: Sequence[Issue | Pull]) -> frozenset[ItemKey]:
        """Findings of earlier looks that were not read now and cannot have changed."""
        stale, looked = {issue.number for issue in self.stale}, {item.number for item in items}
        unchanged = self.unchanged(before)
        return frozenset(
            (kind, number)
            for kind, number in before.reported
            if number in unchanged
            and kind != "trace"  # all of them are checked each time: the commit may differ
            and (number in stale if kind == "stale-issue" else number not in looked)
        )


@dataclass(frozen=True, slots=True)
class ForgeObserver:
    """Reads lists first, and in full only threads that may wait for somebody."""

    settings: ForgeSettings
    forge: Forge
    git: Git
    cache: FileCache = FileCache(None)
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """The threads that wait, among those read, and those that no longer do."""
        us, before = self.forge.identity().id, ForgeCursor.parse(context.cursor)
        lists = self._lists(us, context.now)
        changes = turns.look(self.forge.pulse, before, context, len(lists.issues), lambda who: _foreign(who, us))
        items, had = self._in_full(lists, before)
        waits = (*self._waits(lists, items, us, context), *self._traces(lists.issues, context.head.sha))
        known_waits = lists.waiting_still(before, items) | {(signal.essence[0], signal.reference) for signal in waits}
        return Observation(
            self.name,
            "ok",
            (*waits, *changes.signals),
            detail=f"{_open_words(len(lists.issues), len(lists.pulls), len(known_waits))}{changes.detail}",
            cursor=ForgeCursor(context.now, changes.since, changes.stars, had, known_waits).dump(),
            complete=before.at is None and len(lists.stale) <= MOST and len(items) == lists.to_read,
            gone=tuple((kind, str(number)) for kind, number in sorted(before.reported - known_waits)),
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
            self._find_duplicates(issues),
        )

    def _find_duplicates(self, issues: Sequence[Issue]) -> Sequence[DuplicatePair]:
        if len(issues) < 2:
            return ()
        from ralph_mission.adapters.observers.forge.triage import likely_duplicates

        return likely_duplicates(issues)

    def _in_full(self, lists: OpenLists, before: ForgeCursor) -> tuple[list[Issue | Pull], frozenset[int]]:
        """The threads read in full, and all that were read in this round."""
        deadline, read = time.monotonic() + SECONDS, before.read & lists.unchanged(before)
        issues, had_issues = _read(
            self.forge.issue, lists.quiet, read, ISSUES, deadline, _first(lists.duplicates, read)
        )
        pulls, had_pulls = _read(self.forge.pull, lists.aged, read, PULLS, deadline)
        return [*issues, *pulls], had_issues | had_pulls

    def _waits(
        self, lists: OpenLists, items: Sequence[Issue | Pull], us: int, context: ObservationContext
    ) -> tuple[Signal, ...]:
        now = context.now
        issues = {item.number: item for item in items if isinstance(item, Issue)}
        duplicates = (pair.read_in_full(issues) for pair in lists.duplicates)
        return (
            *(_stale(issue, now) for issue in fair(lists.stale, MOST)),
            *self._pulls([item for item in items if isinstance(item, Pull)], us, context),
            *(s for item in items if (s := self._question(item, us, now))),
            *(pair.signal() for pair in duplicates if pair),
        )

    def _pulls(self, pulls: Sequence[Pull], us: int, context: ObservationContext) -> Iterable[Signal]:
        if not pulls:
            return ()
        from ralph_mission.adapters.observers.forge.pulls import PullFacts, conflicts_with, waiting_pull

        conflicts = partial(conflicts_with, self.git, context.head, Path(context.scratch))
        facts, after = PullFacts(us, self.forge.may_approve, self.forge.is_ready, conflicts), self.settings
        answers = (waiting_pull(pull, facts, context.now, after.review_after, after.answer_after) for pull in pulls)
        return [signal for signal in answers if signal]

    def _traces(self, issues: Sequence[Issue], commit: str) -> Iterable[Signal]:
        if not issues or not commit:
            return ()
        from ralph_mission.adapters.observers.forge.triage import traced_reports

        return traced_reports(self.git, commit, issues, self.cache)

    def _question(self, item: Issue | Pull, us: int, now: datetime) -> Signal | None:
        question = last_word(item)
        if (
            not _foreign(question.author, us)
            or not asks(question.body)
            or now - question.created_at <= self.settings.answer_after
        ):
            return None
        # A member's question may be for the reporter, who then has to answer.
        member = question.author.id != item.author.id and self.forge.may_approve(question.author)
        excerpt = quote(block(_HIDDEN.sub("", question.body), QUOTE))
        age = age_days(question.created_at, now)
        return Signal(
            observer=NAME,
            kind="question",
            title=one_line(f"#{item.number} has a question without an answer: {item.title}"),
            essence=("question", str(item.number)),
            occurrence=f"remark-{question.id}",
            confidence=0.5 if member else 0.8,
            detail=block(f"#{item.number}, asked by {one_line(question.author.login)} {age:.0f} days ago:\n{excerpt}"),
            author=one_line(question.author.login),
            age_days=age,
            reference=item.number,
        )


def last_word(item: Issue | Pull) -> ThreadComment:
    """The last comment; the opening text, numbered 0, if there is none."""
    opening = ThreadComment(0, item.author, item.body, item.created_at, item.created_at)
    return max(item.remarks, key=lambda remark: (remark.created_at, remark.id), default=opening)


def asks(body: str) -> bool:
    """Whether a text ends with a question; quoted lines and hidden comments do not count."""
    prose = [line for line in _HIDDEN.sub("", body).splitlines() if line.strip() and not line.lstrip().startswith(">")]
    return bool(prose) and bool(_QUESTION.search(prose[-1][-200:]))


def _foreign(actor: Actor, us: int) -> bool:
    return actor.id != us and not actor.is_bot


def _first(duplicates: Sequence[DuplicatePair], read: frozenset[int]) -> list[Issue]:
    """The likely duplicates, which are read first: each pair at once, and once in a round."""
    fresh = [pair for pair in duplicates if not {pair.older.number, pair.newer.number} <= read]
    return [issue for pair in fresh[:PAIRS] for issue in (pair.older, pair.newer)]


def _read(
    full: Callable[[int], Item],
    items: Sequence[Item],
    read: frozenset[int],
    most: int,
    deadline: float,
    first: Sequence[Item] = (),
) -> tuple[list[Item], frozenset[int]]:
    """The threads to read in full, after those that come `first`, and those read in this round; one that was just
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
        title=one_line(f"#{issue.number} is unassigned and has been quiet for {idle:.0f} days: {issue.title}"),
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


def _open_words(issues: int, pulls: int, waiting: int) -> str:
    """`3 open issues, 1 waiting for someone`."""
    nouns = [
        count_noun(number, noun) for number, noun in ((issues, "open issue"), (pulls, "open pull request")) if number
    ]
    waits = f", {waiting} waiting for someone" if waiting else ""
    return f"{' and '.join(nouns) or 'nothing open'}{waits}"


ALERTS = "alerts"
GRAVE = ("critical", "high")
MOST_SECRETS = 5
"""The most secrets reported one by one; the first already say that somebody has to look."""


@dataclass(frozen=True, slots=True)
class AlertObserver:
    """Reads the results of the forge's own scanners."""

    forge: Forge
    name: str = ALERTS

    def observe(self, context: ObservationContext) -> Observation:
        """All open alerts about code and secrets; none if they are not readable."""
        try:
            code, secrets = self.forge.security_alerts("code"), self.forge.security_alerts("secret")
        except UserError as problem:
            return unavailable(ALERTS, problem, context.cursor)
        if code is None and secrets is None:
            return Observation(ALERTS, "ok", detail="the token may not read alerts, or there are none", complete=False)
        parts = [f"{count_noun(len(code), 'alert')} about code"] if code is not None else []
        parts += [f"{count_noun(len(secrets), 'alert')} about secrets"] if secrets is not None else []
        signals = (*_secrets(secrets or ()), *_rules(code or ()))
        return Observation(ALERTS, "ok", signals, detail=", ".join(parts), complete=None not in (code, secrets))


def _secrets(alerts: Sequence[SecurityAlert]) -> Iterator[Signal]:
    for one in alerts[:MOST_SECRETS]:
        yield Signal(
            observer=ALERTS,
            kind="security-alert",
            title=one_line(f"Secret scanning found a secret of the kind {one.title}"),
            essence=("secret-scanning", str(one.number)),
            severity=Severity.HIGH,
            confidence=0.9,
            effort=0.5,
            detail=f"{one_line(one.url, 200)}\nRevoke it first: taking it out of the files leaves it in the history.",
            facts=(("alert", one.number),),
        )


def _rules(alerts: Sequence[SecurityAlert]) -> Iterator[Signal]:
    """One signal for each rule."""
    numbers = Counter(one.rule for one in alerts)
    for one in {alert.rule: alert for alert in reversed(alerts)}.values():
        grave = one.severity in GRAVE
        many = count_noun(numbers[one.rule], "alert")
        yield Signal(
            observer=ALERTS,
            kind="security-alert" if grave else "code-alert",
            title=one_line(f"Code scanning: {one.title or one.rule}, {many}"),
            essence=("code-scanning", one.rule),
            severity=Severity.HIGH if grave else Severity.MEDIUM if one.severity == "medium" else Severity.LOW,
            confidence=0.8,
            effort=2.0,
            detail=f"{one_line(one.url, 200)}\nRule {one_line(one.rule, 80)}, {one.severity or 'severity unknown'}.",
            facts=(("rule", one.rule), ("alerts", numbers[one.rule])),
        )
