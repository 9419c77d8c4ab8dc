"""A few letters answer a few questions, and what is written can be converted and has nothing to mend."""

from __future__ import annotations

import itertools

import pytest

from ralph_mission.loop import prd_convert, prd_layers, prd_lint, prd_new

TASK = "Add task priorities"


@pytest.mark.parametrize(
    ("task", "count"),
    [(TASK, 5), ("Add a dashboard of sales", 4), ("Store drafts in the database and show a report", 3)],
)
def test_three_to_five_questions_and_none_that_the_task_answers(task: str, count: int) -> None:
    assert len(prd_new.questions(task)) == count


def test_questions_are_numbered_and_their_options_lettered() -> None:
    text = prd_new.asked(prd_new.questions(TASK))
    assert text.startswith("1. What is it mainly for?\n   A. ")
    assert "\n\n5. " in text


@pytest.mark.parametrize("text", ["1A, 2C, 3B, 4A, 5A", "1a 2c 3b 4a 5a", "1. A; 2) C; 3B;4A;5A,", "5A,4A,3B,2C,1A"])
def test_letters_as_people_type_them(text: str) -> None:
    listed = prd_new.questions(TASK)
    assert prd_new.answered(text, listed)["who"] == "Administrators"


def test_own_words_take_an_options_place() -> None:
    listed = prd_new.questions(TASK)
    assert prd_new.answered("1D: fewer calls, 2A, 3A, 4A, 5A", listed)["goal"] == "fewer calls"


@pytest.mark.parametrize(
    ("text", "what"),
    [("1A, 2A", "no answer to question 3, 4, 5"), ("9A", "no question 9"), ("1Z", "no option Z"),
     ("1A, 1B", "answered twice"), ("yes", "is no answer"), ("", "no answer to question 1"), ("1D, 2A", "own words"),
     ("1AB", "is no answer"), ("0A", "no question 0")],
)  # fmt: skip  # a table
def test_what_answers_nothing_is_told(text: str, what: str) -> None:
    with pytest.raises(prd_new.Unanswered, match=what):
        prd_new.answered(text, prd_new.questions(TASK))


@pytest.mark.parametrize(
    "task", [TASK, "Add a dashboard of sales", "Store {title} drafts in the database: a report.\n# x"]
)
def test_whatever_is_answered_the_stories_convert_in_order_and_have_nothing_to_mend(task: str) -> None:
    listed = prd_new.questions(task)
    for letters in itertools.product(*("ABCD"[: len(one.options)] for one in listed)):
        words = (f"{n}{letter}{': fewer steps' if letter == 'D' else ''}" for n, letter in enumerate(letters, 1))
        prd = prd_convert.convert(prd_new.written(task, prd_new.answered(", ".join(words), listed)))
        layers = [prd_layers.LAYERS.index(prd_layers.layer(story)) for story in prd.stories]
        assert (prd_lint.lint(prd), layers) == ((), sorted(layers))


def test_all_four_layers_when_everything_is_wanted() -> None:
    answers = prd_new.answered("1A, 2A, 3B, 4A, 5B", prd_new.questions(TASK))
    stories = prd_convert.convert(prd_new.written(TASK, answers)).stories
    assert [prd_layers.layer(story) for story in stories] == list(prd_layers.LAYERS)


def test_the_same_answers_give_the_same_document() -> None:
    answers = prd_new.answered("1A, 2A, 3B, 4A, 5B", prd_new.questions(TASK))
    assert prd_new.written(TASK, answers) == prd_new.written(TASK, answers)
