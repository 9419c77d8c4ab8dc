"""Each kind of effect on the local forge: how it is found again, and how it is done under the store's lock.

A merge needs no checkout: the commit is made first, then work trees and branch move to it. What a crash leaves is
harmless. The commit is noted in the pull's file before anything moves. Work trees move before the branch: killed in
between, they show the pull as staged changes, which the next attempt takes back. Killed after the branch moved, the
note says that the merge is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import singledispatchmethod

from ralph_mission.adapters.forges.commits import ForgeRefused, commit, mark, merged_tree
from ralph_mission.adapters.forges.local import branches, threads
from ralph_mission.adapters.forges.local.documents import BOT
from ralph_mission.adapters.forges.local.store import ThreadStore
from ralph_mission.adapters.forges.local.threads import LocalThread, PullChange, after, mark_merged
from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.mission.lifecycle.approval import merge_objection
from ralph_mission.mission.model.effects import (
    CloseIssue,
    ClosePull,
    Comment,
    EditComment,
    EditReview,
    Effect,
    Label,
    MergePull,
    OpenIssue,
    OpenPull,
    PostReview,
    PushBranch,
    Receipt,
)
from ralph_mission.mission.model.forge import Actor, Review
from ralph_mission.values import dataclass


def may_approve(actor: Actor) -> bool:
    """Every person: whoever can write these files has write access. No bot."""
    return not actor.is_bot and actor.id != BOT.id


def texts(thread: LocalThread) -> list[tuple[int, int, str]]:
    """Comment number, author id and text of all that was said; 0 is the opening text."""
    opening = (0, thread.author.id, thread.body)
    return [opening, *((remark.id, remark.author.id, remark.body) for remark in thread.remarks)]


@dataclass(frozen=True)
class LocalEffects:
    """The verbs of the bot, on one desk and one repository."""

    store: ThreadStore
    git: Git
    default: str
    now: Callable[[], datetime]

    @singledispatchmethod
    def found(self, effect: Effect) -> Receipt | None:
        """What of `effect` is there already: an adopted receipt."""
        raise ValueError(f"unknown effect {effect!r}")

    @found.register
    def _(self, effect: OpenIssue) -> Receipt | None:
        for thread in self.store.threads("issues", lambda text: effect.key not in text):
            if thread.author.id == BOT.id and mark(thread.body) == effect.key:
                return self._adopt_thread(effect, thread)
        return None

    @found.register
    def _(self, effect: PushBranch) -> Receipt | None:
        here = self.git.resolve(branches.HEADS + effect.branch)
        if not here or here != commit(self.git, effect, self._default()):
            return None
        return Receipt(effect.key, "adopted", sha=here)

    @found.register
    def _(self, effect: OpenPull) -> Receipt | None:
        for thread in self.store.threads("pulls"):
            if thread.change and thread.change.head == effect.head and thread.author.id == BOT.id:
                return self._adopt_thread(effect, thread)
        return None

    @found.register
    def _(self, effect: MergePull) -> Receipt | None:
        thread = branches.settle_thread(self.git, self.store.require("pull", effect.pull), branches.tips(self.git))
        assert thread.change
        if thread.state != "merged" or thread.change.head_sha != effect.head_sha:
            return None
        return replace(self._adopt_thread(effect, thread), sha=thread.change.merged_sha)

    @found.register
    def _(self, effect: CloseIssue) -> Receipt | None:
        thread = self.store.require("issue", effect.issue)
        return self._adopt_thread(effect, thread) if thread.state == "closed" else None

    @found.register
    def _(self, effect: ClosePull) -> Receipt | None:
        thread = self.store.require("pull", effect.pull)
        return self._adopt_thread(effect, thread) if thread.state == "closed" else None

    @found.register
    def _(self, effect: Comment) -> Receipt | None:
        thread = self.store.require("", effect.issue)
        for remark in thread.remarks:
            if remark.author.id == BOT.id and mark(remark.body) == effect.key:
                return self._adopt_thread(effect, thread, remark.id)
        return None

    @found.register
    def _(self, effect: EditComment) -> Receipt | None:
        thread = self.store.require("", effect.issue)
        said = {number: (author, body) for number, author, body in texts(thread)}
        if said.get(effect.comment) != (BOT.id, effect.body):
            return None
        return self._adopt_thread(effect, thread, effect.comment)

    @found.register
    def _(self, effect: Label) -> Receipt | None:
        thread = self.store.require("", effect.issue)
        have = set(thread.labels)
        done = have >= set(effect.add) and not have & set(effect.remove) and set(effect.assign) <= set(thread.assignees)
        return self._adopt_thread(effect, thread) if done else None

    @found.register
    def _(self, effect: PostReview) -> Receipt | None:
        thread = self.store.require("pull", effect.pull)
        for number, review in enumerate(_reviews(thread), 1):
            if (review.author.id, review.state) == (BOT.id, "commented") and mark(review.body) == effect.key:
                return self._adopt_thread(effect, thread, number)
        return None

    @found.register
    def _(self, effect: EditReview) -> Receipt | None:
        thread = self.store.require("pull", effect.pull)
        review = dict(enumerate(_reviews(thread), 1)).get(effect.review)
        if review is None or (review.author.id, review.body) != (BOT.id, effect.body):
            return None
        return self._adopt_thread(effect, thread, effect.review)

    @singledispatchmethod
    def do(self, effect: Effect) -> Receipt:
        """Do what is not there yet."""
        raise ValueError(f"unknown effect {effect!r}")

    @do.register
    def _(self, effect: OpenIssue) -> Receipt:
        return self._find_opened(effect, effect.title, effect.body, effect.labels, None)

    @do.register
    def _(self, effect: PushBranch) -> Receipt:
        sha = branches.push(self.git, effect, self._default())
        return Receipt(effect.key, "done", sha=sha)

    @do.register
    def _(self, effect: OpenPull) -> Receipt:
        change = branches.change(self.git, self.store, effect.head, effect.base)
        return self._find_opened(effect, effect.title, effect.body, effect.labels, change)

    @do.register
    def _(self, effect: MergePull) -> Receipt:
        order = MergeRequest(effect.head_sha, effect.method, effect.message, BOT, Identity())
        thread = self.store.require("pull", effect.pull)
        head = branches.head_of(thread, branches.tips(self.git))
        if rule := merge_objection(threads.pull(thread, "", head, details=True), effect, may_approve):
            raise ForgeRefused(rule)
        thread = land(self.store, self.git, thread, order, self.now())
        assert thread.change
        return replace(self._done(effect, thread), sha=thread.change.merged_sha)

    @do.register
    def _(self, effect: CloseIssue) -> Receipt:
        thread = self.store.require("issue", effect.issue)
        return self._keep(effect, threads.close_thread(thread, BOT, effect.reason, self.now()))

    @do.register
    def _(self, effect: ClosePull) -> Receipt:
        thread = branches.close_pull(self.git, self.store.require("pull", effect.pull), BOT, self.now())
        return self._keep(effect, thread)

    @do.register
    def _(self, effect: Comment) -> Receipt:
        thread = threads.add_comment(self.store.require("", effect.issue), BOT, effect.body, self.now())
        return self._keep(effect, thread, thread.remarks[-1].id)

    @do.register
    def _(self, effect: EditComment) -> Receipt:
        thread = self.store.require("", effect.issue)
        authors = {number: author for number, author, _ in texts(thread)}
        if authors.get(effect.comment) != BOT.id:
            raise ForgeRefused(f"comment {effect.comment} of #{thread.number} is not ours to edit")
        return self._keep(effect, threads.edit_text(thread, effect.comment, effect.body, self.now()), effect.comment)

    @do.register
    def _(self, effect: Label) -> Receipt:
        thread = threads.set_labels(self.store.require("", effect.issue), BOT, self.now(), effect.add, effect.remove)
        return self._keep(effect, threads.assign_people(thread, effect.assign, self.now()))

    @do.register
    def _(self, effect: PostReview) -> Receipt:
        thread = self.store.require("pull", effect.pull)
        thread = threads.add_review(thread, BOT, "commented", effect.body, effect.head_sha, self.now())
        return self._keep(effect, thread, len(_reviews(thread)))

    @do.register
    def _(self, effect: EditReview) -> Receipt:
        thread = self.store.require("pull", effect.pull)
        review = dict(enumerate(_reviews(thread), 1)).get(effect.review)
        if review is None or review.author.id != BOT.id:
            raise ForgeRefused(f"review {effect.review} of #{thread.number} is not ours to edit")
        return self._keep(effect, threads.edit_review(thread, effect.review, effect.body, self.now()), effect.review)

    def _default(self) -> str:
        return branches.default_branch(self.git, self.default).name

    def _find_opened(
        self, effect: OpenIssue | OpenPull, title: str, body: str, labels: tuple[str, ...], change: PullChange | None
    ) -> Receipt:
        thread = threads.open_thread(self.store.next_number(), title, body, BOT, labels, change, self.now())
        return self._keep(effect, thread)

    def _keep(self, effect: Effect, thread: LocalThread, remark: int = 0) -> Receipt:
        self.store.write(thread)
        return self._done(effect, thread, remark)

    def _adopt_thread(self, effect: Effect, thread: LocalThread, remark: int = 0) -> Receipt:
        return replace(self._done(effect, thread, remark), status="adopted")

    def _done(self, effect: Effect, thread: LocalThread, remark: int = 0) -> Receipt:
        """A receipt. The number of a comment or review is its own."""
        is_review = isinstance(effect, PostReview | EditReview)
        own = is_review or isinstance(effect, Comment | EditComment)
        url = self.store.url(thread) + (f"#{'review' if is_review else 'comment'}-{remark}" if remark else "")
        return Receipt(effect.key, "done", remark if own else thread.number, url)


def _reviews(thread: LocalThread) -> tuple[Review, ...]:
    """The reviews of a pull; the number of each is its place from 1."""
    return thread.change.reviews if thread.change else ()


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
    """The merged pull; merging twice at the same head is merging once. Raises ForgeRefused. Needs the desk's lock."""
    known = branches.tips(git)
    thread = branches.settle_thread(git, thread, known)
    _require_mergeable(thread, order, known)
    assert thread.change
    if thread.state != "merged":
        thread = _merge(store, git, thread, thread.change, order, known, after(thread, now))
    store.write(thread)
    return thread


