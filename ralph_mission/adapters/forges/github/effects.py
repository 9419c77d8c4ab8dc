"""Each kind of effect on GitHub: how to find it again, and how to do it.

Effects are found in lists, all pages, by our author id. A definite refusal is `ForgeRefused`; an answer that leaves
open whether it happened is `Doubt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain

from ralph_mission.adapters.forges import EffectVerbs, ForgeRefused, mark, refused_push
from ralph_mission.adapters.forges.commits import commit
from ralph_mission.adapters.forges.github import merging, reading
from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import PULLS_ALLOWED, Absent, Declined, Doubt
from ralph_mission.adapters.forges.github.owed import FinishedBranches, Labelling
from ralph_mission.adapters.forges.github.people import Heads, People
from ralph_mission.adapters.forges.github.reading import CommentWire, IssueWire, PullWire, ReviewWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.adapters.git.remote import HEADS, Denied
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle.approval import APPROVAL_RULES
from ralph_mission.mission.model import effects
from ralph_mission.mission.model.effects import Effect, Receipt
from ralph_mission.mission.model.forge import Branch, Tick
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import dataclass

Wire = IssueWire | PullWire | CommentWire | ReviewWire
ACTIONS = "github-actions[bot]"
ALLOWED = "pull requests may be opened"
PULL = "mutation($input: CreatePullRequestInput!) { createPullRequest(input: $input) { pullRequest { number } } }"
NEWEST = 10  # pull requests to read: more than open while GitHub's lists are late, seconds to minutes
NOTHING_TO_MERGE = "No commits between"
"""GitHub's answer to a pull request of a branch onto itself, where pull requests may be opened."""
COMMENTED = "COMMENTED"
"""The state of a review without a decision."""


