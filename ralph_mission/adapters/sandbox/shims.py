"""Denied commands: on an agent's PATH, a shim precedes each named program, and judges its arguments.

This is a guard rail, not a wall: `/usr/bin/git push -f`, a git alias or a library with git's protocol bypass it. It
prevents mistakes, also with clients that have no such rules; protection against harm is up to the workspace, missing
credentials, and the isolation level.

`main` runs before each command that a pattern may match, so this module imports little at first.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

DANGEROUS = {
    "git push --force": "others lose what they have",
    "git push --delete": "others lose what they have",
    "git push --mirror": "others lose what they have",
    "git reset --hard": "what is not committed is lost",
    "git clean -x": "ignored files, such as .env, are lost: nothing brings them back",
    "git clean -X": "ignored files, such as .env, are lost: nothing brings them back",
    "git stash clear": "what was put away is lost",
    "git stash drop": "what was put away is lost",
    "git branch -D": "commits of others become unreachable",
    "git reflog expire": "what was lost can be found no more",
    "git filter-branch": "history is rewritten",
    "git config --global": "the settings of the person are not the session's",
    "git config --system": "the settings of the machine are not the session's",
    "git config core.hooksPath": "hooks are not the session's",
    "rm -r /": "everything is lost",
    "rm -r ~": "everything of the person is lost",
    "rm -r .": "the checkout is lost",
    "rm -r ..": "what lies around the checkout is lost",
    "rm -r .git": "the history is lost",
    "rm -r .ralph": "the loop's own memory is lost",
    "dd of=/dev/*": "a disk is overwritten",
    "mkfs": "a disk is overwritten",
    "sudo": "a session has the rights it was given",
    "doas": "a session has the rights it was given",
    "shutdown": "others use this machine",
    "reboot": "others use this machine",
    "npm publish": "what is published cannot be taken back",
    "cargo publish": "what is published cannot be taken back",
    "twine upload": "what is published cannot be taken back",
    "gh repo delete": "the repository is lost",
}
"""Denied for every hat unless a person configures otherwise: pattern -> why. A pattern is a program and words that its
command must contain: options anywhere, the others in this order; `*` at a word's end is any rest."""
SAME = {
    "git push": ("-f --force --force-with-lease +", "-d --delete :"),
    "git commit": ("-n --no-verify",),
    "git": ("-f --force", "-d --delete"),
    "rm": ("-r -R --recursive", "-f --force"),
}
"""Equivalent options of a program or its commands. `+` and `:` are prefixes of a pushed ref."""
VALUED = frozenset("-C -c --git-dir --work-tree --namespace --config-env --attr-source".split())
"""Options of git itself that take an argument."""
UNGUARDED = frozenset("sh bash dash zsh ksh fish env python python3".split())
"""Never shimmed even if a pattern names them: shims need them to start."""
LIST, RECORD = "shims.list", "denied.jsonl"
LONGEST = 16 * 1024 * 1024  # bytes read of a record
DENIED, MISSING = 126, 127  # a shell's codes for a command that cannot run, or is missing
SHIM = """#!/bin/sh
_ralph_judge={always}
for _ralph_word; do case $_ralph_word in {words}) _ralph_judge=1;; esac; done
[ "$_ralph_judge" ] || {{ set -f; IFS=:; for _ralph_place in $PATH; do
  [ -e "$_ralph_place/{list}" ] || [ ! -f "$_ralph_place/{name}" ] || [ ! -x "$_ralph_place/{name}" ] || \\
    [ "$_ralph_place/{name}" -ef "$0" ] || exec "$_ralph_place/{name}" "$@"
done; }}
exec {judge} "$@"
"""
"""A command without any of a pattern's words is not judged: Python takes longer to start than git."""
JUDGE = (
    "import sys; sys.path.insert(0, {!r}); from ralph_mission.adapters.sandbox.shims import main; "
    "sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))"
)


# --- judging -------------------------------------------------------------------------


def why_denied(argv: Sequence[str], patterns: Iterable[str]) -> str:
    """Why a command may not run, or "", only by its words."""
    program, words = os.path.basename(argv[0]), list(argv[1:])
    if program == "git":
        while words and words[0].startswith("-"):
            del words[: 2 if words[0] in VALUED else 1]
    for text in patterns:
        denied, *rest = parse_pattern(text) or [""]
        if denied == program and _fits(program, words, rest):
            why = f": {DANGEROUS[text]}" if text in DANGEROUS else ""
            return f"`{' '.join(argv)[:200]}` is denied by `{text}`{why}".replace("\n", " ")
    return ""


def parse_pattern(text: str) -> list[str]:
    """The words of a pattern; accepts an agent's spelling `Bash(git push:*)` too."""
    bare = text.strip()
    if bare.endswith(")") and "(" in bare:
        bare = bare.partition("(")[2][:-1].removesuffix(":*")
    return bare.split()


