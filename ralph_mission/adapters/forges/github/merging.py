"""Merges exactly the approved commit after checking everything again, and explains why a merge is impossible.

Missing requirements of branch protection and rulesets are read only if GitHub blocks or refuses a merge. Both have
separate endpoints and separate settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote

from ralph_mission.adapters.forges import ForgeRefused, require_approval
from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.checks import PENDING, dicts, dig, missing_checks, require_green
from ralph_mission.adapters.forges.github.limits import Absent, Doubt, Stale, Violation
from ralph_mission.adapters.forges.github.reading import PullWire, RuleWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.approval import merge_objection
from ralph_mission.mission.lifecycle.checkboxes import hear_in_pull
from ralph_mission.mission.model.effects import MergePull
from ralph_mission.mission.model.forge import Actor, Review, Tick
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import compile_regex, dataclass

METHODS = ("squash", "merge")
PATIENCE = (1.0, 2.0, 4.0)  # seconds between looks while GitHub works out whether a pull can be merged


def merge(
    threads: Threads,
    effect: MergePull,
    may_approve: Callable[[Actor], bool],
    ticked: Callable[[], tuple[Tick, ...]],
    required_checks_only: bool = False,
    by_workflow: bool = False,
) -> str:
    """Merge and return the commit. Every check of the head must have passed, unless only required ones count.

    `by_workflow`: whether the token is a workflow's own. Raises ForgeRefused, Doubt, UserError.
    """
    if effect.method not in METHODS:
        raise ForgeRefused(f"merge method {effect.method} is not supported", "use squash or merge")
    wire = _wait_mergeable(threads, effect.pull)
    require_unobjectionable(threads, wire, effect, may_approve, ticked)
    try:
        _require_mergeable(threads, wire)
        queued = False
    except MergeQueueNeeded:
        queued = True
    if not required_checks_only:
        require_green(threads, wire)
    if queued:
        raise _enqueue(threads, wire, effect, ticked, by_workflow)
    title, _, text = effect.message.partition("\n")
    order = {
        "sha": effect.head_sha,
        "merge_method": effect.method,
        "commit_title": title,
        "commit_message": text.strip("\n"),
    }
    try:
        answer = threads.api.send("PUT", f"/pulls/{effect.pull}/merge", order)
    except Violation as no:
        if QUEUE.search(no.what):
            raise _enqueue(threads, wire, effect, ticked, by_workflow) from None
        raise violation(threads, wire.base.ref, no.what) from None
    return str(answer.get("sha") or "") if isinstance(answer, dict) else ""


def _wait_mergeable(threads: Threads, number: int) -> PullWire:
    """The pull request, once GitHub knows whether it is mergeable, which it computes on the first request."""
    wire = threads.pull(number, fresh=True)
    for seconds in PATIENCE:
        if wire.state != "open" or wire.mergeable_state not in ("", "unknown"):
            break
        threads.api.sleep(seconds)
        wire = threads.pull(number, fresh=True)
    return wire


def require_unobjectionable(
    threads: Threads,
    wire: PullWire,
    effect: MergePull,
    may_approve: Callable[[Actor], bool],
    ticked: Callable[[], tuple[Tick, ...]],
) -> None:
    """Raise if the pull request may not be merged now. Without an approving review, the dashboard decides."""
    if wire.state == "closed":
        raise ForgeRefused(f"pull request #{wire.number} is {wire.status}")
    if not wire.ours:
        raise ForgeRefused(f"pull request #{wire.number} is from a fork")
    reviews = reading.reviews(threads.reviews(wire.number, fresh=True)) if effect.approver else ()
    pull = reading.pull(wire, reviews)
    if merge_objection(pull, effect, may_approve):
        require_approval(hear_in_pull(pull, ticked()) if effect.approver else pull, effect, may_approve)


class MergeQueueNeeded(ForgeRefused):
    """The base only accepts merges by a queue."""


QUEUE = compile_regex(r"merge queue", re.IGNORECASE)
ENQUEUE = (
    "mutation($input: EnqueuePullRequestInput!) { enqueuePullRequest(input: $input) { mergeQueueEntry { position } } }"
)
DEQUEUE = (
    "mutation($input: DequeuePullRequestInput!) { dequeuePullRequest(input: $input) { mergeQueueEntry { position } } }"
)
QUEUED = (
    "{ repository(owner: %s, name: %s) { pullRequest(number: %d) { id mergeQueueEntry { state position "
    "enqueuer { ... on User { databaseId } ... on Bot { databaseId } } } "
    "timelineItems(itemTypes: [REMOVED_FROM_MERGE_QUEUE_EVENT], last: 1) "
    "{ nodes { ... on RemovedFromMergeQueueEvent { createdAt reason } } } } } }"
)


def _ask_queue(threads: Threads, pull: int) -> object:
    """A pull request's place in the merge queue of its base. Raises UserError."""
    owner, _, name = threads.api.place.repository.partition("/")
    answer = threads.api.ask(QUEUED % (json.dumps(owner), json.dumps(name), pull))
    return dig(answer, "repository", "pullRequest")


