"""Check lists in markdown as people write them: what is a story, and that nothing but a box is ever written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.loop.model.state import Prd
from ralph_mission.loop.stories import judge, prd

PLAN = """# Fix plan

## High priority
- [ ] **#7** Add the `login` page
  - [ ] shows an error
  - [x] has a title
  The design is in docs/.
* [X] Add a database\r
1. [ ] T012 [P] Test it

```
- [ ] not one
```
<!-- - [ ] nor
- [ ] this -->
- plain
## Low
- Group
  - [ ] Sweep the floor
"""


def passing(known: Prd, *names: str) -> Prd:
    return replace(known, stories=tuple(replace(one, passes=one.id in names) for one in known.stories))


def test_each_box_that_is_not_part_of_another_is_a_story() -> None:
    known = prd.parse_prd(PLAN)
    assert [(one.id, one.title, one.passes, one.priority) for one in known.stories] == [
        ("#7", "Add the `login` page", False, 1),
        ("add-a-database", "Add a database", True, 2),
        ("T012", "[P] Test it", False, 3),
        ("sweep-the-floor", "Sweep the floor", False, 4),
    ]
    assert known.stories[0].criteria == ("shows an error", "has a title")
    assert known.stories[0].description == "The design is in docs/.\nListed under: High priority"
    assert (known.project, known.branch) == ("Fix plan", "")


def test_only_the_mark_of_the_story_is_written() -> None:
    known = prd.parse_prd(PLAN)
    done = prd.update_progress(PLAN, passing(known, "#7", "sweep-the-floor"))
    assert done == PLAN.replace("- [ ] **#7", "- [x] **#7").replace("* [X]", "* [ ]").replace("[ ] Sweep", "[x] Sweep")
    assert prd.update_progress(PLAN, known) == PLAN


def test_a_line_added_above_moves_no_name() -> None:
    more = prd.parse_prd(PLAN.replace("- [ ] **#7", "- [ ] First of all\n- [ ] **#7"))
    assert [one.id for one in more.stories][1:] == [one.id for one in prd.parse_prd(PLAN).stories]


def test_the_same_words_twice_are_two_stories() -> None:
    known = prd.parse_prd("- [ ] Add tests\n- [ ] Add tests\n")
    assert [one.id for one in known.stories] == ["add-tests", "add-tests-2"]
    assert prd.update_progress("- [ ] Add tests\n- [ ] Add tests\n", passing(known, "add-tests-2")) == (
        "- [ ] Add tests\n- [x] Add tests\n"
    )


def test_long_words_are_a_short_title_and_whole_in_the_description() -> None:
    words = "word " * 40
    one = prd.parse_prd(f"- [ ] {words}\n").stories[0]
    assert (len(one.title), one.description) == (100, words.strip())


@pytest.mark.parametrize("text", ["# Plan\n\nNothing yet.\n", "### US-001: A story\n- [ ] a criterion\n"])
def test_a_document_without_a_list_says_what_to_do(text: str) -> None:
    with pytest.raises(prd.UnreadablePrd, match=r"- \[ \]|ralph agent prd convert"):
        prd.parse_prd(text)


def test_notes_have_no_place_in_a_check_list() -> None:
    known = prd.parse_prd(PLAN)
    noted = replace(known, stories=(replace(known.stories[0], notes="x"), *known.stories[1:]))
    with pytest.raises(prd.UnreadablePrd):
        prd.update_progress(PLAN, noted)


def test_a_commit_says_the_words_of_a_story_once() -> None:
    known = prd.parse_prd(PLAN)
    assert judge.commit_message(known.stories[3]) == "feat: Sweep the floor"
