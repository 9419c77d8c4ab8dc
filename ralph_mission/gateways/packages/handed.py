"""What of a repository's own words is handed to a package manager: data, and never where to go or what to run.

A manager reads settings that lead it anywhere, load code or write outside of its folder. So a setting is handed on when
it is known to do none of that, and every web address that a file names is told (`addresses`), to be judged before the
manager sees it. What two readers could read differently is refused. Pure: text in, values out.
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

from ralph_mission.gateways.packages.handed_names import KNOWN
from ralph_mission.gateways.packages.handed_paths import leading_out
from ralph_mission.gateways.packages.node import plain_yaml
from ralph_mission.trouble import Trouble

Files = Mapping[str, bytes]
Keys = tuple[str, ...]
SWITCHES = ("packageManager", "devEngines")
"""Of a package.json: they have a manager fetch another one and run that."""
YOURSELF = "update it yourself, or take that out"
_PLAIN = frozenset(re.sub(r"[-_]", "", name).lower() for name in KNOWN)
_OPENS = frozenset("authtoken auth password username email alwaysauth npmauthtoken npmauthident npmalwaysauth".split())
"""What opens a registry: mostly a variable of an environment, and a manager gets none of ours."""
_TOLD_BY_US = re.compile(r"\$\{[^}]*(?:config_registry|registry_server|default_index)", re.IGNORECASE)
"""A registry that a manager finds in its environment: its address may hold what opens it."""
_ASKED = frozenset("overrides resolutions pnpm workspaces catalog catalogs publishConfig".split())
"""Of a package.json, beside all kinds of dependencies: what a manager reads."""
_PROSE = frozenset("urls description readme authors maintainers license keywords classifiers".split())
"""Of a `[project]`."""
_TOLD = frozenset("deprecated funding license".split())
"""Of a locked package."""
_WEB = re.compile(r"https?:[^\s\"'<>|]*", re.IGNORECASE)
_YARNRC = re.compile(r"""(?:"[^"\\]*"|[^\s",:]+)(?:\s*:\s+|\s+)(?:"[^"\\]*"|[^\s",:]+)""")
_HOST = re.compile(r"https?:[/\\]*+[^/\\?#@]*+", re.IGNORECASE)
_HOST_ENDS = re.compile(r"[/\\?#@]")
_LEFT_OUT = str.maketrans("", "", "\t\r\n")
"""Wherever they stand in an address, for those who read it as browsers do."""
_QUOTED = 5
"""How often an address is quoted within another one at most."""


def handed(files: Files) -> dict[str, bytes]:
    """The files as a manager gets them. Raises Trouble for what is more than data, or leads to this machine's files."""
    for path, content in files.items():
        for name, value in _settings(path, _text(path, content)):
            _harmless(path, name, value)
        for said in _said(path, _text(path, content)):
            if what := leading_out(path, said):
                raise Trouble(f"{path} {what}, which no package manager is handed", YOURSELF)
    return {path: _settled(path, content) for path, content in files.items()}


def addresses(files: Files) -> tuple[str, ...]:
    """Every web address that a manager could take from them. Raises Trouble for what cannot be read for sure."""
    found = (
        url for path, content in files.items() for said in _said(path, _text(path, content)) for url in _urls(said)
    )
    return tuple(dict.fromkeys(found))


# --- settings ------------------------------------------------------------------------


def _harmless(path: str, name: str, value: Any) -> None:
    plain = re.sub(r"[-_]", "", name.removesuffix("[]").rpartition(":")[2]).lower()
    if plain in _OPENS and not _TOLD_BY_US.search(str(value)):
        return
    if plain not in _PLAIN or name.startswith("//"):
        raise Trouble(f'{path} sets "{name[:60]}", which is handed to no package manager', YOURSELF)
    if "${" in json.dumps(value, default=str) or (isinstance(value, str) and "\\" in value):
        raise Trouble(f'{path} sets "{name[:60]}" in a way that can be read in two', "write it out")
    if plain.endswith(("registry", "registryserver")) and not re.match(r"https?://", str(value), re.IGNORECASE):
        raise Trouble(f'{path} sets "{name[:60]}" to no plain web address', "write it out")


