"""A fleet as an HTML page: the same as the control repository's issue, with a table of all repositories."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from ralph_mission.adapters.report.fleet import ANYBODY, ASKS, count_asks, how, next_look, repositories
from ralph_mission.adapters.report.html_page import (
    document,
    element,
    figures,
    join,
    legend,
    link,
    meter,
    moment,
    section,
    table,
    titled,
)
from ralph_mission.mission.fleet.plan import FleetAsk, FleetOverview, FleetRow, FleetStanding
from ralph_mission.mission.model.mission import Acceptance
from ralph_mission.mission.model.proposal import name_findings

MOST_ROWS, MOST_LINES = 10_000, 200
COLOURS = {
    FleetStanding.FAILING: "bad",
    FleetStanding.LATE: "warn",
    FleetStanding.DUE: "accent",
    FleetStanding.NEW: "accent",
    FleetStanding.ON_TIME: "good",
    FleetStanding.PAUSED: "other",
}
STYLE = """
.asks{margin:.3rem 0 1rem;padding-left:1.2rem}
time,.fleet b{white-space:nowrap}
@media(max-width:560px){.fleet thead{display:none}
.fleet tr{display:flex;flex-wrap:wrap;gap:0 .8rem;border-bottom:1px solid var(--line);padding:.5rem 0}
.fleet td:nth-child(1){flex:1 0 65%}
.fleet tbody tr:last-child{border-bottom:0}.fleet td{border:0;padding:.1rem 0}.fleet td.t{min-width:0}
.fleet td:nth-child(n+3){color:var(--quiet)}.fleet td:empty{display:none}
.fleet td:nth-child(4)::before{content:"open missions: "}.fleet td:nth-child(5)::before{content:"waiting: "}
.fleet td:nth-child(6)::before{content:"done: "}.fleet td:nth-child(7)::before{content:"spent today: "}}
"""


def page(overview: FleetOverview) -> str:
    """The page."""
    date = element("p", "As of ", moment(overview.made_at), " UTC.", class_="quiet")
    return document(
        f"Ralph: {repositories(len(overview.rows))}",
        element("header", element("h1", f"Ralph looks after {repositories(len(overview.rows))}"), date),
        figures(_figures(overview)),
        _standings(overview),
        section("Waiting for people", *_waiting(overview)),
        _failing(overview),
        _table(overview),
        _done(overview),
        _verdicts(overview),
        style=STYLE,
    )


def _figures(overview: FleetOverview) -> Iterator[tuple[str, str]]:
    limit = f", of ${overview.usd_limit:.0f}" if overview.usd_limit is not None else ""
    yield "Waiting for people", str(count_asks(overview))
    yield "Due", str(sum(row.due for row in overview.rows))
    yield "Late", str(overview.count(FleetStanding.LATE))
    yield "Failing", str(overview.count(FleetStanding.FAILING))
    yield "Done this week", str(len(overview.results))
    yield f"Spent today{limit}", f"${overview.spent_usd:.2f}"


def _standings(overview: FleetOverview) -> Markup:
    counts = [(one, overview.count(one)) for one in FleetStanding if overview.count(one)]
    total = max(1, len(overview.rows))
    merged: dict[str, float] = {}
    for one, number in counts:
        merged[COLOURS[one]] = merged.get(COLOURS[one], 0.0) + number / total
    keys = ((COLOURS[one], f"{one} {number}") for one, number in counts)
    return join(meter(*merged.items()), legend(keys))


def _waiting(overview: FleetOverview) -> Iterator[Markup]:
    for who, asks in overview.people():
        yield element("h3", who or ANYBODY, " ", element("small", str(len(asks))))
        items = [element("li", _ask(one, overview)) for one in asks[:MOST_LINES]]
        yield element("ul", *items, _more(len(asks), "li"), class_="asks")
    if not overview.asks:
        yield element("p", "Nothing.")


def _ask(one: FleetAsk, overview: FleetOverview) -> Markup:
    number = link(f"#{one.number}", overview.address(one.repository, one.number)) if one.number else ""
    way = "" if overview.server else element("code", how(one))
    where = element("div", element("small", one.repository, " ", way))
    return join(f"{ASKS[one.what].capitalize()}: ", titled(one.title), " ", number, where)


def _failing(overview: FleetOverview) -> Markup | None:
    rows = [row for row in overview.rows if row.standing is FleetStanding.FAILING]
    if not rows:
        return None
    cells = ((_named(row, overview), row.note) for row in rows[:MOST_LINES])
    return section("Failing", table(("repository", "why"), cells, texts=1), _more(len(rows), "p"))


def _table(overview: FleetOverview) -> Markup:
    head = ("repository", "state", "next cycle", "open missions", "waiting", "done this week", "spent today")
    rows = (_row(row, overview) for row in overview.rows[:MOST_ROWS])
    whole = element("div", table(head, rows, (3, 4, 5, 6), 0, "All repositories"), class_="fleet")
    return section("Repositories", whole)


def _row(row: FleetRow, overview: FleetOverview) -> tuple[Markup | str, ...]:
    numbers = (str(number) if number else "" for number in (row.missions, row.waiting, row.done))
    spent = f"${row.spent_usd:.2f}" if row.spent_usd else ""
    state = element("b", row.standing, class_=COLOURS[row.standing], title=row.note or None)
    return (_named(row, overview), state, next_look(row), *numbers, spent)


def _done(overview: FleetOverview) -> Markup | None:
    if not overview.results:
        return None
    rows = (
        (element("time", one.date), join(titled(one.title), " ", element("small", one.repository)), one.outcome)
        for one in overview.results[:MOST_LINES]
    )
    return section(
        "Done this week", table(("date", "mission", "outcome"), rows, texts=1), _more(len(overview.results), "p")
    )


def _verdicts(overview: FleetOverview) -> Markup | None:
    if not overview.verdicts:
        return None
    note = "A new repository begins with these as a prior that weighs two verdicts at most; it permits nothing."
    judged = sorted(overview.verdicts.items(), key=lambda pair: (-pair[1].accepted - pair[1].rejected, pair[0]))
    rows = (
        (name_findings(kind), str(one.accepted), str(one.rejected), _share(one))
        for kind, one in judged[:MOST_LINES]
        if one.accepted + one.rejected
    )
    return section(
        "What people decided",
        table(("kind", "accepted", "rejected", ""), rows, (1, 2)),
        element("p", element("small", note)),
    )


def _share(acceptance: Acceptance) -> Markup:
    share = acceptance.accepted / (acceptance.accepted + acceptance.rejected)
    return meter(("good", share)) if share else meter()


def _named(row: FleetRow, overview: FleetOverview) -> Markup:
    return link(row.name, overview.address(row.name))


def _more(number: int, tag: str) -> Markup | None:
    return element(tag, f"And {number - MOST_LINES} more.") if number > MOST_LINES else None
