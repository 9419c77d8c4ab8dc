"""Makes patches from a diff, from a work tree, or from two commits, without writing anything.

A diff's sections are parsed first, only as far as needed to find those that must never be applied: names (also
C-quoted), modes, and the added and deleted lines. Git decides about the rest, in a temporary index with a temporary
object folder.

The work tree is read by lstat, readlink and bytes: no filter, attribute or hook runs, and no index is refreshed, so a
file that git would convert on its way in (line ends, LFS) counts as changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from ralph_mission.adapters.git.git import ABSENT, EMPTY_TREE, Git, GitError
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import EXECUTABLE, GITLINK, REGULAR, SYMLINK, FileChange, Patch
from ralph_mission.safety.paths import unsafe_path
from ralph_mission.values import compile_regex, dataclass

HUNK = compile_regex(rb"@@ -\d+(?:,(\d{1,18}))? \+\d+(?:,(\d{1,18}))? @@")  # git accepts no more digits
HEADER = compile_regex(rb"diff --git (.+)")
NAMED = compile_regex(rb"(?:---|\+\+\+|rename from|rename to|copy from|copy to) (.+)")
MODE = compile_regex(rb"(?:new file mode|new mode|deleted file mode|old mode) (\d{6})")
ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


@dataclass(slots=True)
class DiffSection:
    """A file's section of a diff. `paths`: as named, without a leading `a/` or `b/`."""

    raw: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    mode: str = REGULAR
    is_new: bool = False
    is_gone: bool = False
    deleted: list[bytes] = field(default_factory=list)
    added: list[bytes] = field(default_factory=list)

    def change(self, path: str) -> FileChange:
        """The section as a change of `path`, as written; for naming it, not for applying it."""
        old = None if self.is_new else b"\n".join(self.deleted)
        new = None if self.is_gone else b"\n".join(self.added)
        return FileChange(path, "" if self.is_new else self.mode, "" if self.is_gone else self.mode, old, new)


def sections(diff: bytes) -> tuple[DiffSection, ...]:
    """The file sections of `diff`, in order; text before the first is ignored, as by git."""
    return tuple(_sections(diff.split(b"\n")))


def _sections(lines: list[bytes]) -> Iterator[DiffSection]:
    section: DiffSection | None = None
    deleted = added = 0  # lines the current hunk still needs: a header inside one is content
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
    """The two names of a `diff --git` line; () if ambiguous (then other lines name them)."""
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
    """Strip the first component, as `git apply` does; an absolute name stays absolute, so that it is noticed."""
    first, slash, rest = name.partition("/")
    if not slash or (first == "" and name != "/dev/null"):
        return name
    return name if name == "/dev/null" else rest


OID = compile_regex("[0-9a-f]{40}|[0-9a-f]{64}")

