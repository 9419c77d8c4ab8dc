"""How Ralph treats people's attention over days: it stays awake, asks little, and takes back what is no longer true."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.helpers import commit, make_repo
from tests.integration.hub import open_hub
from tests.integration.world import World, world

LINE = "parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}"
CONFIG = f"""\
observers:
  code: {{markers: {{}}}}
  commands:
    - {{name: wishes, run: cat wishes.txt, kind: feature, {LINE}}}
    - {{name: faults, run: cat faults.txt, kind: bug, {LINE}}}
hands: {{fixers: []}}
"""
FINDING_LINES = "".join(f"src/m{n}.py:1: wish number {n}\n" for n in range(40))


@pytest.fixture
def place(tmp_path):
    modules = {f"src/m{n}.py": f"x = {n}\n" for n in range(40)}
    return World(
        make_repo(tmp_path / "repo", {"wishes.txt": FINDING_LINES, "faults.txt": "", "ralph.yml": CONFIG, **modules})
    )


def change(place: World, path: str, text: str) -> None:
    """A commit of a person's."""
    commit(place.repo, {path: text})


def ours(place: World) -> list[str]:
    """The titles of our issues, oldest first."""
    return [one.title for one in sorted(place.issues, key=lambda one: one.number)]


def cycles(place: World, number: int) -> list[str]:
    """What decisions and lines a number of cycles led to, seven hours apart."""
    return [remark for _ in range(number) for remark in place.cycle()[1].remarks]


@pytest.mark.long  # weeks of cycles; the limits have pure tests
def test_questions_that_nobody_answers_stop_neither_observing_nor_an_alarm(place):
    cycles(place, 6)
    assert len(ours(place)) == 3  # one a cycle; of the week's five, one is kept for a fix and one for what is grave
    change(place, "faults.txt", "src/m1.py:1: it crashes\n")
    report, told = place.cycle()
    assert {line.status for line in report.observers} == {"ok"}
    assert "it crashes" in ours(place)[-1] and len(ours(place)) == 4
    assert any("thread-cap" in line for line in told.held)
    cycles(place, 24)  # the next week: five of them wait for an answer
    assert len(ours(place)) == 5


@pytest.mark.long  # weeks of cycles; the limits have pure tests
def test_an_owner_who_refuses_everything_is_soon_left_alone_and_told_how_to_undo_it(place):
    remarks = []
    for _ in range(24):  # a week
        remarks += cycles(place, 1)
        for issue in [one for one in place.issues if one.state == "open"]:
            place.person().close_issue(issue.number)
    assert len(ours(place)) == 3
    assert "people refuse feature ideas, so no more are proposed: `thinker.weights: {feature: 1}`" in remarks[-1]
    assert "They are proposed no more, unless they are grave; `thinker.weights: {feature: 1}`" in place.memory()
    change(place, "ralph.yml", CONFIG + "thinker: {weights: {feature: 1}}\n")
    cycles(place, 1)
    assert len(ours(place)) == 4


def test_a_question_whose_finding_is_gone_is_closed_and_teaches_nothing(place):
    change(place, "wishes.txt", "")
    change(place, "faults.txt", "src/m1.py:1: it crashes\n")
    cycles(place, 1)
    (asked,) = place.issues
    assert "approve" not in asked.body.replace("nothing to approve", "")
    change(place, "faults.txt", "")
    cycles(place, 1)
    (closed,) = place.issues
    assert (closed.state, closed.state_reason) == ("closed", "completed")
    (told,) = place.house().forge.issue(closed.number).remarks
    assert "gone by itself: it was looked for" in told.body
    assert "people accepted" not in place.memory()


