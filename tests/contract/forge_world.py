"""A forge under test, the people around it, and the effects that the contract performs on it.

A `World` has a real repository with one commit on `main` that holds README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from ralph_mission.adapters.git.git import Git
from ralph_mission.mission.model.effects import Comment, MergePull, OpenIssue, OpenPull, PushBranch, Receipt, marker
from ralph_mission.mission.model.forge import Actor
from ralph_mission.mission.ports import Forge
from ralph_mission.safety.patch import Edit, FileDelta

WHEN = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
KEY, OTHER = "a1" * 8, "b2" * 8


class Human(Protocol):
    """Somebody with write access, acting through the forge's own human side."""

    @property
    def actor(self) -> Actor: ...
    def create_issue(self, title: str, body: str = "", labels: tuple[str, ...] = ()) -> int: ...
    def open_pull(self, head: str, base: str, title: str, body: str = "") -> int: ...
    def comment(self, number: int, text: str) -> int: ...
    def label(self, number: int, labels: tuple[str, ...]) -> int: ...
    def unlabel(self, number: int, labels: tuple[str, ...]) -> int: ...
    def review(self, number: int, state: str, text: str = "") -> int: ...
    def close_issue(self, number: int, reason: str = "") -> int: ...
    def close_pull(self, number: int) -> int: ...


class World(Protocol):
    """A forge under test, the repository behind it, and people."""

    @property
    def forge(self) -> Forge: ...
    @property
    def git(self) -> Git: ...
    def human(self, login: str) -> Human: ...
    def push(self, branch: str, files: Mapping[str, bytes | None]) -> str:
        """Somebody's commit on top of a branch (made from main when there is none); its object id."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull of the bot's and the commit at its head."""

    number: int
    sha: str


def open_issue(key: str = KEY, title: str = "Typo", labels: tuple[str, ...] = ("ralph:mission",)) -> OpenIssue:
    return OpenIssue(key, title, f"There is a typo.\n\n{marker(key)}", labels)


def comment(issue: int, key: str = KEY, text: str = "Done.") -> Comment:
    return Comment(key, issue, f"{text}\n\n{marker(key)}")


def push_branch(world: World, *files: FileDelta, branch: str = "ralph/fix", key: str = KEY) -> PushBranch:
    base = world.forge.default_branch().sha
    return PushBranch(key, branch, base, "Fix a typo", WHEN, files or (line("README.md", "# Better\n"),))


def line(path: str, text: str, at: int = 0, delete: int = 1) -> FileDelta:
    return FileDelta(path, "100644", (Edit(at, delete, (text,)),))


def new_file(path: str, text: str) -> FileDelta:
    return FileDelta(path, "100644", (Edit(0, 0, (text,)),))


def pulled(world: World, *files: FileDelta, branch: str = "ralph/fix") -> Opened:
    """A branch pushed and a pull opened on it by the bot."""
    pushed = world.forge.perform(push_branch(world, *files, branch=branch))
    assert pushed.status == "done", pushed
    receipt = world.forge.perform(open_pull(branch))
    assert receipt.status == "done", receipt
    return Opened(receipt.number, pushed.sha)


def open_pull(head: str = "ralph/fix", key: str = KEY) -> OpenPull:
    return OpenPull(key, "Fix a typo", f"Why not.\n\n{marker(key)}", head, "main", 1, ("ralph:auto-fix",))


def merge_pull(pull: Opened, method: str = "squash", head_sha: str = "") -> MergePull:
    return MergePull(KEY, pull.number, head_sha or pull.sha, method, "Fix a typo (#1)")


def outcome(receipt: Receipt) -> tuple[str, str]:
    return receipt.status, receipt.explanation
