"""prd.json as snarktank/ralph, oh-my-claudecode and others write it: read, and edited without touching the rest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph_mission.loop.model.state import Prd, UserStory
from ralph_mission.loop.stories import prd

SNARKTANK = """\
{
  "project": "Shop",
  "branchName": "ralph/due-dates",
  "description": "Due dates",
  "userStories": [
    {
      "id": "US-001",
      "title": "Add due date to database",
      "description": "As a developer, I need a due date.",
      "acceptanceCriteria": ["Column \\"due_on\\" \\u00e4", "Typecheck passes"],
      "priority": 1,
      "passes": false,
      "notes": ""
    },
    {"id": "US-002", "title": "Show it", "description": "", "acceptanceCriteria": [],
     "priority": 2, "passes" : false , "notes": "[{", "architectVerified": false}
  ],
  "reconciliation": { "staleAfterMs": 1e3 }
}
"""


def passing(known: Prd, name: str, notes: str | None = None, passes: bool = True) -> Prd:
    stories = (
        replace(s, passes=passes, notes=s.notes if notes is None else notes) if s.id == name else s
        for s in known.stories
    )
    return replace(known, stories=tuple(stories))


def test_the_file_of_snarktank_is_read() -> None:
    known = prd.parse_prd(SNARKTANK)
    assert (known.project, known.branch, known.description) == ("Shop", "ralph/due-dates", "Due dates")
    assert known.stories[0] == UserStory(
        "US-001", "Add due date to database", "As a developer, I need a due date.",
        ('Column "due_on" ä', "Typecheck passes"), 1,
    )  # fmt: skip  # as in the file


@pytest.mark.parametrize("indent", [None, 0, 2, 4, "\t"])
@pytest.mark.parametrize("ends", ["", "\n", "\r\n"])
@pytest.mark.parametrize("escaped", [False, True])
def test_only_passes_and_notes_differ(indent: int | str | None, ends: str, escaped: bool) -> None:
    text = json.dumps(json.loads(SNARKTANK), indent=indent, ensure_ascii=escaped) + ends
    text = text.replace("\n", "\r\n") if ends == "\r\n" and not text.endswith("\r\n") else text
    known = prd.parse_prd(text)
    assert prd.update_progress(text, known) == text
    marked = prd.update_progress(text, passing(known, "US-001", "done"))
    assert marked == text.replace('"passes": false', '"passes": true', 1).replace('"notes": ""', '"notes": "done"', 1)
    assert prd.update_progress(marked, known) == text


def test_other_stories_are_not_written_over() -> None:
    known = prd.parse_prd(SNARKTANK)
    with pytest.raises(prd.UnreadablePrd):
        prd.update_progress(SNARKTANK, replace(known, stories=known.stories[:1]))


def test_a_story_without_the_key_gets_it_laid_out_as_the_others() -> None:
    text = json.dumps({"userStories": [{"id": "US-001", "title": "A"}]}, indent=4)
    written = prd.update_progress(text, passing(prd.parse_prd(text), "US-001", "x"))
    stories = [{"id": "US-001", "title": "A", "passes": True, "notes": "x"}]
    assert written == json.dumps({"userStories": stories}, indent=4)


MIXED = """{
    "extra": {"userStories": 1}, "userStories": [
      {"id": "US-001",   "title": "A \\u00fc [{", "tags": ["x","y"], "passes": false,
        "criteria": [ "c" ]}, { },
      {"id":"US-003","passes":false}
    ],
  "architectVerified": [1,
    2] }
