"""`ralph init`: what a repository needs so that Ralph looks after it. Overwrites nothing of a person's unasked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ralph_mission.cli import init_agents, units, workflow
from ralph_mission.cli import server as host
from ralph_mission.cli.checks import program
from ralph_mission.cli.options import json_option, print_json, repo_option
from ralph_mission.cli.overwriting import Planned, fate, no_link, refuse, write
from ralph_mission.cli.typed import typed
from ralph_mission.cli.uninstall import Fate, read, remove, untouched
from ralph_mission.config import NAME, Config, load
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import Trouble
from ralph_mission.wakers import WAKERS
from ralph_mission.wakers.facts import EVENT


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. `wake` None: nothing was said about it."""

    runner: str | None
    wake: str | None
    service: bool
    server: bool
    action: str | None
    units: Path | None
    agents: tuple[str, ...] = ()  # work, review, publish: workflows beside the loop

    @property
    def told(self) -> bool:
        """Whether more was asked for than a ralph.yml: one that is there then stays as it is."""
        asked = (self.runner, self.wake, self.action, self.units)
        return self.service or self.server or bool(self.agents) or any(each is not None for each in asked)


@click.command()
@repo_option
@click.option("--runner", metavar="LABELS", help="Labels of your runner, for the workflow; default: self-hosted.")
@click.option("--wake", type=click.Choice(["auto", *WAKERS]), help="What wakes the next cycle.")
@click.option("--service", is_flag=True, help="A systemd service that runs `ralph watch`, without GitHub Actions.")
@click.option("--work", is_flag=True, help="A workflow that gives labelled issues to an agent.")
@click.option("--review", is_flag=True, help="A workflow in which an agent reviews what ralph proposes.")
@click.option("--publish", is_flag=True, help="A workflow that publishes texts which somebody approved.")
@click.option("--action", metavar="OWNER/NAME@COMMIT", help="The action that the workflow uses.")
@click.option("--units", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Where units are written.")
@click.option("--server", is_flag=True, help="A tunnel to a database, a role that only reads, a runner.")
@click.option("--uninstall", is_flag=True, help="Remove what init wrote and nobody has edited since.")
@click.option("--keep", is_flag=True, help="Leave files that are yours as they are, without asking.")
@click.option("--yes", is_flag=True, help="Overwrite (or with --uninstall: remove) edited files without asking.")
@json_option
def init(
    repo: Path,
    runner: str | None,
    wake: str | None,
    service: bool,
    work: bool,
    review: bool,
    publish: bool,
    action: str | None,
    folder: Path | None,
    server: bool,
    uninstall: bool,
    keep: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write a commented ralph.yml that fits this repository, and on GitHub the workflow that runs it."""
    if keep and yes:
        raise Trouble("--keep and --yes say opposite things", "give one of them", usage=True)
    git = Git.open(repo)
    top = git.work_tree
    if top is None:
        raise Trouble(f"{repo} is bare: there is no place for {NAME}", "run it in a clone, commit and push", usage=True)
    agents = tuple(mode for mode, wanted in (("work", work), ("review", review), ("publish", publish)) if wanted)
    wish = Wish(runner, wake, service, server, action, folder.absolute() if folder else None, agents)
    if uninstall:
        _tell_removed(list(remove(_places(top, wish), git, yes)), as_json, repo)
    else:
        _install(git, top, wish, "keep" if keep else "overwrite" if yes else "", as_json, repo)


def _install(git: Git, top: Path, wish: Wish, answer: str, as_json: bool, repo: Path) -> None:
    from ralph_mission.stores.recordings import keep_out_of_git

    no_link(top / NAME, top)
    present = read(top / NAME) or ""
    stays = wish.told or untouched(present)  # what was chosen there
    settings, names = _settings(top, wish, load(present).schedule.wake if stays else "auto")
    first = fate(settings, answer, git, top)
    config = load(present if first.state == "kept" else settings.text)
    plan = [settings, *_workflow(git, top, wish), *_agents(git, top, wish), *_units(top, wish)]
    fates = [first, *(fate(planned, answer, git, top) for planned in plan[1:])]  # every question before any deed
    refuse(fates)
    steps = list(_steps(git, top, wish, fates, config))
    write(plan, fates)
    keep_out_of_git(git)
    _tell(fates, names, steps, as_json, repo)


# --- what would be written ------------------------------------------------------------


def _settings(top: Path, wish: Wish, wake: str) -> tuple[Planned, list[str]]:
    from ralph_mission.cli.template import render
    from ralph_mission.observers.recipes import fitting

    recipes = fitting([path.name for path in top.iterdir()])
    here = [recipe for recipe in recipes if shutil.which(program(recipe.settings["run"]))]
    text = render(here, [recipe for recipe in recipes if recipe not in here], wish.wake or wake)
    load(text)  # what we write, we must be able to read
    return Planned(top / NAME, text, keep=wish.told), [recipe.settings["name"] for recipe in here]


def _workflow(git: Git, top: Path, wish: Wish) -> Iterator[Planned]:
    present = read(top / workflow.PLACE) or ""
    action = workflow.action_of(wish.action, present)
    labels = workflow.labels_of(wish.runner) if wish.runner is not None else workflow.labels_in(present)
    if action and _for_github(git, wish):
        yield Planned(top / workflow.PLACE, workflow.render(action, labels))


def _agents(git: Git, top: Path, wish: Wish) -> Iterator[Planned]:
    if _for_github(git, wish):
        yield from init_agents.planned(top, wish.agents, wish.action, wish.runner)


def _for_github(git: Git, wish: Wish) -> bool:
    """Whether a workflow is wanted: asked for, or unasked on a clone of a repository on GitHub."""
    asked = bool(wish.agents) or any(option is not None for option in (wish.wake, wish.runner, wish.action))
    return asked or (not (wish.service or wish.server) and bool(workflow.hosted(git)))


def _units(top: Path, wish: Wish) -> Iterator[Planned]:
    texts = _unit_texts(wish)
    if texts:
        yield from (Planned(_folder(top, wish) / name, text) for name, text in texts.items())
        yield Planned(top / units.ENVIRONMENT, units.CREDENTIALS, keep=True, private=True)
    if wish.server:
        yield from (Planned(_folder(top, wish) / name, text) for name, text in host.files().items())
        yield Planned(top / host.SETTINGS, host.TUNNEL_SETTINGS, keep=True, private=True)


def _unit_texts(wish: Wish) -> dict[str, str]:
    return {**(units.timer() if wish.wake == "timer" else {}), **(units.service() if wish.service else {})}


def _folder(top: Path, wish: Wish) -> Path:
    return wish.units or top / units.FOLDER


def _places(top: Path, wish: Wish) -> Iterator[Path]:
    yield from (top / NAME, top / workflow.PLACE, top / units.ENVIRONMENT, top / host.SETTINGS)
    yield from init_agents.places(top)
    yield from (_folder(top, wish) / name for name in {**units.timer(), **units.service(), **host.files()})


# --- what a person is told ------------------------------------------------------------


def _steps(git: Git, top: Path, wish: Wish, fates: Sequence[Fate], config: Config) -> Iterator[str]:
    """What only a person can do, one line each."""
    flow = next((each for each in fates if each.place == top / workflow.PLACE), None)
    if wish.wake and config.schedule.wake != wish.wake:
        yield f"in {NAME}: schedule: {{wake: {wish.wake}}}"
    if wish.service and config.forge.kind == "auto" and workflow.hosted(git):
        yield f"in {NAME}: forge: {{kind: github}}, or `ralph watch` keeps issues in files here"
    if flow and flow.state == "kept" and EVENT not in (read(flow.place) or ""):
        yield f"in {workflow.PLACE}, which is yours: listen to {EVENT} and use the action (docs/action.md)"
    if flow:
        yield f"commit {init_agents.committed(top, fates)} to the default branch and push them"
        yield "Settings, Actions, General: allow GitHub Actions to create pull requests"
        yield from init_agents.steps(top, fates, config)
    elif _for_github(git, wish):
        yield f"{workflow.PLACE} is not written, because {workflow.UNKNOWN}: {workflow.NAMED}"
    yield from _unit_steps(top, wish)


def _unit_steps(top: Path, wish: Wish) -> Iterator[str]:
    if wish.server:
        yield from host.steps(_folder(top, wish), top)
    if _unit_texts(wish):
        yield f"write the credentials into {top / units.ENVIRONMENT}"
    for wanted, texts in ((wish.wake == "timer", units.timer), (wish.service, units.service)):
        if wanted:
            yield from units.commands(texts(), _folder(top, wish), top)
    if wish.server or _unit_texts(wish):
        yield "to run them while nobody is logged in: loginctl enable-linger"


def _tell(fates: Sequence[Fate], names: Sequence[str], steps: Sequence[str], as_json: bool, repo: Path) -> None:
    settings = fates[0]
    wrote = str(settings.place) if settings.state in ("new", "replaced") else None
    if as_json:
        print_json({"wrote": wrote, "commands": names, "files": _files(fates), "steps": steps})
        return
    for each in fates:
        click.echo(_line(each))
    if wrote:
        click.echo(f"checks switched on: {', '.join(names) or 'none'}")
    click.echo("/.ralph/ stands in .git/info/exclude: ralph's working files stay out of git")
    for step in steps:
        click.echo(typed(f"to do: {step}", repo))
    click.echo(typed("next: ralph doctor\nthen: ralph cycle --staged", repo))


LINES = {
    "new": "wrote {}",
    "replaced": "wrote {} anew",
    "unchanged": "unchanged {}",
    "kept": "kept {}: it is yours",
    "removed": "removed {}",
    "cleaned": "took /.ralph/ out of {}",
}


def _line(decided: Fate) -> str:
    saved = f"; what stood there: {decided.copy}" if decided.copy else ""
    return LINES[decided.state].format(decided.place) + saved


def _files(fates: Sequence[Fate]) -> list[dict[str, str]]:
    return [
        {"path": str(each.place), "state": each.state, **({"copy": str(each.copy)} if each.copy else {})}
        for each in fates
    ]


def _tell_removed(fates: Sequence[Fate], as_json: bool, repo: Path) -> None:
    if as_json:
        print_json({"files": _files(fates)})
        return
    for each in fates:
        click.echo(_line(each))
    if not fates:
        click.echo("there is nothing of ralph init here")
    if any(each.state == "kept" for each in fates):
        click.echo(typed("what was edited since stays; to remove that too: ralph init --uninstall --yes", repo))
    if any(each.state == "removed" and each.place.suffix in (".timer", ".service") for each in fates):
        click.echo("if they were switched on: systemctl --user disable --now the ralph-wake@ or ralph-watch@ units")
