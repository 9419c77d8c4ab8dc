"""What of a repository's own words is handed to a package manager: what it needs to resolve, and no settings.

Settings lead a manager anywhere, load code or write outside of its folder, so it gets none of them: its registry stands
in its environment. Every web address in the other files is told (`addresses`), to be judged before the manager sees
it. What two readers could read differently is refused. Pure: text in, values out.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import yaml

from ralph_mission.gateways.packages.handed_paths import leading_out
from ralph_mission.gateways.packages.indexes import SETTINGS
from ralph_mission.gateways.packages.node import plain_yaml
from ralph_mission.trouble import UserError

Files = Mapping[str, bytes]
Keys = tuple[str, ...]
WORKSPACE = frozenset("packages catalog catalogs overrides packageExtensions peerDependencyRules".split())
"""Of a pnpm-workspace.yaml: what belongs to the packages. The rest are settings of pnpm."""
YOURSELF = "update it yourself, or take that out"
_OWN_REGISTRY = re.compile(r"(?:registry|npmRegistryServer|index-url|url)\b")
"""Begins the line of a settings file that names the one registry for everything."""
_ASKED = frozenset("overrides resolutions pnpm workspaces catalog catalogs publishConfig".split())
"""Of a package.json, beside all kinds of dependencies: what a manager reads."""
_PROSE = frozenset("urls description readme authors maintainers license keywords classifiers".split())
"""Of a `[project]`."""
_TOLD = frozenset("deprecated funding license".split())
"""Of a locked package."""
_WEB = re.compile(r"https?:[^\s\"'<>|]*", re.IGNORECASE)
_HOST = re.compile(r"https?:[/\\]*+[^/\\?#@]*+", re.IGNORECASE)
_HOST_ENDS = re.compile(r"[/\\?#@]")
_LEFT_OUT = str.maketrans("", "", "\t\r\n")
"""Wherever they stand in an address, for those who read it as browsers do."""
_QUOTED = 5
"""How often an address is quoted within another one at most."""


def files_for_manager(files: Files) -> dict[str, bytes]:
    """The files as a manager gets them. Raises Trouble for what leads to this machine's files or another registry."""
    for path, content in files.items():
        text = _text(path, content)
        if _is_settings(path):
            _one_registry(path, text)
            continue
        for said in _strings_in(path, text):
            if what := leading_out(path, said):
                raise UserError(f"{path} {what}, which no package manager is handed", YOURSELF)
    return {path: _reduce(path, content) for path, content in files.items() if not _is_settings(path)}


def addresses(files: Files) -> tuple[str, ...]:
    """Every web address that a manager could take from them. Raises Trouble for what cannot be read for sure."""
    kept = {path: _text(path, content) for path, content in files.items() if not _is_settings(path)}
    found = (url for path, text in kept.items() for said in _strings_in(path, text) for url in _urls(said))
    return tuple(dict.fromkeys(found))


# --- settings ------------------------------------------------------------------------


def _is_settings(path: str) -> bool:
    return posixpath.basename(path) in SETTINGS


def _one_registry(path: str, text: str) -> None:
    """Raises Trouble for settings that name a registry of some packages alone: without them another would be asked."""
    lines = [line for line in text.splitlines() if "://" in line and line.lstrip()[:1] not in ("#", ";")]
    if len(lines) > 1 or not all(map(_OWN_REGISTRY.match, lines)):
        raise UserError(f"{path} names a registry of its own, and no settings are handed on", YOURSELF)


def _reduce(path: str, content: bytes) -> bytes:
    """A file without the settings in it, and a package.json without what has a manager bring another one."""
    match posixpath.basename(path):
        case "package.json":
            manifest = _read(path, _text(path, content), json.loads)
            kept = {name: value for name, value in manifest.items() if name not in ("packageManager", "devEngines")}
            if "configDependencies" in _table(kept.get("pnpm")):
                kept["pnpm"] = {k: v for k, v in kept["pnpm"].items() if k != "configDependencies"}
        case "pnpm-workspace.yaml":
            manifest = _read(path, _text(path, content), plain_yaml)
            kept = {name: value for name, value in manifest.items() if name in WORKSPACE}
            _one_registry(path, json.dumps({k: v for k, v in manifest.items() if k not in kept}, default=str))
        case _:
            return content
    return content if kept == manifest else json.dumps(kept, indent=2).encode()  # which is YAML, too


# --- addresses -----------------------------------------------------------------------


def _strings_in(path: str, text: str) -> Iterator[str]:
    """Each string of a file that a manager could ask for."""
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
    """Whether what stands at some keys of a file is for people alone."""
    match base:
        case "package.json":
            return lambda keys: len(keys) == 1 and keys[0] not in _ASKED and "dependenc" not in keys[0].lower()
        case "pyproject.toml":
            return lambda keys: (
                (len(keys) == 1 and keys[0] not in ("project", "dependency-groups", "build-system", "tool"))
                or (len(keys) == 2 and (keys[0] == "tool") and keys[1] != "uv")
                or (len(keys) == 2 and keys[0] == "project" and keys[1] in _PROSE)
                or keys == ("tool", "uv", "build-backend")
            )
    return lambda keys: len(keys) == 3 and keys[0] == "packages" and keys[2] in _TOLD


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


def _urls(said: str) -> Iterator[str]:
    for _ in range(_QUOTED):
        said = said.translate(_LEFT_OUT)
        yield from _addresses_in(said)
        plain = unquote(said)
        if plain == said:
            return
        said = plain
    raise UserError("an address is quoted too often to be read", YOURSELF)


def _addresses_in(said: str) -> Iterator[str]:
    """The addresses in a text. A user's name may hold spaces and quotes: what stands before one is no host then."""
    ends = 0
    for found in _WEB.finditer(said):
        if _HOST.fullmatch(found[0]):
            if ends < found.end():
                mark = _HOST_ENDS.search(said, found.end())
                ends = mark.start() if mark else len(said)
            if said[ends : ends + 1] == "@":
                raise UserError("an address can be read in two ways", "write it out")
        if "${" in found[0]:
            raise UserError("an address has a variable in it", "write it out")
        yield found[0]


# --- reading -------------------------------------------------------------------------


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text", "look at it") from None


def _read(path: str, text: str, reader: Callable[[str], Any]) -> dict[str, Any]:
    try:
        return _table(reader(text)) if text.strip() else {}
    except (ValueError, RecursionError, yaml.YAMLError):
        raise UserError(f"{path} cannot be read for sure", "mend the file") from None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
