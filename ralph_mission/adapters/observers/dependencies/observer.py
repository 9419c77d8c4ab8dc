"""Observes dependencies: outdated ones with the size of the step, and known vulnerabilities.

Versions come from the commit's lock files and pins, releases from the registries named there, advisories from OSV. A
vulnerable package that can be upgraded is a separate finding; patch-level bumps are one finding with its change ready;
all other updates are one list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.dependencies import signals as about
from ralph_mission.adapters.observers.dependencies import updates as bots
from ralph_mission.adapters.observers.dependencies.lookup import (
    NO_ADVISORIES,
    Alerts,
    DependencyFindings,
    DependencyLookup,
    Importers,
    dump_bumps,
    dump_importers,
    fixed_by,
    load_bumps,
    load_importers,
    nobody_alerts,
    read_importers,
)
from ralph_mission.adapters.observers.looking import one_line
from ralph_mission.adapters.observers.markers import FOLDERS
from ralph_mission.adapters.packages import registries
from ralph_mission.adapters.packages.advisories import OSV
from ralph_mission.adapters.packages.lockfiles import DependencyReading, read
from ralph_mission.adapters.packages.model import Bump, Bumped, Bumper, Ecosystem, Package, Project
from ralph_mission.adapters.packages.registries import AnswerCache, CachedAnswer
from ralph_mission.adapters.sandbox.process import STOPPED
from ralph_mission.config.observers import DependencySettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Pull, SecurityAlert
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.http.guard import Web

NAME = bots.NAME
MOST_REMEMBERED = 40
"""Reported vulnerabilities that the cursor stores."""
NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # a commit's content never changes
MOST_BUMPS = 20
"""Bumps in one change: as many as a person can still review."""
SAMPLES = ("fixtures", "__fixtures__", "testdata", "test-data", "test_data", "__snapshots__")
Pulls = Callable[[], Sequence[Pull]]


def build(
    settings: DependencySettings,
    git: Git,
    cache: Path | None = None,
    bumper: Bumper | None = None,
    web: Web | None = None,
    environment: Mapping[str, str] | None = None,
    pulls: Pulls = tuple,
    alerts: Alerts = nobody_alerts,
) -> Dependencies:
    """The observer. `bumper` makes the changes for bumps; without one they are only reported. `pulls` returns the open
    pull requests, `alerts` the forge's security alerts about packages: if there are any, OSV is not asked."""
    variables = registries.own_environment() if environment is None else environment
    endpoint = variables.get("OSV_API_URL", OSV).rstrip("/")
    if web is None:
        from ralph_mission.adapters.http.guard import GuardedWeb

        web = GuardedWeb(allow=registries.hosts(variables, variables.get("OSV_API_URL", "")))
    answer_cache = AnswerCache(cache / NAME if cache else None)
    return Dependencies(settings, git, web, answer_cache, bumper, endpoint, variables, pulls, alerts)


