"""A commit's dependencies, read from its blobs, never from a work tree.

The files of uv, poetry and pip, and those of Cargo, Go and Maven, whose registries are not queried (OSV knows their
packages by name and version), are read here, those of npm and its relatives in `node`: text in, values out.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import node
from ralph_mission.adapters.packages.model import CRATES, SOUND, Ecosystem, Package, Project, Tool, reached, toml_lines
from ralph_mission.safety.patch import EXECUTABLE, REGULAR
from ralph_mission.values import compile_regex, dataclass

CARGO, GO, MAVEN = COMPILED_LOCKS = ("Cargo.lock", "go.mod", "pom.xml")
CARGO_MANIFEST = "Cargo.toml"
CARGO_SECTIONS = ("dependencies", "build-dependencies")
REQUIRED = compile_regex(r"(?P<name>[^\s()]+) v(?P<version>[^\s]+?)(?:\+incompatible)?(?P<indirect>\s*// indirect.*)?")
PROPERTY = compile_regex(r"\$\{([\w.-]{1,100})\}")
FOR_TESTS = ("test",)
"""Maven scopes that are not shipped."""


def is_compiled_file(path: str) -> bool:
    """Whether this is a file of theirs."""
    return posixpath.basename(path) in (*COMPILED_LOCKS, CARGO_MANIFEST)


def read_compiled(files: Mapping[str, str]) -> Iterator[Project | tuple[str, str]]:
    """One project per lock file of Cargo, go.mod and pom.xml; (path, why) for what is unreadable."""
    for path in sorted(files):
        name = posixpath.basename(path)
        try:
            if name == CARGO:
                manifests = tuple(p for p in sorted(files) if _is_below(p, path) and p.endswith(CARGO_MANIFEST))
                yield Project(path, "", CRATES, tuple(_cargo(path, files, manifests)), manifests)
            elif name == GO:
                yield Project(path, "", "Go", tuple(_go(path, files[path])), (path,))
            elif name == MAVEN:
                yield Project(path, "", "Maven", tuple(_maven(path, files[path])), (path,))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ElementTree.ParseError):
            yield path, "cannot be read"


def _is_below(path: str, lock: str) -> bool:
    folder = posixpath.dirname(lock)
    return path.startswith(f"{folder}/") if folder else True


def _cargo(path: str, files: Mapping[str, str], manifests: Sequence[str]) -> Iterator[Package]:
    """Packages of a registry. Those that the workspace's crates only need for tests are for development."""
    entries = [entry for entry in tomllib.loads(files[path]).get("package", []) if isinstance(entry, dict)]
    lines = toml_lines(files[path])
    used, tested = _asked_of_cargo([files[manifest] for manifest in manifests])
    needs: dict[str, list[str]] = {}
    for entry in entries:
        named = [str(one).partition(" ")[0] for one in entry.get("dependencies", ())]
        needs.setdefault(entry["name"], []).extend(named)
    own = [entry["name"] for entry in entries if "source" not in entry]
    direct = {name for crate in own for name in needs[crate]}
    shipped = reached(direct - (tested.keys() - used.keys()), needs)
    for entry in entries:
        if str(entry.get("source", "")).startswith(("registry+", "sparse+")):
            name, version = entry["name"], entry["version"]
            range_ = used.get(name) or tested.get(name) or ""
            yield Package(
                CRATES,
                name,
                version,
                path,
                lines.get((name, version), 0),
                direct=name in direct,
                wanted=(range_,) if range_ and name in direct else (),
                dev=name not in shipped,
            )