def queued_by(threads: Threads, pull: int) -> int | None:
    """The id of the account that added a pull request to the merge queue, or None. Raises UserError."""
    found = dig(_ask_queue(threads, pull), "mergeQueueEntry", "enqueuer", "databaseId")
    return found if isinstance(found, int) else None


def leave_queue(threads: Threads, pull: int) -> None:
    """Remove a pull request from the merge queue. Raises ForgeRefused, Doubt, UserError."""
    threads.api.change(DEQUEUE, {"input": {"id": dig(_ask_queue(threads, pull), "id")}})


def _enqueue(
    threads: Threads, wire: PullWire, effect: MergePull, ticked: Callable[[], tuple[Tick, ...]], by_workflow: bool
) -> ForgeRefused:
    """Have the base's queue merge exactly the approved commit, once; returns the progress.

    A queued one is waited for. A removed one is reported, and only queued again after a newer approval. Events of a
    workflow's own token start no workflow, so what it queued would wait for its checks until the queue gives up.
    """
    base, node = wire.base.ref, _ask_queue(threads, wire.number)
    entry = dig(node, "mergeQueueEntry")
    if dig(entry, "state") == "UNMERGEABLE":
        what = f"the merge queue of {base} cannot merge it: take it out of the queue, and look at its conflicts"
        return ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    if entry:
        return _waits_in_queue(base, entry)
    for removed in dicts(dig(node, "timelineItems", "nodes")):
        at = reading.moment(removed.get("createdAt"))
        if at and not any(review.at > at for review in _approving(threads, wire, effect, ticked)):
            why = reading.spoken(removed.get("reason")) or "no reason given"
            what = f"the merge queue of {base} removed it ({why}): approve it once more to put it in again"
            return ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    if by_workflow:
        what = (
            f"{base} has a merge queue, in which no checks start for what a workflow's own token adds: click “Merge "
            "when ready” there, and give the action the token of an app or an account"
        )
        return ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    order = {"pullRequestId": dig(node, "id"), "expectedHeadOid": effect.head_sha}
    try:
        answer = threads.api.change(ENQUEUE, {"input": order})
    except Stale:
        return ForgeRefused("approval-head")
    except Doubt as doubt:  # it may be queued; the next cycle checks
        return ForgeRefused(str(doubt), reason=FailureReason.QUEUED)
    return _waits_in_queue(base, dig(answer, "enqueuePullRequest", "mergeQueueEntry"))


def _waits_in_queue(base: str, entry: object) -> ForgeRefused:
    place = dig(entry, "position")
    where = f", at position {place}" if isinstance(place, int) else ""
    return ForgeRefused(f"it waits in the merge queue of {base}{where}", reason=FailureReason.QUEUED)


def _approving(
    threads: Threads, wire: PullWire, effect: MergePull, ticked: Callable[[], tuple[Tick, ...]]
) -> list[Review]:
    pull = hear_in_pull(reading.pull(wire, reading.reviews(threads.reviews(wire.number, fresh=True))), ticked())
    return [one for one in pull.reviews if one.author.id == effect.approver and one.state == "approved"]


def _require_mergeable(threads: Threads, wire: PullWire) -> None:
    match wire.mergeable_state:
        case "dirty":
            what = f"the merge has conflicts with {wire.base.ref}"
            raise ForgeRefused(what, "solve them in its branch", FailureReason.NEEDS_PERSON)
        case "behind":
            raise ForgeRefused(
                f"{wire.base.ref} has commits that the branch must have first", reason=FailureReason.BEHIND
            )
        case "draft":
            raise ForgeRefused(f"blocked: pull request #{wire.number} is a draft")
        case "blocked":
            raise obstacle(threads, wire)
        case "" | "unknown":
            raise ForgeRefused(
                f"GitHub has not worked out yet whether #{wire.number} can be merged",
                reason=FailureReason.NOT_ATTEMPTED,
            )


CHECKS, REVIEWS = "required_status_checks", "pull_request"


@dataclass(frozen=True, slots=True)
class RuleType:
    """A type of rule: its `setting` as GitHub's pages call it, and GitHub's `words` (regular expression) if it blocks.

    A `standing` one is never satisfied by a check or review.
    """

    setting: str
    words: str
    standing: bool = False


