"""Which runs prove a claim, and which speak against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from ralph_mission.mission.proof.claim import CodeClaim, CodeState
from ralph_mission.mission.proof.judge import (
    CaseResult,
    ProofRun,
    ProofVerdict,
    RunRequest,
    SuiteReport,
    is_assertion,
    judge_proof,
)
from tests.mission.proof.test_claim import CHANGE, CLAIM, NEW_TEST, OLD_TEST

FILE = "tests/test_app.py"
OLD = CaseResult(f"{FILE}::test_two", FILE, "passed")
GOOD = CaseResult(f"{FILE}::test_three", FILE, "passed")
BAD = replace(GOOD, status="failed", error="AssertionError", message="assert 1 == 1.5", frames=((FILE, 9),))
NEW = replace(GOOD, id=f"{FILE}::test_four")
OTHER = CaseResult("tests/test_b.py::test_b", "tests/test_b.py", "passed")
Answer = Callable[[RunRequest], SuiteReport]


def honest(request: RunRequest) -> SuiteReport:
    """What the runs of a claim that is true tell."""
    mended = request.state in (CodeState.CHANGED, CodeState.CHANGED_NOTED)
    if request.state is CodeState.PLAIN:
        return SuiteReport((OLD, OTHER))
    return SuiteReport((OLD, GOOD if mended else BAD, *(() if request.files else (OTHER,))))


def judged(answer: Answer, claim: CodeClaim = CLAIM) -> tuple[ProofVerdict, list[RunRequest]]:
    runs: list[ProofRun] = []
    while not isinstance(step := judge_proof(claim, runs), ProofVerdict):
        assert len(runs) < 20
        runs += [ProofRun(request, answer(request)) for request in step]
    return step, [run.request for run in runs]


def but(told: Mapping[tuple[str, int] | str, SuiteReport]) -> Answer:
    """Honest but in some runs, by state and attempt or by the state alone."""

    def answer(request: RunRequest) -> SuiteReport:
        key = (str(request.state), request.attempt) if request.files else f"all {request.state}"
        return told.get(key) or (told.get(str(request.state)) if request.files else None) or honest(request)

    return answer


def report(*cases: CaseResult, ended: str = "", connected: tuple[str, ...] = ()) -> SuiteReport:
    return SuiteReport(cases, ended, connected)


def test_a_true_claim_is_proven_by_the_cases_that_fail_on_the_base() -> None:
    verdict, asked = judged(honest)
    assert verdict.proven
    assert verdict.cases == (BAD,)
    short = [request.state for request in asked if request.files]
    assert short.count(CodeState.BASE) == 3
    assert short.count(CodeState.CHANGED) + short.count(CodeState.CHANGED_NOTED) == 3


LOAD = replace(BAD, status="error", phase="load")
CASES = [
    ("passes-on-base", {"base": report(OLD, GOOD)}),
    ("passes-on-base", {"base": report(OLD, replace(GOOD, status="skipped"))}),
    ("passes-on-base", {"base": report()}),
    ("time-out", {"base": report(ended="time-out")}),
    ("time-out", {"base": report(replace(BAD, error="Failed", message="Timeout (>20.0s) from pytest-timeout."))}),
    ("time-out", {"base": report(replace(BAD, error="Error", message="Timeout of 2000ms exceeded."))}),
    ("cannot-run", {"base": report(ended="bash: pytest: not found")}),
    ("import", {"base": report(replace(LOAD, error="ModuleNotFoundError", message="No module named 'x'"))}),
    ("import", {"base": report(replace(LOAD, error="Error", message="Cannot find module './x'"))}),
    ("import", {"base": report(replace(BAD, error="ImportError", message="cannot import name 'x'"))}),
    ("syntax", {"base": report(replace(LOAD, error="SyntaxError", message="invalid syntax"))}),
    ("syntax", {"base": report(replace(LOAD, error="", message="Transform failed with 1 error"))}),
    ("wrong-reason", {"base": report(replace(BAD, phase="set-up", error="KeyError"))}),
    ("wrong-reason", {"base": report(replace(BAD, error="KeyError", message="'x'"))}),
    ("wrong-reason", {"base": report(replace(BAD, frames=((FILE, 9), ("other.py", 3))))}),
    ("network", {"base": report(replace(BAD, connected=("example.org",)))}),
    ("network", {"base": report(BAD, connected=("example.org",))}),
    ("network", {"base": report(replace(BAD, error="Error", message="getaddrinfo ENOTFOUND example.org"))}),
    ("reads-source", {"base": report(replace(BAD, sources=("app.py",)))}),
    ("reads-source", {"base": replace(report(OLD, BAD), sources=("app.js",))}),
    ("flaky", {("base", 2): report(OLD, GOOD)}),
    ("flaky", {("base", 3): report(OLD, replace(BAD, error="MultipleFailures"))}),
    ("flaky", {"base": report(OLD, BAD, NEW), ("base", 3): report(OLD, BAD, replace(NEW, status="failed"))}),
    ("still-fails", {"changed": report(OLD, BAD)}),
    ("still-fails", {("changed", 2): report(OLD, BAD)}),
    ("still-fails", {"changed": report(OLD)}),
    ("still-fails", {"changed": report(OLD, replace(GOOD, status="skipped"))}),
    ("breaks-tests", {"base": report(OLD, BAD, NEW), "changed": report(OLD, GOOD, replace(NEW, status="failed"))}),
    ("breaks-tests", {("changed", 2): report(OLD, GOOD, replace(NEW, status="error"))}),
    ("network", {"changed": report(OLD, replace(GOOD, connected=("example.org",)))}),
    ("reads-source", {"changed": report(OLD, replace(GOOD, sources=("app.py",)))}),
    ("reads-source", {"noted": report(OLD, GOOD)}),
    ("reads-source", {"changed-noted": report(OLD, BAD)}),
    ("breaks-tests", {"all changed": report(OLD, GOOD), ("changed", 4): report(), ("plain", 4): report(OTHER)}),
    ("breaks-tests", {"all changed": report(OLD, GOOD, replace(OTHER, status="skipped")), ("changed", 4): report(),
                      ("plain", 4): report(OTHER)}),
    ("other-tests", {"all plain": report(ended="time-out")}),
    ("other-tests", {"all changed": report(ended="time-out")}),
]  # fmt: skip  # one table


@pytest.mark.parametrize(("rule", "told"), CASES)
def test_what_the_runs_speak_against(rule: str, told: Mapping[tuple[str, int] | str, SuiteReport]) -> None:
    verdict, _ = judged(but(told))
    assert verdict.refusal is not None
    assert verdict.refusal.rule == rule


def test_a_refusal_ends_it_before_dearer_runs() -> None:
    _, asked = judged(but({"base": report(OLD, GOOD)}))
    assert [request.state for request in asked] == [CodeState.BASE]


EDITED = replace(CLAIM, test=(replace(CLAIM.test[0], old=OLD_TEST, new=NEW_TEST.replace(b"== 1\n", b"== 1.0\n")),))


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({}, ""),
        ({"fixed": report()}, "weakens-tests"),  # it contradicts what was tested
        ({("fixed", 1): report()}, ""),  # it comes and goes
        ({"changed": report(GOOD)}, "weakens-tests"),  # it is gone
        ({"changed": report(GOOD, replace(OLD, status="skipped"))}, "weakens-tests"),
    ],
)
def test_a_test_that_is_edited_has_to_pass_as_it_stood(
    told: Mapping[tuple[str, int] | str, SuiteReport], rule: str
) -> None:
    verdict, _ = judged(but({"plain": report(OLD), "fixed": report(OLD), **told}), EDITED)
    assert (verdict.refusal.rule if verdict.refusal else "") == rule
    assert CodeState.FIXED not in {request.state for request in judged(honest)[1]}  # where lines were only added


def test_a_test_that_comes_and_goes_was_not_broken_by_the_change() -> None:
    verdict, asked = judged(but({"all changed": report(OLD, GOOD), ("changed", 4): report(OTHER)}))
    assert verdict.proven
    assert asked[-1] == RunRequest(CodeState.CHANGED, ("tests/test_b.py",), 4)


def test_a_test_that_fails_without_the_change_too_was_not_broken_by_it() -> None:
    told = {"all changed": report(OLD, GOOD), ("changed", 4): report(), ("plain", 4): report()}
    verdict, asked = judged(but(told))
    assert verdict.proven
    assert asked[-1] == RunRequest(CodeState.PLAIN, ("tests/test_b.py",), 4)


def test_what_failed_before_is_neither_proof_nor_an_objection() -> None:
    ill = CaseResult(f"{FILE}::test_ill", FILE, "failed", "KeyError", "'x'")

    def answer(request: RunRequest) -> SuiteReport:
        return replace(found := honest(request), cases=(ill, *found.cases))

    verdict, asked = judged(answer)
    assert verdict.proven
    assert verdict.cases == (BAD,)
    assert RunRequest(CodeState.PLAIN, (FILE,)) in asked


def test_named_cases_alone_are_the_proof() -> None:
    odd = replace(BAD, id=f"{FILE}::test_new_option", error="TypeError")
    told = {"base": report(OLD, BAD, odd), "noted": report(OLD, BAD, odd)}
    assert judged(but(told))[0].refusal
    verdict, _ = judged(but(told), replace(CLAIM, cases=("test_three",)))
    assert verdict.proven


def test_a_claim_may_not_add_a_case_that_stays_red_though_it_names_others() -> None:
    red = replace(BAD, id=f"{FILE}::test_never", error="TypeError")
    told = {name: report(OLD, BAD, red) for name in ("base", "noted")}
    told |= {name: report(OLD, GOOD, red) for name in ("changed", "changed-noted")}
    verdict, _ = judged(but(told), replace(CLAIM, cases=("test_three",)))
    assert verdict.refusal is not None
    assert (verdict.refusal.rule, "test_never" in verdict.refusal.why) == ("breaks-tests", True)


@pytest.mark.parametrize(
    ("frames", "rule"),
    [
        (((FILE, 9), ("app.py", 2)), ""),
        (((FILE, 9), ("other.py", 2)), "wrong-reason"),
        (((FILE, 9),), "wrong-reason"),
        ((), ""),
    ],
)
def test_a_named_exception_has_to_come_from_the_named_code(frames: tuple[tuple[str, int], ...], rule: str) -> None:
    bad = replace(BAD, error="KeyError", message="'x'", frames=frames)
    told = {"base": report(OLD, bad), "noted": report(OLD, bad)}
    verdict, _ = judged(but(told), replace(CLAIM, expected="KeyError"))
    assert (verdict.refusal.rule if verdict.refusal else "") == rule


@pytest.mark.parametrize(("case", "rule"), [(GOOD, "wrong-file"), (BAD, "")])
def test_a_change_of_other_files_that_is_enough_shows_another_culprit(case: CaseResult, rule: str) -> None:
    claim = replace(CLAIM, change=(*CLAIM.change, replace(CHANGE, path="other.py")))
    verdict, _ = judged(but({"others": report(OLD, case)}), claim)
    assert (verdict.refusal.rule if verdict.refusal else "") == rule


@pytest.mark.parametrize(
    ("error", "message", "frames", "expected"),
    [("Error", "should not be called", (("test/a.js", 3),), True), ("Failed", "it said no", ((FILE, 3),), True),
     ("Error", "expected body 'a\nb',\ngot 'c'", (), True),
     ("Error", "should not be called", (("lib/a.js", 3),), False),
     ("Error", "ENOENT: no such file", (("test/a.js", 3),), False), ("TypeError", "x", (("test/a.js", 3),), False),
     ("Error", "Cannot find module './x'", (("test/a.js", 3),), False), ("Error", "socket hang up", (), False)],
)  # fmt: skip  # one table
def test_a_test_may_say_itself_that_what_it_expects_does_not_hold(
    error: str, message: str, frames: tuple[tuple[str, int], ...], expected: bool
) -> None:
    assert is_assertion(replace(BAD, error=error, message=message, frames=frames)) is expected


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        (BAD, ""),
        (replace(BAD, error="KeyError", message="'x'", frames=((FILE, 9), ("other.py", 2))), ""),
        (replace(BAD, error="KeyError", message="'x'", frames=((FILE, 9), ("third.py", 2))), "wrong-reason"),
        (replace(BAD, frames=((FILE, 9), ("third.py", 2))), "wrong-reason"),
    ],
)
def test_of_a_change_that_nobody_explained_any_of_its_code_may_fail(bad: CaseResult, rule: str) -> None:
    claim = replace(CLAIM, change=(*CLAIM.change, replace(CHANGE, path="other.py")), guessed=True)
    verdict, asked = judged(but({"base": report(OLD, bad), "noted": report(OLD, bad)}), claim)
    assert (verdict.refusal.rule if verdict.refusal else "") == rule
    assert CodeState.OTHERS not in {request.state for request in asked}
