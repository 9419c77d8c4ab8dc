"""What the issue agent decides, value by value."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.adapters.storage.memory import codec
from ralph_mission.mission.issues import record as work
from ralph_mission.mission.issues import tasks
from ralph_mission.mission.issues.tasks import READY, WORKING
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.approval import who_asked
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.effects import OpenPull, PushBranch, Receipt
from ralph_mission.mission.model.forge import Actor, Branch, Issue, LabelEvent, ThreadComment
from ralph_mission.mission.model.ledger import EffectRecord, OpenState, Record, WorkRecord, work_key
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Action, Limits
from tests.helpers import NOON
from tests.mission import build
from tests.mission.build import labelled, loop_result
from tests.safety.making import change, patch

MARA, BO, US = Actor(1, "mara"), Actor(2, "bo"), Actor(9, "ralph[bot]", True)
AGENTS = ("claude", "codex", "amp")


def issue(title: str = "Add a table", labels: frozenset[str] = frozenset({READY}), *events: LabelEvent) -> Issue:
    return Issue(7, title, "text", "open", MARA, NOON, NOON, "", labels, events=events)


def event(actor: Actor, minute: int, added: bool = True) -> LabelEvent:
    return LabelEvent(READY, actor, NOON + timedelta(minutes=minute), added)


AT = Branch("ralph/issue-7", "0" * 40)
RECORD = WorkRecord(work_key(7), 7, "ralph/issue-7", "0" * 40, "working", 1, "me", NOON, 5.0)


def test_a_label_that_we_gave_back_is_the_wish_of_whoever_had_set_it():
    ours = issue("x", frozenset({READY}), event(MARA, 1), event(US, 2, False), event(US, 3))
    assert who_asked(ours, READY, US.id) == MARA


def test_a_label_that_a_person_took_off_before_we_gave_it_back_is_nobodys_wish():
    ours = issue("x", frozenset({READY}), event(MARA, 1), event(BO, 2, False), event(US, 3))
    assert who_asked(ours, READY, US.id) is None


def test_a_label_that_only_we_ever_set_is_nobodys_wish():
    assert who_asked(issue("x", frozenset({READY}), event(US, 1)), READY, US.id) is None
    assert who_asked(issue("x", frozenset(), event(MARA, 1), event(MARA, 2, False)), READY, US.id) is None


@pytest.mark.parametrize(
    ("title", "branch"),
    [
        ("Add retry logic to webhook delivery", "ralph/issue-7-add-retry-logic-to-webhook-delivery"),
        ("Überprüfe ../../etc  $(rm -rf)", "ralph/issue-7-uberprufe-etc-rm-rf"),
        ("日本語", "ralph/issue-7"),
        ("-x.lock", "ralph/issue-7-x-lock"),
    ],
)
def test_a_branch_is_a_safe_name_whatever_the_title(title, branch):
    assert tasks.issue_branch(issue(title)) == branch


def test_money_is_todays_and_never_more_than_the_day_has_left():
    header = Header(today="2026-05-04", spend_usd=8.0, dispatches=3)
    assert schedule.allowance(header, NOON, Limits(), 5.0) == 2.0
    assert schedule.allowance(header, NOON + timedelta(days=1), Limits(), 5.0) == 5.0
    assert schedule.book_spending(header, NOON, -9.0).spend_usd == 0.0
    tomorrow = schedule.book_spending(header, NOON + timedelta(days=1), 1.5)
    assert (tomorrow.today, tomorrow.spend_usd, tomorrow.dispatches) == ("2026-05-05", 1.5, 1)  # the one it owes


def test_a_state_that_cannot_be_left_is_given_up_after_three_times():
    stuck = build.make_failure(work.slot_key(RECORD, "push_branch"), "not attempted: stopped")
    record = replace(RECORD, state="ending")
    for _ in range(2):
        record = work.advance_record(record, {stuck.key: stuck})
        assert record.state == "ending"
    record = work.advance_record(record, {stuck.key: stuck})
    assert (record.state, record.final) == ("releasing", True)


def test_a_pull_that_the_server_refuses_is_for_a_person_and_names_the_branch():
    pushed = Receipt(work.slot_key(RECORD, "push_branch"), "done", sha="a" * 40)
    refused = build.make_failure(work.pull_key(RECORD), "needs a person: pulls are not permitted")
    record = work.advance_record(replace(RECORD, state="ending"), {r.key: r for r in (pushed, refused)})
    assert (record.state, record.final) == ("releasing", True)
    assert "pulls are not permitted" in record.reason and "ralph/issue-7" in record.reason


def test_a_key_tells_tries_apart_and_never_pulls():
    second = replace(RECORD, tries=2)
    assert work.slot_key(RECORD, "begin") != work.slot_key(second, "begin")
    assert work.pull_key(RECORD) == work.pull_key(second)


def called(*events: LabelEvent) -> Issue:
    return issue("x", frozenset({e.label for e in events}), *events)


def make_label_event(label: str, actor: Actor, minute: int) -> LabelEvent:
    return LabelEvent(label, actor, NOON + timedelta(minutes=minute))


def test_a_label_that_names_an_agent_asks_for_work_and_chooses_it():
    ours = called(make_label_event("agent:codex", MARA, 1), make_label_event(READY, MARA, 2))
    assert tasks.valid_label(ours, US.id, frozenset({MARA.id}), AGENTS) == "agent:codex"
    assert tasks.read_task(ours, US.id, frozenset({MARA.id}), AGENTS).agent == "codex"
    assert tasks.read_task(ours, US.id, frozenset({MARA.id}), AGENTS).others == (READY,)


def test_of_two_agents_the_one_that_was_named_last_by_somebody_who_may():
    ours = called(
        make_label_event("agent:codex", MARA, 1),
        make_label_event("Agent:Claude", MARA, 2),
        make_label_event("agent:amp", BO, 3),
    )
    assert tasks.valid_label(ours, US.id, frozenset({MARA.id}), AGENTS) == "Agent:Claude"
    assert tasks.agent_of_label("Agent:Claude") == "claude"


def test_a_label_that_names_nobody_we_know_asks_for_nothing():
    ours = called(make_label_event("agent:nobody", MARA, 1), make_label_event("agent:", MARA, 1))
    assert tasks.requesting_labels(ours, AGENTS) == () and "not labelled" in tasks.why_not(
        ours, US.id, frozenset({MARA.id}), AGENTS
    )


def make_comment(body: str, minute: int, by: Actor = MARA) -> ThreadComment:
    at = NOON + timedelta(minutes=minute)
    return ThreadComment(minute, by, body, at, at)


def test_guidance_is_given_once_and_stands_as_a_comment_afterwards():
    ours = replace(
        issue(),
        remarks=(
            make_comment("/ralph guidance In metres.", 1),
            make_comment("Thanks", 2),
            make_comment("/ralph approve", 3),
        ),
    )
    first = tasks.read_task(ours, US.id, frozenset({MARA.id}))
    assert [(word.who, word.text) for word in first.words] == [("mara", "In metres.")]
    assert [remark.body for remark in first.remarks] == ["Thanks"]
    record = work.begin_try(first, None, AT, "me", 5.0, NOON)
    assert record.heard == ("mara: In metres.",)
    later = replace(ours, remarks=(*ours.remarks, make_comment(" /ralph  Guidance\nIn feet,\nafter all", 4)))
    second = tasks.read_task(later, US.id, frozenset({MARA.id}), before=record)
    assert [word.text for word in second.words] == ["In feet,\nafter all"]
    assert [remark.id for remark in second.remarks] == [1, 2]
    assert work.begin_try(second, record, AT, "me", 5.0, NOON).heard == ("mara: In feet, after all",)


@pytest.mark.parametrize(
    "body", ["/ralph guidanceX y", "Say /ralph guidance x", "    /ralph guidance x", "/ralph guidance  "]
)
def test_what_only_looks_like_guidance_is_none(body):
    assert tasks.read_task(replace(issue(), remarks=(make_comment(body, 1),)), US.id, frozenset({MARA.id})).words == ()


def test_memory_keeps_the_last_issues_and_every_one_that_is_worked_on():
    notes = ()
    for number in range(1, 15):
        state = "working" if number < 3 else "done"
        notes = work.update_notes(notes, replace(RECORD, issue=number, state=state, title=f"Issue {number}"))
    assert [note.issue for note in notes] == [2, 1, *range(14, 6, -1)]
    assert notes[0].state == "working" and len(work.update_notes(notes, replace(RECORD, issue=2, state="failed"))) == 10
    assert 2 not in [note.issue for note in work.update_notes(notes, replace(RECORD, issue=2, state="withdrawn"))]


def test_records_of_work_are_kept_and_memory_of_earlier_versions_is_read():
    assert codec.load(Record, codec.dump(RECORD)) == RECORD
    assert codec.load(OpenState, codec.dump(OpenState(working=(7,)))).working == (7,)
    assert codec.load(OpenState, b'{"next_mission": 3}') == OpenState(next_mission=3)


def test_a_comment_of_the_same_second_as_guidance_is_quoted_all_the_same():
    remarks = (
        ThreadComment(1, MARA, "/ralph guidance in metres", NOON, NOON),
        ThreadComment(2, MARA, "And in feet.", NOON, NOON),
    )
    asked = replace(issue("x", frozenset({READY}), event(MARA, 1)), remarks=remarks)
    task = tasks.read_task(asked, US.id, frozenset({MARA.id}))
    assert [word.text for word in task.words] == ["in metres"]
    assert [remark.body for remark in task.remarks] == ["And in feet."]


ASKED = issue("Add a table", frozenset({READY}), event(MARA, 1))


LATER = build.NOW + timedelta(days=9)


def test_a_second_try_that_came_to_nothing_was_the_last():
    assert not work.release_issue(RECORD, "it failed", 1).final
    assert work.release_issue(replace(RECORD, tries=2), "it failed", 1).final


def test_nothing_that_was_made_is_no_success():
    empty = patch()
    assert work.end_try(RECORD, loop_result(0, "", patch(change("a.txt", b"", b"x\n")))).state == "ending"
    assert work.end_try(RECORD, loop_result(0, "", empty)).state == "releasing"


def test_an_issue_is_taken_back_by_people():
    ending = replace(RECORD, state="ending")

    def off(who):
        events = (labelled(WORKING, US), labelled(WORKING, who, LATER, added=False))
        return replace(ASKED, events=(*ASKED.events, *events))

    assert work.is_withdrawn(ending, replace(off(US), state="closed"), US.id)
    assert work.is_withdrawn(ending, off(MARA), US.id)
    assert not work.is_withdrawn(ending, off(US), US.id)


def test_a_branch_of_somebody_else_is_not_taken():
    first = work.free_branch(ASKED, None, lambda name: False)
    assert work.free_branch(ASKED, None, lambda name: name == first) == f"{first}-2"


def test_a_try_whose_runner_is_gone_is_no_failure_until_it_happens_again_and_again():
    gone, spared = work.abandon_try(RECORD, 2.0), []
    while not gone.final:
        spared.append(gone.away)
        gone = work.abandon_try(replace(gone, state="working", tries=gone.tries + 1, reserved=5.0), 2.0)
    assert spared[0] and not spared[-1] and (gone.state, gone.code) == ("releasing", 1)
    once = work.abandon_try(RECORD, 2.0)
    assert (once.usd, once.reserved, once.spared, once.final) == (2.0, 3.0, 1, False)


def test_a_try_that_a_stop_prevented_does_not_count_and_guidance_is_still_to_be_given():
    before = replace(RECORD, guided_at=NOON, reason="it failed")
    ours = replace(RECORD, guided_at=LATER)
    quiet, told = work.cancel_try(ours, before, announced=False), work.cancel_try(ours, before, announced=True)
    assert (quiet.state, quiet.guided_at, quiet.reason, quiet.reserved) == ("waiting", NOON, "it failed", 0.0)
    assert (told.state, told.guided_at, told.spared) == ("releasing", NOON, 1)
    assert work.cancel_try(ours, None, announced=False).guided_at is None


MADE = loop_result(0, "", patch(change("a.txt", b"", b"x\n")))
CHANGES = work.work_effects(RECORD, ASKED, MADE, "main", NOON)


def announced(*effects: PushBranch | OpenPull, by: Actor = US) -> Issue:
    """The issue with our first comment, edited to name these effects."""
    text = tasks.begin_comment(
        RECORD, work.TRIES, work.slot_key(RECORD, "begin"), ownership.announcement_line(effects, needs_approval=False)
    )
    return replace(ASKED, remarks=(ThreadComment(5, by, text, NOON, NOON),))


def stored(*effects: PushBranch | OpenPull, **states: str) -> dict[str, Record]:
    def record(effect: PushBranch | OpenPull) -> EffectRecord:
        state = states.get(type(effect).__name__, "intended")
        return EffectRecord(effect.key, RECORD.key, Action.WORK, work.KIND, state, effect, 1, NOON)

    return {effect.key: record(effect) for effect in effects}


def test_the_rest_of_a_change_is_what_our_comment_announced():
    whole = work.find_unsent_change(RECORD, stored(*CHANGES), announced(*CHANGES), US.id)
    assert whole is not None and whole[0] == CHANGES and whole[1] is not None
    rest = work.find_unsent_change(RECORD, stored(*CHANGES, PushBranch="done"), announced(*CHANGES), US.id)
    assert rest == (CHANGES[1:], None)
    nothing = stored(*CHANGES, PushBranch="done", OpenPull="unknown")
    assert work.find_unsent_change(RECORD, nothing, announced(*CHANGES), US.id) == ((), None)


OTHER = replace(CHANGES[0], message="Something else")
UNANNOUNCED = {
    "nothing was announced": (stored(*CHANGES), ASKED),
    "somebody else announced it": (stored(*CHANGES), announced(*CHANGES, by=BO)),
    "something else is in memory": (stored(OTHER, CHANGES[1]), announced(*CHANGES)),
    "a part is not in memory": (stored(CHANGES[0]), announced(*CHANGES)),
}


@pytest.mark.parametrize("case", UNANNOUNCED)
def test_what_memory_holds_is_not_sent_unless_we_announced_it(case):
    records, thread = UNANNOUNCED[case]
    assert work.find_unsent_change(RECORD, records, thread, US.id) is None
