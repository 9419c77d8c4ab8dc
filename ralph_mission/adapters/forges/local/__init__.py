"""The Forge port on a folder of Markdown files and the local branches. Never contacts a remote.

People use the same files and the same merge as the bot, under another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

from ralph_mission.adapters.forges import (
    ForgeRefused,
    commits,
    explain_damage,
    failed_receipt,
    find_receipt,
    is_work,
    require_ready,
    utc_now,
)
from ralph_mission.adapters.forges.local import branches, documents, threads
from ralph_mission.adapters.forges.local.documents import BOT, LocalThread, person
from ralph_mission.adapters.forges.local.effects import LocalEffects, MergeRequest, land, may_approve, texts
from ralph_mission.adapters.forges.local.threads import ThreadStore, nothing
from ralph_mission.adapters.git.git import Git, GitError, Identity
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle.checkboxes import hear_in_issue, hear_in_pull
from ralph_mission.mission.model import forge as model
from ralph_mission.mission.model.effects import Effect, Receipt
from ralph_mission.mission.model.ledger import Anchor

HOW = {
    "show_pull": "pr show {} --diff",
    "approve_pull": "pr approve {}",
    "show_issue": "issue show {}",
    "approve_issue": "issue label {} ralph:approved",
    "close_issue": "issue close {}",
    "complete_issue": "issue close {} --reason completed",
    "retry": 'issue comment {} "/ralph retry"',
}
RECENT = timedelta(days=7)  # how long a closed pull request includes its changes, as in `ports.Forge.pulls`


class LocalForge:
    """Issues and pull requests in `.ralph/forge/`, for one repository.

    `spell` spells a command as the person has to type it in their folder.
    """

    def __init__(self, git: Git, now: Callable[[], datetime] = utc_now, spell: Callable[[str], str] = str) -> None:
        self.git, self.now, self.spell = git, now, spell
        self.store = ThreadStore.of(git)
        self.verbs = LocalEffects(self.store, git, now)

    # --- reading

    def identity(self) -> model.Actor:
        """Our own bot account; the same everywhere, never taken from `GIT_*`."""
        return BOT

    def default_branch(self) -> model.Branch:
        """The branch that pull requests are merged into. Raises UserError without commits, or if our branch names are
        blocked."""
        known = branches.tips(self.git)
        branches.refuse_blocked_namespace(known)
        return branches.default_branch(self.git, known)

    def branch(self, name: str) -> str:
        """The commit a local branch points at now; "" if it does not exist."""
        return self.git.resolve(branches.HEADS + name)

    def issues(self, state: str = "open", labels: Sequence[str] = ()) -> tuple[model.Issue, ...]:
        """Issues that have all of `labels`, lowest number first. `state`: open | closed | all."""
        found = self.store.threads("issues", _needless(state))
        return tuple(
            threads.issue(thread, self.store.url(thread), details=False)
            for thread in found
            if state in ("all", thread.state) and set(labels) <= set(thread.labels)
        )

    def issue(self, number: int) -> model.Issue:
        """An issue with its comments and label events. Raises UserError if there is none."""
        thread = self._thread(number, "issue")
        return hear_in_issue(threads.issue(thread, self.store.url(thread), details=True), self.ticks())

    def edits(self, number: int) -> tuple[model.BodyEdit, ...]:
        """None: people who can change a file here have full authority anyway, and authors of edits are not recorded."""
        return ()

    def own_reviews(self, number: int) -> frozenset[int]:
        """All of a pull request's, for the same reason. Raises Missing."""
        return frozenset(review.id for review in self.pull(number).reviews)

    def pulls(self, state: str = "open") -> tuple[model.Pull, ...]:
        """Pull requests, lowest number first, open ones with `touches`. `state`: open | closed (or merged) | all."""
        found = self.store.threads("pulls", _needless(state))
        known = branches.tips(self.git) if found else {}
        settled = (branches.settle_thread(self.git, thread, known) for thread in found)
        states = {"open": ("open",), "closed": ("closed", "merged")}.get(state, ("open", "closed", "merged"))
        return tuple(self._pull(thread, known, details=False) for thread in settled if thread.state in states)

    def pull(self, number: int) -> model.Pull:
        """A pull request with reviews, comments, commits and events. Raises UserError if there is none."""
        known = branches.tips(self.git)
        thread = branches.settle_thread(self.git, self._thread(number, "pull"), known)
        return hear_in_pull(self._pull(thread, known, details=True), self.ticks())

    def is_ready(self, number: int) -> bool:
        """Whether it merges without conflicts; a folder has no checks. Raises Missing."""
        pull = self.pull(number)
        if pull.state != "open":
            return False
        try:
            commits.merged_tree(self.git, self.branch(pull.base), pull.head_sha)
        except ForgeRefused:
            return False
        return True

    def forget_lists(self) -> None:
        """Does nothing: files are read each time."""

    def pulse(self, since: datetime, few: int = 0) -> model.Pulse:
        """Pull requests merged, and issues opened and closed, since then; a folder has no stars."""
        issues = self.store.threads("issues", partial(documents.surely_closed_by, since=since))
        return model.Pulse(
            merged=tuple(pull for pull in self.pulls("closed") if pull.merged_after(since)),
            opened=sum(issue.created_at > since for issue in issues),
            closed=sum(issue.closed_at is not None and issue.closed_at > since for issue in issues),
        )

    def workflow_runs(
        self, workflow: int = 0, event: str = "", ended: str = "", most: int = 100
    ) -> tuple[model.WorkflowRun, ...]:
        """Always empty: a folder runs nothing."""
        return ()

    def failed_jobs(self, run: model.WorkflowRun, log: bool = False) -> tuple[model.FailedJob, ...]:
        """None."""
        return ()

    def test_reports(self, run: model.WorkflowRun) -> tuple[bytes, ...]:
        """None."""
        return ()

    def security_alerts(self, kind: model.AlertKind) -> tuple[model.SecurityAlert, ...] | None:
        """None: a folder has no alerts."""
        return None

    def diff(self, number: int) -> str:
        """A pull request's changes as a git patch for people. Raises UserError if there is none."""
        known = branches.tips(self.git)
        thread = branches.settle_thread(self.git, self._thread(number, "pull"), known)
        base, head = branches.base_of(self.git, thread, known), branches.head_of(thread, known)
        return commits.diff(self.git, base, head) if base and head else ""

    def may_approve(self, actor: model.Actor) -> bool:
        """Every person, as people who can write these files have write access. No bot."""
        return may_approve(actor)

    @property
    def lists_at_once(self) -> bool:
        """Always: files are listed at once."""
        return True

    @property
    def usual_reason(self) -> str:
        """The reason of a closing without one."""
        return ""

    def how(self, action: str, number: int) -> str:
        """The command a person types. Raises KeyError for an unknown action."""
        return self.spell(f"ralph {HOW[action].format(number)}")

    def has_our_work(self) -> bool:
        """Whether a text with our marker by our account exists."""
        every = (thread for folder in ("issues", "pulls") for thread in self.store.threads(folder))
        return any(is_work(body) for thread in every for author, body in texts(thread).values() if author == BOT.id)

    def anchor(self) -> Anchor | None:
        """The highest memory position recorded in the forge."""
        return self.store.anchor()

    def problems(self) -> Iterator[UserError]:
        """The problem of each unreadable file in the folder."""
        return self.store.problems()

    def ticks(self) -> tuple[model.Tick, ...]:
        """The ticked boxes in the dashboard's file."""
        return self.store.ticks(self.now())

    def delete_finished_branches(self, stopped: Callable[[], bool]) -> None:
        """None is ever left: here a branch goes with its pull request."""

    def show_dashboard(self, page: str, anchor: Anchor, quiet: bool = False) -> None:
        """As in the port; the position has its own file."""
        if page:
            self.store.show_dashboard(page)
        self.store.set_anchor(anchor)

    # --- doing

    def find(self, effect: Effect) -> Receipt | None:
        """The receipt of an existing `effect`, by our author id if it has an author."""
        return find_receipt(effect, self.verbs)

    def perform(self, effect: Effect) -> Receipt:
        """Do it once, or adopt an existing one; a refusal is a failed receipt with a rule's id or the reason.

        Raises ValueError for an effect without its number or marker: our bug.
        """
        require_ready(effect)
        with self.store.locked():
            try:
                return self.verbs.find(effect) or self.verbs.do(effect)
            except ForgeRefused as refused:
                return failed_receipt(effect, refused)
            except GitError as error:
                raise explain_damage(error) from None

    def _thread(self, number: int, kind: str) -> LocalThread:
        try:
            return self.store.require(kind, number)
        except ForgeRefused as refused:
            raise Missing(refused.what, refused.hint) from None

    def _pull(self, thread: LocalThread, known: dict[str, str], details: bool) -> model.Pull:
        head = branches.head_of(thread, known)
        pull = threads.pull(thread, self.store.url(thread), head, details)
        if not details and pull.state != "open" and not self._is_recent(pull.closed_at):
            return pull
        base = branches.base_of(self.git, thread, known)
        if not head or not base:
            return pull
        return commits.with_changes(self.git, pull, base, head, pull.state == "open", details)

    def _is_recent(self, at: datetime | None) -> bool:
        return at is not None and self.now() - at <= RECENT


