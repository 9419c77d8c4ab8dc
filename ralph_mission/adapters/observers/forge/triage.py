"""What texts of open issues tell: likely duplicates, and stack traces that name lines of this commit.

Precision first. Two issues that name different versions, platforms, numbers or code in their titles are two issues.
Template text proves nothing, so a line counts only if at most two issues have it. Issues that mention each other are
known to be related.

A trace counts if its innermost frame outside the language's own library is in this repository; a trace that merely
passes through it does not. A frame counts if its file is unambiguous at the commit, and if the line is the traced one:
Python quotes it, the tag of a Go module's version has it; elsewhere the line must be in the function that the frame
names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import combinations

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.looking import block, one_line, split_lines, valid_path
from ralph_mission.adapters.observers.markers import is_test_data
from ralph_mission.adapters.projects.manifests import read_json, table
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.values import compile_regex, dataclass

ISSUES = 1_000  # the newest ones are compared
BODY = 20_000  # characters of one text that are read
FEWEST = 4  # distinctive words of a title
LENGTH = 24  # characters of a distinctive error
LINES = 2  # quoted of each issue

_WORD = compile_regex(r"[a-z0-9][\w.+#-]*[\w+#]|[a-z0-9]")
_STOP = frozenset(
    (
        "a an and are as at be been but by can could do does for get gets getting had has have how i if in into is"
        " issue it its me my of on or our please so some that the their them then there this to up us use used using"
        " was we when where which while why will would you your bug feature request question"
    ).split()
)
_ORDERED = compile_regex(r"\b(?:to|from|into|before|after|than|instead|over)\b", re.IGNORECASE)
_APART = compile_regex(
    r"\b(?:v?\d[\w.]*|windows|win\d*|linux|ubuntu|debian|fedora|alpine|mac(?:os)?|osx|darwin|ios|ipad\w*|android|safari|chrome|"
    r"chromium|firefox|edge|arm(?:64)?|aarch64|x86\w*|amd64|m[1-4]|docker|wsl\d?|pypy|cpython|nodejs|node|deno|bun|"
    r"postgres\w*|mysql|mariadb|sqlite|redis|mongo\w*|npm|yarn|pnpm|webpack|vite|rollup|esbuild)\b|`[^`]+`|[\"'][^\"']+[\"']"
    r"|\b[^\W_]+(?:[._]+[^\W_]+)+\b|\b[a-z]+[A-Z]\w*|--?[a-z][\w-]+"
)
_ERROR = compile_regex(
    r"^\W{0,4}(?:(?:Uncaught|Unhandled|Caused by:|thread '[^']{1,60}' panicked at|panic:|fatal:|error(?:\[\w+\])?:)"
    r"\s*)?"
    r"(?:[\w.$]+(?:Error|Exception|Panic|Warning|Failure)\b|\w*[Ee]rror\b|panic\b|fatal\b|TS\d+\b|E[A-Z]{4,}\b).{8,300}$"
)
_VARIABLE = compile_regex(
    r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b|(?:[A-Za-z]:)?[\\/][^\s:\"']+|\b\d{1,2}:\d{2}(?::\d{2})?\b|line \d+"
)


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two issues, the older one first, and the matching text of each."""

    older: Issue
    newer: Issue
    quotes: tuple[str, str]
    sure: float

    def read_in_full(self, issues: Mapping[int, Issue]) -> DuplicatePair | None:
        """The pair with their comments; None if one was not read, or somebody has already related them."""
        older, newer = issues.get(self.older.number), issues.get(self.newer.number)
        if older is None or newer is None or names(older, newer.number) or names(newer, older.number):
            return None
        return replace(self, older=older, newer=newer)

    def signal(self) -> Signal:
        """The finding."""
        newer, older = self.newer, self.older
        return Signal(
            observer="forge",
            kind="triage",
            title=one_line(f"#{newer.number} is likely the same as #{older.number}: {newer.title}"),
            essence=("duplicate", str(newer.number)),
            occurrence=f"of-{older.number}",
            severity=Severity.MEDIUM,
            confidence=self.sure,
            effort=0.5,
            detail=block(f"#{older.number} {one_line(older.title)}\n#{newer.number} {one_line(newer.title)}"),
            author=one_line(newer.author.login),
            reference=newer.number,
            quotes=(
                Quote(one_line(self.quotes[1], 200), reference=newer.number),
                Quote(one_line(self.quotes[0], 200), reference=older.number),
            ),
        )


