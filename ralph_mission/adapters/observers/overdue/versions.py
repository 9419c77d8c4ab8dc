"""What a repository says of versions: the lowest ones that it still supports, and its own.

Read from manifests of the commit: `requires-python` and dependencies of pyproject.toml, engines and dependencies of
package.json, the go directive, `rust-version`, the Java release of pom.xml. Of several that name one thing the lowest
counts; one that names it without a lower bound, or a workflow that still runs an older one, makes it unknown.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.text import split_lines
from ralph_mission.mission.model.mission import Quote
from ralph_mission.values import compile_regex, dataclass

Numbers = tuple[int, ...]

MANIFESTS = ("pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml")
MOST, LARGEST = 200, 500_000  # manifests read, and bytes of one
RUNTIMES = frozenset({"python", "node", "go", "rust", "java"})
ALIASES = {"py": "python", "nodejs": "node", "node.js": "node", "golang": "go", "msrv": "rust", "jdk": "java"}
_VERSION = compile_regex(r"v?(\d+(?:\.\d+)*)")
_LOWER = compile_regex(r"(>=|\^|~|>|=)?\s*v?(\d+(?:\.\d+)*)(?:\.[x*])?")
_SET_UP = compile_regex(r"^\s*(?:-\s|[\w-]*(?:node|python|java|go|rust|version)[\w-]*\s*:)")
_NUMBER = compile_regex(r"(?<![\w.])\d{1,4}(?:\.\d{1,4}){0,2}(?![\w-])")


def numbers(text: str) -> Numbers:
    """`v2.12.3` as (2, 12, 3); () when it is no version."""
    found = _VERSION.match(text.strip())
    return tuple(int(part[:9]) for part in found[1].split(".")) if found else ()


def canonical(name: str) -> str:
    """A runtime or package by the name under which its version is kept."""
    name = name.lower().strip("`'\"")
    return ALIASES.get(name, name.replace("_", "-"))


@dataclass(frozen=True, slots=True)
class VersionFloor:
    """The lowest version of something that is supported, and the line of a manifest that says so."""

    version: Numbers
    quote: Quote


@dataclass(frozen=True, slots=True)
class DeclaredVersions:
    """What one commit says. `own`: by the manifest's folder its version, and whether that is released."""

    floors: Mapping[str, VersionFloor]
    own: Mapping[str, tuple[Numbers, bool, Quote]]
    workflows: tuple[str, ...] = ()

    def floor(self, name: str) -> VersionFloor | None:
        """The lowest supported version by any name; None where that is not known for sure."""
        return self.floors.get(canonical(name))

    def is_run_below(self, name: str, version: Numbers) -> bool:
        """Whether a workflow that has to do with this runtime still names an older one."""
        word = {"node": "node", "python": "python", "go": "go-version", "java": "java", "rust": "rust|toolchain"}[name]
        texts = (text for text in self.workflows if re.search(word, text, re.IGNORECASE))
        lines = (line for text in texts for line in text.split("\n") if _SET_UP.match(line))
        named = (numbers(found) for line in lines for found in _NUMBER.findall(line))
        same_kind = (one for one in named if one and (name != "python" or one[0] in (2, 3)))
        return any(one[: len(version)] < version for one in same_kind)

    def own_version(self, path: str) -> tuple[Numbers, bool, Quote] | None:
        """That of the package a file belongs to."""
        folder = posixpath.dirname(path)
        while True:
            if folder in self.own:
                return self.own[folder]
            if not folder:
                return None
            folder = posixpath.dirname(folder)


