"""Values as JSON: nothing lost, nothing unknown accepted, and text that a person can read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.storage.memory import codec
from ralph_mission.mission.model.effects import (
    CloseIssue,
    ClosePull,
    Comment,
    EditComment,
    EditReview,
    Effect,
    Label,
    LeaveQueue,
    MergePull,
    OpenIssue,
    OpenPull,
    PostReview,
    PushBranch,
    Receipt,
    Ref,
)
from ralph_mission.mission.model.ledger import CallRecord, EffectRecord, OpenState, Record
from ralph_mission.mission.model.mission import (
    MISSION_PARTS,
    Acceptance,
    Action,
    FailureReason,
    Finding,
    Observation,
    Severity,
    Signal,
)
from ralph_mission.safety.patch import Edit, FileChange, FileDelta, Patch
from tests.adapters.storage.memory.making import claim, finding, intended, monitor, planned, settled
from tests.helpers import NOON
from tests.mission.build import mission

EFFECTS: list[Effect] = [
    OpenIssue("k", "t", "b", ("l",)),
    PushBranch("k", "ralph/x", "a" * 40, "m", NOON, (FileDelta("caf\udce9.txt", "100644", (Edit(0, 1, ("x\n",)),)),)),
    OpenPull("k", "t", "b", "h", "main", Ref("other"), ("l",)),
    MergePull("k", 3, "a" * 40, "squash", "m"),
    CloseIssue("k", 3, "completed"),
    ClosePull("k", 3),
    LeaveQueue("k", 3),
    Comment("k", 3, "b"),
    Comment("k", Ref("other"), "b\0c"),
    EditComment("k", 3, 0, "b"),
    Label("k", Ref("other"), ("a",), ("b",), ("mara",)),
    Label("k", 3),
    PostReview("k", 3, "a" * 40, "b"),
    EditReview("k", 3, 7, "b"),
]


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: type(effect).__name__)
def test_every_effect_comes_back_as_itself(effect: Effect) -> None:
    record = EffectRecord("k", "a", Action.OPEN_FIX, "bug", "intended", effect, 3, NOON, 1)
    assert codec.load(Record, codec.dump(record)) == record


CALL = CallRecord("k", 8, "c" * 40, 2, NOON, refused=True)


@pytest.mark.parametrize("record", [intended(1), settled(2), finding(3), monitor(4), planned(), CALL])
def test_every_record_comes_back_as_itself(record: Record) -> None:
    assert codec.load(Record, codec.dump(record)) == record


@given(st.text(st.characters()), st.binary(max_size=20))
def test_any_text_and_any_bytes_come_back(text: str, data: bytes) -> None:
    patch = Patch("a" * 40, (FileChange(text, "", "100644", None, data),))
    facts = ((text, 1), ("b", 1.5), ("c", text))
    seen = Finding("f", Signal("o", "k", text, (text,), facts=facts, severity=Severity.HIGH, patch=patch))
    state = OpenState(
        claim("h"), unknown=(text,), acceptance=((text, Acceptance(1, 2)),), backlog=(seen,), recent=((NOON, text, 3),)
    )
    assert codec.load(OpenState, codec.dump(state)) == state


def test_documents_are_sorted_and_one_value_a_line() -> None:
    lines = codec.dump(finding(1)).decode().splitlines()
    keys = [line.split('"')[1] for line in lines if line.startswith(' "')]
    assert keys == sorted(keys)
    assert len(keys) > 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"unheard": 1}',
        b'{"next_mission": "1"}',
        b'{"effects": "k"}',
        b"\xff",
        b"1" * 5000,
        b"[" * 100_000,
        b'{"claim": {"holder": "h"}}',
        b'{"next_mission": 1.5}',
        b'{"started_cycle": ' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"effects": "later: ", "done": ' + b'{"a":' * 600 + b"1" + b"}" * 601,
    ],
)
def test_what_is_not_ours_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(codec.UnreadableDocument) as caught:
        codec.load(OpenState, data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        1.5,
        "te\0xt\udce9",
        (),
        (Observation("o", "ok"), Receipt("k", "done")),
        {"a": (1, "x")},
        intended(1),
        (finding(1), (monitor(2),)),
    ],
)
def test_a_recorded_answer_comes_back_with_its_type(value: object) -> None:
    assert codec.load_any(codec.dump_any(value)) == value


@pytest.mark.parametrize("data", [b"", b"[]", b'{"type": "Popen", "value": {}}', b'{"type": "tuple"}', b"[" * 100_000])
def test_an_answer_of_unknown_type_is_refused(data: bytes) -> None:
    with pytest.raises(codec.UnreadableDocument):
        codec.load_any(data)


def test_a_journal_document_is_plain_json() -> None:
    document = json.loads(codec.dump({"at": NOON, "record": intended(1), "odd": "\udce9"}))
    assert document["record"]["state"] == "intended"


@pytest.mark.parametrize("reason", FailureReason)
def test_the_reason_of_a_failure_that_an_earlier_version_wrote_before_its_text_is_read(reason: FailureReason) -> None:
    receipt = Receipt("k", "failed", detail="main moved on", reason=reason)
    record = replace(settled(), receipt=receipt)
    state = OpenState(missions=(mission(failure="main moved on", failure_reason=reason),))
    assert codec.load(Record, _as_before(codec.dump(record), "detail", "reason", reason)) == record
    assert codec.load(OpenState, _as_before(codec.dump(state), "failure", "failure_reason", reason)) == state


def _as_before(data: bytes, text: str, name: str, reason: FailureReason) -> bytes:
    """The document with the reason written before the text."""
    document = json.loads(data)
    for value in (document.get("receipt"), *document.get("missions", ())):
        if value:
            del value[name]
            value[text] = f"{reason}: {value[text]}"
    return json.dumps(document).encode()


def test_a_mission_is_stored_flat_and_read_into_its_parts() -> None:
    state = OpenState(missions=(mission(failures=2, proposal_hash="ab12cd34", rounds=1),))
    (stored,) = json.loads(codec.dump(state))["missions"]
    assert (stored["failures"], stored["proposal_hash"], stored["rounds"]) == (2, "ab12cd34", 1)
    assert not set(stored) & set(MISSION_PARTS)
    assert codec.load(OpenState, codec.dump(state)) == state


@pytest.mark.parametrize("part", MISSION_PARTS)
@pytest.mark.parametrize("said", ["x", {}, {"unheard": 1}])
def test_a_stored_mission_that_names_a_part_is_none_of_ours(part: str, said: object) -> None:
    document = json.loads(codec.dump(OpenState(missions=(mission(failures=2),))))
    document["missions"][0][part] = said
    with pytest.raises(codec.UnreadableDocument):
        codec.load(OpenState, json.dumps(document).encode())
