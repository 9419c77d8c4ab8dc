"""What a batch puts on the memory branch: bytes by path, without the values that must not be said."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ralph_mission.gateways.git import Git
from ralph_mission.mission.ledger import MemoryBatch
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.memory_parse import parse_memory, parse_notes
from ralph_mission.mission.memory_text import render_memory, render_notes
from ralph_mission.safety.secrets import strip_known
from ralph_mission.stores import codec, layout


def files(git: Git, path: str, batch: MemoryBatch, head: str) -> dict[str, bytes | None]:
    """All of a batch on top of `head`, memory at `path`. Raises Trouble when it could not be read back."""
    made: dict[str, bytes | None] = {path: render_file(batch.memory), layout.OPEN: codec.dump_state(batch.state)}
    made.update({layout.record(record.key): codec.dump_record(record) for record in batch.records})
    if batch.dashboard is not None:
        made[layout.DASHBOARD] = batch.dashboard.encode("utf-8", "replace")
    if batch.journal is not None:
        name, document = batch.journal
        made[layout.journal(batch.memory.header.cycle, name)] = codec.dump_document(document)
    return made | _archives(git, batch, head)


def render_file(memory: Memory) -> bytes:
    """The memory file. Raises Trouble."""
    # What cannot be read back must not be written: that would stop every later cycle.
    data = render_memory(memory).encode("utf-8", "surrogateescape")
    parse_memory(data)
    return data


def unsaid(batch: MemoryBatch, known: Sequence[str], but: Collection[str]) -> MemoryBatch:
    """A batch without the values `known`, whoever said them; texts that are one of `but` stay as they are."""
    kept = strip_known(replace(batch, archive=()), known, but)
    archive = tuple((month, _notes_without(text, known, but)) for month, text in batch.archive)
    return replace(kept, archive=archive)


def _archives(git: Git, batch: MemoryBatch, head: str) -> dict[str, bytes | None]:
    made: dict[str, bytes | None] = {}
    old = git.blobs(f"{head}:{layout.archive(month)}" for month, _ in batch.archive) if head else {}
    for month, text in batch.archive:
        path = layout.archive(month)
        made[path] = (made.get(path) or old.get(f"{head}:{path}", b"")) + text.encode("utf-8", "replace")
    return made


def _notes_without(text: str, known: Sequence[str], but: Collection[str]) -> str:
    """Notes for the archive, cleaned one by one: of the text as a whole a heading could go, and be read no more."""
    notes = parse_notes(text)
    kept = strip_known(notes, known, but)
    return text if kept is notes else render_notes(*kept)
