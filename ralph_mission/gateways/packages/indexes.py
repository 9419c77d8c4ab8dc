"""Which registry a package comes from when its lock file does not say: the owner's environment, the project's
settings for its package manager, the package manager's own answer. No registry is known by name here.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.gateways.http.address import PORTS
from ralph_mission.gateways.packages.model import Ecosystem, Package
from ralph_mission.gateways.process import run_foreign

NAMES: Mapping[Ecosystem, tuple[str, ...]] = {
    "PyPI": ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"),
    "npm": ("npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER"),
}
"""Variables by which people tell their package managers, the first one set counts."""
SETTINGS = (".npmrc", ".yarnrc", ".yarnrc.yml", "uv.toml")
ALLOW = "RALPH_WEB_ALLOW"
"""Hosts, or host:port, that may be private whatever is asked there."""
OWN = ("OSV_API_URL", ALLOW)
SECONDS = 60.0


def is_index_file(path: str) -> bool:
    """Whether this is a file that may name a registry."""
    return posixpath.basename(path) in SETTINGS


def registry(package: Package, texts: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The base address for a package; "" when only the package manager itself knows (see `built_in`)."""
    if package.registry:
        return package.registry
    folder = posixpath.dirname(package.path)
    scope = package.name.partition("/")[0] if package.name.startswith("@") else ""
    if scope and (found := _npmrc(texts.get(posixpath.join(folder, ".npmrc"), ""), f"{scope}:registry")):
        return found
    told = next((environment[name] for name in NAMES[package.ecosystem] if environment.get(name)), "")
    return (told or _configured_index(package.ecosystem, folder, texts)).rstrip("/")


def built_in(ecosystem: Ecosystem, scratch: Path) -> str:
    """What pip or npm would ask, by their own word; "" when neither is there or they do not say."""
    if ecosystem == "npm":
        done = run_foreign(("npm", "config", "get", "registry"), cwd=scratch, home=scratch / "home", timeout=SECONDS)
        found = re.search(r"^https?://\S+$", done.stdout.decode(errors="replace"), re.MULTILINE)
        return found[0].rstrip("/") if found else ""
    command = (sys.executable, "-m", "pip", "help", "install")
    done = run_foreign(command, cwd=scratch, home=scratch / "home", timeout=SECONDS, extra_env={"COLUMNS": "200"})
    found = re.search(r"--index-url\b.{0,200}?\(default\s+(https?://[^\s)]+)\)", done.stdout.decode(), re.DOTALL)
    return found[1].rstrip("/") if found else ""


def hosts(environment: Mapping[str, str], *more: str) -> tuple[str, ...]:
    """host:port of every registry that the environment names: an owner's word, so they may be private."""
    addresses = [environment.get(name, "") for names in NAMES.values() for name in names]
    places = [_place(address) for address in (*addresses, *more)]
    named = re.split(r"[\s,]+", environment.get(ALLOW, ""))
    return tuple(dict.fromkeys(place for place in (*places, *named) if place))


def _place(address: str) -> str:
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.hostname and (port := parts.port or PORTS.get(parts.scheme)):
            host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
            return f"{host}:{port}"  # no other port of it: those are for the repository's files to name
    return ""


def _configured_index(ecosystem: Ecosystem, folder: str, texts: Mapping[str, str]) -> str:
    def text(name: str) -> str:
        return texts.get(posixpath.join(folder, name), "") or texts.get(name, "")

    if ecosystem == "npm":
        berry = re.search(r"^npmRegistryServer:\s*[\"']?([^\"'\s]+)", text(".yarnrc.yml"), re.MULTILINE)
        classic = re.search(r"^registry\s+[\"']?([^\"'\s]+)", text(".yarnrc"), re.MULTILINE)
        return _npmrc(text(".npmrc"), "registry") or (berry[1] if berry else "") or (classic[1] if classic else "")
    return _uv(text("uv.toml"), ()) or _uv(text("pyproject.toml"), ("tool", "uv"))


def _npmrc(text: str, key: str) -> str:
    found = re.search(rf"^[ \t]*+{re.escape(key)}[ \t]*+=[ \t]*[\"']?(https?://[^\"'\s]+)", text, re.MULTILINE)
    return found[1].rstrip("/") if found else ""


def _uv(text: str, section: tuple[str, ...]) -> str:
    try:
        settings = tomllib.loads(text)
        for part in section:
            settings = settings.get(part, {})
        default = next((str(i["url"]) for i in settings.get("index", ()) if i.get("default")), "")
        return default or str(settings.get("index-url", ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""


def own_environment() -> Mapping[str, str]:
    """The variables of ours that name registries or OSV."""
    names = [name for group in NAMES.values() for name in group]
    return {name: os.environ[name] for name in (*names, *OWN) if os.environ.get(name)}
