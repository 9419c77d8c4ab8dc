"""Which folders of a repository import each other: Python, JavaScript, TypeScript and Java, as far as a line tells. And
examples that cannot run any more, as they import what is no longer there.

An *established direction* is one in which several files of a folder import another folder, and none the other way. A
change that imports against it is worth a look: afterwards neither folder can be used, tested or moved alone. What is
imported within a function or for types alone counts in neither direction.

Examples are fenced blocks of pages, and Python files among the documentation. Only what once was there is reported,
with the commit that took it away. A module that makes its names while it runs (`import *`, `__getattr__`) is not
judged.
"""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.looking import block, one_line, valid_path
from ralph_mission.adapters.observers.markers import is_test_data
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

if TYPE_CHECKING:
    from ralph_mission.adapters.observers.doc_tree import DocTree

KIND = "architecture"
ENCODING = 1  # of what is cached
ESTABLISHED = 2
"""Files that import in one direction. Over three years of five repositories (OpenHands, prettier, starlight, vue,
fastapi) 15 such directions were reversed, and people undid 6 of them themselves."""
MOST = 3  # reversed directions of one look: more are a restructuring, which people know of
MOST_FILES, LARGEST = 5_000, 200_000  # files read, and bytes of one
SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts")
SOURCES = (".py", ".java", *SCRIPTS)
ASIDE = compile_regex(
    r"(?:^|/)(?:tests?|testing|docs?|docs_src|examples?|scripts?|bench\w*|website|playgrounds?|migrations)/"
    r"|(?:^|/)(?:test_|conftest)[^/]*$|[._-](?:test|spec|stories|d)\.\w+$"
)
"""What looks at all of a repository without being a part of it."""
PYTHON = compile_regex(
    r"^(?:from[ \t]+(?P<module>\.*[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(?P<plain>[\w., \t]+))",
    re.MULTILINE,
)
SCRIPT = compile_regex(
    r"""^(?:import|export)[ \t]+(?!type\b)(?:[\w*{}\s,$]+?\sfrom[ \t]+)?['"](?P<target>\.[^'"\n]+)['"]""", re.MULTILINE
)
JAVA = compile_regex(r"^import\s+(?:static\s+)?(?P<name>[\w.]+);", re.MULTILINE)

