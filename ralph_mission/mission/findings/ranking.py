"""Which finding matters most: impact x severity x confidence x acceptance x engagement.

Impact and severity say who is hurt and how badly, so a bug comes before what is merely quick to do. Among equals a
ready fix comes first, then what takes less effort, then the larger group, then what is there for longer.

Acceptance is learned (`Acceptance.mean`), and so is engagement with posts of a kind; everything else is in the finding
and in `proposal.KINDS`. Weights, from configuration, multiply a kind's impact.

A model's ranking is applied on top of the rules': it orders, explains, and may ask people more often, but only about
existing findings, and in the groups the rules made. What it leaves out keeps its place among the rest.

A post does better than most when it got more reactions than the median of its network's measured posts; one that got as
many counts half. The expectation for the next one is the mean of a Beta(1 + better, 1 + others) posterior, and the
factor in the ranking is `FLOOR` + mean / 2: between 0.75 and 1.25, and 1 without any data.

Not everything that ranks deserves a thread: what is too small, of a kind that people reject, or not confirmed right now
stays in the report and in memory. Posts, for which the owner has texts, are exempt.

A kind falls silent once its expected acceptance is at most `SILENT`; the more severe a finding, the longer it is
proposed: up to 3 rejections of 3 at low severity, 6 at medium, 11 at high. Verdicts on other kinds of the same observer
count half. A weight that the owners set for a kind brings it back. In a fleet, verdicts on a kind in other repositories
are its prior, worth two verdicts at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from statistics import median

from ralph_mission.mission.model.forge import OUTBOX, Posted
from ralph_mission.mission.model.mission import Acceptance, Finding, Observation, PriorAcceptance, Severity
from ralph_mission.mission.model.proposal import RankedFinding, Route, lookup
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

Sections = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ModelRanking:
    """A model's ranking of one finding; a sequence is best first. `ask`: ask a person, whatever the rules would do.

    `sections`: texts for headings of its analysis. Both they and `why` are untrusted.
    """

    fingerprint: str
    why: str = ""
    ask: bool = False
    sections: Sections = ()


def apply_model_rankings(
    ranked_findings: Sequence[RankedFinding], rankings: Iterable[ModelRanking]
) -> tuple[RankedFinding, ...]:
    """The rules' ranked findings in the order of the model's; a finding to ask about stands alone."""
    by_fingerprint = {ranking.fingerprint: ranking for ranking in reversed(tuple(rankings))}
    order = {fingerprint: place for place, fingerprint in enumerate(reversed(by_fingerprint))}
    parts = [part for ranked in ranked_findings for part in _split_group(ranked, by_fingerprint)]
    explained = [_explain_ranking(part, by_fingerprint, order) for part in parts]
    last = len(order)
    return tuple(sorted(explained, key=lambda ranked: min(order.get(member, last) for member in ranked.members)))


def _split_group(ranked: RankedFinding, by_fingerprint: Mapping[str, ModelRanking]) -> Iterable[RankedFinding]:
    """A group without the members to ask a person about, and those one by one."""
    questions = [member for member in ranked.members if member in by_fingerprint and by_fingerprint[member].ask]
    rest = tuple(member for member in ranked.members if member not in questions)
    if rest:
        yield replace(ranked, members=rest)
    for member in questions:
        yield replace(ranked, members=(member,), ask=True)


def _explain_ranking(
    ranked: RankedFinding, by_fingerprint: Mapping[str, ModelRanking], order: Mapping[str, int]
) -> RankedFinding:
    """Put the best member first, with the model's words for it; the rules' own reason stays."""
    members = tuple(sorted(ranked.members, key=lambda member: order.get(member, len(order))))
    best = by_fingerprint.get(members[0])
    if best is None:
        return ranked
    why = f"{ranked.why}; a model put it at {order[best.fingerprint] + 1}" + (f": {best.why}" if best.why else "")
    return replace(ranked, members=members, why=why, sections=best.sections if len(members) == 1 else ())


SEVERITY = {Severity.LOW: 1.0, Severity.MEDIUM: 1.5, Severity.HIGH: 2.5}


def with_priors(tallies: Mapping[str, Acceptance], priors: Iterable[tuple[str, Acceptance]]) -> dict[str, Acceptance]:
    """A repository's tallies with verdicts on the same kinds elsewhere in its fleet as priors."""
    informed = dict(tallies)
    for kind, elsewhere in priors:
        own = informed.get(kind, Acceptance())
        informed[kind] = PriorAcceptance(own.accepted, own.rejected, elsewhere)
    return informed


def score(
    finding: Finding,
    acceptance: Mapping[str, Acceptance],
    weights: Mapping[str, float],
    engagement: Mapping[str, float] = {},
) -> float:
    """How much a finding matters, from 0. Doubling a weight or the acceptance doubles the score."""
    signal = finding.signal
    impact = lookup(signal.kind).impact * SEVERITY[signal.severity] * weights.get(signal.kind, 1.0)
    liked = acceptance.get(signal.kind, Acceptance()).mean
    return round(impact * signal.confidence * liked * engagement.get(signal.kind, 1.0), 4)


