"""What `ralph init` does where a file stands already: ours is renewed, a person's is kept or copied, never lost."""

from __future__ import annotations

import difflib
import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ralph_mission.cli.uninstall import Fate, read, sealed, untouched
from ralph_mission.gateways.files import atomic
from ralph_mission.gateways.git import Git
from ralph_mission.report.lines import counted
from ralph_mission.safety.text import sanitise
from ralph_mission.trouble import Trouble

COPIES = "replaced"  # in .ralph/
SHOWN = 60  # lines of a difference before a question


@dataclass(frozen=True, slots=True)
class Planned:
    """A file to write. `keep`: leave a person's as it is, without a question; `private`: for its owner's eyes."""

    place: Path
    text: str
    keep: bool = False
    private: bool = False


def fate(planned: Planned, answer: str, git: Git, top: Path) -> Fate:
    """What becomes of a file; `answer` to what is a person's: keep, overwrite, or "" to ask, where somebody is there.

    Nothing is written yet. Raises Trouble when it leads elsewhere, and when who was asked says stop.
    """
    place = planned.place
    no_link(place, top)
    present = read(place)
    if present is None:
        return Fate(place, "new")
    if present.replace("\r\n", "\n") == sealed(planned.text):
        return Fate(place, "unchanged")
    if untouched(present):
        return Fate(place, "replaced")
    return Fate(place, "kept") if planned.keep else _of_a_persons(planned, present, answer, git)


def _of_a_persons(planned: Planned, present: str, answer: str, git: Git) -> Fate:
    place, new = planned.place, sealed(planned.text)
    copy = git.state_dir / COPIES / f"{place.stem}.{hashlib.sha256(place.read_bytes()).hexdigest()[:12]}{place.suffix}"
    difference = _difference(present, new)
    if not answer and not sys.stdin.isatty():
        return Fate(place, "in the way", lost=sum(line.startswith("-") for line in difference))
    if (answer or _asked(place, copy, difference)) == "keep":
        return Fate(place, "kept")
    no_link(copy, git.state_dir.parent)
    return Fate(place, "replaced", copy)


def _asked(place: Path, copy: Path, difference: Sequence[str]) -> str:
    more = [f"… and {counted(len(difference) - SHOWN, 'more line')}"] if len(difference) > SHOWN else []
    heading = f"{place}: what would go (-) and come (+)"
    click.echo("\n".join([heading, *(sanitise(line, "log") for line in difference[:SHOWN]), *more]), err=True)
    question = f"{place.name} is yours: keep it, overwrite it (yours is copied to {copy.parent}), or stop?"
    answer: str = click.prompt(question, type=click.Choice(["keep", "overwrite", "stop"]), default="keep", err=True)
    if answer == "stop":
        raise Trouble("nothing was written", "run it again with --keep to leave what is yours as it is")
    return answer


def _difference(present: str, new: str) -> list[str]:
    """What would go (-) and come (+), with a line around it."""
    return list(difflib.unified_diff(present.splitlines(), new.splitlines(), n=1, lineterm=""))[2:]  # no headings


def refuse(fates: Sequence[Fate]) -> None:
    """Raises Trouble (usage) that names every file of a person's that is in the way."""
    yours = [
        f"{each.place.name} is there already ({each.lost} of its lines would go)"
        for each in fates
        if each.state == "in the way"
    ]
    if yours:
        keep = "run it again with --keep to leave what is yours as it is"
        mend = f"{keep}, or with --yes to overwrite it (a copy goes to .ralph/{COPIES}/)"
        raise Trouble(" and ".join(yours), mend, usage=True)


def no_link(place: Path, top: Path) -> None:
    """Raises Trouble (usage) when a file, or a folder above it in `top`, leads elsewhere or is no file."""
    inside = [folder for folder in (place, *place.parents) if top in folder.parents]
    for part in inside or [place]:
        if part.is_symlink():  # what it leads to may be anyone's
            raise Trouble(f"{part.name} is a symbolic link", "remove it, then run again", usage=True)
    if place.is_dir():
        raise Trouble(f"{place.name} is a folder", "move it away, then run again", usage=True)


def write(plan: Sequence[Planned], fates: Sequence[Fate]) -> None:
    """Do what was decided; what a person wrote is copied first, byte for byte. Raises OSError, for a file that is for
    reading only before anything is written.

    Both are whole or not there: a disk that is full leaves the file as it was, and no piece under the copy's name.
    """
    for decided in fates:
        if decided.state == "replaced":
            os.close(os.open(decided.place, os.O_WRONLY | os.O_NOFOLLOW))
    for planned, decided in zip(plan, fates, strict=True):
        _write(planned, decided)


def _write(planned: Planned, decided: Fate) -> None:
    if decided.copy:
        atomic.write(decided.copy, decided.place.read_bytes(), 0o600)
    if decided.state in ("new", "replaced"):
        atomic.write(planned.place, sealed(planned.text).encode(), 0o600 if planned.private else 0o666)
