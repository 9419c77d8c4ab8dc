"""Lives find what is wrong: each broken product breaks a promise within a few of them.

Some do so only in lives by the rules that bear on them (`BEARING`): by all of them it would take too many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.figures import Table, shown
from tests.protocol.mutants import Mutant
from tests.stateful.mutants import BEARING, MUTANTS
from tests.stateful.test_stateful import live

LIVES, STEPS = 25, 30


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("broken products")
    yield made
    shown(request.config, made)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_lives_of_a_broken_product_break_a_promise(tmp_path, table, mutant: Mutant):
    lived = Table("lived")
    with mutant.injected(), pytest.raises(AssertionError) as broken:
        live(tmp_path, lived, LIVES, STEPS, drawn=0, shrunk=False, rules=BEARING.get(mutant.name, ()))
    assert re.search(mutant.says, str(broken.value)), str(broken.value)
    looked = lived.rows["lives"]
    table.count(mutant.name, mutants=1, killed=1, lives=looked["examples"], steps=looked["steps"])
