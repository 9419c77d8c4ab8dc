"""A separate folder for a package manager's work on one project of a commit: its data files, and an empty home.

It gets the files it needs to resolve, but no settings: those can redirect a manager, load code or write outside of its
folder. Its registry is in its environment. Before anything runs, the files are judged: every web URL in them (by the
web guard) and every path that leads out of the repository; paths within it are normal between workspaces. Ambiguous
contents are refused.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
import tempfile
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from ralph_mission.adapters.git.git import Git, TreeEntry
from ralph_mission.adapters.http.guard import GuardedWeb
from ralph_mission.adapters.packages.lockfiles import LARGEST
from ralph_mission.adapters.packages.model import Project
from ralph_mission.adapters.packages.node import plain_yaml
from ralph_mission.adapters.packages.registries import apart, is_index_file
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.errors import UserError
from ralph_mission.safety.address import parse_address
from ralph_mission.values import compile_regex, dataclass

PATHS = ("package.json", "pnpm-workspace.yaml", "pyproject.toml", "uv.toml", "uv.lock")
"""Keys whose values are paths or path patterns."""
_RUN = compile_regex(r"(?<![\w-])exec:", re.IGNORECASE)
_LOCAL = compile_regex(r"(?<![\w-])(?:file|link|portal):(/*+)([^\s\"'#:]*)", re.IGNORECASE)
_ABSOLUTE = compile_regex(r"/+\w|~[/\\]|[A-Za-z]:[/\\]|\\")
_BRACES = compile_regex(r"[{},()|!]")


def leading_out(path: str, text: str) -> str:
    """The part of a text in the file at `path` that leads out of the repository, or runs a command, or ""."""
    if _RUN.search(text):
        return "names a package that a program makes"
    return next((f'leads to "{place[:60]}"' for place in _places(path, text) if _outside(path, place)), "")


def _places(path: str, text: str) -> Iterator[str]:
    for slashes, rest in _LOCAL.findall(text):
        relative = not slashes or (len(slashes) == 2 and rest.startswith("."))
        yield rest if relative else f"/{rest or 'x'}"
    if posixpath.basename(path) in PATHS:
        yield from _BRACES.split(text)


def _outside(path: str, written: str) -> bool:
    place = unquote(written)
    within = posixpath.normpath(posixpath.join(posixpath.dirname(path), place.replace("\\", "/")))
    return bool(_ABSOLUTE.match(place)) or f"{within}/".startswith("../")


Files = Mapping[str, bytes]
Keys = tuple[str, ...]
WORKSPACE = frozenset("packages catalog catalogs overrides packageExtensions peerDependencyRules".split())
"""Package keys of a pnpm-workspace.yaml. The rest are settings of pnpm."""
YOURSELF = "update it yourself, or take that out"
_OWN_REGISTRY = compile_regex(r"(?:registry|npmRegistryServer|index-url|url)\b")
"""Starts the line of a settings file that names the only registry."""
_MANAGER_KEYS = frozenset("overrides resolutions pnpm workspaces catalog catalogs publishConfig".split())
"""Of a package.json, beside all kinds of dependencies: what a manager reads."""
_PROSE = frozenset("urls description readme authors maintainers license keywords classifiers".split())
"""Of a `[project]`."""
_LOCK_NOTES = frozenset("deprecated funding license".split())
"""Of a locked package."""
_WEB = compile_regex(r"https?:[^\s\"'<>|]*", re.IGNORECASE)
_HOST = compile_regex(r"https?:[/\\]*+[^/\\?#@]*+", re.IGNORECASE)
_HOST_ENDS = compile_regex(r"[/\\?#@]")
_LEFT_OUT = str.maketrans("", "", "\t\r\n")
"""Characters that browser-like parsers remove anywhere in a URL."""
_QUOTED = 5
"""The maximum nesting of quoted URLs."""


def files_for_manager(files: Files) -> dict[str, bytes]:
    """The files for a manager. Raises UserError for references to this machine's files or another registry."""
    for path, content in files.items():
        text = _text(path, content)
        if is_index_file(path):
            _one_registry(path, text)
            continue
        for string in _strings_in(path, text):
            if what := leading_out(path, string):
                raise UserError(f"{path} {what}, which no package manager is handed", YOURSELF)
    return {path: _reduce(path, content) for path, content in files.items() if not is_index_file(path)}


