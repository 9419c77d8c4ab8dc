"""Our branches of finished pull requests: deleted at a known commit, or owed if a server did not answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.people import People
from ralph_mission.adapters.forges.github.reading import PullWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.adapters.git.remote import Denied, Remote
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle.ownership import BRANCHES
from ralph_mission.values import dataclass

OWED = "owed deletions"  # where they are kept: the commit by the pull request's number, as a string
MOST = 10  # pull requests that a cycle retries: there are never more than a few


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
        if not head_sha or self.threads.api.staged or not wire.ours or not wire.head.ref.startswith(BRANCHES):
            return
        try:
            if self.remote.head(wire.head.ref) != head_sha:
                return
            if self.threads.needed_by_others(wire):
                self._owe({**self._debts(), wire.number: head_sha})
            else:
                self.remote.delete(wire.head.ref, head_sha)
        except (Denied, UserError) as problem:
            if not (isinstance(problem, Denied) and problem.lasting):
                self._owe({**self._debts(), wire.number: head_sha})

    def pay(self, stopped: Callable[[], bool]) -> None:
        """Retry owed deletions, at the end of a cycle, as often no other effect follows a merge. Never an error.

        Only at the pull request's own last commit, which GitHub keeps: what is owed may have been written by others.
        Once `stopped`, what remains stays owed.
        """
        for number, head_sha in list(self._debts().items())[:MOST]:
            try:
                wire = self.threads.pull(number, fresh=True)
                finished = (wire.state, wire.head.sha) == ("closed", head_sha) and self._is_ours(wire)
            except Missing:
                finished = False
            except UserError:
                continue
            if finished and stopped():
                return
            self._owe({other: sha for other, sha in self._debts().items() if other != number})
            if finished:
                self.drop(wire, head_sha)

    def _is_ours(self, wire: PullWire) -> bool:
        return reading.actor(wire.user).id == self.people.us().id

    def _debts(self) -> dict[int, str]:
        """Commits by pull request, as far as they can be read: files in a clone are not trusted."""
        entry = self.threads.api.kept.get(OWED)
        pairs = entry.items() if isinstance(entry, Mapping) else ()
        return {int(n): sha for n, sha in pairs if re.fullmatch(r"[0-9]{1,9}", n) and isinstance(sha, str)}

    def _owe(self, debts: Mapping[int, str]) -> None:
        self.threads.api.kept.put(OWED, {str(number): sha for number, sha in debts.items()})