"""


def test_every_other_byte_of_a_file_in_no_particular_style_stays() -> None:
    known = prd.parse_prd(MIXED)
    marked = prd.update_progress(MIXED, passing(known, "US-001"))
    assert marked == MIXED.replace('"passes": false', '"passes": true')
    assert prd.update_progress(marked, known) == MIXED
    assert prd.update_progress(MIXED, passing(known, "US-003")) == MIXED.replace('"passes":false', '"passes":true')
    noted = prd.update_progress(MIXED, passing(known, "US-003", "x"))
    assert noted == MIXED.replace('"passes":false', '"passes":true,"notes":"x"')
    assert prd.update_progress(MIXED, passing(known, "US-002")) == MIXED.replace("{ },", '{"passes": true },')


def test_the_stories_of_the_paper_stand_in_their_order() -> None:
    # Its example gives a priority to the first story only.
    stories = [{"id": f"US-00{n}", "title": "A", "passes": False} for n in (1, 2, 3)]
    stories[0]["priority"] = 1
    text = json.dumps({"project": "T", "userStories": stories})
    assert [story.id for story in prd.parse_prd(text).todo] == ["US-001", "US-002", "US-003"]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "P", "branch_name": "b", "user_stories": [{"id": "1", "name": "T", "acceptance_criteria": ["c"]}]}',
        '{"name": "P", "branch": "b", "stories": [{"key": 1, "title": "T", "criteria": [{"text": "c", "x": 1}]}]}',
        '{"projectName": "P", "branchName": "b", "stories": [{"storyId": "1", "summary": "T", "acceptance": "c"}]}',
    ],
)
def test_synonyms_are_read(text: str) -> None:
    known = prd.parse_prd(text)
    assert (known.project, known.branch) == ("P", "b")
    assert known.stories == (UserStory("1", "T", known.stories[0].description, ("c",), 1),)
    assert prd.parse_prd(prd.update_progress(text, passing(known, "1"))).todo == ()


@pytest.mark.parametrize(
    ("member", "passes"),
    [('"passes": true', True), ('"passes": "true"', True), ('"passes": 1', False), ('"passes": null', False),
     ('"passes": "false"', False), ('"completed": true', True), ('"status": "done"', True),
     ('"status": "open"', False)],
)  # fmt: skip  # a table
def test_only_a_clear_yes_passes(member: str, passes: bool) -> None:
    text = '{"stories": [{"id": "a", "title": "t", ' + member + "}]}"
    known = prd.parse_prd(text)
    assert known.stories[0].passes is passes
    other = passing(known, "a", passes=not passes)
    assert prd.parse_prd(prd.update_progress(text, other)) == other


@pytest.mark.parametrize(
    ("value", "priority"),
    [
        ('"high"', 1),
        ('"P2"', 2),
        ('"low"', 3),
        ("7", 7),
        ("2.5", 2),
        ("null", 1),
        ("true", 1),
        ("NaN", 1),
        ('"soon"', 1),
    ],
)
def test_priorities_as_people_write_them(value: str, priority: int) -> None:
    assert prd.parse_prd('[{"id": "a", "priority": ' + value + "}]").stories[0].priority == priority


@pytest.mark.parametrize(
    "text", ["", "{", "[]]", "null", "3", '{"userStories": {}}', '{"userStories": [3]}', "[" * 100_000, "{}",
             '{"userStories": [{"priority": ' + "9" * 5000 + "}]}", " " * 4_000_001],
)  # fmt: skip  # a list
def test_what_is_no_list_of_stories_is_refused(text: str) -> None:
    with pytest.raises(prd.UnreadablePrd):
        prd.parse_prd(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"tasks": [{"id": 1, "title": "A", "status": "pending"}]}',
        '{"features": [{"id": 1, "description": "A", "steps": ["b"], "passes": false}]}',
        '{"features": "Many of them", "tasks": ["A"]}',
    ],
)
def test_tasks_and_features_are_stories(text: str) -> None:
    known = prd.parse_prd(text)
    assert [story.title for story in known.stories] == ["A"]
    if "id" in text:
        assert prd.parse_prd(prd.update_progress(text, passing(known, "1"))).todo == ()


def test_half_a_character_can_be_written() -> None:
    prd.render_prd(prd.parse_prd('[{"id": "a", "title": "\\ud800"}]')).encode()


def test_a_new_file_reads_as_what_it_was_made_from() -> None:
    known = prd.parse_prd(SNARKTANK)
    assert prd.parse_prd(prd.render_prd(known)) == known
    assert list(json.loads(prd.render_prd(known))) == ["project", "branchName", "description", "userStories"]


TEXTS = st.text(max_size=8).map(str.strip)


@settings(max_examples=30)
@given(
    st.lists(
        st.fixed_dictionaries({"id": TEXTS.filter(bool), "title": TEXTS.filter(bool), "notes": TEXTS},
                              optional={"passes": st.booleans(),
                                        "extra": st.recursive(st.integers() | TEXTS, st.lists)}),
        min_size=1, max_size=4,
    ),
    st.sampled_from([None, 0, 2, "\t"]), st.booleans(), st.integers(0, 3), st.text(max_size=5).map(str.strip),
)  # fmt: skip  # shapes
def test_any_file_can_be_edited_and_keeps_its_other_values(
    stories: list[dict[str, object]], indent: int | str | None, ascii_only: bool, place: int, notes: str
) -> None:
    text = json.dumps({"userStories": stories, "x": [1, {"y": "}"}]}, indent=indent, ensure_ascii=ascii_only)
    known = prd.parse_prd(text)
    at = place % len(stories)
    one = replace(known.stories[at], passes=not known.stories[at].passes, notes=notes)
    wanted = replace(known, stories=(*known.stories[:at], one, *known.stories[at + 1 :]))
    written = json.loads(prd.update_progress(text, wanted))
    assert prd.parse_prd(prd.update_progress(text, wanted)) == wanted
    assert written["x"] == [1, {"y": "}"}]
    for before, after in zip(stories, written["userStories"], strict=True):
        assert {k: v for k, v in before.items() if k not in ("passes", "notes")} == {
            k: v for k, v in after.items() if k not in ("passes", "notes")
        }


LINES = """\
{"id": "t-1", "title": "Schema", "status": "open", "priority": 2}

