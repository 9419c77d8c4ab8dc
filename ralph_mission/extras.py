"""Optional packages: what each extra contains, whether it is installed, and how to install it."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ralph_mission.errors import UserError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "acp": ("acp",),
    "app": ("cryptography",),
    "charts": ("matplotlib",),
    "claude": ("claude_agent_sdk",),
    "database": ("sqlalchemy", "psycopg"),
    "llm": ("pydantic_ai",),
    "mcp": ("mcp",),
    "prisma": ("prisma", "sqlalchemy", "psycopg"),
    "ui": ("textual",),
    "web": ("feedparser", "protego", "selectolax"),
    "workflows": ("zizmor",),
    "x": ("tweepy", "twitter_text"),
}
"""Each extra of pyproject.toml with the modules or the program it provides."""
PROGRAMS = frozenset({"zizmor"})


def missing_module(extra: str) -> str:
    """The first module or program of an extra that is missing, or ""."""
    return next((name for name in EXTRAS[extra] if not _is_installed(name)), "")


def _is_installed(name: str) -> bool:
    if name in PROGRAMS:
        return (Path(sys.executable).parent / name).exists() or shutil.which(name) is not None
    return importlib.util.find_spec(name) is not None


def install_command(extra: str) -> str:
    """The command that installs an extra, in the way in which Ralph was installed."""
    from importlib import metadata

    try:
        url = metadata.distribution("ralph-mission").read_text("direct_url.json") or "{}"
    except (metadata.PackageNotFoundError, UnicodeDecodeError):
        url = "{}"
    return install_hint(extra, Path(__file__).parents[1], Path(sys.prefix), url)


def install_hint(extra: str, root: Path, prefix: Path, direct_url: str) -> str:
    """How to install an extra: the command, and the input of the action. `root`: the folder above the package,
    `prefix` that of the environment; `direct_url`: where the package came from, as installers note it ({} for an
    index)."""
    source = _source(direct_url)
    package = shlex.quote(f"ralph-mission[{extra}]{f' @ {source}' if source else ''}")
    if (root / "Makefile").is_file() and (root / "pyproject.toml").is_file():
        command = f"make install EXTRAS={extra}, in the checkout of Ralph"
    elif (prefix / "uv-receipt.toml").is_file():
        command = f"uv tool install --force {package}"
    elif (prefix / "pipx_metadata.json").is_file():
        command = f"pipx install --force {package}"
    else:
        command = f"{shlex.quote(str(prefix / 'bin/python'))} -m pip install {package}"
    return f"{command}; in the action, extras: {extra}"


def _source(direct_url: str) -> str:
    """Where the package came from, as pip takes it; "" for an index, and for a note that cannot be read."""
    try:
        noted = json.loads(direct_url)
        vcs = noted.get("vcs_info")
        return f"{vcs['vcs']}+{noted['url']}@{vcs['commit_id']}" if vcs else str(noted.get("url") or "")
    except (ValueError, AttributeError, KeyError, TypeError):
        return ""


def require_extra(extra: str, purpose: str) -> None:
    """Raise UserError if an extra is missing. `purpose` says what needs it, such as "charts need"."""
    if module := missing_module(extra):
        raise UserError(f"{purpose} {module}, which is not installed", install_command(extra))
