"""The memory branch as one register that moves by compare-and-swap; commits are kept by their content.

What a person's edit is, and how it is taken in, is asked of `mission/memory/text.py`, as the store does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ralph_mission.errors import Lost
from ralph_mission.mission.memory.text import merge_edits, people_edits, refuse, with_people_of
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot, OpenState, Record
from ralph_mission.mission.model.memory import Memory


@dataclass(frozen=True)
class Commit:
    """Memory at one commit. `told`: whether it is one of ours, and no person's edit."""

    oid: str
    parent: str
    memory: Memory
    state: OpenState
    records: Mapping[str, Record]
    told: bool = True


@dataclass
class History:
    """All commits there ever were, by id; which one the branch points at is not known here."""

    commits: dict[str, Commit] = field(default_factory=dict)

    def recall(self, head: str) -> MemorySnapshot | None:
        """As `Store.recall`; what a person changed since our last commit is taken in."""
        if not head:
            return None
        now = self.commits[head]
        return MemorySnapshot(now.memory, now.state, head, self._edits(now))

    def _edits(self, now: Commit) -> tuple[str, ...]:
        ours = now
        while not ours.told:
            ours = self.commits[ours.parent]
        edits = people_edits(ours.memory, now.memory)
        if edits is None:
            raise refuse("someone else changed more than people's sections")
        return edits

    def records(self, keys: Iterable[str], at: MemorySnapshot | None) -> dict[str, Record]:
        """As `Store.records`."""
        known = self.commits[at.oid].records if at else {}
        return {key: known[key] for key in keys if key in known}

    def advance(self, head: str, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot:
        """As `Store.commit`: what the branch will point at. Raises Lost when it moved by more than a person's edit."""
        if head != (after.oid if after else ""):
            after = self.absorb_edit(head, after)
        memory = with_people_of(batch.memory, after.memory) if after else batch.memory
        serial = (after or batch).memory.header.serial + 1
        memory = replace(memory, header=replace(memory.header, serial=serial))
        records = {**self.commits[head].records, **{r.key: r for r in batch.records}} if head else _by_key(batch)
        made = self._keep(head, memory, batch.state, records)
        return MemorySnapshot(made.memory, made.state, made.oid, after.human_edits if after else ())

    def edited(self, head: str, paused: bool) -> str:
        """The commit of a person who sets `paused`: no new serial, and nothing of ours changes."""
        now = self.commits[head]
        memory = replace(now.memory, header=replace(now.memory.header, paused=paused))
        return self._keep(head, memory, now.state, now.records, told=False).oid

    def absorb_edit(self, head: str, after: MemorySnapshot | None) -> MemorySnapshot:
        if after is None or not self.contains(head, after.oid):
            raise Lost
        before, now = self.commits[after.oid], self.commits[head]
        edits = people_edits(before.memory, now.memory)
        if edits is None or before.state != now.state:
            raise Lost
        memory = merge_edits(after.memory, before.memory, now.memory)
        return MemorySnapshot(memory, now.state, head, (*after.human_edits, *edits))

    def contains(self, head: str, oid: str) -> bool:
        """Whether a commit is `head` or one of its ancestors."""
        while head and head != oid:
            head = self.commits[head].parent
        return head == oid

    def _keep(
        self, parent: str, memory: Memory, state: OpenState, records: Mapping[str, Record], told: bool = True
    ) -> Commit:
        content = repr((parent, memory, state, sorted(records.items(), key=lambda item: item[0]), told))
        oid = hashlib.sha1(content.encode()).hexdigest()
        return self.commits.setdefault(oid, Commit(oid, parent, memory, state, records, told))


def _by_key(batch: MemoryBatch) -> dict[str, Record]:
    return {record.key: record for record in batch.records}