def rank(
    findings: Sequence[Finding],
    acceptance: Mapping[str, Acceptance],
    weights: Mapping[str, float],
    engagement: Mapping[str, float] = {},
) -> tuple[RankedFinding, ...]:
    """Rank findings, best first: fixes, listed kinds and what says the same in one group each, all else alone."""
    scored = {f: score(f, acceptance, weights, engagement) for f in findings}
    groups = [tuple(group) for _, group in groupby(sorted(findings, key=_group), key=_group)]
    best = [tuple(sorted(group, key=lambda f: (-scored[f], _readiness(f), *_age(f)))) for group in groups]
    best.sort(key=lambda g: (-scored[g[0]], _readiness(g[0]), -len(g), g[0].kind, *_age(g[0])))
    return tuple(
        RankedFinding(
            tuple(finding.fingerprint for finding in group),
            group[0].kind,
            scored[group[0]],
            f"{explain(group, acceptance, engagement)}; number {place} of {len(best)}",
        )
        for place, group in enumerate(best, 1)
    )


def _readiness(finding: Finding) -> tuple[bool, float]:
    """The order among equal scores: a ready fix first, then less work."""
    return finding.signal.patch is None, finding.signal.effort


def _age(finding: Finding) -> tuple[float, str]:
    """The order of what nothing else tells apart: the oldest first."""
    return -finding.signal.age_days, finding.fingerprint


def _group(finding: Finding) -> tuple[str, ...]:
    alone = lookup(finding.kind).route is Route.PROPOSE
    return (finding.kind, (wherever(finding) or finding.fingerprint) if alone else "")


def wherever(finding: Finding) -> str:
    """What a finding without a ready change says, wherever in the repository; "" if it stands for itself."""
    signal = finding.signal
    place = f"{signal.path}:{signal.line}"
    return "" if signal.patch or not signal.path or place not in signal.title else signal.title.replace(place, "", 1)


def explain(
    group: Sequence[Finding], acceptance: Mapping[str, Acceptance], engagement: Mapping[str, float] = {}
) -> str:
    """Why this one, and why now, for a person."""
    signal, kind = group[0].signal, group[0].kind
    past = acceptance.get(kind, Acceptance())
    total = past.accepted + past.rejected
    history = f", people accepted {past.accepted} of {total} like it" if total else ""
    if isinstance(past, PriorAcceptance):
        known = past.elsewhere.accepted + past.elsewhere.rejected
        elsewhere = f"in other repositories {past.elsewhere.accepted} of {known}; {past.mean:.0%} expected"
        history += f" ({elsewhere})" if total else f", {elsewhere}"
    age = f", {days(signal.age_days)} old" if signal.age_days >= 1 else ""
    ready = ", a fix is ready" if signal.patch else effort(signal.effort)
    return (
        f"impact {lookup(kind).impact:g} of 10, severity {signal.severity}{age}, "
        f"{signal.confidence:.0%} sure{ready}{history}{_engagement_words(engagement.get(kind, 1.0))}"
    )


def _engagement_words(factor: float) -> str:
    """How posts of the kind did, if that is known and matters."""
    return "" if factor == 1 else f", posts about its kind do {'better' if factor > 1 else 'worse'} than most"


def days(age: float) -> str:
    """ "1 day", "3 days"."""
    return "1 day" if round(age) == 1 else f"{age:.0f} days"


def effort(amount: float) -> str:
    """What an effort means in a person's time, if it is more than the least that is assumed of every finding."""
    return "" if amount <= 1 else ", about an hour of work" if amount <= 4 else ", real work"


# --- what is worth a thread ---

LEAST = 1.6
"""Impact x severity x confidence below which nothing is opened: a certain misspelling has 2, a plain TODO 1.05."""
SILENT = 0.2
"""The expected acceptance at which a kind falls silent, for findings of low severity."""
BELIEVED = timedelta(days=1)
"""How long a question may wait if its observer only reports changes and does not see it again."""


def too_small(findings: Iterable[Finding], weights: Mapping[str, float]) -> tuple[Finding, ...]:
    """Findings below `LEAST`. A group is as worthy as its best member."""
    findings = tuple(findings)
    best: dict[tuple[str, ...], float] = {}
    for finding in findings:
        best[_group(finding)] = max(best.get(_group(finding), 0.0), _worth(finding, weights))
    return tuple(finding for finding in findings if best[_group(finding)] < LEAST)


def _worth(finding: Finding, weights: Mapping[str, float]) -> float:
    signal = finding.signal
    row = lookup(signal.kind)
    return round(row.impact * SEVERITY[signal.severity] * signal.confidence * weights.get(signal.kind, 1.0), 4)


