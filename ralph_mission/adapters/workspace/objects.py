"""The user's repository as the trusted reader of a clone, and the project's own checks on the clone.

`Objects` reads nothing a session could write: trees, contents and new objects come from the user's repository, to which
it only adds objects; no ref, index or file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ralph_mission.adapters.git import git as wire
from ralph_mission.adapters.git.git import EMPTY_TREE, Git, GitError, Identity
from ralph_mission.adapters.sandbox.excerpt import find_cause
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.adapters.workspace.snapshot import File, Files
from ralph_mission.loop.model.state import CheckResult
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex

GITLINK = "160000"
NOT_IN_A_NAME = compile_regex(r"[\x00-\x1f<>\x7f]")
SCRATCH = "refs/ralph/scratch"
"""The scratch ref of `fast-import` for a commit; it is removed at once."""


@dataclass(frozen=True)
class Objects:
    """The objects of `git`; `entries` is not cached."""

    git: Git

    @cached_property
    def algorithm(self) -> str:
        """The hash algorithm of object ids."""
        return self.git.try_text("rev-parse", "--show-object-format") or "sha1"

    def entries(self, commit: str) -> dict[str, File]:
        """Every path of a commit ("" for none); a submodule has the mode GITLINK. Raises GitError."""
        listed = self.git.listing(commit) if commit else ()
        return {entry.path: File(entry.mode, entry.oid) for entry in listed}

    def contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Contents by object id; missing ones are left out. Raises GitError."""
        return self.git.blobs(oids)

    def store(self, contents: Iterable[bytes]) -> None:
        """Write blobs, in one process. Raises GitError."""
        stream = b"".join(_blob(content) for content in contents)
        if stream:
            self.git.run("fast-import", "--quiet", "--done", stdin=stream + b"done\n")

    def commit(
        self, parent: str, changes: Mapping[str, File | None], message: str, when: datetime, who: Identity,
        contents: Iterable[bytes] = (),
    ) -> str:  # fmt: skip  # as one reads it
        """A commit on `parent` ("" for none) with the given paths (None: deleted). Blobs are stored already, or in
        `contents`.

        On disk when it returns. Raises GitError.
        """
        text, seconds = message.replace("\0", "").encode("utf-8", "replace"), int(when.timestamp())
        by = f"{_name(who.name)} <{_name(who.email)}> {seconds} +0000"
        lines = [_blob(content) for content in contents]
        lines += [f"commit {SCRATCH}\nmark :1\nauthor {by}\ncommitter {by}\ndata {len(text)}\n".encode() + text + b"\n"]
        lines.append(f"from {parent}\n".encode() if parent else b"")
        lines += [b"D %s\n" % quoted(path) for path, file in changes.items() if file is None]
        lines += [
            f"M {file.mode} {file.oid} ".encode() + quoted(path) + b"\n"
            for path, file in changes.items()
            if file is not None
        ]
        lines.append(f"\nget-mark :1\nreset {SCRATCH}\nfrom {wire.NOBODY[0] * self._length}\n\ndone\n".encode())
        raw = self.git.run("-c", "core.fsync=committed", "fast-import", "--quiet", "--done", stdin=b"".join(lines))
        return raw.decode().strip()

    def paths_between(self, old: str, new: str) -> list[str]:
        """The paths in which two commits ("" for none) differ. Raises GitError."""
        flags = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
        raw = self.git.run("diff-tree", *flags, old or EMPTY_TREE, new or EMPTY_TREE)
        return [path.decode("utf-8", "surrogateescape") for path in raw.split(b"\0") if path]

    def patch(self, old: str, new: str) -> bytes:
        """The patch between two commits, for `git apply`. Raises GitError."""
        flags = ("-r", "-p", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
        return self.git.run("diff-tree", *flags, old or EMPTY_TREE, new)

    def behind(self, commit: str, tip: str) -> bool:
        """Whether `tip` is `commit` or a descendant; False if git cannot tell."""
        if not re.fullmatch("[0-9a-f]{40}([0-9a-f]{24})?", commit) or not tip:
            return False
        try:
            self.git.run("merge-base", "--is-ancestor", commit, tip)
        except GitError:
            return False
        return True

    @property
    def _length(self) -> int:
        return 64 if self.algorithm == "sha256" else len(wire.NOBODY)


def submodules(entries: Files) -> Iterator[str]:
    """The submodules of a commit."""
    return (path for path, file in entries.items() if file.mode == GITLINK)


def quoted(path: str) -> bytes:
    """A path quoted for a line of git's input."""
    name = wire.raw(path)
    return b'"%s"' % name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _blob(content: bytes) -> bytes:
    return b"blob\ndata %d\n%s\n" % (len(content), content)


def _name(text: str) -> str:
    return NOT_IN_A_NAME.sub("", text).strip()


LINES = 40
"""Characters reported of a failed check's output, from the end."""
KnownRed = Callable[[str, FinishedProcess], bool]
"""Whether a failed check failed before, and is not worse now."""
NAMED = 100  # characters of a check where its failure is named
GRACE = 1.0  # seconds between TERM and KILL: Ctrl-C takes effect within two


def verdict(
    checks: Iterable[str],
    top: Path,
    seconds: float,
    sandbox: Sandbox = OPEN,
    environment: Mapping[str, str] = MappingProxyType({}),
    known: KnownRed = lambda *_: False,
) -> CheckResult:
    """Run shell commands in `top` until one fails, each for at most `seconds`, in `sandbox`, with `environment` added.
    A failure that is `known` does not count. A check whose runner says that it ran no tests does not pass.

    Each gets a fresh HOME: start-up files that a session, or its code in a check, left there would affect the next one.
    Raises UserError if `sandbox` cannot isolate it as required.
    """
    failing = list[str]()
    for check in checks:
        with tempfile.TemporaryDirectory(prefix="ralph-check-", ignore_cleanup_errors=True) as home:
            done = run_foreign(
                check, cwd=top, home=Path(home), timeout=seconds, grace=GRACE, sandbox=sandbox, extra_env=environment
            )
        output = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        if done.code and known(check, done):
            failing.append(check)
        elif done.code or ran_no_test(output):
            why = f"took over {seconds:g} s" if done.timed_out else f"exit {done.code}" if done.code else "ran no test"
            cause = find_cause(done.stdout, done.stderr, top) if done.code else ""
            first = f"{truncate(' '.join(check.split()), NAMED)}: {why}" + (f": {cause}" if cause else "")
            return CheckResult(False, True, "\n".join((first, *output.splitlines()[-LINES:])))
    return CheckResult(True, True, "", standing=tuple(failing))


NONE = compile_regex(
    r"^=* ?no tests ran in|^collected 0 items|^=* ?(?:\d+ (?:skipped|deselected|warnings?),? )+in [\d.]+s"
    r"|^Ran 0 tests? |^Ran (?P<all>\d+) tests? in [^\n]*\n+OK \(skipped=(?P=all)\)$"
    r"|^No tests? (?:files? )?(?:were )?(?:found|executed|to run)|^\[INFO\] No tests to run|^\[INFO\] Tests run: 0,"
    r"|^Tests:\s+(?:\d+ (?:skipped|todo), )+\d+ total|^[ \t]*Tests\s+(?:\d+ (?:skipped|todo)[ |]*)+\(\d+\)"
    r"|^[ \t]*0 passing\b|^(?:#|\u2139) tests 0$|^1\.\.0\b|\[no test files\]|\[no tests to run\]"
    r"|^\t\S+\t\tcoverage: 0\.0% of statements|^running 0 tests$|^test result: \w+\. 0 passed; 0 failed"
    r"|^0 (?:examples|runs|tests),|^ok \| 0 passed|^> Task :\S*[tT]est\S* NO-SOURCE"
    r"|Executed 0 tests|^There are no tests",
    re.MULTILINE,
)
SOME = compile_regex(
    r"^=* ?(?:\d+ \w+, )*[1-9]\d* (?:passed|failed|xfailed|xpassed|errors?)\b.* in [\d.]+s"
    r"|^[ \t]*[1-9]\d* passed \([\d.]+m?s\)"
    r"|^Ran (?P<all>[1-9]\d*) tests? (?!in [^\n]*\n+OK \(skipped=(?P=all)\)$)"
    r"|^[ \t]*Tests:?\s+(?:\d+ \w+[,| ]+)*[1-9]\d* (?:passed|failed)|^[ \t]*[1-9]\d* passing\b|^(?:#|\u2139) pass [1-9]"
    r"|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?!.*\[no tests to run\])|^[ \t]*--- PASS: |\"Action\":\"pass\".*\"Test\":"
    r"|^test result: \w+\. (?:[1-9]\d* passed|\d+ passed; [1-9])|\b[1-9]\d* tests? run:|\bTests run: [1-9]"
    r"|^[ \t]*ok [1-9]\d*\b(?!.*# (?:SKIP|TODO))|tests passed, .* out of [1-9]|\b[1-9]\d* tests? (?:passed|ok)\b"
    r"|^[ \t]*[1-9]\d* (?:examples?|runs|tests), |^Tests [1-9]\d* OK\b|^OK \([1-9]|\bPASS(?:ED)?:? [1-9]|^ok \| [1-9]"
    r"|^\[  PASSED  \] [1-9]|Executed [1-9]\d* tests?",
    re.MULTILINE,
)
COLOUR = compile_regex(r"\x1b\[[\d;]*m")
LABEL = compile_regex(r"^[\w@./-]+(?: [\w:-]+)?(?:: | +\| )", re.MULTILINE)
"""Prefixes of lines by runners of several packages: `packages/a test: `, `web  | `."""


def ran_no_test(output: str) -> bool:
    """Whether a test runner says that it ran no tests, or skipped all; not if another one ran some. Without a known
    runner's message nothing is known."""
    plain = COLOUR.sub("", output)
    whole = f"{plain}\n{LABEL.sub('', plain)}"
    return NONE.search(whole) is not None and SOME.search(whole) is None
