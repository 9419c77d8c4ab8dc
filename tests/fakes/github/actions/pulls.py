"""Pulls: opening, reviewing, whether they can be merged, merging."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from tests.fakes.github.actions import refs, threads
from tests.fakes.github.bare import Signature
from tests.fakes.github.nouns import Account, PullPart, Review, Rules, Thread
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.state import World

GITHUB = ("GitHub", "noreply@github.com")
FAILED = ("failure", "cancelled", "timed_out", "action_required")


def create(
    world: World, actor: Account, head: str, base: str, title: str, body: str | None, draft: bool = False
) -> Thread:
    """A new pull, or a Refusal with GitHub's words."""
    tip, onto = world.bare.branch(head), world.bare.branch(base)
    if not tip:
        raise Refusal.invalid("PullRequest", "head", "invalid")
    if not onto:
        raise Refusal.invalid("PullRequest", "base", "invalid")
    if any(_same(thread, head, base) for thread in world.threads.values()):
        raise Refusal.custom("PullRequest", f"A pull request already exists for {world.owner}:{head}.")
    if not world.bare.between(onto, tip):
        raise Refusal.custom("PullRequest", f"No commits between {base} and {head}")
    if not world.bare.merge_base(onto, tip):
        raise Refusal.custom("PullRequest", f"The {head} branch has no history in common with {base}")
    part = PullPart(head, base, tip, onto, draft=draft, lag=world.mergeable_lag)
    thread = threads.create(world, actor, title, body, pull=part)
    world.bare.set_ref(f"refs/pull/{thread.number}/head", tip)
    return thread


def _same(thread: Thread, head: str, base: str) -> bool:
    pull = thread.pull
    return bool(pull and thread.state == "open" and (pull.head, pull.base) == (head, base))


def review(
    world: World,
    actor: Account,
    thread: Thread,
    state: str,
    body: str,
    sha: str = "",
    lines: Sequence[tuple[str, int, str]] = (),
) -> Review:
    """A verdict on the pull as it is now, or at `sha`, with remarks on lines (path, line, words)."""
    assert thread.pull
    at = world.clock.tick()
    said = tuple((next(world.ids), *one) for one in lines)
    made = Review(next(world.ids), thread.number, actor, state, body, sha or thread.pull.head_sha, at, said)
    world.reviews[made.id] = made
    thread.updated_at = at
    return made


def shown_lines(world: World, thread: Thread, path: str) -> set[int]:
    """The lines of a file that the pull's diff shows on the changed side: the only ones that take a remark."""
    assert thread.pull
    span = f"{world.bare.branch(thread.pull.base)}...{thread.pull.head_sha}"
    told = world.bare.run("diff", "-U3", "-M", span).stdout.decode("utf-8", "replace")
    patch = next((one for one in told.split("diff --git ") if f"\n+++ b/{path}\n" in one), "")
    hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", patch, re.MULTILINE)
    return {at for first, most in hunks for at in range(int(first), int(first) + int(most or 1))}


def edit_review(world: World, actor: Account, found: Review, text: str, line: int = 0) -> None:
    """Another text, of a remark on a line where one is named; the commit and the time stay those of the first one."""
    at = world.clock.tick()
    if line:
        found.lines = tuple((*one[:3], text) if one[0] == line else one for one in found.lines)
    else:
        found.body = text
    found.edits.setdefault(line, []).append((actor, at))
    world.threads[found.number].updated_at = at


def dismiss(world: World, actor: Account, found: Review, message: str) -> None:
    """Take a verdict back."""
    was, found.state = found.state, "DISMISSED"
    extra = {"dismissed_review": {"state": was.lower(), "review_id": found.id, "dismissal_message": message or None}}
    threads.record(world, world.threads[found.number], "review_dismissed", actor, world.clock.tick(), extra=extra)


def reviews(world: World, thread: Thread) -> list[Review]:
    """The reviews of a pull, oldest first."""
    return [review for review in world.reviews.values() if review.number == thread.number]


def mergeable(world: World, thread: Thread) -> bool:
    """Whether git can merge it."""
    assert thread.pull
    return bool(world.bare.merged_tree(world.bare.branch(thread.pull.base), thread.pull.head_sha))


