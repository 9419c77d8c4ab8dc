"""How the commands end that do one thing with an agent or a network: told to the job, to a script, by exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ralph_mission.cli.options import print_json

if TYPE_CHECKING:
    from ralph_mission.adapters.report.step_summary import Places


def tell_outcome(told: Mapping[str, Any], page: Callable[[Mapping[str, Any], Places], str], as_json: bool) -> int:
    """Write `told` on the page of the job, if there is one, and print it for a script; gives its exit code."""
    from ralph_mission.adapters.report.step_summary import tell_agent

    tell_agent(told, os.environ, page)
    if as_json:
        print_json(told)
    return int(told["code"])
