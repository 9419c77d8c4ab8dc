"""Tells the runner of GitHub Actions what came of a command: the step's outputs and the job's summary page.

The runner names two files in the environment; where it names none, nothing is written. What stands
in them is read by the runner as commands, so every value is fenced by a word that nobody can guess.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from ralph_mission.mission.account import CycleReport, CycleSummary
from ralph_mission.mission.model import Verdict
from ralph_mission.report.agent_summary import Document
from ralph_mission.report.agent_summary import agent_outputs as agent_outputs
from ralph_mission.report.lines import RequestCounts
from ralph_mission.report.step_summary import Places, step_summary, trouble_summary

SUMMARY, OUTPUT, TEMP = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "RUNNER_TEMP"
Page = Callable[[Document, Places], str]


def tell_runner(
    report: CycleReport, telling: CycleSummary, environ: Mapping[str, str], asked: RequestCounts | None = None
) -> None:
    """What came of a cycle. Raises OSError when the runner's files cannot be written."""
    if not environ.get(SUMMARY) and not environ.get(OUTPUT):
        return
    page = step_summary(report, telling, places(environ), asked)
    _append(environ.get(SUMMARY), page)
    _append(environ.get(OUTPUT), _heredoc({**outputs(report), "summary-path": _copy_page(page, environ)}))


def tell_agent(told: Document, environ: Mapping[str, str], page: Page) -> None:
    """What came of an agent's work or review: `told` as `--json` prints it. Raises OSError."""
    if not environ.get(SUMMARY) and not environ.get(OUTPUT):
        return
    text = page(told, places(environ))
    _append(environ.get(SUMMARY), text)
    _append(environ.get(OUTPUT), _heredoc({**agent_outputs(told), "summary-path": _copy_page(text, environ)}))


def tell_trouble(error: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """What went wrong, who must act and what next: `error` as `--json` prints it."""
    with suppress(OSError):  # the error is told on stderr too, and must not be hidden by another one
        _append(environ.get(SUMMARY), trouble_summary(error))


def outputs(report: CycleReport) -> dict[str, str]:
    """The outputs of the action, by name. An action that was allowed counts as taken, except in a staged cycle.

    A cycle that did not run for real has no urgency.
    """
    allowed = sum(line.verdict is Verdict.ALLOW for line in report.decisions)
    return {
        "cycle": str(report.cycle),
        "urgency": report.urgency.value if report.outcome == "done" and not report.staged else "",
        "next-due-at": f"{report.next_due_at:%Y-%m-%dT%H:%M:%SZ}" if report.next_due_at else "",
        "missions-active": str(sum(mission.status.active for mission in report.missions)),
        "actions-taken": str(0 if report.staged else allowed),
    }


def places(environ: Mapping[str, str]) -> Places:
    """Where links lead, from what the runner says of the repository and of the action's own."""
    server, own = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    action, ref = environ.get("RALPH_ACTION_REPOSITORY", ""), environ.get("RALPH_ACTION_REF", "")
    return Places(
        repository=f"{server}/{own}" if server and own else "",
        rules=f"{server}/{action}/blob/{ref}/docs/rules.md" if server and action and ref else "",
    )


def _heredoc(values: Mapping[str, str]) -> str:
    fence = f"ralph-{secrets.token_hex(16)}"
    return "".join(f"{name}<<{fence}\n{value}\n{fence}\n" for name, value in values.items())


def _append(path: str | None, text: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


def _copy_page(page: str, environ: Mapping[str, str]) -> str:
    """A copy for later steps, which the runner removes with its job: the summary's own file they never see."""
    if not environ.get(TEMP):
        return ""
    handle, path = tempfile.mkstemp(prefix="ralph-summary-", suffix=".md", dir=environ[TEMP])
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page)
    return path
