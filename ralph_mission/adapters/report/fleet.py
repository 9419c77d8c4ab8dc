"""A fleet on one page, as Markdown for an issue: who is waited for, failures, results, and all repositories.

Titles are in code spans that they cannot leave. This only needs the standard library, so that a workflow's gate can
write it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ralph_mission.mission.fleet.plan import FleetAsk, FleetOverview, FleetResult, FleetRow, FleetStanding
from ralph_mission.safety.text import inline
from ralph_mission.words import count_noun, spell, stamp

LONGEST = 60_000  # characters: GitHub takes 65,536
SHOWN = 20  # lines per person, of failures, and of results
TITLE = 100  # characters
ASKS = {"review": "review", "answer": "answer", "decide": "decide about", "read": "read"}
ANYBODY = "Anyone who may decide"
HEAD = (
    "| Repository | | Next cycle | Missions | Waiting | Done | Spent today |",
    "|---|---|---|--:|--:|--:|--:|",
)


def fleet_page(overview: FleetOverview) -> str:
    """The page; a part that does not fit is cut, with a note."""
    parts = [
        [headline(overview)],
        _section("Waiting for people", _fit(_waiting(overview), LONGEST // 2), "Nothing."),
        _section("Failing", _fit(_failing(overview), LONGEST // 8)),
        _section("Done this week", _fit(_done(overview), LONGEST // 8)),
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part)
    rows = _fit(_rows(overview), LONGEST - len(text), "\nAnd {} more repositories.")
    return "\n".join([text, "", "## Repositories", "", *HEAD, *rows]) + "\n"


def _fit(lines: Iterable[str], space: int, more: str = "- and {} more lines") -> list[str]:
    """The lines that fit into so many characters, and the number that do not."""
    every = list(lines)
    for place, line in enumerate(every):
        space -= len(line) + 1
        if space < 0:
            return [*every[:place], more.format(len(every) - place)]
    return every


def headline(overview: FleetOverview) -> str:
    """The fleet in one sentence."""
    late, failing = overview.count(FleetStanding.LATE), overview.count(FleetStanding.FAILING)
    due = sum(row.due for row in overview.rows)
    limit = f" of ${overview.usd_limit:.2f}" if overview.usd_limit is not None else ""
    return (
        f"{repositories(len(overview.rows))}: {due} due, {late} of them late; {failing} failing. "
        f"{count_noun(count_asks(overview), 'thing')} waiting for people; ${overview.spent_usd:.2f}{limit} spent today."
    )


def repositories(number: int) -> str:
    """`1 repository`, `2 repositories`."""
    return f"{number} repositor{'y' if number == 1 else 'ies'}"


def count_asks(overview: FleetOverview) -> int:
    """Items that wait for people: one that waits for two people counts once."""
    return sum(row.waiting for row in overview.rows)


def next_look(row: FleetRow) -> str:
    """The next check of a repository, or how late it is."""
    if row.standing is FleetStanding.FAILING or row.standing is FleetStanding.PAUSED:
        return ""
    if row.standing is FleetStanding.NEW:
        return row.note or "its first"
    if row.standing is FleetStanding.LATE:
        return f"{spell(row.late)} late"
    if row.standing is FleetStanding.DUE:
        return "now"
    return stamp(row.next_due_at) if row.next_due_at else ""


def how(one: FleetAsk) -> str:
    """The command for an issue or pull request without a URL."""
    return f"ralph {'pr' if one.pull else 'issue'} show {one.number} --repo {shlex.quote(one.repository)}"


def _section(title: str, lines: Iterable[str], nothing: str = "") -> list[str]:
    content = list(lines) or ([nothing] if nothing else [])
    return [f"## {title}", "", *content] if content else []


def _waiting(overview: FleetOverview) -> Iterator[str]:
    for who, asks in overview.people():
        yield f"- **{f'{inline(who, 40)}' if who else ANYBODY}** ({len(asks)})"
        yield from _cut((f"  - {_ask(one, overview)}" for one in asks), len(asks), "  ")


def _ask(one: FleetAsk, overview: FleetOverview) -> str:
    number = _linked(f"#{one.number}", overview.address(one.repository, one.number)) if one.number else ""
    way = "" if overview.server else f" ({inline(how(one))})"
    return f"{_named(one.repository, overview)}: {ASKS[one.what]} {inline(one.title, TITLE)} {number}{way}"


def _failing(overview: FleetOverview) -> Iterator[str]:
    rows = [row for row in overview.rows if row.standing is FleetStanding.FAILING]
    yield from _cut((f"- {_named(row.name, overview)}: {inline(row.note)}" for row in rows), len(rows))


def _done(overview: FleetOverview) -> Iterator[str]:
    lines = (_result(one, overview) for one in overview.results)
    yield from _cut(lines, len(overview.results))


def _result(one: FleetResult, overview: FleetOverview) -> str:
    return f"- {_named(one.repository, overview)}: {inline(one.title, TITLE)}, {inline(one.outcome, TITLE)}"


def _rows(overview: FleetOverview) -> Iterator[str]:
    for row in overview.rows:
        cells = (
            _named(row.name, overview),
            row.standing,
            next_look(row),
            str(row.missions or ""),
            str(row.waiting or ""),
            str(row.done or ""),
            f"${row.spent_usd:.2f}" if row.spent_usd else "",
        )
        yield f"| {' | '.join(cells)} |"


def _cut(lines: Iterable[str], number: int, indent: str = "") -> Iterator[str]:
    for place, line in enumerate(lines):
        if place == SHOWN:
            yield f"{indent}- and {number - SHOWN} more"
            return
        yield line


def _named(repository: str, overview: FleetOverview) -> str:
    return _linked(inline(repository).replace("|", "\\|"), overview.address(repository))


def _linked(text: str, address: str) -> str:
    return f"[{text}]({address})" if address else text
