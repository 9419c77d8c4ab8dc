"""Reads all that ever stood on a memory branch, with git and JSON alone: an auditor that trusts no code of ours."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers import git

LOG, STATE = "memory/ralph-log.md", "memory/open.json"
JOURNAL, ARCHIVE, LEDGER = "memory/journal/", "memory/archive/", "memory/ledger/"
OURS = ("Ralph", "github-actions[bot]", "ralph-app[bot]")  # the names in our commits: on this machine, and on GitHub
FINAL = ("done", "adopted")
ENTRY = re.compile(r"^### (?:\[|Cycle #).*(?:\n(?!#|<!--).*)*", re.M)  # a completed mission, or what a cycle saw
WAITING = ("DISCOVERED", "PARKED")  # for a person, which takes no slot
CAPS = {"active missions": 3, "new missions in a cycle": 1, "actions in a cycle": 3, "automatic pulls in a cycle": 1}


@dataclass(frozen=True)
class Change:
    """One file of one commit, before and after; None where there is none."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Commit:
    """One commit of the branch, and the one before it."""

    oid: str
    parents: tuple[str, ...]
    author: str
    changes: tuple[Change, ...]

    @property
    def is_ours(self) -> bool:
        """Whether a runner made it."""
        return self.author in OURS

    def change(self, path: str) -> Change:
        """What it did to a file."""
        return next((change for change in self.changes if change.path == path), Change(path, None, None))


@dataclass
class Audit:
    """What was read, and what should not have been."""

    commits: int = 0
    entries: int = 0
    wrong: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)


def audit(bare: Path, branch: str = "ralph-memory") -> Audit:
    """Read it from its first commit on."""
    found, commits = Audit(), _commits(bare, branch)
    for before, commit in zip([None, *commits], commits, strict=False):
        found.commits += 1
        found.wrong += [f"{commit.oid[:8]}: {wrong}" for wrong in _altered(before, commit)]
        found.breaches += [f"{commit.oid[:8]}: {breach}" for breach in _beyond_caps(commit)]
    kept, last = _texts(bare, branch, ARCHIVE), git(bare, "show", f"{branch}:{LOG}")
    entries = dict.fromkeys(entry for commit in commits for entry in _entries(commit.change(LOG).new))
    found.entries = len(entries) + sum(c.path.startswith(JOURNAL) for commit in commits for c in commit.changes)
    found.wrong += [f"lost: {entry.splitlines()[0]}" for entry in entries if entry not in kept + last]
    found.wrong += [f"lost: what a person wrote: {line}" for line in _written(commits) if line not in last]
    return found


def _altered(before: Commit | None, commit: Commit) -> Iterator[str]:
    if commit.parents != ((before.oid,) if before else ()):
        yield "history is no line"
    for change in commit.changes:
        if change.path.startswith(JOURNAL) and change.old is not None:
            yield f"{change.path} was altered"
        if change.path.startswith(ARCHIVE) and not (change.new or "").startswith(change.old or ""):
            yield f"{change.path} was altered"
        if change.path.startswith(LEDGER) and (change.new is None or _unsettled(change)):
            yield f"{change.path} was altered"
        if not commit.is_ours and change.path != LOG:
            yield f"{change.path} was changed by {commit.author}"
    yield from _serials(commit)


def _unsettled(change: Change) -> bool:
    """Whether an effect that was done is said not to be, or to be another one."""
    if change.old is None or change.new is None:
        return False
    old, new = json.loads(change.old), json.loads(change.new)
    said = [(one.get("state"), (one.get("receipt") or {}).get("number")) for one in (old, new)]
    return old.get("state") in FINAL and said[0] != said[1]


def _serials(commit: Commit) -> Iterator[str]:
    log = commit.change(LOG)
    old, new = (int(re.search(r"^serial: (\d+)$", text or "serial: 0", re.M)[1]) for text in (log.old, log.new))
    if new != old + commit.is_ours:
        yield f"serial {old} became {new}"


