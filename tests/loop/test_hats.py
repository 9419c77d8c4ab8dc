"""Hats are read from what people write, and a set of hats is told what cannot work in it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.errors import UserError
from ralph_mission.loop.hats import BUILDER, FIXER, PLANNER, REVIEWER, complaints, from_settings, from_toml, parse_hats
from ralph_mission.loop.model.state import Hat

EXAMPLES = Path(__file__).parents[2] / "examples" / "hats"
SET = (PLANNER, BUILDER, REVIEWER, FIXER)


def test_the_hat_file_of_seed_001_is_read_key_by_key():
    hat = parse_hats((EXAMPLES / "builder.toml").read_text(), "builder.toml")[0]
    assert (hat.name, hat.max_tokens, hat.context) == ("builder", 40_000, ("PLAN.md", "CONTRIBUTING.md"))
    assert (hat.write_allowed, hat.write_denied) == (("src/**", "PLAN.md"), ("docs/**", "tests/**"))
    assert (hat.publishes, hat.payload) == (("build.complete",), ("files changed", "how it was checked"))
    assert (hat.tools_denied, hat.commands_denied) == (("WebFetch",), ("git push --force", "rm -rf"))


def test_what_a_hat_file_leaves_out_comes_from_the_built_in_hat_of_its_name():
    hat = parse_hats((EXAMPLES / "builder.toml").read_text(), "builder.toml")[0]
    assert hat.triggers == BUILDER.triggers


def test_an_empty_list_of_paths_is_nowhere_and_no_list_is_everywhere():
    assert parse_hats("[hat]\nname='x'\n[files]\nwrite_allowed=[]", "x")[0].write_allowed == ()
    assert parse_hats("[hat]\nname='x'", "x")[0].write_allowed is None


@pytest.mark.parametrize("place", sorted(EXAMPLES.glob("*.toml")), ids=lambda place: place.name)
def test_every_example_is_read_without_a_warning(place):
    hat, warnings = from_toml(tomllib.loads(place.read_text()), place.name)
    assert warnings == () and hat.name and hat.triggers


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[hat]\nmodel='x'", "hat.name"),
        ("[hat]\nname=3", "hat.name"),
        ("[hat]\nname='\\u001b[31m'", "hat.name"),
        ("[hat]\nname='x'\nmax_tokens='many'", "hat.max_tokens"),
        ("[hat]\nname='x'\nmax_tokens=true", "hat.max_tokens"),
        ("[hat]\nname='x'\n[files]\nwrite_allowed=[1]", "files.write_allowed"),
        ("[hat]\nname='x'\n[tools]\ndenied={a=1}", "tools.denied"),
        ("[hat]\nname='x'\n[exit]\nemit_event=['a','b']", "exit.emit_event"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_file_and_key(text, key):
    with pytest.raises(UserError, match=f"^my.toml: {key} must be ") as caught:
        parse_hats(text, "my.toml")
    assert caught.value.exit_code == 2


def test_toml_that_is_nested_without_end_is_told():
    with pytest.raises(UserError, match=r"my.toml is not TOML"):
        parse_hats("a = " + "[" * 200_000, "my.toml")


def test_what_is_no_toml_is_told_with_its_line():
    with pytest.raises(UserError, match=r"my.toml is not TOML: .*line 1"):
        parse_hats("[hat\n", "my.toml")


def test_unknown_keys_warn_with_the_nearest_known_one():
    value = tomllib.loads("colour='red'\n[hat]\nname='x'\nmax_token=3\n[files]\nwrite_alowed=[]\n[odd]\nthing=1")
    hat, warnings = from_toml(value, "my.toml")
    assert hat.name == "x" and hat.write_allowed is None
    assert "my.toml: hat.max_token means nothing here, did you mean hat.max_tokens?" in warnings
    assert "my.toml: files.write_alowed means nothing here, did you mean files.write_allowed?" in warnings
    assert "my.toml: colour means nothing here" in warnings and len(warnings) == 4


def test_tools_that_a_hat_of_the_settings_may_not_use_are_denied_as_tools_or_as_commands():
    hat = from_settings("checker", {"triggers": ("review.start",), "disallowed_tools": ("Edit", "Bash(git push:*)")})
    assert (hat.name, hat.triggers) == ("checker", ("review.start",))
    assert (hat.tools_denied, hat.commands_denied) == (("Edit",), ("git push",))


# --- a set of hats ------------------------------------------------------------------------


def test_a_set_that_works_has_no_complaints():
    assert complaints(SET, persistent=True) == ()
    assert complaints((), persistent=False) == ()


def test_a_topic_that_nobody_hears_is_told_with_the_nearest():
    wrong = replace(BUILDER, publishes=("build.completed",))
    assert complaints((PLANNER, wrong, REVIEWER, FIXER), False) == (
        "builder publishes build.completed, to which no hat listens, did you mean build.complete?",
    )


def test_the_promise_is_heard_by_the_engine():
    closer = Hat("closer", ("loop.start",), ("REVIEW_COMPLETE",))
    assert complaints((closer,), False, "REVIEW_COMPLETE") == ()
    assert "closer publishes REVIEW_COMPLETE, to which no hat listens" in complaints((closer,), False)[0]


def test_a_default_event_that_nobody_hears_is_told():
    assert "to which no hat listens" in complaints((Hat("a", ("loop.start",), default_publishes="x.y"),), False)[0]


def test_a_required_event_that_no_hat_publishes_is_told_with_the_nearest():
    assert complaints(SET, False, required=("review.verdicts",)) == (
        "no hat publishes review.verdicts, which required_events asks for, did you mean review.verdict?",
    )
    assert complaints(SET, False, required=("build.complete", "LOOP_COMPLETE")) == ()
    assert complaints((), False, required=("review.passed",)) == ()
    assert complaints((*SET, Hat("free", ("build.complete",))), False, required=("review.passed",)) == ()


def test_patterns_of_topics_meet_on_both_sides():
    told = Hat("teller", ("task.start",), ("build.*",))
    assert complaints((told, Hat("listener", ("build.failed",), ("LOOP_COMPLETE",))), False) == ()
    assert complaints((replace(told, publishes=("build.done",)), Hat("x", ("build.*",), ())), False) == ()


def test_a_hat_that_nothing_calls_is_told():
    lost = Hat("lost", ("revew.verdict",))
    assert complaints((*SET, lost), False) == (
        "nothing triggers lost: no hat emits revew.verdict, did you mean review.verdict?",
    )
    assert complaints((*SET, Hat("mute")), False) == ("mute has no triggers, so it never runs",)


def test_a_persistent_loop_that_nobody_takes_up_again_is_told():
    only = (replace(PLANNER, triggers=("loop.start",)), BUILDER, REVIEWER, FIXER)
    assert complaints(only, persistent=False) == ()
    assert complaints(only, persistent=True) == (
        "no hat listens to task.resume, so the session that looks for more work has none",
    )


def test_nobody_to_start_with_is_told():
    assert "no hat listens to loop.start" in " ".join(complaints((BUILDER, REVIEWER, FIXER), False))


def test_two_hats_of_one_name_are_told_once():
    assert complaints((*SET, PLANNER, PLANNER), False) == ("two hats are called planner",)
