"""Somebody who can push to `ralph-memory` writes memory that goes on without a gap: it must grant nothing.

Every attack runs on the local forge and on GitHub, where the forged commit is pushed from another clone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.effects import EditComment, OpenPull, PushBranch
from ralph_mission.mission.ledger import Batch, EffectRecord, MonitorRecord, monitor_key
from ralph_mission.mission.model import Action, Finding, Mission, Status, Tier
from ralph_mission.safety.edits import Edit, FileDelta
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.trouble import Trouble
from tests.helpers import commit, git
from tests.integration.hub import Hub, hub
from tests.integration.world import CALM, TYPOS, statuses, verdicts, world
from tests.mission.build import signal

ASKING = CALM + "limits: {auto_prs_per_cycle: 0}\n"  # every change is shown in an issue first
LISTING = "hands: {fixers: []}\n"
TODO = {"a.py": "# TODO: one\nx = 1\n"}
EVIL = (FileDelta("docs/evil.md", REGULAR, (Edit(0, 0, ("a small new page\n",)),)),)


@pytest.fixture(params=["local", "github"])
def place(request, tmp_path):
    """Makes a world of either forge."""
    opened = []

    def make(files=TYPOS, config=CALM):
        if request.param == "local":
            return world(tmp_path / "repo", files, config)
        opened.append(hub(tmp_path, files, config))
        return opened[-1].__enter__()

    yield make
    for each in opened:
        each.__exit__(None, None, None)


def server(place):
    return place.fake.bare if isinstance(place, Hub) else place.repo


def forge_memory(place, change) -> None:
    """One commit with serial + 1 and everything that `change(state)` makes of it: (state, records)."""
    if isinstance(place, Hub):
        place.runner = "thief"
    store = place.house().store
    past = store.recall()
    state, records = change(past.state)
    store.commit(Batch(past.memory, state, tuple(records), "ralph: cycle"), past)
    if isinstance(place, Hub):
        place.runner = "one"


def issue(place, number):
    return place.house().forge.issue(number)


def pull(place, number):
    return place.house().forge.pull(number)


def branches(place) -> list[str]:
    return git(server(place), "for-each-ref", "--format=%(refname:short)", "refs/heads/ralph/").split()


def push_branch(place, name, files) -> None:
    """A branch of a person's, pushed."""
    if isinstance(place, Hub):
        place.fake.push(name, {path: text.encode() for path, text in files.items()}, base="main")
        return
    place.git("checkout", "-q", "-b", name)
    commit(place.repo, files, message="Hers")
    place.git("checkout", "-q", "main")


def merged_pull(place) -> int:
    """A pull of a person's that she merged."""
    push_branch(place, "hers", {"hers.txt": "mine\n"})
    mara = place.person()
    number = mara.open_pull("hers", "main", "Add mine")
    mara.merge(number)
    return number


def stranger(place, number, **changes) -> Mission:
    """A mission that never was, on the issue `number`."""
    made = Mission(
        90,
        "f" * 16,
        "A title of theirs",
        "spelling",
        Action.OPEN_FIX,
        Tier.LOW,
        Status.IN_REVIEW,
        1,
        place.now,
        place.now,
        members=("e" * 16,),
        issue=number,
        branch="hers",
        head_sha="c" * 40,
        waiting_since=place.now,
    )
    return replace(made, **changes)


def untouched(place, number, before) -> None:
    """Nothing was written there, closed, labelled or assigned."""
    after = issue(place, number)
    kept = ("title", "body", "state", "labels", "assignees", "remarks", "events")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]


def escalated(report) -> bool:
    return next(line.status for line in report.missions if line.id == 90) is Status.ESCALATED


