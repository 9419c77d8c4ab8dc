"""Explore reads a few files a look, and reports what was proven of what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import explore
from ralph_mission.adapters.projects.prover import ProofOutcome, Prover
from ralph_mission.adapters.projects.setup import ProjectSetup
from ralph_mission.config.observers import ExploreSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation, Usage
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.proof.claim import CodeClaim, Refusal
from ralph_mission.mission.proof.exploring import Exploration, ExplorationJob
from ralph_mission.mission.proof.judge import CaseResult, ProofVerdict
from tests.helpers import commit, git, make_repo

BODY = "\n".join(f"def f{number}(n):\n    return n // {number}\n" for number in range(2, 30))
CLAIM: Mapping[str, Any] = {
    "kind": "bug", "title": "f2 drops the rest", "path": "src/a.py", "reason": "it rounds", "fails_with": "assertion",
    "quotes": [{"path": "src/a.py", "text": "    return n // 2"}],
    "test": [{"path": "tests/test_f.py", "old": "", "new": "def test_f(): ...\n"}],
    "change": [{"path": "src/a.py", "old": "    return n // 2\n", "new": "    return n / 2\n"}],
}  # fmt: skip  # one document
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class TrustingProver(Prover):
    """Proves what is called so, and nothing else."""

    def prove(self, claim: CodeClaim, base: str) -> ProofOutcome:
        """By its title."""
        if "drops" in claim.title:
            return ProofOutcome(claim, ProofVerdict(None, (CaseResult("t::f", "tests/test_f.py", "failed"),)))
        return ProofOutcome(claim, ProofVerdict(Refusal("flaky", "it comes and goes")))


class World:
    """A repository, and an explorer with a script."""

    def __init__(self, folder: Path) -> None:
        self.repo = make_repo(folder / "repo", {f"src/{name}.py": BODY for name in "abcdef"})
        self.folder, self.asked = folder, list[ExplorationJob]()
        self.says: Callable[[], Exploration] = lambda: Exploration((), usage=Usage(1, cost_usd=0.25))

    def look(self, usd: float = 1.0) -> Observation:
        return self._observer().observe(self._context(usd))

    def asks(self) -> bool:
        return self._observer().asks(self._context(1.0))

    def _observer(self) -> explore.ExploreObserver:
        opened = Git.open(self.repo)
        prover = TrustingProver(opened, ProjectSetup(opened, None))
        return explore.build(ExploreSettings(), opened, self.folder / "cache", self._explore, prover)

    def _context(self, usd: float) -> ObservationContext:
        head = Branch("main", git(self.repo, "rev-parse", "HEAD"))
        return ObservationContext(head, NOW, None, "", str(self.folder), usd)

    def _explore(self, job: ExplorationJob) -> Exploration:
        self.asked.append(job)
        return self.says()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_few_files_are_read_in_each_look_and_then_no_more(world: World) -> None:
    seen = [world.look() for _ in range(4)]
    assert [len(job.files) for job in world.asked] == [4, 2]
    assert seen[0].detail == "4 files read, 0 of 0 claims proven"
    assert seen[0].usage.cost_usd == 0.25
    assert seen[3].usage.cost_usd == 0
    assert not {*world.asked[0].files} & {*world.asked[1].files}


def test_a_file_is_read_again_when_it_has_changed(world: World) -> None:
    for _ in range(3):
        world.look()
    commit(world.repo, {"src/c.py": BODY + "\nX = 1\n"})
    world.look()
    assert world.asked[-1].files == ("src/c.py",)


def test_what_is_proven_is_reported_until_its_files_change_and_the_rest_is_counted(world: World) -> None:
    odd = {**CLAIM, "title": "sometimes"}
    world.says = lambda: Exploration((CLAIM, odd, {"title": "no claim"}))
    first = world.look()
    assert first.detail == "4 files read, 1 of 3 claims proven (dropped: 1 flaky, 1 malformed)"
    (signal,) = first.signals
    assert (signal.kind, signal.path, signal.line) == ("proven-bug", "src/a.py", 2)
    world.says = lambda: Exploration(())
    commit(world.repo, {"README.md": "new\n"})
    (again,) = world.look().signals
    assert again.patch is not None and again.patch.base == git(world.repo, "rev-parse", "HEAD")
    assert again.essence == signal.essence
    commit(world.repo, {"src/a.py": BODY.replace("n // 2\n", "n / 2\n")})
    assert world.look().signals == ()


def test_without_money_nobody_is_asked(world: World) -> None:
    seen = world.look(usd=0.0)
    assert seen.status == "ok"
    assert world.asked == []


def test_an_explorer_that_gives_no_answer_is_unavailable_and_its_files_are_not_read(world: World) -> None:
    world.says = lambda: Exploration(None, "broken JSON", Usage(2, cost_usd=0.5))
    seen = world.look()
    assert (seen.status, seen.usage.cost_usd) == ("unavailable", 0.5)
    assert "broken JSON" in seen.detail
    world.look()
    assert world.asked[0] == replace(world.asked[1])


def test_an_agent_that_cannot_be_had_is_one_line(world: World) -> None:
    def missing() -> Exploration:
        raise UserError("no program claude", "install it")

    world.says = missing
    assert world.look().detail == "no program claude; install it"


def test_without_an_agent_it_says_what_to_name(tmp_path: Path) -> None:
    opened = Git.open(make_repo(tmp_path / "repo", {"a.py": "x\n"}))
    observer = explore.build(ExploreSettings(), opened, None, None, None)
    seen = observer.observe(ObservationContext(Branch("main", "HEAD"), NOW, None, "", str(tmp_path)))
    assert seen.status == "unavailable"
    assert "hands.agent" in seen.detail


def test_it_says_beforehand_whether_it_would_ask(world: World) -> None:
    """So that money is set aside for a look that costs some, and for no other."""
    asked = [world.asks()]
    for _ in range(2):
        world.look()
        asked.append(world.asks())
    assert asked == [True, True, False]
