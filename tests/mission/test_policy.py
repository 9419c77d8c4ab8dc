"""One test per rule, each of which fails when the rule is removed; and the caps under any plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.findings.identity import parse_bans, touched_by
from ralph_mission.mission.lifecycle.approval import APPROVAL_RULES
from ralph_mission.mission.model.effects import Label, OpenIssue, OpenPull, Publish, PushBranch
from ralph_mission.mission.model.forge import Post, Touch
from ralph_mission.mission.model.ledger import FindingRecord
from ralph_mission.mission.model.mission import Action, Limits, Severity, Verdict
from ralph_mission.mission.model.proposal import BudgetUsed
from ralph_mission.mission.policy import RULES, judge, judge_all
from ralph_mission.safety.patch import EXECUTABLE, REGULAR, Edit, FileChange, FileDelta, Patch, patch_ids
from tests.mission.build import (
    BASE,
    BOT,
    MARA,
    NOW,
    ask,
    comment,
    finding,
    fix,
    issue,
    mission,
    patch,
    policy_context,
    pull,
    push,
    writing,
)

FULL = BudgetUsed(active=3)
SECRET = "hunter2-is-the-value"


def changed(path: str, old: bytes | None = b"teh\n", new: bytes | None = b"the\n", mode: str = REGULAR) -> Patch:
    return Patch(BASE, (FileChange(path, REGULAR if old is not None else "", mode, old, new),))


def seen(proposal, **changes):
    member = proposal.members[0]
    record = FindingRecord(member.fingerprint, member.kind, member.title, ("",), 1)
    return {member.fingerprint: replace(record, **changes)}


QUIET = (time(22), time(7))
CASES = {
    "mission-cap": (fix(), policy_context(spent=FULL)),
    "new-mission-cap": (fix(), policy_context(spent=BudgetUsed(new_missions=1))),
    "thread-cap": (ask(effects=(OpenIssue("k", "t", "b"),)), policy_context(spent=BudgetUsed(threads_week=4))),
    "action-cap": (writing(comment("hello")), policy_context(spent=BudgetUsed(actions=3))),
    "auto-pr-cap": (fix(), policy_context(spent=BudgetUsed(auto_pulls=1))),
    "diff-size": (fix(patch(lines=25)), policy_context()),
    "protected-path": (fix(changed(".github/workflows/ci.yml")), policy_context()),
    "file-mode": (fix(changed("run.sh", mode=EXECUTABLE)), policy_context()),
    "kind-tier": (fix(kind="architecture"), policy_context()),
    "human-duplicate": (fix(), policy_context(pulls=(pull(author=MARA, touches=(Touch("docs/guide.md", 1, 2),)),))),
    "spend-cycle": (fix(cost_usd=0.5), policy_context(spent=BudgetUsed(usd_cycle=1.6))),
    "spend-day": (fix(cost_usd=0.5), policy_context(spent=BudgetUsed(usd_day=9.6))),
    "dispatch-day": (fix(dispatches=1), policy_context(spent=BudgetUsed(dispatches_day=48))),
    "posts-day": (
        writing(Publish("k9", Post("twitter", ("Osmosis +45%",), (12,), 280)), action=Action.PUBLISH),
        policy_context(spent=BudgetUsed(posts_day={"twitter": 10})),
    ),
    "posts-pause": (
        writing(Publish("k9", Post("twitter", ("Osmosis +45%",), (12,), 280)), action=Action.PUBLISH),
        policy_context(spent=BudgetUsed(posts_lately={"twitter": 1}), post_pause=timedelta(minutes=5)),
    ),
    "quiet-hours": (writing(action=Action.PUBLISH), policy_context(quiet_hours=QUIET, now=NOW.replace(hour=23))),
    "known-finding": (fix(), policy_context(records=seen(fix()))),
    "rejected-before": (fix(), policy_context(records=seen(fix(), verdict="rejected", occurrences=()))),
    "branch-name": (fix(effects=(push(patch(), branch="ralph/a..b"),)), policy_context()),
    "default-branch": (fix(effects=(push(patch(), branch="main"),)), policy_context()),
    "closing-keyword": (writing(comment("this closes #12")), policy_context()),
    "mention": (writing(comment("look, @octocat")), policy_context()),
    "secret": (writing(comment(f"the value is {SECRET}")), policy_context(secrets=(SECRET,))),
    "workflow-command": (writing(comment("::set-output name=a::b")), policy_context()),
    "approval-author": (writing(objections=("approval-author",)), policy_context()),
    "approval-content": (writing(objections=("approval-content",)), policy_context()),
    "approval-head": (writing(objections=("approval-head",)), policy_context()),
    "paused": (writing(comment("hello")), policy_context(paused=True)),
    "scope": (fix(changed("src/other.py"), members=(finding(),)), policy_context()),
    "foreign-commit": (writing(objections=("foreign-commit",)), policy_context()),
}


def test_there_is_a_case_for_every_rule():
    assert set(CASES) == {rule.id for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_stops_what_it_is_for_and_nothing_else_does(rule):
    proposal, situation = CASES[rule.id]
    decision = judge(proposal, situation)
    without = judge(proposal, situation, [other for other in RULES if other is not rule])
    assert rule.id in decision.rules
    assert decision.verdict is not Verdict.ALLOW
    assert rule.id not in without.rules
    if decision.rules == (rule.id,):
        assert (decision.verdict, without.verdict) == (rule.verdict, Verdict.ALLOW)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_that_cannot_be_evaluated_denies(rule):
    def broken(proposal, bench):
        raise RuntimeError("no")

    decision = judge(writing(comment("hello")), policy_context(), [replace(rule, breaks=broken)])
    assert (decision.verdict, decision.rules) == (Verdict.DENY, (rule.id,))


def test_an_honest_small_fix_is_allowed():
    assert judge(fix(), policy_context()).verdict is Verdict.ALLOW


def test_a_patch_of_49_lines_passes_and_one_of_50_does_not():
    odd = fix(changed("a.txt", b"", b"x\n" * 49), members=())
    even = fix(changed("a.txt", b"", b"x\n" * 50), members=())
    assert judge(odd, policy_context()).rules == ()
    assert judge(even, policy_context()).rules == ("diff-size",)


def test_a_branch_without_a_measured_patch_is_denied():
    decision = judge(fix(patch=None), policy_context())
    assert decision.verdict is Verdict.DENY
    assert "diff-size" in decision.rules


@pytest.mark.attack(33)
def test_an_approval_lifts_size_but_never_a_secret():
    big = fix(patch(lines=25), approved=True)
    assert judge(big, policy_context()).verdict is Verdict.ALLOW
    leaking = replace(big, effects=(*big.effects, comment(f"see {SECRET}")))
    assert judge(leaking, policy_context(secrets=(SECRET,))).rules == ("secret",)


@pytest.mark.attack(28)
def test_an_escalation_may_name_a_configured_owner_and_nobody_else():
    assert judge(writing(comment("@mara: please look"), pings=("mara",)), policy_context()).verdict is Verdict.ALLOW
    assert judge(writing(comment("@eve: please look"), pings=("eve",)), policy_context()).rules == ("mention",)


def test_a_ban_of_a_path_is_obeyed():
    bans, _ = parse_bans("- `docs/**`\n", frozenset())
    assert judge(fix(), policy_context(bans=bans)).rules == ("rejected-before",)


def test_a_pull_of_someone_else_on_other_lines_is_no_duplicate():
    elsewhere = pull(author=MARA, touches=(Touch("docs/guide.md", 40, 50),))
    assert judge(fix(), policy_context(pulls=(elsewhere,))).verdict is Verdict.ALLOW


def test_a_pull_of_someone_else_on_a_second_file_of_a_finding_is_a_duplicate():
    one = finding(facts=(("file", "docs/more.md"),), patch=patch("docs/more.md"))
    theirs = pull(author=MARA, touches=(Touch("docs/more.md", 1, 2),))
    assert judge(fix(members=(one,)), policy_context(pulls=(theirs,))).rules == ("human-duplicate",)


def test_a_pull_of_someone_else_that_was_turned_down_covers_nothing():
    ended = pull(author=MARA, state="closed", touches=(Touch("docs/guide.md", 1, 2),), patch_ids=patch_ids(fix().patch))
    assert judge(fix(), policy_context(pulls=(ended,))).verdict is Verdict.ALLOW


def test_a_merged_pull_that_our_default_branch_lacks_covers_its_lines():
    merged = pull(author=MARA, state="merged", touches=(Touch("docs/guide.md", 1, 2),))
    assert judge(fix(), policy_context(pulls=(merged,))).rules == ("human-duplicate",)


@pytest.mark.parametrize("state", ["open", "merged"])
def test_the_same_change_in_a_pull_of_anyone_is_a_duplicate_wherever_it_stands(state):
    same = pull(author=MARA, state=state, touches=(), patch_ids=patch_ids(fix().patch) | {"another"})
    assert judge(fix(), policy_context(pulls=(same,))).rules == ("human-duplicate",)
    part = replace(same, patch_ids=frozenset({"another"}))
    assert judge(fix(), policy_context(pulls=(part,))).verdict is Verdict.ALLOW


@pytest.mark.parametrize("words", ["Fixes #3", "closes: #3 and more", "resolves https://github.com/o/r/issues/3"])
def test_a_pull_that_closes_the_issue_holds_the_approved_proposal(words):
    theirs = pull(author=MARA, head="hint", body=words, touches=())
    carried = fix(before=mission(issue=3), approved=True, patch=None)
    assert judge(carried, policy_context(pulls=(theirs,))).rules == ("human-duplicate",)
    for other in (replace(theirs, body="Part of #3"), replace(theirs, state="closed"), replace(theirs, author=BOT)):
        assert judge(carried, policy_context(pulls=(other,))).verdict is Verdict.ALLOW


def under_way(*effects, **changes):
    """The push of a mission that has its issue."""
    changes = {"approved": True, **changes}
    return fix(before=mission(issue=3), patch=None, members=(), effects=effects, **changes)


SENT = OpenPull("ko", "t", "b", "ralph/spelling-1", "main", 3, (), tuple(patch_ids(patch())), touched_by(patch()))


@pytest.mark.parametrize("effects", [(push(patch()), SENT), (SENT,)], ids=["branch and pull", "pull alone"])
@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("state", ["open", "merged"])
def test_the_same_change_in_a_pull_of_anyone_holds_the_push_of_a_mission_under_way(state, approved, effects):
    carried = under_way(*effects, approved=approved)
    same = pull(author=MARA, state=state, head="hint", patch_ids=patch_ids(patch()) | {"another"})
    assert judge(carried, policy_context(pulls=(same,))).rules == ("human-duplicate",)
    changes = ({"patch_ids": frozenset({"another"})}, {"state": "closed"}, {"author": BOT})
    for other in (replace(same, **change) for change in changes):
        assert judge(carried, policy_context(pulls=(other,))).verdict is Verdict.ALLOW


@pytest.mark.parametrize("sent", [push(patch()), SENT], ids=["branch", "pull"])
@pytest.mark.parametrize(("first", "held"), [(1, True), (40, False)])
def test_a_pull_on_the_same_lines_holds_the_push_of_a_mission_under_way(first, held, sent):
    theirs = pull(author=MARA, head="hint", touches=(Touch("docs/guide.md", first, first + 1),))
    assert ("human-duplicate" in judge(under_way(sent), policy_context(pulls=(theirs,))).rules) is held


def test_a_base_that_is_merged_into_our_branch_duplicates_nothing():
    caught_up = replace(push(patch()), files=(), onto="c" * 40)
    theirs = pull(author=MARA, head="hint", touches=(Touch("docs/guide.md", 1, 2),), patch_ids=patch_ids(patch()))
    assert judge(under_way(caught_up), policy_context(pulls=(theirs,))).verdict is Verdict.ALLOW


def test_a_pull_that_an_earlier_version_planned_is_compared_by_the_lines_of_its_branch():
    same = pull(author=MARA, head="hint", touches=(Touch("docs/guide.md", 1, 1),), patch_ids=patch_ids(patch()))
    kept = under_way(push(patch()), replace(SENT, patch_ids=(), touches=()))
    assert judge(kept, policy_context(pulls=(same,))).rules == ("human-duplicate",)
    assert judge(kept, policy_context(pulls=(replace(same, touches=()),))).verdict is Verdict.ALLOW


def test_an_issue_of_a_person_about_the_same_file_covers_a_fix():
    told = issue(author=MARA, title="Typos in docs/guide.md")
    assert judge(fix(), policy_context(issues=(told,))).rules == ("human-duplicate",)


def test_the_memory_branch_is_as_forbidden_as_the_default_branch():
    aimed = OpenPull("k", "t", "b", "ralph-memory", "main", 3)
    assert "default-branch" in judge(fix(effects=(aimed,)), policy_context()).rules


@pytest.mark.attack(34)
def test_a_label_is_searched_for_secrets_too():
    assert judge(writing(Label("k", 3, add=(SECRET,))), policy_context(secrets=(SECRET,))).rules == ("secret",)


def test_many_small_fixes_of_one_file_share_one_budget():
    assert judge(fix(patch(lines=5)), policy_context(recent_lines={"docs/guide.md": 45})).rules == ("diff-size",)


def test_the_fourth_mission_is_held_with_mission_cap():
    decisions = judge_all([fix(key="a"), fix(key="b")], policy_context(spent=BudgetUsed(active=2)))
    assert decisions[0].verdict is Verdict.ALLOW
    assert "mission-cap" in decisions[1].rules
    assert decisions[1].verdict is Verdict.HOLD


def owed(key="owed", **changes):
    """A fix that an earlier cycle began and could not open a pull for."""
    return fix(key=key, before=mission(), patch=None, **changes)


proposals = st.lists(
    st.one_of(
        st.integers(0, 99).map(lambda n: fix(key=f"f{n}")),
        st.integers(0, 99).map(lambda n: ask(f"a{n}")),
        st.integers(0, 99).map(lambda n: writing(comment("hello", key=f"k{n}"))),
        st.just(writing(comment("hello"), before=mission(), action=Action.FINISH)),
        st.integers(0, 99).map(lambda n: owed(f"o{n}")),
    ),
    max_size=12,
)
limits = st.builds(
    Limits,
    active_missions=st.integers(1, 3),
    actions_per_cycle=st.integers(1, 3),
    auto_prs_per_cycle=st.integers(0, 1),
)


@given(proposals, limits, st.integers(0, 3))
def test_caps_hold_under_arbitrary_plans(plan, limits, active):
    decisions = judge_all(
        plan, policy_context(limits=limits, spent=BudgetUsed(active=min(active, limits.active_missions)))
    )
    allowed = [d.proposal for d in decisions if d.verdict is Verdict.ALLOW]
    assert len(allowed) <= limits.actions_per_cycle
    assert sum(p.new_mission for p in allowed) <= 1
    assert sum(p.begins_work for p in allowed) + min(active, limits.active_missions) <= limits.active_missions
    assert sum(p.unasked for p in allowed) <= limits.auto_prs_per_cycle


@pytest.mark.parametrize(("approved", "rules"), [(False, ("auto-pr-cap",)), (True, ())])
def test_a_pull_that_a_dead_cycle_owes_takes_the_place_of_a_new_one_unless_a_person_said_yes_to_it(approved, rules):
    first, second = judge_all(
        [owed(approved=approved), fix(key="new")], policy_context(limits=Limits(auto_prs_per_cycle=1))
    )
    assert (first.verdict, second.rules) == (Verdict.ALLOW, rules)


@pytest.mark.parametrize("approved", [False, True])
def test_of_two_pulls_that_are_owed_the_second_waits_unless_a_person_said_yes_to_it(approved):
    first, second = judge_all(
        [owed("o1"), owed("o2", approved=approved)], policy_context(limits=Limits(auto_prs_per_cycle=1))
    )
    assert (first.verdict, second.rules) == (Verdict.ALLOW, () if approved else ("auto-pr-cap",))
    assert second.verdict is (Verdict.ALLOW if approved else Verdict.HOLD)


def test_what_was_begun_before_no_pull_was_allowed_unasked_is_not_opened():
    assert judge(owed(), policy_context(limits=Limits(auto_prs_per_cycle=0))).rules == ("auto-pr-cap",)


def test_a_mission_under_way_with_nothing_left_to_send_opens_no_pull():
    nothing = owed(effects=())
    for plan in ([owed("o1"), nothing], [nothing, owed("o1")]):
        assert [d.verdict for d in judge_all(plan, policy_context())] == [Verdict.ALLOW, Verdict.ALLOW]


def test_what_was_made_of_a_persons_wish_counts_and_never_waits():
    wish = fix(key="wish", before=mission(), requested=True)
    assert [d.rules for d in judge_all([owed("o1"), wish], policy_context())] == [(), ()]
    assert [d.rules for d in judge_all([wish, owed("o1")], policy_context())] == [(), ("auto-pr-cap",)]
    assert judge(wish, policy_context(limits=Limits(auto_prs_per_cycle=0))).verdict is Verdict.ALLOW


def test_severity_changes_nothing_that_is_permitted():
    loud = fix(members=(finding(patch=patch(), severity=Severity.HIGH),))
    assert judge(loud, policy_context(spent=FULL)).rules == ("mission-cap",)


def kept(*files, approver=""):
    """What a mission planned earlier and memory kept, about to be sent."""
    effect = PushBranch("k", "ralph/spelling-1", BASE, "m", NOW, files)
    return writing(
        effect, before=mission(), interim=mission(), action=Action.OPEN_FIX, approved=bool(approver), approver=approver
    )


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ((FileDelta("a.md", REGULAR, (Edit(0, 30, ("x\n",) * 30),)),), "diff-size"),
        ((FileDelta(".github/workflows/x.yml", REGULAR, (Edit(0, 1, ("on: push\n",)),)),), "protected-path"),
        ((FileDelta("a.md", EXECUTABLE, (Edit(0, 1, ("x\n",)),)),), "file-mode"),
        ((FileDelta("a.md", REGULAR, (Edit(0, 1, (f"{SECRET}\n",)),)),), "secret"),
    ],
)
def test_what_memory_kept_is_measured_again_unless_a_person_saw_it(files, rule):
    assert rule in judge(kept(*files), policy_context(secrets=(SECRET,))).rules
    assert judge(kept(*files, approver="mara"), policy_context()).verdict is Verdict.ALLOW


def test_a_small_fix_that_memory_kept_goes_on():
    small = FileDelta("docs/guide.md", REGULAR, (Edit(2, 1, ("the way\n",)),))
    assert judge(kept(small), policy_context()).verdict is Verdict.ALLOW


def test_of_two_posts_on_one_network_in_one_cycle_the_second_waits_where_a_pause_is_wanted():
    posts = [Publish(f"k{n}", Post(to, ("Hi",), (2,), 280)) for n, to in enumerate(("twitter", "twitter", "discord"))]
    proposals = [writing(post, key=post.key, action=Action.PUBLISH) for post in posts]
    for pause, rules in ((timedelta(hours=1), [(), ("posts-pause",), ()]), (timedelta(0), [(), (), ()])):
        assert [d.rules for d in judge_all(proposals, policy_context(post_pause=pause))] == rules


def test_what_one_rule_holds_and_another_denies_is_denied():
    decision = judge(fix(), policy_context(spent=BudgetUsed(active=3), paused=True))
    assert {"mission-cap", "paused"} <= set(decision.rules)
    assert decision.verdict is Verdict.DENY


def test_the_rules_by_which_an_approval_does_not_count_are_named_once():
    assert {rule.id for rule in RULES if rule.id.startswith("approval-")} == APPROVAL_RULES
