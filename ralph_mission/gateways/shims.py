"""A folder for the front of an agent's PATH: each program that denied commands name is judged before it runs.

This is a guard rail, not a wall: `/usr/bin/git push -f`, a PATH of its own making or a library that speaks git's
protocol go around it. What such a command does to the checkout (history, refs, configuration, files) is still
seen and put back by `gateways/checkout.py`; what it sends elsewhere is up to credentials, which a session does
not get, and to the isolation level.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ralph_mission.gateways import shim, solid
from ralph_mission.loop.commands import SHELLS, never_denied, programs

UNGUARDED = frozenset({*SHELLS, "python", "python3", "env"})
"""Never shimmed though a pattern names them: a shim is started by one of them."""
RECORD = "denied.jsonl"
LONGEST = 16 * 1024 * 1024  # bytes of it that are read
START = (
    "import sys; sys.path.insert(0, {!r}); from ralph_mission.gateways.shim import main; "
    "sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))"
)
AT_ONCE = """case ${{1-}} in
  -*) _ralph_verb=$(while [ $# -gt 1 ]; do case $1,$2 in
      (--no-pager,*) shift;;
      (-C,*|-c,user.name=*|-c,user.email=*|-c,core.pager=cat) shift 2;;
      (*) break;;
    esac; done; printf %s "${{1-}}");;
  *) _ralph_verb=${{1-}};;
esac
case $_ralph_verb in {commands})
  _ralph_git=$(set -f; IFS=:; for place in $PATH; do
    place=${{place:-.}}; git=$place/git
    [ -e "$place/{list}" ] || [ "$git" -ef {ours} ] || [ ! -f "$git" ] || [ ! -x "$git" ] || break
    git=
  done; printf %s "$git")
  [ -z "$_ralph_git" ] || exec "$_ralph_git" "$@";;
esac
"""
"""What no pattern is about needs no judge, nor do the options that agents often put before it: a session calls git
often, and Python takes longer to start than git.
Looked for in a shell of its own, so that git's environment stays as it was. There each pattern has both brackets: the
sh of macOS (bash 3.2) takes a single one for the end of the `$(`."""


def build(folder: Path, patterns: Iterable[str], run_dir: Path) -> Path | None:
    """Write the shims for `patterns` into `folder`; what they refuse is told in `<run dir>/denied.jsonl`.

    Gives the folder to put first on PATH, None when the patterns name no program that can be guarded.
    """
    patterns = tuple(patterns)
    names = [name for name in programs(patterns) if name not in UNGUARDED and name.replace("-", "").isalnum()]
    if not names:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    lines = (str((run_dir / RECORD).resolve()), *(" ".join(pattern.split()) for pattern in patterns))
    put(folder / shim.LIST, "\n".join(lines))
    free = "|".join(never_denied(shim.BUILT_IN, patterns))
    ours = shlex.quote(str(folder.resolve() / "git"))
    for name in names:
        at_once = name == "git" and free
        _write(folder.resolve(), name, AT_ONCE.format(commands=free, list=shim.LIST, ours=ours) if at_once else "")
    return folder


def path_with(folder: Path | None) -> str:
    """PATH with the shims in front."""
    path = os.environ.get("PATH", os.defpath)
    return f"{folder.resolve()}{os.pathsep}{path}" if folder else path


def refused(run_dir: Path) -> tuple[str, ...]:
    """Why commands were refused, oldest first; lines that cannot be read are left out, and all of what is no file."""
    lines = (solid.content(run_dir / RECORD, LONGEST) or b"").split(b"\n")
    return tuple(why for line in lines if (why := _why(line)))


def _write(folder: Path, name: str, first: str) -> None:
    # By /bin/sh, because a `#!` line may hold neither a space nor more than a few words.
    package = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-I", "-S", "-c", START.format(package), str(folder), name]
    put(folder / name, f'#!/bin/sh\n{first}exec {shlex.join(command)} "$@"\n', 0o755)


def put(place: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file of an agent's home at once: agents that play side by side read it, and a link is not followed."""
    if _stands(place, text, mode):
        return
    handle, scratch = tempfile.mkstemp(dir=place.parent)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(scratch, mode)
    os.replace(scratch, place)


def _stands(place: Path, text: str, mode: int) -> bool:
    """Whether the file is there already, as it was written for an earlier session."""
    try:
        found = os.lstat(place)
        return found.st_mode == stat.S_IFREG | mode and found.st_nlink == 1 and place.read_bytes() == text.encode()
    except OSError:
        return False


def _why(line: bytes) -> str:
    try:
        said = json.loads(line)
        return str(said["why"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
