"""Asks package managers themselves what is known against what they locked: `npm audit` and its kind.

They ask their registry, in a room of their own; no package is installed. What one said of the same files is kept, so a
lock file that did not change runs nothing. One that fails says so, and what it said last still counts.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from ralph_mission.gateways.git import Entry, Git
from ralph_mission.gateways.packages import managers
from ralph_mission.gateways.packages.advisories import Advisory, nearest
from ralph_mission.gateways.packages.affected import Affected
from ralph_mission.gateways.packages.audits_reading import Finding, read, why
from ralph_mission.gateways.packages.keeping import Kept, Shelf
from ralph_mission.gateways.packages.model import Project, Tool
from ralph_mission.gateways.packages.rooms import Contents, astray, contents, furnished
from ralph_mission.gateways.packages.versions import bounds, holds
from ralph_mission.gateways.process import STOPPED
from ralph_mission.safety.patch import REGULAR
from ralph_mission.trouble import Trouble

SECONDS = 30.0
"""For all audits of one look; none goes on longer."""
COMMANDS: Mapping[Tool, tuple[str, ...]] = {
    "npm": ("audit", "--json", "--package-lock-only", "--audit", "--ignore-scripts"),
    "pnpm": ("audit", "--json"),
    "yarn": ("audit", "--json", "--non-interactive"),
    "berry": ("npm", "audit", "--json", "--all", "--recursive"),
}
OWN_REGISTRY: Mapping[Tool, tuple[str, ...]] = {"yarn": ("config", "get", "registry")}
"""Whose audits go to the one address that is built in, whatever a lock file or an environment names."""
AT_ONCE = {"npm_config_fetch_retries": "0", "pnpm_config_fetch_retries": "0", "YARN_HTTP_RETRY": "0"}


@dataclass(frozen=True, slots=True)
class Audited:
    """What package managers said; `troubles` are of those that did not, one line each."""

    advisories: tuple[Advisory, ...] = ()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audits:
    """The managers of a repository's lock files, each asked at most once in `every` about the same files.

    `allow` are hosts, or host:port, that may be private: an owner's word.
    """

    git: Git
    allow: Collection[str]
    shelf: Shelf
    now: datetime
    every: timedelta
    seconds: float = SECONDS

    def about(self, commit: str, registries: Mapping[Project, str], scratch: Path) -> Audited:
        """What is known against the locked packages of each project, by its registry's word.

        A manager that is not installed, or of another line, says nothing. Raises GitError.
        """
        told, until = Audited(), time.monotonic() + self.seconds
        chosen = {project: base for project, base in registries.items() if base and _can_be_asked(project)}
        entries = {e.path: e for e in self.git.listing(commit) if e.mode == REGULAR} if chosen else {}
        for project, base in chosen.items():
            told = _joined(told, project, self._said(project, base, entries, scratch, until))
        return told

    def _said(self, project: Project, base: str, entries: Mapping[str, Entry], scratch: Path, until: float) -> _Said:
        try:
            files = contents(self.git, entries, project)
        except Trouble as trouble:
            return _Said(trouble=f"no audit of {project.path}: {trouble.what}")
        question = f"audit {project.tool} {project.path} {base} {_digest(files)}"
        kept = self.shelf.get(question)
        if kept and timedelta(0) <= self.now - kept.asked < self.every:
            return _restored(kept)
        try:
            said = self._ask(project, base, files, scratch, until)
        except Trouble as trouble:
            what = f"no audit of {project.path}: {trouble.what}"
            said = replace(_restored(kept) if kept else _Said(), trouble=what)
        if time.monotonic() < until and not ((over := STOPPED.get()) and over()):  # what was cut off is asked again
            self.shelf.put(question, Kept([[finding.row for finding in said.findings], said.trouble], self.now))
        return said

    def _ask(self, project: Project, base: str, files: Contents, scratch: Path, until: float) -> _Said:
        """Raises Trouble when the manager must not be asked, or does not answer."""
        if until <= time.monotonic():
            raise Trouble("there was no time left for it", "the next look asks again")
        if managers.unfit(project.tool, scratch, until - time.monotonic()):
            return _Said()
        if stray := astray(files, self.allow, until, base):
            raise Trouble(stray, "take that out")
        if not self._goes_there(project, base, scratch, until):
            return _Said()
        manager = managers.MANAGERS[project.tool]
        program, told = managers.located(manager), {**managers.told(manager, base, files), **AT_ONCE}
        with furnished(project, files, program, told, scratch, self.seconds, until) as room:
            done = room.ask(COMMANDS[project.tool])
        findings = None if done.truncated or done.timed_out else read(done.stdout, done.code)
        if findings is None:
            raise Trouble(why(done), f"run {manager.program} there to see why")
        return _Said(findings)

    def _goes_there(self, project: Project, base: str, scratch: Path, until: float) -> bool:
        """Whether the audit of this manager goes to `base`: not where another address is built in."""
        if (question := OWN_REGISTRY.get(project.tool)) is None:
            return True
        manager, nothing = managers.MANAGERS[project.tool], {project.path: b""}
        program, told = managers.located(manager), managers.told(manager, "", {})
        with furnished(project, nothing, program, told, scratch, self.seconds, until) as room:
            return room.ask(question).stdout.decode(errors="replace").strip().rstrip("/") == base.rstrip("/")


@dataclass(frozen=True, slots=True)
class _Said:
    """What one manager said, now or before; `trouble` when it did not this time."""

    findings: tuple[Finding, ...] = ()
    trouble: str = ""


def _can_be_asked(project: Project) -> bool:
    return project.tool in COMMANDS and bool(managers.located(managers.MANAGERS[project.tool]))


def _restored(kept: Kept) -> _Said:
    rows, trouble = kept.facts
    return _Said(tuple(Finding.of(row) for row in rows), str(trouble))


def _joined(told: Audited, project: Project, said: _Said) -> Audited:
    found = dict.fromkeys((*told.advisories, *_advisories(project, said.findings)))
    troubles = (*told.troubles, *([said.trouble] if said.trouble else []))
    return Audited(tuple(found), troubles)


def _advisories(project: Project, findings: Sequence[Finding]) -> Iterator[Advisory]:
    """Against each locked version that the finding is about."""
    for found in findings:
        for package in project.packages:
            if package.name == found.name and holds(found.vulnerable, package.version):
                subject = (package.ecosystem, package.name, package.version)
                affected = Affected(written=found.vulnerable)
                fixed = nearest(subject, bounds(found.vulnerable), affected)
                yield Advisory(found.id, subject, found.aliases, found.title, found.severity, fixed, affected=affected)


def _digest(files: Contents) -> str:
    whole = hashlib.sha256()
    for path, content in files.items():
        whole.update(f"{len(path)} {path} {len(content)} ".encode("utf-8", "replace") + content)
    return whole.hexdigest()
