"""The ways in which a cycle goes on after something went wrong, as they show from outside: each must be taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.committing import VerifiedRemote
from ralph_mission.adapters.forges.github.limits import Doubt
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.adapters.storage.memory.codec import UnreadableDocument
from ralph_mission.adapters.storage.memory.provenance import MemoryBranch
from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, EffectLine
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot, OpenState
from tests.crash.witness import open_state
from tests.helpers import with_parts
from tests.integration.dying import TRANSFERS
from tests.integration.hub import Hub

NOTED = {
    "of an earlier run: adopted": "an effect of a dead runner is found and adopted",
    "of an earlier run: not done, so decided again": "an effect that was proven not made is decided anew",
    "of an earlier run: unknown": "an effect that cannot be proven either way becomes a person's",
    "that was in doubt: adopted": "what was in doubt is found late and adopted",
    "GitHub's rate limit: waiting": "a read waits for a rate limit",
}
REFUSALS = {
    "someone else changed": "foreign memory halts",
    "was rolled back": "memory that was rolled back halts",
    "is missing": "memory that is gone halts",
    "cannot be read": "a position that cannot be read halts",
    "does not let this token": "a server that refuses to be read halts",
    "cannot reach": "a network that fails halts",
    "rate limit is reached": "a rate limit that lasts halts",
}
SETTLED = "what was in doubt is settled by a person"
TAKEN_OVER, RESPECTED = "the claim of a dead runner is taken over", "the claim of a runner that may live is respected"
LEFT = "a runner that lost the race leaves"
MERGED = "a person's edit in between is merged, and the commit tried again"
PUSHED = "a push whose answer was lost is found to have landed"
PENDING = "a commit that a crash kept from being remembered is known as ours"
FAILED = "an effect that was refused is told, and counted"
OPEN = ("failed", "unknown")  # a person's from then on

PATHS = (*NOTED.values(), *REFUSALS.values(), SETTLED, TAKEN_OVER, RESPECTED, LEFT, MERGED, PUSHED, PENDING, FAILED)


@dataclass
class Log:
    """What cycles came to while it was kept; `taken` counts the ways they went."""

    taken: Counter[str] = field(default_factory=Counter)
    reports: list[tuple[CycleReport, CycleSummary]] = field(default_factory=list)
    problems: list[UserError] = field(default_factory=list)
    cut: bool = False

    @property
    def told(self) -> bool:
        """Whether a person heard that something went wrong."""
        return bool(self.refused or self.problems) or any(cycle_summary.remarks for _, cycle_summary in self.reports)

    @property
    def refused(self) -> set[str]:
        """The keys of effects that were said not to have come, or to be in doubt; of posts, `network: text`."""
        told = (post for _, cycle_summary in self.reports for post in cycle_summary.posts if post.status in OPEN)
        return {line.key for line in self._open} | {f"{post.network}: {post.parts[0]}" for post in told}

    def never(self, kind: str) -> bool:
        """Whether that was said of an effect of this kind."""
        return any(line.kind == kind for line in self._open)

    @property
    def _open(self) -> list[EffectLine]:
        return [line for report, _ in self.reports for line in report.effects if line.status in OPEN]

    def phase(self, name: str, note: str = "") -> None:
        """As a voice."""

    def note(self, text: str) -> None:
        """As a voice."""
        self.taken.update(path for said, path in NOTED.items() if said in text)


@contextmanager
def kept(hub: Hub) -> Iterator[Log]:
    """Listen to all cycles of these runners."""
    log = Log()
    with ExitStack() as stack:
        for owner, name, made in (
            (Hub, "cycle", _cycle), (Hub, "house", _house), (BranchStore, "commit", _commit),
            (MemoryBranch, "ours", _ours), (Git, "run", _run),
            (Api, "change", _change), (VerifiedRemote, "push", _push),
        ):  # fmt: skip  # a table
            stack.enter_context(mock.patch.object(owner, name, made(getattr(owner, name), log)))
        yield log


def _cycle(original, log: Log):
    def cycle(self, *arguments: Any, **request: Any):
        before = _open(self)
        try:
            report, cycle_summary = original(self, *arguments, **request)
        except UserError as problem:
            log.problems.append(problem)
            log.taken.update(path for said, path in REFUSALS.items() if said in problem.what)
            raise
        log.reports.append((report, cycle_summary))
        _count(log, before, _open(self), report)
        return report, cycle_summary

    return cycle


def _open(hub: Hub) -> OpenState:
    try:
        return open_state(hub)
    except UnreadableDocument:
        return OpenState()


def _count(log: Log, before: OpenState, after: OpenState, report: CycleReport) -> None:
    if report.outcome == "lost":
        log.taken[RESPECTED if before.claim else LEFT] += 1
    log.taken[TAKEN_OVER] += bool(before.claim and report.outcome == "done" and not after.claim)
    log.taken[FAILED] += any(effect.status == "failed" for effect in report.effects)


def _house(original, log: Log):
    def house(self, *arguments: Any, **options: Any):
        made = original(self, *arguments, **options)
        made.github.api.note = log.note
        return with_parts(made, ports=replace(made.ports, progress=log))

    return house


def _commit(original, log: Log):
    def commit(self, batch: MemoryBatch, after: MemorySnapshot | None):
        landed = original(self, batch, after)
        log.taken[MERGED] += after is not None and len(landed.human_edits) > len(after.human_edits)
        return landed

    return commit


def _ours(original, log: Log):
    def ours(self, head: str, mark: Any, *arguments: Any):
        log.taken[PENDING] += bool(mark and mark.pending and self.landed(mark.pending, head) == head != mark.oid)
        return original(self, head, mark, *arguments)

    return ours


def _run(original, log: Log):
    def run(self, *arguments: str, **options: Any):
        try:
            return original(self, *arguments, **options)
        except Exception:
            if arguments[0] in TRANSFERS:
                log.cut = arguments[0] == "push"
            raise

    return run


def _change(original, log: Log):
    def change(self, *arguments: Any):
        try:
            return original(self, *arguments)
        except Doubt:
            log.cut = True
            raise

    return change


def _push(original, log: Log):
    def push(self, *arguments: Any):
        log.cut = False
        landed = original(self, *arguments)
        log.taken[PUSHED] += bool(landed) and log.cut
        return landed

    return push
