"""What a session that was cut off left uncommitted: in the files and in the index, and how both stood without it."""

from __future__ import annotations

from dataclasses import dataclass

from ralph_mission.gateways import checkout_files as files
from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways.checkout_mark import Mark
from ralph_mission.gateways.git import Git


@dataclass(frozen=True, slots=True)
class Rest:
    """How paths are to be, in the files and in the index (None: absent)."""

    files: dict[str, files.File | None]
    index: dict[str, tuple[str, str] | None]

    @property
    def staged(self) -> tuple[str, ...]:
        """What differs in the index alone."""
        return tuple(path for path in self.index if path not in self.files)

    @property
    def lines(self) -> bytes:
        """What tells `update-index --replace -z --index-info` to have the index right."""
        return history.index_lines({path: entry for path, entry in self.index.items() if entry}, self.index)


def found(git: Git, before: Mark, head: str, now: files.Reading) -> Rest:
    """What differs from the mark and from what was committed since, which stays. Raises GitError."""
    changed, staged = files.differing(before.files, now.files), files.differing(before.index, now.index)
    paths = list(dict.fromkeys((*changed, *staged)))
    old, new = (history.entries(git, commit, paths) for commit in (before.place.head, head))
    committed = {path: new.get(path) for path in paths if old.get(path) != new.get(path)}
    wanted = {path: _file(committed[path]) if path in committed else before.files.get(path) for path in changed}
    wanted = {path: file for path, file in wanted.items() if file != now.files.get(path)}
    index = {path: committed.get(path, before.index.get(path)) for path in paths}
    return Rest(wanted, {path: entry for path, entry in index.items() if entry != now.index.get(path)})


def _file(entry: tuple[str, str] | None) -> files.File | None:
    return files.File(*entry) if entry else None
