"""What findings must not be about: what people banned under Do Not Repeat, and lines people are already working on.

Bans are paths as backticked globs, issues as `#N`, finding kinds. A list item may hold several of them among other
words; a kind counts in backticks or as the item's subject (`- spelling: enough of these`). An item without any is
reported as not understood, so that nobody relies on a ban that does not work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ralph_mission.mission.model.effects import Effect, OpenPull, PushBranch
from ralph_mission.mission.model.forge import Pull, Touch
from ralph_mission.mission.model.mission import Finding
from ralph_mission.mission.model.proposal import Ban, KindBan, PathBan, ReferenceBan
from ralph_mission.safety.detect import closing_keywords
from ralph_mission.safety.patch import Edit, Patch, edits, patch_ids
from ralph_mission.values import compile_regex

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_COMMENT = compile_regex(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TICKED = compile_regex(r"`([^`\n]+)`")
_NUMBER = compile_regex(r"(?<![\w&/])#(\d{1,18})\b")
_SUBJECT = compile_regex(r"[\w@-]+(?=\s*(?:[:(,.]|-\s|\Z))")
_ITEM = compile_regex(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
_STARS = compile_regex(r"\*+")
_MAX_GLOB = 512
_MAX_STARS = 4  # pathspec backtracks: matching time grows with the path's length to this power


def parse_bans(text: str, kinds: Collection[str]) -> tuple[tuple[Ban, ...], tuple[str, ...]]:
    """The bans in the section, and the lines that could not be understood."""
    bans: dict[Ban, None] = {}
    unclear = []
    for line in _items(text):
        found = list(_bans(line, kinds))
        bans.update(dict.fromkeys(found))
        if not found:
            unclear.append(line)
    return tuple(bans), tuple(unclear)


def is_forbidden(bans: Iterable[Ban], path: str = "", kind: str = "", reference: int = 0) -> bool:
    """Whether any ban covers a finding at `path` ("": none) of `kind`, about issue `reference` (0: none)."""
    return any(_covers(ban, path, kind, reference) for ban in bans)


def _items(text: str) -> Iterable[str]:
    # Headings and comments are skipped; an indented line belongs to the item above, any other stands alone.
    items: list[str] = []
    for raw in _COMMENT.sub("", text).splitlines():
        match = _ITEM.match(raw)
        line = (match[1] if match else raw).strip()
        if not line or (line.startswith("#") and not _NUMBER.match(line)):
            continue
        if items and not match and raw[0] in " \t":
            items[-1] += " " + line
        else:
            items.append(line)
    return items


def _bans(line: str, kinds: Collection[str]) -> Iterable[Ban]:
    for ticked in _TICKED.findall(line):
        if ticked in kinds:
            yield KindBan(ticked)
        elif number := _NUMBER.fullmatch(ticked):
            yield ReferenceBan(int(number[1]))
        elif _is_glob(ticked):
            yield PathBan(ticked)
    plain = _TICKED.sub(" ", line)
    yield from (ReferenceBan(int(number)) for number in _NUMBER.findall(plain))
    subject = _SUBJECT.match(plain)  # a kind in running text ("any", "bug") is only a word
    if subject and subject[0] in kinds:
        yield KindBan(subject[0])


def _is_glob(text: str) -> bool:
    # A negation forbids nothing on its own.
    if text.startswith("!") or text != text.strip() or len(text) > _MAX_GLOB:
        return False
    return len(_STARS.findall(text)) <= _MAX_STARS and _pattern(text) is not None


def _covers(ban: Ban, path: str, kind: str, reference: int) -> bool:
    if isinstance(ban, KindBan):
        return ban.kind == kind
    if isinstance(ban, ReferenceBan):
        return ban.number == reference
    pattern = _pattern(ban.glob)
    return bool(path and pattern and pattern.match_file(path))


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines([glob])
    except ValueError:
        return None
    return spec if any(pattern.include for pattern in spec.patterns) else None


_ISSUE_NUMBER = compile_regex(r"(?<!\d)\d{1,18}$")
"""The end of a reference. No forge counts further, and `int` refuses thousands of digits."""


def other_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Open pull requests of everybody but us."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state == "open")


def own_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Open pull requests of ours that somebody may merge soon: none that was parked."""
    ours = (pull for pull in pulls if pull.author.id == bot and pull.state == "open")
    return tuple(pull for pull in ours if "ralph:parked" not in pull.labels)