def likely_duplicates(issues: Iterable[Issue]) -> tuple[DuplicatePair, ...]:
    """The pairs among open issues, the most certain and newest first; an issue is in at most one."""
    newest = sorted(issues, key=lambda issue: issue.number)[-ISSUES:]
    pairs = {(pair.older.number, pair.newer.number): pair for pair in (*_by_title(newest), *_by_error(newest))}
    chosen, taken = [], set[int]()
    for pair in sorted(pairs.values(), key=lambda pair: (-pair.sure, -pair.newer.number, -pair.older.number)):
        if not {pair.older.number, pair.newer.number} & taken:
            taken |= {pair.older.number, pair.newer.number}
            chosen.append(pair)
    return tuple(chosen)


def names(issue: Issue, number: int) -> bool:
    """Whether an issue or its comments mention another one."""
    texts = (issue.title, issue.body, *(remark.body for remark in issue.remarks))
    expression = re.compile(rf"(?:#|/issues/|/pull/){number}(?!\d)")
    return any(expression.search(text) for text in texts)


# --- titles ---------------------------------------------------------------------------


def _by_title(issues: Sequence[Issue]) -> Iterator[DuplicatePair]:
    """Pairs whose titles have the same distinctive words; those of one author only if the texts are equal too."""
    alike: dict[frozenset[str], list[Issue]] = {}
    for issue in issues:
        words = telling_words(issue.title)
        if len(words) >= FEWEST:
            alike.setdefault(words, []).append(issue)
    for group in alike.values():
        if len(group) > 2:
            continue  # a title used again and again is a template, such as that of a release
        for older, newer in combinations(group, 2):
            repeated = older.author.id == newer.author.id and _collapse_spaces(older.body) != _collapse_spaces(
                newer.body
            )
            if not repeated and _same_order(older.title, newer.title) and _may_be_one(older, newer):
                yield DuplicatePair(older, newer, (older.title, newer.title), 0.85)


def _same_order(one: str, other: str) -> bool:
    """Whether the words' order is the same or makes no difference: "from A to B" is not "from B to A"."""
    return _words(one) == _words(other) or not (_ORDERED.search(one) or _ORDERED.search(other))


def telling_words(title: str) -> frozenset[str]:
    """A title's distinctive words, without their endings."""
    return frozenset(_words(title))


def _words(title: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(title.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending) and word.isalpha():
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if word.isalpha() and len(word) > 4 else word


def _may_be_one(one: Issue, other: Issue) -> bool:
    """Whether neither mentions the other, and their titles do not name different versions, platforms, numbers or
    code."""
    if names(one, other.number) or names(other, one.number):
        return False
    return _particulars(one.title) == _particulars(other.title)


def _particulars(title: str) -> frozenset[str]:
    lower = {found.lower().strip("`\"'").removeprefix("v") for found in _APART.findall(title.lower())}
    return frozenset(lower | {found.lower().strip("`\"'") for found in _APART.findall(title)})


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())[:BODY]


# --- errors ---------------------------------------------------------------------------