def declared_versions(git: Git, commit: str, wanted: Callable[[str], bool]) -> DeclaredVersions:
    """Of the manifests whose path is `wanted`. One that cannot be read says nothing. Raises GitError."""
    entries = {entry.path: entry for entry in git.listing(commit)}
    paths = sorted(path for path in entries if posixpath.basename(path) in MANIFESTS and wanted(path))[:MOST]
    workflows = sorted(path for path in entries if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", path))[:MOST]
    blobs = git.blobs(entries[path].oid for path in (*paths, *workflows))
    texts = {
        path: blobs[entries[path].oid].decode("utf-8", "replace")
        for path in (*paths, *workflows)
        if len(blobs.get(entries[path].oid, b"")) <= LARGEST
    }
    floors: dict[str, VersionFloor | None] = {}
    own = {}
    for path in paths:
        own_floors = list(_floors(path, texts.get(path, "")))
        for name, text, needle in own_floors:
            lowest = lower_bound(text)
            quote = _quote(path, texts[path], needle, commit)
            found = VersionFloor(lowest, quote) if lowest else None
            floors[name] = _lower(floors[name], found) if name in floors else found
        if version := _own(path, texts.get(path, "")):
            quote = _quote(path, texts[path], version, commit)
            own[posixpath.dirname(path)] = (numbers(version), not re.search(r"[-a-z]", version.lstrip("v")), quote)
    known = {name: floor for name, floor in floors.items() if floor is not None}
    return DeclaredVersions(known, own, tuple(texts[path] for path in workflows if path in texts))


def _lower(before: VersionFloor | None, now: VersionFloor | None) -> VersionFloor | None:
    """The lower of two; unknown where either is."""
    return min(before, now, key=lambda floor: floor.version) if before and now else None


def lower_bound(text: str) -> Numbers:
    """The lowest version that a constraint allows; () where it has no lower bound, or none that can be told."""
    alternatives = [_lowest_of(one) for one in text.split("||")]
    return min(alternatives) if all(alternatives) else ()


def _lowest_of(text: str) -> Numbers:
    if " - " in text:
        text = ">=" + text.strip()
    bounds = []
    for part in re.split(r",|\s+(?=[<>=^~!])", re.sub(r"([<>=^~!])\s+", r"\1", text.strip())):
        part = part.strip().replace("~=", "~").replace("===", "=").replace("==", "=")
        if found := _LOWER.match(part):
            bounds.append(tuple(int(number[:9]) for number in found[2].split(".")))
    return max(bounds, default=())


# --- what each manifest says: (name, constraint, words to find its line by) -----------


def _floors(path: str, text: str) -> Iterator[tuple[str, str, str]]:
    match posixpath.basename(path):
        case "pyproject.toml":
            yield from _of_pyproject(_toml(text))
        case "package.json":
            yield from _of_package(_json(text))
        case "go.mod":
            if found := re.search(r"^go\s+(\d+\.\d+)", text, re.MULTILINE):
                yield "go", f">={found[1]}", found[0]
        case "Cargo.toml":
            package = _table(_toml(text).get("package")) or _table(_table(_toml(text).get("workspace")).get("package"))
            if isinstance(minimum := package.get("rust-version"), str):
                yield "rust", f">={minimum}", "rust-version"
        case _:
            if found := re.search(r"<(java\.version|maven\.compiler\.(?:release|target))>\s*(?:1\.)?(\d+)\s*<", text):
                yield "java", f">={found[2]}", found[0]


def _of_pyproject(tables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    from packaging.requirements import InvalidRequirement, Requirement

    project, poetry = _table(tables.get("project")), _table(_table(tables.get("tool")).get("poetry"))
    if isinstance(minimum := project.get("requires-python"), str):
        yield "python", minimum, "requires-python"
    listed = project.get("dependencies")
    for line in listed if isinstance(listed, list) else ():
        try:
            requirement = Requirement(str(line))
        except InvalidRequirement:
            continue
        yield canonical(requirement.name), str(requirement.specifier), str(line)
    for name, constraint in _table(poetry.get("dependencies")).items():
        constraint = _table(constraint).get("version", "") if isinstance(constraint, dict) else constraint
        yield canonical(name), str(constraint), f"{name} ="


def _of_package(tables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if isinstance(minimum := _table(tables.get("engines")).get("node"), str):
        yield "node", minimum, '"node"'
    for section in ("dependencies", "peerDependencies"):
        for name, constraint in _table(tables.get(section)).items():
            if isinstance(constraint, str) and not constraint.startswith(("workspace:", "file:", "link:", "npm:")):
                yield canonical(name), constraint, f'"{name}"'


def _own(path: str, text: str) -> str:
    """The version of the package itself; "" where it has none, or leaves it to a tool."""
    match posixpath.basename(path):
        case "pyproject.toml":
            tables = _toml(text)
            poetry = _table(_table(tables.get("tool")).get("poetry"))
            version = _table(tables.get("project")).get("version") or poetry.get("version")
        case "package.json":
            version = _json(text).get("version")
        case "Cargo.toml":
            version = _table(_toml(text).get("package")).get("version")
        case _:
            version = None
    return version if isinstance(version, str) and any(numbers(version)) else ""


def _quote(path: str, text: str, needle: str, commit: str) -> Quote:
    lines = split_lines(text.encode())
    at = next((number for number, line in enumerate(lines, 1) if needle in line), 0)
    return Quote(lines[at - 1].strip() if at else needle, path, at, commit)


def _toml(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _json(text: str) -> dict[str, Any]:
    try:
        return _table(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
