"""The stories and their log: the user's own in the checkout, and those that sessions write in their clone.

They are brought into the clone before a session and taken back once it was judged, so that a session which died leaves
no claim that nobody has checked. Once a story was judged, its commit follows: who dies between that commit and taking
the lists back has done the story all the same, which a note beside the run's state says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.files import safe_paths
from ralph_mission.adapters.storage.loop import files
from ralph_mission.adapters.storage.loop.stories import LOG, NAME, Stories, target
from ralph_mission.adapters.workspace.files import REGULAR
from ralph_mission.adapters.workspace.restore import remove_path, write_file
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PathChange
from ralph_mission.loop.stories import prd as form

JUDGED = ".ralph/judged.json"
CAP = 64_000_000  # bytes of one of them
REASON = "a session that was cut off left it so; it is as before that session"
MEANWHILE = "was changed in the checkout meanwhile, so what a session wrote there does not count"
OURS = ".ralph"


class Carried:
    """The lists of the checkout `home` (`named`: the stories' file) in the clone `place`; where both are one folder
    nothing is carried."""

    def __init__(self, home: Path, place: Path, named: Path | None = None) -> None:
        self._home, self._place, self.named = home, place, named
        self._stories = Stories(home, named)
        self._last: dict[Path, bytes | None] = {}

    @property
    def stories(self) -> Path:
        """The stories' file in the clone, there or not."""
        return self._in_clone(self._stories.place)

    @property
    def listed(self) -> bool:
        """Whether the checkout has stories."""
        return self._stories.find() is not None

    @property
    def folder(self) -> Path:
        """Where the user keeps the lists."""
        return self._stories.folder

    def begin(self) -> None:
        """A session begins: nothing of it was judged. Raises OSError."""
        files.remove(self._home / JUDGED)

    def bring(self) -> None:
        """Have the clone's lists as the user's are, where those are not what was last carried. Raises OSError."""
        for ours, theirs in self._pairs():
            content = self._content(ours)
            if ours in self._last and self._last[ours] == content:
                continue
            self._put(theirs, content)
            self._last[ours] = content

    def take_back(self) -> tuple[str, ...]:
        """Have the user's lists as the clone's are; gives what is wrong with that. Raises OSError."""
        return tuple(filter(None, (self._taken_back(ours, theirs) for ours, theirs in self._pairs())))

    def judged(self, commit: str) -> None:
        """Note the lists as they were judged; `commit`, their story's, is made and lands next. Raises OSError."""
        found = {theirs.name: self._content(theirs) for _, theirs in self._pairs()}
        texts = {name: text.decode("utf-8", "surrogateescape") for name, text in found.items() if text is not None}
        files.write(self._home / JUDGED, json.dumps({"commit": commit, "lists": texts}).encode())

    def put_back(self, aside: Path, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        """The clone's lists as the user's are, or as they were judged where that `landed`. What a session that died
        wrote goes to `aside`. Raises OSError."""
        judged = self._note(landed)
        changes = []
        for ours, theirs in self._pairs():
            if judged.get(ours.name) is not None:
                files.write(target(ours, self._home), judged[ours.name] or b"")
            content, claimed = self._content(ours), self._content(theirs)
            if content != claimed and content is not None:
                if claimed is not None:
                    files.write(aside / f"cut-off-{ours.name}", claimed)
                changes.append(PathChange(ours.name, "deleted" if claimed is None else "modified", REASON))
            self._last.pop(ours, None)
        self.bring()
        return tuple(changes)

    def _pairs(self) -> Iterator[tuple[Path, Path]]:
        """The user's file and the clone's: of the stories, and of the log beside them."""
        if self._home == self._place:
            return
        found = self._stories.find()
        made = None if found else Stories(self._place).find()  # a planner's
        stories = self._home / made.relative_to(self._place) if made else self._stories.place
        for ours in (stories, stories.with_name(LOG)):
            yield ours, self._in_clone(ours)

    def _in_clone(self, ours: Path) -> Path:
        if ours.is_relative_to(self._home):
            return self._place / ours.relative_to(self._home)
        return self._place / OURS / (NAME if ours.name != LOG else LOG)  # one that an owner keeps elsewhere

    def _put(self, theirs: Path, content: bytes | None) -> None:
        name = theirs.relative_to(self._place).as_posix()
        if content is None:
            remove_path(str(self._place), name)
        elif content != self._content(theirs):
            write_file(str(self._place), name, REGULAR, content)

    def _taken_back(self, ours: Path, theirs: Path) -> str:
        """What was done to the user's own meanwhile stays, but for stories that pass: only what was judged does."""
        content, before, now = self._content(theirs), self._last.get(ours), self._content(ours)
        if content is None or content == now:
            self._last[ours] = now
            return ""
        wanted = content if now == before else _merged(now, content)
        self._last[ours] = wanted if wanted == content else None
        if wanted is None:
            return f"{ours.name} {MEANWHILE}"
        if wanted != now:
            safe_paths.keep_within(ours, self._home)
            files.write(target(ours, self._home), wanted)
        return ""

    def _content(self, path: Path) -> bytes | None:
        """What stands in a list; nothing where there is no plain file: what a link leads to is not carried."""
        top = next((top for top in (self._place, self._home) if path.is_relative_to(top)), path.parent)
        try:
            return files.read(path, CAP, top)
        except UserError:
            return None

    def _note(self, landed: Callable[[str], bool]) -> dict[str, bytes]:
        """What was judged in the session that died, if its commit landed; anything odd there says nothing."""
        try:
            said = safe_paths.read_json(self._home / JUDGED, 3 * CAP)
            lists = {name: text.encode("utf-8", "surrogateescape") for name, text in said["lists"].items()}
            return lists if landed(said["commit"]) else {}
        except (ValueError, TypeError, KeyError, AttributeError, UserError):
            return {}


def _merged(persons: bytes | None, sessions: bytes) -> bytes | None:
    """A person's list with the stories that pass in the session's; None where that cannot be told."""
    with suppress(ValueError, UserError):
        text = (persons or b"").decode()
        listed, done = form.parse_prd(text), form.parse_prd(sessions.decode())
        passes = {story.id for story in done.stories if story.passes}
        stories = tuple(replace(story, passes=story.id in passes) for story in listed.stories)
        return form.update_progress(text, replace(listed, stories=stories)).encode()
    return None
