"""`ralph init`: a commented `ralph.yml` that fits what the repository holds. Overwrites nothing unasked."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from ralph_mission.cli.checks import program
from ralph_mission.cli.options import json_option, print_json, repo_option
from ralph_mission.cli.typed import typed
from ralph_mission.gateways.git import Git
from ralph_mission.mission.trouble import Trouble


@click.command()
@repo_option
@click.option("--yes", is_flag=True, help="Overwrite an existing ralph.yml without asking.")
@json_option
def init(repo: Path, yes: bool, as_json: bool) -> None:
    """Write a commented ralph.yml that fits this repository, and keep .ralph/ out of git."""
    from ralph_mission.cli.template import render
    from ralph_mission.config import NAME, load
    from ralph_mission.observers.recipes import fitting
    from ralph_mission.stores.recordings import keep_out_of_git

    git = Git.open(repo)
    if git.work_tree is None:
        raise Trouble(f"{repo} is bare: there is no place for {NAME}", "run it in a clone, commit and push", usage=True)
    place = git.work_tree / NAME
    _may_write(place, yes)
    recipes = fitting([path.name for path in git.work_tree.iterdir()])
    here = [recipe for recipe in recipes if shutil.which(program(recipe.settings["run"]))]
    text = render(here, [recipe for recipe in recipes if recipe not in here])
    load(text)  # what we write, we must be able to read
    place.write_text(text, encoding="utf-8")
    keep_out_of_git(git)
    _tell(place, [recipe.settings["name"] for recipe in here], as_json, repo)


def _may_write(place: Path, yes: bool) -> None:
    if place.is_symlink():  # what it leads to may be anyone's
        raise Trouble(f"{place.name} is a symbolic link", "remove it, then run again", usage=True)
    if yes or not place.exists():
        return
    if not sys.stdin.isatty():
        raise Trouble(f"{place.name} is there already", "to overwrite it: ralph init --yes", usage=True)
    if not click.confirm(f"{place.name} is there already. Overwrite it?", err=True):
        raise Trouble("nothing was written", f"edit {place.name}, or overwrite it: ralph init --yes")


def _tell(place: Path, names: list[str], as_json: bool, repo: Path) -> None:
    if as_json:
        print_json({"wrote": str(place), "commands": names})
        return
    click.echo(f"wrote {place}")
    click.echo(f"checks switched on: {', '.join(names) or 'none'}")
    click.echo("/.ralph/ stands in .git/info/exclude: ralph's working files stay out of git")
    click.echo(typed("next: ralph doctor\nthen: ralph cycle --staged", repo))
