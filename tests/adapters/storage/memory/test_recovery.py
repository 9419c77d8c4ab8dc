"""Recovery: what the forge shows and what can still be read become memory again; nothing is sent or redone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters import files
from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.adapters.storage.memory.provenance import MemoryBranch
from ralph_mission.errors import UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.model.effects import Comment, OpenIssue, OpenPull, PushBranch, marker
from ralph_mission.mission.model.ledger import (
    Anchor,
    EffectRecord,
    FindingRecord,
    MemorySnapshot,
    MonitorRecord,
    may_be_done,
    monitor_key,
)
from ralph_mission.mission.model.mission import Action, Status
from ralph_mission.mission.operations.recover import recover_memory
from ralph_mission.mission.operations.salvage import Recovered
from ralph_mission.safety.patch import Edit, FileDelta
from tests.adapters.storage.memory.making import (
    LOG,
    Intruder,
    batch,
    branch_store,
    claim,
    finding,
    full_batch,
    intended,
    key,
    monitor,
    planned,
    settled,
)
from tests.helpers import NOON, git

FP = "ab" * 8
ISSUE, PULL = key("issue"), key("pull")


@pytest.fixture
def forge(repo: Path) -> LocalForge:
    return LocalForge(Git.open(repo))


def facts(kind: str = "spelling") -> dict[str, str]:
    return {"mission": "3", "kind": kind, "finding": FP}


def open_issue(forge: LocalForge, kind: str = "spelling", labels: tuple[str, ...] = ("ralph:mission",)) -> int:
    return forge.perform(OpenIssue(ISSUE, "A mission", f"text\n\n{marker(ISSUE, **facts(kind))}", labels)).number


def open_pull(forge: LocalForge, issue: int) -> int:
    base = forge.default_branch()
    delta = FileDelta("README.md", "100644", (Edit(0, 1, ("# Better\n",)),))
    forge.perform(PushBranch(key("push"), "ralph/x", base.sha, "Better", NOON, (delta,)))
    body = f"text\n\n{marker(PULL, **facts())}"
    return forge.perform(OpenPull(PULL, "A pull", body, "ralph/x", "main", issue)).number


def rescue(repo: Path, forge: LocalForge, take_over: bool = False) -> tuple[Recovered, MemorySnapshot]:
    done = recover_memory(branch_store(repo), forge, NOON, take_over)
    recalled = branch_store(repo).recall()
    assert recalled is not None
    assert recalled.oid == done.anchor.oid
    assert (
        forge.anchor()
        == done.anchor
        == Anchor(recalled.memory.header.lineage, recalled.memory.header.serial, recalled.oid)
    )
    return done, recalled


# --- from nothing but the forge ---


def test_a_mission_is_found_again_by_its_issue(repo: Path, forge: LocalForge) -> None:
    issue = open_issue(forge)
    pull = open_pull(forge, issue)
    _, recalled = rescue(repo, forge)
    (mission,) = recalled.state.missions
    assert (mission.id, mission.issue, mission.pull, mission.kind) == (3, issue, pull, "spelling")
    assert (mission.status, mission.action, mission.members) == (Status.IN_REVIEW, Action.OPEN_FIX, (FP,))
    assert (recalled.state.next_mission, recalled.memory.active[0].id) == (4, 3)


def test_what_was_done_is_not_done_again(repo: Path, forge: LocalForge) -> None:
    open_pull(forge, open_issue(forge))
    _, recalled = rescue(repo, forge)
    found = branch_store(repo).records([ISSUE, PULL, FP], recalled)
    assert [getattr(found[name], "state", "") for name in (ISSUE, PULL)] == ["adopted", "adopted"]
    assert isinstance(found[FP], FindingRecord)


def test_a_pull_that_was_closed_unmerged_is_a_no(repo: Path, forge: LocalForge) -> None:
    pull = open_pull(forge, open_issue(forge))
    Person(forge, "mara").close_pull(pull)
    _, recalled = rescue(repo, forge)
    record = branch_store(repo).records([FP], recalled)[FP]
    assert isinstance(record, FindingRecord)
    assert record.verdict == "rejected"


def test_a_marker_that_someone_else_wrote_is_nothing(repo: Path, forge: LocalForge) -> None:
    Person(forge, "eve").create_issue("A mission", marker(ISSUE, **facts()), ("ralph:mission",))
    _, recalled = rescue(repo, forge)
    assert recalled.state.missions == ()
    assert not branch_store(repo).records([ISSUE, FP], recalled)


def test_a_marker_that_is_only_quoted_is_nothing(repo: Path, forge: LocalForge) -> None:
    quoted = f"{marker(key('forged'), **facts())}\n\n{marker(ISSUE, mission='3', kind='spelling')}"
    forge.perform(OpenIssue(ISSUE, "t", quoted, ("ralph:mission",)))
    _, recalled = rescue(repo, forge)
    assert not branch_store(repo).records([key("forged"), FP], recalled)


def test_a_proposal_is_asked_again_before_it_can_be_approved(repo: Path, forge: LocalForge) -> None:
    open_issue(forge, "feature")
    _, recalled = rescue(repo, forge)
    (mission,) = recalled.state.missions
    assert (mission.status, mission.question.proposal_hash) == (Status.DISCOVERED, "recovered")


@pytest.mark.parametrize(("label", "status"), [("ralph:parked", Status.PARKED), ("ralph:escalated", Status.ESCALATED)])
def test_labels_say_where_a_mission_stands(repo: Path, forge: LocalForge, label: str, status: Status) -> None:
    open_issue(forge, "feature", ("ralph:mission", label))
    assert rescue(repo, forge)[1].state.missions[0].status is status


def test_a_closed_issue_is_no_mission_any_more(repo: Path, forge: LocalForge) -> None:
    Person(forge, "mara").close_issue(open_issue(forge))
    assert rescue(repo, forge)[1].state.missions == ()


def test_a_monitoring_issue_and_our_remarks_are_remembered(repo: Path, forge: LocalForge) -> None:
    opened, said = key("monitor"), key("remark")
    number = forge.perform(OpenIssue(opened, "TODO", marker(opened, kind="todo"))).number
    forge.perform(Comment(said, number, f"hello\n{marker(said)}"))
    _, recalled = rescue(repo, forge)
    found = branch_store(repo).records([monitor_key("todo"), said], recalled)
    assert found[monitor_key("todo")] == MonitorRecord(monitor_key("todo"), "todo", number, (), 0)
    assert getattr(found[said], "state", "") == "adopted"


# --- from what can still be read ---

Damage = Callable[[Intruder], object]
DAMAGES: dict[str, Damage] = {
    "conflict": lambda intruder: intruder.change(lambda text: "<<<<<<< HEAD\n" + text),
    "cut": lambda intruder: intruder.change(lambda text: text[:300]),
    "foreign file": lambda intruder: intruder.write("x", "y"),
    "foreign state": lambda intruder: intruder.write("memory/open.json", "{}\n"),
    "broken state": lambda intruder: intruder.write("memory/open.json", "{"),
    "symlink": lambda intruder: intruder.write(LOG, "/etc/passwd", "120000"),
    "serial": lambda intruder: intruder.change(lambda text: text.replace("serial: 2", "serial: 900")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_after_any_damage_memory_works_again_and_nothing_was_reset(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder, damage: Damage
) -> None:
    store.edit(replace(past.memory, learnings="\n- small pulls\n", do_not_repeat="\n- #4\n"), past, "an edit")
    past = store.recall() or past
    past = store.commit(batch(past, settled(1), finding(2), monitor(3)), past)
    damage(intruder)
    broken = intruder.head()
    with pytest.raises(UserError):
        store.recall()
    done, recalled = rescue(repo, forge)
    assert git(repo, "rev-parse", "ralph-memory^") == broken
    assert (recalled.memory.learnings, recalled.memory.do_not_repeat) == ("\n- small pulls\n", "\n- #4\n")
    assert branch_store(repo).records([key(1), key(2), key(3)], recalled) == {
        key(1): settled(1),
        key(2): finding(2),
        key(3): monitor(3),
    }
    assert recalled.memory.header.serial > past.memory.header.serial
    assert recalled.memory.header.lineage != past.memory.header.lineage
    assert branch_store(repo).commit(batch(recalled), recalled)
    assert done.recovered


def test_a_branch_that_was_deleted_starts_at_a_new_root(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder
) -> None:
    past = store.commit(full_batch(past, 2), past)
    intruder.delete()
    _, recalled = rescue(repo, forge)
    assert git(repo, "rev-list", "--count", "ralph-memory") == "1"
    assert recalled.memory.header.serial == past.memory.header.serial + 1
    assert key("finding", 2) in branch_store(repo).records([key("finding", 2)], recalled)


def test_the_newest_text_of_people_is_kept_even_above_a_broken_front_matter(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder
) -> None:
    intruder.change(lambda text: text.replace("serial: 1", "serial: 1\nserial: 1") + "- `brand/new`\n")
    _, recalled = rescue(repo, forge)
    assert recalled.memory.do_not_repeat == "\n- `brand/new`\n"


def test_cursors_start_at_now_and_the_day_s_spending_is_kept(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder
) -> None:
    made = batch(past)
    header = replace(made.memory.header, cursors=(("code", "abc"),), today="2026-05-04", spend_usd=1.5, paused=False)
    store.commit(replace(made, memory=replace(made.memory, header=header)), past)
    intruder.write("x", "")
    _, recalled = rescue(repo, forge)
    assert (recalled.memory.header.cursors, recalled.memory.header.spend_usd) == ((), 1.5)


def test_paused_stays_paused(repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot) -> None:
    header = replace(past.memory.header, paused=True)
    store.edit(replace(past.memory, header=header), past, "paused")
    paused = store.recall()
    assert paused is not None
    store.commit(batch(paused), paused)
    assert rescue(repo, forge)[1].memory.header.paused


def test_journal_and_archive_survive(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder
) -> None:
    for cycle in range(2, 15):
        past = store.commit(full_batch(past, cycle), past)
    before = git(repo, "rev-parse", "ralph-memory:memory/journal", "ralph-memory:memory/archive")
    intruder.write("x", "")
    rescue(repo, forge)
    assert git(repo, "rev-parse", "ralph-memory:memory/journal", "ralph-memory:memory/archive") == before


@pytest.mark.parametrize("torn", ["{", pytest.param("[" * 200_000, id="nested")])
def test_a_document_of_the_journal_that_cannot_be_read_is_told_and_stops_no_rescue(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder, torn: str
) -> None:
    intruder.write(path := layout.journal(1, "torn"), torn)
    with pytest.raises(UserError, match=f"{path} .* cannot be read"):
        list(branch_store(repo).journal())
    _, recalled = rescue(repo, forge)
    assert branch_store(repo).recall() == recalled


def test_a_record_that_cannot_be_read_is_told_and_gone(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder
) -> None:
    path = f"memory/ledger/{key(9)[:2]}/{key(9)}.json"
    intruder.write(path, "{")
    done, recalled = rescue(repo, forge)
    assert f"{path} cannot be read" in done.lost
    assert not branch_store(repo).records([key(9)], recalled)


@pytest.mark.parametrize("torn", ["", "{", '{"lineage": "abc'])
def test_a_note_of_the_position_that_cannot_be_read_is_written_anew(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, torn: str
) -> None:
    (repo / ".git/ralph/anchor.json").write_text(torn)
    with pytest.raises(UserError, match=r"anchor\.json cannot be read"):
        branch_store(repo).recall()
    _, recalled = rescue(repo, forge)
    assert branch_store(repo).recall() == recalled


# --- from a repository that git itself cannot read ---


def lose(repo: Path, revision: str) -> None:
    oid = git(repo, "rev-parse", revision)
    (repo / ".git/objects" / oid[:2] / oid[2:]).unlink()


def test_without_its_newest_commit_memory_goes_on_from_the_one_before(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    past = store.commit(full_batch(past, 2), past)
    store.commit(full_batch(past, 3), past)
    lose(repo, "ralph-memory")
    with pytest.raises(UserError, match="git cannot read the branch") as problem:
        branch_store(repo).recall()
    assert "ralph memory recover" in problem.value.next_step
    done, recalled = rescue(repo, forge)
    assert git(repo, "rev-parse", "ralph-memory^") == past.oid
    assert key("finding", 2) in branch_store(repo).records([key("finding", 2)], recalled)
    assert recalled.memory.header.serial > past.memory.header.serial + 1
    assert recalled.state.hushed_until is not None  # what the lost commit said in public is not known
    assert done.recovered[0].startswith(f"the branch ralph-memory as of {past.oid[:10]}")


def test_what_was_begun_by_a_record_that_git_has_lost_is_unknown(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    store.commit(batch(past, intended(1), effects=(key(1),)), past)
    lose(repo, f"ralph-memory:memory/ledger/{key(1)[:2]}")
    with pytest.raises(UserError):
        branch_store(repo).recall()
    _, recalled = rescue(repo, forge)
    assert recalled.state.unknown == (key(1),)


def test_people_s_words_of_a_commit_that_is_not_whole_are_kept(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    store.edit(replace(past.memory, learnings="\n- small pulls\n"), past, "an edit")
    past = store.recall() or past
    store.commit(full_batch(past, 2), past)
    lose(repo, "ralph-memory:memory/journal")
    _, recalled = rescue(repo, forge)
    assert recalled.memory.learnings == "\n- small pulls\n"


# --- intents, and who may be at work ---


def test_an_open_intent_that_is_on_the_forge_is_adopted(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    number = open_issue(forge)
    record = EffectRecord(
        ISSUE, ISSUE, Action.OPEN_FIX, "spelling", "intended", OpenIssue(ISSUE, "A mission", "text"), 1, NOON, 3
    )
    store.commit(batch(past, record, effects=(ISSUE,)), past)
    _, recalled = rescue(repo, forge)
    found = branch_store(repo).records([ISSUE], recalled)[ISSUE]
    assert isinstance(found, EffectRecord)
    assert (found.state, found.receipt and found.receipt.number) == ("adopted", number)
    assert recalled.state.effects == ()


def test_an_open_intent_that_is_not_there_is_settled_and_never_sent(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    number = Person(forge, "mara").create_issue("x")
    record = replace(intended(1), effect=Comment(key(1), number, f"hello\n{marker(key(1))}"))
    store.commit(batch(past, record, effects=(key(1),)), past)
    _, recalled = rescue(repo, forge)
    found = branch_store(repo).records([key(1)], recalled)[key(1)]
    assert getattr(found, "state", "") == "failed"  # a local list shows everything: it certainly did not happen
    assert forge.issue(number).remarks == ()


def test_doubt_stays_unknown_where_a_list_may_lag(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalForge, "lists_at_once", False)
    number = Person(forge, "mara").create_issue("x")
    record = replace(intended(1), effect=Comment(key(1), number, f"hello\n{marker(key(1))}"))
    store.commit(batch(past, record, effects=(key(1),)), past)
    assert rescue(repo, forge)[1].state.unknown == (key(1),)


@pytest.mark.parametrize(
    "forged", [intended("forged"), planned(), replace(settled("forged"), effect=Comment("a", 1, "x"))]
)
def test_an_intent_that_an_intruder_wrote_is_not_taken_over(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder, forged: EffectRecord
) -> None:
    from ralph_mission.adapters.storage.memory import codec

    intruder.write(f"memory/ledger/{forged.key[:2]}/{forged.key}.json", codec.dump(forged))
    _, recalled = rescue(repo, forge)
    found = branch_store(repo).records([forged.key], recalled).get(forged.key)
    assert found is None or (isinstance(found, EffectRecord) and found.effect is None and may_be_done(found))
    assert recalled.state.effects == ()


def test_in_a_fresh_clone_what_may_have_been_sent_is_never_sent_again(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot, intruder: Intruder
) -> None:
    store.commit(batch(past, intended(1), effects=(key(1),)), past)
    store.anchorage.forget()
    _, recalled = rescue(repo, forge)
    found = branch_store(repo).records([key(1)], recalled)[key(1)]
    assert may_be_done(found)
    assert recalled.state.unknown == (key(1),)


def test_a_claim_elsewhere_stays_until_it_is_taken_over(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    store.commit(batch(past, claim=claim("https://example.org/runs/7")), past)
    done, recalled = rescue(repo, forge)
    assert recalled.state.claim == claim("https://example.org/runs/7")
    assert any("--take-over" in line for line in done.lost)
    assert rescue(repo, forge, take_over=True)[1].state.claim is None


def test_a_claim_on_this_machine_is_lifted_by_the_lock(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    store.commit(batch(past, claim=claim(store.holder())), past)
    assert rescue(repo, forge)[1].state.claim is None


def test_recovery_waits_for_a_running_cycle(repo: Path, forge: LocalForge, past: MemorySnapshot) -> None:
    with branch_store(repo).exclusive(), pytest.raises(UserError, match="running"):
        recover_memory(branch_store(repo), forge, NOON)


def test_memory_is_moved_with_its_lock_held_and_git_s_error_is_told(
    repo: Path, past: MemorySnapshot, forge: LocalForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, alone = branch_store(repo), list[bool]()

    def refused(branch: MemoryBranch, new: str, old: str) -> bool:
        with files.hold_file(store.anchorage.folder / "moving") as held:
            alone.append(not held)
        raise GitError(("update-ref",), 1, "fatal: no room")

    monkeypatch.setattr(MemoryBranch, "move", refused)
    with pytest.raises(UserError, match="cannot write memory: fatal: no room"):
        recover_memory(store, forge, NOON)
    assert alone == [True]
    assert branch_store(repo).recall() == past


def test_recovering_a_sound_memory_loses_nothing(
    repo: Path, store: BranchStore, forge: LocalForge, past: MemorySnapshot
) -> None:
    past = store.commit(batch(past, settled(1), planned(), next_mission=9), past)
    _, recalled = rescue(repo, forge)
    assert recalled.state == past.state
    assert branch_store(repo).records([planned().key], recalled) == {planned().key: planned()}
    assert recalled.memory.completed == past.memory.completed


def test_of_two_missions_of_one_number_that_is_kept_which_its_pull_request_tells_of(
    repo: Path, forge: LocalForge
) -> None:
    base = forge.default_branch()
    delta = FileDelta("README.md", "100644", (Edit(0, 1, ("# Better\n",)),))
    forge.perform(PushBranch(key("push"), "ralph/x", base.sha, "Better", NOON, (delta,)))
    body = marker(PULL, kind="spelling", finding=FP, issue="0")
    forge.perform(OpenPull(PULL, "A pull", body, "ralph/x", "main", 0, labels=("ralph:mission",)))
    _, found = rescue(repo, forge)
    (honest,) = found.state.missions
    false = replace(honest, issue=99, members=("cd" * 8,))
    branch_store(repo).commit(batch(found, missions=(false, honest)), found)
    done, recalled = rescue(repo, forge)
    assert recalled.state.missions == (honest,)
    assert any(line.startswith(f"mission #{honest.id} on #99: ") for line in done.lost)
