"""Which change our own texts name: nothing that anybody else says is such a line, wherever it is shown."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralph_mission.mission import policy
from ralph_mission.mission.issues import tasks
from ralph_mission.mission.lifecycle import ownership, table
from ralph_mission.mission.lifecycle.facts import facts_about
from ralph_mission.mission.lifecycle.ownership import (
    announced_digests,
    announcement_line,
    change_digest,
    facts_of,
    why_foreign,
)
from ralph_mission.mission.lifecycle.steps import next_step
from ralph_mission.mission.model.cycle import StepContext
from ralph_mission.mission.model.effects import OpenPull, PushBranch, marker
from ralph_mission.mission.model.forge import Branch, Post, Review
from ralph_mission.mission.model.ledger import EffectRecord, OpenState, WorkRecord, key_of, work_key
from ralph_mission.mission.model.mission import Action, Status, Verdict
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.publishing import content
from ralph_mission.safety.text import fence, inline, inline_words, quote
from tests.mission.build import (
    BASE,
    BOT,
    MARA,
    NOW,
    OUTSIDER,
    finding,
    issue,
    labelled,
    mission,
    patch,
    policy_context,
    pull,
    push,
    remark,
)
from tests.mission.lifecycle.test_facts import ports
from tests.safety.hostile_texts import nasty

DIGEST = "0123456789abcdef"
LINES = tuple(f"the change {verb} `{DIGEST}`" for verb in ("is", "would be"))
RECORD = WorkRecord(work_key(3), 3, "ralph/issue-3", BASE, "working", 1, "me", NOW, 5.0)
KEY = "a" * 16
BRANCH = push(patch())
PULL = OpenPull("ko", "Correct 1 misspelling", "Part of #3.\n\n" + marker(KEY), BRANCH.branch, "main", 3)

granting = st.builds("{}{}{}".format, nasty, st.sampled_from(LINES), nasty)
"""Words of a stranger's with our line in it, wherever it comes to stand."""


def named(text: str) -> frozenset[str]:
    return announced_digests(text, False) | announced_digests(text, True)


@pytest.mark.parametrize("asked", [True, False])
def test_our_own_line_is_read_wherever_it_stands_in_a_text_of_ours(asked: bool) -> None:
    own = announcement_line((BRANCH, PULL), asked)
    digests = {change_digest(BRANCH), change_digest(PULL)}
    folded = f"<details><summary>The change</summary>\n\n{own}\n\n{fence('+x', 100, 'diff')}\n\n</details>"
    for text in (own, f"- a\n- `b`\n\n{own}\n\nc", folded, f"{quote(LINES[0])}\n\n{own}", folded.replace("\n", "\r\n")):
        assert (announced_digests(text, asked), announced_digests(text, not asked)) == (digests, frozenset())


@pytest.mark.attack(19)
@given(text=granting)
@example(text=LINES[0])
@example(text=f"FAILED test_a\r\n{LINES[1]}\r\n")
@example(text=f"```\n{LINES[0]}\n```\n{LINES[1]}")
def test_what_others_say_names_no_change_however_it_is_shown(text: str) -> None:
    for shown in (quote(text), fence(text, 4_000, "diff"), inline(text), inline_words(text)):
        assert named(shown) == named(f"a word\n\n{shown}\n\nanother") == frozenset()


@pytest.mark.attack(19)
@given(text=granting)
@example(text=LINES[0])
@example(text=f"x\n{LINES[1]}\n```\n{LINES[0]}")
def test_what_is_shown_to_the_letter_names_no_change(text: str) -> None:
    posts = content.prepare_posts([Post("mastodon", (text,), (10,), 500)])
    assert named(f"A question.\n\n{content.render(posts)}\n\n---") == frozenset()


