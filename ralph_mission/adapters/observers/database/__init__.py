"""Observes rows of a database: changes, new rows, values out of bounds, and missing data.

Each watch queries, judges and fails independently. `targets` resolves a watch's names in a database, `watches` turns
rows into facts, `results` turns facts into signals: all pure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime

from ralph_mission.adapters.database import open_database
from ralph_mission.adapters.database.address import Address, read_address
from ralph_mission.adapters.database.model import Catalog, Database, Interest
from ralph_mission.adapters.database.prisma_schema import parse as parse_prisma
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.database.results import WatchOutcome, WatchState, build_signal, dump, load
from ralph_mission.adapters.observers.database.targets import Target, find_target
from ralph_mission.adapters.observers.database.watches import SORTS, look_at
from ralph_mission.adapters.observers.looking import one_line, unavailable
from ralph_mission.config.database import DatabaseSettings, DatabaseWatch
from ralph_mission.errors import Unset, UserError
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

NAME = "database"
SECONDS = 120.0  # for all watches of a check: none starts after that
AROUND = 90.0  # for opening, and for the last watch
DETAIL = 300  # characters


PRISMA_ENDING = ".prisma"
MOST_FILES = 500  # files
REGULAR_MODES = ("100644", "100755")


def read_prisma_schema(git: Git, commit: str, path: str) -> Catalog:
    """Read a commit's schema, never the work tree: uncommitted changes do not count. Raises UserError if there is
    none."""
    place = path.strip("/").removeprefix("./")
    found = [one for one in git.listing(commit, place) if one.mode in REGULAR_MODES] if commit else []
    files = [one for one in found if one.path == place or one.path.endswith(PRISMA_ENDING)]
    if not files:
        raise UserError(f"no commit here holds the Prisma schema {path}", "fix observers.database.prisma_schema")
    if len(files) > MOST_FILES:
        raise UserError(f"{path} holds more than {MOST_FILES} files", "name a smaller folder")
    contents = git.blobs(one.oid for one in files)
    texts = {one.path: contents[one.oid].decode("utf-8", "replace") for one in files if one.oid in contents}
    return parse_prisma(texts, path)


def watch_interest(watch: DatabaseWatch) -> Interest:
    """The tables and columns that a watch uses."""
    relations = {path.rpartition(".")[0] for path in watch.include}
    relations |= {watch.count or "", (watch.sum or "").partition(".")[0]}
    return Interest(watch.source, tuple(sorted(relations - {""})), watch.sql or "", names=not watch.include)


@dataclass(frozen=True, slots=True)
class WatchLook:
    """A watch's result: an outcome, or why there is none."""

    watch: DatabaseWatch
    before: WatchState
    outcome: WatchOutcome | None = None
    problem: UserError | None = None

    @property
    def state(self) -> WatchState:
        """The state to store."""
        return self.outcome.state if self.outcome else self.before

    @property
    def gone(self) -> Iterator[tuple[str, ...]]:
        """Findings of the last look. Those that still hold are reported again by this one."""
        if self.outcome:
            known = {(one.group, one.since) for one in self.before.episodes}
            began = (one for one in self.outcome.state.episodes if (one.group, one.since) not in known)
            for one in (*self.before.episodes, *began):
                yield NAME, self.watch.name, "" if one.together else one.group