def unwanted(
    findings: Iterable[Finding],
    present: Iterable[Finding],
    tallies: Mapping[str, Acceptance],
    weights: Mapping[str, float],
) -> tuple[Finding, ...]:
    """Findings of a kind that fell silent. `present`: everything observers see now, which tells their kinds."""
    kinds: dict[str, set[str]] = {}
    for finding in present:
        kinds.setdefault(finding.signal.observer, set()).add(finding.kind)
    return tuple(
        finding
        for finding in findings
        if not weights.get(finding.kind)
        and is_silent(finding, tallies, kinds.get(finding.signal.observer, set()) - {finding.kind})
    )


def is_silent(finding: Finding, tallies: Mapping[str, Acceptance], siblings: Collection[str] = ()) -> bool:
    """Whether people rejected too much like it; `siblings`: kinds of the same observer."""
    own = tallies.get(finding.kind, Acceptance())
    others = [tallies.get(kind, Acceptance()) for kind in siblings]
    accepted = own.accepted + sum(one.accepted for one in others) / 2
    rejected = own.rejected + sum(one.rejected for one in others) / 2
    together = (accepted + 1) / (accepted + rejected + 2)
    alone = Acceptance(own.accepted, own.rejected).mean  # acceptance elsewhere does not outweigh rejection here
    return min(own.mean, alone, together) * SEVERITY[finding.signal.severity] <= SILENT


def fell_silent(tally: Acceptance) -> bool:
    """Whether findings of low severity of such a kind are no longer proposed."""
    return tally.mean * SEVERITY[Severity.LOW] <= SILENT


def bring_back(kind: str) -> str:
    """How owners get a kind proposed again, as a clause."""
    return f"`thinker.weights: {{{kind}: 1}}` in `ralph.yml` brings them back"


def not_seen_again(
    findings: Iterable[Finding], observations: Sequence[Observation], now: datetime
) -> tuple[Finding, ...]:
    """Waiting questions that may no longer be true.

    What was observed in this cycle is true. What was not may still be, for a day, if its observer answered and only
    reports changes (it keeps a cursor and says what is gone).
    """
    keys = {
        (signal.observer, signal.kind, signal.essence, signal.occurrence)
        for observation in observations
        for signal in observation.signals
    }
    reporters = {
        observation.name
        for observation in observations
        if observation.status == "ok" and observation.cursor and not observation.complete
    }
    return tuple(
        finding
        for finding in findings
        if lookup(finding.kind).route is Route.PROPOSE
        and (finding.signal.observer, finding.kind, finding.signal.essence, finding.signal.occurrence) not in keys
        and not (finding.signal.observer in reporters and finding.seen_at and now - finding.seen_at < BELIEVED)
    )


# --- what posts teach ---

FLOOR = 0.75


@dataclass(frozen=True, slots=True)
class Engagement:
    """How the measured posts of one kind did; `better` counts those above the median."""

    measured: int
    better: float
    median: float  # reactions

    @property
    def mean(self) -> float:
        """The probability that the next one does better than most, 0..1."""
        return (self.better + 1) / (self.measured + 2)

    @property
    def factor(self) -> float:
        """The factor for the score of a finding of this kind, 0.75..1.25."""
        return round(FLOOR + self.mean / 2, 4)


def engagement_factors(posts: Iterable[Posted]) -> dict[str, float]:
    """The ranking factor of each finding kind that was posted about, over all networks."""
    return {kind: fared.factor for (kind,), fared in _tally_posts(posts, lambda post: (post.kind,)).items()}


def engagement_lines(posts: Iterable[Posted]) -> tuple[str, ...]:
    """A line for people for each kind and network."""
    fared = _tally_posts(posts, lambda post: (post.kind, post.network))
    return tuple(_engagement_line(kind, network, one) for (kind, network), one in fared.items())


def _engagement_line(kind: str, network: str, fared: Engagement) -> str:
    return (
        f"Posts about {lookup(kind).plural} ({kind}) on {network}: {count_noun(fared.measured, 'post')} measured, "
        f"{fared.median:g} reactions at the median; Ralph gives the next one a {fared.mean:.0%} chance of doing better "
        "than most."
    )


def _tally_posts(
    posts: Iterable[Posted], name: Callable[[Posted], tuple[str, ...]]
) -> dict[tuple[str, ...], Engagement]:
    known = [post for post in posts if post.measured_at and post.network != OUTBOX]
    usual = _median_reactions(known)
    groups: dict[tuple[str, ...], list[Posted]] = {}
    for post in known:
        groups.setdefault(name(post), []).append(post)
    return {group: _tally_group(groups[group], usual) for group in sorted(groups)}


def _median_reactions(posts: Iterable[Posted]) -> dict[str, float]:
    by_network: dict[str, list[int]] = {}
    for post in posts:
        by_network.setdefault(post.network, []).append(post.reactions)
    return {network: median(reactions) for network, reactions in by_network.items()}


def _tally_group(posts: list[Posted], usual: Mapping[str, float]) -> Engagement:
    better = sum(_credit(post.reactions - usual[post.network]) for post in posts)
    return Engagement(len(posts), better, median(post.reactions for post in posts))


def _credit(above: float) -> float:
    return 1.0 if above > 0 else 0.5 if above == 0 else 0.0
