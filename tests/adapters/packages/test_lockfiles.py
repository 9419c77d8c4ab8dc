"""What each package manager wrote down, read back as packages."""

from __future__ import annotations

import json
import time

import pytest

from ralph_mission.adapters.fixers.places import python_pins
from ralph_mission.adapters.packages import lockfiles, node, registries
from ralph_mission.adapters.packages.model import Package, Project

HOST = "https://npm.example.org"
MANIFEST = '{"dependencies": {"@harbour/pilot": "^0.2.0", "buoy": "^1.4.0"}, "devDependencies": {"tidy": "2.0.1"}}'
NPM = f"""\
{{
  "lockfileVersion": 3,
  "packages": {{
    "": {{"dependencies": {{"buoy": "^1.4.0"}}}},
    "node_modules/buoy": {{"version": "1.4.2", "resolved": "{HOST}/buoy/-/buoy-1.4.2.tgz"}},
    "node_modules/@harbour/pilot": {{"version": "0.2.0", "resolved": "{HOST}/@harbour/pilot/-/pilot-0.2.0.tgz"}},
    "node_modules/@harbour/pilot/node_modules/buoy": {{"version": "0.9.0"}},
    "node_modules/rope": {{"version": "1.0.0", "resolved": "git+ssh://x/rope.git#1"}},
    "node_modules/local": {{"link": true, "resolved": "packages/local"}}
  }}
}}
"""
YARN = f"""\
# yarn lockfile v1

"@harbour/pilot@^0.2.0", "@harbour/pilot@~0.2.0":
  version "0.2.0"
  resolved "{HOST}/@harbour/pilot/-/pilot-0.2.0.tgz#{"c3" * 20}"
  dependencies:
    version "9.9.9"

buoy@^1.3.0, buoy@^1.4.0:
  version "1.4.2"
  resolved "{HOST}/buoy/-/buoy-1.4.2.tgz#{"c3" * 20}"

other@npm:buoy@^1.0.0:
  version "1.0.0"
  resolved "{HOST}/buoy/-/buoy-1.0.0.tgz#{"c3" * 20}"

rope@^1.0.0:
  version "1.0.0"
  resolved "{HOST}/rope/-/rope-1.0.0.tgz#{"c3" * 20}"

"local@file:packages/local":
  version "0.0.0"
"""
BERRY = """\
__metadata:
  version: 8

"@harbour/pilot@npm:^0.2.0":
  version: 0.2.0
  resolution: "@harbour/pilot@npm:0.2.0"

"buoy@npm:^1.3.0, buoy@npm:^1.4.0":
  version: 1.4.2
  resolution: "buoy@npm:1.4.2"

"x@workspace:.":
  version: 0.0.0-use.local
  resolution: "x@workspace:."

"rope@npm:^1.0.0":
  version: 1.0.0
  resolution: "rope@npm:1.0.0"
"""
PNPM_9 = """\
lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      '@harbour/pilot': {specifier: ^0.2.0, version: 0.2.0}
      buoy: {specifier: ^1.4.0, version: 1.4.2(rope@1.0.0)}
packages:
  '@harbour/pilot@0.2.0': {resolution: {integrity: x}}
  buoy@1.4.2: {resolution: {integrity: x}}
  rope@1.0.0: {resolution: {integrity: x}}
"""
PNPM_5 = """\
lockfileVersion: 5.4
specifiers: {buoy: ^1.4.0}
dependencies: {buoy: 1.4.2_rope@1.0.0, '@harbour/pilot': 0.2.0}
packages:
  /@harbour/pilot/0.2.0: {resolution: {integrity: x}}
  /buoy/1.4.2_rope@1.0.0: {resolution: {integrity: x}}
  /rope/1.0.0: {resolution: {integrity: x}}
"""
SAME = {("@harbour/pilot", "0.2.0", True), ("buoy", "1.4.2", True), ("rope", "1.0.0", False)}


def only(projects) -> Project:
    (project,) = projects
    assert isinstance(project, Project), project
    return project


@pytest.mark.parametrize(
    ("name", "text", "tool"),
    [
        ("yarn.lock", YARN, "yarn"),
        ("yarn.lock", YARN.replace("\n", "\r\n"), "yarn"),
        ("yarn.lock", BERRY, "berry"),
        ("pnpm-lock.yaml", PNPM_9, "pnpm"),
        ("pnpm-lock.yaml", PNPM_5, "pnpm"),
    ],
)
def test_what_is_locked_and_who_asked_for_it(name: str, text: str, tool: str) -> None:
    project = only(node.projects({f"web/{name}": text, "web/package.json": MANIFEST}))
    assert (project.tool, project.manifests) == (tool, ("web/package.json",))
    assert {(p.name, p.version, p.direct) for p in project.packages} == SAME
    lines = text.splitlines()
    assert all(p.version in lines[p.line - 1] and "other@" not in lines[p.line - 1] for p in project.packages)