def _beyond_caps(commit: Commit) -> Iterator[str]:
    """Caps that what a commit intends, or says to be under way, goes beyond."""
    intended = [record for record in map(_intended, commit.changes) if record]
    before, after = (_state(text) for text in (commit.change(STATE).old, commit.change(STATE).new))
    counted = {
        "active missions": _active(after) if _began_one(before, after) else 0,
        "new missions in a cycle": after.get("next_mission", 1) - before.get("next_mission", 1),
        "actions in a cycle": len({record["action_key"] for record in intended}),
        "automatic pulls in a cycle": len({r["action_key"] for r in intended if r["action"] == "open-fix"}),
    }
    yield from (f"{counted[what]} {what}" for what, cap in CAPS.items() if counted[what] > cap)


def _active(state: dict[str, Any]) -> int:
    return sum(mission["status"] not in WAITING for mission in state.get("missions", ()))


def _began_one(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether work on a mission began: people may bring back as many as they like."""
    known = {mission["id"] for mission in before.get("missions", ()) if mission["status"] != "DISCOVERED"}
    return any(mission["id"] not in known and mission["status"] not in WAITING for mission in after.get("missions", ()))


def _intended(change: Change) -> dict[str, Any] | None:
    if not change.path.startswith(LEDGER) or not change.new:
        return None
    record = json.loads(change.new)
    return record if record.get("state") == "intended" else None


def _state(text: str | None) -> dict[str, Any]:
    return json.loads(text) if text else {}


def _entries(text: str | None) -> list[str]:
    return [entry.rstrip() for entry in ENTRY.findall(text or "")]


def _written(commits: Iterable[Commit]) -> Iterator[str]:
    """The lines that people wrote into memory."""
    for commit in commits:
        log = commit.change(LOG)
        if not commit.is_ours:
            yield from (set((log.new or "").splitlines()) - set((log.old or "").splitlines()))


# --- git -----------------------------------------------------------------------------------


def _commits(bare: Path, branch: str) -> list[Commit]:
    how = ("--reverse", "--first-parent", "--raw", "--no-abbrev", "--no-renames", "--format=%x00%H%x09%P%x09%an")
    heads = [text.strip("\n").split("\n") for text in git(bare, "log", *how, branch).split("\0")[1:]]
    changed = [[_change(line) for line in lines if line.startswith(":")] for _, *lines in heads]
    blobs = _blobs(bare, {oid for changes in changed for _, *sides in changes for oid in sides})
    return [
        Commit(oid, tuple(parents.split()), author, tuple(Change(path, blobs[a], blobs[b]) for path, a, b in changes))
        for (oid, parents, author), changes in zip((head.split("\t") for head, *_ in heads), changed, strict=True)
    ]


def _change(line: str) -> tuple[str, str, str]:
    """Path, and the blobs before and after."""
    told, path = line.split("\t")
    _, _, old, new, _ = told.split(" ")
    return path, old, new


def _blobs(bare: Path, oids: set[str]) -> dict[str, str | None]:
    """Contents by object id, None for the one that is no object."""
    wanted = sorted(oids)
    command = ["git", "-C", str(bare), "cat-file", "--batch"]
    said = subprocess.run(command, input="\n".join(wanted).encode(), capture_output=True, check=True).stdout
    found: dict[str, str | None] = {}
    for oid in wanted:
        head, _, said = said.partition(b"\n")
        size = 0 if head.endswith(b" missing") else int(head.split()[2])
        found[oid] = said[:size].decode() if oid.strip("0") else None
        said = said[size + 1 :] if oid.strip("0") else said
    return found


def _texts(bare: Path, branch: str, folder: str) -> str:
    paths = git(bare, "ls-tree", "-r", "--name-only", branch, folder).splitlines()
    return "\n".join(git(bare, "show", f"{branch}:{path}") for path in paths)
