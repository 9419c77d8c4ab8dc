"""Whether Renovate or Dependabot look after a repository's dependencies: then routine updates are theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from ralph_mission.gateways.packages.model import Ecosystem
from ralph_mission.safety.strict_yaml import LOADER, MAX_BYTES

RENOVATE = (
    "renovate.json renovate.json5 .renovaterc .renovaterc.json .renovaterc.json5 .github/renovate.json"
    " .github/renovate.json5 .gitlab/renovate.json .gitlab/renovate.json5"
).split()
DEPENDABOT = (".github/dependabot.yml", ".github/dependabot.yaml")
COVERED: Mapping[str, Ecosystem] = {"npm": "npm", "pip": "PyPI", "uv": "PyPI"}
MANAGERS: Mapping[str, Ecosystem] = {
    "npm": "npm",
    **dict.fromkeys(
        ("pep621", "pip_requirements", "pip_setup", "pip-compile", "pipenv", "poetry", "setup-cfg"), "PyPI"
    ),
}
"""Renovate's, as its `enabledManagers` names them."""
MERGES = 3
"""How deep what is merged into an entry is looked up."""


def is_bot_file(path: str) -> bool:
    """Whether it is a file of theirs."""
    return path in RENOVATE or path in DEPENDABOT


def find_updaters(texts: Mapping[str, str]) -> dict[Ecosystem, str]:
    """Who makes routine updates, by ecosystem. `texts` holds files by path, `package.json` too."""
    for path in RENOVATE:
        if path in texts and _is_enabled(settings := _plain(texts[path])):
            return _renovate_ecosystems(settings)
    if "renovate" in (manifest := _plain(texts.get("package.json", ""))) and _is_enabled(manifest["renovate"]):
        return _renovate_ecosystems(manifest["renovate"])
    found: dict[Ecosystem, str] = {}
    for path in DEPENDABOT:
        found |= dict.fromkeys(_updates(texts.get(path, "")), "Dependabot")
    return found


def _is_enabled(settings: object) -> bool:
    return not isinstance(settings, dict) or settings.get("enabled") is not False


def _renovate_ecosystems(settings: object) -> dict[Ecosystem, str]:
    enabled = settings.get("enabledManagers") if isinstance(settings, dict) else None
    managers = enabled if isinstance(enabled, list) else MANAGERS
    return {MANAGERS[name]: "Renovate" for name in managers if isinstance(name, str) and name in MANAGERS}


def _plain(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # JSON5 is a superset: what it says more is theirs to read
        return {}
    return found if isinstance(found, dict) else {}


def _updates(text: str) -> list[Ecosystem]:
    """The ecosystems with version updates; a limit of 0 pulls means security updates alone."""
    if len(text) > MAX_BYTES:
        return []
    try:
        document = yaml.load(text, _Unmerged)
    except (yaml.YAMLError, ValueError, RecursionError, LookupError, AttributeError, TypeError, ArithmeticError):
        return []
    entries = document.get("updates", []) if isinstance(document, dict) else []
    named = (
        _effective_setting(entry, "package-ecosystem")
        for entry in (entries if isinstance(entries, list) else [])
        if _effective_setting(entry, "open-pull-requests-limit") != 0
    )
    return [COVERED[name] for name in named if isinstance(name, str) and name in COVERED]


def _effective_setting(entry: object, key: str, depth: int = MERGES) -> object:
    """What an entry says itself, or what is merged into it."""
    if not isinstance(entry, dict) or depth < 0:
        return None
    if key in entry:
        return entry[key]
    merged = entry.get("<<")
    sources = merged[:MERGES] if isinstance(merged, list) else [merged]
    return next((found for one in sources if (found := _effective_setting(one, key, depth - 1)) is not None), None)


class _Unmerged(LOADER):  # type: ignore[valid-type, misc]  # which one it is depends on how PyYAML was built
    """Reads anchors, whose cost is bounded by their length, and leaves merges alone, whose cost is not."""


_Unmerged.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":merge")]
    for first, known in LOADER.yaml_implicit_resolvers.items()
}
