"""Every kind of fault at every call of every stage: nothing twice, nothing lost, no cap passed, and it comes to rest.

What the cycles after a struck one come to is compared with what would have come undisturbed. `make crash` plays all of
it, `make test` a few; whatever goes wrong is told with the command that plays it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.crash.cases import ALL, Case, Scene, Struck, scene, strike
from tests.crash.kinds import KILLS, KINDS, LISTED, REFUSED
from tests.crash.stages import EVERY
from tests.trust.table import Table, shown

GROUPS = {
    "deaths": ("crash before", "crash after response", "stale list"),
    "lost answers": ("applied, response lost", "5xx applied", "timeout applied"),
    "servers in trouble": ("5xx not applied", "rate-limited"),
    "others in between, and refusals": ("CAS lost", REFUSED),
}
KILLED = (
    "a fix is opened",
    "an approved pull is merged",
    "a pull to be changed is escalated",
    "a proposal is made",
    "an approved proposal is acted on",
    "a monitoring issue is brought up to date",
)
DAILY = [
    ("crash-after", "POST /issues"),
    ("crash-before", "POST /pulls"),
    ("502-applied", "POST /issues"),
    ("rate-secondary", "POST /pulls"),
]


class Tables:
    """The same cases by scenario, by kind of fault, and by the way in which they went on."""

    def __init__(self) -> None:
        self.scenarios, self.kinds = Table("crashes by stage"), Table("crashes by kind of fault")
        self.paths = Table("recovery paths")

    def count(self, struck: Struck) -> None:
        case = struck.case
        self.scenarios.count(f"{struck.scene.stage.scenario} ({case.stage})", **struck.figures)
        self.kinds.count(ALL[case.kind].of + ", by SIGKILL" * ALL[case.kind].instead, **struck.figures)
        for path, times in struck.end.log.taken.items():
            if times:
                self.paths.count(path, fired=times)


@pytest.fixture(scope="module")
def tables(request) -> Iterator[Tables]:
    made = Tables()
    yield made
    for table in (made.scenarios, made.kinds, made.paths):
        shown(request.config, table)


def played(on: Scene, cases: Iterable[Case], tables: Tables) -> None:
    """Play all of them, then tell which went wrong."""
    wrong = []
    for case in cases:
        struck = strike(on, case)
        tables.count(struck)
        wrong += [f"{struck.call}: {'; '.join(struck.wrong)}\n  {case.command}"] if struck.wrong else []
    assert wrong == [], "\n".join(wrong)


def of(group: Sequence[str]) -> list[str]:
    """The kinds of a group."""
    return [name for name, kind in KINDS.items() if kind.of in group]


def test_a_few_faults_of_a_fixs_life_end_as_if_nothing_had_happened(tmp_path, tables):
    with scene(tmp_path, "a fix is opened") as on:
        chosen = [
            case
            for kind, what in DAILY
            for case in on.cases([kind])
            if str(on.calls[case.at - 1]).endswith(what) and on.calls[case.at - 1].before == 0
        ]
        assert len(chosen) == len(DAILY)
        played(on, chosen, tables)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", EVERY)
def test_any_fault_at_any_call_ends_as_if_nothing_had_happened(tmp_path, name, group, tables):
    with scene(tmp_path, name) as on:
        played(on, on.cases(of(GROUPS[group])), tables)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", KILLED)
def test_a_process_that_is_killed_at_any_write_is_carried_on_by_the_next(tmp_path, name, tables):
    with scene(tmp_path, name) as on:
        played(on, on.cases(KILLS), tables)


def test_every_fault_of_the_list_is_played():
    assert {kind.of for kind in KINDS.values()} == {*LISTED, REFUSED}
    assert sorted(of for group in GROUPS.values() for of in group) == sorted({*LISTED, REFUSED})
