"""Each kind of effect on GitHub: how it is found again, and how it is done.

Finding looks into lists, all pages, by our own author id. A definite no is `Refused`; an answer that does not tell
whether it happened is `Doubt`. Labels are made with our colours, given, taken off, and owed to a pull where they were
refused at first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, singledispatchmethod
from itertools import chain

from ralph_mission.adapters.forges.commits import ForgeRefused, commit, mark
from ralph_mission.adapters.forges.github import merging, reading
from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent, Doubt
from ralph_mission.adapters.forges.github.people import Heads, People
from ralph_mission.adapters.forges.github.reading import CommentWire, IssueWire, PullWire, ReviewWire, canonical, shape
from ralph_mission.adapters.forges.github.threads import Threads, label_path
from ralph_mission.adapters.git.remote import HEADS, Denied
from ralph_mission.errors import Missing, UserError
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
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import dataclass

Wire = IssueWire | PullWire | CommentWire | ReviewWire
COMMENTED = "COMMENTED"
"""The state of a review that decides nothing."""


@dataclass(frozen=True)
class GitHubEffects:
    """The verbs of the bot on one repository."""

    threads: Threads
    heads: Heads
    people: People
    default: Callable[[], Branch]

    @property
    def api(self) -> Api:
        """Where it is sent."""
        return self.threads.api

    @property
    def labelling(self) -> Labelling:
        """Its labels."""
        return Labelling(self.threads, self.people)

    # --- found

    @singledispatchmethod
    def found(self, effect: Effect) -> Receipt | None:
        """What of `effect` is there already: an adopted receipt. Raises ForgeRefused, UserError."""
        raise ValueError(f"unknown effect {effect!r}")

    @found.register
    def _(self, effect: OpenIssue) -> Receipt | None:
        for wire in chain(self.threads.open().values(), self.threads.by(self.people.us())):
            if wire.pull_request is None and self._is_ours(wire) and mark(wire.body or "") == effect.key:
                return _adopted_receipt(effect, wire)
        return None

    @found.register
    def _(self, effect: Comment) -> Receipt | None:
        for wire in self.threads.comments(_number(effect)):
            if self._is_ours(wire) and mark(wire.body or "") == effect.key:
                return _adopted_receipt(effect, wire)
        return None

    @found.register
    def _(self, effect: PushBranch) -> Receipt | None:
        here = self.heads.remote.head(effect.branch)
        if not here or here != self._commit(effect):
            return None
        return Receipt(effect.key, "adopted", sha=here, url=f"{self.api.place.page}/tree/{effect.branch}")

    @found.register
    def _(self, effect: OpenPull) -> Receipt | None:
        for wire in self.threads.pulls_on(effect.head):
            if self._is_ours(wire):
                self.labelling.repair(wire, effect.labels)
                return _adopted_receipt(effect, wire)
        return None

    @found.register
    def _(self, effect: MergePull) -> Receipt | None:
        wire = self.threads.pull(effect.pull, fresh=True)
        if wire.status != "merged" or wire.head.sha != effect.head_sha:
            return None
        return replace(_adopted_receipt(effect, wire), sha=wire.merge_commit_sha or "")

    @found.register
    def _(self, effect: CloseIssue) -> Receipt | None:
        wire = self._issue(effect.issue)
        return _adopted_receipt(effect, wire) if wire.state == "closed" else None

    @found.register
    def _(self, effect: ClosePull) -> Receipt | None:
        wire = self.threads.pull(effect.pull, fresh=True)
        return _adopted_receipt(effect, wire) if wire.status == "closed" else None

    @found.register
    def _(self, effect: EditComment) -> Receipt | None:
        wire = self._text(effect)
        return _adopted_receipt(effect, wire) if self._is_ours(wire) and (wire.body or "") == effect.body else None

    @found.register
    def _(self, effect: Label) -> Receipt | None:
        wire = self.threads.thread(_number(effect), fresh=True)
        have = reading.names(wire.labels)
        missing = set(effect.add) - have or have & set(effect.remove) or self._assignable(effect, wire)
        return None if missing else _adopted_receipt(effect, wire)

    @found.register
    def _(self, effect: PostReview) -> Receipt | None:
        for wire in self.threads.reviews(effect.pull):
            if wire.state == COMMENTED and self._is_ours(wire) and mark(wire.body or "") == effect.key:
                return _adopted_receipt(effect, wire)
        return None

    @found.register
    def _(self, effect: EditReview) -> Receipt | None:
        wire = self._review(effect)
        return _adopted_receipt(effect, wire) if self._is_ours(wire) and (wire.body or "") == effect.body else None

    # --- done

    @singledispatchmethod
    def do(self, effect: Effect) -> Receipt:
        """Do what is not there yet. Raises ForgeRefused, Doubt, UserError."""
        raise ValueError(f"unknown effect {effect!r}")

    @do.register
    def _(self, effect: OpenIssue) -> Receipt:
        self.labelling.make(effect.labels)
        order = {"title": effect.title, "body": effect.body, "labels": list(effect.labels)}
        return _done_receipt(effect, _read_reply(IssueWire, self.api.send("POST", "/issues", order)))

    @do.register
    def _(self, effect: Comment) -> Receipt:
        path = f"/issues/{_number(effect)}/comments"
        return _done_receipt(effect, _read_reply(CommentWire, self.api.send("POST", path, {"body": effect.body})))

    @do.register
    def _(self, effect: PushBranch) -> Receipt:
        sha = self._commit(effect)
        try:
            moved = self.heads.remote.push(effect.branch, sha, effect.onto)
        except Denied as denied:
            reason = FailureReason.NEEDS_PERSON if denied.lasting else None
            raise ForgeRefused(denied.what, denied.setting, reason) from None
        except UserError as problem:
            raise Doubt(problem.what) from None
        if not moved:
            raise ForgeRefused("foreign-commit")
        return Receipt(effect.key, "done", sha=sha, url=f"{self.api.place.page}/tree/{effect.branch}")

    @do.register
    def _(self, effect: OpenPull) -> Receipt:
        for other in self.threads.pulls_on(effect.head):
            raise ForgeRefused(f"pull #{other.number} by {reading.actor(other.user).login} already has {effect.head}")
        order = {"title": effect.title, "body": effect.body, "head": effect.head, "base": effect.base}
        try:
            wire = _read_reply(PullWire, self.api.send("POST", "/pulls", order))
        except ForgeRefused:
            if found := self.found(effect):  # a list may have been late
                return found
            raise
        self.labelling.repair(wire, effect.labels)
        return _done_receipt(effect, wire)

    @do.register
    def _(self, effect: MergePull) -> Receipt:
        sha = merging.merge(self.threads, effect, partial(self.people.may_write, fresh=True))
        url = f"{self.api.place.page}/pull/{effect.pull}"
        return Receipt(effect.key, "done", effect.pull, url, sha)

    @do.register
    def _(self, effect: CloseIssue) -> Receipt:
        order = {"state": "closed", "state_reason": effect.reason}
        return _done_receipt(effect, _read_reply(IssueWire, self.api.send("PATCH", f"/issues/{effect.issue}", order)))

    @do.register
    def _(self, effect: ClosePull) -> Receipt:
        if self.threads.pull(effect.pull).status == "merged":
            raise ForgeRefused(f"pull #{effect.pull} is merged")
        return _done_receipt(
            effect, _read_reply(PullWire, self.api.send("PATCH", f"/pulls/{effect.pull}", {"state": "closed"}))
        )

    @do.register
    def _(self, effect: EditComment) -> Receipt:
        if not self._is_ours(self._text(effect)):
            raise ForgeRefused(f"comment {effect.comment} of #{effect.issue} is not ours to edit")
        path, kind = _place(effect)
        return _done_receipt(effect, _read_reply(kind, self.api.send("PATCH", path, {"body": effect.body})))

    @do.register
    def _(self, effect: Label) -> Receipt:
        wire = self.threads.thread(_number(effect))
        have = reading.names(wire.labels)
        for name in (name for name in effect.remove if name in have):
            self.labelling.take(wire.number, name)
        self.labelling.give(wire.number, [name for name in effect.add if name not in have])
        if people := self._assignable(effect, wire):
            self.api.send("POST", f"/issues/{wire.number}/assignees", {"assignees": people})
        return _done_receipt(effect, wire)

    @do.register
    def _(self, effect: PostReview) -> Receipt:
        order = {"event": "COMMENT", "body": effect.body, "commit_id": effect.head_sha}
        return _done_receipt(
            effect, _read_reply(ReviewWire, self.api.send("POST", f"/pulls/{effect.pull}/reviews", order))
        )

    @do.register
    def _(self, effect: EditReview) -> Receipt:
        if not self._is_ours(self._review(effect)):
            raise ForgeRefused(f"review {effect.review} of #{effect.pull} is not ours to edit")
        return _done_receipt(
            effect, _read_reply(ReviewWire, self.api.send("PUT", _review_path(effect), {"body": effect.body}))
        )

    # --- helpers

    def _is_ours(self, wire: Wire) -> bool:
        return reading.actor(wire.user).id == self.people.us().id

    def _issue(self, number: int) -> IssueWire:
        wire = self.threads.thread(number, fresh=True)
        if wire.pull_request is not None:
            raise Missing(f"there is no issue #{number}: it is a pull", "close it as a pull")
        return wire

    def _commit(self, effect: PushBranch) -> str:
        wanted = {HEADS + self.default().name: effect.base_sha}
        if effect.onto:
            wanted[HEADS + effect.branch] = effect.onto
        git = self.heads.git
        self.heads.fetch({ref: oid for ref, oid in wanted.items() if git.resolve(oid) != oid})
        return commit(git, effect, self.default().name)

    def _text(self, effect: EditComment) -> IssueWire | CommentWire:
        """What is to be edited, as it stands now."""
        path, kind = _place(effect)
        wire = reading.read(kind, self.threads.one(path, f"comment {effect.comment} of #{effect.issue}", fresh=True))
        if isinstance(wire, CommentWire) and not wire.issue_url.endswith(f"/issues/{effect.issue}"):
            raise ForgeRefused(f"comment {effect.comment} is not one of #{effect.issue}")
        return wire

    def _review(self, effect: EditReview) -> ReviewWire:
        """What is to be edited, as it stands now."""
        what = f"review {effect.review} of #{effect.pull}"
        return reading.read(ReviewWire, self.threads.one(_review_path(effect), what, fresh=True))

    def _assignable(self, effect: Label, wire: IssueWire) -> list[str]:
        """Those to be assigned who are not yet, and can be; nobody else is anybody's mistake here."""
        have = {user.login.casefold() for user in wire.assignees or ()}
        return [login for login in effect.assign if login.casefold() not in have and self._can_be_assigned(login)]

    def _can_be_assigned(self, login: str) -> bool:
        try:
            self.api.get(f"/assignees/{login}")
        except Absent:
            return False
        return True


