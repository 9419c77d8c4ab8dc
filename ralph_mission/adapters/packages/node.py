"""Packages from npm's, yarn's (1 and later) and pnpm's lock files and manifests. Text in, values out."""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from ralph_mission.adapters.packages.model import Lines, Package, Project, reached
from ralph_mission.safety.bumps import SECTIONS
from ralph_mission.values import compile_regex, dataclass

SHIPPED = ("dependencies", "optionalDependencies")
"""Sections of packages outside of development."""
LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml")
MANIFEST = "package.json"
EXACT = compile_regex(r"=?v?(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?)$")
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class GarbledLock(ValueError):
    """A file's contents do not match its name; the text completes "PATH …"."""


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """The requirements of manifests below a lock file: (name, range), those outside of development, and their
    places."""

    pairs: frozenset[tuple[str, str]]
    manifests: tuple[str, ...]
    shipped: frozenset[tuple[str, str]] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Every directly requested package."""
        return frozenset(name for name, _ in self.pairs)


def is_node_file(path: str) -> bool:
    """Whether this is a file of theirs."""
    return posixpath.basename(path) in (*LOCKS, MANIFEST)


def projects(files: Mapping[str, str]) -> Iterator[Project | tuple[str, str]]:
    """One project per lock file, one per manifest with exact pins below no lock; (path, why) for what is unreadable."""
    locks = {path for path in files if posixpath.basename(path) in LOCKS}
    for path in sorted(files):
        try:
            if path in locks:
                yield _read_lock(path, files, locks)
            elif posixpath.basename(path) == MANIFEST and not _lock_above(path, locks):
                yield _pinned_project(path, files[path])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, yaml.YAMLError) as error:
            yield path, str(error) if isinstance(error, GarbledLock) else "cannot be read"


def sections(text: str, names: Iterable[str] = SECTIONS) -> Iterator[tuple[str, str]]:
    """(name, range) of all requirements in those sections of a manifest. Raises ValueError."""
    manifest = json.loads(text)
    for section in names:
        found = manifest.get(section) or {}
        yield from ((str(name), str(range_)) for name, range_ in found.items() if isinstance(range_, str))


def _lock_above(path: str, locks: set[str]) -> str:
    """The nearest lock file in the folder of `path` or above it."""
    folder = posixpath.dirname(path)
    while True:
        for name in LOCKS:
            if (lock := posixpath.join(folder, name)) in locks:
                return lock
        if not folder:
            return ""
        folder = posixpath.dirname(folder)


def _read_lock(path: str, files: Mapping[str, str], locks: set[str]) -> Project:
    below = [p for p in sorted(files) if posixpath.basename(p) == MANIFEST and _lock_above(p, locks) == path]
    request = NodeRequest(
        frozenset(pair for p in below for pair in sections(files[p])),
        tuple(below),
        frozenset(pair for p in below for pair in sections(files[p], SHIPPED)),
    )
    text, name = files[path], posixpath.basename(path)
    if name == "pnpm-lock.yaml":
        return Project(path, "pnpm", "npm", tuple(_pnpm(path, text)), request.manifests)
    if name != "yarn.lock":
        return Project(path, "npm", "npm", tuple(_npm(path, text, request)), request.manifests)
    if re.search(r"^__metadata:", text, re.MULTILINE):
        return Project(path, "berry", "npm", tuple(_berry(path, text, request)), request.manifests)
    return Project(path, "yarn", "npm", tuple(_yarn(path, text, request)), request.manifests)


def _pinned_project(path: str, text: str) -> Project:
    pins = [(name, found[1]) for name, range_ in sections(text) if (found := EXACT.match(range_))]
    shipped = {name for name, _ in sections(text, SHIPPED)}
    packages = tuple(
        Package("npm", n, v, path, _asked_at(text, n, v), direct=True, wanted=(v,), dev=n not in shipped)
        for n, v in dict.fromkeys(pins)
    )
    return Project(path, "", "npm", packages, (path,))


def _npm(path: str, text: str, request: NodeRequest) -> Iterator[Package]:
    lock, lines = json.loads(text), Lines(text)
    if not isinstance(lock.get("packages"), dict):
        raise GarbledLock("is a lock file of npm 6 or older; npm 7 and later write one that can be read")
    ranges: defaultdict[str, set[str]] = defaultdict(set)
    for entry in lock["packages"].values():
        for section in SECTIONS:
            for name, range_ in (entry.get(section) or {}).items():
                ranges[name].add(str(range_))
    for place, entry in lock["packages"].items():
        if "node_modules/" not in place or entry.get("link") or not isinstance(entry.get("version"), str):
            continue
        name = entry.get("name") or place.rpartition("node_modules/")[2]
        resolved = str(entry.get("resolved", ""))
        if resolved and not resolved.startswith(("https://", "http://")):
            continue
        direct = place == f"node_modules/{name}" and name in request.names
        line = lines.of(f'"{place}"', '"version"')
        dev = bool(entry.get("dev") or entry.get("devOptional"))
        yield Package(
            "npm",
            name,
            entry["version"],
            path,
            line,
            registry_of(resolved, name),
            direct,
            wanted=tuple(sorted(ranges[name])),
            dev=dev,
        )


def _yarn(path: str, text: str, request: NodeRequest) -> Iterator[Package]:
    blocks = list(_blocks(text))
    shipped = _shipped(((keys, needs) for _, keys, _, needs in blocks), request)
    for line, keys, fields, _ in blocks:
        pairs = [pair for key in keys if (pair := _pair(key))]
        resolved = fields.get("resolved", "").partition("#")[0]
        if not pairs or "version" not in fields or "/-/" not in resolved or any(":" in r for _, r in pairs):
            continue  # an alias, a folder, an archive, a git repository
        name, ranges = pairs[0][0], tuple(sorted(range_ for _, range_ in pairs))
        direct, dev = bool(request.pairs & {*pairs}), keys[0] not in shipped
        registry = registry_of(resolved, name)
        yield Package("npm", name, fields["version"], path, line, registry, direct, wanted=ranges, dev=dev)


def _shipped(blocks: Iterable[tuple[tuple[str, ...], Iterable[str]]], request: NodeRequest) -> frozenset[str]:
    """The keys of packages outside of development, each "NAME@RANGE"; all keys of an entry with several."""
    blocks = list(blocks)
    first = {key: keys[0] for keys, _ in blocks for key in keys}
    needs = {keys[0]: [first[need] for need in needed if need in first] for keys, needed in blocks}
    roots = [first[key] for name, range_ in request.shipped if (key := f"{name}@{range_}") in first]
    return reached(roots, needs)


def _blocks(text: str) -> Iterator[tuple[int, tuple[str, ...], dict[str, str], list[str]]]:
    """(line of its version, keys, the strings below, what it needs) of each entry of a lock file of yarn 1."""
    head: tuple[int, tuple[str, ...]] | None = None
    fields: dict[str, str] = {}
    needs: list[str] = []
    for number, line in enumerate([*text.splitlines(), "end:"], 1):
        if line[:1] not in ("", " ", "#") and line.endswith(":"):
            if head:
                yield (*head, fields, needs)
            head, fields = (number, tuple(key.strip().strip('"') for key in line[:-1].split(","))), {}
            needs = []
        elif found := re.match(r'  (version|resolved) "?([^"\s]+)"?$', line):
            fields[found[1]] = found[2]
            head = (number, head[1]) if head and found[1] == "version" else head
        elif found := re.match(r'    "?([^"\s]+)"? "?([^"]+)"?$', line):
            needs.append(f"{found[1]}@{found[2]}")


def _pair(key: str) -> tuple[str, str] | None:
    name, mark, range_ = key[1:].partition("@")
    return (key[0] + name, range_) if mark and key else None


def _berry(path: str, text: str, request: NodeRequest) -> Iterator[Package]:
    lines = Lines(text)
    for keys, entry in plain_yaml(text).items():
        resolution = str(entry.get("resolution", "")) if isinstance(entry, dict) else ""
        name, mark, version = resolution.rpartition("@npm:")
        if keys == "__metadata" or not mark or not name or "::" in version:
            continue
        ranges = {_pair(key.strip()) for key in keys.split(",")}
        plain = {(pair[0], pair[1].removeprefix("npm:")) for pair in ranges if pair}
        direct, admitted = bool(plain & request.pairs), tuple(sorted(range_ for _, range_ in plain))
        dev = direct and not plain & request.shipped
        line = lines.of(f'resolution: "{resolution}"')
        yield Package("npm", name, version, path, line, "", direct, wanted=admitted, dev=dev)


def _pnpm(path: str, text: str) -> Iterator[Package]:
    lock, lines = plain_yaml(text), Lines(text)
    importers = lock.get("importers") or {".": lock}
    ranges_by_package: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    shipped: set[tuple[str, str]] = set()
    for importer in importers.values():
        for section, name, version, range_ in _imported_versions(importer):
            if range_.startswith("catalog:"):
                catalog = (lock.get("catalogs") or {}).get(range_.removeprefix("catalog:") or "default") or {}
                range_ = str((catalog.get(name) or {}).get("specifier", ""))
            ranges_by_package[name, version].add(range_)
            shipped |= {(name, version)} if section in SHIPPED else set()
    for key, entry in (lock.get("packages") or {}).items():
        found = re.match(r"/?((?:@[^@/]+/)?[^@/]+)[@/](\d[^(_]*)", key)
        if found:
            one = (found[1], found[2])
            ranges = tuple(sorted(range_ for range_ in ranges_by_package.get(one, ()) if range_))
            dev = bool(isinstance(entry, dict) and entry.get("dev")) or (
                one in ranges_by_package and one not in shipped
            )
            yield Package("npm", *one, path, lines.of(key), "", one in ranges_by_package, wanted=ranges, dev=dev)


def _imported_versions(importer: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(section, name, version, range) of the requirements of a workspace folder."""
    specifiers = importer.get("specifiers") or {}
    for section in SECTIONS:
        for name, entry in (importer.get(section) or {}).items():
            version = str(entry.get("version", "") if isinstance(entry, dict) else entry)
            range_ = str((entry.get("specifier") if isinstance(entry, dict) else None) or specifiers.get(name, ""))
            yield section, name, re.split(r"[(_]", version)[0], range_


