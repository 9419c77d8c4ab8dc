"""Tries the observer of CI on what really happened: on histories of runs, on runs that people started again, and on
failures planted in real histories of commits.

    python -m tools.recorded_runs history CLONE BRANCH FILE...
    python -m tools.recorded_runs reruns CONCLUSIONS.csv.gz FLAKY.csv
    python -m tools.recorded_runs planted CLONE [NUMBER]

`history`: each FILE holds a reply of GitHub about workflow runs (`{"workflow_runs": [...]}`), as some repositories
commit it. The observer looks after each run that ended, with only what had happened until then; the commits are in
CLONE. Jobs are rarely recorded, so failures have no step here.

`reruns`: the two tables of the data of "On the Reruns of GitHub Actions Workflows"
(github.com/jiangnanpro/Reruns-of-GHA-workflow): `data/dataframes/dataframe_job_rerun_distinct_with_conclusion.csv.gz`
and `Part_2_Flakiness/flakiness_data/flakiness_job_rerun.csv`. Each run of a default branch is looked at after its last
attempt: one that failed must be red, one that the authors call flaky must be remembered as a failure by chance.

`planted`: NUMBER times (300) a commit of CLONE's history breaks a workflow, among pushes of one to eight commits, some
of whose runs are cancelled; the observer must name that commit where it is the only suspect, else list it.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

from ralph_mission.adapters.forges.github.findings import own_runs
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.ci import build
from ralph_mission.adapters.observers.ci.history import COUNTED, SHOWN, CiCursor
from ralph_mission.config.observers import CiSettings
from ralph_mission.mission.model.forge import Branch, FailedJob, WorkflowRun
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read_runs(files: list[Path], branch: str) -> list[WorkflowRun]:
    """The branch's own runs in these replies, each once, oldest first."""
    listed: list[dict[str, Any]] = []
    for file in files:
        raw = file.read_bytes()
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        reply = json.loads(COLOUR.sub("", text))
        listed += reply["workflow_runs"] if isinstance(reply, dict) else reply
    runs = {(run.id, run.attempt): run for run in own_runs(listed, branch)}
    return sorted(runs.values(), key=lambda run: (run.created_at, run.id))


@dataclass
class RecordedRuns:
    """A forge that knows nothing but runs, as they were at `now`; `jobs`: what failed in each that did."""

    runs: list[WorkflowRun]
    now: datetime
    jobs: tuple[FailedJob, ...] = ()

    def workflow_runs(
        self, workflow: int = 0, event: str = "", ended: str = "", most: int = 100
    ) -> tuple[WorkflowRun, ...]:
        """As in the port."""
        found = [run for run in reversed(self.runs) if run.ended_at and run.ended_at <= self.now]
        wanted = [run for run in found if workflow in (0, run.workflow) and event in ("", run.event)]
        return tuple(run for run in wanted if ended in ("", run.conclusion))[:most]

    def failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        """The same in every run: which jobs failed is rarely recorded."""
        return self.jobs

    def test_reports(self, run: WorkflowRun) -> tuple[bytes, ...]:
        """None were recorded."""
        return ()


def observe(git: Git, forge: RecordedRuns, head: Branch, cursor: str = "") -> Observation:
    """What the observer says at the forge's `now`."""
    context = ObservationContext(head, forge.now, None, cursor, "")
    return build(CiSettings(), cast(Forge, forge), git).observe(context)


def replay(git: Git, branch: str, runs: list[WorkflowRun]) -> None:
    """Print each finding once, when it comes, and how many runs were looked at."""
    forge, cursor, known = RecordedRuns(runs, datetime.min), "", set[tuple[str, ...]]()
    over = sorted((run for run in runs if run.ended_at), key=lambda run: cast(datetime, run.ended_at))
    for run in over:
        forge.now = cast(datetime, run.ended_at)
        seen = observe(git, forge, Branch(branch, run.sha), cursor)
        cursor = seen.cursor
        now = {signal.essence: signal for signal in seen.signals}
        for essence in now.keys() - known:
            print(f"{run.ended_at:%Y-%m-%d %H:%M} {now[essence].kind}: {now[essence].title}")
        for essence in known - now.keys():
            print(f"{run.ended_at:%Y-%m-%d %H:%M} over: {essence[1]}")
        known = set(now)
    print(f"{len(over)} runs, {sum(run.failed for run in over)} failed, {sum(run.passed for run in over)} passed")


# --- runs that were started again -----------------------------------------------------

WORKFLOW = ".github/workflows/ci.yml"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
RERUN_COLUMNS = ("reruns ids", "event", "reruns", "last rerun's conclusion")
JOB = FailedJob("job", "step", "")


def make_run(
    number: int, sha: str, conclusion: str, at: datetime, event: str = "push", attempt: int = 1
) -> WorkflowRun:
    """A run of the one workflow that took an hour."""
    ended = at + HOUR
    return WorkflowRun(number, 1, "ci", WORKFLOW, event, sha, conclusion, at, at, "", attempt, ended)


