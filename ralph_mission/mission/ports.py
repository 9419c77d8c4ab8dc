"""What a cycle needs from the world, as Protocols. Adapters are chosen in `app/` only.

Errors cross these boundaries as `UserError`, which names who must act. An observer may raise anything: it then counts
as unavailable and the cycle continues. Everything else fails closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunWatch
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult
from ralph_mission.mission.model.effects import Effect, Publish, Receipt
from ralph_mission.mission.model.forge import (
    Actor,
    AlertKind,
    BodyEdit,
    Branch,
    ChatCommand,
    FailedJob,
    Issue,
    Post,
    Pull,
    Pulse,
    SecurityAlert,
    Tick,
    Wording,
    WorkflowRun,
)
from ralph_mission.mission.model.ledger import Anchor, MemoryBatch, MemorySnapshot, OpenState, Record
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Finding, Observation, Usage
from ralph_mission.mission.model.proposal import Brief, ObservationContext, PatchVerification, Plan
from ralph_mission.safety.patch import Patch
from ralph_mission.safety.text import truncate
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.loop.model.state import Hat


class CycleClock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The present, timezone-aware, UTC."""


class Store(Protocol):
    """Memory on its branch. It only advances by fast-forward from the object id that was read."""

    def holder(self) -> str:
        """Who we are in a claim: the run's URL, or host + boot id + pid."""

    def exclusive(self) -> AbstractContextManager[bool]:
        """A lock held while a cycle runs; False if another runner on this machine holds it."""

    def proven_dead(self, holder: str) -> bool:
        """Whether the holder of an old claim is *proven* dead. Time alone proves nothing."""

    def recall(self) -> MemorySnapshot | None:
        """Memory, open keys and claim as of one commit; None if there is no memory yet.

        Raises UserError on rollback, foreign changes, corruption: before any effect.
        """

    def records(self, keys: Iterable[str], at: MemorySnapshot | None) -> Mapping[str, Record]:
        """The records of `keys` as of the recalled commit; missing keys are left out."""

    def commit(self, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot:
        """Commit on top of `after`, merging a person's edits of the sections meant for people.

        Raises Lost if another runner committed first.
        """

    def paused(self) -> bool:
        """Whether memory says `paused` *now* (re-read, not remembered)."""

    def at_work(self, issue: int) -> AbstractContextManager[bool]:
        """A lock held while an issue is worked on; False if another process of this clone holds it."""


class Forge(Protocol):
    """Issues, pull requests, branches.

    Only `perform` and the two at the end of a cycle change anything, and `find`, where a run ended in the middle of it.
    """

    def identity(self) -> Actor:
        """Our own bot account."""

    def default_branch(self) -> Branch:
        """The branch that pull requests are merged into, and where it points now."""

    def branch(self, name: str) -> str:
        """The commit a branch points at now; "" if it does not exist."""

    def issues(self, state: str = "open", labels: Sequence[str] = ()) -> tuple[Issue, ...]:
        """Issues (no pull requests), oldest number first. `state`: open | closed | all."""

    def issue(self, number: int) -> Issue:
        """One issue with comments (ticks included) and label events. Raises Missing if there is none."""

    def edits(self, number: int) -> tuple[BodyEdit, ...]:
        """The last edits of the title and of the text of an issue or pull request, as far as the forge knows. Raises
        UserError."""

    def own_reviews(self, number: int) -> frozenset[int]:
        """The reviews of a pull request that certainly say what their authors wrote: nobody else has edited them.
        Raises Missing, UserError."""

    def pulls(self, state: str = "open") -> tuple[Pull, ...]:
        """Pull requests, oldest number first. `state`: open | closed | all.

        All open ones, with `touches` and `patch_ids`; of the others, at least those closed in the last 7 days. A merged
        one has `patch_ids` too, and `touches` only while the default branch lacks it.
        """

    def pull(self, number: int) -> Pull:
        """One pull request with reviews, comments, commits and events. Raises Missing if there is none."""

    def is_ready(self, number: int) -> bool:
        """Whether an open pull request can be merged: no conflict, failing check or rule. Raises UserError."""

    def pulse(self, since: datetime, few: int = 0) -> Pulse:
        """The project's activity since then; closed issues need not be counted if fewer than `few` opened ones are
        open."""

    def workflow_runs(
        self, workflow: int = 0, event: str = "", ended: str = "", most: int = 100
    ) -> tuple[WorkflowRun, ...]:
        """Runs on the default branch, newest first: of one workflow (0: all), by one event ("": any), or those that
        `ended` so ("": all). Empty if the forge runs no workflows. Raises UserError."""

    def failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        """The failed jobs of that attempt of a run; with `log`, the output of the first. Raises UserError."""

    def test_reports(self, run: WorkflowRun) -> tuple[bytes, ...]:
        """The run's test reports as XML: a few, of moderate size. Raises UserError."""

    def security_alerts(self, kind: AlertKind) -> tuple[SecurityAlert, ...] | None:
        """Open alerts of a kind; None if the forge has no such kind, or we may not read it. Raises UserError."""

    def may_approve(self, actor: Actor) -> bool:
        """Whether this person has write access. Never true of a bot."""

    def find(self, effect: Effect) -> Receipt | None:
        """Find `effect` if it is already there, by lists (never search) and our own author id.

        None: it is certainly not listed. Used to adopt what a crashed runner did.
        """

    def forget_lists(self) -> None:
        """Drop what was listed in this cycle, as time has passed."""

    def perform(self, effect: Effect) -> Receipt:
        """Carry out an effect once; never retries. A definite refusal gives `failed`, doubt gives `unknown`."""

    def anchor(self) -> Anchor | None:
        """The highest memory position that the forge itself records."""

    def ticks(self) -> tuple[Tick, ...]:
        """What people ticked on the dashboard. Ticks about a thread also show up in `issue` and `pull`, as if the
        person had commented there. Raises UserError."""

    def delete_finished_branches(self, stopped: Callable[[], bool]) -> None:
        """Delete our branches of finished pull requests that an earlier attempt had no answer about. Never an error.

        `stopped` is asked before each.
        """

    def show_dashboard(self, page: str, anchor: Anchor, quiet: bool = False) -> None:
        """Write `page` to the dashboard ("": leave it), and store memory's position outside the memory branch.

        Boxes that people ticked meanwhile stay ticked. `quiet`: nothing was done, so do not write for the position
        alone.
        """

    @property
    def lists_at_once(self) -> bool:
        """Whether lists are never late, so that "not listed" proves "not made"."""

    @property
    def usual_reason(self) -> str:
        """The reason that an issue is closed for if the person picks none: "" or "completed"."""

    def how(self, action: str, number: int) -> str:
        """What a person types or clicks to: approve_pull, show_pull, approve_issue, show_issue,
        close_issue, complete_issue, retry."""

    def has_our_work(self) -> bool:
        """Whether our account made anything that carries our marker."""


class Waker(Protocol):
    """A way to ask for the next cycle. A lost wake is harmless: another waker, or the next wake, makes up for it."""

    def wake(self, due: datetime, generation: int) -> Receipt | None:
        """Ask for a cycle now; None if there is nobody to ask. `failed` says why. Never raises UserError."""


class Observer(Protocol):
    """One source of signals. Changes no tracked file, ref or row, and nothing on a network."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    def observe(self, context: ObservationContext) -> Observation:
        """Look once. May raise anything; the cycle continues without it."""


@runtime_checkable
class PaidObserver(Observer, Protocol):
    """An observer that may call a model. Its budget is reserved in memory first."""

    def asks(self, context: ObservationContext) -> bool:
        """Whether it would call a model now. May raise anything, which counts as yes."""


class PostPublisher(Protocol):
    """The networks that posts go to. Only `publish` sends anything."""

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks of a post, in order; none if none is set up."""

    def word(self, finding: Finding) -> Wording | None:
        """The texts for this finding; None if there is nothing to say. Never raises for its content."""

    def measure(self, network: str, parts: Sequence[str]) -> Post:
        """These parts as a post of that network, measured as it does. Raises UserError if it takes none."""

    def find(self, effect: Publish) -> Receipt | None:
        """The parts that are certainly out already; None if the network cannot tell."""

    def publish(self, effect: Publish) -> Receipt:
        """Send it once; never retries. A definite refusal gives `failed`, doubt gives `unknown`. What failed with
        `LATER` certainly did not get through, and may be tried again."""

    def stage(self, effect: Publish) -> Receipt:
        """Write it where a person can read it without sending it: `staged`, with the file as `url` if one was
        written."""


class NoPublisher:
    """Publishes nothing."""

    networks: tuple[str, ...] = ()

    def word(self, finding: Finding) -> Wording | None:
        """None."""
        return None

    def measure(self, network: str, parts: Sequence[str]) -> Post:
        """Raises UserError."""
        raise UserError(f"nothing is published on {network} here", "set it up in publishers of ralph.yml")

    def find(self, effect: Publish) -> Receipt | None:
        """None."""
        return None

    def publish(self, effect: Publish) -> Receipt:
        """Failed."""
        return Receipt(effect.key, "failed", detail=f"nothing is published on {effect.network} here")

    def stage(self, effect: Publish) -> Receipt:
        """Nowhere."""
        return Receipt(effect.key, "staged")


NO_PUBLISHER = NoPublisher()


class Inbox(Protocol):
    """A chat in which owners give commands. Everything else written there is dropped."""

    @property
    def chat(self) -> int:
        """Where owners get notices."""

    def read(self, cursor: str) -> tuple[tuple[ChatCommand, ...], str]:
        """Commands since `cursor`, oldest first, and the next cursor. Raises UserError."""

    def say(self, chat: int, text: str) -> None:
        """Send plain text there. Raises UserError."""


THINKER = "thinker"
"""The key of the plan's cursor in memory, beside those of observers."""

Lookups = Callable[[Iterable[tuple[Observer, ObservationContext]]], Iterable[Observation]]
"""Runs observers, each with its context: one observation for each, in the same order."""


def in_turn(lookups: Iterable[tuple[Observer, ObservationContext]]) -> Iterator[Observation]:
    """Run observers one after another; one that fails is reported as unavailable."""
    return (_run_observer(observer, context) for observer, context in lookups)


def _run_observer(observer: Observer, context: ObservationContext) -> Observation:
    try:
        return observer.observe(context)
    except Exception as error:  # a dead observer is a line in the report, never the end of the cycle
        # A foreign error's text may hold a connection string or a token, so only its type is reported.
        problem = error.what if isinstance(error, UserError) else f"failed unexpectedly ({type(error).__name__})"
        return Observation(observer.name, "unavailable", detail=truncate(problem, 200), cursor=context.cursor)


class Thinker(Protocol):
    """Ranks findings. May choose and describe, never permit."""

    def think(self, brief: Brief) -> Plan:
        """Rank known findings."""


@runtime_checkable
class PaidThinker(Thinker, Protocol):
    """A thinker that may call a model."""

    def may_cost(self, brief: Brief) -> float:
        """The most that it would spend on ranking these now, in USD; 0 if it would ask no model."""


class PatchVerifier(Protocol):
    """Checks a patch where it can do no harm: in a separate clone without remotes or credentials."""

    def forget_failures(self) -> None:
        """Try at once what could not be set up, instead of waiting."""

    def verify(self, patch: Patch, scratch: str) -> PatchVerification:
        """Run the configured `verify` commands on `patch.base` with the patch applied."""


class Coder(Protocol):
    """Has an agent do what no fixer can, in its own clone without access to the forge."""

    def work(self, job: AgentJob) -> AgentResult:
        """Start a job, or resume it if it was started here before. Errors and interrupts are part of the result."""

    def tidy(self, missions: Collection[int]) -> None:
        """Remove the work of all other missions."""


class Recorder(Protocol):
    """Stores the world's answers for `ralph journal show --replay`; never on the branch."""

    def record(self, name: str, value: object) -> None:
        """Store one answer under a name, in order."""


class CycleProgress(Protocol):
    """Shows progress on stderr, and to whoever watches."""

    @property
    def watch(self) -> RunWatch:
        """The live record that others watch."""

    def phase(self, name: str, note: str = "") -> None:
        """A phase begins: check, observe, think, act, reflect."""

    def note(self, text: str) -> None:
        """Something happened within the phase."""


Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """A question to one hat, in a clone of the commit `base`. `prompt` gets what was wrong with the previous answer."""

    hat: Hat
    base: str
    prompt: Callable[[str], str]
    usd: float
    seconds: float


class AskAgent(Protocol):
    """Asks the configured agent in a throw-away clone."""

    def __call__(self, question: AgentQuestion, parse: Callable[[str], Parsed]) -> tuple[Parsed | None, str, Usage]:
        """The answer, or why there is none, and its cost. `parse` raises UnclearVerdict. Raises UserError if no agent
        can run."""


Switch = Callable[[], bool]
"""Whether the kill switch (`RALPH_PAUSED=1`) is on; read each time."""

Seal = Callable[[str], str]
"""A seal that needs the key of the chat, so memory cannot claim that an owner wrote something there."""


@dataclass(frozen=True, slots=True)
class CyclePorts:
    """Everything a cycle may touch; built in `app/ports.py`."""

    clock: CycleClock
    store: Store
    forge: Forge
    observers: tuple[Observer, ...]
    thinker: Thinker
    hands: PatchVerifier
    recorder: Recorder
    progress: CycleProgress
    switch: Switch
    waker: Waker
    scratch: Callable[[], AbstractContextManager[str]]
    dashboard: Callable[[Memory, OpenState], str]
    coder: Coder | None = None
    lookups: Lookups = in_turn
    publisher: PostPublisher = NO_PUBLISHER
    inbox: Inbox | None = None
    seal: Seal | None = None  # None: chat messages in memory do not count
    ask: AskAgent | None = None  # rewrites texts, if an agent is configured
