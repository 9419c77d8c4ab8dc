"""`ralph verdict`: whether what a reviewer let stand was good enough; that is what thresholds are learned from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ralph_mission.cli.options import json_option, print_json, repo_option


@click.command()
@click.argument("word", type=click.Choice(["accept", "reject"]))
@click.argument("run", required=False, default="")
@repo_option
@json_option
def verdict(word: str, run: str, repo: Path, as_json: bool) -> None:
    """Say whether the work of RUN (the last one) is good enough with the issues that were left in it."""
    from ralph_mission.stores.loop import place, verdicts

    name, said = verdicts.say(place.folder(repo, os.environ).parent, word == "accept", run)
    if as_json:
        return print_json({"run": name, "kind": said.kind, "left": said.left, "accepted": said.accepted})
    return click.echo(f"{name}: {said.kind} with {said.left} issues left is {word}ed")