@dataclass(frozen=True, slots=True)
class DatabaseObserver:
    """Observes one database. `environment` contains its URL."""

    settings: DatabaseSettings
    git: Git
    environment: Mapping[str, str] = field(repr=False)
    patience: float = SECONDS

    @property
    def name(self) -> str:
        """database."""
        return NAME

    @property
    def seconds(self) -> float:
        """The time limit of a check."""
        return self.patience + AROUND

    def observe(self, context: ObservationContext) -> Observation:
        """The watches' findings; `unavailable` if all of them failed."""
        watches = self.settings.watches
        try:
            with self.opened(context.head.sha) as database:
                lookups = tuple(self._looks(database, load(context.cursor, watches), context.now))
        except UserError as problem:
            return unavailable(NAME, problem, context.cursor)
        failed = [look.problem for look in lookups if look.problem]
        if failed and len(failed) == len(lookups):
            return unavailable(NAME, failed[0], context.cursor)
        return self._build_observation(lookups)

    @contextmanager
    def opened(self, commit: str) -> Iterator[Database]:
        """The database, by the schema of a commit. Raises UserError; Unset without a URL."""
        address = self.address()
        path = self.settings.prisma_schema
        schema = read_prisma_schema(self.git, commit, path) if path else None
        with open_database(self.settings.backend, address, schema, self.environment) as database:
            yield database

    def address(self) -> Address:
        """Its URL. Raises Unset, or UserError if invalid."""
        variable = self.settings.address
        url = self.environment.get(variable, "").strip()
        if not url:
            raise Unset("not configured: no DATABASE_URL", f"set {variable} in the environment")
        return read_address(url, variable)

    def look(self, database: Database, watch: DatabaseWatch, before: WatchState, now: datetime) -> WatchLook:
        """One watch."""
        try:
            target = find_target(watch, database.describe(watch_interest(watch)))
            return WatchLook(watch, before, _look(database, target, before, now))
        except UserError as problem:
            return WatchLook(watch, before, problem=_with_watch_name(watch, problem))

    def _looks(self, database: Database, states: Mapping[str, WatchState], now: datetime) -> Iterator[WatchLook]:
        end = time.monotonic() + self.patience
        for watch in self.settings.watches:
            if time.monotonic() < end:
                yield self.look(database, watch, states[watch.name], now)
            else:
                late = UserError(f"watch {watch.name}: no time was left for it", "an index would help", "network")
                yield WatchLook(watch, states[watch.name], problem=late)

    def _build_observation(self, lookups: Sequence[WatchLook]) -> Observation:
        secrets = self.address().secrets
        found = [(look.watch, one) for look in lookups if look.outcome for one in look.outcome.found]
        return Observation(
            NAME,
            "ok",
            tuple(build_signal(watch, one, secrets) for watch, one in found),
            detail=one_line("; ".join(_details(lookups, len(found))), DETAIL),
            cursor=dump({look.watch.name: look.state for look in lookups}, self.settings.watches),
            complete=all(look.outcome and SORTS[look.watch.sort].complete for look in lookups),
            gone=tuple(essence for look in lookups for essence in look.gone),
        )


def _look(database: Database, target: Target, before: WatchState, now: datetime) -> WatchOutcome:
    """The role may not read tables that no watch requested: they are omitted."""
    try:
        return look_at(target, database.rows, before, now)
    except UserError as problem:
        if target.watch.include or not target.label or problem.who != "you":
            raise
        return look_at(replace(target, label=()), database.rows, before, now)


def _with_watch_name(watch: DatabaseWatch, problem: UserError) -> UserError:
    start = f"watch {watch.name}: "
    what = problem.what if problem.what.startswith(start) else start + problem.what
    return UserError(what, problem.next_step, problem.who)


def _details(lookups: Iterable[WatchLook], found: int) -> Iterator[str]:
    watches = list(lookups)
    yield f"{count_noun(found, 'finding')} of {len(watches)} watched"
    for look in watches:
        if look.problem:
            yield f"{look.problem.what}; {look.problem.next_step}"
        elif look.outcome and look.outcome.notes:
            yield f"{look.watch.name}: {', '.join(look.outcome.notes)}"


__all__ = ["DatabaseObserver", "DatabaseSettings", "build"]


def build(settings: DatabaseSettings, git: Git, environment: Mapping[str, str] = os.environ) -> DatabaseObserver:
    """The observer; it connects only when it observes."""
    return DatabaseObserver(settings, git, environment)
