"""Texts that speak for the project: shown, approved, published to the letter, told; on both forges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from ralph_mission.loop.rules.verdicts import UnclearVerdict
from ralph_mission.mission.lifecycle.approval import about, content_hash
from ralph_mission.mission.memory import learning
from ralph_mission.mission.memory.learning import recount_learnings
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.model.mission import Observation, Status, Usage, update_mission
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.operations import control
from ralph_mission.mission.operations.recover import recover_memory
from tests.helpers import cli_here, with_parts
from tests.integration.at_content import (
    TEXT,
    Networks,
    blocks,
    cycle,
    edit,
    find_proposal,
    later,
    publish,
    status,
    with_networks,
)
from tests.integration.at_review import elsewhere
from tests.integration.at_work import BOTH, FORGES, Place
from tests.integration.world import BUGS_CONFIG, verdicts

CONFIG = "owners: [mara]\nhands: {fixers: []}\nobservers:\n  code: {markers: {}}\n"
YES = ("content:approved",)


@pytest.fixture
def networks() -> Networks:
    return Networks()


@pytest.fixture(params=["local"])
def place(request, tmp_path, networks) -> Iterator[Place]:
    with FORGES[request.param](tmp_path, CONFIG) as found:
        yield with_networks(found, networks)


# --- a whole life ---------------------------------------------------------------------


@BOTH
def test_a_text_is_shown_approved_published_and_told(place, networks):
    number = find_proposal(place)
    issue = place.issue(number)
    assert {"ralph:mission", "ralph:content", "content:review"} <= issue.labels
    assert blocks(issue.body) == [TEXT, TEXT]
    assert "### twitter\n\n37 of 280:" in issue.body and "### telegram\n\n37 of 4096:" in issue.body
    assert "`content:approved`" in issue.body and "**Close** it to reject it for good" in issue.body
    assert (networks.said, status(place, number)) == ([], "DISCOVERED")

    place.person().label(number, YES)
    cycle(place)
    assert networks.said == [("twitter", (TEXT,)), ("telegram", (TEXT,))]
    assert status(place, number) == "EXECUTING"
    cycle(place)
    issue = place.issue(number)
    assert (issue.state, issue.state_reason, status(place, number)) == ("closed", "completed", "")
    assert "content:published" in issue.labels and "content:review" not in issue.labels
    (told,) = place.comments(number)
    assert (
        "- twitter: <https://twitter.example.org/1>" in told and "- telegram: <https://telegram.example.org/2>" in told
    )
    assert dict(place.state().acceptance)["content"].accepted == 1
    cycle(place)
    assert len(networks.said) == 2 and len(place.comments(number)) == 1


@BOTH
def test_the_command_does_at_once_what_cycles_would(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    report = publish(place, number)
    assert (report.outcome, report.code) == ("published", 0), report
    assert [(network, receipt.status) for network, receipt in report.receipts] == [
        ("twitter", "done"), ("telegram", "done"),
    ]  # fmt: skip  # one list
    issue = place.issue(number)
    assert issue.state == "closed" and "content:published" in issue.labels and "content:review" not in issue.labels
    state = place.state()
    assert (state.effects, state.unknown, state.claim, state.missions) == ((), (), None, ())
    assert dict(state.acceptance)["content"].accepted == 1 and len(state.posted) == 2
    assert "published on twitter, telegram" in place.house().store.recall().memory.completed[0].learning
    again = publish(place, number)
    assert (again.outcome, again.code, again.reason) == ("nothing", 0, "it was published already")
    cycle(place)
    assert len(networks.said) == 2 and len(place.comments(number)) == 1


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_a_yes_that_the_command_heard_can_be_counted_again_from_the_journal(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    publish(place, number)
    cycle(place)
    past = place.house().store.recall()
    assert "people accepted 1 of 1" in past.memory.measured[0]
    assert past.memory.measured == recount_learnings(place.house().store.journal())


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_the_journal_knows_what_the_command_said_word_for_word(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    publish(place, number)
    journal = list(place.house().store.journal())
    assert learning.posts(journal) == place.state().posted
    told = [(post["network"], post["status"], post["parts"]) for one in journal for post in one["telling"]["posts"]]
    assert told == [(network, "done", list(parts)) for network, parts in networks.said]


@pytest.mark.parametrize("place", [pytest.param("github", marks=pytest.mark.long)], indirect=True)  # two machines
def test_another_runner_publishes_nothing_again(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    assert publish(place, number).outcome == "published"
    other = with_networks(elsewhere(place), networks)
    cycle(other)
    assert publish(other, number).outcome == "nothing" and len(networks.said) == 2


def test_without_a_yes_the_command_does_nothing_and_says_what_it_waits_for(place, networks):
    number = find_proposal(place)
    report = publish(place, number)
    assert (report.outcome, report.code, networks.said) == ("nothing", 0, [])
    assert report.reason == "A person approves or rejects the texts."


def test_an_issue_that_shows_no_text_is_none_of_its_business(place):
    find_proposal(place)
    other = place.person().create_issue("Something else")
    report = publish(place, other)
    assert (report.outcome, report.code) == ("nothing", 0) and "no text" in report.reason


# --- whose yes, and to what -----------------------------------------------------------


@pytest.mark.attack(12)
@BOTH
def test_a_strangers_yes_publishes_nothing(place, networks):
    number = find_proposal(place)
    place.person("passer-by").label(number, YES)
    report, _ = cycle(place)
    assert [rules for _, verdict, rules in verdicts(report) if verdict == "deny"] == [("approval-author",)]
    told = publish(place, number)
    assert (told.outcome, told.code) == ("nothing", 0) and "approval-author" in told.reason
    assert (networks.said, status(place, number)) == ([], "DISCOVERED")


@pytest.mark.long  # a variation; approval and sending have pure tests
@BOTH
def test_what_a_person_edits_before_the_yes_is_what_is_published(place, networks):
    number = find_proposal(place)
    edit(
        place, f"### twitter\n\n37 of 280:\n\n```text\n{TEXT}", "### twitter\n\n37 of 280:\n\n```text\nTwelve harbours!"
    )
    cycle(place)
    (asked_again,) = place.comments(number)
    assert "proposal is now `" in asked_again and "- twitter: 16 of 280" in asked_again
    place.person().comment(number, "/ralph approve")
    assert publish(place, number).outcome == "published"
    assert networks.said == [("twitter", ("Twelve harbours!",)), ("telegram", (TEXT,))]


@BOTH
def test_an_edit_after_the_yes_asks_anew_and_takes_the_label_off(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    edit(place, TEXT, "Buy anchors.")
    report = publish(place, number)
    assert networks.said == [] and "content:approved" not in place.labels(number), report
    assert "proposal is now `" in place.comments(number)[-1]
    assert publish(place, number).outcome == "nothing"
    place.person().label(number, YES)
    assert publish(place, number).outcome == "published"
    assert networks.got("twitter") == [("Buy anchors.",)]


@pytest.mark.long  # a variation; approval and sending have pure tests
@BOTH
def test_a_text_that_comes_back_is_asked_about_once_more(place, networks):
    number = find_proposal(place)
    for count, (old, new) in enumerate([(TEXT, "B"), ("B", TEXT), (TEXT, "B"), ("B", TEXT)], 1):
        place.person().label(number, YES)
        edit(place, f"```text\n{old}\n```", f"```text\n{new}\n```")
        cycle(place)
        assert sum("proposal is now `" in said for said in place.comments(number)) == count
        assert "content:approved" not in place.labels(number) and networks.said == []
    place.person().comment(number, "/ralph approve")
    assert publish(place, number).outcome == "published" and networks.got("twitter") == [(TEXT,)]


@pytest.mark.long  # a variation; approval and sending have pure tests
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x" * 281, "281 of 280 is too long"),
        ("Thanks, @mara!", "it mentions somebody with an @"),
        ("This closes #3", "it says what closes an issue"),
        ("", "has no text"),
    ],
)
def test_what_cannot_be_said_is_said_so_and_nothing_is_sent(place, networks, text, why):
    number = find_proposal(place)
    edit(place, TEXT, text)
    cycle(place)
    assert why in place.comments(number)[-1]
    place.person().comment(number, "/ralph approve")
    cycle(place)
    cycle(place)
    assert (networks.said, status(place, number)) == ([], "DISCOVERED")
    assert sum("nothing is published" in said for said in place.comments(number)) == 1


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_a_network_that_was_taken_out_gets_nothing(place, networks):
    number = find_proposal(place)
    edit(place, f"### telegram\n\n37 of 4096:\n\n```text\n{TEXT}\n```\n", "")
    cycle(place)
    place.person().label(number, YES)
    assert publish(place, number).outcome == "published"
    assert networks.said == [("twitter", (TEXT,))]


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_a_network_that_nobody_set_up_is_named(place, networks):
    number = find_proposal(place)
    edit(place, "### telegram", "### mastodon")
    cycle(place)
    assert "`mastodon`: nothing is published there" in place.comments(number)[-1]
    place.person().label(number, YES)
    cycle(place)
    assert networks.said == []


# --- networks that fail ---------------------------------------------------------------


@pytest.mark.long  # a variation; approval and sending have pure tests
@BOTH
def test_one_network_that_refuses_costs_the_other_nothing_and_is_told(place, networks):
    networks.faults = {"twitter": ["failed forbidden: the app may only read"]}
    number = find_proposal(place)
    place.person().label(number, YES)
    report = publish(place, number)
    assert (report.outcome, networks.got("telegram")) == ("published", [(TEXT,)])
    assert "- twitter: refused: forbidden: the app may only read" in place.comments(number)[-1]
    cycle(place)
    assert networks.got("twitter") == []


@BOTH
def test_a_network_that_may_have_got_it_never_gets_it_again(place, networks):
    networks.faults = {"telegram": ["after"]}
    number = find_proposal(place)
    place.person().label(number, YES)
    report = publish(place, number)
    assert (report.outcome, report.code) == ("unknown", 1)
    (key,) = place.state().unknown
    assert f"`ralph journal resolve {key} --sent`" in place.comments(number)[-1]
    cycle(place)
    assert publish(place, number).code == 0
    assert [len(networks.got(name)) for name in ("twitter", "telegram")] == [1, 1]


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_an_edit_after_one_network_has_it_never_sends_it_there_again(place, networks):
    networks.faults = {"twitter": ["failed later: rate limit"]}
    number = find_proposal(place)
    place.person().label(number, YES)
    cycle(place)
    edit(place, TEXT, "Another text.")
    cycle(place)
    assert (status(place, number), len(networks.said)) == ("DISCOVERED", 1)
    place.person().label(number, YES)
    cycle(place)
    assert networks.said == [("telegram", (TEXT,)), ("twitter", ("Another text.",))]


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_where_nobody_takes_it_a_person_is_asked_and_can_bring_it_back(place, networks):
    networks.faults = {"twitter": ["failed forbidden"], "telegram": ["failed no such chat"]}
    number = find_proposal(place)
    place.person().label(number, YES)
    report = publish(place, number)
    assert (report.outcome, report.code, status(place, number)) == ("failed", 1, "ESCALATED")
    assert "No network took it: forbidden; no such chat" in place.comments(number)[-1]
    assert "comment `/ralph retry`; or edit the text, or close it." in place.comments(number)[-1]
    place.person().unlabel(number, ("ralph:escalated",))
    for _ in range(4):
        cycle(place)
    assert len(networks.said) == 2 and "content:published" in place.labels(number)


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_after_memory_was_lost_nothing_is_said_that_may_have_been_said_before(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    before = place.state()
    assert [mission.issue for mission in before.missions] == [number]
    cycle(place)
    place.local.git("update-ref", "-d", "refs/heads/ralph-memory")
    house = place.house()
    recover_memory(house.store, house.forge, house.ports.clock.now())
    for _ in range(2):
        cycle(place)
        place.person().comment(number, "/ralph approve")
        report = publish(place, number)
        assert report.outcome == "nothing" and "by hand" in report.reason
    assert len(networks.said) == 2


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_a_recovery_that_lost_nothing_keeps_the_texts_that_wait(place, networks):
    number = find_proposal(place)
    house = place.house()
    recover_memory(house.store, house.forge, house.ports.clock.now())
    place.person().label(number, YES)
    assert publish(place, number).outcome == "published" and len(networks.said) == 2


# --- what changes while a cycle is at it ----------------------------------------------


@dataclass
class Meanwhile:
    """An observer that takes so long that a person does something."""

    act: Callable[[], object]
    name = "slow"

    def observe(self, context: ObservationContext) -> Observation:
        self.act()
        return Observation("slow", "ok", ())


@pytest.mark.long  # a variation; approval and sending have pure tests
@pytest.mark.parametrize("what", ["edit", "reject", "close", "unlabel", "say no"])
def test_what_a_person_does_while_a_cycle_observes_is_heeded(place, networks, what):
    number = find_proposal(place)
    place.person().label(number, YES)
    acts = {
        "edit": lambda: edit(place, TEXT, "Another text."),
        "reject": lambda: place.person().label(number, ("ralph:rejected",)),
        "close": lambda: place.person().close_issue(number),
        "unlabel": lambda: place.person().unlabel(number, YES),
        "say no": lambda: place.person().comment(number, "/ralph reject too early"),
    }
    plain = place.house
    house = lambda: with_parts(made := plain(), ports=replace(made.ports, observers=(Meanwhile(acts[what]),)))  # noqa: E731  # one use
    cycle(replace(place, house=house))
    assert networks.said == []
    cycle(place)
    assert networks.said == []
    if what == "edit":
        place.person().comment(number, "/ralph approve")
        cycle(place)
        assert networks.got("twitter") == [("Another text.",)]


@pytest.mark.parametrize("what", ["unlabel", "say no"])
def test_a_yes_that_is_taken_back_between_two_networks_is_heeded_by_the_last_look(place, networks, monkeypatch, what):
    number, publishes = find_proposal(place), Networks.publish
    acts = {
        "unlabel": lambda: place.person().unlabel(number, YES),
        "say no": lambda: place.person().comment(number, "/ralph reject too early"),
    }

    def and_no(self, effect):
        receipt = publishes(self, effect)
        acts[what]()
        return receipt

    place.person().label(number, YES)
    with monkeypatch.context() as patch:
        patch.setattr(Networks, "publish", and_no)
        cycle(place)
    cycle(place)
    assert [name for name, _ in networks.said] == ["twitter"]


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_a_yes_that_is_taken_back_before_every_network_has_it_waits_for_a_person(place, networks):
    networks.faults = {"twitter": ["failed later: rate limit"]}
    number = find_proposal(place)
    place.person().label(number, YES)
    cycle(place)
    place.person().unlabel(number, YES)
    for _ in range(5):
        cycle(place)
    assert (networks.said, status(place, number)) == ([("telegram", (TEXT,))], "DISCOVERED")
    assert "the approval was withdrawn" in place.comments(number)[-1]
    place.person().label(number, YES)
    cycle(place)
    assert networks.said == [("telegram", (TEXT,)), ("twitter", (TEXT,))]


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_after_memory_was_recovered_learnings_is_what_the_journal_says(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    publish(place, number)
    cycle(place)
    before = place.house().store
    learned, posted = before.recall().memory.measured, before.recall().state.posted
    before.anchorage.forget()
    house = place.house()
    recovered = recover_memory(house.store, house.forge, house.ports.clock.now())
    past = place.house().store.recall()
    assert any("counted again from the journals" in line for line in recovered.recovered)
    assert (past.memory.measured, past.state.posted) == (learned, posted)
    assert dict(past.state.acceptance)["content"].accepted == 1
    cycle(place)
    past = place.house().store.recall()
    assert past.memory.measured == recount_learnings(place.house().store.journal())


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_where_the_journal_is_gone_its_count_says_why_it_differs(place, networks):
    number = find_proposal(place)
    place.person().label(number, YES)
    publish(place, number)
    cycle(place)
    oid = place.local.git("rev-parse", "ralph-memory:memory/journal")
    (place.local.repo / ".git/objects" / oid[:2] / oid[2:]).unlink()
    place.local.git("update-ref", "-d", "refs/heads/ralph-memory")
    house = place.house()
    recover_memory(house.store, house.forge, house.ports.clock.now())
    done = cli_here("journal", "count", repo=place.local.repo)
    assert (done.code, "the journal holds 0 of 2 cycles" in done.out) == (1, True), done


@pytest.mark.long  # a variation; approval and sending have pure tests
def test_a_pause_between_two_networks_is_told_as_one_and_the_other_gets_it_later(place, networks, monkeypatch):
    number, publishes = find_proposal(place), Networks.publish

    def and_pause(self, effect):
        receipt = publishes(self, effect)
        control.pause(place.house().store)
        return receipt

    place.person().label(number, YES)
    with monkeypatch.context() as patch:
        patch.setattr(Networks, "publish", and_pause)
        report = publish(place, number)
    assert (report.outcome, report.code, len(networks.said)) == ("paused", 0, 1), report
    assert "ralph resume" in report.reason
    control.resume(place.house().store)
    assert publish(place, number).outcome == "published"
    assert [name for name, _ in networks.said] == ["twitter", "telegram"]


# --- Who can push memory and edit Ralph's issues, and yet is no owner, puts no text of theirs under an owner's yes. ---

ASKING = "owners: [mara]\n" + BUGS_CONFIG
BUG = {"bugs.txt": "src/a.py:1: boats sink at low tide\n", "src/a.py": "x = 1\n"}


@pytest.mark.parametrize("way", [publish, lambda place, number: cycle(place)])
def test_a_text_that_was_put_under_an_owners_yes_is_not_published(tmp_path, way):
    networks = Networks()
    with FORGES["github"](tmp_path, CONFIG) as found:
        place = with_networks(found, networks)
        number = find_proposal(place)
        place.person().label(number, YES)
        later(place, 0.1)
        body = place.issue(number).body.replace(TEXT, "Buy anchors.")
        place.person("wes", "write").edit_issue(number, body=body)
        _pretend_it_was_so_always(place, place.issue(number).title, body)
        way(place, number)
        assert networks.said == []
        place.person().unlabel(number, YES)
        place.person().label(number, YES)
        assert publish(place, number).outcome == "published"


@pytest.mark.long  # a variation; approval and sending have pure tests
@pytest.mark.parametrize("forged", [False, True])
def test_a_proposal_that_was_put_under_an_owners_yes_is_not_taken_up(tmp_path, forged):
    with FORGES["github"](tmp_path, ASKING, BUG) as place:
        cycle(place)
        (mission,) = place.state().missions
        place.person().label(mission.issue, ("ralph:approved",))
        later(place, 0.1)
        body = place.issue(mission.issue).body.replace("boats sink", "the lock is open")
        place.person("wes", "write").edit_issue(mission.issue, body=body)
        if forged:
            _pretend_it_was_so_always(place, place.issue(mission.issue).title, body)
        cycle(place)
        assert place.state().missions[0].status is Status.DISCOVERED
        place.person().unlabel(mission.issue, ("ralph:approved",))
        place.person().label(mission.issue, ("ralph:approved",))
        cycle(place)
        assert place.state().missions[0].status is Status.PLANNED


def _pretend_it_was_so_always(place, title: str, body: str) -> None:
    store = place.house().store
    past = store.recall()
    (mission,) = past.state.missions
    forged = update_mission(about(mission, title, body), proposal_at=None)
    store.commit(MemoryBatch(past.memory, replace(past.state, missions=(forged,)), (), "ralph: cycle"), past)


# --- another draft --------------------------------------------------------------------


class NoCoder:
    """There is an agent, and nothing for it to build."""

    def work(self, job):
        raise AssertionError(job)

    def tidy(self, missions) -> None:
        return None


@dataclass
class Writer:
    """`AskAgent`: answers with `texts`, one for each question; the prompts are kept."""

    texts: list[str]
    prompts: list[str] = field(default_factory=list)

    def __call__(self, question, parse):
        self.prompts.append(question.prompt(""))
        text = self.texts[min(len(self.prompts), len(self.texts)) - 1]
        told = {"texts": [{"network": name, "text": text} for name in ("twitter", "telegram")]}
        try:
            return parse(json.dumps(told)), "", Usage(1, cost_usd=0.1)
        except UnclearVerdict as unclear:
            return None, str(unclear), Usage(1, cost_usd=0.1)


def with_writer(place: Place, writer: Writer) -> Place:
    plain = place.house

    def house():
        made = plain()
        return with_parts(made, ports=replace(made.ports, coder=NoCoder(), ask=writer))

    return replace(place, house=house)


def revise(place: Place, number: int, words: str, by: str = "mara") -> None:
    later(place, 0.1)
    place.person(by).comment(number, f"/ralph revise {words}")


@BOTH
def test_somebody_who_may_decide_gets_another_draft_and_an_earlier_yes_is_void(place, networks):
    number, writer = find_proposal(place), Writer(["12 harbours now."])
    here = with_writer(place, writer)
    before = place.issue(number)
    place.person().label(number, YES)
    revise(here, number, "make it shorter")
    revise(here, number, "shout", by="joe")
    cycle(here)
    after = place.issue(number)
    assert blocks(after.body) == ["12 harbours now."] * 2 and networks.said == []
    assert content_hash(after.title, after.body) != content_hash(before.title, before.body)
    assert "content:approved" not in after.labels and status(place, number) == "DISCOVERED"
    (line,) = [one for one in place.comments(number) if "rewritten as" in one]
    assert line.startswith("This was rewritten as mara asked (round 1 of 5).")
    assert "make it shorter" in writer.prompts[0] and TEXT in writer.prompts[0] and "shout" not in writer.prompts[0]
    assert round(place.spent(), 6) == 0.1
    cycle(here)
    assert len(writer.prompts) == 1 and networks.said == []
    place.person().label(number, YES)
    cycle(here)
    assert networks.said == [("twitter", ("12 harbours now.",)), ("telegram", ("12 harbours now.",))]


def test_a_draft_that_makes_something_up_is_dropped_with_the_reason(place, networks):
    number, writer = find_proposal(place), Writer(["13 harbours now."])
    here = with_writer(place, writer)
    revise(here, number, "shorter")
    cycle(here)
    assert blocks(place.issue(number).body) == [TEXT, TEXT]
    (line,) = place.comments(number)
    assert line.startswith("The text stays as it is: it says “13”, which stands in nothing that was given.")
    revise(here, number, "say that there are 13")
    cycle(here)
    assert blocks(place.issue(number).body) == ["13 harbours now."] * 2


def test_a_draft_with_a_secret_is_dropped_and_not_paid_for_again(place, networks):
    number, writer = find_proposal(place), Writer(["ghp_" + "a1b2c3d4e5f6g7h8i9j0" * 2])
    here = with_writer(place, writer)
    revise(here, number, writer.texts[0])
    cycle(here)
    cycle(here)
    assert blocks(place.issue(number).body) == [TEXT, TEXT] and len(writer.prompts) == 1
    assert [one for one in place.comments(number) if "The text stays as it is: it held a secret." in one]


def test_drafts_of_one_text_are_bounded(place, networks):
    number, writer = find_proposal(place), Writer([f"Table: {'now ' * n}12." for n in range(1, 9)])
    here = with_writer(place, writer)
    for n in range(7):
        revise(here, number, f"again, number {n}")
        cycle(here)
    assert len(writer.prompts) == 5
    assert [one for one in place.comments(number) if "it was rewritten 5 times: edit the blocks" in one]


def test_without_an_agent_one_line_says_what_to_do_instead(place, networks):
    number = find_proposal(place)
    for _ in range(2):
        revise(place, number, "shorter") if not place.comments(number) else None
        cycle(place)
    (line,) = place.comments(number)
    assert line.startswith("The text stays as it is: no agent is set up here (`hands.agent`) that could write another")
    place.person().label(number, YES)
    cycle(place)
    assert [network for network, _ in networks.said] == ["twitter", "telegram"]
