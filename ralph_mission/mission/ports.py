"""What a cycle needs from the world, as Protocols. Adapters are chosen in `bootstrap.py` only.

Errors cross these walls as `Trouble`, which names who must act. An observer may raise
anything: it then counts as unavailable and the cycle goes on. Everything else fails closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ralph_mission.mission.effects import Effect, Receipt
from ralph_mission.mission.ledger import Anchor, Batch, OpenState, Recollection, Record
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.model import (
    Acceptance,
    Actor,
    Branch,
    Finding,
    Issue,
    Limits,
    Mission,
    Pull,
    Pulse,
    Sighting,
    Usage,
)
from ralph_mission.safety.patch import Patch


class Clock(Protocol):
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

    def recall(self) -> Recollection | None:
        """Memory, open keys and claim as of one commit; None when there is no memory yet.

        Raises Trouble on rollback, foreign changes, corruption: before any effect.
        """
        ...

    def records(self, keys: Iterable[str], at: Recollection | None) -> Mapping[str, Record]:
        """The ledger's records for `keys`, as of what was recalled; missing keys are left out."""
        ...

    def commit(self, batch: Batch, after: Recollection | None) -> Recollection:
        """One commit on top of `after`. Merges a human's edit of human sections that came between.

        Raises Lost when someone else's machine state got there first.
        """
        ...

    def paused(self) -> bool:
        """Whether memory says `paused` *now* (re-read, not remembered)."""
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
        """One issue with its remarks and label events. Raises Missing when there is none."""
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

    def pulse(self, since: datetime) -> Pulse:
        """How the project fared since then."""
        ...

    def may_approve(self, actor: Actor) -> bool:
        """Whether this person has write access. Never true of a bot."""
        ...

    def find(self, effect: Effect) -> Receipt | None:
        """What of `effect` is already there, found by list (never search) and by our own author id.

        None: it is certainly not listed. Used to adopt what a crashed runner did.
        """
        ...

    def perform(self, effect: Effect) -> Receipt:
        """Do it once; never retries. A definite refusal is a `failed` receipt; doubt is `unknown`."""
        ...

    def anchor(self) -> Anchor | None:
        """The highest memory position the forge itself has been told of."""
        ...

    def set_anchor(self, anchor: Anchor) -> None:
        """Remember a memory position outside the memory branch."""
        ...

    @property
    def lists_at_once(self) -> bool:
        """Whether a list shows what was just made, so that "not listed" proves "not made"."""
        ...

    def how(self, deed: str, number: int) -> str:
        """What a person types or clicks for: approve_pull, show_pull, approve_issue, show_issue."""
        ...

    def has_our_work(self) -> bool:
        """Whether anything with our marker by our own account exists."""
        ...


@dataclass(frozen=True, slots=True)
class Gaze:
    """What an observer is told: the commit to look at, when it looked last, and how far it got."""

    head: Branch
    now: datetime
    last_cycle_at: datetime | None
    cursor: str
    scratch: str  # an existing folder of the run, removed afterwards


class Waker(Protocol):
    """One way of being called again. Losing a wake is harmless: another way, or the next one, makes up for it."""

    def wake(self, due: datetime, generation: int) -> Receipt | None:
        """Ask for a cycle now; None where nobody can be asked. `failed` names why. Never raises Trouble."""
        ...


class Observer(Protocol):
    """One source. Changes no tracked file, no ref, no row, nothing on a network."""

    @property
    def name(self) -> str:
        """How the report calls it."""
        ...

    def observe(self, gaze: Gaze) -> Sighting:
        """Look once. May raise anything; the cycle goes on without it."""
        ...


@dataclass(frozen=True, slots=True)
class Brief:
    """All a thinker may know."""

    findings: tuple[Finding, ...]
    missions: tuple[Mission, ...]
    acceptance: Mapping[str, Acceptance]
    limits: Limits
    memory: Memory
    now: datetime


@dataclass(frozen=True, slots=True)
class Thought:
    """One finding (or a coherent group) worth doing something about, best first in a plan."""

    members: tuple[str, ...]  # fingerprints, all of them known findings
    kind: str
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A thinker's reply; validated, never trusted."""

    thoughts: tuple[Thought, ...]
    usage: Usage = Usage()
    remark: str = ""  # e.g. why the rules thinker answered instead


class Thinker(Protocol):
    """Ranks findings. May choose and describe, never permit."""

    def think(self, brief: Brief) -> Plan:
        """A ranking of known findings."""
        ...


@dataclass(frozen=True, slots=True)
class Verification:
    """What the repository's own checks said of a patch; `detail` is for people when not ok."""

    ok: bool
    detail: str = ""


class Hands(Protocol):
    """Tries a change where it can do no harm: a separate clone without remotes or credentials."""

    def verify(self, patch: Patch, scratch: str) -> Verification:
        """Runs the configured `verify` commands on `patch.base` with the patch applied."""
        ...


class Recorder(Protocol):
    """Keeps what the world answered, for `ralph replay`; never on the branch."""

    def record(self, name: str, value: object) -> None:
        """Keep one answer under a name, in the order asked."""
        ...


class Voice(Protocol):
    """Tells a person what is going on while it goes on. Stands on stderr."""

    def phase(self, name: str, note: str = "") -> None:
        """A phase of the cycle begins: check, observe, think, act, reflect."""
        ...

    def note(self, text: str) -> None:
        """One thing that happened within the phase."""
        ...


Switch = Callable[[], bool]
"""Whether the kill switch (`RALPH_PAUSED=1`) is thrown, asked anew each time."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a cycle may touch, built in `bootstrap.py`."""

    clock: Clock
    store: Store
    forge: Forge
    observers: tuple[Observer, ...]
    thinker: Thinker
    hands: Hands
    recorder: Recorder
    voice: Voice
    switch: Switch
    waker: Waker
    scratch: Callable[[], AbstractContextManager[str]]
    dashboard: Callable[[Memory, OpenState], str]