{"id": "t-2", "title": "API \\u00e4", "status": "in_progress", "blocked_by": ["t-1"], "key": "k"}
{"id": "t-3", "title": "Docs", "status": "closed", "dependencies": [{"issue_id": "t-3", "depends_on_id": "t-2"}]}
"""


def test_one_object_a_line_is_a_list_in_which_only_the_lines_differ_that_changed() -> None:
    read = prd.parse_prd(LINES)
    assert [(one.id, one.passes, one.needs) for one in read.stories] == [
        ("t-1", False, ()), ("t-2", False, ("t-1",)), ("t-3", True, ("t-2",)),
    ]  # fmt: skip  # as in the file
    assert [one.id for one in read.ready] == ["t-1"]
    first, *others = read.stories
    written = prd.update_progress(LINES, replace(read, stories=(replace(first, passes=True), *others)))
    changed, *rest = written.split("\n")
    assert changed == '{"id": "t-1", "title": "Schema", "status": "closed", "priority": 2}'
    assert "\n".join(rest) == LINES.partition("\n")[2]


@pytest.mark.parametrize(
    "text",
    [
        *(LINES.replace("\n\n", f"\n{space}\n") for space in ("\f", "\v", "\x85", "\u2028", "\N{NO-BREAK SPACE}")),
        '{"userStories": [{"id": "x"}], "userStories": null, "stories": [{"id": "t-1"}, "t-2"], "mine": 1}',
        '{"stories": "none", "stories": [{"id": "t-1"}], "mine": 1}',
    ],
)
def test_blank_lines_and_repeated_keys_stay_as_they_were_written(text: str) -> None:
    read = prd.parse_prd(text)
    written = prd.update_progress(text, passing(read, "t-1", notes="seen"))
    assert prd.parse_prd(written) == passing(read, "t-1", notes="seen")
    start, _, rest = text.partition('"id": "t-1"')
    assert written.startswith(start) and written.endswith(rest.partition("}")[2])


def test_a_task_list_whose_boxes_have_ids_is_a_list_below_headings_that_read_like_stories() -> None:
    text = (
        "# Tasks\n\n- [ ] T001 Create it\n\n### User Story 1: Sign up\n\n- [x] T002 Hash passwords\n\n"
        "## Quality\n\n- [ ] T003 Final gate\n"
    )
    assert [(story.id, story.passes) for story in prd.parse_prd(text).stories] == [
        ("T001", False),
        ("T002", True),
        ("T003", False),
    ]
    with pytest.raises(prd.UnreadablePrd, match="convert it"):
        prd.parse_prd(text.replace("T00", "Do "))


def test_what_other_tools_call_a_story_s_parts_is_read() -> None:
    one = {"id": 1, "task": "Show tides", "stepsToVerify": ["high", "low"], "deps": ["2"]}
    (story,) = prd.parse_prd(json.dumps({"items": [one]})).stories
    assert (story.title, story.description, story.criteria, story.needs) == (
        "Show tides", "Show tides", ("high", "low"), ("2",),
    )  # fmt: skip  # one story
