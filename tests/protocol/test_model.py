"""The protocol searched: claim, intents, effects, receipts and reconciling, in every order that the world allows.

What is searched is the real cycle. Its ports alone are modelled: a server and a memory branch that are values, runners
that die, answers that get lost, lists that are late, people who do something in between.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ralph_mission.mission.model.ledger import EffectRecord
from tests.figures import Table, shown
from tests.protocol.configs import LARGE, SMALL
from tests.protocol.search import Found, searched


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("model")
    yield made
    shown(request.config, made)


def holds(found: Found, name: str, table: Table) -> None:
    """Nothing is wrong anywhere; if something is, the steps to it are told."""
    table.count(
        name,
        states=found.states,
        transitions=found.transitions,
        depth=found.depth,
        ends=found.ends,
        in_doubt=found.unknown,
        wrong=int(bool(found.wrong)),
    )
    assert not found.wrong, "\n".join(["", *found.wrong])
    assert found.ends


@pytest.mark.parametrize("name", SMALL)
def test_whatever_happens_every_law_holds_and_the_end_is_the_undisturbed_one(name, table):
    holds(searched(SMALL[name]), name, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", LARGE)
def test_whatever_happens_in_a_larger_world_every_law_holds(name, table):
    holds(searched(LARGE[name]), name, table)


def test_small_worlds_come_to_every_fate_that_an_effect_can_have():
    fates = set()
    for config in SMALL.values():
        for commit in searched(config).world.history.commits.values():
            fates |= {record.state for record in commit.records.values() if isinstance(record, EffectRecord)}
    assert fates == {"intended", "done", "adopted", "failed", "unknown"}
