"""Security alerts raised by the forge. Their text is untrusted; they never contain the value of a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ralph_mission.values import dataclass

AlertKind = Literal["dependency", "code", "secret"]
"""A vulnerable package, a code scanning result, a secret in the history."""


@dataclass(frozen=True, slots=True)
class SecurityAlert:
    """One alert. `severity` is low, medium, high, critical or "". One is closed as fixed, or dismissed by a person.

    Of a dependency: its ecosystem as the forge names it, its name, the file that asks for it, the range of versions
    that are affected, the first that is not ("" when there is none), and the advisory with its other names.
    """

    kind: AlertKind
    number: int
    url: str
    title: str
    severity: str = ""
    rule: str = ""
    ecosystem: str = ""
    package: str = ""
    path: str = ""
    affected: str = ""
    fixed: str = ""
    advisory: str = ""
    aliases: tuple[str, ...] = ()
    created_at: datetime | None = None
    closed_at: datetime | None = None
    dismissed: bool = False