KINDS: dict[str, RuleType] = {
    CHECKS: RuleType("Require status checks to pass", r"status check"),
    REVIEWS: RuleType("Require a pull request before merging", r"review|changes have been requested|conversation"),
    "required_signatures": RuleType("Require signed commits", r"verified signatures", standing=True),
    "required_linear_history": RuleType("Require linear history", r"merge commits?\b"),
    "update": RuleType("Restrict updates", r"cannot update this protected ref", standing=True),
}
REQUIREMENTS = {
    "require_code_owner_review": "the approval of a code owner",
    "require_last_push_approval": "an approval by somebody else than who pushed last",
    "required_review_thread_resolution": "all conversations resolved",
}


def obstacle(threads: Threads, wire: PullWire) -> ForgeRefused:
    """What blocks a pull request's merge. Waiting is no failure."""
    base = wire.base.ref
    rules = _rules(threads, base)
    if missing := list(missing_checks(threads, wire, dict(_ruleset_checks(rules)))):
        what = "; ".join(line for _, line in missing)
        if all(result == PENDING for result, _ in missing):
            return ForgeRefused(what, reason=FailureReason.NOT_ATTEMPTED)
        return ForgeRefused(f"blocked: {what}")
    queue = any(rule.type == "merge_queue" for rule in rules)
    if requirements := list(_requirements(threads, wire, rules, counted_only=queue)):
        return ForgeRefused(f"blocked: {base} asks for {'; for '.join(requirements)}")
    if queue:
        return MergeQueueNeeded(f"{base} is merged into by its queue alone")
    if blocking := [place(rule) for rule in rules if rule.type in KINDS and KINDS[rule.type].standing]:
        what = f"{base} may not be merged into: {'; '.join(blocking)}"
        return ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    return ForgeRefused(f"blocked: a review or check that the protection of {base} requires is missing")


def violation(threads: Threads, base: str, words: str) -> ForgeRefused:
    """GitHub's words if rules of `base` refused a merge, with the settings behind them."""
    broken = [
        rule
        for rule in _rules(threads, base)
        if rule.type in KINDS and re.search(KINDS[rule.type].words, words, re.IGNORECASE)
    ]
    places = "".join(f"; {place(rule)}" for rule in broken)
    what = f"{words or f'the rules of {base} do not allow it'}{places}"
    if broken and all(KINDS[rule.type].standing for rule in broken):
        return ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    return ForgeRefused(f"blocked: {what}")


def place(rule: RuleWire) -> str:
    """Where a person finds a rule."""
    return (
        f"Settings → Rules → Rulesets, {KINDS[rule.type].setting} (ruleset {rule.ruleset_id} of {rule.ruleset_source})"
    )


def _rules(threads: Threads, branch: str) -> tuple[RuleWire, ...]:
    """The requirements of active rulesets, also the organisation's, for a branch; none if not visible."""
    try:
        rows = threads.api.all(f"/rules/branches/{quote(branch, safe='')}?per_page=100", fresh=True)
        return reading.read(tuple[RuleWire, ...], rows)
    except (Absent, UserError):
        return ()


# --- reviews


def _requirements(
    threads: Threads, wire: PullWire, rules: tuple[RuleWire, ...], counted_only: bool = False
) -> Iterator[str]:
    """What the rules ask of reviews. Only approvals can be counted here: whether the rest is met, GitHub knows alone.

    `counted_only`: leave out the rest, as where a queue is what blocks, and refuses what does not meet it.
    """
    for rule in (rule for rule in rules if rule.type == REVIEWS):
        parameters = rule.parameters or {}
        named = {} if counted_only else REQUIREMENTS
        requirements = [words for name, words in named.items() if parameters.get(name) is True]
        count = parameters.get("required_approving_review_count")
        if isinstance(count, int) and count > _approvals(threads, wire.number):
            requirements.insert(0, f"{count} approving review{'' if count == 1 else 's'}")
        if requirements:
            yield f"{', '.join(requirements)}: {place(rule)}"


def _approvals(threads: Threads, number: int) -> int:
    verdicts = {
        review.author.id: review.state
        for review in reading.reviews(threads.reviews(number, fresh=True))
        if review.state != "commented"
    }
    return list(verdicts.values()).count("approved")


def _ruleset_checks(rules: tuple[RuleWire, ...]) -> Iterator[tuple[str, str]]:
    """The checks that rulesets require, and where they are set."""
    for rule in (rule for rule in rules if rule.type == CHECKS):
        for check in dicts(dig(rule.parameters, "required_status_checks")):
            yield str(check.get("context")), place(rule)
