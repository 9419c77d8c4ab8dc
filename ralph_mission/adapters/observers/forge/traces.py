"""Stack traces in bug reports, and the lines of this commit that they name.

Precision first. A frame counts if its file is at the commit beyond doubt, and if the line is the one that was traced:
Python quotes it; elsewhere the function that the frame names must begin shortly above it. Frames of other packages are
nothing.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.markers import is_test_data
from ralph_mission.adapters.observers.text import block, one_line, split_lines, valid_path
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.values import compile_regex, dataclass

BODY = 60_000  # characters of one text
FRAMES = 200  # of one text
ABOVE = 200  # lines above a frame's own in which its function may begin
SHOWN = 3  # lines that are quoted

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


def frames(text: str) -> list[TraceFrame]:
    """The frames of all traces in a text, in order."""
    text = text[:BODY].replace("\r\n", "\n")
    if not _HINT.search(text):
        return []
    found = [
        *(
            (m.start(), TraceFrame("python", m[1], int(m[2]), m[3], (m[4] or "").strip(" \t>|")))
            for m in _PYTHON.finditer(text)
        ),
        *((m.start(), TraceFrame("node", m[2], int(m[3]), (m[1] or "").strip())) for m in _NODE.finditer(text)),
        *((m.start(), TraceFrame("java", _java_path(m), int(m[4]), m[2])) for m in _JAVA.finditer(text)),
        *((m.start(), TraceFrame("go", m[3], int(m[4]), m[2], m[1])) for m in _GO.finditer(text)),
        *((m.start(), TraceFrame("rust", m[2], int(m[3]), m[1])) for m in _RUST.finditer(text)),
    ]
    return [frame for _, frame in sorted(found, key=lambda pair: pair[0])][:FRAMES]


def _java_path(match: re.Match[str]) -> str:
    """The package of a class as folders, and the file that the frame names."""
    return f"{match[1].rpartition('.')[0].replace('.', '/')}/{match[3]}"


class TracedCommit:
    """The files of one commit, read as frames ask for them."""

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

    def ending_with(self, tail: str, within: Callable[[str], bool] = lambda path: True) -> str:
        """The one file whose path ends with `tail`, whole names; "" when there is none, or more than one."""
        named = self._by_name.get(posixpath.basename(tail), ())
        found = [path for path in named if (path == tail or path.endswith(f"/{tail}")) and within(path)]
        return found[0] if len(found) == 1 else ""

    @property
    def packages(self) -> Mapping[str, str]:
        """Folders by the name of the npm package in them."""
        if self._packages is None:
            manifests = [path for path in self._by_name.get("package.json", ()) if not is_test_data(path)][:200]
            named = ((_name("\n".join(self.lines(path))), posixpath.dirname(path)) for path in manifests)
            self._packages = {name: folder for name, folder in named if name}
        return self._packages

    @property
    def module(self) -> str:
        """The Go module at the top."""
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
    """The lines of the commit that a text's traces name, as they stand there, the innermost of each trace first."""
    seen = set[tuple[str, int]]()
    for frame in _innermost_first(frames(text)):
        path = _file(commit, frame)
        line = _line(commit, frame, path) if path and not is_test_data(path) else 0
        if line and (path, line) not in seen:
            seen.add((path, line))
            yield Quote(commit.lines(path)[line - 1].strip(), valid_path(path), line, commit.commit)


def _innermost_first(found: Sequence[TraceFrame]) -> Iterable[TraceFrame]:
    """Python prints the innermost frame last."""
    python = [frame for frame in found if frame.language == "python"]
    return (*reversed(python), *(frame for frame in found if frame.language != "python"))


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
    """The file of a package as it is installed: this repository's only if it bears its name."""
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
    """The file below the module's folder: the frame's function says its package."""
    if not commit.module or not (frame.source == commit.module or frame.source.startswith(f"{commit.module}/")):
        return ""
    found = posixpath.join(frame.source.removeprefix(commit.module).strip("/"), posixpath.basename(path))
    return found if found in commit.files else ""


def _line(commit: TracedCommit, frame: TraceFrame, path: str) -> int:
    """The line that was traced, 0 where the commit has another one there."""
    lines = commit.lines(path)
    if frame.language == "python":
        return _quoted_line(lines, frame)
    name = _function(frame)
    if not re.fullmatch(r"[A-Za-z_$][\w$]{2,}", name) or not 1 <= frame.line <= len(lines):
        return 0
    begins = re.compile(_BEGINS[frame.language].replace("NAME", re.escape(name)))
    above = lines[max(0, frame.line - 1 - ABOVE) : frame.line]
    return frame.line if lines[frame.line - 1].strip() and any(map(begins.search, above)) else 0


def _function(frame: TraceFrame) -> str:
    """The bare name of the function that a frame is in."""
    if frame.language == "rust":
        return next((part for part in reversed(frame.function.split("::")) if not part.startswith("{")), "")
    return re.split(r"[.#\s]", re.sub(r"\s*\[as .*\]$", "", frame.function))[-1]


_BEGINS = {
    "node": r"\bfunction\*?\s+NAME\b|\bNAME\s*[=:]\s*(?:async\s*)?(?:function|\()|class\s+NAME\b"
    r"|^\s*(?:(?:public|private|static|async|export|get|set)\s+)*NAME\s*\([^;]*\{\s*$",
    "java": r"\bNAME\s*\([^;]*$",
    "go": r"^func\s+(?:\([^)]*\)\s*)?NAME\b",
    "rust": r"\bfn\s+NAME\b",
}
"""How a function begins, by language."""


def _quoted_line(lines: Sequence[str], frame: TraceFrame) -> int:
    """Where the line stands that the trace quotes: at its number, or at the only place of the file."""
    said = frame.source
    if len(said) < 8:
        return 0
    if frame.line <= len(lines) and lines[frame.line - 1].strip() == said:
        return frame.line
    places = [number for number, line in enumerate(lines, 1) if line.strip() == said]
    return places[0] if len(places) == 1 and len(said) >= 16 else 0


def trace_signal(issue: Issue, lines: Sequence[Quote]) -> Signal:
    """What is told of a report whose trace names lines of this commit."""
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
