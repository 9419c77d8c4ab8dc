"""GitHub as one frozen value: threads, branches, what its lists do not show yet. Actions give another value.

Every commit's id says which findings it mends, one bit each, so that nothing but the value has to be remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from ralph_mission.adapters.forges import mark
from ralph_mission.errors import Missing
from ralph_mission.mission.model.forge import Actor, Branch, Issue, LabelEvent, Pull, Review, ThreadComment
from ralph_mission.mission.model.ledger import Anchor
from tests.mission.build import BOT, MARA, NOW

AFTER = NOW + timedelta(minutes=30)  # when something is changed that was made at `NOW`
LATER = NOW + timedelta(hours=1)  # when people look at what we did
REMARKS = 1000  # their numbers begin above those of threads
T = TypeVar("T", Issue, Pull)


def commit_of(mask: int, *, branch: bool = False) -> str:
    """The commit in which the findings of `mask` are mended, on the default branch or on one of ours."""
    return f"{'c' if branch else 'b'}{mask:039x}"


def mask_of(sha: str) -> int:
    """The findings that are mended in a commit."""
    return int(sha[1:], 16)


@dataclass(frozen=True, slots=True)
class Server:
    """What the forge holds. `hidden`: threads and remarks that no list shows yet."""

    issues: tuple[Issue, ...] = ()
    pulls: tuple[Pull, ...] = ()
    branches: tuple[tuple[str, str], ...] = (("main", commit_of(0)),)
    hidden: frozenset[int] = frozenset()
    anchor: Anchor | None = None

    # --- asked

    @property
    def default(self) -> Branch:
        return Branch("main", self.branch("main"))

    def branch(self, name: str) -> str:
        return dict(self.branches).get(name, "")

    def listed(self, things: Iterable[T], state: str) -> tuple[T, ...]:
        """Those in a state that a list shows, without details, lowest number first."""
        wanted = {"open": ("open",), "closed": ("closed", "merged"), "all": ("open", "closed", "merged")}[state]
        shown = (one for one in things if one.state in wanted and one.number not in self.hidden)
        return tuple(_plain(one) for one in sorted(shown, key=lambda one: one.number))

    def issue(self, number: int) -> Issue:
        """Raises Missing."""
        return self._whole(_numbered(self.issues, number, "issue"))

    def pull(self, number: int) -> Pull:
        """Raises Missing."""
        return self._whole(_numbered(self.pulls, number, "pull"))

    def thread(self, number: int) -> Issue | Pull:
        """An issue or a pull. Raises Missing."""
        return _numbered((*self.issues, *self.pulls), number, "thread")

    def _whole(self, one: T) -> T:
        return replace(one, remarks=tuple(r for r in one.remarks if r.id not in self.hidden))

    @property
    def keys(self) -> list[str]:
        """The keys of everything of ours: what is there twice was sent twice. A pull goes by its branch too."""
        remarks = [remark for thread in (*self.issues, *self.pulls) for remark in thread.remarks]
        texts = [("issue", i.body) for i in self.issues] + [("pull", p.body) for p in self.pulls]
        texts += [("remark", remark.body) for remark in remarks]
        return [f"{what} {key}" for what, body in texts if (key := mark(body))] + [f"head {p.head}" for p in self.pulls]

    # --- changed

    @property
    def next_number(self) -> int:
        return 1 + len(self.issues) + len(self.pulls)

    @property
    def next_remark(self) -> int:
        return REMARKS + sum(len(thread.remarks) for thread in (*self.issues, *self.pulls))

    def with_issue(self, one: Issue) -> Server:
        return replace(self, issues=_put(self.issues, one))

    def with_pull(self, one: Pull) -> Server:
        return replace(self, pulls=_put(self.pulls, one))

    def with_branch(self, name: str, sha: str) -> Server:
        return replace(self, branches=tuple(sorted({**dict(self.branches), name: sha}.items())))

    def without_branch(self, name: str, sha: str) -> Server:
        """Without a branch, if it is at this commit."""
        return replace(self, branches=tuple(one for one in self.branches if one != (name, sha)))

    def with_thread(self, number: int, **changes: Any) -> Server:
        one = replace(self.thread(number), **changes)
        return self.with_issue(one) if isinstance(one, Issue) else self.with_pull(one)

    def opened_issue(self, title: str, body: str, labels: Iterable[str], author: Actor = BOT) -> Server:
        events = tuple(LabelEvent(label, author, NOW) for label in labels)
        number = self.next_number
        made = Issue(number, title, body, "open", author, NOW, NOW, f"issues/{number}", frozenset(labels))
        return self.with_issue(replace(made, events=events))

    def opened_pull(self, title: str, body: str, head: str, base: str, labels: Iterable[str]) -> Server:
        number, sha = self.next_number, self.branch(head)
        made = Pull(number, title, body, "open", BOT, head, sha, base, NOW, NOW, f"pulls/{number}", frozenset(labels))
        return self.with_pull(replace(made, commits=(sha,), own=frozenset({sha})))

    def remarked(self, number: int, body: str, author: Actor = BOT) -> Server:
        at = NOW if author == BOT else LATER
        said = ThreadComment(self.next_remark, author, body, at, at)
        return self.with_thread(number, remarks=(*self.thread(number).remarks, said))

    def labelled(self, number: int, add: Iterable[str], remove: Iterable[str], by: Actor = BOT) -> Server:
        thread, at = self.thread(number), NOW if by == BOT else LATER
        come = sorted(set(add) - thread.labels)
        go = sorted(set(remove) & thread.labels)
        events = (*(LabelEvent(name, by, at) for name in come), *(LabelEvent(name, by, at, False) for name in go))
        labels = thread.labels | set(come) - set(go)
        return self.with_thread(number, labels=frozenset(labels - set(go)), events=(*thread.events, *events))

    def closed_issue(self, number: int, reason: str, by: Actor = BOT) -> Server:
        return self.with_thread(number, state="closed", state_reason=reason, closed_by=by, closed_at=LATER)

    def closed_pull(self, number: int, by: Actor = BOT) -> Server:
        return self.with_thread(number, state="closed", closed_by=by, closed_at=LATER)

    def merged(self, number: int, by: Actor = BOT) -> Server:
        pull = self.pull(number)
        sha = commit_of(mask_of(self.branch("main")) | mask_of(pull.head_sha))
        done = replace(pull, state="merged", merged_sha=sha, merged_by=by, closed_by=by, closed_at=LATER)
        return self.with_pull(done).with_branch("main", sha)

    def reviewed(self, number: int, state: str, by: Actor = MARA) -> Server:
        pull = self.pull(number)
        said = Review(by, state, "", pull.head_sha, LATER, len(pull.reviews) + 1)
        return self.with_pull(replace(pull, reviews=(*pull.reviews, said)))


def _plain(one: T) -> T:
    bare: T = replace(one, remarks=(), events=())
    return replace(bare, reviews=(), commits=(), own=frozenset()) if isinstance(bare, Pull) else bare


def _numbered(things: Iterable[T], number: int, what: str) -> T:
    for one in things:
        if one.number == number:
            return one
    raise Missing(f"there is no {what} #{number}", "it was deleted")


def _put(things: tuple[T, ...], one: T) -> tuple[T, ...]:
    return tuple(sorted((*(other for other in things if other.number != one.number), one), key=lambda it: it.number))
