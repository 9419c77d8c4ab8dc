"""From bumps to a change: tokens by us, lock files by the package manager itself, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers import bumps
from ralph_mission.adapters.fixers.bumps import Bumps
from ralph_mission.adapters.fixers.places import npm_pins, python_pins
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import lockfiles, node, scratch
from ralph_mission.adapters.packages.model import Bump, Bumped, Project, Tool
from ralph_mission.errors import UserError
from tests import packages_world as world
from tests.fakes.registry import Registry, serving
from tests.helpers import git, make_repo

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed here")


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(world.young()) as served:
        yield served


def bumped(tmp_path: Path, files: dict[str, str], wanted: dict[str, str], registry: Registry) -> Bumped:
    repo = make_repo(tmp_path / "repo", files)
    read_projects = node.projects if any(path.endswith(".json") for path in files) else lockfiles.read_projects
    bumps = []
    for project in read_projects(files):
        assert isinstance(project, Project)
        for package in project.packages:
            if package.name in wanted and (package.direct or project.tool == "uv"):
                base = package.registry or (registry.node if project.ecosystem == "npm" else registry.index)
                bumps.append(Bump(project, _at(package, base), wanted[package.name]))
    (tmp_path / "scratch").mkdir()
    bumper = Bumps(Git.open(repo), (registry.host,))
    return bumper.bump(git(repo, "rev-parse", "HEAD"), tuple(bumps), tmp_path / "scratch")


def _at(package, base: str):
    from dataclasses import replace

    return replace(package, registry=base)


def texts(found: Bumped) -> dict[str, str]:
    assert found.patch is not None, found.refused
    return {change.path: (change.new or b"").decode() for change in found.patch.changes}


# --- tokens ---------------------------------------------------------------------------


def test_a_pin_of_python_is_rewritten_wherever_it_is_one_and_nowhere_else() -> None:
    text = (
        "Tide_Tables [x] == 1.2.3 ; extra\r\ntide-tables==1.2.30\nmy-tide-tables==1.2.3\ntide-tables>=1.2.3\n"
        "# tide-tables==1.2.3\nother  # tide-tables==1.2.3\ntide-tables==1.2.3.*\n'tide.tables==1.2.3',\n"
    )
    new = python_pins(text, "tide-tables", "1.2.3", "1.2.4")
    differing = [(a, b) for a, b in zip(text.splitlines(), new.splitlines(), strict=True) if a != b]
    assert differing == [
        ("Tide_Tables [x] == 1.2.3 ; extra", "Tide_Tables [x] == 1.2.4 ; extra"),
        ("'tide.tables==1.2.3',", "'tide.tables==1.2.4',"),
    ]
    assert "\r\n" in new


def test_an_exact_version_of_npm_is_rewritten_in_dependencies_alone() -> None:
    text = '{"version": "1.0.0", "dependencies": {"a": "1.0.0", "b": "^1.0.0"}}\n'
    assert npm_pins(text, "a", "1.0.0", "1.0.1") == text.replace('"a": "1.0.0"', '"a": "1.0.1"')
    assert npm_pins(text, "b", "1.0.0", "1.0.1") == text
    elsewhere = '{"engines": {"a": "1.0.0"}, "dependencies": {"a": "1.0.0"}}'
    assert npm_pins(elsewhere, "a", "1.0.0", "1.0.1") == elsewhere


# --- uv -------------------------------------------------------------------------------


def test_uv_moves_what_is_wanted_and_nothing_that_could_move_as_well(tmp_path: Path, registry: Registry) -> None:
    files = world.locked_by_uv(tmp_path / "uv", registry)
    world.grow(registry)
    found = bumped(tmp_path, files, {"tide-tables": "2.1.3", "moon": "1.0.1"}, registry)
    lock = texts(found)["uv.lock"]
    after = {(p.name, p.version) for p in next(iter(lockfiles.read_projects({"uv.lock": lock}))).packages}
    before = {(name, next(iter(versions))) for name, versions in world.BEFORE.items()}
    assert after == before - {("tide-tables", "2.1.0"), ("moon", "1.0.0")} | {
        ("tide-tables", "2.1.3"),
        ("moon", "1.0.1"),
    }
    assert list(texts(found)) == ["uv.lock"] and not found.refused


@pytest.mark.long  # uv itself, again
def test_a_version_that_does_not_exist_is_refused_and_the_others_are_not(tmp_path: Path, registry: Registry) -> None:
    files = world.locked_by_uv(tmp_path / "uv", registry)
    world.grow(registry)
    found = bumped(tmp_path, files, {"tide-tables": "2.1.9", "knots": "7.0.1"}, registry)
    assert [str(bump) for bump in found.done] == ["knots 7.0 → 7.0.1"]
    ((refused, why),) = found.refused
    assert str(refused) == "tide-tables 2.1.0 → 2.1.9" and why.startswith("uv refuses: ")


def test_a_package_is_never_built(tmp_path: Path, registry: Registry) -> None:
    files = world.locked_by_uv(tmp_path / "uv", registry)
    world.grow(registry)
    mark = tmp_path / "ran"
    evil = files | {
        "setup.py": f"open({str(mark)!r}, 'w')\n",
        "pyproject.toml": files["pyproject.toml"].replace('version = "0.1.0"\n', 'dynamic = ["version"]\n')
        + '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n',
    }
    found = bumped(tmp_path, evil, {"knots": "7.0.1"}, registry)
    assert found.patch is None and found.refused and not mark.exists()


@pytest.mark.long  # uv itself, again
@pytest.mark.parametrize("whose", ["the release", "a package beside it"])
def test_nothing_is_built_of_a_registry_either(tmp_path: Path, registry: Registry, whose: str) -> None:
    mark = tmp_path / "ran"
    evil = f"open({str(mark)!r}, 'w')\nfrom setuptools import setup\nsetup()\n"
    files = world.locked_by_uv(tmp_path / "uv", registry)
    world.grow(registry)
    name, version = ("knots", "7.0.1") if whose == "the release" else ("chain-link", "5.5.0")
    registry.sources[name, version] = evil
    found = bumped(tmp_path, files, {"knots": "7.0.1"}, registry)
    assert not mark.exists()
    ((refused, why),) = found.refused
    assert (found.patch, str(refused)) == (None, "knots 7.0 → 7.0.1") and why
    assert not any(path.startswith("/files/") and path.endswith(".tar.gz") for _, path, _ in registry.journal)


def test_a_manager_that_is_missing_or_of_another_line_is_named(tmp_path: Path, registry: Registry, monkeypatch) -> None:
    files = {"package.json": world.PACKAGE_JSON, "yarn.lock": world.yarn_lock(registry)}
    monkeypatch.setattr("ralph_mission.adapters.fixers.bumps.find_program", lambda manager: "")
    found = bumped(tmp_path / "a", files, {"tidy": "2.0.2"}, registry)
    assert [why for _, why in found.refused] == ["yarn is not installed"] and found.patch is None
    other = tmp_path / "yarn"
    other.write_text("#!/bin/sh\necho 4.1.0\n")
    other.chmod(0o755)
    monkeypatch.setattr("ralph_mission.adapters.fixers.bumps.find_program", lambda manager: str(other))
    found = bumped(tmp_path / "b", files, {"tidy": "2.0.2"}, registry)
    assert [why for _, why in found.refused] == ["yarn here is 4.1.0, of another line"]


def test_a_private_place_that_the_files_name_is_asked_nothing(tmp_path: Path, registry: Registry) -> None:
    with serving(world.young()) as private:
        files = world.locked_by_uv(tmp_path / "uv", registry)
        world.grow(registry)
        files["pyproject.toml"] += f'[[tool.uv.index]]\nname = "inner"\nurl = "{private.index}"\n'
        found = bumped(tmp_path, files, {"knots": "7.0.1"}, registry)
        assert (found.patch, private.journal) == (None, [])
    ((_, why),) = found.refused
    assert why.startswith(f"{private.host} is not a public place, and was not asked; ") and "RALPH_WEB_ALLOW" in why


def test_settings_stay_behind_and_another_registry_keeps_the_manager_from_running(
    tmp_path: Path, registry: Registry, monkeypatch
) -> None:
    mark, yarn = tmp_path / "ran", tmp_path / "yarn"
    yarn.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 1.22.22 || ls -A >{mark}\n')
    yarn.chmod(0o755)
    monkeypatch.setattr("ralph_mission.adapters.fixers.bumps.find_program", lambda manager: str(yarn))
    files = {"package.json": world.PACKAGE_JSON, "yarn.lock": world.yarn_lock(registry)}
    scoped = files | {".npmrc": "@harbour:registry=https://npm.example.org\n"}
    ((_, why),) = bumped(tmp_path / "a", scoped, {"tidy": "2.0.2"}, registry).refused
    assert why.startswith(".npmrc names a registry of its own, and no settings are handed on; ") and not mark.exists()
    bumped(tmp_path / "b", files | {".npmrc": "script-shell=./x\n"}, {"tidy": "2.0.2"}, registry)
    assert mark.read_text().split() == ["package.json", "yarn.lock"]


# --- npm ------------------------------------------------------------------------------


def locked_by_npm(folder: Path, registry: Registry) -> dict[str, str]:
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(world.PACKAGE_JSON)
    npm(folder, registry, *bumps.NPM)
    return {name: (folder / name).read_text() for name in ("package.json", "package-lock.json")}


def npm(folder: Path, registry: Registry, *arguments: str) -> None:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "npm_config_registry": registry.node}
    done = subprocess.run(["npm", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_npm
@pytest.mark.long  # four seconds
def test_npm_moves_ranges_and_pins_and_installs_what_it_locked(tmp_path: Path, registry: Registry) -> None:
    files = locked_by_npm(tmp_path / "npm", registry)
    world.grow(registry)
    mark = tmp_path / "ran"
    registry.scripts["rope", "1.0.1"] = {"postinstall": f"touch {mark}"}
    wanted = {"@harbour/pilot": "0.2.1", "buoy": "1.4.3", "lantern": "3.1.1", "tidy": "2.0.2"}
    after = texts(bumped(tmp_path, files, wanted, registry))
    assert after["package.json"] == world.PACKAGE_JSON.replace('"buoy": "1.4.2"', '"buoy": "1.4.3"')
    packages = json.loads(after["package-lock.json"])["packages"]
    locked = {place.removeprefix("node_modules/"): entry["version"] for place, entry in packages.items() if place}
    assert locked == {**wanted, "rope": "1.0.0"}
    folder = tmp_path / "accepted"
    folder.mkdir()
    for path, text in after.items():
        (folder / path).write_text(text)
    npm(folder, registry, "ci", "--ignore-scripts", "--no-audit", "--no-fund")  # fails unless both files agree
    assert not mark.exists()


@pytest.mark.parametrize("name", ["yarn", "berry"])
def test_yarn_runs_no_other_program_that_a_repository_names(name: Tool) -> None:
    assert bumps.MANAGERS[name].environment["YARN_IGNORE_PATH"] == "1"


def test_what_opens_a_registry_is_in_no_refusal(tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\necho 'cannot fetch https://only-a-token@index.example.org/simple' >&2; exit 2\n")
    program.chmod(0o700)
    room = scratch.Room(tmp_path, "uv.lock", tmp_path / "home", str(program), {}, 20.0)
    with pytest.raises(UserError) as caught:
        room.run(("lock",))
    assert caught.value.what == "uv refuses: cannot fetch https://index.example.org/simple"
