"""The store of `ralph memory` and `ralph journal`: verify, salvage and restart memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ralph_mission.adapters.git.git import Git, GitError, TreeEntry
from ralph_mission.adapters.storage.memory import codec, provenance
from ralph_mission.adapters.storage.memory.branch import READING, BranchStore, explain_errors
from ralph_mission.adapters.storage.memory.provenance import AnchorMark, reason
from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.findings.identity import parse_bans
from ralph_mission.mission.memory.text import parse_memory, parse_notes, people_sections, refuse
from ralph_mission.mission.model.ledger import Anchor, MemoryBatch, MemorySnapshot, OpenState, Record
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.proposal import KINDS
from ralph_mission.mission.operations.salvage import Check, Salvage
from ralph_mission.safety.patch import REGULAR
from ralph_mission.words import count_noun

AT_ONCE = 100  # journal documents in memory at once
DEPTH = 200  # commits of the memory file searched for a readable one
UNDERSTOOD = "do not repeat"  # the only check that is not about memory itself


class RecoverableStore(BranchStore):
    """`operations.salvage.Recoverable`."""

    def journal(self) -> Iterator[dict[str, Any]]:
        """Every cycle's audit document, oldest first. Raises UserError if one is unreadable."""
        with explain_errors(READING):
            head = self.branch.head()
            entries = self.git.listing(head, f"{layout.JOURNAL}/") if head else ()
        entries = tuple(sorted(entries, key=lambda entry: entry.path.rpartition("/")[2]))  # old ones lie in no folder
        for start in range(0, len(entries), AT_ONCE):
            some = entries[start : start + AT_ONCE]
            found = self.git.blobs(entry.oid for entry in some)
            yield from (_document(entry, found) for entry in some)

    def document(self) -> str:
        """The memory file's present text, valid or not, or ""."""
        head = self.branch.head()
        name = f"{head}:{self.branch.path}"
        return _blobs(self.git, [name]).get(name, b"").decode(errors="replace") if head else ""

    def checks(self) -> Iterator[Check]:
        """Each check of `ralph memory verify` with its result; also for a branch that cannot be recalled."""
        faults = self.faults()
        yield Check("git", not faults, "; ".join(faults) or "nothing is lost")
        try:
            recalled = self.recall()
        except UserError as problem:
            yield Check("provenance", False, problem.what)
            recalled = None
        else:
            yield Check("provenance", True, _position(recalled))
        head = _head(self)
        if not head:
            return
        if recalled is not None:
            yield from _check_bans(recalled)
        try:
            irregular = self.branch.odd_files(head)
        except GitError as error:
            yield Check("files", False, reason(error))
            return
        yield Check(
            "files",
            not irregular,
            f"odd or missing: {', '.join(map(repr, irregular[:5]))}" if irregular else "all regular",
        )
        for name, folder, is_readable in FOLDERS:
            entries = self.git.listing(head, f"{folder}/")
            bad = list(_unreadable(self.git, entries, is_readable))
            yield Check(
                name, not bad, f"cannot be read: {', '.join(bad[:5])}" if bad else count_noun(len(entries), "file")
            )

    def faults(self) -> list[str]:
        """The branch's problems at the level of git."""
        try:
            return list(provenance.faults(self.branch))
        except UserError:  # it is unreadable, as the next check reports
            return []

    def repair(self) -> list[str]:
        """Repair parts of the branch that git cannot read; returns the repairs, in words. Raises UserError."""
        with explain_errors("fix the branch"):
            return provenance.repair(self.branch)

    def salvage(self) -> Salvage:
        """Everything that can still be read; `state` (but for a claim) and `records` only from a commit of our own."""
        head, mark = self.branch.head(), _mark(self)
        last = next(_own(self, mark), "")
        is_lost = last and not (head and self.git.contains(last, head))
        ahead = last if is_lost else ""  # our commits that the branch lost
        trusted = next(
            (oid for oid in _own(self, mark) if _state(self, oid) is not None), last
        )  # with readable state, else the newest
        memory, rescue = _memory(self, [ahead, head, trusted])
        state = _state(self, trusted) if trusted else None
        records = tuple(_records(self, trusted)[0]) if trusted else ()
        doubtful, broken = _records(self, head) if head and head != trusted else ([], [])
        broken += _broken_documents(self, head)
        lost = [f"{path} cannot be read" for path in broken]
        if state is None:
            lost.append("what was under way but had not reached the forge: no commit is known to be our own")
            state = _find_claim(self, head)
        return Salvage(
            head,
            mark.anchor if mark and mark.oid else None,
            memory,
            state,
            records,
            tuple(doubtful),
            (*broken, *(one.path for one in self.git.listing(head) if one.mode != REGULAR)) if head else (*broken,),
            recovered=tuple(rescue),
            lost=tuple(lost),
            documents=tuple(_documents(self, ahead).items()) if ahead else (),
        )

    def restart(self, batch: MemoryBatch, salvaged: Salvage) -> Anchor:
        """A new lineage on the present head, or a new root, as one more commit. Raises Lost if it moved meanwhile."""
        header = replace(batch.memory.header, serial=batch.memory.header.serial + 1)
        batch = replace(batch, memory=replace(batch.memory, header=header))
        with explain_errors("write memory"), self.anchorage.moving():
            if not salvaged.head:
                self.branch.refuse_unborn_checkout()
            if _mark(self) is None:  # damaged: moving the branch would read it
                self.anchorage.forget()
            files: dict[str, bytes | None] = {
                **dict(salvaged.documents),
                **dict.fromkeys((*salvaged.broken, *_ledger_paths(self, salvaged.head))),
            }
            batch = self.redact_batch(batch, salvaged)
            oid = self.move(salvaged.head, files | self.files(batch, salvaged.head), batch.message, batch.memory)
        if not oid:
            raise Lost
        return Anchor(header.lineage, header.serial, oid)