def _by_error(issues: Sequence[Issue]) -> Iterator[DuplicatePair]:
    """Pairs that alone have the same error line, and share two words of their titles or another such line."""
    errors = {issue.number: error_lines(issue.body) for issue in issues}
    having: dict[str, list[Issue]] = {}
    for issue in issues:
        for line in errors[issue.number]:
            having.setdefault(line, []).append(issue)
    shared: dict[tuple[int, int], list[str]] = {}
    for line, group in having.items():
        if len(group) == 2:
            shared.setdefault((group[0].number, group[1].number), []).append(line)
    by_number = {issue.number: issue for issue in issues}
    for (first, second), lines in shared.items():
        older, newer = by_number[first], by_number[second]
        related = len(telling_words(older.title) & telling_words(newer.title)) >= 2 or len(lines) >= LINES
        if related and older.author.id != newer.author.id and _may_be_one(older, newer):
            yield DuplicatePair(older, newer, (_quoted(errors[first], lines), _quoted(errors[second], lines)), 0.8)


def error_lines(body: str) -> dict[str, str]:
    """The error lines in a text, by their part that is the same on every machine."""
    lines = (line.strip(" \t>") for line in body[:BODY].splitlines())
    found = {_VARIABLE.sub("…", line): line for line in lines if len(line) <= 400 and _ERROR.match(line)}
    return {key: line for key, line in found.items() if len(key) >= LENGTH and len(key.split()) >= 4}


def _quoted(bodies: Mapping[str, str], lines: Sequence[str]) -> str:
    return bodies[max(lines, key=len)]


TRACED_BODY = 60_000  # characters of one text
FRAMES = 200  # of one text
ABOVE = 200  # lines above a frame's in which its function may begin
REPORTS = 100  # issues with stack traces that are examined, newest first
SHOWN = 3  # quoted lines

MARGIN = r"[ \t>|]{0,60}"
LINE = r"(\d{1,7})"
_PYTHON = compile_regex(
    rf'^{MARGIN}File "([^"\n]{{1,300}})", line {LINE}, in ([\w<>.]{{1,100}})[ \t]*\n([^\n]{{1,300}})?', re.MULTILINE
)
_NODE = compile_regex(
    rf"^{MARGIN}"
    r"at (?:(?:async |new )?([\w$.<>#\[\] ]{1,120}?) \()?(?:file://)?"
    rf"((?:[A-Za-z]:)?[^\s():]{{1,300}}\.[cm]?[jt]sx?):{LINE}:\d{{1,7}}\)?",
    re.MULTILINE,
)
_JAVA = compile_regex(
    rf"^{MARGIN}"
    r"at (?:[\w.@-]{1,80}/{1,2})?([\w$]{1,60}(?:\.[\w$]{1,60}){1,12})\.([\w$<>]{1,80})"
    rf"\((\w{{1,80}}\.(?:java|kt)):{LINE}\)",
    re.MULTILINE,
)
_GO = compile_regex(
    rf"^{MARGIN}"
    r"([\w-][\w.-]{0,60}(?:/[\w.~%-]{1,60}){0,8})\.(?:\(\*?\w{1,60}\)\.)?(\w{1,80})(?:\.func[\d.]+)?"
    rf"\([^\n]{{0,300}}\)[ \t]*\n{MARGIN}(\S{{1,300}}\.go):{LINE}",
    re.MULTILINE,
)
_RUST = compile_regex(
    rf"^{MARGIN}\d{{1,4}}: ([^\n]{{1,200}}?)(?:::h[0-9a-f]{{16}})?[ \t]*\n{MARGIN}at (\S{{1,300}}\.rs):{LINE}",
    re.MULTILINE,
)
_HEAD = compile_regex(
    r"Traceback \(most recent|Caused by|goroutine \d+ \[|stack backtrace|^[ \t>|]*[\w.]*(?:Error|Exception|Panic)\b"
    r"|\n[ \t>|]*\n",
    re.MULTILINE,
)
_UNREAD = compile_regex(r"^[ \t>|]*(?:at |File |/)[^\n]*\.(?:py|[cm]?[jt]sx?|java|kt|go|rs)\b\W{1,8}\d", re.MULTILINE)
_RUNTIME = compile_regex(r"[^\n]*(?:/src/runtime/|node:internal|/rustc/)[^\n]*")
_LIBRARY = {
    "python": compile_regex(
        r"^<|(?:^|/)lib(?:64)?/python[\d.]+/(?!site-packages|dist-packages)|(?:^|/)Lib/(?!site-packages)"
    ),
    "node": compile_regex(r"^(?:node:|internal/)|^[^/\\]+$"),
    "java": compile_regex(r"^(?:java|javax|jdk|sun|com/sun|kotlin)/"),
    "go": compile_regex(r"/go[\d.]*(?:/libexec)?/src/|^/usr/local/go/"),
    "rust": compile_regex(r"(?:^|/)rustc/"),
}
"""The standard library of each language, by a frame's path."""
_HINT = compile_regex(r'File "|\bat |\.go:\d|\.rs:\d', re.MULTILINE)
_ELSEWHERE = compile_regex(r"(?:^|/)(?:site-packages|dist-packages|node_modules|\.cargo/registry/src/[^/]+|pkg/mod)/")


