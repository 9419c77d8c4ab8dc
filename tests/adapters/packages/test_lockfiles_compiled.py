"""Files of Cargo, Go and Maven as packages: which versions, on which line, asked for by whom."""

from __future__ import annotations

from ralph_mission.adapters.packages.lockfiles import read_compiled
from ralph_mission.adapters.packages.model import CRATES, Package

REGISTRY = 'source = "registry+https://example.org/index"\n'
CARGO_LOCK = f"""version = 4

[[package]]
name = "harbour"
version = "0.1.0"
dependencies = ["lantern", "tidy"]

[[package]]
name = "lantern"
version = "1.4.2"
{REGISTRY}dependencies = ["rope 2.0.0"]

[[package]]
name = "rope"
version = "2.0.0"
{REGISTRY}
[[package]]
name = "tidy"
version = "3.0.0"
{REGISTRY}
[[package]]
name = "fork"
version = "1.0.0"
source = "git+https://example.org/fork#abc"
"""
CARGO_TOML = """[package]
name = "harbour"
[dependencies]
lantern = { version = "1.4", features = ["x"] }
[dev-dependencies]
tidy = "3"
"""
GO_MOD = """module example.org/harbour

go 1.24

require example.org/lantern/v2 v2.1.0

require (
	example.org/rope v1.2.3 // indirect
	example.org/old v4.0.0+incompatible
	example.org/ours v0.0.1
)

replace example.org/ours => ./ours
"""
POM = """<?xml version="1.0"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <parent>
    <groupId>org.example</groupId>
    <artifactId>starter</artifactId>
    <version>4.0.3</version>
  </parent>
  <properties><lantern.version>1.4.2</lantern.version></properties>
  <dependencies>
    <dependency><groupId>org.example</groupId><artifactId>lantern</artifactId><version>${lantern.version}</version></dependency>
    <dependency><groupId>org.example</groupId><artifactId>managed</artifactId></dependency>
    <dependency>
      <groupId>org.example</groupId><artifactId>tidy</artifactId><version>${unknown}</version>
    </dependency>
    <dependency>
      <groupId>org.example</groupId><artifactId>check</artifactId><version>2.0</version><scope>test</scope>
    </dependency>
  </dependencies>
</project>
"""


def read(path: str, files: dict[str, str]) -> tuple[Package, ...]:
    (found,) = read_compiled(files)
    assert not isinstance(found, tuple), found
    assert found.path == path
    return found.packages


def test_cargo_knows_what_is_asked_for_and_what_is_for_tests_alone() -> None:
    found = read("Cargo.lock", {"Cargo.lock": CARGO_LOCK, "Cargo.toml": CARGO_TOML})
    assert [(p.ecosystem, p.name, p.version, p.line, p.direct, p.dev, p.wanted) for p in found] == [
        (CRATES, "lantern", "1.4.2", 10, True, False, ("1.4",)),
        (CRATES, "rope", "2.0.0", 16, False, False, ()),
        (CRATES, "tidy", "3.0.0", 21, True, True, ("3",)),
    ]


def test_go_knows_what_is_indirect_and_leaves_out_what_is_replaced() -> None:
    found = read("go.mod", {"go.mod": GO_MOD})
    assert [(p.name, p.version, p.line, p.direct) for p in found] == [
        ("example.org/lantern/v2", "2.1.0", 5, True),
        ("example.org/rope", "1.2.3", 8, False),
        ("example.org/old", "4.0.0", 9, True),
    ]


def test_maven_knows_versions_that_stand_in_the_file_itself() -> None:
    found = read("pom.xml", {"pom.xml": POM})
    assert [(p.name, p.version, p.dev) for p in found] == [
        ("org.example:starter", "4.0.3", False),
        ("org.example:lantern", "1.4.2", False),
        ("org.example:check", "2.0", True),
    ]


def test_what_cannot_be_read_is_named_and_entities_are_refused() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "b">]><project>&a;</project>'
    files = {"Cargo.lock": "not toml [", "pom.xml": bomb, "web/pom.xml": "<project"}
    assert list(read_compiled(files)) == [(path, "cannot be read") for path in files]