def test_merge(world: World, thread: Thread) -> str | None:
    """The commit that GitHub makes to see whether an open pull can be merged: no sign of its being merged."""
    pull = thread.pull
    assert pull
    base = world.bare.branch(pull.base)
    if thread.state == "open" and pull.tried != (base, pull.head_sha) and mergeable(world, thread):
        tree, who = world.bare.merged_tree(base, pull.head_sha), Signature(*GITHUB, thread.created_at)
        message = f"Merge {pull.head_sha} into {base}\n"
        pull.tried = (base, pull.head_sha)
        pull.merge_sha = world.bare.commit_tree(tree, [base, pull.head_sha], message, who, who)
        world.bare.set_ref(f"refs/pull/{thread.number}/merge", pull.merge_sha)
    return pull.merge_sha


def mergeable_state(world: World, thread: Thread) -> str:
    """clean, dirty, blocked, behind, unstable or draft, in GitHub's order of importance."""
    pull = thread.pull
    assert pull
    if not mergeable(world, thread):
        return "dirty"
    if pull.draft:
        return "draft"
    if obstacle(world, thread):
        return "blocked"
    if _behind(world, thread):
        return "behind"
    results = outcomes(world, pull.head_sha)
    return "clean" if all(result in ("success", "neutral", "skipped") for result in results.values()) else "unstable"


def outcomes(world: World, sha: str) -> dict[str, str]:
    """The newest result of each check and status of a commit; "pending" while there is none."""
    found = {check.name: check.conclusion or "pending" for check in world.checks if check.sha == sha}
    return found | {status.context: status.state for status in world.statuses if status.sha == sha}


def obstacle(world: World, thread: Thread) -> str:
    """What the base's protection and rulesets still ask for, in GitHub's words; "" for nothing."""
    assert thread.pull
    own = world.protections.get(thread.pull.base)
    return (own and _unmet(world, thread, own)) or violated(_violations(world, thread))


def violated(found: list[str]) -> str:
    """How the API tells what rulesets do not allow."""
    return "\n\n".join(["Repository rule violations found", *found, ""]) if found else ""


def enqueue(world: World, actor: Account, thread: Thread) -> None:
    """Into the merge queue, where everything but the queue is as the rules want it."""
    assert thread.pull
    thread.pull.queued = "QUEUED"
    threads.record(world, thread, "added_to_merge_queue", actor, world.clock.tick())


def leave_queue(world: World, actor: Account, thread: Thread, reason: str) -> None:
    """Out of it: merged where there is no reason against it."""
    pull = thread.pull
    assert pull
    if not pull.queued:
        return
    pull.queued = ""
    if reason:
        threads.record(world, thread, "removed_from_merge_queue", actor, world.clock.tick(), extra={"reason": reason})
        return
    at, base = world.clock.tick(), world.bare.branch(pull.base)
    made = _merge_commit(world, actor, thread, "squash", base, thread.title, at)
    world.bare.set_ref(f"refs/heads/{pull.base}", made, base)
    refs.mark_merged(world, actor, thread, made, at)


def _violations(world: World, thread: Thread) -> list[str]:
    assert thread.pull
    rulesets = world.rulesets_of(thread.pull.base)
    unmet = [_unmet(world, thread, rules) for rules in rulesets]
    stuck = any("update" in rules.forbidden for rules in rulesets)
    if any(rules.merge_queue for rules in rulesets):
        unmet.append("Changes must be made through the merge queue")
    return [*(["Cannot update this protected ref."] if stuck else []), *filter(None, dict.fromkeys(unmet))]


def _unmet(world: World, thread: Thread, rules: Rules) -> str:
    assert thread.pull
    verdicts = _verdicts(world, thread)
    approvals = list(verdicts.values()).count("APPROVED")
    if rules.required_reviews and "CHANGES_REQUESTED" in verdicts.values():
        return "Changes have been requested."
    if approvals < rules.required_reviews:
        return (
            f"At least {rules.required_reviews} approving review{'s are' if rules.required_reviews > 1 else ' is'}"
            " required by reviewers with write access."
        )
    return _missing_check(world, thread.pull.head_sha, rules)


def _missing_check(world: World, sha: str, rules: Rules) -> str:
    results = outcomes(world, sha)
    for name in rules.required_checks:
        if name not in results:
            return f'Required status check "{name}" is expected.'
        if results[name] == "pending":
            return f'Required status check "{name}" is in progress.'
        if results[name] not in ("success", "neutral", "skipped"):
            return f'Required status check "{name}" is failing.'
    return ""