def addresses(files: Files) -> tuple[str, ...]:
    """Every web URL that a manager could take from them. Raises UserError for ambiguous contents."""
    texts = {path: _text(path, content) for path, content in files.items() if not is_index_file(path)}
    found = (url for path, text in texts.items() for string in _strings_in(path, text) for url in _urls(string))
    return tuple(dict.fromkeys(found))


# --- settings ------------------------------------------------------------------------


def _one_registry(path: str, text: str) -> None:
    """Raises UserError for settings with a registry for some packages only: another would be used."""
    lines = [line for line in text.splitlines() if "://" in line and line.lstrip()[:1] not in ("#", ";")]
    if len(lines) > 1 or not all(map(_OWN_REGISTRY.match, lines)):
        raise UserError(f"{path} names a registry of its own, and no settings are handed on", YOURSELF)


def _reduce(path: str, content: bytes) -> bytes:
    """A file without settings, and a package.json without the key that makes a manager download another one."""
    match posixpath.basename(path):
        case "package.json":
            manifest = _read(path, _text(path, content), json.loads)
            members = {name: value for name, value in manifest.items() if name not in ("packageManager", "devEngines")}
            if "configDependencies" in _table(members.get("pnpm")):
                members["pnpm"] = {k: v for k, v in members["pnpm"].items() if k != "configDependencies"}
        case "pnpm-workspace.yaml":
            manifest = _read(path, _text(path, content), plain_yaml)
            members = {name: value for name, value in manifest.items() if name in WORKSPACE}
            _one_registry(path, json.dumps({k: v for k, v in manifest.items() if k not in members}, default=str))
        case _:
            return content
    return content if members == manifest else json.dumps(members, indent=2).encode()  # which is YAML, too


# --- addresses -----------------------------------------------------------------------


def _strings_in(path: str, text: str) -> Iterator[str]:
    """Each string of a file that a manager could request."""
    base, suffix = posixpath.basename(path), posixpath.splitext(path)[1]
    if base == "yarn.lock" and "\\" in text:
        raise UserError(f"{path} is written in a way that can be read in two", "have yarn write it again")
    if suffix == ".json":
        yield from _strings(_read(path, text, json.loads), _silent_in(base))
    elif suffix == ".toml" or base in ("uv.lock", "poetry.lock"):
        yield from _strings(_read(path, text, tomllib.loads), _silent_in(base))
    elif suffix in (".yml", ".yaml") or (base == "yarn.lock" and "__metadata:" in text):
        yield from _strings(_read(path, text, plain_yaml), _silent_in(base))
    else:
        yield from (line for line in text.splitlines() if line.lstrip()[:1] not in ("#", ";"))


def _silent_in(base: str) -> Callable[[Keys], bool]:
    """Whether a file's keys are only for people."""
    match base:
        case "package.json":
            return lambda keys: len(keys) == 1 and keys[0] not in _MANAGER_KEYS and "dependenc" not in keys[0].lower()
        case "pyproject.toml":
            return lambda keys: (
                (len(keys) == 1 and keys[0] not in ("project", "dependency-groups", "build-system", "tool"))
                or (len(keys) == 2 and (keys[0] == "tool") and keys[1] != "uv")
                or (len(keys) == 2 and keys[0] == "project" and keys[1] in _PROSE)
                or keys == ("tool", "uv", "build-backend")
            )
    return lambda keys: len(keys) == 3 and keys[0] == "packages" and keys[2] in _LOCK_NOTES


