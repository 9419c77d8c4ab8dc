"""Observes the forge's security alerts, if readable: code scanning and secret scanning.

Everybody who can read the repository can read an issue, but not an alert. So an issue only says that there is one, its
kind and severity, with a link; not its place, and the value of a secret is not even read. The dependency observer
reports alerts about packages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ralph_mission.adapters.observers.looking import one_line, unavailable
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import SecurityAlert
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

NAME = "alerts"
GRAVE = ("critical", "high")
MOST = 5
"""The most secrets reported one by one; the first already say that somebody has to look."""


@dataclass(frozen=True, slots=True)
class AlertObserver:
    """Reads the results of the forge's own scanners."""

    forge: Forge
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """All open alerts about code and secrets; none if they are not readable."""
        try:
            code, secrets = self.forge.security_alerts("code"), self.forge.security_alerts("secret")
        except UserError as problem:
            return unavailable(NAME, problem, context.cursor)
        if code is None and secrets is None:
            return Observation(NAME, "ok", detail="the token may not read alerts, or there are none", complete=False)
        parts = [f"{count_noun(len(code), 'alert')} about code"] if code is not None else []
        parts += [f"{count_noun(len(secrets), 'alert')} about secrets"] if secrets is not None else []
        signals = (*_secrets(secrets or ()), *_rules(code or ()))
        return Observation(NAME, "ok", signals, detail=", ".join(parts), complete=None not in (code, secrets))


def _secrets(alerts: Sequence[SecurityAlert]) -> Iterator[Signal]:
    for one in alerts[:MOST]:
        yield Signal(
            observer=NAME,
            kind="security-alert",
            title=one_line(f"Secret scanning found a secret of the kind {one.title}"),
            essence=("secret-scanning", str(one.number)),
            severity=Severity.HIGH,
            confidence=0.9,
            effort=0.5,
            detail=f"{one_line(one.url, 200)}\nRevoke it first: taking it out of the files leaves it in the history.",
            facts=(("alert", one.number),),
        )


def _rules(alerts: Sequence[SecurityAlert]) -> Iterator[Signal]:
    """One signal for each rule."""
    numbers = Counter(one.rule for one in alerts)
    for one in {alert.rule: alert for alert in reversed(alerts)}.values():
        grave = one.severity in GRAVE
        many = count_noun(numbers[one.rule], "alert")
        yield Signal(
            observer=NAME,
            kind="security-alert" if grave else "code-alert",
            title=one_line(f"Code scanning: {one.title or one.rule}, {many}"),
            essence=("code-scanning", one.rule),
            severity=Severity.HIGH if grave else Severity.MEDIUM if one.severity == "medium" else Severity.LOW,
            confidence=0.8,
            effort=2.0,
            detail=f"{one_line(one.url, 200)}\nRule {one_line(one.rule, 80)}, {one.severity or 'severity unknown'}.",
            facts=(("rule", one.rule), ("alerts", numbers[one.rule])),
        )