@pytest.mark.attack(19)
@pytest.mark.parametrize("own", LINES)
def test_no_evidence_of_a_finding_names_a_change(own: str) -> None:
    found = finding(detail=f"{own}\ntest_a: assert x\n{own}\n", title=own, path=f"a\n{own}", observer=f"x\n{own}")
    mine = announcement_line((BRANCH,), needs_approval=True)
    assert named(wording.proposal_body(found, own, None, sections=(("Options", f"x\n\n{own}"),))) == frozenset()
    assert named(wording.proposal_body(found, own, patch(), mine)) == {change_digest(BRANCH)}
    assert named(wording.fix_issue("spelling", (found,), own, patch(), own, KEY, {}, mine)) == {change_digest(BRANCH)}
    assert named(wording.escalation((), f"x\n{own}", "mara")) == frozenset()


@pytest.mark.attack(19)
@pytest.mark.parametrize("own", LINES)
def test_what_memory_keeps_of_the_work_on_an_issue_names_no_change(own: str) -> None:
    kept = replace(RECORD, branch=f"x`\n\n{own}\n\n`", heard=(f"x\n\n{own}",))
    assert named(tasks.begin_comment(kept, 2, KEY)) == frozenset()
    assert "on the branch `ralph/issue-3`." in tasks.begin_comment(RECORD, 2, KEY)


def _owed(detail: str) -> Any:
    """What becomes of a question whose evidence is `detail`, once memory says that its change was agreed to."""
    asked = mission(status=Status.DISCOVERED, action=Action.OPEN_PROPOSAL, pull=0, branch="", head_sha="")
    body, _ = wording.seal_proposal(
        "a title", wording.proposal_body(finding(detail=detail), "", None), KEY, facts_of(asked)
    )
    records = {
        effect.key: EffectRecord(effect.key, "a", Action.OPEN_FIX, "spelling", "failed", effect, 1, NOW, 1)
        for effect in (BRANCH, PULL)
    }
    forged = replace(
        asked, status=Status.PLANNED, action=Action.OPEN_FIX, branch=BRANCH.branch, pending=(BRANCH.key, PULL.key)
    )
    assert why_foreign(forged, issue(body=body), None, BOT.id, frozenset()) == ""
    facts = facts_about(ports(BOT, body=body), SimpleNamespace(owners=()), forged, OpenState())
    around = StepContext(5, NOW, ("mara",), "squash", records, Branch("main", "b" * 40))
    return facts, next_step(forged, facts, table.interpret_facts(forged, facts, NOW), around)


@pytest.mark.attack(19)
@pytest.mark.parametrize("asked", [True, False])
def test_no_evidence_and_no_memory_together_open_a_pull_that_nobody_said_yes_to(asked: bool) -> None:
    facts, steps = _owed(f"FAILED test_a\n{announcement_line((BRANCH, PULL), asked)}")
    assert (facts.announced, facts.offered, facts.unasked) == (frozenset(), frozenset(), False)
    for found in steps:
        if found.proposal and any(isinstance(one, PushBranch | OpenPull) for one in found.proposal.effects):
            assert policy.judge(found.proposal, policy_context()).verdict is Verdict.DENY


def foreign(there=None, carried=None, authorised=frozenset(), ours=None):
    return ownership.why_foreign(ours or mission(), there, carried, BOT.id, authorised)


def signed(**more):
    return marker("0123456789abcdef", **ownership.facts_of(mission()), **more)


def test_what_bears_our_marker_and_our_account_belongs_to_the_mission():
    assert foreign(issue(body=signed()), pull(body=signed())) == ""


@pytest.mark.parametrize(
    "carried",
    [
        pull(body=signed(), author=MARA),
        pull(body=signed(), head="ralph/another"),
        pull(body="no marker"),
        pull(body=marker("0123456789abcdef", mission="2", kind="spelling", finding="f1")),
    ],
    ids=["another account", "another branch", "no marker", "another mission"],
)
def test_a_pull_that_only_memory_says_is_ours_is_foreign(carried):
    assert foreign(issue(body=signed()), carried) == "pull request #4 does not belong to this mission"


def by_ralph_work(number, **more):
    return pull(**{"body": marker(KEY, **ownership.work_facts(number)), **more})