def test_a_lock_file_of_npm_with_a_copy_below_another() -> None:
    project = only(node.projects({"package-lock.json": NPM, "package.json": MANIFEST}))
    found = {(p.name, p.version, p.direct, p.registry) for p in project.packages}
    assert found == {
        ("buoy", "1.4.2", True, HOST),
        ("@harbour/pilot", "0.2.0", True, HOST),
        ("buoy", "0.9.0", False, ""),
    }


def test_a_workspace_below_a_lock_file_asks_too_and_is_no_project_of_its_own() -> None:
    files = {"yarn.lock": YARN, "package.json": "{}", "apps/a/package.json": '{"dependencies": {"rope": "^1.0.0"}}'}
    project = only(node.projects(files))
    assert [p.name for p in project.packages if p.direct] == ["rope"]
    assert project.manifests == ("apps/a/package.json", "package.json")


UV = """\
version = 1
[[package]]
name = "harbour"
version = "0.1.0"
source = { editable = "." }
dependencies = [{ name = "buoy" }]
[package.dev-dependencies]
dev = [{ name = "knots" }]
[[package]]
name = "buoy"
version = "1.4.2"
source = { registry = "https://index.example.org/simple/" }
[[package]]
name = "knots"
version = "7.0"
source = { git = "https://git.example.org/knots?rev=1#abc" }
[[package]]
name = "moon"
version = "1.0.0"
source = { registry = "https://index.example.org/simple" }
"""
POETRY = """\
[[package]]
name = "Buoy"
version = "1.4.2"
[[package]]
name = "moon"
version = "1.0.0"
[package.source]
type = "legacy"
url = "https://private.example.org/simple"
[[package]]
name = "knots"
version = "7.0"
[package.source]
type = "git"
url = "https://git.example.org/knots"
"""


def test_a_lock_file_of_uv() -> None:
    found = only(lockfiles.read_projects({"uv.lock": UV})).packages
    index = "https://index.example.org/simple"
    assert [(p.name, p.direct, p.registry) for p in found] == [("buoy", True, index), ("moon", False, index)]
    assert [UV.splitlines()[p.line - 1] for p in found] == ['version = "1.4.2"', 'version = "1.0.0"']


def test_a_lock_file_of_poetry() -> None:
    files = {"poetry.lock": POETRY, "pyproject.toml": '[tool.poetry.dependencies]\nBUOY = "^1"\n'}
    found = only(lockfiles.read_projects(files)).packages
    private = "https://private.example.org/simple"
    assert [(p.name, p.direct, p.registry) for p in found] == [("buoy", True, ""), ("moon", False, private)]


def test_exact_versions_in_requirements_and_nothing_else() -> None:
    text = (
        "-i https://index.example.org/simple\n-r other.txt\nBuoy[extra]==1.4.2 ; python_version > '3'\n"
        "moon>=1\nrope==1.*\n# tide==1.0\nknots===7.0\nlocal @ file:///x\n"
    )
    found = only(lockfiles.read_projects({"requirements/dev.txt": text})).packages
    assert [(p.name, p.version, p.line, p.movable) for p in found] == [
        ("buoy", "1.4.2", 3, True),
        ("knots", "7.0", 7, True),
    ]
    hashed = only(lockfiles.read_projects({"requirements.txt": f"buoy==1.4.2 --hash=sha256:{'a1' * 32}\n"}))
    assert not hashed.packages[0].movable


def test_exact_versions_in_a_manifest_beside_no_lock_file() -> None:
    text = (
        '[project]\ndependencies = ["buoy==1.4.2", "moon>=1", "rope==1.*"]\n[build-system]\nrequires = ["knots==7.0"]\n'
    )
    assert {p.name for p in only(lockfiles.read_projects({"pyproject.toml": text})).packages} == {"buoy", "knots"}


