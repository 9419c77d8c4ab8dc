"""A plugin of pytest that writes down what passed and what failed how: `-p tests.guards.telling --guard-told FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ASSERTION, REACTION, BROKEN = "assertion", "reaction", "broken"
NO_REACTION = (ImportError, SyntaxError, NameError, AttributeError, TypeError)
"""What a clumsy replacement raises: it says nothing of the guard."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--guard-told", metavar="FILE", help="where to write how each test ended, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--guard-told"):
        config.pluginmanager.register(_Teller(Path(file)))


def kind_of(error: BaseException, when: str) -> str:
    """Whether a failure is a test's own word, or at least the product's: not that of a patch that broke something."""
    if isinstance(error, BaseExceptionGroup):
        kinds = {kind_of(one, when) for one in error.exceptions}
        return next(kind for kind in (BROKEN, REACTION, ASSERTION) if kind in kinds)
    if isinstance(error, NO_REACTION) or when != "call":
        return BROKEN
    return ASSERTION if isinstance(error, AssertionError | pytest.fail.Exception) else REACTION


class _Teller:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.passed: list[str] = []
        self.failed: list[dict[str, str]] = []
        self.skipped: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)
        elif report.skipped:
            self.skipped[report.nodeid] = _reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A whole module may be skipped."""
        if report.skipped:
            self.skipped[report.nodeid] = _reason(report)

    def pytest_exception_interact(self, call: pytest.CallInfo, report: pytest.TestReport) -> None:
        error = call.excinfo.value
        said = (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:200]
        self.failed.append({"test": report.nodeid, "kind": kind_of(error, call.when), "said": said})

    def pytest_sessionfinish(self) -> None:
        self.file.write_text(json.dumps({"passed": self.passed, "failed": self.failed, "skipped": self.skipped}))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why it was skipped; that of an expected failure is none of a skip, but nothing was proven either."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return said.removeprefix("Skipped: ")[:200]
