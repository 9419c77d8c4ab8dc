"""The click application: a table of commands, each imported only when it is used."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import shell_complete

from ralph_mission import __version__
from ralph_mission.cli.options import SharedGroup
from ralph_mission.errors import UserError

COMMANDS = {
    "init": ("ralph_mission.cli.setup.init:init", "Write ralph.yml, and the workflow or units that run it."),
    "doctor": (
        "ralph_mission.cli.doctor.checks:doctor",
        "Check what ralph needs here, and how to get the rest.",
    ),
    "config": ("ralph_mission.cli.setup.show:config_group", "Show the settings in force, and where each comes from."),
    "cycle": ("ralph_mission.cli.mission.cycle:cycle", "Run one cycle: look, decide, act, remember."),
    "watch": ("ralph_mission.cli.mission.wakes:watch", "Keep cycling here, whenever a cycle is due."),
    "backtest": (
        "ralph_mission.cli.mission.backtest:backtest",
        "Replay the repository's history: what would Ralph have opened?",
    ),
    "fleet": ("ralph_mission.cli.mission.fleet:fleet", "Look after many repositories from one control repository."),
    "status": ("ralph_mission.cli.mission.cycle:status", "Show what runs here, missions, and the next cycle."),
    "report": (
        "ralph_mission.cli.mission.report:report",
        "Write a page of what waits, missions, verdicts and spending.",
    ),
    "logs": ("ralph_mission.cli.loop.hold:logs", "Show what a run did and does, step by step."),
    "ui": ("ralph_mission.cli.loop.hold:ui", "Watch and hold what runs here, in a terminal interface."),
    "pause": ("ralph_mission.cli.loop.hold:pause", "Wait at the next safe point, until `ralph resume`."),
    "resume": ("ralph_mission.cli.loop.hold:resume", "Resume after `ralph pause`."),
    "stop": ("ralph_mission.cli.loop.hold:stop", "End what runs here at its next safe point."),
    "issue": ("ralph_mission.cli.mission.local:issue", "Read and answer issues of the local forge."),
    "pr": ("ralph_mission.cli.mission.local:pr", "Review and merge pull requests of the local forge."),
    "memory": ("ralph_mission.cli.mission.memory:memory", "Show or recover Ralph's memory."),
    "journal": ("ralph_mission.cli.mission.memory:journal", "List what was done; settle what only a person can know."),
    "policy": ("ralph_mission.cli.mission.policy:policy", "Ask what the rules say of a patch."),
    "run": ("ralph_mission.cli.loop.run:run", "Work on a task in fresh sessions until files prove that it is done."),
    "plan": ("ralph_mission.cli.loop.plan:plan", "Have the user stories of a task written and checked."),
    "prd": ("ralph_mission.cli.loop.plan:prd", "Convert and check the user stories of a run."),
    "task": ("ralph_mission.cli.loop.tasks:task", "Add, list and finish the tasks of a loop."),
    "guidance": ("ralph_mission.cli.loop.tasks:guidance", "Tell the next session of a loop something."),
    "cancel": ("ralph_mission.cli.loop.control:cancel", "End the loop that runs here, or clear up after a dead one."),
    "cost": ("ralph_mission.cli.loop.cost:cost", "Show what a loop's sessions cost, or estimate what they would."),
    "simulate": ("ralph_mission.cli.loop.run:simulate", "Play a pattern of hats with a scripted agent."),
    "work": ("ralph_mission.cli.loop.work:work", "Work through the issues that are labelled ralph-ready."),
    "review": ("ralph_mission.cli.loop.work:review", "Review a pull request that ralph made; a person approves."),
    "publish": ("ralph_mission.cli.loop.work:publish", "Publish the texts of an issue that somebody approved."),
    "telegram": ("ralph_mission.cli.loop.control:telegram", "Take orders from a chat while a loop runs."),
}
"""Name -> where the command is (`module:attribute`) and its line in `ralph --help`."""
UNLISTED = {
    "due": "ralph_mission.cli.mission.wakes:due",
    "wake": "ralph_mission.cli.mission.wakes:wake",
    "mcp": "ralph_mission.cli.loop.tasks:mcp",
    "emit": "ralph_mission.cli.loop.tasks:emit",
    "verdict": "ralph_mission.cli.loop.tasks:verdict",
    "sanitize": "ralph_mission.cli.mission.policy:sanitize",
    "schema": "ralph_mission.cli.setup.init:schema",
    "completion": "ralph_mission.cli.setup.init:completion",
}
"""What agents, timers, scripts and editors call: not in `ralph --help`, but in docs/cli.md."""
RENAMED = {
    ("replay",): ("journal", "show", "--replay"),
    ("prd", "new"): ("plan",),
    ("prd", "check"): ("prd", "lint"),
    ("pr", "diff"): ("pr", "show", "--diff"),
    ("issue", "unlabel"): ("issue", "label", "--remove"),
    ("task", "ready"): ("task", "list", "--ready"),
    ("task", "fail"): ("task", "done", "--failed"),
}
"""Older spellings, which are still understood, and what they are short for."""
WITH_VALUE = ("--repo", "--config", "--as")
"""What may stand before a command's name with a value behind it; `--as` before that of a command of the local forge."""
OF_LOOPS = frozenset(
    {"run", "work", "review", "cancel", "plan", "simulate", "task", "emit", "guidance", "verdict", "mcp", "prd", "cost"}
)
"""Commands whose wrong usage or settings end with 64 (EX_USAGE): 2 says that a loop reached a limit."""


