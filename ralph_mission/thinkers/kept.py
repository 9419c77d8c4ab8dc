"""What a model took and said since memory last moved, kept beside the repository: a cycle that dies pays once."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ralph_mission.gateways.files import atomic, safe_paths
from ralph_mission.mission.memory import Header

FILE = "thinker.json"
CAP = 1_000_000  # bytes of it
NAMED = 4  # cycles for which memory surely has the name of what was paid: it keeps twice as many


class KeptReply(BaseModel):
    """`cursor` came of the last reply, after `cycle` of `lineage`; `usd` are booked once memory names `paid`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lineage: str = ""
    cycle: int = 0
    paid: str = ""
    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    cursor: str = ""

    def spent_more(self, usd: float, cursor: str, paid: str) -> KeptReply:
        """After another reply; `paid` names the money, if none waits already."""
        name = self.paid or paid
        return self.model_copy(update={"usd": self.usd + usd, "cursor": cursor or self.cursor, "paid": name})


def load(folder: Path | None, header: Header, booked: Collection[str]) -> KeptReply:
    """What memory does not have yet: money that is not among the `booked`, and what was learned in this cycle.

    Before the first cycle no memory has a lineage that stays.
    """
    here = KeptReply(lineage=header.lineage if header.cycle else "", cycle=header.cycle)
    if folder is None:
        return here
    with suppress(OSError, ValueError, ValidationError):
        kept = KeptReply.model_validate_json(safe_paths.content(folder / FILE, CAP) or b"")
        same = (kept.lineage, kept.cycle) == (here.lineage, here.cycle)
        fresh = kept.lineage in ("", here.lineage) and here.cycle - kept.cycle <= NAMED
        owed = fresh and kept.paid not in booked
        money = {"usd": kept.usd, "paid": kept.paid} if owed else {}
        return here.model_copy(update={**money, "cursor": kept.cursor if same else ""})
    return here


def save(folder: Path | None, kept: KeptReply) -> None:
    """Keep it, where there is a place: on a machine that forgets, a dying cycle may pay again."""
    if folder is None:
        return
    with suppress(OSError):
        atomic.write(safe_paths.own(folder) / FILE, kept.model_dump_json().encode())
