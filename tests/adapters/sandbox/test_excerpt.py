"""Which lines of a failed command's output are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.excerpt import (
    complaints,
    excerpt,
    find_cause,
    is_untrusted,
    is_worse,
    not_set_up,
    output_lines,
    ran_no_test,
)

NPM = b"""npm error code EUSAGE
npm error
npm error The `npm ci` command can only install with an existing package-lock.json
npm error A complete log of this run can be found in: /tmp/x/_logs/debug-0.log
"""
YARN = b"""yarn install v1.22.22
info No lockfile found.
warning package.json: No license field
[1/4] Resolving packages...
error Couldn't find package "left-padd" on the "npm" registry.
info Visit https://example.org for documentation about this command.
"""
PYTEST = b"""..F
=================================== FAILURES ===================================
E       assert 1 == 2
FAILED tests/test_a.py::test_a - assert 1 == 2
"""


@pytest.mark.parametrize(
    "output, first",
    [
        (NPM, "npm error code EUSAGE"),
        (YARN, 'error Couldn\'t find package "left-padd" on the "npm" registry.'),
        (PYTEST, "=================================== FAILURES ==================================="),
    ],
)
def test_it_begins_where_the_output_says_what_went_wrong(output, first):
    assert excerpt(b"", output).splitlines()[0] == first


def test_a_log_that_will_be_gone_is_not_quoted():
    assert "complete log" not in excerpt(b"", NPM)
    assert "can only install" in excerpt(b"", NPM)


TAP = b"""yarn run v1.22.22
$ node --test
TAP version 13
# Subtest: subtracts
not ok 1 - subtracts
  ---
  error: '3 == 4'
  ...
