"""The search finds what is wrong: each broken protocol ends in a broken law, a few steps from the beginning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.figures import Table, shown
from tests.protocol.mutants import MUTANTS, Mutant
from tests.protocol.search import hunted

LONGEST = 14  # steps that a person reads to see what is wrong


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("model mutants")
    yield made
    shown(request.config, made)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_protocol_is_found_out(mutant: Mutant, table):
    found = hunted(mutant)
    table.count(mutant.name, mutants=1, killed=int(bool(found.wrong)), states=found.states, steps=len(found.wrong))
    assert found.wrong, "it survives"
    *way, what = found.wrong
    assert mutant.says in what, "\n".join(found.wrong)
    assert len(way) <= LONGEST, "\n".join(found.wrong)
