"""What a template may know of a finding: its typed facts, each harmless, and never its title or detail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ralph_mission.mission.model import Finding
from ralph_mission.publishers.figures import names
from ralph_mission.publishers.public_text import value, words

SOURCES = frozenset({"database", "dependencies", "forge", "missions", "social"})
"""Observers whose facts are typed. What the web says is free text, and nothing of it is ever posted."""
COLUMNS = ("order_by",)  # facts that name a column, by which a template may look into `rows`
MOST_FACTS = 1_000  # facts: a ranking has up to 50 places, each with its cells
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def template_facts(finding: Finding) -> dict[str, Any]:
    """Facts by name; cells of a row in `row`, by their path; of a ranking in `rows`, one mapping for each place.

    `about` says in short what it is about: the names in the row, else the group, else the table. {} where nothing
    typed is known.
    """
    signal = finding.signal
    if signal.observer not in SOURCES:
        return {}
    told = {name: value(fact) for name, fact in signal.facts[:MOST_FACTS] if _NAME.fullmatch(name)}
    if not told:
        return {}
    row = {name.removeprefix("row."): one for name, one in told.items() if name.startswith("row.")}
    places = {name: one for name, one in row.items() if name[0].isdigit()}
    own: dict[str, Any] = {name: one for name, one in told.items() if not name.startswith("row.")}
    own |= {name: fact for name, fact in signal.facts if name in COLUMNS and _NAME.fullmatch(str(fact))}
    own |= {"kind": words(finding.kind), "row": _nest(row), "rows": _ranking(places)}
    return own | {"about": _about(row, own)}


def _about(row: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    return ("" if own["rows"] else names(row)) or str(own.get("group") or own.get("model") or own.get("watch") or "")


def _nest(row: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path in sorted(row, key=lambda path: path.count(".")):  # what is below a field wins over the field itself
        *way, last = path.split(".")
        place = made
        for step in way:
            if not isinstance(place.get(step), dict):
                place[step] = {}
            place = place[step]
        place[last] = row[path]
    return made


def _ranking(places: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for name, one in places.items():
        place, _, field = name.partition(".")
        if place.isdigit() and field:
            rows.setdefault(int(place), {})[field] = one
    return [_nest(rows[place]) if _deep(rows[place]) else rows[place] for place in sorted(rows)]


def _deep(row: Mapping[str, Any]) -> bool:
    return any("." in name for name in row)
