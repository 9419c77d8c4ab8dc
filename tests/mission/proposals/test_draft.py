"""From thoughts to proposals, for an honest thinker and for one that obeys an attacker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.effects import MARKER, Comment, EditComment, OpenIssue, OpenPull, PushBranch
from ralph_mission.mission.model.forge import Branch, Post, Touch, Wording
from ralph_mission.mission.model.mission import Action, Limits, Quote, Tier, Verdict
from ralph_mission.mission.model.proposal import KINDS, RankedFinding, Route
from ralph_mission.mission.policy import judge, judge_all
from ralph_mission.mission.proposals.draft import DraftContext, draft_all
from ralph_mission.safety.patch import REGULAR, FileChange, Patch, measure
from tests.mission.build import BASE, BOT, NOW, policy_context, pull, signal
from tests.mission.hostile import TOKEN, harmful_actions, is_title, texts

WRITING = (OpenIssue, OpenPull, Comment, EditComment)
KIND_NAMES = [*KINDS, "never heard of"]


def store(**changes):
    given_ = {
        "default": Branch("main", BASE),
        "cycle": 3,
        "now": NOW,
        "next_mission": 4,
        "limits": Limits(),
        "records": {},
        "recent_lines": {},
    }
    return DraftContext(**{**given_, **changes})


def change(path, old=b"teh\n", new=b"the\n"):
    return Patch(BASE, (FileChange(path, REGULAR, REGULAR, old, new),))


def fixable(path, old=b"teh\n", new=b"the\n", kind="spelling"):
    return signal(kind=kind, path=path, essence=(path,), patch=change(path, old, new))


def ranked(findings, kind="spelling", why="because"):
    return RankedFinding(tuple(f.fingerprint for f in findings), kind, 1.0, why)


def drafts(signals, kind="spelling", **changes):
    found = identify(signals)
    return draft_all([ranked(found, kind)], found, store(**changes))


# --- hostile words --------------------------------------------------------------------

paths = st.one_of(st.sampled_from(["a.md", "src/b.py", ".github/x.yml", "../up", f"{TOKEN}.md"]), texts)
patches = st.one_of(
    st.none(),
    st.builds(lambda old, new: (old.encode("utf-8", "replace"), new.encode("utf-8", "replace")), texts, texts),
    st.tuples(st.binary(max_size=40), st.binary(max_size=40)),
)
signals = st.builds(
    lambda kind, title, detail, path, author, sides, line: signal(
        kind=kind,
        title=title,
        detail=detail,
        path=path,
        author=author,
        essence=(title, path),
        line=line,
        patch=change(path, *sides) if sides else None,
    ),
    st.sampled_from(KIND_NAMES),
    texts,
    texts,
    paths,
    texts,
    patches,
    st.integers(0, 3),
)


@given(st.lists(signals, min_size=1, max_size=5), texts)
def test_no_text_of_the_repository_makes_a_proposal_harmful_or_denied(seen, why):
    found = identify(seen)
    plan = [ranked([f for f in found if f.kind == kind], kind, why) for kind in dict.fromkeys(f.kind for f in found)]
    made = draft_all(plan, found, store())
    for proposal in made:
        assert judge(proposal, policy_context()).verdict is not Verdict.DENY, judge(proposal, policy_context()).rules
        for effect in (*proposal.effects, *proposal.planned):
            if isinstance(effect, WRITING):
                assert harmful_actions(effect.body) == []
            if isinstance(effect, OpenIssue | OpenPull):
                assert is_title(effect.title)
            if isinstance(effect, PushBranch):
                assert harmful_actions(effect.message, markdown=False) == []


# --- a thinker that obeys an attacker -------------------------------------------------


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 11), max_size=14), st.sampled_from(KIND_NAMES), texts), max_size=8),
    st.randoms(use_true_random=False),
)
def test_no_plan_gets_a_high_kind_done_or_reaches_beyond_its_members(plan, random):
    made = [fixable(f"docs/{n}.md", kind=random.choice(["spelling", "bug", "never heard of"])) for n in range(6)]
    made += [signal(kind=random.choice(["todo", "bug"]), essence=(str(n),)) for n in range(6)]
    found = identify(made)
    ranked_findings = [
        RankedFinding(tuple(found[n].fingerprint for n in picked), kind, 9e9, why) for picked, kind, why in plan
    ]
    decisions = judge_all(draft_all(ranked_findings, found, store()), policy_context())
    allowed = [decision.proposal for decision in decisions if decision.verdict is Verdict.ALLOW]
    assert len(allowed) <= 3
    assert sum(proposal.new_mission for proposal in allowed) <= 1
    assert len({effect.key for p in allowed for effect in p.effects}) == sum(len(p.effects) for p in allowed)
    for proposal in allowed:
        pushed = {file.path for effect in proposal.effects if isinstance(effect, PushBranch) for file in effect.files}
        assert pushed <= {member.signal.path for member in proposal.members}
        assert not pushed or proposal.tier is Tier.LOW
        assert {member.kind for member in proposal.members} == {proposal.kind}


def test_what_is_not_a_present_finding_of_the_thoughts_kind_is_dropped():
    found = identify([fixable("a.md"), signal(kind="bug", essence=("b",))])
    assert draft_all([RankedFinding(("invented",), "spelling", 1.0, "")], found, store()) == ()
    assert draft_all([ranked(found, "architecture")], found, store()) == ()
    (fix,) = draft_all([ranked(found)], found, store())
    assert [member.kind for member in fix.members] == ["spelling"]


def test_the_same_thing_thought_of_twice_is_proposed_once():
    found = identify([signal(kind="todo", essence=(str(n),), title=f"TODO {n}") for n in range(3)])
    twice = [ranked(found[:1], "todo"), ranked(found[1:], "todo"), ranked(found[:1], "todo")]
    (proposal,) = draft_all(twice, found, store())
    assert proposal.members == found[:1]
    (proposal,) = draft_all([RankedFinding((found[0].fingerprint,) * 3, "todo", 1.0, "")], found, store())
    assert proposal.monitor.total == 1


@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if row.tier is Tier.HIGH])
def test_a_ready_change_of_a_high_kind_is_asked_about_and_not_made(kind):
    assert KINDS[kind].route in (Route.PROPOSE, Route.FIX)
    (proposal,) = drafts([fixable("a.md", kind=kind)], kind)
    assert proposal.action is Action.OPEN_PROPOSAL
    assert [type(effect) for effect in proposal.effects] == [OpenIssue]


def test_what_the_owner_lets_go_unasked_is_a_pull_of_its_own_under_the_limits():
    bugs = [fixable(f"src/{n}.py", b"x = 1\n", b"x = 2\n", "proven-bug") for n in range(3)]
    unasked = Limits(auto_kinds=("proven-bug",))
    (proposal,) = [one for one in drafts(bugs, "proven-bug", limits=unasked) if one.automatic]
    assert proposal.action is Action.OPEN_FIX
    assert len(proposal.members) == 1
    assert proposal.title == f"Fix: {bugs[0].title}"
    assert judge(proposal, policy_context(limits=unasked)).verdict is Verdict.ALLOW


def test_findings_that_differ_in_their_place_alone_are_one_question():
    def missing(path, line, what="react"):
        quote = Quote(f"import '{what}'", path, line, BASE)
        title = f"TS2307 in {path}:{line}: Cannot find module '{what}'"
        return signal(kind="bug", title=title, path=path, line=line, essence=(path,), quotes=(quote,), patch=None)

    (proposal,) = drafts(
        [missing("a.ts", 1), missing("b.ts", 2), missing("c.ts", 3, "next"), missing("d.ts", 4)], "bug"
    )
    assert len(proposal.members) == 3 and not proposal.patch
    assert proposal.title.endswith("(and in 2 other places)")
    (issue,) = [effect for effect in proposal.effects if isinstance(effect, OpenIssue)]
    assert all(f"{name}.ts" in issue.body for name in "abd") and "c.ts" not in issue.body


def test_the_pull_of_a_proven_bug_shows_its_proof():
    proof = "half(3) is 1\n\nProof: tests/test_a.py::test_half: fails in 3 of 3 runs on this commit"
    bug = replace(fixable("src/a.py", b"x = 1\n", b"x = 2\n", "proven-bug"), title="half rounds down", detail=proof)
    unasked = Limits(auto_kinds=("proven-bug",))
    (first,) = drafts([bug], "proven-bug", limits=unasked)
    (proposal,) = drafts([bug], "proven-bug", limits=unasked, verified=first.key)
    (body,) = [effect.body for effect in proposal.effects if isinstance(effect, OpenPull)]
    assert "**half rounds down.**" in body and "fails in 3 of 3 runs" in body
    assert "No check was run" not in body
    assert judge(proposal, policy_context()).rules == ("kind-tier",)


def test_a_large_change_is_asked_about_though_its_kind_may_go_unasked():
    big = fixable("src/a.py", b"x = 1\n" * 60, b"x = 2\n" * 60, "proven-bug")
    (proposal,) = drafts([big], "proven-bug", limits=Limits(auto_kinds=("proven-bug",)))
    assert proposal.action is Action.OPEN_PROPOSAL


# --- the largest set ------------------------------------------------------------------


def allowed(proposal):
    decision = judge(proposal, policy_context())
    assert decision.rules == ()
    return proposal


def test_many_small_corrections_make_one_pull_that_is_allowed():
    (proposal,) = drafts([fixable(f"docs/{n}.md") for n in range(60)])
    assert measure(allowed(proposal).patch).lines == 48


def test_one_deleted_line_in_each_of_many_files_does_not_wait_for_ever():
    (proposal,) = drafts(
        [fixable(f"src/{n:02}.py", b"import os\nx = 1\n", b"x = 1\n", "lint-fix") for n in range(40)], "lint-fix"
    )
    assert len(allowed(proposal).members) == 24


def test_long_lines_of_prose_do_not_wait_for_ever():
    line = b"word " * 95
    (proposal,) = drafts([fixable(f"docs/{n:02}.md", line + b"teh\n", line + b"the\n") for n in range(24)])
    assert len(allowed(proposal).members) == 17


def test_checks_that_still_fail_are_named_in_the_verified_pull_request_alone():
    (first,) = drafts([fixable("a.md")])
    noted = {"verified": first.key, "standing": ("make test",)}
    (again,) = drafts([fixable("a.md")], **noted)
    (other,) = drafts([fixable("b.md")], **noted)
    assert ["`make test`" in one.effects[1].body for one in (first, again, other)] == [False, True, False]


@pytest.mark.parametrize(("first", "waits"), [(2, True), (3, False)])
def test_a_change_beside_one_of_an_open_pull_request_of_ours_waits(first, waits):
    ours = pull(author=BOT, touches=(Touch("a.md", first, first),))
    (proposal,) = drafts([fixable("a.md"), fixable("b.md")], ours=(ours,))
    paths = [change.path for change in proposal.patch.changes]
    assert sorted(paths) == (["b.md"] if waits else ["a.md", "b.md"])


def test_what_is_no_text_is_compared_with_no_open_pull_request():
    binary = fixable("a.md", b"\xff\xfe", b"\xff")
    assert drafts([binary], ours=(pull(author=BOT, touches=(Touch("a.md", 1, 1),)),))


def test_a_path_is_changed_once():
    (proposal,) = drafts(
        [fixable("a.md"), signal(path="a.md", essence=("2",), patch=change("a.md", b"teh\n", b"tea\n"))]
    )
    assert len(allowed(proposal).members) == 1


def test_a_file_that_two_changes_share_is_changed_once():
    both = Patch(BASE, (*change("a.md").changes, *change("b.md").changes))
    other = signal(kind="spelling", path="b.md", essence=("2",), patch=change("b.md", b"teh\n", b"tea\n"))
    (proposal,) = drafts([signal(kind="spelling", path="a.md", essence=("1",), patch=both), other])
    assert [one.path for one in allowed(proposal).patch.changes] == ["b.md"]


# --- what must not hold up the rest ---------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "labels"), [("feature", {"ralph:research"}), ("content", {"ralph:content", "content:review"})]
)
def test_a_question_has_the_labels_of_its_kind(kind, labels):
    (proposal,) = drafts([signal(kind=kind)], kind)
    (opened,) = proposal.effects
    assert set(opened.labels) == {"ralph:mission", *labels}


def test_a_change_that_nobody_may_allow_does_not_hold_up_the_others():
    odd = fixable("../up.md")
    big = fixable("z.md", b"teh\n" * 40, b"the\n" * 40)
    (proposal,) = drafts([odd, big])
    assert (proposal.action, proposal.members[0].signal.path) == (Action.OPEN_PROPOSAL, "z.md")
    assert drafts([odd]) == ()


def test_a_large_change_that_is_no_text_is_asked_about_without_a_plan():
    (proposal,) = drafts([fixable("a.md", b"caf\xe9 teh\n", b"caf\xe9 the\n")])
    assert (proposal.action, proposal.planned) == (Action.OPEN_PROPOSAL, ())


def test_one_file_that_the_repositorys_checks_refuse_does_not_hold_up_the_rest():
    seen = [fixable(f"docs/{n}.md") for n in range(4)]
    refused = set()
    while True:
        made = drafts(seen, unverified=frozenset(refused))
        if not made or "docs/1.md" not in {member.signal.path for member in made[0].members}:
            break
        refused.add(made[0].key)
    assert [member.signal.path for member in made[0].members] == ["docs/0.md"]
    assert len(refused) == 2


def test_when_the_checks_refuse_every_small_change_a_larger_one_is_still_asked_about():
    small, big = fixable("a.md"), fixable("z.md", b"teh\n" * 40, b"the\n" * 40)
    (first,) = drafts([small, big])
    (second,) = drafts([small, big], unverified=frozenset({first.key}))
    assert (second.action, second.members[0].signal.path) == (Action.OPEN_PROPOSAL, "z.md")


def test_a_change_on_another_commit_is_not_proposed():
    stale = signal(patch=Patch("d" * 40, change("a.md").changes), path="a.md")
    assert drafts([stale]) == ()


def test_where_no_pull_may_be_opened_unasked_a_small_fix_is_a_question_that_shows_it():
    (proposal,) = drafts([fixable("a.md"), fixable("b.md")], limits=Limits(auto_prs_per_cycle=0))
    assert proposal.action is Action.OPEN_PROPOSAL
    assert [type(effect) for effect in proposal.planned] == [PushBranch, OpenPull]
    assert judge(proposal, policy_context(limits=Limits(auto_prs_per_cycle=0))).verdict is Verdict.ALLOW
    assert {member.signal.path for member in proposal.members} == {"a.md", "b.md"}  # one question about both
    assert {file.path for file in proposal.planned[0].files} == {"a.md", "b.md"}
    assert proposal.title == "Correct 2 misspellings in 2 files" and "- `b.md`" in proposal.effects[0].body


def test_nothing_is_opened_about_what_is_not_worth_it_but_the_owners_words_are_still_said():
    found = identify([signal(kind="anomaly"), signal(kind="bug", essence=("b",))])
    unworthy = frozenset(one.fingerprint for one in found)
    plans = [ranked([one], one.kind) for one in found]
    assert draft_all(plans, found, store(threadless=unworthy)) == ()
    anomaly = next(one for one in found if one.kind == "anomaly")
    ready = Wording(anomaly.fingerprint, "", (Post("outbox", ("Tides are up.",), (13,), 2000),), ready=True)
    (post,) = draft_all(plans, found, store(threadless=unworthy, wordings={(anomaly.fingerprint, ""): ready}))
    assert post.action is Action.PUBLISH


@pytest.mark.attack(4, 34)
@pytest.mark.parametrize(
    "kind", ["bug\U000e0049", "bug\u200b\u202e", "b ug --> <!-- x", "bug\n::set-output::", "é"], ids=ascii
)
def test_a_kind_says_nothing_in_a_marker_that_no_reader_would_see(kind):
    found = identify([signal(kind=kind)])
    (proposal,) = draft_all([ranked(found, kind)], found, store())
    line = proposal.effects[0].body.splitlines()[-1]
    assert MARKER.fullmatch(line) and line.isascii() and line.isprintable()


# --- what people wrote down -----------------------------------------------------------


def brief(kind="brief", **changes):
    given = {"observer": "briefs", "kind": kind, "path": "missions/tides.md", "detail": "Read it. ``` @mara closes #3"}
    return signal(**{**given, **changes})


@pytest.mark.parametrize("kind", ["brief", "architecture", "integration", "feature"])
def test_a_brief_is_asked_about_and_shown_whole_as_what_is_to_be_done(kind):
    (asked,) = drafts([brief(kind, detail="Read the table.\n" * 200)], kind, agent="claude")
    assert asked.action is Action.OPEN_PROPOSAL
    body = asked.effects[0].body
    assert "in `missions/tides.md`." in body and "for claude to make a change that you review" in body
    assert "**What is to be done**, as the default branch says:" in body and "not an instruction" not in body
    assert body.count("Read the table.") == 200


def test_a_text_that_no_network_takes_is_not_asked_about():
    text = brief("content", occurrence="2026-11-23")
    (found,) = identify([text])
    at = (found.fingerprint, "2026-11-23")
    assert drafts([text], "content", wordings={at: Wording(*at, problem="telegram is not set up")}) == ()
    posts = (Post("telegram", ("Twelve.",), (7,), 4096),)
    (asked,) = drafts([text], "content", wordings={at: Wording(*at, posts, "twitter is not set up")})
    assert "### telegram" in asked.effects[0].body
