"""What every store must do: the same bodies for the branch here and on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.operations.control import Editable
from tests.adapters.storage.memory.making import (
    batch,
    branch_store,
    claim,
    finding,
    intended,
    key,
    monitor,
    on_server,
    server_store,
    settled,
)
from tests.helpers import make_repo

Factory = Callable[[str], Editable]


@pytest.fixture(params=["branch", "server"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Factory]:
    """Opens the same memory again and again, each time as another holder."""
    repo = make_repo(tmp_path / "repo")
    if request.param == "branch":
        yield lambda holder: branch_store(repo, holder)
    else:
        with on_server(repo, tmp_path / "server.git") as fake:
            token = fake.token()
            yield lambda holder: server_store(repo, fake, token, holder)


@pytest.fixture
def store(open_store: Factory) -> Editable:
    return open_store("here:boot:1")


def test_there_is_no_memory_at_first(store: Editable) -> None:
    assert store.recall() is None
    assert not store.paused()
    assert store.records([key("any")], None) == {}


def test_what_was_committed_is_recalled(store: Editable) -> None:
    made = store.commit(batch(claim=claim("me"), effects=("k",), next_mission=4), None)
    assert store.recall() == made
    assert made.state == OpenState(claim=claim("me"), effects=("k",), next_mission=4)


def test_records_are_found_by_key_and_only_those_asked_for(store: Editable) -> None:
    records = (intended(1), settled(2), finding(3), monitor(4))
    made = store.commit(batch(None, *records), None)
    assert store.records([key(1), key(3), key("none")], made) == {key(1): records[0], key(3): records[2]}


def test_records_are_those_of_what_was_recalled(store: Editable) -> None:
    first = store.commit(batch(None, intended(1)), None)
    second = store.commit(batch(first, replace(settled(1), key=key(1))), first)
    assert store.records([key(1)], first)[key(1)] == intended(1)
    assert store.records([key(1)], second)[key(1)] != intended(1)


def test_each_commit_has_the_next_serial(store: Editable) -> None:
    first = store.commit(batch(), None)
    second = store.commit(batch(first), first)
    assert (first.memory.header.serial, second.memory.header.serial) == (1, 2)


def test_a_first_commit_without_a_lineage_is_refused(store: Editable) -> None:
    with pytest.raises(ValueError, match="lineage"):
        store.commit(replace(batch(), memory=Memory(Header())), None)


def test_a_commit_of_another_lineage_is_refused(store: Editable) -> None:
    past = store.commit(batch(), None)
    with pytest.raises(ValueError, match="lineage"):
        store.commit(replace(batch(past), memory=Memory(Header(lineage="other"))), past)


def test_of_two_runners_the_second_loses(open_store: Factory) -> None:
    one, two = open_store("one:b:1"), open_store("two:b:2")
    past = one.commit(batch(), None)
    won = one.commit(batch(past, claim=claim("one")), past)
    with pytest.raises(Lost):
        two.commit(batch(past, claim=claim("two")), past)
    assert two.recall() == won


def test_of_two_first_commits_the_second_loses(open_store: Factory) -> None:
    one, two = open_store("one:b:1"), open_store("two:b:2")
    one.commit(batch(), None)
    with pytest.raises(Lost):
        two.commit(batch(), None)


def test_a_persons_edit_that_came_between_is_merged(open_store: Factory) -> None:
    store, person = open_store("one:b:1"), open_store("two:b:2")
    past = store.commit(batch(), None)
    person.edit(replace(past.memory, learnings="\n- small pulls  \r\n", do_not_repeat="\n- #4\n"), past, "an edit")
    made = store.commit(batch(past, intended(1)), past)
    assert (made.memory.learnings, made.memory.do_not_repeat) == ("\n- small pulls  \r\n", "\n- #4\n")
    assert made.memory.header.serial == 2
    assert store.records([key(1)], made) == {key(1): intended(1)}
    assert made.human_edits
    assert replace(store.recall(), human_edits=()) == replace(made, human_edits=())  # type: ignore[type-var]  # never None here


def test_an_edit_merged_into_one_commit_survives_the_next(open_store: Factory) -> None:
    store, person = open_store("one:b:1"), open_store("two:b:2")
    past = store.commit(batch(), None)
    header = replace(past.memory.header, paused=True)
    person.edit(replace(past.memory, header=header, learnings="\n- mine\n"), past, "an edit")
    claimed = store.commit(batch(past), past)
    final = store.commit(batch(past), claimed)  # built from what was recalled before the edit
    assert final.memory.learnings == "\n- mine\n"
    assert final.memory.header.paused


def test_an_order_about_a_pause_lands_with_what_confirms_it(open_store: Factory) -> None:
    store, person = open_store("one:b:1"), open_store("two:b:2")
    past = store.commit(batch(), None)
    stopped = store.commit(replace(batch(past), paused=True), past)
    assert (stopped.memory.header.paused, store.paused()) == (True, True)
    header = replace(stopped.memory.header, paused=True)
    person.edit(replace(stopped.memory, header=header, learnings="\n- mine\n"), stopped, "an edit")
    again = store.commit(replace(batch(stopped), paused=False), stopped)
    assert (again.memory.header.paused, again.memory.learnings, store.paused()) == (False, "\n- mine\n", False)


def test_an_edit_is_told_in_words(open_store: Factory) -> None:
    store = open_store("one:b:1")
    past = store.commit(batch(), None)
    header = replace(past.memory.header, paused=True)
    store.edit(replace(past.memory, header=header, learnings="\n- a\n- b\n"), past, "an edit")
    recalled = store.recall()
    assert recalled is not None
    assert recalled.human_edits == ("Learnings: 2 added, 0 removed", "paused")


def test_paused_is_read_anew_each_time(open_store: Factory) -> None:
    store, person = open_store("one:b:1"), open_store("two:b:2")
    past = store.commit(batch(), None)
    answers = [store.paused()]
    for paused in (True, False):
        past = store.recall() or past
        person.edit(replace(past.memory, header=replace(past.memory.header, paused=paused)), past, "an edit")
        answers.append(store.paused())
    assert answers == [False, True, False]


def test_only_one_cycle_runs_at_a_time(open_store: Factory) -> None:
    one, two = open_store("one:b:1"), open_store("two:b:2")
    with one.exclusive() as first, two.exclusive() as second:
        assert (first, second) == (True, False)
    with two.exclusive() as later:
        assert later


def test_a_holder_elsewhere_is_never_proven_dead(open_store: Factory) -> None:
    store = open_store("here:b:1")
    with store.exclusive():
        assert not store.proven_dead("elsewhere:b:1")


def test_nobody_is_proven_dead_while_another_may_be_at_work(open_store: Factory) -> None:
    assert not open_store("here:b:1").proven_dead("elsewhere:b:2")


def test_trouble_names_what_to_do(open_store: Factory) -> None:
    store = open_store("here:b:1")
    past = store.commit(batch(), None)
    lost = replace(past, oid="1" * 40)
    with pytest.raises((Lost, UserError)):
        store.commit(batch(past), lost)
