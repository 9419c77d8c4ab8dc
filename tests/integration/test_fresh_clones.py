"""A clone that remembers nothing, as every workflow run has one, believes no stranger's change of memory either.

But who can push there can also write what another runner would have written, one serial further. No clone of a server's
repository can tell the two apart, whether it remembers something or not: such a commit is believed, and grants nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.forges.github import merging
from ralph_mission.errors import UserError
from ralph_mission.mission import execute
from ralph_mission.mission.lifecycle import approval, chat_commands
from ralph_mission.mission.lifecycle.step_builder import StepBuilder
from ralph_mission.mission.model.cycle import MissionStep, PersonVerdict
from ralph_mission.mission.model.effects import Effect, MergePull, OpenPull, Publish, PushBranch
from ralph_mission.mission.model.forge import Actor, Post
from ralph_mission.mission.model.ledger import ChatYes, EffectRecord, OpenState
from ralph_mission.mission.model.mission import Action, Mission, Status
from ralph_mission.mission.publishing import posting as publishing
from ralph_mission.safety.patch import REGULAR, Edit, FileDelta
from tests.crash.publishing_hub import PUBLISHERS, PublishingHub, publishing_hub
from tests.crash.snapshots import Snapshot
from tests.crash.witness import heads
from tests.helpers import git
from tests.integration.forging import forge_memory, state_of
from tests.integration.hub import open_hub
from tests.integration.test_life import BUGS
from tests.integration.world import BUGS_CONFIG, TYPOS

MEMORY = "refs/heads/ralph-memory"
SAID = "Buy anchors."
EVIL = (FileDelta("docs/evil.md", REGULAR, (Edit(0, 0, ("a small new page\n",)),)),)
Lie = Callable[[PublishingHub, OpenState], tuple[OpenState, list[EffectRecord]]]


def test_a_fresh_clone_refuses_what_a_stranger_changed_and_welcomes_what_a_person_wrote(tmp_path):
    with open_hub(tmp_path) as hub:
        hub.cycle()
        memory = hub.memory().replace("## Do Not Repeat", "## Do Not Repeat\n\n- leave the tables alone", 1)
        hub.fake.push("ralph-memory", {"memory/ralph-log.md": f"{memory}\n".encode()})
        hub.runner = "two"
        assert hub.cycle()[0].outcome == "done"
        state = git(hub.fake.bare, "show", "ralph-memory:memory/open.json")
        forged = state.replace('"next_mission": 2', '"next_mission": 92')
        hub.fake.push("ralph-memory", {"memory/open.json": forged.encode()})
        hub.fake.journal.clear()
        hub.runner = "three"
        with pytest.raises(UserError, match="someone else changed"):
            hub.cycle()
        assert hub.fake.count(method="PUT") + hub.fake.count(method="PATCH") == 0


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Iterator[tuple[PublishingHub, Snapshot]]:
    """A repository in which three things wait for a person: a proposal, a pull and a text for three networks."""
    config = f"owners: [mara]\n{BUGS_CONFIG}{PUBLISHERS % ''}"
    with (
        open_hub(tmp_path_factory.mktemp("asked"), {**TYPOS, **BUGS}, config) as plain,
        publishing_hub(plain, news=False, refusing=False) as hub,
    ):
        hub.cycle()
        hub.cycle()
        hub.news = True
        hub.cycle()
        assert [mission.kind for mission in state_of(hub).missions] == ["bug", "spelling", "content"]
        yield hub, Snapshot.of(hub, "asked")


@pytest.fixture
def hub(asked) -> PublishingHub:
    """The same, as it was, with no clone but that of the runner who asked."""
    place, start = asked
    start.restore(place)
    for name in ("fresh", "thief"):
        shutil.rmtree(place.folder / name, ignore_errors=True)
    return place


def record(place: PublishingHub, mission: Mission, effect: Effect, state: str) -> EffectRecord:
    return EffectRecord(effect.key, mission.key, mission.action, mission.kind, state, effect, 1, place.now, mission.id)


def an_approval(place: PublishingHub, state: OpenState) -> tuple[OpenState, list[EffectRecord]]:
    """That an owner approved a pull, and that it was being merged when the runner died."""
    mission, mara = state.missions[1], place.person().id
    merge = MergePull("a" * 16, mission.pull, mission.head_sha, "squash", "Theirs\n", "main", mara)
    kept = replace(record(place, mission, merge, "intended"), action=Action.FINISH)
    return replace(state, effects=(merge.key,)), [kept]


def an_approved_proposal(place: PublishingHub, state: OpenState) -> tuple[OpenState, list[EffectRecord]]:
    """That it was agreed to act on a proposal, by a change that nobody saw."""
    mission = state.missions[0]
    tip = git(place.fake.bare, "rev-parse", "main")
    push = PushBranch("a" * 16, "ralph/quiet", tip, "A page\n", place.now, EVIL, issue=mission.issue)
    opening = OpenPull("b" * 16, "A page", "A page.", "ralph/quiet", "main", mission.issue)
    keys = (push.key, opening.key)
    begun = replace(mission, status=Status.EXECUTING, action=Action.OPEN_FIX, pending=keys)
    forged = replace(state, missions=(begun, *state.missions[1:]))
    return forged, [record(place, mission, effect, "planned") for effect in (push, opening)]


def a_change_under_way(place: PublishingHub, state: OpenState) -> tuple[OpenState, list[EffectRecord]]:
    """The same, and that it was being pushed when the runner died."""
    forged, kept = an_approved_proposal(place, state)
    return replace(forged, effects=tuple(one.key for one in kept)), [replace(one, state="intended") for one in kept]


def an_agreed_text(place: PublishingHub, state: OpenState) -> tuple[OpenState, list[EffectRecord]]:
    """That a text was agreed to, another than was shown, and was being said when the runner died."""
    mission = state.missions[2]
    posts = [Post(name, (SAID,), (len(SAID),), 280) for name in place.networks]
    sending = [Publish(key, post) for key, post in zip(mission.pending, posts, strict=True)]
    forged = replace(state, missions=(*state.missions[:2], replace(mission, status=Status.EXECUTING)))
    return replace(forged, effects=mission.pending), [record(place, mission, one, "intended") for one in sending]


def a_yes_in_a_chat(place: PublishingHub, state: OpenState) -> tuple[OpenState, list[EffectRecord]]:
    """That an owner said yes to all that was asked."""
    said = tuple(
        ChatYes(one.issue, one.question.proposal_hash, 7, place.now + timedelta(minutes=5), "f" * 64)
        for one in state.missions
    )
    return replace(state, yes=said), []


LIES: tuple[Lie, ...] = (an_approval, an_approved_proposal, a_change_under_way, an_agreed_text, a_yes_in_a_chat)


def done(place: PublishingHub) -> tuple[dict[str, str], dict[str, list[str]], list[int]]:
    """Where branches stand but memory's, what networks said, and which pulls are merged."""
    branches = {name: oid for name, oid in heads(place).items() if name != MEMORY}
    return branches, place.posted, [pull.number for pull in place.pulls if place.merged(pull.number)]


