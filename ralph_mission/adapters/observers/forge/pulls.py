"""What a person's pull request waits for: a merge, a new base, a first answer, a review. The most important is
reported.

Conflicts are found by merging in git, in memory: that needs no request and names the files.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.looking import age_days, block, one_line
from ralph_mission.mission.model.forge import Actor, Branch, Pull, Review
from ralph_mission.mission.model.mission import Severity, Signal
from ralph_mission.values import dataclass

KIND = "pull-waiting"
CONFLICTS = 5  # named files
SECONDS = 10.0  # for one merge


@dataclass(frozen=True, slots=True)
class PullFacts:
    """Facts requested only for pull requests whose finding may depend on them. `us` is our account's id."""

    us: int
    may_approve: Callable[[Actor], bool]
    is_ready: Callable[[int], bool]  # whether checks and branch protection allow a merge
    conflicts: Callable[[Pull], tuple[str, ...]]  # files


def conflicts_with(git: Git, base: Branch, scratch: Path, pull: Pull) -> tuple[str, ...]:
    """The files in which a pull request conflicts with its base branch; () if unknown.

    Objects of the trial merge go to `scratch`, not to the repository.
    """
    if pull.base != base.name or not git.resolve(pull.head_sha) or (git.common_dir / "shallow").exists():
        return ()
    objects = {
        "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git.common_dir / "objects"),
    }
    (scratch / "objects").mkdir(exist_ok=True)
    flags = ("--write-tree", "--name-only", "--no-messages", "-z")
    try:
        git.run("merge-tree", *flags, base.sha, pull.head_sha, env=objects, timeout=SECONDS)
    except GitError as error:
        if error.code == 1:  # TREE NUL PATH NUL PATH NUL …
            return tuple(path.decode("utf-8", "replace") for path in error.output.split(b"\0")[1:] if path)
    return ()


def waiting_pull(
    pull: Pull, facts: PullFacts, now: datetime, review_after: timedelta, answer_after: timedelta
) -> Signal | None:
    """What it waits for; None if it waits only for its author, or not long enough."""
    if pull.draft:
        return None
    others = [review for review in pull.reviews if review.author.id not in (facts.us, pull.author.id)]
    verdicts = [review for review in others if review.state != "dismissed"]
    return (
        _approved(pull, verdicts, facts, now, answer_after)
        or _conflicting(pull, facts, now, review_after)
        or _first_contribution(pull, others, facts, now, answer_after)
        or _unreviewed(pull, verdicts, now, review_after)
    )


def _approved(
    pull: Pull, verdicts: list[Review], facts: PullFacts, now: datetime, patience: timedelta
) -> Signal | None:
    newest = {review.author.id: review for review in verdicts if review.state != "commented"}
    yes = [review for review in newest.values() if review.state == "approved" and review.sha == pull.head_sha]
    if not yes or any(review.state == "changes_requested" for review in newest.values()):
        return None
    since = max(review.at for review in yes)
    if now - since <= patience:
        return None
    counted = [review for review in yes if facts.may_approve(review.author)]
    if not counted or facts.conflicts(pull) or not facts.is_ready(pull.number):
        return None
    days, by = age_days(since, now), one_line(counted[-1].author.login)
    return _signal(
        pull,
        now,
        f"was approved {days:.0f} days ago, is green and not merged",
        f"approved by {by} at its present commit {days:.0f} days ago; no check and no conflict stands against it",
        "-approved",
        Severity.HIGH,
    )


def _conflicting(pull: Pull, facts: PullFacts, now: datetime, patience: timedelta) -> Signal | None:
    if now - pull.updated_at <= patience:
        return None
    files = facts.conflicts(pull)
    if not files:
        return None
    shown = ", ".join(one_line(path, 80) for path in files[:CONFLICTS])
    more = f" and {len(files) - CONFLICTS} more" if len(files) > CONFLICTS else ""
    return _signal(
        pull,
        now,
        f"has conflicts with {pull.base}",
        f"merging it into {pull.base} stops at {shown}{more}",
        "-conflict",
        Severity.LOW,
    )


def _first_contribution(
    pull: Pull, reviews: list[Review], facts: PullFacts, now: datetime, patience: timedelta
) -> Signal | None:
    """Somebody's first pull request to the project, without an answer of a person (other than Ralph and bots)."""
    spoke = (remark.author for remark in pull.remarks)
    answered = reviews or any(who.id not in (facts.us, pull.author.id) and not who.is_bot for who in spoke)
    if not pull.newcomer or answered or now - pull.created_at <= patience:
        return None
    days = age_days(pull.created_at, now)
    return _signal(
        pull,
        now,
        f"is its author's first contribution, and has no answer after {days:.0f} days",
        "it has no review and no answer yet",
        "-first",
        Severity.HIGH,
    )


def _unreviewed(pull: Pull, verdicts: list[Review], now: datetime, patience: timedelta) -> Signal | None:
    if any(review.sha == pull.head_sha for review in verdicts):
        return None  # its author has to act
    since = pull.updated_at if verdicts else pull.created_at  # reviewed before, and pushed to since
    if now - since <= patience:
        return None
    return _signal(
        pull,
        now,
        f"has waited {age_days(since, now):.0f} days for a review",
        "reviewed before, not at its present commit" if verdicts else "never reviewed",
        "",
        Severity.MEDIUM,
    )


def _signal(pull: Pull, now: datetime, what: str, more: str, instance: str, severity: Severity) -> Signal:
    return Signal(
        observer="forge",
        kind=KIND,
        title=one_line(f"#{pull.number} {what}: {pull.title}"),
        essence=(KIND, str(pull.number)),
        occurrence=f"{pull.head_sha[:12]}{instance}",
        severity=severity,
        confidence=0.9,
        detail=block(f"#{pull.number} by {one_line(pull.author.login)}, {pull.head} into {pull.base}; {more}."),
        author=one_line(pull.author.login),
        age_days=age_days(pull.created_at, now),
        reference=pull.number,
    )
