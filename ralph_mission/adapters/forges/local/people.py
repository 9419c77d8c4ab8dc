"""What a person does on the forge: the same files and the same merge as the bot, under another name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from ralph_mission.adapters.forges import performing
from ralph_mission.adapters.forges.commits import ForgeRefused
from ralph_mission.adapters.forges.local import branches, merging, threads
from ralph_mission.adapters.forges.local.fields import person
from ralph_mission.adapters.forges.local.forge import LocalForge
from ralph_mission.adapters.forges.local.threads import LocalThread, PullChange
from ralph_mission.adapters.git.git import GitError, Identity
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Actor

Step = Callable[[LocalThread, Actor, datetime], LocalThread]


class Person:
    """Somebody at the keyboard, by login. Each deed gives the number of what it was done to, or raises UserError."""

    def __init__(self, forge: LocalForge, login: str) -> None:
        self.forge, self.desk, self.git = forge, forge.desk, forge.git
        self.actor = person(login)

    def create_issue(self, title: str, body: str = "", labels: tuple[str, ...] = ()) -> int:
        """A new issue."""
        if not title.strip() or "\n" in title:
            raise UserError("a title is one line that is not empty", "give one with --title", usage=True)
        return self._open(title, body, labels, None)

    def open_pull(self, head: str, base: str, title: str, body: str = "") -> int:
        """A new pull from a branch that exists."""
        with self._told():
            change = branches.change(self.git, self.desk, head, base)
        return self._open(title, body, (), change)

    def comment(self, number: int, text: str) -> int:
        """One more remark on an issue or pull."""
        return self._change("", number, lambda thread, actor, now: threads.add_comment(thread, actor, text, now))

    def label(self, number: int, labels: tuple[str, ...]) -> int:
        """Set labels."""
        return self._change("", number, lambda thread, actor, now: threads.set_labels(thread, actor, now, add=labels))

    def unlabel(self, number: int, labels: tuple[str, ...]) -> int:
        """Take labels off."""
        return self._change("", number, lambda thread, actor, now: threads.set_labels(thread, actor, now, (), labels))

    def close_issue(self, number: int, reason: str = "") -> int:
        """Close an issue; `reason` is completed, not_planned or "" ."""

        def close(thread: LocalThread, actor: Actor, now: datetime) -> LocalThread:
            return threads.close_thread(_open_one(thread), actor, reason, now)

        return self._change("issue", number, close)

    def close_pull(self, number: int) -> int:
        """Close a pull without merging it."""

        def close(thread: LocalThread, actor: Actor, now: datetime) -> LocalThread:
            return branches.close_pull(self.git, _open_one(thread), actor, now)

        return self._change("pull", number, close)

    def review(self, number: int, state: str, text: str = "") -> int:
        """Approve (`approved`) or ask for changes (`changes_requested`) at the commit the head is at now."""

        def review(thread: LocalThread, actor: Actor, now: datetime) -> LocalThread:
            known = branches.tips(self.git)
            _open_one(branches.settle_thread(self.git, thread, known))
            return threads.add_review(thread, actor, state, text, branches.head_of(thread, known), now)

        return self._change("pull", number, review)

    def merge(self, number: int, method: str = "squash") -> int:
        """Merge a pull at the commit its head is at now, as safely as the bot does."""
        with self._told(), self.desk.locked():
            thread = self.desk.require("pull", number)
            head = branches.head_of(thread, branches.tips(self.git))
            login = self.actor.login
            order = merging.MergeRequest(
                head, method, f"{thread.title} (#{number})\n", self.actor, Identity(login, f"{login}@localhost")
            )
            return merging.land(self.desk, self.git, thread, order, self.forge.now()).number

    def _open(self, title: str, body: str, labels: tuple[str, ...], change: PullChange | None) -> int:
        with self._told(), self.desk.locked():
            number = self.desk.next_number()
            self.desk.write(threads.open_thread(number, title, body, self.actor, labels, change, self.forge.now()))
            return number

    def _change(self, kind: str, number: int, step: Step) -> int:
        with self._told(), self.desk.locked():
            self.desk.write(step(self.desk.require(kind, number), self.actor, self.forge.now()))
            return number

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ForgeRefused as refused:
            raise UserError(refused.what, refused.mend or "nothing was changed") from None
        except GitError as error:
            raise performing.spoilt(error) from None


def _open_one(thread: LocalThread) -> LocalThread:
    if thread.state != "open":
        raise ForgeRefused(f"{thread.kind} #{thread.number} is {thread.state} already")
    return thread
