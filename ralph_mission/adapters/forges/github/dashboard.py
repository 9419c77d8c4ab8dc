"""The dashboard as an issue: found by its marker and our author id, edited in place, only if it changed.

Its last lines hold the memory position, so that a loss is noticed. A cycle without effects and news leaves the issue,
and every list that is compared with it, unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from ralph_mission.adapters.forges import ForgeRefused, mark
from ralph_mission.adapters.forges.github import people, reading
from ralph_mission.adapters.forges.github.limits import Doubt
from ralph_mission.adapters.forges.github.reading import IssueWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle import checkboxes
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.forge import Actor, Tick
from ralph_mission.mission.model.ledger import Anchor, key_of
from ralph_mission.values import compile_regex, dataclass

TITLE = "Ralph"
TITLES = (TITLE, "Ralph looks after this repository")  # the second is from earlier versions
OPENING = "Ralph looks after "  # the beginning of the page
CHECKED = "dashboard checked"
KEY = key_of("anchor")
PIN = "mutation($input: PinIssueInput!) { pinIssue(input: $input) { issue { number } } }"
LINE = compile_regex(r"^<!-- ralph:anchor lineage=(\S+) serial=([0-9]{1,12}) oid=([0-9a-f]*) -->\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DashboardIssue:
    """A repository's dashboard, by the account that `us` returns. Other accounts' issues with our marker do not
    count."""

    threads: Threads
    us: Callable[[], Actor]

    def is_it(self, wire: IssueWire) -> bool:
        """Whether this is the dashboard: our issue with its marker and its title or beginning, even if a person changed
        the other. Our issue with its title and no marker counts, too.

        Others may post from the same account and quote the marker: those texts are kept.
        """
        body = wire.body or ""
        titled, found = wire.title in TITLES, mark(body)
        named = titled or body.startswith(OPENING) if found == KEY else wire.title == TITLE and not found
        return named and wire.pull_request is None and reading.actor(wire.user).id == self.us().id

    def read(self) -> Anchor | None:
        """The memory position it holds. Raises UserError if it is unreadable."""
        wire = self._found()
        return None if wire is None else _position(wire)

    def ticks(self) -> tuple[Tick, ...]:
        """The ticked boxes and who ticked them. Reads the history only if a box is ticked, or if it is unknown whether
        our last edit crossed a tick."""
        wire = next(iter(self._list_issues()), None) or self._find_anchor_issue()
        if wire is None or (
            self.threads.api.read_cache.get(CHECKED) == _last_change(wire) and not checkboxes.find_ticked(_page(wire))
        ):
            return ()
        found = self._attribute(wire)
        self._remember_checked(wire)
        return found

    def show(self, page: str, anchor: Anchor, quiet: bool = False) -> None:
        """Show `page` ("": the present one), creating the issue if needed. A failure is reported and retried next time.
        Boxes that people ticked stay ticked, even if that crosses our edit."""
        api, wire, page = self.threads.api, self._found(), page.rstrip("\n")
        try:
            if wire is None:
                issue = reading.read(
                    IssueWire, api.send("POST", "/issues", {"title": TITLE, "body": _text(page, anchor)})
                )
                self._remember(issue.number)
                self._remember_checked(issue)
                self._pin(issue)
            else:
                self._write(wire, page, anchor, quiet)
            for spare in (one for one in self._list_issues()[1:] if mark(one.body or "")):
                closed = {"state": "closed", "state_reason": "not_planned", "body": _text(page, anchor)}
                api.send("PATCH", f"/issues/{spare.number}", closed)
        except (ForgeRefused, Doubt) as no:
            api.note(f"the dashboard could not be written on GitHub: {no}")

    def _write(self, wire: IssueWire, page: str, anchor: Anchor, quiet: bool) -> None:
        if quiet and _says(wire, page, anchor):
            return
        wire = self.threads.thread(wire.number, fresh=True)
        stands = checkboxes.find_ticked(_page(wire))
        written = self._send(wire.number, checkboxes.tick(page or _page(wire), stands), anchor)
        try:
            crossed = {one.box for one in self._attribute(written, page)} - stands
        except UserError as problem:  # the next cycle looks
            return self.threads.api.note(
                f"it is unknown whether somebody has ticked a box on the dashboard since: {problem.what}"
            )
        if crossed:  # ours are ticked then, so the history is read again
            self._send(wire.number, checkboxes.tick(page or _page(wire), stands | crossed), anchor)
        else:
            self._remember_checked(written)

    def _send(self, number: int, page: str, anchor: Anchor) -> IssueWire:
        body = {"title": TITLE, "body": _text(page, anchor)}
        return reading.read(IssueWire, self.threads.api.send("PATCH", f"/issues/{number}", body))

    def _remember_checked(self, wire: IssueWire) -> None:
        """Record that every tick until its last change is known."""
        self.threads.api.read_cache.put(CHECKED, _last_change(wire))

    def _pin(self, wire: IssueWire) -> None:
        """Pin it above the list of issues. Three may be pinned, with some permissions: a refusal does not matter."""
        with suppress(ForgeRefused, Doubt):
            self.threads.api.change(PIN, {"input": {"issueId": wire.node_id}})

    def _attribute(self, wire: IssueWire, page: str = "") -> tuple[Tick, ...]:
        edits = people.versions(self.threads.api, wire.number)
        versions = [replace(one, text=one.text if one.text is None else _part(one.text)) for one in edits]
        return checkboxes.attribute(page or _page(wire), versions, self.us().id)

    def _found(self) -> IssueWire | None:
        """The oldest one, if a race or a late list caused several."""
        found = next(iter(self._list_issues()), None) or self._find_anchor_issue() or self._of_ours()
        if found is not None:
            self._remember(found.number)
        return found

    def _list_issues(self) -> list[IssueWire]:
        """Open ones, oldest first, those without a marker last. All but the first come from a race, or from a time when
        the first was not recognisable."""
        found = [wire for _, wire in sorted(self.threads.open().items()) if self.is_it(wire)]
        return sorted(found, key=lambda wire: not mark(wire.body or ""))

    def _find_anchor_issue(self) -> IssueWire | None:
        """The one this clone remembers: possibly closed, or too new for the list."""
        number = self.threads.api.read_cache.get("anchor")
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
        if self.threads.api.read_cache.get("anchor") != number:
            self.threads.api.read_cache.put("anchor", number)


def _last_change(wire: IssueWire) -> list[object]:
    return [wire.number, wire.updated_at.isoformat()]


def _position(wire: IssueWire) -> Anchor | None:
    lines = LINE.findall(wire.body or "")
    if not lines:  # a person who edits the page may take the line for nothing; the whole page could be gone, too
        return None
    lineage, serial, oid = lines[-1]
    return Anchor(lineage, int(serial), oid)


def _says(wire: IssueWire, page: str, anchor: Anchor) -> bool:
    """Whether it already shows this page for this memory, whatever is ticked."""
    same = page and checkboxes.tick(_page(wire), ()) == page and wire.title == TITLE
    return bool(
        same and LINE.findall(wire.body or "") and (position := _position(wire)) and position.lineage == anchor.lineage
    )


def _page(wire: IssueWire) -> str:
    """The part for people."""
    return _part(wire.body or "")


def _part(body: str) -> str:
    return LINE.split(body.replace("\r\n", "\n"))[0].rstrip("\n")


def _text(page: str, anchor: Anchor) -> str:
    line = f"<!-- ralph:anchor lineage={anchor.lineage} serial={anchor.serial} oid={anchor.oid} -->"
    return f"{page}\n\n{line}\n{marker(KEY)}"
