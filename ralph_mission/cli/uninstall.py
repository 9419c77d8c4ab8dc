"""How what `ralph init` wrote is recognised again, and taken away: each file ends in a seal over the rest of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ralph_mission import __version__
from ralph_mission.gateways.files import atomic
from ralph_mission.gateways.git import Git
from ralph_mission.stores.recordings import EXCLUDE

_MARK = "written by `ralph init` "
_SEAL = re.compile(rf"(?:#|--) {_MARK}\S+; sha256 of the lines above: ([0-9a-f]{{64}})\n?\Z")


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a file: removed, kept (a person's); of one to write: new, replaced, unchanged, in the way.

    `copy`: where what a person had there is kept; `lost`: how many of its lines would go.
    """

    place: Path
    state: str
    copy: Path | None = None
    lost: int = 0


def sealed(text: str) -> str:
    """`text` with its seal as the last line. `text` ends with a line break."""
    comment = "--" if text.startswith("--") else "#"  # SQL's, and everyone else's
    return f"{text}{comment} {_MARK}{__version__}; sha256 of the lines above: {_digest(text)}\n"


def untouched(text: str) -> bool:
    """Whether we wrote it and nobody has edited it since. Line endings that git has changed do not count."""
    text = text.replace("\r\n", "\n")
    seal = _SEAL.search(text)
    return seal is not None and _digest(text[: seal.start()]) == seal[1]


def read(place: Path) -> str | None:
    """A file's text; None when there is none, "" for what is no text: then it is not ours. Raises OSError."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, IsADirectoryError):
        return ""


def remove(places: Iterable[Path], git: Git, everything: bool) -> Iterator[Fate]:
    """Remove what is ours; `everything`: what a person has edited since, too. Folders left empty go with it."""
    for place in places:
        text = None if place.is_symlink() else read(place)
        if text is None:
            continue
        if not untouched(text) and not (everything and _MARK in text):
            yield Fate(place, "kept")
            continue
        place.unlink()
        _tidy(place.parent, git)
        yield Fate(place, "removed")
    if _forget_exclude(git):
        yield Fate(git.common_dir / "info" / "exclude", "cleaned")


def _tidy(folder: Path, git: Git) -> None:
    """Folders that stand empty now, up to the work tree."""
    top = git.work_tree
    while top and folder != top and top in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _forget_exclude(git: Git) -> bool:
    """Take our line out of git's exclude file, once there is nothing left that it keeps out."""
    if git.state_dir.exists():
        return False
    exclude = git.common_dir / "info" / "exclude"
    with suppress(FileNotFoundError):
        lines = exclude.read_text("utf-8", "surrogateescape").splitlines(keepends=True)
        kept = [line for line in lines if line.strip() != EXCLUDE]
        if kept != lines:
            atomic.write(exclude, "".join(kept).encode("utf-8", "surrogateescape"))
            return True
    return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
