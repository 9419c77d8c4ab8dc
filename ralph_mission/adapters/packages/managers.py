"""How each package manager moves single packages in its lock file, and nothing else.

It works in a folder with only manifests, settings and the lock file. `move` gets the wanted versions into the lock
file; `settle` has the manager reconcile manifests and lock file. No step runs a package's script, builds one or reads a
hook file; a registry's data is only recorded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.adapters.packages.model import Bump, Tool
from ralph_mission.adapters.packages.node import plain_yaml
from ralph_mission.adapters.packages.scratch import Room
from ralph_mission.adapters.sandbox.process import own_tool, run_foreign
from ralph_mission.safety.bumps import SECTIONS
from ralph_mission.values import dataclass

UV = ("lock", "--no-config", "--no-build", "--no-progress", "--no-python-downloads", "--color", "never")
NPM = ("install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--git=/bin/false")
YARN = ("install", "--ignore-scripts", "--non-interactive", "--no-progress", "--no-bin-links")
BERRY = ("install", "--mode=update-lockfile")
STAYING = {
    "npm_config_manage_package_manager_versions": "false",
    "pnpm_config_manage_package_manager_versions": "false",
}
BERRY_REGISTRY = ("YARN_NPM_REGISTRY_SERVER",)
PNPM_REGISTRY = ("npm_config_registry", "pnpm_config_registry")
PNPM = ("install", "--lockfile-only", "--ignore-scripts", "--ignore-pnpmfile", "--no-frozen-lockfile")
QUIET = {"CI": "1", "NO_COLOR": "1", "NO_UPDATE_NOTIFIER": "1", "GIT_ALLOW_PROTOCOL": "none"}
# A corepack shim downloads the manager that a package.json names, or the newest: this is disabled.
QUIET |= {"COREPACK_ENABLE_NETWORK": "0", "COREPACK_ENABLE_PROJECT_SPEC": "0", "COREPACK_ENABLE_AUTO_PIN": "0"}
SETTLED = {"YARN_ENABLE_SCRIPTS": "0", "YARN_IGNORE_PATH": "1", "YARN_ENABLE_TELEMETRY": "0"}
SETTLED |= {"YARN_ENABLE_IMMUTABLE_INSTALLS": "0", "YARN_ENABLE_GLOBAL_CACHE": "1"}
VERSION = 30.0  # seconds for a package manager's `--version`


@dataclass(frozen=True, slots=True)
class Manager:
    """A package manager: its program, supported major versions, and its two steps."""

    program: str
    meant: Callable[[int], bool]
    move: Callable[[Room, Sequence[Bump]], None]
    settle: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    registry: tuple[str, ...] = ()  # its variables for the registry; pnpm 11 and later only reads its own


def find_program(manager: Manager) -> str:
    """The full path of its program, or ""."""
    own = own_tool(manager.program)
    return own if os.path.isabs(own) else (shutil.which(manager.program) or "")


def unfit(tool: Tool, scratch: Path, seconds: float = VERSION) -> str:
    """Why a lock file's manager cannot be used here, or ""."""
    manager = MANAGERS.get(tool)
    if manager is None:
        return f"a lock file of {tool} cannot be derived"
    program = find_program(manager)
    if not program:
        return f"{manager.program} is not installed"
    with tempfile.TemporaryDirectory(prefix="version-", dir=scratch) as own:
        environment = {**QUIET, **manager.environment}
        home = Path(own) / "home"
        done = run_foreign((program, "--version"), cwd=Path(own), home=home, timeout=seconds, extra_env=environment)
    version = done.stdout.decode(errors="replace").strip()
    return (
        ""
        if manager.meant(major(version))
        else f"{manager.program} here is {version[:20] or 'unknown'}, of another line"
    )


def manager_environment(manager: Manager, base: str) -> dict[str, str]:
    """A manager's environment: the registry at `base`, and settings that prevent downloads of tools."""
    registry = dict.fromkeys(manager.registry, base) if base else {}
    if base.startswith("http://") and manager.registry == BERRY_REGISTRY:
        registry["YARN_UNSAFE_HTTP_WHITELIST"] = urlsplit(base).hostname or ""
    return {**QUIET, **manager.environment, **registry}


