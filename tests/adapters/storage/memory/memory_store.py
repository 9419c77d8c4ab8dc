"""A store in memory, for tests of what stands above it. It refuses what it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ralph_mission.errors import Lost
from ralph_mission.mission.memory.position import merge_edits, people_edits, refuse, with_people_of
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot, Record
from ralph_mission.mission.model.memory import Memory


@dataclass(slots=True)
class Commit:
    """One state of the whole memory."""

    recollection: MemorySnapshot
    records: dict[str, Record]
    ours: bool = True


@dataclass(slots=True)
class Shelf:
    """What two stores of one repository share."""

    commits: list[Commit] = field(default_factory=list)
    held_by: str = ""

    def at(self, oid: str) -> Commit:
        return next(commit for commit in self.commits if commit.recollection.oid == oid)


@dataclass(slots=True)
class MemoryStore:
    """`ports.Store` over a shelf."""

    shelf: Shelf = field(default_factory=Shelf)
    name: str = "here:boot:1"

    def holder(self) -> str:
        return self.name

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        free = not self.shelf.held_by
        if free:
            self.shelf.held_by = self.name
        try:
            yield free
        finally:
            if free:
                self.shelf.held_by = ""

    def proven_dead(self, holder: str) -> bool:
        return self.shelf.held_by == self.name and holder.partition(":")[0] == self.name.partition(":")[0]

    def recall(self) -> MemorySnapshot | None:
        if not self.shelf.commits:
            return None
        head = self.shelf.commits[-1].recollection
        ours = next(commit for commit in reversed(self.shelf.commits) if commit.ours).recollection
        if ours.oid == head.oid:
            return head
        edits = people_edits(ours.memory, head.memory)
        if edits is None:
            raise refuse("someone else changed more than people's sections")
        return replace(head, memory=merge_edits(ours.memory, ours.memory, head.memory), human_edits=edits)

    def records(self, keys: Iterable[str], at: MemorySnapshot | None) -> Mapping[str, Record]:
        if at is None:
            return {}
        known = self.shelf.at(at.oid).records
        return {key: known[key] for key in keys if key in known}

    def commit(self, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot:
        if not batch.memory.header.lineage or (after and batch.memory.header.lineage != after.memory.header.lineage):
            raise ValueError("a commit needs the lineage of the memory it follows")
        head = self.shelf.commits[-1] if self.shelf.commits else None
        if head and (after is None or head.recollection.oid != after.oid):
            after = self._absorbed(after, head)
        memory = with_people_of(batch.memory, after.memory) if after else batch.memory
        if batch.paused is not None:
            memory = replace(memory, header=replace(memory.header, paused=batch.paused))
        serial = (after or batch).memory.header.serial + 1
        memory = replace(memory, header=replace(memory.header, serial=serial))
        edits = after.human_edits if after else ()
        return self._add(memory, batch, edits, ours=True)

    def paused(self) -> bool:
        return bool(self.shelf.commits) and self.shelf.commits[-1].recollection.memory.header.paused

    def edit(self, memory: Memory, after: MemorySnapshot, message: str) -> None:
        head = self.shelf.commits[-1].recollection
        text = merge_edits(head.memory, after.memory, memory)
        self._add(text, MemoryBatch(text, head.state, (), message), (), ours=False)

    def _absorbed(self, after: MemorySnapshot | None, head: Commit) -> MemorySnapshot:
        if after is None or head.ours:
            raise Lost
        before, theirs = self.shelf.at(after.oid).recollection.memory, head.recollection.memory
        edits = people_edits(before, theirs)
        if edits is None:
            raise Lost
        return replace(head.recollection, memory=merge_edits(after.memory, before, theirs), human_edits=edits)

    def _add(self, memory: Memory, batch: MemoryBatch, edits: tuple[str, ...], ours: bool) -> MemorySnapshot:
        records = dict(self.shelf.commits[-1].records) if self.shelf.commits else {}
        records |= {record.key: record for record in batch.records}
        new = MemorySnapshot(memory, batch.state, f"{len(self.shelf.commits):040x}", edits)
        self.shelf.commits.append(Commit(new, records, ours))
        return new
