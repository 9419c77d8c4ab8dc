"""What git reads and writes on its pipes, as values: bytes in, bytes out, no process.

Paths may hold anything but NUL, so nothing here is told apart by white space that a path may hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

NOBODY = "0" * 40


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree listing; `path` is decoded as UTF-8 with surrogateescape."""

    mode: str
    kind: str
    oid: str
    path: str


def raw(path: str) -> bytes:
    """A path or an object's name as git has it."""
    return path.encode("utf-8", "surrogateescape")


def entry(line: bytes) -> TreeEntry:
    """One record of `ls-tree -z`."""
    meta, path = line.split(b"\t", 1)
    mode, kind, oid = meta.decode().split()
    return TreeEntry(mode, kind, oid, path.decode("utf-8", "surrogateescape"))


def contents(names: Sequence[str], answer: bytes) -> Iterator[tuple[str, bytes]]:
    """What `cat-file --batch -z` answered to `names`, in their order, without what does not exist."""
    position = 0
    for name in names:
        if echoed := _echo_length(raw(name), answer, position):
            position += echoed
            continue
        end = answer.index(b"\n", position)
        *_, last = answer[position:end].split(b" ")
        position = end + 1
        if last.isdigit():  # else a commit of another repository: named, but not held here
            size = int(last)
            yield name, answer[position : position + size]
            position += size + 1


def _echo_length(name: bytes, answer: bytes, position: int) -> int:
    """The length of the line in which git repeats a name that it does not know; 0 when it knows it."""
    lines = (name + b" missing\n", name + b" ambiguous\n")
    return next((len(line) for line in lines if answer.startswith(line, position)), 0)


def index_info(wanted: Mapping[str, tuple[str, str] | None]) -> bytes:
    """The question of `update-index -z --index-info`: path -> (mode, object id), None removes it."""
    heads = ((f"{found[0]} {found[1]}" if found else f"0 {NOBODY}", path) for path, found in wanted.items())
    return b"".join(head.encode() + b"\t" + raw(path) + b"\0" for head, path in heads)


def import_stream(parent: str, files: Mapping[str, bytes | None], message: str, committer: str, seconds: int) -> bytes:
    """What makes `fast-import` answer the id of one new commit. Raises ValueError for a path it cannot be told."""
    # The ref is fast-import's scratch name for the commit; resetting it to nothing keeps it from being written.
    scratch, text = b"refs/ralph/scratch", raw(message)
    parts = [b"commit %s\nmark :1\n" % scratch]
    parts.append(f"committer {committer} {seconds} +0000\ndata {len(text)}\n".encode() + text + b"\n")
    parts.append(f"from {parent}\n".encode() if parent else b"")
    parts.extend(_file(path, content) for path, content in files.items())
    parts.append(b"\nget-mark :1\nreset %s\nfrom %s\n\ndone\n" % (scratch, b"0" * (len(parent) or len(NOBODY))))
    return b"".join(parts)


def _file(path: str, content: bytes | None) -> bytes:
    name = raw(path)
    if b"\n" in name or name.startswith(b'"'):
        raise ValueError(f"no path for a commit: {path!r}")
    return b"D %s\n" % name if content is None else b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(content), content)
