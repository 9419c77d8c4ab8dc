"""What commands share: options, and access to the composition root.

`--repo`, `--config` and `--json` are declared once, and accepted before or after the name of every command that uses
them: `ralph --json status` and `ralph status --json` are the same; the last one wins.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ralph_mission.cli.spelling import format_problem, spell, type_commands
from ralph_mission.errors import INTERRUPTED, UserError

if TYPE_CHECKING:
    from ralph_mission.adapters.report.loop_progress import PlainRunProgress
    from ralph_mission.adapters.storage.loop.live import LiveRun
    from ralph_mission.app.cycle import App
    from ralph_mission.config.settings import Config
    from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, Trigger
    from ralph_mission.mission.model.ledger import MemorySnapshot
    from ralph_mission.mission.ports import CycleProgress

Function = Callable[..., Any]
GIVEN = "ralph_mission.given"
"""The key of the shared options in click's context."""


class SharedOption(click.Option):
    """An option that may also stand before the name of its command."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Its value: given here, else before the command."""
        value, rest = super().handle_parse_result(ctx, opts, args)
        values = ctx.meta.setdefault(GIVEN, {})
        assert self.name is not None, "each has a name of its own"
        if ctx.get_parameter_source(self.name) is ParameterSource.COMMANDLINE:
            values[self.name] = value
        elif self.name in values and self.expose_value:
            value = ctx.params[self.name] = values[self.name]
        return value, rest


PATH = click.Path(path_type=Path)
SHARED: Mapping[str, Mapping[str, Any]] = {
    "--repo": {"type": PATH, "default": Path(), "metavar": "DIR", "help": "The repository.  [default: .]"},
    "--config": {"type": PATH, "metavar": "FILE", "help": "Settings to use instead of ralph.yml."},
    "--json": {"is_flag": True, "help": "Print one JSON document instead of text."},
}
"""The options of every command, and of the groups before them."""
NAMES = {"--repo": "repo", "--config": "config", "--json": "as_json"}


def _shared(flag: str) -> Callable[[Function], Function]:
    return click.option(flag, NAMES[flag], cls=SharedOption, **SHARED[flag])


repo_option, config_option, json_option = map(_shared, SHARED)
now_option = click.option("--now", metavar="ISO8601", help="Use this time.")


class SharedGroup(click.Group):
    """A group that takes the shared options for its commands."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        known = {parameter.name for parameter in self.params}
        self.params += [
            SharedOption([flag, NAMES[flag]], expose_value=False, **settings)
            for flag, settings in SHARED.items()
            if NAMES[flag] not in known
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The requested command; it refuses a shared option that it does not use."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            known = {parameter.name for parameter in command.params}
            for flag, parameter in NAMES.items():
                if parameter in ctx.meta.get(GIVEN, {}) and parameter not in known:
                    raise click.UsageError(f"{name} has no option {flag}", ctx)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`: first those of most people with a line each, then the names of the others."""
        super().format_commands(ctx, formatter)
        name_the_rest(formatter, [name for name, command in self.commands.items() if command.hidden])


def name_the_rest(formatter: click.HelpFormatter, names: Collection[str]) -> None:
    """Commands that a list in `--help` only names."""
    if names:
        with formatter.section("Less often"):
            formatter.write_text(", ".join(names))


def at_repository(command: Function) -> Function:
    """`--repo` and `--config`: the repository and its settings."""
    return repo_option(config_option(command))


def named_repo() -> Path | None:
    """The repository that the command line names, or None."""
    named: Path | None = click.get_current_context().meta.get(GIVEN, {}).get("repo")
    return named


def print_json(value: object) -> None:
    """The one JSON document of a command, on standard output.

    A runner that shows the output takes `##[` anywhere in a line for a command to itself.
    """
    click.echo(json.dumps(value, indent=2).replace("##[", "##\\u005b"))


def print_outcome(text: str, document: object, as_json: bool) -> None:
    """What came of a command: for people, or as its one JSON document."""
    if as_json:
        print_json(document)
    else:
        click.echo(text)


