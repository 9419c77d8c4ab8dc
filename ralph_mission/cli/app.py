"""The click application: a table of commands, each imported only when it is used."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import shell_complete

from ralph_mission import __version__
from ralph_mission.cli.options import SharedGroup, name_the_rest
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex

COMMANDS = {
    "init": ("ralph_mission.cli.setup.init:init", "Write ralph.yml, and the workflow or units that run it."),
    "doctor": ("ralph_mission.cli.doctor.checks:doctor", "Check what Ralph needs here, and how to get the rest."),
    "config": (
        "ralph_mission.cli.mission.policy:config_group",
        "Show the settings in force, and where each comes from.",
    ),
    "cycle": ("ralph_mission.cli.mission.cycle:cycle", "Run one cycle: look, decide, act, remember."),
    "watch": ("ralph_mission.cli.mission.wakes:watch", "Run a cycle whenever one is due."),
    "status": ("ralph_mission.cli.mission.cycle:status", "Show what runs here, missions, and the next cycle."),
    "report": (
        "ralph_mission.cli.mission.cycle:report",
        "Write a page with open decisions, missions, verdicts and spending.",
    ),
    "backtest": (
        "ralph_mission.cli.mission.cycle:backtest",
        "Replay the repository's history: what would Ralph have opened?",
    ),
    "fleet": ("ralph_mission.cli.mission.fleet:fleet", "Look after many repositories from one control repository."),
    "issue": ("ralph_mission.cli.mission.local:issue", "Read and answer issues of the local forge."),
    "pr": ("ralph_mission.cli.mission.local:pr", "Review and merge pull requests of the local forge."),
    "run": ("ralph_mission.cli.loop.run:run", "Work on a task in fresh sessions until files prove that it is done."),
    "work": ("ralph_mission.cli.loop.work:work", "Work through the issues that are labelled ralph-ready."),
    "review": ("ralph_mission.cli.loop.work:review", "Let an agent review a pull request; a person approves."),
    "logs": ("ralph_mission.cli.loop.hold:logs", "Show what a run did and is doing, step by step."),
    "pause": ("ralph_mission.cli.loop.hold:pause", "Pause runs and cycles until `ralph resume`."),
    "resume": ("ralph_mission.cli.loop.hold:resume", "Resume after `ralph pause`."),
    "stop": ("ralph_mission.cli.loop.hold:stop", "Stop what runs here at its next safe point."),
    "journal": (
        "ralph_mission.cli.mission.memory:journal",
        "List what was done; settle effects whose result is unknown.",
    ),
    "agent": ("ralph_mission.cli.app:agent", "What agents and loops call: tasks, events, stories, costs."),
}
"""Name -> the command's place (`module:attribute`) and its line in `ralph --help`."""
GROUPS = {
    "Get started": ("init", "doctor", "config"),
    "Look after a repository": ("cycle", "watch", "status", "report", "backtest", "fleet"),
    "Answer on the local forge": ("issue", "pr"),
    "Have agents work": ("run", "work", "review"),
    "Watch and control runs": ("logs", "pause", "resume", "stop"),
    "Look back": ("journal",),
    "For agents and their loops": ("agent",),
}
"""Their order in `ralph --help`."""
MORE = {
    "ui": "ralph_mission.cli.loop.hold:ui",
    "memory": "ralph_mission.cli.mission.memory:memory",
    "policy": "ralph_mission.cli.mission.policy:policy",
    "plan": "ralph_mission.cli.loop.plan:plan",
    "publish": "ralph_mission.cli.loop.work:publish",
}
"""Occasional commands: in `ralph --help` only by name."""
UNLISTED = {
    "due": "ralph_mission.cli.mission.wakes:due",
    "wake": "ralph_mission.cli.mission.wakes:wake",
    "sanitize": "ralph_mission.cli.mission.policy:sanitize",
    "schema": "ralph_mission.cli.setup.init:schema",
    "completion": "ralph_mission.cli.setup.init:completion",
}
"""Commands for timers, scripts and editors: not in `ralph --help`, but in docs/cli.md."""
AGENT = {
    "task": ("ralph_mission.cli.loop.tasks:task", "Add, list and finish the tasks of a loop."),
    "guidance": ("ralph_mission.cli.loop.tasks:guidance", "Send a message to the next session of a loop."),
    "emit": ("ralph_mission.cli.loop.tasks:emit", "Emit an event, which the loop reads after the session."),
    "verdict": (
        "ralph_mission.cli.loop.tasks:verdict",
        "Record whether the issues that a reviewer left were acceptable.",
    ),
    "mcp": (
        "ralph_mission.cli.loop.tasks:mcp",
        "Serve tasks, events, memories and guidance to agents as an MCP server.",
    ),
    "prd": ("ralph_mission.cli.loop.plan:prd", "Convert and check the user stories of a run."),
    "simulate": ("ralph_mission.cli.loop.run:simulate", "Run a pattern of hats with a scripted agent."),
    "cost": ("ralph_mission.cli.loop.tasks:cost", "Show what a loop's sessions cost, or estimate what they would."),
    "cancel": ("ralph_mission.cli.loop.hold:cancel", "End the loop that runs here, or clear up after a dead one."),
    "telegram": ("ralph_mission.cli.loop.hold:telegram", "Take commands from a chat while a loop runs."),
}
"""The same as `COMMANDS`, for `ralph agent`."""
RENAMED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("replay",): ("journal", "show", "--replay"),
    ("prd", "new"): ("plan",),
    ("pr", "diff"): ("pr", "show", "--diff"),
    ("issue", "unlabel"): ("issue", "label", "--remove"),
    ("task", "ready"): ("agent", "task", "list", "--ready"),
    ("task", "fail"): ("agent", "task", "done", "--failed"),
    **{(name,): ("agent", name) for name in AGENT},
}
"""Older spellings, accepted for one more release, and their meanings."""
WITH_VALUE = ("--repo", "--config", "--as")
"""Options with a value before a command's name; `--as` only before a command of the local forge."""
OF_LOOPS = frozenset({"run", "work", "review", "plan", *AGENT} - {"telegram"})
"""Commands that exit with 64 (EX_USAGE) on wrong usage or settings: 2 means that a loop reached a limit."""


