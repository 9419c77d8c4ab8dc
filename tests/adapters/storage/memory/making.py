"""Memory branches to test with, people who edit them, and attackers who do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import Remote
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.mission.memory.text import parse_memory, render_memory, trim_memory
from ralph_mission.mission.model.effects import Comment, OpenIssue, Receipt, marker
from ralph_mission.mission.model.ledger import (
    Claim,
    EffectRecord,
    FindingRecord,
    MemoryBatch,
    MemorySnapshot,
    MonitorRecord,
    OpenState,
    Record,
)
from ralph_mission.mission.model.memory import CompletedNote, CycleNote, Header, Memory
from ralph_mission.mission.model.mission import Action, Urgency
from tests.fakes.github.server import FakeGitHub
from tests.helpers import NOON, copy_bare, git

LOG = "memory/ralph-log.md"
LINEAGE = "f00dfeed"


@dataclass(slots=True)
class SteppingClock:
    """A minute later each time it is asked."""

    at: datetime = NOON

    def now(self) -> datetime:
        self.at += timedelta(minutes=1)
        return self.at


def branch_store(repo: Path, holder: str = "", **options: Any) -> RecoverableStore:
    return RecoverableStore(Git.open(repo), SteppingClock(), holder=holder, **options)


def on_server(repo: Path, bare: Path) -> FakeGitHub:
    """A server that holds a copy of the repository."""
    return FakeGitHub(copy_bare(repo, bare), "harbour/slackwater")


def server_store(clone: Path, fake: FakeGitHub, token: str, holder: str = "", **options: Any) -> RecoverableStore:
    """The memory on a server, as one clone sees it."""
    here = Git.open(clone)
    remote = Remote(here, fake.git_url, token)
    return RecoverableStore(here, SteppingClock(), holder=holder, remote=remote, **options)


def key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def batch(past: MemorySnapshot | None = None, *records: Record, cycle: int = 0, **state: Any) -> MemoryBatch:
    """One cycle's commit on top of `past`."""
    memory = past.memory if past else Memory(Header(lineage=LINEAGE), learnings="\n", do_not_repeat="\n")
    number = cycle or memory.header.cycle + 1
    memory = replace(memory, header=replace(memory.header, cycle=number, last_cycle_at=NOON))
    return MemoryBatch(
        memory, replace(past.state if past else OpenState(), **state), records, f"ralph: cycle {number}: test"
    )


def full_batch(past: MemorySnapshot | None, cycle: int) -> MemoryBatch:
    """A cycle that observed, acted and ended a mission, with everything that it leaves behind."""
    made = batch(past, intended("comment", cycle), finding("finding", cycle), cycle=cycle)
    note = CycleNote(cycle, NOON, (f"saw {cycle}",), (f"did {cycle}",), Urgency.LOW, "6h")
    memory = replace(
        made.memory,
        completed=(CompletedNote("2026-05-04", f"mission {cycle}", 1, "merged"), *made.memory.completed),
        observations=(note, *made.memory.observations),
    )
    memory, overflow = trim_memory(memory)
    journal = {"report": {"cycle": cycle, "effects": []}}
    archive = (("2026-05", overflow),) if overflow else ()
    made = replace(made, memory=memory, archive=archive, dashboard=f"# {cycle}\n")
    return replace(made, journal=(f"{cycle:06d}-abc", journal))


def intended(*parts: object, state: str = "intended") -> EffectRecord:
    name = key(*parts)
    return EffectRecord(name, name, Action.ANSWER, "bug", state, Comment(name, 7, f"text\n{marker(name)}"), 1, NOON, 1)


def settled(*parts: object) -> EffectRecord:
    record = intended(*parts, state="done")
    return replace(record, effect=None, receipt=Receipt(record.key, "done", 12, "https://example.org/12"))


def finding(*parts: object) -> FindingRecord:
    return FindingRecord(key(*parts), "bug", "a title", ("w1",), 3, 1, "rejected", "no")


def monitor(*parts: object) -> MonitorRecord:
    return MonitorRecord(key(*parts), "todo", 9, ("one", "two"), 40)


def planned() -> EffectRecord:
    record = intended("planned", state="planned")
    return replace(record, effect=OpenIssue(record.key, "title", marker(record.key)))


def claim(holder: str) -> Claim:
    return Claim(holder, 1, "000001-abc", NOON)


@dataclass(slots=True)
class Intruder:
    """Somebody, person or attacker, who writes the memory branch with git and no permission asked."""

    repo: Path
    branch: str = "ralph-memory"
    scratch: Path = field(default=Path())

    def head(self) -> str:
        return git(self.repo, "rev-parse", f"refs/heads/{self.branch}")

    def text(self) -> str:
        return git(self.repo, "cat-file", "blob", f"{self.branch}:{LOG}") + "\n"

    def write(self, path: str, content: str | bytes, mode: str = "100644", parent: str = "") -> str:
        """A commit that sets one path, on the head or on `parent`; the branch moves to it."""
        plumbing = Git.open(self.repo)
        data = content if isinstance(content, bytes) else content.encode()
        base = parent or self.head()
        tree = plumbing.write_tree(base, {path: (mode, data)})
        return self.move(plumbing.commit_tree(tree, [base], "edited on a phone", NOON))

    def change(self, edit: Callable[[str], str]) -> str:
        """A commit that edits the memory file's bytes."""
        raw = Git.open(self.repo).blobs([f"{self.branch}:{LOG}"])[f"{self.branch}:{LOG}"]
        return self.write(LOG, edit(raw.decode()).encode())

    def rewrite(self, edit: Callable[[Memory], Memory]) -> str:
        """A commit that edits the memory file's value."""
        return self.change(lambda text: render_memory(edit(parse_memory(text))))

    def move(self, oid: str) -> str:
        git(self.repo, "update-ref", f"refs/heads/{self.branch}", oid)
        return oid

    def delete(self) -> None:
        git(self.repo, "update-ref", "-d", f"refs/heads/{self.branch}")


def fingerprint(repo: Path) -> dict[str, bytes]:
    """Everything of the user's that must not change: work tree, index, configuration, HEAD, stash, other refs."""
    common = Git.open(repo).common_dir
    files = [path for path in repo.rglob("*") if path.is_file() and common not in path.parents]
    files += [common / name for name in ("index", "config", "HEAD", "ORIG_HEAD", "logs/refs/stash", "info/exclude")]
    found = {str(path): path.read_bytes() for path in files if path.exists()}
    refs = [line for line in git(repo, "for-each-ref").splitlines() if not line.endswith("refs/heads/ralph-memory")]
    return found | {"refs": "\n".join(refs).encode()}
