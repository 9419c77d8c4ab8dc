"""A repository on a (fake) GitHub in which everything that can be hostile is, run as the action runs it, and judged."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from ralph_mission.adapters.report.progress import PlainProgress
from ralph_mission.adapters.report.step_summary import tell_runner
from ralph_mission.app.cycle import App
from ralph_mission.cli.mission.cycle import show
from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from tests.adapters.web_server import reply, saying, serving
from tests.attacks.cases import INSIDE, OLD, PATH, SECRET, TEST, Case
from tests.attacks.judge import Judge, standing
from tests.attacks.obeying_planner import ObeyingPlanner, Planted
from tests.attacks.outsiders import arrive, insist
from tests.helpers import with_parts
from tests.integration.hub import Hub, open_hub
from tests.integration.world import BUGS_CONFIG

FILES = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")
"""What the runner reads as commands, and no cycle writes."""
MOST = 6
"""Cycles, after which what a case is about can be done."""


@dataclass
class AttackedHub(Hub):
    """A hub whose planner obeys, and whose observers see what, the attacker of a case wants. `words` are theirs."""

    case: Case = field(default_factory=lambda: Case(1, "x"))
    words: str = ""
    planner: ObeyingPlanner = field(default_factory=lambda: ObeyingPlanner(""))
    halted: int = 0

    def house(self, staged: bool = False) -> App:
        made = super().house(staged)
        observers = (Planted(self.case, self.words), *made.ports.observers)
        progress = PlainProgress(io.StringIO(), made.secrets)
        return with_parts(made, ports=replace(made.ports, thinker=self.planner, observers=observers, progress=progress))

    def told(self) -> str:
        """One cycle, and everything that it says: to people, to the log, to the runner, on the page of the job."""
        out = io.StringIO()
        self.now += timedelta(hours=7)
        house = self.house()
        with contextlib.redirect_stdout(out), mock.patch.dict(os.environ, self.environ):
            try:
                report, cycle_summary = self._run(house)
            except UserError as problem:
                self.halted += 1
                return f"{problem.what}\n{problem.next_step}"
            tell_runner(report, cycle_summary, os.environ)
            show(report, cycle_summary, False, self.clone, self.clone)
            show(report, cycle_summary, True, self.clone, self.clone)
        page = Path(self.actions["GITHUB_STEP_SUMMARY"]).read_text()
        return out.getvalue() + house.ports.progress.stream.getvalue() + page  # type: ignore[attr-defined]  # a PlainVoice

    def _run(self, house: App) -> tuple[CycleReport, CycleSummary]:
        from ralph_mission.mission.cycle import CycleRequest, run_cycle

        return run_cycle(house.ports, house.settings, CycleRequest(force=True), house.secrets)


@contextmanager
def attacked(folder: Path, case: Case) -> Iterator[tuple[AttackedHub, Judge]]:
    """The case in a repository with a misspelling, a failing check that says its words, and a server nobody may ask."""
    with serving(saying(reply(b"inside"))) as inside:
        words = case.text.replace(INSIDE, inside.url)
        said = unknowing(words)
        log = f"src/tide.py:1: {' '.join(said.split())}\nsrc/tide.py:1: tides are late\n"
        files: dict[str, str | bytes] = {
            PATH: OLD, "bugs.txt": log.encode("utf-8", "replace"), "src/tide.py": "x = 1\n",
            "tests/test_tide.py": TEST, "notes.md": said.encode("utf-8", "replace") + b"\nWe recieve it.\n",
        }  # fmt: skip  # one value
        with open_hub(folder, files, BUGS_CONFIG) as made:
            made.fake.validate = False
            yield _watched(made, case, words)
        if inside.connections:
            raise AssertionError(f"reached: {inside.asked}")


def _watched(made: Hub, case: Case, words: str) -> tuple[AttackedHub, Judge]:
    aside = made.folder / "runner"
    aside.mkdir()
    for name in (*FILES, "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        (aside / name).write_text("")
    actions = {name: str(aside / name) for name in (*FILES, "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    actions |= {"HARBOUR_TOKEN": SECRET, "RUNNER_TEMP": str(aside)}
    hub = AttackedHub(made.fake, made.token, made.folder, case=case, words=words, planner=ObeyingPlanner(words))
    hub.actions = actions
    return hub, Judge(made.fake, (SECRET, made.token)).watch()


def unknowing(words: str) -> str:
    """As strangers say it, who know no secret of ours: what they write is theirs, and no leak."""
    for form in (SECRET, SECRET[::-1], SECRET.encode().hex(), " ".join(SECRET)):
        words = words.replace(form, "value")
    return words


def live(hub: AttackedHub, judge: Judge, cycles: int = 3) -> None:
    """Strangers arrive; then cycles, between which they insist: more than these, until one came after their action."""
    arrive(hub, unknowing(hub.words))
    _cycle(hub, judge)
    acted = not hub.case.act
    for number in range(1, MOST):
        acted = insist(hub, hub.case, unknowing(hub.words)) or acted
        _cycle(hub, judge)
        if acted and number + 1 >= cycles:
            break
    assert acted, "there was nothing to do it to"
    judge.objects()
    judge.files(hub.folder / "runner", hub.clone / ".ralph")
    if (hub.folder / "ran").exists():
        judge.blame("process", "what an earlier job left behind was run")


def _cycle(hub: AttackedHub, judge: Judge) -> None:
    before = _untouchable(hub)
    judge.printed(hub.told())
    judge.after_cycle()
    judge.untouched(before, _untouchable(hub))


def _untouchable(hub: AttackedHub) -> dict[str, Any]:
    """The checkout, what git obeys there, the runner's files, and the home."""
    clone = hub.clone
    work = [path for path in clone.iterdir() if path.name not in (".git", ".ralph")]
    git = [clone / ".git" / name for name in ("config", "hooks", "HEAD", "info/attributes", "refs/heads")]
    return standing(*work, *git, *(Path(hub.actions[name]) for name in FILES), Path(os.environ["HOME"]))
