"""Finds markers in code (TODO, @ts-ignore, …) in a commit by `git grep`, outside excluded files.

Patterns are POSIX extended regular expressions, run by git with a time-out. Literal patterns share one pass of git, and
Python then tells them apart: a marker must be in a comment, an `any` must not, and a plain word in a sentence or a
string is neither. Vendored, generated, minified and lock files are excluded, and what the user adds. Lines of a
command's output are matched in another process, bounded in number and time.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers import matching
from ralph_mission.adapters.observers.looking import plain
from ralph_mission.adapters.observers.results import GarbledOutput, Result, inside, level, whole_number
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

FOLDERS = frozenset(
    (
        "node_modules bower_components vendor third_party third-party site-packages venv .venv dist Pods Carthage"
        " .yarn .next generated __generated__ __snapshots__"
    ).split()
)
ENDINGS = tuple(
    (
        ".min.js .min.css .bundle.js .map .lock -lock.json -lock.yaml npm-shrinkwrap.json go.sum .svg .snap .csv"
        " .pb.go _pb2.py _pb2.pyi .g.dart .generated.ts .tsbuildinfo"
    ).split()
)
PATHSPECS = tuple(f":(exclude,glob)**/{folder}/**" for folder in ("node_modules", "vendor", "third_party", "dist"))
"""Excludes for git itself, so that it need not read the largest files; each costs a little for every file."""


_TEST_DATA = compile_regex(
    r"(?:^|/)(?:node_modules|vendor|third_party|testdata|fixtures?|__fixtures__|tests?|__tests__|specs?)/"
)


def is_test_data(path: str) -> bool:
    """Whether a file belongs to tests or is not the project's own: its contents are often examples."""
    return bool(_TEST_DATA.search(path))


def excluder(patterns: Iterable[str]) -> Callable[[str], bool]:
    """A predicate for excluded paths, by built-in rules and `patterns` (as in .gitignore)."""
    lines = tuple(patterns)
    if not lines:
        return _is_excluded
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(lines)
    return lambda path: _is_excluded(path) or (len(spec.patterns) > 0 and spec.match_file(path))


def _is_excluded(path: str) -> bool:
    return path.endswith(ENDINGS) or not FOLDERS.isdisjoint(path.split("/")[:-1])


GENERATED = "^[^A-Za-z0-9\"'`]{0,5}(Code generated .* DO NOT EDIT|@generated)"
"""A line by which generators mark their output (https://go.dev/s/generatedcode), for git."""

LINES = 50_000
LONGEST = 2_000  # characters
SECONDS = 10.0


def read(raw: bytes, pattern: str, root: Path, home: Path, most: int) -> list[Result]:
    """The first `most` matching lines. Raises GarbledOutput if matching takes too long."""
    lines = [line for line in plain(raw.decode("utf-8", "replace")).split("\n") if line.strip()]
    short = [line for line in lines[:LINES] if len(line) <= LONGEST]
    request = {"pattern": pattern, "most": most, "lines": short, "seconds": math.ceil(SECONDS) + 1}
    program = (sys.executable, "-I", "-S", matching.__file__)
    question = json.dumps(request).encode()
    done = run_foreign(program, cwd=root, home=home, timeout=SECONDS, output_cap=20_000_000, stdin=question)
    if done.timed_out:
        raise GarbledOutput(f"the regex took longer than {SECONDS:g} s; make it simpler")
    if done.code != 0:
        raise GarbledOutput("the regex could not be matched")
    return [_result(groups, root) for groups in json.loads(done.stdout)]


def _result(groups: dict[str, str], root: Path) -> Result:
    path, line = inside(groups.get("path", ""), root), whole_number(groups.get("line", ""))
    return Result(path, line, groups.get("code", ""), groups["message"], level(groups.get("level", "")))


