"""`ralph work` alone, from an issue over two reviews that ask for changes to the merge, killed at every step."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.adapters.fixers.coder import AgentCoder
from ralph_mission.adapters.forges.github import GitHubForge
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.app import issues
from ralph_mission.app.issues import LoopHands, WorkOptions
from tests.integration.at_work import FORGES, READY, WORKING, Place
from tests.integration.coding import HEAD
from tests.integration.dying import PORTS, Death, dying

AGENT = """
table = pathlib.Path("tides.txt")
asked = next((word for word in ("moons", "TIDES") if word in prompt), "tides")
write("tides.txt", (table.read_text() if table.exists() else "") + asked + "\\n")
print("The table is there.")
print("LOOP_COMPLETE")
"""
MOMENTS = (*PORTS, (GitHubForge, "perform"), (AgentCoder, "work"))
ROUNDS = 6


class Life:
    """One issue's way to the merge. A round that dies is followed by others, as often as there is something to do."""

    def __init__(self, place: Place, aside: Path, death: Death) -> None:
        self.place, self.aside, self.death = place, aside, death
        aside.mkdir(parents=True)
        (aside / "agent.py").write_text(HEAD.format(here=str(aside)) + AGENT)
        self.issue = place.ready()
        self.pull = 0

    def work(self) -> None:
        """`ralph work --once` until it has nothing to do."""
        command = shlex.join((sys.executable, str(self.aside / "agent.py")))
        for _ in range(ROUNDS):
            house, progress = self.place.house(), PlainRunProgress(io.StringIO(), ())
            assert house.git.work_tree is not None
            wanted = WorkOptions(house.git.work_tree, command=command)
            factory: Any = SimpleNamespace(context=self.place.open_context)
            tend = partial(issues.look_after_pulls, wanted, factory, house, progress)
            report = None
            with dying(0, MOMENTS) as now:
                now.at, now.moments = self.death.at, self.death.moments
                report = self.place.work(LoopHands(wanted, house, progress), tend=tend)
            if report is not None and report.outcome == "idle":
                return
        raise AssertionError(f"it never came to rest: {self.place.said}")

    def to_the_merge(self) -> dict[str, Any]:
        """All steps, and what people see at last."""
        self.work()
        (found,) = self.place.pulls()
        for asked in ("call it TIDES", "and the moons"):
            self.place.person().review(found.number, "changes_requested", asked)
            self.work()
        self.place.person().review(found.number, "approved")
        self.work()
        pull, us = self.place.house().forge.pull(found.number), self.place.house().forge.identity().id
        said = [*self.place.comments(self.issue), *(one.body for one in pull.remarks if one.author.id == us)]
        return {
            "issue": self.place.issue(self.issue).state,
            "labels": self.place.labels(self.issue) & {READY, WORKING},
            "pulls": [one.state for one in self.place.pulls()],
            "merged": self.place.content("main", "tides.txt"),
            "twice": len(said) - len(set(said)),
        }


END = {"issue": "closed", "labels": set(), "pulls": ["merged"], "merged": b"tides\nTIDES\nmoons\n", "twice": 0}


def lived(kind: str, folder: Path, at: int) -> tuple[dict[str, Any], Death, int]:
    """The end of a life that dies at moment `at`, and how often an agent was asked."""
    with FORGES[kind](folder / kind) as place:
        life = Life(place, folder / "aside", Death(at))
        return life.to_the_merge(), life.death, len(list(life.aside.glob("prompt-*")))


@pytest.mark.long  # three sessions and eight cycles
@pytest.mark.parametrize("kind", FORGES)
def test_two_reviews_are_answered_and_an_approval_merges_by_ralph_work_alone(tmp_path, kind):
    found, _, sessions = lived(kind, tmp_path, 0)
    assert (found, sessions) == (END, 3)


def moments(kind: str, folder: Path) -> Iterator[int]:
    _, death, _ = lived(kind, folder, 0)
    names = death.moments
    assert len(names) > 20
    yield from (at for at, name in enumerate(names, 1) if name.startswith("before ") or at == len(names))


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("kind", FORGES)
def test_a_death_at_any_step_changes_nothing_of_the_end(tmp_path, kind):
    for at in moments(kind, tmp_path / "undisturbed"):
        found, death, sessions = lived(kind, tmp_path / f"at-{at}", at)
        assert (found, sessions <= 4) == (END, True), f"died at moment {at}: {death.moments[at - 1]}"
