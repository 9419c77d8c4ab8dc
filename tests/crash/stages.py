"""Lives of missions on a (fake) GitHub in stages, each begun anew as often as wanted, and how they come to rest.

`STAGES` are single cycles that act; `EVERY` has besides them the stages in which something else happens: more than one
cycle, networks, an agent, memory that is damaged, people in between, two runners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from ralph_mission.adapters.forges.github import api
from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from ralph_mission.mission.model.effects import Publish
from ralph_mission.mission.model.ledger import EffectRecord
from ralph_mission.mission.operations import control
from tests.crash import expected, setups
from tests.crash.ends import differences, lost, portrait, posts
from tests.crash.publishing_hub import PUBLISHERS, publishing_hub
from tests.crash.runners import two_wake
from tests.crash.snapshots import networks_of
from tests.crash.witness import key_in, open_state
from tests.integration.hub import Hub, open_hub
from tests.integration.test_life import BUG, BUGS
from tests.integration.world import CALM, TYPOS

__all__ = ["EVERY", "NOW", "STAGES", "Rest", "Stage", "come_to_rest", "differences", "lost", "made_as", "portrait",
           "posts", "settle", "staged"]  # fmt: skip  # one list

NOW = timedelta(0)
OWNED = f"owners: [mara]\n{CALM}"
THREE = f"{BUG}limits: {{threads_per_week: 3}}\n"
MARKERS = "hands: {fixers: []}\nthinker: {weights: {todo: 3}}\n"
ASKED = f"owners: [mara]\nhands: {{fixers: []}}\nobservers:\n  code: {{markers: {{}}}}\n{PUBLISHERS % ''}"
ROUNDS = 6  # cycles in which everything must have come to rest


def cycle(hub: Hub) -> None:
    """What most stages do."""
    hub.cycle(NOW)


def woken(hub: Hub) -> None:
    """A dispatch, which decides nothing: a cycle that is not due leaves."""
    hub.cycle(NOW, force=False, trigger="dispatch")


def two_cycles(hub: Hub) -> None:
    cycle(hub)
    cycle(hub)


@dataclass(frozen=True)
class Stage:
    """What has been until now, what happens next (`act`) and what must have come of it undisturbed (`expect`).

    `scenario` is what it is an instance of. `meanwhile` is what people do after each cycle; a stage that `halts`
    comes to rest in an error, until a person fixes it. One with `sessions` of an agent pays for them before they begin.
    """

    scenario: str
    expect: Callable[[Hub], None]
    before: Callable[[Hub], None]
    files: Mapping[str, str | bytes] = field(default_factory=lambda: TYPOS)
    config: str | Callable[[Path], str] = CALM
    later: timedelta = timedelta(hours=7)
    act: Callable[[Hub], Any] = cycle
    meanwhile: Callable[[Hub], None] = setups.nothing
    halts: bool = False
    request: Mapping[str, Any] = field(default_factory=dict)
    networks: bool = False
    news: bool = False
    sessions: bool = False


STAGES = {
    "a fix is opened": Stage("first cycle; auto-PR", expected.one_pull, setups.nothing),
    "an approved pull is merged": Stage("approved → merged", expected.merged, setups.approved),
    "a pull to be changed is escalated": Stage("escalation", expected.escalated, setups.refused, config=OWNED),
    "a closed pull ends its mission": Stage("a human closing things in between", expected.rejected, setups.closed),
    "a proposal is made": Stage("approval issue", expected.one_question, setups.nothing, BUGS, BUG),
    "an approved proposal is carried on": Stage(
        "approval issue → approved", expected.planned, setups.agreed, BUGS, BUG
    ),
    "an edited proposal is asked anew": Stage("approval issue, edited", expected.asked_anew, setups.edited, BUGS, BUG),
    "a first cycle with two kinds and a list": Stage(
        "first cycle",
        expected.two_issues,
        setups.nothing,
        {**TYPOS, **BUGS, **setups.TODO},
        BUG.replace("fixers: []", "fixers: [typos]").replace("{markers: {}}", "{}") + "thinker: {weights: {todo: 3}}\n",
    ),
    "a list is brought up to date": Stage(
        "monitoring", expected.list_of_two, setups.more_markers, setups.TODO, MARKERS
    ),
}

EVERY = {
    **STAGES,
    "nothing is left to do": Stage("idle", expected.one_pull, setups.quiet),
    "a person's pull does it already": Stage(
        "auto-PR whose finding a human already fixed", expected.left_to_her, setups.fixed_in_a_pull
    ),
    "a person fixed what a pull of ours corrects": Stage(
        "auto-PR whose finding a human already fixed", expected.one_closed, setups.fixed_by_hand
    ),
    "an approved proposal is acted on": Stage(
        "approval issue → approved → acted", expected.one_pull, setups.agreed, setups.LONG
    ),
    "a review is answered": Stage(
        "changes requested → fixed",
        expected.answered,
        setups.answered,
        {"src/tide.py": "TIDE = 1\n"},
        setups.with_agent,
        sessions=True,
    ),
    "a merge is announced": Stage(
        "approved → merged → announced",
        expected.announced,
        setups.approved,
        config=f"{CALM}{PUBLISHERS % ', announce: [spelling]'}",
        act=two_cycles,
        networks=True,
    ),
    "approved content goes to three networks, one of which fails": Stage(
        "content approved → three networks, one failing",
        expected.published,
        setups.content_approved,
        {"a.txt": "fine\n"},
        ASKED,
        act=two_cycles,
        networks=True,
        news=True,
    ),
    "memory was deleted": Stage("memory deleted", expected.no_memory, setups.deleted, halts=True),
    "memory was corrupted": Stage("memory corrupted", expected.untouched, setups.corrupted, halts=True),
    "memory was rolled back": Stage("memory corrupted", expected.untouched, setups.rolled_back, halts=True),
    "a wake comes early": Stage(
        "early dispatch", expected.untouched, setups.approved, later=setups.SOON, act=woken, request={"force": False}
    ),
    "a person closes every pull she sees": Stage(
        "a human closing things in between", expected.rejected, setups.nothing, meanwhile=setups.closes_pulls
    ),
    "an approved pull goes through the merge queue": Stage(
        "approved → queued → merged", expected.merged, setups.approved_before_a_queue, meanwhile=setups.queue_merges
    ),
    "a yes is taken back in the merge queue": Stage(
        "approved → queued → taken back", expected.left_the_queue, setups.taken_back_in_a_queue
    ),
    "a fix may not be opened, and a person is asked": Stage(
        "refused for good → asked", expected.asked_for_a_setting, setups.pulls_forbidden
    ),
    "a merge is refused for good, and a person is asked": Stage(
        "approved → refused for good → asked", expected.escalated, setups.approved_in_vain, config=OWNED
    ),
    "a box that was ticked on the dashboard is obeyed": Stage("ticked → merged", expected.merged, setups.ticked),
    "two runners wake together": Stage("two runners waking together", expected.merged, setups.approved, act=two_wake),
    **{
        f"two runners find that a check of an approved pull {state}": Stage(
            "two runners waking together",
            expected.merged,
            partial(setups.approved_while, state),
            act=two_wake,
            meanwhile=setups.check_passes,
        )
        for state in (*setups.RESULTS, setups.MISSING)
        if state != "passed"
    },
    "three missions are under way and two more are wanted": Stage(
        "never more than three missions", expected.three_missions, setups.three_missions, setups.FIVE, THREE
    ),
}


@contextmanager
def staged(folder: Path, name: str) -> Iterator[Hub]:
    """A hub in which the stage's cycle is the next thing to happen, at this very moment."""
    stage = EVERY[name]
    config = stage.config if isinstance(stage.config, str) else stage.config(folder)
    with open_hub(folder, dict(stage.files), config) as hub, _surrounded(hub, stage) as place, _still():
        place.fake.validate = False
        assert place.clone.exists(), "it is there before anything happens"
        stage.before(place)
        place.now += stage.later
        place.fake.journal.clear()
        yield place