def _require_mergeable(thread: LocalThread, order: MergeRequest, known: Mapping[str, str]) -> None:
    assert thread.change
    if thread.state == "closed":
        raise ForgeRefused(f"pull #{thread.number} is closed")
    if branches.head_of(thread, known) != order.head_sha:
        raise ForgeRefused("approval-head")
    if thread.change.base not in known:
        raise ForgeRefused(f"there is no branch {thread.change.base}")
    if order.method not in ("squash", "merge"):
        raise ForgeRefused(f"merge method {order.method} is not supported", "use squash or merge")


def _merge(
    store: ThreadStore,
    git: Git,
    thread: LocalThread,
    change: PullChange,
    order: MergeRequest,
    known: Mapping[str, str],
    at: datetime,
) -> LocalThread:
    base = known[change.base]
    trees = branches.of_branch(git, change.base)
    if change.merging:
        branches.take_back(trees, base, change.merging)
    commit = _commit(git, base, order, at)
    noted = replace(change, merging=commit, head_sha=order.head_sha, merged_by=order.actor)
    store.write(replace(thread, change=noted))
    try:
        _move(git, trees, change.base, base, commit)
    except ForgeRefused:
        store.write(replace(thread, change=replace(change, merging="")))
        raise
    return mark_merged(thread, order.head_sha, commit, order.actor, at)


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
    # Checked out, such a file would be an issue or approval that nobody gave.
    if _is_ours(git, tree) != _is_ours(git, base):
        raise ForgeRefused(
            f"the pull changes files below {OURS}/, where this forge lives", "take them out of the branch"
        )


def _is_ours(git: Git, tree: str) -> set[tuple[str, str]]:
    return {(e.path, e.oid) for e in git.listing(tree, recursive=False) if e.path.casefold() == OURS}
