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
from tests.integration.hub import Hub, hub
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
    harbour = place(config=ASKING)
    harbour.cycle()
    harbour.person().label(state_of(harbour).missions[0].issue, ("ralph:approved",))
    harbour.cycle()
    (mission,) = state_of(harbour).missions
    assert mission.issue and mission.pull
    return harbour, mission


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


@pytest.mark.parametrize("whose", ["a person's", "ours, of another mission"])
def test_an_issue_of_ours_is_not_closed_because_another_pull_was_merged(place, whose):
    harbour, mission = granted(place)
    before = issue(harbour, mission.issue)
    if whose == "a person's":
        changed = replace(mission, pull=merged_pull(harbour), branch="hers")
    else:
        harbour.person().merge(mission.pull)
        changed = replace(mission, members=("e" * 16,))
    forge_memory(harbour, lambda state: (replace(state, missions=(changed,)), ()))
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    untouched(harbour, mission.issue, before)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "two missions of one number"),
        ({"id": 7, "status": Status.COMPLETED}, "mission #7, which has ended: it is COMPLETED"),
        ({"id": 7, "status": Status.REJECTED}, "mission #7, which has ended: it is REJECTED"),
    ],
)
def test_missions_that_we_would_not_have_kept_so_stop_the_cycle_before_any_effect(place, change, why):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    before = issue(harbour, theirs)

    def forge(state):
        return replace(state, missions=(replace(state.missions[0], issue=theirs, **change), *state.missions)), ()

    forge_memory(harbour, forge)
    with pytest.raises(UserError, match=why):
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


# --- Honest days on which a check against forged memory could stand in a person's way. ---


def edit(harbour, number, text, read=issue) -> None:
    body = read(harbour, number).body
    if isinstance(harbour, Hub):
        harbour.person().edit_issue(number, body=text(body))
        return
    folder = harbour.repo / ".ralph" / "forge" / ("issues" if read is issue else "pulls")
    file = folder / f"{number:04d}.md"
    file.write_text(file.read_text().replace(body, text(body)))


def claim(harbour, number) -> None:
    harbour.person().unlabel(number, ("ralph:mission",))
    harbour.person().label(number, ("ralph:mission",))


def approve(harbour, number) -> None:
    harbour.person().review(number, "approved")


def test_a_mission_whose_marker_was_edited_away_is_claimed_with_its_pull(place):
    harbour, mission = granted(place)
    edit(harbour, mission.issue, lambda body: "Shortened.")
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    claim(harbour, mission.issue)
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]
    approve(harbour, mission.pull)
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
    assert (pull(harbour, mission.pull).state, issue(harbour, mission.issue).state) == ("merged", "closed")


def test_a_fix_whose_description_a_person_rewrote_is_merged_by_their_approval(place):
    harbour = place()
    harbour.cycle()
    (mission,) = state_of(harbour).missions
    edit(harbour, mission.pull, lambda body: "In my own words.", read=pull)
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    assert pull(harbour, mission.pull).state == "open"
    approve(harbour, mission.pull)
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
    assert pull(harbour, mission.pull).state == "merged"


def test_a_yes_to_an_issue_that_names_no_change_sends_none_and_tells_so(place):
    harbour = place(config=ASKING)
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    lines = issue(harbour, mission.issue).body.splitlines()
    unnamed = "\n".join(line for line in lines if "the change would be" not in line)
    edit(harbour, mission.issue, lambda body: unnamed)
    told = issue(harbour, mission.issue)
    older = about(mission, told.title, told.body)
    forge_memory(harbour, lambda state: (replace(state, missions=(older,)), ()))
    harbour.person().label(mission.issue, ("ralph:approved",))
    report, _ = harbour.cycle()
    assert statuses(report)[0] == "PLANNED"
    assert {"push_branch", "open_pull"}.isdisjoint(effect.kind for effect in report.effects)
    assert "not named in its issue" in issue(harbour, mission.issue).remarks[-1].body


def test_memory_with_two_missions_of_one_number_is_recovered_with_the_one_that_the_forge_names(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    store = harbour.house().store
    past = store.recall()
    twin, ended = replace(past.state.missions[0], issue=theirs), replace(past.state.missions[0], id=7, issue=theirs + 1)
    false = (twin, replace(ended, status=Status.COMPLETED), *past.state.missions)
    store.commit(MemoryBatch(past.memory, replace(past.state, missions=false), (), "x"), past)
    with pytest.raises(UserError, match="two missions of one number"):
        harbour.cycle()
    house = harbour.house()
    recovered = recover_memory(house.store, house.ports.forge, harbour.now)
    assert any(line.startswith(f"mission #1 on #{theirs}: ") for line in recovered.lost)
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]