def _asked_of_cargo(manifests: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The manifests' requirements by range: for the program, and for its tests."""
    used: dict[str, str] = {}
    tested: dict[str, str] = {}
    for text in manifests:
        document = tomllib.loads(text)
        platforms = [one for one in document.get("target", {}).values() if isinstance(one, dict)]
        for table in (document, document.get("workspace", {}), *platforms):
            for section in (*CARGO_SECTIONS, "dev-dependencies"):
                for name, entry in table.get(section, {}).items():
                    real = entry.get("package", name) if isinstance(entry, dict) else name
                    range_ = entry.get("version", "") if isinstance(entry, dict) else str(entry)
                    (tested if section.startswith("dev") else used).setdefault(real, range_)
    return used, tested


def _go(path: str, text: str) -> Iterator[Package]:
    """Required modules that are not replaced. Go does not record which are only for tests."""
    replaced = set(re.findall(r"^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>", text, re.MULTILINE))
    within = False
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("require (") or (within and words == ")"):
            within = words != ")"
            continue
        requirement = words.removeprefix("require ") if words.startswith("require ") else words if within else ""
        found = REQUIRED.fullmatch(requirement)
        if found and found["name"] not in replaced:
            yield Package(
                "Go", found["name"], found["version"], path, number, direct=not found["indirect"], wanted=(">=",)
            )


def _maven(path: str, text: str) -> Iterator[Package]:
    """The parent, dependencies and managed versions with a version in the file itself."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a pom declares no entities")
    root = ElementTree.fromstring(text)
    space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
    known = {one.tag.removeprefix(space): (one.text or "").strip() for one in root.iterfind(f"{space}properties/*")}
    places = ("parent", "dependencies/dependency", "dependencyManagement/dependencies/dependency")
    for place in places:
        for entry in root.iterfind("/".join(f"{space}{part}" for part in place.split("/"))):
            fields = {one.tag.removeprefix(space): (one.text or "").strip() for one in entry}
            name = f"{fields.get('groupId', '')}:{fields.get('artifactId', '')}"
            version = PROPERTY.sub(lambda found: known.get(found[1], found[0]), fields.get("version", ""))
            if re.fullmatch(r"[0-9][\w.-]*", version):
                line = _line_of(text, fields["artifactId"])
                dev = fields.get("scope", "") in FOR_TESTS
                yield Package("Maven", name, version, path, line, direct=True, wanted=(version,), dev=dev)


def _line_of(text: str, artifact: str) -> int:
    at = text.find(f"<artifactId>{artifact}</artifactId>")
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


LOCKS: Mapping[str, Tool] = {"uv.lock": "uv", "poetry.lock": "poetry"}
MANIFEST = "pyproject.toml"
LOCAL = ("editable", "virtual", "directory")
"""The sources in uv's lock that are a folder of the repository."""
REQUIREMENTS = compile_regex(
    r"(?:.*/)?(?:[^/]*requirements[^/]*\.txt|constraints[^/]*\.txt|requirements/[^/]+\.txt)$", re.I
)
PIN = compile_regex(
    r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*+(?:\[[^\]\n]*\])?\s*+===?\s*(?P<version>[0-9][^\s;#,\\]*)(?P<rest>.*)$"
)
FOR_DEVELOPMENT = compile_regex(
    r"(?:^|[/_.-])(?:dev|develop|development|tests?|testing|docs?|lint|ci|build)(?=[/_.-])", re.I
)
"""Words in the path of a requirements file for development only."""
INDEX = compile_regex(r"^[ \t]*+(?:-i|--index-url)[=\s]+(\S+)", re.MULTILINE)


def is_python_file(path: str) -> bool:
    """Whether this is a file of theirs."""
    return posixpath.basename(path) in (*LOCKS, MANIFEST) or bool(REQUIREMENTS.match(path))


def read_projects(files: Mapping[str, str]) -> Iterator[Project | tuple[str, str]]:
    """One project per lock file, requirements file, and manifest with pins in no lock; (path, why) otherwise."""
    locked = {posixpath.join(posixpath.dirname(path), MANIFEST) for path in files if posixpath.basename(path) in LOCKS}
    for path in sorted(files, key=lambda path: (posixpath.basename(path) not in LOCKS, path)):
        name = posixpath.basename(path)
        try:
            if name in LOCKS:
                project = _read_lock(path, LOCKS[name], files)
                locked.update(project.manifests)
                yield project
            elif name == MANIFEST and path not in locked:
                yield Project(path, "", "PyPI", tuple(_pins(path, files[path])), (path,))
            elif REQUIREMENTS.match(path):
                yield Project(path, "pip", "PyPI", tuple(_requirements(path, files[path])), (path,))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            yield path, "cannot be read"


def requirements_in(text: str) -> Iterator[str]:
    """Every requirement in a pyproject.toml, verbatim. Raises ValueError."""
    manifest = tomllib.loads(text)
    project = manifest.get("project", {})
    groups = (*project.get("optional-dependencies", {}).values(), *manifest.get("dependency-groups", {}).values())
    for group in (project.get("dependencies", []), *groups, manifest.get("build-system", {}).get("requires", [])):
        yield from (item for item in group if isinstance(item, str))


def _poetry_names(text: str) -> Iterator[str]:
    poetry = tomllib.loads(text).get("tool", {}).get("poetry", {})
    groups = (group.get("dependencies", {}) for group in poetry.get("group", {}).values())
    for section in (poetry.get("dependencies", {}), poetry.get("dev-dependencies", {}), *groups):
        yield from (canonicalize_name(name) for name in section)


def _read_lock(path: str, tool: Tool, files: Mapping[str, str]) -> Project:
    text = files[path]
    entries = tomllib.loads(text).get("package", [])
    lines = toml_lines(text)
    manifest = files.get(posixpath.join(posixpath.dirname(path), MANIFEST), "")
    request = PythonRequest(_direct(entries, manifest), _ranges(manifest), _production(entries, manifest, tool))
    packages = tuple(_package(entry, path, tool, lines, request) for entry in entries if _is_published(entry, tool))
    return Project(path, tool, "PyPI", packages, tuple(p for p in sorted(files) if p in _manifests(path, entries)))


def _manifests(path: str, entries: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The manifest beside a lock file, and those of the folders that it names: other subfolders may be separate
    projects."""
    folder = posixpath.dirname(path)
    named = (str(entry.get("source", {}).get(kind, ".")) for entry in entries for kind in LOCAL)
    places = (posixpath.join(folder, place, MANIFEST) for place in {".", *named})
    return frozenset(map(posixpath.normpath, places))


@dataclass(frozen=True, slots=True)
class PythonRequest:
    """The directly requested packages, their ranges, and the lock file's packages outside of development."""

    direct: frozenset[str]
    ranges: Mapping[str, str]
    production: frozenset[str]


def _package(
    entry: Mapping[str, Any], path: str, tool: Tool, lines: Mapping[tuple[str, str], int], request: PythonRequest
) -> Package:
    name, source = canonicalize_name(entry["name"]), entry.get("source", {})
    registry = source.get("registry", "") if tool == "uv" else source.get("url", "")
    line = lines.get((entry["name"], entry["version"]), 0)
    ranges = (request.ranges[name],) if request.ranges.get(name) else ()
    dev = name not in request.production
    return Package(
        "PyPI", name, entry["version"], path, line, registry.rstrip("/"), name in request.direct, True, ranges, dev
    )


def _ranges(manifest: str) -> dict[str, str]:
    """Each package's requested range; none if requested in several ways."""
    found: dict[str, str] = {}
    for item in requirements_in(manifest):
        if one := requirement(item):
            name, specifier = canonicalize_name(one.name), str(one.specifier) or ">=0"
            found[name] = specifier if found.get(name, specifier) == specifier else ""
    return found


def _production(entries: Sequence[Mapping[str, Any]], manifest: str, tool: Tool) -> frozenset[str]:
    """Packages outside of development: not only requested by a project's groups."""
    needs: dict[str, list[str]] = {}
    for entry in entries:
        names = entry.get("dependencies", ())
        needs.setdefault(canonicalize_name(entry["name"]), []).extend(
            canonicalize_name(one["name"] if isinstance(one, dict) else one) for one in names
        )
    if tool == "uv":
        members = [entry for entry in entries if {"editable", "virtual"} & set(entry.get("source", {}))]
        roots = {canonicalize_name(entry["name"]) for entry in members}
        extras = [
            one for entry in members for group in entry.get("optional-dependencies", {}).values() for one in group
        ]
        return reached({*roots, *(canonicalize_name(one["name"]) for one in extras)}, needs)
    document = tomllib.loads(manifest)
    poetry = document.get("tool", {}).get("poetry", {}).get("dependencies", {})
    project = document.get("project", {})
    groups = (project.get("dependencies", []), *project.get("optional-dependencies", {}).values())
    named = {canonicalize_name(found.name) for items in groups for item in items if (found := requirement(item))}
    roots = {*named, *map(canonicalize_name, poetry)}
    return reached(roots or needs, needs)


def _is_published(entry: Mapping[str, Any], tool: Tool) -> bool:
    """Whether it comes from a registry, not a folder, a repository or an archive URL."""
    if not isinstance(entry.get("version"), str):
        return False
    source = entry.get("source", {})
    if tool == "uv":
        return str(source.get("registry", "")).startswith(("https://", "http://"))
    return bool(source.get("type", "legacy") == "legacy")


def _direct(entries: Iterable[Mapping[str, Any]], manifest: str) -> frozenset[str]:
    """The manifest's requirements, and in uv's lock the members of the workspace."""
    names: set[str] = {
        canonicalize_name(found.name) for item in requirements_in(manifest) if (found := requirement(item))
    }
    names |= set(_poetry_names(manifest))
    for entry in entries:
        if {"editable", "virtual"} & set(entry.get("source", {})):
            groups = (*entry.get("optional-dependencies", {}).values(), *entry.get("dev-dependencies", {}).values())
            names |= {canonicalize_name(d["name"]) for group in (entry.get("dependencies", []), *groups) for d in group}
    return frozenset(names)


def requirement(text: str) -> Requirement | None:
    """A PEP 508 requirement, or None."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _pins(path: str, text: str) -> Iterator[Package]:
    for item in requirements_in(text):
        found = requirement(item)
        specifiers = list(found.specifier) if found else []
        if found and not found.url and len(specifiers) == 1 and specifiers[0].operator == "==":
            version = specifiers[0].version
            if "*" not in version:
                ranges = (f"=={version}",)
                name = canonicalize_name(found.name)
                yield Package("PyPI", name, version, path, _line(text, item), direct=True, wanted=ranges)


def _line(text: str, item: str) -> int:
    """The line of a TOML file's string; 0 if it is escaped."""
    found = re.search(rf"""(["']){re.escape(item)}\1""", text)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def _requirements(path: str, text: str) -> Iterator[Package]:
    index = INDEX.search(text)
    registry = index[1].rstrip("/") if index else ""
    hashed = "--hash" in text
    for number, line in enumerate(text.splitlines(), 1):
        if (found := PIN.match(line)) and "*" not in found["version"]:
            name, dev = canonicalize_name(found["name"]), bool(FOR_DEVELOPMENT.search(path))
            ranges = (f"=={found['version']}",)
            yield Package("PyPI", name, found["version"], path, number, registry, True, not hashed, ranges, dev)


LARGEST = 8_000_000
"""Maximum bytes of a lock file."""
NAME = compile_regex(r"(?:@[A-Za-z0-9_][\w.~-]{0,100}/)?[A-Za-z0-9_][\w.~-]{0,150}", re.ASCII)
NAMES: Mapping[Ecosystem, re.Pattern[str]] = {
    "Go": compile_regex(r"[A-Za-z0-9][\w.~-]{0,100}(?:/[A-Za-z0-9_][\w.~-]{0,100}){0,12}", re.ASCII),
    "Maven": compile_regex(r"[A-Za-z0-9_][\w.-]{0,150}:[A-Za-z0-9_][\w.-]{0,150}", re.ASCII),
}
"""Where they are longer than a name."""
MOST = 300
"""Files read per commit."""


@dataclass(frozen=True, slots=True)
class DependencyReading:
    """`projects` of a commit, unreadable files (path, why), the texts, and a digest of all of them."""

    projects: tuple[Project, ...]
    unread: tuple[tuple[str, str], ...]
    texts: dict[str, str]
    digest: str


def read(git: Git, commit: str, excluded: Callable[[str], bool], also: Callable[[str], bool]) -> DependencyReading:
    """Every project of `commit` except excluded ones; `also`: further files to read."""
    entries = [e for e in git.listing(commit) if e.mode in (REGULAR, EXECUTABLE) and not excluded(e.path)]
    kinds = (node.is_node_file, is_python_file, is_compiled_file, also)
    found = [e for e in entries if any(chosen(e.path) for chosen in kinds)]
    ranked = sorted(found, key=lambda e: (not (also(e.path) or _lock(e.path)), e.path.count("/"), e.path))
    chosen, rest = ranked[:MOST], ranked[MOST:]
    large = git.sizes(entry.oid for entry in chosen)
    small = [entry for entry in chosen if large.get(entry.oid, 0) <= LARGEST]
    contents = git.blobs(entry.oid for entry in small)
    texts = {e.path: text for e in small if (text := _decode(contents[e.oid])) is not None}
    items = [
        *read_projects(_of(texts, is_python_file)),
        *node.projects(_of(texts, node.is_node_file)),
        *read_compiled(_of(texts, is_compiled_file)),
    ]
    unread = [item for item in items if not isinstance(item, Project)]
    unread += [(entry.path, "is too large") for entry in chosen if entry not in small]
    unread += [(rest[0].path, f"and {len(rest) - 1} more are too many: {MOST} are read")] if rest else []
    digest = hashlib.sha256("\n".join(f"{entry.oid} {entry.path}" for entry in chosen).encode("utf-8", "replace"))
    projects = tuple(sound(item) for item in items if isinstance(item, Project))
    projects = tuple(project for project in projects if project.packages)
    return DependencyReading(projects, tuple(unread), texts, digest.hexdigest()[:32])


def sound(project: Project) -> Project:
    """Without packages with invalid names or versions, as these go into URLs and command lines."""
    named = NAMES.get(project.ecosystem, NAME)
    packages = (p for p in project.packages if named.fullmatch(p.name) and SOUND.fullmatch(p.version))
    return replace(project, packages=tuple(packages))


def _lock(path: str) -> bool:
    return posixpath.basename(path) in (*node.LOCKS, *LOCKS, *COMPILED_LOCKS)


def _of(texts: dict[str, str], matches: Callable[[str], bool]) -> dict[str, str]:
    return {path: text for path, text in texts.items() if matches(path)}


def _decode(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
