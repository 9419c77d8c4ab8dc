"""Each kind of effect on the local forge: how to find it again, and how to do it under the store's lock.

A merge needs no checkout: the commit is made first, then work trees and branch move to it. A crash leaves nothing
harmful. The commit is noted in the pull request's file before anything moves. Work trees move before the branch: after
a crash in between, they show the pull request as staged changes, which the next attempt reverts. After a crash once the
branch moved, the note shows that the merge is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ralph_mission.adapters.forges import EffectVerbs, ForgeRefused, mark, require_approval
from ralph_mission.adapters.forges.commits import commit, merged_tree
from ralph_mission.adapters.forges.local import branches, threads
from ralph_mission.adapters.forges.local.documents import BOT, LocalThread
from ralph_mission.adapters.forges.local.threads import ThreadStore
from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.mission.lifecycle.checkboxes import hear_in_pull
from ralph_mission.mission.lifecycle.ownership import BRANCHES
from ralph_mission.mission.model import effects
from ralph_mission.mission.model.effects import Effect, Receipt
from ralph_mission.mission.model.forge import Actor
from ralph_mission.values import dataclass


def may_approve(actor: Actor) -> bool:
    """Every person, as people who can write these files have write access. No bot."""
    return not actor.is_bot and actor.id != BOT.id


def texts(thread: LocalThread) -> dict[int, tuple[int, str]]:
    """Author id and text of all comments by number; 0 is the opening text."""
    return {0: (thread.author.id, thread.body)} | {one.id: (one.author.id, one.body) for one in thread.remarks}


@dataclass(frozen=True)
class LocalEffects(EffectVerbs):
    """The bot's effects on a thread store and a repository."""

    store: ThreadStore
    git: Git
    now: Callable[[], datetime]

    # --- issues and comments

    def find_open_issue(self, effect: effects.OpenIssue) -> Receipt | None:
        for thread in self.store.threads("issues", lambda text: effect.key not in text):
            if thread.author.id == BOT.id and mark(thread.body) == effect.key:
                return self._done(effect, thread)
        return None

    def do_open_issue(self, effect: effects.OpenIssue) -> Receipt:
        return self._done(effect, self.store.open(BOT, self.now(), effect.title, effect.body, effect.labels))

    def find_close_issue(self, effect: effects.CloseIssue) -> Receipt | None:
        thread = self.store.require("issue", effect.issue)
        return self._done(effect, thread) if thread.state == "closed" else None

    def do_close_issue(self, effect: effects.CloseIssue) -> Receipt:
        thread = self.store.require("issue", effect.issue)
        return self._keep(effect, threads.close_thread(thread, BOT, effect.reason, self.now()))

    def find_comment(self, effect: effects.Comment) -> Receipt | None:
        thread = self.store.require("", effect.issue)
        for remark in thread.remarks:
            if remark.author.id == BOT.id and mark(remark.body) == effect.key:
                return self._done(effect, thread, remark.id)
        return None

    def do_comment(self, effect: effects.Comment) -> Receipt:
        thread = threads.add_comment(self.store.require("", effect.issue), BOT, effect.body, self.now())
        return self._keep(effect, thread, thread.remarks[-1].id)

    def find_edit_comment(self, effect: effects.EditComment) -> Receipt | None:
        thread = self.store.require("", effect.issue)
        is_there = texts(thread).get(effect.comment) == (BOT.id, effect.body)
        return self._done(effect, thread, effect.comment) if is_there else None

    def do_edit_comment(self, effect: effects.EditComment) -> Receipt:
        thread = self.store.require("", effect.issue)
        author, _ = texts(thread).get(effect.comment, (0, ""))
        if author != BOT.id:
            raise ForgeRefused(f"comment {effect.comment} of #{thread.number} is not ours to edit")
        return self._keep(effect, threads.edit_text(thread, effect.comment, effect.body, self.now()), effect.comment)

    def find_label(self, effect: effects.Label) -> Receipt | None:
        thread = self.store.require("", effect.issue)
        have = set(thread.labels)
        done = have >= set(effect.add) and not have & set(effect.remove) and set(effect.assign) <= set(thread.assignees)
        return self._done(effect, thread) if done else None

    def do_label(self, effect: effects.Label) -> Receipt:
        thread = threads.set_labels(self.store.require("", effect.issue), BOT, self.now(), effect.add, effect.remove)
        return self._keep(effect, threads.assign_people(thread, effect.assign, self.now()))

    # --- branches and pulls

    def find_push_branch(self, effect: effects.PushBranch) -> Receipt | None:
        here = self.git.resolve(branches.HEADS + effect.branch)
        if not here or not self.git.says_the_same(here, commit(self.git, effect, self._default())):
            return None
        return Receipt(effect.key, "done", sha=here)

    def do_push_branch(self, effect: effects.PushBranch) -> Receipt:
        return Receipt(effect.key, "done", sha=branches.push(self.git, effect, self._default()))

    def find_open_pull(self, effect: effects.OpenPull) -> Receipt | None:
        for thread in self.store.threads("pulls"):
            if thread.head == effect.head and thread.author.id == BOT.id:
                return self._done(effect, thread)
        return None

    def do_open_pull(self, effect: effects.OpenPull) -> Receipt:
        sides = branches.sides(self.git, self.store, effect.head, effect.base)
        return self._done(effect, self.store.open(BOT, self.now(), effect.title, effect.body, effect.labels, sides))

    def find_merge_pull(self, effect: effects.MergePull) -> Receipt | None:
        thread = branches.settle_thread(self.git, self.store.require("pull", effect.pull), branches.tips(self.git))
        if thread.state != "merged" or thread.head_sha != effect.head_sha:
            return None
        return replace(self._done(effect, thread), sha=thread.merged_sha)

    def do_merge_pull(self, effect: effects.MergePull) -> Receipt:
        order = MergeRequest(effect.head_sha, effect.method, effect.message, BOT, Identity())
        thread = self.store.require("pull", effect.pull)
        head = branches.head_of(thread, branches.tips(self.git))
        pull = hear_in_pull(threads.pull(thread, "", head, details=True), self.store.ticks(self.now()))
        require_approval(pull, effect, may_approve)
        thread = land(self.store, self.git, thread, order, self.now())
        self._drop_branch(thread, effect.head_sha)
        return replace(self._done(effect, thread), sha=thread.merged_sha)

    def find_leave_queue(self, effect: effects.LeaveQueue) -> Receipt:
        """None: there is no queue here."""
        return self._done(effect, self.store.require("pull", effect.pull))

    do_leave_queue = find_leave_queue

    def find_close_pull(self, effect: effects.ClosePull) -> Receipt | None:
        thread = self.store.require("pull", effect.pull)
        same_head = effect.head_sha and self.git.resolve(branches.HEADS + thread.head) == effect.head_sha
        over = thread.state == "closed" or (self._merged(thread) and bool(effect.head_sha))
        return self._done(effect, thread) if over and not same_head else None

    def do_close_pull(self, effect: effects.ClosePull) -> Receipt:
        thread = self.store.require("pull", effect.pull)
        over = self._merged(thread) and effect.head_sha
        thread = thread if over else branches.close_pull(self.git, thread, BOT, self.now())
        receipt = self._done(effect, thread) if over else self._keep(effect, thread)
        self._drop_branch(thread, effect.head_sha)
        return receipt

    def _merged(self, thread: LocalThread) -> bool:
        return branches.settle_thread(self.git, thread, branches.tips(self.git)).state == "merged"

    def _drop_branch(self, thread: LocalThread, head_sha: str) -> None:
        """Delete our branch of a finished pull request if it is at `head_sha` and unused.

        Used means: checked out, or the base of an open pull request.
        """
        if not head_sha or not thread.head.startswith(BRANCHES) or branches.of_branch(self.git, thread.head):
            return
        if not any(one.base == thread.head and one.state == "open" for one in self.store.threads("pulls")):
            self.git.move_ref(branches.HEADS + thread.head, "", head_sha)

    # --- reviews

    def find_review(self, effect: effects.PostReview) -> Receipt | None:
        thread = self.store.require("pull", effect.pull)
        for number, review in enumerate(thread.reviews, 1):
            if (review.author.id, review.state) == (BOT.id, "commented") and mark(review.body) == effect.key:
                return self._done(effect, thread, number)
        return None

    def do_review(self, effect: effects.PostReview) -> Receipt:
        thread = self.store.require("pull", effect.pull)
        lines = (f"{one.path}:{one.line}: {one.body}" for one in effect.lines)  # before our marker, which ends it
        body = "\n\n".join((*lines, effect.body))
        thread = threads.add_review(thread, BOT, "commented", body, effect.head_sha, self.now())
        return self._keep(effect, thread, len(thread.reviews))

    def find_edit_review(self, effect: effects.EditReview) -> Receipt | None:
        thread = self.store.require("pull", effect.pull)
        review = dict(enumerate(thread.reviews, 1)).get(effect.review)
        if review is None or (review.author.id, review.body) != (BOT.id, effect.body):
            return None
        return self._done(effect, thread, effect.review)

    def do_edit_review(self, effect: effects.EditReview) -> Receipt:
        thread = self.store.require("pull", effect.pull)
        review = dict(enumerate(thread.reviews, 1)).get(effect.review)
        if review is None or review.author.id != BOT.id:
            raise ForgeRefused(f"review {effect.review} of #{thread.number} is not ours to edit")
        return self._keep(effect, threads.edit_review(thread, effect.review, effect.body, self.now()), effect.review)

    # --- helpers

    def _default(self) -> str:
        return branches.default_branch(self.git, branches.tips(self.git)).name

    def _keep(self, effect: Effect, thread: LocalThread, remark: int = 0) -> Receipt:
        self.store.write(thread)
        return self._done(effect, thread, remark)

    def _done(self, effect: Effect, thread: LocalThread, remark: int = 0) -> Receipt:
        """A receipt. A comment or review has its own number."""
        is_review = isinstance(effect, effects.PostReview | effects.EditReview)
        own = is_review or isinstance(effect, effects.Comment | effects.EditComment)
        url = self.store.url(thread) + (f"#{'review' if is_review else 'comment'}-{remark}" if remark else "")
        return Receipt(effect.key, "done", remark if own else thread.number, url)


