"""A cycle's report: as JSON with a published schema (the keys are a contract), and as a short text for a terminal.

The text always fits into 40 rows of 80 columns, and is complete without colour. Verbose mode shows everything: all
findings, reasons and rules; for a staged cycle, every text and change follows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.report.progress import (
    NAMES,
    RequestCounts,
    cap_lines,
    fold_lines,
    indent_lines,
    safe,
    shorten,
    waiting_blocks,
    wrap_text,
)
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, EffectLine, PostLine, ThreadLine
from ralph_mission.mission.model.mission import Verdict
from ralph_mission.safety.text import sanitise
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import capitalise, count_noun, spell, stamp

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def _adapter() -> TypeAdapter[CycleReport]:
    from pydantic import TypeAdapter

    return TypeAdapter(CycleReport)


def to_json(report: CycleReport) -> str:
    """The report as one line of JSON."""
    return _adapter().dump_json(report).decode()


def schema() -> dict[str, Any]:
    """The JSON Schema of `to_json`; every key is required and no other is allowed."""
    document = _adapter().json_schema(mode="serialization")
    for thing in (document, *document["$defs"].values()):
        if thing.get("type") == "object":
            thing["additionalProperties"] = False
            thing["required"] = list(thing["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "cycle-report"}


ROWS = 40
OUTCOMES = {
    "done": "done",
    "not_due": "not due yet: nothing was looked at (--force runs it anyway)",
    "lost": "another runner has this cycle: nothing was done",
    "paused": "paused: nothing was done (ralph resume)",
    "failed": "failed",
}
SHOWN = {
    "open_issue": "opened issue",
    "open_pull": "opened pull request",
    "merge_pull": "merged pull request",
    "leave_queue": "took out of the merge queue",
    "close_issue": "closed issue",
    "close_pull": "finished with pull request",
    "comment": "commented on",
    "publish": "posted",
}
"""Effects visible to people; a branch or a label belongs to one of these."""
PLANNED = {"close_pull": "finish with pull request"}  # which may be closed already
_RULES = compile_regex(r" \([a-z-]+(?:, [a-z-]+)*\)\Z")
_HIDDEN = compile_regex(r"<!--.*?-->|<details>.*?</details>", re.DOTALL)


Rewrite = Callable[[str], str]
Paint = Callable[[str, str], str]
"""A text and its role (title, good, waits, quiet, added, removed) to the text in its colour."""


@dataclass(frozen=True, slots=True)
class Standpoint:
    """The person's folder and terminal, which decide how things are written."""

    typed: Rewrite = str  # a text with its commands as they have to be typed
    place: Rewrite = str  # an issue's or pull request's place, to open it
    dashboard: str = ""  # its file, if it is one
    begin: str = "ralph cycle"  # what does what a staged cycle shows


@dataclass(frozen=True, slots=True)
class SummarySection:
    """A heading and its lines; `room`: the maximum rows of the lines; `where`: the place of the others."""

    heading: str
    role: str
    lines: Sequence[str]
    room: int
    where: str


def summary(
    report: CycleReport,
    cycle_summary: CycleSummary,
    paint: Paint = lambda text, _role: text,
    at: Standpoint = Standpoint(),
    requests: RequestCounts | None = None,
    verbose: bool = False,
    whole: bool = False,
    past: bool = False,
) -> str:
    """The text. `whole`: nothing is left out for want of rows, and rules are named; `verbose`: so too, with scores.

    `past`: cycles came after it, so what waited then may be done, and is not shown.
    """
    if past:
        cycle_summary = replace(cycle_summary, waiting=())
    if not report.cycle_id and cycle_summary.remarks:  # it did not start
        return paint(at.typed("\n".join(capitalise(safe(one)) for one in cycle_summary.remarks)), "title")
    parts = [paint(shorten(_first(report)), "title")]
    for section in _sections(report, cycle_summary, at, verbose, whole or verbose):
        if section.lines:
            lines = (
                section.lines if whole or verbose else cap_lines(section.lines, section.room, at.typed(section.where))
            )
            parts += ["", paint(section.heading, section.role), *lines]
    if report.staged:
        parts += _texts(cycle_summary.threads, paint)
    if verbose and requests:
        parts += ["", f"Asked: {requests}"]
    following = at.typed("What waits for you now: ralph status") if past else _next(report, cycle_summary, at, verbose)
    return "\n".join([*parts, "", paint(following, "quiet")])


