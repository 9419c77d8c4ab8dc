"""Fixers as observers: one signal, with its ready patch, for every file a fixer would put right."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ralph_mission.gateways.files import atomic, safe_paths
from ralph_mission.gateways.git import Git
from ralph_mission.hands.fixer import CommitTree, Correction, Fix, Fixer
from ralph_mission.hands.places import DOCUMENTS
from ralph_mission.mission.kinds import count_noun
from ralph_mission.mission.model import Observation, Severity, Signal
from ralph_mission.mission.ports import ObservationContext
from ralph_mission.safety.patch import FileChange, Patch

MOST_FILES = 400
SURVEY_SECONDS = 60.0
CAP = 256_000_000  # bytes of what was found the last time
SHOWN = 50  # corrections listed for people
EFFORT = 0.2  # a glance
CERTAIN, LIKELY = 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Survey:
    """What a fixer found in one commit; `complete` when it got to look at everything."""

    fixes: tuple[Fix, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class FixerObserver:
    """One fixer looking at the head. `cache` is a folder for what it found there the last time; None keeps nothing."""

    git: Git
    fixer: Fixer
    cache: Path | None

    @property
    def name(self) -> str:
        """That of the fixer."""
        return self.fixer.name

    def observe(self, gaze: ObservationContext) -> Observation:
        """One signal per file. Raises Trouble when the fixer cannot run."""
        started = time.monotonic()
        survey = self._remembered(gaze.head.sha) or self._fresh(gaze.head.sha, Path(gaze.scratch))
        signals = tuple(_signal(self.fixer, gaze.head.sha, fix) for fix in survey.fixes)
        detail = "" if survey.complete else f"stopped after {len(signals)} files; the rest waits"
        seconds = time.monotonic() - started
        return Observation(self.name, "ok", signals, seconds, detail, complete=survey.complete)

    def _fresh(self, commit: str, scratch: Path) -> Survey:
        tree = CommitTree.at(self.git, commit, scratch, SURVEY_SECONDS)
        fixes = tuple(itertools.islice(self.fixer.fixes(tree), MOST_FILES + 1))
        survey = Survey(fixes[:MOST_FILES], len(fixes) <= MOST_FILES and not tree.out_of_time)
        if survey.complete:
            self._remember(commit, survey)
        return survey

    def _remembered(self, commit: str) -> Survey | None:
        if self.cache is None:
            return None
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = safe_paths.read_json(self._file(self.cache), CAP)
            if found["of"] == [self.fixer.version(), commit]:
                return Survey(tuple(_decode(fix) for fix in found["fixes"]), True)
        return None

    def _remember(self, commit: str, survey: Survey) -> None:
        if self.cache is None:
            return
        content = {"of": [self.fixer.version(), commit], "fixes": [_encode(fix) for fix in survey.fixes]}
        with suppress(OSError):  # a cache that cannot be kept costs time and nothing else
            atomic.write(self._file(self.cache), json.dumps(content).encode())

    def _file(self, cache: Path) -> Path:
        return safe_paths.own(cache) / f"{self.fixer.name}.json"


def _signal(fixer: Fixer, commit: str, fix: Fix) -> Signal:
    change = FileChange(fix.path, fix.mode, fix.mode, fix.old, fix.new)
    return Signal(
        observer=fixer.name,
        kind=fixer.kind,
        title=f"{count_noun(len(fix.corrections), fixer.kind)} in {fix.path}",
        essence=tuple(sorted({f"{correction.what} @ {correction.context}" for correction in fix.corrections})),
        severity=Severity.LOW,
        confidence=CERTAIN if PurePosixPath(fix.path).suffix.lower() in DOCUMENTS else LIKELY,
        effort=EFFORT,
        detail=_list_corrections(fix.corrections),
        path=fix.path,
        line=fix.corrections[0].line,
        facts=(("count", len(fix.corrections)),),
        patch=Patch(commit, (change,)),
    )


def _list_corrections(corrections: tuple[Correction, ...]) -> str:
    lines = [f"line {correction.line}: {correction.what}" for correction in corrections[:SHOWN]]
    more = len(corrections) - SHOWN
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)


def _encode(fix: Fix) -> dict[str, object]:
    return {**asdict(fix), "old": fix.old.decode(), "new": fix.new.decode()}


def _decode(found: Mapping[str, Any]) -> Fix:
    corrections = tuple(Correction(**entry) for entry in found["corrections"])
    old, new = str(found["old"]).encode(), str(found["new"]).encode()
    return Fix(str(found["path"]), str(found["mode"]), old, new, corrections)
