"""`prd.json` where it was found: read with its last known value, written back in place, put back when it is gone."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralph_mission.adapters.files import safe_paths
from ralph_mission.adapters.storage.loop import files, place
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PathChange, Prd
from ralph_mission.loop.stories import prd as form

FOLDERS = ("", "scripts/ralph", ".ralph", ".omc")
"""Where the originals keep their stories, in the order they are looked for; progress.txt stands beside."""
NAME, LOG = "prd.json", "progress.txt"
CAP = 4 * form.MAX_CHARS  # bytes
MARK = "\ufeff"  # some editors put one in front; JSON has none


class Stories:
    """The stories of one work tree. `complaint` tells why the last reading gave an earlier value, else it is "".

    A copy of the last readable file stays in `kept` (`.ralph/loop/`), so that the list of a run is still known when
    the next run's has taken its place. `going_on`: a run is gone on with, whose list the copy is, whatever a session
    that was killed left of the file.
    """

    def __init__(self, root: Path, named: Path | None = None, kept: Path | None = None, going_on: bool = False) -> None:
        self.root = root
        self.named = named
        self.going_on = going_on
        self.complaint = ""
        self._copy = (kept or root / ".ralph" / "loop") / NAME
        self._path: Path | None = None
        self._text = ""
        self._earlier: tuple[str, ...] = ()
        self._known: Prd | None = None

    @property
    def folder(self) -> Path:
        """Where prd.json is, or else progress.txt, or else where both will be."""
        found = self.find()
        if found or self._path or self.named:
            return (found or self._path or self.named or self.root).parent
        logs = (self.root / name for name in FOLDERS if (self.root / name / LOG).is_file())
        return next(logs, self.root)

    @property
    def place(self) -> Path:
        """Where the list is, or where it will be."""
        return self._path or self.find() or self.named or self.folder / NAME

    def find(self) -> Path | None:
        """The file that was named, or else the first that exists; None when there is none."""
        if self.named:
            return self.named if self.named.is_file() else None
        return next((path for path in self._places() if path.is_file()), None)

    def read(self) -> Prd | None:
        """What the file holds; what it last held when it is gone or unreadable. None: there never was one."""
        self.complaint = ""
        path = self._path or self.find()  # once found it stays the one, whatever else appears
        if path is None:
            self._known = self._known or (self._last_run() if self.going_on else None)
            self.complaint = f"{NAME} is gone; the stories are the last known" if self._known else ""
            return self._known
        try:
            text, self._known = self._inside(path)
        except (OSError, ValueError) as error:
            self._known = self._known or self._of_the_last_run(path)
            instead = "the stories are the last known" if self._known else "no earlier ones are known"
            self.complaint = f"{self._name(path)} cannot be read ({_reason(error)}); {instead}"
            return self._known
        self._path = path
        self._keep(text, self._known)
        return self._known

    def write(self, prd: Prd) -> tuple[PathChange, ...]:
        """Write which stories pass, into the text that holds these stories: the file's, or the last one known.

        Gives the links that had led its folder elsewhere. Raises OSError.
        """
        path = self._path or self.find() or self.named or self.root / NAME
        links = place.within(path, self.root)
        text = self._fitting(path, prd)
        files.write(target(path, self.root), text.encode())
        self._path, self._known = path, prd
        self._keep(text, prd)
        return links

    def restore(self) -> tuple[PathChange, ...]:
        """Put the file back when a session took it away or left it unreadable; what it left is kept aside."""
        if self._path is None or not self._text:
            return ()
        links = place.within(self._path, self.root)
        try:
            self._inside(self._path)
        except FileNotFoundError:
            how = "deleted"
        except (OSError, ValueError):
            how = "unreadable"
            self._set_aside(self._path)
        else:
            return links
        files.write(self._path, self._text.encode())
        why = "the stories are the run's own; they are back as they were"
        return (*links, PathChange(self._name(self._path), how, why))

    def text_of(self, branch: str) -> str | None:
        """The last readable list of `branch`, whatever the file holds by now; None when none is known."""
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
        """The work tree, out of which no link is followed; None for a list that an owner keeps elsewhere."""
        return self.root if path.is_relative_to(self.root) else None

    def _set_aside(self, path: Path) -> None:
        """Whatever stands there, a folder or a pipe too, so that a file can take its place."""
        aside = self._copy.with_name("prd.broken.json")
        with suppress(OSError):
            aside.parent.mkdir(parents=True, exist_ok=True)
            if aside.is_dir() and not aside.is_symlink():
                shutil.rmtree(aside)
            else:
                aside.unlink(missing_ok=True)
            os.replace(path, aside)

    def _places(self) -> Iterator[Path]:
        return (self.root / folder / NAME for folder in FOLDERS)

    def _name(self, path: Path | None) -> str:
        if path is None:
            return NAME
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def _of_the_last_run(self, path: Path) -> Prd | None:
        """The copy, when the unreadable file still names its branch: another feature's list proves nothing done."""
        last = self._last_run()
        if self.going_on:
            return last
        if not path.is_file():
            return None
        with suppress(OSError, UserError):
            head = files.read(path, CAP, self._top(path)) or b""
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
        files.write(self._copy, text.encode())

    def _fitting(self, path: Path, prd: Prd) -> str:
        """The newest text whose stories are these, edited; a new one when none is known."""
        now = ""
        with suppress(OSError, ValueError):
            now = _read(path, self._top(path))[0]
        for text in filter(None, (now, self._text, *self._earlier)):
            with suppress(ValueError):
                bare = text.removeprefix(MARK)
                return text[: len(text) - len(bare)] + form.update_progress(bare, prd)
        return form.render_prd(prd)


def _read(path: Path, top: Path | None = None) -> tuple[str, Prd]:
    try:
        content = files.read(path, CAP, top)
    except UserError as trouble:
        raise form.UnreadablePrd(trouble.what.removeprefix(f"{path} is ").removeprefix(f"{path} ")) from None
    if content is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    text = content.decode("utf-8")
    return text, form.parse_prd(text.removeprefix(MARK))


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)


def target(path: Path, root: Path) -> Path:
    """Where a link within the work tree leads; one that leads out of it is replaced, not followed."""
    return path.resolve() if safe_paths.stays(path, root) else path