@dataclass(frozen=True)
class GitHubEffects(EffectVerbs):
    """The bot's effects on a repository."""

    threads: Threads
    heads: Heads
    people: People
    default: Callable[[], Branch]
    ticked: Callable[[], tuple[Tick, ...]]
    required_checks_only: bool = False

    @property
    def api(self) -> Api:
        """The API it uses."""
        return self.threads.api

    @property
    def labelling(self) -> Labelling:
        """Its labels."""
        return Labelling(self.threads, self.people)

    @property
    def branches(self) -> FinishedBranches:
        """Our branches of finished pull requests."""
        return FinishedBranches(self.threads, self.people, self.heads.remote)

    # --- issues and comments

    def find_open_issue(self, effect: effects.OpenIssue) -> Receipt | None:
        wires = chain(self.threads.open().values(), self.threads.by(self.people.us()))
        return self._find_ours(effect, (wire for wire in wires if wire.pull_request is None))

    def do_open_issue(self, effect: effects.OpenIssue) -> Receipt:
        self.labelling.make(effect.labels)
        order = {"title": effect.title, "body": effect.body, "labels": list(effect.labels)}
        return self._send(effect, IssueWire, "POST", "/issues", order)

    def find_close_issue(self, effect: effects.CloseIssue) -> Receipt | None:
        wire = self.threads.thread(effect.issue, fresh=True)
        if wire.pull_request is not None:
            raise Missing(f"there is no issue #{effect.issue}: it is a pull request", "close it as a pull request")
        return _receipt(effect, wire) if wire.state == "closed" else None

    def do_close_issue(self, effect: effects.CloseIssue) -> Receipt:
        order = {"state": "closed", "state_reason": effect.reason}
        return self._send(effect, IssueWire, "PATCH", f"/issues/{effect.issue}", order)

    def find_comment(self, effect: effects.Comment) -> Receipt | None:
        return self._find_ours(effect, self.threads.comments(_number(effect)))

    def do_comment(self, effect: effects.Comment) -> Receipt:
        return self._send(effect, CommentWire, "POST", f"/issues/{_number(effect)}/comments", {"body": effect.body})

    def find_edit_comment(self, effect: effects.EditComment | effects.EditReview) -> Receipt | None:
        wire = self._text(effect)
        return _receipt(effect, wire) if self.people.owns(wire) and (wire.body or "") == effect.body else None

    def do_edit_comment(self, effect: effects.EditComment | effects.EditReview) -> Receipt:
        what, method, path, kind = _place(effect)
        if not self.people.owns(self._text(effect)):
            raise ForgeRefused(f"{what} is not ours to edit")
        return self._send(effect, kind, method, path, {"body": effect.body})

    find_edit_review, do_edit_review = find_edit_comment, do_edit_comment

    def find_label(self, effect: effects.Label) -> Receipt | None:
        wire = self.threads.thread(_number(effect), fresh=True)
        have = reading.names(wire.labels)
        missing = set(effect.add) - have or have & set(effect.remove) or self._assignable(effect, wire)
        return None if missing else _receipt(effect, wire)

    def do_label(self, effect: effects.Label) -> Receipt:
        wire = self.threads.thread(_number(effect))
        have = reading.names(wire.labels)
        for name in (name for name in effect.remove if name in have):
            self.labelling.take(wire.number, name)
        self.labelling.give(wire.number, [name for name in effect.add if name not in have])
        if people := self._assignable(effect, wire):
            self.api.send("POST", f"/issues/{wire.number}/assignees", {"assignees": people})
        return _receipt(effect, wire)

    # --- branches and pulls

    def find_push_branch(self, effect: effects.PushBranch) -> Receipt | None:
        here = self.heads.remote.head(effect.branch)
        if not here:
            return None
        if here == effect.base_sha and not effect.onto:  # a run ended before it could commit there
            if not self.api.staged:
                with suppress(Denied, UserError):
                    self.heads.remote.delete(effect.branch, here)
            return None
        intended = self._commit(effect)
        if here != intended:
            self.heads.fetch({HEADS + effect.branch: here})
        return self._pushed_receipt(effect, here) if self.heads.git.says_the_same(here, intended) else None

    def do_push_branch(self, effect: effects.PushBranch) -> Receipt:
        if not effect.onto:
            self._require_pulls_allowed()
        try:
            sha = self.heads.remote.push(effect.branch, self._commit(effect), effect.onto)
        except Denied as denied:
            reason = FailureReason.NEEDS_PERSON if denied.lasting else None
            raise ForgeRefused(denied.what, denied.setting, reason) from None
        except UserError as problem:
            raise Doubt(problem.what) from None
        if not sha:
            raise refused_push(effect)
        return self._pushed_receipt(effect, sha)

    def find_open_pull(self, effect: effects.OpenPull) -> Receipt | None:
        for wire in self.threads.pulls_on(effect.head):
            if self.people.owns(wire):
                self.labelling.repair(wire, effect.labels)
                return _receipt(effect, wire)
        return None

    def find_unlisted_pull(self, effect: effects.OpenPull) -> Receipt | None:
        """One of the newest pull requests that is this one, by git's refs, which unlike GitHub's lists are never late.

        A person may have closed it meanwhile, so GitHub would take a second one. Raises UserError.
        """
        for number in self.heads.remote.newest_pulls(NEWEST):
            with suppress(Missing):
                wire = self.threads.pull(number, fresh=True)
                if wire.head.ref == effect.head and wire.ours and self.people.owns(wire):
                    self.labelling.repair(wire, effect.labels)
                    return replace(_receipt(effect, wire), status="adopted")
        return None

    def do_open_pull(self, effect: effects.OpenPull) -> Receipt:
        for other in self.threads.pulls_on(effect.head):
            raise ForgeRefused(
                f"pull request #{other.number} by {reading.actor(other.user).login} already has {effect.head}"
            )
        order = {"title": effect.title, "body": effect.body, "head": effect.head, "base": effect.base}
        try:
            wire = _read_reply(PullWire, self.api.send("POST", "/pulls", order))
        except ForgeRefused as refused:
            if found := self.find(effect):  # a list may have been late
                return found
            if refused.what == PULLS_ALLOWED:  # by now
                self.api.read_cache.put(ALLOWED, False)
                raise self._with_page(refused) from None
            raise
        self.labelling.repair(wire, effect.labels)
        return _receipt(effect, wire)

    def find_merge_pull(self, effect: effects.MergePull) -> Receipt | None:
        wire = self.threads.pull(effect.pull, fresh=True)
        if wire.status != "merged" or wire.head.sha != effect.head_sha:
            return None
        self.branches.drop(wire, effect.head_sha)
        return replace(_receipt(effect, wire), sha=wire.merge_commit_sha or "")

    def do_merge_pull(self, effect: effects.MergePull) -> Receipt:
        may_approve = partial(self.people.may_write, fresh=True)
        try:
            by_workflow = self.people.us().login == ACTIONS
            sha = merging.merge(self.threads, effect, may_approve, self.ticked, self.required_checks_only, by_workflow)
        except ForgeRefused as refused:  # the queue would not ask a person, nor see that the approval was withdrawn
            withdrawn = refused.reason is FailureReason.NEEDS_PERSON or refused.what in APPROVAL_RULES
            if withdrawn and self._may_be_queued(effect.pull):
                merging.leave_queue(self.threads, effect.pull)
            raise
        self.branches.drop(self.threads.pull(effect.pull), effect.head_sha)
        return self._pull_receipt(effect, sha)

    def find_leave_queue(self, effect: effects.LeaveQueue) -> Receipt | None:
        return None if self._queued(effect.pull) else self._pull_receipt(effect)

    def _queued(self, pull: int) -> bool:
        """Whether a pull request is in the merge queue because we added it."""
        return merging.queued_by(self.threads, pull) == self.people.us().id

    def _may_be_queued(self, pull: int) -> bool:
        """The same; no where that cannot be known: what refuses a merge is reported all the same."""
        try:
            return self._queued(pull)
        except UserError:
            return False

    def do_leave_queue(self, effect: effects.LeaveQueue) -> Receipt:
        merging.leave_queue(self.threads, effect.pull)
        return self._pull_receipt(effect)

    def find_close_pull(self, effect: effects.ClosePull) -> Receipt | None:
        wire = self.threads.pull(effect.pull, fresh=True)
        same_head = effect.head_sha and self.heads.remote.head(wire.head.ref) == effect.head_sha
        over = wire.status == "closed" or (wire.status == "merged" and bool(effect.head_sha))
        return _receipt(effect, wire) if over and not same_head else None

    def do_close_pull(self, effect: effects.ClosePull) -> Receipt:
        wire = self.threads.pull(effect.pull)
        if wire.status == "merged" and not effect.head_sha:
            raise ForgeRefused(f"pull request #{effect.pull} is merged")
        order = {"state": "closed"}
        closed = self.api.send("PATCH", f"/pulls/{effect.pull}", order) if wire.status == "open" else None
        self.branches.drop(wire, effect.head_sha)
        return _receipt(effect, _read_reply(PullWire, closed) if closed else wire)

    def find_review(self, effect: effects.PostReview) -> Receipt | None:
        return self._find_ours(effect, (r for r in self.threads.reviews(effect.pull) if r.state == COMMENTED))

    def do_review(self, effect: effects.PostReview) -> Receipt:
        order: dict[str, object] = {"event": "COMMENT", "body": effect.body, "commit_id": effect.head_sha}
        if effect.lines:
            order["comments"] = [
                {"path": one.path, "line": one.line, "side": "RIGHT", "body": one.body} for one in effect.lines
            ]
        return self._send(effect, ReviewWire, "POST", f"/pulls/{effect.pull}/reviews", order)

    # --- helpers

    def _require_pulls_allowed(self) -> None:
        """Refuse a branch if no pull request may be opened: a setting, off by default, restricts the token of Actions.

        A job's token cannot read it. So an impossible pull request, of the default branch onto itself, is requested for
        GitHub's answer; once it is known to be allowed, not again until one is refused.
        """
        if self.people.us().login != ACTIONS or self.api.read_cache.get(ALLOWED) or self.api.staged:
            return
        name = self.default().name
        order = {"repositoryId": self.people.repository().get("id"), "baseRefName": name, "headRefName": name}
        question = {"input": {**order, "title": "May pull requests be opened here?"}}
        for _ in range(2):  # it changes nothing, so it is asked again if the answer was lost
            try:
                self.api.change(PULL, question)
            except Declined as answer:
                if answer.what == PULLS_ALLOWED:
                    raise self._with_page(answer) from None
                if answer.reason is FailureReason.NEEDS_PERSON:
                    raise
                if NOTHING_TO_MERGE not in answer.what:  # it says nothing of the setting
                    return
            except Doubt:
                continue
            except ForgeRefused as refused:
                if refused.reason is FailureReason.NOT_ATTEMPTED:  # nor could the pull request be opened now
                    raise
                continue
            self.api.read_cache.put(ALLOWED, True)
            return

    def _with_page(self, refused: ForgeRefused) -> ForgeRefused:
        return ForgeRefused(f"{refused.what} ({self.api.place.page}/settings/actions)", reason=refused.reason)

    def _send(self, effect: Effect, kind: type[Wire], method: str, path: str, order: object) -> Receipt:
        return _receipt(effect, _read_reply(kind, self.api.send(method, path, order)))

    def _find_ours(
        self, effect: effects.OpenIssue | effects.Comment | effects.PostReview, wires: Iterable[Wire]
    ) -> Receipt | None:
        """The first of `wires` that is ours and has the effect's marker."""
        for wire in wires:
            if self.people.owns(wire) and mark(wire.body or "") == effect.key:
                return _receipt(effect, wire)
        return None

    def _commit(self, effect: effects.PushBranch) -> str:
        refs = {HEADS + self.default().name: effect.base_sha}
        if effect.onto:
            refs[HEADS + effect.branch] = effect.onto
        git = self.heads.git
        self.heads.fetch({ref: oid for ref, oid in refs.items() if git.resolve(oid) != oid})
        return commit(git, effect, self.default().name, self.people.author())

    def _pushed_receipt(self, effect: effects.PushBranch, sha: str) -> Receipt:
        return Receipt(effect.key, "done", sha=sha, url=f"{self.api.place.page}/tree/{effect.branch}")

    def _pull_receipt(self, effect: effects.MergePull | effects.LeaveQueue, sha: str = "") -> Receipt:
        return Receipt(effect.key, "done", effect.pull, f"{self.api.place.page}/pull/{effect.pull}", sha)

    def _text(self, effect: effects.EditComment | effects.EditReview) -> Wire:
        """The present text to be edited."""
        what, _, path, kind = _place(effect)
        wire = reading.read(kind, self.threads.one(path, what, fresh=True))
        if isinstance(effect, effects.EditComment) and isinstance(wire, CommentWire) and wire.thread != effect.issue:
            raise ForgeRefused(f"comment {effect.comment} is not one of #{effect.issue}")
        return wire

    def _assignable(self, effect: effects.Label, wire: IssueWire) -> list[str]:
        """People still to be assigned who can be; leaving others out is not an error."""
        have = {user.login.casefold() for user in wire.assignees or ()}
        return [login for login in effect.assign if login.casefold() not in have and self._can_be_assigned(login)]

    def _can_be_assigned(self, login: str) -> bool:
        try:
            self.api.get(f"/assignees/{login}")
        except Absent:
            return False
        return True


