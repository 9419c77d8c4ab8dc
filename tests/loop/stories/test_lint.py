"""What keeps a story from being worked through: too big, out of order, unprovable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.loop.model.state import Prd, UserStory
from ralph_mission.loop.stories import lint

TYPED = ("A column `status` with default 'pending'", "Typecheck passes")
SEEN = ("The badge is red for high", "Typecheck passes", "Verify in browser using dev-browser skill")
GOOD = Prd(
    "App",
    "ralph/x",
    "X",
    (
        UserStory("US-001", "Add status field to tasks table", "As a developer, I need to store it.", TYPED, 1),
        UserStory("US-002", "Add an endpoint for the status", "As a user, I want to change it.", TYPED, 2),
        UserStory("US-003", "Display status badge on task cards", "As a user, I want to see it.", SEEN, 3),
        UserStory("US-004", "Add status counts to the dashboard", "As a user, I want to sum it up.", SEEN, 4),
    ),
)


def rules(prd: Prd) -> list[str]:
    return [finding.rule for finding in lint.review_prd(prd)]


def with_story(**values: object) -> Prd:
    story = replace(GOOD.stories[0], **values)  # type: ignore[arg-type]  # a test's own
    return replace(GOOD, stories=(story, *GOOD.stories[1:]))


def test_good_stories_are_left_alone() -> None:
    assert lint.review_prd(GOOD) == ()


@pytest.mark.parametrize(
    "title",
    [
        "Build the entire dashboard",
        "Add authentication",
        "Refactor the API",
        "Rewrite the whole app",
        "Implement user authentication",
    ],
)
def test_a_story_that_is_the_whole_of_something_is_too_big(title: str) -> None:
    assert "size-scope" in rules(with_story(title=title))


@pytest.mark.parametrize(
    "title",
    [
        "Add a database column and migration",
        "Add a UI component to an existing page",
        "Update a server action with new logic",
        "Add a filter dropdown to a list",
        "Add password hashing to authentication",
    ],
)
def test_a_part_of_something_fits(title: str) -> None:
    story = UserStory("US-001", title, "As a user, I want it.", SEEN, 1)
    assert rules(Prd("", "ralph/x", "", (story,))) == []


def test_three_sentences_describe_a_story_and_four_do_not() -> None:
    assert rules(with_story(description="One thing, e.g. this. Two v1. things. Three!")) == []
    assert rules(with_story(description="One. Two. Three. Four.")) == ["size-sentences"]


def test_many_criteria_are_many_stories() -> None:
    eight = tuple(f"Column {n} exists" for n in range(8))
    assert rules(with_story(criteria=(*eight, "Typecheck passes"))) == []
    assert rules(with_story(criteria=(*eight, "Column 8 exists", "Typecheck passes"))) == ["size-criteria"]


@pytest.mark.parametrize(
    "criterion",
    ["Works correctly", "Good UX", "Handles edge cases", "User can do X easily", "It works as expected", "Looks good",
     "Errors are handled gracefully", "Fast", "Intuitive design", "Sorts by name, date, etc."],
)  # fmt: skip  # one list
def test_a_criterion_that_nobody_can_check_is_vague(criterion: str) -> None:
    assert rules(with_story(criteria=(criterion, "Typecheck passes"))) == ["criteria-vague"]


@pytest.mark.parametrize(
    "criterion",
    ["Button shows confirmation dialog before deleting", "Filter dropdown has options: All, Active, Completed",
     "Clicking delete shows confirmation dialog", "Tests pass", "Answers within 200 ms",
     "Handles an empty list by showing 'No tasks yet'", "GET /todos returns todo[] with items[index]"],
)  # fmt: skip  # one list
def test_a_criterion_that_can_be_checked_is_left_alone(criterion: str) -> None:
    assert rules(with_story(criteria=(criterion, "Typecheck passes"))) == []


def test_what_works_on_the_schema_stands_behind_it() -> None:
    one, two, *rest = GOOD.stories
    turned = (replace(two, priority=1), replace(one, priority=2), *rest)
    found = lint.review_prd(replace(GOOD, stories=turned))
    assert [(finding.rule, finding.story) for finding in found] == [("order-layer", "US-001")]


def test_the_order_is_that_of_priorities_not_of_the_file() -> None:
    assert rules(replace(GOOD, stories=GOOD.stories[::-1])) == []


@pytest.mark.parametrize("words", ["Depends on US-003.", "Uses the badge of US-003.", "After US-003 is done."])
def test_a_story_that_needs_a_later_one_is_told(words: str) -> None:
    assert rules(with_story(description=words)) == ["order-needs"]


def test_a_need_that_is_misspelt_or_goes_in_a_circle_is_told_and_one_that_is_no_id_is_not() -> None:
    one, two, *rest = GOOD.stories
    asks = replace(GOOD, stories=(replace(one, needs=("US-099", "react")), two, *rest))
    assert [(found.rule, found.story) for found in lint.lint_prd(asks)] == [("needs-unknown", "US-001")]
    circle = replace(GOOD, stories=(replace(one, needs=("US-002",)), replace(two, needs=("US-001",)), *rest))
    assert [found.rule for found in lint.lint_prd(circle)] == ["needs-cycle"]


@pytest.mark.parametrize("words", ["Needed by US-003.", "US-003 shows it.", "Depends on US-0031."])
def test_a_story_that_a_later_one_needs_is_fine(words: str) -> None:
    assert rules(with_story(description=words)) == []


@pytest.mark.parametrize(
    ("prd", "rule"),
    [
        (with_story(criteria=()), "criteria-missing"),
        (with_story(criteria=("A column exists",)), "criteria-typecheck"),
        (with_story(description=""), "description-missing"),
        (with_story(title="[Story title]"), "placeholder"),
        (with_story(id="US-002"), "id-duplicate"),
        (with_story(id="US-\x01"), "control-character"),
        (with_story(title="Add\x00 it"), "control-character"),
        (with_story(title="Add\nit"), "control-character"),
        (with_story(priority=2), "priority-duplicate"),
        (replace(GOOD, branch=""), "branch-missing"),
        (replace(GOOD, stories=()), "stories-missing"),
        (replace(GOOD, stories=(*GOOD.stories[:2], replace(GOOD.stories[2], criteria=TYPED))), "criteria-browser"),
    ],
)
def test_what_is_missing_or_double_is_told(prd: Prd, rule: str) -> None:
    assert rule in rules(prd)


@pytest.mark.parametrize(
    "prd",
    [
        with_story(title="Build the entire dashboard", description="", criteria=("Works properly",)),
        with_story(description="One. Two. Three. Four."),
        with_story(criteria=("It shows [name]", "TBD is printed for an unknown date", "Prints [...] for a long list")),
        replace(with_story(priority=2), branch=""),
    ],
)
def test_taste_is_for_the_planner_alone(prd: Prd) -> None:
    assert lint.review_prd(prd) != ()
    assert lint.lint_prd(prd) == ()


@pytest.mark.parametrize(
    "values", [{"id": "US-002"}, {"criteria": ()}, {"title": "[Title]"}, {"description": "Depends on US-003."}]
)
def test_a_story_that_passes_has_nothing_to_mend(values: dict[str, object]) -> None:
    assert lint.lint_prd(with_story(**values)) != ()
    done = with_story(**values)
    assert lint.lint_prd(replace(done, stories=tuple(replace(one, passes=True) for one in done.stories))) == ()


def test_what_every_story_lacks_is_told_once() -> None:
    found = lint.lint_prd(replace(GOOD, stories=tuple(replace(one, criteria=()) for one in GOOD.stories)))
    assert [(one.rule, one.story) for one in found] == [("criteria-missing", "")]
    assert "US-001, US-002, US-003, US-004" in found[0].what


@pytest.mark.parametrize(
    ("title", "layer"),
    [("Add priority field to database", "schema"), ("Display priority indicator on task cards", "ui"),
     ("Add priority selector to task edit", "ui"), ("Filter tasks by priority", "ui"),
     ("Implement GET /todos", "backend"),
     ("Create notification service for sending", "backend"), ("Show sales chart on the dashboard", "dashboard"),
     ("Think about it", "")],
)  # fmt: skip  # a table
def test_layers(title: str, layer: str) -> None:
    assert lint.layer_of(UserStory("US-001", title)) == layer


def test_stories_are_ordered_by_layer_then_as_they_stood() -> None:
    titles = ("Show badge", "Add table b", "Add summary dashboard", "Add table a", "Add endpoint")
    stories = [UserStory(f"US-00{n}", title) for n, title in enumerate(titles)]
    ordered = [story.title for story in lint.order_by_layer(stories)]
    assert ordered == ["Add table b", "Add table a", "Add endpoint", "Show badge", "Add summary dashboard"]


def test_what_a_story_says_it_needs_goes_before_its_layer() -> None:
    stories = [UserStory("US-001", "Add table", "Depends on US-002"), UserStory("US-002", "Show page")]
    assert [story.id for story in lint.order_by_layer(stories)] == ["US-002", "US-001"]


def test_stories_in_a_circle_stand_by_layer() -> None:
    stories = [UserStory("US-001", "Show page", "Needs US-002"), UserStory("US-002", "Add table", "Needs US-001")]
    assert [story.id for story in lint.order_by_layer(stories)] == ["US-002", "US-001"]


def test_a_thousand_stories_take_no_longer_each_than_ten() -> None:
    def lookups(count: int) -> int:
        asked = 0

        class Names(dict[str, int]):
            def __contains__(self, name: object) -> bool:
                nonlocal asked
                asked += 1
                return super().__contains__(name)

        stories = [UserStory(f"US-{n:04}", "Add a table", f"Needs US-{n - 1:04}.") for n in range(count)]
        names = Names({story.id: 0 for story in stories})
        for story in stories:
            lint.needs(story, names)
        return asked

    assert lookups(1000) == 100 * lookups(10)
