"""A fleet's terms for a repository's cycle: the remaining budget, and people's decisions elsewhere. Pure.

They come from the environment, as JSON. They only make limits stricter and move ranks; they permit nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import FleetStart, RepositoryHeader
from ralph_mission.mission.memory.learning import read_verdicts
from ralph_mission.mission.memory.text import MEASURED, MEASURED_END
from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.mission import Acceptance
from ralph_mission.values import compile_regex, dataclass

MOST_KINDS = 100
MOST_VERDICTS = 999_999
MOST_EACH = 100  # verdicts of one kind that one repository brings: none speaks for the whole fleet
_KIND = compile_regex(r"[a-z][a-z0-9-]{0,39}")
Verdicts = Mapping[str, Acceptance]


@dataclass(frozen=True, slots=True)
class FleetTerms:
    """`usd_per_day`: USD that the repository's day may have cost when its cycle ends; None: its own limit alone.
    `pulls`: how many pull requests may be opened unasked; None: its own limit alone. `spoke`: a person did. `priors`:
    verdicts elsewhere, by kind. `onboard`: only ask, by a pull request with settings, which extend `extends`, whether
    to look after it. `extends`: the settings of a repository that has none of its own.
    """

    usd_per_day: float | None = None
    pulls: int | None = None
    spoke: bool = False
    priors: tuple[tuple[str, Acceptance], ...] = ()
    onboard: bool = False
    extends: str = ""


@dataclass(frozen=True, slots=True)
class FleetVerdicts:
    """What people decided on each kind: in each repository, by its name, and in all of them."""

    each: Mapping[str, Verdicts]
    total: Verdicts

    def elsewhere(self, name: str) -> dict[str, Acceptance]:
        """In all repositories but one: its own verdicts are in its memory."""
        own = self.each.get(name, {})
        return {
            kind: _less(one, own.get(kind, Acceptance())) for kind, one in self.total.items() if one != own.get(kind)
        }


def count_verdicts(headers: Iterable[RepositoryHeader]) -> FleetVerdicts:
    """The verdicts in the scanned memories."""
    each = {header.name: _own_verdicts(header.text) for header in headers}
    total: dict[str, Acceptance] = {}
    for verdicts in each.values():
        for kind, one in verdicts.items():
            known = total.get(kind, Acceptance())
            total[kind] = Acceptance(known.accepted + one.accepted, known.rejected + one.rejected)
    return FleetVerdicts(each, total)


def _own_verdicts(memory: str) -> dict[str, Acceptance]:
    """Those under Ralph's own heading: what is written elsewhere is no verdict. Each has a bounded share."""
    _, _, measured = f"\n{memory}".partition(f"\n{MEASURED}\n")
    lines = takewhile(lambda line: not line.startswith(("#", MEASURED_END)), measured.splitlines())
    return {kind: _bounded(one) for kind, one in read_verdicts(lines).items()}


def _bounded(one: Acceptance) -> Acceptance:
    share = min(1.0, MOST_EACH / max(1, one.accepted + one.rejected))
    return Acceptance(round(one.accepted * share), round(one.rejected * share))


def _less(all: Acceptance, own: Acceptance) -> Acceptance:
    return Acceptance(all.accepted - own.accepted, all.rejected - own.rejected)


def render_terms(start: FleetStart, verdicts: FleetVerdicts, extends: str = "") -> str:
    """The terms of one start, as one line of JSON."""
    elsewhere = verdicts.elsewhere(start.name)
    judged = sorted(elsewhere.items(), key=lambda pair: (-pair[1].accepted - pair[1].rejected, pair[0]))
    priors = {
        kind: [min(one.accepted, MOST_VERDICTS), min(one.rejected, MOST_VERDICTS)] for kind, one in judged[:MOST_KINDS]
    }
    fields: dict[str, object] = {"usd_per_day": start.usd_per_day, "pulls": start.pulls, "spoke": start.spoke}
    fields["priors"] = priors
    if extends:
        fields["extends"] = extends
    if start.onboard:
        fields["onboard"] = True
    return json.dumps(fields, separators=(",", ":"))


def parse_terms(text: str) -> FleetTerms:
    """The terms from JSON, or "". Raises UserError (usage) for anything else: no budget is forgotten."""
    if not text:
        return FleetTerms()
    try:
        fields: Any = json.loads(text)
        usd, priors = fields["usd_per_day"], fields["priors"]
        if usd is not None and not 0 <= float(usd) < float("inf"):
            raise ValueError
        if type(fields["pulls"]) is not bool or type(fields["spoke"]) is not bool or len(priors) > MOST_KINDS:
            raise ValueError
        known = tuple((_kind(kind), _tally(*one)) for kind, one in sorted(priors.items()))
        onboard, extends = fields.get("onboard", False), fields.get("extends", "")
        if type(onboard) is not bool or type(extends) is not str:
            raise ValueError
        dollars, pulls = None if usd is None else float(usd), int(fields["pulls"])  # one is what was booked
        return FleetTerms(dollars, pulls, fields["spoke"], known, onboard, extends)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = "RALPH_FLEET is not what a fleet's plan writes"
        raise UserError(what, "take it out of the environment", usage=True) from None


def apply_terms(settings: CycleSettings, terms: FleetTerms) -> CycleSettings:
    """The settings with the fleet's stricter limits."""
    limits = settings.limits
    if terms.usd_per_day is not None:
        limits = replace(limits, usd_per_day=min(limits.usd_per_day, terms.usd_per_day))
    if terms.pulls is not None:
        limits = replace(limits, auto_prs_per_cycle=min(limits.auto_prs_per_cycle, terms.pulls))
    return replace(settings, limits=limits, priors=terms.priors, in_fleet=terms.usd_per_day is not None)


def _kind(text: str) -> str:
    if not _KIND.fullmatch(text):
        raise ValueError(text)
    return text


def _tally(accepted: Any, rejected: Any) -> Acceptance:
    return Acceptance(_count(accepted), _count(rejected))


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MOST_VERDICTS:
        raise ValueError(number)
    return number
