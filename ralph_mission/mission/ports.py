"""What a cycle needs from the world, as Protocols. Adapters are chosen in `app/` only.

Errors cross these walls as `UserError`, which names who must act. An observer may raise
anything: it then counts as unavailable and the cycle goes on. Everything else fails closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from ralph_mission.errors import UserError
from ralph_mission.loop.model.watch import RunWatch
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult
from ralph_mission.mission.model.alerts import AlertKind, SecurityAlert
from ralph_mission.mission.model.builds import FailedJob, WorkflowRun
from ralph_mission.mission.model.effects import Effect, Publish, Receipt
from ralph_mission.mission.model.forge import (
    Actor,
    BodyEdit,
    Branch,
    ChatCommand,
    Issue,
    Post,
    Pull,
    Pulse,
    Tick,
    Wording,
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
        ...


class Store(Protocol):
    """Memory on its branch. Advances by fast-forward from the object id that was read, only."""

    def holder(self) -> str:
        """Who we are in a claim: the run's URL, or host + boot id + pid."""
        ...

    def exclusive(self) -> AbstractContextManager[bool]:
        """Held while a cycle runs; gives False when another runner on this machine holds it."""
        ...

    def proven_dead(self, holder: str) -> bool:
        """Whether the holder of an old claim is *proven* dead. Waiting is never proof."""
        ...

    def recall(self) -> MemorySnapshot | None:
        """Memory, open keys and claim as of one commit; None when there is no memory yet.

        Raises UserError on rollback, foreign changes, corruption: before any effect.
        """
        ...

    def records(self, keys: Iterable[str], at: MemorySnapshot | None) -> Mapping[str, Record]:
        """The ledger's records for `keys`, as of what was recalled; missing keys are left out."""
        ...

    def commit(self, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot:
        """One commit on top of `after`. Merges a human's edit of human sections that came between.

        Raises Lost when someone else's machine state got there first.
        """
        ...

    def paused(self) -> bool:
        """Whether memory says `paused` *now* (re-read, not remembered)."""
        ...

    def at_work(self, issue: int) -> AbstractContextManager[bool]:
        """Held while somebody works on an issue; gives False when another process of this clone holds it."""
        ...


class Forge(Protocol):
    """Issues, pulls, branches. Mutations happen through `perform` alone."""

    def identity(self) -> Actor:
        """Our own bot account."""
        ...

    def default_branch(self) -> Branch:
        """The branch that pulls are merged into, and where it points now."""
        ...

    def branch(self, name: str) -> str:
        """The commit a branch points at now; "" when it does not exist."""
        ...

    def issues(self, state: str = "open", labels: Sequence[str] = ()) -> tuple[Issue, ...]:
        """Issues (not pulls), oldest number first. `state`: open | closed | all."""
        ...

    def issue(self, number: int) -> Issue:
        """One issue with its remarks (ticks are some) and label events. Raises Missing when there is none."""
        ...

    def edits(self, number: int) -> tuple[BodyEdit, ...]:
        """The last change of an issue's or pull's title and that of its text, as far as the forge knows. Raises
        UserError."""
        ...

    def own_reviews(self, number: int) -> frozenset[int]:
        """The reviews of a pull that say what their authors wrote: nobody else is known to have, or may have, changed
        a word of them. Raises Missing, UserError."""
        ...

    def pulls(self, state: str = "open") -> tuple[Pull, ...]:
        """Pulls, oldest number first. `state`: open | closed | all.

        Every open one, with `touches` and `patch_ids`; of the others at least those closed in the last 7 days.
        A merged one has `patch_ids` too, and `touches` only while the default branch lacks it.
        """
        ...

    def pull(self, number: int) -> Pull:
        """One pull with reviews, remarks, commits and events. Raises Missing when there is none."""
        ...

    def is_ready(self, number: int) -> bool:
        """Whether nothing stands against merging an open pull: no conflict, no check, no rule. Raises UserError."""
        ...

    def pulse(self, since: datetime) -> Pulse:
        """How the project fared since then."""
        ...

    def workflow_runs(
        self, workflow: int = 0, event: str = "", failed: bool = False, most: int = 100
    ) -> tuple[WorkflowRun, ...]:
        """The newest runs on the default branch, newest first: of one workflow (0: of all), by one event ("": any),
        or those alone that failed. None where a forge runs nothing. Raises UserError."""
        ...

    def failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        """What failed in that attempt of a run, and with `log` what the first of them printed. Raises UserError."""
        ...

    def test_reports(self, run: WorkflowRun) -> tuple[bytes, ...]:
        """The XML files that a run kept as reports of its tests, a few of moderate size. Raises UserError."""
        ...

    def security_alerts(self, kind: AlertKind) -> tuple[SecurityAlert, ...] | None:
        """The open ones of a kind; None where there are none of its kind, or nobody may read them. Raises UserError."""
        ...

    def may_approve(self, actor: Actor) -> bool:
        """Whether this person has write access. Never true of a bot."""
        ...

    def find(self, effect: Effect) -> Receipt | None:
        """What of `effect` is already there, found by list (never search) and by our own author id.

        None: it is certainly not listed. Used to adopt what a crashed runner did.
        """
        ...

    def look_anew(self) -> None:
        """Forget what was listed in this cycle: time has passed since."""
        ...

    def perform(self, effect: Effect) -> Receipt:
        """Do it once; never retries. A definite refusal is a `failed` receipt; doubt is `unknown`."""
        ...

    def anchor(self) -> Anchor | None:
        """The highest memory position the forge itself has been told of."""
        ...

    def ticks(self) -> tuple[Tick, ...]:
        """What people ticked on the dashboard. Those that are meant for a thread are told by `issue` and `pull` too,
        as if their words had been said there. Raises UserError."""
        ...

    def show_dashboard(self, page: str, anchor: Anchor, quiet: bool = False) -> None:
        """Have the dashboard say `page` ("": what it says), and remember a memory position outside the memory branch.

        What people ticked meanwhile stays ticked. `quiet`: nothing was done, so the position alone is not worth it.
        """
        ...

    @property
    def lists_at_once(self) -> bool:
        """Whether a list shows what was just made, so that "not listed" proves "not made"."""
        ...

    def how(self, action: str, number: int) -> str:
        """What a person types or clicks for: approve_pull, show_pull, approve_issue, show_issue."""
        ...

    def has_our_work(self) -> bool:
        """Whether anything with our marker by our own account exists."""
        ...


class Waker(Protocol):
    """One way of being called again. Losing a wake is harmless: another way, or the next one, makes up for it."""

    def wake(self, due: datetime, generation: int) -> Receipt | None:
        """Ask for a cycle now; None where nobody can be asked. `failed` names why. Never raises UserError."""
        ...


class Observer(Protocol):
    """One source. Changes no tracked file, no ref, no row, nothing on a network."""

    @property
    def name(self) -> str:
        """How the report calls it."""
        ...

    def observe(self, context: ObservationContext) -> Observation:
        """Look once. May raise anything; the cycle goes on without it."""
        ...


@runtime_checkable
class PaidObserver(Observer, Protocol):
    """One that may ask a model: what that may cost is set aside in memory before it looks."""

    def asks(self, context: ObservationContext) -> bool:
        """Whether it would ask now. May raise anything: then it is taken for one that would."""
        ...


class PostPublisher(Protocol):
    """The networks that posts go to. Making a text asks nobody; `publish` alone speaks."""

    @property
    def networks(self) -> tuple[str, ...]:
        """Where a post goes, in order; none where nothing is set up."""
        ...

    def word(self, finding: Finding) -> Wording | None:
        """What this finding would say; None when nothing is to be said about it. Never raises for its content."""
        ...

    def measure(self, network: str, parts: Sequence[str]) -> Post:
        """These very parts as a post of that network, with what it counts. Raises UserError if it takes none."""
        ...

    def find(self, effect: Publish) -> Receipt | None:
        """What of it is certainly out already; None where nobody can tell."""
        ...

    def publish(self, effect: Publish) -> Receipt:
        """Say it once; never retries. A definite no is `failed`, doubt is `unknown`. What failed for
        `LATER` may be tried again another time: it certainly did not get through."""
        ...

    def stage(self, effect: Publish) -> Receipt:
        """Put it where a person can read it, and say nothing: `staged`, with the file as `url` if one was written."""
        ...


class NoPublisher:
    """Nothing is published."""

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
    """A chat in which owners give orders. Everything else that is said there is data, and dropped."""

    @property
    def chat(self) -> int:
        """Where an owner is told things unasked."""
        ...

    def read(self, cursor: str) -> tuple[tuple[ChatCommand, ...], str]:
        """Orders since `cursor`, oldest first, and the next cursor. Raises UserError."""
        ...

    def say(self, chat: int, text: str) -> None:
        """Answer there, as plain text. Raises UserError."""
        ...


THINKER = "thinker"
"""The name under which memory keeps a plan's cursor, beside those of observers."""

Lookups = Callable[[Iterable[tuple[Observer, ObservationContext]]], Iterable[Observation]]
"""Asks observers, each with what it is told: one sighting for each, in the same order."""


def in_turn(asked: Iterable[tuple[Observer, ObservationContext]]) -> Iterator[Observation]:
    """One after another; one that fails is unavailable and nothing more."""
    return (_look(observer, context) for observer, context in asked)


def _look(observer: Observer, context: ObservationContext) -> Observation:
    try:
        return observer.observe(context)
    except Exception as error:  # a dead observer is a line in the report, never the end of the cycle
        # A foreign error's text may hold a connection string or a token, so only its type is told.
        said = error.what if isinstance(error, UserError) else f"failed unexpectedly ({type(error).__name__})"
        return Observation(observer.name, "unavailable", detail=truncate(said, 200), cursor=context.cursor)


class Thinker(Protocol):
    """Ranks findings. May choose and describe, never permit."""

    def think(self, brief: Brief) -> Plan:
        """A ranking of known findings."""
        ...


class PatchVerifier(Protocol):
    """Tries a change where it can do no harm: a separate clone without remotes or credentials."""

    def verify(self, patch: Patch, scratch: str) -> PatchVerification:
        """Runs the configured `verify` commands on `patch.base` with the patch applied."""
        ...


class Coder(Protocol):
    """Has an agent carry out what no fixer can: in a clone of its own, with no way to the forge."""

    def work(self, job: AgentJob) -> AgentResult:
        """Begin, or go on with what was begun here earlier. What goes wrong is what it came to; an interrupt too."""
        ...

    def tidy(self, missions: Collection[int]) -> None:
        """Let go of what was begun for any other mission than these."""
        ...


class Recorder(Protocol):
    """Keeps what the world answered, for `ralph journal show --replay`; never on the branch."""

    def record(self, name: str, value: object) -> None:
        """Keep one answer under a name, in the order asked."""
        ...


class CycleProgress(Protocol):
    """Tells a person what is going on while it goes on, on stderr, and whoever watches."""

    @property
    def watch(self) -> RunWatch:
        """Who watches from elsewhere."""
        ...

    def phase(self, name: str, note: str = "") -> None:
        """A phase of the cycle begins: check, observe, think, act, reflect."""
        ...

    def note(self, text: str) -> None:
        """One thing that happened within the phase."""
        ...


Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """What one hat is asked, in a clone of the commit `base`. `prompt` is given what was wrong before."""

    hat: Hat
    base: str
    prompt: Callable[[str], str]
    usd: float
    seconds: float


class AskAgent(Protocol):
    """Asks the settings' agent in a clone that is thrown away."""

    def __call__(self, question: AgentQuestion, parse: Callable[[str], Parsed]) -> tuple[Parsed | None, str, Usage]:
        """The answer, or why there is none, and what it took. `parse` raises UnclearVerdict; UserError: none plays."""
        ...


Switch = Callable[[], bool]
"""Whether the kill switch (`RALPH_PAUSED=1`) is thrown, asked anew each time."""

Seal = Callable[[str], str]
"""What nobody can make of a text who has not the key of the chat: so memory cannot say what no owner said there."""


@dataclass(frozen=True, slots=True)
class CyclePorts:
    """Everything a cycle may touch, built in `app/cycle.py`."""

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
    seal: Seal | None = None  # None: what memory holds of a chat counts for nothing
    ask: AskAgent | None = None  # who writes texts anew, where an agent is named
