"""Whether the runs of a claim's test prove it: which run is needed next, and the verdict. Pure.

Cheap runs come first, and the first refusal ends a claim. A test proves a claim if each of its cases fails on the base
in all runs, for the stated reason and in the named code, and passes with the change in all runs, and neither depends on
the code's text; and if all other tests behave as before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from ralph_mission.mission.proof.claim import ASSERTION, CodeClaim, CodeState, Refusal
from ralph_mission.safety.objections import TEST_PATH
from ralph_mission.safety.patch import touched_lines
from ralph_mission.values import compile_regex, dataclass

RUNS = 3
"""How often the test must fail on the base and pass with the change, including one run each with comments added."""
CaseStatus = Literal["passed", "failed", "error", "skipped"]

SYNTAX = frozenset({"SyntaxError", "IndentationError", "TabError"})
IMPORT = frozenset({"ImportError", "ModuleNotFoundError", "ERR_MODULE_NOT_FOUND"})
NO_MODULE = compile_regex(
    r"Cannot find (?:module|package)|Failed to (?:resolve import|load url)|Does the file exist\?|is not exported by|"
    r"does not provide an export|No module named|cannot import name|unresolved import|could not compile"
)
UNPARSED = compile_regex(r"Unexpected token|Parse failure|Transform failed|Unterminated|SyntaxError")
TIMED_OUT = compile_regex(
    r"Timeout of [\d.]+ ?ms exceeded|timed out in [\d.]+ ?ms|Exceeded timeout of|Timeout \(?>|timed out after", re.I
)
NETWORK = compile_regex(
    r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|getaddrinfo|Name or service not known|Network is unreachable|"
    r"Temporary failure in name resolution|fetch failed|nodename nor servname|No address associated", re.IGNORECASE
)  # fmt: skip  # one expression
ASSERTIONS = frozenset({"AssertionError", "JestAssertionError", "assertion", "MultipleFailures", "Failed"})
EXPECTED = compile_regex(
    r"^(?:DID NOT (?:RAISE|WARN)|expect\(|expected\b[^\0]+\bgot\b|expected \".+\" header field|assertion )",
    re.IGNORECASE,
)
"""Messages of failed expectations in libraries without an error type of their own."""
SYSTEM = compile_regex(r"^E[A-Z]{3,}\b")
"""The beginning of operating system errors in Node.js."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a test case. `id`: the runner's name for it. `file`: its path in the repository.

    `error`: the exception's class name. `frames`: the repository's own frames as (path, line), innermost last. `phase`:
    "call", or where else it failed: "load" or "set-up". `sources`: files of the change that the test read as text.
    `connected`: remote hosts it tried to reach.
    """

    id: str
    file: str
    status: CaseStatus
    error: str = ""
    message: str = ""
    frames: tuple[tuple[str, int], ...] = ()
    phase: str = "call"
    sources: tuple[str, ...] = ()
    connected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The report of a test run. `ended`: "" if it completed, "time-out", or why there is no report. `connected` and
    `sources`: as for cases, where the case is unknown."""

    cases: tuple[CaseResult, ...]
    ended: str = ""
    connected: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Tests to run on a state of the code: those in `files`, or all of the repository's for ()."""

    state: CodeState
    files: tuple[str, ...]
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ProofRun:
    """A requested run and its report."""

    request: RunRequest
    report: SuiteReport


