"""Git as plumbing: objects and refs only, never the user's checkout, index, stash or config.

Every call ignores the user's and the system's configuration, runs no hook, filter, pager, editor, external diff or
file-system monitor, and never prompts. Repository configuration still applies to reading objects. Paths may contain
anything but NUL, so output is never split at white space.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path

from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

NOBODY = "0" * 40
ABSENT = "000000"  # the mode of what is not there


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree listing; `path` is decoded as UTF-8 with surrogateescape."""

    mode: str
    kind: str
    oid: str
    path: str


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One line of `diff-tree --raw`: modes and object ids, of which zeros stand for nothing."""

    old_mode: str
    new_mode: str
    old: str
    new: str
    path: str


def raw(path: str) -> bytes:
    """A path or an object's name as git's bytes."""
    return path.encode("utf-8", "surrogateescape")


def entry(line: bytes) -> TreeEntry:
    """One record of `ls-tree -z`."""
    meta, path = line.split(b"\t", 1)
    mode, kind, oid = meta.decode().split()
    return TreeEntry(mode, kind, oid, path.decode("utf-8", "surrogateescape"))


def contents(names: Sequence[str], answer: bytes) -> Iterator[tuple[str, bytes]]:
    """Parse the answer of `cat-file --batch -z` to `names`, in order; missing objects are left out."""
    position = 0
    for name in names:
        if echoed := _echo_length(raw(name), answer, position):
            position += echoed
            continue
        end = answer.index(b"\n", position)
        *_, last = answer[position:end].split(b" ")
        position = end + 1
        if last.isdigit():  # else a gitlink: a commit of another repository
            size = int(last)
            yield name, answer[position : position + size]
            position += size + 1


def _echo_length(name: bytes, answer: bytes, position: int) -> int:
    """The length of git's line about an unknown name; 0 if the name is known."""
    lines = (name + b" missing\n", name + b" ambiguous\n")
    return next((len(line) for line in lines if answer.startswith(line, position)), 0)


def index_info(entries: Mapping[str, tuple[str, str] | None]) -> bytes:
    """Input for `update-index -z --index-info`: path -> (mode, object id), None removes it."""
    heads = ((f"{found[0]} {found[1]}" if found else f"0 {NOBODY}", path) for path, found in entries.items())
    return b"".join(head.encode() + b"\t" + raw(path) + b"\0" for head, path in heads)


def import_stream(parent: str, files: Mapping[str, bytes | None], message: str, committer: str, seconds: int) -> bytes:
    """Input that makes `fast-import` print the id of one new commit. Raises ValueError for a path it cannot express."""
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


PINS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "submodule.recurse=false",
    "commit.gpgSign=false",
    "core.quotePath=false",
    "log.showSignature=false",
    "log.showRoot=true",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "advice.detachedHead=false",
)
ANSWER = 30.0  # seconds to find a repository: slower than any disk
TIMED_OUT = 124  # as timeout(1) of GNU coreutils
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


HEADER = compile_regex(rb"[0-9a-f]+ [a-z]+ ([0-9]+)\n")  # before an object, of `cat-file --batch`
NO_ROOM = compile_regex("No space left on device|Disk quota exceeded")
ROOM = "free some disk space, then run again"


class GitError(Exception):
    """A git command failed. `detail`: its message. `output`: its output so far."""

    def __init__(self, command: Sequence[str], code: int, detail: str, output: bytes = b"") -> None:
        super().__init__(f"git {' '.join(command[:2])}: {detail.strip() or f'exit {code}'}")
        self.command, self.code, self.detail, self.output = tuple(command), code, detail, output

    def next_step(self, otherwise: str) -> str:
        """What a person should do: `otherwise`, unless the disk was full."""
        return ROOM if NO_ROOM.search(self.detail) else otherwise


@dataclass(frozen=True, slots=True)
class Identity:
    """Who authors what we commit. Explicit, never taken from the environment."""

    name: str = "Ralph"
    email: str = "ralph@localhost"

    @property
    def settings(self) -> str:
        """Git's settings that name it."""
        return f"[user]\n\tname = {_quote(self.name)}\n\temail = {_quote(self.email)}\n"


def _quote(text: str) -> str:
    plain = "".join(letter for letter in text if letter.isprintable())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True, slots=True)
