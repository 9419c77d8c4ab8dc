"""The state of a run between sessions (`.ralph/loop/state.json`), and related files.

- `.ralph/loop/runs/<run>/session-NNNN.json`: what each session did, tried and was refused.
- `.ralph/loop/verdicts.jsonl`: people's verdicts on issues a reviewer left open; thresholds are learned from them.
  Runs in linked work trees add theirs to the original checkout, which stays.
- a team's files: a plan, file ownership, progress.

Sessions may write below `.ralph/`, delete it, and replace files by links. The running loop keeps copies of what it
wrote and of shared files, and restores them.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.storage.loop.run_files import PUT_BACK
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CONVERGED, HatOutput, PathChange, RunState
from ralph_mission.loop.rules.verdicts import AcceptanceVerdict
from ralph_mission.values import dataclass

STATE = ".ralph/loop/state.json"
RUNS = ".ralph/loop/runs"
VERSION = 1
LARGEST = 64_000_000
"""The most bytes that are read: ten thousand changes of a session are about one million."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The document, with a version first for later formats."""

    version: int
    state: RunState


def load(root: Path) -> RunState | None:
    """The state in the work tree `root`, or None. Raises UnreadableDocument, or UserError for anything but a plain
    file."""
    content = run_files.read(root / STATE, LARGEST)
    if content is None:
        return None
    saved: Saved = codec.load(Saved, content)
    if saved.version != VERSION:
        raise codec.UnreadableDocument(f"of version {saved.version}, and this one reads version {VERSION}")
    if "/" in saved.state.run_id or saved.state.run_id in ("", ".", ".."):  # a folder of ours is named after it
        raise codec.UnreadableDocument(f"its run is called {saved.state.run_id!r}")
    return saved.state


def of_run(root: Path, run_id: str) -> RunState | None:
    """The last state of an archived run, or None. A run's id is a folder's name."""
    folders = (folder for folder in (root / RUNS).glob("*/") if folder.name == run_id)
    content = next((run_files.read(folder / Path(STATE).name, LARGEST) for folder in folders), None)
    try:
        saved: Saved | None = codec.load(Saved, content) if content is not None else None
    except codec.UnreadableDocument:
        return None
    return saved.state if saved and saved.version == VERSION else None


def save(root: Path, state: RunState) -> None:
    """Store `state` atomically. Raises OSError."""
    run_files.write(root / STATE, codec.dump(Saved(VERSION, state)))


def rescue(root: Path) -> tuple[RunState | None, str]:
    """The state, and a complaint if the file was broken, which is then moved aside. Raises OSError and UserError."""
    try:
        return load(root), ""
    except codec.UnreadableDocument as error:
        aside = _free(root / STATE)
        (root / STATE).rename(aside)
        return None, f"{STATE} cannot be read ({error}); put aside as {aside.name}"


def keep_output(root: Path, run_id: str, output: HatOutput) -> tuple[Path, bytes]:
    """Store a session's record in `runs/<run_id>/session-NNNN.json`; returns path and content. Raises OSError."""
    place = root / RUNS / run_id / f"session-{output.iteration:04d}.json"
    content = codec.dump(output)
    run_files.write(place, content)
    return place, content