Direction = tuple[str, str]
"""A folder, and one that it imports."""
BLOCK = compile_regex(r"^[ \t]*```+[ \t]*(?:\{?python|py)\b[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
STATEMENT = compile_regex(
    r"^[ \t]*(?:>>> )?(?P<text>from (?P<module>[A-Za-z_][\w.]*) import (?P<names>\([^()]*\)|[^\n(#;]+))", re.MULTILINE
)
ROOTS = ("", "src/")
LARGEST_MODULE = 500_000  # bytes of a module


@dataclass(frozen=True, slots=True)
class ImportLine:
    """The first line with which a file imports something of another folder."""

    path: str
    line: int
    text: str


Imports = Mapping[Direction, tuple[ImportLine, ...]]
"""Of each direction one line per file."""


def read_imports(git: Git, commit: str, excluded: Callable[[str], bool], cache: FileCache) -> Imports:
    """Those of a commit. Raises GitError."""
    question = cache_key("imports", str(ENCODING), commit)
    with suppress(TypeError, ValueError, KeyError):
        return {
            (start, end): tuple(ImportLine(**one) for one in lines) for start, end, lines in cache.get(question)["all"]
        }
    entries = {entry.path: entry.oid for entry in git.listing(commit) if is_source(entry.path, excluded)}
    paths = sorted(entries)[:MOST_FILES]
    blobs = git.blobs(entries[path] for path in paths)
    texts = {path: blobs[entries[path]].decode("utf-8", "replace") for path in paths if entries[path] in blobs}
    found = imports_between({path: text for path, text in texts.items() if len(text) <= LARGEST})
    cache.put(question, {"all": [[*ends, [asdict(one) for one in lines]] for ends, lines in found.items()]})
    return found


def is_source(path: str, excluded: Callable[[str], bool]) -> bool:
    """Whether it is a file that counts."""
    return path.endswith(SOURCES) and not (ASIDE.search(path) or is_test_data(path) or excluded(path))


def imports_between(texts: Mapping[str, str]) -> Imports:
    """What files import of other folders; `texts`: sources by path."""
    modules = {name: path for path in texts if path.endswith(".py") for name in _module_names(path, texts)}
    classes = {path.rpartition("java/")[2]: path for path in texts if path.endswith(".java")}
    found: dict[Direction, dict[str, ImportLine]] = {}
    for path, text in texts.items():
        read = (
            partial(_of_python, modules=modules)
            if path.endswith(".py")
            else partial(_of_java, classes=classes)
            if path.endswith(".java")
            else _of_script
        )
        here = posixpath.dirname(path)
        for at, target in read(path, text, files=texts.keys()):
            there = posixpath.dirname(target)
            if not _is_within(here, there) and not _is_within(there, here):
                number = text.count("\n", 0, at) + 1
                line = ImportLine(path, number, text.split("\n", number)[number - 1].strip())
                found.setdefault((here, there), {}).setdefault(path, line)
    return {direction: tuple(lines.values()) for direction, lines in found.items()}


def _is_within(folder: str, other: str) -> bool:
    return f"{folder}/".startswith(f"{other}/") or not other


def _module_names(path: str, files: Collection[str]) -> Iterator[str]:
    """The names by which a Python file may be imported: from the outermost package, or from the top."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    package = posixpath.dirname(path)
    while package and f"{package}/__init__.py" in files:
        package = posixpath.dirname(package)
    yield ".".join(parts[len(package.split("/")) if package else 0 :])
    yield ".".join(parts)


def _of_python(path: str, text: str, files: Collection[str], modules: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    for found in PYTHON.finditer(text):
        if found["plain"]:
            targets = [modules.get(name.split()[0]) for name in found["plain"].split(",") if name.split()]
        else:
            names = re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", found["names"])
            module = found["module"]
            dots = len(module) - len(module.lstrip("."))
            if dots:
                base = posixpath.dirname(path)
                for _ in range(dots - 1):
                    base = posixpath.dirname(base)
                start = "/".join(part for part in (base, module[dots:].replace(".", "/")) if part)
                inner = [f"{start}/{name}{end}" for name in names for end in (".py", "/__init__.py")]
                outer = (f"{start}.py", f"{start}/__init__.py")
                targets = [one for one in inner if one in files] or [one for one in outer if one in files]
            else:
                targets = [modules.get(f"{module}.{name}") or modules.get(module) for name in names]
        yield from ((found.start(), target) for target in dict.fromkeys(targets) if target)


def _of_script(path: str, text: str, files: Collection[str]) -> Iterator[tuple[int, str]]:
    for found in SCRIPT.finditer(text):
        named = posixpath.normpath(posixpath.join(posixpath.dirname(path), found["target"]))
        bare = re.sub(r"\.[mc]?js$", "", named)
        tried = [named, *(bare + end for end in SCRIPTS), *(f"{named}/index{end}" for end in SCRIPTS)]
        if target := next((one for one in tried if one in files), ""):
            yield found.start(), target


def _of_java(path: str, text: str, files: Collection[str], classes: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    for found in JAVA.finditer(text):
        name = found["name"].replace(".", "/")
        if target := classes.get(f"{name}.java") or classes.get(f"{posixpath.dirname(name)}.java"):
            yield found.start(), target


# --- what is new ----------------------------------------------------------------------


def mutual_imports(imports: Imports) -> set[Direction]:
    """Pairs of folders, in order, that import each other."""
    return {(start, end) for start, end in imports if start < end and (end, start) in imports}


def reversed_directions(before: Imports, now: Imports) -> list[Direction]:
    """Established directions against which something is imported `now`: the importing folder, the one it imports."""
    return [
        (end, start)
        for (start, end), lines in before.items()
        if len(lines) >= ESTABLISHED
        and (end, start) not in before
        and (end, start) in now
        and len(now.get((start, end), ())) >= ESTABLISHED
    ]


def essence(direction: Iterable[str]) -> tuple[str, str]:
    """What identifies a pair of folders."""
    return KIND, " and ".join(sorted(direction))


def architecture_signals(
    before: Imports, now: Imports, commit: str, written: Callable[[str, int], tuple[str, float]]
) -> list[Signal]:
    """A finding for each direction that was reversed since `before`; `written`: author and age in days of a line."""
    found = reversed_directions(before, now)
    return [_signal(one, now, commit, written) for one in found] if len(found) <= MOST else []


def _signal(
    direction: Direction, now: Imports, commit: str, written: Callable[[str, int], tuple[str, float]]
) -> Signal:
    start, end = direction
    against, along = now[start, end], now[end, start]
    author, age = written(against[0].path, against[0].line)
    who = f"\nLast changed by {one_line(author)}, {age:.0f} days ago." if author else ""
    files = count_noun(len(along), "file")
    return Signal(
        observer="code",
        kind=KIND,
        title=one_line(f"{start} now imports {end}, where {files} import{'s' * (len(along) == 1)} {start}"),
        essence=essence(direction),
        severity=Severity.LOW,
        confidence=0.8,
        effort=2.0,
        detail=block(
            f"{files} of {end} import {start}, and until now nothing was imported the other way: {start} could be used,"
            f" tested and moved without {end}.{who}"
        ),
        path=valid_path(against[0].path),
        line=against[0].line,
        author=one_line(author),
        age_days=age,
        quotes=tuple(
            Quote(one_line(one.text), valid_path(one.path), one.line, commit) for one in (*against[:3], along[0])
        ),
    )


def stale_imports(tree: DocTree, path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(line, statement, why) of each import in a page or an example of what is gone."""
    blocks = [(0, text)] if path.endswith(".py") else [(one.start(1), one[1]) for one in BLOCK.finditer(text)]
    for start, code in blocks:
        for found in STATEMENT.finditer(code):
            if why := _gone(tree, found["module"], re.findall(r"(\w+)(?:\s+as\s+\w+)?", found["names"])):
                line = text.count("\n", 0, start + found.start("text")) + 1
                yield line, " ".join(found["text"].split()), why


def _gone(tree: DocTree, module: str, names: Collection[str]) -> str:
    package, place = module.partition(".")[0], module.replace(".", "/")
    root = next((root for root in ROOTS if f"{root}{package}/__init__.py" in tree.files), None)
    if root is None or not names:
        return ""
    files = (f"{root}{place}.py", f"{root}{place}/__init__.py")
    file = next((one for one in files if one in tree.files), "")
    if not file:
        commit, now = next((gone for gone in map(tree.went_to, files) if gone[0]), ("", ""))
        return f"the module {module} was {f'moved to {now}' if now else 'removed'} in {commit[:12]}" if commit else ""
    known = _names(tree.read(file))
    if known is None:
        return ""
    inner = {one.rpartition("/")[2] for one in _children(tree.files, posixpath.dirname(file))}
    for name in names:
        if name not in known and not (file.endswith("/__init__.py") and name in inner):
            commit = tree.last_said(rf"\b{re.escape(name)}\b", file)
            return f"{module} has no {name} since {commit[:12]}" if commit else ""
    return ""


def _children(files: Collection[str], folder: str) -> Iterator[str]:
    """The modules and packages of a package, without suffix."""
    for path in files:
        if path.startswith(f"{folder}/"):
            rest = path[len(folder) + 1 :].partition("/")[0]
            yield f"{folder}/{rest.partition('.')[0]}"


@lru_cache(maxsize=1_000)
def _names(source: str) -> frozenset[str] | None:
    """Every name that a module may have; None if it makes them while it runs."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source[:LARGEST_MODULE])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return None if found & {"*", "__getattr__"} else frozenset(found)
