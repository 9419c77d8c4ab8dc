"""The life of a task, as values."""

from __future__ import annotations

import pytest

from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import LoopTask, TaskStatus
from ralph_mission.loop.rules import routing as lifecycle


def _nobody(owner: str) -> bool:
    return False


def _list(*tasks: LoopTask) -> lifecycle.Tasks:
    return lifecycle.update_readiness(tasks)


def _status(tasks: lifecycle.Tasks) -> dict[str, TaskStatus]:
    return {task.id: task.status for task in tasks}


def test_a_task_is_ready_only_when_all_it_needs_is_done() -> None:
    tasks = _list(LoopTask("a", "A", "done"), LoopTask("b", "B"), LoopTask("c", "C", needs=("a", "b")))
    assert _status(tasks) == {"a": "done", "b": "ready", "c": "pending"}
    tasks, _ = lifecycle.claim(tasks, "b", "me", _nobody)
    tasks, _ = lifecycle.mark_done(tasks, "b")
    assert _status(tasks)["c"] == "ready"


def test_the_lowest_priority_number_goes_first_and_ties_as_they_were_added() -> None:
    tasks = _list(LoopTask("a", "A", priority=3), LoopTask("b", "B", priority=1), LoopTask("c", "C", priority=1))
    assert [task.id for task in lifecycle.ready(tasks)] == ["b", "c", "a"]
    _, first = lifecycle.claim(tasks, "", "me", _nobody)
    assert (first.id, first.status, first.owner) == ("b", "active", "me")


def test_an_active_task_of_a_living_owner_is_given_to_nobody_not_even_its_owner() -> None:
    tasks = _list(LoopTask("a", "A", "active", owner="me"))
    for owner in ("you", "me"):
        with pytest.raises(UserError, match="claimed by me"):
            lifecycle.claim(tasks, "a", owner, _nobody)
    with pytest.raises(UserError, match="no task is ready"):
        lifecycle.claim(tasks, "", "you", _nobody)


def test_an_active_task_of_a_dead_owner_can_be_claimed_again_after_what_is_ready() -> None:
    tasks = _list(LoopTask("a", "A", "active", owner="gone"), LoopTask("b", "B"))
    tasks, first = lifecycle.claim(tasks, "", "me", lambda owner: owner == "gone")
    tasks, second = lifecycle.claim(tasks, "", "me", lambda owner: owner == "gone")
    assert (first.id, second.id) == ("b", "a")


def test_a_failed_need_keeps_the_dependant_pending_and_says_so() -> None:
    tasks, _ = lifecycle.mark_failed(_list(LoopTask("a", "A"), LoopTask("b", "B", needs=("a",))), "a")
    assert _status(tasks) == {"a": "failed", "b": "pending"}
    assert lifecycle.find_blocked(tasks) == ("task b waits for a (failed)",)
    with pytest.raises(UserError, match=r"waits for a \(failed\)"):
        lifecycle.claim(tasks, "b", "me", _nobody)


def test_a_failed_task_is_taken_up_again_by_its_name_alone() -> None:
    tasks = _list(LoopTask("a", "A", "failed"), LoopTask("b", "B", needs=("a",)))
    with pytest.raises(UserError, match="no task is ready"):
        lifecycle.claim(tasks, "", "me", _nobody)
    tasks, again = lifecycle.claim(tasks, "a", "me", _nobody)
    assert again.status == "active"
    assert _status(lifecycle.mark_done(tasks, "a")[0]) == {"a": "done", "b": "ready"}


def test_a_failed_task_whose_needs_are_not_done_stays_where_it_is() -> None:
    tasks = _list(LoopTask("a", "A"), LoopTask("b", "B", "failed", needs=("a",)))
    with pytest.raises(UserError, match=r"waits for a \(ready\)"):
        lifecycle.claim(tasks, "b", "me", _nobody)


def test_done_and_failed_are_said_twice_without_harm_and_never_exchanged() -> None:
    tasks = _list(LoopTask("a", "A", "done"), LoopTask("b", "B", "failed"))
    assert lifecycle.mark_done(tasks, "a")[0] == tasks
    assert lifecycle.mark_failed(tasks, "b")[0] == tasks
    with pytest.raises(UserError, match="failed"):
        lifecycle.mark_done(tasks, "b")
    with pytest.raises(UserError, match="is done"):
        lifecycle.mark_failed(tasks, "a")


def test_a_pending_task_is_not_done_before_what_it_needs() -> None:
    with pytest.raises(UserError, match=r"waits for a \(ready\)"):
        lifecycle.mark_done(_list(LoopTask("a", "A"), LoopTask("b", "B", needs=("a",))), "b")


def test_a_circle_is_refused() -> None:
    tasks = _list(LoopTask("a", "A", needs=("c",)), LoopTask("b", "B", needs=("a",)))
    with pytest.raises(UserError, match="c → b → a → c"):
        lifecycle.add(tasks, LoopTask("c", "C", needs=("b",)))
    with pytest.raises(UserError, match="d → d"):
        lifecycle.add(tasks, LoopTask("d", "D", needs=("d",)))


def test_a_circle_that_another_tool_wrote_is_told_once() -> None:
    tasks = _list(LoopTask("a", "A", needs=("b",)), LoopTask("b", "B", needs=("a",)))
    assert lifecycle.find_blocked(tasks) == ("tasks wait for each other: b → a → b",)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (LoopTask("a", "Again"), "already"),
        (LoopTask("b", "B", needs=("x",)), "no task 'x'"),
        (LoopTask("", "B"), "not a task id"),
        (LoopTask("../b", "B"), "not a task id"),
        (LoopTask("b", " "), "title"),
        (LoopTask("b", "B" * 501), "title"),
        (LoopTask("b", "B", priority=0), "priority"),
        (LoopTask("b", "B", priority=6), "priority"),
        (LoopTask("b", "B", description="x" * 20_001), "too long"),
    ],
)
def test_what_is_no_task_is_not_added(task: LoopTask, said: str) -> None:
    with pytest.raises(UserError, match=said):
        lifecycle.add(_list(LoopTask("a", "A")), task)


def test_what_an_owner_left_active_is_given_back() -> None:
    tasks = _list(LoopTask("a", "A", "active", owner="me"), LoopTask("b", "B", "active", owner="you"))
    after = lifecycle.release_tasks(tasks, "me")
    assert [(task.status, task.owner) for task in after] == [("ready", ""), ("active", "you")]