def _still() -> AbstractContextManager[Any]:
    """GitHub's clock is what it told last: how long a session takes here decides nothing."""
    return mock.patch.object(api, "time", SimpleNamespace(monotonic=lambda: 0.0))


@contextmanager
def _surrounded(hub: Hub, stage: Stage) -> Iterator[Hub]:
    if not stage.networks:
        yield hub
        return
    with publishing_hub(hub, stage.news, refusing=stage.news) as place:
        yield place


@dataclass
class Rest:
    """How it came to rest: cycles, and the keys that a person had to settle because nobody else could tell; what of
    them are posts, as `network: text`."""

    cycles: int = 0
    doubts: tuple[str, ...] = ()
    posts: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        return self.outcomes[-1:] in (("done",), ("not_due",)) and self.cycles < ROUNDS

    @property
    def halted(self) -> bool:
        """Whether it refuses, and keeps refusing, to go on."""
        return self.outcomes[-2:] == ("trouble", "trouble")


def come_to_rest(hub: Hub, meanwhile: Callable[[Hub], None] = setups.nothing, **request: Any) -> Rest:
    """Cycles until one has nothing left to do; whoever is asked about a doubt looks, and answers."""
    rest = Rest()
    while rest.cycles < ROUNDS and not rest.halted:
        rest.cycles += 1
        try:
            report, cycle_summary = hub.cycle(NOW, **request)
        except UserError:
            rest.outcomes += ("trouble",)
            continue
        rest.outcomes += (report.outcome,)
        doubts = settled(hub, report, cycle_summary, rest)
        meanwhile(hub)
        if not doubts and not report.effects and report.outcome in ("done", "not_due"):
            return rest
    return rest


def settled(hub: Hub, report: CycleReport, cycle_summary: CycleSummary, rest: Rest) -> tuple[str, ...]:
    """What a person settled after a cycle."""
    unknown = open_state(hub).unknown
    rest.untold += tuple(key for key in unknown if not _said(key, report, cycle_summary))
    for key in unknown:
        rest.doubts += (key,)
        rest.posts += tuple(f"{post.network}: {post.post.parts[0]}" for post in [post_of(hub, key)] if post)
        settle(hub, key)
    return unknown


def _said(key: str, report: CycleReport, cycle_summary: CycleSummary) -> bool:
    return any(f"ralph journal resolve {key}" in line for line in cycle_summary.remarks)


def settle(hub: Hub, key: str) -> None:
    """A person looks whether it is there, and says so."""
    number = made_as(hub, key)
    control.resolve(hub.house().store, key, sent=number != 0 or _is_out(hub, key), number=number)


def made_as(hub: Hub, key: str) -> int:
    """The number of the issue, pull or comment that carries a key; 0 for none."""
    threads = (t.number for t in hub.threads if key_in(t.body) == key)
    comments = (c.id for c in hub.fake.comments.values() if key_in(c.body) == key)
    return next(iter((*threads, *comments)), 0)


def _is_out(hub: Hub, key: str) -> bool:
    """Whether a network shows the text of a post."""
    post = post_of(hub, key)
    return post is not None and post.post.parts[0] in networks_of(hub)[post.network].texts


def post_of(hub: Hub, key: str) -> Publish | None:
    """The post that a key is about, if it is about one."""
    if not networks_of(hub):
        return None
    store = hub.house().store
    record = store.records([key], store.recall()).get(key)
    effect = record.effect if isinstance(record, EffectRecord) else None
    return effect if isinstance(effect, Publish) else None