def print_moment(line: str, repo: Path, err: bool = False) -> None:
    """A line of what goes on for long, behind the present time."""
    from ralph_mission.safety.text import sanitise  # what is wrong may quote anything

    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"{stamp} {sanitise(type_commands(' '.join(line.split()), repo), 'log')}", err=err)


def read_settings(repo: Path, config: Path | None = None) -> Config:
    """The settings of a repository. Raises UserError."""
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.git.remote import read_shared
    from ralph_mission.config.reading import read

    return read(Git.open(repo), read_shared, config)


@contextmanager
def run_progress(repo: Path, kind: str) -> Iterator[PlainRunProgress]:
    """Progress of agents, on stderr and for `ralph logs` in another terminal."""
    from ralph_mission.adapters.report.loop_progress import show_progress
    from ralph_mission.app.run import PausingClock
    from ralph_mission.app.secrets import environment_secrets

    with watched_run(repo, kind) as live, show_progress(
        sys.stderr, environment_secrets(), PausingClock().now, live
    ) as progress:  # fmt: skip  # one line
        yield progress


@contextmanager
def watched_run(repo: Path, kind: str) -> Iterator[LiveRun]:
    """This process as other terminals see and control it (docs/loop.md)."""
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.storage.loop.live import NAMED, NOTICE, LiveRun
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.loop.model.spec import RunEvent

    try:
        home = Git.open(repo).state_dir
    except UserError:
        home = Path(os.devnull)  # commands that need a repository check themselves
    name, notify = os.environ.get(NAMED, ""), os.environ.get(NOTICE, "")
    live = LiveRun(home, kind, sys.argv[1:], environment_secrets(), name=name, notify=notify)
    code: int | None = None
    try:
        yield live
    except BaseException as error:
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else getattr(error, "exit_code", 1)
        if isinstance(error, UserError) and live.name:
            live.tell(RunEvent("ended", format_problem(error), code=code))
        raise
    finally:
        live.end(code)


Command = TypeVar("Command", bound=Callable[..., Any])
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Seconds(click.ParamType[float]):
    """`90`, `90s`, `15m`, `4h` or `1d`, as seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; click reports an invalid duration."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", str(value).strip())
        if not found or not float(found[1]):
            self.fail(f"{value!r} is not a duration: write seconds, or 15m, 4h, 1d", param, ctx)
        return float(found[1]) * UNITS[found[2]]


class Dollars(click.FloatRange):
    """An amount of USD. NaN is refused: no cost would ever exceed it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The amount; click reports an invalid one."""
        amount = float(super().convert(value, param, ctx))
        if not isfinite(amount):
            self.fail(f"{value!r} is not an amount of money", param, ctx)
        return amount


SECONDS = Seconds()

command_option = click.option(
    "--command", default="", metavar="CMD", help="A program as agent: prompt on stdin, last message on stdout."
)
model_option = click.option("--model", default="", metavar="NAME", help="The model of hats that name none.")


def _without_effect(context: click.Context, option: click.Parameter, given: bool) -> None:
    if given:
        click.echo("note: --allow-dirty no longer has an effect: sessions see what is committed", err=True)


allow_dirty_option = click.option(
    "--allow-dirty", is_flag=True, hidden=True, expose_value=False, callback=_without_effect
)
LIMITS = (
    click.option(
        "--max-iterations", "iterations", type=click.IntRange(min=1), metavar="N", help="Maximum number of sessions."
    ),
    click.option("--max-runtime", "runtime", type=SECONDS, metavar="S", help="Maximum time in seconds, or 15m, 4h."),
    click.option("--max-cost", "usd", type=Dollars(min=0), metavar="USD", help="Maximum spending."),
)


def limit_options(command: Command) -> Command:
    """The limits of a run, as `iterations`, `runtime` and `usd`."""
    for option in reversed(LIMITS):
        command = option(command)
    return command


TRIGGERS: dict[str, Trigger] = {
    "schedule": "cron",
    "workflow_dispatch": "manual",
    "repository_dispatch": "dispatch",
}
"""The trigger for each event of GitHub Actions; those in `SPOKEN` are a person's."""


