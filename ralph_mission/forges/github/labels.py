"""The labels of ours, as they look where nobody has made them yet. Upper and lower case are the same to GitHub."""

from __future__ import annotations

PURPLE, BLUE, GREEN, RED, GREY, YELLOW = "5319e7", "1d76db", "0e8a16", "b60205", "cfd3d7", "fbca04"

LABELS: dict[str, tuple[str, str]] = {
    "ralph:mission": (PURPLE, "Ralph works on this; set it to ask for it"),
    "ralph:auto-fix": (BLUE, "A small fix that Ralph made on its own"),
    "ralph:research": (BLUE, "An idea that Ralph looked into"),
    "ralph:content": (BLUE, "A text that Ralph wants to publish"),
    "ralph:approved": (GREEN, "Yes: Ralph may do what is proposed here"),
    "ralph:rejected": (RED, "No: Ralph does not ask for this again"),
    "ralph:escalated": (RED, "Ralph is stuck here and needs a person"),
    "ralph:parked": (GREY, "Ralph has put this aside; set ralph:mission to bring it back"),
    "content:review": (YELLOW, "A text that waits for a person's eye"),
    "content:approved": (GREEN, "This text may be published"),
    "content:published": (GREY, "This text was published"),
    "agent:claude": (PURPLE, "An agent may implement this; people set it"),
    "ralph-ready": (GREEN, "Specified well enough for an agent"),
    "ralph-working": (YELLOW, "An agent is at work here"),
    "ralph-failed": (RED, "An agent tried this and gave up"),
}
"""Colour and description by name."""

_OURS = {name.casefold(): name for name in LABELS}


def canonical(name: str) -> str:
    """A label's name as we write it, whatever case somebody made it in."""
    return _OURS.get(name.casefold(), name)


def shape(name: str) -> dict[str, str]:
    """What a label is made with."""
    color, description = LABELS.get(name, (GREY, ""))
    return {"name": name, "color": color, "description": description}
