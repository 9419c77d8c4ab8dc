"""A cycle's output: files on the memory branch, without secret values, and its recording.

A recording holds the external answers, for `ralph journal show --replay`: `.ralph/cycles/<id>/NN-name.json` of the last
cycles. Never on the branch, and ignored by git through `.git/info/exclude`.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.errors import UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.memory.text import parse_memory, parse_notes, render_memory, render_notes
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.model.memory import Memory
from ralph_mission.safety.secrets import strip_known
from ralph_mission.values import compile_regex

KEEP = 50  # cycles
EXCLUDE = "/.ralph/"
_NAME = compile_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_FILE = compile_regex(r"(\d{2,})-([a-z0-9-]+)\.json")


class Recordings:
    """`ports.Recorder`. The cycle's id is the first in a recorded value, unless given.

    `secrets`: values known to this runner, removed from all texts, by any author. Whole files of corrections are kept
    unchanged, as the repository has them too.
    """

    def __init__(self, git: Git, cycle_id: str = "", secrets: tuple[str, ...] = ()) -> None:
        self._git, self._cycle_id, self._count, self._secrets = git, cycle_id, 0, secrets

    @property
    def folder(self) -> Path:
        """The cycles' folder, with a subfolder each."""
        return self._git.state_dir / "cycles"

    def record(self, name: str, value: object) -> None:
        """Store an answer under a name, in order. Raises UserError if it cannot be written, ValueError for an id or
        name that is invalid in a path."""
        cycle_id = getattr(value, "cycle_id", "")
        if cycle_id and cycle_id != self._cycle_id:
            self._cycle_id, self._count = cycle_id, 0
        if not _NAME.fullmatch(self._cycle_id) or not _FILE.fullmatch(f"00-{name}.json"):
            raise ValueError(f"cannot record {name!r} of cycle {self._cycle_id!r}")
        try:
            self._write(self.folder / self._cycle_id, name, codec.dump_any(strip_known(value, self._secrets)))
        except OSError as error:
            raise _record_error(self.folder, error) from None

    def load(self, cycle_id: str) -> tuple[tuple[str, object], ...]:
        """(name, value) in the order recorded. Raises UserError for a missing or unreadable cycle."""
        place = self.folder / cycle_id
        if not _NAME.fullmatch(cycle_id) or not place.is_dir():
            raise UserError(f"no cycle {cycle_id!r} is recorded", f"the last {KEEP} are in {self.folder}", usage=True)
        found = [(match, file) for file in place.iterdir() if (match := _FILE.fullmatch(file.name))]
        return tuple((match[2], _load(file)) for match, file in sorted(found, key=lambda item: int(item[0][1])))

    def _write(self, place: Path, name: str, content: bytes) -> None:
        files.own(place)
        if self._count == 0:
            shutil.rmtree(place, ignore_errors=True)  # the same cycle again: its answers are the newer ones
            place.mkdir(parents=True)
            keep_out_of_git(self._git)
            self._forget_old(place)
        files.write(place / f"{self._count:02d}-{name}.json", content)
        self._count += 1

    def _forget_old(self, newest: Path) -> None:
        others = [folder for folder in self.folder.iterdir() if folder.is_dir() and folder != newest]
        for folder in sorted(others, key=lambda folder: folder.stat().st_mtime_ns, reverse=True)[KEEP - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)


def keep_out_of_git(git: Git) -> None:
    """Have git ignore `.ralph/`, in this clone only. Raises OSError."""
    files.add_line(git.common_dir / "info" / "exclude", EXCLUDE)


def _record_error(folder: Path, error: OSError) -> UserError:
    if error.errno == errno.ELOOP:
        return UserError(f"{error.filename} is a link", "move it away, then run again")
    what = f"cannot record the cycle in {folder}: {(error.strerror or type(error).__name__).lower()}"
    return UserError(what, "make room there, then run again")


def _load(file: Path) -> object:
    try:
        return codec.load_any(file.read_bytes())
    except codec.UnreadableDocument as error:
        raise UserError(f"{file} cannot be read: {error}", "it may be of another version of ralph") from None


def batch_files(git: Git, path: str, batch: MemoryBatch, head: str) -> dict[str, bytes | None]:
    """All files of a batch on top of `head`, memory at `path`. Raises UserError if it could not be read back."""
    contents: dict[str, bytes | None] = {path: render_file(batch.memory), layout.OPEN: codec.dump(batch.state)}
    contents.update({layout.record(record.key): codec.dump(record) for record in batch.records})
    if batch.dashboard is not None:
        contents[layout.DASHBOARD] = batch.dashboard.encode("utf-8", "replace")
    if batch.journal is not None:
        name, document = batch.journal
        contents[layout.journal(batch.memory.header.cycle, name)] = codec.dump(document)
    return contents | _archives(git, batch, head)


def render_file(memory: Memory) -> bytes:
    """The memory file. Raises UserError."""
    # Never write an unreadable file: it would stop every later cycle.
    data = render_memory(memory).encode("utf-8", "surrogateescape")
    parse_memory(data)
    return data


def redact_batch(batch: MemoryBatch, known: Sequence[str], but: Collection[str]) -> MemoryBatch:
    """A batch without the values `known`, by any author; texts in `but` stay unchanged."""
    news = strip_known(replace(batch, archive=()), known, but)
    archive = tuple((month, _notes_without(text, known, but)) for month, text in batch.archive)
    return replace(news, archive=archive)


def _archives(git: Git, batch: MemoryBatch, head: str) -> dict[str, bytes | None]:
    contents: dict[str, bytes | None] = {}
    old = git.blobs(f"{head}:{layout.archive(month)}" for month, _ in batch.archive) if head else {}
    for month, text in batch.archive:
        path = layout.archive(month)
        contents[path] = (contents.get(path) or old.get(f"{head}:{path}", b"")) + text.encode("utf-8", "replace")
    return contents


def _notes_without(text: str, known: Sequence[str], but: Collection[str]) -> str:
    """Notes for the archive, cleaned one by one: cleaning the whole text could break a heading and make it
    unreadable."""
    notes = parse_notes(text)
    news = strip_known(notes, known, but)
    return text if news is notes else render_notes(*news)
