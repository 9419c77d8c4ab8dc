"""Commits made by GitHub's API: authored by the token's account, signed by GitHub, and so "Verified".

Only for changes to plain files on top of one commit: the API has no modes, links or merges. Those are pushed, as is
anything GitHub refuses to make. Its commit has a different id than ours and the same content, by which it is found.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Doubt, Stale
from ralph_mission.adapters.git.git import ABSENT, Git
from ralph_mission.adapters.git.remote import HEADS, Denied, Remote
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import REGULAR
from ralph_mission.values import dataclass

LARGEST = 20_000_000  # bytes of all contents; GitHub takes about twice as much in a request, as base64
COMMIT = "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }"


@dataclass(frozen=True, slots=True)
class VerifiedRemote(Remote):
    """A remote repository whose commits GitHub makes if it can."""

    api: Api = field(kw_only=True, repr=False, compare=False)

    def push(self, branch: str, new: str, old: str) -> str:
        """As `Remote.push`; the branch's commit then has the same content as `new`, and may not be in our clone."""
        line, _, message = self.git.text("show", "--no-patch", "--format=%P%n%B", new).partition("\n")
        parents, message = line.split(), message.strip()
        if not parents:
            return self._begin(branch, new, old)
        changes = _plain_changes(self.git, parents[0], new) if len(parents) == 1 else None
        if changes is None or not message or old not in ("", parents[0]):
            return Remote.push(self, branch, new, old)
        if not old and not Remote.push(self, branch, parents[0], "") and self.head(branch) != parents[0]:
            return self._found(branch, new)
        try:
            return self._commit(branch, new, parents[0], changes, message)
        except (UserError, Denied):
            if not old:  # it is deleted, unless the commit was made after all
                with suppress(UserError, Denied):
                    self.delete(branch, parents[0])
            raise

    def _commit(self, branch: str, new: str, parent: str, changes: Mapping[str, Any], message: str) -> str:
        headline, _, body = message.partition("\n")
        order = {
            "branch": {"repositoryNameWithOwner": self.api.place.repository, "branchName": branch},
            "message": {"headline": headline, "body": body.strip("\n")},
            "fileChanges": changes,
            "expectedHeadOid": parent,
        }
        try:
            answer = self.api.change(COMMIT, {"input": order})
        except Stale:
            return self._found(branch, new)
        except Doubt as doubt:
            if oid := self._found(branch, new):
                return oid
            what = f"it is unknown whether {branch} has moved ({doubt})"
            raise UserError(what, "nothing was lost; the next wake looks", who="network") from None
        except ForgeRefused as refused:
            return self._push_after(refused, branch, new, parent)
        return str(answer["createCommitOnBranch"]["commit"]["oid"])

    def _push_after(self, refused: ForgeRefused, branch: str, new: str, old: str) -> str:
        """Push by git what the API refused, as git gives a better reason, unless a signature is required."""
        try:
            return Remote.push(self, branch, new, old)
        except Denied as denied:
            if "signed" in denied.what and not refused.reason:
                raise Denied(f"{denied.what}, and GitHub made none", refused.what) from None
            raise

    def _found(self, branch: str, new: str) -> str:
        """The branch's commit, if it has the same content as `new`. Raises UserError."""
        here = self.head(branch)
        if not here:
            return ""
        self.fetch({HEADS + branch: here})
        return here if here == new or self.git.says_the_same(here, new) else ""

    def _begin(self, branch: str, new: str, old: str) -> str:
        """The first commit of a separate history, by git; by the API if signatures are required."""
        try:
            return Remote.push(self, branch, new, old)
        except Denied as denied:
            if "signed" not in denied.what:
                raise
            try:
                return self._begin_signed(branch, new)
            except Doubt:
                return self._found(branch, new)
            except (ForgeRefused, UnicodeDecodeError):
                raise denied from None

    def _begin_signed(self, branch: str, new: str) -> str:
        names = {f"{new}:{entry.path}": entry.path for entry in self.git.listing(new)}
        texts = {names[name]: content.decode() for name, content in self.git.blobs(names).items()}
        files = [{"path": path, "mode": REGULAR, "type": "blob", "content": text} for path, text in texts.items()]
        tree = self.api.send("POST", "/git/trees", {"tree": files})
        message = self.git.text("show", "--no-patch", "--format=%B", new).strip()
        commit = self.api.send("POST", "/git/commits", {"message": message, "tree": tree["sha"], "parents": []})
        self.api.send("POST", "/git/refs", {"ref": HEADS + branch, "sha": commit["sha"]})
        return self._found(branch, new)


def _plain_changes(git: Git, old: str, new: str) -> dict[str, Any] | None:
    """The API's input for a commit; None if it could not make an identical one."""
    oids, removed = dict[str, str](), list[str]()
    for one in git.changes(old, new):
        if any("\udc80" <= letter <= "\udcff" for letter in one.path):  # not in UTF-8
            return None
        if one.new_mode == ABSENT:
            removed.append(one.path)
        elif one.new_mode == REGULAR and one.old_mode in (REGULAR, ABSENT):
            oids[one.path] = one.new
        else:
            return None
    blobs = git.blobs(oids.values())
    if not (oids or removed) or sum(map(len, blobs.values())) > LARGEST or blobs.keys() < set(oids.values()):
        return None
    added = [{"path": path, "contents": b64encode(blobs[oid]).decode()} for path, oid in oids.items()]
    return {"additions": added, "deletions": [{"path": path} for path in removed]}
