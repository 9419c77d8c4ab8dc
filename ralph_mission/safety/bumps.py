"""Whether a change of a manifest or a lock file moves patch-level versions and does nothing else.

A patch leaves alone what a release breaks with. Below 1.0 that is the leftmost number that is not zero (as npm's `^`
has it): 0.3.1 → 0.3.2 is patch, 0.3 → 0.4 and 0.0.3 → 0.0.4 are major.

In a manifest only exact versions of packages that are asked for may differ, by a patch upwards. A version counts where
packages are asked for and nowhere else: not in a script, an address, an option or a comment.
A lock file is judged on its text alone, without knowing the format: a line may differ only in versions, by such a
patch, and in what a package manager derives from that (digests, sizes, times, names of archives). No line may be of a
kind that was not there before, so no package, source, script or server can come in; and a digest moves with the version
of its entry alone, so no archive can be put in the place of another.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from fnmatch import fnmatch
from typing import Any

from ralph_mission.safety.patch import REGULAR, FileChange, Patch, changed_spans, is_binary, split_lines
from ralph_mission.values import compile_regex

# --- versions --------------------------------------------------------------------------

NUMBER = r"\d{1,18}"
"""One of a version's numbers; what is longer is none."""
Numbers = tuple[int, ...]


class Step(IntEnum):
    """How far a version is from another: smaller steps promise more."""

    PATCH = 1
    MINOR = 2
    MAJOR = 3

    @property
    def word(self) -> str:
        """patch, minor or major."""
        return self.name.lower()


def numbers(spelled: str) -> Numbers:
    """The numbers of a version as it is written."""
    return tuple(map(int, re.findall(NUMBER, spelled)))


def series(version: Sequence[int]) -> Numbers:
    """The numbers that every patch of a version has in common with it."""
    return tuple(version[:2] if any(version[:2]) else version[:3])


def size(old: Sequence[int], new: Sequence[int]) -> Step:
    """How large the step is between the numbers of two versions that differ."""
    if series(old) == series(new):
        return Step.PATCH
    return Step.MINOR if old[0] == new[0] != 0 else Step.MAJOR


def is_patch(old: str, new: str) -> bool:
    """Whether `new` is newer than `old`, and a patch of it."""
    before, after = numbers(old), numbers(new)
    return before < after and size(before, after) is Step.PATCH


# --- manifests -------------------------------------------------------------------------

LONGEST = 4_000
"""Characters of a line of TOML that is still read: a dotted key costs the square of its length."""
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
"""Where packages are asked for, and how an exact version is written there."""
Raised = tuple[str, str]
Where = tuple[str, ...]


def raised_versions(path: str, old: Sequence[str], new: Sequence[str]) -> list[Raised] | None:
    """(old, new) of each exact version that differs between the lines of two texts; None when anything else does."""
    try:
        if path.endswith(".json"):
            found = list(_raised_places(json.loads("".join(old)), json.loads("".join(new)), _NODE))
        elif path.endswith(".toml") and max(map(len, (*old, *new))) > LONGEST:
            return None
        elif path.endswith(".toml"):
            found = list(_raised_places(tomllib.loads("".join(old)), tomllib.loads("".join(new)), _PYTHON))
        else:
            found = list(_raised_requirements(old, new))
    except (ValueError, RecursionError):
        return None
    return None if None in found else [pair for pair in found if pair]


def _raised_requirements(old: Sequence[str], new: Sequence[str]) -> Iterator[Raised | None]:
    """Of requirements, line by line; what goes on from the line above is no requirement."""
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
    return same and not (parts[:2] == ["tool", "poetry"] and "python" in where)  # which is no package


def _differences(old: Any, new: Any, where: Where) -> Iterator[tuple[Where, Any, Any]]:
    """The leaves of two documents that differ; where their shapes do, the whole."""
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
    """Whether `change` is nothing but patch-level bumps in a file that is known to hold versions."""
    ordinary = change.old_mode == change.new_mode == REGULAR and change.old is not None and change.new is not None
    if not holds_versions(change) or not ordinary or is_binary(change.old) or is_binary(change.new):
        return False
    old, new = split_lines(change.old or b""), split_lines(change.new or b"")
    spans = [(old[a:b], new[c:d]) for a, b, c, d in changed_spans(old, new)]
    if not is_lock(change.path):
        return bool(spans) and _are_pinned(spans, raised_versions(change.path, old, new))
    return bool(spans) and _are_derived(spans, old, new) and follows(old, new)


