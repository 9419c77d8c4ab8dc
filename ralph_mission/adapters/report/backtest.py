"""The result of `ralph backtest`, in a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from ralph_mission.adapters.report.progress import safe, shorten
from ralph_mission.mission.backtest.judge import FEWEST, FILES, WORTH, BacktestReport, KindRecord, RankingRecord
from ralph_mission.words import count_noun

SHOWN = 10  # threads named in a terminal
ORDERS = {"ranking": "Ralph's ranking", "chronological": "oldest first", "static": "by kind alone"}


def to_document(report: BacktestReport) -> dict[str, Any]:
    """The report as plain JSON values; times in UTC with `Z`."""
    document: dict[str, Any] = _adapter().dump_python(report, mode="json")
    return document


@cache
def _adapter() -> TypeAdapter[BacktestReport]:
    return TypeAdapter(BacktestReport)


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
        *_kinds(report.kinds),
        *_ranking(report.ranking),
        *_threads(report),
        proposal(report),
        *(f"  {line}" for line in snippet(report).splitlines()),
        "",
        *report.remarks,
    ]


def _kinds(kinds: Sequence[KindRecord]) -> Iterator[str]:
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


def _ranking(ranking: Sequence[RankingRecord]) -> Iterator[str]:
    if not ranking:
        return
    yield "How early each ranking lists what people fixed (score: 1 is best; mean place: 0 is first, 0.5 is chance):"
    for one in ranking:
        yield f"  {ORDERS.get(one.order, one.order):<16} score {one.ndcg:.2f}, mean place {one.place:.2f}"
    yield ""


def _threads(report: BacktestReport) -> Iterator[str]:
    for one in report.threads[:SHOWN]:
        yield shorten(f"{one.at:%Y-%m-%d} {one.verdict}: {safe(one.title)}")
    if len(report.threads) > SHOWN:
        yield f"and {len(report.threads) - SHOWN} more, on the page"
    if report.threads:
        yield ""
