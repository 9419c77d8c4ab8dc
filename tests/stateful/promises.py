"""What is promised, looked at from outside: the server as it is, and its memory branch by plain git.

Nothing here asks the product; what a text may not do is said once more, in other words than the product's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.crash.dying import told, writes
from tests.crash.witness import STANDING, duplicates, key_in
from tests.fakes.github import Request
from tests.helpers import git
from tests.integration.hub import Hub

JOURNAL = "memory/journal"
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
FORBIDDEN = {
    "closes something": re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[:\s]+[\w./-]*#\d+", re.IGNORECASE),
    "pings somebody": re.compile(r"(?<![\w/.@])@[A-Za-z0-9]"),
    "keeps a check from running": re.compile(r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]", re.IGNORECASE),
}
WRITES = {"admin", "maintain", "write"}


@dataclass
class Promises:
    """What was seen until now; `broken` tells what does not hold any more."""

    harbour: Hub
    journal: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)  # what a person wrote into memory, and nobody took out
    merges: list[str] = field(default_factory=list)
    refs: str = ""

    def broken(self, refs: str) -> Iterator[str]:
        """What is wrong now. `refs` says where all branches are: what git knows is looked at when one has moved."""
        yield from duplicates(self.harbour)
        yield from self._texts()
        yield from self._peoples_own()
        yield from self.merges
        if refs != self.refs:
            self.refs = refs
            yield from self._commits()
            yield from self._lost() if self.harbour.fake.branch("ralph-memory") else ()

    def _texts(self) -> Iterator[str]:
        """Whether anything that we wrote does more than to be read."""
        fake = self.harbour.fake
        texts = [(f"#{t.number}", f"{t.title}\n{t.body}") for t in fake.threads.values() if t.author.is_bot]
        texts += [(f"a remark on #{c.number}", c.body) for c in fake.comments.values() if c.author.is_bot]
        for where, text in texts:
            yield from _objections(where, CODE.sub("", text))

    def _commits(self) -> Iterator[str]:
        """The same of what we wrote into commits, where nothing is code."""
        log = git(self.harbour.fake.bare, "log", "--format=%B", "--author=ralph", "main", "--branches=ralph/*")
        yield from _objections("a commit", log)

    def _peoples_own(self) -> Iterator[str]:
        """Whether we ended, or wrote on, a pull of a person's."""
        fake = self.harbour.fake
        theirs = {t.number: t for t in fake.threads.values() if t.pull and not t.author.is_bot}
        for number, thread in theirs.items():
            if (thread.closed_by and thread.closed_by.is_bot) or (
                thread.pull.merged_by and thread.pull.merged_by.is_bot
            ):
                yield f"the pull #{number} of {thread.author.login} was ended"
        yield from (f"a remark on the pull #{c.number}" for c in fake.comments.values() if c.number in theirs)

    def _lost(self) -> Iterator[str]:
        """Whether a line of the journal or a person's words are gone or another."""
        now = self.documents()
        yield from (f"{path} was lost or changed" for path, oid in self.journal.items() if now.get(path) != oid)
        self.journal = now
        memory = self.harbour.memory()
        yield from (f"a person's words are gone: {words}" for words in self.words if words not in memory)

    def documents(self) -> dict[str, str]:
        """The journal's documents, by path."""
        lines = git(self.harbour.fake.bare, "ls-tree", "-r", "ralph-memory", f"{JOURNAL}/").splitlines()
        return {path: entry.split()[2] for entry, path in (line.split("\t") for line in lines)}

    def merging(self, request: Request) -> None:
        """Before a request: whether a merge rests on a yes that stands, at the very commit."""
        if request.method != "PUT" or not request.below.endswith("/merge"):
            return
        number, body = int(request.below.split("/")[2]), request.body or {}
        last = {r.author.login: r for r in self._verdicts(number)}
        yes = [r for r in last.values() if r.state == "APPROVED" and r.sha == body.get("sha")]
        if not yes or any(r.state == "CHANGES_REQUESTED" for r in last.values()):
            self.merges.append(f"#{number} is merged at {body.get('sha')} without a yes that stands")

    def _verdicts(self, number: int):
        """Of people who may decide, oldest first."""
        reviews = (r for r in self.harbour.fake.world.reviews.values() if r.number == number)
        return [r for r in reviews if r.state != "COMMENTED" and r.author.level in WRITES and not r.author.is_bot]


def _objections(where: str, text: str) -> Iterator[str]:
    for what, pattern in FORBIDDEN.items():
        if found := pattern.search(text):
            yield f"{where} {what}: {found[0]!r}"


def deeds(requests: Iterable[Request]) -> list[str]:
    """What was written or was to be, but for the note of how far memory has come: a lost answer undoes no deed."""
    sent = (request for request in requests if writes(request))
    return [told(request) for request in sent if key_in((request.body or {}).get("body")) != STANDING]
