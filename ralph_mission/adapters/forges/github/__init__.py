"""GitHub, or a GitHub Enterprise server: issues and pull requests by its REST API, branches by git over HTTPS."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from ralph_mission.adapters.forges.github.api import PACE, Api, Counts, ReadCache, scope_of
from ralph_mission.adapters.forges.github.committing import VerifiedRemote
from ralph_mission.adapters.forges.github.forge import GitHubForge, utc_now
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import RepositoryPlace

__all__ = ["Counts", "GitHubForge", "connect"]


def connect(
    git: Git,
    place: RepositoryPlace,
    *,
    now: Callable[[], datetime] = utc_now,
    note: Callable[[str], None] = lambda text: None,
    staged: bool = False,
    required_checks_only: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    pace: float = PACE,
    timeout: float = 30,
) -> GitHubForge:
    """The forge of a clone. Sends no request yet. `staged`: changes neither GitHub nor a ref or file here.

    `required_checks_only`: a merge only waits for the checks that GitHub requires.
    """
    read_cache = ReadCache(None if staged else git.common_dir / "ralph" / "github.json", scope_of(place))
    api = Api(place, read_cache, note=note, sleep=sleep, pace=pace, timeout=timeout, staged=staged)
    remote = VerifiedRemote(git, place.git_url, place.credential, keep=not staged, api=api)
    return GitHubForge(git, remote, api, now, required_checks_only)
