"""`ralph fleet`: many repositories, looked after from one control repository.

What `ralph fleet init` writes there, and what `ralph fleet doctor` looks at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import current_token, place
from ralph_mission.adapters.storage.fleet import LABEL
from ralph_mission.cli.doctor import DoctorLine, Get, attempt, unseen, wrong
from ralph_mission.cli.fleet import ask_fleet, read_fleet
from ralph_mission.cli.options import (
    SharedGroup,
    at_repository,
    json_option,
    now_option,
    print_json,
    print_outcome,
    repo_option,
)
from ralph_mission.cli.setup.files import (
    HOSTED,
    LABELS,
    UNKNOWN,
    ActionReference,
    Planned,
    SetupFile,
    action_of,
    labels_of,
    name_action,
    present_action,
    read_text,
    refuse_differing,
    render_template,
    runs_on,
    write_planned,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.config.fleet import FLEET, FleetConfig
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.plan import REQUESTS
from ralph_mission.words import count_noun

FILE = click.Path(path_type=Path, dir_okay=False)
WORKFLOWS = (".github/workflows/ralph-fleet.yml", ".github/workflows/ralph-fleet-cycle.yml")
CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
TOKEN_ACTION = "actions/create-github-app-token@1b10c78c7865c340bc4f6099eb2f838309f1e8c3 # v3.1.1"
UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"
VARIABLE, SECRET = "RALPH_APP_CLIENT_ID", "RALPH_APP_PRIVATE_KEY"
PERMISSIONS = {
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "actions": "read",
    "checks": "read",
    "statuses": "read",
    "security_events": "read",
}
"""What a job's token is asked for, by the names of GitHub's API."""
SHOWN = 20  # lines of repositories
STEPS = (
    "a GitHub App with contents, issues and pull requests: write; actions, checks, commit statuses and code scanning "
    "alerts: read (Settings, Developer settings, GitHub Apps); install it in the repositories and in this one",
    f"its client id as the variable {VARIABLE}, its private key as the secret {SECRET} "
    "(Settings, Secrets and variables, Actions)",
    "commit these files to the default branch and push",
)
"""What only a person can do."""


@click.group(cls=SharedGroup)
def fleet() -> None:
    """Look after many repositories from one control repository."""


@fleet.command()
@now_option
@click.option("--page", type=FILE, metavar="FILE", help="Write a page of all of them, in HTML.")
@at_repository
@json_option
def due(now: str | None, page: Path | None, repo: Path, config: Path | None, as_json: bool) -> int:
    """Show which repositories are due, the most urgent first; changes nothing outside a workflow."""
    from ralph_mission.cli.fleet import FleetQuestion, answer_fleet

    return answer_fleet(FleetQuestion(str(repo), str(config) if config else None, now, as_json, page))


@fleet.command()
@repo_option
@click.option("--action", metavar="OWNER/NAME@COMMIT", help="The action that the workflows use.")
@click.option("--runner", metavar="LABELS", help="Labels of the runner for cycles; default: self-hosted.")
@click.option("--force", is_flag=True, help="Overwrite workflows that differ.")
@json_option
def init(repo: Path, action: str | None, runner: str | None, force: bool, as_json: bool) -> None:
    """Write fleet.yml and the workflows into this control repository."""
    from ralph_mission.cli.setup.init import LINES

    planned = write_fleet(repo, action, runner, force)
    if as_json:
        print_json({"files": [{"path": str(file.place), "state": state} for file, state in planned], "steps": STEPS})
        return
    for file, state in planned:
        click.echo(LINES[state].format(file.place))
    for step in STEPS:
        click.echo(f"to do: {step}")
    click.echo(type_commands("next: ralph fleet doctor", repo))


@fleet.command()
@at_repository
@json_option
def doctor(repo: Path, config: Path | None, as_json: bool) -> int:
    """Check what a fleet needs. Exit code 1 if something is wrong."""
    from ralph_mission.cli.doctor.checks import report_checks

    checks = check_fleet(repo, str(config) if config else None, datetime.now(UTC))
    return report_checks(tuple(checks), "ralph fleet doctor", repo, as_json)


@fleet.command()
@at_repository
@json_option
def run(repo: Path, config: Path | None, as_json: bool) -> None:
    """Run each due cycle in the folders of fleet.yml, and write a page.

    For one machine without GitHub. The page is .ralph/fleet.html beside fleet.yml.
    """
    from ralph_mission.adapters.report import to_document
    from ralph_mission.adapters.report.fleet import headline
    from ralph_mission.adapters.report.progress import safe
    from ralph_mission.app.fleet import page_of, run_fleet
    from ralph_mission.cli.fleet import read_fleet, tell_left_out

    named, base = read_fleet(repo, str(config) if config else None), config.parent if config else repo
    if not named.folders:
        advice = "name some, such as ./site; what is on GitHub is looked after there"
        raise UserError("fleet.yml names no folder", advice, usage=True)
    for line in tell_left_out(named, here=True):
        click.echo(safe(line), err=True)
    overview = run_fleet(named, base, lambda line: click.echo(safe(line), err=as_json))
    print_outcome(f"{headline(overview)}\nwrote {page_of(base)}", to_document(overview), as_json)


def write_fleet(repo: Path, action: str | None, runner: str | None, force: bool) -> list[Planned]:
    """Write fleet.yml and the two workflows; a fleet.yml that is there stays. Raises UserError (usage)."""
    top = Git.open(repo).work_tree
    if top is None:
        raise UserError(f"{repo} is bare", "run it in a clone of the control repository", usage=True)
    labels = labels_of(runner) if runner else LABELS
    reference = action_of(action, read_text(top / WORKFLOWS[0]) or "")
    if reference is None:
        raise UserError(UNKNOWN, name_action().replace("ralph init", "ralph fleet init"), usage=True)
    settings = SetupFile(top / FLEET, render_template(FLEET, RUNNER=f"[{', '.join(labels)}]"), keep=True)
    files = [settings, *(SetupFile(top / name, text) for name, text in render_fleet_workflows(reference).items())]
    planned = [(file, file.state(top, force)) for file in files]
    if runner and planned[0][1] == "kept":
        raise UserError(f"{FLEET} is there already, and stays as it is", "write runner into it yourself", usage=True)
    refuse_differing(planned)
    write_planned(planned)
    return planned


def render_fleet_workflows(action: ActionReference) -> Mapping[str, str]:
    """Place -> text of the control workflow and the one that it calls."""
    words = {"GATE": runs_on(HOSTED), "CHECKOUT": CHECKOUT, "TOKEN_ACTION": TOKEN_ACTION, "ACTION": str(action)}
    words["UPLOAD"] = UPLOAD
    return {name: render_template(Path(name).name, **words) for name in WORKFLOWS}


def check_fleet(repo: Path, config: str | None, now: datetime) -> Iterator[DoctorLine]:
    """Every check, in order; GitHub is asked where a token and a repository are named. Nothing is written."""
    try:
        settings = read_fleet(repo, config)
    except UserError as problem:
        yield wrong("fleet.yml", problem)
        return
    yield DoctorLine("fleet.yml", "ok", _summary(settings))
    if settings.folders and not settings.asks_github:
        return
    yield from _workflows(repo)
    if os.environ.get("GITHUB_REPOSITORY") and (os.environ.get("GITHUB_TOKEN") or os.environ.get("GITHUB_APP_ID")):
        for check in (check_permissions(), _on_github(settings, now), check_control_repository()):
            yield from attempt("GitHub", check, "")
    else:
        hint = (
            "set GITHUB_REPOSITORY to the control repository, and GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY to the "
            "app's, or GITHUB_TOKEN to a token that reads the fleet"
        )
        yield DoctorLine("GitHub", "note", "was not asked", hint)


def _summary(settings: FleetConfig) -> str:
    named = [
        count_noun(len(listed), noun)
        for listed, noun in ((settings.names, "name"), (settings.folders, "folder"))
        if listed
    ]
    listed = [f"org:{one}" for one in settings.owners] + [f"topic:{one}" for one in settings.topics]
    every = [*named, *listed, *(["the app's installation"] if settings.installation else [])]
    budget = settings.limits.fleet
    bounds = [
        f"{value:g} {unit}"
        for value, unit in ((budget.usd, "USD"), (budget.pulls, "pull requests"), (budget.minutes, "minutes"))
        if value is not None
    ]
    return f"{', '.join(every)}; a day may cost {', '.join(bounds) or 'what it takes: no budget is set'}"


def _workflows(repo: Path) -> Iterator[DoctorLine]:
    missing = [name for name in WORKFLOWS if not (repo / name).is_file()]
    if missing:
        yield DoctorLine("workflows", "wrong", f"{', '.join(missing)} is missing", "run: ralph fleet init")
        return
    present = {name: read_text(repo / name) or "" for name in WORKFLOWS}
    named = present_action(present[WORKFLOWS[0]])
    expected = render_fleet_workflows(named) if named else {}
    others = [name for name, text in present.items() if text.replace("\r\n", "\n") != expected.get(name)]
    if not named:
        what = f"{WORKFLOWS[0]} has no step that asks who is due"
        yield DoctorLine("workflows", "wrong", what, "run: ralph fleet init --force")
    elif others:
        what = f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} not as ralph fleet init writes it"
        yield DoctorLine("workflows", "note", what, "compare: ralph fleet init --force, then git diff")
    else:
        yield DoctorLine("workflows", "ok", "both are there")


def _on_github(settings: FleetConfig, now: datetime) -> Iterator[DoctorLine]:
    scan, plan = ask_fleet(settings, now)
    control = place(os.environ).repository
    found = f"{_repositories(len(scan.headers))}, {len(plan.starts)} to start now"
    yield DoctorLine("GitHub", "ok" if scan.headers else "wrong", f"{found}; {scan.requests} requests for it")
    if rate := scan.rate:
        jobs = int(rate.limit * (1 - settings.limits.reserve)) // REQUESTS
        yield DoctorLine("rate limit", "ok", f"{rate.limit} requests an hour: {jobs} cycles an hour with the reserve")
    branch = "the branch ralph-fleet holds the state" if scan.control.head else "no state yet: the first start makes it"
    yield DoctorLine("control repository", "ok", f"{control}: {branch}")
    for one in plan.failing[:SHOWN]:
        status = "wrong" if one.name in settings.names else "note"  # a list may hold what nobody asked for
        yield DoctorLine(one.name, status, one.reason, "or leave it out: exclude in fleet.yml")
    if len(plan.failing) > SHOWN:
        yield DoctorLine("more", "note", f"{_repositories(len(plan.failing) - SHOWN)} more cannot be looked after")


def check_permissions() -> Iterator[DoctorLine]:
    """Whether the app's installation in the control repository has what the workflows ask for; with less they get no
    token. Those of other owners are not looked at."""
    control = place(os.environ)
    app = control.credential
    if isinstance(app, str):
        hint = "set GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY instead of GITHUB_TOKEN, then: ralph fleet doctor"
        yield DoctorLine("permissions", "note", "those of the app cannot be seen with this token", hint)
        return
    current_token(app)
    permissions = getattr(app, "permissions", {})
    missing = [
        f"{name}: {level}" for name, level in PERMISSIONS.items() if permissions.get(name) not in (level, "write")
    ]
    if missing:
        what = f"the app's installation in {control.repository} has no {', '.join(missing).replace('_', ' ')}"
        hint = "the app's settings on GitHub, Permissions & events; then accept the new ones in its installation"
        yield DoctorLine("permissions", "wrong", what, hint)
    else:
        yield DoctorLine(
            "permissions", "ok", f"the app's installation in {control.repository} has what the workflows ask for"
        )


def check_control_repository() -> Iterator[DoctorLine]:
    """The control repository: what its workflow needs there."""
    from ralph_mission.adapters.forges.github.api import Api, ReadCache
    from ralph_mission.cli.doctor.github import asking, describe_workflow, no_entry

    get = asking(Api(place(os.environ), ReadCache(None, ""), staged=True))
    status, answer = get("")
    if status != 200 or not isinstance(answer, dict):
        yield no_entry(status)
        return
    if not answer.get("has_issues", True):
        hint = "Settings → General → Features → Issues"
        yield DoctorLine("page", "wrong", "the control repository's issues are switched off", hint)
    elif get(f"/labels/{LABEL}")[0] == 404:
        hint = "leave it as it is then: the page is found by it"
        yield DoctorLine("page", "note", f"the label {LABEL} does not exist yet; the first page creates it", hint)
    else:
        yield DoctorLine("page", "ok", f"the label {LABEL} is there")
    for kind, name in (("variables", VARIABLE), ("secrets", SECRET)):
        yield _setting(get, kind, name)
    status, flows = get("/actions/workflows?per_page=100")
    if status != 200:
        yield unseen("workflow", "the Actions tab")
        return
    states = {Path(str(one.get("path"))).name: str(one.get("state")) for one in flows.get("workflows", ())}
    for name in WORKFLOWS:
        yield describe_workflow(states, Path(name).name, "commit and push what ralph fleet init wrote")


def _setting(get: Get, kind: str, name: str) -> DoctorLine:
    """A variable or secret: of the control repository, or of its organization."""
    noun, place = kind.removesuffix("s"), "Settings → Secrets and variables → Actions"
    status, _ = get(f"/actions/{kind}/{name}")
    if status == 404:
        there, answer = get(f"/actions/organization-{kind}?per_page=100")
        listed = [str(one.get("name")) for one in answer[kind]] if there == 200 else []
        if name in listed:
            status = 200
        elif there != 200 or answer.get("total_count", 0) > len(listed):
            return unseen(f"{noun} {name}", place)  # the organization may have it
    if status == 200:
        return DoctorLine(noun, "ok", f"{name} is set")
    if status == 404:
        value = "the app's client id" if kind == "variables" else "the app's private key"
        return DoctorLine(noun, "wrong", f"{name} is not set", f"{place}: set it to {value}")
    return unseen(f"{noun} {name}", place)


def _repositories(number: int) -> str:
    return "1 repository" if number == 1 else f"{number} repositories"
