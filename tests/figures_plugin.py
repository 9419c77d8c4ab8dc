"""What the suite counts, summed over its processes: shown at the end, and written to a file with `--figures FILE`.

Enumerations count for themselves (`tests.figures`); attack cases and benign inputs are counted by their marks.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import figures as table

ATTACK, BENIGN = "attack", "benign"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", metavar="FILE", help="write what enumerations and attack cases counted, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Marks(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        numbers = {number for mark in item.iter_markers(ATTACK) for number in mark.args}
        item.user_properties += [(ATTACK, number) for number in sorted(numbers)]
        item.user_properties += [(BENIGN, mark.args[0]) for mark in item.iter_markers(BENIGN)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["tables"] = table.told(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    table.add(node.config, getattr(node, "workeroutput", {}).get("tables", {}))


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if file := config.getoption("--figures"):
        Path(file).write_text(json.dumps(table.told(config), indent=2, sort_keys=True) + "\n")
    for name, one in table.tables_of(config).items():
        if name not in (ATTACK, BENIGN):
            for line in one.lines:
                terminalreporter.write_line(line)


class _Marks:
    """Counts inputs by their marks, in the one process that hears of all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            for kind, name in report.user_properties:
                if kind in (ATTACK, BENIGN):
                    figures = {"inputs": 1, "held": int(report.passed)}
                    table.add(self.config, {kind: {f"{name:02}" if kind == ATTACK else name: figures}})
