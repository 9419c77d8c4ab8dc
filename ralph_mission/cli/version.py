"""Which commit this program was made of, where that is known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

SHOWN = 12  # digits of a commit


def find_commit(digits: int = SHOWN) -> str:
    """The commit of the checkout that we run from, that pip or uv installed, or of which a release was built.

    Of a clone that was installed, it is the present one, unless the clone has changed since.
    """
    from importlib import metadata  # takes a while to load

    root = Path(__file__).parents[2]
    if (root / ".git").exists() and (root / "pyproject.toml").exists():
        return _of_checkout(root)[:digits]
    try:
        installed = metadata.distribution("ralph-mission")
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        if "dir_info" in origin:
            return _of_clone(Path(unquote(urlsplit(origin["url"]).path)), installed)[:digits]
        return str(origin["vcs_info"]["commit_id"])[:digits]
    except (metadata.PackageNotFoundError, KeyError, ValueError):
        return find_release()[1][:digits]


def find_release() -> tuple[str, str]:
    """The repository's address and the commit that the installed release was built of; two "" of anything else.
    scripts/release.py writes them as the address of the source."""
    from importlib import metadata

    try:
        urls = metadata.metadata("ralph-mission").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return "", ""
    found = (re.fullmatch(r"Source, (\S+)/tree/([0-9a-f]{40})", url) for url in urls)
    return next(((match[1], match[2]) for match in found if match), ("", ""))


def _of_clone(root: Path, installed: Distribution) -> str:
    record = next((file for file in installed.files or () if file.name == "RECORD"), None)
    if record is None or not (root / ".git").exists():
        return ""
    from ralph_mission.adapters.git.git import Git

    try:
        commit, moved = Git.open(root).run("log", "-g", "-1", "--date=unix", "--format=%H %gd").decode().split()
        seconds = int(moved.partition("{")[2].rstrip("}"))
        return commit if seconds <= Path(str(record.locate())).stat().st_mtime else ""
    except (UserError, OSError, ValueError):
        return ""


def _of_checkout(root: Path) -> str:
    from ralph_mission.adapters.git.git import Git

    try:
        return Git.open(root).resolve("HEAD")
    except UserError:
        return ""
