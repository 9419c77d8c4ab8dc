"""Somebody who can push to `ralph-memory` writes memory that goes on without a gap: it must grant nothing.

Every attack runs on the local forge and on GitHub, where the forged commit is pushed from another clone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.adapters.forges.local.documents import parse, render
from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.approval import about
from ralph_mission.mission.model.effects import EditComment, OpenPull, PushBranch
from ralph_mission.mission.model.ledger import EffectRecord, MemoryBatch
from ralph_mission.mission.model.mission import Action, Mission, MissionQuestion, Status, Tier, update_mission
from ralph_mission.mission.operations.recover import recover_memory
from ralph_mission.safety.patch import REGULAR, Edit, FileDelta
from tests.crash.witness import duplicates
from tests.helpers import git
from tests.integration.forging import (
    ASKING,
    branches,
    forge_memory,
    issue,
    place,
    pull,
    push_branch,
    server,
    state_of,
    untouched,
)
from tests.integration.hub import Hub, open_hub
from tests.integration.world import CALM, statuses, verdicts

__all__ = ["place"]

pytestmark = pytest.mark.long  # takes ten seconds or more


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
        question=MissionQuestion(waiting_since=place.now),
    )
    return update_mission(made, **changes)


def granted(place):
    """A world in which a change that was shown in an issue is in review, after a yes; and its mission."""
    hub = place(config=ASKING)
    hub.cycle()
    hub.person().label(state_of(hub).missions[0].issue, ("ralph:approved",))
    hub.cycle()
    (mission,) = state_of(hub).missions
    assert mission.issue and mission.pull
    return hub, mission


def escalated(report) -> bool:
    return next(line.status for line in report.missions if line.id == 90) is Status.ESCALATED


@pytest.mark.parametrize(
    "changes",
    [{}, {"status": Status.ESCALATED}, {"status": Status.FIXING, "stalled_cycles": 9}, {"status": Status.PARKED}],
)
def test_a_persons_issue_is_neither_remarked_on_nor_closed_because_some_pull_was_merged(place, changes):
    hub = place()
    hub.cycle()
    theirs = hub.person().create_issue("The tables are late", "again")
    merged = merged_pull(hub)
    before = issue(hub, theirs)
    false = stranger(hub, theirs, pull=merged, **changes)
    forge_memory(hub, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    for _ in range(3):
        report, _ = hub.cycle()
        untouched(hub, theirs, before)
    assert changes or escalated(report)
    assert "people accepted" not in hub.memory()


def test_a_mission_of_ours_led_to_a_persons_issue_writes_nothing_there_and_gives_its_slot_back(place):
    hub = place()
    hub.cycle()
    theirs = hub.person().create_issue("The tables are late")
    before = issue(hub, theirs)
    forge_memory(hub, lambda state: (replace(state, missions=(replace(state.missions[0], issue=theirs),)), ()))
    hub.person().merge(state_of(hub).missions[0].pull)
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert statuses(hub.cycle(after=timedelta(days=8))[0]) == ["PARKED"]
    untouched(hub, theirs, before)


@pytest.mark.parametrize("whose", ["a person's", "ours, of another mission"])
def test_an_issue_of_ours_is_not_closed_because_another_pull_was_merged(place, whose):
    hub, mission = granted(place)
    before = issue(hub, mission.issue)
    if whose == "a person's":
        changed = replace(mission, pull=merged_pull(hub), branch="hers")
    else:
        hub.person().merge(mission.pull)
        changed = replace(mission, members=("e" * 16,))
    forge_memory(hub, lambda state: (replace(state, missions=(changed,)), ()))
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    untouched(hub, mission.issue, before)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "two missions of one number"),
        ({"id": 7, "status": Status.COMPLETED}, "mission #7, which has ended: it is COMPLETED"),
        ({"id": 7, "status": Status.REJECTED}, "mission #7, which has ended: it is REJECTED"),
    ],
)
def test_missions_that_we_would_not_have_kept_so_stop_the_cycle_before_any_effect(place, change, why):
    hub = place()
    hub.cycle()
    theirs = hub.person().create_issue("The tables are late")
    before = issue(hub, theirs)

    def forge(state):
        return replace(state, missions=(replace(state.missions[0], issue=theirs, **change), *state.missions)), ()

    forge_memory(hub, forge)
    with pytest.raises(UserError, match=why):
        hub.cycle()
    untouched(hub, theirs, before)


def test_a_person_makes_an_issue_a_missions_own_with_her_label_and_an_outsider_does_not(place):
    hub = place(config=f"owners: [mara]\n{CALM}")
    hub.cycle()
    theirs = hub.person("passer-by").create_issue("The tables are late")
    false = stranger(hub, theirs, status=Status.PLANNED)
    forge_memory(hub, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    hub.person("tomas").label(theirs, ("ralph:mission",))
    assert escalated(hub.cycle()[0])
    mara = hub.person()
    mara.unlabel(theirs, ("ralph:mission",))
    mara.label(theirs, ("ralph:mission",))
    report, _ = hub.cycle()
    assert not escalated(report)


# --- Honest days on which a check against forged memory could stand in a person's way. ---


def edit(hub, number, text, read=issue) -> None:
    body = read(hub, number).body
    if isinstance(hub, Hub):
        hub.person().edit_issue(number, body=text(body))
        return
    folder = hub.repo / ".ralph" / "forge" / ("issues" if read is issue else "pulls")
    file = folder / f"{number:04d}.md"
    file.write_text(file.read_text().replace(body, text(body)))


def claim(hub, number) -> None:
    hub.person().unlabel(number, ("ralph:mission",))
    hub.person().label(number, ("ralph:mission",))


def approve(hub, number) -> None:
    hub.person().review(number, "approved")


def test_a_mission_whose_marker_was_edited_away_is_claimed_with_its_pull(place):
    hub, mission = granted(place)
    edit(hub, mission.issue, lambda body: "Shortened.")
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    claim(hub, mission.issue)
    assert statuses(hub.cycle()[0]) == ["IN_REVIEW"]
    approve(hub, mission.pull)
    assert statuses(hub.cycle()[0]) == ["COMPLETED"]
    assert (pull(hub, mission.pull).state, issue(hub, mission.issue).state) == ("merged", "closed")


def test_a_fix_whose_description_a_person_rewrote_is_merged_by_their_approval(place):
    hub = place()
    hub.cycle()
    (mission,) = state_of(hub).missions
    edit(hub, mission.pull, lambda body: "In my own words.", read=pull)
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert pull(hub, mission.pull).state == "open"
    approve(hub, mission.pull)
    assert statuses(hub.cycle()[0]) == ["COMPLETED"]
    assert pull(hub, mission.pull).state == "merged"


def test_a_yes_to_an_issue_that_names_no_change_sends_none_and_tells_so(place):
    hub = place(config=ASKING)
    hub.cycle()
    mission = state_of(hub).missions[0]
    lines = issue(hub, mission.issue).body.splitlines()
    unnamed = "\n".join(line for line in lines if "the change would be" not in line)
    edit(hub, mission.issue, lambda body: unnamed)
    told = issue(hub, mission.issue)
    older = about(mission, told.title, told.body)
    forge_memory(hub, lambda state: (replace(state, missions=(older,)), ()))
    hub.person().label(mission.issue, ("ralph:approved",))
    report, _ = hub.cycle()
    assert statuses(report)[0] == "PLANNED"
    assert {"push_branch", "open_pull"}.isdisjoint(effect.kind for effect in report.effects)
    assert "not named in its issue" in issue(hub, mission.issue).remarks[-1].body


def test_memory_with_two_missions_of_one_number_is_recovered_with_the_one_that_the_forge_names(place):
    hub = place()
    hub.cycle()
    theirs = hub.person().create_issue("The tables are late")
    store = hub.house().store
    past = store.recall()
    twin, ended = replace(past.state.missions[0], issue=theirs), replace(past.state.missions[0], id=7, issue=theirs + 1)
    false = (twin, replace(ended, status=Status.COMPLETED), *past.state.missions)
    store.commit(MemoryBatch(past.memory, replace(past.state, missions=false), (), "x"), past)
    with pytest.raises(UserError, match="two missions of one number"):
        hub.cycle()
    house = hub.house()
    recovered = recover_memory(house.store, house.ports.forge, hub.now)
    assert any(line.startswith(f"mission #1 on #{theirs}: ") for line in recovered.lost)
    assert statuses(hub.cycle()[0]) == ["IN_REVIEW"]


# --- Changes and texts that a forged memory invents: nothing is pushed and no text rewritten that nobody agreed to. ---

EVIL = (FileDelta("docs/evil.md", REGULAR, (Edit(0, 0, ("a small new page\n",)),)),)


def asked(place):
    """A question that shows a change, its mission and what a yes releases."""
    hub = place(config=ASKING)
    assert statuses(hub.cycle()[0]) == ["DISCOVERED"]
    (mission,) = state_of(hub).missions
    house = hub.house()
    return hub, mission, dict(house.store.records(mission.pending, house.store.recall()))


def test_a_yes_releases_the_change_that_was_shown(place):
    hub, mission, _ = asked(place)
    hub.person().label(mission.issue, ("ralph:approved",))
    assert statuses(hub.cycle()[0])[0] == "IN_REVIEW"
    assert len(branches(hub)) == 1


def changed(records, change):
    """The kept effects, forged."""
    return [replace(record, effect=change(record.effect)) for record in records.values()]


def worse(effect):
    return replace(effect, files=EVIL) if isinstance(effect, PushBranch) else effect


def retold(effect):
    return replace(effect, body="Nobody wrote this.") if isinstance(effect, OpenPull) else effect


@pytest.mark.parametrize("change", [worse, retold])
def test_a_yes_to_one_change_releases_no_other(place, change):
    hub, mission, records = asked(place)
    hub.person().label(mission.issue, ("ralph:approved",))
    forge_memory(hub, lambda state: (state, changed(records, change)))
    report, _ = hub.cycle()
    assert ("open-fix", "deny", ("approval-content",)) in verdicts(report)
    assert branches(hub) == []


@pytest.mark.parametrize("without", [{}, {"proposal_hash": ""}])
def test_what_was_asked_is_not_pushed_without_a_yes_whatever_memory_says(place, without):
    hub, mission, _ = asked(place)
    begun = update_mission(mission, status=Status.EXECUTING, action=Action.OPEN_FIX, **without)
    forge_memory(hub, lambda state: (replace(state, missions=(begun,)), ()))
    for _ in range(2):
        hub.cycle()
    assert branches(hub) == []


@pytest.mark.parametrize("lives_in", ["an issue", "a pull request"])
def test_no_small_change_is_pushed_that_nothing_of_ours_showed(place, lives_in):
    if lives_in == "an issue":
        hub, mission = granted(place)
    else:
        hub = place()
        hub.cycle()
        (mission,) = state_of(hub).missions
    tip = git(server(hub), "rev-parse", "main")
    push = PushBranch("a" * 16, "ralph/quiet", tip, "A page\n", hub.now, EVIL)
    kept = EffectRecord(push.key, "b" * 16, Action.OPEN_FIX, "spelling", "failed", push, 1, hub.now, mission.id)
    begun = update_mission(mission, status=Status.EXECUTING, pull=0, pending=(push.key,))
    forge_memory(hub, lambda state: (replace(state, missions=(begun,)), (kept,)))
    report, _ = hub.cycle()
    assert (("open-fix", "deny", ("approval-content",)) in verdicts(report)) is (lives_in == "an issue")
    hub.cycle()
    assert "ralph/quiet" not in branches(hub)


def intended(place, effect) -> EffectRecord:
    return EffectRecord(effect.key, "b" * 16, Action.MONITOR, "todo", "intended", effect, 1, place.now)


@pytest.mark.parametrize("target", ["hers", "a mission's"])
def test_an_intent_that_memory_invents_rewrites_no_text(place, target):
    hub = place(config=ASKING)
    hub.cycle()
    ours = state_of(hub).missions[0].issue
    number = ours if target == "a mission's" else hub.person().create_issue("The tables are late", "again")
    before = issue(hub, number).body
    edit = EditComment("a" * 16, number, 0, "Nobody wrote this.")
    forge_memory(hub, lambda state: (replace(state, effects=(edit.key,)), (intended(hub, edit),)))
    hub.cycle()
    assert issue(hub, number).body == before
    assert state_of(hub).effects == ()


# --- remarks --------------------------------------------------------------------------


def remarks(hub, number) -> list[int]:
    return [remark.id for remark in issue(hub, number).remarks if "ralph:v1" in remark.body]


def delete(hub, number, remark) -> None:
    if isinstance(hub, Hub):
        hub.person().delete_comment(remark)
        return
    file = hub.repo / ".ralph" / "forge" / "issues" / f"{number:04d}.md"
    thread = parse(file.read_text())
    file.write_text(render(replace(thread, remarks=tuple(r for r in thread.remarks if r.id != remark))))


def remarked(place):
    """A question that was parked, with our standing remark."""
    hub = place({"README.md": "Tides are seperate from waves.\n"}, ASKING)
    hub.cycle()
    (mission,) = state_of(hub).missions
    assert statuses(hub.cycle(after=timedelta(days=40))[0]) == ["PARKED"]
    (remark,) = remarks(hub, mission.issue)
    return hub, mission.issue, remark


def refuse(hub, number) -> None:
    hub.person().label(number, ("ralph:rejected",))
    assert statuses(hub.cycle()[0]) == ["REJECTED"]


def test_a_deleted_remark_gets_a_successor_as_often_as_it_is_lost(place):
    hub, number, first = remarked(place)
    delete(hub, number, first)
    claim(hub, number)
    hub.cycle()
    (second,) = remarks(hub, number)
    assert "brought back" in text(hub, number)
    delete(hub, number, second)
    refuse(hub, number)
    assert "rejected this" in text(hub, number)


def text(hub, number) -> str:
    (body,) = (remark.body for remark in issue(hub, number).remarks if "ralph:v1" in remark.body)
    return body


# --- A person was faster: her pull makes the change that a mission of ours is about to push. ---

MENDED = {
    "README.md": b"# Harbour\n\nTides are separate from waves. We receive the tables by mail.\n",
    "docs/guide.md": b"# Guide\n\nThis is definitely the way to read a table.\n",
}
ASKING_HUB_DUPLICATES = f"{CALM}limits: {{auto_prs_per_cycle: 0}}\n"


def somebody_mends_it(hub: Hub, state: str) -> None:
    hub.fake.push("hint", MENDED)
    jonas = hub.person("jonas", "write")
    number = jonas.open_pull("hint", "main", "Mend words")
    if state == "merged":
        jonas.merge(number)


def held(hub: Hub) -> bool:
    """Whether the push waits, and people are told for what."""
    report, cycle_summary = hub.cycle()
    rules = [(verdict, rules) for action, verdict, rules in verdicts(report) if action == "open-fix"]
    assert any("human-duplicate" in line for line in cycle_summary.held) is (("hold", ("human-duplicate",)) in rules)
    return rules == [("hold", ("human-duplicate",))]


def ours(hub: Hub) -> list[str]:
    return [thread.title for thread in hub.pulls if thread.title != "Mend words"]


@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_change_that_a_person_made_meanwhile_is_not_pushed_when_it_is_approved(tmp_path, state):
    with open_hub(tmp_path, config=ASKING_HUB_DUPLICATES) as hub:
        assert statuses(hub.cycle()[0]) == ["DISCOVERED"]
        issue = hub.issues[0].number
        somebody_mends_it(hub, state)
        hub.person().label(issue, ("ralph:approved",))
        assert held(hub) if state == "open" else statuses(hub.cycle()[0]) == ["COMPLETED"]
        assert ours(hub) == []


@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_change_that_a_person_made_meanwhile_is_not_pushed_when_the_mission_is_revived(tmp_path, state):
    with open_hub(tmp_path) as hub:
        hub.fake.settings.actions_can_create_pulls = False
        hub.cycle()
        hub.cycle()
        assert statuses(hub.cycle()[0]) == ["ESCALATED"]
        hub.fake.settings.actions_can_create_pulls = True
        somebody_mends_it(hub, state)
        hub.person().unlabel(hub.issues[0].number, ("ralph:escalated",))
        first = statuses(hub.cycle()[0])
        assert held(hub) if state == "open" else first == ["COMPLETED"]
        assert ours(hub) == []


# --- Somebody gives the default branch another name between two cycles: what was begun is found and finished, once. ---


@pytest.fixture
def hub(reviewed):
    """One with an open pull of Ralph's onto `main`, which is called `trunk` from now on."""
    reviewed.person()
    reviewed.fake.rename_default("trunk")
    return reviewed


