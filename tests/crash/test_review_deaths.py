"""The review that dies, loses an answer or meets another runner: one review at most, on GitHub as it really is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ralph_mission.mission.operations import control
from ralph_mission.mission.reviews import review
from tests.crash.dying import dying, writes
from tests.crash.rounds import Rounds
from tests.crash.snapshots import Snapshot
from tests.crash.test_issue_agent_deaths import place as place
from tests.crash.witness import duplicates, open_state, watched
from tests.figures import Table, shown
from tests.integration.at_review import NONE, ScriptedReviewer, elsewhere, ours, proposed, read
from tests.integration.at_work import Place

pytestmark = pytest.mark.long  # takes ten seconds or more
ROUNDS = 4
POST = "POST", "/pulls/*/reviews"


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("crashes of reviews")
    yield made
    shown(request.config, made)


def to_rest(place: Place, number: int, hands: ScriptedReviewer) -> set[str]:
    """Rounds until the head is reviewed; a person settles what nobody else can tell. Gives what she had to."""
    doubts = set[str]()
    for _ in range(ROUNDS):
        report = read(place, number, hands)
        if report.outcome == "unknown":
            doubts.add(review.review_key(number))
            control.resolve(place.house().store, review.review_key(number), bool(ours(place, number)))
        if report.outcome == "reviewed":
            return doubts
    raise AssertionError(f"it never came to rest: {report}")


@pytest.mark.crash  # takes minutes
def test_a_death_after_any_write_of_an_edit_leaves_one_review(place, table):
    number, outcomes = proposed(place), list[str]()
    read(place, number, ScriptedReviewer(place, (NONE,)))

    def edited() -> set[str]:
        outcomes.append(read(place, number, ScriptedReviewer(place), force=True).outcome)
        return set()

    assert place.hub is not None
    rounds = Rounds(place.hub, edited, edited)
    for died in rounds.struck(["crash-after"], table, "a review is edited"):
        assert outcomes[0] == "edited" and outcomes[-1] in ("edited", "unchanged"), died
        (only,) = ours(place, number)
        assert "Two readers" in only.body, died


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("kind", ["crash-before", "crash-after"])
def test_a_death_at_any_call_leaves_one_review(place, kind, table):
    number = proposed(place)
    assert place.hub is not None
    rounds = Rounds(
        place.hub,
        lambda: read(place, number, ScriptedReviewer(place)),
        lambda: to_rest(place, number, ScriptedReviewer(place)),
    )
    for died in rounds.struck([kind], table, "a pull is reviewed"):
        assert len(ours(place, number)) == 1, died


@pytest.mark.parametrize("kind", ["502_applied", "reset_applied", "garbage"])
def test_a_lost_answer_is_looked_up_and_adopted(place, kind):
    number, hub = proposed(place), place.hub
    assert hub is not None
    before = hub.fake.count("rest", *POST)
    hub.fake.fail(kind, POST)
    report = read(place, number, ScriptedReviewer(place))
    assert (report.outcome, len(ours(place, number)), hub.fake.count("rest", *POST) - before) == ("posted", 1, 1)
    assert open_state(hub).unknown == ()


def test_a_review_in_doubt_is_never_sent_again_until_a_person_says_so(place):
    number, hub, hands = proposed(place), place.hub, ScriptedReviewer(place)
    assert hub is not None
    hub.fake.fail("502_not_applied", POST)
    lost = read(place, number, hands)
    assert (lost.outcome, lost.code, ours(place, number)) == ("unknown", 1, [])
    again = read(place, number, hands, force=True)
    assert (again.outcome, len(hands.jobs), ours(place, number)) == ("unknown", 1, [])
    control.resolve(place.house().store, review.review_key(number), sent=False)
    assert read(place, number, hands).outcome == "posted" and len(ours(place, number)) == 1


# --- two runners ----------------------------------------------------------------------


@pytest.mark.crash  # takes minutes
def test_a_whole_round_of_another_in_between_leaves_one_review(place):
    number, hub = proposed(place), place.hub
    assert hub is not None
    start = Snapshot.of(hub, "start")
    with dying(hub) as life:
        read(place, number, ScriptedReviewer(place))
    for at in [n for n, request in enumerate(life.requests, 1) if writes(request) or n % 4 == 0]:
        start.restore(hub)
        seen, other = [0], elsewhere(place)
        assert other.hub is not None
        other.hub.runner = f"other-{at}"
        assert other.hub.clone.exists()

        def comes_between(request, at=at, seen=seen, other=other) -> None:
            seen[0] += 1
            if seen[0] == at:
                read(other, number, ScriptedReviewer(other, (NONE,)))

        undo = hub.fake.before(comes_between)
        with watched(hub) as witness:
            read(place, number, ScriptedReviewer(place))
        undo()
        assert (duplicates(hub), witness.wrong, len(ours(place, number))) == ([], [], 1), at
