"""The nouns of dependencies: what is locked or pinned where, and what it could become."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from ralph_mission.safety.bumps import Step as Step
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass

Ecosystem = Literal["PyPI", "npm"]
"""As advisories name them."""
Tool = Literal["uv", "poetry", "pip", "npm", "yarn", "berry", "pnpm", ""]
"""What writes a lock file; "" where versions are pinned in a manifest alone."""


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a package that a repository uses.

    `path` and `line` (1-based, 0 when unknown) are where the version stands; `registry` is the base address that the
    lock file names for it, "" when it names none. `direct`: a person asked for it. `movable`: its version can be
    changed by rewriting a token or asking the package manager (a hashed pin cannot).
    """

    ecosystem: Ecosystem
    name: str
    version: str
    path: str
    line: int = 0
    registry: str = ""
    direct: bool = False
    movable: bool = True


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
    """One published version; `runtime` is what it says it needs to run (`requires-python`, `engines.node`)."""

    version: str
    withdrawn: bool = False
    runtime: str = ""


@dataclass(frozen=True, slots=True)
class Bump:
    """One package to be moved to another version."""

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
    """Who turns bumps into a change. Nothing of the repository is touched."""

    def bump(self, commit: str, bumps: tuple[Bump, ...], scratch: Path) -> Bumped:
        """The change against `commit`. Raises UserError when the commit cannot be read."""
        ...
