"""`ralph fleet due`: the one gate of a fleet. One job asks it every 15 minutes, with nothing but PyYAML installed.

In a workflow it books the starts on a branch of the control repository before it announces them: the output `shards`
is the input of the matrices. Anywhere else it only prints.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph_mission.adapters.git.remote import RepositoryPlace, acts_on_github, place
from ralph_mission.adapters.report.fleet import fleet_page
from ralph_mission.adapters.storage.fleet import ControlBranch, FleetReader, FleetScan, keep_state, show_page
from ralph_mission.cli.spelling import moment, read_words
from ralph_mission.config.fleet import FLEET, INSTALLATION, FleetConfig, load_fleet
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import (
    FleetPlan,
    FleetStart,
    FleetState,
    FleetVerdicts,
    HeldRepository,
    count_verdicts,
    parse_state,
    render_state,
    render_terms,
)
from ralph_mission.mission.fleet.plan import FleetOverview, look_over, plan_fleet
from ralph_mission.safety.front_matter import MAX_BYTES
from ralph_mission.values import dataclass

TOKEN = "RALPH_CONTROL_TOKEN"  # writes the control repository; GITHUB_TOKEN reads all of them
SHOWN = 20  # lines of each list
Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FleetQuestion:
    """The arguments of `ralph fleet due`."""

    repo: str = "."
    config: str | None = None
    now: str | None = None
    json: bool = False
    page: Path | None = None


def parse_fleet_question(arguments: list[str]) -> FleetQuestion | None:
    """The arguments, if they need no real parser; None for help and mistakes."""
    words = read_words(arguments, ("repo", "config", "now", "page"))
    if words is None:
        return None
    page = Path(words["page"]) if "page" in words else None
    return FleetQuestion(words.get("repo", "."), words.get("config"), words.get("now"), "json" in words, page)


def answer_fleet(question: FleetQuestion) -> int:
    """Print which repositories are due, and in a workflow book their starts. Raises UserError; then nothing is
    started."""
    now = moment(question.now) or datetime.now(UTC)
    config = read_fleet(Path(question.repo), question.config)
    here = bool(config.folders) and not (config.asks_github and os.environ.get("GITHUB_REPOSITORY"))
    for line in tell_left_out(config, here):
        print(line, file=sys.stderr)
    scan, plan = _ask_here(config, question, now) if here else ask_fleet(config, now)
    server = "" if here else place(os.environ).server
    overview = look_over(scan.headers, plan, now, config.limits.fleet.usd, server)
    if question.page:  # before anything is booked: what fails here starts nothing
        _write_page(question.page, overview)
    if acts_on_github(os.environ) and not here:
        page = fleet_page(overview)
        before, plan = plan, book(plan, scan, now, page)
        _tell_workflow(plan, scan, config)
        booked = bool(plan.starts) and bool(scan.control.issue_id)  # and shown by the same request
        # Of two gates, the one that booked first makes the page.
        if plan is before and not booked and (plan.starts or scan.control.issue_id):
            _show_page(page, scan)
    print(json.dumps(_document(plan, scan)) if question.json else "\n".join(describe(plan, scan)))
    return 0


def read_fleet(repo: Path, config: str | None = None) -> FleetConfig:
    """The fleet.yml of a checkout. Raises UserError (usage)."""
    path = Path(config) if config else repo / FLEET
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode("utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})", "write one: ralph fleet init", usage=True) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8", "save it as UTF-8", usage=True) from None
    return load_fleet(text, str(path))


def tell_left_out(config: FleetConfig, here: bool) -> list[str]:
    """Print a line for each entry of fleet.yml that is handled elsewhere: on GitHub, or on this machine."""
    if not here:
        return [f"note: {one} is left out: ralph fleet run looks after folders" for one in config.folders]
    named = (*config.names, *(f"org:{one}" for one in config.owners), *(f"topic:{one}" for one in config.topics))
    every = (*named, *([INSTALLATION] if config.installation else []))
    return [f"note: {one} is left out: the workflow ralph-fleet looks after it, on GitHub" for one in every]


def ask_fleet(config: FleetConfig, now: datetime) -> tuple[FleetScan, FleetPlan]:
    """One scan of GitHub, and its plan. Raises UserError."""
    scan = FleetReader(place(os.environ), config, now).scan()
    state = FleetState() if scan.control.state is None else parse_state(scan.control.state)
    return scan, plan_fleet(scan.headers, config.limits, state, now, scan.rate)


def _ask_here(config: FleetConfig, question: FleetQuestion, now: datetime) -> tuple[FleetScan, FleetPlan]:
    """One scan of this machine's folders, and its plan. Raises UserError."""
    from ralph_mission.app.fleet import look_at_folders

    headers, plan = look_at_folders(
        config, Path(question.config).parent if question.config else Path(question.repo), now
    )
    return FleetScan(headers, ControlBranch(), None, 0), plan