@dataclass(frozen=True, slots=True)
class TraceFrame:
    """One frame: a path as it was printed, the line, the function; `source` is the traced line, of Go the package."""

    language: str
    path: str
    line: int
    function: str
    source: str = ""


def traces(text: str) -> list[list[TraceFrame]]:
    """The stack traces in a text, each from its innermost frame outwards."""
    text = text[:TRACED_BODY].replace("\r\n", "\n")
    if not _HINT.search(text):
        return []
    found = [
        *(
            (m.span(), TraceFrame("python", m[1], int(m[2]), m[3], (m[4] or "").strip(" \t>|")))
            for m in _PYTHON.finditer(text)
        ),
        *((m.span(), TraceFrame("node", m[2], int(m[3]), (m[1] or "").strip())) for m in _NODE.finditer(text)),
        *((m.span(), TraceFrame("java", _java_path(m), int(m[4]), m[2])) for m in _JAVA.finditer(text)),
        *((m.span(), TraceFrame("go", m[3], int(m[4]), m[2], m[1])) for m in _GO.finditer(text)),
        *((m.span(), TraceFrame("rust", m[2], int(m[3]), m[1])) for m in _RUST.finditer(text)),
    ]
    found.sort(key=lambda pair: pair[0])
    stacks: list[list[TraceFrame]] = []
    end = 0
    for span, frame in found[:FRAMES]:
        between = text[end : span[0]]
        heads = list(_HEAD.finditer(between))
        if not stacks or heads or stacks[-1][0].language != frame.language:
            stacks.append([])
        if _UNREAD.search(_RUNTIME.sub("", between[heads[-1].end() if heads else 0 :])):
            stacks[-1].append(TraceFrame(frame.language, "", 0, ""))  # unknown language
        stacks[-1].append(frame)
        end = span[1]
    return [trace[::-1] if trace[0].language == "python" else trace for trace in stacks]


def _java_path(match: re.Match[str]) -> str:
    """A class's package as folders, with the frame's file."""
    return f"{match[1].rpartition('.')[0].replace('.', '/')}/{match[3]}"


class TracedCommit:
    """The files of one commit, read on demand."""

    def __init__(self, git: Git, commit: str) -> None:
        self.git, self.commit = git, commit
        self.files = {entry.path: entry.oid for entry in git.listing(commit)}
        self._by_name: dict[str, list[str]] = {}
        for path in self.files:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)
        self._lines: dict[str, list[str]] = {}

    def lines(self, path: str) -> list[str]:
        """A file's lines."""
        if path not in self._lines:
            oid = self.files[path]
            self._lines[path] = split_lines(self.git.blobs([oid]).get(oid, b""))
        return self._lines[path]

    def lines_at(self, tag: str, path: str) -> list[str]:
        """A file's lines at a tag; none if there is no such tag."""
        oid = self.git.resolve(f"refs/tags/{tag}")
        return split_lines(self.git.blobs([f"{oid}:{path}"]).get(f"{oid}:{path}", b"")) if oid else []

    def ending_with(self, tail: str, within: Callable[[str], bool] = lambda path: True) -> str:
        """The only file whose path ends with the components of `tail`; "" if there is none or more than one."""
        named = self._by_name.get(posixpath.basename(tail), ())
        found = [path for path in named if (path == tail or path.endswith(f"/{tail}")) and within(path)]
        return found[0] if len(found) == 1 else ""

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Folders of npm packages, by the package's name."""
        manifests = [path for path in self._by_name.get("package.json", ()) if not is_test_data(path)][:200]
        named = ((table(read_json("\n".join(self.lines(path)))).get("name"), path) for path in manifests)
        return {str(name): posixpath.dirname(path) for name, path in named if name}

    @property
    def module(self) -> str:
        """The top-level Go module."""
        text = "\n".join(self.lines("go.mod")) if "go.mod" in self.files else ""
        found = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
        return found[1] if found else ""


