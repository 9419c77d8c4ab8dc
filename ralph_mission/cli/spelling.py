"""Commands as they have to be typed from where the person stands, errors as one line, and moments as people type them.

Whoever reads `ralph pr list` in an error may have no `ralph` on the path and stand in another folder.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex

_VERBS = "list|show|count|diff|create|comment|label|unlabel|close|approve|request-changes|merge|verify|recover|resolve"
_HERE = "publish|cycle|backtest|due|wake|watch|status|report|doctor|init|work|logs|pause|resume|stop|ui|config show"
_LOOP = "run|review|plan|cancel|cost|emit|guidance|verdict|mcp|telegram"
_ACTIONS = "task (?:add|list|ready|claim|done|fail|show)|prd (?:new|convert|check|lint|skills)"
_COMMAND = compile_regex(
    rf"(?<![\w./-])ralph (?P<words>(?:issue|pr|memory|journal|policy)\b(?: (?:{_VERBS}|check)\b)?|"
    rf"(?:{_HERE}|fleet (?:doctor|due|init|run)|(?:agent )?(?:{_LOOP}|{_ACTIONS}))\b)"
    r"(?![^\n`]*--repo\b)(?P<help> --help)?"
)


def type_commands(text: str, repo: Path) -> str:
    """`text` with the commands in it written out; one that names its repository already is left as it is."""
    called, where = program(), _where(repo)
    return _COMMAND.sub(lambda found: f"{called} {found['words']}{found['help'] or where}", text)


def spell(command: str, repo: Path) -> str:
    """One whole command written out: `ralph pr show 2` as `.venv/bin/ralph pr show 2 --repo sample`."""
    return program() + command.removeprefix("ralph") + _where(repo)


def program() -> str:
    """How to call us: `ralph` where the shell finds it, else the path that was typed."""
    called = Path(sys.argv[0])
    found = shutil.which("ralph")
    if called.name != "ralph" or not called.exists() or (found and Path(found).samefile(called)):
        return "ralph"
    return shlex.quote(str(called))


def repo_of(arguments: Sequence[str]) -> Path:
    """The repository a command line names, read without its parser: for when it has failed already."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    words = [word for argument in before for word in argument.split("=", 1 if argument.startswith("--") else 0)]
    named = [value for name, value in pairwise(words) if name == "--repo"]
    return Path(named[-1] if named else ".")  # what stands further behind wins


def _where(repo: Path) -> str:
    return "" if repo == Path() else f" --repo {shlex.quote(str(repo))}"


def read_words(arguments: Sequence[str], named: Collection[str]) -> dict[str, str] | None:
    """The values of `--NAME VALUE` and `--NAME=VALUE` by their names, and `json` where `--json` stands; None for
    anything else (help, mistakes, abbreviations), which takes a real parser."""
    words, rest = dict[str, str](), list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        name = flag.removeprefix("--")
        if flag == "--json" and not equals:
            words["json"] = ""
        elif flag == f"--{name}" and name in named and (equals or rest):
            words[name] = value if equals else rest.pop(0)
        else:
            return None
    return words


def moment(text: str | None) -> datetime | None:
    """An ISO 8601 moment in UTC (a naive one is taken as UTC); None for None. Raises UserError (usage)."""
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
        read = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _not_a_moment(text) from None
    if not 2000 <= read.year < 2200:  # far enough from the calendar's ends to add any duration
        raise _not_a_moment(text)
    return read


def iso(when: datetime | None) -> str | None:
    """The moment as JSON carries it: UTC, to the second, with Z."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if when else None


def _not_a_moment(text: str) -> UserError:
    return UserError(f"--now {text!r} is not a moment", "write it like 2026-01-31T12:00:00Z", usage=True)


PROGRAMS = ("git", "make", "npm", "pipx", "ralph", "uv")
"""What next steps are typed with."""


def format_problem(problem: UserError) -> str:
    """The one line that a person reads."""
    from ralph_mission.safety.text import sanitise  # the problem may quote anything

    whom = {"you": "error", "bug": "bug"}.get(problem.who, f"error ({problem.who})")
    return " ".join(sanitise(f"{whom}: {_sentence(problem.what)} {_begin(problem.next_step)}", "log").split())


def _sentence(text: str) -> str:
    return text if text.endswith(("?", "!")) else f"{text.rstrip('.')}."


def _begin(text: str) -> str:
    """A sentence's first word with a capital, but a command as it is typed."""
    word = text.split(maxsplit=1)[0].rstrip(":,;") if text.strip() else ""
    return text[0].upper() + text[1:] if word.isalpha() and word not in PROGRAMS else text
