"""The result of `ralph report` for a repository, as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from markupsafe import Markup

from ralph_mission.adapters.report.html_page import (
    ChartColumn,
    axis,
    column_chart,
    document,
    element,
    figures,
    join,
    legend,
    link,
    meter,
    moment,
    section,
    strip,
    table,
    titled,
)
from ralph_mission.adapters.report.repository_report import (
    CycleFacts,
    LoopFacts,
    MissionMark,
    MissionStory,
    ObserverHealth,
    RepositoryReport,
)
from ralph_mission.mission.lifecycle.waiting import needs_person
from ralph_mission.mission.model.mission import Status, WaitingLine
from ralph_mission.mission.model.proposal import name_findings
from ralph_mission.words import capitalise, count_noun, spell

SHOWN_CYCLES, SHOWN_BACKLOG = 10, 10
WORDS = {
    Status.DISCOVERED: ("warn", "proposed"),
    Status.PLANNED: ("accent", "approved"),
    Status.EXECUTING: ("accent", "in progress"),
    Status.IN_REVIEW: ("warn", "in review"),
    Status.FIXING: ("accent", "being revised"),
    Status.ESCALATED: ("warn", "needs you"),
    Status.PARKED: ("other", "set aside"),
    Status.COMPLETED: ("good", "completed"),
    Status.REJECTED: ("bad", "rejected"),
}
TRIGGERS = {
    "cron": "schedule",
    "manual": "a person, on GitHub",
    "dispatch": "wake",
    "cli": "command line",
    "watch": "ralph watch",
    "person": "a person's answer",
}
STYLE = """
.asks,.story{list-style:none;margin:0;padding:0}
.asks>li,.mission{border-top:1px solid var(--line);padding:.8rem 0}
.asks>li:first-child,.axis+.mission{border-top:0;padding-top:.2rem}.asks>li:last-child{padding-bottom:0}
.ways{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem .8rem;margin:.35rem 0 0}
.ways dt{color:var(--quiet)}.ways dd{margin:0}.ways span{display:inline-block;max-width:100%}
.badge{border:1px solid currentColor;border-radius:99px;padding:.05rem .55rem;font-size:.8rem;white-space:nowrap}
.head{display:flex;justify-content:space-between;gap:.8rem;align-items:baseline}
summary{cursor:pointer;color:var(--quiet);font-size:.875rem;margin-top:.35rem}
.story{margin:.4rem 0 0;font-size:.9rem}.story time,.story small{margin-right:.5rem}
.verdict{display:grid;grid-template-columns:minmax(6rem,12rem) 1fr max-content;gap:.8rem;align-items:baseline}
.verdict .meter{min-width:0}.figures div:first-child dd{color:var(--accent)}
@media(max-width:40rem){.verdict{grid-template-columns:1fr max-content}.verdict .meter{grid-column:span 2;order:1}}
.verdict+.verdict{margin-top:.3rem}
[aria-label=Loops] td:first-child{white-space:nowrap}
.banner{border-left:4px solid var(--warn);padding-left:.8rem}
@media(min-width:1200px){.page{max-width:84rem}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:1rem;align-items:start}
.pair section{margin:0 0 1rem}}
"""


def page(report: RepositoryReport) -> str:
    """The page."""
    return document(
        f"{report.repository}: Ralph report",
        element(
            "header",
            element("p", "Looked after by Ralph", class_="above"),
            element("h1", report.repository),
            *_state(report),
        ),
        figures(_figures(report)),
        _waiting(report),
        _lines("Held back", report.held),
        _missions(report),
        _loops(report.loops),
        _watched(report.watched),
        element(
            "div",
            element("div", _decided(report), _next(report.backlog), _spending(report)),
            _health(report.observers),
            class_="pair",
        ),
        _cycles(report) if report.cycles else None,
        element("footer", element("small", "Made by ralph report at ", moment(report.made_at), " UTC.")),
        style=STYLE,
    )


def _state(report: RepositoryReport) -> Iterator[Markup]:
    parts: list[str | Markup] = [f"Cycle {report.cycle}" if report.cycle else "No cycle has run here yet"]
    if report.last_cycle_at:
        ago = spell(report.made_at - report.last_cycle_at)
        parts += [", ", moment(report.last_cycle_at), f" UTC ({ago} ago)"]
    if report.next_due_at and not report.paused:
        parts += ["; the next one is due at ", moment(report.next_due_at)]
    yield element("p", *parts, ".", class_="quiet")
    if report.paused:
        how = element("code", "ralph resume")
        yield element("p", "Paused: nothing is done until somebody runs ", how, ".", class_="banner")
    if report.remark:
        yield element("p", report.remark, class_="banner")


def _needs_person(report: RepositoryReport) -> bool:
    return needs_person(report.waiting, report.unknown, report.red_checks, report.held)


def _figures(report: RepositoryReport) -> Iterator[tuple[str, str]]:
    waiting = len(report.waiting) + len(report.unknown) + len(report.red_checks)
    if waiting or not _needs_person(report):  # what is held back has its own section and no number
        yield "Waiting for you", str(waiting)
    yield "In progress", f"{report.slots_used} of {report.slots}"
    yield "Completed", str(sum(one.status is Status.COMPLETED for one in report.ended))
    yield "Findings not acted on yet", str(len(report.backlog))
    yield "Spent today", f"${report.usd_today:.2f} of ${report.usd_per_day:.2f}"


# --- what waits, and missions ---------------------------------------------------------


def _waiting(report: RepositoryReport) -> Markup | None:
    urls = {number: one.url for one in report.missions for number in (one.issue, one.pull_request)}
    asks = [element("li", element("h3", titled(f"{capitalise(line)}."))) for line in report.red_checks]
    asks += [_ask(line, urls.get(line.number, "")) for line in report.waiting]
    asks += [_doubt(key) for key in report.unknown]
    if not _needs_person(report):
        return section("Waiting for you", element("p", "Nothing needs you."))
    return section("Waiting for you", element("ul", *asks, class_="asks")) if asks else None


def _ask(line: WaitingLine, url: str) -> Markup:
    number = f"{'pull request' if line.pull else 'issue'} #{line.number}"
    return element(
        "li",
        element("h3", link(titled(line.title), url)),
        element("small", number),
        element("p", capitalise(line.note)) if line.note else None,
        _ways(line.ways),
    )


def _doubt(key: str) -> Markup:
    settle = f"ralph journal resolve {key}"
    return element(
        "li",
        element("h3", "Something may have been sent twice if it were sent again"),
        element("p", "It is unknown whether it arrived. Check, then run one of these."),
        _ways((("it arrived", f"{settle} --sent"), ("it did not", f"{settle} --not-sent"))),
    )


def _ways(ways: Sequence[tuple[str, str]]) -> Markup:
    cells = (
        cell
        for word, command in ways
        for cell in (element("dt", word), element("dd", command if "://" in command else _command(command)))
    )
    return element("dl", *cells, class_="ways")


def _command(command: str) -> Markup:
    """A command that only breaks between words, on any width."""
    words = (element("span", word) for word in command.split(" "))
    return element("code", *(part for word in words for part in (word, " ")))


def _missions(report: RepositoryReport) -> Markup:
    stories = (*report.missions, *report.ended)
    if not stories:
        return section("Missions", element("p", "None yet."))
    first = min((mark.at for one in stories for mark in one.marks), default=report.made_at)
    span = max(report.made_at - first, timedelta(minutes=1))
    keys = (("accent", "Ralph works on it"), ("warn", "a person has to answer"), ("other", "set aside"))
    ends = (("good", "completed"), ("bad", "rejected"))
    return section(
        "Missions",
        axis(f"{first + span * share:{_precision(span)}}" for share in (0, 0.5, 1)),
        *(_mission(one, first, span, report.made_at) for one in stories),
        legend((*keys, *ends)),
        element("p", element("small", "Each change is shown at the cycle that saw it. Times are in UTC.")),
    )


def _precision(span: timedelta) -> str:
    """The time format that makes the two ends of the picture differ."""
    return "%Y-%m-%d" if span > timedelta(days=3) else "%b %d %H:%M" if span > timedelta(hours=1) else "%H:%M:%S"


def _mission(story: MissionStory, first: datetime, span: timedelta, now: datetime) -> Markup:
    colour, word = WORDS[story.status]
    numbers = " and ".join(
        f"{what} #{number}" for what, number in (("issue", story.issue), ("pull request", story.pull_request)) if number
    )
    lines = [element("li", one) for one in story.lines]
    return element(
        "article",
        element(
            "div",
            element("h3", link(titled(story.title), story.url)),
            element("b", story.outcome or word, class_=f"badge {colour}"),
            class_="head",
        ),
        element("small", join(numbers, f": {story.next_step}" if story.next_step else "")),
        strip(_pieces(story.marks, first, span, now)),
        element(
            "details",
            element("summary", count_noun(len(story.marks), "step")),
            element("ol", *(_step(mark) for mark in story.marks), *lines, class_="story"),
        ),
        class_="mission",
    )


def _step(mark: MissionMark) -> Markup:
    return element("li", moment(mark.at), element("b", WORDS[mark.status][1]), f" (cycle {mark.cycle})")


def _pieces(
    marks: Sequence[MissionMark], first: datetime, span: timedelta, now: datetime
) -> Iterator[tuple[str, float, float]]:
    """Each state from the cycle that saw it to the one that saw the next; the end is a point."""
    for place, mark in enumerate(marks):
        start = (mark.at - first) / span
        until = marks[place + 1].at if place + 1 < len(marks) else now
        if mark.status.ended:
            yield WORDS[mark.status][0], min(start, 0.985), min(start, 0.985) + 0.015
        else:
            yield WORDS[mark.status][0], start, (until - first) / span


def _loops(loops: Sequence[LoopFacts]) -> Markup | None:
    """The last loops on this machine."""
    rows = (
        (
            one.run,
            moment(one.began_at) if one.began_at else "",
            titled(one.state),
            str(one.sessions),
            f"{one.stories[0]} of {one.stories[1]}" if one.stories else "",
            f"${one.usd:.2f}" if one.usd is not None else "",
        )
        for one in loops
    )
    head = ("loop", "started (UTC)", "state", "sessions", "stories", "cost")
    return section("Loops", table(head, rows, (3, 5), name="Loops")) if loops else None


def _lines(heading: str, lines: Sequence[str]) -> Markup | None:
    return section(heading, element("ul", *(element("li", titled(line)) for line in lines))) if lines else None


def _watched(lists: Sequence[tuple[str, Sequence[str]]]) -> Markup | None:
    parts = (
        element("li", name, element("ul", *(element("li", titled(line)) for line in lines))) for name, lines in lists
    )
    return section("Watched: nothing to do", element("ul", *parts)) if lists else None


def _next(backlog: Sequence[str]) -> Markup | None:
    if not backlog:
        return None
    more = len(backlog) - SHOWN_BACKLOG
    return section(
        "Seen, and next in line",
        element("ol", *(element("li", titled(title)) for title in backlog[:SHOWN_BACKLOG])),
        element("p", element("small", f"and {more} more")) if more > 0 else None,
    )


# --- what was learned, spent, seen ----------------------------------------------------


def _decided(report: RepositoryReport) -> Markup:
    most = max((one.accepted + one.rejected for one in report.verdicts), default=0)
    rows = [
        element(
            "div",
            element("span", name_findings(one.kind)),
            meter(("good", one.accepted / most), ("bad", one.rejected / most)),
            element("small", f"{one.accepted} accepted, {one.rejected} rejected"),
            class_="verdict",
        )
        for one in report.verdicts
        if most
    ]
    if not rows:
        return section(
            "What people decided", element("p", "Nothing yet. Each approval and rejection changes what is proposed.")
        )
    learned = [element("li", line) for line in report.learned]
    return section(
        "What people decided",
        *rows,
        legend((("good", "accepted"), ("bad", "rejected"))),
        element("h3", "What Ralph learned") if learned else None,
        element("ul", *learned) if learned else None,
    )


def _spending(report: RepositoryReport) -> Markup:
    today = f"${report.usd_today:.2f} of ${report.usd_per_day:.2f} today."
    days = _days(report.cycles)
    total = sum(sum(one.cost_usd for one in cycles) for _, cycles in days)
    if not total:
        since = f" since {days[0][0]}" if days else ""
        return section("Spending", element("p", today), element("p", f"No model costs{since}.", class_="quiet"))
    columns = [
        ChartColumn(f"{day}: ${(cost := sum(one.cost_usd for one in cycles)):.2f}", (("accent", cost),))
        for day, cycles in days
    ]
    highest = max(column.parts[0][1] for column in columns)
    label = (
        f"Dollars spent on models a day, from {days[0][0]} to {days[-1][0]}: ${total:.2f} in all, at most {highest:.2f}"
    )
    chart = column_chart(columns, (days[0][0], days[-1][0]), label, f"${highest:.2f}")
    return section("Spending", element("p", today), chart)


def _days(cycles: Sequence[CycleFacts]) -> list[tuple[str, list[CycleFacts]]]:
    """The cycles by day, oldest first."""
    return [(day, list(some)) for day, some in groupby(reversed(cycles), lambda one: f"{one.started_at:%Y-%m-%d}")]


def _health(observers: Sequence[ObserverHealth]) -> Markup:
    blind = [one for one in observers if one.status == "unavailable"]
    sentences = [f"{count_noun(len(blind), 'observer')} failed."] if blind else []
    sentences += (
        [f"Not checked: {'; '.join(missed)}."]
        if (missed := [what for one in observers for what in one.unchecked])
        else []
    )
    rows = (
        (
            one.name,
            element(
                "b", one.status, class_={"ok": "good", "unavailable": "warn", "partly": "warn"}.get(one.status, "other")
            ),
            titled(one.detail),
        )
        for one in sorted(observers, key=lambda one: one.status != "unavailable")
    )
    return section(
        "Health",
        element(
            "p",
            titled(" ".join(sentences)) or "All observers responded." if observers else "Nothing was looked at yet.",
        ),
        table(("observer", "state", "what it saw"), rows, texts=2, name="Observers") if observers else None,
    )


def _lateness(one: CycleFacts) -> str:
    """The delay of a cycle due by a clock or a wake; typed ones have none."""
    if one.late is None or one.trigger in ("cli", "manual", "person"):
        return ""
    return f", {spell(timedelta(seconds=one.late))} late" if one.late else ", on time"


def _cycles(report: RepositoryReport) -> Markup:
    days = _days(report.cycles)
    rows = (
        (
            str(one.cycle),
            moment(one.started_at),
            f"{TRIGGERS.get(one.trigger, one.trigger)}{_lateness(one)}",
            spell(timedelta(seconds=one.seconds)),
            str(one.found),
            str(one.done),
            one.urgency if one.outcome == "done" else element("b", one.outcome, class_="warn"),
        )
        for one in report.cycles[:SHOWN_CYCLES]
    )
    columns = [ChartColumn(f"{day}: {count_noun(len(some), 'cycle')}", (("accent", len(some)),)) for day, some in days]
    most = max((len(some) for _, some in days), default=0)
    label = f"Cycles a day, at most {most}"
    return section(
        "Cycles and their triggers",
        column_chart(columns, (days[0][0], days[-1][0]), label, str(most)) if len(days) > 1 else None,
        table(
            ("cycle", "started (UTC)", "trigger", "took", "new", "done", "urgency"),
            rows,
            (0, 3, 4, 5),
            name="Cycles",
        ),
        element(
            "p",
            element(
                "small", "New: findings not handled before. Done: issues and pull requests opened, merged, answered."
            ),
        ),
    )
