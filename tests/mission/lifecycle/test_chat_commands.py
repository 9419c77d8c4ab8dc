"""What owners say in a chat, judged: which yes counts, what is remembered, what missions know of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ralph_mission.mission.coder import tasks
from ralph_mission.mission.lifecycle import approval, chat_commands, steps
from ralph_mission.mission.lifecycle.approval import content_hash, on_issue
from ralph_mission.mission.lifecycle.chat_commands import ChatProposal, CommandContext, apply_commands, known_to
from ralph_mission.mission.lifecycle.table import interpret_facts
from ralph_mission.mission.model.cycle import MissionEvent, MissionFacts, PersonVerdict, StepContext
from ralph_mission.mission.model.forge import Branch, ChatCommand
from ralph_mission.mission.model.ledger import ChatGuidance, ChatYes, OpenState
from ralph_mission.mission.model.mission import Status, update_mission
from tests.mission.build import BOT, HEAD, MARA, NOW, issue, labelled, mission, remark

CHAT, MINUTE = 11, timedelta(minutes=1)
ISSUE = issue(author=BOT, created_at=NOW - timedelta(days=1))
HASH = content_hash(ISSUE.title, ISSUE.body)
MISSION = mission(issue=ISSUE.number, status=Status.DISCOVERED, proposal_hash=HASH, pull=0)


def order(verb: str, **changes: Any) -> ChatCommand:
    return replace(ChatCommand(7, NOW, CHAT, verb), **changes)


def store(**changes: Any) -> CommandContext:
    return replace(CommandContext(NOW, "all is well", {ISSUE.number: ChatProposal("A title", HASH, "url")}), **changes)


def yes(**changes: Any) -> ChatYes:
    return replace(ChatYes(ISSUE.number, HASH, CHAT, NOW), **changes)


def opinion(**changes: Any) -> PersonVerdict:
    facts = {"issue": ISSUE, "mission": MISSION, "offered_at": None, "yes": yes(), **changes}
    return on_issue(facts["issue"], facts["mission"], frozenset({MARA.id}), facts["offered_at"], (facts["yes"],))


def test_a_yes_to_the_text_that_stands_there_counts() -> None:
    said = opinion()
    assert said.state == "approved"
    assert said.actor and said.actor.login == f"an owner in the Telegram chat {CHAT}"


@pytest.mark.parametrize(
    "changes",
    [
        {"yes": yes(hash="00000000")},
        {"yes": yes(issue=ISSUE.number + 1)},
        {"yes": yes(at=ISSUE.created_at)},
        {"issue": replace(ISSUE, body="another text")},
        {"mission": update_mission(MISSION, proposal_hash="00000000")},
        {"mission": update_mission(MISSION, proposal_hash="")},
        {"mission": update_mission(MISSION, proposal_at=NOW + MINUTE)},
        {"offered_at": NOW - MINUTE},
        {"issue": replace(ISSUE, remarks=(remark("proposal is now `12345678`", by=BOT, at=NOW + MINUTE),))},
    ],
    ids=["hash", "issue", "before", "edited", "asked otherwise", "not asked", "asked anew", "offered", "line"],
)
def test_no_other_yes_counts(changes: dict[str, Any]) -> None:
    assert opinion(**changes).state != "approved"


def test_a_no_on_the_issue_wins_over_it() -> None:
    refused = replace(ISSUE, remarks=(remark("/ralph reject", at=NOW),))
    assert opinion(issue=refused).state == "rejected"


def test_an_outsiders_label_beside_it_changes_nothing() -> None:
    outsider = replace(MARA, id=999, login="eve")
    labels = frozenset({approval.APPROVED})
    there = replace(ISSUE, labels=labels, events=(labelled(approval.APPROVED, by=outsider),))
    assert opinion(issue=there).state == "approved"


def test_only_a_hash_approves() -> None:
    asked = apply_commands([order("approve", number=ISSUE.number)], OpenState(), store())
    assert (asked.state.yes, f"/approve {ISSUE.number} {HASH}" in asked.answers[0].text) == ((), True)
    given = apply_commands([order("approve", number=ISSUE.number, words=HASH)], OpenState(), store())
    assert given.state.yes == (yes(),)


def test_what_cannot_be_approved_is_not() -> None:
    asked = store(proposals={ISSUE.number: ChatProposal("A title", HASH, "url", "it asks for no approval")})
    done = apply_commands([order("approve", number=ISSUE.number, words=HASH)], OpenState(), asked)
    assert (done.state.yes, done.answers[0].text) == ((), f"Not approved: #{ISSUE.number}: it asks for no approval.")


def test_the_last_word_on_a_pause_counts() -> None:
    assert apply_commands([order("pause"), order("resume")], OpenState(), store()).paused is False
    assert apply_commands([order("resume"), order("pause")], OpenState(), store()).paused is True
    assert apply_commands([order("status")], OpenState(), store()).paused is None


def test_memory_keeps_a_bounded_number_of_words_for_a_bounded_time() -> None:
    said = [order("guidance", id=number, words="x" * 9_000) for number in range(50)]
    state = apply_commands(said, OpenState(guidance=(ChatGuidance(1, NOW - timedelta(days=15), "old"),)), store()).state
    assert (len(state.guidance), {len(one.words) for one in state.guidance}) == (20, {2_000})
    later = apply_commands([order("status", at=NOW + timedelta(days=15))], state, store(now=NOW + timedelta(days=15)))
    assert later.state.guidance == ()


def test_guidance_is_of_the_missions_it_names() -> None:
    heard = [order("guidance", words="here", number=ISSUE.number)]
    kept = apply_commands(heard, OpenState(missions=(MISSION,)), store(seal=str.upper)).state
    assert [one.mission for one in kept.guidance] == [MISSION.id]
    facts = [(one, MissionFacts(ISSUE, None, frozenset())) for one in (MISSION.id, MISSION.id + 1)]
    known = dict(known_to(facts, kept, str.upper))
    assert (len(known[MISSION.id].guidance), known[MISSION.id + 1].guidance) == (1, ())


@pytest.mark.parametrize(
    "forged", [{"seal": ""}, {"issue": 4}, {"hash": "00000000"}, {"chat": 5}, {"at": NOW + MINUTE}]
)
def test_what_memory_says_of_a_chat_counts_only_under_the_seal_of_who_heard_it(forged: dict[str, Any]) -> None:
    given = apply_commands([order("approve", number=3, words=HASH)], OpenState(), store(seal=str.upper)).state
    facts = [(MISSION.id, MissionFacts(replace(ISSUE, number=forged.get("issue", 3)), None, frozenset()))]
    assert [f.yes for _, f in known_to([(1, MissionFacts(ISSUE, None, frozenset()))], given, str.upper)] == [given.yes]
    other = replace(given, yes=(replace(given.yes[0], **forged),))
    for state, seal in ((other, str.upper), (given, None), (given, str.lower)):
        assert [found.yes for _, found in known_to(facts, state, seal)] == [()]


def test_how_far_a_chat_was_heard_is_known_without_proof_and_each_issue_has_its_own() -> None:
    later, elsewhere = yes(at=NOW + MINUTE), yes(issue=ISSUE.number + 1, at=NOW + 2 * MINUTE)
    for state, heard in ((OpenState(), None), (OpenState(yes=(later, yes(), elsewhere)), later.at)):
        (_, found) = known_to([(1, MissionFacts(ISSUE, None, frozenset()))], state, None)[0]
        assert (found.yes, found.heard_at) == ((), heard)


@pytest.mark.attack(11)
def test_a_yes_that_was_obeyed_is_no_news_once_an_issue_is_believed_to_be_its_missions_again() -> None:
    other = mission(id=MISSION.id + 1, issue=ISSUE.number + 1)
    elsewhere = yes(issue=other.issue, at=NOW + MINUTE)
    state = apply_commands([order("approve", number=3, words=HASH)], OpenState(), store(seal=str.upper)).state
    state = replace(state, missions=(MISSION, other), yes=(*state.yes, elsewhere))
    around = StepContext(5, NOW + 2 * MINUTE, (), "squash", {}, Branch("main", HEAD))
    obeyed = replace(MISSION, status=Status.PLANNED)
    lost = MissionFacts(None, None, frozenset(), "issue #3 does not belong to this mission", seen_at=NOW)
    ((_, away),) = known_to([(MISSION.id, lost)], state, str.upper)
    aside = steps.suspend(obeyed, away, around).mission
    ((_, back),) = known_to([(MISSION.id, MissionFacts(ISSUE, None, frozenset()))], state, str.upper)
    assert (aside.status, aside.question.heard_at) == (Status.ESCALATED, NOW)
    assert (
        interpret_facts(update_mission(MISSION, status=Status.ESCALATED, seen_at=NOW), back, around.now).event
        is MissionEvent.REVIVED
    )
    assert interpret_facts(aside, back, around.now).event is None


def test_a_session_hears_it_once() -> None:
    facts = MissionFacts(ISSUE, None, frozenset({MARA.id}), guidance=(ChatGuidance(7, NOW, "keep it small"),))
    assert tasks.new_guidance(MISSION, facts) == ((NOW, "keep it small"),)
    assert tasks.new_guidance(update_mission(MISSION, guided_at=NOW), facts) == ()


def test_one_message_goes_to_each_chat() -> None:
    done = apply_commands([order("pause"), order("status", chat=12), order("status")], OpenState(), store())
    told = chat_commands.by_chat(done.answers)
    assert [(one.chat, one.text.count("\n\n")) for one in told] == [(CHAT, 1), (12, 0)]


@pytest.mark.parametrize(
    ("found", "of", "why"),
    [
        (None, MISSION, "no such issue"),
        (ISSUE, replace(MISSION, issue=99), "asks for no approval"),
        (ISSUE, update_mission(MISSION, proposal_hash=""), "asks for no approval"),
        (replace(ISSUE, author=MARA), MISSION, "not an open proposal of Ralph's"),
        (replace(ISSUE, state="closed"), MISSION, "not an open proposal of Ralph's"),
        (ISSUE, replace(MISSION, pull=5), "on the forge"),
        (ISSUE, replace(MISSION, status=Status.PLANNED), "not waiting for approval"),
        (replace(ISSUE, body="edited"), MISSION, "was edited"),
        (ISSUE, MISSION, ""),
    ],
)
def test_a_proposal_says_why_it_takes_no_yes(found: Any, of: Any, why: str) -> None:
    assert why in chat_commands.describe_proposal(found, (of,), BOT.id).why
    assert bool(why) == bool(chat_commands.describe_proposal(found, (of,), BOT.id).why)