def _settings(path: str, text: str) -> Iterator[tuple[str, Any]]:
    match posixpath.basename(path):
        case ".npmrc":
            yield from _pairs(text, r"=")
        case ".yarnrc":
            yield from _pairs_of_yarn(path, text)
        case ".yarnrc.yml" | "pnpm-workspace.yaml":
            yield from _nested(_read(path, text, plain_yaml))
        case "uv.toml":
            yield from _read(path, text, tomllib.loads).items()
        case "pyproject.toml":
            yield from _table(_table(_read(path, text, tomllib.loads).get("tool")).get("uv")).items()
        case "package.json" if "configDependencies" in _table(_read(path, text, json.loads).get("pnpm")):
            yield "configDependencies", ""
        case ".python-version" if not re.fullmatch(r"(?:[\w.@+-]*\s*(?:#.*)?)*+", text):
            yield text.strip(), ""  # a path to a program


def _pairs(text: str, between: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line[0] not in "#;":
            name, value = [*re.split(between, line, maxsplit=1), ""][:2]
            yield name.strip().strip("\"'"), value.strip().strip("\"'")


def _pairs_of_yarn(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Of yarn 1, which would take several settings on one line."""
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line[0] != "#" and not _YARNRC.fullmatch(line):
            raise Trouble(f'{path} says "{line[:60]}", which can be read in two ways', "write one setting a line")
    yield from _pairs(text, r"\s*:\s+|\s+")


def _nested(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings, and those within what yarn has for each scope and each registry."""
    for name, value in settings.items():
        if name in ("npmScopes", "npmRegistries"):
            for own in _table(value).values():
                yield from _table(own).items()
        elif name != "cacheFolder" or not re.fullmatch(r"(?:\./)?\.yarn/[\w/-]+", str(value)):
            yield str(name), value


def _settled(path: str, content: bytes) -> bytes:
    """A file as it is, and a package.json without what has a manager bring another one."""
    if posixpath.basename(path) != "package.json":
        return content
    manifest = _read(path, _text(path, content), json.loads)
    kept = {name: value for name, value in manifest.items() if name not in SWITCHES}
    return content if kept == manifest else json.dumps(kept, indent=2).encode()


# --- addresses -----------------------------------------------------------------------


def _said(path: str, text: str) -> Iterator[str]:
    """Each string of a file that a manager could ask for."""
    base, suffix = posixpath.basename(path), posixpath.splitext(path)[1]
    if base == ".yarnrc.yml" and "lockfile v1" in text:  # yarn reads such a file by another grammar
        raise Trouble(f"{path} is written in a way that can be read in two", "take its first line out")
    if base == "yarn.lock" and "\\" in text:
        raise Trouble(f"{path} is written in a way that can be read in two", "have yarn write it again")
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
        yield from _addressed(said)
        plain = unquote(said)
        if plain == said:
            return
        said = plain
    raise Trouble("an address is quoted too often to be read", YOURSELF)


def _addressed(said: str) -> Iterator[str]:
    """The addresses in a text. A user's name may hold spaces and quotes: what stands before one is no host then."""
    ends = 0
    for found in _WEB.finditer(said):
        if _HOST.fullmatch(found[0]):
            if ends < found.end():
                mark = _HOST_ENDS.search(said, found.end())
                ends = mark.start() if mark else len(said)
            if said[ends : ends + 1] == "@":
                raise Trouble("an address can be read in two ways", "write it out")
        if "${" in found[0]:
            raise Trouble("an address has a variable in it", "write it out")
        yield found[0]


# --- reading -------------------------------------------------------------------------


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise Trouble(f"{path} is no text", "look at it") from None


def _read(path: str, text: str, reader: Callable[[str], Any]) -> Mapping[str, Any]:
    try:
        return _table(reader(text)) if text.strip() else {}
    except (ValueError, RecursionError, yaml.YAMLError):
        raise Trouble(f"{path} cannot be read for sure", "mend the file") from None


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
