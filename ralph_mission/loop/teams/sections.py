"""A plan as sections, `## ` headings outside of fences: what was approved stays as it is, whoever rewrites the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEADING = re.compile(r"##[ \t]+(\S.*?)[ \t]*#*[ \t]*\r?\n?")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class PlanSection:
    """One section with its heading; the lines before the first heading have no name."""

    name: str
    text: str


def split_sections(plan: str) -> tuple[PlanSection, ...]:
    """The sections in order; `"".join` of their texts is the plan."""
    found = [PlanSection("", "")]
    fence = ""
    for line in plan.splitlines(keepends=True):
        heading = None if fence else HEADING.fullmatch(line)
        if heading:
            found.append(PlanSection(heading[1], line))
        else:
            found[-1] = PlanSection(found[-1].name, found[-1].text + line)
        fence = _fence(fence, line)
    return tuple(section for section in found if section.text)


def section_names(plan: str) -> tuple[str, ...]:
    """What can be approved, in order."""
    return tuple(section.name for section in split_sections(plan) if section.name)


def find_section_faults(plan: str) -> str:
    """Why nobody can judge this plan, "" when they can."""
    found = section_names(plan)
    twice = sorted({name for name in found if found.count(name) > 1})
    if not plan.strip():
        return "there is no plan in .ralph/plan.md"
    if not found:
        return "the plan has no sections: start each with a line `## Name`"
    return f"sections with the same name: {', '.join(twice)}" if twice else ""


def freeze_sections(approved: Mapping[str, str], plan: str) -> tuple[str, tuple[str, ...]]:
    """The plan with every approved section (name -> text) as it was approved, and the names of those put back.

    One that is gone comes back behind the approved one before it; of one that is there twice the first stays.
    """
    new, put_back, seen = list[PlanSection](), list[str](), set[str]()
    for section in split_sections(plan):
        if section.name in approved and section.name in seen:
            put_back.append(section.name)
            continue
        seen.add(section.name)
        kept = PlanSection(section.name, approved.get(section.name, section.text))
        if kept.text.rstrip() != section.text.rstrip():
            put_back.append(section.name)
        new.append(kept)
    before = ""
    for name, text in approved.items():
        if name not in seen:
            new.insert(_behind(new, before), PlanSection(name, text))
            put_back.append(name)
        before = name
    return "".join(map(_with_newline, new)), tuple(dict.fromkeys(put_back))


def _behind(sections: Sequence[PlanSection], name: str) -> int:
    """Where a section goes that stands behind `name`; without one before every heading."""
    after = [at + 1 for at, section in enumerate(sections) if section.name == name]
    return after[0] if after else 0


def _with_newline(section: PlanSection) -> str:
    return section.text if section.text.endswith("\n") else f"{section.text}\n"


def _fence(open_one: str, line: str) -> str:
    """The fence that is open after this line."""
    match = FENCE.match(line)
    if match is None:
        return open_one
    if not open_one:
        return match[1]
    closes = match[1].startswith(open_one) and not line.strip().strip(open_one[0])
    return "" if closes else open_one
