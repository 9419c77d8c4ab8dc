"""A made-up world of packages on loopback, and repositories whose lock files are what real package managers wrote."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ralph_mission.adapters.sandbox.process import own_tool
from tests.fakes.registry import Registry

PYPROJECT = """\
[project]
name = "harbour"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = [
  "tide-tables>=2.1",
  "buoy==1.4.2",  # pinned, see above
  "anchor>=0.3",
]

[dependency-groups]
dev = ["knots"]
"""
BEFORE: dict[str, dict[str, dict[str, str]]] = {
    "tide-tables": {"2.1.0": {"moon": ">=1"}},
    "buoy": {"1.4.2": {}},
    "anchor": {"0.3.1": {"chain-link": ">=5"}},
    "knots": {"7.0": {}},
    "moon": {"1.0.0": {}},
    "chain-link": {"5.5.0": {}},
}
SINCE: dict[str, dict[str, dict[str, str]]] = {
    "tide-tables": {"2.1.3": {"moon": ">=1"}, "2.1.4rc1": {"moon": ">=1"}, "2.2.0": {"moon": ">=1"}},
    "buoy": {"1.4.3": {}, "1.4.4": {}, "3.0.0": {}},
    "anchor": {"0.3.2": {"chain-link": ">=5"}, "0.4.0": {}},
    "knots": {"7.0.1": {}},
    "moon": {"1.0.1": {}, "1.1.0": {}},
    "chain-link": {"5.5.1": {}},
}
PACKAGE_JSON = """\
{
  "name": "harbour",
  "version": "1.0.0",
  "license": "MIT",
  "scripts": {
    "test": "node --test 1.4.2"
  },
  "dependencies": {
    "@harbour/pilot": "^0.2.0",
    "buoy": "1.4.2",
    "lantern": "^3.1.0"
  },
  "devDependencies": {
    "tidy": "~2.0.1"
  }
}
"""
NODE_BEFORE: dict[str, dict[str, dict[str, str]]] = {
    "@harbour/pilot": {"0.2.0": {"rope": "^1.0.0"}},
    "buoy": {"1.4.2": {}},
    "lantern": {"3.1.0": {"rope": "^1.0.0"}},
    "tidy": {"2.0.1": {}},
    "rope": {"1.0.0": {}},
}
NODE_SINCE: dict[str, dict[str, dict[str, str]]] = {
    "@harbour/pilot": {"0.2.1": {"rope": "^1.0.0"}, "0.3.0": {}},
    "buoy": {"1.4.3": {}, "2.0.0-beta.1": {}},
    "lantern": {"3.1.1": {"rope": "^1.0.0"}, "3.2.0": {"rope": "^1.0.0"}, "4.0.0": {}},
    "tidy": {"2.0.2": {}},
    "rope": {"1.0.1": {}},
}


def young() -> Registry:
    """The registry as it was when the lock files were written."""
    return Registry(python={n: dict(v) for n, v in BEFORE.items()}, npm={n: dict(v) for n, v in NODE_BEFORE.items()})


def grow(registry: Registry) -> None:
    """What has come out since."""
    for held, since in ((registry.python, SINCE), (registry.npm, NODE_SINCE)):
        for name, versions in since.items():
            held[name] |= versions


def uv(folder: Path, registry: Registry, *arguments: str) -> subprocess.CompletedProcess[str]:
    """uv itself, in an environment of its own."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder.parent / "home"),
        "UV_DEFAULT_INDEX": registry.index,
        "UV_PYTHON_DOWNLOADS": "never",
    }
    command = [own_tool("uv"), *arguments, "--no-build", "--quiet"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def locked_by_uv(folder: Path, registry: Registry) -> dict[str, str]:
    """A project with a real uv.lock of the day before."""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    done = uv(folder, registry, "lock")
    assert done.returncode == 0, done.stderr
    return {"pyproject.toml": PYPROJECT, "uv.lock": (folder / "uv.lock").read_text()}


def npm_lock(registry: Registry) -> str:
    """What npm 11 writes for PACKAGE_JSON, but for the order of keys."""
    manifest = json.loads(PACKAGE_JSON)
    asked = {kind: manifest[kind] for kind in ("dependencies", "devDependencies")}
    packages: dict[str, object] = {"": {"name": "harbour", "version": "1.0.0", "license": "MIT", **asked}}
    for name, versions in sorted(NODE_BEFORE.items()):
        for version, needs in versions.items():
            packages[f"node_modules/{name}"] = {
                "version": version,
                "resolved": registry.archive(name, version),
                "integrity": registry.integrity(name, version),
                **({"dev": True} if name in asked["devDependencies"] else {}),
                **({"dependencies": needs} if needs else {}),
            }
    lock = {"name": "harbour", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": packages}
    return json.dumps(lock, indent=2) + "\n"


def yarn_lock(registry: Registry) -> str:
    """What yarn 1 writes for PACKAGE_JSON, letter by letter."""
    entries = []
    for keys, name, version in (
        ('"@harbour/pilot@^0.2.0"', "@harbour/pilot", "0.2.0"),
        ("buoy@1.4.2", "buoy", "1.4.2"),
        ("lantern@^3.1.0", "lantern", "3.1.0"),
        ("rope@^1.0.0", "rope", "1.0.0"),
        ("tidy@~2.0.1", "tidy", "2.0.1"),
    ):
        needs = "".join(f'    {other} "{range_}"\n' for other, range_ in registry.npm[name][version].items())
        digest = registry.packument(name)["versions"][version]["dist"]["shasum"]
        entries.append(
            f'{keys}:\n  version "{version}"\n  resolved "{registry.archive(name, version)}#{digest}"\n'
            f"  integrity {registry.integrity(name, version)}\n" + (f"  dependencies:\n{needs}" if needs else "")
        )
    head = "# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.\n# yarn lockfile v1\n\n\n"
    return head + "\n".join(entries)
