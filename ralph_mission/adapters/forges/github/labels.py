"""A repository's labels: created with our colours, set, removed, and owed to a pull request if they were refused.

GitHub ignores the case of labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ralph_mission.adapters.forges.effects import ForgeRefused
from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.limits import Doubt
from ralph_mission.adapters.forges.github.people import People
from ralph_mission.adapters.forges.github.reading import PullWire, canonical, shape
from ralph_mission.adapters.forges.github.threads import Threads, label_path
from ralph_mission.errors import Missing, UserError
from ralph_mission.values import dataclass

OWED = "owed labels"  # where they are kept: the names by the pull request's number, as a string
MOST = 10  # pull requests that a cycle retries: there are never more than a few
PREFIX = "ralph:"  # the prefix of every label that can be owed; people set all others


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
        """Set the labels that our pull request lacks; refused ones are reported, owed, and retried by `pay`."""
        missing = [name for name in names if name not in reading.names(wire.labels)]
        if self.threads.api.staged:
            return
        try:
            self.give(wire.number, missing if wire.state == "open" else ())
            self._owe(wire.number, ())
        except (ForgeRefused, Doubt, UserError) as no:  # the pull request itself exists, with or without its labels
            self.threads.api.note(f"pull request #{wire.number} could not be labelled: {no}")
            self._owe(wire.number, missing)

    def pay(self) -> None:
        """Retry owed labels. Never an error: no action waits for a label."""
        for number, names in list(self._debts())[:MOST]:
            try:
                wire = self.threads.pull(number, fresh=True)
                self.repair(wire, names if reading.actor(wire.user).id == self.people.us().id else ())
            except Missing:
                self._owe(number, ())
            except UserError as problem:
                self.threads.api.note(f"pull request #{number} could not be labelled: {problem.what}")

    def _debts(self) -> Iterator[tuple[int, list[str]]]:
        """Owed labels that could be ours: files in a clone are not trusted."""
        entry = self.threads.api.kept.get(OWED)
        for number, names in entry.items() if isinstance(entry, Mapping) else ():
            if re.fullmatch(r"[0-9]{1,9}", number) and isinstance(names, list):
                yield int(number), [name for name in names if isinstance(name, str) and name.startswith(PREFIX)]

    def _owe(self, number: int, names: Iterable[str]) -> None:
        before = dict(self._debts())
        after = {other: debt for other, debt in before.items() if other != number}
        if owed := [name for name in names if name.startswith(PREFIX)]:
            after[number] = owed
        if after != before:
            self.threads.api.kept.put(OWED, {str(other): debt for other, debt in after.items()})