# --- which line of the commit a frame is ----------------------------------------------


def traced_lines(commit: TracedCommit, text: str) -> Iterator[Quote]:
    """The commit's lines that the traces of a text name, innermost first."""
    known_places = set[tuple[str, int]]()
    for trace in traces(text):
        own = [frame for frame in trace if not _LIBRARY[frame.language].search(frame.path)]
        places = [_place(commit, frame) for frame in own]
        if not places or places[0] is None:
            continue
        for place in places:
            if place and place not in known_places:
                known_places.add(place)
                path, line = place
                yield Quote(commit.lines(path)[line - 1].strip(), valid_path(path), line, commit.commit)


def _place(commit: TracedCommit, frame: TraceFrame) -> tuple[str, int] | None:
    path = _file(commit, frame) if frame.path else ""
    line = _line(commit, frame, path) if path and not is_test_data(path) else 0
    return (path, line) if line else None


def _file(commit: TracedCommit, frame: TraceFrame) -> str:
    path = re.sub(r"^(?:[A-Za-z]:)?[/.]*/", "", frame.path.replace("\\", "/"))
    if frame.language == "go":
        return _go_file(commit, frame, path)
    if frame.language == "java":
        return commit.ending_with(path)
    if installed := list(_ELSEWHERE.finditer(f"/{path}")):
        return _installed(commit, frame, f"/{path}"[installed[-1].end() :])
    parts = path.split("/")
    tails = ("/".join(parts[at:]) for at in range(len(parts) - 1))  # at least a folder and a name
    is_relative = frame.path == path or frame.path.startswith("./")
    return path if is_relative and path in commit.files else next(filter(None, map(commit.ending_with, tails)), "")


def _installed(commit: TracedCommit, frame: TraceFrame, tail: str) -> str:
    """A file of an installed package; it is this repository's only if the package has its name."""
    if frame.language == "node":
        name, _, rest = tail.partition("/")
        if name.startswith("@"):
            scoped, _, rest = rest.partition("/")
            name = f"{name}/{scoped}"
        folder = commit.packages.get(name)
        path = posixpath.join(folder, rest) if folder else rest if folder == "" else ""
        return path if path in commit.files else ""
    if frame.language == "python" and "/" in tail:
        return next((path for path in (tail, f"src/{tail}", f"lib/{tail}") if path in commit.files), "")
    return ""


def _go_file(commit: TracedCommit, frame: TraceFrame, path: str) -> str:
    """The file below the module's folder; the frame's function names its package."""
    if not commit.module or not (frame.source == commit.module or frame.source.startswith(f"{commit.module}/")):
        return ""
    found = posixpath.join(frame.source.removeprefix(commit.module).strip("/"), posixpath.basename(path))
    return found if found in commit.files else ""


