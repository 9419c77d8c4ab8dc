"""A claim that something in the code is wrong. Pure.

A claim brings its own proof: quoted lines, a test that fails because of them, and a change with which the test passes.
What the texts alone can show is judged here, before anything runs (`judge_text`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ralph_mission.safety.objections import TEST_PATH, describe_idle_tests
from ralph_mission.safety.patch import (
    EXECUTABLE,
    REGULAR,
    FileChange,
    Patch,
    is_binary,
    measure,
    split_lines,
    touched_lines,
)
from ralph_mission.safety.paths import protected_path, unsafe_path
from ralph_mission.values import compile_regex, dataclass

ReadFile = Callable[[str], bytes | None]
"""The content of a file at the base commit, or None."""

PROVABLE = ("bug", "vulnerability")
"""Kinds of claims that a failing test can prove. Any other is an opinion, and dropped."""
ASSERTION = "assertion"
"""Stands for a failed expectation, instead of the name of an exception."""
LONGEST = 200_000  # characters of all texts of a claim
SHORTEST = 8  # characters of a meaningful quote
COMMENTS = {
    **dict.fromkeys(
        ("py", "pyi", "pyx", "rb", "sh", "bash", "pl", "r", "ex", "exs", "toml", "yml", "yaml"), ("# ", "")
    ),
    **dict.fromkeys(
        "js mjs cjs jsx ts mts cts tsx go rs java kt kts c h cc cpp hpp cs swift scala php dart zig".split(),
        ("// ", ""),
    ),
    **dict.fromkeys(("vue", "svelte", "html", "md"), ("<!-- ", " -->")),
    "css": ("/* ", " */"),
    "lua": ("-- ", ""),
    "sql": ("-- ", ""),
}
"""The beginning and end of a comment, by suffix."""
NO_CODE = (".md", ".html", ".toml", ".yml", ".yaml", ".css")
"""Suffixes of files that have comments but are never run by a test."""
READS_SOURCE = compile_regex(
    r"\binspect\s*\.\s*(?:getsource|getsourcelines|getsourcefile|getfile)\b|\bfrom\s+inspect\s+import\b|\b__code__\b"
    r"|\bco_(?:code|consts|names)\b|^\s*import\s+(?:dis|ast|linecache|marshal)\b|\b(?:ast\.parse|linecache\.getlines?)\b"
    r"|\.toString\(\)\s*\)*\s*\.?\s*(?:includes|indexOf|match|search|to(?:Match|Contain))\b|Function\.prototype\.toString"
    r"|\bgit\s+(?:diff|status|log|show|rev-parse)\b"
)
"""Matches a test that inspects source code instead of behaviour."""
ASKS_FOR_NAME = compile_regex(
    r"\bhasattr\(\s*[\w.]+\s*,\s*[\"'](\w+)[\"']|[\"'](\w+)[\"']\s+in\s+(?:dir|vars)\("
    r"|\btypeof\s+(?:\w+\.)*(\w+)|\b(?:hasOwn|hasOwnProperty)\([^()]*[\"'](\w+)[\"']"
)
"""Matches a test that asks whether something of this name exists."""
ASSERTS = compile_regex(r"^\s*assert\b|\bassert\w*[.(]|\bexpect\(|\.should\b")


@dataclass(frozen=True, slots=True)
class CodeQuote:
    """Whole lines of a file, byte for byte."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class CodeClaim:
    """What is claimed to be wrong, and its proof.

    `path`: the faulty file. `expected`: what the test fails with: "assertion" or the name of an exception. `test` and
    `change` apply to the base commit. `cases`: the test cases that prove it; () means those of the test's files that
    are new or fail now. `guessed`: no claim says what fails and where, so nothing is quoted, and an assertion or any
    exception from a file of the change will do; the change may contain what a person approves later (protected files,
    data).
    """

    kind: str
    title: str
    path: str
    quotes: tuple[CodeQuote, ...]
    expected: str
    test: tuple[FileChange, ...]
    change: tuple[FileChange, ...]
    reason: str = ""
    cases: tuple[str, ...] = ()
    guessed: bool = False

    @property
    def test_files(self) -> tuple[str, ...]:
        """The paths of the test."""
        return tuple(change.path for change in self.test)

    @property
    def patch_changes(self) -> tuple[FileChange, ...]:
        """The test and the change."""
        return (*self.test, *self.change)