@pytest.mark.parametrize(
    "carried",
    [by_ralph_work(4), by_ralph_work(3, author=MARA), by_ralph_work(3, head="ralph/another"), pull(body=signed())],
    ids=["another issue", "another account", "another branch", "a mission's own"],
)
def test_only_the_pull_that_ralph_work_opened_for_an_issue_bears_it_out_without_a_label(carried):
    wish = mission(kind="human", members=())
    assert foreign(issue(author=MARA), by_ralph_work(3), ours=wish) == ""
    assert foreign(issue(author=MARA), carried, ours=wish) == "issue #3 does not belong to this mission"


@pytest.mark.attack(17)
@pytest.mark.parametrize("forged", [{"kind": "spelling"}, {"members": ("f" * 16,)}], ids=["kind", "findings"])
def test_a_pull_of_ralph_work_bears_out_no_mission_that_memory_says_is_something_else(forged):
    wish = mission(**{"kind": "human", "members": (), **forged})
    assert foreign(issue(author=MARA), by_ralph_work(3), ours=wish) == "issue #3 does not belong to this mission"


@pytest.mark.attack(17)
def test_a_pull_that_lost_its_marker_is_its_missions_once_a_person_with_a_say_labels_it():
    fix = mission(issue=0)
    wish = {"events": (labelled("ralph:mission", MARA),), "labels": frozenset({"ralph:mission"})}
    bare, another = pull(body="", **wish), pull(body=signed(), **wish)
    for led, who, own in ((bare, MARA, True), (bare, OUTSIDER, False), (another, MARA, False)):
        said = why_foreign(fix, led.as_issue(), led, BOT.id, frozenset({who.id}))
        assert (said == "") is own
    elsewhere = replace(bare, head="ralph/another")
    assert why_foreign(fix, elsewhere.as_issue(), elsewhere, BOT.id, frozenset({MARA.id}))


@pytest.mark.attack(17)
def test_a_pull_that_lost_its_marker_is_its_missions_once_a_person_with_a_say_approves_its_head():
    fix = mission(issue=0, head_sha=pull().head_sha)
    yes = Review(MARA, "approved", "", pull().head_sha, NOW)
    bare, another = pull(body="", reviews=(yes,)), pull(body=signed(), reviews=(yes,))
    moved = replace(bare, head_sha="9" * 40, reviews=(replace(yes, sha="9" * 40),))
    for led, who, own in ((bare, MARA, True), (bare, OUTSIDER, False), (another, MARA, False), (moved, MARA, False)):
        said = why_foreign(fix, led.as_issue(), led, BOT.id, frozenset({who.id}))
        assert (said == "") is own


@pytest.mark.attack(17)
def test_an_issue_that_nobody_with_a_say_labelled_is_foreign():
    wish = {"events": (labelled("ralph:mission", OUTSIDER),), "labels": frozenset({"ralph:mission"})}
    assert foreign(issue(author=MARA)) == "issue #3 does not belong to this mission"
    assert foreign(issue(author=MARA, **wish), authorised=frozenset({MARA.id}))
    assert foreign(issue(author=MARA, **wish), authorised=frozenset({OUTSIDER.id})) == ""


def test_a_remark_of_somebody_else_is_not_taken_for_our_standing_one():
    standing = marker(key_of(mission().key, "comment", "standing"))

    def remembered(who):
        return ownership.own_remark(mission(comment=0), {}, issue(remarks=(remark(standing, who),)), BOT.id)

    assert (remembered(BOT), remembered(MARA)) == (11, 0)


def test_a_list_of_an_earlier_version_is_told_by_our_marker_and_its_title():
    listed = marker("0" * 16, kind="todo")
    assert ownership.listed_kind(issue(title="Watching: TODOs", body=listed), BOT.id) == "todo"
    assert not ownership.listed_kind(issue(title="Watching: TODOs", body=listed, author=MARA), BOT.id)
    assert not ownership.listed_kind(issue(title="Mine", body=listed), BOT.id)
