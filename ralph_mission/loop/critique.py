"""What a critic's verdict on a plan says, section by section. What nobody understands approves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ralph_mission.loop.assignments import UnclearAssignment, parse_document
from ralph_mission.safety.text import truncate

APPROVALS, REFUSALS = ("approve", "approved", "accept", "accepted"), ("reject", "rejected", "revise")
NONE_GIVEN = "rejected without a reason"
MOST, LONGEST = 100, 1_000


@dataclass(frozen=True, slots=True)
class PlanObjection:
    """What has to change; `section` "" is the plan as a whole."""

    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Critique:
    """The sections that may stay as they are, and everything that speaks against the others."""

    approved: frozenset[str] = frozenset()
    objections: tuple[PlanObjection, ...] = ()


def parse_critique(payload: str, names: Sequence[str]) -> Critique:
    """A verdict on the sections `names`.

    `{"verdict": "approve|reject", "objections": […], "sections": [{"section", "verdict", "objections": […]}]}`; an
    approval of the whole counts for sections that are not mentioned, when nothing at all speaks against it.
    """
    try:
        return _parse_critique(parse_document(payload), names)
    except UnclearAssignment as unclear:
        why = f"the verdict cannot be understood ({unclear}): {truncate(payload, 200)}"
        return Critique(objections=(PlanObjection("", why),))


def _parse_critique(value: Mapping[str, Any], names: Sequence[str]) -> Critique:
    known = {name.casefold(): name for name in names}
    approved, objections = set[str](), [PlanObjection("", text) for text in _texts(value)]
    for row in _rows(value):
        name = str(row.get("section") or row.get("name") or "").strip().removeprefix("##").strip()
        section, said = known.get(name.casefold(), ""), _texts(row)
        if _approves(row) and not said:
            approved.add(section)
        else:
            told = f"{name}: " if not section and name else ""
            objections += [PlanObjection(section, told + text) for text in said or (NONE_GIVEN,)]
    approved -= {objection.section for objection in objections} | {""}
    if "verdict" in value and _approves(value) and not objections:
        approved = set(names)
    if "verdict" in value and not _approves(value) and not objections:
        objections.append(PlanObjection("", NONE_GIVEN))
    return Critique(frozenset(approved), tuple(objections[:MOST]))


def _approves(row: Mapping[str, Any]) -> bool:
    word = str(row.get("verdict", "")).strip().lower()
    if word not in (*APPROVALS, *REFUSALS):
        raise UnclearAssignment(f"{word[:40]!r} is neither approve nor reject")
    return word in APPROVALS


def _rows(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = value.get("sections", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnclearAssignment("sections is not a list of objects")
    if not rows and "verdict" not in value:
        raise UnclearAssignment("it has neither a verdict nor sections")
    return rows


def _texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Objections; one that is no text speaks against it all the same."""
    value = row.get("objections") or []
    texts = value if isinstance(value, list) else [value]
    return tuple(truncate(" ".join(str(text).split()), LONGEST) or NONE_GIVEN for text in texts[:MOST])
