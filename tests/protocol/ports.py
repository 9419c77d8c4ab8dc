"""The ports of a cycle in a modelled world: every question and every action goes to whoever answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ralph_mission.adapters.forges import ForgeRefused, failed_receipt, require_ready
from ralph_mission.adapters.thinkers import RulesThinker
from ralph_mission.errors import Missing
from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.effects import AT_MOST_ONCE, Effect, OpenPull, Receipt
from ralph_mission.mission.model.forge import (
    Actor,
    AlertKind,
    BodyEdit,
    Branch,
    FailedJob,
    Issue,
    Pull,
    Pulse,
    SecurityAlert,
    Tick,
    WorkflowRun,
)
from ralph_mission.mission.model.ledger import Anchor, MemoryBatch, MemorySnapshot, Record
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext, PatchVerification
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from tests.mission.build import BOT, NOW
from tests.protocol.model_effects import may_approve
from tests.protocol.register import History
from tests.protocol.server import mask_of

TEH = "".join(f"line {n} teh\n" for n in range(5)).encode()


@dataclass(frozen=True)
class Setting:
    """What stays the same in one world: the owners' settings, what there is to be found, and what a list proves."""

    settings: CycleSettings
    spelling: int = 1  # findings that are mended at once
    bugs: int = 0  # findings that a person is asked about
    todos: int = 0  # findings that get a line on the dashboard
    lists_at_once: bool = False

    def signals(self, sha: str) -> Iterable[Signal]:
        """What is there at a commit."""
        mask = mask_of(sha)
        for number in range(self.spelling):
            if not mask >> number & 1:
                path = f"docs/{number}.md"
                change = FileChange(path, REGULAR, REGULAR, TEH, TEH.replace(b"teh", b"the"))
                patch = Patch(sha, (change,))
                yield Signal("eye", "spelling", f"a misspelling in {path}", (path,), path=path, patch=patch)
        for number in range(self.bugs):
            yield Signal("eye", "bug", f"bug {number}", (str(number),), path=f"src/{number}.py", confidence=0.9)
        for number in range(self.todos):
            yield Signal("eye", "question", f"question {number}", (str(number),), path=f"lib/{number}.py")


def ports_of(setting: Setting, store: Any, ask: Callable[..., Any]) -> CyclePorts:
    """The ports of a cycle in a modelled world; `store` is the real one's or the model's."""
    return CyclePorts(
        clock=Noon(),
        store=store,
        forge=Hub(ask, setting.lists_at_once),
        observers=(Eye(setting),),
        thinker=RulesThinker(),
        hands=Willing(),
        recorder=Nobody(),
        progress=Nobody(),
        switch=lambda: ask("switch"),
        waker=Nobody(),
        scratch=lambda: nullcontext(""),
        dashboard=lambda memory, state: "",
    )


# --- ports ------------------------------------------------------------------------------


class Noon:
    """Time stands still: nothing here may depend on it."""

    def now(self) -> datetime:
        return NOW


class Nobody:
    """Is told things, and cannot be woken."""

    def phase(self, name: str, note: str = "") -> None: ...

    def note(self, text: str) -> None: ...

    def record(self, name: str, value: object) -> None: ...

    def wake(self, due: datetime, generation: int) -> None: ...


class Willing:
    """Checks that always pass."""

    def forget_failures(self) -> None: ...

    def verify(self, patch: Patch, scratch: str) -> PatchVerification:
        return PatchVerification(True)


@dataclass
class Eye:
    """Sees what the commit says."""

    setting: Setting
    name: str = "eye"

    def observe(self, context: ObservationContext) -> Observation:
        return Observation(self.name, "ok", tuple(self.setting.signals(context.head.sha)))


@dataclass
class Memories:
    """The store: the branch is asked for, what a commit holds is known by its id."""

    name: str
    history: History
    ask: Callable[..., Any]

    def holder(self) -> str:
        return self.name

    def exclusive(self) -> AbstractContextManager[bool]:
        return nullcontext(True)  # on machines of their own

    def proven_dead(self, holder: str) -> bool:
        return holder == self.name or self.ask("proven_dead", holder)

    def recall(self) -> MemorySnapshot | None:
        return self.ask("recall")

    def records(self, keys: Iterable[str], at: MemorySnapshot | None) -> Mapping[str, Record]:
        return self.history.records(keys, at)

    def commit(self, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot:
        return self.ask("commit", batch, after)

    def paused(self) -> bool:
        return self.ask("paused")


@dataclass
class Hub:
    """The forge. An action is looked for, sent, and looked for again where its answer was lost, as the adapter does."""

    ask: Callable[..., Any]
    lists_at_once: bool
    usual_reason: str = ""

    def identity(self) -> Actor:
        return BOT

    def default_branch(self) -> Branch:
        return self.ask("default_branch")

    def branch(self, name: str) -> str:
        return self.ask("branch", name)

    def issues(self, state: str = "open", labels: tuple[str, ...] = ()) -> tuple[Issue, ...]:
        assert not labels
        return self.ask("issues", state)

    def issue(self, number: int) -> Issue:
        return self.ask("issue", number)

    def edits(self, number: int) -> tuple[BodyEdit, ...]:
        return ()

    def own_reviews(self, number: int) -> frozenset[int]:
        return frozenset(review.id for review in self.pull(number).reviews)

    def pulls(self, state: str = "open") -> tuple[Pull, ...]:
        return self.ask("pulls", state)

    def pull(self, number: int) -> Pull:
        return self.ask("pull", number)

    def pulse(self, since: datetime, few: int = 0) -> Pulse:
        return Pulse()

    def workflow_runs(
        self, workflow: int = 0, event: str = "", ended: str = "", most: int = 100
    ) -> tuple[WorkflowRun, ...]:
        return ()

    def security_alerts(self, kind: AlertKind) -> tuple[SecurityAlert, ...] | None:
        return None

    def failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        return ()

    def test_reports(self, run: WorkflowRun) -> tuple[bytes, ...]:
        return ()

    def may_approve(self, actor: Actor) -> bool:
        return may_approve(actor)

    def forget_lists(self) -> None: ...

    def how(self, action: str, number: int) -> str:
        return f"{action} {number}"

    def has_our_work(self) -> bool:
        return self.ask("has_our_work")

    def anchor(self) -> Anchor | None:
        return self.ask("anchor")

    def ticks(self) -> tuple[Tick, ...]:
        return ()

    def delete_finished_branches(self, stopped: Callable[[], bool]) -> None:
        pass

    def show_dashboard(self, page: str, anchor: Anchor, quiet: bool = False) -> None:
        self.ask("show_dashboard", anchor)

    def find(self, effect: Effect) -> Receipt | None:
        require_ready(effect)
        try:
            return self.ask("find", effect) or self._unlisted(effect)
        except (ForgeRefused, Missing):
            return None

    def _unlisted(self, effect: Effect) -> Receipt | None:
        """Git's refs show a pull request that no list shows yet, as on GitHub."""
        return self.ask("find_unlisted", effect) if isinstance(effect, OpenPull) else None

    def perform(self, effect: Effect) -> Receipt:
        require_ready(effect)
        try:
            return self.ask("find", effect) or self._sent(effect)
        except (ForgeRefused, Missing) as no:
            return failed_receipt(effect, no)

    def _sent(self, effect: Effect) -> Receipt:
        receipt = self.ask("send", effect)
        if receipt is not None:
            return receipt
        if found := self.find(effect):
            return found
        why = "its answer was lost"
        doubt = isinstance(effect, AT_MOST_ONCE)
        return Receipt(effect.key, "unknown", detail=why) if doubt else failed_receipt(effect, why)
