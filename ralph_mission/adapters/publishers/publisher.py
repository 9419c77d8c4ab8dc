"""From a finding to the exact texts for each network and the chart of a watched value, and from an intended post to its
receipt."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from math import isfinite
from typing import Any

from ralph_mission.adapters.publishers.channel import Channel, OutboxFolder
from ralph_mission.config.settings import Publishers
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Publish, Receipt
from ralph_mission.mission.model.forge import OUTBOX, Chart, Post, Wording
from ralph_mission.mission.model.mission import BRIEFS, Finding, Signal
from ralph_mission.mission.publishing import texts
from ralph_mission.mission.publishing.texts import clean_fact, label, template_facts, thousands
from ralph_mission.values import dataclass
from ralph_mission.words import stamp

CONTENT = "content"
LEAST, MOST = 3, 60  # points
Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, slots=True)
class Template:
    """The template of a finding. `ready`: it may be posted without asking."""

    name: str
    source: str
    ready: bool


@dataclass(frozen=True, slots=True)
class PublisherByNetwork:
    """`mission.ports.PostPublisher` over the configured networks."""

    settings: Publishers
    channels: Sequence[Channel]
    outbox: OutboxFolder | None = None  # for posts of a staged cycle

    @property
    def networks(self) -> tuple[str, ...]:
        """Where a post goes, in order."""
        return tuple(channel.network for channel in self.channels)

    def word(self, finding: Finding) -> Wording | None:
        """Render the typed facts with the owner's template, or ours for a draft; or use a text of the repository.

        None: there is nothing to post.
        """
        if finding.signal.observer == BRIEFS:
            return self._written(finding) if finding.kind == CONTENT and self.channels else None
        facts = template_facts(finding)
        template = self._template(finding) if facts and self.channels else None
        if template is None:
            return None
        key = (finding.fingerprint, finding.signal.occurrence)
        try:
            posts, problems = self._posts(template, finding, facts)
        except UserError as problem:
            return Wording(*key, problem=f"{problem.what}; {problem.next_step}")
        if not posts and not problems:
            return None
        return Wording(*key, posts, "; ".join(problems), ready=template.ready and bool(posts))

    def _written(self, finding: Finding) -> Wording:
        """A text from the repository; it always needs approval."""
        posts, problems = list[Post](), list[str]()
        named = [str(value) for name, value in finding.signal.facts if name == "network"]
        for network in (OUTBOX,) if self.networks == (OUTBOX,) else dict.fromkeys(named):
            try:
                if network not in self.networks:
                    raise UserError("it is not set up", "set it up in publishers of ralph.yml")
                parts = texts.split_text(finding.signal.detail, network, self._measure_of(network))
                posts.append(self.measure(network, parts))
            except UserError as problem:
                problems.append(f"{finding.signal.path} on {network}: {problem.what}; {problem.next_step}")
        return Wording(finding.fingerprint, finding.signal.occurrence, tuple(posts), "; ".join(problems))

    def measure(self, network: str, parts: Sequence[str]) -> Post:
        """Raises UserError for what the network does not take."""
        return texts.measure_post(network, parts, self._measure_of(network))

    def find(self, effect: Publish) -> Receipt | None:
        """The parts that are certainly out already."""
        channel = self._channel(effect.network)
        return channel.find(effect.key) if channel else None

    def publish(self, effect: Publish) -> Receipt:
        """Send it once, on its network."""
        channel = self._channel(effect.network)
        if channel is None:
            return Receipt(effect.key, "failed", detail=f"{effect.network} is not set up here: see ralph doctor")
        return channel.publish(effect.key, effect.post)

    def stage(self, effect: Publish) -> Receipt:
        """Write it to the outbox, whatever its network."""
        return self.outbox.stage(effect.key, effect.post) if self.outbox else Receipt(effect.key, "staged")

    def _channel(self, network: str) -> Channel | None:
        return next((channel for channel in self.channels if channel.network == network), None)

    def _measure_of(self, network: str) -> texts.Measure | None:
        """The measure of a plug-in network, which defines its own limits."""
        return None if network in texts.MEASURES else getattr(self._channel(network), "measure", None)

    def _template(self, finding: Finding) -> Template | None:
        """The owner's template, by watch before kind; else ours, for content and announcements."""
        from ralph_mission.adapters.publishers import channel as drafts

        facts = dict(finding.signal.facts)
        kind, watch = finding.kind, str(facts.get("watch", ""))
        for name in (watch, kind):
            if name in self.settings.templates:
                return Template(name, self.settings.templates[name], ready=True)
        if kind == drafts.COMPLETED and self.settings.announce:
            return Template(kind, drafts.ANNOUNCEMENT, ready=True)
        ours = drafts.TEXTS.get(str(facts.get("sort", ""))) if kind == CONTENT else None
        return Template(watch or kind, ours, ready=False) if ours else None

    def _posts(
        self, template: Template, finding: Finding, facts: Mapping[str, Any]
    ) -> tuple[tuple[Post, ...], tuple[str, ...]]:
        """The post for each network, and why others get none. Raises UserError if the template fails."""
        from ralph_mission.mission.publishing import templates  # Jinja2 takes a while to load

        text = templates.render(template.name, template.source, facts)
        if not text:
            return (), ()
        chart = chart_of(finding.signal, str(facts["about"])) if self.settings.charts else None
        posts, problems = list[Post](), list[str]()
        for network in self.networks:
            try:
                parts = texts.split_text(text, network, self._measure_of(network))
                posts.append(replace(self.measure(network, parts), chart=chart))
            except UserError as problem:
                problems.append(f"{template.name} on {network}: {problem.what}; {problem.next_step}")
        return tuple(posts), tuple(problems)


def chart_of(signal: Signal, about: str) -> Chart | None:
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
