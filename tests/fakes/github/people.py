"""Accounts as tests see them: they act at once, without HTTP and without a line in the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ralph_mission.mission.model.forge import Actor
from tests.fakes.github.actions import pulls, refs, threads
from tests.fakes.github.bare import NOBODY
from tests.fakes.github.nouns import LEVELS, Account, Thread
from tests.fakes.github.state import World

VERDICTS = ("APPROVED", "CHANGES_REQUESTED")


class Person:
    """Somebody on GitHub. Satisfies `Human` of the forges' contract."""

    def __init__(self, world: World, account: Account) -> None:
        self._world, self.account = world, account

    @property
    def id(self) -> int:
        return self.account.id

    @property
    def login(self) -> str:
        return self.account.login

    @property
    def actor(self) -> Actor:
        """As the mission's model has it."""
        return Actor(self.account.id, self.account.login, self.account.is_bot)

    # --- issues and pulls

    def create_issue(self, title: str, body: str = "", labels: tuple[str, ...] = ()) -> int:
        with self._world.lock:
            return threads.create(self._world, self.account, title, body, labels).number

    def open_pull(self, head: str, base: str, title: str, body: str = "", draft: bool = False) -> int:
        with self._world.lock:
            return pulls.create(self._world, self.account, head, base, title, body, draft).number

    def comment(self, number: int, text: str) -> int:
        with self._world.lock:
            return threads.comment(self._world, self.account, self._thread(number), text).id

    def edit_issue(self, number: int, title: str | None = None, body: str | None = None) -> int:
        with self._world.lock:
            threads.edit(self._world, self.account, self._thread(number), title, body)
        return number

    def edit_comment(self, comment: int, text: str) -> None:
        with self._world.lock:
            threads.edit_comment(self._world, self._world.comments[comment], text)

    def delete_comment(self, comment: int) -> None:
        with self._world.lock:
            threads.delete_comment(self._world, self.account, self._world.comments[comment])

    def delete_issue(self, number: int) -> None:
        with self._world.lock:
            threads.delete(self._world, self._thread(number))

    def label(self, number: int, labels: tuple[str, ...]) -> int:
        with self._world.lock:
            threads.label(self._world, self.account, self._thread(number), labels)
        return number

    def unlabel(self, number: int, labels: tuple[str, ...]) -> int:
        with self._world.lock:
            threads.unlabel(self._world, self.account, self._thread(number), labels)
        return number

    def close_issue(self, number: int, reason: str = "") -> int:
        with self._world.lock:
            threads.close(self._world, self.account, self._thread(number), reason or "completed")
        return number

    def close_pull(self, number: int) -> int:
        with self._world.lock:
            threads.close(self._world, self.account, self._thread(number), None)
        return number

    def reopen(self, number: int) -> int:
        with self._world.lock:
            threads.reopen(self._world, self.account, self._thread(number))
        return number

    # --- reviews and merging

    def review(self, number: int, state: str, text: str = "", lines: Sequence[tuple[str, int, str]] = ()) -> int:
        if state not in ("approved", "changes_requested", "commented"):
            raise ValueError(f"no such review: {state}")
        with self._world.lock:
            return pulls.review(self._world, self.account, self._thread(number), state.upper(), text, lines=lines).id

    def edit_review(self, review: int, text: str, line: str = "") -> None:
        """Change what a review says, or its remarks on lines of a path, as anybody with write access may."""
        with self._world.lock:
            found = self._world.reviews[review]
            for one in [one[0] for one in found.lines if one[1] == line] if line else [0]:
                pulls.edit_review(self._world, self.account, found, text, one)

    def dismiss(self, number: int, review_id: int | None = None, message: str = "") -> int:
        """Dismiss a review, the newest verdict of that pull when none is named."""
        with self._world.lock:
            thread = self._thread(number)
            verdicts = [one for one in pulls.reviews(self._world, thread) if one.state in VERDICTS]
            found = [one for one in verdicts if review_id in (None, one.id)]
            pulls.dismiss(self._world, self.account, found[-1], message)
            return found[-1].id

    def merge(self, number: int, method: str = "squash") -> str:
        with self._world.lock:
            return pulls.merge(self._world, self.account, self._thread(number), method)

    # --- the repository and the account

    def push(self, branch: str, files: Mapping[str, bytes | None], base: str = "", message: str = "Change") -> str:
        """A commit of this person's on top of the branch, made from base (the default branch) when there is none."""
        with self._world.lock:
            return _push(self._world, self.account, branch, files, base, message)

    def set_permission(self, level: str) -> None:
        if level not in LEVELS:
            raise ValueError(f"no such permission: {level}")
        with self._world.lock:
            self.account.level = level

    def rename(self, login: str) -> None:
        """Another name for the same account, as people may do; the number stays."""
        with self._world.lock:
            del self._world.accounts[self.account.login.lower()]
            self.account.login = login
            self._world.accounts[login.lower()] = self.account

    def _thread(self, number: int) -> Thread:
        refs.follow(self._world, self.account)
        return self._world.threads[number]


def _push(
    world: World, account: Account, branch: str, files: Mapping[str, bytes | None], base: str, message: str
) -> str:
    before = refs.follow(world, account)
    tip = before.get(branch, "")
    parent = tip or before.get(base or world.default_branch, "")
    who = refs.signature(account, world.clock.tick())
    tree = world.bare.write_files(parent, files)
    made = world.bare.commit_tree(tree, [parent] if parent else [], message + "\n", who, who)
    if not world.bare.set_ref(f"refs/heads/{branch}", made, tip or NOBODY):
        raise ValueError(f"git has no branch {branch!r}, or it moved at the same time")
    refs.after_push(world, account, before, world.bare.heads())
    return made
