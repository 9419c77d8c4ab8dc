"""Turns bumps into a change: version tokens by us, lock files by the package manager itself, in a folder apart.

What comes out is believed only when the manager derives the very same lock file again from it, when exactly the
wanted packages moved, and when nothing else differs (`safety.bumps`). What cannot be done like that is refused.

Each manager works in a folder with only manifests, settings and the lock file. `move` gets the wanted versions into the
lock file; `settle` has the manager reconcile manifests and lock file. No step runs a package's script, builds one or
reads a hook file; a registry's data is only recorded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.adapters.fixers.places import manifest_is_sound, npm_pins, python_pins
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import lockfiles, node
from ralph_mission.adapters.packages.lockfiles import sound
from ralph_mission.adapters.packages.model import Bump, Bumped, Package, Project, Tool
from ralph_mission.adapters.packages.node import plain_yaml
from ralph_mission.adapters.packages.scratch import Contents, Room, check_sources, contents, scratch_project
from ralph_mission.adapters.sandbox.process import own_tool, run_foreign
from ralph_mission.errors import UserError
from ralph_mission.safety.bumps import SECTIONS, only_patches
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import dataclass

SECONDS = 120.0  # for one step of a package manager
ALTOGETHER = 240.0  # for all steps of one change
UV = ("lock", "--no-config", "--no-build", "--no-progress", "--no-python-downloads", "--color", "never")
NPM = ("install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--git=/bin/false")
YARN = ("install", "--ignore-scripts", "--non-interactive", "--no-progress", "--no-bin-links")
BERRY = ("install", "--mode=update-lockfile")
STAYING = {
    "npm_config_manage_package_manager_versions": "false",
    "pnpm_config_manage_package_manager_versions": "false",
}
BERRY_REGISTRY = ("YARN_NPM_REGISTRY_SERVER",)
PNPM_REGISTRY = ("npm_config_registry", "pnpm_config_registry")
PNPM = ("install", "--lockfile-only", "--ignore-scripts", "--ignore-pnpmfile", "--no-frozen-lockfile")
QUIET = {"CI": "1", "NO_COLOR": "1", "NO_UPDATE_NOTIFIER": "1", "GIT_ALLOW_PROTOCOL": "none"}


@dataclass(frozen=True, slots=True)
class Bumps:
    """The port `Bumper` on a repository.

    `allow` are hosts, or host:port, that may be private though a file of the repository names them: an owner's word.
    """

    git: Git
    allow: Collection[str] = ()
    seconds: float = SECONDS

    def bump(self, commit: str, bumps: tuple[Bump, ...], scratch: Path) -> Bumped:
        """All that can be done of `bumps` as one change. Raises GitError when the commit cannot be read."""
        entries = {e.path: e for e in self.git.listing(commit) if e.mode == REGULAR}
        changes: dict[str, FileChange] = {}
        done: list[Bump] = []
        refused: list[tuple[Bump, str]] = []
        deadline = time.monotonic() + ALTOGETHER
        for project in dict.fromkeys(bump.project for bump in bumps):
            mine = tuple(bump for bump in bumps if bump.project == project)
            try:
                before = contents(self.git, entries, project)
            except UserError as problem:
                refused += [(bump, problem.what) for bump in mine]
                continue
            after, could, could_not = self._make_project(project, mine, before, scratch, deadline)
            done += could
            refused += could_not
            changes |= {path: _change(path, before[path], after[path]) for path in after if after[path] != before[path]}
        patch = Patch(commit, tuple(changes[path] for path in sorted(changes))) if changes else None
        return Bumped(patch, tuple(done), tuple(refused))

    def _make_project(
        self, project: Project, bumps: tuple[Bump, ...], before: Contents, scratch: Path, deadline: float
    ) -> tuple[Contents, list[Bump], list[tuple[Bump, str]]]:
        """All at once; where that fails, one after the other, so that one that is refused holds up no other."""
        derived = project.tool not in ("", "pip")
        if derived and (why := _late(deadline) or self._why_not(project, bumps, before, scratch, deadline)):
            return before, [], [(bump, why) for bump in bumps]
        try:
            return self._move_version(project, bumps, before, scratch, deadline), list(bumps), []
        except UserError as problem:
            if len(bumps) == 1:
                return before, [], [(bumps[0], problem.what)]
        done: list[Bump] = []
        refused: list[tuple[Bump, str]] = []
        after = before
        for bump in bumps:
            if late := _late(deadline):
                refused.append((bump, late))
                continue
            try:
                after = self._move_version(project, (*done, bump), before, scratch, deadline)
                done.append(bump)
            except UserError as problem:
                refused.append((bump, problem.what))
        return after, done, refused

    def _why_not(self, project: Project, bumps: Sequence[Bump], files: Contents, scratch: Path, deadline: float) -> str:
        return unfit(project.tool, scratch) or check_sources(files, _registry(bumps), self.allow, deadline)

    def _move_version(
        self, project: Project, bumps: Sequence[Bump], before: Contents, scratch: Path, deadline: float
    ) -> Contents:
        """The files after these bumps. Raises UserError for anything that is not exactly that."""
        if not all(bump.package.movable for bump in bumps):
            raise UserError("its digest has to change with it", "update it yourself")
        after = _tokens(project, bumps, before)
        if project.tool not in ("", "pip"):
            after = self._derive_lock(project, bumps, after, scratch, deadline)
        changes = [_change(path, before[path], after[path]) for path in before if before[path] != after[path]]
        _believe(project, bumps, after, changes)
        return after

    def _derive_lock(
        self, project: Project, bumps: Sequence[Bump], files: Contents, scratch: Path, deadline: float
    ) -> Contents:
        manager = MANAGERS[project.tool]
        program, environment = find_program(manager), manager_environment(manager, _registry(bumps))
        with scratch_project(project, files, program, environment, scratch, self.seconds, deadline) as workspace:
            manager.move(workspace, bumps)
            workspace.run(manager.settle)
            derived = workspace.read(project.path)
            workspace.run(manager.settle)
            if workspace.read(project.path) != derived:
                raise UserError(f"{manager.program} derives another lock file each time", "run it there to see why")
            return {**files, project.path: derived.encode()}


def _registry(bumps: Sequence[Bump]) -> str:
    return next((bump.package.registry for bump in bumps if bump.package.registry), "")


def _late(deadline: float) -> str:
    return "there was no time left for it" if time.monotonic() > deadline else ""


def _tokens(project: Project, bumps: Iterable[Bump], before: Contents) -> Contents:
    """The files with the exact pins of these packages moved."""
    after = dict(before)
    for bump in bumps:
        for path in {*project.manifests, *({project.path} if project.tool in ("", "pip") else ())} & set(after):
            rewrite = npm_pins if project.ecosystem == "npm" else python_pins
            name, old = bump.package.name, bump.package.version
            after[path] = rewrite(after[path].decode(), name, old, bump.to).encode()
    return after


def _believe(project: Project, bumps: Sequence[Bump], after: Contents, changes: Sequence[FileChange]) -> None:
    """Raises UserError unless exactly these packages moved, and nothing else is different."""
    texts = {path: content.decode(errors="replace") for path, content in after.items()}
    if not all(manifest_is_sound(change.path, texts[change.path]) for change in changes):
        raise UserError("the manifest could not be read afterwards", "change it yourself")
    read_projects = node.projects if project.ecosystem == "npm" else lockfiles.read_projects
    found = next((p for p in read_projects(texts) if isinstance(p, Project) and p.path == project.path), None)
    versions = {(bump.package.name, bump.package.version): bump.to for bump in bumps}
    expected = {_identity(replace(p, version=versions.get((p.name, p.version), p.version))) for p in project.packages}
    if found is None or set(map(_identity, sound(found).packages)) != expected:
        raise UserError("more than these versions would move", "update it yourself")
    strange = next((change.path for change in changes if not only_patches(change)), "")
    if strange or not changes:
        raise UserError(f"more than versions would change in {strange or project.path}", "update it yourself")


def _identity(package: Package) -> tuple[str, str]:
    return package.name, package.version


def _change(path: str, old: bytes, new: bytes) -> FileChange:
    return FileChange(path, REGULAR, REGULAR, old, new)


# A corepack shim downloads the manager that a package.json names, or the newest: this is disabled.
QUIET |= {"COREPACK_ENABLE_NETWORK": "0", "COREPACK_ENABLE_PROJECT_SPEC": "0", "COREPACK_ENABLE_AUTO_PIN": "0"}
SETTLED = {"YARN_ENABLE_SCRIPTS": "0", "YARN_IGNORE_PATH": "1", "YARN_ENABLE_TELEMETRY": "0"}
SETTLED |= {"YARN_ENABLE_IMMUTABLE_INSTALLS": "0", "YARN_ENABLE_GLOBAL_CACHE": "1"}
VERSION = 30.0  # seconds for a package manager's `--version`


@dataclass(frozen=True, slots=True)
class Manager:
    """A package manager: its program, supported major versions, and its two steps."""

    program: str
    meant: Callable[[int], bool]
    move: Callable[[Room, Sequence[Bump]], None]
    settle: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    registry: tuple[str, ...] = ()  # its variables for the registry; pnpm 11 and later only reads its own


def find_program(manager: Manager) -> str:
    """The full path of its program, or ""."""
    own = own_tool(manager.program)
    return own if os.path.isabs(own) else (shutil.which(manager.program) or "")


def unfit(tool: Tool, scratch: Path, seconds: float = VERSION) -> str:
    """Why a lock file's manager cannot be used here, or ""."""
    manager = MANAGERS.get(tool)
    if manager is None:
        return f"a lock file of {tool} cannot be derived"
    program = find_program(manager)
    if not program:
        return f"{manager.program} is not installed"
    with tempfile.TemporaryDirectory(prefix="version-", dir=scratch) as own:
        environment = {**QUIET, **manager.environment}
        home = Path(own) / "home"
        done = run_foreign((program, "--version"), cwd=Path(own), home=home, timeout=seconds, extra_env=environment)
    version = done.stdout.decode(errors="replace").strip()
    return (
        ""
        if manager.meant(major(version))
        else f"{manager.program} here is {version[:20] or 'unknown'}, of another line"
    )