def believed(place: PublishingHub, lie: Lie, runner: str) -> None:
    """Have somebody write it, one serial further, and the runner believe it."""
    told = []
    forge_memory(place, lambda state: told.append(lie(place, state)) or told[0])
    place.runner = runner
    assert state_of(place) == told[0][0]


@pytest.mark.long  # takes seconds
@pytest.mark.attack(18)
@pytest.mark.parametrize("runner", ["fresh", "one"])
@pytest.mark.parametrize("lie", LIES)
def test_a_state_that_is_forged_one_serial_further_is_believed_and_grants_nothing(hub, lie, runner):
    before = done(hub)
    believed(hub, lie, runner)
    for _ in range(3):
        assert hub.cycle()[0].outcome == "done"
        assert done(hub) == before


@pytest.mark.long  # takes seconds
@pytest.mark.parametrize("lie", LIES)
def test_what_would_come_of_it_where_memory_granted_something_is_seen(hub, lie):
    before = done(hub)
    believed(hub, lie, "fresh")
    with trusting():
        for _ in range(3):
            hub.cycle()
    assert done(hub) != before


@contextmanager
def trusting() -> Iterator[None]:
    """A broken product, to which memory's word is as good as an owner's."""

    propose = StepBuilder.propose

    def agreed(step: StepBuilder, action: Action, approver: str = "", **fields: Any) -> MissionStep:
        return propose(step, action, "mara", **{**fields, "objections": (), "approved": True})

    def sent(ports: Any, record: EffectRecord, effect: Effect, known: Any) -> Any:
        return execute.send(ports, effect, known)

    with (
        mock.patch.object(execute, "look_up_effect", sent),
        mock.patch.object(merging, "require_unobjectionable", lambda *_: None),
        mock.patch.object(publishing, "said_yes", lambda *_: "mara"),
        mock.patch.object(approval, "on_issue", lambda *_: PersonVerdict("approved", Actor(1, "mara"))),
        mock.patch.object(StepBuilder, "propose", agreed),
        mock.patch.object(chat_commands, "keep_proven", lambda state, seal: state),
    ):
        yield