def _write_page(file: Path, overview: FleetOverview) -> None:
    from ralph_mission.adapters.report.fleet_page import page

    try:
        file.write_text(page(overview), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}", "name another file with --page") from None


def book(plan: FleetPlan, scan: FleetScan, now: datetime, page: str = "") -> FleetPlan:
    """The plan, once its starts are booked and `page` is shown; without starts if another gate was first.

    Raises UserError.
    """
    if not plan.starts:
        return plan
    if keep_state(_control(os.environ), scan.control, render_state(plan.state), now, page):
        return plan
    lost = tuple(HeldRepository(one.name, "another gate was first") for one in plan.starts)
    return replace(plan, starts=(), waiting=(*lost, *plan.waiting))


def _show_page(page: str, scan: FleetScan) -> None:
    """Nothing depends on the page: a failure is one line of the log."""
    try:
        show_page(_control(os.environ), scan.control, page)
    except UserError as problem:
        print(f"note: {problem.what}; {problem.next_step}", file=sys.stderr)


def _control(environ: Environment) -> RepositoryPlace:
    token = environ.get(TOKEN, "")
    if not token:
        raise UserError(f"{TOKEN} is not set", "the action sets it, from the job's own token", usage=True)
    return replace(place(environ), credential=token)


def describe(plan: FleetPlan, scan: FleetScan) -> list[str]:
    """The answer for people: a line for each repository that needs one."""
    requests = f"; {scan.requests} requests" if scan.requests else ""
    headline = f"{len(plan.starts)} of {len(scan.headers)} repositories to start{requests}"
    return [headline, *_listed("start", [(one.name, _reason(one)) for one in plan.starts]), *_list_problems(plan)]


def _list_problems(plan: FleetPlan) -> list[str]:
    lists = (("held", plan.waiting), ("failing", plan.failing))
    return [line for head, listed in lists for line in _listed(head, [(one.name, one.reason) for one in listed])]


def _listed(head: str, rows: list[tuple[str, str]]) -> list[str]:
    lines = [f"{head}: {name}: {reason}" for name, reason in rows[:SHOWN]]
    return [*lines, f"{head}: and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else lines


def _reason(one: FleetStart) -> str:
    late = f", due for {one.late_seconds // 60} min" if not one.spoke else ""
    return "a person spoke" if one.spoke else f"{one.urgency.value} urgency{late}"


def _document(plan: FleetPlan, scan: FleetScan) -> dict[str, Any]:
    return {
        "repositories": len(scan.headers),
        "requests": scan.requests,
        "starts": [asdict(one) | {"urgency": one.urgency.value} for one in plan.starts],
        "held": [asdict(one) for one in plan.waiting],
        "failing": [asdict(one) for one in plan.failing],
    }


def _tell_workflow(plan: FleetPlan, scan: FleetScan, config: FleetConfig) -> None:
    """Write the step's outputs and summary. Every value is one line of JSON, so that no line can be forged."""
    verdicts = count_verdicts(scan.headers)
    outputs = {
        "shards": [json.dumps([_entry(one, verdicts, config.extends) for one in plan.starts])] if plan.starts else [],
        "started": len(plan.starts),
        "parallel": plan.parallel,
        "runner": list(config.runner),
    }
    _append("GITHUB_OUTPUT", [f"{name}={json.dumps(value)}" for name, value in outputs.items()])
    _append("GITHUB_STEP_SUMMARY", [f"    {line}" for line in ["", *describe(plan, scan)]])  # indented: no mark-up


def _entry(one: FleetStart, verdicts: FleetVerdicts, extends: str) -> dict[str, Any]:
    """A job of the matrix. `fleet` is passed to the cycle unchanged, as RALPH_FLEET."""
    owner, _, name = one.name.partition("/")
    fields = {"repository": one.name, "owner": owner, "name": name, "minutes": one.minutes}
    return {**fields, "fleet": render_terms(one, verdicts, extends)}


def _append(variable: str, lines: list[str]) -> None:
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
