"""The user whose checkout it is: what git knows of them, read before any session could have changed it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.adapters.git.remote import acts_on_github
from ralph_mission.values import dataclass

WANTED = r"^(user\.(name|email)|core\.(autocrlf|eol|excludesfile)|filter\..*)$"
"""Who commits; how bytes become blobs (line ends, large files); what is left out everywhere."""
SEEN = ("PATH", "HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class User:
    """Whose commits they are, and the settings of theirs that decide what a commit holds."""

    identity: Identity = Identity()
    settings: tuple[str, ...] = ()

    @staticmethod
    def of(git: Git) -> User:
        """The user of a checkout, from git's own configuration; Ralph where it says nothing."""
        found = _configured(str(git.work_tree))
        name, email = found.pop("user.name", ""), found.pop("user.email", "")
        found.setdefault("core.excludesfile", _default_excludes())
        identity = Identity(name, email) if name and email else Identity()
        return User(identity, tuple(f"{key}={value}" for key, value in found.items() if "\n" not in value))


def _configured(folder: str) -> dict[str, str]:
    command = ["git", "-C", folder, "config", "--includes", "-z", "--get-regexp", WANTED]
    done = subprocess.run(command, capture_output=True, check=False, env=_environment())
    rows = (row.partition("\n") for row in done.stdout.decode("utf-8", "replace").split("\0") if row)
    return {key: value for key, _, value in rows}


def _environment() -> dict[str, str]:
    """What leads git to its settings. On a runner nobody is at home: what stands there an earlier job may have left."""
    seen = {name: value for name, value in os.environ.items() if name in SEEN or name.startswith("GIT_CONFIG")}
    return seen | ({"GIT_CONFIG_GLOBAL": os.devnull} if acts_on_github(os.environ) else {})


def _default_excludes() -> str:
    if acts_on_github(os.environ):
        return os.devnull
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return f"{home}/git/ignore"
