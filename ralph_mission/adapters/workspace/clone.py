"""A clone for sessions, whose `.git` is recreated before each session.

It has no remotes, hooks, credentials, filters or user configuration; objects are borrowed from the original repository.
Whatever a session does to its `.git` (settings, hooks, refs, the index) is never read, compared or restored. Only its
commit messages are read, as bytes and within bounds, to describe what lands. The project's own checks run on it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from ralph_mission.adapters.git import git as wire
from ralph_mission.adapters.git.git import Git, GitError, Identity
from ralph_mission.adapters.git.patches import from_work_tree
from ralph_mission.adapters.sandbox.excerpt import find_cause, ran_no_test
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.adapters.workspace.land import Objects, submodules
from ralph_mission.adapters.workspace.snapshot import OURS, File, remove_any, remove_folder, remove_path, write_file
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CheckoutState, CheckResult, SessionCommit
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.safety.paths import configures_agents, unsafe_path
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex, dataclass

SHARED_REFS = ("refs/heads", "refs/tags")
"""The refs a session sees besides its branch."""
SHARED = ("agent", "loop", "plan.md")
"""The parts of the engine's folder that sessions also reach by `.ralph/` in their clone."""
SPECIAL = compile_regex(rb"[\\*?\[ ]")  # in a pattern of git's
COMMIT = compile_regex("[0-9a-f]{40}([0-9a-f]{24})?")
MOST_COMMITS, LONGEST_COMMIT, LONGEST_FILE = 20, 65_536, 4096
"""Commits of a session whose messages are read, bytes of one, bytes of HEAD or a ref."""


@dataclass(frozen=True, slots=True)
class Position:
    """The state of a repository: the branch ("" if HEAD is detached), its commit ("" before the first), the refs."""

    branch: str
    head: str
    refs: Mapping[str, str]


def position(git: Git, branch: str | None = None) -> Position:
    """The position of the user's repository, on the checked-out branch or on `branch`. Raises GitError."""
    rows = git.text("for-each-ref", "--format=%(refname) %(objectname)", *SHARED_REFS).split("\n")
    refs = {name: oid for name, _, oid in (row.partition(" ") for row in rows if row)}
    on = git.try_text("symbolic-ref", "--quiet", "HEAD") if branch is None else branch
    return Position(on, refs.get(on, "") if on else git.resolve("HEAD"), refs)


def read_state(git: Git, branch: str) -> CheckoutState:
    """The state of a branch ("" for HEAD), for a prompt. `readable` is False if git does not answer."""
    try:
        last = git.try_text("log", "-5", "--format=%H %s", branch or "HEAD")
        if not last:  # before the first commit, or git fails
            git.text("rev-parse", "--git-dir")
    except GitError:
        return CheckoutState(readable=False)
    commits = tuple(SessionCommit(*line.split(" ", 1)) for line in last.split("\n") if line)
    return CheckoutState(branch.removeprefix("refs/heads/"), commits[0].hash if commits else "", commits, False)


