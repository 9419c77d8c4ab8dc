"""The real repository behind the fake, by git's plumbing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.fresh_repo import read_object, write_object

NOBODY = "0" * 40
FOLDER = b"40000"
OID = re.compile("[0-9a-f]{40}")

QUIET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C.UTF-8",
    "HOME": os.devnull,
}


class GitRefused(Exception):
    """Git exited with a code that was not asked for."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Who, and when (with the offset that was written down)."""

    name: str
    email: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CommitInfo:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str
    signed: bool


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A path and nothing else of the surroundings."""
    return {"PATH": os.environ.get("PATH", os.defpath), **QUIET, **(extra or {})}


def text(raw: bytes) -> str:
    """As GitHub puts bytes into JSON: what is no UTF-8 is replaced."""
    return raw.decode("utf-8", "replace")


class Bare:
    """A bare repository."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        # Objects never change, so what is worked out of them is worked out once.
        self.commit = lru_cache(maxsize=None)(self._commit)
        self.merged_tree = lru_cache(maxsize=None)(self._merged_tree)
        self._lines: dict[str, tuple[str, ...]] = {}  # what each commit that was asked for comes from
        self.resolved: set[str] = set()
        self.told: dict[Hashable, Any] = {}  # what git said of its refs, by all that it was said by

    def run(
        self,
        *arguments: str | bytes,
        stdin: bytes = b"",
        ok: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """`git ARGUMENTS`; raises when it exits with anything but `ok`."""
        command = ["git", "--git-dir", str(self.path), "-c", "core.quotePath=false", "-c", "gc.auto=0", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, env=environment(env), check=False)
        if done.returncode not in ok:
            raise GitRefused(f"{command}: {done.stderr.decode(errors='replace')}")
        return done

    def line(self, *arguments: str | bytes, ok: Sequence[int] = (0,)) -> str:
        """Standard output without its last newline."""
        return self.run(*arguments, ok=ok).stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    # --- refs

    def heads(self) -> dict[str, str]:
        """Every branch and where it points. Asked at every request: read without a process."""
        packed, loose = self.path / "packed-refs", self.path / "refs/heads"
        lines = packed.read_text().splitlines() if packed.exists() else []
        found = {ref: sha for sha, _, ref in (line.partition(" ") for line in lines) if ref.startswith("refs/heads/")}
        for file in loose.rglob("*"):
            if file.is_file() and file.suffix != ".lock":
                found[f"refs/heads/{file.relative_to(loose)}"] = file.read_text().strip()
        return {ref.removeprefix("refs/heads/"): found[ref] for ref in sorted(found)}

    def resolve(self, name: str) -> str:
        """The commit that a name or an abbreviation stands for; "" when there is none."""
        if name in self.resolved or (OID.fullmatch(name) and (read_object(self.path, name) or [""])[0] == "commit"):
            return name
        found = self.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
        if found == name:
            self.resolved.add(name)
        return found

    def branch(self, name: str) -> str:
        return self.heads().get(name, "")

    def set_ref(self, ref: str, new: str, old: str | None = None) -> bool:
        """Point a ref somewhere; with `old`, only when it is still there. What it takes to move one is done here."""
        place = self.path / ref
        if place.is_file() and read_object(self.path, new):
            stands = old in (None, place.read_text().strip())
            if stands:
                place.write_text(f"{new}\n")
            return stands
        return self.run("update-ref", ref, new, *([] if old is None else [old]), ok=(0, 1, 128)).returncode == 0

    def delete_ref(self, ref: str) -> None:
        self.run("update-ref", "-d", ref)

    # --- history

    def _commit(self, sha: str) -> CommitInfo:
        raw = self._read("commit", sha)
        head, _, message = raw.partition(b"\n\n")
        lines = [line.split(b" ", 1) for line in head.split(b"\n") if b" " in line and not line.startswith(b" ")]
        fields = {key.decode(): value for key, value in lines}
        return CommitInfo(
            sha=sha,
            tree=fields["tree"].decode(),
            parents=tuple(value.decode() for key, value in lines if key == b"parent"),
            author=_signature(fields["author"]),
            committer=_signature(fields["committer"]),
            message=text(message).rstrip("\n"),
            signed="gpgsig" in fields,
        )

    def history(self, head: str) -> tuple[str, ...]:
        """What a commit comes from, and itself: parents before their children."""
        line: list[str] = []  # from the head back, as far as there is one parent
        while head and head not in self._lines:
            parents = self.commit(head).parents if read_object(self.path, head) else ("", "in a pack")
            if len(parents) > 1:
                self._lines[head] = tuple(self.line("rev-list", "--reverse", "--topo-order", head).split())
                break
            line.append(head)
            head = parents[0] if parents else ""
        known = self._lines[head] if head else ()
        if line:
            known = self._lines[line[0]] = (*known, *reversed(line))
        return known

    def is_ancestor(self, old: str, new: str) -> bool:
        return old in self.history(new)

    def merge_base(self, one: str, other: str) -> str:
        """The best common ancestor, "" for unrelated histories."""
        known = frozenset(self.history(other))
        return next((sha for sha in reversed(self.history(one)) if sha in known), "")

    def between(self, base: str, head: str) -> list[str]:
        """What is on `head` and not on `base`, oldest first."""
        return self.beyond(head, base)

    def new_to_branches(self, sha: str) -> list[str]:
        """What no branch has yet, oldest first."""
        return self.beyond(sha, *self.heads().values())

    def beyond(self, head: str, *known: str) -> list[str]:
        """What a commit comes from and none of the others does, oldest first."""
        old = frozenset().union(*map(self.history, known))
        return [sha for sha in self.history(head) if sha not in old]

    def entry(self, commit: str, path: str) -> str:
        """The object at a path, "" for none."""
        mode, oid = FOLDER, self.commit(commit).tree
        for name in path.encode().split(b"/"):
            mode, oid = self._rows(oid).get(name, (b"", "")) if mode == FOLDER else (b"", "")
        return oid

    # --- making commits

    def _merged_tree(self, base: str, head: str) -> str:
        """The tree of a merge, or "" when there is a conflict or nothing in common."""
        done = self.run("merge-tree", "--write-tree", "--no-messages", base, head, ok=(0, 1, 128))
        return "" if done.returncode else done.stdout.split(b"\n")[0].decode()

    def commit_tree(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: Signature,
        committer: Signature,
        signed: bool = False,
    ) -> str:
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in dict.fromkeys(parents))]
        lines += [
            f"{role} {who.name} <{who.email}> {int(who.at.timestamp())} +0000"
            for role, who in (("author", author), ("committer", committer))
        ]
        lines += ["gpgsig -----BEGIN PGP SIGNATURE-----", " ", " by GitHub", " -----END PGP SIGNATURE-----"] * signed
        text = "\n".join(lines) + "\n\n" + message + ("" if message.endswith("\n") else "\n")
        return write_object(self.path, "commit", text.encode())

    def write_files(self, parent: str, files: Mapping[str, bytes | None]) -> str:
        """The tree of `parent` ("" for none) with files written, or removed where None."""
        before = self.commit(parent).tree if parent else ""
        paths = {tuple(path.encode("utf-8", "surrogateescape").split(b"/")): files[path] for path in files}
        return self._tree(before, paths) or write_object(self.path, "tree", b"")

    def _tree(self, before: str, files: Mapping[tuple[bytes, ...], bytes | None]) -> str:
        """A tree with files changed, "" when nothing is left in it."""
        rows = self._rows(before) if before else {}
        for name in {path[0] for path in files}:
            below = {path[1:]: content for path, content in files.items() if path[0] == name and path[1:]}
            content, (mode, oid) = files.get((name,)), rows.pop(name, (b"", ""))
            if below and (made := self._tree(oid if mode == FOLDER else "", below)):
                rows[name] = (FOLDER, made)
            elif content is not None:
                rows[name] = (b"100644", write_object(self.path, "blob", content))
        order = sorted(rows, key=lambda name: name + b"/" * (rows[name][0] == FOLDER))
        lines = [b"%s %s\0%s" % (rows[name][0], name, bytes.fromhex(rows[name][1])) for name in order]
        return write_object(self.path, "tree", b"".join(lines)) if rows else ""

    def _rows(self, tree: str) -> dict[bytes, tuple[bytes, str]]:
        """Mode and object by name."""
        rest, rows = self._read("tree", tree), {}
        while rest:
            head, _, rest = rest.partition(b"\0")
            mode, _, name = head.partition(b" ")
            rows[name], rest = (mode, rest[:20].hex()), rest[20:]
        return rows

    def _read(self, kind: str, oid: str) -> bytes:
        """The content of an object: what came by a push is in packs, which git itself reads."""
        found = read_object(self.path, oid)
        return found[1] if found and found[0] == kind else self.run("cat-file", kind, oid).stdout


def _signature(raw: bytes) -> Signature:
    who, _, when = raw.rpartition(b"> ")
    name, _, email = who.partition(b" <")
    seconds, offset = when.decode().split(" ")
    zone = timezone(timedelta(minutes=int(offset[:3]) * 60 + int(offset[0] + offset[3:])))
    return Signature(text(name), text(email), datetime.fromtimestamp(int(seconds), zone).astimezone(UTC))
