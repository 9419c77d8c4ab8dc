"""What the front matter of a server's memory says now, fetched without a clone."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ralph_mission.gateways.git import Git
from ralph_mission.gateways.place import RepositoryPlace
from ralph_mission.gateways.remote import Remote
from ralph_mission.mission.memory import Header
from ralph_mission.mission.memory_parse import peek
from ralph_mission.trouble import UserError


def header_on_server(place: RepositoryPlace, branch: str, path: str) -> Header:
    """The header; an empty one when there is no memory yet or nobody can read it: the cycle then says what is wrong.

    Raises Trouble when the server cannot be asked.
    """
    with tempfile.TemporaryDirectory(prefix="ralph-wake-") as folder:
        here = Git(Path(folder), Path(folder), None)
        here.run("init", "--quiet", "--bare", folder)
        remote = Remote(here, place.git_url, place.token, keep=False)
        content = remote.peek(branch, path) if remote.head(branch) else None
    try:
        return peek(content) if content is not None else Header()
    except UserError:
        return Header()
