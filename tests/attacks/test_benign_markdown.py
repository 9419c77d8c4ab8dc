"""Ordinary markdown passes: every example of the CommonMark specification renders as before, but for what must go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ralph_mission.safety.secrets import find_secrets
from ralph_mission.safety.text import fence, sanitise
from tests.attacks.benign_markdown import CHANGED, MUST_GO, Example, examples, rendered
from tests.attacks.canaries import ENVIRONMENT
from tests.figures import Table, shown

BODIES = ("issue",)
KEPT = [one for one in examples() if one.number not in CHANGED]
TABLE = Table("benign markdown")


@pytest.fixture(scope="module", autouse=True)
def _told(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    shown(request.config, TABLE)


def test_all_examples_are_looked_at() -> None:
    assert (len(examples()), len(KEPT), len(CHANGED)) == (652, 549, 103)


@pytest.mark.parametrize("sink", BODIES)
def test_every_example_renders_as_before_but_for_what_must_go(sink: str) -> None:
    changed = {one.number for one in examples() if rendered(sanitise(one.markdown, sink)) != rendered(one.markdown)}
    assert changed == set(CHANGED)
    TABLE.count(f"{sink}: renders as before", examples=len(KEPT), false_alarms=len(changed - set(CHANGED)))
    for reason, numbers in MUST_GO.items():
        TABLE.count(f"{sink}: {reason}", examples=len(numbers))


@pytest.mark.long  # one test for each example, so that each is counted
@pytest.mark.benign("markdown")
@pytest.mark.parametrize("example", KEPT, ids=str)
def test_an_example_renders_as_before(example: Example) -> None:
    for sink in BODIES:
        assert rendered(sanitise(example.markdown, sink)) == rendered(example.markdown)


@pytest.mark.parametrize(
    "sink",
    ["issue", *(pytest.param(one, marks=pytest.mark.long) for one in ("prompt", "post", "log"))],
)
def test_what_was_sanitised_stays_as_it_is(sink: str) -> None:
    for one in examples():
        calm = sanitise(one.markdown, sink)
        assert sanitise(calm, sink) == calm, one


def test_no_example_is_thought_to_hold_a_secret() -> None:
    known = list(ENVIRONMENT.values())
    alarms = [one.number for one in examples() if find_secrets(one.markdown, known)]
    assert alarms == []


def test_a_quotation_of_an_example_shows_it_letter_for_letter() -> None:
    """Nothing but a comment's own words for bots is reworded: code is shown as it is."""
    odd = [one.number for one in examples() if "\x00" not in one.markdown and one.markdown.strip("\n") not in fence(
        one.markdown.strip("\n"), 60_000)]  # fmt: skip  # one list
    assert len(odd) <= 3
