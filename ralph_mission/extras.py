"""Optional packages: what each extra contains, whether it is installed, and how to install it."""

from __future__ import annotations

import importlib.util
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
    """The command that installs an extra, depending on how ralph was installed."""
    return f"pip install 'ralph-mission[{extra}]' (or make install EXTRAS={extra}); in the action, extras: {extra}"


def require_extra(extra: str, purpose: str) -> None:
    """Raise UserError if an extra is missing. `purpose` says what needs it, such as "charts need"."""
    if module := missing_module(extra):
        raise UserError(f"{purpose} {module}, which is not installed", install_command(extra))