def _strings(value: Any, silent: Callable[[Keys], bool], keys: Keys = ()) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not silent((*keys, str(key))):
                yield str(key)
                yield from _strings(inner, silent, (*keys, str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, silent, (*keys, ""))
    elif isinstance(value, str):
        yield value


def _urls(text: str) -> Iterator[str]:
    for _ in range(_QUOTED):
        text = text.translate(_LEFT_OUT)
        yield from _addresses_in(text)
        plain = unquote(text)
        if plain == text:
            return
        text = plain
    raise UserError("an address is quoted too often to be read", YOURSELF)


def _addresses_in(text: str) -> Iterator[str]:
    """The URLs in a text. A user's name may contain spaces and quotes: the part before one is not a host then."""
    ends = 0
    for found in _WEB.finditer(text):
        if _HOST.fullmatch(found[0]):
            if ends < found.end():
                mark = _HOST_ENDS.search(text, found.end())
                ends = mark.start() if mark else len(text)
            if text[ends : ends + 1] == "@":
                raise UserError("an address can be read in two ways", "write it out")
        if "${" in found[0]:
            raise UserError("an address has a variable in it", "write it out")
        yield found[0]


# --- reading -------------------------------------------------------------------------


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text", "look at it") from None


def _read(path: str, text: str, reader: Callable[[str], Any]) -> dict[str, Any]:
    try:
        return _table(reader(text)) if text.strip() else {}
    except (ValueError, RecursionError, yaml.YAMLError):
        raise UserError(f"{path} cannot be read for sure", "fix the file") from None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


Contents = dict[str, bytes]
DATA = frozenset(
    "package.json pyproject.toml uv.toml uv.lock package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml"
    " pnpm-workspace.yaml .npmrc .yarnrc .yarnrc.yml".split()
)
"""Files read for a package manager; settings among them are not passed on."""
OUTPUT = 4_000_000
NAMES = 5.0  # seconds to resolve a name
PLACES = 40  # hosts that a project's files may name


@dataclass(frozen=True, slots=True)
class Room:
    """A folder with one project in it, and a manager to work there for `seconds` at most in each step."""

    folder: Path
    lock: str
    home: Path
    program: str
    environment: Mapping[str, str]
    seconds: float
    until: float = math.inf  # of `time.monotonic`; no step lasts longer

    def run(self, arguments: Sequence[str]) -> None:
        """Raises UserError if it fails, with its last line of output."""
        done = self.ask(arguments)
        if done.code != 0:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            how = "took too long" if done.timed_out else (lines[-1].strip() if lines else f"exit code {done.code}")
            raise UserError(f"{Path(self.program).name} refuses: {without_credentials(how)}", "run it there to see why")

    def ask(self, arguments: Sequence[str]) -> FinishedProcess:
        """The result, for callers that read more than its exit code."""
        return run_foreign(
            (self.program, *arguments),
            cwd=(self.folder / self.lock).parent,
            home=self.home,
            timeout=max(0.0, min(self.seconds, self.until - time.monotonic())),
            output_cap=OUTPUT,
            extra_env=self.environment,
        )

    def read(self, path: str) -> str:
        """A file's text, with its line endings."""
        return (self.folder / path).read_bytes().decode()

    def write(self, path: str, text: str) -> None:
        """Replace a file's text."""
        (self.folder / path).write_bytes(text.encode())


@contextmanager
def scratch_project(
    project: Project,
    files: Contents,
    program: str,
    environment: Mapping[str, str],
    scratch: Path,
    seconds: float,
    until: float,
) -> Iterator[Room]:
    """A room with these files, deleted afterwards. Raises UserError for refused files."""
    with tempfile.TemporaryDirectory(prefix="packages-", dir=scratch) as own:
        folder = Path(own) / "files"
        for path, content in files_for_manager(files).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        yield Room(folder, project.path, Path(own) / "home", program, environment, seconds, until)


def contents(git: Git, entries: Mapping[str, TreeEntry], project: Project) -> Contents:
    """Manifests, settings and the lock file: those in the folder of the lock file, and manifests below it.

    Raises UserError for one that is too large to read.
    """
    folder = posixpath.dirname(project.path)
    paths = {*project.manifests, project.path}
    paths |= {p for p in entries if posixpath.dirname(p) == folder and posixpath.basename(p) in DATA}
    objects = {path: entries[path].oid for path in sorted(paths) if path in entries}
    found = git.sizes(objects.values())
    if large := [path for path, oid in objects.items() if found.get(oid, 0) > LARGEST]:
        raise UserError(f"{large[0]} is too large", "update it yourself")
    blobs = git.blobs(objects.values())
    return {path: blobs[oid] for path, oid in objects.items()}


def check_sources(files: Contents, base: str, allow: Collection[str], until: float) -> str:
    """Why a package manager must not read these files, or use `base`, or "". It only resolves names."""
    try:
        files_for_manager(files)
        named = (*addresses(files), *([apart(base)[0]] if base else []))
        origins = {parse_address(url).origin: url for url in named}
        if len(origins) > PLACES:
            raise UserError(f"its files name more than {PLACES} places of the web", "update it yourself")
        for url in origins.values():
            GuardedWeb(allow, min(NAMES, until - time.monotonic())).admit(url)
    except UserError as problem:
        return f"{problem.what}; {problem.next_step}"
    return ""


def without_credentials(text: str) -> str:
    """A text without a registry's credentials in its URL."""
    return re.sub(r"(?<=://)[^/\s]+@", "", text)
