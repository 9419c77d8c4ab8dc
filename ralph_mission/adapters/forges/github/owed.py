"""What a pull request may still be owed: labels that were refused, and our branch's deletion once it is finished.

Labels are created with our colours, set and removed; GitHub ignores their case. A branch is deleted at a known commit,
later if a server did not answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.limits import Doubt
from ralph_mission.adapters.forges.github.people import People
from ralph_mission.adapters.forges.github.reading import PullWire, canonical, shape
from ralph_mission.adapters.forges.github.threads import Threads, label_path
from ralph_mission.adapters.git.remote import Denied, Remote
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle.ownership import BRANCHES
from ralph_mission.values import dataclass

OWED_LABELS = "owed labels"  # where they are kept: the names by the pull request's number, as a string
MOST = 10  # pull requests that a cycle retries: there are never more than a few
OWABLE = frozenset({"ralph:auto-fix", "ralph:mission"})  # what our pull requests open with; others may be a decision
OWED_DELETIONS = "owed deletions"  # where they are kept: the commit by the pull request's number, as a string


@dataclass(frozen=True, slots=True)
class Labelling:
    """The labels of one repository."""

    threads: Threads
    people: People

    def give(self, number: int, names: Iterable[str]) -> None:
        """Set labels on an issue or pull. Raises ForgeRefused, Doubt."""
        if labels := list(names):
            self.make(labels)
            self.threads.api.send("POST", f"/issues/{number}/labels", {"labels": labels})

    def take(self, number: int, name: str) -> None:
        """Remove a label that may already be gone. Raises ForgeRefused, Doubt."""
        try:
            self.threads.api.send("DELETE", label_path(number, name))
        except ForgeRefused:
            if name in reading.names(self.threads.thread(number, fresh=True).labels):
                raise

    def make(self, names: Iterable[str]) -> None:
        """Create missing labels with our colours. A failure has certainly sent nothing else."""
        known = self.threads.once("labels", self.threads.label_names)
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
        """Set the labels that our pull request lacks; refused ones are reported, owed, and retried by `pay`."""
        missing = [name for name in names if name not in reading.names(wire.labels)]
        if self.threads.api.staged:
            return
        try:
            self.give(wire.number, missing if wire.state == "open" else ())
            self._store_pending(wire.number, ())
        except (ForgeRefused, Doubt, UserError) as no:  # the pull request itself exists, with or without its labels
            self.threads.api.note(f"pull request #{wire.number} could not be labelled: {no}")
            self._store_pending(wire.number, missing)

    def pay(self) -> None:
        """Retry owed labels. Never an error: no action waits for a label."""
        for number, names in list(self._read_pending())[:MOST]:
            try:
                wire = self.threads.pull(number, fresh=True)
                if self.people.owns(wire):
                    self.repair(wire, names)
                else:  # another account of ours may have opened it
                    self._store_pending(number, names if wire.state == "open" else ())
            except Missing:
                self._store_pending(number, ())
            except UserError as problem:
                self.threads.api.note(f"pull request #{number} could not be labelled: {problem.what}")
                self._store_pending(number, names)

    def _read_pending(self) -> Iterator[tuple[int, list[str]]]:
        """Owed labels that could be ours: files in a clone are not trusted."""
        entry = self.threads.api.read_cache.get_lasting(OWED_LABELS)
        for number, names in entry.items() if isinstance(entry, Mapping) else ():
            if re.fullmatch(r"[0-9]{1,9}", number) and isinstance(names, list):
                yield int(number), [name for name in names if isinstance(name, str) and name in OWABLE]

    def _store_pending(self, number: int, names: Iterable[str]) -> None:
        before = dict(self._read_pending())
        after = {other: pending for other, pending in before.items() if other != number}
        if owed := [name for name in names if name in OWABLE]:
            after[number] = owed  # last, so that all others get their turn
        if [*after.items()] != [*before.items()]:
            self.threads.api.read_cache.put_lasting(
                OWED_LABELS, {str(other): pending for other, pending in after.items()}
            )


@dataclass(frozen=True, slots=True)
class FinishedBranches:
    """The branches of merged and closed pull requests."""

    threads: Threads
    people: People
    remote: Remote

    def drop(self, wire: PullWire, head_sha: str) -> None:
        """Delete our branch of a finished pull request if it is at `head_sha`, so that nothing is lost. Never an error.

        A deleted branch, or one with another person's commit or that may not be deleted, is left alone. One that
        another open pull request has as base or head waits, as GitHub would close that. `pay` tries again, also where
        no answer came.
        """
        if not self._try_deletion(wire, head_sha):
            self._store_pending({**self._read_pending(), wire.number: head_sha})

    def _try_deletion(self, wire: PullWire, head_sha: str) -> bool:
        """False if it has to be tried again."""
        if not head_sha or self.threads.api.staged or not wire.ours or not wire.head.ref.startswith(BRANCHES):
            return True
        self.threads.api.forget()  # somebody may have opened a pull request on it since
        try:
            if self.remote.head(wire.head.ref) != head_sha:
                return True
            if self.threads.needed_by_others(wire):
                return False
            self.remote.delete(wire.head.ref, head_sha)
        except Denied as denied:
            return denied.lasting
        except UserError:
            return False
        return True

    def pay(self, stopped: Callable[[], bool]) -> None:
        """Retry owed deletions, at the end of a cycle, as often no other effect follows a merge. Never an error.

        Only at the pull request's own last commit, which GitHub keeps: what is owed may have been written by others.
        Once `stopped`, what remains stays owed.
        """
        for number, head_sha in list(self._read_pending().items())[:MOST]:
            try:
                wire = self.threads.pull(number, fresh=True)
                ours = wire.ours and wire.head.ref.startswith(BRANCHES)
                waits = (wire.state, wire.head.sha) == ("closed", head_sha) and ours
                if waits and self.people.owns(wire):
                    if stopped():
                        return
                    waits = not self._try_deletion(wire, head_sha)
                elif waits:  # another account of ours may have opened it
                    waits = self.remote.head(wire.head.ref) == head_sha
            except Missing:
                waits = False
            except UserError:
                waits = True
            # Only now, as it stays owed until it is done; what waits goes last, so that all others get their turn.
            others = {other: sha for other, sha in self._read_pending().items() if other != number}
            self._store_pending({**others, number: head_sha} if waits else others)

    def _read_pending(self) -> dict[int, str]:
        """Commits by pull request, as far as they can be read: files in a clone are not trusted."""
        entry = self.threads.api.read_cache.get_lasting(OWED_DELETIONS)
        pairs = entry.items() if isinstance(entry, Mapping) else ()
        return {int(n): sha for n, sha in pairs if re.fullmatch(r"[0-9]{1,9}", n) and isinstance(sha, str)}

    def _store_pending(self, pending: Mapping[int, str]) -> None:
        self.threads.api.read_cache.put_lasting(OWED_DELETIONS, {str(number): sha for number, sha in pending.items()})