MODES = frozenset({REGULAR, EXECUTABLE, SYMLINK, GITLINK})
"""All modes a git tree can hold; `git apply` accepts others and converts them."""
LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file in the work tree that is read."""

Tree = Mapping[str, tuple[str, str]]
"""Path -> (mode, object id)."""


def between(git: Git, base: str, head: str) -> Patch:
    """The patch from commit (or tree) `base` to `head`. Raises UserError if an object is missing."""
    return Patch(git.resolve(base) or base, _changes(git, base, head))


def from_diff(git: Git, diff: bytes) -> Patch:
    """The patch of a git or unified diff against HEAD. Raises UserError if it does not apply.

    A section with an unsafe path, or a mode that git would silently convert, is never applied: it becomes a change as
    written, so that the rules can name it.
    """
    base, parts = _head(git), sections(diff)
    if not parts and diff.strip():
        raise UserError("the patch holds no diff", "give one as `git diff` prints it")
    unsafe = [(part, path) for part in parts for path in part.paths if unsafe_path(path) or part.mode not in MODES]
    safe = [part for part in parts if part.mode in MODES and not any(unsafe_path(path) for path in part.paths)]
    with _scratch(git) as env:
        applied = _changes(git, base, _apply(git, base, safe, env), env)
    return Patch(base, (*applied, *(part.change(path) for part, path in unsafe)))


def from_work_tree(git: Git) -> Patch:
    """The patch of the work tree against HEAD: tracked, added, and untracked files that are not ignored."""
    if git.work_tree is None:
        what = "this repository is bare, so there is no work tree to judge"
        raise UserError(what, "give a patch with --patch FILE", usage=True)
    base = _head(git)
    before = {entry.path: (entry.mode, entry.oid) for entry in git.listing(base)}
    changed = {path: now for path, now in _present(git, before) if not _same(before.get(path), now)}
    old = git.blobs(oid for path in changed for mode, oid in [before.get(path, ("", ""))] if oid and mode != GITLINK)
    return Patch(base, tuple(_change(path, before.get(path), old, now) for path, now in sorted(changed.items())))


# --- two trees ------------------------------------------------------------------------


def _changes(git: Git, base: str, head: str, env: Mapping[str, str] | None = None) -> tuple[FileChange, ...]:
    try:
        rows = git.changes(base, head, env)
    except GitError as error:
        what = f"git cannot compare {base[:12]} with {head[:12]}: {error.detail.strip()}"
        raise UserError(what, "name two commits that exist here") from None
    sides = [side for row in rows for side in ((row.old_mode, row.old), (row.new_mode, row.new))]
    contents = git.blobs((oid for mode, oid in sides if mode not in (ABSENT, GITLINK)), env)
    return tuple(
        FileChange(
            row.path,
            _mode(row.old_mode),
            _mode(row.new_mode),
            _side(row.old_mode, row.old, contents),
            _side(row.new_mode, row.new, contents),
        )
        for row in rows
    )


def _side(mode: str, oid: str, contents: Mapping[str, bytes]) -> bytes | None:
    if mode == ABSENT:
        return None
    if mode == GITLINK:
        return oid.encode()
    if oid not in contents:
        raise UserError(f"object {oid[:12]} is missing, so the change cannot be measured", "fetch it, then run again")
    return contents[oid]


def _mode(mode: str) -> str:
    return "" if mode == ABSENT else mode


# --- a diff ---------------------------------------------------------------------------


@contextmanager
def _scratch(git: Git) -> Iterator[dict[str, str]]:
    """A temporary index and object folder; the repository's objects are only read."""
    with tempfile.TemporaryDirectory(prefix="ralph-patch-") as folder:
        objects = Path(folder) / "objects"
        objects.mkdir()
        yield {
            "GIT_INDEX_FILE": str(Path(folder) / "index"),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote(git.common_dir / "objects"),
        }


def _quote(path: Path) -> str:
    """C-quote a path, as git separates alternates by colons."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _apply(git: Git, base: str, parts: Iterable[DiffSection], env: Mapping[str, str]) -> str:
    """Apply the sections to `base`; returns the tree."""
    text = b"\n".join(b"\n".join(part.raw) for part in parts)
    try:
        git.run("read-tree", base, env=env)
        if text.strip():
            text += b"" if text.endswith(b"\n") else b"\n"
            git.run("apply", "--cached", "--whitespace=nowarn", "--no-ignore-whitespace", "-", stdin=text, env=env)
        return git.run("write-tree", env=env).decode().strip()
    except GitError as error:
        lines = error.detail.strip().splitlines() or [str(error)]
        raise UserError(
            f"the patch does not apply to HEAD ({lines[0]})", "create it again from the current HEAD"
        ) from None


def _head(git: Git) -> str:
    return git.resolve("HEAD") or EMPTY_TREE


# --- a work tree ----------------------------------------------------------------------

Now = tuple[str, bytes | None]
"""Mode ("" if absent) and content of a path in the work tree."""


def _present(git: Git, before: Tree) -> Iterator[tuple[str, Now]]:
    assert git.work_tree is not None
    top = os.fsencode(git.work_tree)
    sparse, tracked = _index(git)
    others = _names(git.run("ls-files", "-z", "--others", "--exclude-standard"))
    for path in dict.fromkeys((*before, *tracked, *others)):
        now = _read(top, path)
        if path in sparse and now[0] == "":
            continue  # left out of a sparse checkout, not deleted
        if now[0] or path in before:
            yield path, now


def _index(git: Git) -> tuple[frozenset[str], tuple[str, ...]]:
    """The index's paths that are left out of the checkout, and all its paths."""
    rows = [(row[0], row[2:]) for row in _names(git.run("ls-files", "-z", "-t", "--cached"))]
    return frozenset(path for tag, path in rows if tag == "S"), tuple(path for _, path in rows)


