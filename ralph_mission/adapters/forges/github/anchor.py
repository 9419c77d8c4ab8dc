"""The one standing issue in which the forge remembers how far memory had come; it is also a sign for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ralph_mission.adapters.forges.commits import ForgeRefused, mark
from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.limits import Doubt
from ralph_mission.adapters.forges.github.reading import IssueWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.errors import Damaged, Missing
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.forge import Actor
from ralph_mission.mission.model.ledger import Anchor, key_of
from ralph_mission.values import dataclass

TITLE = "Ralph looks after this repository"
KEY = key_of("anchor")
LINE = re.compile(r"^<!-- ralph:anchor lineage=(\S+) serial=([0-9]{1,12}) oid=([0-9a-f]*) -->\r?$", re.MULTILINE)
TEXT = """\
Ralph reads this repository, fixes small things by pull request and asks before it does anything larger.

- **What it does and did**: [the dashboard]({page}/blob/{branch}/README.md)
- **Stop it**: set `paused: true` at the top of [its memory]({page}/blob/{branch}/{path}), or `RALPH_PAUSED=1`
- **Steer it**: review its pull requests, label its issues `ralph:approved` or `ralph:rejected`, set \
`ralph:mission` on an issue of yours, and write under *Learnings* and *Do Not Repeat* in its memory

The last lines of this issue say how far its memory has come, so that a loss would be noticed. Please leave them.
"""


@dataclass(frozen=True, slots=True)
class AnchorIssue:
    """The standing issue, found by its marker and our own author id; `branch` and `path` say where memory is."""

    threads: Threads
    us: Callable[[], Actor]
    branch: str = "ralph-memory"
    path: str = "memory/ralph-log.md"

    def is_it(self, wire: IssueWire) -> bool:
        """Whether this is the standing issue. One of somebody else's with our marker is not."""
        is_issue = wire.pull_request is None and mark(wire.body or "") == KEY
        return is_issue and reading.actor(wire.user).id == self.us().id

    def read(self) -> Anchor | None:
        """The position it tells. Raises UserError when there is one that cannot be read."""
        wire = self._found()
        if wire is None:
            return None
        lines = LINE.findall(wire.body or "")
        if not lines:
            raise Damaged(f"the last lines of issue #{wire.number} are damaged", "run: ralph memory recover")
        lineage, serial, oid = lines[-1]
        return Anchor(lineage, int(serial), oid)

    def write(self, anchor: Anchor) -> None:
        """Have it tell a position; made when there is none. What cannot be written is said, and tried next time."""
        api, body = self.threads.api, self._text(anchor)
        wire = self._found()
        try:
            if wire is None:
                made = api.send("POST", "/issues", {"title": TITLE, "body": body})
                self._remember(reading.read(IssueWire, made).number)
            elif wire.body != body:
                api.send("PATCH", f"/issues/{wire.number}", {"body": body})
            for spare in self._listed()[1:]:
                closed = {"state": "closed", "state_reason": "not_planned", "body": body}
                api.send("PATCH", f"/issues/{spare.number}", closed)
        except (ForgeRefused, Doubt) as no:
            api.note(f"how far memory has come could not be noted on GitHub: {no}")

    def _found(self) -> IssueWire | None:
        """The oldest one, however many a race or a late list may have made."""
        found = next(iter(self._listed()), None) or self._kept() or self._of_ours()
        if found is not None:
            self._remember(found.number)
        return found

    def _listed(self) -> list[IssueWire]:
        """The open ones, oldest first. All but the first were made by a race, and say nothing that it does not."""
        return [wire for _, wire in sorted(self.threads.open().items()) if self.is_it(wire)]

    def _kept(self) -> IssueWire | None:
        """The one this clone remembers: closed, perhaps, or too new for the list."""
        number = self.threads.api.kept.get("anchor")
        if not isinstance(number, int):
            return None
        try:
            wire = self.threads.thread(number)
        except Missing:
            return None
        return wire if self.is_it(wire) else None

    def _of_ours(self) -> IssueWire | None:
        wires: Iterable[IssueWire] = (wire for wire in self.threads.by(self.us()) if self.is_it(wire))
        return min(wires, key=lambda wire: wire.number, default=None)

    def _remember(self, number: int) -> None:
        if self.threads.api.kept.get("anchor") != number:
            self.threads.api.kept.put("anchor", number)

    def _text(self, anchor: Anchor) -> str:
        told = TEXT.format(page=self.threads.api.place.page, branch=self.branch, path=self.path)
        line = f"<!-- ralph:anchor lineage={anchor.lineage} serial={anchor.serial} oid={anchor.oid} -->"
        return f"{told}\n{line}\n{marker(KEY)}"
