"""Which Python packages a set-up installs by name: as manifests and lock files write it, without resolving anything."""

from __future__ import annotations

import configparser
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ralph_mission.values import compile_regex

_LOCKED = compile_regex(r'^name = "([^"]+)"', re.MULTILINE)
_QUOTED = compile_regex(r"""["']([A-Za-z0-9][\w.-]*)""")
_REQUIRED = compile_regex(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")
_INCLUDED = compile_regex(r"\s*(?:-r|--requirement)[ =]?\s*(\S+)")


def locked_packages(lock: str) -> frozenset[str]:
    """Those of uv.lock or poetry.lock."""
    return frozenset(name.lower() for name in _LOCKED.findall(lock))


def required_packages(
    project: Mapping[str, Any], extras: Collection[str], lists: Sequence[str], read: Callable[[str], str]
) -> frozenset[str]:
    """What pip installs: the dependencies of pyproject.toml, setup.cfg and setup.py with these extras and groups, and
    the requirement files `lists` with those that they include."""
    found = {name.lower() for name in _QUOTED.findall(read("setup.py"))}
    lines = [*_declared(project, extras), *_from_setup_cfg(read("setup.cfg")), *_listed(lists, read)]
    return frozenset(found | {match[1].lower() for line in lines if (match := _REQUIRED.match(line))})


def _declared(project: Mapping[str, Any], extras: Collection[str]) -> Iterator[str]:
    """An extra may name others of its own project ("name[lint]"), a group may include groups."""
    metadata, groups = project.get("project") or {}, project.get("dependency-groups") or {}
    optional = metadata.get("optional-dependencies") or {}
    yield from map(str, metadata.get("dependencies") or ())
    waiting, known = [(table, name) for table in ("extra", "group") for name in extras], set[tuple[str, str]]()
    while waiting:
        table, name = one = waiting.pop()
        if one in known:
            continue
        known.add(one)
        for line in (optional if table == "extra" else groups).get(name) or ():
            if isinstance(line, dict):
                waiting.append(("group", str(line.get("include-group"))))
                continue
            match = _REQUIRED.match(line)
            if match and match[1].lower() == str(metadata.get("name")).lower():
                waiting += [("extra", extra.strip()) for extra in (match[2] or "").split(",")]
            yield line


def _from_setup_cfg(text: str) -> Iterator[str]:
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
