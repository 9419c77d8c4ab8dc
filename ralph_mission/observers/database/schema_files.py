"""The texts of a Prisma schema in a commit: one file, or all that a folder holds."""

from __future__ import annotations

from ralph_mission.gateways.database.opening import Schema
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import UserError

ENDING = ".prisma"
MOST = 500  # files
REGULAR = ("100644", "100755")


def schema(git: Git, commit: str, path: str) -> Schema:
    """Never the work tree: what is not committed counts for nobody. Raises Trouble when there is none."""
    place = path.strip("/").removeprefix("./")
    found = [one for one in git.listing(commit, place) if one.mode in REGULAR] if commit else []
    files = [one for one in found if one.path == place or one.path.endswith(ENDING)]
    if not files:
        raise UserError(f"no commit here holds the Prisma schema {path}", "mend observers.database.prisma_schema")
    if len(files) > MOST:
        raise UserError(f"{path} holds more than {MOST} files", "name a smaller folder")
    contents = git.blobs(one.oid for one in files)
    texts = {one.path: contents[one.oid].decode("utf-8", "replace") for one in files if one.oid in contents}
    return Schema.of(texts, path)
