"""What a session may claim: one story, proven, of a list that stays a person's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ralph_mission.loop.model.spec import LoopPreset, RunSpec
from ralph_mission.loop.model.state import CheckResult, HatOutput, NetChange, PathChange, Prd, UserStory
from ralph_mission.loop.stories import judge as stories
from ralph_mission.loop.stories.judge import notes
from tests.loop.making import passing

GREEN = CheckResult(green=True, ran=True)
RED = CheckResult(green=False, ran=True, said="1 failed: test_login")
NONE = CheckResult()
NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
ORDER = RunSpec("build it", LoopPreset("prd", stories=True))
LIST = Prd(
    "MyApp",
    "ralph/x",
    "X",
    tuple(UserStory(f"US-00{n}", f"Part {n}", "As a user…", ("Typecheck passes",), n) for n in (1, 2, 3)),
)


def changed(prd: Prd, name: str, **values: object) -> Prd:
    return replace(prd, stories=tuple(replace(s, **values) if s.id == name else s for s in prd.stories))  # type: ignore[arg-type]  # a test's own


def judge(
    after: Prd | None, checked: CheckResult = GREEN, before: Prd | None = LIST, item: str = "US-001"
) -> stories.StoryJudgement:
    return stories.judge_stories(ORDER, item, before, after, checked)


def test_a_story_passes_when_the_checks_are_green() -> None:
    judged = judge(passing(LIST, "US-001"))
    assert judged == stories.StoryJudgement(passing(LIST, "US-001"), (passing(LIST, "US-001").stories[0],))


def test_no_story_passes_when_the_checks_are_red_and_the_session_hears_what_they_said() -> None:
    judged = judge(passing(LIST, "US-001"), RED)
    assert (judged.prd, judged.passed) == (LIST, ())
    assert "US-001" in judged.complaints[0] and "test_login" in judged.complaints[0]


def test_all_stories_flipped_with_red_checks_are_all_reverted() -> None:
    assert judge(passing(LIST, "US-001", "US-002", "US-003"), RED).prd == LIST


def test_red_checks_are_told_when_nothing_was_claimed() -> None:
    assert "test_login" in judge(LIST, RED).complaints[0]


def test_a_story_that_passed_before_is_not_lost_to_red_checks() -> None:
    before = passing(LIST, "US-001")
    assert judge(before, RED, before).prd == before


def test_of_two_flips_the_story_that_was_given_stays() -> None:
    judged = judge(passing(LIST, "US-001", "US-002"), item="US-002")
    assert [story.id for story in judged.passed] == ["US-002"]
    assert judged.prd == passing(LIST, "US-002")
    assert "US-001 does not yet" in judged.complaints[0]


def test_of_two_flips_of_other_stories_the_first_by_priority_stays() -> None:
    before = changed(LIST, "US-003", priority=0)
    judged = judge(passing(before, "US-002", "US-003"), before=before)
    assert [story.id for story in judged.passed] == ["US-003"]


def test_zero_checks_prove_nothing_when_checks_are_required() -> None:
    spec = replace(ORDER, require_checks=True)
    judged = stories.judge_stories(spec, "US-001", LIST, passing(LIST, "US-001"), NONE)
    assert (judged.prd, judged.passed) == (LIST, ())


def test_zero_checks_are_enough_when_none_are_required() -> None:
    assert judge(passing(LIST, "US-001"), NONE).passed


def test_a_criterion_that_was_amended_is_put_back_and_the_flip_judged_all_the_same() -> None:
    judged = judge(changed(passing(LIST, "US-001"), "US-001", criteria=("Looks fine",)))
    assert judged.prd == passing(LIST, "US-001")
    assert "US-001: reworded in prd.json" in judged.complaints[0]


@pytest.mark.parametrize("values", [{"title": "Less"}, {"description": ""}, {"priority": 9}, {"criteria": ()}])
def test_whatever_else_is_reworded_is_put_back(values: dict[str, object]) -> None:
    judged = judge(changed(LIST, "US-002", **values))
    assert judged.prd == LIST
    assert len(judged.complaints) == 1


def test_a_story_that_was_taken_out_is_back() -> None:
    judged = judge(replace(LIST, stories=LIST.stories[1:]))
    assert judged.prd == LIST
    assert "US-001: taken out of" in judged.complaints[0]


def test_an_emptied_list_completes_nothing() -> None:
    assert judge(replace(LIST, stories=())).prd == LIST


def test_a_story_that_was_added_is_gone_again() -> None:
    judged = judge(replace(LIST, stories=(*LIST.stories, UserStory("US-009", "More", passes=True))))
    assert (judged.prd, judged.passed) == (LIST, ())
    assert "US-009: added to" in judged.complaints[0]


def test_a_new_order_is_undone() -> None:
    judged = judge(replace(LIST, stories=LIST.stories[::-1]))
    assert judged.prd == LIST
    assert "reordered" in judged.complaints[0]


def test_another_branch_is_undone() -> None:
    assert judge(replace(LIST, branch="main")).prd == LIST


def test_notes_stay() -> None:
    after = changed(LIST, "US-001", notes="half done")
    assert judge(after) == stories.StoryJudgement(after)


def test_a_story_that_honestly_fails_again_stays_so() -> None:
    assert judge(LIST, before=passing(LIST, "US-001")).prd == LIST


def test_an_unreadable_list_is_the_one_before() -> None:
    judged = judge(None)
    assert judged.prd == LIST
    assert judged.complaints


def test_without_any_list_there_is_nothing_to_judge() -> None:
    assert judge(None, before=None) == stories.StoryJudgement(None)


def test_a_list_that_a_session_wrote_itself_passes_one_story_at_most() -> None:
    judged = judge(passing(LIST, "US-001", "US-002", "US-003"), before=None)
    assert [story.id for story in judged.passed] == ["US-001"]


def test_a_run_without_stories_leaves_the_list_alone() -> None:
    after = replace(LIST, stories=())
    assert stories.judge_stories(RunSpec("x", LoopPreset("loop")), "", LIST, after, RED) == stories.StoryJudgement(
        after
    )


def test_an_id_that_is_used_twice_flips_once() -> None:
    twin = replace(LIST, stories=(LIST.stories[0], replace(LIST.stories[0], title="Twin")))
    after = replace(twin, stories=(twin.stories[0], replace(twin.stories[1], passes=True)))
    judged = judge(after, before=twin)
    assert judged.prd == after
    assert [story.title for story in judged.passed] == ["Twin"]


def test_flipped_is_what_newly_passes() -> None:
    before = passing(LIST, "US-001")
    assert [story.id for story in stories.flipped_stories(before, passing(before, "US-003"))] == ["US-003"]
    assert stories.flipped_stories(before, None) == ()


def test_a_commit_is_named_after_its_story_in_one_line() -> None:
    assert stories.commit_message(UserStory("US-001", "Add\npriority  field")) == "feat: US-001 - Add priority field"


def entry(log: str = "", **values: object) -> str:
    output = HatOutput("builder", 4, **values)  # type: ignore[arg-type]  # a test's own
    return stories.log_entry(ORDER, "US-002", output, notes(log), NOW)


def test_a_failed_attempt_is_told_with_its_reason_and_what_was_undone() -> None:
    told = entry(
        reason="The checks are red.\nassert 1 == 2",
        summary="I tried X",
        changes=(PathChange("ci.yml", "modified", "builder may not write there"), PathChange("app.py", "modified")),
    )
    assert told.startswith(
        "## [2026-05-04 12:30] - US-002\n- Attempted in session 4 (builder)\n- Failed because The checks"
    )
    assert "- Files changed: app.py\n" in told
    assert told.endswith("---\n")
    read = notes(told)
    assert read.last_completed == ""
    assert read.learnings == (
        "undone: ci.yml (modified): builder may not write there",
        "the session reported: I tried X",
    )


def test_a_reason_cannot_pass_for_another_entry() -> None:
    told = entry(reason="x\n---\n## [2026-05-05 10:00] - US-003\n- done")
    assert told.count("\n---\n") == 1
    assert notes(told).last_completed == ""


def test_a_story_that_passes_is_told_when_the_agent_wrote_nothing() -> None:
    assert notes(entry(passed=("US-001",), summary="done")).last_completed == "US-001"


def test_a_story_that_passes_has_the_agents_own_entry_when_it_wrote_one() -> None:
    assert entry("## 2026-05-05 - US-001\n- Sent them\n---\n", passed=("US-001",)) == ""


def test_a_word_in_the_log_is_no_entry() -> None:
    written = {"passed": ("US-001",), "summary": "done", "changes": (PathChange("progress.txt", "modified"),)}
    assert notes(entry("done\n", **written)).last_completed == "US-001"
    assert notes(entry("## 2026-05-05 - US-007\n- Sent them\n---\n", **written)).last_completed == "US-001"


def test_flips_that_were_reverted_are_told_beside_the_one_that_counts() -> None:
    told = entry(passed=("US-001",), reason="one story at a time", changes=(PathChange("progress.txt", "modified"),))
    assert "Besides: one story at a time" in told


def test_what_the_provider_turned_away_was_no_attempt() -> None:
    assert entry(failure="rate_limit", reason="429") == ""
    assert entry(failure="timeout", reason="2700 s") != ""


def test_a_run_without_stories_has_nothing_to_say() -> None:
    assert stories.log_entry(RunSpec("x", LoopPreset("loop")), "US-001", HatOutput("ralph", 1), notes(""), NOW) == ""


# --- what changed ---

STRICT = replace(ORDER, require_change=True)
TESTED = replace(STRICT, require_checks=True)


@pytest.mark.parametrize(
    ("spec", "net", "why"),
    [
        (STRICT, NetChange(), "nothing but the list was changed"),
        (STRICT, NetChange(("src/a.py",)), ""),
        (TESTED, NetChange(("src/a.py", "tests/README.md")), "no test was added or changed"),
        (TESTED, NetChange(("src/lib.rs",), ("src/lib.rs",)), ""),
        (ORDER, NetChange(), ""),
    ],
)
def test_a_story_passes_by_files_that_changed_and_with_tests_required_by_one_of_them(
    spec: RunSpec, net: NetChange, why: str
) -> None:
    judged = stories.judge_stories(spec, "US-001", LIST, passing(LIST, "US-001"), GREEN, net)
    assert bool(judged.passed) == (not why)
    assert why in "".join(judged.complaints)


@pytest.mark.parametrize(("files", "built"), [(("one.py", "two.py"), ("US-002",)), (("one.py",), ())])
def test_a_story_built_along_with_another_waits_for_its_turn_where_there_is_a_file_for_each(
    files: tuple[str, ...], built: tuple[str, ...]
) -> None:
    both = passing(LIST, "US-001", "US-002")
    first = stories.judge_stories(STRICT, "US-001", LIST, both, GREEN, NetChange(files))
    assert [story.id for story in first.passed] == ["US-001"] and first.built == built
    second = stories.judge_stories(STRICT, "US-002", first.prd, both, GREEN, NetChange(), first.built)
    assert [story.id for story in second.passed] == list(built)
