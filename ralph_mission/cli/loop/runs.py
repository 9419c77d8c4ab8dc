"""What runs here as people see it: the list in `ralph status`, the rows and lines of `ralph ui`, and how a run is
resumed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.cli.spelling import spell, type_commands
from ralph_mission.words import stamp

if TYPE_CHECKING:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.loop.live import LiveRecord
    from ralph_mission.loop.model.spec import HoldOrder, RunEvent

LAST = 2  # lines of an agent's output, in the list
LONGEST_DIFF = 200_000  # characters
COLUMNS = ("run", "state", "sessions", "stories", "USD", "what it does")


def event_line(event: RunEvent) -> str:
    """One event for people: when, whose, what; "" of what says nothing by itself."""
    when = f"{event.at:%H:%M:%S} " if event.at else ""
    if event.kind == "usage":
        return ""
    words = event.text or ("resumed" if event.kind == "held" else "")
    sign = {"tool": "    $ ", "text": "    ", "output": "  = ", "note": "  "}.get(event.kind, "")
    return "\n".join(f"{when}{sign}{line}" for line in words.splitlines())


def run_cells(record: LiveRecord) -> tuple[str, ...]:
    """A run in the interfaces' list, by `COLUMNS`."""
    stories = f"{record.stories[0]}/{record.stories[1]}" if record.stories else ""
    cost = "" if record.usd is None else f"{record.usd:.2f}"
    return record.id, record.state, str(record.sessions), stories, cost, record.doing.partition("\n")[0]


def describe_commits(git: Git, record: LiveRecord) -> str:
    """What was committed here since the run began."""
    log = git.try_text("log", "-p", "--stat", f"--since={record.began}")
    return log[:LONGEST_DIFF] or "nothing was committed since it began"


def describe_runs(repo: Path, home: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """All that runs, waits or was killed here, as documents and as lines."""
    from ralph_mission.adapters.storage.loop import live

    known = live.list_runs(home)
    newest = {one.kind: one.id for one in known if one.kind != "run" or one.run or one.state != "ended"}
    listed = [one for one in known if one.alive or (one.state == "killed" and newest[one.kind] == one.id)]
    documents = [{**asdict(one), "state": one.state} for one in listed]
    lines = [
        line
        for one in listed
        for line in _lines(one, live.last_words(home, one.id, LAST), repo, live.read_order(home / live.FOLDER / one.id))
    ]
    rows = ["Runs here", *lines] if lines else []
    over = [one for one in known if one.kind == "run" and one.state == "ended"]
    ended = [one for one in over if one.run] or over  # one that was refused before its loop began is no last loop
    if ended and not any(one.kind == "run" for one in listed):
        rows += ["Last loop", *_last(ended[-1], repo)]
    return documents, rows


def is_resumable(record: LiveRecord) -> bool:
    """Whether a command continues an ended run: not if it was cancelled, refused before its loop began, or begun by a
    Python program."""
    return record.run != "" and record.command != "" and not record.doing.startswith("cancel")


def resume_command(record: LiveRecord, repo: Path) -> str:
    """How a run is resumed, as it was begun: with twice the limit that it reached."""
    more = _raise_limit(record)
    words = shlex.split(record.command)
    end = words.index("--") if "--" in words else len(words)
    before, options = iter(words[:end]), list[str]()
    for word in before:
        name, given, _ = word.partition("=")
        if name in ("--repo", *more[:1]):
            if not given:
                next(before, "")  # its value
        elif word not in ("--continue", "--detach"):
            options.append(word)
    command = spell(f"ralph {shlex.join([*options, '--continue', *more])}", repo)
    return f"{command} {shlex.join(words[end:])}".rstrip()


def _raise_limit(record: LiveRecord) -> list[str]:
    if record.doing.startswith("iterations"):
        return ["--max-iterations", str(2 * record.sessions)]
    if found := re.match(r"runtime: (\d+) s$", record.doing):
        return ["--max-runtime", str(2 * max(1, int(found[1])))]
    if found := re.match(r"cost: \$(\d+\.\d\d) of ", record.doing):
        return ["--max-cost", f"{2 * max(0.01, float(found[1])):.2f}"]
    return []


def _last(record: LiveRecord, repo: Path) -> Iterator[str]:
    from ralph_mission.adapters.report.progress import shorten

    ended = stamp(datetime.fromisoformat(record.since)) if record.since else ""
    yield shorten(f"  {record.id}, ended {ended}: {record.doing}")
    if record.code and is_resumable(record):
        yield f"    continue: {resume_command(record, repo)}"


def _lines(record: LiveRecord, last: Sequence[str], repo: Path, order: HoldOrder = "") -> Iterator[str]:
    from ralph_mission.adapters.report.loop_progress import clock
    from ralph_mission.adapters.report.progress import indent_lines, shorten

    since = datetime.fromisoformat(record.since or record.began)
    took = f"for {clock((datetime.now(UTC) - since).total_seconds())}"
    stories = f"{record.stories[0]}/{record.stories[1]} stories" if record.stories else ""
    cost = f"${record.usd:.2f}" if record.usd is not None else ""
    sessions = f"{record.sessions} session{'s'[: record.sessions != 1]}" if record.sessions else ""
    counted = ", ".join(filter(None, (sessions, stories, cost)))
    if record.state == "killed":
        yield shorten(f"  {record.id} ended without a report: {record.doing}")
        how = spell(f"ralph {record.kind}", repo)
        if record.kind == "run":
            how = resume_command(record, repo) if record.command else ""
        if words := "; ".join(filter(None, (counted, how and f"go on: {how}"))):
            yield f"    {words}"
        return
    doing = f"PAUSED (ralph resume {record.id}), {record.doing}" if record.paused else record.doing
    yield shorten(type_commands(f"  {record.id} {doing or 'begins'}", repo))
    soon = {"pause": "pauses at its next safe point", "stop": "stops at its next safe point"}.get(order, "")
    yield f"    {', '.join(filter(None, (took, counted, '' if record.paused else soon)))}"
    if not record.paused:
        yield from (f"  {line}" for line in indent_lines(last))
