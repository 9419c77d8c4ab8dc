"""Packages from Cargo's, Go's and Maven's lock files and manifests. Text in, values out.

Their registries are not queried: OSV knows their packages by name and version.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from ralph_mission.adapters.packages.model import CRATES, Package, Project, reached, toml_lines
from ralph_mission.values import compile_regex

CARGO, GO, MAVEN = LOCKS = ("Cargo.lock", "go.mod", "pom.xml")
MANIFEST = "Cargo.toml"
SECTIONS = ("dependencies", "build-dependencies")
REQUIRED = compile_regex(r"(?P<name>[^\s()]+) v(?P<version>[^\s]+?)(?:\+incompatible)?(?P<indirect>\s*// indirect.*)?")
PROPERTY = compile_regex(r"\$\{([\w.-]{1,100})\}")
FOR_TESTS = ("test",)
"""Maven scopes that are not shipped."""


def is_compiled_file(path: str) -> bool:
    """Whether this is a file of theirs."""
    return posixpath.basename(path) in (*LOCKS, MANIFEST)


def projects(files: Mapping[str, str]) -> Iterator[Project | tuple[str, str]]:
    """One project per lock file of Cargo, go.mod and pom.xml; (path, why) for what is unreadable."""
    for path in sorted(files):
        name = posixpath.basename(path)
        try:
            if name == CARGO:
                manifests = tuple(p for p in sorted(files) if _is_below(p, path) and p.endswith(MANIFEST))
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
            for section in (*SECTIONS, "dev-dependencies"):
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
