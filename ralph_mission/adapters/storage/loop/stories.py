"""The stories and their log: the user's in the checkout, and sessions' in their clone.

`prd.json` stays where it was found: its last readable value is remembered, it is updated in place, and restored if
lost.

Both are copied into the clone before a session and back after judging, so that a dead session leaves no unchecked
claims. A judged story is committed next; if the process dies between that commit and copying back, a note beside the
run's state says that the story is done.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.workspace.snapshot import REGULAR, remove_path, write_file
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PathChange, Prd, TaskStatus, UserStory
from ralph_mission.loop.stories import prd as form

FOLDERS = ("", "scripts/ralph", ".ralph", ".omc")
"""Where the original tools keep their stories, in search order; progress.txt is beside."""
NAME, LOG = "prd.json", "progress.txt"
CAP = 4 * form.MAX_CHARS  # bytes
MARK = "\ufeff"  # some editors add one; JSON has none


class Stories:
    """The stories of a work tree. `complaint`: why the last reading returned an earlier value, or "".

    A copy of the last readable file is in `copies` (`.ralph/loop/`), so that a run's list is still known when the next
    run's has replaced it. `going_on`: a run is continued, so the copy counts, whatever a killed session left.
    """

    def __init__(
        self, root: Path, named: Path | None = None, copies: Path | None = None, going_on: bool = False
    ) -> None:
        self.root = root
        self._places = tuple(root / folder / NAME for folder in FOLDERS)
        self.named = named
        self.going_on = going_on
        self.complaint = ""
        self._copy = (copies or root / ".ralph" / "loop") / NAME
        self._path: Path | None = None
        self._text = ""
        self._earlier: tuple[str, ...] = ()
        self._known: Prd | None = None

    @property
    def folder(self) -> Path:
        """The folder of prd.json, else of progress.txt, else where both will be."""
        found = self.find()
        if found or self._path or self.named:
            return (found or self._path or self.named or self.root).parent
        logs = (place.parent for place in self._places if place.with_name(LOG).is_file())
        return next(logs, self.root)

    @property
    def place(self) -> Path:
        """The path of the list, existing or not."""
        return self._path or self.find() or self.named or self.folder / NAME

    def find(self) -> Path | None:
        """The named file, else the first existing one, or None."""
        if self.named:
            return self.named if self.named.is_file() else None
        return next((path for path in self._places if path.is_file()), None)

    def read(self) -> Prd | None:
        """The stories; the last readable ones if the file is missing or broken. None: there never were any."""
        self.complaint = ""
        path = self._path or self.find()  # once found it is used, whatever else appears
        if path is None:
            self._known = self._known or (self._last_run() if self.going_on else None)
            self.complaint = f"{NAME} is missing; the last known stories are used" if self._known else ""
            return self._known
        try:
            text, self._known = self._inside(path)
        except (OSError, ValueError) as error:
            self._known = self._known or self._of_the_last_run(path)
            instead = "; the stories are the last known" if self._known else ""
            self.complaint = f"{self._name(path)} cannot be read ({_reason(error)}){instead}"
            return self._known
        self._path = path
        self._keep(text, self._known)
        return self._known

    def write(self, prd: Prd) -> tuple[PathChange, ...]:
        """Write which stories pass into the file's text, or the last known text, with these stories.

        Returns links that had led its folder elsewhere. Raises OSError.
        """
        path = self._path or self.find() or self.named or self.root / NAME
        links = run_files.within(path, self.root)
        text = self._find_fitting_text(path, prd)
        run_files.write(target(path, self.root), text.encode())
        self._path, self._known = path, prd
        self._keep(text, prd)
        return links

    def restore(self) -> tuple[PathChange, ...]:
        """Restore the file if a session removed or broke it; a broken one is moved aside."""
        if self._path is None or not self._text:
            return ()
        links = run_files.within(self._path, self.root)
        try:
            self._inside(self._path)
        except FileNotFoundError:
            how = "deleted"
        except (OSError, ValueError):
            how = "unreadable"
            self._set_aside(self._path)
        else:
            return links
        run_files.write(self._path, self._text.encode())
        why = "the stories are the run's own; they are back as they were"
        return (*links, PathChange(self._name(self._path), how, why))

    def text_of(self, branch: str) -> str | None:
        """The last readable list of `branch`, or None."""
        for path in (self._copy, self._previous):
            with suppress(OSError, ValueError):
                text, prd = _read(path)
                if prd.branch == branch:
                    return text
        return None

    @property
    def _previous(self) -> Path:
        return self._copy.with_name("prd.previous.json")

    def _inside(self, path: Path) -> tuple[str, Prd]:
        if path != self.named and not path.resolve().is_relative_to(self.root.resolve()):
            raise form.UnreadablePrd("it leads out of the work tree")
        return _read(path, self._top(path))

    def _top(self, path: Path) -> Path | None:
        """The work tree that links must not leave; None for a list that an owner keeps elsewhere."""
        return self.root if path.is_relative_to(self.root) else None

    def _set_aside(self, path: Path) -> None:
        """Move aside whatever is there, even a folder or a pipe."""
        aside = self._copy.with_name("prd.broken.json")
        with suppress(OSError):
            aside.parent.mkdir(parents=True, exist_ok=True)
            if aside.is_dir() and not aside.is_symlink():
                shutil.rmtree(aside)
            else:
                aside.unlink(missing_ok=True)
            os.replace(path, aside)

    def _name(self, path: Path | None) -> str:
        if path is None:
            return NAME
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def _of_the_last_run(self, path: Path) -> Prd | None:
        """The copy, if the unreadable file still names its branch: another feature's list proves nothing."""
        last = self._last_run()
        if self.going_on:
            return last
        if not path.is_file():
            return None
        with suppress(OSError, UserError):
            head = run_files.read(path, CAP, self._top(path)) or b""
            return last if last and last.branch and last.branch.encode() in head else None
        return None

    def _last_run(self) -> Prd | None:
        with suppress(OSError, ValueError):
            return _read(self._copy)[1]
        return None

    def _keep(self, text: str, prd: Prd) -> None:
        if text == self._text and self._copy.is_file():
            return
        last = self._last_run()
        if last and last.branch != prd.branch:
            os.replace(self._copy, self._previous)
        if self._text not in ("", text):
            self._earlier = (self._text, *self._earlier)[:3]
        self._text = text
        run_files.write(self._copy, text.encode())

    def _find_fitting_text(self, path: Path, prd: Prd) -> str:
        """The newest text with these stories, updated; else a new one."""
        now = copy = ""
        with suppress(OSError, ValueError):
            now = _read(path, self._top(path))[0]
        with suppress(OSError, ValueError):
            copy = _read(self._copy)[0]
        for text in filter(None, (now, self._text, *self._earlier, copy)):
            with suppress(ValueError):
                bare = text.removeprefix(MARK)
                return text[: len(text) - len(bare)] + form.update_progress(bare, prd)
        return form.render_prd(prd)