def recent_pulls(pulls: Iterable[Pull], bot: int) -> tuple[Pull, ...]:
    """Pull requests of everybody but us that are open or were merged recently."""
    return tuple(pull for pull in pulls if pull.author.id != bot and pull.state in ("open", "merged"))


def closed_issues(pull: Pull) -> frozenset[int]:
    """The issues that merging this pull request closes, by its title and text."""
    clauses = closing_keywords(f"{pull.title}\n\n{pull.body}")
    return frozenset(int(number) for words in clauses for number in _ISSUE_NUMBER.findall(words))


def same_change(pull: Pull, patch: Patch | None) -> bool:
    """Whether a pull request makes every change of a patch, file by file, wherever the lines are."""
    return patch is not None and bool(patch.changes) and patch_ids(patch) <= pull.patch_ids


def does_the_same(pull: Pull, effect: Effect) -> bool:
    """Whether a pull request makes the same change as an effect, or changes a line that the effect changes."""
    ids = frozenset(effect.patch_ids) if isinstance(effect, OpenPull) else frozenset()
    return bool(ids and ids <= pull.patch_ids) or _meet(pull.touches, _touched_lines(effect))


def _touched_lines(effect: Effect) -> tuple[Touch, ...]:
    if isinstance(effect, PushBranch):
        return tuple(_touch(file.path, edit) for file in effect.files for edit in file.edits)
    return effect.touches if isinstance(effect, OpenPull) else ()


def _meet(some: Iterable[Touch], others: Sequence[Touch]) -> bool:
    return any(a.path == b.path and a.first <= b.last and b.first <= a.last for a in some for b in others)


NEAR = 1
"""Unchanged lines that git needs at least between two changes to merge both."""


def is_near(pulls: Iterable[Pull], patch: Patch) -> bool:
    """Whether a patch would conflict with one of these pull requests; no if one of its files is not UTF-8."""
    around = [Touch(one.path, one.first - NEAR, one.last + NEAR) for pull in pulls for one in pull.touches]
    try:
        return bool(around) and _meet(around, touched_by(patch))
    except UnicodeDecodeError:
        return False


def touched_by(patch: Patch) -> tuple[Touch, ...]:
    """The lines of the old files that a patch changes. Raises UnicodeDecodeError if one is not UTF-8."""
    return tuple(
        _touch(change.path, edit) for change in patch.changes for edit in edits(change.old or b"", change.new or b"")
    )


def _touch(path: str, edit: Edit) -> Touch:
    """For a pure insertion, the line above counts as touched."""
    return Touch(path, edit.start + 1, edit.start + max(edit.delete, 1))


def touches(pull: Pull, finding: Finding) -> bool:
    """Whether a pull request changes a line of the finding, or one that the finding's patch changes in its files."""
    signal = finding.signal
    own = [touch for touch in touched_by(signal.patch) if touch.path in signal.paths] if signal.patch else []
    here = [Touch(signal.path, signal.line, signal.line)] if signal.line else []
    return _meet(pull.touches, [*own, *here])


def drop_touched(members: Sequence[Finding], pulls: Sequence[Pull]) -> Sequence[Finding]:
    """A proposal's members without those that a pull request touches, so that these do not hold up the others.

    If every member is touched, all stay: policy then says why they wait.
    """
    return [member for member in members if not any(touches(pull, member) for pull in pulls)] or members
