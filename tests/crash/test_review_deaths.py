"""The review that dies, loses an answer or meets another runner: one review at most, on GitHub as it really is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ralph_mission.mission.operations import control
from ralph_mission.mission.reviews import review
from tests.crash.dying import Life, dying, told, writes
from tests.crash.snapshots import Snapshot
from tests.crash.witness import duplicates, open_state, watched
from tests.integration.at_review import NONE, Told, elsewhere, ours, proposed, read
from tests.integration.at_work import Place, on_hub

pytestmark = pytest.mark.long  # takes ten seconds or more
ROUNDS = 4
POST = "POST", "/pulls/*/reviews"


@pytest.fixture
def place(tmp_path) -> Iterator[Place]:
    with on_hub(tmp_path) as found:
        assert found.hub is not None and found.hub.clone.exists()
        yield found


def to_rest(place: Place, number: int, hands: Told) -> bool:
    """Rounds until the head is reviewed; a person settles what nobody else can tell. Gives whether one had to."""
    doubted = False
    for _ in range(ROUNDS):
        report = read(place, number, hands)
        if report.outcome == "unknown":
            doubted = True
            control.resolve(place.house().store, review.review_key(number), bool(ours(place, number)))
        if report.outcome == "reviewed":
            return doubted
    raise AssertionError(f"it never came to rest: {report}")


def die_everywhere(place: Place, number: int, chosen) -> int:
    """Die at each of the chosen points of one round, go on, look. Gives how many points there were."""
    harbour = place.hub
    assert harbour is not None
    start = Snapshot.of(harbour, "start")
    with dying(harbour) as life:
        read(place, number, Told(place))
    points = chosen(life)
    for at, kind in points:
        start.restore(harbour)
        died, hands = f"died {kind} request {at}, {told(life.requests[at - 1])}", Told(place)
        with watched(harbour) as witness:
            with dying(harbour, at, kind) as this:
                read(place, number, hands)
            assert this.over, died
            to_rest(place, number, hands)
        assert (duplicates(harbour), witness.wrong, len(ours(place, number))) == ([], [], 1), died
        state = open_state(harbour)
        assert (state.effects, state.unknown, state.claim) == ((), (), None), died
    return len(points)


def deeds(life: Life) -> list[tuple[int, str]]:
    """After each write, and before the review is posted or edited."""
    done = [(at, "after") for at, one in enumerate(life.requests, 1) if writes(one)]
    return [*done, *((at, "before") for at, _ in done if "/reviews" in life.requests[at - 1].below)]


def test_a_death_after_any_write_of_an_edit_leaves_one_review(place):
    number = proposed(place)
    read(place, number, Told(place, (NONE,)))
    harbour = place.hub
    assert harbour is not None
    start = Snapshot.of(harbour, "reviewed")
    with dying(harbour) as life:
        assert read(place, number, Told(place), force=True).outcome == "edited"
    for at, kind in deeds(life):
        start.restore(harbour)
        died = f"died {kind} request {at}, {told(life.requests[at - 1])}"
        with watched(harbour) as witness:
            with dying(harbour, at, kind):
                read(place, number, Told(place), force=True)
            last = read(place, number, Told(place), force=True)
        assert last.outcome in ("edited", "unchanged"), died
        assert (duplicates(harbour), witness.wrong) == ([], []), died
        (only,) = ours(place, number)
        assert "Two readers" in only.body, died


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_death_at_any_request_leaves_one_review(place, kind):
    every = lambda life: [(at, kind) for at in range(1, len(life.requests) + 1)]  # noqa: E731  # one use
    assert die_everywhere(place, proposed(place), every) >= 15


@pytest.mark.parametrize("kind", ["502_applied", "reset_applied", "garbage"])
def test_a_lost_answer_is_looked_up_and_adopted(place, kind):
    number, harbour = proposed(place), place.hub
    assert harbour is not None
    before = harbour.fake.count("rest", *POST)
    harbour.fake.fail(kind, POST)
    report = read(place, number, Told(place))
    assert (report.outcome, len(ours(place, number)), harbour.fake.count("rest", *POST) - before) == ("posted", 1, 1)
    assert open_state(harbour).unknown == ()


def test_a_review_in_doubt_is_never_sent_again_until_a_person_says_so(place):
    number, harbour, hands = proposed(place), place.hub, Told(place)
    assert harbour is not None
    harbour.fake.fail("502_not_applied", POST)
    lost = read(place, number, hands)
    assert (lost.outcome, lost.code, ours(place, number)) == ("unknown", 1, [])
    again = read(place, number, hands, force=True)
    assert (again.outcome, len(hands.jobs), ours(place, number)) == ("unknown", 1, [])
    control.resolve(place.house().store, review.review_key(number), sent=False)
    assert read(place, number, hands).outcome == "posted" and len(ours(place, number)) == 1


# --- two runners ----------------------------------------------------------------------


@pytest.mark.crash  # takes minutes
def test_a_whole_round_of_another_before_any_request_leaves_one_review(place):
    number, harbour = proposed(place), place.hub
    assert harbour is not None
    start = Snapshot.of(harbour, "start")
    with dying(harbour) as life:
        read(place, number, Told(place))
    for at in range(1, len(life.requests) + 1):
        start.restore(harbour)
        seen, other = [0], elsewhere(place)
        assert other.hub is not None
        other.hub.runner = f"other-{at}"
        assert other.hub.clone.exists()

        def comes_between(request, at=at, seen=seen, other=other) -> None:
            seen[0] += 1
            if seen[0] == at:
                read(other, number, Told(other, (NONE,)))

        undo = harbour.fake.before(comes_between)
        with watched(harbour) as witness:
            read(place, number, Told(place))
        undo()
        assert (duplicates(harbour), witness.wrong, len(ours(place, number))) == ([], [], 1), at
