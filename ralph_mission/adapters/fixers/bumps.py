"""Turns bumps into a change: version tokens by us, lock files by the package manager itself, in a folder apart.

What comes out is believed only when the manager derives the very same lock file again from it, when exactly the
wanted packages moved, and when nothing else differs (`safety.bumps`). What cannot be done like that is refused.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters.fixers.places import manifest_is_sound, npm_pins, python_pins
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import lockfiles, managers, node
from ralph_mission.adapters.packages.lockfiles import sound
from ralph_mission.adapters.packages.model import Bump, Bumped, Package, Project
from ralph_mission.adapters.packages.scratch import Contents, astray, contents, scratch_project
from ralph_mission.errors import UserError
from ralph_mission.safety.bumps import only_patches
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.values import dataclass

SECONDS = 120.0  # for one step of a package manager
ALTOGETHER = 240.0  # for all steps of one change


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
        return managers.unfit(project.tool, scratch) or astray(files, _registry(bumps), self.allow, deadline)

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
        manager = managers.MANAGERS[project.tool]
        program, environment = managers.find_program(manager), managers.manager_environment(manager, _registry(bumps))
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
