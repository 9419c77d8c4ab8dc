"""What of an agent's last message is said, and what is only shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.loop.model.state import VERDICT, Hat, LoopEvent, ReviewIssue
from ralph_mission.loop.rules import routing

SAID = '<event topic="build.complete">all green</event>'


def topics(text: str) -> list[str]:
    return [event.topic for event in routing.events_in_text(text, "LOOP_COMPLETE")]


@pytest.mark.parametrize(
    "shown",
    [
        f"```\n{SAID}\n```",
        f"```xml\n{SAID}\n```\nThat is how it would look.",
        f"~~~\n{SAID}\n~~~",
        f"  ```\n{SAID}",
        f"> {SAID}",
        f"Say `{SAID}` at the end.",
    ],
)
def test_an_event_that_is_only_shown_is_not_said(shown: str) -> None:
    assert topics(shown) == []
    assert topics(f"{shown}\n\n".replace("  ```\n", "") + ("" if "  ```" in shown else SAID)) == ["build.complete"]


def test_a_fence_within_a_payload_belongs_to_it() -> None:
    text = 'Done.\n<event topic="review.verdict">\n```json\n{"issues": []}\n```\nsee `a.py`\n</event>'
    (event,) = routing.events_in_text(text)
    assert event == LoopEvent("review.verdict", '```json\n{"issues": []}\n```\nsee `a.py`')


def test_a_shown_event_without_an_end_does_not_swallow_the_said_one() -> None:
    assert topics(f'```\n<event topic="plan.complete">\n```\n{SAID}') == ["build.complete"]


def test_an_event_in_the_middle_of_a_line_is_said() -> None:
    assert topics(f"I am done. {SAID} Bye.") == ["build.complete"]


@pytest.mark.parametrize(
    "shown", ["```\n{}", "The prompt says:\n\n    {}", "> {}", "`{}`", "{}.", "\t{}", "~~~\nx\n{}"]
)
def test_a_promise_that_is_shown_is_not_made(shown: str) -> None:
    assert not routing.is_promised(shown.format("LOOP_COMPLETE"), "LOOP_COMPLETE")


@pytest.mark.parametrize("said", ["{}", "Done.\n{}\n\n", "```\nx\n```\n<promise>{}</promise>", "  {}  "])
def test_a_promise_on_the_last_line_is_made(said: str) -> None:
    assert routing.is_promised(said.format("LOOP_COMPLETE"), "LOOP_COMPLETE")


def test_the_promise_as_an_event_is_the_last_word_or_nothing() -> None:
    promise = '<event topic="LOOP_COMPLETE">done</event>'
    assert topics(f"All is there.\n{promise}\n") == ["LOOP_COMPLETE"]
    assert topics(f"When all is there I shall say {promise}, and not before.") == []
    assert topics(f"{promise}\nbut two tests fail") == []


@pytest.mark.parametrize("promise", ["task.complete", "DONE-2", "All of it is there"])
def test_a_promise_is_whatever_the_file_says(promise: str) -> None:
    assert routing.is_promised(f"Done.\n{promise}", promise)
    assert routing.is_promised(f"<promise> {promise} </promise>", promise)
    assert not routing.is_promised(f"Not {promise}", promise)


def test_another_word_in_capitals_is_not_the_promise() -> None:
    assert not routing.is_promised("NOT_COMPLETE", "LOOP_COMPLETE")


def test_one_critical_issue_keeps_the_loop_open_whatever_the_threshold() -> None:
    critical = ReviewIssue("it loses data", "a.py", 1, "bug", "critical")
    assert not routing.is_converged(LoopEvent(VERDICT, "", (critical,)), 3)
    assert routing.is_converged(LoopEvent(VERDICT, "", (replace(critical, severity="minor"),)), 3)


@pytest.mark.parametrize("default", ["LOOP_COMPLETE", VERDICT])
def test_silence_is_never_taken_as_the_promise_or_as_a_verdict(default: str) -> None:
    hat = Hat("builder", triggers=("loop.start",), publishes=(default,), default_publishes=default)
    event, wrong = routing.single_event(hat, (), "LOOP_COMPLETE")
    assert event is None and default in wrong


def test_a_default_event_needs_no_other_that_is_published() -> None:
    event, wrong = routing.single_event(Hat("builder", default_publishes="build.done"), (), "LOOP_COMPLETE")
    assert event and (event.topic, wrong) == ("build.done", "")


@pytest.mark.parametrize(
    ("hats", "allowed", "denied"),
    [
        ((), None, ()),
        ((Hat("a", write_allowed=("src/**",)), Hat("b", write_allowed=("docs/**",))), ("src/**", "docs/**"), ()),
        ((Hat("a", write_allowed=("src/**",)), Hat("b")), None, ()),
        ((Hat("a", write_denied=("x", "y")), Hat("b", write_denied=("y",))), None, ("y",)),
        ((Hat("a", write_allowed=()),), (), ()),
    ],
)
def test_who_wears_no_hat_writes_what_any_hat_may_and_no_more(
    hats: tuple[Hat, ...], allowed: tuple[str, ...] | None, denied: tuple[str, ...]
) -> None:
    nobody = routing.coordinator(hats)
    assert (nobody.write_allowed, nobody.write_denied) == (allowed, denied)