def _number(effect: Comment | Label) -> int:
    assert isinstance(effect.issue, int)
    return effect.issue


def _place(effect: EditComment) -> tuple[str, type[IssueWire] | type[CommentWire]]:
    if effect.comment:
        return f"/issues/comments/{effect.comment}", CommentWire
    return f"/issues/{effect.issue}", IssueWire


def _review_path(effect: EditReview) -> str:
    return f"/pulls/{effect.pull}/reviews/{effect.review}"


def _read_reply(kind: type[reading.T], body: object) -> reading.T:
    """What a mutation answered with. It was done, whatever it answered; so what cannot be read is Doubt."""
    try:
        return reading.read(kind, body)
    except UserError as problem:
        raise Doubt(problem.what) from None


def _adopted_receipt(effect: Effect, wire: Wire) -> Receipt:
    return replace(_done_receipt(effect, wire), status="adopted")


def _done_receipt(effect: Effect, wire: Wire) -> Receipt:
    """A receipt. The number of a comment or review is its own, of the opening text 0."""
    if isinstance(wire, CommentWire | ReviewWire):
        return Receipt(effect.key, "done", wire.id, wire.html_url)
    return Receipt(effect.key, "done", 0 if isinstance(effect, EditComment) else wire.number, wire.html_url)


OWED = "owed labels"  # where they are kept: the names by the number of the pull, as a string
MOST = 10  # pulls that one cycle tries again: there are never more than a few
PREFIX = "ralph:"  # what begins every label that is ever owed; all others are for people to give