def _free(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.broken-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


SESSION_RECORDS = 1_000
"""Records of the latest sessions that are kept in memory; a persistent loop has ten times as many."""


@dataclass(slots=True)
class Records:
    """The records that this process wrote in a work tree. May raise OSError."""

    root: Path
    _contents: dict[Path, bytes] = field(default_factory=dict)

    def keep(self, run_id: str, output: HatOutput) -> None:
        """Write the record of a session."""
        place, content = keep_output(self.root, run_id, output)
        self._contents[place] = content
        if len(self._contents) > SESSION_RECORDS:
            del self._contents[next(iter(self._contents))]

    def restore(self) -> tuple[PathChange, ...]:
        """Restore changed records, and report them."""
        return tuple(
            self._again(place, content) for place, content in self._contents.items() if not _stands(place, content)
        )

    def _again(self, place: Path, content: bytes) -> PathChange:
        how = "modified" if os.path.lexists(place) else "deleted"
        run_files.write(place, content)
        return PathChange(place.relative_to(self.root).as_posix(), how, PUT_BACK)


def _stands(place: Path, content: bytes) -> bool:
    """Whether the file has this content, read without blocking or following links."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        alike = stat.S_ISREG(found.st_mode) and found.st_size == len(content)
        return alike and os.pread(descriptor, len(content), 0) == content
    finally:
        os.close(descriptor)


TASKS = "agent/tasks.jsonl"
OURS = ("agent/memories.md", TASKS, "loop/guidance.jsonl")
"""Files below `.ralph/` that no session may remove."""
SCRATCHPAD = "agent/scratchpad.md"
HELD_BYTES = 32 * 1024 * 1024  # bytes of a copied file


class Shared:
    """The shared files of a `home`, `.ralph`: `hold` copies, `restore` them after a session."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._contents: dict[str, bytes] = {}

    def hold(self) -> None:
        """Copy the current content."""
        for name in OURS:
            if (found := files.content(self._home / name, HELD_BYTES)) is not None and len(found) < HELD_BYTES:
                self._contents[name] = found

    def forget(self, *names: str) -> None:
        """Forget these copies (all by default), as we removed the files ourselves."""
        for name in names or OURS:
            self._contents.pop(name, None)

    def unstrange(self) -> tuple[PathChange, ...]:
        """Remove anything but a plain file in place of a shared file."""
        wrong = [name for name in (*OURS, SCRATCHPAD) if not files.plain(self._home / name)]
        for name in wrong:
            run_files.remove(self._home / name)
        return tuple(PathChange(f".ralph/{name}", "made no file of its own", PUT_BACK) for name in wrong)

    def restore(self) -> tuple[PathChange, ...]:
        """Restore missing files from copies."""
        gone = [name for name in self._contents if not (self._home / name).exists()]
        for name in gone:
            run_files.write(self._home / name, self._contents[name])
        return tuple(PathChange(f".ralph/{name}", "deleted", "it is every session's; it is back") for name in gone)


NAME = ".ralph/loop/verdicts.jsonl"
VERDICTS_CAP = 16 * 1024 * 1024  # bytes of it


def path(root: Path) -> Path:
    """The verdicts file for runs in the work tree `root`."""
    linked = root.parent.name == "worktrees" and root.parent.parent.name == ".ralph"
    return (root.parents[2] if linked else root) / NAME


def say(root: Path, accepted: bool, run_id: str = "") -> tuple[str, AcceptanceVerdict]:
    """Store a person's verdict on a run ("": the last one); returns its id and the verdict. Raises UserError (usage),
    OSError."""
    run = _run(root, run_id)
    if run.pending.topic != CONVERGED:
        raise UserError(
            f"no reviewer was content with {run.run_id}", "only a run that a reviewer ended is judged", usage=True
        )
    place = path(root)
    if run.run_id in {str(one.get("run")) for one in run_files.read_objects(place, VERDICTS_CAP)}:
        raise UserError(f"{run.run_id} is judged already", f"take its line out of {place} first", usage=True)
    verdict = AcceptanceVerdict(run.kind or run.run_id.split("-", 2)[-1], len(run.pending.issues), accepted)
    entry = {"kind": verdict.kind, "left": verdict.left, "accepted": accepted, "run": run.run_id}
    run_files.append(place, json.dumps(entry).encode())
    return run.run_id, verdict


def _run(root: Path, run_id: str) -> RunState:
    found = None
    with suppress(codec.UnreadableDocument):
        found = load(root)
    if run_id and (found is None or found.run_id != run_id):
        found = of_run(root, run_id)
    if found is None:
        raise UserError(f"there is no run {run_id}".rstrip(), "their names are in .ralph/loop/runs", usage=True)
    return found


ARTIFACT_CAP = 4 * 1024 * 1024  # bytes of one of them


@dataclass(frozen=True, slots=True)
class FileArtifactStore:
    """`ports.ArtifactStore` in `folder`, the `.ralph` of a checkout. Raises UserError for anything but a file,
    OSError."""

    folder: Path

    def read(self, name: str) -> str:
        """The file's text, or ""."""
        return (run_files.read(self.folder / name, ARTIFACT_CAP) or b"").decode("utf-8", "replace")

    def write(self, name: str, text: str) -> None:
        """Write `text` durably and atomically."""
        run_files.write(self.folder / name, text.encode("utf-8", "replace"))