def _names(raw: bytes) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "surrogateescape") for name in raw.split(b"\0") if name)


def _read(top: bytes, path: str) -> Now:
    where = os.path.join(top, path.encode("utf-8", "surrogateescape"))
    if _beyond_link(top, path):
        return "", None
    try:
        found = os.lstat(where.rstrip(b"/"))
    except (FileNotFoundError, NotADirectoryError):
        return "", None
    if stat.S_ISLNK(found.st_mode):
        return SYMLINK, os.readlink(where)
    if stat.S_ISDIR(found.st_mode):
        return read_submodule(where)
    if not stat.S_ISREG(found.st_mode):
        return f"{found.st_mode:06o}", b""  # a pipe, a socket, a device: seen, never opened
    return EXECUTABLE if found.st_mode & stat.S_IXUSR else REGULAR, read_content(where, path, found.st_size)


def _beyond_link(top: bytes, path: str) -> bool:
    """Whether a folder above `path` is a link, so that the file is not the repository's."""
    folders = path.rstrip("/").encode("utf-8", "surrogateescape").split(b"/")[:-1]
    return any(os.path.islink(os.path.join(top, *folders[:depth])) for depth in range(1, len(folders) + 1))


def read_content(where: bytes, path: str, size: int) -> bytes:
    """The bytes of a file that is not a link. Raises UserError if it is too large."""
    if size > LARGEST:
        raise UserError(f"{path} has {size:,} bytes, too many to judge", "leave it out, or ignore it in .gitignore")
    with open(where, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
        found = os.fstat(file.fileno())
        if found.st_nlink > 1 and not found.st_mode & stat.S_IROTH:  # a session may have made a hard link
            raise UserError(f"{path} may be somebody else's file too: it has a second name", "leave it out")
        return file.read()


def read_submodule(where: bytes) -> Now:
    """A folder in place of a tracked file: a gitlink with its checked-out commit, else nothing."""
    dot_git = os.path.join(where, b".git")
    if not os.path.lexists(dot_git):
        return ("", None) if os.listdir(where) else (GITLINK, b"")
    try:
        return GITLINK, _checked_out(Path(os.fsdecode(dot_git))).encode()
    except (OSError, ValueError):
        return GITLINK, b"unknown"


def _checked_out(dot_git: Path) -> str:
    """The commit of a nested repository, read from files without running anything of its configuration.

    They may be links made by a session, so only a commit id is returned.
    """
    commit = _standing(dot_git)
    return commit if OID.fullmatch(commit) else "unknown"


def _standing(dot_git: Path) -> str:
    folder = dot_git if dot_git.is_dir() else dot_git.parent / dot_git.read_text().removeprefix("gitdir:").strip()
    head = (folder / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head
    ref = head.removeprefix("ref:").strip()
    if (folder / ref).is_file():
        return (folder / ref).read_text().strip()
    packed = (line.split(" ") for line in (folder / "packed-refs").read_text().split("\n"))
    return next((words[0] for words in packed if words[1:] == [ref]), "unknown")


def _same(before: tuple[str, str] | None, now: Now) -> bool:
    if before is None or now[1] is None or before[0] != now[0]:
        return False
    if now[0] == GITLINK:
        return now[1] in (b"", before[1].encode())  # an empty folder: a submodule that is not checked out
    algorithm = "sha1" if len(before[1]) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0" % len(now[1]) + now[1]).hexdigest() == before[1]


def _change(path: str, before: tuple[str, str] | None, old: Mapping[str, bytes], now: Now) -> FileChange:
    mode, oid = before or ("", "")
    return FileChange(path.rstrip("/"), mode, now[0], _side(mode or ABSENT, oid, old), now[1])
