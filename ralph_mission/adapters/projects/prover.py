"""Runs a claim's tests, on the code as it is and as the claim changes it.

Everything runs in one clone without remotes, credentials or network, which uses the repository's set-up. Before each
run the files are reset to the commit, and each run has a new HOME, so nothing a test leaves affects the next run. The
runs that `judge_proof` requests are made in random order, so no test can count them.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.setup import LentSetup, ProjectSetup, copy_entries, entries_below, folders_of
from ralph_mission.adapters.projects.suites import SuiteTool, find_suite, notes_file, parse_report, unloaded
from ralph_mission.adapters.sandbox import bwrap
from ralph_mission.adapters.sandbox.excerpt import excerpt
from ralph_mission.adapters.sandbox.isolation import Sandbox, missing_bwrap, private
from ralph_mission.adapters.sandbox.process import run_foreign, tell_running
from ralph_mission.adapters.workspace.clone import clone
from ralph_mission.adapters.workspace.snapshot import remove_any, write_file
from ralph_mission.errors import UserError
from ralph_mission.mission.proof.claim import CodeClaim, CodeState, Refusal, changes_in, judge_text
from ralph_mission.mission.proof.judge import (
    CaseResult,
    ProofRun,
    ProofVerdict,
    RunRequest,
    SuiteReport,
    judge_proof,
)
from ralph_mission.values import dataclass

SHORT, LONG = 180.0, 1_200.0
"""Seconds for a claim's tests, and for all tests of the repository."""
OUTPUT = 16_000_000  # bytes of a run's output
LARGEST = 64_000_000  # bytes of a report
LARGEST_FILE = 4_000_000  # bytes of the largest file a claim may be about
NOT_FOUND = 127  # of a shell that has no such command
MOST_RUNS = 20  # per claim: the judge requests at most sixteen


@dataclass(frozen=True, slots=True)
class ProofOutcome:
    """A claim's verdict, its runs, and their duration in seconds."""

    claim: CodeClaim
    verdict: ProofVerdict
    runs: tuple[ProofRun, ...] = ()
    seconds: float = 0.0


def closed_sandbox(writable: Sequence[Path]) -> Sandbox:
    """A sandbox without a network. Raises UserError if there is none."""
    why, remedy = missing_bwrap()
    if not why and (why := bwrap.attempt().open_network):
        remedy = "let ordinary users make network namespaces"
    if why:
        raise UserError(f"no claim can be proven without closing the network: {why}", remedy)
    return Sandbox("bwrap", tuple(writable), (), private(os.environ), ())


