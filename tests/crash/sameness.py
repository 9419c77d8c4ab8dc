"""Whether two worlds are the same to the byte: then the same comes of them, since nothing is left to chance.

What is not looked at cannot matter: how many requests there were, git's objects (refs name them), hooks and logs.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path

from tests.crash.snapshots import FIXED, networks_of
from tests.helpers import git
from tests.integration.hub import Hub

REFS = ("for-each-ref", "--format=%(refname) %(objectname)")
COUNTED = {*FIXED, "tokens"}  # of a token, how often it was used
SKIPPED = {"objects", "hooks", "logs", "refs", "packed-refs"}


def digest(hub: Hub) -> str:
    """One text for all that later cycles can find: GitHub, networks, this runner's clone, the time."""
    world = hub.fake.world
    found = hashlib.sha256()
    with world.lock:
        for one in fields(world):
            if one.name not in COUNTED:
                found.update(f"{one.name}={getattr(world, one.name)!r}\n".encode("utf-8", "surrogatepass"))
    for repository in (hub.fake.bare, hub.clone):
        found.update(git(repository, *REFS).encode())
    for path in sorted(_files(hub.clone)):
        found.update(f"{path}\n".encode("utf-8", "surrogateescape") + (hub.clone / path).read_bytes())
    posted = {name: (network.delivered, network.twice) for name, network in networks_of(hub).items()}
    found.update(f"{posted!r} {hub.runner} {hub.now} {sorted(hub.actions.items())}".encode())
    return found.hexdigest()


def _files(clone: Path) -> list[Path]:
    """The files of a clone that say something of their own."""
    found = (path.relative_to(clone) for path in clone.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in found if not (path.parts[0] == ".git" and path.parts[1] in SKIPPED)]