def manager_environment(manager: Manager, base: str) -> dict[str, str]:
    """A manager's environment: the registry at `base`, and settings that prevent downloads of tools."""
    registry = dict.fromkeys(manager.registry, base) if base else {}
    if base.startswith("http://") and manager.registry == BERRY_REGISTRY:
        registry["YARN_UNSAFE_HTTP_WHITELIST"] = urlsplit(base).hostname or ""
    return {**QUIET, **manager.environment, **registry}


def major(text: str) -> int:
    """The first number in the output of `--version`, or 0."""
    found = re.search(r"(\d+)\.\d+", text)
    return int(found[1]) if found else 0


def _uv(workspace: Room, bumps: Sequence[Bump]) -> None:
    arguments = (word for b in bumps for word in ("--upgrade-package", f"{b.package.name}=={b.to}"))
    workspace.run((*UV, *arguments))


def _pinning(settle: tuple[str, ...]) -> Callable[[Room, Sequence[Bump]], None]:
    """Temporarily requests exactly the wanted versions; a range that contains them keeps them afterwards."""

    def move(workspace: Room, bumps: Sequence[Bump]) -> None:
        with_ranges = {path: workspace.read(path) for bump in bumps for path in bump.project.manifests}
        for path, text in with_ranges.items():
            workspace.write(path, _exactly(text, bumps))
        workspace.run(settle)
        for path, text in with_ranges.items():
            workspace.write(path, text)

    return move


