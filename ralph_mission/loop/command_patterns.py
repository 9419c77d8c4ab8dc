"""What a denied command looks like: a pattern's program, what follows it, and every other way to write that.

Imports nothing, because a shim starts it before every command of an agent.
"""

from __future__ import annotations

from ralph_mission.loop.shell_words import ANY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    "git filter-branch": "history is written anew",
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
    "mkfs*": "a disk is overwritten",
    "sudo": "a session has the rights it was given",
    "doas": "a session has the rights it was given",
    "shutdown": "others use this machine",
    "reboot": "others use this machine",
    "npm publish": "what is published cannot be taken back",
    "cargo publish": "what is published cannot be taken back",
    "twine upload": "what is published cannot be taken back",
    "gh repo delete": "the repository is lost",
}
"""Denied for every hat unless a person says otherwise: pattern -> why."""

VALUED = frozenset(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source".split()
)
"""Options of git itself that take the next word."""
SAME = {
    ("git", "push", "--force"): ("-f", "--force-with-lease", "--mirror", "+"),
    ("git", "push", "-f"): ("--force", "--force-with-lease", "--mirror", "+"),
    ("git", "push", "--delete"): ("-d", ":", "--prune"),
    ("git", "push", "-d"): ("--delete", ":"),
    ("git", "commit", "--no-verify"): ("-n",),
    ("git", "branch", "-D"): ("--delete --force", "-d -f", "-d --force", "--delete -f"),
    ("git", "branch", "-f"): ("--force",),
    ("git", "clean", "-f"): ("--force",),
    ("git", "tag", "-f"): ("--force",),
    ("git", "tag", "-d"): ("--delete",),
    ("git", "checkout", "-f"): ("--force",),
    ("git", "switch", "-f"): ("--force", "--discard-changes"),
    ("git", "add", "-f"): ("--force",),
    ("rm", "", "-r"): ("-R", "--recursive"),
    ("rm", "", "-R"): ("-r", "--recursive"),
    ("rm", "", "-f"): ("--force",),
    ("chmod", "", "-R"): ("--recursive",),
    ("chown", "", "-R"): ("--recursive",),
}
"""(program, command of git, option) -> other spellings; several words must all stand there."""


class Pattern:
    """One pattern in parts. `Bash(git push:*)`, as one of the agents spells them, is read too."""

    def __init__(self, text: str) -> None:
        self.text = text
        bare = text.strip()
        if bare.endswith(")") and "(" in bare:
            bare = bare.partition("(")[2][:-1].replace(":*", "")
        words = bare.split()
        self.program, self._rest = (base(words[0]), words[1:]) if words else ("", [])
        self.options = [option for word in self._rest if is_option(word) for option in _options(word)]
        self.operands = [word for word in self._rest if not is_option(word) and word != "*"]

    def fits(self, program: str, arguments: Sequence[str]) -> bool:
        """Whether a command's arguments have all that the pattern asks for."""
        operands, options = _sorted(program, arguments)
        command = operands[0] if program == "git" and operands else ""
        wanted = list(self.operands)
        if program == "git" and wanted:
            if not like(command, wanted.pop(0)):
                return False
            operands = operands[1:]
        if program == "git" and command == "push":
            options |= {operand[0] for operand in operands if operand[:1] in ("+", ":")}
            operands = [_branch(operand) for operand in operands]
        command = self.operands[0] if program == "git" and self.operands else command
        return all(_given(program, command, option, options) for option in self.options) and _within(wanted, operands)


def base(word: str) -> str:
    """A program's name without its folder."""
    return word.rstrip("/").rpartition("/")[2]


def is_option(word: str) -> bool:
    """Whether a word starts as options do."""
    return len(word) > 1 and word[0] == "-"


def _options(word: str) -> set[str]:
    """An option as each letter it may stand for, and as itself."""
    if word.startswith("--"):
        return {word.partition("=")[0]}
    return {f"-{letter}" for letter in word[1:] if letter.isalpha()} or {word}


def _sorted(program: str, arguments: Sequence[str]) -> tuple[list[str], set[str]]:
    """Operands in order, options as a set; a program's options may stand anywhere before `--`."""
    operands: list[str] = []
    options: set[str] = set()
    for place, word in enumerate(arguments):
        if word == "--":
            operands += arguments[place + 1 :]
            break
        if is_option(word):
            options |= _options(word)
        else:
            operands.append(word)
    return [_path(word) for word in operands] if program == "rm" else operands, options


def _given(program: str, command: str, option: str, options: set[str]) -> bool:
    git = command if program == "git" else ""
    spellings = (option, *SAME.get((program, git, option), ()))
    return any(all(_spelled(part, options) for part in spelling.split()) for spelling in spellings)


def _spelled(option: str, options: set[str]) -> bool:
    """Long ones also as far as they need to be written."""
    if option in options:
        return True
    return option.startswith("--") and any(len(word) > 2 and option.startswith(word) for word in options)


def _within(wanted: Sequence[str], operands: Sequence[str]) -> bool:
    left = iter([operand for operand in operands if operand != ANY])  # wholly unknown: the shim will see it
    return all(any(like(operand, want) for operand in left) for want in wanted)


def _path(word: str) -> str:
    """A path as shortly as it can be said: `~/`, `$HOME/*` and `~` are one place."""
    parts: list[str] = []
    for part in word.split("/"):
        if part == ".." and parts and parts[-1] not in ("..", ""):
            parts.pop()
        elif part not in ("", ".", "*") or (not part and not parts):
            parts.append(part)
    short = "/".join(parts)
    return short or ("/" if word.startswith("/") else ".")


def _branch(operand: str) -> str:
    return operand.rpartition(":")[2].removeprefix("+").removeprefix("refs/heads/")


def plain(program: str, arguments: list[str]) -> list[str]:
    """Git's arguments from its command on."""
    if program != "git":
        return arguments
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place] in VALUED else 1
    return arguments[place:]


def wild(word: str) -> bool:
    """Whether a word stands for more than one."""
    return any(char in word for char in (ANY, "*", "?", "["))


def like(word: str, wanted: str) -> bool:
    """Equal, where either side may hold what stands for anything."""
    if word == wanted:
        return True
    if "*" in wanted:
        return _glob(word, wanted)
    return wild(word) and _glob(wanted, word.replace(ANY, "*"))


def _glob(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_glob(text[place:], pattern[1:]) for place in range(len(text) + 1))
    if pattern[0] == "[" and "]" in pattern:
        return bool(text) and _glob(text[1:], pattern[pattern.index("]") + 1 :])
    return bool(text) and pattern[0] in ("?", text[0]) and _glob(text[1:], pattern[1:])
