"""Ruff's safe fixes: by the repository's own rules where it has any, else by three that change nothing.

Ruff runs in a clone that holds Python files and its configuration only. Afterwards every removed
import must prove that nobody else needs it, else its file is left as it is.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from ralph_mission.adapters.fixers.fixer import CommitTree, Correction, Fix, Fixer, installed_version
from ralph_mission.adapters.fixers.places import is_generated, off_limits
from ralph_mission.adapters.sandbox.process import FinishedProcess, own_tool, run_foreign
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.values import compile_regex, dataclass

RULES = 1
"""Counts the changes to what follows here, so that no cache outlives its rules."""
OURS = ("--isolated", "--select", "F401,F541,F632")  # unused import, f-string of nothing, `is` with a literal
# Which imports are first-party depends on what lies around, so an order may be wrong here and right there.
ORDER_STAYS = ("--ignore", "I001")
COMMON = ("--no-fix", "--no-unsafe-fixes", "--no-cache", "--exit-zero", "--quiet", "--output-format", "json")
CONFIGURED = frozenset({"ruff.toml", ".ruff.toml", "pyproject.toml"})
SECONDS = 120.0
WITH_SIDE_EFFECTS = frozenset(
    {"__future__", "antigravity", "this", "readline", "rlcompleter", "site", "faulthandler", "lib2to3"}
)
"""Modules of the standard library that are imported for what importing them does."""
WORD = compile_regex(r"\w+")
EVERYTHING = compile_regex(r"import\s*\*")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding of ruff that it can fix safely."""

    path: str
    line: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Import:
    """What was imported, dots of a relative one included, and the name it is bound to."""

    whole: str
    name: str


def version() -> str:
    """Of ruff and of the rules here, for caches."""
    return f"ruff {installed_version('ruff')}, rules {RULES}"


def fixes(tree: CommitTree) -> Iterator[Fix]:
    """One fix per Python file with safe fixes. Raises UserError when ruff cannot run or read its configuration."""
    sources = {entry.path: text for entry, text in tree.texts(lambda path: path.endswith(".py"))}
    if not any(_is_python(path) for path in sources):
        return
    settings = {entry.path: text for entry, text in tree.texts(lambda path: PurePosixPath(path).name in CONFIGURED)}
    modes = {entry.path: entry.mode for entry in tree.entries}
    fixable = {
        path: (new, found)
        for path, (new, found) in _fixable_files(tree, [*sources, *settings], _choose_rules(settings)).items()
        if path in sources and _is_python(path) and new != sources[path] and not is_generated(sources[path])
    }
    removed = {path: _removed(sources[path], new) for path, (new, _) in fixable.items()}
    mentions = _mentions(sources, removed)
    for path, (new, found) in fixable.items():
        old, gone = sources[path], removed[path]
        if gone is not None and _harmless(path, gone, new, sources, mentions):
            yield Fix(path, modes[path], old.encode(), new.encode(), _to_corrections(old, found))


def _is_python(path: str) -> bool:
    return path.endswith(".py") and not off_limits(path)


