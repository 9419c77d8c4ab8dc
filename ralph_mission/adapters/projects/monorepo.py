"""The workspaces of a Node.js repository, and the command that runs one script in those that have it."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

ONE = {"npm": "--workspace {}", "pnpm": "--filter ./{}", "bun": "--filter ./{}"}
"""How a tool is given a workspace by its folder; yarn takes names, one in each call."""


def workspaces(files: Iterable[str], manifest: Mapping[str, Any], pnpm: str) -> list[str]:
    """Folders of the workspaces that `manifest` names or, for pnpm, the text of its pnpm-workspace.yaml; sorted.

    `files`: paths of the repository. `**` means one folder.
    """
    patterns = _patterns(manifest, pnpm)
    wanted = [one for one in patterns if not one.startswith("!")]
    omitted = [one.removeprefix("!").removeprefix("./") for one in patterns if one.startswith("!")]
    folders = sorted(posixpath.dirname(name) for name in files if name.endswith("/package.json"))
    return [one for one in folders if _matches(one, wanted) and not _matches(one, [*omitted, "**/node_modules/*"])]


def run_script(tool: str, script: str, members: Mapping[str, Mapping[str, Any]]) -> str:
    """The command that runs `script` in the workspaces `members`: their package.json by folder."""
    if tool == "yarn":
        names = (str(manifest.get("name") or folder) for folder, manifest in members.items())
        return " && ".join(f"yarn workspace {shlex.quote(name)} run {script}" for name in names)
    chosen = " ".join(ONE[tool].format(shlex.quote(folder)) for folder in members)
    return {
        "npm": f"npm run --silent {script} {chosen}",
        "pnpm": f"pnpm {chosen} run {script}",
        "bun": f"bun run {chosen} {script}",
    }[tool]


def _patterns(manifest: Mapping[str, Any], pnpm: str) -> list[str]:
    found = manifest.get("workspaces")
    if pnpm:
        try:
            found = yaml.safe_load(pnpm)
        except (yaml.YAMLError, RecursionError, ValueError):
            return []
    if isinstance(found, dict):  # pnpm's file, and yarn's long form
        found = found.get("packages")
    known = [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
    return [one.removeprefix("./").rstrip("/") for one in known if one.strip("./")]


def _matches(folder: str, patterns: Iterable[str]) -> bool:
    return any(PurePosixPath("/", folder).match(f"/{one}") for one in patterns)