# --- Changes and texts that a forged memory invents: nothing is pushed and no text rewritten that nobody agreed to. ---

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


@pytest.mark.parametrize("without", [{}, {"proposal_hash": ""}])
def test_what_was_asked_is_not_pushed_without_a_yes_whatever_memory_says(place, without):
    harbour, mission, _ = asked(place)
    begun = update_mission(mission, status=Status.EXECUTING, action=Action.OPEN_FIX, **without)
    forge_memory(harbour, lambda state: (replace(state, missions=(begun,)), ()))
    for _ in range(2):
        harbour.cycle()
    assert branches(harbour) == []


@pytest.mark.parametrize("lives_in", ["an issue", "a pull request"])
def test_no_small_change_is_pushed_that_nothing_of_ours_showed(place, lives_in):
    if lives_in == "an issue":
        harbour, mission = granted(place)
    else:
        harbour = place()
        harbour.cycle()
        (mission,) = state_of(harbour).missions
    tip = git(server(harbour), "rev-parse", "main")
    push = PushBranch("a" * 16, "ralph/quiet", tip, "A page\n", harbour.now, EVIL)
    kept = EffectRecord(push.key, "b" * 16, Action.OPEN_FIX, "spelling", "failed", push, 1, harbour.now, mission.id)
    begun = update_mission(mission, status=Status.EXECUTING, pull=0, pending=(push.key,))
    forge_memory(harbour, lambda state: (replace(state, missions=(begun,)), (kept,)))
    report, _ = harbour.cycle()
    assert (("open-fix", "deny", ("approval-content",)) in verdicts(report)) is (lives_in == "an issue")
    harbour.cycle()
    assert "ralph/quiet" not in branches(harbour)


def intended(place, effect) -> EffectRecord:
    return EffectRecord(effect.key, "b" * 16, Action.MONITOR, "todo", "intended", effect, 1, place.now)


@pytest.mark.parametrize("target", ["hers", "a mission's"])
def test_an_intent_that_memory_invents_rewrites_no_text(place, target):
    harbour = place(config=ASKING)
    harbour.cycle()
    ours = state_of(harbour).missions[0].issue
    number = ours if target == "a mission's" else harbour.person().create_issue("The tables are late", "again")
    before = issue(harbour, number).body
    edit = EditComment("a" * 16, number, 0, "Nobody wrote this.")
    forge_memory(harbour, lambda state: (replace(state, effects=(edit.key,)), (intended(harbour, edit),)))
    harbour.cycle()
    assert issue(harbour, number).body == before
    assert state_of(harbour).effects == ()


# --- remarks --------------------------------------------------------------------------


def remarks(harbour, number) -> list[int]:
    return [remark.id for remark in issue(harbour, number).remarks if "ralph:v1" in remark.body]


def delete(harbour, number, remark) -> None:
    if isinstance(harbour, Hub):
        harbour.person().delete_comment(remark)
        return
    file = harbour.repo / ".ralph" / "forge" / "issues" / f"{number:04d}.md"
    thread = parse(file.read_text())
    file.write_text(render(replace(thread, remarks=tuple(r for r in thread.remarks if r.id != remark))))


def remarked(place):
    """A question that was parked, with our standing remark."""
    harbour = place({"README.md": "Tides are seperate from waves.\n"}, ASKING)
    harbour.cycle()
    (mission,) = state_of(harbour).missions
    assert statuses(harbour.cycle(after=timedelta(days=40))[0]) == ["PARKED"]
    (remark,) = remarks(harbour, mission.issue)
    return harbour, mission.issue, remark


def refuse(harbour, number) -> None:
    harbour.person().label(number, ("ralph:rejected",))
    assert statuses(harbour.cycle()[0]) == ["REJECTED"]


def revive(harbour, number) -> None:
    harbour.person().unlabel(number, ("ralph:mission",))
    harbour.person().label(number, ("ralph:mission",))


def test_a_deleted_remark_gets_a_successor_as_often_as_it_is_lost(place):
    harbour, number, first = remarked(place)
    delete(harbour, number, first)
    revive(harbour, number)
    harbour.cycle()
    (second,) = remarks(harbour, number)
    assert "brought back" in text(harbour, number)
    delete(harbour, number, second)
    refuse(harbour, number)
    assert "rejected this" in text(harbour, number)


