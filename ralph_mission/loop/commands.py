"""Commands that a hat may not run, whatever they are wrapped in and however they are spelled.

A pattern is a program and what has to stand in its command: `git push --force`, `rm -rf`, `sudo`. Judging is by
reading: a program that writes a script and runs it is seen when the script calls one of the shims
(`gateways/shims.py`), and what it does to the checkout is seen by content (`gateways/checkout.py`).
Imports no library, because a shim starts it before every command of an agent.
"""

from __future__ import annotations

from ralph_mission.loop.command_patterns import DANGEROUS as DANGEROUS
from ralph_mission.loop.command_patterns import Pattern, base, is_option, like, plain, wild
from ralph_mission.loop.shell_words import ANY, Line, Unreadable, assigned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish rbash".split())
WRAPPERS = frozenset(
    """env command exec nohup nice ionice chrt time timeout gtimeout stdbuf setsid sudo doas su xargs parallel builtin
    busybox toybox find fd watch script strace ltrace unshare chroot runuser flock entr caffeinate unbuffer taskset
    coproc npx""".split()
)
"""Programs that run the program they are given."""
INTERPRETERS = frozenset("python python2 python3 perl ruby node deno bun php lua awk gawk tclsh osascript".split())
EVALUATED = frozenset("eval trap source .".split())
RESERVED = frozenset("! { } if then elif else fi while until do done for case esac time function [[".split())
CALLING = frozenset("rebase bisect submodule filter-branch difftool mergetool for-each-repo hook".split())
"""Git's commands that run a line they are given."""
DEEPEST = 8
"""Lines within lines that are followed; deeper ones are denied."""
UNCLEAR = "cannot be read, and names `{}`"


