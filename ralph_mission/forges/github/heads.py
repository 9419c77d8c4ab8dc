"""What git knows of pulls: their commits are fetched here, and what they change is worked out from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ralph_mission.forges import history
from ralph_mission.forges.github import reading
from ralph_mission.forges.github.reading import PullWire
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.remote import HEADS, Remote
from ralph_mission.mission.threads import Branch, Pull
from ralph_mission.trouble import UserError

NO_REF = re.compile(r"couldn't find remote ref (\S+)")


@dataclass(frozen=True, slots=True)
class Heads:
    """The pulls' commits in our clone; `note` hears of those that cannot be had."""

    git: Git
    remote: Remote
    note: Callable[[str], None]
    _here: set[str] = field(default_factory=set)  # commits that were seen in our clone: they stay

    def bring(self, wires: Iterable[PullWire], default: Branch) -> None:
        """Fetch what is not here yet, in one go. A head that is gone costs that pull's details, no more."""
        wanted = {HEADS + default.name: default.sha}
        for wire in wires:
            wanted[f"refs/pull/{wire.number}/head"] = wire.head.sha
            if wire.base.ref != default.name:
                wanted[HEADS + wire.base.ref] = wire.base.sha
        self.fetch(self._missing(wanted))

    def fetch(self, wanted: Mapping[str, str]) -> None:
        """Fetch refs, but for those that are not there. Raises Trouble."""
        left = dict(wanted)
        while left:
            try:
                return self.remote.fetch(left)
            except UserError as trouble:
                absent = NO_REF.search(trouble.what)
                if absent is None or left.pop(absent[1], None) is None:
                    raise
                self.note(f"{absent[1]} cannot be fetched, and is left out")

    def pull(self, wire: PullWire, default: Branch, details: bool = False) -> Pull:
        """The pull with touches and patch ids (`details`: and commits), if its commits are here."""
        pull = reading.pull(wire)
        head, base = self._commit(wire.head.sha), self._base(wire, default)
        if not head or not base:
            return pull
        changes = history.changes(self.git, base, head)
        return replace(
            pull,
            touches=changes.touches if details or self._may_touch(wire, default) else (),
            patch_ids=changes.patch_ids,
            commits=history.commits(self.git, base, head) if details else (),
            own=history.own(self.git, base, head) if details else frozenset(),
        )

    def _base(self, wire: PullWire, default: Branch) -> str:
        """The commit to compare the head with: before the merge, when there was one."""
        merged = (wire.merge_commit_sha or "") if wire.merged_at else ""
        before = self.git.resolve(f"{merged}^1") if merged not in ("", wire.head.sha) else ""
        own = default.sha if wire.base.ref == default.name else wire.base.sha
        return before or self._commit(own) or self._commit(default.sha)

    def _commit(self, oid: str) -> str:
        """A commit's id if it is here, else ""; asked of git once."""
        if oid not in self._here and self.git.resolve(oid) == oid:
            self._here.add(oid)
        return oid if oid in self._here else ""

    def _may_touch(self, wire: PullWire, default: Branch) -> bool:
        """Whether its lines are still to come to the default branch as we know it."""
        if not wire.merged_at:
            return wire.state == "open"
        merged = self.git.resolve(wire.merge_commit_sha or "")
        return not merged or not history.is_ancestor(self.git, merged, default.sha)

    def _missing(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Those of `wanted` (ref -> commit) whose commit is not here, found out in one question."""
        oids = list(dict.fromkeys(wanted.values()))
        told = self.git.text("cat-file", "--batch-check", stdin="".join(f"{oid}\n" for oid in oids).encode())
        self._here.update(line.split(" ")[0] for line in told.split("\n") if " commit " in line)
        absent = {line.split(" ")[0] for line in told.split("\n") if line.endswith(" missing")}
        return {ref: oid for ref, oid in wanted.items() if oid in absent}
