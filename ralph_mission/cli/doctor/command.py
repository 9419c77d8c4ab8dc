"""`ralph doctor`: what is there, what is wrong, and how to fix it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ralph_mission.cli.command_hints import type_commands
from ralph_mission.cli.doctor.checks import checkup
from ralph_mission.cli.doctor.line import DoctorLine
from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.safety.text import sanitise

MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
COLOURS = {"ok": "green", "note": "yellow", "wrong": "red"}


@click.command()
@at_repository
@json_option
def doctor(repo: Path, config: Path | None, as_json: bool) -> int:
    """Check what ralph needs here. Exit code 0 when nothing is wrong, 1 otherwise."""
    checks = checkup(repo, config)
    healthy = all(check.status != "wrong" for check in checks)
    if as_json:
        print_json({"healthy": healthy, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            click.echo(type_commands(_line(check), repo))
        click.echo(type_commands("nothing is wrong" if healthy else "fix what is WRONG, then: ralph doctor", repo))
    return 0 if healthy else 1


def _line(check: DoctorLine) -> str:
    mark = click.style(MARKS[check.status], fg=COLOURS[check.status])
    mend = f"\n      -> {sanitise(check.mend, 'log')}" if check.mend else ""
    return f"{mark} {check.name}: {sanitise(check.found, 'log')}{mend}"