def _first(report: CycleReport) -> str:
    if report.outcome != "done":
        return f"Cycle {report.cycle}: {OUTCOMES[report.outcome]}"
    took = spell(report.finished_at - report.started_at)
    how = ", staged: nothing was changed." if report.staged else f" done in {took}."
    return f"Cycle {report.cycle}{how} {_found(report)}".rstrip()


def _found(report: CycleReport) -> str:
    known = sum(finding.known for finding in report.findings)
    found = count_noun(len(report.findings), "finding")
    if not known:
        return f"{found}." if report.findings else ""
    return f"{found}, {'all' if known == len(report.findings) else known} already handled."


def _sections(
    report: CycleReport, cycle_summary: CycleSummary, at: Standpoint, verbose: bool, whole_account: bool
) -> Sequence[SummarySection]:
    # Rooms, headings and the blank lines before them add up to 37 rows; the first line and the last two make 40.
    # Posts take their rows from the others.
    whole = "ralph cycle --staged -v" if report.staged else f"ralph journal show {report.cycle}"
    public = tuple(_post_lines(cycle_summary.posts, at, report.staged, report.staged or whole_account))
    post_rows = 0 if not public else 7 if report.staged else 5
    done = "Would do" if report.staged else "Done"
    look = looked_at(report)
    if cycle_summary.needs_person:  # a whole account has this heading anyway
        quiet = SummarySection("Looked at", "quiet", fold_lines([look] if look and not whole_account else []), 3, whole)
    else:
        quiet = SummarySection("Nothing needs you", "good", fold_lines([f"looked at {look}"] if look else []), 3, whole)
    waiting = cycle_summary.held if whole_account else [_RULES.sub("", line) for line in cycle_summary.held]
    return (
        SummarySection(done, "good", _done_lines(report, cycle_summary, at), 4 if post_rows else 6, whole),
        quiet,
        SummarySection("Would post" if report.staged else "Posted", "good", public, post_rows, whole),
        SummarySection(
            "Waiting for you", "waits", waiting_blocks(cycle_summary.waiting), 4 if post_rows else 7, "ralph status"
        ),
        SummarySection(
            "Held back",
            "quiet",
            fold_lines(map(at.typed, waiting or _verdicts(report)), 4),
            3 if post_rows else 5,
            whole,
        ),
        SummarySection(
            f"Watched{f', see {at.dashboard}' if at.dashboard else ''}",
            "quiet",
            indent_lines(cycle_summary.watched),
            1 if post_rows else 2,
            at.dashboard or whole,
        ),
        SummarySection("Not looked at", "waits", _unavailable_lines(report), 2 if post_rows else 3, whole),
        SummarySection("Note", "quiet", [f"  {at.typed(safe(one))}" for one in cycle_summary.remarks], 2, whole),
        *(_whole_account(report, cycle_summary, verbose) if whole_account else ()),
    )


def _whole_account(report: CycleReport, cycle_summary: CycleSummary, verbose: bool) -> Iterator[SummarySection]:
    looks = [f"{one.name}: {one.detail or count_noun(one.signals, 'result')}" for one in report.observers]
    new = [one for one in report.findings if not one.known]
    yield SummarySection("Looked at", "quiet", fold_lines(looks), 0, "")
    if not verbose:
        yield SummarySection("New", "quiet", fold_lines(one.title for one in new), 0, "")
        return
    yield SummarySection("New, by score", "quiet", fold_lines(f"{one.score:.2f}  {one.title}" for one in new), 0, "")
    yield SummarySection("Why", "quiet", fold_lines(cycle_summary.why), 0, "")
    yield SummarySection("Name of this cycle", "quiet", fold_lines(filter(None, [report.cycle_id])), 0, "")


def _texts(threads: Sequence[ThreadLine], paint: Paint) -> Iterator[str]:
    """What would be opened, complete: its title, its text for people, its change."""
    for thread in threads:
        yield ""
        yield paint(f"─── {safe(thread.title)}", "title")
        for line in _HIDDEN.sub("", thread.body).strip().splitlines():
            yield f"  {sanitise(line, 'log')}".rstrip()
        if thread.diff:
            yield ""
        for line in thread.diff.splitlines():
            role = {"+": "added", "-": "removed"}.get(line[:1], "quiet")
            yield paint(f"  {sanitise(line, 'log')}".rstrip(), role)