def _fits(program: str, words: Sequence[str], pattern: Sequence[str]) -> bool:
    end = words.index("--") if "--" in words else len(words)
    options = {option for word in words[:end] for option in _options(word)}
    operands = [word for word in words[:end] if not _options(word)] + [*words[end + 1 :]]
    command = f"git {operands[0]}" if program == "git" and operands else program
    if command == "git push":
        options |= {word[0] for word in operands}
        operands = [word.rpartition(":")[2].removeprefix("+").removeprefix("refs/heads/") for word in operands]
    positional = [word for word in pattern if not _options(word)]
    if program == "git" and positional and positional[0] not in operands[:1]:
        return False
    following = iter(operands)
    ordered = all(any(_equal(program, one, want) for one in following) for want in positional)
    return ordered and all(_is_given(command, option, options) for word in pattern for option in _options(word))


def _options(word: str) -> set[str]:
    """The letters of a combined option; empty for other words."""
    if word.startswith("--"):
        return {word.partition("=")[0]}
    return {f"-{letter}" for letter in word[1:] if letter.isalpha()} if word.startswith("-") else set()


def _is_given(command: str, option: str, options: set[str]) -> bool:
    """Whether an option is given by any of its names, including abbreviations of long ones."""
    groups = (*SAME.get(command, ()), *(SAME["git"] if command.startswith("git ") else ()))
    names = {name for group in groups if option in group.split() for name in group.split()} | {option}
    return any(one in names or (len(one) > 3 and any(n.startswith(one) for n in names)) for one in options)


def _equal(program: str, word: str, pattern: str) -> bool:
    if program == "rm":
        return os.path.abspath(word) == os.path.abspath(os.path.expanduser(pattern))
    return word == pattern or (pattern.endswith("*") and word.startswith(pattern[:-1]))


def main(folder: str, program: str, arguments: list[str]) -> int:
    """Judge, then exec the program. Returns the exit code of a refusal; otherwise it does not return."""
    with open(os.path.join(folder, LIST), encoding="utf-8") as file:
        record, *patterns = file.read().split("\n")
    if why := why_denied([program, *arguments], patterns):
        _append(record, [program, *arguments], why)
        print(f"ralph: {why}", file=sys.stderr)
        return DENIED
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found, ours = os.path.join(place or ".", program), os.path.join(place or ".", LIST)
        if os.path.isfile(found) and os.access(found, os.X_OK) and not os.path.exists(ours):
            os.execv(found, [program, *arguments])
    print(f"{program}: not found", file=sys.stderr)
    return MISSING


def _append(path: str, argv: list[str], why: str) -> None:
    from json import dumps
    from time import time

    line = dumps({"at": round(time(), 3), "argv": argv, "why": why})
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:  # refused anyway
        return
    os.write(target, line.encode("utf-8", "surrogateescape") + b"\n")
    os.close(target)


# --- setting up ----------------------------------------------------------------------


def build(folder: Path, patterns: Iterable[str], run_dir: Path) -> Path | None:
    """Write the shims for `patterns` into `folder`; refusals are recorded in `<run dir>/denied.jsonl`.

    Returns the folder to put first on PATH, None if the patterns name no guardable program.
    """
    from ralph_mission.adapters import files

    texts = [" ".join(text.split()) for text in patterns]
    parsed = [words for text in texts if (words := parse_pattern(text))]
    names = dict.fromkeys(words[0] for words in parsed)
    guarded = [name for name in names if name not in UNGUARDED and name.replace("-", "").isalnum()]
    if not guarded:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    files.replace_text(folder / LIST, "\n".join((str((run_dir / RECORD).resolve()), *texts)))
    for name in guarded:
        files.replace_text(
            folder / name, _shim(folder.resolve(), name, [words[1:] for words in parsed if words[0] == name]), 0o755
        )
    return folder


def _shim(folder: Path, name: str, patterns: Sequence[Sequence[str]]) -> str:
    # By /bin/sh, because a `#!` line may hold neither a space nor more than a few words.
    import shlex

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    first = [next((word for word in words if not _options(word)), "") for words in patterns]
    plain = name == "git" and all(word.replace("-", "").isalnum() for word in first)
    command = [sys.executable, "-I", "-S", "-c", JUDGE.format(package), str(folder), name]
    return SHIM.format(
        always="" if plain else "1", words="|".join(dict.fromkeys(first)) if plain else "''", list=LIST, name=name,
        judge=shlex.join(command),
    )  # fmt: skip  # one text


def path_with(folder: Path | None, path: str = "") -> str:
    """`path`, else our own PATH, with the shims in front."""
    path = path or os.environ.get("PATH", os.defpath)
    return f"{folder.resolve()}{os.pathsep}{path}" if folder else path


def find_refusals(output: str) -> tuple[str, ...]:
    """The reasons that shims printed there: for a client whose own sandbox keeps them from the record."""
    lines = (line.removeprefix("ralph: ") for line in output.splitlines() if line.startswith("ralph: `"))
    return tuple(line for line in lines if "` is denied by `" in line)


def refused_commands(run_dir: Path) -> tuple[str, ...]:
    """The reasons of refused commands, oldest first; unreadable lines are skipped, and anything but a file."""
    from ralph_mission.adapters import files

    lines = (files.content(run_dir / RECORD, LONGEST) or b"").split(b"\n")
    return tuple(why for line in lines if (why := _why(line)))


def _why(line: bytes) -> str:
    from json import loads

    try:
        return str(loads(line)["why"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
