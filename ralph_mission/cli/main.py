"""`ralph`: its entry point, and what a person sees when something goes wrong.

That is one line that names who must act and what to do. The one place that turns exceptions into exit codes. Imports
next to nothing, so that what is called often costs next to nothing.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING

from ralph_mission.errors import INTERRUPTED, Lost, Stopped, UserError

if TYPE_CHECKING:
    from pathlib import Path

GARBAGE = 100_000
"""New objects between two garbage collections: the default 700 would cause hundreds of useless ones at a start."""

HINTS = {
    errno.EEXIST: "a file or a broken link stands where a folder belongs: move it away, then run again",
    errno.EISDIR: "a folder stands where a file belongs: move it away, then run again",
    errno.ELOOP: "a link stands where a file or folder belongs: move it away, then run again",
    errno.ENOTDIR: "a file stands where a folder belongs: move it away, then run again",
    errno.ENOSPC: "free some disk space, then run again",
    errno.EDQUOT: "free some of your disk quota, then run again",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f), then run again",
    errno.EACCES: "give this user access to it, then run again",
    errno.EPERM: "give this user access to it, then run again",
    errno.EROFS: "make the file system writable, then run again",
}


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(GARBAGE)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # which it else looks for in every package
    code = run_guarded(_run, sys.argv[1:])
    gc.freeze()  # else the interpreter looks through everything once more before it ends
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["due"]:
        from ralph_mission.cli.gate import answer, parse_question

        due = parse_question(arguments[1:])
        if due is not None:
            return answer(due)
    if arguments[:2] == ["fleet", "due"]:
        from ralph_mission.cli.fleet import answer_fleet, parse_fleet_question

        question = parse_fleet_question(arguments[2:])
        if question is not None:
            return answer_fleet(question)
    from ralph_mission.cli.app import run

    return run(arguments)


class Terminated(KeyboardInterrupt):
    """SIGTERM: somebody wants us gone, as politely as with Ctrl-C."""


def run_guarded(run: Callable[[list[str]], int], arguments: list[str]) -> int:
    """The exit code of `run(arguments)`, whatever it raises; with `--json` an error is one document."""
    _have_streams()
    _print_anything()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_left()
    except Lost:
        return 0
    except UserError as problem:
        return _tell(problem, arguments)
    except KeyboardInterrupt as interrupt:
        _tell(UserError(_interrupt_word(interrupt), "to continue, run it again"), arguments)
        return INTERRUPTED
    except OSError as error:
        hint = HINTS.get(error.errno or 0)
        return _tell(UserError(_os_error_text(error), hint) if hint else _bug(error, arguments), arguments)
    except ModuleNotFoundError as error:
        return _tell(_not_installed(error) or _bug(error, arguments), arguments)
    except Exception as error:  # anything that reaches this line is our bug
        return _tell(_bug(error, arguments), arguments)
    finally:
        signal.signal(signal.SIGTERM, before)


def _have_streams() -> None:
    # A caller that closed them (`>&-`, a service) wants no output; that is no reason to fail.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # open as long as we run
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # open as long as we run


def _print_anything() -> None:
    # A character that the terminal lacks, or an undecodable path, must not stop a cycle.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def document(problem: UserError) -> dict[str, dict[str, str]]:
    """The error as `--json` prints it."""
    return {"error": {"who": problem.who, "what": problem.what, "next": problem.next_step}}


def _tell(problem: UserError, arguments: list[str]) -> int:
    from ralph_mission.cli.spelling import format_problem

    redacted = redact_problem(problem)
    typed = _with_typed_commands(redacted, arguments)
    try:
        print(format_problem(typed), file=sys.stderr, flush=True)
        if os.environ.get("GITHUB_STEP_SUMMARY"):
            from ralph_mission.adapters.report.step_summary import tell_problem

            # The job's page is read elsewhere: commands in our form, without the runner's paths.
            tell_problem(document(redacted)["error"], os.environ)
        if "--json" in arguments:
            import json

            print(json.dumps(document(typed)), flush=True)
    except BrokenPipeError:
        _reader_left()
    return problem.exit_code


def redact_problem(problem: UserError) -> UserError:
    """The same without a secret of the environment: what is wrong may quote anything, and is shown to everybody."""
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.safety.secrets import redact

    known = environment_secrets()
    return UserError(redact(problem.what, known), redact(problem.next_step, known), problem.who)


def _with_typed_commands(problem: UserError, arguments: list[str]) -> UserError:
    """The same with its commands as typed from here."""
    from ralph_mission.cli.spelling import repo_of, type_commands

    return UserError(problem.what, type_commands(problem.next_step, repo_of(arguments)), problem.who)


def _not_installed(error: ModuleNotFoundError) -> UserError | None:
    """What to do where a package of somebody else's is missing; None if it is one of ours."""
    package = (error.name or "ralph_mission").partition(".")[0]
    if package == "ralph_mission":
        return None
    return UserError(f"the package {package} is not installed", "install Ralph with its packages: see its README")


def _bug(error: Exception, arguments: list[str]) -> UserError:
    if os.environ.get("RALPH_DEBUG") == "1":
        raise error
    place = write_report(error, arguments)
    where = f"please report it with {place}" if place else "run again with RALPH_DEBUG=1 and report what it says"
    return UserError(f"ralph failed in a way it should not: {type(error).__name__}", where, who="bug")


def write_report(error: Exception, arguments: list[str]) -> Path | None:
    """Where the report of our own mistake was written, ready to be pasted into an issue: no secrets, no variables'
    values, readable by this user only; None when nowhere can be."""
    import platform
    import tempfile
    import traceback
    from pathlib import Path

    from ralph_mission import __version__
    from ralph_mission.app.secrets import environment_secrets
    from ralph_mission.safety.secrets import redact

    text = (
        f"ralph {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"command: ralph {' '.join(arguments)}\n\n{''.join(traceback.format_exception(error))}"
    )
    for folder in (*_state_dir(arguments), Path(tempfile.gettempdir())):
        with suppress(OSError):
            return create_report(folder, redact(text, environment_secrets()))
    return None


def _state_dir(arguments: list[str]) -> list[Path]:
    # Only if it exists: a crash outside a repository must not create a folder.
    from ralph_mission.adapters import files
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.cli.spelling import repo_of

    with suppress(UserError, OSError):
        place = Git.open(repo_of(arguments)).state_dir
        return [files.own(place)] if place.is_dir() else []
    return []


def create_report(folder: Path, text: str) -> Path:
    """Write a report that nobody else may read; its path. Raises OSError."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    path = folder / f"ralph-crash-{moment}-{os.getpid()}.txt"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding=sys.getdefaultencoding(), errors="backslashreplace") as file:
        file.write(text)
    return path


def _os_error_text(error: OSError) -> str:
    reason = (error.strerror or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _interrupt_word(interrupt: KeyboardInterrupt) -> str:
    if isinstance(interrupt, Stopped):
        return "stopped, as somebody asked"
    return "terminated" if isinstance(interrupt, Terminated) else "interrupted"


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def _reader_left() -> int:
    # The pipe is closed: the interpreter's own flush at exit must not fail either.
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return 1