def _number(effect: effects.Comment | effects.Label) -> int:
    assert isinstance(effect.issue, int)
    return effect.issue


def _place(effect: effects.EditComment | effects.EditReview) -> tuple[str, str, str, type[Wire]]:
    """What is edited, in words, and how: the method, the path, and the type of GitHub's answer."""
    if isinstance(effect, effects.EditReview):
        path = f"/pulls/{effect.pull}/reviews/{effect.review}"
        return f"review {effect.review} of #{effect.pull}", "PUT", path, ReviewWire
    what = f"comment {effect.comment} of #{effect.issue}"
    if effect.comment:
        return what, "PATCH", f"/issues/comments/{effect.comment}", CommentWire
    return what, "PATCH", f"/issues/{effect.issue}", IssueWire


def _read_reply(kind: type[reading.T], body: object) -> reading.T:
    """The answer to a mutation, which was done in any case: so an unreadable answer is Doubt."""
    try:
        return reading.read(kind, body)
    except UserError as problem:
        raise Doubt(problem.what) from None


def _receipt(effect: Effect, wire: Wire) -> Receipt:
    """A receipt. A comment or review has its own number, the opening text 0."""
    if isinstance(wire, CommentWire | ReviewWire):
        return Receipt(effect.key, "done", wire.id, wire.html_url)
    return Receipt(effect.key, "done", 0 if isinstance(effect, effects.EditComment) else wire.number, wire.html_url)