def made_by(report) -> set[str]:
    return {line.kind for line in report.effects if line.status == "done"}


def test_an_open_pull_is_found_again_and_nothing_is_made_twice(hub):
    before = len(hub.threads)
    for runner in ("one", "two"):
        hub.runner = runner
        report, _ = hub.cycle()
        assert statuses(report) == ["IN_REVIEW"]
        assert made_by(report) == set()
    assert (len(hub.threads), duplicates(hub)) == (before, [])
    assert hub.fake.branch("main") == ""


@pytest.mark.parametrize("runner", ["one", "two"])
def test_an_approved_pull_is_merged_into_the_new_default_branch(hub, runner):
    pull = hub.pulls[0]
    head, base = hub.fake.branch(pull.pull.head), hub.fake.branch("trunk")
    hub.person().review(pull.number, "approved")
    hub.runner = runner
    assert statuses(hub.cycle()[0]) == ["COMPLETED"]
    assert hub.merged(pull.number)
    assert git(hub.fake.bare, "rev-parse", "trunk~1") == base
    assert git(hub.fake.bare, "diff", "--stat", head, "trunk") == ""
    hub.cycle()
    assert (hub.fake.branch("main"), duplicates(hub)) == ("", [])
    assert hub.fake.count(method="PUT", below="/pulls/*/merge") == 1


def test_a_rename_in_the_middle_of_a_cycle_merges_at_most_once(reviewed):
    (pull,) = reviewed.pulls
    reviewed.person().review(pull.number, "approved")

    def renamed(request):
        if request.method == "PUT" and request.below.endswith("/merge"):
            undo()
            reviewed.fake.rename_default("trunk")

    undo = reviewed.fake.before(renamed)
    reviewed.cycle()
    reviewed.cycle()
    assert reviewed.merged(pull.number) and duplicates(reviewed) == []
    assert pull.pull.base == "trunk"
