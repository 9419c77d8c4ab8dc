"""Options that the commands of a loop share, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Seconds(click.ParamType[float]):
    """`90`, `90s`, `15m`, `4h` or `1d`, as seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; click tells the person when it is no duration."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", str(value).strip())
        if not found or not float(found[1]):
            self.fail(f"{value!r} is no duration: write seconds, or 15m, 4h, 1d", param, ctx)
        return float(found[1]) * UNITS[found[2]]


class Dollars(click.FloatRange):
    """An amount of USD. What is no number is no limit either: nothing is ever more than it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The amount; click tells the person when it is none."""
        amount = float(super().convert(value, param, ctx))
        if not isfinite(amount):
            self.fail(f"{value!r} is no amount of money", param, ctx)
        return amount


SECONDS = Seconds()

model_option = click.option("--model", default="", metavar="NAME", help="The model of hats that name none.")


def _without_effect(context: click.Context, option: click.Parameter, given: bool) -> None:
    if given:
        click.echo("note: --allow-dirty has no effect any more: sessions see what is committed", err=True)


allow_dirty_option = click.option(
    "--allow-dirty", is_flag=True, hidden=True, expose_value=False, callback=_without_effect
)
LIMITS = (
    click.option("--max-iterations", "iterations", type=click.IntRange(min=1), metavar="N", help="Sessions at most."),
    click.option("--max-runtime", "runtime", type=SECONDS, metavar="S", help="Seconds at most, or 15m, 4h."),
    click.option("--max-cost", "usd", type=Dollars(min=0), metavar="USD", help="Spent at most."),
)


def limit_options(command: Command) -> Command:
    """The limits of a run, as `iterations`, `runtime` and `usd`."""
    for option in reversed(LIMITS):
        command = option(command)
    return command