def _read(path: Path, top: Path | None = None) -> tuple[str, Prd]:
    try:
        content = run_files.read(path, CAP, top)
    except UserError as problem:
        raise form.UnreadablePrd(problem.what.removeprefix(f"{path} is ").removeprefix(f"{path} ")) from None
    if content is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    text = content.decode("utf-8")
    return text, form.parse_prd(text.removeprefix(MARK))


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)


def target(path: Path, root: Path) -> Path:
    """The target of a link within the work tree; one that leads out is replaced, not followed."""
    return path.resolve() if files.stays(path, root) else path


JUDGED = ".ralph/judged.json"
CARRIED_CAP = 64_000_000  # bytes of one of them
REASON = "a session that was cut off left it so; it is as before that session"
MEANWHILE = "was changed in the checkout meanwhile, so what a session wrote there does not count"
OURS = ".ralph"


class CopiedLists:
    """Copies the lists of the checkout `home` (`named`: the stories' file) to and from the clone `place`; nothing if
    they are the same folder."""

    def __init__(self, home: Path, place: Path, named: Path | None = None) -> None:
        self._home, self._place, self.named = home, place, named
        self._stories = Stories(home, named)
        self._last: dict[Path, bytes | None] = {}

    @property
    def stories(self) -> Path:
        """The stories' file in the clone, existing or not."""
        return self._in_clone(self._stories.place)

    @property
    def listed(self) -> bool:
        """Whether the checkout has stories."""
        return self._stories.find() is not None

    @property
    def folder(self) -> Path:
        """The folder of the user's lists."""
        return self._stories.folder

    def begin(self) -> None:
        """Start a session: nothing is judged yet. Raises OSError."""
        run_files.remove(self._home / JUDGED)

    def bring(self) -> None:
        """Copy the user's lists to the clone, if they changed since the last copy. Raises OSError."""
        for ours, theirs in self._pairs():
            content = self._content(ours)
            if ours in self._last and self._last[ours] == content:
                continue
            self._put(theirs, content)
            self._last[ours] = content

    def take_back(self) -> tuple[str, ...]:
        """Copy the clone's lists to the user; returns problems. Raises OSError."""
        return tuple(filter(None, (self._taken_back(ours, theirs) for ours, theirs in self._pairs())))

    def judged(self, commit: str) -> None:
        """Note the judged lists; `commit`, their story's, lands next. Raises OSError."""
        found = {theirs.name: self._content(theirs) for _, theirs in self._pairs()}
        texts = {name: text.decode("utf-8", "surrogateescape") for name, text in found.items() if text is not None}
        run_files.write(self._home / JUDGED, json.dumps({"commit": commit, "lists": texts}).encode())

    def put_back(self, aside: Path, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        """Reset the clone's lists to the user's, or to the judged ones if those `landed`. A dead session's versions go
        to `aside`. Raises OSError."""
        judged = self._note(landed)
        changes = []
        for ours, theirs in self._pairs():
            if judged.get(ours.name) is not None:
                run_files.write(target(ours, self._home), judged[ours.name] or b"")
            content, claimed = self._content(ours), self._content(theirs)
            if content != claimed and content is not None:
                if claimed is not None:
                    run_files.write(aside / f"cut-off-{ours.name}", claimed)
                changes.append(PathChange(ours.name, "deleted" if claimed is None else "modified", REASON))
            self._last.pop(ours, None)
        self.bring()
        return tuple(changes)

    def _pairs(self) -> Iterator[tuple[Path, Path]]:
        """The pairs of user's and clone's file: stories, and log."""
        if self._home == self._place:
            return
        found = self._stories.find()
        planned = None if found else Stories(self._place).find()  # a planner's
        stories = self._home / planned.relative_to(self._place) if planned else self._stories.place
        for ours in (stories, stories.with_name(LOG)):
            yield ours, self._in_clone(ours)

    def _in_clone(self, ours: Path) -> Path:
        if ours.is_relative_to(self._home):
            return self._place / ours.relative_to(self._home)
        name = LOG if ours.name == LOG else f"prd{ours.suffix}"
        return self._place / OURS / name  # one that an owner keeps elsewhere

    def _put(self, theirs: Path, content: bytes | None) -> None:
        name = theirs.relative_to(self._place).as_posix()
        if content is None:
            remove_path(str(self._place), name)
        elif content != self._content(theirs):
            write_file(str(self._place), name, REGULAR, content)

    def _taken_back(self, ours: Path, theirs: Path) -> str:
        """Keep the user's edits, except passing stories: only judged ones pass."""
        content, before, now = self._content(theirs), self._last.get(ours), self._content(ours)
        if content is None or content == now:
            self._last[ours] = now
            return ""
        merged = content if now == before else _merge_lists(now, content)
        self._last[ours] = merged if merged == content else None
        if merged is None:
            return f"{ours.name} {MEANWHILE}"
        if merged != now:
            files.keep_within(ours, self._home)
            run_files.write(target(ours, self._home), merged)
        return ""

    def _content(self, path: Path) -> bytes | None:
        """The content of a list, or None unless it is a plain file."""
        top = next((top for top in (self._place, self._home) if path.is_relative_to(top)), path.parent)
        try:
            return run_files.read(path, CARRIED_CAP, top)
        except UserError:
            return None

    def _note(self, landed: Callable[[str], bool]) -> dict[str, bytes]:
        """The dead session's judged lists, if its commit landed; None if the note is invalid."""
        try:
            note = files.read_json(self._home / JUDGED, 3 * CARRIED_CAP)
            lists = {name: text.encode("utf-8", "surrogateescape") for name, text in note["lists"].items()}
            return lists if landed(note["commit"]) else {}
        except (ValueError, TypeError, KeyError, AttributeError, UserError):
            return {}


class SessionStories:
    """The stories as a session has them in the checkout it works in; `item` is what the loop gave it.

    What it says here is a claim: the loop judges it afterwards.
    """

    def __init__(self, root: Path, item: Callable[[], str]) -> None:
        self._root, self._item = root, item

    def all(self) -> tuple[tuple[UserStory, TaskStatus], ...]:
        """Each with where it stands."""
        found = self._read()
        ready = {story.id for story in found[2].ready} if found else set()
        stories = found[2].stories if found else ()
        return tuple(
            (story, "done" if story.passes else "ready" if story.id in ready else "pending") for story in stories
        )

    def current(self) -> UserStory | None:
        """The one that the session was given."""
        item = self._item()
        return next((story for story, _ in self.all() if story.id == item), None) if item else None

    def done(self, id: str) -> UserStory | None:
        """Claim that it passes. None: there is no such story. Raises OSError, UserError."""
        return self._change(id, lambda story: replace(story, passes=True))

    def note(self, id: str, text: str) -> UserStory | None:
        """Add to its notes. None: there is no such story. Raises OSError, UserError."""
        return self._change(
            id, lambda story: replace(story, notes="\n".join(filter(None, (story.notes, text.strip()))))
        )

    def _change(self, id: str, change: Callable[[UserStory], UserStory]) -> UserStory | None:
        found = self._read()
        if found is None or id not in {story.id for story in found[2].stories}:
            return None
        path, text, prd = found
        changed = replace(prd, stories=tuple(change(story) if story.id == id else story for story in prd.stories))
        try:
            run_files.write(target(path, self._root), form.update_progress(text, changed).encode())
        except form.UnreadablePrd as problem:
            raise UserError(f"{path.name} is {problem}", "keep it with memory_add instead") from None
        return next(story for story in changed.stories if story.id == id)

    def _read(self) -> tuple[Path, str, Prd] | None:
        path = Stories(self._root).find()
        if path is None:
            return None
        with suppress(OSError, ValueError, UserError):
            return path, *_read(path, self._root)
        return None


def _merge_lists(persons: bytes | None, sessions: bytes) -> bytes | None:
    """A person's list with the passing stories of the session's; None if they cannot be merged."""
    with suppress(ValueError, UserError):
        text = (persons or b"").decode()
        listed, done = form.parse_prd(text), form.parse_prd(sessions.decode())
        passes = {story.id for story in done.stories if story.passes}
        stories = tuple(replace(story, passes=story.id in passes) for story in listed.stories)
        return form.update_progress(text, replace(listed, stories=stories)).encode()
    return None