"""
UV = b"""Using CPython 3.11
error: Failed to download `mypy==1.20.0`
  cause: Request failed after 3 retries
  cause: Failed to fetch: `https://pypi.example/mypy.whl`
  cause: error sending request for url (https://pypi.example/mypy.whl)
  cause: client error (Connect)
  cause: invalid peer certificate: UnknownIssuer
"""


@pytest.mark.parametrize(
    "output, cause",
    [
        (UV, "Failed to download `mypy==1.20.0`: invalid peer certificate: UnknownIssuer"),
        (UV.replace(b"==1.20.0", b"=" * 200), "UnknownIssuer"),
        (NPM, "The `npm ci` command can only install with an existing package-lock.json"),
        (YARN, 'Couldn\'t find package "left-padd" on the "npm" registry.'),
        (PYTEST, "FAILED tests/test_a.py::test_a - assert 1 == 2"),
        (b"error Command failed with exit code 1.\n" + TAP, "not ok 1 - subtracts"),
        (b"lint: bad\nmake: *** [Makefile:3: lint] Error 1\n", "lint: bad"),
        (b"make: *** [Makefile:3: lint] Error 1\n", "make: *** [Makefile:3: lint] Error 1"),
        (b"a\nb\n", "b"),
        (b"", ""),
    ],
)
def test_the_cause_is_one_line_with_the_last_of_a_chain_of_causes(output, cause):
    assert find_cause(b"", output).endswith(cause)
    assert is_untrusted(find_cause(b"", output)) is ("Unknown" in cause)


def test_without_a_telling_line_the_last_ones_are_shown():
    assert excerpt(b"\n".join(b"line %d" % number for number in range(9)), b"") == "\n".join(
        f"line {number}" for number in range(4, 9)
    )


def test_the_folder_of_the_clone_and_what_steers_a_terminal_are_left_out():
    assert excerpt(b"", b"\x1b[31merror\x1b[0m in /tmp/c/a.py\n", Path("/tmp/c")) == "error in a.py"


def test_nothing_is_nothing():
    assert excerpt(b"", b"\n \n") == ""


def tsc(name: str, file: int) -> str:
    return f"src/{file}.ts(1,20): error TS2307: Cannot find module '{name}' or its corresponding type declarations."


@pytest.mark.parametrize(
    "line",
    [
        "src/a.ts(1,20): error TS2307: Cannot find module '{}' or its corresponding type declarations.",
        "Error: Cannot find module '{}'",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '{}' imported from /x/y.js",
        "  1:20  error  Unable to resolve path to module '{}'  import/no-unresolved",
        'a.py:1: error: Cannot find implementation or library stub for module named "{}"  [import-not-found]',
        "E   ModuleNotFoundError: No module named '{}'",
        "error[E0463]: can't find crate for `{}`",
        "a.go:4:2: no required module provides package {}; to add it:",
    ],
)
def test_packages_that_are_missing_in_many_places_are_a_set_up_that_is_missing(line):
    told = not_set_up(line.format(name) for name in ("react", "next", "swr", "react", "next"))
    assert told == "not set up: react, next, swr cannot be found, in 5 places"


def test_a_generated_client_that_is_missing_is_a_set_up_that_is_missing():
    line = "src/a.ts(1,2): error TS2305: Module '\"@prisma/client\"' has no exported member 'Chain'."
    assert not_set_up([line] * 5) == "not set up: @prisma/client cannot be found, in 5 places"
    assert not_set_up([line.replace("@prisma/client", "./client")] * 5) == ""


@pytest.mark.parametrize(
    "lines",
    [
        [tsc("react", 1), tsc("next", 2)],  # few places: perhaps they are not declared
        [tsc("left-pad", number) for number in range(9)],  # one package
        [tsc(f"./part{number}", number) for number in range(9)],  # files of the project's own
        [tsc(f"@/part{number}", number) for number in range(9)],
        [f"src/{number}.ts(1,2): error TS2322: Type 'a' is not assignable" for number in range(9)],
    ],
)
def test_what_is_missing_in_the_code_is_no_missing_set_up(lines):
    assert not_set_up(lines) == ""


def test_the_same_complaints_on_other_lines_and_after_other_times_are_not_worse():
    before = complaints(["a.ts(3,1): error TS1: no", "1 failed in 3.20s", "ok"])
    assert not is_worse(before, complaints(["a.ts(9,4): error TS1: no", "1 failed in 0.99s"]))
    assert not is_worse(before, {})


@pytest.mark.parametrize("more", ["b.ts(3,1): error TS1: no", "a.ts(3,1): error TS1: no"])
def test_a_complaint_more_is_worse(more):
    before = ["a.ts(3,1): error TS1: no"]
    assert is_worse(complaints(before), complaints([*before, more]))


def test_a_deprecation_that_a_test_fails_for_is_a_complaint_and_a_warning_of_a_package_is_none() -> None:
    lines = output_lines(b"E   DeprecationWarning: anyio.abc goes\nnpm deprecated glob@7\n", b"")
    assert list(complaints(lines)) == ["E   DeprecationWarning: anyio.abc goes"]


@pytest.mark.parametrize(
    ("output", "none"),
    [
        ("============ no tests ran in 0.01s ============", True),
        ("collected 0 items", True),
        ("Ran 0 tests in 0.000s\n\nOK", True),
        ("No tests found, exiting with code 0", True),
        ("  0 passing (1ms)", True),
        ("# tests 0\n# pass 0", True),
        ("?   \texample.org/a\t[no test files]", True),
        ("ok  \texample.org/a\t0.002s [no tests to run]", True),
        ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed", True),
        ("?   \texample.org/a\t[no test files]\nok  \texample.org/b\t0.2s", False),
        ("running 0 tests\n\nrunning 3 tests\ntest result: ok. 3 passed; 0 failed", False),
        ("collected 3 items\n\ntests/test_a.py sss\n\n============ 3 skipped in 0.01s ============", True),
        ("Test Suites: 1 skipped, 0 of 1 total\nTests:       3 skipped, 3 total", True),
        ("created: 2/2 workers\n2 workers [0 items]\n\n======= no tests ran in 0.3s ======", True),
        ("3 passed\nrunning 0 tests\ntest result: ok. 0 passed; 0 failed", True),
        ("\texample.com/x\t\tcoverage: 0.0% of statements", True),
        ("?   \texample.com/x\t[no test files]\nintegration: PASS 12 of 12", False),
        ('{"Output":"?   \\tx\\t[no test files]\\n"}\n{"Action":"skip","Package":"x"}', True),
        ("Finished in 0.0001 seconds\n0 examples, 0 failures", True),
        ("0 runs, 0 assertions, 0 failures, 0 errors, 0 skips", True),
        ("No tests executed!", True),
        ("[INFO] No tests to run.", True),
        ("\x1b[31mNo test files found, exiting with code 0\x1b[39m", True),
        ("packages/a test: No test files found, exiting with code 0", True),
        ("?   \tx\t[no test files]\n1..2\nok 1 adds\nok 2 subs", False),
        ("?   \tx\t[no test files]\nTests 4 OK", False),
        ("  0 passing (1ms)\n\u2139 tests 3\n\u2139 pass 3", False),
        ("running 0 tests\n100% tests passed, 0 tests failed out of 7", False),
        ("> Task :test NO-SOURCE\nBUILD SUCCESSFUL", True),
        ("Ran 3 tests in 0.001s\n\nOK (skipped=3)", True),
        ("running 2 tests\ntest a ... ignored\ntest result: ok. 0 passed; 0 failed; 2 ignored", True),
        ("running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out", True),
        ("ok  \tx\t(cached)\n?   \ty\t[no test files]", False),
        ("ok  \tx\t0.1s\tcoverage: 0.0% of statements [no tests to run]", True),
        ("\n  0 passing (1ms)\n  3 pending", True),
        ("collected 3 items\n3 passed in 0.1s", False),
        ("all good", False),
        ("", False),
    ],
)
def test_a_runner_that_says_it_ran_no_test_is_believed(output: str, none: bool) -> None:
    assert ran_no_test(output) == none