def claim_of_patch(title: str, patch: Patch, path: str = "") -> CodeClaim | None:
    """A change with its tests as a claim about `path`, or about the code file it changes most, creates or deletes; None
    if it contains no code of a known language besides tests."""
    test = tuple(change for change in patch.changes if TEST_PATH.search(change.path))
    change = tuple(change for change in patch.changes if not TEST_PATH.search(change.path))
    code = [one for one in change if is_code(one.path)]
    if not code:
        return None
    blamed = max(code, key=lambda one: (one.path == path, measure(Patch(patch.base, (one,))).lines))
    return CodeClaim("bug", title, blamed.path, (), ASSERTION, test, change, guessed=True)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a claim is not proven: a rule's name and one sentence."""

    rule: str
    why: str


class MalformedClaim(ValueError):
    """An unreadable claim; the text says what is wrong with it."""


# --- reading --------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["claims"],
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["kind", "title", "path", "reason", "quotes", "fails_with", "test", "change"],
                "properties": {
                    "kind": {"type": "string", "enum": list(PROVABLE)},
                    "title": {"type": "string"},
                    "path": {"type": "string"},
                    "reason": {"type": "string"},
                    "quotes": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["path", "text"],
                            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
                        },
                    },
                    "fails_with": {"type": "string"},
                    "cases": {"type": "array", "items": {"type": "string"}},
                    "test": {"$ref": "#/$defs/edits"},
                    "change": {"$ref": "#/$defs/edits"},
                },
            },
        }
    },
    "$defs": {
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path", "old", "new"],
                "properties": {"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}},
            },
        }
    },
}
"""The JSON schema of claims. An edit replaces the only occurrence of `old`; "" creates a new file."""


def read_claims(document: str) -> tuple[Mapping[str, Any], ...]:
    """The claims in a JSON document, not parsed yet. Raises MalformedClaim."""
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        raise MalformedClaim("is not JSON") from None
    listed = found.get("claims") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise MalformedClaim('has no list "claims" of objects')
    return tuple(listed)


def read_claim(answer: Mapping[str, Any], read: ReadFile) -> CodeClaim:
    """Parse a claim and apply its edits to the files of the base commit. Raises MalformedClaim."""
    if len(json.dumps(answer)) > LONGEST:
        raise MalformedClaim(f"has more than {LONGEST:,} characters")
    quotes = tuple(CodeQuote(_text(row, "path"), _text(row, "text")) for row in _objects(answer, "quotes"))
    cases = answer.get("cases", [])
    if not isinstance(cases, list) or not all(isinstance(name, str) for name in cases):
        raise MalformedClaim('"cases" is not a list of names')
    return CodeClaim(
        _text(answer, "kind"), _text(answer, "title"), _text(answer, "path"), quotes, _text(answer, "fails_with"),
        _edited(_objects(answer, "test"), read), _edited(_objects(answer, "change"), read),
        str(answer.get("reason") or ""), tuple(cases),
    )  # fmt: skip  # one value


def _edited(edits: Sequence[Mapping[str, Any]], read: ReadFile) -> tuple[FileChange, ...]:
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes] = {}
    for edit in edits:
        path, old, new = _text(edit, "path"), _text(edit, "old").encode(), _text(edit, "new").encode()
        content = before.setdefault(path, read(path))
        here = after.get(path, content)
        if here is None:
            if old:
                raise MalformedClaim(f"edits {path}, which is not there")
            after[path] = new
        elif not old or here.count(old) != 1:
            times = "nothing" if not old else f"what stands there {here.count(old)} times"
            raise MalformedClaim(f"replaces {times} in {path}")
        else:
            after[path] = here.replace(old, new)
    return tuple(
        FileChange(path, "" if before[path] is None else REGULAR, REGULAR, before[path], content)
        for path, content in after.items()
    )


