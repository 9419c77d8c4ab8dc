"""Whether a change of a manifest or a lock file does nothing but raise patch-level versions.

Below 1.0 the leftmost non-zero number is the major one (as for npm's `^`): 0.3.1 → 0.3.2 is a patch, 0.3 → 0.4 and
0.0.3 → 0.0.4 are major.

In a manifest only exact versions of required packages may differ, by a patch upwards, and only where packages are
required: not in a script, a URL, an option or a comment.
A lock file is judged on its text alone, without knowing the format: a line may differ only in versions, by such a
patch, and in what a package manager derives from that (digests, sizes, times, names of archives). No line may be of a
kind that was not there before, so no package, source, script or server can come in; and a digest moves with the version
of its entry alone, so no archive can be put in the place of another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from fnmatch import fnmatch
from typing import Any

from ralph_mission.safety.patch import REGULAR, FileChange, Patch, changed_spans, is_binary, split_lines
from ralph_mission.values import compile_regex

# --- versions --------------------------------------------------------------------------

NUMBER = r"\d{1,18}"
"""A number in a version; anything longer is not one."""
Numbers = tuple[int, ...]


class Step(IntEnum):
    """The size of a version step."""

    PATCH = 1
    MINOR = 2
    MAJOR = 3

    @property
    def word(self) -> str:
        """patch, minor or major."""
        return self.name.lower()


def numbers(spelled: str) -> Numbers:
    """The numbers of a version string."""
    return tuple(map(int, re.findall(NUMBER, spelled)))


def series(version: Sequence[int]) -> Numbers:
    """The numbers that all patches of a version share."""
    return tuple(version[:2] if any(version[:2]) else version[:3])


def size(old: Sequence[int], new: Sequence[int]) -> Step:
    """The step between two different versions."""
    if series(old) == series(new):
        return Step.PATCH
    return Step.MINOR if old[0] == new[0] != 0 else Step.MAJOR


def is_patch(old: str, new: str) -> bool:
    """Whether `new` is newer than `old`, and a patch of it."""
    before, after = numbers(old), numbers(new)
    return before < after and size(before, after) is Step.PATCH


# --- manifests -------------------------------------------------------------------------

LONGEST = 4_000
"""Characters of the longest line of TOML that is parsed: a dotted key takes quadratic time."""
SECTIONS = ("dependencies", "devDependencies", "optionalDependencies")
"""Of a package.json."""
_END = r"(?![\w.*+!-])"
_PIN = compile_regex(
    rf"(?P<before>\s*[A-Za-z0-9][\w.-]*+\s*+(?:\[[^\]\n]*\]\s*+)?===?\s*)"
    rf"(?P<version>{NUMBER}(?:\.{NUMBER})+(?:\.post{NUMBER})?){_END}(?P<after>.*)",
    re.DOTALL,
)
_BARE = compile_regex(rf"(?P<before>={{0,2}}v?)(?P<version>{NUMBER}(?:\.{NUMBER}){{2,}}(?:\.post{NUMBER})?)(?P<after>)")
_NODE = {f"{section} *": _BARE for section in SECTIONS}
_PYTHON = {
    "project dependencies *": _PIN,
    "project optional-dependencies * *": _PIN,
    "dependency-groups * *": _PIN,
    "build-system requires *": _PIN,
    "tool uv dev-dependencies *": _PIN,
    "tool uv constraint-dependencies *": _PIN,
    "tool uv override-dependencies *": _PIN,
    "tool poetry dependencies *": _BARE,
    "tool poetry dependencies * version": _BARE,
    "tool poetry dev-dependencies *": _BARE,
    "tool poetry dev-dependencies * version": _BARE,
    "tool poetry group * dependencies *": _BARE,
    "tool poetry group * dependencies * version": _BARE,
}
"""Where packages are required, and how an exact version is written there."""
Raised = tuple[str, str]
Where = tuple[str, ...]


def raised_versions(path: str, old: Sequence[str], new: Sequence[str]) -> list[Raised] | None:
    """(old, new) of each exact version that differs between two texts; None if anything else differs."""
    try:
        if path.endswith(".json"):
            found = list(_raised_places(json.loads("".join(old)), json.loads("".join(new)), _NODE))
        elif path.endswith(".toml") and max(map(len, (*old, *new))) > LONGEST:
            return None
        elif path.endswith(".toml"):
            import tomllib

            found = list(_raised_places(tomllib.loads("".join(old)), tomllib.loads("".join(new)), _PYTHON))
        else:
            found = list(_raised_requirements(old, new))
    except (ValueError, RecursionError):
        return None
    return None if None in found else [pair for pair in found if pair]


def _raised_requirements(old: Sequence[str], new: Sequence[str]) -> Iterator[Raised | None]:
    """The versions in requirements files, line by line; continuation lines are not requirements."""
    if len(old) != len(new):
        yield None
    for above, before, after in zip(["", *old], old, new, strict=False):
        if before != after:
            yield None if above.rstrip("\r\n").endswith("\\") else _pair(_PIN, before, after)


def _raised_places(old: Any, new: Any, places: Mapping[str, re.Pattern[str]]) -> Iterator[Raised | None]:
    for where, before, after in _differences(old, new, ()):
        pattern = next((places[place] for place in places if _is_at(place, where)), None)
        yield _pair(pattern, before, after) if pattern else None


def _is_at(place: str, where: Where) -> bool:
    parts = place.split()
    same = len(parts) == len(where) and all(part in ("*", key) for part, key in zip(parts, where, strict=True))
    return same and not (parts[:2] == ["tool", "poetry"] and "python" in where)  # python is not a package


def _differences(old: Any, new: Any, where: Where) -> Iterator[tuple[Where, Any, Any]]:
    """The leaves in which two documents differ; if their shapes do, the whole."""
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from _differences(old[key], new[key], (*where, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            yield from _differences(before, after, (*where, "*"))
    elif old != new:
        yield where, old, new


def _pair(pattern: re.Pattern[str], old: Any, new: Any) -> Raised | None:
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    before, after = pattern.fullmatch(old), pattern.fullmatch(new)
    if not before or not after or any(before[part] != after[part] for part in ("before", "after")):
        return None
    return before["version"], after["version"]


# --- changes ---------------------------------------------------------------------------

LOCKS = ("uv.lock", "poetry.lock", "yarn.lock", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml")
MANIFESTS = ("package.json", "pyproject.toml", "*requirements*.txt", "constraints*.txt")
_PARTS = compile_regex(
    rf"""(?P<server>[a-z][a-z0-9+.-]{{0,20}}://[^/\s"'\#]*)
      | (?P<time>\b\d{{4}}-\d\d-\d\dT[0-9:.]+Z?)
      | (?P<digest>\bsha\d{{1,3}}[:-][A-Za-z0-9+/=]{{20,}}|(?:/[0-9a-f]{{2}}){{2}}/[0-9a-f]{{60}}\b
          |\b[0-9a-f]{{32,128}}\b)
      | (?P<wheel>(?<=-){NUMBER}\.{NUMBER}(?:\.\w{{1,40}})*(?:-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl)
      | (?P<size>(?<=size\ =\ )\d+)
      | (?P<version>(?<![\w.])v?{NUMBER}\.{NUMBER}(?:\.{NUMBER})*(?:\.post{NUMBER})?(?!\w|-[0-9A-Za-z]))
    """,
    re.VERBOSE,
)
_ARCHIVE = compile_regex(r"\.whl\b|\.tar\.gz\b|\.zip\b")


def only_patches(change: FileChange) -> bool:
    """Whether `change` consists of patch-level bumps in a known manifest or lock file."""
    ordinary = change.old_mode == change.new_mode == REGULAR and change.old is not None and change.new is not None
    if not holds_versions(change) or not ordinary or is_binary(change.old) or is_binary(change.new):
        return False
    old, new = split_lines(change.old or b""), split_lines(change.new or b"")
    spans = [(old[a:b], new[c:d]) for a, b, c, d in changed_spans(old, new)]
    if not is_lock(change.path):
        return bool(spans) and _are_pinned(spans, raised_versions(change.path, old, new))
    return bool(spans) and _are_derived(spans, old, new) and follows(old, new)


def holds_versions(change: FileChange) -> bool:
    """Whether a file is a manifest or lock file, by its name."""
    return is_lock(change.path) or _is_named(change.path, MANIFESTS)


def counted_patch(patch: Patch, fitting: Callable[[FileChange], bool] = only_patches) -> Patch:
    """The part of a patch that counts for limits: all but lock files derived from patch-level bumps."""
    return replace(patch, changes=tuple(c for c in patch.changes if not (is_lock(c.path) and fitting(c))))


def is_lock(path: str) -> bool:
    """Whether a file is a lock file, by its name."""
    return _is_named(path, LOCKS)


def _is_named(path: str, names: Sequence[str]) -> bool:
    return any(fnmatch(path.rpartition("/")[2].lower(), name) for name in names)


def _are_pinned(spans: Iterable[tuple[list[str], list[str]]], pins: list[Raised] | None) -> bool:
    """Whether `pins` are patches and the only difference: lines are equal except for those versions."""
    if not pins or not all(is_patch(*pin) for pin in pins):
        return False
    raised: list[Raised] = []
    for old, new in spans:
        if [_bare(line, VERSIONS) for line in old] != [_bare(line, VERSIONS) for line in new]:
            return False
        versions = zip(*([v for line in lines for v in _spellings(line)] for lines in (old, new)), strict=True)
        raised += [(before, after) for before, after in versions if before != after]
    return sorted(raised) == sorted(pins)


def _are_derived(spans: Iterable[tuple[list[str], list[str]]], old: list[str], new: list[str]) -> bool:
    """Whether lines are of the same kinds as those they replace; the number of archives may differ."""
    known, remaining = _archives(old), _archives(new)
    for gone, come in spans:
        before, after = _kinds(gone), _kinds(come)
        if before.keys() - after.keys() - remaining.keys():
            return False
        if not all(_has_risen(known | before, kind, lines) for kind, lines in after.items()):
            return False
    return True


def _archives(lines: Iterable[str]) -> dict[str, list[str]]:
    return _kinds(line for line in lines if _ARCHIVE.search(line))


def _kinds(lines: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(_bare(line, DERIVED), []).append(line)
    return found


def _has_risen(known: Mapping[str, Sequence[str]], kind: str, lines: Iterable[str]) -> bool:
    """Whether lines are of a known kind, with no version smaller than all known ones."""
    return kind in known and all(any(_rises(old, new) for old in known[kind]) for new in lines)


def _rises(old: str, new: str) -> bool:
    """Whether no version in a line is smaller than its counterpart in another line of the kind."""
    return all(before <= after for before, after in zip(_versions(old), _versions(new), strict=False))


# --- entries of a lock file ------------------------------------------------------------


def follows(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether each entry kept its digests or moved upwards within its series."""
    before, after = _entries(old), _entries(new)
    return all(name in before and _has_moved(before[name], locked) for name, locked in after.items())


def _entries(lines: Iterable[str]) -> dict[str, Locked]:
    """The digests of each version, by name. Entries without digests are judged by their lines alone."""
    found: dict[str, Locked] = {}
    for entry in _blocks(lines):
        digests = frozenset(m[0] for line in entry for m in _PARTS.finditer(line) if m.lastgroup == "digest")
        if digests:
            own = next(filter(None, map(_OWN.search, entry)), None)
            version = next(iter(_versions(own[0] if own else entry[0])), ())
            versions = found.setdefault("\n".join(_bare(line, DERIVED) for line in entry[:2]), {})
            versions[version] = versions.get(version, frozenset()) | digests
    return found


def _has_moved(old: Locked, new: Locked) -> bool:
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    paired = all(any(series(a) == series(b) and a < b for a in gone) for b in come)
    return paired and all(old[same] == new[same] for same in old.keys() & new.keys())


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Entries are separated by blank lines, in JSON by the beginnings of objects."""
    block: list[str] = []
    for line in lines:
        if block and (not line.strip() or _OPENING.search(line)):
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _versions(line: str) -> list[Numbers]:
    """The versions in a line, comparable."""
    return [numbers(version) for version in _spellings(line)]


def _spellings(line: str) -> list[str]:
    found = (m[0] for m in _PARTS.finditer(line) if m.lastgroup in ("version", "wheel"))
    return [spelling.removeprefix("v").partition("-")[0] for spelling in found]


_OWN = compile_regex(r"""^\s*"?version"?\s*[:=]?\s*"?v?\d.*""")
_OPENING = compile_regex(r"^\s*\"[^\"]*\":\s*\{\s*$")
Locked = dict[Numbers, frozenset[str]]
VERSIONS = frozenset({"version"})
DERIVED = frozenset({"version", "time", "digest", "wheel", "size"})


def _bare(line: str, parts: frozenset[str]) -> str:
    """A line with the parts that may differ replaced by placeholders; server names stay."""
    return _PARTS.sub(lambda found: _mask(found, parts), line.rstrip("\r\n").rstrip(","))


def _mask(found: re.Match[str], parts: frozenset[str]) -> str:
    kind = found.lastgroup or ""
    if kind not in parts:
        return found[0]
    if kind in ("version", "wheel"):
        version = ".".join(map(str, series(numbers(found[0].partition("-")[0]))))
        return f"\0{kind} {version}{'.whl' * (kind == 'wheel')}"
    return f"\0{kind}"