@dataclass(frozen=True, slots=True)
class Labelling:
    """The labels of one repository."""

    threads: Threads
    people: People

    def give(self, number: int, names: Iterable[str]) -> None:
        """Set labels on an issue or pull. Raises ForgeRefused, Doubt."""
        if wanted := list(names):
            self.make(wanted)
            self.threads.api.send("POST", f"/issues/{number}/labels", {"labels": wanted})

    def take(self, number: int, name: str) -> None:
        """Take a label off that is perhaps gone already. Raises ForgeRefused, Doubt."""
        try:
            self.threads.api.send("DELETE", label_path(number, name))
        except ForgeRefused:
            if name in reading.names(self.threads.thread(number, fresh=True).labels):
                raise

    def make(self, names: Iterable[str]) -> None:
        """Labels with our colours, where nobody has made them. Certain to have sent nothing else when it fails."""
        raw = self.threads.once("labels", lambda: self.threads.api.all("/labels?per_page=100"))
        known = reading.names(reading.read(tuple[reading.Named, ...], raw))
        for name in (name for name in names if canonical(name) not in known):
            self._make(name)

    def _make(self, name: str) -> None:
        try:
            self.threads.api.send("POST", "/labels", shape(name))
        except Doubt as doubt:
            raise ForgeRefused(f"the label could not be made ({doubt})") from None
        except ForgeRefused as no:
            if "already_exists" not in no.what:
                raise

    # --- the labels of a pull come in a second request, and say nothing that the pull does not

    def repair(self, wire: PullWire, names: Iterable[str]) -> None:
        """Give a pull of ours the labels that it lacks; what is refused is told, owed, and tried again by `pay`."""
        missing = [name for name in names if name not in reading.names(wire.labels)]
        if self.threads.api.staged:
            return
        try:
            self.give(wire.number, missing if wire.state == "open" else ())
            self._owe(wire.number, ())
        except (ForgeRefused, Doubt, UserError) as no:  # the pull itself is there, whatever becomes of its labels
            self.threads.api.note(f"pull #{wire.number} could not be labelled: {no}")
            self._owe(wire.number, missing)

    def pay(self) -> None:
        """Try once more to give what is owed. Never an error: no deed has to wait for a label."""
        for number, names in list(self._debts())[:MOST]:
            try:
                wire = self.threads.pull(number, fresh=True)
                self.repair(wire, names if reading.actor(wire.user).id == self.people.us().id else ())
            except Missing:
                self._owe(number, ())
            except UserError as problem:
                self.threads.api.note(f"pull #{number} could not be labelled: {problem.what}")

    def _debts(self) -> Iterator[tuple[int, list[str]]]:
        """What is owed, as far as it could be of our writing: what is kept in a clone is no authority."""
        kept = self.threads.api.kept.get(OWED)
        for number, names in kept.items() if isinstance(kept, Mapping) else ():
            if re.fullmatch(r"[0-9]{1,9}", number) and isinstance(names, list):
                yield int(number), [name for name in names if isinstance(name, str) and name.startswith(PREFIX)]

    def _owe(self, number: int, names: Iterable[str]) -> None:
        before = dict(self._debts())
        after = {other: kept for other, kept in before.items() if other != number}
        if owed := [name for name in names if name.startswith(PREFIX)]:
            after[number] = owed
        if after != before:
            self.threads.api.kept.put(OWED, {str(other): kept for other, kept in after.items()})