def _unchecked(findings: DependencyFindings) -> Iterator[str]:
    if findings.problem:
        yield f"known vulnerabilities of packages: {one_line(findings.problem.removeprefix(NO_ADVISORIES), 200)}"
    if findings.answers.failed:
        yield f"releases of some packages: {one_line(next(iter(findings.answers.failed.values())), 200)}"


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Looks at the lock files of one commit."""

    settings: DependencySettings
    git: Git
    web: Web
    answer_cache: AnswerCache
    bumper: Bumper | None
    endpoint: str
    environment: Mapping[str, str] = field(repr=False)
    pulls: Pulls = tuple
    alerts: Alerts = nobody_alerts

    @property
    def name(self) -> str:
        """dependencies."""
        return NAME

    def observe(self, context: ObservationContext) -> Observation:
        """All outdated or vulnerable packages; `unavailable` if no registry answers and nothing is known."""
        commit = context.head.sha
        if not commit:
            return Observation(NAME, "ok", detail="no commits yet")
        reading = self._read(commit)
        if not reading.projects:
            return Observation(NAME, "ok", detail=about.unread(reading) or "no lock files and no exact versions")
        findings = self._asking(context, self.answer_cache).all(reading, self._alerts())
        self.answer_cache.tidy()
        if not (findings.answers.releases or findings.advisories) and findings.answers.failed:
            return Observation(NAME, "unavailable", detail=one_line(next(iter(findings.answers.failed.values())), 200))
        signals = self._signals(findings, commit, context)
        essences = [signal.essence for signal in signals if signal.essence[0] == "vulnerability"]
        return Observation(
            NAME,
            "ok",
            signals,
            detail=about.detail(findings),
            cursor=json.dumps(essences[:MOST_REMEMBERED], separators=(",", ":")),
            complete=findings.complete,
            gone=() if findings.complete else _gone(context.cursor, reading),
            unchecked=tuple(_unchecked(findings)),
        )

    def try_out(self, context: ObservationContext) -> tuple[str, tuple[Project, ...]]:
        """Ask each registry about one package, and OSV about one; nothing is stored. Returns a text for people.

        Raises UserError if one of them cannot be reached, or a file cannot be read.
        """
        reading = self._read(context.head.sha)
        if reading.unread:
            raise UserError(about.unread(reading), "fix the file, or name it in observers.dependencies.exclude")
        return about.detail(self._asking(context, AnswerCache(None)).a_little(reading)), reading.projects

    def _alerts(self) -> Sequence[SecurityAlert] | None:
        """The forge's alerts; if it does not answer, OSV is asked as if it had none."""
        try:
            return self.alerts()
        except UserError:
            return None

    def _read(self, commit: str) -> DependencyReading:
        return read(self.git, commit, _excluder(self.settings.exclude), _also)

    def _asking(self, context: ObservationContext, answer_cache: AnswerCache) -> DependencyLookup:
        chosen = self.settings
        limits = (chosen.advisories, chosen.every, chosen.seconds, chosen.most, chosen.updates)
        return DependencyLookup(
            self.web, answer_cache, self.endpoint, self.environment, context.now, Path(context.scratch), *limits
        )

    def _signals(self, findings: DependencyFindings, commit: str, context: ObservationContext) -> tuple[Signal, ...]:
        updaters, known = bots.find_updaters(findings.reading.texts), findings.known()
        wanted = [bump for bump in findings.patches() if self._routine(bump.package, updaters) or fixed_by(bump, known)]
        pulls = self.pulls() if wanted else ()
        at_work = [bump for bump in wanted if any(_changes(pull, bump.package) for pull in pulls)]
        free = [bump for bump in wanted if bump not in at_work]
        bumps = tuple(sorted(free, key=lambda bump: not fixed_by(bump, known))[:MOST_BUMPS])
        bumped = self._bumped(findings.reading, commit, bumps, context)
        vulnerable = about.vulnerable(findings.reading, known, bumped, at_work)
        updates = self._updates(findings, updaters, (*at_work, *bumped.done), bumped)
        propose = len(updates) >= bots.BEHIND and not updaters and bots.is_wanted(self.git, commit)
        importers = self._importers(commit, findings.reading) if vulnerable or updates else Importers({})
        gradle = [*filter(bots.is_gradle, self.git.paths(commit))] if propose else None
        routine = bots.routine_signal(updates, findings.reading, importers, commit, gradle)
        return (
            *about.bump_signals(bumped, known),
            *about.vulnerability_signals(vulnerable, importers),
            *((routine,) if routine else ()),
        )

    def _updates(
        self, findings: DependencyFindings, updaters: Mapping[Ecosystem, str], at_work: Iterable[Bump], bumped: Bumped
    ) -> tuple[bots.RoutineUpdate, ...]:
        """The newest release of each package that no bot updates, except for patches in progress."""
        patched = {(bump.package.name, bump.package.version, bump.to) for bump in at_work}
        why = {(bump.package.name, bump.to): reason for bump, reason in bumped.refused}
        found: dict[tuple[str, str], bots.RoutineUpdate] = {}
        for _, package, best in findings.steps():
            size = max(best)
            if self._routine(package, updaters) and (package.name, package.version, best[size]) not in patched:
                update = bots.RoutineUpdate(package, best[size], size, why.get((package.name, best[size]), ""))
                found.setdefault((package.name, package.version), update)
        return tuple(found.values())

    def _importers(self, commit: str, reading: DependencyReading) -> Importers:
        """The importers of each package; only for the ecosystems in use, so that little is stored."""
        question = f"importers {commit}"
        with suppress(TypeError, AttributeError, ValueError):
            answer = self.answer_cache.get(question)
            if answer:
                return load_importers(answer.facts)
        found = read_importers(self.git, commit, frozenset(project.ecosystem for project in reading.projects))
        self.answer_cache.put(question, CachedAnswer(dump_importers(found), NEVER))
        return found

    def _routine(self, package: Package, updaters: Mapping[Ecosystem, str]) -> bool:
        """Whether to report its updates: it is a direct dependency, and no bot updates it."""
        ignored = {canonicalize_name(name) if package.ecosystem == "PyPI" else name for name in self.settings.ignore}
        return package.direct and package.ecosystem not in updaters and package.name not in ignored

    def _bumped(
        self, reading: DependencyReading, commit: str, bumps: tuple[Bump, ...], context: ObservationContext
    ) -> Bumped:
        if not bumps or self.bumper is None or not self.settings.updates:
            return Bumped(None, (), tuple((bump, "nothing here changes files") for bump in bumps))
        question = f"bumps {reading.digest} {' '.join(f'{bump.project.path} {bump}' for bump in bumps)}"
        answer = self.answer_cache.get(question)
        if answer and timedelta(0) <= context.now - answer.asked < self.settings.every:
            return load_bumps(answer, commit, bumps)
        bumped = self.bumper.bump(commit, bumps, Path(context.scratch))
        if not ((over := STOPPED.get()) and over()):  # results cut off by the time limit were not refused
            self.answer_cache.put(question, CachedAnswer(dump_bumps(bumped, bumps), context.now))
        return bumped


def _gone(cursor: str, reading: DependencyReading) -> tuple[tuple[str, ...], ...]:
    """Reported vulnerabilities whose versions are no longer used."""
    used = {(package.ecosystem, package.name, package.version) for one in reading.projects for package in one.packages}
    try:
        essences = [tuple(map(str, essence)) for essence in json.loads(cursor or "[]")]
    except (ValueError, TypeError, RecursionError):
        return ()
    return tuple(e for e in essences if not any((e[1], e[2], version) in used for version in e[3:]) and len(e) > 3)


def _changes(pull: Pull, package: Package) -> bool:
    """Whether an open pull request by anybody changes the same line; if the line is unknown, whether it changes the
    file and names the package."""
    touches = [touch for touch in pull.touches if touch.path == package.path]
    if package.line:
        return any(touch.first <= package.line <= touch.last for touch in touches)
    named = re.compile(rf"(?<![\w@/.-]){re.escape(package.name)}(?![\w/-]|\.\w)", re.IGNORECASE)
    return bool(touches) and bool(named.search(f"{pull.title}\n{pull.body}"))


def _excluder(patterns: Iterable[str]) -> Callable[[str], bool]:
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(patterns)
    left_out = {*FOLDERS, *SAMPLES}
    return lambda path: bool(left_out & set(path.split("/")[:-1])) or spec.match_file(path)


def _also(path: str) -> bool:
    return bots.is_bot_file(path) or registries.is_index_file(path)