# --- verify ---


def _head(store: BranchStore) -> str:
    try:
        return store.branch.head()
    except UserError:
        return ""


def _position(recalled: MemorySnapshot | None) -> str:
    if recalled is None:
        return "there is no memory yet"
    header = recalled.memory.header
    edits = f"; edited by people: {'; '.join(recalled.human_edits)}" if recalled.human_edits else ""
    return f"lineage {header.lineage}, serial {header.serial}, commit {recalled.oid[:10]}{edits}"


def _check_bans(recalled: MemorySnapshot) -> Iterator[Check]:
    bans, unclear = parse_bans(recalled.memory.do_not_repeat, frozenset(KINDS))
    detail = f"not understood, so ignored: {'; '.join(unclear)}" if unclear else f"{len(bans)} understood"
    yield Check(UNDERSTOOD, not unclear, detail)
    claim = recalled.state.claim
    yield Check("claim", True, f"held by {claim.holder} for cycle {claim.cycle}" if claim else "free")
    unknown = recalled.state.unknown
    yield Check("effects", True, f"unknown: {', '.join(unknown)}" if unknown else f"{len(recalled.state.effects)} open")


def _unreadable(
    git: Git, entries: Iterable[TreeEntry], is_readable: Callable[[TreeEntry, bytes], object]
) -> Iterator[str]:
    """The paths of entries without a document of ours."""
    entries = tuple(entries)
    found = _blobs(git, [entry.oid for entry in entries])
    for entry in entries:
        if entry.oid not in found or not is_readable(entry, found[entry.oid]):
            yield entry.path


def _record_of(entry: TreeEntry, data: bytes) -> Record | None:
    """The record at a path; None if foreign or unreadable."""
    with suppress(codec.UnreadableDocument, ValueError):
        record: Record = codec.load(Record, data)
        return record if layout.record(record.key) == entry.path else None
    return None