def _post_lines(posts: Sequence[PostLine], at: Standpoint, staged: bool, whole: bool) -> Iterator[str]:
    """Posts to networks: before sending, with each length; `whole`: all of the text, otherwise its beginning."""
    for parts, same in groupby(posts, key=lambda post: post.parts):
        fates = [_fate(post, at, staged) for post in same]
        text = " / ".join(safe(part) for part in (parts if whole else parts[:1]))
        yield from fold_lines([", ".join(fates)])
        yield from wrap_text(text) if whole else [shorten(f"    {text}")]


def _fate(post: PostLine, at: Standpoint, staged: bool) -> str:
    if staged:
        length = f"{post.network} ({', '.join(map(str, post.lengths))} of {post.limit})"
        return f"{length} {at.place(post.url)}".rstrip()
    fate = "" if post.status in ("done", "adopted") else f" {post.status}"
    return f"{post.network}{fate} {at.place(post.url)}".rstrip()


def _unavailable_lines(report: CycleReport) -> list[str]:
    """Failed observers with reasons, or that all is quiet."""
    if report.observers and all(line.status == "skipped" for line in report.observers):
        return fold_lines([f"nothing was looked at: {report.observers[0].detail}"])
    reasons: dict[str, list[str]] = {}
    for one in report.observers:
        if one.status == "unavailable":
            reasons.setdefault(one.detail or "no reason given", []).append(NAMES.get(one.name, one.name))
    failures = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return fold_lines((*failures, *(one for line in report.observers for one in line.unchecked)), 4)


def looked_at(report: CycleReport) -> str:
    """What was observed, if nothing waits for people, as quiet is a result, too; else ""."""
    if report.outcome != "done" or report.missions or any(effect.kind in SHOWN for effect in report.effects):
        return ""
    there = (one for one in report.observers if one.status == "ok" and not one.detail.startswith("no "))
    looks = [f"{one.name}: {re.split('[;,] ', one.detail)[0] or count_noun(one.signals, 'result')}" for one in there]
    return "; ".join(looks)


def _done_lines(report: CycleReport, cycle_summary: CycleSummary, at: Standpoint) -> list[str]:
    """Effects by title, each with its place below."""
    titles = {thread.key: thread.title for thread in cycle_summary.threads}
    subjects = dict(cycle_summary.subjects) if report.staged else {}  # what is done has a number
    numbers = {number: one.title for one in report.missions for number in (one.issue, one.pull_request) if number}
    blocks = []
    for effect in report.effects:
        if is_done(effect):
            number = effect.number
            title = titles.get(effect.key) or numbers.get(number) or subjects.get(effect.key, "")
            action = f"{name_effect(effect).capitalize()}{f' #{number}' if number else ''}"
            place = at.place(effect.url) or ("" if title else effect.key)
            rows = fold_lines([f"{action}: {title}" if title else action])
            blocks.append("\n".join([*rows, *([shorten(f"    {safe(place)}", 160)] if place else [])]))
    return blocks


def is_done(effect: EffectLine) -> bool:
    """Whether it happened (or would) and is visible to people; failed or doubtful ones are reported with a reason."""
    return effect.kind in SHOWN and effect.status not in ("failed", "unknown")


def name_effect(effect: EffectLine) -> str:
    """The effect in words, done or planned: `opened issue`, `open issue`."""
    if effect.status == "staged":
        return PLANNED.get(effect.kind, effect.kind.replace("_", " ").replace("pull", "pull request"))
    return SHOWN.get(effect.kind, effect.kind.replace("_", " "))


def _verdicts(report: CycleReport) -> list[str]:
    stopped = [line for line in report.decisions if line.verdict is not Verdict.ALLOW]
    counted = Counter((line.kind, line.verdict.value, ", ".join(line.rules)) for line in stopped)
    return [f"{count} x {kind}: {verdict} ({rules})" for (kind, verdict, rules), count in counted.items()]


def _next(report: CycleReport, cycle_summary: CycleSummary, at: Standpoint, verbose: bool) -> str:
    if report.staged:
        return at.typed(f"To do it: type {at.begin}") if report.effects else "There is nothing to do now"
    if cycle_summary.paused:
        return at.typed("Paused: nothing is done until ralph resume")
    if report.next_due_at is None:
        return at.typed("Next cycle: whenever you type ralph cycle")
    pause = report.next_due_at - report.finished_at
    why = f" (urgency {report.urgency.value})" if verbose else ""
    if pause.total_seconds() > 0:
        return f"Next cycle: in {spell(pause)}, at {stamp(report.next_due_at)}{why}"
    return f"{at.typed('Next cycle: due now, type ralph cycle')}{why}"
