"""What runners of tests write, as it was captured from them, is understood."""

from __future__ import annotations

import json

import pytest

from ralph_mission.adapters.projects.suites import parse_report, unloaded
from ralph_mission.mission.proof.judge import CaseResult, is_assertion

ROOT = "/tmp/w"


def one(tool: str, text: str) -> CaseResult:
    (case,) = parse_report(tool, text, ROOT).cases
    return case


def mocha(err: dict[str, str], title: str = "works") -> str:
    case = {"title": title, "fullTitle": f"a {title}", "file": f"{ROOT}/test/a.js", "err": err}
    return json.dumps(
        {"stats": {}, "tests": [case], "pending": [], "failures": [case] if err else [], "passes": []}, indent=2
    )


STACK = """AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n1 !== 2\n
    at helper (node_modules/x/a.js:1:1)
    at Object.strictEqual (/tmp/w/node_modules/should/lib/should.js:9:1)
    at half (/tmp/w/lib/half.js:3:9)
    at Context.<anonymous> (/tmp/w/test/a.js:10:5)
    at process.processImmediate (node:internal/timers:476:21)"""


def test_mocha() -> None:
    case = one("mocha", mocha({"message": "Expected values", "stack": STACK}))
    assert (case.id, case.file, case.status, case.error) == (
        "test/a.js > a works",
        "test/a.js",
        "failed",
        "AssertionError",
    )
    assert case.frames == (("test/a.js", 10), ("lib/half.js", 3))
    assert one("mocha", mocha({})).status == "passed"


def test_an_expectation_of_supertest_is_an_assertion_and_a_type_error_none() -> None:
    case = one(
        "mocha", mocha({"stack": 'Error: expected 200 "OK", got 404 "Not Found"\n    at x (/tmp/w/test/a.js:1:2)'})
    )
    assert is_assertion(case)
    header = 'Error: expected "Location" header field\n    at x (/tmp/w/test/a.js:1:2)'
    assert is_assertion(one("mocha", mocha({"stack": header})))
    case = one("mocha", mocha({"stack": "Uncaught TypeError: x is not a function\n    at x (/tmp/w/lib/a.js:1:2)"}))
    assert (case.error, case.frames) == ("TypeError", (("lib/a.js", 1),))
    assert not is_assertion(case)


def test_a_hook_that_fails_is_set_up() -> None:
    assert one("mocha", mocha({"stack": "Error: no"}, '"before each" hook for "works"')).phase == "set-up"


def test_a_report_that_old_versions_of_mocha_print_is_found_behind_other_words() -> None:
    assert one("mocha", "deprecated\n" + mocha({})).status == "passed"


def jest(status: str, messages: list[str], assertions: bool = True, message: str = "") -> str:
    cases = [{"fullName": " a works", "status": status, "failureMessages": messages}] if assertions else []
    return json.dumps(
        {
            "testResults": [
                {"name": f"{ROOT}/a.test.ts", "status": status, "message": message, "assertionResults": cases}
            ]
        }
    )


@pytest.mark.parametrize("tool", ["jest", "vitest"])
def test_jest_and_vitest(tool: str) -> None:
    said = "AssertionError: expected 1 to be 2 // Object.is equality\n    at /tmp/w/a.test.ts:4:20"
    case = one(tool, jest("failed", [said]))
    assert (case.id, case.status, case.frames) == ("a.test.ts > a works", "failed", (("a.test.ts", 4),))
    assert is_assertion(case)
    assert one(tool, jest("pending", [])).status == "skipped"


def test_an_expectation_of_jest_is_an_assertion() -> None:
    said = (
        "Error: \x1b[2mexpect(\x1b[22m\x1b[31mreceived\x1b[39m).toBe(expected)\n    at Object.x (/tmp/w/a.test.ts:4:2)"
    )
    assert is_assertion(one("jest", jest("failed", [said])))


def test_a_file_that_cannot_be_loaded_is_a_case_that_never_ran() -> None:
    case = one("vitest", jest("failed", [], False, "Failed to load url ./x (resolved id: ./x). Does the file exist?"))
    assert (case.id, case.status, case.phase) == ("a.test.ts", "error", "load")


def test_node() -> None:
    text = (
        '<?xml version="1.0"?><testsuites><testcase name="half" time="0.1" classname="test">'
        '<failure type="testCodeFailure" message="1 !== 2">[Error [ERR_TEST_FAILURE]: 1 !== 2] {\n'
        "  cause: AssertionError [ERR_ASSERTION]: 1 !== 2\n      at TestContext.x (file:///tmp/w/test/a.js:5:10)\n"
        "</failure></testcase></testsuites>"
    )
    case = one("node", text)
    assert (case.id, case.status, case.frames) == ("half", "failed", (("test/a.js", 5),))
    assert is_assertion(case)


def test_cargo() -> None:
    text = """
     Running tests/it.rs (target/debug/deps/it-0f)

running 2 tests
test good ... ok
test bad ... FAILED

failures:

---- bad stdout ----
thread 'bad' panicked at tests/it.rs:7:5:
assertion `left == right` failed
  left: 1
"""
    good, bad = parse_report("cargo", text, ROOT).cases
    assert (good.id, good.status) == ("tests/it.rs good", "passed")
    assert (bad.error, bad.frames, bad.message) == ("panic", (("tests/it.rs", 7),), "assertion `left == right` failed")
    assert is_assertion(bad)


def test_go() -> None:
    events = [
        {"Action": "output", "Package": "m/a", "Test": "TestX", "Output": "    x_test.go:9: got 1, want 2\n"},
        {"Action": "fail", "Package": "m/a", "Test": "TestX"},
        {"Action": "fail", "Package": "m/a"},
        {"Action": "output", "Package": "m/b", "Output": "FAIL m/b [build failed]\n"},
        {"Action": "fail", "Package": "m/b"},
    ]
    failed, broken = parse_report("go", "\n".join(map(json.dumps, events)), ROOT).cases
    assert (failed.id, failed.frames) == ("m/a.TestX", (("x_test.go", 9),))
    assert is_assertion(failed)
    assert (broken.id, broken.phase) == ("m/b", "load")


def test_cases_of_one_name_are_told_apart() -> None:
    case = {"id": "t::a", "file": "t.py", "status": "passed"}
    found = parse_report("pytest", json.dumps({"cases": [case, case]}), ROOT)
    assert [case.id for case in found.cases] == ["t::a", "t::a #2"]


@pytest.mark.parametrize("tool", ["pytest", "mocha", "jest", "vitest", "node", "cargo", "go"])
@pytest.mark.parametrize("text", ["", "[]", '{"cases": 1}', "<a", "{", "null"])
def test_what_is_no_report_is_refused(tool: str, text: str) -> None:
    if tool == "go" and not text:
        return
    with pytest.raises(ValueError):
        parse_report(tool, text, ROOT)


def test_a_run_that_ended_before_its_report_says_why() -> None:
    report = unloaded("Error: Cannot find module './x'")
    assert report.ended
    assert report.cases[0].phase == "load"
