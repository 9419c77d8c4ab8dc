"""What `ralph backtest` found out as one page of HTML: its pictures and its style are in it, and it loads nothing.

All text comes from the repository or from rules over it: each piece is made harmless and escaped where it is put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ralph_mission.adapters.report.backtest import ORDERS, headline, judged_items, percent, proposal, snippet
from ralph_mission.adapters.report.progress import safe, shorten
from ralph_mission.mission.backtest.judge import (
    BacktestReport,
    ItemFate,
    ItemRecord,
    KindRecord,
    RankingRecord,
    ThreadRecord,
    WeekRecord,
)

WIDTH, HEIGHT = 720, 180  # of a picture, in its own units: it is scaled to the page
MOST_THREADS, MOST_ITEMS = 200, 100  # rows of a table
LONGEST = 160  # characters of a title
STYLE = """
:root{color-scheme:light dark;--fixed:#1a7f37;--stayed:#bc4c00;--other:#8c959f;
--line:#d0d7de;--ink:#1f2328;--ground:#fff}
@media(prefers-color-scheme:dark){:root{--line:#30363d;--ink:#e6edf3;--ground:#0d1117}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:46rem;margin:0 auto;
padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
svg{width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:.3rem .5rem;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:normal}
td.n,th.n{text-align:right}td.t{overflow-wrap:anywhere;min-width:12rem}
.fixed{fill:var(--fixed)}.stayed{fill:var(--stayed)}.other{fill:var(--other)}
b.fixed,b.partly{color:var(--fixed)}b.stayed{color:var(--stayed)}small{color:var(--other)}
pre{border:1px solid var(--line);padding:.7rem;overflow-x:auto}
"""


def page(report: BacktestReport) -> str:
    """The page."""
    name = _text(report.repository)
    parts = (
        f"<h1>Backtest of {name}</h1><p>{_text(headline(report))}</p>",
        _section("Week by week", _weeks(report.weeks), _legend()),
        _section("By kind", _kinds(report.kinds), _kinds_note(report)),
        _section("Ranking", _ranking(report.ranking), _ranking_note(report.ranking)),
        _section("Proposed settings", f"<p>{_text(proposal(report))}</p>", _snippet(report)),
        _section("What would have been opened", *_threads(report.threads)),
        _section("What people fixed without being told", *_items(report.items, ItemFate.FIXED)),
        _section("What stayed", *_items(report.items, ItemFate.STAYED)),
        _section("How it was measured", *(f"<p>{_text(one)}</p>" for one in (*report.remarks, _measured(report)))),
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Backtest of {name}</title><style>{STYLE}</style></head><body>\n{''.join(parts)}</body></html>\n"
    )


def _text(text: str) -> str:
    return escape(shorten(safe(text), 4 * LONGEST))


def _section(title: str, *parts: str) -> str:
    return f"<h2>{title}</h2>{''.join(parts)}\n"


# --- pictures -------------------------------------------------------------------------


def _weeks(weeks: Sequence[WeekRecord]) -> str:
    most = max([1, *(week.found for week in weeks)])
    step = WIDTH / max(len(weeks), 1)
    bars = "".join(_bar(week, number * step, step * 0.8, most) for number, week in enumerate(weeks))
    ends = f"{weeks[0].at:%Y-%m-%d}", f"{weeks[-1].at:%Y-%m-%d}"
    label = f"Things found at each step, at most {most}; a dot for each thread that would have been opened"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 40}" role="img" aria-label="{escape(label)}">{bars}'
        f'<line x1="0" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}" stroke="var(--line)"/>'
        f'<text x="0" y="{HEIGHT + 34}">{ends[0]}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 34}" text-anchor="end">{ends[1]}</text>'
        f'<text x="0" y="12">{most}</text></svg>'
    )


def _bar(week: WeekRecord, x: float, width: float, most: int) -> str:
    told = f"{week.at:%Y-%m-%d}: {week.found} found, {week.fixed} fixed later, {week.threads} threads"
    parts, y = [f"<g><title>{told}</title>"], float(HEIGHT)
    for name, number in (("fixed", week.fixed), ("stayed", week.stayed), ("other", week.other)):
        height = number / most * (HEIGHT - 16)
        y -= height
        if number:
            parts.append(f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>')
    centre = x + width / 2
    parts += [
        f'<circle class="other" cx="{centre:.1f}" cy="{HEIGHT + 8 + 5 * number}" r="2"/>'
        for number in range(min(week.threads, 3))
    ]
    return "".join((*parts, "</g>"))


def _legend() -> str:
    keys = (("fixed", "fixed by people later"), ("stayed", "stayed"), ("other", "too young, or gone with its file"))
    boxes = " ".join(
        f'<svg viewBox="0 0 10 10" style="width:.8em"><rect class="{name}" width="10" height="10"/></svg> {what}'
        for name, what in keys
    )
    return f"<p><small>Things found at each step: {boxes}. A dot is a thread that would have been opened.</small></p>"


def _share(share: float, kind: str = "fixed") -> str:
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" style="height:.6em;min-width:4rem" aria-hidden="true">'
        '<rect width="100" height="10" fill="var(--line)"/>'
        f'<rect class="{kind}" width="{100 * share:.0f}" height="10"/></svg>'
    )


# --- tables ---------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), texts: int = -1) -> str:
    """Cells are HTML already. `numbers` are the columns of numbers, `texts` the one that may be long."""
    kinds = {**dict.fromkeys(numbers, ' class="n"'), texts: ' class="t"'}
    top = "".join(f"<th{kinds.get(place, '')}>{cell}</th>" for place, cell in enumerate(head))
    cells = ("".join(f"<td{kinds.get(place, '')}>{cell}</td>" for place, cell in enumerate(row)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _kinds(kinds: Sequence[KindRecord]) -> str:
    if not kinds:
        return "<p>Nothing was found that could be followed.</p>"
    head = ("kind", "found", "fixed", "stayed", "file gone", "too young", "days", "precision", "")
    rows = (
        (
            _text(one.kind),
            str(one.found),
            str(one.fixed),
            str(one.stayed + one.withdrawn),
            str(one.removed),
            str(one.young),
            "" if one.days is None else f"{one.days:g}",
            percent(one.precision),
            _share(one.precision or 0.0, "stayed" if one.watch_only else "fixed"),
        )
        for one in kinds
    )
    return _table(head, rows, range(1, 8))


def _kinds_note(report: BacktestReport) -> str:
    withdrawn = sum(one.withdrawn for one in report.kinds)
    judged = sum(map(judged_items, report.kinds))
    also = f" {withdrawn} are reported no more although their line stands; they count as stayed." if withdrawn else ""
    return (
        f"<p><small>Precision is the share of what people fixed by {report.until:%Y-%m-%d}, of the {judged} that were "
        f"fixed or stayed. Days: until the fix, at the median. Too young: found in the last {report.ripe_days} days, "
        "or 7 to 30 of builds, issues and pull requests."
        f"{also}</small></p>"
    )


def _ranking(ranking: Sequence[RankingRecord]) -> str:
    if not ranking:
        return "<p>Too little was fixed to compare orders.</p>"
    rows = (
        (_text(ORDERS.get(one.order, one.order)), f"{one.ndcg:.2f}", _share(one.ndcg), f"{one.place:.2f}")
        for one in ranking
    )
    return _table(("order", "nDCG", "", "place"), rows, (1, 3))


def _ranking_note(ranking: Sequence[RankingRecord]) -> str:
    steps = max((one.steps for one in ranking), default=0)
    return (
        "<p><small>How early an order puts what people fixed later, over everything that was there at each of "
        f"{steps} steps. nDCG: 1 is best. Place: 0 is first, 1 last, 0.5 what chance gives.</small></p>"
        if steps
        else ""
    )


def _snippet(report: BacktestReport) -> str:
    proposed = snippet(report)
    return f"<pre>{escape(proposed)}</pre>" if proposed else ""


def _threads(threads: Sequence[ThreadRecord]) -> Iterator[str]:
    rows = (
        (
            f"{one.at:%Y-%m-%d}",
            f"{_text(one.title)}<br><small>{_text(_why(one))}</small>",
            f'<b class="{escape(one.verdict.split()[0])}">{_text(_verdict(one))}</b>',
        )
        for one in threads[:MOST_THREADS]
    )
    yield _table(("opened", "thread", "people"), rows, texts=1) if threads else "<p>Nothing.</p>"
    yield _more(len(threads), MOST_THREADS)


def _why(one: ThreadRecord) -> str:
    action = {"list": "a list", "open-fix": "a pull request", "open-proposal": "a question"}.get(one.action, one.action)
    return f"{action}, {one.kind}: {one.why}"


def _verdict(one: ThreadRecord) -> str:
    if one.verdict == "counted":
        return f"{one.counted} counted, not followed" if one.counted else "not followed"
    return ", ".join(f"{number} {what}" for what, number in one.fates.items())


def _items(items: Sequence[ItemRecord], fate: ItemFate) -> Iterator[str]:
    chosen = [one for one in items if one.fate is fate]
    rows = (
        (
            f"{one.since:%Y-%m-%d}",
            f"{_text(one.what)}<br><small>{_text(_place(one))}</small>",
            f"{one.ended_at:%Y-%m-%d}<br><small>{one.commit[:12]}</small>" if one.ended_at else "",
        )
        for one in chosen[:MOST_ITEMS]
    )
    yield _table(("found", "what", "gone"), rows, texts=1) if chosen else "<p>Nothing.</p>"
    yield _more(len(chosen), MOST_ITEMS)


def _place(one: ItemRecord) -> str:
    return f"{one.kind}, {one.path}:{one.line}" if one.line else f"{one.kind} {one.path}"


def _more(number: int, shown: int) -> str:
    return f"<p><small>And {number - shown} more: ralph backtest --json</small></p>" if number > shown else ""


def _measured(report: BacktestReport) -> str:
    return (
        f"{len(report.weeks)} steps through {report.commits} commits in {report.seconds:.0f} s, with the settings "
        "of today. A thing counts as fixed when its line is gone and its file is not; whether a person did it because "
        "of the fault or by the way, git does not say."
    )