def text(harbour, number) -> str:
    (body,) = (remark.body for remark in issue(harbour, number).remarks if "ralph:v1" in remark.body)
    return body


# --- A person was faster: her pull makes the change that a mission of ours is about to push. ---

MENDED = {
    "README.md": b"# Harbour\n\nTides are separate from waves. We receive the tables by mail.\n",
    "docs/guide.md": b"# Guide\n\nThis is definitely the way to read a table.\n",
}
ASKING_HUB_DUPLICATES = f"{CALM}limits: {{auto_prs_per_cycle: 0}}\n"


def somebody_mends_it(harbour: Hub, state: str) -> None:
    harbour.fake.push("hint", MENDED)
    jonas = harbour.person("jonas", "write")
    number = jonas.open_pull("hint", "main", "Mend words")
    if state == "merged":
        jonas.merge(number)


def held(harbour: Hub) -> bool:
    """Whether the push waits, and people are told for what."""
    report, cycle_summary = harbour.cycle()
    rules = [(verdict, rules) for action, verdict, rules in verdicts(report) if action == "open-fix"]
    assert any("human-duplicate" in line for line in cycle_summary.held) is (("hold", ("human-duplicate",)) in rules)
    return rules == [("hold", ("human-duplicate",))]


def ours(harbour: Hub) -> list[str]:
    return [thread.title for thread in harbour.pulls if thread.title != "Mend words"]


@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_change_that_a_person_made_meanwhile_is_not_pushed_when_it_is_approved(tmp_path, state):
    with hub(tmp_path, config=ASKING_HUB_DUPLICATES) as harbour:
        assert statuses(harbour.cycle()[0]) == ["DISCOVERED"]
        issue = harbour.issues[0].number
        somebody_mends_it(harbour, state)
        harbour.person().label(issue, ("ralph:approved",))
        assert held(harbour) if state == "open" else statuses(harbour.cycle()[0]) == ["COMPLETED"]
        assert ours(harbour) == []


@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_change_that_a_person_made_meanwhile_is_not_pushed_when_the_mission_is_revived(tmp_path, state):
    with hub(tmp_path) as harbour:
        harbour.fake.settings.actions_can_create_pulls = False
        harbour.cycle()
        harbour.cycle()
        assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
        harbour.fake.settings.actions_can_create_pulls = True
        somebody_mends_it(harbour, state)
        harbour.person().unlabel(harbour.issues[0].number, ("ralph:escalated",))
        first = statuses(harbour.cycle()[0])
        assert held(harbour) if state == "open" else first == ["COMPLETED"]
        assert ours(harbour) == []


# --- Somebody gives the default branch another name between two cycles: what was begun is found and finished, once. ---


@pytest.fixture
def harbour(reviewed):
    """One with an open pull of Ralph's onto `main`, which is called `trunk` from now on."""
    reviewed.person()
    reviewed.fake.rename_default("trunk")
    return reviewed


def made_by(report) -> set[str]:
    return {line.kind for line in report.effects if line.status == "done"}


def test_an_open_pull_is_found_again_and_nothing_is_made_twice(harbour):
    before = len(harbour.threads)
    for runner in ("one", "two"):
        harbour.runner = runner
        report, _ = harbour.cycle()
        assert statuses(report) == ["IN_REVIEW"]
        assert made_by(report) == set()
    assert (len(harbour.threads), duplicates(harbour)) == (before, [])
    assert harbour.fake.branch("main") == ""


@pytest.mark.parametrize("runner", ["one", "two"])
def test_an_approved_pull_is_merged_into_the_new_default_branch(harbour, runner):
    pull = harbour.pulls[0]
    head, base = harbour.fake.branch(pull.pull.head), harbour.fake.branch("trunk")
    harbour.person().review(pull.number, "approved")
    harbour.runner = runner
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
    assert harbour.merged(pull.number)
    assert git(harbour.fake.bare, "rev-parse", "trunk~1") == base
    assert git(harbour.fake.bare, "diff", "--stat", head, "trunk") == ""
    harbour.cycle()
    assert (harbour.fake.branch("main"), duplicates(harbour)) == ("", [])
    assert harbour.fake.count(method="PUT", below="/pulls/*/merge") == 1


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