@dataclass(frozen=True, slots=True)
class Clone:
    """The clone at `folder` of the repository `git`; `who`: the default author of a session's commits; `excluded`:
    paths that its git ignores; `shared`: the engine's folder in the user's checkout."""

    git: Git
    folder: Path
    who: Identity = Identity()
    excluded: tuple[str, ...] = ()
    shared: Path | None = None

    @property
    def index(self) -> Path:
        """An index of the last commit, copied for each session: it contains the files' timestamps."""
        return self.folder.with_name(f"{self.folder.name}.index")

    @property
    def repository(self) -> Git:
        """The session's repository, for use before a session starts."""
        return Git.at(self.folder)

    def make(self, commit: str) -> None:
        """Create the clone with the files of `commit` ("" for none). Raises UserError."""
        if self.folder.is_dir() and not self.folder.is_symlink():
            return
        remove_any(os.fsencode(self.folder))
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.index.unlink(missing_ok=True)
        if not commit:
            self.folder.mkdir()
            return
        check_out(self.git, commit, self.folder)
        shutil.copyfile(self.folder / ".git/index", self.index)
        self._index_commit_file.write_text(commit)

    def renew(self, at: Position) -> None:
        """Recreate its repository, as if just cloned. Raises OSError, GitError."""
        place = self.folder / ".git"
        remove_any(os.fsencode(place))
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            (place / name).mkdir(parents=True)
        algorithm = "sha256" if len(at.head) == 64 else "sha1"
        (place / "config").write_text(_settings(algorithm, self.who))
        (place / "info/attributes").write_text(INERT)
        (place / "info/exclude").write_bytes(self._read_excludes())
        (place / "objects/info/alternates").write_bytes(os.fsencode(self.git.common_dir / "objects") + b"\n")
        rows = sorted(at.refs.items())
        (place / "packed-refs").write_bytes(b"".join(f"{oid} {name}\n".encode() for name, oid in rows))
        (place / "HEAD").write_text(f"ref: {at.branch}\n" if at.branch else f"{at.head}\n")
        if (self.git.common_dir / "shallow").exists():
            shutil.copyfile(self.git.common_dir / "shallow", place / "shallow")
        if at.head:
            self._refresh_index(at.head)
            shutil.copyfile(self.index, place / "index")

    def share(self, known: Iterable[str]) -> None:
        """Link what sessions share by `.ralph/`, unless one of the repository's `known` paths has that name."""
        place = self.folder / OURS
        if self.shared and (place.is_symlink() or not place.is_dir()):
            remove_any(os.fsencode(place))
            place.mkdir()
        for link, target in self._links():
            path = f"{OURS}/{link.name}"
            if not _leads_to(link, target) and not any(one == path or one.startswith(f"{path}/") for one in known):
                remove_any(os.fsencode(link))
                link.symlink_to(target)

    def unshare(self) -> None:
        """Remove the links for a check, which may read no place that they lead to, and may stumble over them: Node's
        test runner follows every link."""
        for link, target in self._links():
            if _leads_to(link, target):
                link.unlink()

    def _links(self) -> Iterator[tuple[Path, Path]]:
        return ((self.folder / OURS / name, self.shared / name) for name in SHARED if self.shared)

    def remove_agent_settings(self, known: Collection[str]) -> None:
        """Remove agent configuration that is not among `known` paths; other ignored files stay."""
        for name in filter(configures_agents, sorted(os.listdir(self.folder))):
            for path in _files_below(str(self.folder), name):
                if path not in known:
                    remove_path(str(self.folder), path)

    def landed(self, commit: str, paths: Mapping[str, File | None]) -> None:
        """Record that the files are those of `commit`, which changed `paths`; the index keeps the timestamps of all
        others."""
        entries = {path: (file.mode, file.oid) if file else None for path, file in paths.items()}
        env = {"GIT_INDEX_FILE": str(self.index)}
        gone = {path: None for path, entry in entries.items() if entry is None}  # deletions first
        lines = wire.index_info(gone) + wire.index_info({path: entry for path, entry in entries.items() if entry})
        self.git.run("update-index", "--replace", "-z", "--index-info", stdin=lines, env=env)
        self._index_commit_file.write_text(commit)

    @property
    def _index_commit_file(self) -> Path:
        """The file that names the index's commit."""
        return self.index.with_suffix(".commit")

    def _refresh_index(self, commit: str) -> None:
        with suppress(OSError):
            if self._index_commit_file.read_text() == commit and self.index.exists():
                return
        self.git.run("read-tree", commit, env={"GIT_INDEX_FILE": str(self.index)})
        self._index_commit_file.write_text(commit)

    def _read_excludes(self) -> bytes:
        names = (wire.raw(path) for path in self.excluded if "\n" not in path)  # that would end a pattern
        ours = [b"/.ralph/", *(b"/" + SPECIAL.sub(rb"\\\g<0>", name) for name in names)]
        with suppress(OSError):
            ours.insert(0, (self.git.common_dir / "info/exclude").read_bytes().rstrip(b"\n"))
        return b"\n".join((*ours, b""))

    def messages(self, base: str) -> tuple[str, ...]:
        """The session's commit messages since `base`, oldest first; () if unreadable."""
        found: list[str] = []
        place = self.folder / ".git"
        with suppress(OSError, ValueError, zlib.error):
            tip = _tip(place)
            while tip != base and len(found) < MOST_COMMITS:
                parents, message = _commit(place, tip)
                found.append(message)
                tip = parents[0] if parents else base
        return tuple(message for message in reversed(found) if message)

    def populate_submodules(self, objects: Objects, commit: str) -> None:
        """Copy the submodules that the user has checked out into their folders. Raises UserError, OSError."""
        if self.git.work_tree is None:
            return
        entries = objects.entries(commit)
        for path in submodules(entries):
            folder = self.folder / path
            if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                with suppress(UserError, GitError):  # not checked out there either, or incomplete
                    _lay(Git.open(self.git.work_tree / path), self.git, entries[path].oid, folder)


def _leads_to(link: Path, target: Path) -> bool:
    return link.is_symlink() and os.readlink(link) == str(target)