def _is_document(_: TreeEntry, data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _is_archive(_: TreeEntry, data: bytes) -> bool:
    try:
        parse_notes(data.decode())
    except (UserError, UnicodeDecodeError):
        return False
    return True


FOLDERS = (
    ("ledger", layout.LEDGER, _record_of),
    ("journal", layout.JOURNAL, _is_document),
    ("archive", layout.ARCHIVE, _is_archive),
)
"""Memory's folders, and the function that recognises our files there."""


# --- salvage ---


def _document(entry: TreeEntry, found: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(found[entry.oid])
    except (ValueError, KeyError, RecursionError):
        raise refuse(f"{entry.path} on the memory branch cannot be read") from None
    return document


def _ledger_paths(store: BranchStore, head: str) -> list[str]:
    """The whole ledger is deleted and trusted records are written again: no foreign file stays by its name."""
    return [entry.path for entry in store.git.listing(head, f"{layout.LEDGER}/")] if head else []


def _mark(store: BranchStore) -> AnchorMark | None:
    try:
        return store.anchorage.read()
    except UserError:
        return None


def _own(store: BranchStore, mark: AnchorMark | None) -> Iterator[str]:
    """This clone's own commits that still exist, newest first."""
    if mark is None:
        return
    before = provenance.earlier(store.branch)  # of a commit that git has lost, its note of the ref is what is left
    older = before[before.index(mark.oid) + 1 :] if mark.oid in before else []
    for oid in dict.fromkeys((mark.pending, mark.oid, *older[: provenance.TRIED])):
        if oid and store.git.resolve(oid):
            yield oid


def _memory(store: BranchStore, starts: Sequence[str]) -> tuple[Memory | None, list[str]]:
    """The newest readable memory, our own first, with people's sections from the newest text that has them.

    `starts`: commits, or "", newest first; the last one is ours.
    """
    *_, trusted = starts
    known = [start for start in starts if start]
    commits = list(dict.fromkeys((*known, *_history(store, *known))))
    texts = _blobs(store.git, [f"{commit}:{store.branch.path}" for commit in commits])
    found = [(commit, texts[name]) for commit in commits if (name := f"{commit}:{store.branch.path}") in texts]
    ours = sorted(found, key=lambda item: item[0] != trusted)
    memory = next((memory for _, text in ours if (memory := _parse_memory(text))), None)
    people = next(((commit, sections) for commit, text in found if (sections := people_sections(text))), None)
    if people is None:
        return memory, []
    commit, (learnings, do_not_repeat) = people
    words = f"Learnings and Do Not Repeat as of {commit[:10]}"
    return replace(memory or Memory(), learnings=learnings, do_not_repeat=do_not_repeat), [words]


def _documents(store: BranchStore, commit: str) -> dict[str, bytes]:
    """A commit's readable journal and archive, by path."""
    entries = [entry for _, folder, _ in FOLDERS[1:] for entry in _entries(store, commit, folder)]
    found = _blobs(store.git, [entry.oid for entry in entries])
    return {entry.path: found[entry.oid] for entry in entries if entry.mode == REGULAR and entry.oid in found}


def _broken_documents(store: BranchStore, head: str) -> list[str]:
    """Unusable paths in the journal and the archive."""
    if not head:
        return []
    pairs = ((_entries(store, head, folder), is_readable) for _, folder, is_readable in FOLDERS[1:])
    return [path for entries, is_readable in pairs for path in _unreadable(store.git, entries, is_readable)]


def _blobs(git: Git, names: Sequence[str]) -> dict[str, bytes]:
    """As `Git.blobs`, also where something on the way to one of them is damaged: of that git gives up on all."""
    try:
        return git.blobs(names)
    except GitError:
        middle = len(names) // 2
        return {**_blobs(git, names[:middle]), **_blobs(git, names[middle:])} if middle else {}


def _entries(store: BranchStore, commit: str, folder: str) -> list[TreeEntry]:
    """What stands below a folder of a commit, without what git has lost of it."""
    with suppress(GitError):
        return list(store.git.listing(commit, f"{folder}/"))
    try:
        inner = store.git.listing(commit, f"{folder}/", recursive=False)
    except GitError:
        return []
    below = (_entries(store, commit, entry.path) if entry.kind == "tree" else [entry] for entry in inner)
    return [entry for entries in below for entry in entries]


def _history(store: BranchStore, *starts: str) -> list[str]:
    if not starts:
        return []
    return store.git.try_text("rev-list", f"--max-count={DEPTH}", *starts, "--", store.branch.path).split()


def _parse_memory(text: bytes) -> Memory | None:
    try:
        return parse_memory(text)
    except UserError:
        return None


def _state(store: BranchStore, commit: str) -> OpenState | None:
    name = f"{commit}:{layout.OPEN}"
    with suppress(KeyError, codec.UnreadableDocument):
        state: OpenState = codec.load(OpenState, _blobs(store.git, [name])[name])
        return state
    return None


def _find_claim(store: BranchStore, head: str) -> OpenState | None:
    """The claim only, by any author: it can stop us from acting, never make us act."""
    found = _state(store, head) if head else None
    return OpenState(claim=found.claim) if found and found.claim else None


def _records(store: BranchStore, commit: str) -> tuple[list[Record], list[str]]:
    """The ledger's readable records at a commit, and the paths of the others."""
    entries = [entry for entry in _entries(store, commit, layout.LEDGER) if entry.mode == REGULAR]
    found = _blobs(store.git, [entry.oid for entry in entries])
    records, broken = [], []
    for entry in entries:
        if record := _record_of(entry, found.get(entry.oid, b"")):
            records.append(record)
        else:
            broken.append(entry.path)
    return records, broken