def _choose_rules(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The repository's rules when it has any, but for the order of imports; else ours."""
    own = any(not path.endswith("pyproject.toml") or "[tool.ruff" in text for path, text in settings.items())
    return ORDER_STAYS if own else OURS


def _fixable_files(
    tree: CommitTree, paths: Iterable[str], rules: tuple[str, ...]
) -> dict[str, tuple[str, list[Diagnosis]]]:
    """Path -> (new text, what was found there), for every file that ruff says it can fix."""
    from ralph_mission.adapters.workspace.clone import clone

    with clone(tree.git, tree.commit, tree.scratch, paths=paths) as folder:
        found = _diagnoses(folder, _ruff(tree, folder, *rules).stdout)
        if found:
            _ruff(tree, folder, *rules, "--fix")  # the later one counts
        return {path: ((folder / path).read_bytes().decode(), there) for path, there in found.items()}


def _ruff(tree: CommitTree, folder: Path, *options: str) -> FinishedProcess:
    command = [own_tool("ruff"), "check", *COMMON, *options, "."]
    done = run_foreign(command, cwd=folder, home=tree.scratch / "home", timeout=SECONDS, output_cap=50_000_000)
    if done.code == 0:
        return done
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    reason = "took too long" if done.timed_out else (lines[-1] if lines else f"exit code {done.code}")
    raise UserError(f"ruff cannot check this repository: {reason}", "run `ruff check` there to see why")


def _diagnoses(folder: Path, output: bytes) -> dict[str, list[Diagnosis]]:
    found: dict[str, list[Diagnosis]] = {}
    for row in json.loads(output or b"[]"):
        if (row.get("fix") or {}).get("applicability") == "safe":
            path = Path(row["filename"]).relative_to(folder).as_posix()
            code = row.get("code") or ""
            found.setdefault(path, []).append(Diagnosis(path, row["location"]["row"], code, row["message"]))
    return found


def _removed(old: str, new: str) -> frozenset[Import] | None:
    """The imports that are gone; None if that cannot be told."""
    try:
        return _imports(old) - _imports(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # newer than the Python we run on, or not Python
        return None


def _mentions(sources: Mapping[str, str], removed: Mapping[str, frozenset[Import] | None]) -> dict[str, frozenset[str]]:
    """The files with the name of a removed import, or of a module that it was removed from, by this word; by "",
    those that import everything of a module."""
    words = {PurePosixPath(path).stem for path in removed}
    words |= {one.name for gone in removed.values() for one in gone or ()}
    found = {word: set[str]() for word in ("", *words) if not word or WORD.fullmatch(word)}
    for path, text in sources.items() if any(removed.values()) else ():
        for word in found.keys() & WORD.findall(text):
            found[word].add(path)
        if EVERYTHING.search(text):
            found[""].add(path)
    return {word: frozenset(paths) for word, paths in found.items()}


def _harmless(
    path: str,
    removed: frozenset[Import],
    new: str,
    sources: Mapping[str, str],
    mentions: Mapping[str, frozenset[str]],
) -> bool:
    """Whether every import that was removed was of no use to anybody."""
    place = PurePosixPath(path)
    if removed and place.name == "__init__.py":
        return False
    near = mentions.get(place.stem, frozenset(sources)) - {path}
    for gone in removed:
        others = near & (mentions.get(gone.name, near) | mentions[""])
        if not _of_no_use(path, gone, new, (sources[other] for other in others)):
            return False
    return True


def _imports(source: str) -> frozenset[Import]:
    found: set[Import] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {Import(alias.name, alias.asname or alias.name.split(".")[0]) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            found |= {Import(f"{origin}.{alias.name}", alias.asname or alias.name) for alias in node.names}
    return frozenset(found)


def _of_no_use(path: str, gone: Import, new: str, others: Iterable[str]) -> bool:
    # Only the standard library is known to do nothing when it is imported: anything else may be
    # a plugin that registers itself, a fixture, a model.
    package, name = gone.whole.split(".")[0], gone.name
    if package not in sys.stdlib_module_names or package in WITH_SIDE_EFFECTS:
        return False
    if re.search(rf"\b{re.escape(name)}\b", new):  # a type comment, a doctest, a string to be evaluated
        return False
    module = re.escape(PurePosixPath(path).stem)
    mentioned = re.compile(rf"\b{module}\b")
    imported = re.compile(
        rf"\.{re.escape(name)}\b|\b{module}\s+import\s*(?:\*|[^\n(]*\b{re.escape(name)}\b"
        rf"|\([^)]*\b{re.escape(name)}\b)"
    )
    return not any(mentioned.search(text) and imported.search(text) for text in others)


def _to_corrections(old: str, found: Iterable[Diagnosis]) -> tuple[Correction, ...]:
    lines = [*old.split("\n"), ""]
    return tuple(
        Correction(d.line, f"{d.code} {d.message}", normalise_line(lines[min(d.line, len(lines)) - 1])) for d in found
    )


FIXER = Fixer("ruff", "lint-fix", version, fixes)