def holds_versions(change: FileChange) -> bool:
    """Whether a file is one of those that hold versions, by its name."""
    return is_lock(change.path) or _is_named(change.path, MANIFESTS)


def counted_patch(patch: Patch, fitting: Callable[[FileChange], bool] = only_patches) -> Patch:
    """What of a patch a person has to weigh: all but lock files that follow from patch-level bumps."""
    return replace(patch, changes=tuple(c for c in patch.changes if not (is_lock(c.path) and fitting(c))))


def is_lock(path: str) -> bool:
    """Whether a package manager writes this file."""
    return _is_named(path, LOCKS)


def _is_named(path: str, names: Sequence[str]) -> bool:
    return any(fnmatch(path.rpartition("/")[2].lower(), name) for name in names)


def _are_pinned(spans: Iterable[tuple[list[str], list[str]]], pins: list[Raised] | None) -> bool:
    """Whether `pins` are patches, and all that differs in the text: line by line the same but for those versions."""
    if not pins or not all(is_patch(*pin) for pin in pins):
        return False
    told: list[Raised] = []
    for old, new in spans:
        if [_bare(line, VERSIONS) for line in old] != [_bare(line, VERSIONS) for line in new]:
            return False
        said = zip(*([v for line in lines for v in _spellings(line)] for lines in (old, new)), strict=True)
        told += [(before, after) for before, after in said if before != after]
    return sorted(told) == sorted(pins)


def _are_derived(spans: Iterable[tuple[list[str], list[str]]], old: list[str], new: list[str]) -> bool:
    """Lines of the same kinds as those they replace; archives may be more or fewer than of the version before."""
    known, kept = _archives(old), _archives(new)
    for gone, come in spans:
        before, after = _kinds(gone), _kinds(come)
        if before.keys() - after.keys() - kept.keys():
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
    """Whether lines are of a kind that is known, with no version that is smaller than all of its."""
    return kind in known and all(any(_rises(old, new) for old in known[kind]) for new in lines)


def _rises(old: str, new: str) -> bool:
    """Of two lines of one kind: no version is smaller than the one in its place."""
    return all(before <= after for before, after in zip(_versions(old), _versions(new), strict=False))


# --- entries of a lock file ------------------------------------------------------------


def follows(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether each entry kept its digests or moved upwards within its series."""
    before, after = _entries(old), _entries(new)
    return all(name in before and _has_moved(before[name], locked) for name, locked in after.items())


def _entries(lines: Iterable[str]) -> dict[str, Locked]:
    """By name, the digests of each version. Entries without any digest are judged by their lines alone."""
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
    """Entries stand between blank lines, and in JSON from one object's beginning to the next."""
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
    """Each version in a line as what compares."""
    return [numbers(said) for said in _spellings(line)]


def _spellings(line: str) -> list[str]:
    found = (m[0] for m in _PARTS.finditer(line) if m.lastgroup in ("version", "wheel"))
    return [said.removeprefix("v").partition("-")[0] for said in found]


_OWN = compile_regex(r"""^\s*"?version"?\s*[:=]?\s*"?v?\d.*""")
_OPENING = compile_regex(r"^\s*\"[^\"]*\":\s*\{\s*$")
Locked = dict[Numbers, frozenset[str]]
VERSIONS = frozenset({"version"})
DERIVED = frozenset({"version", "time", "digest", "wheel", "size"})


def _bare(line: str, parts: frozenset[str]) -> str:
    """A line without what may differ, marked by what no text holds; a server's name stands for itself."""
    return _PARTS.sub(lambda found: _mask(found, parts), line.rstrip("\r\n").rstrip(","))


def _mask(found: re.Match[str], parts: frozenset[str]) -> str:
    kind = found.lastgroup or ""
    if kind not in parts:
        return found[0]
    if kind in ("version", "wheel"):
        kept = ".".join(map(str, series(numbers(found[0].partition("-")[0]))))
        return f"\0{kind} {kept}{'.whl' * (kind == 'wheel')}"
    return f"\0{kind}"
