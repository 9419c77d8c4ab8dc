"""Values of options that the commands of a loop share."""

from __future__ import annotations

import re
from typing import Any

import click

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


SECONDS = Seconds()
