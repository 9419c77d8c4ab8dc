"""What changed between two commits, as GitHub lists it: one entry a file, renames found, hunks without headers."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.github.bare import Bare, text

KINDS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file. `patch` is None where GitHub leaves it out: binary files, pure renames, changes of mode."""

    path: str
    previous: str | None
    status: str
    sha: str
    additions: int
    deletions: int
    patch: str | None


def changes(bare: Bare, old: str, new: str) -> list[FileChange]:
    """The files that differ between two commits or trees."""
    flags = ("diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv")
    tokens = bare.run(*flags, "-z", "--raw", "--numstat", old, new).stdout.split(b"\0")[:-1]
    raws, counts = _raws(tokens)
    patches = _patches(bare.run(*flags, "-p", old, new).stdout, [status for status, *_ in raws])
    return [
        FileChange(text(path), text(previous) if previous else None, status, sha, *numbers, patch)
        for (status, sha, previous, path), numbers, patch in zip(raws, counts, patches, strict=True)
    ]


def _raws(tokens: list[bytes]) -> tuple[list[tuple[str, str, bytes, bytes]], list[tuple[int, int]]]:
    rest, raws, counts = list(tokens), [], []
    while rest and rest[0].startswith(b":"):
        _, _, old_sha, new_sha, letter = rest.pop(0).decode().split(" ")
        first = rest.pop(0)
        previous, path = (first, rest.pop(0)) if letter[0] in "RC" else (b"", first)
        raws.append((KINDS[letter[0]], old_sha if letter == "D" else new_sha, previous, path))
    while rest:
        added, deleted, path = rest.pop(0).split(b"\t")
        del rest[: 0 if path else 2]  # a rename's two names follow
        counts.append((0, 0) if added == b"-" else (int(added), int(deleted)))
    return raws, counts


def _patches(raw: bytes, kinds: list[str]) -> list[str | None]:
    sections = iter((b"\n" + raw).split(b"\ndiff --git ")[1:])
    # A change of type is a removal and an addition to git.
    return [_hunks(b"".join(next(sections) for _ in range(1 + (kind == "changed")))) for kind in kinds]


def _hunks(section: bytes) -> str | None:
    _, found, hunks = section.partition(b"\n@@ ")
    return text(b"@@ " + hunks).rstrip("\n") if found else None
