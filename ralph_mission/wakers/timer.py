"""A systemd timer on a host of your own: asks the gate every minute and dispatches in the minute a cycle is due."""

from __future__ import annotations

import re
from pathlib import Path

from ralph_mission.wakers.facts import WakeFacts, Way, WaySetUp

UNITS = ("ralph-wake@.service", "ralph-wake@.timer")


def instance(repo: Path) -> str:
    """The name of a repository in a unit template, as `systemd-escape --path` makes it; `%f` gives the path back."""
    text = "/".join(part for part in str(repo).split("/") if part) or "/"
    escaped = re.sub(r"[^A-Za-z0-9:_./]", lambda odd: "".join(f"\\x{byte:02x}" for byte in odd[0].encode()), text)
    return re.sub(r"^\.", r"\\x2e", escaped).replace("/", "-")


def _timer_set_up(facts: WakeFacts) -> WaySetUp:
    if not facts.workflow:
        return WaySetUp(False, "no workflow here listens to ralph-loop-trigger")
    ours = f"ralph-wake@{facts.instance}.timer"
    if ours in facts.timers:
        return WaySetUp(True, f"{ours} is enabled")
    others = f"; those here are for other folders: {', '.join(sorted(facts.timers))}" if facts.timers else ""
    return WaySetUp(False, f"{ours} is not enabled for this user or the system{others}")


TIMER = Way(
    "timer",
    "a host with systemd that is always on, a clone there, and a token of its own with `contents: write`",
    (*UNITS, ".ralph/ralph.env"),
    _timer_set_up,
)