def open_app(
    repo: Path,
    config: Path | None = None,
    forge: str = "auto",
    *,
    staged: bool = False,
    now: datetime | None = None,
    progress: CycleProgress | None = None,
) -> App:
    """Everything that a command may use. Raises UserError for an unusable repository or setting."""
    from ralph_mission.app.cycle import build_app

    return build_app(repo, config, forge, staged=staged, now=now, progress=progress, spell=partial(spell, repo=repo))


def recollection(app: App) -> MemorySnapshot:
    """The current memory. Raises UserError if there is none yet."""
    recalled = app.store.recall()
    if recalled is None:
        refuse_if_elsewhere(app)
        raise UserError("ralph has no memory of this repository yet", "run: ralph cycle")
    return recalled


def refuse_if_elsewhere(app: App) -> None:
    """Raises UserError if memory is not here but on the server that this clone came from."""
    branch = app.config.memory.branch
    if app.github is None and app.git.resolve(f"refs/remotes/origin/{branch}"):
        what = f"ralph's memory of this repository is on its server (origin/{branch})"
        hint = "to read it there: forge: {kind: github} in ralph.yml, with GITHUB_TOKEN and GITHUB_REPOSITORY set"
        raise UserError(what, hint, usage=True)


def run_cycle(app: App, *, staged: bool, force: bool) -> tuple[CycleReport, CycleSummary]:
    """One cycle, asked for on the command line or by an event of GitHub Actions. Raises UserError."""
    from ralph_mission.adapters.git.remote import SPOKEN
    from ralph_mission.app.cycle import FLEET_TERMS, refuse_links
    from ralph_mission.mission import cycle

    if not staged:
        refuse_links(app.git)
    event = os.environ.get("GITHUB_EVENT_NAME", "")
    by_person = event in SPOKEN or os.environ.get("RALPH_SPOKEN") == "true"  # or the gate decided so
    trigger: Trigger = "person" if by_person else TRIGGERS.get(event, "cli")
    if terms_text := os.environ.get(FLEET_TERMS):
        from ralph_mission.mission.fleet.model import parse_terms

        trigger = "person" if parse_terms(terms_text).spoke else trigger
    if trigger == "cli" and not (staged or force) and _is_answered_early(app):
        trigger = "person"
    request = cycle.CycleRequest(trigger=trigger, staged=staged, force=force)
    run = partial(cycle.run_cycle, app.ports, app.settings, request, app.secrets)
    return cycle.run_patiently(run, time.sleep) if by_person else run()


def _is_answered_early(app: App) -> bool:
    """Whether a person answered on the local forge since a cycle that is not due yet: typing it acts on the answer."""
    from ralph_mission.mission.cycle import is_word_waiting
    from ralph_mission.mission.memory.schedule import is_due
    from ralph_mission.mission.transaction import TransactionContext

    past = app.store.recall() if app.github is None else None
    if past is None or is_due(past.memory.header.next_due_at, app.clock.now(), app.settings.rhythm.longest):
        return False
    return is_word_waiting(TransactionContext(app.ports, app.settings, app.secrets))


def decide_again(app: App, cycle_id: str) -> list[str]:
    """How today's decisions on a recorded cycle differ from the recorded ones. Raises UserError if it is not
    recorded."""
    from ralph_mission.mission.model.cycle import Situation
    from ralph_mission.mission.operations.control import differences

    recorded = dict(app.recordings.load(cycle_id))
    situation, decisions = recorded.get("situation"), recorded.get("decisions")
    if not isinstance(situation, Situation) or not isinstance(decisions, tuple):
        raise UserError(f"cycle {cycle_id} ended before it had decided anything", "replay another one")
    return list(differences(situation, decisions, app.secrets))
