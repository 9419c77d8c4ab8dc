"""A memory of thousands of cycles made at once, for tests that count: a commit each, as so many cycles leave them.

`bench.endurance` lives them one by one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.adapters.storage.memory.provenance import AnchorMark
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.mission import memory as layout
from ralph_mission.mission.memory.text import render_notes
from ralph_mission.mission.model import ledger
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.ledger import EffectRecord, FindingRecord, MemoryBatch, MemorySnapshot, key_of
from ralph_mission.mission.model.memory import KEEP_COMPLETED, KEEP_OBSERVATIONS, CompletedNote, CycleNote, Memory
from ralph_mission.mission.model.mission import Action, Urgency
from tests.helpers import NOON
from tests.integration.world import CALM, World, world

PACE = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Clock:
    """It stands still."""

    at: datetime

    def now(self) -> datetime:
        """The one moment there is."""
        return self.at


def begun(repo: Path) -> World:
    """A repository whose first fix was merged: two real cycles."""
    here = world(repo, config=CALM)
    here.cycle()
    here.person().review(1, "approved")
    here.cycle()
    return here


def grow(here: World, cycles: int) -> None:
    """Memory as `cycles` cycles would have left it, by one `git fast-import`; and this clone knows it for its own."""
    git = Git.open(here.repo)
    store = RecoverableStore(git, Clock(here.now))
    past = store.recall()
    assert past is not None
    more = range(past.memory.header.cycle + 1, cycles + 1)
    if not more:
        return
    here.now += PACE * len(more)
    aged = _aged(past, more, here.now)
    stream = b"".join(_stream(git, store, past, aged, more))
    subprocess.run(["git", "-C", str(here.repo), "fast-import", "--quiet"], input=stream, check=True)
    head = here.git("rev-parse", "ralph-memory")
    store.anchorage.write(AnchorMark(aged.header.lineage, aged.header.serial, head))


def _aged(past: MemorySnapshot, more: range, now: datetime) -> Memory:
    kept = [_notes(number) for number in more]
    ours = past.memory
    header = replace(ours.header, cycle=more[-1], serial=ours.header.serial + len(more), last_cycle_at=now)
    completed = [done for done, _ in reversed(kept)] + list(ours.completed)
    return replace(
        ours,
        header=replace(header, next_due_at=now),
        completed=tuple(completed[:KEEP_COMPLETED]),
        observations=tuple([note for _, note in reversed(kept)] + list(ours.observations))[:KEEP_OBSERVATIONS],
    )


def _notes(number: int) -> tuple[CompletedNote, CycleNote]:
    at = NOON + number * PACE
    note = CycleNote(number, at, (f"codespell: {number} seen",), (f"open-fix: mission {number}",), Urgency.LOW, "6h")
    return CompletedNote(f"{at:%Y-%m-%d}", f"mission {number}", 2, "merged", "people like it"), note


def _stream(git: Git, store: RecoverableStore, past: MemorySnapshot, aged: Memory, more: range) -> Iterator[bytes]:
    archives: dict[str, str] = {}
    page = git.blobs([f"{past.oid}:{layout.DASHBOARD}"])[f"{past.oid}:{layout.DASHBOARD}"].decode()
    parent = f"from {past.oid}\n"
    for number in more:
        files = _left(number, archives)
        if number == more[-1]:
            ids = tuple(f"{one:06d}-aged" for one in more[-ledger.KEPT_IDS :])
            files |= store.files(MemoryBatch(aged, replace(past.state, done=ids), (), "aged", dashboard=page), "")
        yield _commit(number, parent, files)
        parent = ""


def _left(number: int, archives: dict[str, str]) -> dict[str, bytes | None]:
    """What a cycle leaves beside the memory file. `archives` are the months' texts, which grow."""
    done, note = _notes(number)
    month = f"{note.at:%Y-%m}"
    archives[month] = archives.get(month, "") + render_notes((done,), (note,))
    made = [key_of("aged", str(number), part) for part in ("issue", "pull", "finding")]
    effects = [_settled(key, number, note.at) for key in made[:2]]
    finding = FindingRecord(made[2], "code-quality", f"mission {number}", ("w1",), number, number, "accepted")
    return {
        layout.archive(month): archives[month].encode(),
        layout.journal(number, f"{number:06d}-aged"): codec.dump(_document(number, note, effects)),
        **{layout.record(one.key): codec.dump(one) for one in effects},
        layout.record(finding.key): codec.dump(finding),
    }


def _settled(key: str, number: int, at: datetime) -> EffectRecord:
    receipt = Receipt(key, "done", number, f".ralph/forge/issues/{number:04d}.md")
    return EffectRecord(key, key, Action.OPEN_FIX, "code-quality", "done", None, number, at, number, receipt)


def _document(number: int, note: CycleNote, effects: list[EffectRecord]) -> Mapping[str, object]:
    told = [{"key": one.key, "action": one.action, "kind": one.kind, "status": "done", "url": ""} for one in effects]
    report = {"cycle": number, "cycle_id": f"{number:06d}-aged", "started_at": note.at, "effects": told}
    return {"report": report, "telling": {"seen": note.observed * 20, "done": note.actions * 20}}


def _commit(number: int, parent: str, files: Mapping[str, bytes | None]) -> bytes:
    who = f"committer Ralph <ralph@localhost> {int((NOON + number * PACE).timestamp())} +0000"
    message = f"ralph: cycle {number}: open-fix [skip ci]"
    head = f"commit refs/heads/{layout.BRANCH}\n{who}\ndata {len(message)}\n{message}\n{parent}"
    put = b"".join(_file(path, text or b"") for path, text in files.items())
    return head.encode() + put + b"\n"


def _file(path: str, text: bytes) -> bytes:
    return f"M 100644 inline {path}\ndata {len(text)}\n".encode() + text + b"\n"