def _needless(state: str) -> Callable[[str], bool]:
    return documents.surely_not_open if state == "open" else nothing


Step = Callable[[LocalThread, model.Actor, datetime], LocalThread]


class Person:
    """A person at the keyboard, by login. Each action returns the number of the changed thread, or raises UserError."""

    def __init__(self, forge: LocalForge, login: str) -> None:
        self.forge, self.store, self.git = forge, forge.store, forge.git
        self.actor = person(login)

    def create_issue(self, title: str, body: str = "", labels: tuple[str, ...] = ()) -> int:
        """Create an issue."""
        if not title.strip() or "\n" in title:
            raise UserError("a title is one line that is not empty", "give one with --title", usage=True)
        return self._open(title, body, labels)

    def open_pull(self, head: str, base: str, title: str, body: str = "") -> int:
        """Open a pull request from an existing branch."""
        with self._explain_errors():
            sides = branches.sides(self.git, self.store, head, base)
        return self._open(title, body, (), sides)

    def comment(self, number: int, text: str) -> int:
        """Comment on an issue or pull request."""
        return self._change("", number, lambda thread, actor, now: threads.add_comment(thread, actor, text, now))

    def label(self, number: int, labels: tuple[str, ...]) -> int:
        """Set labels."""
        return self._change("", number, lambda thread, actor, now: threads.set_labels(thread, actor, now, add=labels))

    def unlabel(self, number: int, labels: tuple[str, ...]) -> int:
        """Remove labels."""
        return self._change("", number, lambda thread, actor, now: threads.set_labels(thread, actor, now, (), labels))

    def close_issue(self, number: int, reason: str = "") -> int:
        """Close an issue; `reason` is completed, not_planned or "" ."""

        def close(thread: LocalThread, actor: model.Actor, now: datetime) -> LocalThread:
            return threads.close_thread(_open_one(thread), actor, reason, now)

        return self._change("issue", number, close)

    def close_pull(self, number: int) -> int:
        """Close a pull request without a merge."""

        def close(thread: LocalThread, actor: model.Actor, now: datetime) -> LocalThread:
            return branches.close_pull(self.git, _open_one(thread), actor, now)

        return self._change("pull", number, close)

    def review(self, number: int, state: str, text: str = "") -> int:
        """Approve (`approved`) or ask for changes (`changes_requested`) at the present head."""

        def review(thread: LocalThread, actor: model.Actor, now: datetime) -> LocalThread:
            known = branches.tips(self.git)
            _open_one(branches.settle_thread(self.git, thread, known))
            return threads.add_review(thread, actor, state, text, branches.head_of(thread, known), now)

        return self._change("pull", number, review)

    def merge(self, number: int, method: str = "squash") -> int:
        """Merge a pull request at its present head, as safely as the bot does."""
        with self._explain_errors(), self.store.locked():
            thread = self.store.require("pull", number)
            head = branches.head_of(thread, branches.tips(self.git))
            login = self.actor.login
            order = MergeRequest(
                head, method, f"{thread.title} (#{number})\n", self.actor, Identity(login, f"{login}@localhost")
            )
            return land(self.store, self.git, thread, order, self.forge.now()).number

    def _open(self, title: str, body: str, labels: tuple[str, ...], sides: threads.Sides = threads.NO_SIDES) -> int:
        with self._explain_errors(), self.store.locked():
            return self.store.open(self.actor, self.forge.now(), title, body, labels, sides).number

    def _change(self, kind: str, number: int, step: Step) -> int:
        with self._explain_errors(), self.store.locked():
            self.store.write(step(self.store.require(kind, number), self.actor, self.forge.now()))
            return number

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except ForgeRefused as refused:
            raise UserError(refused.what, refused.hint or "nothing was changed") from None
        except GitError as error:
            raise explain_damage(error) from None


def _open_one(thread: LocalThread) -> LocalThread:
    if thread.state != "open":
        raise ForgeRefused(f"{thread.kind} #{thread.number} is {thread.state} already")
    return thread