def _verdicts(world: World, thread: Thread) -> dict[int, str]:
    """The last verdict of each reviewer who may write; a comment is none."""
    counted = [
        review for review in reviews(world, thread) if review.state != "COMMENTED" and review.author.at_least("write")
    ]
    return {review.author.id: review.state for review in counted}


def _behind(world: World, thread: Thread) -> bool:
    assert thread.pull
    if not any(rules.strict for rules in world.rules_of(thread.pull.base)):
        return False
    return not world.bare.is_ancestor(world.bare.branch(thread.pull.base), thread.pull.head_sha)


def merge(
    world: World,
    actor: Account,
    thread: Thread,
    method: str = "squash",
    sha: str | None = None,
    title: str | None = None,
    message: str | None = None,
) -> str:
    """Merge it; the new tip of the base. Raises Refusal 405 or 409 as GitHub does."""
    pull = thread.pull
    assert pull
    _may_merge(world, actor, thread, method, sha)
    base = world.bare.branch(pull.base)
    at = world.clock.tick()
    made = _merge_commit(world, actor, thread, method, base, _message(world, thread, method, title, message), at)
    if not world.bare.set_ref(f"refs/heads/{pull.base}", made, base):
        raise Refusal(405, "Base branch was modified. Review and try the merge again.")
    refs.mark_merged(world, actor, thread, made, at)
    _after_merge(world, actor, thread, base, made, at)
    return made


def _may_merge(world: World, actor: Account, thread: Thread, method: str, sha: str | None) -> None:
    pull = thread.pull
    assert pull
    allowed = {"squash": world.settings.allow_squash_merge, "merge": world.settings.allow_merge_commit}
    if sha and sha != pull.head_sha:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    if thread.state == "closed" or not mergeable(world, thread):
        raise Refusal(405, "Pull Request is not mergeable")
    if pull.draft:
        raise Refusal(405, "Pull Request is still a draft")
    if pull.queued:
        raise Refusal(405, "Pull Request is in the merge queue")
    if reason := obstacle(world, thread):
        raise Refusal(405, reason)
    if _behind(world, thread):
        raise Refusal(405, "The head branch is not up to date with the base branch.")
    if not allowed[method]:
        names = {"squash": "Squash merges", "merge": "Merge commits"}
        raise Refusal(405, f"{names[method]} are not allowed on this repository.")
    if not _signed(world, actor, thread, method):
        raise Refusal(405, violated(["Commits must have verified signatures."]))


def _signed(world: World, actor: Account, thread: Thread, method: str) -> bool:
    """Whether the base gets signed commits alone, where a ruleset asks for them: GitHub signs what it squashes for
    the author of the pull."""
    pull = thread.pull
    assert pull
    if not any(rules.required_signatures for rules in world.rulesets_of(pull.base)):
        return True
    if method == "squash":
        return actor is thread.author
    return all(world.bare.commit(sha).signed for sha in world.bare.between(pull.base_sha, pull.head_sha))


def _merge_commit(
    world: World, actor: Account, thread: Thread, method: str, base: str, message: str, at: datetime
) -> str:
    assert thread.pull
    tree = world.bare.merged_tree(base, thread.pull.head_sha)
    author = thread.author if method == "squash" else actor
    parents = [base] if method == "squash" else [base, thread.pull.head_sha]
    return world.bare.commit_tree(tree, parents, message, refs.signature(author, at), Signature(*GITHUB, at))


def _message(world: World, thread: Thread, method: str, title: str | None, message: str | None) -> str:
    pull = thread.pull
    assert pull
    if method == "squash":
        commits = [world.bare.commit(sha).message for sha in world.bare.between(pull.base_sha, pull.head_sha)]
        subject, body = f"{thread.title} (#{thread.number})", _bullets(commits)
    else:
        subject, body = f"Merge pull request #{thread.number} from {world.owner}/{pull.head}", thread.title
    subject, body = title or subject, body if message is None else message
    return f"{subject}\n\n{body}".rstrip("\n") + "\n"


def _bullets(messages: list[str]) -> str:
    if len(messages) == 1:
        return messages[0].partition("\n\n")[2]
    return "\n\n".join(f"* {message}" for message in messages)


def _after_merge(world: World, actor: Account, thread: Thread, old: str, new: str, at: datetime) -> None:
    pull = thread.pull
    assert pull
    if pull.base == world.default_branch:
        for sha in world.bare.between(old, new):
            refs.close_by_text(world, actor, [world.bare.commit(sha).message], at, sha)
    refs.follow(world, actor)
