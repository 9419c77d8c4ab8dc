"""The report of a cycle: as JSON with its published schema (the keys are a contract), and at a glance for a terminal.

The text has at most 40 rows of 80 columns, whatever happened, and is complete without colour.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.report.progress import (
    RequestCounts,
    cap_lines,
    count_noun,
    fold_lines,
    indent_lines,
    safe,
    shorten,
    spell,
    stamp,
    wrap_text,
)
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, EffectLine, PostLine
from ralph_mission.mission.model.mission import Verdict
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def _adapter() -> TypeAdapter[CycleReport]:
    from pydantic import TypeAdapter

    return TypeAdapter(CycleReport)


def to_document(report: CycleReport) -> dict[str, Any]:
    """The report as plain JSON values; moments in UTC with `Z`."""
    document: dict[str, Any] = _adapter().dump_python(report, mode="json")
    return document


def to_json(report: CycleReport) -> str:
    """The report as one line of JSON."""
    return _adapter().dump_json(report).decode()


def schema() -> dict[str, Any]:
    """The JSON Schema of `to_json`; every key is required and no other is allowed."""
    made = _adapter().json_schema(mode="serialization")
    for thing in (made, *made["$defs"].values()):
        if thing.get("type") == "object":
            thing["additionalProperties"] = False
            thing["required"] = list(thing["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "cycle-report"}


ROWS = 40
SAYINGS = {
    "done": "done",
    "not_due": "not due yet: nothing was looked at (--force runs it anyway)",
    "lost": "another runner has this cycle: nothing was done",
    "paused": "paused: nothing was done (ralph resume)",
    "failed": "failed",
}
SHOWN = {
    "open_issue": "opened issue",
    "open_pull": "opened pull request",
    "merge_pull": "merged",
    "leave_queue": "took out of the merge queue",
    "close_issue": "closed issue",
    "close_pull": "closed pull request",
    "comment": "commented",
    "publish": "posted",
}
"""Effects that people notice; a branch or a label belongs to one of these."""


Rewrite = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Where the person stands, which decides how things have to be written for her."""

    typed: Rewrite = str  # a text with the commands in it as they have to be typed
    place: Rewrite = str  # the place of an issue or pull as it can be opened


@dataclass(frozen=True, slots=True)
class SummarySection:
    """A heading and its lines; `room` is the most rows the lines may take, `where` tells the others."""

    heading: str
    lines: tuple[str, ...]
    room: int
    where: str


def summary(
    report: CycleReport,
    cycle_summary: CycleSummary,
    heading: Rewrite = str,
    at: Standpoint = Standpoint(),
    asked: RequestCounts | None = None,
) -> str:
    """The text; `heading` may add colour to headings."""
    parts = [heading(shorten(_first(report)))]
    for section in _sections(report, cycle_summary, at):
        if section.lines:
            parts += [heading(section.heading), *cap_lines(section.lines, section.room, at.typed(section.where))]
    return "\n".join([*parts, *([f"asked: {asked}"] if asked else []), _next(report)])


def _first(report: CycleReport) -> str:
    staged = " (staged: nothing was changed)" if report.staged else ""
    took = spell(report.finished_at - report.started_at)
    return f"cycle {report.cycle}: {SAYINGS[report.outcome]}{staged}, {took}"


def _sections(report: CycleReport, cycle_summary: CycleSummary, at: Standpoint) -> Sequence[SummarySection]:
    # Rooms and headings add up to 37 rows; the first line and the last two make 40.
    # What is said in public takes its rows from the others.
    whole = "ralph cycle --staged --json" if report.staged else f"ralph journal show {report.cycle_id}"
    public = tuple(_post_lines(cycle_summary.posts, at, whole=report.staged))
    said = 0 if not public else 11 if report.staged else 5
    return (
        SummarySection("seen", tuple(_observer_lines(report)), 3 if said else 4, whole),
        SummarySection(
            "would be done" if report.staged else "done",
            tuple(_applied(report, cycle_summary, at)),
            4 if said else 6,
            whole,
        ),
        SummarySection("would be posted" if report.staged else "posted", public, said, whole),
        SummarySection("why", tuple(fold_lines(cycle_summary.why)), 3 if said else 5, whole),
        SummarySection(
            "held back", tuple(fold_lines(cycle_summary.held or _verdicts(report))), 3 if said else 5, whole
        ),
        SummarySection(
            "waiting for you",
            tuple(f"  {safe(line)}" for line in cycle_summary.waiting),
            4 if said else 7,
            "ralph status --json",
        ),
        SummarySection(
            "note", tuple(f"  {at.typed(safe(line))}" for line in cycle_summary.remarks), 4 if said < 11 else 3, whole
        ),
    )


