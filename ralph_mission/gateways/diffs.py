"""Reads the paths out of a git or unified diff, before git is asked to believe any of it.

Only what is needed to find sections that no repository should ever be asked to apply: names
(C-quoted ones too), modes and the added and deleted lines. What git makes of the rest decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ralph_mission.safety.patch import REGULAR, FileChange

HUNK = re.compile(rb"@@ -\d+(?:,(\d{1,18}))? \+\d+(?:,(\d{1,18}))? @@")  # git takes none of more digits
HEADER = re.compile(rb"diff --git (.+)")
NAMED = re.compile(rb"(?:---|\+\+\+|rename from|rename to|copy from|copy to) (.+)")
MODE = re.compile(rb"(?:new file mode|new mode|deleted file mode|old mode) (\d{6})")
ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


@dataclass(slots=True)
class DiffSection:
    """One file's part of a diff. `paths` are as named, without a leading `a/` or `b/`."""

    raw: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    mode: str = REGULAR
    is_new: bool = False
    is_gone: bool = False
    deleted: list[bytes] = field(default_factory=list)
    added: list[bytes] = field(default_factory=list)

    def change(self, path: str) -> FileChange:
        """The section as a change of `path`, from the diff's own words; for naming it, not for applying it."""
        old = None if self.is_new else b"\n".join(self.deleted)
        new = None if self.is_gone else b"\n".join(self.added)
        return FileChange(path, "" if self.is_new else self.mode, "" if self.is_gone else self.mode, old, new)


def sections(diff: bytes) -> tuple[DiffSection, ...]:
    """The file sections of `diff`, in order; text before the first is dropped, as git does."""
    return tuple(_sections(diff.split(b"\n")))


def _sections(lines: list[bytes]) -> Iterator[DiffSection]:
    section: DiffSection | None = None
    deleted = added = 0  # what the hunk at hand still owes: a header inside one is content
    for index, line in enumerate(lines):
        inside = deleted > 0 or added > 0
        if not inside and _begins(lines, index, section):
            if section:
                yield section
            section = DiffSection()
        if section is None:
            continue
        section.raw.append(line)
        if inside:
            deleted, added = _section_content(section, line, deleted, added)
        elif hunk := HUNK.match(line):
            deleted, added = (int(size) if size is not None else 1 for size in hunk.groups())
        else:
            _header(section, line)
    if section:
        yield section


def _begins(lines: list[bytes], index: int, section: DiffSection | None) -> bool:
    if lines[index].startswith(b"diff --git "):
        return True
    bare = lines[index].startswith(b"--- ") and lines[index + 1 : index + 2] and lines[index + 1].startswith(b"+++ ")
    return bool(bare) and (section is None or any(HUNK.match(line) for line in section.raw))


def _section_content(section: DiffSection, line: bytes, deleted: int, added: int) -> tuple[int, int]:
    if line.startswith(b"\\"):
        return deleted, added
    if line.startswith(b"-"):
        section.deleted.append(line[1:])
        return deleted - 1, added
    if line.startswith(b"+"):
        section.added.append(line[1:])
        return deleted, added - 1
    return deleted - 1, added - 1


def _header(section: DiffSection, line: bytes) -> None:
    section.is_new |= line.startswith(b"new file mode") or line.startswith(b"--- /dev/null")
    section.is_gone |= line.startswith(b"deleted file mode") or line.startswith(b"+++ /dev/null")
    if mode := MODE.match(line):
        section.mode = mode[1].decode()
    elif named := NAMED.match(line):
        prefixed = line.startswith((b"---", b"+++"))
        _add(section, _strip_component(_name(named[1])) if prefixed else _name(named[1]))
    elif header := HEADER.match(line):
        for name in _both(header[1]):
            _add(section, _strip_component(name))


def _add(section: DiffSection, path: str) -> None:
    if path not in ("", "/dev/null") and path not in section.paths:
        section.paths.append(path)


def _both(rest: bytes) -> tuple[str, ...]:
    """The two names of a `diff --git` line; () when they cannot be told apart (then others name them)."""
    if quoted := re.fullmatch(rb'("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S+)', rest):
        return _name(quoted[1]), _name(quoted[2])
    half = len(rest) // 2
    same = rest[half : half + 1] == b" " and rest[:half].partition(b"/")[2] == rest[half + 1 :].partition(b"/")[2]
    return (_name(rest[:half]), _name(rest[half + 1 :])) if same else ()


def _name(raw: bytes) -> str:
    """A name as git or diff(1) writes it: C-quoted, or up to a tab and a time stamp."""
    raw = raw.rstrip(b"\r")
    if not raw.startswith(b'"'):
        return raw.split(b"\t")[0].decode("utf-8", "surrogateescape")
    text = raw[1 : raw.rfind(b'"')].decode("latin-1")
    plain = re.sub(r"\\([0-7]{1,3}|.)", lambda match: chr(_code(match[1])), text)
    return plain.encode("latin-1").decode("utf-8", "surrogateescape")


def _code(escape: str) -> int:
    return int(escape, 8) & 255 if escape[0] in "01234567" else ESCAPES.get(escape, ord(escape))


def _strip_component(name: str) -> str:
    """Without the first component, as `git apply` does; an absolute name stays absolute, so that it is seen."""
    first, slash, rest = name.partition("/")
    if not slash or (first == "" and name != "/dev/null"):
        return name
    return name if name == "/dev/null" else rest
