"""What a project's manifests say: their tables, the Python packages that a set-up installs, and the workspaces of
Node.js.

Packages are named as manifests and lock files write them, without resolving anything. One command runs a script in
those workspaces that have it.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ralph_mission.values import compile_regex

_LOCKED = compile_regex(r'^name = "([^"]+)"', re.MULTILINE)
_QUOTED = compile_regex(r"""["']([A-Za-z0-9][\w.-]*)""")
_REQUIRED = compile_regex(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")
_EDITABLE = compile_regex(r"\s*(?:-e|--editable)?[ =]?\s*\./?\[([^\]]*)\]")
_INCLUDED = compile_regex(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)")
ONE = {"npm": "--workspace {}", "pnpm": "--filter ./{}", "bun": "--filter ./{}"}
"""How a tool is given a workspace by its folder; yarn takes names, one in each call."""


def read_json(text: str) -> Any:
    """A JSON document; None if it cannot be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_toml(text: str) -> dict[str, Any]:
    """A TOML document; {} if it cannot be read."""
    import tomllib  # an idle cycle reads none

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def table(document: Any, *path: str) -> dict[str, Any]:
    """A table of a manifest; of anything else, which no tool accepts, {}."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def locked_packages(lock: str) -> frozenset[str]:
    """Those of uv.lock or poetry.lock."""
    return frozenset(map(_normalise, _LOCKED.findall(lock)))


def required_packages(
    project: Mapping[str, Any], extras: Collection[str], lists: Sequence[str], read: Callable[[str], str]
) -> frozenset[str]:
    """What pip installs: the dependencies of pyproject.toml, setup.cfg and setup.py with these extras and groups, and
    the requirement files `lists` with those that they include."""
    listed = list(_listed(lists, read))
    own = {extra for line in listed if (match := _EDITABLE.match(line)) for extra in _split(match[1])}
    lines = [*_declared(project, {*extras, *own}), *_from_setup_cfg(read("setup.cfg")), *listed]
    found = {match[1] for line in lines if (match := _REQUIRED.match(line))}
    names = {_normalise(name) for name in (*found, *_QUOTED.findall(read("setup.py")))}
    return frozenset(names | {name.removeprefix("pytest-") for name in names})  # a plugin brings what it runs


def _normalise(name: str) -> str:
    """As PEP 503 compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _split(extras: str | None) -> list[str]:
    return [extra.strip() for extra in (extras or "").split(",")]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _declared(project: Mapping[str, Any], extras: Collection[str]) -> Iterator[str]:
    """An extra may name others of its own project ("name[lint]"), a group may include groups."""
    metadata = table(project, "project")
    optional, groups = table(metadata, "optional-dependencies"), table(project, "dependency-groups")
    tables = {
        kind: {_normalise(str(name)): lines for name, lines in found.items()}
        for kind, found in (("extra", optional), ("group", groups))
    }
    yield from map(str, _list(metadata.get("dependencies")))
    waiting = [(kind, _normalise(name)) for kind in tables for name in extras]
    known = set[tuple[str, str]]()
    while waiting:
        kind, name = one = waiting.pop()
        if one in known:
            continue
        known.add(one)
        for line in _list(tables[kind].get(name)):
            if isinstance(line, dict):
                waiting.append(("group", _normalise(str(line.get("include-group")))))
                continue
            match = _REQUIRED.match(str(line))
            if match and _normalise(match[1]) == _normalise(str(metadata.get("name"))):
                waiting += [("extra", _normalise(extra)) for extra in _split(match[2])]
            yield str(line)


def _from_setup_cfg(text: str) -> Iterator[str]:
    import configparser

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    yield from parser.get("options", "install_requires", fallback="").splitlines()
    if parser.has_section("options.extras_require"):
        for _, lines in parser.items("options.extras_require"):
            yield from lines.splitlines()


def _listed(lists: Sequence[str], read: Callable[[str], str]) -> Iterator[str]:
    waiting, known = [*lists], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        for line in read(name).splitlines():
            if match := _INCLUDED.match(line):
                waiting.append(posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1])))
            else:
                yield line


def workspaces(files: Iterable[str], manifest: Mapping[str, Any], pnpm: str) -> list[str]:
    """Folders of the workspaces that `manifest` names or, for pnpm, the text of its pnpm-workspace.yaml; sorted.

    `files`: paths of the repository. `**` means one folder.
    """
    patterns = _patterns(manifest, pnpm)
    wanted = [one for one in patterns if not one.startswith("!")]
    omitted = [one.removeprefix("!").removeprefix("./") for one in patterns if one.startswith("!")]
    folders = sorted(posixpath.dirname(name) for name in files if name.endswith("/package.json"))
    return [one for one in folders if _matches(one, wanted) and not _matches(one, [*omitted, "**/node_modules/*"])]


def run_script(tool: str, script: str, members: Mapping[str, Mapping[str, Any]]) -> str:
    """The command that runs `script` in the workspaces `members`: their package.json by folder."""
    if tool == "yarn":
        names = (str(manifest.get("name") or folder) for folder, manifest in members.items())
        return " && ".join(f"yarn workspace {shlex.quote(name)} run {script}" for name in names)
    chosen = " ".join(ONE[tool].format(shlex.quote(folder)) for folder in members)
    return {
        "npm": f"npm run --silent {script} {chosen}",
        "pnpm": f"pnpm {chosen} run {script}",
        "bun": f"bun run {chosen} {script}",
    }[tool]


def _patterns(manifest: Mapping[str, Any], pnpm: str) -> list[str]:
    found = manifest.get("workspaces")
    if pnpm:
        import yaml  # most repositories have no such file

        try:
            found = yaml.safe_load(pnpm)
        except (yaml.YAMLError, RecursionError, ValueError):
            return []
    if isinstance(found, dict):  # pnpm's file, and yarn's long form
        found = found.get("packages")
    known = [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
    return [one.removeprefix("./").rstrip("/") for one in known if one.strip("./")]


def _matches(folder: str, patterns: Iterable[str]) -> bool:
    return any(PurePosixPath("/", folder).match(f"/{one}") for one in patterns)
