"""The result of `ralph backtest`: in a terminal, as JSON, and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from ralph_mission.adapters.report.html_page import (
    ChartColumn,
    column_chart,
    day,
    document,
    element,
    join,
    legend,
    meter,
    section,
    table,
)
from ralph_mission.adapters.report.progress import safe, shorten
from ralph_mission.mission.backtest.judge import (
    FEWEST,
    FILES,
    WORTH,
    BacktestReport,
    ItemFate,
    ItemRecord,
    KindRecord,
    RankingRecord,
    ThreadRecord,
    WeekRecord,
)
from ralph_mission.words import count_noun

SHOWN = 10  # threads named in a terminal
ORDERS = {"ranking": "Ralph's ranking", "chronological": "oldest first", "static": "by kind alone"}
MOST_THREADS, MOST_ITEMS = 200, 100  # rows of a table
COLOURS = {"fixed": "good", "partly": "good", "stayed": "warn"}


def headline(report: BacktestReport) -> str:
    """The result in one sentence."""
    fixed = sum(record.fixed for record in report.kinds)
    judged = sum(judged_items(record) for record in report.kinds)
    found = sum(record.found for record in report.kinds)
    some = f"all {judged}" if fixed == judged > 1 else str(fixed)
    finding = count_noun(found, "finding")
    sentence = f"Of {finding}, {judged} can be judged; people later fixed {some} on their own."
    return (
        f"From {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d} ({count_noun(report.commits, 'commit')}) Ralph would "
        f"have opened {count_threads(len(report.threads))}, {report.threads_a_week:g} a week. "
        + (sentence if judged else "None of its findings can be judged.")
    )


def judged_items(record: KindRecord) -> int:
    """The number of items behind a kind's precision."""
    return record.fixed + record.stayed + record.withdrawn


def count_threads(number: int) -> str:
    """`1 issue or pull request`, `2 issues or pull requests`."""
    return f"{number} issue or pull request" if number == 1 else f"{number} issues or pull requests"


def precision(record: KindRecord) -> str:
    """A kind's precision; of too few findings `2 of 3`, of none a dash."""
    judged = judged_items(record)
    if record.precision is None or not judged:
        return "-"
    return f"{record.precision:.0%}" if judged >= FEWEST else f"{record.fixed} of {judged}"


def snippet(report: BacktestReport) -> str:
    """The proposed settings; "" if the present ones are right."""
    if not report.watch_only:
        return ""
    return f"thinker:\n  watch_only: [{', '.join(report.watch_only)}]\n"


def proposal(report: BacktestReport) -> str:
    """The reason for proposing settings, or none."""
    if report.watch_only:
        return f"People fixed less than {WORTH:.0%} of these kinds. To have them only counted, put this in ralph.yml:"
    if not any(judged_items(record) >= FEWEST for record in report.kinds):
        return f"No change to ralph.yml is suggested: no kind has {FEWEST} judged findings yet."
    return (
        "No change to ralph.yml is suggested: people fixed at least "
        f"{WORTH:.0%} of each kind with {FEWEST} judged findings in {FILES} files."
    )


def lines(report: BacktestReport) -> list[str]:
    """The report for a terminal."""
    return [
        headline(report),
        "",
        *_kind_lines(report.kinds),
        *_ranking_lines(report.ranking),
        *_thread_lines(report),
        proposal(report),
        *(f"  {line}" for line in snippet(report).splitlines()),
        "",
        *report.remarks,
    ]


def _kind_lines(kinds: Sequence[KindRecord]) -> Iterator[str]:
    if not kinds:
        return
    yield f"{'kind':<14} {'found':>6} {'fixed':>6} {'stayed':>7} {'file gone':>10} {'too young':>10} {'precision':>10}"
    for one in kinds:
        stayed = one.stayed + one.withdrawn
        yield (
            f"{safe(one.kind):<14} {one.found:>6} {one.fixed:>6} {stayed:>7} {one.removed:>10} {one.young:>10} "
            f"{precision(one):>10}"
        )
    yield ""


def _ranking_lines(ranking: Sequence[RankingRecord]) -> Iterator[str]:
    if not ranking:
        return
    yield "How early each ranking lists what people fixed (score: 1 is best; mean place: 0 is first, 0.5 is chance):"
    for one in ranking:
        yield f"  {ORDERS.get(one.order, one.order):<16} score {one.ndcg:.2f}, mean place {one.place:.2f}"
    yield ""


def _thread_lines(report: BacktestReport) -> Iterator[str]:
    for one in report.threads[:SHOWN]:
        yield shorten(f"{one.at:%Y-%m-%d} {one.verdict}: {safe(one.title)}")
    if len(report.threads) > SHOWN:
        yield f"and {len(report.threads) - SHOWN} more, on the page"
    if report.threads:
        yield ""


def page(report: BacktestReport) -> str:
    """The page."""
    title = f"Backtest of {report.repository}"
    return document(
        title,
        element("h1", title),
        element("p", headline(report)),
        section("Step by step", _weeks(report.weeks), _legend()),
        section("By kind", _kinds(report.kinds), _kinds_note(report)),
        section("Ranking", _ranking(report.ranking), _ranking_note(report.ranking)),
        section("Proposed settings", element("p", proposal(report)), _snippet(report)),
        section("What would have been opened", *_threads(report.threads)),
        *(section(name, *_items(report.items, fate, name)) for fate, name in SHOWN_FATES),
        section("How it was measured", *(element("p", one) for one in (*report.remarks, _measured(report)))),
    )


def _small(*children: str | Markup) -> Markup:
    return element("p", element("small", *children))


# --- pictures -------------------------------------------------------------------------


