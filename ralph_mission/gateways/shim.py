"""What stands before an agent's program: judges its words, then becomes the real program or refuses with 126.

Started before each such command, with `python -I -S`, so that it costs little: it imports the smallest parts of
the standard library and the judge of `loop/commands.py`, nothing else. Called with FOLDER PROGRAM ARGUMENTS…;
FOLDER holds `shims.list`, as `gateways/shims.py` writes it: the record's path, then a pattern a line.
"""

import os
import sys

from ralph_mission.loop.command_patterns import plain
from ralph_mission.loop.commands import denied, given_aliases

LIST = "shims.list"
DENIED = 126  # as a shell says that a command cannot be run
MISSING = 127
BUILT_IN = frozenset(
    """add am apply archive bisect blame branch bundle cat-file checkout cherry-pick clean clone commit commit-tree
    config describe diff diff-tree fetch filter-branch for-each-ref format-patch fsck gc grep hash-object help
    init log ls-files ls-remote ls-tree maintenance merge merge-base mv notes pull push range-diff rebase
    reflog remote reset restore rev-list rev-parse revert rm shortlog show show-ref sparse-checkout stash
    status submodule switch symbolic-ref tag update-index update-ref version worktree write-tree""".split()
)
"""Commands of git that no alias can stand for: nothing has to be looked up for them."""


def main(folder: str, program: str, arguments: list[str]) -> int:
    """Judge, then exec. The exit code of a refusal; otherwise it does not return."""
    with open(os.path.join(folder, LIST), encoding="utf-8") as file:
        record, *patterns = file.read().split("\n")
    real = _real(program, folder)
    aliases = _aliases(real, arguments) if program == "git" and real else {}
    why = denied([program, *arguments], patterns, aliases)
    if why:
        _record(record, program, arguments, why)
        print(f"ralph: {why}", file=sys.stderr)
        return DENIED
    if not real:
        print(f"{program}: not found", file=sys.stderr)
        return MISSING
    os.execv(real, [program, *arguments])


def _real(program: str, folder: str) -> str:
    """The first program of that name on the path that is not a shim."""
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = os.path.join(place or ".", program)
        ours = os.path.exists(os.path.join(place or ".", LIST)) or os.path.realpath(place) == os.path.realpath(folder)
        if not ours and os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return ""


def _aliases(real: str, arguments: list[str]) -> dict[str, str]:
    """What git's configuration makes of the command, followed from alias to alias."""
    rest = plain("git", arguments)
    options = arguments[: len(arguments) - len(rest)]
    name = rest[0] if rest else ""
    found: dict[str, str] = {}
    while name and name not in BUILT_IN and name not in found and name not in given_aliases(options):
        value = _asked([real, *options, "config", "--get", f"alias.{name}"])
        if not value:
            break
        found[name] = value
        words = [] if value.startswith("!") else plain("git", value.split())
        name = words[0] if words else ""
    return found


def _asked(command: list[str]) -> str:
    reading, writing = os.pipe()
    silent = os.open(os.devnull, os.O_RDWR)
    to = [(os.POSIX_SPAWN_DUP2, silent, 0), (os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, silent, 2)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=to)
    os.close(writing)
    with open(reading, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return answer.decode("utf-8", "replace").rstrip("\n")


def _record(path: str, program: str, arguments: list[str], why: str) -> None:
    from json import dumps
    from time import time

    line = dumps({"at": round(time(), 3), "argv": [program, *arguments], "why": why})
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:  # refused all the same
        return
    os.write(target, line.encode("utf-8", "surrogateescape") + b"\n")
    os.close(target)
