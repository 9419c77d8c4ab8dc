"""The forge's folder: a file per issue and pull request, one lock, one counter; and the changes of these files.

Readers take no lock: every file is replaced whole. Writers hold the lock from the first read to the last write. An
unreadable file is never overwritten.

Changes are pure: frozen values in, new ones out. Every change has a later time than the one before, even if the clock
goes back, so times show the order of comments by people and the bot.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.local import documents
from ralph_mission.adapters.forges.local.documents import LocalThread, Mangled
from ralph_mission.adapters.git.git import Git
from ralph_mission.errors import Damaged, UserError
from ralph_mission.mission.lifecycle import checkboxes
from ralph_mission.mission.model.forge import Actor, Issue, LabelEvent, Pull, Review, ThreadComment, Tick
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.values import compile_regex, dataclass

Sides = tuple[str, str, str]
"""Head, base and head commit of a pull request; all empty for an issue."""
NO_SIDES: Sides = ("", "", "")
TICK = timedelta(milliseconds=1)  # the resolution of our timestamps


def open_thread(
    number: int,
    title: str,
    body: str,
    author: Actor,
    labels: tuple[str, ...],
    now: datetime,
    sides: Sides = NO_SIDES,
) -> LocalThread:
    """A new issue, or a pull request between two `sides`; its labels are ordinary events."""
    at, (head, base, head_sha) = stamp(now), sides
    return LocalThread(
        number=number,
        title=title,
        body=body,
        author=author,
        created_at=at,
        updated_at=at,
        labels=tuple(dict.fromkeys(labels)),
        events=tuple(LabelEvent(label, author, at) for label in dict.fromkeys(labels)),
        head=head,
        base=base,
        head_sha=head_sha,
    )


def after(thread: LocalThread, now: datetime) -> datetime:
    """The time of the next change: `now`, or just after the last one if the clock is behind."""
    return max(stamp(now), thread.updated_at + TICK)


def stamp(now: datetime) -> datetime:
    """`now` in the resolution of our files."""
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def add_comment(thread: LocalThread, actor: Actor, body: str, now: datetime) -> LocalThread:
    """Add a comment, numbered after the highest so far."""
    at = after(thread, now)
    number = max((remark.id for remark in thread.remarks), default=0) + 1
    return replace(thread, remarks=(*thread.remarks, ThreadComment(number, actor, body, at, at)), updated_at=at)


def edit_text(thread: LocalThread, comment: int, body: str, now: datetime) -> LocalThread:
    """Replace a comment's text; 0 is the opening text."""
    at = after(thread, now)
    if comment == 0:
        return replace(thread, body=body, updated_at=at)
    remarks = tuple(replace(r, body=body, updated_at=at) if r.id == comment else r for r in thread.remarks)
    return replace(thread, remarks=remarks, updated_at=at)


