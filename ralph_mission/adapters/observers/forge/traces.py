"""Stack traces in bug reports, and the lines of this commit that they name.

Precision first. A trace counts if its innermost frame outside the language's own library is in this repository; a trace
that merely passes through it does not. A frame counts if its file is unambiguous at the commit, and if the line is the
traced one: Python quotes it, the tag of a Go module's version has it; elsewhere the line must be in the function that
the frame names.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.looking import block, one_line, split_lines, valid_path
from ralph_mission.adapters.observers.markers import is_test_data
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.values import compile_regex, dataclass

BODY = 60_000  # characters of one text
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
    text = text[:BODY].replace("\r\n", "\n")
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
        self._packages: Mapping[str, str] | None = None

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

    @property
    def packages(self) -> Mapping[str, str]:
        """Folders of npm packages, by the package's name."""
        if self._packages is None:
            manifests = [path for path in self._by_name.get("package.json", ()) if not is_test_data(path)][:200]
            named = ((_name("\n".join(self.lines(path))), posixpath.dirname(path)) for path in manifests)
            self._packages = {name: folder for name, folder in named if name}
        return self._packages

    @property
    def module(self) -> str:
        """The top-level Go module."""
        text = "\n".join(self.lines("go.mod")) if "go.mod" in self.files else ""
        found = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
        return found[1] if found else ""


def _name(manifest: str) -> str:
    try:
        found = json.loads(manifest)
    except (ValueError, RecursionError):
        return ""
    return str(found.get("name") or "") if isinstance(found, dict) else ""


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