class LazyGroup(SharedGroup):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such name."""
        place = COMMANDS[cmd_name][0] if cmd_name in COMMANDS else UNLISTED.get(cmd_name)
        if place is None:
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was asked for; a mistyped one is answered with the nearest."""
        if args and args[0] not in {**COMMANDS, **UNLISTED} and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            raise click.UsageError(f"no command {args[0]!r}{f', did you mean {close[0]}?' if close else ''}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: ralph init, ralph doctor, ralph cycle --staged",
)
@click.version_option(__version__, prog_name="ralph")
def app() -> None:
    """Looks after a repository: observes, proposes, and acts within limits that code enforces."""


def run(arguments: list[str]) -> int:
    """The exit code of one command line. Click's own errors come out as UserError."""
    instruction = os.environ.get("_RALPH_COMPLETE")
    if instruction:
        return shell_complete(app, {}, "ralph", "_RALPH_COMPLETE", instruction)
    arguments = expand_renamed(arguments)
    try:
        with app.make_context("ralph", list(arguments), color=False if os.environ.get("NO_COLOR") else None) as context:
            result: Any = app.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return _misuse(arguments)
    except click.UsageError as error:
        problem = UserError(error.format_message(), _hint(error), usage=True)
        problem.exit_code = _misuse(arguments)
        raise problem from None
    except click.ClickException as error:
        raise UserError(error.format_message(), "fix it, then run again") from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except UserError as problem:
        problem.exit_code = _misuse(arguments) if problem.exit_code == 2 else problem.exit_code
        raise
    return result if type(result) is int else 0


def expand_renamed(arguments: Sequence[str]) -> list[str]:
    """The command line with an older spelling of its command written out."""
    first = _command_index(arguments)
    second = _command_index(arguments, first + 1)
    for old, new in RENAMED.items():
        places = (first, second)[: len(old)]
        if places[-1] < len(arguments) and tuple(arguments[place] for place in places) == old:
            return [
                *arguments[:first],
                *new[:1],
                *arguments[first + 1 : places[-1]],
                *new[1:],
                *arguments[places[-1] + 1 :],
            ]
    return list(arguments)


def _command_index(arguments: Sequence[str], index: int = 0) -> int:
    """Where the command's name stands, or that of one below it: behind the shared options that come first."""
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in WITH_VALUE else 1
    return index


def _misuse(arguments: Sequence[str]) -> int:
    index = _command_index(arguments)
    return 64 if index < len(arguments) and arguments[index] in OF_LOOPS else 2


def _hint(error: click.UsageError) -> str:
    return f"see {error.ctx.command_path if error.ctx else 'ralph'} --help"