def _weeks(weeks: Sequence[WeekRecord]) -> Markup:
    most = max([1, *(week.found for week in weeks)])
    columns = [
        ChartColumn(
            f"{week.at:%Y-%m-%d}: {week.found} found, {week.fixed} fixed later, {week.threads} opened",
            (("good", week.fixed), ("warn", week.stayed), ("other", week.other)),
            min(week.threads, 3),
        )
        for week in weeks
    ]
    label = (
        f"Things found at each step, at most {most}; a dot for each issue or pull request that would have been opened"
    )
    return column_chart(columns, (f"{weeks[0].at:%Y-%m-%d}", f"{weeks[-1].at:%Y-%m-%d}"), label, str(most))


def _legend() -> Markup:
    other = "too young to tell (90 days), or gone with its file."
    keys = (("good", "fixed by people later"), ("warn", "stayed"), ("other", other))
    return legend(keys, "Things found at each step: ", "A dot is an issue or pull request that would have been opened.")


# --- tables ---------------------------------------------------------------------------


def _kinds(kinds: Sequence[KindRecord]) -> Markup:
    if not kinds:
        return element("p", "Nothing was found that could be followed.")
    head = ("kind", "found", "fixed", "stayed", "file gone", "too young", "days", "precision", "")
    rows = (
        (
            one.kind,
            str(one.found),
            str(one.fixed),
            str(one.stayed + one.withdrawn),
            str(one.removed),
            str(one.young),
            "" if one.days is None else f"{one.days:g}",
            precision(one),
            meter(("warn" if one.watch_only else "good", one.precision or 0.0)) if judged_items(one) >= FEWEST else "",
        )
        for one in kinds
    )
    return table(head, rows, range(1, 8), name="By kind")


def _kinds_note(report: BacktestReport) -> Markup:
    withdrawn = sum(one.withdrawn for one in report.kinds)
    judged = sum(map(judged_items, report.kinds))
    also = (
        f" {withdrawn} are no longer reported, although their line is still there; they count as stayed."
        if withdrawn
        else ""
    )
    return _small(
        f"Precision: of the {judged} that were fixed or stayed, the share fixed by {report.until:%Y-%m-%d}; a bar from "
        f"{FEWEST} findings on. Days: median time to the fix. Too young: found in the last {report.ripe_days} days, "
        "or 7 to 30 for builds, issues and pull requests."
        f"{also}"
    )


def _ranking(ranking: Sequence[RankingRecord]) -> Markup:
    if not ranking:
        return element("p", "Too few findings were fixed to compare rankings.")
    rows = (
        (ORDERS.get(one.order, one.order), f"{one.ndcg:.2f}", meter(("good", one.ndcg)), f"{one.place:.2f}")
        for one in ranking
    )
    return table(("ranking", "score", "", "mean place"), rows, (1, 3), name="Ranking")


def _ranking_note(ranking: Sequence[RankingRecord]) -> Markup | None:
    steps = max((one.steps for one in ranking), default=0)
    return (
        _small(
            "How early a ranking puts what people fixed later, among everything found, in "
            f"{count_noun(steps, 'step')}. Score (nDCG): 1 is best. Mean place: 0 is first, 1 is last, 0.5 is chance."
        )
        if steps
        else None
    )


def _snippet(report: BacktestReport) -> Markup | None:
    proposed = snippet(report)
    return element("pre", proposed) if proposed else None


def _threads(threads: Sequence[ThreadRecord]) -> Iterator[Markup | None]:
    rows = (
        (
            day(one.at),
            join(one.title, Markup("<br>"), element("small", _why(one))),
            element("b", _verdict(one), class_=COLOURS.get(one.verdict.split()[0], "other")),
        )
        for one in threads[:MOST_THREADS]
    )
    head = ("opened", "issue or pull request", "people")
    yield table(head, rows, texts=1, name="What would have been opened") if threads else element("p", "Nothing.")
    yield _more(len(threads), MOST_THREADS)


def _why(one: ThreadRecord) -> str:
    action = {"list": "a list", "open-fix": "a pull request", "open-proposal": "a question"}.get(one.action, one.action)
    return f"{action}, {one.kind}: {one.why}"


def _verdict(one: ThreadRecord) -> str:
    if one.verdict == "counted":
        return f"{one.counted} counted, not followed" if one.counted else "not followed"
    return ", ".join(f"{number} {what}" for what, number in one.fates.items())


SHOWN_FATES = ((ItemFate.FIXED, "What people fixed on their own"), (ItemFate.STAYED, "What stayed"))


def _items(items: Sequence[ItemRecord], fate: ItemFate, name: str) -> Iterator[Markup | None]:
    chosen = [one for one in items if one.fate is fate]
    rows = (
        (
            day(one.since),
            join(one.what, Markup("<br>"), element("small", _place(one))),
            join(day(one.ended_at), Markup("<br>"), element("small", one.commit[:12])) if one.ended_at else "",
        )
        for one in chosen[:MOST_ITEMS]
    )
    yield table(("found", "what", "gone"), rows, texts=1, name=name) if chosen else element("p", "Nothing.")
    yield _more(len(chosen), MOST_ITEMS)


def _place(one: ItemRecord) -> str:
    return f"{one.kind}, {one.path}:{one.line}" if one.line else f"{one.kind} {one.path}"


def _more(number: int, listed: int) -> Markup | None:
    return _small(f"And {number - listed} more: ralph backtest --json") if number > listed else None


def _measured(report: BacktestReport) -> str:
    return (
        f"{len(report.weeks)} steps through {report.commits} commits in {report.seconds:.0f} s, with today's settings. "
        "A finding counts as fixed if its line is gone and its file is not; git does not say whether the fix was "
        "deliberate or incidental. A finding that several issues or pull requests name counts in each of them."
    )