def set_labels(
    thread: LocalThread, actor: Actor, now: datetime, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> LocalThread:
    """Set and remove labels; each actual change is one event, anything else has no effect."""
    at = after(thread, now)
    gone = tuple(label for label in thread.labels if label in remove)
    new = tuple(label for label in dict.fromkeys(add) if label not in thread.labels)
    if not gone and not new:
        return thread
    events = (*(LabelEvent(n, actor, at, added=False) for n in gone), *(LabelEvent(n, actor, at) for n in new))
    labels = tuple(label for label in thread.labels if label not in gone) + new
    return replace(thread, labels=labels, events=(*thread.events, *events), updated_at=at)


def assign_people(thread: LocalThread, logins: tuple[str, ...], now: datetime) -> LocalThread:
    """Assign people who are not assigned so far."""
    new = tuple(login for login in dict.fromkeys(logins) if login not in thread.assignees)
    return replace(thread, assignees=thread.assignees + new, updated_at=after(thread, now)) if new else thread


def close_thread(thread: LocalThread, actor: Actor, reason: str, now: datetime) -> LocalThread:
    """Close without a merge."""
    at = after(thread, now)
    return replace(thread, state="closed", state_reason=reason, closed_by=actor, closed_at=at, updated_at=at)


def add_review(thread: LocalThread, actor: Actor, state: str, body: str, sha: str, now: datetime) -> LocalThread:
    """Add a review of commit `sha`."""
    at = after(thread, now)
    return replace(thread, reviews=(*thread.reviews, Review(actor, state, body, sha, at)), updated_at=at)


def edit_review(thread: LocalThread, review: int, body: str, now: datetime) -> LocalThread:
    """Replace a review's text; reviews are numbered from 1 in order."""
    reviews = tuple(replace(one, body=body) if n == review else one for n, one in enumerate(thread.reviews, 1))
    return replace(thread, reviews=reviews, updated_at=after(thread, now))


def mark_merged(thread: LocalThread, head_sha: str, merged_sha: str, actor: Actor | None, at: datetime) -> LocalThread:
    """Mark as merged at `head_sha` as commit `merged_sha`; `actor` None means unknown."""
    return replace(
        thread,
        state="merged",
        head_sha=head_sha,
        merging="",
        merged_sha=merged_sha,
        merged_by=actor,
        closed_by=actor,
        closed_at=at,
        updated_at=at,
    )


def issue(thread: LocalThread, url: str, details: bool) -> Issue:
    """The port's issue."""
    return Issue(
        number=thread.number,
        title=thread.title,
        body=thread.body,
        state=thread.state,
        author=thread.author,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        url=url,
        labels=frozenset(thread.labels),
        assignees=thread.assignees,
        state_reason=thread.state_reason,
        closed_by=thread.closed_by,
        closed_at=thread.closed_at,
        remarks=thread.remarks if details else (),
        events=thread.events if details else (),
    )


def pull(thread: LocalThread, url: str, head_sha: str, details: bool) -> Pull:
    """The port's pull request, without git's part: touches and commits."""
    return Pull(
        number=thread.number,
        title=thread.title,
        body=thread.body,
        state=thread.state,
        author=thread.author,
        head=thread.head,
        head_sha=head_sha,
        base=thread.base,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        url=url,
        labels=frozenset(thread.labels),
        reviews=tuple(replace(one, id=n) for n, one in enumerate(thread.reviews, 1)) if details else (),
        remarks=thread.remarks if details else (),
        events=thread.events if details else (),
        merged_sha=thread.merged_sha,
        merged_by=thread.merged_by,
        closed_by=thread.closed_by,
        closed_at=thread.closed_at,
    )


NAME = compile_regex(r"\d{4,}\.md")
NAMES = {"issue": "issue", "pull": "pull request", "": "issue or pull request"}
FOLDERS = ("issues", "pulls")
IGNORED = "/.ralph/"
NOTE = "last-number"
DASHBOARD = "dashboard.md"
DIGITS = 12
"""Digits of a number; longer ones are not ours."""

Stat = tuple[int, int, int]


def nothing(text: str) -> bool:
    """No file may be left out."""
    return False


@dataclass(frozen=True, slots=True)
class ThreadStore:
    """The files' folder. `top`: the folder that names are relative to, None if bare."""

    root: Path
    top: Path | None
    exclude: Path
    _cache: dict[Path, tuple[Stat, LocalThread]] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(git: Git) -> ThreadStore:
        """A repository's store, the same from each of its work trees."""
        inside = git.state_dir.name == ".ralph"
        return ThreadStore(
            git.state_dir / "forge", git.state_dir.parent if inside else None, git.common_dir / "info/exclude"
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The lock for changes. Creates a missing folder. Raises UserError for a link in it."""
        with ExitStack() as stack:
            try:
                for folder in FOLDERS:
                    files.own(self.root / folder).mkdir(parents=True, exist_ok=True)
                stack.enter_context(files.hold_file(self.root / "lock", wait=None))
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise UserError(f"{self.root / error.filename} is a link", "move it away, then run again") from None
            if self.top:
                files.add_line(self.exclude, IGNORED)
            yield

    def path(self, folder: str, number: int) -> Path:
        """The file of an issue or pull request."""
        return self.root / folder / f"{number:04d}.md"

    def url(self, thread: LocalThread) -> str:
        """The file's name for people: relative to the repository, absolute if that is bare."""
        return self._name_in_forge(self.path(f"{thread.kind}s", thread.number))

    def find(self, number: int) -> LocalThread | None:
        """The issue or pull request with this number. Raises UserError if its file is damaged."""
        paths = (self.path(folder, number) for folder in FOLDERS)
        return next((thread for path in paths if (thread := self._read(path))), None)

    def require(self, kind: str, number: object) -> LocalThread:
        """The issue or pull request ("" for either) with this number. Raises ForgeRefused if there is none."""
        thread = self.find(number) if isinstance(number, int) else None
        if thread is None or kind not in ("", thread.kind):
            listing = "ralph pr list" if kind == "pull" else "ralph issue list"
            template = "#{} is an issue" if kind == "pull" else "#{} is a pull request"
            hint = template.format(number) if thread else f"see: {listing}"
            raise ForgeRefused(f"there is no {NAMES[kind]} #{number}", hint)
        return thread

    def threads(self, folder: str, needless: Callable[[str], bool] = nothing) -> tuple[LocalThread, ...]:
        """All of them, lowest number first; those whose text is `needless` may be left out to save parsing."""
        paths = sorted(self._paths(folder), key=lambda path: int(path.stem))
        found = (self._read(path, needless) for path in paths)
        return tuple(thread for thread in found if thread)

    def problems(self) -> Iterator[UserError]:
        """The problem of each unreadable file."""
        paths = (path for folder in FOLDERS for path in self._paths(folder))
        lookups: list[Callable[[], object]] = [partial(self._read, path) for path in paths]
        for look in (*lookups, self.anchor):
            try:
                look()
            except UserError as problem:
                yield problem

    def next_number(self) -> int:
        """An unused number for an issue or pull request. Call it with the lock held. Raises UserError for a damaged
        counter."""
        numbers = (int(path.stem) for folder in FOLDERS for path in self._paths(folder))
        number = max(self._last_number(), *numbers, 0) + 1
        files.write(self.root / NOTE, f"{number}\n".encode())
        return number

    def _last_number(self) -> int:
        try:
            with open(files.open_regular(self.root / NOTE, os.O_RDONLY), "rb") as memo:
                noted = memo.read(DIGITS + 1).strip()
        except FileNotFoundError:
            return 0
        except OSError:
            noted = b""
        if not noted.isdigit() or len(noted) > DIGITS:
            hint = "write into it the highest number that an issue or pull request ever had"
            raise UserError(f"{self._name_in_forge(self.root / NOTE)} is damaged", hint)
        return int(noted)

    def open(
        self,
        author: Actor,
        now: datetime,
        title: str,
        body: str,
        labels: tuple[str, ...],
        sides: Sides = NO_SIDES,
    ) -> LocalThread:
        """Create and write an issue, or a pull request between two `sides`. Call it with the lock held. Raises as
        `write`."""
        thread = open_thread(self.next_number(), title, body, author, labels, now, sides)
        self.write(thread)
        return thread

    def write(self, thread: LocalThread) -> None:
        """Write it. Call it with the lock held. Raises ForgeRefused if it could not be read again."""
        path, text = self.path(f"{thread.kind}s", thread.number), documents.render(thread)
        try:
            documents.parse(text)
        except Mangled as error:
            raise ForgeRefused(f"#{thread.number} cannot be kept: {error.what}") from None
        files.write(path, text.encode("utf-8", "surrogatepass"))

    def anchor(self) -> Anchor | None:
        """The stored memory position."""
        path = self.root / "anchor.json"
        try:
            return Anchor(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, RecursionError):
            raise Damaged(f"{self._name_in_forge(path)} is damaged", "run: ralph memory recover") from None

    def set_anchor(self, anchor: Anchor) -> None:
        """Store a memory position."""
        with self.locked():
            files.write(self.root / "anchor.json", json.dumps(asdict(anchor), indent=1).encode() + b"\n")

    def dashboard(self) -> str:
        """The dashboard's text with its ticked boxes, or ""."""
        try:
            return (self.root / DASHBOARD).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def ticks(self, now: datetime) -> tuple[Tick, ...]:
        """The ticked boxes, attributed to the present user: the file does not record who ticked them."""
        if not (boxes := checkboxes.find_ticked(self.dashboard())):
            return ()
        changed = datetime.fromtimestamp((self.root / DASHBOARD).stat().st_mtime, UTC)
        return tuple(Tick(box, documents.at_keyboard(), min(changed, now)) for box in sorted(boxes))

    def show_dashboard(self, page: str) -> None:
        """Show this page, keeping the boxes that people ticked meanwhile."""
        with self.locked():
            before = self.dashboard()
            if (text := checkboxes.tick(page, checkboxes.find_ticked(before))) != before:
                files.write(self.root / DASHBOARD, text.encode("utf-8", "replace"))

    def _paths(self, folder: str) -> Iterator[Path]:
        try:
            entries = list(os.scandir(self.root / folder))
        except FileNotFoundError:
            return
        yield from (Path(entry.path) for entry in entries if NAME.fullmatch(entry.name))

    def _read(self, path: Path, needless: Callable[[str], bool] = nothing) -> LocalThread | None:
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                known = (status.st_ino, status.st_mtime_ns, status.st_size)
                if path in self._cache and self._cache[path][0] == known:
                    return self._cache[path][1]
                raw = file.read()
        except FileNotFoundError:
            return None
        thread = self._parse(path, raw, needless)
        if thread:
            self._cache[path] = (known, thread)
        return thread

    def _parse(self, path: Path, raw: bytes, needless: Callable[[str], bool]) -> LocalThread | None:
        try:
            text = raw.decode("utf-8", "surrogatepass")
            if needless(text):
                return None
            thread = documents.parse(text)
            if path != self.path(f"{thread.kind}s", thread.number):
                raise Mangled(f"says it is {thread.kind} {thread.number}", 2)
            return thread
        except UnicodeDecodeError as error:
            raise self._document_error(path, "not UTF-8", raw.count(b"\n", 0, error.start) + 1) from None
        except Mangled as error:
            raise self._document_error(path, error.what, error.line) from None

    def _document_error(self, path: Path, what: str, line: int) -> UserError:
        where = f"{self._name_in_forge(path)}, line {line}" if line else self._name_in_forge(path)
        aside = f"mv {shlex.quote(self._name_in_forge(path))} {shlex.quote(f'{self._name_in_forge(path)}.broken')}"
        return UserError(f"{where}: {what}", f"fix that line in an editor, or give the thread up: {aside}")

    def _name_in_forge(self, path: Path) -> str:
        return str(path.relative_to(self.top)) if self.top else str(path)
