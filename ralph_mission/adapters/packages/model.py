"""Dependencies as values: locked or pinned versions with their lines, possible updates, and version order.

Versions are compared by PEP 440 for Python and by Semantic Versioning for npm, Cargo and Go, those of Maven only if
they are plain numbers, whose order is universal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import semver
from packaging.version import InvalidVersion
from packaging.version import Version as PythonVersion

from ralph_mission.safety.bumps import Step as Step
from ralph_mission.safety.bumps import size
from ralph_mission.safety.patch import Patch
from ralph_mission.values import compile_regex, dataclass

Ecosystem = Literal["PyPI", "npm", "crates\x2eio", "Go", "Maven"]
"""Advisories' names; the third is split because no file here may contain the name of a registry's host."""
CRATES: Ecosystem = "crates\x2eio"
SEMANTIC: tuple[Ecosystem, ...] = ("npm", CRATES, "Go")
"""Ecosystems with Semantic Versioning."""
Tool = Literal["uv", "poetry", "pip", "npm", "yarn", "berry", "pnpm", ""]
"""The tool that writes a lock file; "" if versions are only pinned in a manifest."""


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a package that a repository uses.

    `path` and `line` (1-based, 0 if unknown): the version's place; `registry`: its base URL in the lock file, or "".
    `direct`: requested by a person. `movable`: its version can be changed by rewriting a token or by the package
    manager (a hashed pin cannot). `wanted`: its requested ranges, as far as known; `dev`: certainly for development
    only.
    """

    ecosystem: Ecosystem
    name: str
    version: str
    path: str
    line: int = 0
    registry: str = ""
    direct: bool = False
    movable: bool = True
    wanted: tuple[str, ...] = ()
    dev: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """One lock file, or one manifest with pins and no lock: `path`. `manifests` are read with it, lock not included."""

    path: str
    tool: Tool
    ecosystem: Ecosystem
    packages: tuple[Package, ...]
    manifests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """One published version; `runtime`: its declared runtime requirement (`requires-python`, `engines.node`)."""

    version: str
    withdrawn: bool = False
    runtime: str = ""


@dataclass(frozen=True, slots=True)
class Bump:
    """A package and its new version."""

    project: Project
    package: Package
    to: str

    def __str__(self) -> str:
        return f"{self.package.name} {self.package.version} → {self.to}"


@dataclass(frozen=True, slots=True)
class Bumped:
    """The change that makes `done` true and nothing else; `refused` with the reason, for people."""

    patch: Patch | None
    done: tuple[Bump, ...] = ()
    refused: tuple[tuple[Bump, str], ...] = ()


class Bumper(Protocol):
    """Turns bumps into a change, without touching the repository."""

    def bump(self, commit: str, bumps: tuple[Bump, ...], scratch: Path) -> Bumped:
        """The change against `commit`. Raises UserError if the commit is unreadable."""
        ...


class Lines:
    """The 1-based lines of a text, optimised for increasing positions."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def at(self, offset: int) -> int:
        """The line of a character."""
        return bisect_left(self._ends, offset) + 1

    def of(self, mark: str, then: str = "") -> int:
        """The line of a mark, or of the text that follows it; 0 if missing."""
        at = self._text.find(mark, self._at)
        at = self._text.find(mark) if at < 0 else at
        if at < 0:
            return 0
        self._at = at
        there = self._text.find(then, at)
        return self.at(there) if there >= 0 else 0


TOML_ENTRY = compile_regex(r'^\[\[package\]\]\s*\nname = "([^"\n]+)"\s*\nversion = "([^"\n]+)"', re.MULTILINE)


def toml_lines(text: str) -> dict[tuple[str, str], int]:
    """The lines of packages' versions in a TOML lock file, by name and version."""
    numbered = Lines(text)
    return {(found[1], found[2]): numbered.at(found.start()) + 2 for found in TOML_ENTRY.finditer(text)}


def reached(roots: Iterable[str], needs: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The roots and all their dependencies."""
    found, waiting = set[str](), list(roots)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return frozenset(found)


Version = PythonVersion | semver.Version
SOUND = compile_regex(r"[0-9A-Za-z.!+_-]{1,100}")
"""The valid form of a version, as it goes into files, texts and command lines."""


def parse(ecosystem: Ecosystem, text: str) -> Version | None:
    """A comparable version; None if invalid, or a local build that no registry has."""
    if not SOUND.fullmatch(text):
        return None
    try:
        if ecosystem in SEMANTIC:
            return semver.Version.parse(text.removeprefix("v"))
        if ecosystem == "Maven" and not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", text):
            return None
        version = PythonVersion(text)
    except (InvalidVersion, ValueError, TypeError):
        return None
    return None if version.local else version


def step(ecosystem: Ecosystem, old: str, new: str) -> Step | None:
    """The size of the step from `old` to `new`; None if `new` is not newer or they are not comparable."""
    before, after = parse(ecosystem, old), parse(ecosystem, new)
    if before is None or after is None or not _newer(before, after):
        return None
    if isinstance(before, PythonVersion) and isinstance(after, PythonVersion) and before.epoch != after.epoch:
        return Step.MAJOR
    found = size(_numbers(before), _numbers(after))
    # The end of a pre-release is more than a patch, as a pre-release promises nothing.
    return max(found, Step.MINOR) if is_prerelease(before) else found


def ahead(ecosystem: Ecosystem, current: str, releases: Iterable[Release]) -> Mapping[Step, str]:
    """The newest final release for each size of step. A patch may not require a different runtime."""
    best: dict[Step, str] = {}
    for far, version in _candidates(ecosystem, current, releases):
        if far not in best or step(ecosystem, best[far], version):
            best[far] = version
    return best


def patches(ecosystem: Ecosystem, current: str, releases: Iterable[Release]) -> tuple[str, ...]:
    """Every patch that may be proposed, the lowest first."""
    found = [version for far, version in _candidates(ecosystem, current, releases) if far is Step.PATCH]
    return tuple(sorted(found, key=lambda version: cast(Any, parse(ecosystem, version))))


def is_prerelease(version: Version) -> bool:
    """Whether it is an alpha, a beta, a candidate or a development build."""
    return version.is_prerelease if isinstance(version, PythonVersion) else bool(version.prerelease)


def _candidates(ecosystem: Ecosystem, current: str, releases: Iterable[Release]) -> Iterator[tuple[Step, str]]:
    """(size of the step, version) of newer, final releases that are not withdrawn."""
    releases = tuple(releases)
    runtime = next((release.runtime for release in releases if release.version == current), None)
    for release in releases:
        far, version = step(ecosystem, current, release.version), parse(ecosystem, release.version)
        if far is None or version is None or release.withdrawn or is_prerelease(version):
            continue
        if far is not Step.PATCH or runtime is None or release.runtime == runtime:
            yield far, release.version


def _newer(before: Version, after: Version) -> bool:
    if isinstance(before, PythonVersion) and isinstance(after, PythonVersion):
        return after > before
    if isinstance(before, semver.Version) and isinstance(after, semver.Version):
        return after > before
    return False


def _numbers(version: Version) -> tuple[int, int, int]:
    if isinstance(version, PythonVersion):
        return version.major, version.minor, version.micro
    return int(version.major), int(version.minor), int(version.patch)
