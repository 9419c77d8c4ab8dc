"""The issue agent at work on both forges: real flow, memory and forge; hands of the test's, or a real loop in git."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.git.git import Identity
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.app.cycle import App
from ralph_mission.app.issues import LoopHands, WorkOptions
from ralph_mission.mission.issues.agent import IssueWorker, WorkReport, work_once
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult, BaseChecks
from ralph_mission.mission.model.ledger import WorkRecord, work_key
from ralph_mission.mission.transaction import TransactionContext
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from tests.helpers import NOON
from tests.integration.hub import Hub, open_hub, unpaced
from tests.integration.world import CALM, World, world
from tests.mission.build import loop_result

READY, WORKING, FAILED = "ralph-ready", "ralph-working", "ralph-failed"
FILES: dict[str, str | bytes] = {"README.md": "# Harbour\n", "AGENTS.md": "Write tests.\n"}
SCRIPT = """\
[[hats."*"]]
write = {"src/tide.py" = "print('tide')\\n"}
run = ["git add -A", "git -c user.name=a -c user.email=a@example.org commit -qm step"]
text = "The table is there.\\n\\nLOOP_COMPLETE"
usage = {input_tokens = 10, output_tokens = 2, cost_usd = 0.25}
"""


@dataclass
class Scripted:
    """Hands that make one file, or do what `plays` says for each call; the last one stays. `jobs` are what came."""

    plays: Sequence[Callable[[AgentJob], AgentResult]] = ()
    jobs: list[AgentJob] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    guides: str = ""
    base: BaseChecks = field(default_factory=BaseChecks)
    looks: list[str] = field(default_factory=list)

    def look_at_base(self, base_sha: str) -> BaseChecks:
        self.looks.append(base_sha)
        return self.base

    def why_not(self, agent: str) -> str:
        return f"its label asks for {agent}, which is not installed here" if agent in self.missing else ""

    def conventions(self, base_sha: str) -> str:
        return self.guides

    def spent(self, record: WorkRecord) -> float:
        return 0.0

    def tidy(self, issues: Collection[int]) -> None:
        """Keeps nothing."""

    def work(self, job: AgentJob, withdrawn: Callable[[], bool] = bool) -> AgentResult:
        self.jobs.append(job)
        plays = self.plays or (made(),)
        return plays[min(len(self.jobs), len(plays)) - 1](job)


def made(
    files: dict[str, bytes] | None = None, words: str = "It is there.", **more: Any
) -> Callable[[AgentJob], AgentResult]:
    """A loop that was complete with these new files."""

    def play(job: AgentJob) -> AgentResult:
        content = files or {f"work-{job.number}.txt": b"done\n"}
        changes = tuple(FileChange(path, "", REGULAR, None, text) for path, text in content.items())
        return loop_result(0, "complete", Patch(job.base_sha, changes), words, sessions=1, usd=0.5, **more)

    return play


def ended(code: int, reason: str) -> Callable[[AgentJob], AgentResult]:
    """A loop that was not."""
    return lambda job: loop_result(code, reason, sessions=3, usd=0.25)


@dataclass
class Place:
    """A repository on a forge, as tests of the issue agent see both."""

    house: Callable[[], App]
    person: Callable[..., Any]
    said: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    hub: Hub | None = None
    local: World | None = None

    def ready(self, title: str = "Add a tide table", body: str = "It should show tides.", by: str = "mara") -> int:
        """An issue that may be taken."""
        number = self.person(by).create_issue(title, body)
        self.person(by).label(number, (READY,))
        return int(number)

    def worker(self, hands: Any, **more: Any) -> IssueWorker:
        """The issue agent, which sleeps in no time."""
        more.setdefault("agents", ("claude", "codex"))
        return IssueWorker(
            self.open_context,
            hands,
            self.slept.append,
            self.said.append,
            lambda: self.house().ports.clock.now(),
            more.pop("usd_per_issue", 5.0),
            **more,
        )

    def work(self, hands: Any, **more: Any) -> WorkReport:
        """One round."""
        return work_once(self.worker(hands, **more))

    def real(self, script: Path) -> LoopHands:
        """The loop of `ralph run` with a scripted agent."""
        house = self.house()
        repo = house.git.work_tree
        assert repo is not None
        wanted = WorkOptions(repo, agent="scripted", command=str(script))
        return LoopHands(wanted, house, PlainRunProgress(io.StringIO(), ()))

    def open_context(self) -> TransactionContext:
        house = self.house()
        return TransactionContext(house.ports, house.settings, house.secrets)

    def issue(self, number: int) -> Any:
        return self.house().forge.issue(number)

    def labels(self, number: int) -> set[str]:
        return set(self.issue(number).labels)

    def comments(self, number: int) -> list[str]:
        """What our bot said there."""
        us = self.house().forge.identity().id
        return [remark.body for remark in self.issue(number).remarks if remark.author.id == us]

    def pulls(self) -> list[Any]:
        return list(self.house().forge.pulls("all"))

    def push(self, branch: str, files: dict[str, bytes]) -> str:
        """A commit of a person's, on a branch made from `main`."""
        if self.hub:
            return str(self.person().push(branch, files))
        git = self.house().git
        tree = git.write_tree("main", {path: ("100644", content) for path, content in files.items()})
        made = git.commit_tree(tree, [git.resolve("main")], "Theirs", NOON, Identity("Mara", "mara@example.org"))
        git.run("update-ref", f"refs/heads/{branch}", made)
        return made

    def content(self, branch: str, path: str) -> bytes:
        """A file on a branch of the forge."""
        house = self.house()
        git = house.git
        name = branch
        if self.hub:
            from ralph_mission.adapters.git.git import Git

            git = Git.open(self.hub.fake.bare)
        return git.run("show", f"refs/heads/{name}:{path}")

    def state(self) -> Any:
        """`open.json`."""
        recalled = self.house().store.recall()
        assert recalled is not None
        return recalled.state

    def tries(self, number: int) -> int:
        """How many were begun."""
        store = self.house().store
        record = store.records([work_key(number)], store.recall())[work_key(number)]
        assert isinstance(record, WorkRecord)
        return record.tries

    def spent(self) -> float:
        recalled = self.house().store.recall()
        assert recalled is not None
        return recalled.memory.header.spend_usd


@contextmanager
def on_hub(folder: Path, config: str = CALM, files: dict[str, str | bytes] | None = None) -> Iterator[Place]:
    """On the (fake) GitHub."""
    with open_hub(folder, files or FILES, config) as hub:
        hub.fake.validate = False
        with mock.patch.dict(os.environ, hub.environ), unpaced():
            yield Place(hub.house, hub.person, hub=hub)


@contextmanager
def on_this_machine(folder: Path, config: str = CALM, files: dict[str, str | bytes] | None = None) -> Iterator[Place]:
    """On the local forge."""
    made_ = world(folder / "repo", files or FILES, config)
    yield Place(made_.house, made_.person, local=made_)


FORGES = {"github": on_hub, "local": on_this_machine}
LOCAL_FIRST = ["local", pytest.param("github", marks=pytest.mark.long)]  # takes two to five seconds there
BOTH = pytest.mark.parametrize("place", LOCAL_FIRST, indirect=True)
"""For a test that is on GitHub what it is here, but for a port whose contract says so of both."""
