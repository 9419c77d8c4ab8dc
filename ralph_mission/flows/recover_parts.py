"""What recovery works on: what is left of a memory, the store that shows it, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ralph_mission.mission.ledger import Anchor, Batch, OpenState, Record
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.ports import Store


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `ralph memory verify`."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can still be read. `state` and `records` are of our own last commit, `doubtful` of anyone's."""

    head: str  # the branch's present commit, "" when it is gone
    anchor: Anchor | None = None
    memory: Memory | None = None  # the newest that can be read, with the newest people's sections
    state: OpenState | None = None
    records: tuple[Record, ...] = ()
    doubtful: tuple[Record, ...] = ()
    broken: tuple[str, ...] = ()  # paths on the head that are no use; the recovery commit removes them
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Recoverable(Store, Protocol):
    """A store that can show what is left of a memory and start it anew."""

    def salvage(self) -> Salvage:
        """Everything that can still be read, trusted or not. Raises Trouble for what recovery cannot mend."""
        ...

    def restart(self, batch: Batch, salvaged: Salvage) -> Anchor:
        """Commit a new lineage on top of the present head, never resetting it, and remember the position."""
        ...

    def journal(self) -> Iterable[dict[str, Any]]:
        """Every cycle's journal document, oldest first. Raises Trouble when one cannot be read."""
        ...

    def document(self) -> str:
        """The memory file as it stands; "" when there is none."""
        ...

    def checks(self) -> Iterable[Check]:
        """Each thing that can be verified, and how it fared."""
        ...


@dataclass(frozen=True, slots=True)
class Recovered:
    """The new position, and in plain words what it was made of and what is missing."""

    anchor: Anchor
    kept: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(slots=True)
class Told:
    """What is told of it, gathered while it goes on."""

    kept: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