def _line(commit: TracedCommit, frame: TraceFrame, path: str) -> int:
    """The traced line; 0 if the commit has a different one there."""
    lines = commit.lines(path)
    if frame.language == "python":
        return _quoted_line(lines, frame.line, frame.source)
    if (version := re.search(r"@(v\d+\.\d+\.\d+)/", frame.path)) and frame.language == "go":
        then = commit.lines_at(version[1], path)
        text = then[frame.line - 1].strip() if 1 <= frame.line <= len(then) else ""
        return _quoted_line(lines, frame.line, text)
    name = _function(frame)
    if not re.fullmatch(r"[A-Za-z_$][\w$]{2,}", name) or not 1 <= frame.line <= len(lines):
        return 0
    above = reversed(lines[max(0, frame.line - ABOVE) : frame.line])
    begun = next(filter(None, map(_BEGINS[frame.language].search, above)), None)
    inside = begun is not None and name in begun.groups()
    return frame.line if inside and lines[frame.line - 1].strip() else 0


def _function(frame: TraceFrame) -> str:
    """The bare name of a frame's function."""
    if frame.language == "rust":
        return next((part for part in reversed(frame.function.split("::")) if not part.startswith("{")), "")
    return re.split(r"[.#\s]", re.sub(r"\s*\[as .*\]$", "", frame.function))[-1]


_BEGINS = {
    "node": compile_regex(
        r"\bfunction\*?\s+([\w$]+)|([\w$]+)\s*[=:]\s*(?:async\s*)?function\b|([\w$]+)\s*=\s*(?:async\s*)?\([^()]*\)\s*=>"
        r"|^\s*(?:(?:public|private|protected|static|async|get|set)\s+)*(?!(?:if|for|while|switch|catch|return)\b)([\w$]+)"
        r"\s*\([^;]*\{\s*$"
    ),
    "java": compile_regex(
        r"^\s*(?!return|throw|new|else|if|for|while|switch|catch|try\b)(?:@\w+\s+)*[\w<>\[\], ?.]+\s+([\w$]+)"
        r"\s*\([^;]*$"
    ),
    "go": compile_regex(r"^func\s+(?:\([^)]*\)\s*)?(\w+)"),
    "rust": compile_regex(r"\bfn\s+(\w+)"),
}
"""The start of a function, by language; the nearest one above a line contains it."""


def _quoted_line(lines: Sequence[str], number: int, text: str) -> int:
    """The number of a quoted line: as given, or its only occurrence in the file."""
    if len(text) < 8:
        return 0
    if 1 <= number <= len(lines) and lines[number - 1].strip() == text:
        return number
    places = [at for at, line in enumerate(lines, 1) if line.strip() == text]
    return places[0] if len(places) == 1 and len(text) >= 16 else 0


def traced_reports(git: Git, commit: str, issues: Iterable[Issue], cache: FileCache) -> list[Signal]:
    """The bug reports whose stack traces name lines of the commit; cached by their text and the commit."""
    newest = sorted((issue for issue in issues if traces(issue.body)), key=lambda issue: -issue.number)[:REPORTS]
    if not newest:
        return []
    question = cache_key(commit, *(f"{issue.number} {issue.body}" for issue in newest))
    known = cache.get(question)
    if not isinstance(known, dict):
        traced = TracedCommit(git, commit)
        found = {str(issue.number): list(traced_lines(traced, issue.body)) for issue in newest}
        known = {number: [asdict(quote) for quote in lines] for number, lines in found.items()}
        cache.put(question, known)
        cache.tidy()
    reports = ((issue, [Quote(**one) for one in known.get(str(issue.number), ())]) for issue in newest)
    return [trace_signal(issue, lines) for issue, lines in reports if lines]


def trace_signal(issue: Issue, lines: Sequence[Quote]) -> Signal:
    """The finding for a report whose trace names lines of this commit."""
    first = lines[0]
    return Signal(
        observer="forge",
        kind="triage",
        title=one_line(f"#{issue.number} has a stack trace through {first.path}:{first.line}: {issue.title}"),
        essence=("trace", str(issue.number)),
        severity=Severity.MEDIUM,
        confidence=0.85,
        effort=0.5,
        detail=block(f"#{issue.number} {one_line(issue.title)}"),
        author=one_line(issue.author.login),
        reference=issue.number,
        quotes=tuple(lines[:SHOWN]),
    )