def _files_below(top: str, path: str) -> list[str]:
    """The files at `path` or in it; links and empty folders count."""
    where = f"{top}/{path}"
    inner = sorted(os.listdir(where)) if os.path.isdir(where) and not os.path.islink(where) else []
    return [one for name in inner for one in _files_below(top, f"{path}/{name}")] if inner else [path]


def _lay(git: Git, above: Git, commit: str, folder: Path) -> None:
    if git.common_dir == above.common_dir:  # its folder is empty: git found the outer repository
        return
    entries = Objects(git).entries(commit)
    contents = git.blobs(file.oid for file in entries.values())
    for path, file in entries.items():
        if file.oid in contents:
            write_file(str(folder), path, file.mode, contents[file.oid])


def _settings(algorithm: str, who: Identity) -> str:
    lines = ["[core]", "\tfilemode = true", "\tbare = false", "\tlogallrefupdates = true"]
    if algorithm == "sha256":
        lines += ["\trepositoryformatversion = 1", "[extensions]", "\tobjectFormat = sha256"]
    else:
        lines.append("\trepositoryformatversion = 0")
    return who.settings + "\n".join(lines) + "\n"


# --- reading what a session may have made of it ---------------------------------------


def _tip(place: Path) -> str:
    """The commit that HEAD names. Raises OSError, ValueError."""
    head = _text(place / "HEAD")
    if head.startswith("ref:"):
        ref = head.removeprefix("ref:").strip()
        if ".." in ref or not ref.startswith("refs/"):
            raise ValueError(ref)
        try:
            head = _text(place / ref)
        except FileNotFoundError:
            head = next(iter(_read_packed_ref(place, ref)))
    if not COMMIT.fullmatch(head):
        raise ValueError(head)
    return head


def _read_packed_ref(place: Path, ref: str) -> Iterator[str]:
    for row in _bytes(place / "packed-refs", 4_000_000).decode("utf-8", "replace").split("\n"):
        oid, _, name = row.partition(" ")
        if name == ref:
            yield oid
    raise ValueError(ref)


