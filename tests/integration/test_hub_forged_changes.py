"""Changes and texts that a forged memory invents: nothing is pushed and no text rewritten that nobody agreed to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.model.effects import EditComment, OpenPull, PushBranch
from ralph_mission.mission.model.ledger import EffectRecord, MonitorRecord, monitor_key
from ralph_mission.mission.model.mission import Action, Finding, Status
from ralph_mission.safety.patch import REGULAR, Edit, FileChange, FileDelta, Patch
from tests.helpers import git
from tests.integration.forging import (
    ASKING,
    LISTING,
    TODO,
    branches,
    forge_memory,
    issue,
    opened,
    place,
    push_to_main,
    server,
    state_of,
    untouched,
)
from tests.integration.world import CALM, TYPOS, statuses, verdicts
from tests.mission.build import signal

pytestmark = pytest.mark.long  # takes ten seconds or more

__all__ = ["place"]


EVIL = (FileDelta("docs/evil.md", REGULAR, (Edit(0, 0, ("a small new page\n",)),)),)


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
    harbour = place({**TYPOS, **TODO}, "hands: {fixers: [typos]}\n")
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