OURS = ".ralph"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Merge at exactly `head_sha`, by `method` squash or merge."""

    head_sha: str
    method: str
    message: str
    actor: Actor
    who: Identity


def land(store: ThreadStore, git: Git, thread: LocalThread, order: MergeRequest, now: datetime) -> LocalThread:
    """The merged pull request; idempotent at the same head. Raises ForgeRefused. Needs the store's lock."""
    known = branches.tips(git)
    thread = branches.settle_thread(git, thread, known)
    _require_mergeable(thread, order, known)
    if thread.state != "merged":
        thread = _merge(store, git, thread, order, known[thread.base], threads.after(thread, now))
    store.write(thread)
    return thread


def _require_mergeable(thread: LocalThread, order: MergeRequest, known: Mapping[str, str]) -> None:
    if thread.state == "closed":
        raise ForgeRefused(f"pull request #{thread.number} is closed")
    if branches.head_of(thread, known) != order.head_sha:
        raise ForgeRefused("approval-head")
    if thread.base not in known:
        raise ForgeRefused(f"there is no branch {thread.base}")
    if order.method not in ("squash", "merge"):
        raise ForgeRefused(f"merge method {order.method} is not supported", "use squash or merge")


def _merge(
    store: ThreadStore, git: Git, thread: LocalThread, order: MergeRequest, base: str, at: datetime
) -> LocalThread:
    trees = branches.of_branch(git, thread.base)
    if thread.merging:
        branches.take_back(trees, base, thread.merging)
    commit = _commit(git, base, order, at)
    store.write(replace(thread, merging=commit, head_sha=order.head_sha, merged_by=order.actor))
    try:
        _move(git, trees, thread.base, base, commit)
    except ForgeRefused:
        store.write(replace(thread, merging=""))
        raise
    return threads.mark_merged(thread, order.head_sha, commit, order.actor, at)


def _move(git: Git, trees: Sequence[Git], branch: str, old: str, new: str) -> None:
    with branches.move_trees(trees, old, new):
        if not git.move_ref(f"refs/heads/{branch}", new, old):
            raise ForgeRefused(f"{branch} moved meanwhile", "merge again")


def _commit(git: Git, base: str, order: MergeRequest, at: datetime) -> str:
    tree = merged_tree(git, base, order.head_sha)
    _spare_our_files(git, base, tree)
    parents = (base,) if order.method == "squash" else (base, order.head_sha)
    return git.commit_tree(tree, parents, order.message, at, order.who)


def _spare_our_files(git: Git, base: str, tree: str) -> None:
    # Checked out, such a file would be a forged issue or approval.
    if _is_ours(git, tree) != _is_ours(git, base):
        raise ForgeRefused(
            f"the pull request changes files below {OURS}/, where this forge lives", "take them out of the branch"
        )


def _is_ours(git: Git, tree: str) -> set[tuple[str, str]]:
    return {(e.path, e.oid) for e in git.listing(tree, recursive=False) if e.path.casefold() == OURS}
