"""What `ralph memory verify` looks at: every promise about the memory branch that can be checked here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ralph_mission.flows.recover_parts import Check
from ralph_mission.mission.do_not_repeat import understand
from ralph_mission.mission.kinds import KINDS
from ralph_mission.mission.ledger import Recollection
from ralph_mission.mission.memory_parse import parse_notes
from ralph_mission.stores import codec, layout
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.gateways.git import Entry
    from ralph_mission.stores.branch import BranchStore

UNDERSTOOD = "do not repeat"  # the one check that says nothing against memory itself


def checks(store: BranchStore) -> Iterator[Check]:
    """One check after the other; a branch that cannot be recalled is still looked through."""
    try:
        recalled = store.recall()
    except Trouble as trouble:
        yield Check("provenance", False, trouble.what)
        recalled = None
    else:
        yield Check("provenance", True, _position(recalled))
    head = _head(store)
    if not head:
        return
    if recalled is not None:
        yield from _understood(recalled)
    odd = store.branch.odd_files(head)
    yield Check("files", not odd, f"odd or missing: {', '.join(map(repr, odd[:5]))}" if odd else "all regular")
    yield _all(store, head, "ledger", layout.LEDGER, _record)
    yield _all(store, head, "journal", layout.JOURNAL, _journal)
    yield _all(store, head, "archive", layout.ARCHIVE, _archive)


def _head(store: BranchStore) -> str:
    try:
        return store.branch.head()
    except Trouble:
        return ""


def _position(recalled: Recollection | None) -> str:
    if recalled is None:
        return "there is no memory yet"
    header = recalled.memory.header
    edits = f"; edited by people: {'; '.join(recalled.human_edits)}" if recalled.human_edits else ""
    return f"lineage {header.lineage}, serial {header.serial}, commit {recalled.oid[:10]}{edits}"


def _understood(recalled: Recollection) -> Iterator[Check]:
    bans, unclear = understand(recalled.memory.do_not_repeat, frozenset(KINDS))
    said = f"not understood, so not obeyed: {'; '.join(unclear)}" if unclear else f"{len(bans)} understood"
    yield Check(UNDERSTOOD, not unclear, said)
    claim = recalled.state.claim
    yield Check("claim", True, f"held by {claim.holder} for cycle {claim.cycle}" if claim else "free")
    unknown = recalled.state.unknown
    yield Check("effects", True, f"unknown: {', '.join(unknown)}" if unknown else f"{len(recalled.state.effects)} open")


def _all(store: BranchStore, head: str, name: str, folder: str, readable: Callable[[Entry, bytes], bool]) -> Check:
    entries = store.git.listing(head, f"{folder}/")
    found = store.git.blobs(entry.oid for entry in entries)
    bad = [entry.path for entry in entries if entry.oid not in found or not readable(entry, found[entry.oid])]
    return Check(name, not bad, f"cannot be read: {', '.join(bad[:5])}" if bad else f"{len(entries)} files")


def _record(entry: Entry, data: bytes) -> bool:
    try:
        return layout.record(codec.load_record(data).key) == entry.path
    except (codec.Unreadable, ValueError):
        return False


def _journal(_: Entry, data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _archive(_: Entry, data: bytes) -> bool:
    try:
        parse_notes(data.decode())
    except (Trouble, UnicodeDecodeError):
        return False
    return True