@dataclass(frozen=True, slots=True)
class Prover:
    """Proves claims about commits of a repository. `cache`: results of all tests by commit."""

    git: Git
    setup: ProjectSetup
    cache: FileCache = FileCache(None)
    sandbox_for: Callable[[Sequence[Path]], Sandbox] = closed_sandbox
    short: float = SHORT
    long: float = LONG
    note: Callable[[str], None] = lambda _: None

    def read(self, base: str, path: str) -> bytes | None:
        """A file of a commit; None if it is missing or large."""
        found = [entry for entry in self.git.listing(base, path) if entry.path == path and entry.kind == "blob"]
        content = self.git.blobs([found[0].oid]).get(found[0].oid) if found else None
        return content if content is not None and len(content) <= LARGEST_FILE else None

    def prove(self, claim: CodeClaim, base: str) -> ProofOutcome:
        """Judge a claim about the commit `base`.

        Raises UserError if the repository cannot be set up, or there is no isolation here.
        """
        started = time.monotonic()
        refusal = judge_text(claim, lambda path: self.read(base, path))
        tool = None if refusal else self.tool(claim, base)
        if refusal or tool is None:
            why = f"no known test runner runs {claim.test_files[0]}" if not refusal else ""
            return ProofOutcome(claim, ProofVerdict(refusal or Refusal("cannot-run", why)))
        with self.open_workspace(claim, base, tool) as workspace:
            verdict, runs = workspace.judge()
        return ProofOutcome(claim, verdict, runs, time.monotonic() - started)

    @contextmanager
    def open_workspace(self, claim: CodeClaim, base: str, tool: SuiteTool) -> Iterator[ProofWorkspace]:
        """A clone for the runs of a claim, set up. Raises UserError."""
        with (
            tempfile.TemporaryDirectory(prefix="ralph-proof-", ignore_cleanup_errors=True) as scratch,
            clone(self.git, base, Path(scratch)) as pristine,
            clone(self.git, base, Path(scratch)) as folder,
        ):
            environment = self.setup.lend(base, folder, Path(scratch) / "tools")
            for place in (pristine, folder):  # git would show a test what was changed
                remove_any(os.fsencode(place / ".git"))
            yield ProofWorkspace(self, tool, base, claim, Path(scratch), pristine, folder, environment)

    def tool(self, claim: CodeClaim, base: str) -> SuiteTool | None:
        """The test runner of the claim's tests; None if unknown, or more than one."""
        paths = {entry.path for entry in self.git.listing(base) if entry.kind == "blob"}
        tools = {find_suite(paths, lambda path: (self.read(base, path) or b"").decode("utf-8", "replace"), near)
                 for near in claim.test_files}  # fmt: skip  # one set
        found = [tool for tool in tools if tool]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class ProofWorkspace:
    """A clone in which a claim's tests run repeatedly from the same state."""

    prover: Prover
    tool: SuiteTool
    base: str
    claim: CodeClaim
    scratch: Path
    pristine: Path
    folder: Path
    lent: LentSetup

    def judge(self) -> tuple[ProofVerdict, tuple[ProofRun, ...]]:
        """Make the requested runs until there is a verdict."""
        runs: list[ProofRun] = []
        while not isinstance(step := judge_proof(self.claim, runs), ProofVerdict):
            if len(runs) >= MOST_RUNS:
                return ProofVerdict(Refusal("cannot-run", "its runs come to no end")), tuple(runs)
            request = random.SystemRandom().choice(step)
            runs.append(ProofRun(request, self._report(request)))
        return step, tuple(runs)

    def _report(self, request: RunRequest) -> SuiteReport:
        everything = request.state is CodeState.PLAIN and not request.files
        question = cache_key("suite", "2", self.base, *map(str, (self.tool.name, self.tool.folder, self.tool.options)))
        if everything and (known := _decode(self.prover.cache.get(question))):
            return known
        report = self.run(request)
        if everything and not report.ended:
            rows = [[case.id, case.file, case.status] for case in report.cases]
            self.prover.cache.put(question, {"cases": rows})
            self.prover.cache.tidy()
        return report

    def run(self, request: RunRequest) -> SuiteReport:
        """Run tests once, from the initial state."""
        scope = f"{len(request.files)} of the test files" if request.files else "all tests"
        self.prover.note(f"running {scope} on the code: {request.state}")
        self._restore()
        for change in changes_in(self.claim, request.state):
            if change.new is None:
                remove_any(os.fsencode(self.folder / change.path))
            else:
                write_file(str(self.folder), change.path, change.new_mode, change.new)
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix="home-", ignore_cleanup_errors=True) as home:
            return self._started(request, Path(home))

    def _started(self, request: RunRequest, home: Path) -> SuiteReport:
        report = home / "report"
        watched = [change.path for change in self.claim.change]
        probes = self.tool.environment(home, self.folder, report, watched)
        tools = self.scratch / "tools"
        tools.mkdir(exist_ok=True)
        finished = run_foreign(
            self.tool.command(request.files, report),
            cwd=self.folder / self.tool.folder,
            home=home,
            timeout=self.prover.short if request.files else self.prover.long,
            output_cap=OUTPUT,
            extra_env={**self.lent.environment, **probes, "PYTHONHASHSEED": str(request.attempt)},
            running=tell_running("testing a claim", " ".join(request.files) or "all tests", self.prover.note),
            sandbox=self.prover.sandbox_for((self.folder, tools)),
        )
        hosts, sources = _notes(home, "hosts"), _notes(home, "sources")
        if finished.timed_out or finished.truncated:
            return SuiteReport((), "time-out" if finished.timed_out else "it prints too much", hosts, sources)
        content = files.content(report, LARGEST + 1) or b""
        output = excerpt(finished.stdout, finished.stderr, self.folder)
        if finished.code == NOT_FOUND and not content:
            what = f"the tests cannot be started here: {output.strip().partition(chr(10))[0]}"
            raise UserError(what, "set the project up with hands.setup in ralph.yml; ralph doctor shows how it stands")
        with suppress(ValueError):
            found = parse_report(self.tool.name, content[:LARGEST].decode("utf-8", "replace"), str(self.folder))
            if found.cases or finished.code == 0:
                return replace(found, connected=hosts, sources=sources)
        return replace(unloaded(output), connected=hosts, sources=sources)

    def _restore(self) -> None:
        """Reset to the files of the commit and of the set-up."""
        names = frozenset(self.lent.names)
        for path, entry in entries_below(self.folder, folders_of(names) - names):
            if path not in names:
                remove_any(os.fsencode(entry.path))
        copy_entries(self.pristine, self.folder)


def _notes(home: Path, of: str) -> tuple[str, ...]:
    text = (files.content(notes_file(home, of), 10_000) or b"").decode("utf-8", "replace")
    return tuple(dict.fromkeys(filter(None, text.split("\n"))))


def _decode(known: object) -> SuiteReport | None:
    if not isinstance(known, Mapping):
        return None
    try:
        return SuiteReport(tuple(CaseResult(str(i), str(f), s) for i, f, s in known["cases"]))
    except (KeyError, TypeError, ValueError):
        return None