def denied(command: str | Sequence[str], patterns: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """Why a shell's line (or the words of one command) may not run, "" when it may.

    `aliases` are git's, name -> what stands in its configuration. What cannot be read is denied when it names a
    program of a pattern.
    """
    judge = _Judge([pattern for pattern in map(Pattern, patterns) if pattern.program], dict(aliases or {}))
    return judge.line(command, 0) if isinstance(command, str) else judge.command(list(command), 0)


def programs(patterns: Iterable[str]) -> tuple[str, ...]:
    """The programs that patterns are about, each once."""
    return tuple(dict.fromkeys(pattern.program for pattern in map(Pattern, patterns) if pattern.program))


def never_denied(commands: Iterable[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """Which of git's commands no pattern is about and run no line they are given: whatever words follow, they may."""
    about = [pattern for pattern in map(Pattern, patterns) if like("git", pattern.program)]
    named = [pattern.operands[0] if pattern.operands else "*" for pattern in about]
    return tuple(sorted(name for name in commands if name not in CALLING and not _like_any(name, named)))


class _Judge:
    def __init__(self, patterns: list[Pattern], aliases: dict[str, str]) -> None:
        self._patterns, self._aliases = patterns, aliases
        self._programs = {pattern.program for pattern in patterns}
        self._harmless: set[tuple[int | str, ...]] = set()
        self._said = ""

    def line(self, text: str, depth: int) -> str:
        if depth > DEEPEST:
            return self._unclear(text)
        try:
            line = Line(text, {"HOME": "~", "PWD": "."})
        except Unreadable:
            return self._unclear(text)
        self._said = self._said or text
        found = next((why for words in line.commands if (why := self.command(words, depth))), "")
        if not found and any(_reads_input(words) for words in line.commands):
            found = self._first(
                [*line.texts, *(word for words in line.commands for word in words if " " in word)], depth
            )
        return found

    def command(self, words: list[str], depth: int) -> str:
        if depth > DEEPEST:
            return self._unclear(" ".join(words))
        judged: tuple[int | str, ...] = (depth, *words)
        if judged in self._harmless:  # of many wrappers in a row each may run any word that follows
            return ""
        why = self._judged(words, depth)
        if not why:
            self._harmless.add(judged)
        return why

    def _judged(self, words: list[str], depth: int) -> str:
        if self._configures(words):
            return f"`{_shown(words)}` sets git up through its environment, which cannot be judged"
        while words and (words[0] in RESERVED or assigned(words[0])):
            words = words[1:]
        if not words:
            return ""
        program, arguments = base(words[0]), words[1:]
        return self._matched(words, program, arguments) or self._inside(program, arguments, depth)

    def _configures(self, words: list[str]) -> bool:
        sets = any(word.startswith("GIT_CONFIG") and assigned(word) for word in words)
        return sets and "git" in self._programs and any(base(word) == "git" for word in words)

    def _matched(self, words: list[str], program: str, arguments: list[str]) -> str:
        for pattern in self._patterns:
            if not like(program, pattern.program) or not self._named(program, pattern):
                continue
            if pattern.fits(pattern.program if wild(program) else program, plain(program, arguments)):
                why = DANGEROUS.get(pattern.text, "")
                return f"`{_shown(words)}` is denied by `{pattern.text}`" + (f": {why}" if why else "")
        return ""

    def _named(self, program: str, pattern: Pattern) -> bool:
        """A program that is not known is taken for any, but not merely because it is not known."""
        bare = not pattern.options and not pattern.operands
        return not (bare and ANY in program) or pattern.program in self._said

    def _inside(self, program: str, arguments: list[str], depth: int) -> str:
        if program == "git":
            return self._git(arguments, depth)
        if program in SHELLS:
            return self._first(arguments, depth) if any(_takes_line(word) for word in arguments) else ""
        if program in EVALUATED:
            return self.line(" ".join(arguments), depth + 1)
        if _stem(program) in INTERPRETERS:
            return next((why for text in arguments if (why := self._code(text))), "")
        if program in WRAPPERS:
            return self._wrapped(arguments, depth)
        return ""

    def _wrapped(self, arguments: list[str], depth: int) -> str:
        known = self._programs | SHELLS | WRAPPERS | INTERPRETERS | EVALUATED | {"git"}
        for place, word in enumerate(arguments):
            inner = word.partition("=")[2] if word.startswith("--") else word[2:] if word.startswith("-S") else word
            why = self.line(inner, depth + 1) if " " in inner.strip() else ""
            if not why and (base(word) in known or wild(base(word)) or _like_any(base(word), self._programs)):
                why = self.command(arguments[place:], depth + 1)
            if why:
                return why
        return ""

    def _git(self, arguments: list[str], depth: int) -> str:
        aliases = self._aliases | given_aliases(arguments)
        rest = plain("git", arguments)
        if not rest:
            return ""
        value = aliases.get(rest[0], "")
        if value.startswith("!"):
            return self.line(value[1:] + " " + " ".join(rest[1:]), depth + 1)
        if value:
            return self.line(f"git {value} " + " ".join(f"'{word}'" for word in rest[1:]), depth + 1)
        if rest[0] in CALLING:
            whole = [" ".join(rest[place + 1 :]) for place, word in enumerate(rest) if word in ("run", "foreach", "--")]
            inner = [word.partition("=")[2] if word.startswith("--") else word for word in rest[1:]]
            return self._first([*whole, *inner], depth)
        return ""

    def _code(self, text: str) -> str:
        """A program in another language: its words, wherever one of ours begins."""
        words = "".join(char if char.isalnum() or char in "_+./~:*=-" else " " for char in text).split()
        for place, word in enumerate(words):
            ours = len(words) > 1 and base(word) in self._programs | {"git"}
            if ours and (why := self._matched(words[place:], base(word), words[place + 1 :])):
                return why
        return ""

    def _first(self, lines: Iterable[str], depth: int) -> str:
        return next((why for line in lines if (why := self.line(line, depth + 1))), "")

    def _unclear(self, text: str) -> str:
        named = sorted(program for program in self._programs if program.strip("*") in text)
        return UNCLEAR.format(named[0]) if named else ""


def _stem(program: str) -> str:
    return program.rstrip("0123456789.")


def _takes_line(word: str) -> bool:
    return word[:1] in "-+" and not word.startswith("--") and "c" in word


def _reads_input(words: list[str]) -> bool:
    """Whether a command is a shell that runs what it is sent."""
    bare = [word for word in words if not assigned(word)]
    shells = [place for place, word in enumerate(bare) if base(word) in SHELLS]
    return bool(shells) and all(is_option(word) or word == "-" for word in bare[shells[0] + 1 :])


def given_aliases(arguments: list[str]) -> dict[str, str]:
    """What `-c alias.NAME=VALUE` sets, name -> value."""
    pairs = (word.removeprefix("-c").partition("=") for word in arguments if "alias." in word.lower() and "=" in word)
    return {key.strip().lower().removeprefix("alias."): value for key, _, value in pairs}


def _like_any(word: str, names: Iterable[str]) -> bool:
    return any(like(word, name) for name in names)


def _shown(words: Sequence[str]) -> str:
    return " ".join(words).replace(ANY, "…").replace("\n", " ")[:200]
