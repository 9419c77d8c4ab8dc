"""What outlives a job on a runner of one's own.

A checkout clears its workspace, and deletes even the clone when it finds a wrong remote or a broken repository. The
tool cache it leaves alone. A runner that is made anew for every job forgets both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def folder(environment: Mapping[str, str]) -> Path | None:
    """This repository's folder in the tool cache, which all repositories of a runner share; None without one."""
    cache, repository = environment.get("RUNNER_TOOL_CACHE", ""), environment.get("GITHUB_REPOSITORY", "")
    if cache and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", repository):
        return Path(cache) / "ralph" / repository.lower().replace("/", "+")
    return None