@dataclass(frozen=True, slots=True)
class ProofVerdict:
    """The verdict on a claim; `refusal` is None if its `cases` prove it."""

    refusal: Refusal | None
    cases: tuple[CaseResult, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether there is no refusal."""
        return self.refusal is None


def judge_proof(claim: CodeClaim, runs: Sequence[ProofRun]) -> ProofVerdict | tuple[RunRequest, ...]:
    """Judge a claim that passed `judge_text`: the verdict, or the runs needed for it, in any order."""
    done = {run.request: run.report for run in runs}
    for stage in (_fails_on_base, _holds_in_each_run, _keeps_tests, _others_stay):
        found = stage(claim, done)
        if isinstance(found, Refusal):
            return ProofVerdict(found)
        if found:
            return found
    return ProofVerdict(None, _cases_of_proof(claim, done))


Done = dict[RunRequest, SuiteReport]
Stage = Refusal | tuple[RunRequest, ...] | None
"""The refusal, the missing runs, or neither."""


# --- it fails, for the stated reason --------------------------------------------------


def _fails_on_base(claim: CodeClaim, done: Done) -> Stage:
    request = _short(claim, CodeState.BASE)
    if request not in done:
        return (request,)
    report = done[request]
    for case in report.cases:
        if case.phase == "load" and (case.file in claim.test_files or not case.file):
            return _not_run(case)
    if refusal := _report_refusal(report):
        return refusal
    cases = _cases_of_proof(claim, done)
    if not cases:
        named = [case for case in report.cases if _is_named(claim, case)]
        skipped = named and all(case.status == "skipped" for case in named)
        return Refusal("passes-on-base", "its test is skipped" if skipped else "its test does not fail on the base")
    refusal = next(filter(None, (_wrong_reason(claim, case) for case in cases)), None)
    return _failed_before(claim, done) or refusal if refusal else None


def _failed_before(claim: CodeClaim, done: Done) -> tuple[RunRequest, ...]:
    """The run that shows what failed before the claim; needed if something fails that should not."""
    return _missing(_plain(claim), done)


def _plain(claim: CodeClaim) -> tuple[RunRequest, ...]:
    existing = tuple(change.path for change in claim.test if change.old is not None)
    return (RunRequest(CodeState.PLAIN, existing),) if existing else ()


def _short(claim: CodeClaim, state: CodeState, attempt: int = 1) -> RunRequest:
    """Only the claim's own tests."""
    return RunRequest(state, claim.test_files, attempt)


def _missing(requests: Sequence[RunRequest], done: Collection[RunRequest]) -> tuple[RunRequest, ...]:
    return tuple(request for request in requests if request not in done)


def _cases_of_proof(claim: CodeClaim, done: Done) -> tuple[CaseResult, ...]:
    """The cases that fail with the claim's test, did not fail before, and match its names."""
    earlier = [report for request, report in done.items() if request in _plain(claim)]
    failed = {name for report in earlier for name in _failed(report)}
    cases = _failed(done[_short(claim, CodeState.BASE)])
    return tuple(case for name, case in cases.items() if name not in failed and _is_named(claim, case))


def _is_named(claim: CodeClaim, case: CaseResult) -> bool:
    return not claim.cases or any(case.id == name or case.id.endswith(name) for name in claim.cases)


def _report_refusal(report: SuiteReport) -> Refusal | None:
    if report.connected:
        return Refusal("network", f"its test looks for {report.connected[0]}")
    if report.sources:
        return Refusal("reads-source", f"its test reads {report.sources[0]} instead of running it")
    if report.ended == "time-out":
        return Refusal("time-out", "its test does not end")
    return Refusal("cannot-run", report.ended) if report.ended else None


def _not_run(case: CaseResult) -> Refusal:
    """A case that never reached the code, so its failure proves nothing."""
    if case.error in SYNTAX or UNPARSED.search(case.message):
        return Refusal("syntax", f"its test cannot be parsed: {_describe_failure(case)}")
    if case.error in IMPORT or NO_MODULE.search(case.message):
        return Refusal("import", f"its test cannot be loaded: {_describe_failure(case)}")
    return Refusal("wrong-reason", f"it fails before its test is run: {_describe_failure(case)}")


def _wrong_reason(claim: CodeClaim, case: CaseResult) -> Refusal | None:
    """The refusal if a case fails on the base for the wrong reason."""
    if case.connected or NETWORK.search(case.message):
        host = f"looks for {case.connected[0]}" if case.connected else f"needs the network: {_describe_failure(case)}"
        return Refusal("network", f"its test {host}")
    if case.sources:
        return Refusal("reads-source", f"its test reads {case.sources[0]} instead of running it")
    if case.phase != "call" or case.error in SYNTAX | IMPORT:
        return _not_run(case)
    if TIMED_OUT.search(case.message):
        return Refusal("time-out", f"its test does not end: {_describe_failure(case)}")
    assertion = is_assertion(case) if claim.guessed else claim.expected == ASSERTION
    places = {change.path for change in claim.change} if claim.guessed else {claim.path}
    if assertion:
        inner = case.frames[-1][0] if case.frames else ""
        if not is_assertion(case):
            return Refusal("wrong-reason", f"it fails with {_describe_failure(case)}, not by an assertion")
        if inner and inner not in places and not TEST_PATH.search(inner) and inner not in claim.test_files:
            return Refusal("wrong-reason", f"the assertion that fails stands in {inner}")
    elif not claim.guessed and case.error.rpartition(".")[2] != claim.expected.rpartition(".")[2]:
        return Refusal("wrong-reason", f"it fails with {_describe_failure(case)}, not with {claim.expected[:60]}")
    elif case.frames and places.isdisjoint(path for path, _ in case.frames):  # a later one cannot tell
        return Refusal("wrong-reason", f"its {case.error} does not come from {claim.path}")
    return None


def is_assertion(case: CaseResult) -> bool:
    """Whether a case failed by an expectation: JavaScript tests often throw a plain Error for that."""
    if case.error in ASSERTIONS or EXPECTED.match(case.message):
        return True
    own = bool(case.frames) and TEST_PATH.search(case.frames[-1][0])
    return case.error == "Error" and bool(own) and not (NO_MODULE.search(case.message) or SYSTEM.match(case.message))


def _describe_failure(case: CaseResult) -> str:
    first = next((line.strip() for line in case.message.split("\n") if line.strip()), "")
    return first[:160] if not case.error or first.startswith(case.error) else f"{case.error}: {first}"[:160]


# --- in each run, and because of what the code does -----------------------------------


def _holds_in_each_run(claim: CodeClaim, done: Done) -> Stage:
    requests = [_short(claim, CodeState.BASE, n) for n in range(1, RUNS + 1)]
    requests += [_short(claim, CodeState.CHANGED, n) for n in range(1, RUNS)]
    requests += [_short(claim, CodeState.NOTED), _short(claim, CodeState.CHANGED_NOTED)]
    if not claim.guessed and any(change.path != claim.path and _decides(change.path) for change in claim.change):
        requests.append(_short(claim, CodeState.OTHERS))
    for request in requests:
        if request in done and (refusal := _differs(claim, done, request)):
            return _failed_before(claim, done) or refusal
    return _missing(requests, done) or None


def _decides(path: str) -> bool:
    return not path.lower().endswith((".md", ".rst", ".txt"))


def _differs(claim: CodeClaim, done: Done, request: RunRequest) -> Refusal | None:
    report, cases = done[request], _cases_of_proof(claim, done)
    found = {case.id: case for case in report.cases}
    failing = [case for case in cases if case.id not in found or found[case.id].status in ("failed", "error")]
    if request.state is not CodeState.OTHERS and (refusal := _report_refusal(report)):
        return refusal
    match request.state:
        case CodeState.BASE:
            unlike = next(filter(None, (_unlike(claim, case, found.get(case.id)) for case in cases)), None)
            red = None if unlike else _newly_red(claim, done, report, done[_short(claim, CodeState.BASE)])
            return Refusal("flaky", f"{red.id} fails in one run on the base, and not in another") if red else unlike
        case CodeState.NOTED if len(failing) < len(cases):
            return Refusal("reads-source", "its test passes when the lines of the change are mere comments")
        case CodeState.CHANGED_NOTED if failing and _passes(claim, done):
            return Refusal("reads-source", "its test fails when comments are added to the change")
        case CodeState.OTHERS if not failing and not report.ended:
            return Refusal("wrong-file", f"its test passes without the change of {claim.path}")
        case CodeState.CHANGED:
            not_passed = _not_passed(claim, cases, found)
            red = None if not_passed else _newly_red(claim, done, report)
            return Refusal("breaks-tests", f"{red.id}, a test of its own, fails with the change") if red else not_passed
    return None


def _unlike(claim: CodeClaim, first: CaseResult, case: CaseResult | None) -> Refusal | None:
    if case is None or case.status not in ("failed", "error"):
        return Refusal("flaky", f"{first.id} fails in one run on the base, and not in another")
    if case.error != first.error:
        return Refusal("flaky", f"{first.id} fails with {first.error} in one run, and with {case.error} in another")
    return _wrong_reason(claim, case)


def _not_passed(claim: CodeClaim, cases: Sequence[CaseResult], found: dict[str, CaseResult]) -> Refusal | None:
    for case in cases:
        after = found.get(case.id)
        if after is None:
            return Refusal("still-fails", f"{case.id} is not run with the change")
        if after.sources:
            return Refusal("reads-source", f"its test reads {after.sources[0]} instead of running it")
        if after.connected:
            return Refusal("network", f"its test looks for {after.connected[0]}")
        if after.status != "passed":
            output = _describe_failure(after) or after.status
            return Refusal("still-fails", f"{case.id} does not pass with the change: {output}")
    return None


def _newly_red(
    claim: CodeClaim, done: Done, report: SuiteReport, first: SuiteReport | None = None
) -> CaseResult | None:
    """A case that the claim's tests add, and that fails in this run, but not in the `first` one."""
    known = {case.id for request in _plain(claim) if request in done for case in done[request].cases}
    known |= set(_failed(first)) if first else set()
    return next((case for name, case in _failed(report).items() if name not in known), None)


def _failed(report: SuiteReport) -> dict[str, CaseResult]:
    return {case.id: case for case in report.cases if case.status in ("failed", "error")}


def _passes(claim: CodeClaim, done: Done) -> bool:
    """Whether all runs with the change are there; a refusal would have been found before."""
    return all(_short(claim, CodeState.CHANGED, n) in done for n in range(1, RUNS))


# --- the tests that were there --------------------------------------------------------


def _keeps_tests(claim: CodeClaim, done: Done) -> Stage:
    """If lines of a test were removed: whether each original case still exists and passes with the change."""
    edited = tuple(change.path for change in claim.test if change.old is not None and touched_lines(change)[0])
    if not edited:
        return None
    plain = RunRequest(CodeState.PLAIN, edited, RUNS + 2)
    first, again = (RunRequest(CodeState.FIXED, edited, attempt) for attempt in (1, 2))
    if missing := _missing((plain, first), done):
        return missing
    if gone := next(_broken(done[plain], done[_short(claim, CodeState.CHANGED)]), None):
        return Refusal("weakens-tests", f"{gone.id} is skipped, or no longer exists")
    broken = {case.id for case in _broken(done[plain], done[first])}
    if broken and again not in done:  # a flaky case is no objection
        return (again,)
    still = broken & {case.id for case in _broken(done[plain], done[again])} if broken else set()
    return Refusal("weakens-tests", f"{min(still)} does not pass with the change as it stood") if still else None


# --- the other tests ------------------------------------------------------------------


def _others_stay(claim: CodeClaim, done: Done) -> Stage:
    before, after = RunRequest(CodeState.PLAIN, ()), RunRequest(CodeState.CHANGED, ())
    if missing := _missing((before, after), done):
        return missing
    for report, where in ((done[before], "on the base"), (done[after], "with the change")):
        if report.ended:
            how = "do not end" if report.ended == "time-out" else f"cannot be run ({report.ended})"
            return Refusal("other-tests", f"all tests of the repository {how} {where}")
    broken = tuple(_broken(done[before], done[after]))
    if not broken:
        return None
    # A flaky case was not broken by the change: it passes with it when run again, or also fails without it.
    # A file that no report names is looked up among all.
    files = tuple(sorted({case.file for case in broken}))
    for state in (CodeState.CHANGED, CodeState.PLAIN):
        again = RunRequest(state, () if "" in files else files, RUNS + 1)
        if again not in done:
            return (again,)
        passed = {case.id for case in done[again].cases if case.status == "passed"}
        broken = tuple(case for case in broken if (case.id in passed) == (state is CodeState.PLAIN))
        if not broken:
            return None
    return Refusal("breaks-tests", f"{broken[0].id} passed before, and does not with the change")


def _broken(before: SuiteReport, after: SuiteReport) -> Iterator[CaseResult]:
    """Cases that passed before, and now fail, are skipped or missing."""
    passed = {case.id for case in after.cases if case.status == "passed"}
    return (case for case in before.cases if case.status == "passed" and case.id not in passed)