def test_a_marker_stays_the_same_whatever_becomes_of_its_neighbours(tmp_path):
    marked = "def add(x):\n    # TODO(2024-03-01): refuse duplicates\n"
    there = world(tmp_path / "repo", {"a.py": f"{marked}    return x\n"}, "hands: {fixers: []}\n")
    there.cycle()
    (asked,) = overdue(there)
    for line in ("x = x.strip()", "x = x.lower()"):
        change(there, "a.py", f"{marked}    {line}\n    return x\n")
        there.cycle()
        (again,) = overdue(there)
        assert again.number == asked.number
        if again.state == "open":
            there.person().close_issue(asked.number, "not_planned")
    change(there, "a.py", "def add(x):\n    return x\n")
    there.cycle()
    assert "Outcome: rejected" in there.memory()


def overdue(place: World) -> list[Any]:
    return [one for one in place.issues if "Overdue" in one.title]


def test_what_says_the_same_in_several_places_is_one_issue_until_the_last_is_gone(tmp_path):
    marked = {f"{name}.py": f"{name} = 1\n# TODO(2024-03-01): refuse duplicates\n" for name in "abc"}
    there = world(tmp_path / "repo", marked, "hands: {fixers: []}\n")
    there.cycle()
    there.cycle()
    (issue,) = overdue(there)
    assert issue.title.endswith("(and in 2 other places)")
    change(there, "a.py", "a = 1\n")
    there.cycle()
    assert [one.state for one in overdue(there)] == ["open"]
    commit(there.repo, {"b.py": "b = 1\n", "c.py": "# new\nc = 1\n"})
    there.cycle()
    assert [one.state for one in overdue(there)] == ["closed"]
    assert "Outcome: gone by itself" in there.memory()


@pytest.mark.parametrize("mend", [False, True])
def test_github_s_plain_close_is_a_no_unless_it_was_done_by_hand(tmp_path, mend):
    with open_hub(
        tmp_path, {"a.py": "x = 1\n# TODO(TEST): revert this before merging\n"}, "hands: {fixers: []}\n"
    ) as there:
        there.cycle()
        (asked,) = [one for one in there.threads if "Overdue" in one.title]
        if mend:
            there.fake.push(there.fake.default_branch, {"a.py": b"x = 1\n"})
        there.person("mara").close_issue(asked.number)
        there.cycle(timedelta(minutes=1), trigger="person", steering=True, force=False)
        assert "Outcome" not in there.memory()  # nobody has looked
        there.cycle()
        assert f"Outcome: {'done by a person' if mend else 'rejected'}" in there.memory()
        assert f"people accepted {int(mend)} of 1" in there.memory()


@pytest.mark.long  # weeks of cycles; the limits have pure tests
def test_what_a_person_did_by_hand_after_a_yes_is_noticed_and_never_escalated(place):
    change(place, "wishes.txt", "")
    change(place, "faults.txt", "src/m1.py:1: it crashes\n")
    cycles(place, 1)
    (asked,) = place.issues
    place.now += timedelta(minutes=1)
    place.person().comment(asked.number, "/ralph approve")
    cycles(place, 6)
    (planned,) = place.issues
    assert "ralph:escalated" not in planned.labels
    change(place, "faults.txt", "")
    report, _ = place.cycle()
    (closed,) = place.issues
    assert (closed.state, [line.status for line in report.missions]) == ("closed", ["COMPLETED"])
    (told,) = [one for one in place.house().forge.issue(closed.number).remarks if "**Done.**" in one.body]
    assert "done by a person: it was looked for" in told.body and "by hand" not in told.body


@pytest.mark.long  # weeks of cycles; the limits have pure tests
def test_three_missions_under_way_hold_a_fourth_yes_and_nothing_else(place):
    cycles(place, 4)
    for issue in sorted(place.issues, key=lambda one: one.number):
        place.person().comment(issue.number, "/ralph approve")
    report, told = place.cycle()
    report, told = place.cycle()
    begun = [line for line in report.missions if line.status == "PLANNED"]
    assert len(begun) == 3
    assert any("mission-cap" in line for line in told.held)
    assert {line.status for line in report.observers} == {"ok"}