TYPESCRIPT = (".ts", ".tsx", ".mts", ".cts")
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "any": TYPESCRIPT,
    "ts-ignore": (*TYPESCRIPT, ".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte"),
}
PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc")
LONGEST_MARKER = 1_000  # characters of a line: longer ones are generated
PER_FILE = 1_000  # matching lines of one file
MARKER_SECONDS = 60.0  # for one pass
ARGUMENTS = 100_000  # characters of paths that fit on a command line with room to spare
MAGIC = {"GIT_LITERAL_PATHSPECS": "0"}

_META = frozenset("\\^$.*+?()[]{}")
_LEADER = compile_regex(r"(?:^|[^:\"'`])(?://|/\*|#|<!--|--|\"\"\"|'''|\(\*|\{-)|^\s*[*;%!]")
_SCRIPT_LEADER = compile_regex(r"(?:^|[^:\"'`])//|/\*|^\s*\*")
_COLON = compile_regex(r"(?:\([^()]{0,60}\))?:\s+[^\s\"'`\d{\[]|\([^()]{1,60}\)\s*$")
_START = compile_regex(r"^\s*(?:[-*+>]\s+)?(?:\[ ?\]\s*)?$")
_QUOTES = tuple("\"'`")


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker to search for. `literals` is empty if only git's engine may match `pattern`."""

    kind: str
    pattern: str
    literals: tuple[str, ...]
    expression: re.Pattern[str]
    where: Literal["comment", "code", "anywhere"]
    suffixes: tuple[str, ...]

    def find(self, path: str, line: str) -> str | None:
        """The word that marks the line; None if it is not such a marker."""
        if self.suffixes and not path.lower().endswith(self.suffixes):
            return None
        if not self.literals:
            return ""
        for found in self.expression.finditer(line):
            if self._stands(path, line[: found.start()], line[found.end() :]):
                return found[0]
        return None

    def _stands(self, path: str, before: str, after: str) -> bool:
        if self.where == "code":
            return not _SCRIPT_LEADER.search(before)
        if self.kind == "ts-ignore" and any(before.count(quote) % 2 for quote in _QUOTES):
            return False  # in a string, such as code to be generated
        return self.where == "anywhere" or _marks(path, before, after)


@dataclass(frozen=True, slots=True)
class Hit:
    """A marker found in a commit; `path`: as in git (surrogateescape), `line`: 1-based, `word`: the matched word."""

    kind: str
    path: str
    line: int
    text: str
    word: str


def marker(kind: str, pattern: str) -> Marker:
    """The marker for `pattern`. A pattern of only words and `|` means whole words in comments."""
    parts = pattern.split("|")
    words = all(re.fullmatch(r"\w+", part) for part in parts)
    literals = tuple(part.removeprefix(r"\b").removesuffix(r"\b") for part in parts)
    simple = all(literal and not _META & set(literal) for literal in literals)
    # Alternatives of literals are linear in any engine, unlike the user's other patterns.
    choice = "|".join(map(_literal, parts)) if simple else "(?!)"
    where: Literal["comment", "code", "anywhere"] = (
        "code" if kind == "any" else "comment" if words or kind == "ts-ignore" else "anywhere"
    )
    expression = re.compile(rf"\b(?:{choice})\b" if words else choice)
    return Marker(kind, pattern, literals if simple else (), expression, where, SUFFIXES.get(kind, ()))


def scan(
    git: Git,
    commit: str,
    markers: Sequence[Marker],
    excluded: Callable[[str], bool],
    paths: Sequence[str] | None = None,
) -> tuple[Hit, ...]:
    """The markers in a commit's tree, or only in `paths`, by path and line.

    Raises UserError if git cannot use a pattern, or takes too long.
    """
    if paths is not None and not paths:
        return ()
    within = None if paths is None else frozenset(paths)
    few = paths if paths is not None and sum(map(len, paths)) < ARGUMENTS else ()
    hits = (hit for turn in _passes(markers) for hit in _pass(git, commit, turn, few))
    wanted = [hit for hit in hits if (within is None or hit.path in within) and not excluded(hit.path)]
    generated = _generated(git, commit, sorted({hit.path for hit in wanted}))
    return tuple(sorted((h for h in wanted if h.path not in generated), key=lambda hit: (hit.path, hit.line, hit.kind)))