def read_reruns(conclusions: Path) -> Iterator[tuple[int, str, int, str]]:
    """Of each run of a default branch: id, event, how often it was started again, how it ended."""
    with gzip.open(conclusions, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["default"] == "True":
                columns = (literal_eval(row[name]) for name in RERUN_COLUMNS)
                for run, event, times, end in zip(*columns, strict=True):
                    yield int(run), str(event), int(times), str(end)


def judge_reruns(conclusions: Path, flaky: Path) -> Counter[str]:
    """How many runs came to what."""
    with flaky.open(encoding="utf-8", newline="") as file:
        by_chance = {int(run) for row in csv.DictReader(file) for run in literal_eval(row["ids"])}
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        git, sha = _repository_of(Path(folder), f"on: [{', '.join(COUNTED)}]\n")
        for number, event, times, end in read_reruns(conclusions):
            if event not in COUNTED:
                counts["not the branch's own"] += 1
                continue
            run = make_run(number, sha, end, BEGIN, event, times + 1)
            seen = observe(git, RecordedRuns([run], BEGIN + HOUR, (JOB,)), Branch("main", sha))
            red = any(signal.kind == "broken-build" for signal in seen.signals)
            chance = bool(CiCursor.parse(seen.cursor).chances)
            what = (
                "failed" if run.failed else ("flaky" if number in by_chance else "passed") if run.passed else "neither"
            )
            counts[
                f"{what}: {'red' if red else ''}{'by chance' if chance else ''}{'' if red or chance else 'nothing'}"
            ] += 1
    return counts


def _repository_of(folder: Path, workflow: str) -> tuple[Git, str]:
    """A repository whose only commit holds the workflow."""
    (folder / WORKFLOW).parent.mkdir(parents=True)
    (folder / WORKFLOW).write_text(workflow)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.example commit -qm one"):
        subprocess.run(["git", "-C", str(folder), *command.split()], check=True)
    git = Git.open(folder)
    return git, git.resolve("HEAD")


# --- planted failures -----------------------------------------------------------------

PUSHED, CANCELLED, AFTER = 8, 0.2, 3
"""Commits of a push at most, how often a run is cancelled, and failing runs after the first at most."""


def judge_planted(git: Git, number: int, seed: int = 0) -> Counter[str]:
    """How often the commit that broke the workflow was named, listed or neither."""
    history = git.text("log", "--first-parent", "--reverse", "--format=%H").split()
    listing = git.listing(history[-1], ".github/workflows")
    path = next(one.path for one in listing if "push" in git.text("cat-file", "blob", f"{history[-1]}:{one.path}"))
    draw, counts = Random(seed), Counter[str]()
    for _ in range(number):
        runs, suspects, culprit = _plant(history, path, draw)
        now = max(cast(datetime, run.ended_at) for run in runs)
        seen = observe(git, RecordedRuns(runs, now, (JOB,)), Branch("main", history[-1]))
        (signal,) = [one for one in seen.signals if one.kind == "broken-build"] or [None]
        named = signal and dict(signal.facts).get("first bad commit")
        if suspects == 1:
            counts["alone: named" if named == culprit[:12] else f"alone: WRONG, {named}"] += 1
        else:
            listed = signal and not named and f"one of {suspects} commits" in signal.detail
            listed = listed and (suspects > SHOWN or culprit[:12] in signal.detail)
            counts["among others: listed" if listed else f"among others: WRONG, {named}"] += 1
    return counts


def _plant(history: Sequence[str], path: str, draw: Random) -> tuple[list[WorkflowRun], int, str]:
    """Runs of a history in which a commit breaks everything after it; how many are suspect; the commit."""
    at = draw.randrange(1, len(history) - PUSHED * (AFTER + 2))
    heads, runs, broken = [at - 1], list[WorkflowRun](), draw.choice((1, draw.randint(1, PUSHED)))
    culprit = history[at - 1 + draw.randint(1, broken)]
    heads += [at - 1 + broken]
    for _ in range(draw.randint(0, AFTER)):
        heads.append(heads[-1] + draw.randint(1, PUSHED))
    suspect, failed = broken, False
    for place, head in enumerate(heads):
        last = place == len(heads) - 1
        cancelled = place > 0 and not last and draw.random() < CANCELLED
        end = "cancelled" if cancelled else "failure" if place else "success"
        if not cancelled and place and not failed:
            suspect, failed = head - heads[0], True
        runs.append(replace(make_run(place + 1, history[head], end, BEGIN + 2 * HOUR * place), path=path))
    return runs, suspect, culprit


def main(arguments: list[str]) -> int:
    """The exit code."""
    match arguments:
        case ["history", clone, branch, *files] if files:
            replay(Git.open(Path(clone)), branch, read_runs([Path(file) for file in files], branch))
            return 0
        case ["reruns", conclusions, flaky]:
            counts = judge_reruns(Path(conclusions), Path(flaky))
        case ["planted", clone, *number] if len(number) < 2:
            counts = judge_planted(Git.open(Path(clone)), int(*number or ("300",)))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    for what, times in sorted(counts.items()):
        print(f"{times:6} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
