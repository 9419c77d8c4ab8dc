"""Which kinds of post people react to, from the numbers that networks tell. Pure, and counted from `Posted` alone.

A post does better than most when it got more reactions than the median of its network's measured posts; one that got
as many counts half. What is expected of the next one is the mean of a Beta(1 + better, 1 + others) posterior, and what
ranking makes of it is `FLOOR` + mean / 2: between 0.75 and 1.25, and 1 while nobody knows anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median

from ralph_mission.mission.model.kinds import lookup
from ralph_mission.mission.model.posts import OUTBOX, Posted
from ralph_mission.values import dataclass

FLOOR = 0.75


@dataclass(frozen=True, slots=True)
class Engagement:
    """How the measured posts of one kind fared; `better` counts those that did better than most."""

    measured: int
    better: float
    median: float  # reactions

    @property
    def mean(self) -> float:
        """How likely the next one does better than most, 0..1."""
        return (self.better + 1) / (self.measured + 2)

    @property
    def factor(self) -> float:
        """What the score of a finding of this kind is multiplied with, 0.75..1.25."""
        return round(FLOOR + self.mean / 2, 4)


def factors(posts: Iterable[Posted]) -> dict[str, float]:
    """What ranking multiplies by, for each finding kind that was posted about, over all networks."""
    return {kind: fared.factor for (kind,), fared in _tally_posts(posts, lambda post: (post.kind,)).items()}


def lines(posts: Iterable[Posted]) -> tuple[str, ...]:
    """What people learn of it: a line for each kind and network."""
    fared = _tally_posts(posts, lambda post: (post.kind, post.network))
    return tuple(_line(kind, network, one) for (kind, network), one in fared.items())


def _line(kind: str, network: str, fared: Engagement) -> str:
    posts = "post" if fared.measured == 1 else "posts"
    return (
        f"Posts about {lookup(kind).plural} ({kind}) on {network}: {fared.measured} {posts} measured, "
        f"{fared.median:g} reactions at the median; the next one is expected to do better than most with "
        f"{fared.mean:.0%}."
    )


def _tally_posts(
    posts: Iterable[Posted], name: Callable[[Posted], tuple[str, ...]]
) -> dict[tuple[str, ...], Engagement]:
    known = [post for post in posts if post.measured_at and post.network != OUTBOX]
    usual = _usual(known)
    groups: dict[tuple[str, ...], list[Posted]] = {}
    for post in known:
        groups.setdefault(name(post), []).append(post)
    return {group: _tally_group(groups[group], usual) for group in sorted(groups)}


def _usual(posts: Iterable[Posted]) -> dict[str, float]:
    by_network: dict[str, list[int]] = {}
    for post in posts:
        by_network.setdefault(post.network, []).append(post.reactions)
    return {network: median(reactions) for network, reactions in by_network.items()}


def _tally_group(posts: list[Posted], usual: Mapping[str, float]) -> Engagement:
    better = sum(_credit(post.reactions - usual[post.network]) for post in posts)
    return Engagement(len(posts), better, median(post.reactions for post in posts))


def _credit(above: float) -> float:
    return 1.0 if above > 0 else 0.5 if above == 0 else 0.0