def _generated(git: Git, commit: str, paths: Sequence[str]) -> frozenset[str]:
    """Those of the files with a line that says that a program wrote them."""
    if not paths:
        return frozenset()
    few = paths if sum(map(len, paths)) < ARGUMENTS else ()
    try:
        raw = git.run("grep", "-lIzE", "--full-name", "-e", GENERATED, commit, "--", *(few or PATHSPECS),
                      env={} if few else MAGIC, timeout=MARKER_SECONDS)  # fmt: skip  # one call
    except GitError:  # none, or too slow
        return frozenset()
    return frozenset(path[len(commit) + 1 :] for path in raw.decode("utf-8", "surrogateescape").split("\0"))


def _literal(part: str) -> str:
    core = part.removeprefix(r"\b").removesuffix(r"\b")
    return r"\b" * part.startswith(r"\b") + re.escape(core) + r"\b" * part.endswith(r"\b")


def _passes(markers: Sequence[Marker]) -> Iterator[Sequence[Marker]]:
    together = [one for one in markers if one.literals]
    if together:
        yield together
    yield from ([one] for one in markers if not one.literals)


def _pass(git: Git, commit: str, turn: Sequence[Marker], paths: Sequence[str]) -> Iterator[Hit]:
    literal = all(one.literals for one in turn)
    needles = [text for one in turn for text in (one.literals or (one.pattern,))]
    raw = _grep(git, commit, "-F" if literal else "-E", needles, paths, turn[0].kind)
    for path, number, line in _records(raw, len(commit) + 1):
        if len(line) <= LONGEST_MARKER:
            found = ((one.kind, one.find(path, line)) for one in turn)
            yield from (Hit(kind, path, number, line, word) for kind, word in found if word is not None)


def _grep(git: Git, commit: str, engine: str, needles: Iterable[str], paths: Sequence[str], kind: str) -> bytes:
    flags = ("-n", "-I", "-z", "--no-color", "--full-name", "--no-textconv", f"--max-count={PER_FILE}", engine)
    patterns = [part for needle in needles for part in ("-e", needle)]
    try:
        return git.run(
            "grep",
            *flags,
            *patterns,
            commit,
            "--",
            *(paths or PATHSPECS),
            env={} if paths else MAGIC,
            timeout=MARKER_SECONDS,
        )
    except GitError as error:
        if error.code == 1:  # nothing found
            return b""
        message = error.detail.strip().removeprefix("fatal: ")
        raise UserError(f"marker {kind}: {message}", f"fix observers.code.markers.{kind} in ralph.yml") from None


def _records(raw: bytes, skip: int) -> Iterator[tuple[str, int, str]]:
    position = 0
    while position < len(raw):  # PATH NUL LINE NUL TEXT LF, as a path may contain anything but NUL
        path_end = raw.index(b"\0", position)
        number_end = raw.index(b"\0", path_end + 1)
        end = raw.index(b"\n", number_end)
        path = raw[position + skip : path_end].decode("utf-8", "surrogateescape")
        text = raw[number_end + 1 : end].decode("utf-8", "replace").rstrip("\r")
        yield path, int(raw[path_end + 1 : number_end]), text
        position = end + 1


def _marks(path: str, before: str, after: str) -> bool:
    if before.endswith((".", *_QUOTES)) and (before.endswith(".") or after.startswith(_QUOTES)):
        return False
    if before.endswith("|") or after.startswith("|"):  # a choice of words to look for, as our own settings have it
        return False
    if _COLON.match(after) and not before.endswith("case "):
        return True
    if path.lower().endswith(PROSE):
        return False
    continued = _START.match(before) and re.match(r"\s+\w", after)
    return bool(_LEADER.search(before) or continued)