def _exactly(text: str, bumps: Sequence[Bump]) -> str:
    manifest = json.loads(text)
    for bump in bumps:
        for section in SECTIONS:
            if bump.package.name in (manifest.get(section) or {}):
                manifest[section][bump.package.name] = bump.to
    return json.dumps(manifest, indent=2)


def _yarn(workspace: Room, bumps: Sequence[Bump]) -> None:
    """yarn 1 drops a range if an exact version is requested: its new entry is put below the range's key."""
    before = workspace.read(workspace.lock)
    _pinning(YARN)(workspace, bumps)
    moved = dict(_entries(workspace.read(workspace.lock)))
    for bump in bumps:
        body = next((b for keys, b in moved.items() if f"{bump.package.name}@{bump.to}" in _keys(keys)), "")
        for keys, old in dict(_entries(before)).items():
            named = any(key.rpartition("@")[0] == bump.package.name for key in _keys(keys))
            if body and named and f'  version "{bump.package.version}"\n' in old:
                before = before.replace(f"{keys}\n{old}", f"{keys}\n{body}", 1)
    workspace.write(workspace.lock, before)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """(the line of keys, the lines below it) of each entry of a lock file of yarn 1."""
    for block in re.split(r"\n(?=[^\s#])", text.replace("\r\n", "\n")):
        keys, _, body = block.partition("\n")
        if keys.endswith(":"):
            yield keys, body.rstrip("\n") + "\n"


def _keys(line: str) -> list[str]:
    return [key.strip().strip('"') for key in line.removesuffix(":").split(",")]


def _berry(workspace: Room, bumps: Sequence[Bump]) -> None:
    entries = plain_yaml(workspace.read(workspace.lock))
    for bump in bumps:
        for keys, entry in entries.items():
            if isinstance(entry, dict) and entry.get("resolution") == f"{bump.package.name}@npm:{bump.package.version}":
                for key in keys.split(", "):
                    workspace.run(("set", "resolution", key, f"npm:{bump.to}"))


MANAGERS: Mapping[Tool, Manager] = {
    "uv": Manager("uv", lambda _: True, _uv, UV, {"UV_PYTHON_DOWNLOADS": "never"}, ("UV_DEFAULT_INDEX",)),
    "npm": Manager("npm", lambda major: major >= 7, _pinning(NPM), NPM, {}, ("npm_config_registry",)),
    "yarn": Manager("yarn", lambda major: major == 1, _yarn, YARN, {"YARN_IGNORE_PATH": "1"}, ("npm_config_registry",)),
    "berry": Manager("yarn", lambda major: major >= 3, _berry, BERRY, SETTLED, BERRY_REGISTRY),
    "pnpm": Manager("pnpm", lambda major: major >= 8, _pinning(PNPM), PNPM, STAYING, PNPM_REGISTRY),
}
