"""What speaks against a patch: every rule that can be judged from its blobs alone.

The same answer for whoever made the patch: a fixer, an agent, or a person who asks
`ralph policy check`. No objection means that it may go into an automatic pull.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ralph_mission.safety.bumps import counted_patch, holds_versions, only_patches
from ralph_mission.safety.hidden import CONTROL, SURROGATE, invisible
from ralph_mission.safety.patch import (
    EXECUTABLE,
    REGULAR,
    FileChange,
    Measure,
    Patch,
    is_binary,
    measure,
    touched_lines,
)
from ralph_mission.safety.paths import fixer_may_write, protected_path, unsafe_path
from ralph_mission.safety.secrets import find_secrets

MAX_LINES = 49
"""Seed 003: an automatic fix has under 50 changed lines."""
MAX_BYTES = 16_384
"""Bytes of the changed lines: 49 lines of prose at the width that still counts as one would be 24 kB."""
MAX_FILES = 24
"""Files in one automatic change: as many as 49 lines allow when each has one line replaced."""
NOTHING: Mapping[str, int] = MappingProxyType({})
DENIES = frozenset({"scope", "secret"})
"""Rules whose objection no approval can lift. All others wait for a person."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One rule's no. `path` is "" when the patch as a whole is meant; `why` completes "PATH …"."""

    rule: str
    path: str
    why: str


def inspect(
    patch: Patch,
    *,
    max_lines: int = MAX_LINES,
    allowed_paths: frozenset[str] | None = None,
    extra_protected: Sequence[str] = (),
    recent: Mapping[str, int] = NOTHING,
    secrets: Sequence[str] = (),
    bumps: bool = False,
    announced: bool = False,
    by_fixer: bool = False,
) -> tuple[Objection, ...]:
    """Everything that speaks against doing `patch` without asking; () when nothing does.

    `allowed_paths` are the only paths the change may touch (None: any), `extra_protected`
    globs as in `.gitignore`, `recent` the automatic lines per path within the budget's
    window, `secrets` known values that must not appear. `bumps`: manifests and lock files may be
    changed, as far as nothing but patch-level versions moves; lines of a lock file that follow from them do not count.
    `announced`: that was so when they were announced, and cannot be seen again without the old text.
    `by_fixer`: it comes from our own fixers, which correct prose and source code and nothing else.
    """
    fitting = holds_versions if announced else only_patches
    size = measure(counted_patch(patch, fitting) if bumps else patch)
    found = [*_whole(size, max_lines), *_budget(size, max_lines, recent)]
    for change in patch.changes:
        found += _path(change, allowed_paths)
        if not (bumps and fitting(change) and _by_name_alone(change)):
            found += _protection(change, extra_protected, by_fixer)
        found += _mode(change)
        found += _content(change, secrets)
    return tuple(dict.fromkeys(found))


def verdict(objections: Sequence[Objection]) -> str:
    """`deny` when a rule refuses for good, `hold` when a person must be asked, else `allow`."""
    rules = {objection.rule for objection in objections}
    return "deny" if rules & DENIES else "hold" if rules else "allow"


def _whole(size: Measure, max_lines: int) -> Iterator[Objection]:
    if size.lines > max_lines:
        yield Objection("diff-size", "", f"changes {size.lines:,} lines; {max_lines} need no approval")
    if size.bytes > MAX_BYTES:
        yield Objection("diff-size", "", f"changes {size.bytes:,} bytes of text; {MAX_BYTES:,} is the most")
    if len(size.files) > MAX_FILES:
        yield Objection("diff-size", "", f"changes {len(size.files)} files; {MAX_FILES} is the most")
    for file in size.files:
        if file.binary:
            yield Objection("diff-size", file.path, "is not text, so its size says nothing")


def _budget(size: Measure, max_lines: int, recent: Mapping[str, int]) -> Iterator[Objection]:
    for file in size.files:
        earlier = recent.get(file.path, 0)
        if earlier and earlier + file.lines > max_lines:
            why = f"had {earlier} automatic lines lately; with these {file.lines} it is more than {max_lines}"
            yield Objection("diff-size", file.path, why)


def _path(change: FileChange, allowed: frozenset[str] | None) -> Iterator[Objection]:
    if why := unsafe_path(change.path):
        yield Objection("scope", change.path, why)
    elif allowed is not None and change.path not in allowed:
        yield Objection("scope", change.path, "is outside what this change is about")


def _by_name_alone(change: FileChange) -> bool:
    """Whether nothing but its name may protect a file: its folder does not."""
    return not protected_path(f"{change.path.rpartition('/')[0]}/x".lstrip("/"))


def _protection(change: FileChange, extra: Sequence[str], by_fixer: bool) -> Iterator[Objection]:
    if what := protected_path(change.path, extra):
        yield Objection("protected-path", change.path, f"touches {what}")
    elif by_fixer and not fixer_may_write(change.path):
        yield Objection("protected-path", change.path, "is no prose and no source code: fixers correct nothing else")


def _mode(change: FileChange) -> Iterator[Objection]:
    modes = {mode for mode in (change.old_mode, change.new_mode) if mode}
    stays = change.old_mode == change.new_mode == EXECUTABLE
    if modes != {REGULAR} and not stays:
        was, now = change.old_mode or "nothing", change.new_mode or "nothing"
        why = f"goes from mode {was} to {now}; only ordinary files ({REGULAR}) need no approval"
        yield Objection("file-mode", change.path, why)


def _content(change: FileChange, secrets: Sequence[str]) -> Iterator[Objection]:
    for kind in _leaks(change, secrets):
        yield Objection("secret", change.path, f"adds what looks like a secret ({kind})")
    if not is_binary(change.new) and (new := _unseen(change.new) - _unseen(change.old)):
        yield Objection("scope", change.path, f"adds text that no reader sees ({', '.join(sorted(new)[:5])})")


def _leaks(change: FileChange, secrets: Sequence[str]) -> set[str]:
    """Kinds in the path and the added lines."""
    added = "".join(touched_lines(change)[1])
    return {*find_secrets(added, secrets), *find_secrets(change.path, secrets)}


def _unseen(content: bytes | None) -> Counter[str]:
    """Invisible characters of a file; a byte order mark that begins it is none."""
    text = SURROGATE.sub("", _text(content).removeprefix("\ufeff"))
    controls = (f"U+{ord(found):04X}" for found in re.findall(CONTROL, text) if found != "\0")
    return Counter((*invisible(text), *controls))


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "surrogateescape")
