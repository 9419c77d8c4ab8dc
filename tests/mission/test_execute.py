"""The one gate that effects pass: never twice, never after a stop, never resent in doubt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ralph_mission.mission import execute
from ralph_mission.mission.execute import execute_decisions, not_attempted, reconcile
from ralph_mission.mission.model.effects import (
    CloseIssue,
    Comment,
    EditComment,
    Label,
    MergePull,
    OpenIssue,
    OpenPull,
    PostReview,
    Receipt,
    Ref,
    marker,
)
from ralph_mission.mission.model.ledger import EffectRecord, OpenState, key_of, monitor_key
from ralph_mission.mission.model.mission import Action, Verdict
from ralph_mission.mission.model.proposal import Decision
from ralph_mission.mission.ports import NO_PUBLISHER, PostPublisher
from tests.mission.build import BOT, NOW, issue, writing

OPEN = OpenIssue("k1", "t", "b")
LIST = OpenIssue(key_of(monitor_key("spelling"), "open_issue"), "t", "b")
PULL = OpenPull("k2", "t", f"Part of {Ref('k1').token}", "ralph/x", "main", Ref("k1"))
LABEL = Label("k3", 3, add=("x",))
EDIT = EditComment("k2", 3, 0, "b")
MERGE = MergePull("k2", 4, "c" * 40, "squash", "Fix\n", "main", 7)


@dataclass
class Silent:
    def phase(self, name: str, note: str = "") -> None: ...

    def note(self, text: str) -> None: ...


@dataclass
class ScriptedForge:
    """Answers by key; an exception is raised; a key it does not know is refused."""

    answers: dict[str, Any]
    found: dict[str, Receipt] = field(default_factory=dict)
    lists_at_once: bool = False
    sent: list[Any] = field(default_factory=list)
    issues: dict[int, Any] = field(default_factory=lambda: {3: issue(body=marker(LIST.key))})

    def perform(self, effect):
        self.sent.append(effect)
        answer = self.answers[effect.key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find(self, effect):
        return self.found.get(effect.key)

    def identity(self):
        return BOT

    def issue(self, number):
        return self.issues[number]


@dataclass
class ScriptedPorts:
    forge: ScriptedForge
    stops: list[bool] = field(default_factory=list)
    progress: Silent = field(default_factory=Silent)
    publisher: PostPublisher = NO_PUBLISHER

    @property
    def store(self):
        return self

    def paused(self) -> bool:
        return bool(self.stops) and self.stops.pop(0)

    def switch(self) -> bool:
        return False


def acts_of(ports, decisions, records):
    return execute_decisions(ports, decisions, records, nobody)


def nobody(mission):
    raise AssertionError("no text waits for a yes here")


def done(key: str, number: int = 0) -> Receipt:
    return Receipt(key, "done", number)


def decision(*effects) -> Decision:
    return Decision(writing(*effects), Verdict.ALLOW)


def record(effect, state="intended", receipt=None, mission=1) -> EffectRecord:
    return EffectRecord(effect.key, "a", Action.OPEN_FIX, "spelling", state, effect, 1, NOW, mission, receipt)


def known(*effects, mission=1):
    return {effect.key: record(effect, mission=mission) for effect in effects}


def test_a_number_that_the_forge_gave_is_filled_into_what_follows():
    forge = ScriptedForge({"k1": done("k1", 12), "k2": done("k2", 13)})
    acts_of(ScriptedPorts(forge), [decision(OPEN, PULL)], known(OPEN, PULL))
    assert (forge.sent[1].issue, forge.sent[1].body) == (12, "Part of #12")


def test_what_was_done_before_is_not_done_again():
    forge = ScriptedForge({})
    (acted,) = acts_of(ScriptedPorts(forge), [decision(OPEN)], {"k1": record(OPEN, "done", done("k1", 12))})
    assert (forge.sent, acted.applied[0].receipt.number) == ([], 12)


def test_what_may_have_been_sent_is_never_sent_again():
    forge = ScriptedForge({})
    unknown = Receipt("k1", "unknown")
    (acted,) = acts_of(ScriptedPorts(forge), [decision(OPEN)], {"k1": record(OPEN, "unknown", unknown)})
    assert (forge.sent, acted.complete) == ([], False)


@pytest.mark.parametrize(("effect", "status"), [(OPEN, "unknown"), (LABEL, "failed")])
def test_an_error_is_doubt_for_what_has_no_key_and_failure_for_what_has(effect, status):
    forge = ScriptedForge({effect.key: ConnectionError("reset")})
    (acted,) = acts_of(ScriptedPorts(forge), [decision(effect)], known(effect))
    assert acted.applied[0].receipt.status == status


def test_nothing_follows_a_step_that_failed():
    forge = ScriptedForge({"k1": Receipt("k1", "failed", detail="issues are disabled")})
    (acted,) = acts_of(ScriptedPorts(forge), [decision(OPEN, PULL, LABEL)], known(OPEN, PULL, LABEL))
    assert [type(effect) for effect in forge.sent] == [OpenIssue]
    assert {action.receipt.explanation for action in acted.applied[1:]} == {"not attempted: issues are disabled"}


@pytest.mark.parametrize("remark", [Comment("k4", 3, "merged"), PostReview("k4", 3, "c" * 40, "fine")])
def test_a_remark_in_doubt_stops_nothing_and_is_never_sent_again(remark):
    forge = ScriptedForge({"k4": ConnectionError("reset"), "k3": done("k3")})
    (acted,) = acts_of(ScriptedPorts(forge), [decision(remark, LABEL)], known(remark, LABEL))
    assert ([action.receipt.status for action in acted.applied], acted.complete) == (["unknown", "done"], True)
    again = {"k4": record(remark, "unknown", Receipt("k4", "unknown"))}
    assert acts_of(ScriptedPorts(forge), [decision(remark)], again)[0].complete
    assert len(forge.sent) == 2


def test_a_merge_that_nobody_approved_is_never_sent():
    forge = ScriptedForge({"k2": done("k2")})
    receipt = acts_of(ScriptedPorts(forge), [decision(replace(MERGE, approver=0))], {})[0].applied[0].receipt
    assert (receipt.status, receipt.detail) == ("failed", "approval-author")
    assert forge.sent == []


def test_the_kill_switch_stops_before_the_next_effect():
    forge = ScriptedForge({"k1": done("k1", 12), "k3": done("k3")})
    ports = ScriptedPorts(forge, stops=[False, True])
    acts = acts_of(ports, [decision(OPEN, LABEL), decision(LABEL)], known(OPEN, LABEL))
    assert [(acted.cut, acted.complete, len(acted.applied)) for acted in acts] == [(True, False, 1), (True, False, 0)]
    assert len(forge.sent) == 1
    assert [receipt.key for receipt in not_attempted(acts)] == ["k3", "k3"]


class TestReconcile:
    state = OpenState(effects=("k1", "k2"))

    def test_adopts_what_is_found(self):
        forge = ScriptedForge({"k2": done("k2", 13)}, {"k1": Receipt("k1", "adopted", 12)})
        actions = reconcile(ScriptedPorts(forge), self.state, known(OPEN, EDIT, mission=0))
        assert [action.receipt.status for action in actions] == ["adopted", "failed"]
        assert forge.sent == []

    @pytest.mark.parametrize("effect", [MERGE, CloseIssue("k2", 3, "completed"), replace(LABEL, key="k2")])
    def test_what_only_memory_says_is_no_monitoring_issues_is_never_made_up_for(self, effect):
        forge = ScriptedForge({"k2": done("k2")})
        actions = reconcile(ScriptedPorts(forge), OpenState(effects=("k2",)), known(effect, mission=0))
        assert [action.receipt.status for action in actions] == ["failed"]
        assert forge.sent == []

    def test_leaves_to_a_missions_next_step_what_is_missing_of_it(self):
        forge = ScriptedForge({}, {"k1": Receipt("k1", "adopted", 12)})
        actions = reconcile(ScriptedPorts(forge), self.state, known(OPEN, PULL))
        assert [action.receipt.status for action in actions] == ["adopted", "failed"]
        assert actions[1].receipt.not_attempted
        assert forge.sent == []

    def test_never_resends_what_has_no_key_and_is_not_listed(self):
        forge = ScriptedForge({})
        actions = reconcile(ScriptedPorts(forge), self.state, known(OPEN, PULL))
        assert [action.receipt.status for action in actions] == ["unknown", "failed"]
        assert forge.sent == []

    def test_leaves_settled_effects_alone(self):
        forge = ScriptedForge({})
        settled = {"k1": record(OPEN, "done", done("k1", 12)), "k2": record(PULL, "failed", Receipt("k2", "failed"))}
        assert reconcile(ScriptedPorts(forge), self.state, settled) == ()

    def test_an_unknown_number_keeps_what_needs_it_from_being_sent(self):
        comment = Comment("k2", Ref("k1"), "b")
        forge = ScriptedForge({}, lists_at_once=False)
        actions = reconcile(
            ScriptedPorts(forge), self.state, {"k1": record(OPEN), "k2": replace(record(PULL), effect=comment)}
        )
        assert actions[1].receipt.not_attempted

    def test_finds_late_what_a_list_did_not_show_at_first_and_sends_nothing(self):
        forge = ScriptedForge({}, {"k1": Receipt("k1", "adopted", 12)})
        doubt = {"k1": record(OPEN, "unknown", Receipt("k1", "unknown")), "k3": record(LABEL, "unknown")}
        actions = reconcile(ScriptedPorts(forge), OpenState(unknown=("k1", "k3")), doubt)
        assert [(action.receipt.key, action.receipt.status) for action in actions] == [("k1", "adopted")]
        assert forge.sent == []


class Switched(ScriptedPorts):
    """Whose kill switch is thrown once something was sent."""

    def switch(self) -> bool:
        return bool(self.forge.sent)


def test_the_switch_of_the_environment_stops_before_the_next_effect():
    ports = Switched(ScriptedForge({"k1": done("k1", 12), "k3": done("k3")}))
    (act,) = acts_of(ports, [decision(OPEN, LABEL)], known(OPEN, LABEL))
    assert (act.cut, len(ports.forge.sent)) == (True, 1)


def test_what_belongs_to_a_mission_is_not_made_up_for_even_as_a_list():
    forge = ScriptedForge({LIST.key: done(LIST.key, 12)}, lists_at_once=True)
    (action,) = execute.reconcile(ScriptedPorts(forge), OpenState(effects=(LIST.key,)), known(LIST, mission=1))
    assert (action.receipt.status, forge.sent) == ("failed", [])