def _commit(place: Path, oid: str) -> tuple[list[str], str]:
    """Parents and message of a commit stored as a loose object, as `git commit` leaves it."""
    packed = _bytes(place / "objects" / oid[:2] / oid[2:], LONGEST_COMMIT)
    content = zlib.decompressobj().decompress(packed, LONGEST_COMMIT)
    algorithm = "sha256" if len(oid) == 64 else "sha1"
    if hashlib.new(algorithm, content, usedforsecurity=False).hexdigest() != oid or not content.startswith(b"commit "):
        raise ValueError(oid)
    head, _, message = content.partition(b"\0")[2].partition(b"\n\n")
    parents = [line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")]
    return [parent for parent in parents if COMMIT.fullmatch(parent)], message.decode("utf-8", "replace").strip()


def _text(path: Path) -> str:
    return _bytes(path, LONGEST_FILE).decode("utf-8", "replace").strip()


def _bytes(path: Path, most: int) -> bytes:
    """At most `most` bytes of a plain file, without following links or blocking. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read(most)


# --- the project's own checks --------------------------------------------------------

LINES = 40
"""Characters reported of a failed check's output, from the end."""
KnownRed = Callable[[str, FinishedProcess], bool]
"""Whether a failed check failed before, and is not worse now."""
NAMED = 100  # characters of a check where its failure is named
GRACE = 1.0  # seconds between TERM and KILL: Ctrl-C takes effect within two


def verdict(
    checks: Iterable[str],
    top: Path,
    seconds: float,
    sandbox: Sandbox = OPEN,
    environment: Mapping[str, str] = MappingProxyType({}),
    known: KnownRed = lambda *_: False,
) -> CheckResult:
    """Run shell commands in `top` until one fails, each for at most `seconds`, in `sandbox`, with `environment` added.
    A failure that is `known` does not count. A check whose runner says that it ran no tests does not pass.

    Each gets a fresh HOME: start-up files that a session, or its code in a check, left there would affect the next one.
    Raises UserError if `sandbox` cannot isolate it as required.
    """
    failing = list[str]()
    for check in checks:
        with tempfile.TemporaryDirectory(prefix="ralph-check-", ignore_cleanup_errors=True) as home:
            done = run_foreign(
                check, cwd=top, home=Path(home), timeout=seconds, grace=GRACE, sandbox=sandbox, extra_env=environment
            )
        output = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        if done.code and known(check, done):
            failing.append(check)
        elif done.code or ran_no_test(output):
            why = f"took over {seconds:g} s" if done.timed_out else f"exit {done.code}" if done.code else "ran no test"
            cause = find_cause(done.stdout, done.stderr, top) if done.code else ""
            first = f"{truncate(' '.join(check.split()), NAMED)}: {why}" + (f": {cause}" if cause else "")
            return CheckResult(False, True, "\n".join((first, *output.splitlines()[-LINES:])))
    return CheckResult(True, True, "", standing=tuple(failing))


# The highest layer of attributes: whatever a tree's own .gitattributes ask for, bytes stay as they are.
INERT = "* -text -ident !eol !filter !working-tree-encoding\n"


@contextmanager
def clone(
    git: Git,
    commit: str,
    scratch: Path,
    *,
    paths: Iterable[str] | None = None,
    changes: Sequence[FileChange] = (),
) -> Iterator[Path]:
    """A temporary folder below `scratch` with the files of `commit`, all or only `paths`.

    HEAD is detached at the commit; `changes` are applied to index and files. Submodules are empty folders, and files
    have the blobs' bytes. Raises UserError if it cannot be checked out.
    """
    folder = Path(tempfile.mkdtemp(prefix="workshop-", dir=scratch)).resolve()
    try:
        _check_out(git, commit, folder, paths, changes)
        yield folder
    finally:
        with suppress(OSError):  # foreign code may have left folders without permissions
            remove_folder(os.fsencode(folder))
        shutil.rmtree(folder, ignore_errors=True)  # something may still write there: all the rest goes


def check_out(git: Git, commit: str, folder: Path) -> Git:
    """Like `clone`, but at the caller's path, permanently and atomically; returns the new clone's repository.

    Raises UserError if it cannot be checked out.
    """
    with clone(git, commit, folder.parent) as fresh:
        fresh.rename(folder)
    return Git.at(folder)


def changed_since(folder: Path, commit: str, git: Git) -> Patch:
    """The differences between `folder` and the tree of `commit`, by content.

    New files count unless ignored. The clone's own `.git`, which foreign code could have changed, is never read: `git`
    is the repository that was cloned. Raises UserError as `patches` does.
    """
    with tempfile.TemporaryDirectory(prefix="ralph-witness-") as place:
        borrowed = _borrow_objects(git, Git(Path(place), Path(place), folder))
        borrowed.run("update-ref", "--no-deref", "HEAD", commit)
        borrowed.run("read-tree", commit)
        return from_work_tree(borrowed)


def _check_out(git: Git, commit: str, folder: Path, paths: Iterable[str] | None, changes: Sequence[FileChange]) -> None:
    try:
        fresh = _borrow_objects(git, Git.at(folder))
        fresh.run("update-ref", "--no-deref", "HEAD", commit)
        _materialise(fresh, fresh.write_tree(commit, _entries(changes)) if changes else commit, paths)
    except GitError as error:
        what = f"commit {commit[:12]} cannot be checked out: {error.detail.strip()}"
        raise UserError(what, error.next_step("make sure that the repository is complete (git fsck)")) from None


def _entries(changes: Sequence[FileChange]) -> dict[str, tuple[str, bytes] | None]:
    # git would refuse only some of these: each is named here with its problem.
    for change in changes:
        if why := unsafe_path(change.path):
            raise UserError(f"{change.path!r} {why}", "leave it out of the change")
    return {change.path: None if change.new is None else (change.new_mode, change.new) for change in changes}


def _borrow_objects(git: Git, fresh: Git) -> Git:
    fresh.run("init", "--quiet", "--template=", f"--object-format={git.text('rev-parse', '--show-object-format')}")
    (fresh.git_dir / "info").mkdir(exist_ok=True)
    (fresh.git_dir / "info/attributes").write_text(INERT)
    (fresh.git_dir / "objects/info/alternates").write_bytes(os.fsencode(git.common_dir / "objects") + b"\n")
    if (git.common_dir / "shallow").exists():
        shutil.copyfile(git.common_dir / "shallow", fresh.git_dir / "shallow")
    fresh.run("config", "credential.helper", "")  # an empty value drops the system's credential helpers
    return fresh


def _materialise(fresh: Git, tree: str, paths: Iterable[str] | None) -> None:
    # git itself refuses trees with paths such as `../x` or `.git/config`, and never writes through a link.
    fresh.run("read-tree", tree)
    if paths is None:
        fresh.run("checkout-index", "--quiet", "--all", "--index")
    else:
        names = b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)
        fresh.run("checkout-index", "--quiet", "--index", "-z", "--stdin", stdin=names)