def major(text: str) -> int:
    """The first number in the output of `--version`, or 0."""
    found = re.search(r"(\d+)\.\d+", text)
    return int(found[1]) if found else 0


def _uv(workspace: Room, bumps: Sequence[Bump]) -> None:
    arguments = (word for b in bumps for word in ("--upgrade-package", f"{b.package.name}=={b.to}"))
    workspace.run((*UV, *arguments))


def _pinning(settle: tuple[str, ...]) -> Callable[[Room, Sequence[Bump]], None]:
    """Temporarily requests exactly the wanted versions; a range that contains them keeps them afterwards."""

    def move(workspace: Room, bumps: Sequence[Bump]) -> None:
        with_ranges = {path: workspace.read(path) for bump in bumps for path in bump.project.manifests}
        for path, text in with_ranges.items():
            workspace.write(path, _exactly(text, bumps))
        workspace.run(settle)
        for path, text in with_ranges.items():
            workspace.write(path, text)

    return move


def _exactly(text: str, bumps: Sequence[Bump]) -> str:
    manifest = json.loads(text)
    for bump in bumps:
        for section in SECTIONS:
            if bump.package.name in (manifest.get(section) or {}):
                manifest[section][bump.package.name] = bump.to
    return json.dumps(manifest, indent=2)


def _yarn(workspace: Room, bumps: Sequence[Bump]) -> None:
    """yarn 1 drops a range if an exact version is requested: its new entry is put below the range's key."""
    before = workspace.read(workspace.lock)
    _pinning(YARN)(workspace, bumps)
    moved = dict(_entries(workspace.read(workspace.lock)))
    for bump in bumps:
        body = next((b for keys, b in moved.items() if f"{bump.package.name}@{bump.to}" in _keys(keys)), "")
        for keys, old in dict(_entries(before)).items():
            named = any(key.rpartition("@")[0] == bump.package.name for key in _keys(keys))
            if body and named and f'  version "{bump.package.version}"\n' in old:
                before = before.replace(f"{keys}\n{old}", f"{keys}\n{body}", 1)
    workspace.write(workspace.lock, before)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """(the line of keys, the lines below it) of each entry of a lock file of yarn 1."""
    for block in re.split(r"\n(?=[^\s#])", text.replace("\r\n", "\n")):
        keys, _, body = block.partition("\n")
        if keys.endswith(":"):
            yield keys, body.rstrip("\n") + "\n"


def _keys(line: str) -> list[str]:
    return [key.strip().strip('"') for key in line.removesuffix(":").split(",")]


def _berry(workspace: Room, bumps: Sequence[Bump]) -> None:
    entries = plain_yaml(workspace.read(workspace.lock))
    for bump in bumps:
        for keys, entry in entries.items():
            if isinstance(entry, dict) and entry.get("resolution") == f"{bump.package.name}@npm:{bump.package.version}":
                for key in keys.split(", "):
                    workspace.run(("set", "resolution", key, f"npm:{bump.to}"))


MANAGERS: Mapping[Tool, Manager] = {
    "uv": Manager("uv", lambda _: True, _uv, UV, {"UV_PYTHON_DOWNLOADS": "never"}, ("UV_DEFAULT_INDEX",)),
    "npm": Manager("npm", lambda major: major >= 7, _pinning(NPM), NPM, {}, ("npm_config_registry",)),
    "yarn": Manager("yarn", lambda major: major == 1, _yarn, YARN, {"YARN_IGNORE_PATH": "1"}, ("npm_config_registry",)),
    "berry": Manager("yarn", lambda major: major >= 3, _berry, BERRY, SETTLED, BERRY_REGISTRY),
    "pnpm": Manager("pnpm", lambda major: major >= 8, _pinning(PNPM), PNPM, STAYING, PNPM_REGISTRY),
}