class LazyGroup(SharedGroup):
    """A group that knows its commands by name and imports one when it is called."""

    listed: Mapping[str, tuple[str, str]] = COMMANDS
    groups: Mapping[str, Sequence[str]] = GROUPS
    more: Mapping[str, str] = MORE
    unlisted: Mapping[str, str] = UNLISTED

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the tables' order."""
        return [*self.listed, *self.more]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such name."""
        others = {**self.more, **self.unlisted}
        place = self.listed[cmd_name][0] if cmd_name in self.listed else others.get(cmd_name)
        if place is None:
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was asked for; a mistyped one is answered with the nearest."""
        if args and args[0] not in {*self.listed, *self.more, *self.unlisted} and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(args[0], [*self.listed, *self.more], n=1)
            raise click.UsageError(f"no command {args[0]!r}{f', did you mean {close[0]}?' if close else ''}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the tables alone."""
        width = max(map(len, self.listed))
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self.listed[name][1]) for name in names])
        name_the_rest(formatter, self.more)


class AgentGroup(LazyGroup):
    """`ralph agent`."""

    listed = AGENT
    groups = MappingProxyType({"Commands": tuple(AGENT)})
    more = unlisted = MappingProxyType[str, str]({})


def _tell_version(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from ralph_mission.cli.version import find_commit

        commit = find_commit()
        click.echo(f"ralph, version {__version__}{f' ({commit})' if commit else ''}")
        context.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: ralph init, ralph doctor, ralph cycle --staged",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_tell_version, help="Show the version."
)
def app() -> None:
    """Looks after a repository: observes, proposes, and acts within limits that code enforces."""


@click.group(cls=AgentGroup)
def agent() -> None:
    """What agents call while they work, and what belongs to loops: tasks, events, stories, costs."""


def run(arguments: list[str]) -> int:
    """The exit code of one command line. Click's own errors come out as UserError."""
    instruction = os.environ.get("_RALPH_COMPLETE")
    if instruction:
        return shell_complete(app, {}, "ralph", "_RALPH_COMPLETE", instruction)
    if found := _find_renamed(arguments):
        old, new = (" ".join(words) for words in found)
        click.echo(f"note: `ralph {old}` is `ralph {new}` now; the old name works until the next release", err=True)
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
        problem = UserError(_explain(error), _hint(error), usage=True)
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


def _explain(error: click.UsageError) -> str:
    """What is wrong, with the nearest spelling, but never one that `--help` hides."""
    group = error.ctx.command if error.ctx else None
    if isinstance(error, click.NoSuchOption) and group:
        shown = [
            name
            for option in group.params
            if not getattr(option, "hidden", False)
            for name in (*option.opts, *option.secondary_opts)
        ]
        error = click.NoSuchOption(error.option_name, None, [*filter(shown.__contains__, error.possibilities or ())])
    elif isinstance(error, click.NoSuchCommand) and isinstance(group, click.Group):
        listed = [name for name, command in group.commands.items() if not command.hidden]
        error = click.NoSuchCommand(error.command_name, None, listed)
    text = _POSSIBLE.sub(r". \1?", error.format_message())
    return text[:1].lower() + text[1:]


_POSSIBLE = compile_regex(r"\.? \((Did you mean [^()]*)\?\)\.?$")
"""How click ends its message."""


def expand_renamed(arguments: Sequence[str]) -> list[str]:
    """The command line with an older spelling of its command written out."""
    found = _find_renamed(arguments)
    if found is None:
        return list(arguments)
    old, new = found
    first, last = _command_places(arguments)[0], _command_places(arguments)[len(old) - 1]
    return [*arguments[:first], *new[:1], *arguments[first + 1 : last], *new[1:], *arguments[last + 1 :]]


def _find_renamed(arguments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The older spelling at the start of the command line, and the present one."""
    words = tuple(arguments[place] for place in _command_places(arguments) if place < len(arguments))
    return next(((old, new) for old, new in RENAMED.items() if words[: len(old)] == old), None)


def _command_places(arguments: Sequence[str]) -> tuple[int, int]:
    """The indexes of the command's name and its subcommand's, if given."""
    first = _command_index(arguments)
    return first, _command_index(arguments, first + 1)


def _command_index(arguments: Sequence[str], index: int = 0) -> int:
    """The index of the command's or subcommand's name, after leading shared options."""
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in WITH_VALUE else 1
    return index


def _misuse(arguments: Sequence[str]) -> int:
    first, second = _command_places(arguments)
    words = arguments[first : first + 1], arguments[second : second + 1]
    name = words[words[0] == ["agent"]]
    return 64 if OF_LOOPS.intersection(name) else 2


def _hint(error: click.UsageError) -> str:
    return f"see {error.ctx.command_path if error.ctx else 'ralph'} --help"