def _text(fields: Mapping[str, Any], name: str) -> str:
    found = fields.get(name)
    if not isinstance(found, str):
        raise MalformedClaim(f'"{name}" is missing or no text')
    return found


def _objects(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = fields.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise MalformedClaim(f'"{name}" is missing or no list of objects')
    return found


# --- what the texts alone tell --------------------------------------------------------


def judge_text(claim: CodeClaim, read: ReadFile) -> Refusal | None:
    """The refusal of a claim before anything runs, or None."""
    return next((Refusal(rule, why) for rule, why in _objections(claim, read)), None)


def _objections(claim: CodeClaim, read: ReadFile) -> Iterator[tuple[str, str]]:
    if claim.kind not in PROVABLE:
        yield "kind", f"a test proves {' or '.join(PROVABLE)}, and no other kind"
    if not claim.guessed:
        yield from _of_quotes(claim, read)
    if not claim.test or not claim.change:
        yield "no-test", "it brings no test" if not claim.test else "it brings no change with which the test passes"
    for change in claim.patch_changes:
        if why := unsafe_path(change.path):
            yield "scope", f"{change.path!r} {why}"
        elif (is_binary(change.new) or is_binary(change.old)) and (is_code(change.path) or not claim.guessed):
            yield "scope", f"{change.path} is not text"
        elif not {change.old_mode, change.new_mode} <= {"", REGULAR, EXECUTABLE}:
            yield "scope", f"{change.path} is not an ordinary file"
    yield from _of_test(claim)
    yield from _of_change(claim)
    if idle := describe_idle_tests(Patch("", claim.patch_changes)):
        yield "weakens-tests", idle


def _of_quotes(claim: CodeClaim, read: ReadFile) -> Iterator[tuple[str, str]]:
    for quote in claim.quotes:
        if not is_quoted(quote, read(quote.path)):
            yield "quote", f"the lines it quotes do not stand in {quote.path}"
    if claim.path not in {quote.path for quote in claim.quotes}:
        yield "quote", f"it quotes nothing of {claim.path}"


def is_quoted(quote: CodeQuote, content: bytes | None) -> bool:
    """Whether the quote consists of whole lines of this content, byte for byte."""
    text = quote.text.strip("\r\n").encode("utf-8", "surrogateescape")
    return content is not None and len(text.strip()) >= SHORTEST and b"\n" + text + b"\n" in _ended(content)


def _ended(content: bytes) -> bytes:
    return b"\n" + content.replace(b"\r\n", b"\n") + b"\n"


def _of_test(claim: CodeClaim) -> Iterator[tuple[str, str]]:
    if name := _asks_for_names(claim):
        yield "reads-source", f"its test asks whether {name} exists, which only the change brings"
    for change in claim.test:
        if change.new is None:
            yield "weakens-tests", f"it deletes {change.path}"
        elif not TEST_PATH.search(change.path):
            yield "scope", f"its test {change.path} is not where tests are"
        elif not claim.guessed and (what := protected_path(change.path)):
            yield "scope", f"its test changes {change.path}: {what}"
        for line in touched_lines(change)[1]:
            if READS_SOURCE.search(line):
                yield "reads-source", f"its test looks at how code is written: {line.strip()[:120]}"


def _asks_for_names(claim: CodeClaim) -> str:
    """The name that the change brings, if all that the tests assert is that such names exist."""
    added = [line for change in claim.test for line in touched_lines(change)[1] if ASSERTS.search(line)]
    questions = [ASKS_FOR_NAME.search(line) for line in added]
    names = [next(filter(None, found.groups())) for found in questions if found]
    return names[0] if names and all(questions) and all(_is_brought(name, claim) for name in names) else ""


def _is_brought(name: str, claim: CodeClaim) -> bool:
    """Whether a name stands in what the change makes of its files, and not in what they are."""
    word = compile_regex(rf"\b{name}\b")
    before, after = (
        "\n".join((getattr(one, side) or b"").decode("utf-8", "replace") for one in claim.change)
        for side in ("old", "new")
    )
    return bool(word.search(after)) and not word.search(before)


def _of_change(claim: CodeClaim) -> Iterator[tuple[str, str]]:
    paths = {change.path for change in claim.change}
    if claim.path not in paths:
        yield "scope", f"the change leaves {claim.path} as it is, which the claim blames"
    if TEST_PATH.search(claim.path):
        yield "scope", f"{claim.path} is a test itself"
    if comment_of(claim.path) is None:
        yield "scope", f"{claim.path} is not source code of a language that is known"
    for path in sorted(paths):
        if TEST_PATH.search(path):
            yield "edits-tests", f"the change touches a test, {path}"
        elif not claim.guessed and (what := protected_path(path)):
            yield "scope", f"the change touches {path}: {what}"


# --- the code that tests are run on ---------------------------------------------------


class CodeState(StrEnum):
    """The code that tests run on.

    `plain`: the base commit, `base`: with the claim's test, `changed`: with the change too. `noted` and `changed-noted`
    are those with the lines that the change adds, or removes, as comments at the end of its files, which exposes tests
    that read the code's text instead of running it. `others`: the change without the file at fault. `fixed`: the change
    with the original tests.
    """

    PLAIN = "plain"
    BASE = "base"
    CHANGED = "changed"
    NOTED = "noted"
    CHANGED_NOTED = "changed-noted"
    OTHERS = "others"
    FIXED = "fixed"


def changes_in(claim: CodeClaim, state: CodeState) -> tuple[FileChange, ...]:
    """The differences between a state and the base commit."""
    match state:
        case CodeState.PLAIN:
            return ()
        case CodeState.BASE:
            return claim.test
        case CodeState.CHANGED:
            return claim.patch_changes
        case CodeState.NOTED:
            return (*claim.test, *filter(None, (_noted(change) for change in claim.change)))
        case CodeState.CHANGED_NOTED:
            return (*claim.test, *(_changed_noted(change) for change in claim.change))
        case CodeState.OTHERS:
            return (*claim.test, *(change for change in claim.change if change.path != claim.path))
        case CodeState.FIXED:
            return claim.change


def is_code(path: str) -> bool:
    """Whether it is source code of a known language."""
    return comment_of(path) is not None and not path.lower().endswith(NO_CODE)


def comment_of(path: str) -> tuple[str, str] | None:
    """The beginning and end of a comment line in a file; None if unknown."""
    return COMMENTS.get(path.rpartition("/")[2].rpartition(".")[2].lower())


def _noted(change: FileChange) -> FileChange | None:
    if change.old is None or change.new is None or comment_of(change.path) is None:
        return None
    return FileChange(
        change.path, change.old_mode, change.old_mode, change.old,
        _with_notes(change.path, change.old, touched_lines(change)[1]),
    )  # fmt: skip  # one value


def _changed_noted(change: FileChange) -> FileChange:
    if change.old is None or change.new is None or comment_of(change.path) is None:
        return change
    noted = _with_notes(change.path, change.new, touched_lines(change)[0])
    return FileChange(change.path, change.old_mode, change.new_mode, change.old, noted)


def _with_notes(path: str, content: bytes, lines: Sequence[str]) -> bytes:
    """The content with at least one note, so that the file always differs."""
    begin, end = comment_of(path) or ("", "")
    close = end.strip()
    notes = [line for text in lines for line in split_lines(text.encode("utf-8", "surrogateescape"))] or ["unchanged"]
    comments = (f"{begin}{(line.strip().replace(close, '') if close else line.strip())}{end}\n" for line in notes)
    text = "".join(comments).encode("utf-8", "surrogateescape")
    return content + (b"" if content.endswith(b"\n") or not content else b"\n") + text
