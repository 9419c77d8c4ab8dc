"""Patch-level bumps may go into manifests and lock files unasked, from their observer alone and as nothing else."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission.findings import identity
from ralph_mission.mission.model.effects import OpenPull, PushBranch
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Action, Limits, Signal, Status, Verdict
from ralph_mission.mission.model.proposal import RankedFinding
from ralph_mission.mission.policy import judge
from ralph_mission.mission.proposals.draft import DraftContext, draft_all
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from tests.mission.build import BASE, NOW, mission, policy_context

WHEEL = (
    '    {{ url = "https://index.example.org/files/buoy-{0}-cp{1}-cp{1}-any.whl", hash = "sha256:{2}", size = 9 }},\n'
)


def lock(version: str, digest: str) -> bytes:
    """An entry with far more archives than lines that need no approval."""
    wheels = "".join(WHEEL.format(version, 300 + number, digest * 32) for number in range(60))
    head = f'[[package]]\nname = "buoy"\nversion = "{version}"\n'
    return f"{head}wheels = [\n{wheels}]\n".encode()


def signal(to: str = "1.4.3", kind: str = "dependency-patch") -> Signal:
    changes = (
        FileChange("requirements.txt", REGULAR, REGULAR, b"buoy==1.4.2\n", f"buoy=={to}\n".encode()),
        FileChange("uv.lock", REGULAR, REGULAR, lock("1.4.2", "a1"), lock(to, "b2")),
    )
    files = (("count", 1), ("file", "requirements.txt"), ("file", "uv.lock"))
    return Signal("dependencies", kind, "1 update", ("buoy",), path="uv.lock", facts=files, patch=Patch(BASE, changes))


def drafts(seen: Signal, under_way: frozenset[str] = frozenset()):
    found = identity.identify([seen])
    store = DraftContext(Branch("main", BASE), 1, NOW, 1, Limits(), {}, {}, under_way=under_way)
    return draft_all([RankedFinding((found[0].fingerprint,), seen.kind, 1.0, "because")], found, store)


def drafted(seen: Signal):
    (proposal,) = drafts(seen)
    return proposal


def test_a_lock_file_with_many_archives_is_proposed_and_allowed_unasked() -> None:
    proposal = drafted(signal())
    assert proposal.action is Action.OPEN_FIX and proposal.patch is not None
    assert proposal.title == "Apply 1 patch-level update in 2 files"
    assert judge(proposal, policy_context()).verdict is Verdict.ALLOW


def test_a_larger_step_is_asked_about_whatever_its_kind_says() -> None:
    proposal = drafted(signal(to="1.5.0"))
    assert proposal.action is Action.OPEN_PROPOSAL
    forced = replace(drafted(signal()), patch=proposal.patch)
    assert set(judge(forced, policy_context()).rules) == {"protected-path", "diff-size"}


def test_the_same_change_of_another_kind_or_for_a_mission_at_work_is_held() -> None:
    proposal = drafted(signal())
    other = replace(proposal, kind="lint-fix")
    later = replace(proposal, before=mission(kind="dependency-patch"))
    for held in (other, later):
        assert {"protected-path", "diff-size"} <= set(judge(held, policy_context()).rules)


def carried_on(kind: str = "dependency-patch", **changes):
    """The same in a later cycle, of what memory kept: its effects, and no old text to compare them with."""
    whole = drafted(signal())
    effects = tuple(effect for effect in whole.effects if isinstance(effect, PushBranch | OpenPull))
    before = mission(kind=kind, status=Status.EXECUTING)
    return replace(whole, kind=kind, effects=effects, patch=None, members=(), before=before, **changes)


def test_what_was_announced_is_carried_on_after_an_interruption_and_nothing_else_is() -> None:
    assert judge(carried_on(), policy_context()).verdict is Verdict.ALLOW
    for held in (carried_on(objections=("approval-content",)), carried_on(kind="lint-fix")):
        assert {"protected-path", "diff-size"} <= set(judge(held, policy_context()).rules)


def test_no_second_change_of_the_same_lines_is_drafted_while_one_is_carried_out() -> None:
    assert drafts(signal(), frozenset({"dependency-patch"})) == ()
    assert len(drafts(signal(), frozenset({"spelling"}))) == 1


def test_a_file_that_no_finding_is_about_is_out_of_scope() -> None:
    proposal = drafted(signal())
    member = replace(proposal.members[0], signal=replace(proposal.members[0].signal, facts=()))
    assert judge(replace(proposal, members=(member,)), policy_context()).rules == ("scope",)


def test_a_path_that_memory_bans_is_banned_wherever_it_stands_in_the_change() -> None:
    from ralph_mission.mission.findings.identity import parse_bans

    bans, _ = parse_bans("- `requirements.txt`", frozenset({"dependency-patch"}))
    assert "rejected-before" in judge(drafted(signal()), policy_context(bans=bans)).rules