class Git:
    """One repository. `work_tree` is None when it is bare."""

    git_dir: Path
    common_dir: Path
    work_tree: Path | None
    extra: tuple[str, ...] = field(default=(), repr=False)

    @staticmethod
    def open(directory: Path) -> Git:
        """The repository that contains `directory`. Raises UserError if there is none."""
        return _discover(Path(directory))

    @staticmethod
    def at(folder: Path) -> Git:
        """The repository whose work tree is `folder`, found there without asking git."""
        return Git(folder / ".git", folder / ".git", folder)

    @property
    def state_dir(self) -> Path:
        """`.ralph/` in the main work tree, or `<gitdir>/ralph/` when bare; shared by linked work trees."""
        if self.common_dir.name == ".git":
            return self.common_dir.parent / ".ralph"
        return self.common_dir / "ralph"

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float | None = 600,
    ) -> bytes:
        """Standard output of `git ARGUMENTS`. Raises GitError if it exits non-zero or takes over `timeout` s."""
        return self._answer(arguments, stdin, env, timeout).stdout

    def _answer(
        self, arguments: Sequence[str], stdin: bytes, env: Mapping[str, str] | None, timeout: float | None = 600
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            done = subprocess.run(
                self._command(arguments),
                input=stdin,
                capture_output=True,
                env=environment() | dict(env or {}),
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitError(arguments, TIMED_OUT, f"no answer within {timeout:g} s") from None
        if done.returncode != 0:
            raise GitError(arguments, done.returncode, done.stderr.decode(errors="replace"), done.stdout)
        return done

    def text(self, *arguments: str, stdin: bytes = b"") -> str:
        """`run`, decoded (surrogateescape) and without the last newline."""
        return self.run(*arguments, stdin=stdin).decode("utf-8", "surrogateescape").rstrip("\n")

    def try_text(self, *arguments: str) -> str:
        """`text`, or "" if git exits non-zero."""
        try:
            return self.text(*arguments)
        except GitError:
            return ""

    def resolve(self, revision: str) -> str:
        """The commit `revision` names, or ""."""
        return self.try_text("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")

    def listing(self, commit: str, *paths: str, recursive: bool = True) -> tuple[TreeEntry, ...]:
        """The entries of a commit's tree, all or below `paths`."""
        flags = ("-r",) if recursive else ()
        raw = self.run("ls-tree", "-z", *flags, "--full-tree", commit, "--", *paths)
        return tuple(entry(line) for line in raw.split(b"\0") if line)

    def paths(self, commit: str) -> list[str]:
        """The paths of a commit's tree."""
        names = self.run("ls-tree", "-z", "-r", "--name-only", "--full-tree", commit)
        return [name.decode("utf-8", "surrogateescape") for name in names.split(b"\0") if name]

    def blobs(
        self, names: Iterable[str], env: Mapping[str, str] | None = None, *, strict: bool = False
    ) -> dict[str, bytes]:
        """Contents of objects by name (`OID`, or `COMMIT:path`); missing ones are left out.

        So are damaged ones, unless `strict`: raises GitError then.
        """
        unique = list(dict.fromkeys(names))
        if not unique:
            return {}
        query, command = b"".join(raw(name) + b"\0" for name in unique), ("cat-file", "--batch", "-z")
        done = self._answer(command, query, env)
        if strict and b"error: " in done.stderr:
            raise GitError(command, done.returncode, done.stderr.decode(errors="replace"))
        return dict(contents(unique, done.stdout))

    def each_blob(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        """Contents of objects, streamed by one process (`blobs` holds all of them in memory); None for a missing one.

        Raises GitError where git gives up.
        """
        command = ("cat-file", "--batch")
        with tempfile.TemporaryFile() as query, tempfile.TemporaryFile() as complaints:
            query.write("".join(f"{oid}\n" for oid in oids).encode())
            query.seek(0)
            with subprocess.Popen(
                self._command(command),
                stdin=query,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment(),
            ) as process:
                assert process.stdout is not None
                try:
                    for oid in oids:
                        header = process.stdout.readline()
                        if header == f"{oid} missing\n".encode():
                            yield None
                            continue
                        size = HEADER.fullmatch(header)
                        content = process.stdout.read(int(size[1]) + 1) if size else b""
                        if not size or len(content) <= int(size[1]):
                            process.stdout.close()  # git may wait for us to read
                            code = process.wait()
                            complaints.seek(0)
                            raise GitError(
                                command, code, complaints.read().decode(errors="replace") or "it ended early"
                            )
                        yield content[:-1]
                finally:
                    process.kill()

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """The bytes of each object; missing ones are left out."""
        query = "\n".join(dict.fromkeys(oids)).encode()
        lines = self.text("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=query) if query else ""
        return {row[0]: int(row[1]) for line in lines.splitlines() if (row := line.split())[1].isdigit()}

    def refuse_lost(self, commit: str, *, history: bool = False) -> None:
        """Raise GitError if an object of a commit, or of its whole `history`, is missing."""
        walk = () if history else ("--no-walk",)
        self.run("rev-list", "--objects", "--quiet", *walk, commit, "--")

    def write_tree(self, base: str, changes: Mapping[str, tuple[str, bytes] | None]) -> str:
        """A tree like `base` ("" for none) with `path: (mode, content)` set and `path: None` removed.

        Raises GitError if git would not store one of them exactly so.
        """
        entries = {path: change and (change[0], self.write_blob(change[1])) for path, change in changes.items()}
        with self.scratch_index() as env:
            if base:
                self.run("read-tree", base, env=env)
            self.run("update-index", "-z", "--index-info", stdin=index_info(entries), env=env)
            tree = self.run("write-tree", env=env).decode().strip()
        # git skips a path it refuses (`.git/x`, `../x`) with a warning, and exits 0.
        files = {entry.path: (entry.mode, entry.oid) for entry in self.listing(tree)}
        if refused := [path for path, entry in entries.items() if files.get(path) != entry]:
            raise GitError(("write-tree",), 0, f"git refuses the path {refused[0]!r}")
        return tree

    def commit_tree(
        self, tree: str, parents: Sequence[str], message: str, when: datetime, who: Identity = Identity()
    ) -> str:
        """A commit object. The same arguments always make the same object id."""
        stamp = f"{int(when.timestamp())} +0000"
        env = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", who.name), ("EMAIL", who.email), ("DATE", stamp))
        }
        flags = [flag for parent in parents for flag in ("-p", parent)]
        raw = self.run("commit-tree", tree, *flags, "-F", "-", stdin=message.encode(), env=env)
        return raw.decode().strip()

    def commit_files(
        self, parent: str, files: Mapping[str, bytes | None], message: str, when: datetime, who: Identity = Identity()
    ) -> str:
        """A commit on `parent` (its id; "" for none) with regular files written (None: removed); moves no ref.

        One process, whatever the size of the tree: only the folders on the way to the files are read.
        The objects are on disk (fsync) on return. Paths must not contain a newline or start with a quote.
        """
        stream = import_stream(parent, files, message, f"{who.name} <{who.email}>", int(when.timestamp()))
        raw = self.run("-c", "core.fsync=committed", "fast-import", "--quiet", "--done", stdin=stream)
        return raw.decode().strip()

    def contains(self, commit: str, tip: str) -> bool:
        """Whether `tip` is `commit` or a descendant; False if git cannot tell."""
        try:
            self.run("merge-base", "--is-ancestor", commit, tip)
        except GitError:
            return False
        return True

    def changes(self, old: str, new: str, env: Mapping[str, str] | None = None) -> list[TreeChange]:
        """The changed paths between two commits or trees. Raises GitError."""
        flags = ("-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-commit-id", "--end-of-options")
        parts = self.run("diff-tree", *flags, old, new, env=env).decode("utf-8", "surrogateescape").split("\0")
        pairs = zip(parts[::2], parts[1::2], strict=False)
        return [
            TreeChange(was, now, one, other, path)
            for meta, path in pairs
            for was, now, one, other, _ in [meta[1:].split()]
        ]

    def paths_between(self, old: str, new: str, *flags: str) -> list[str]:
        """The paths in which two commits or trees differ. Raises GitError."""
        names = self.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", *flags, old, new)
        return [name.decode("utf-8", "surrogateescape") for name in names.split(b"\0") if name]

    def says_the_same(self, one: str, other: str) -> bool:
        """Whether two commits only differ in author, time and signature."""
        shapes = {self.try_text("show", "--no-patch", "--format=%T %P%n%B", oid).strip() for oid in (one, other)}
        return len(shapes) == 1 and "" not in shapes

    def move_ref(self, ref: str, new: str, old: str) -> bool:
        """Compare-and-swap of a ref; `old` "": it must not exist, `new` "": delete it. False if it was elsewhere."""
        try:
            self.run("update-ref", "--no-deref", ref, new or NOBODY, old or NOBODY)
        except GitError:
            if self.try_text("rev-parse", "--verify", "--quiet", ref) == old:
                raise
            return False
        return True

    @contextmanager
    def scratch_index(self) -> Iterator[dict[str, str]]:
        """An environment with a temporary index."""
        with tempfile.TemporaryDirectory(prefix="ralph-index-") as folder:
            yield {"GIT_INDEX_FILE": os.path.join(folder, "index")}

    def write_blob(self, content: bytes) -> str:
        """Store content as a blob; returns its object id. Raises GitError."""
        return self.run("hash-object", "-w", "-t", "blob", "--stdin", "--no-filters", stdin=content).decode().strip()

    def _command(self, arguments: Sequence[str]) -> list[str]:
        pins = [part for pin in (*PINS, *self.extra) for part in ("-c", pin)]
        place = ["--git-dir", str(self.git_dir)]
        if self.work_tree:
            place = ["-C", str(self.work_tree), *place, "--work-tree", str(self.work_tree)]
        return ["git", *pins, *place, *arguments]


def environment() -> dict[str, str]:
    """The environment for git: a PATH, and nothing else of the user's."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def _discover(directory: Path) -> Git:
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "name a git repository with --repo DIR", usage=True)
    done = _rev_parse(directory, ())
    extra: tuple[str, ...] = ()
    if done.returncode != 0 and b"dubious ownership" in done.stderr:
        extra = _trusted_by_user()
        done = _rev_parse(directory, extra)
    if done.returncode != 0:
        raise _not_a_repository(directory, done.stderr)
    answers = done.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if len(answers) > 4 - (answers[2:3] == ["true"]):
        raise UserError("the path of the repository holds a line break", "move it to a folder without one", usage=True)
    git_dir, common, bare, top = (*answers, "")[:4]
    where = directory / common if not os.path.isabs(common) else Path(common)
    work_tree = Path(top) if bare == "false" and top else None
    return Git(Path(git_dir), where.resolve(), work_tree, extra)


def _rev_parse(directory: Path, extra: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    pins = [part for pin in (*PINS, *extra) for part in ("-c", pin)]
    query = ["rev-parse", "--absolute-git-dir", "--git-common-dir", "--is-bare-repository", "--show-toplevel"]
    command = ["git", *pins, "-C", str(directory), *query]
    try:
        done = subprocess.run(command, capture_output=True, env=environment(), check=False, timeout=ANSWER)
    except FileNotFoundError:
        raise UserError("git is not installed", "install git 2.38 or newer") from None
    except subprocess.TimeoutExpired:
        hint = "see whether .git/HEAD is a plain file: rm it, then git symbolic-ref HEAD refs/heads/BRANCH"
        raise UserError(f"git gives no answer about {directory}", hint) from None
    if b"must be run in a work tree" in done.stderr:  # bare: there is no top level
        done = subprocess.run(command[:-1], capture_output=True, env=environment(), check=False)
    return done


def _trusted_by_user() -> tuple[str, ...]:
    # The user's own `safe.directory` is the one thing honoured from the global configuration:
    # it says whose repository may be read at all, and nothing about how.
    done = subprocess.run(
        ["git", "config", "--global", "--get-all", "safe.directory"], capture_output=True, check=False
    )
    return tuple(f"safe.directory={line}" for line in done.stdout.decode().split("\n") if line)


def _not_a_repository(directory: Path, stderr: bytes) -> UserError:
    message = stderr.decode(errors="replace")
    if "dubious ownership" in message:
        hint = f"run as its owner, or: git config --global --add safe.directory {directory.resolve()}"
        return UserError(f"{directory} belongs to another user", hint, usage=True)
    if "not a git repository" in message:
        return UserError(
            f"{directory} is not a git repository", "run inside one, or name one with --repo DIR", usage=True
        )
    lines = message.strip().splitlines() or ["no reason given"]
    return UserError(f"git cannot read {directory}: {lines[-1]}", "fix the repository, then run again", usage=True)


STALE = 24 * 3600.0  # seconds after which a maintenance lock belongs to a dead process


def pack_loose(git: Git) -> None:
    """Pack loose objects; if that fails, nothing changes and the next time tries again."""
    lock = git.common_dir / "objects" / "maintenance.lock"
    with suppress(GitError, OSError):
        if lock.exists() and lock.stat().st_mtime < time.time() - STALE:
            lock.unlink()
        git.run("maintenance", "run", "--quiet", "--task=loose-objects")
