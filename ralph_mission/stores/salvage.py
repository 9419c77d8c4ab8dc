"""What is left of a memory branch that can no longer be trusted, and a new start on top of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ralph_mission.flows.recover_parts import Salvage
from ralph_mission.mission.ledger import Anchor, Batch, OpenState, Record
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.memory_parse import parse, people_sections
from ralph_mission.mission.position import refuse
from ralph_mission.safety.patch import REGULAR
from ralph_mission.stores import codec, layout
from ralph_mission.stores.anchor import Mark
from ralph_mission.trouble import Lost, Trouble

if TYPE_CHECKING:
    from ralph_mission.gateways.git import Entry
    from ralph_mission.stores.branch import BranchStore

AT_ONCE = 100  # documents of the journal that are held at a time
DEPTH = 200  # commits of the memory file that are looked through for one that can be read


def document(store: BranchStore) -> str:
    """The memory file at the head, readable or not; "" when there is none."""
    head = store.branch.head()
    name = f"{head}:{store.branch.path}"
    return store.git.blobs([name]).get(name, b"").decode(errors="replace") if head else ""


def journal(store: BranchStore) -> Iterator[dict[str, Any]]:
    """Every cycle's audit document, oldest first."""
    head = store.branch.head()
    entries = store.git.listing(head, f"{layout.JOURNAL}/") if head else ()
    entries = tuple(sorted(entries, key=lambda entry: entry.path.rpartition("/")[2]))  # old ones lie in no folder
    for start in range(0, len(entries), AT_ONCE):
        some = entries[start : start + AT_ONCE]
        found = store.git.blobs(entry.oid for entry in some)
        yield from (_document(entry, found) for entry in some)


def _document(entry: Entry, found: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(found[entry.oid])
    except (ValueError, KeyError, RecursionError):
        raise refuse(f"{entry.path} on the memory branch cannot be read") from None
    return document


def salvage(store: BranchStore) -> Salvage:
    """Everything that can still be read; `state` (but for a claim) and `records` only from a commit of our own."""
    head, mark, lost = store.branch.head(), _mark(store), []
    trusted = _trusted(store, mark)
    memory, told = _memory(store, head, trusted)
    state = _state(store, trusted) if trusted else None
    records = tuple(_records(store, trusted)[0]) if trusted else ()
    doubtful, broken = _records(store, head) if head and head != trusted else ([], [])
    lost += [f"{path} cannot be read" for path in broken]
    if state is None:
        lost.append("what was under way but had not reached the forge: no commit is known to be our own")
        state = _restraint(store, head)
    anchor = mark.anchor if mark and mark.oid else None
    return Salvage(
        head, anchor, memory, state, records, tuple(doubtful), (*broken, *_odd(store, head)), tuple(told), tuple(lost)
    )


def restart(store: BranchStore, batch: Batch, salvaged: Salvage) -> Anchor:
    """A new lineage on the present head, as one commit more. Raises Lost when the head moved meanwhile."""
    from ralph_mission.stores.branch import told

    header = replace(batch.memory.header, serial=batch.memory.header.serial + 1)
    batch = replace(batch, memory=replace(batch.memory, header=header))
    with told("write memory"), store.anchorage.moving():
        if not salvaged.head:
            store.branch.refuse_unborn_checkout()
        if _mark(store) is None:  # torn: moving the branch would ask it where it stood
            store.anchorage.forget()
        files: dict[str, bytes | None] = dict.fromkeys((*salvaged.broken, *_ledger_paths(store, salvaged.head)))
        batch = store.unsaid(batch, salvaged)
        oid = store.move(salvaged.head, files | store.files(batch, salvaged.head), batch.message, batch.memory)
    if not oid:
        raise Lost
    return Anchor(header.lineage, header.serial, oid)


def _ledger_paths(store: BranchStore, head: str) -> list[str]:
    """The whole ledger goes and what is vouched for comes back: nothing of a stranger's stays by its mere name."""
    return [entry.path for entry in store.git.listing(head, f"{layout.LEDGER}/")] if head else []


def _mark(store: BranchStore) -> Mark | None:
    try:
        return store.anchorage.read()
    except Trouble:
        return None


def _trusted(store: BranchStore, mark: Mark | None) -> str:
    """The newest commit that this clone knows as its own and still has."""
    for known in (mark.pending, mark.oid) if mark else ():
        if known and store.git.resolve(known):
            return known
    return ""


def _memory(store: BranchStore, head: str, trusted: str) -> tuple[Memory | None, list[str]]:
    """The newest memory that can be read, our own first, with people's sections of the newest text that has them."""
    commits = list(dict.fromkeys(commit for commit in (head, trusted, *_history(store, head, trusted)) if commit))
    texts = store.git.blobs(f"{commit}:{store.branch.path}" for commit in commits)
    found = [(commit, texts[name]) for commit in commits if (name := f"{commit}:{store.branch.path}") in texts]
    ours = sorted(found, key=lambda item: item[0] != trusted)
    memory = next((memory for _, text in ours if (memory := _parsed(text))), None)
    people = next(((commit, sections) for commit, text in found if (sections := people_sections(text))), None)
    if people is None:
        return memory, []
    commit, (learnings, do_not_repeat) = people
    words = f"Learnings and Do Not Repeat as of {commit[:10]}"
    return replace(memory or Memory(), learnings=learnings, do_not_repeat=do_not_repeat), [words]


def _history(store: BranchStore, *starts: str) -> list[str]:
    known = [start for start in starts if start]
    if not known:
        return []
    return store.git.try_text("rev-list", f"--max-count={DEPTH}", *known, "--", store.branch.path).split()


def _parsed(text: bytes) -> Memory | None:
    try:
        return parse(text)
    except Trouble:
        return None


def _state(store: BranchStore, commit: str) -> OpenState | None:
    name = f"{commit}:{layout.OPEN}"
    try:
        return codec.load_state(store.git.blobs([name])[name])
    except (KeyError, codec.Unreadable):
        return None


def _restraint(store: BranchStore, head: str) -> OpenState | None:
    """The claim alone, whoever wrote it: it can keep us from acting, never make us act."""
    found = _state(store, head) if head else None
    return OpenState(claim=found.claim) if found and found.claim else None


def _records(store: BranchStore, commit: str) -> tuple[list[Record], list[str]]:
    """The ledger's readable records as of a commit, and the paths of the others."""
    entries = [entry for entry in store.git.listing(commit, f"{layout.LEDGER}/") if entry.mode == REGULAR]
    found = store.git.blobs(entry.oid for entry in entries)
    records, broken = [], []
    for entry in entries:
        record = _loaded(found.get(entry.oid, b""))
        if record is not None and _path(record) == entry.path:
            records.append(record)
        else:
            broken.append(entry.path)
    return records, broken


def _loaded(data: bytes) -> Record | None:
    try:
        return codec.load_record(data)
    except codec.Unreadable:
        return None


def _path(record: Record) -> str:
    try:
        return layout.record(record.key)
    except ValueError:
        return ""


def _odd(store: BranchStore, head: str) -> list[str]:
    if not head:
        return []
    return [entry.path for entry in store.git.listing(head) if entry.mode != REGULAR]
