"""Observes the forge: issues nobody took, pulls that wait for review, questions nobody answered.

Ours (by the author's id) and bots' are left out. Cost is bounded however many issues there are,
and authors take turns, so that one who files thousands hides nobody else's.

What an instance is: for a stale issue the day of its last activity, for a waiting pull the commit
that waits, for a question the remark that asks. New activity is thus a new instance.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from typing import TypeVar

from pydantic import Field

from ralph_mission.mission.model import Actor, Issue, Pull, Severity, Sighting, Signal
from ralph_mission.mission.ports import Forge, Gaze, Observer
from ralph_mission.observers.settings import Duration, Section
from ralph_mission.observers.text import block, one_line

NAME = "forge"
MOST = 50  # signals of one kind
LOOKS = 20  # issues, and pulls, that are read in full
SECONDS = 60.0  # for reading them
QUOTE = 500  # characters of a question
_QUESTION = re.compile(r"\?[\s()\[\]\"'*_`>!.:;^-\U0001F600-\U0001F64F]{0,20}$")
_HIDDEN = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)

Item = TypeVar("Item", Issue, Pull)


class Settings(Section):
    """How long is too long."""

    stale_after: Duration = Field(timedelta(days=14), description="An open issue without an assignee or activity.")
    review_after: Duration = Field(timedelta(days=3), description="A pull request without a review.")
    answer_after: Duration = Field(timedelta(days=2), description="A question without an answer.")


def build(settings: Settings, forge: Forge) -> Observer:
    """The observer of a forge."""
    return Watch(settings, forge)


@dataclass(frozen=True, slots=True)
class Question:
    """A person's last word on an issue or pull, when it asks something. `remark` 0 is the opening text."""

    remark: int
    author: Actor
    body: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Watch:
    """Reads lists first, and in full only what may turn out to wait."""

    settings: Settings
    forge: Forge
    name: str = NAME

    def observe(self, gaze: Gaze) -> Sighting:
        """Everything that waits now."""
        us, now, after = self.forge.identity().id, gaze.now, self.settings
        issues = [issue for issue in self.forge.issues("open") if _foreign(issue.author, us)]
        pulls = [pull for pull in self.forge.pulls("open") if _foreign(pull.author, us)]
        stale = [issue for issue in issues if not issue.assignees and now - issue.updated_at > after.stale_after]
        aged = [pull for pull in pulls if now - pull.created_at > min(after.review_after, after.answer_after)]
        quiet = [issue for issue in issues if now - issue.updated_at > after.answer_after]
        deadline = time.monotonic() + SECONDS
        read_pulls, read_issues = _read(self.forge.pull, aged, deadline), _read(self.forge.issue, quiet, deadline)
        items: list[Issue | Pull] = [*read_issues, *read_pulls]
        signals = (
            *(_stale(issue, now) for issue in fair(stale, MOST)),
            *(s for pull in read_pulls if (s := _waiting(pull, us, now, after.review_after))),
            *(s for item in items if (s := self._question(item, us, now))),
        )
        detail = f"{len(issues)} open issues and {len(pulls)} open pulls of people, {len(signals)} wait for someone"
        everything = len(stale) <= MOST and len(items) == len(aged) + len(quiet)
        return Sighting(self.name, "ok", signals, detail=detail, complete=everything)

    def _question(self, item: Issue | Pull, us: int, now: datetime) -> Signal | None:
        asked = last_word(item)
        if not _foreign(asked.author, us) or not asks(asked.body) or now - asked.at <= self.settings.answer_after:
            return None
        # A member's question may well be one to the reporter, who is then the one to answer.
        member = self.forge.may_approve(asked.author)
        quote = "\n".join(f"> {line}" for line in block(_HIDDEN.sub("", asked.body), QUOTE).split("\n"))
        age = _days(asked.at, now)
        return Signal(
            observer=NAME,
            kind="question",
            title=one_line(f"Question on #{item.number} without an answer: {item.title}"),
            essence=("question", str(item.number)),
            occurrence=f"remark-{asked.remark}",
            confidence=0.5 if member else 0.8,
            detail=block(f"#{item.number}, asked by {one_line(asked.author.login)} {age:.0f} days ago:\n{quote}"),
            author=one_line(asked.author.login),
            age_days=age,
            reference=item.number,
        )


def fair(items: Iterable[Item], most: int) -> list[Item]:
    """At most `most` items, the latest activity first, authors taking turns."""
    by_author: dict[int, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.updated_at, reverse=True):
        by_author.setdefault(item.author.id, []).append(item)
    turns = (item for turn in zip_longest(*by_author.values()) for item in turn if item is not None)
    return list(islice(turns, most))


def last_word(item: Issue | Pull) -> Question:
    """Who spoke last: a remark, or the opening text when there is none."""
    if not item.remarks:
        return Question(0, item.author, item.body, item.created_at)
    last = max(item.remarks, key=lambda remark: (remark.created_at, remark.id))
    return Question(last.id, last.author, last.body, last.created_at)


def asks(body: str) -> bool:
    """Whether a text ends with a question; quoted lines and hidden comments do not count."""
    said = [line for line in _HIDDEN.sub("", body).splitlines() if line.strip() and not line.lstrip().startswith(">")]
    return bool(said) and bool(_QUESTION.search(said[-1][-200:]))


def _foreign(actor: Actor, us: int) -> bool:
    return actor.id != us and not actor.is_bot


def _read(full: Callable[[int], Item], items: Sequence[Item], deadline: float) -> list[Item]:
    return [full(item.number) for item in fair(items, LOOKS) if time.monotonic() < deadline]


def _stale(issue: Issue, now: datetime) -> Signal:
    idle, age = _days(issue.updated_at, now), _days(issue.created_at, now)
    return Signal(
        observer=NAME,
        kind="stale-issue",
        title=one_line(f"#{issue.number} has nobody and was quiet for {idle:.0f} days: {issue.title}"),
        essence=("stale-issue", str(issue.number)),
        occurrence=f"{issue.updated_at:%Y-%m-%d}",
        confidence=0.9,
        detail=block(f"#{issue.number}, opened by {one_line(issue.author.login)} {age:.0f} days ago, has no assignee; "
                     f"last activity on {issue.updated_at:%Y-%m-%d}."),
        author=one_line(issue.author.login),
        age_days=age,
        reference=issue.number,
    )  # fmt: skip


def _waiting(pull: Pull, us: int, now: datetime, patience: timedelta) -> Signal | None:
    reviews = [r for r in pull.reviews if r.author.id not in (us, pull.author.id) and r.state != "dismissed"]
    if any(review.sha == pull.head_sha for review in reviews):
        return None  # the ball is with its author
    since = pull.updated_at if reviews else pull.created_at  # reviewed before, and pushed to since
    if now - since <= patience:
        return None
    idle = _days(since, now)
    return Signal(
        observer=NAME,
        kind="pull-waiting",
        title=one_line(f"#{pull.number} has waited {idle:.0f} days for a review: {pull.title}"),
        essence=("pull-waiting", str(pull.number)),
        occurrence=pull.head_sha[:12],
        severity=Severity.MEDIUM,
        confidence=0.9,
        detail=block(f"#{pull.number} by {one_line(pull.author.login)}, {pull.head} into {pull.base}; "
                     f"{'reviewed before, not at its present commit' if reviews else 'never reviewed'}."),
        author=one_line(pull.author.login),
        age_days=_days(pull.created_at, now),
        reference=pull.number,
    )  # fmt: skip


def _days(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds() / 86_400)