def plain_yaml(text: str) -> dict[str, Any]:
    """A document without anchors or aliases, so that its length limits the cost. Raises GarbledLock."""
    indirect = (isinstance(e, yaml.AliasEvent) or getattr(e, "anchor", None) for e in yaml.parse(text, LOADER))
    if any(indirect):
        raise GarbledLock("holds anchors, which no package manager writes")
    try:
        found = yaml.load(text, LOADER)
    except (LookupError, AttributeError, TypeError, ArithmeticError):  # of a value that is not what its tag says
        raise GarbledLock("cannot be read") from None
    if not isinstance(found, dict):
        raise GarbledLock("is not what it should be")
    return found


def registry_of(resolved: str, name: str) -> str:
    """The base URL of an archive's registry: the part before `/NAME/-/`, or ""."""
    for written in (name, name.replace("/", "%2f"), name.replace("/", "%2F")):
        base, mark, _ = resolved.partition(f"/{written}/-/")
        if mark:
            return base
    return ""


def _asked_at(text: str, name: str, version: str) -> int:
    """The line of a requirement in a manifest's sections; elsewhere the same name means something else."""
    entry = re.compile(rf'{re.escape(json.dumps(name))}\s*+:\s*+"=?v?{re.escape(version)}"')
    starts = (found.end() for section in SECTIONS for found in re.finditer(rf'"{section}"\s*+:\s*+\{{', text))
    found = min((found.start() for start in starts if (found := entry.search(text, start))), default=-1)
    return text.count("\n", 0, found) + 1 if found >= 0 else 0
