"""Has a model read code that changes much and is tested little, and reports bugs it can prove.

The model claims, code judges (`adapters/projects/prover.py`): a claim without proof is counted and dropped. Read files
are remembered by content, so a file is only read again after a change; a proven bug is reported while its files stay
the same.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.git.git import Git, TreeEntry
from ralph_mission.adapters.observers.looking import unavailable
from ralph_mission.adapters.observers.markers import excluder
from ralph_mission.config.observers import ExploreSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.proof.claim import CodeClaim, MalformedClaim, read_claim
from ralph_mission.mission.proof.exploring import (
    NAME,
    Exploration,
    ExplorationJob,
    SourceFile,
    choose_files,
    describe_look,
    describe_proof,
    proven_signal,
)
from ralph_mission.safety.objections import TEST_PATH
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.projects.prover import Prover

SESSION, LOOK = 1_200.0, 2_400.0
"""Seconds for the explorer, and for an observation including proofs."""
MOST_CLAIMS = 6
"""Claims judged per observation."""
MOST_KNOWN, MOST_PROVEN = 5_000, 20
COMMITS = 2_000  # of a year, whose files are counted
STATE = "state"

Explorer = Callable[[ExplorationJob], Exploration]
"""Calls a model in a throw-away clone. Raises UserError if there is none."""


@dataclass(frozen=True, slots=True)
class ExploreObserver:
    """Reads a few files per observation. `explorer` None: no agent is configured."""

    settings: ExploreSettings
    git: Git
    cache: FileCache
    explorer: Explorer | None
    prover: Prover | None
    name: str = NAME
    seconds: float = LOOK

    def observe(self, context: ObservationContext) -> Observation:
        """The proven bugs now."""
        if self.explorer is None or self.prover is None or self.cache.folder is None:
            problem = UserError("no agent reads code here", "name one in hands.agent; a staged cycle asks none")
            return unavailable(NAME, problem, context.cursor)
        if (look := self._look(context)) is None:
            return Observation(NAME, "ok", detail="no commits yet", cursor=context.cursor)
        try:
            return look.observe(context)
        except UserError as problem:
            return replace(unavailable(NAME, problem, context.cursor), complete=False)

    def asks(self, context: ObservationContext) -> bool:
        """Whether there are files left to read."""
        look = self._look(context)
        return look is not None and bool(look.choose())

    def _look(self, context: ObservationContext) -> ExploreLook | None:
        commit = context.head.sha
        if self.explorer is None or self.prover is None or not commit:
            return None
        entries = {entry.path: entry for entry in self.git.listing(commit) if entry.kind == "blob"}
        return ExploreLook(self, self.explorer, self.prover, commit, entries, ExploreMemory.load(self.cache))


class ExploreMemory:
    """Read files (path -> object id), proven bugs (raw claims with their files), and the commit with nothing left to
    read."""

    def __init__(self, known: Mapping[str, str], proven: list[dict[str, Any]], done: str) -> None:
        self.known, self.proven, self.done = dict(known), proven, done

    @classmethod
    def load(cls, cache: FileCache) -> ExploreMemory:
        """Load from the cache; empty if unreadable."""
        with suppress(KeyError, TypeError, AttributeError):
            found = cache.get(STATE)
            known = {str(path): str(oid) for path, oid in found["known"].items()}
            return cls(known, [one for one in found["proven"] if isinstance(one, dict)], str(found["done"]))
        return cls({}, [], "")

    def keep(self, cache: FileCache) -> None:
        """Store for the next observation."""
        known = dict(list(self.known.items())[-MOST_KNOWN:])
        cache.put(STATE, {"known": known, "proven": self.proven[-MOST_PROVEN:], "done": self.done})


@dataclass(frozen=True, slots=True)
class ExploreLook:
    """An observation of a commit."""

    observer: ExploreObserver
    explorer: Explorer
    prover: Prover
    commit: str
    entries: Mapping[str, TreeEntry]
    memory: ExploreMemory

    def observe(self, context: ObservationContext) -> Observation:
        """Report bugs that still hold, and read on."""
        waiting = list(self._recall_proven())
        chosen = self.choose()
        if not chosen or not context.usd:
            why = "the money of this cycle or day is spent" if chosen else "all that changed within a year was read"
            return Observation(NAME, "ok", tuple(waiting), detail=why, cursor=self.commit)
        started = time.monotonic()
        paths = tuple(file.path for file in chosen)
        report = self.explorer(ExplorationJob(self.commit, paths, context.usd, SESSION))
        if report.claims is None:
            detail = f"the explorer gave no answer: {report.why}"[:300]
            return Observation(NAME, "unavailable", tuple(waiting), detail=detail, complete=False, usage=report.usage)
        dropped: list[str] = []
        for raw in report.claims[:MOST_CLAIMS]:
            if time.monotonic() - started > LOOK:
                dropped.append("no-time")
            elif isinstance(found := self._judge(raw), Signal):
                waiting.append(found)
            else:
                dropped.append(found)
        if "no-time" not in dropped:
            self.memory.known.update({file.path: file.oid for file in chosen})
        self.memory.keep(self.observer.cache)
        proven = min(len(report.claims), MOST_CLAIMS) - len(dropped)
        detail = describe_look(len(paths), proven, dropped)
        return Observation(NAME, "ok", tuple(waiting), detail=detail, cursor=self.commit, usage=report.usage)

    def choose(self) -> tuple[SourceFile, ...]:
        """The files it would read next."""
        if self.memory.done == self.commit:
            return ()
        tests = [path for path in self.entries if TEST_PATH.search(path)]
        chosen = choose_files(self._sources(), tests, self.memory.known)
        if not chosen:
            self.memory.done = self.commit
            self.memory.keep(self.observer.cache)
        return chosen

    def _judge(self, raw: Mapping[str, Any]) -> Signal | str:
        """The signal of a proven claim, or the rule of its refusal."""
        try:
            claim = read_claim(raw, self._read)
        except MalformedClaim:
            return "malformed"
        outcome = self.prover.prove(claim, self.commit)
        if outcome.verdict.refusal:
            self.prover.note(f"dropped: {claim.title}: {outcome.verdict.refusal.why}")
            return outcome.verdict.refusal.rule
        evidence = describe_proof(claim, outcome.verdict)
        self.memory.proven.append({"claim": dict(raw), "files": self._oids(claim), "evidence": evidence})
        return proven_signal(claim, evidence, self.commit)

    def _recall_proven(self) -> Iterator[Signal]:
        """Bugs proven earlier whose files are unchanged."""
        still = []
        for one in self.memory.proven:
            with suppress(MalformedClaim, KeyError, TypeError, AttributeError, StopIteration):
                claim = read_claim(one["claim"], self._read)
                if self._oids(claim) == one["files"]:
                    still.append(one)
                    yield proven_signal(claim, str(one["evidence"]), self.commit)
        if len(still) != len(self.memory.proven):
            self.memory.proven[:] = still
            self.memory.keep(self.observer.cache)

    def _oids(self, claim: CodeClaim) -> dict[str, str]:
        paths = (change.path for change in claim.patch_changes)
        return {path: self.entries[path].oid if path in self.entries else "" for path in paths}

    def _read(self, path: str) -> bytes | None:
        entry = self.entries.get(path)
        return self.prover.git.blobs([entry.oid]).get(entry.oid) if entry else None

    def _sources(self) -> Iterator[SourceFile]:
        """The files of the commit, with their number of changes within a year."""
        command = ("log", "--since=1.year", f"--max-count={COMMITS}", "--no-merges", "--name-only", "--format=", "-z")
        log = self.observer.git.run(*command, self.commit).decode("utf-8", "surrogateescape")
        changes = Counter(path for path in log.replace("\n", "\0").split("\0") if path in self.entries)
        excluded = excluder(self.observer.settings.exclude)
        paths = [path for path in changes if not excluded(path)]
        sizes = self.observer.git.sizes(self.entries[path].oid for path in paths)
        oids = {path: self.entries[path].oid for path in paths}
        return (SourceFile(path, oid, sizes.get(oid, 0), changes[path]) for path, oid in oids.items())


def build(
    settings: ExploreSettings, git: Git, cache: Path | None, explorer: Explorer | None, prover: Prover | None
) -> ExploreObserver:
    """The observer of a repository; `cache`: a folder for what was read and proven."""
    return ExploreObserver(settings, git, FileCache(cache / NAME if cache else None), explorer, prover)