@pytest.mark.parametrize(
    "changes",
    [{}, {"status": Status.ESCALATED}, {"status": Status.FIXING, "stalled_cycles": 9}, {"status": Status.PARKED}],
)
def test_a_persons_issue_is_neither_remarked_on_nor_closed_because_some_pull_was_merged(place, changes):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late", "again")
    merged = merged_pull(harbour)
    before = issue(harbour, theirs)
    false = stranger(harbour, theirs, pull=merged, **changes)
    forge_memory(harbour, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    for _ in range(3):
        report, _ = harbour.cycle()
        untouched(harbour, theirs, before)
    assert changes or escalated(report)
    assert "people accepted" not in harbour.memory()


def test_a_forged_mission_is_told_of_and_a_person_is_asked(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    false = stranger(harbour, theirs)
    forge_memory(harbour, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    report, telling = harbour.cycle()
    assert escalated(report)
    assert len([line for line in telling.waiting if line.startswith("decide:")]) == 1
    assert f"issue #{theirs} does not belong to this mission" in harbour.memory()


def test_a_mission_of_ours_led_to_a_persons_issue_writes_nothing_there_and_gives_its_slot_back(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    before = issue(harbour, theirs)
    forge_memory(harbour, lambda state: (replace(state, missions=(replace(state.missions[0], issue=theirs),)), ()))
    harbour.person().merge(state_of(harbour).missions[0].pull)
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    assert statuses(harbour.cycle(after=timedelta(days=8))[0]) == ["PARKED"]
    untouched(harbour, theirs, before)


def state_of(place):
    return place.house().store.recall().state


@pytest.mark.parametrize("whose", ["a person's", "ours, of another mission"])
def test_an_issue_of_ours_is_not_closed_because_another_pull_was_merged(place, whose):
    harbour = place()
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    before = issue(harbour, mission.issue)
    if whose == "a person's":
        changed = replace(mission, pull=merged_pull(harbour), branch="hers")
    else:
        harbour.person().merge(mission.pull)
        changed = replace(mission, members=("e" * 16,))
    forge_memory(harbour, lambda state: (replace(state, missions=(changed,)), ()))
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    untouched(harbour, mission.issue, before)


def test_an_issue_that_a_person_labelled_is_not_closed_for_a_pull_of_ours(place):
    harbour = place()
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    harbour.person().merge(mission.pull)
    mara = harbour.person()
    hers = mara.create_issue("Add a chart of the springs")
    mara.label(hers, ("ralph:mission",))
    forge_memory(harbour, lambda state: (replace(state, missions=(replace(mission, issue=hers),)), ()))
    harbour.cycle()
    assert issue(harbour, hers).state == "open"


def test_two_missions_of_one_number_stop_the_cycle_before_any_effect(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    before = issue(harbour, theirs)
    forge_memory(
        harbour,
        lambda state: (replace(state, missions=(replace(state.missions[0], issue=theirs), *state.missions)), ()),
    )
    with pytest.raises(Trouble, match="two missions of one number"):
        harbour.cycle()
    untouched(harbour, theirs, before)


def test_a_person_makes_an_issue_a_missions_own_with_her_label_and_an_outsider_does_not(place):
    harbour = place(config=f"owners: [mara]\n{CALM}")
    harbour.cycle()
    theirs = harbour.person("passer-by").create_issue("The tables are late")
    false = stranger(harbour, theirs, status=Status.PLANNED)
    forge_memory(harbour, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    harbour.person("tomas").label(theirs, ("ralph:mission",))
    assert escalated(harbour.cycle()[0])
    mara = harbour.person()
    mara.unlabel(theirs, ("ralph:mission",))
    mara.label(theirs, ("ralph:mission",))
    report, _ = harbour.cycle()
    assert not escalated(report)


def test_a_mission_that_a_person_made_ends_without_a_word_when_she_takes_her_label_off(place):
    harbour = place({"a.txt": "fine\n"})
    mara = harbour.person()
    hers = mara.create_issue("Add a chart of the springs")
    mara.label(hers, ("ralph:mission",))
    assert statuses(harbour.cycle()[0]) == ["PLANNED"]
    harbour.person().unlabel(hers, ("ralph:mission",))
    before = issue(harbour, hers)
    assert statuses(harbour.cycle()[0]) == ["REJECTED"]
    untouched(harbour, hers, before)
    assert state_of(harbour).missions == ()


# --- changes that memory keeps --------------------------------------------------------


def asked(place):
    """A question that shows a change, its mission and what a yes releases."""
    harbour = place(config=ASKING)
    assert statuses(harbour.cycle()[0]) == ["DISCOVERED"]
    (mission,) = state_of(harbour).missions
    house = harbour.house()
    return harbour, mission, dict(house.store.records(mission.pending, house.store.recall()))


def test_a_yes_releases_the_change_that_was_shown(place):
    harbour, mission, _ = asked(place)
    harbour.person().label(mission.issue, ("ralph:approved",))
    assert statuses(harbour.cycle()[0])[0] == "IN_REVIEW"
    assert len(branches(harbour)) == 1


def changed(records, change):
    """The kept effects, forged."""
    return [replace(record, effect=change(record.effect)) for record in records.values()]


def worse(effect):
    return replace(effect, files=EVIL) if isinstance(effect, PushBranch) else effect


def retold(effect):
    return replace(effect, body="Nobody wrote this.") if isinstance(effect, OpenPull) else effect


@pytest.mark.parametrize("change", [worse, retold])
def test_a_yes_to_one_change_releases_no_other(place, change):
    harbour, mission, records = asked(place)
    harbour.person().label(mission.issue, ("ralph:approved",))
    forge_memory(harbour, lambda state: (state, changed(records, change)))
    report, _ = harbour.cycle()
    assert ("open-fix", "deny", ("approval-content",)) in verdicts(report)
    assert branches(harbour) == []


def test_a_yes_releases_nothing_that_was_kept_for_another_mission(place):
    harbour, mission, records = asked(place)
    harbour.person().label(mission.issue, ("ralph:approved",))
    forge_memory(harbour, lambda state: (state, [replace(record, mission=7) for record in records.values()]))
    report, _ = harbour.cycle()
    assert ("open-fix", "deny", ("approval-content",)) in verdicts(report)
    assert branches(harbour) == []


@pytest.mark.parametrize("without", [{}, {"proposal_hash": ""}])
def test_what_was_asked_is_not_pushed_without_a_yes_whatever_memory_says(place, without):
    harbour, mission, _ = asked(place)
    begun = replace(mission, status=Status.EXECUTING, action=Action.OPEN_FIX, **without)
    forge_memory(harbour, lambda state: (replace(state, missions=(begun,)), ()))
    for _ in range(2):
        harbour.cycle()
    assert branches(harbour) == []


def test_no_small_change_is_pushed_that_no_issue_of_ours_showed(place):
    harbour = place()
    harbour.cycle()
    (mission,) = state_of(harbour).missions
    tip = git(server(harbour), "rev-parse", "main")
    push = PushBranch("a" * 16, "ralph/quiet", tip, "A page\n", harbour.now, EVIL)
    kept = EffectRecord(push.key, "b" * 16, Action.OPEN_FIX, "spelling", "failed", push, 1, harbour.now, mission.id)
    begun = replace(mission, status=Status.EXECUTING, pull=0, pending=(push.key,))
    forge_memory(harbour, lambda state: (replace(state, missions=(begun,)), (kept,)))
    report, _ = harbour.cycle()
    assert ("open-fix", "deny", ("approval-content",)) in verdicts(report)
    assert "ralph/quiet" not in branches(harbour)


def test_a_waiting_finding_brings_no_change_of_its_own(place):
    harbour = place(
        {"a.txt": "fine\n"}, CALM + "  commands:\n    - {name: check, run: 'exit 9', kind: spelling, parse: sarif}\n"
    )
    harbour.cycle()
    tip = git(server(harbour), "rev-parse", "main")
    evil = Patch(tip, (FileChange("docs/evil.md", "", REGULAR, None, b"a small new page\n"),))
    waiting = signal(observer="commands.check", patch=evil, path="docs/evil.md")
    forge_memory(harbour, lambda state: (replace(state, backlog=(Finding("d" * 16, waiting),)), ()))
    harbour.cycle()
    assert branches(harbour) == []


# --- texts ----------------------------------------------------------------------------


def test_a_remark_of_a_persons_is_not_edited_because_memory_calls_it_ours(place):
    harbour = place()
    harbour.cycle()
    (mission,) = state_of(harbour).missions
    harbour.person().comment(mission.issue, "I will look at it")
    remark = issue(harbour, mission.issue).remarks[0]
    forge_memory(harbour, lambda state: (replace(state, missions=(replace(mission, comment=remark.id),)), ()))
    harbour.person().merge(mission.pull)
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
    assert [r.body for r in issue(harbour, mission.issue).remarks if r.id == remark.id] == ["I will look at it"]


def intended(place, effect) -> EffectRecord:
    return EffectRecord(effect.key, "b" * 16, Action.MONITOR, "todo", "intended", effect, 1, place.now)


@pytest.mark.parametrize("target", ["hers", "a mission's", "the list"])
def test_an_intent_that_memory_invents_rewrites_no_text(place, target):
    harbour = place({**TYPOS, **TODO}, "hands: {fixers: [codespell]}\n")
    while not any(line.title.startswith("Watching") for line in opened(harbour)):
        harbour.cycle()
    number = {
        "hers": harbour.person().create_issue("The tables are late", "again"),
        "a mission's": state_of(harbour).missions[0].issue,
        "the list": next(line.number for line in opened(harbour) if line.title.startswith("Watching")),
    }[target]
    before = issue(harbour, number).body
    body = "@mara look" if target == "the list" else "Nobody wrote this."
    edit = EditComment("a" * 16, number, 0, body)
    forge_memory(harbour, lambda state: (replace(state, effects=(edit.key,)), (intended(harbour, edit),)))
    harbour.cycle()
    assert issue(harbour, number).body == before
    assert state_of(harbour).effects == ()


def opened(place):
    return place.house().forge.issues("open")


def test_a_persons_issue_is_not_taken_for_a_list(place):
    harbour = place(TODO, LISTING)
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late", "again")
    before = issue(harbour, theirs)
    key = monitor_key("todo")
    forge_memory(harbour, lambda state: (state, (MonitorRecord(key, "todo", theirs, (), 0),)))
    push_to_main(harbour, {"b.py": "y = 2\n# TODO: two\n"})
    harbour.cycle()
    untouched(harbour, theirs, before)


def push_to_main(place, files) -> None:
    if isinstance(place, Hub):
        place.fake.push("main", {path: text.encode() for path, text in files.items()})
    else:
        commit(place.repo, files, message="More")