def _post_lines(posts: Sequence[PostLine], at: Standpoint, whole: bool) -> Iterator[str]:
    """What networks were told: before it is sent all of it, with its length; afterwards how it begins."""
    for parts, same in groupby(posts, key=lambda post: post.parts):
        fates = [_fate(post, at, whole) for post in same]
        text = " / ".join(safe(part) for part in (parts if whole else parts[:1]))
        yield from fold_lines([", ".join(fates)])
        yield from wrap_text(text) if whole else [shorten(f"    {text}")]


def _fate(post: PostLine, at: Standpoint, staged: bool) -> str:
    if staged:
        length = f"{post.network} ({', '.join(map(str, post.lengths))} of {post.limit})"
        return f"{length} {at.place(post.url)}".rstrip()
    fate = "" if post.status in ("done", "adopted") else f" {post.status}"
    return f"{post.network}{fate} {at.place(post.url)}".rstrip()


def _observer_lines(report: CycleReport) -> list[str]:
    if not report.observers:
        return []
    if all(line.status == "skipped" for line in report.observers):
        return indent_lines([f"nothing was looked at: {report.observers[0].detail}"])
    new = sum(not finding.known for finding in report.findings)
    fresh = f", {new} of them not dealt with before" if new else ", nothing new" if report.findings else ""
    lines = [f"{count_noun(len(report.findings), 'finding')} by {count_noun(len(report.observers), 'observer')}{fresh}"]
    lines += [
        f"{line.name}: {line.status}, {line.detail or 'no reason given'}"
        for line in report.observers
        if line.status == "unavailable"
    ]
    return [*indent_lines(lines), *fold_lines(filter(None, [looked_at(report)]))]


def looked_at(report: CycleReport) -> str:
    """What was looked at, where nothing is asked of anybody: that it is quiet is a result, too. "" elsewhere."""
    if report.outcome != "done" or report.missions or any(effect.kind in SHOWN for effect in report.effects):
        return ""
    there = (one for one in report.observers if one.status == "ok" and not one.detail.startswith("no "))
    seen = [f"{one.name}: {re.split('[;,] ', one.detail)[0] or 'nothing'}" for one in there]
    return f"looked at, and nothing to ask: {'; '.join(seen)}" if seen else ""


def _applied(report: CycleReport, cycle_summary: CycleSummary, at: Standpoint) -> list[str]:
    titles = {thread.key: thread.title for thread in cycle_summary.threads}
    lines = []
    for effect in report.effects:
        if is_done(effect):
            title, place = titles.get(effect.key, ""), at.place(effect.url)
            known = place or ("" if title else effect.key)
            lines.append(": ".join(filter(None, (f"{name_effect(effect)} {known}".rstrip(), title))))
    return fold_lines(lines)


def is_done(effect: EffectLine) -> bool:
    """Whether it happened (or would) and people notice it; what failed or is in doubt is told with its reason."""
    return effect.kind in SHOWN and effect.status not in ("failed", "unknown")


def name_effect(effect: EffectLine) -> str:
    """What was done in words, or what would be: `opened issue`, `open issue`."""
    if effect.status == "staged":
        return effect.kind.replace("_", " ").replace("pull", "pull request")
    return SHOWN.get(effect.kind, effect.kind.replace("_", " "))


def _verdicts(report: CycleReport) -> list[str]:
    stopped = [line for line in report.decisions if line.verdict is not Verdict.ALLOW]
    counted = Counter((line.kind, line.verdict.value, ", ".join(line.rules)) for line in stopped)
    return [f"{count} x {kind}: {verdict} ({rules})" for (kind, verdict, rules), count in counted.items()]


def _next(report: CycleReport) -> str:
    if report.next_due_at is None:
        return "next: whenever you run ralph cycle"
    pause = report.next_due_at - report.finished_at
    when = f"in {spell(pause)}" if pause.total_seconds() > 0 else "now"
    return f"next: {when}, {stamp(report.next_due_at)} (urgency {report.urgency.value})"
