"""The review flow on both forges: real flow, memory and forge; a reader of the test's, or a real agent in a clone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.app.hosting import AgentServiceOptions
from ralph_mission.app.reviews import AgentReader
from ralph_mission.errors import UserError
from ralph_mission.loop import planning
from ralph_mission.loop.model.state import SessionUsage
from ralph_mission.loop.planning import ReviewerAnswer
from ralph_mission.mission import gather
from ralph_mission.mission.model.agent_job import AgentJob
from ralph_mission.mission.model.effects import OpenPull, PushBranch, marker
from ralph_mission.mission.model.forge import Review
from ralph_mission.mission.model.ledger import MemoryBatch, OpenState, key_of
from ralph_mission.mission.reviews import review
from ralph_mission.mission.reviews.reviewer import PullView, ReviewReport, ReviewSetup, review_once
from ralph_mission.safety.patch import Edit, FileDelta
from tests.helpers import NOON
from tests.integration.at_work import Place
from tests.integration.world import begun_once

RACE = {"file": "src/tide.py", "line": 2, "kind": "race", "severity": "major", "message": "Two readers meet.",
        "suggestion": "Take the lock."}  # fmt: skip  # one issue
ONE = json.dumps({"issues": [RACE]})
NONE = json.dumps({"issues": []})
SOURCE = "import table\nprint('tide')\n"


@dataclass
class ScriptedReviewer:
    """A reader that looks for real and answers `says`, one text for each call; the last one stays."""

    place: Place
    says: Sequence[str | Callable[[AgentJob], str]] = (ONE,)
    jobs: list[AgentJob] = field(default_factory=list)
    usd: float = 0.25
    missing: str = ""

    def check(self, stranger: bool) -> None:
        if self.missing:
            raise UserError(self.missing, "name one in hands.agent of ralph.yml")

    def look(self, base: str, head: str) -> PullView:
        return reader(self.place).look(base, head)

    def read(self, job: AgentJob) -> ReviewerAnswer:
        self.jobs.append(job)
        said = self.says[min(len(self.jobs), len(self.says)) - 1]
        text = said(job) if callable(said) else said
        return ReviewerAnswer(planning.parse_findings(text), usage=SessionUsage(1, cost_usd=self.usd))


def reader(place: Place, **options: Any) -> AgentReader:
    """The real one."""
    house = place.house()
    assert house.git.work_tree is not None
    return AgentReader(AgentServiceOptions(house.git.work_tree, **options), house, progress())


def reviewer(place: Place, hands: Any, usd: float = 2.0) -> ReviewSetup:
    """The flow, which sleeps in no time."""
    opened = place.worker(None).opened
    return ReviewSetup(opened, hands, place.slept.append, place.said.append, usd)


def read(place: Place, number: int, hands: Any, force: bool = False, **more: Any) -> ReviewReport:
    """`ralph review --pr NUMBER`."""
    return review_once(reviewer(place, hands, **more), number, force)


def proposed(place: Place, name: str = "ralph/issue-1-tide", files: dict[str, str] | None = None) -> int:
    """A pull that Ralph made, and memory that has begun."""
    files = files or {"src/tide.py": SOURCE}
    return begun_once(place.local, f"{name} {files}", lambda: _propose(place, name, files))


def _propose(place: Place, name: str, files: dict[str, str]) -> int:
    house, key = place.house(), key_of(name)
    forge, now = house.forge, house.ports.clock.now()
    if house.store.recall() is None:
        begun = house.store.commit(
            MemoryBatch(gather.first_memory(house.ports, now), OpenState(), (), "ralph: begins"), None
        )
        forge.show_dashboard("", gather.anchor_of(begun))
    deltas = tuple(FileDelta(path, "100644", (Edit(0, 0, (text,)),)) for path, text in files.items())
    pushed = forge.perform(PushBranch(key, name, forge.default_branch().sha, "Add a tide table", NOON, deltas))
    assert pushed.status == "done", pushed
    body = f"Made by an agent for #1.\n\n{marker(key)}"
    made = forge.perform(OpenPull(key_of(name, "pull"), "Add a tide table (#1)", body, name, "main", 1))
    assert made.status == "done", made
    return made.number


def pushed(place: Place, branch: str = "ralph/issue-1-tide", path: str = "more.txt") -> None:
    """One more commit on the branch of a pull."""
    forge = place.house().forge
    onto, base = forge.branch(branch), forge.default_branch().sha
    more = FileDelta(path, "100644", (Edit(0, 0, ("more\n",)),))
    assert forge.perform(PushBranch(key_of(branch, path), branch, base, "More", NOON, (more,), onto)).status == "done"


def ours(place: Place, number: int) -> list[Review]:
    """The reviews of the pull that our account wrote."""
    forge = place.house().forge
    return [one for one in forge.pull(number).reviews if one.author.id == forge.identity().id]


def words(body: str) -> str:
    """A review without its marker."""
    return review.plain_body(body)


def progress() -> PlainRunProgress:
    return PlainRunProgress(io.StringIO(), ())


def elsewhere(place: Place) -> Place:
    """The same repository, seen from another machine."""
    assert place.hub is not None
    other = replace(place.hub, runner="other")
    return replace(place, hub=other, house=other.house)
