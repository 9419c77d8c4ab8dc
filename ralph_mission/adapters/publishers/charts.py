"""The chart of a watched value: its data, its description, and its picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from math import isfinite

from ralph_mission.mission.model.forge import Chart
from ralph_mission.mission.model.mission import Signal
from ralph_mission.mission.publishing.texts import clean_fact, label, thousands
from ralph_mission.words import stamp

LEAST, MOST = 3, 60  # points
Points = Sequence[tuple[datetime, float]]


def chart(signal: Signal, about: str) -> Chart | None:
    """The chart of a finding's values; None if there are too few."""
    points = tuple(sorted(point for point in signal.series if isfinite(point[1])))
    if len(points) < LEAST:
        return None
    facts = {name: clean_fact(str(value)) for name, value in signal.facts if name in ("watch", "unit")}
    title = clean_fact(": ".join(filter(None, (about, label(facts.get("watch", ""))))))
    unit = facts.get("unit", "")
    return Chart(title, unit, _thin(points), _alt(title, unit, points))


def _thin(points: Points) -> tuple[tuple[datetime, float], ...]:
    """At most `MOST` values, including the first and the last."""
    if len(points) <= MOST:
        return tuple(points)
    return tuple(points[round(at * (len(points) - 1) / (MOST - 1))] for at in range(MOST))


def _alt(title: str, unit: str, points: Points) -> str:
    values = [value for _, value in points]
    (start, first), (end, last) = points[0], points[-1]
    numbers = (("first", first), ("last", last), ("lowest", min(values)), ("highest", max(values)))
    readings = ", ".join(f"{name} {thousands(value, 4)}{unit and ' ' + unit}" for name, value in numbers)
    return f"Line chart of {title}, {start:%Y-%m-%d %H:%M} to {stamp(end)}, {len(points)} values: {readings}."


def png(chart: Chart) -> bytes:
    """The picture, or b"" if drawing fails: that never blocks a post."""
    try:
        with warnings.catch_warnings(action="ignore"):  # such as for a missing glyph
            return _draw(chart)
    except Exception:  # a drawing library can fail in many ways, none of which matters
        return b""


def _draw(chart: Chart) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # takes a second to import
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    times, values = zip(*chart.points, strict=True)
    axes.plot(times, values, color="#1f6feb", linewidth=2)
    axes.set_title(chart.title, parse_math=False)
    axes.set_ylabel(chart.unit, parse_math=False)
    places = AutoDateLocator()  # type: ignore[no-untyped-call]  # of a typed library
    axes.xaxis.set_major_locator(places)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]  # of a typed library
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    content = BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()