@pytest.mark.parametrize(
    ("reader", "path", "text"),
    [
        (lockfiles.read_projects, "uv.lock", "[[package"),
        (lockfiles.read_projects, "uv.lock", "package = 3"),
        (lockfiles.read_projects, "poetry.lock", '[[package]]\nversion = "1"'),
        (lockfiles.read_projects, "pyproject.toml", "[project]\ndependencies = 3"),
        (node.projects, "package-lock.json", "[]"),
        (node.projects, "package-lock.json", '{"packages": {"node_modules/x": 3}}'),
        (node.projects, "package-lock.json", "[" * 100_000),
        (node.projects, "package.json", '{"dependencies": 3}'),
        (node.projects, "pnpm-lock.yaml", "packages: [1, {]"),
        (node.projects, "pnpm-lock.yaml", "a: &a [x]\nb: *a\n"),
        (node.projects, "yarn.lock", "__metadata:\n  - &x y\n"),
    ],
)
def test_what_is_no_lock_file_is_named_and_nothing_breaks(reader, path: str, text: str) -> None:
    ((named, why),) = reader({path: text})
    assert named == path and why


def test_a_manifest_belongs_to_the_lock_file_that_names_its_folder_and_to_no_other() -> None:
    manifest = '[project]\nname = "harbour"\nversion = "0.1.0"\ndependencies = ["buoy==1.4.2"]\n'
    member = '[[package]]\nname = "pier"\nversion = "0.1.0"\nsource = { editable = "lib/pier" }\n'
    places = ("a/pyproject.toml", "a/lib/pier/pyproject.toml", "a/docs/pyproject.toml", "ab/pyproject.toml")
    found = list(lockfiles.read_projects({"a/uv.lock": UV + member, **dict.fromkeys(places, manifest)}))
    assert [(p.path, p.manifests) for p in found if isinstance(p, Project)] == [
        ("a/uv.lock", ("a/lib/pier/pyproject.toml", "a/pyproject.toml")),
        ("a/docs/pyproject.toml", ("a/docs/pyproject.toml",)),
        ("ab/pyproject.toml", ("ab/pyproject.toml",)),
    ]


def test_a_pin_of_a_manifest_stands_where_a_section_asks_for_it() -> None:
    text = """{
  "name": "buoy",
  "keywords": ["buoy", "tidy"],
  "peerDependencies": {"buoy": "1.4.2"},
  "dependencies": {
    "buoy": "1.4.2"
  },
  "devDependencies": {"tidy" : "=2.0.1", "a\\u006echor": "1.0.0"}
}"""
    found = only(node.projects({"package.json": text})).packages
    assert [(p.name, p.line) for p in found] == [("buoy", 6), ("tidy", 8), ("anchor", 0)]


def test_a_pin_that_is_written_in_another_way_than_it_reads_stands_nowhere() -> None:
    text = """[project]
# not buoy==1.4.2
dependencies = [
  'buoy==1.4.2', "\\u006bnots==7.0",
]
"""
    found = only(lockfiles.read_projects({"pyproject.toml": text})).packages
    assert [(p.name, p.line) for p in found] == [("buoy", 4), ("knots", 0)]


@pytest.mark.parametrize("text", ["\n" * 100_000 + "x", "buoy" + " " * 100_000 + "x\n", "x\n" + "\t" * 100_000 + "x"])
def test_white_space_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    list(lockfiles.read_projects({"requirements.txt": text}))
    registries.registry(Package("npm", "buoy", "1.0.0", "package.json"), {".npmrc": text}, {})
    python_pins(text, "buoy", "1.4.2", "1.4.3")
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://u:p@index.example.org/simple", "index.example.org:443"),
        ("http://localhost/simple", "localhost:80"),
        ("http://[::1]:8080/simple", "[::1]:8080"),
        ("not an address", ""),
    ],
)
def test_a_registry_of_the_environment_may_be_private_at_its_own_port_alone(address: str, place: str) -> None:
    assert registries.hosts({"PIP_INDEX_URL": address}) == ((place,) if place else ())


def test_a_lock_file_of_thousands_of_packages_is_read_at_the_cost_of_its_length() -> None:
    entry = {
        "version": "1.0.0",
        "resolved": "https://r.example.org/x/-/x-1.0.0.tgz",
        "integrity": "sha512-" + "A" * 300,
    }
    lock = {"packages": {f"node_modules/pkg-{number}": entry for number in range(15_000)}}
    text = json.dumps(lock, indent=1)
    began = time.process_time()
    (project,) = node.projects({"package-lock.json": text})
    assert isinstance(project, Project) and time.process_time() - began < 8
    lines = text.splitlines()
    assert all('"version": "1.0.0"' in lines[package.line - 1] for package in project.packages[::500])
    assert f'"{project.packages[-1].name}"' in lines[project.packages[-1].line - 2].replace("node_modules/", "")
