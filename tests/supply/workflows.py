"""The workflows and the action as data, for whoever has something to say about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.action.runner import ROOT

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    """A document; `on` stays a word."""
    document: dict[str, Any] = yaml.load(path.read_text(), yaml.BaseLoader)
    return document


FLOWS = {path.stem: read(path) for path in FILES}
ACTION = read(ROOT / "action.yml")


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each job as `workflow/job`."""
    for name, flow in FLOWS.items():
        for job, told in flow["jobs"].items():
            yield f"{name}/{job}", told


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each step of every job and of the action."""
    for name, job in jobs():
        for step in job["steps"]:
            yield name, step
    for step in ACTION["runs"]["steps"]:
        yield "action", step
