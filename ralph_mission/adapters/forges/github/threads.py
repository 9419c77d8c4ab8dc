"""Issues and pull requests as GitHub lists them, cached within a cycle, with details requested sparingly.

Details of a quiet thread are cached from cycle to cycle: the list gives each thread's last change, another list the
changed comments, and nothing is requested again while both are the same. Details read within a minute of a change are
not trusted, as times have a resolution of one second; nor are those older than six hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from ralph_mission.adapters.forges import mark
from ralph_mission.adapters.forges.github import people, reading
from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.reading import (
    CommentWire,
    EventWire,
    IssueWire,
    LineWire,
    PullWire,
    ReviewWire,
)
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.model.forge import Actor, LabelEvent, Review, ThreadComment
from ralph_mission.values import dataclass

RECENT = timedelta(days=7)  # closed pull requests are listed for this long, as `ports.Forge` says
CLOSED_PAGES = 6  # of a hundred, at most, are searched for them
CHANGED_PAGES = 3  # of a hundred comments; with more, everything is read again
SETTLED = timedelta(seconds=60)  # after its last change, a thread's details are distinguishable from later ones
NEAR = timedelta(seconds=1)  # GitHub shows some unedited comments as updated that long after creation
STALE = timedelta(hours=6)  # after which details are always read again

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ThreadDetails:
    """Details of an issue or pull request beyond the list."""

    remarks: tuple[ThreadComment, ...]
    events: tuple[LabelEvent, ...]
    reviews: tuple[Review, ...]


@dataclass
class Threads:
    """Lists and details of a repository, for one cycle; `forget` after an effect."""

    api: Api
    now: Callable[[], datetime]
    memory: dict[str, Any] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop the cache: anything may have changed."""
        self.memory.clear()
        self.api.forget()

    def once(self, name: str, ask: Callable[[], T]) -> T:
        """This cycle's answer, requested on first use."""
        if name not in self.memory:
            self.memory[name] = ask()
        found: T = self.memory[name]
        return found

    # --- issues, and pulls seen as such

    def open(self) -> Mapping[int, IssueWire]:
        """Every open issue and pull request by number."""
        return self.once("open", lambda: _by_number(self.issues(state="open", direction="asc")))

    def issues(self, **filters: str) -> Iterator[IssueWire]:
        """Matching issues and pull requests, page by page. Raises UserError."""
        query = urlencode({"sort": "created", "per_page": "100", **filters})
        for page in self._list_pages(f"/issues?{query}"):
            yield from reading.read(tuple[IssueWire, ...], page)

    def by(self, author: Actor) -> Iterator[IssueWire]:
        """Threads that an account opened, including closed ones, newest first."""
        for wire in self.issues(creator=author.login, state="all", direction="desc"):
            if reading.actor(wire.user).id == author.id:
                yield wire

    def thread(self, number: int, fresh: bool = False) -> IssueWire:
        """An issue, or a pull request as one. Raises Missing, UserError."""
        known = self.memory.get("open", {}).get(number)
        if known is not None and not fresh:
            found: IssueWire = known
            return found
        return reading.read(IssueWire, self.one(f"/issues/{number}", f"issue or pull request #{number}", fresh))

    def label_names(self) -> frozenset[str]:
        """The repository's labels. Raises UserError."""
        pages = self._list_pages("/labels?per_page=100")
        return frozenset(
            name for page in pages for name in reading.names(reading.read(tuple[reading.Named, ...], page))
        )

    # --- pulls

    def pulls(self) -> Mapping[int, PullWire]:
        """Every open pull request, and at least those closed in the last 7 days."""
        return self.once("pulls", self._pulls)

    def _pulls(self) -> Mapping[int, PullWire]:
        found: dict[int, PullWire] = {}
        everything = self._until_quiet(found)
        if not everything and not self._known_open() <= found.keys():
            query = urlencode({"state": "open", "sort": "created", "direction": "asc", "per_page": "100"})
            for page in self._list_pages(f"/pulls?{query}"):
                found |= _by_number(reading.read(tuple[PullWire, ...], page))
        return found

    def _until_quiet(self, found: dict[int, PullWire]) -> bool:
        """Recently changed pull requests, and whether those are all."""
        query = urlencode({"state": "all", "sort": "updated", "direction": "desc", "per_page": "100"})
        horizon = self.now() - RECENT
        for place, page in enumerate(self._list_pages(f"/pulls?{query}"), 1):
            wires = reading.read(tuple[PullWire, ...], page)
            found |= _by_number(wires)
            if (wires and wires[-1].updated_at < horizon) or place == CLOSED_PAGES:
                return False
        return True

    def _known_open(self) -> set[int]:
        """Numbers of open pull requests; a made-up one if issues are not listed, to be on the safe side."""
        if "open" not in self.memory:
            return {0}
        return {number for number, wire in self.open().items() if wire.pull_request is not None}

    def pulls_on(self, branch: str) -> tuple[PullWire, ...]:
        """All pull requests ever opened from a branch of this repository."""
        owner = self.api.place.repository.partition("/")[0]
        query = urlencode({"state": "all", "head": f"{owner}:{branch}", "per_page": "100"})
        wires = (
            wire for page in self._list_pages(f"/pulls?{query}") for wire in reading.read(tuple[PullWire, ...], page)
        )
        return tuple(wire for wire in wires if wire.head.ref == branch and wire.ours)

    def needed_by_others(self, pull: PullWire) -> bool:
        """Whether another open pull request has this one's branch as base or head. Raises UserError."""
        query = urlencode({"state": "open", "base": pull.head.ref, "per_page": "1"})
        if any(self._list_pages(f"/pulls?{query}")):
            return True
        return any(one.state == "open" and one.number != pull.number for one in self.pulls_on(pull.head.ref))

    def pull(self, number: int, fresh: bool = False) -> PullWire:
        """A pull request, read alone. Raises Missing, UserError."""
        return reading.read(PullWire, self.one(f"/pulls/{number}", f"pull request #{number}", fresh))

    # --- details

    def details(self, number: int, changed: datetime, comments: int | None, reviewed: bool = False) -> ThreadDetails:
        """The details of a thread last `changed` then (`reviewed`: a pull request, with its reviews).

        `comments`: their number, None if the list lacks it. Raises Missing, UserError.
        """
        parts = self._parts(number, changed, comments, reviewed)
        return ThreadDetails(
            reading.remarks(reading.read(tuple[CommentWire, ...], parts.get("comments", []))),
            reading.events(reading.read(tuple[EventWire, ...], parts.get("events", []))),
            reading.reviews(
                reading.read(tuple[ReviewWire, ...], parts.get("reviews", [])),
                reading.read(tuple[LineWire, ...], parts.get("lines", [])),
            ),
        )

    def _parts(self, number: int, changed: datetime, comments: int | None, reviewed: bool) -> Mapping[str, list[Any]]:
        entry = self.api.read_cache.get(f"details {number}")
        if isinstance(entry, dict) and self._holds(number, entry, changed, comments):
            known: Mapping[str, list[Any]] = entry["parts"]
            return known
        at = self.api.now
        parts = ("events", *(("comments",) if comments != 0 else ()), *(("reviews",) if reviewed else ()))
        read = {part: self._of(number, part, fresh=False) for part in parts}
        if any(one.get("state") == "CHANGES_REQUESTED" for one in read.get("reviews", [])):
            read["lines"] = self._of(number, "lines", fresh=False)
        if "comments" in read:
            read["comments"] = self._told_apart(read["comments"])
        self.api.read_cache.put(
            f"details {number}", {"changed": changed.isoformat(), "at": at.isoformat(), "parts": read}
        )
        return read

    def _told_apart(self, comments: list[Any]) -> list[Any]:
        """The comments, with those marked that were never edited though GitHub shows an update right after creation."""
        wires = reading.read(tuple[CommentWire, ...], comments)
        doubtful = [
            one.node_id for one in wires if one.node_id and timedelta() < one.updated_at - one.created_at <= NEAR
        ]
        never = people.never_edited(self.api, doubtful) if doubtful else frozenset()
        return [{**one, "unedited": wire.node_id in never} for one, wire in zip(comments, wires, strict=True)]

    def _holds(self, number: int, entry: Mapping[str, Any], changed: datetime, comments: int | None) -> bool:
        at, was, parts = reading.moment(entry.get("at")), reading.moment(entry.get("changed")), entry.get("parts")
        if at is None or was != changed or not isinstance(parts, dict):
            return False
        known = parts.get("comments", [])
        if at - changed < SETTLED or not timedelta() <= self.api.now - at < STALE or comments not in (None, len(known)):
            return False
        return not known or self._is_unedited(number, at, {one.get("id"): one.get("updated_at") for one in known})

    def _is_unedited(self, number: int, at: datetime, known: Mapping[Any, Any]) -> bool:
        """Whether the comments are unchanged: an edit need not change the thread's own time."""
        changes = self.once("changed comments", self._changed_comments)
        return changes is not None and all(
            known.get(one.id) == stamp and at - one.updated_at >= SETTLED for one, stamp in changes.get(number, ())
        )

    def _changed_comments(self) -> Mapping[int, list[tuple[CommentWire, str]]] | None:
        """Recently created or edited comments by thread, with GitHub's time; None if too many."""
        since = (self.api.now - STALE).replace(minute=0, second=0, microsecond=0)
        when = since.strftime("%Y-%m-%dT%H:%M:%SZ")
        query = urlencode({"since": when, "sort": "updated", "direction": "desc", "per_page": "100"})
        found: dict[int, list[tuple[CommentWire, str]]] = {}
        for place, page in enumerate(self._list_pages(f"/issues/comments?{query}"), 1):
            if place > CHANGED_PAGES:
                return None
            for wire, raw in zip(reading.read(tuple[CommentWire, ...], page), page, strict=True):
                found.setdefault(wire.thread, []).append((wire, raw["updated_at"]))
        return found

    def comments(self, number: int, fresh: bool = False) -> tuple[CommentWire, ...]:
        """All comments, oldest first. Raises Missing, UserError."""
        raw = self._of(number, "comments", fresh)
        return tuple(sorted(reading.read(tuple[CommentWire, ...], raw), key=lambda wire: (wire.created_at, wire.id)))

    def reviews(self, number: int, fresh: bool = False) -> tuple[ReviewWire, ...]:
        """All reviews. Raises Missing, UserError."""
        return reading.read(tuple[ReviewWire, ...], self._of(number, "reviews", fresh))

    def _of(self, number: int, part: str, fresh: bool) -> list[Any]:
        try:
            return self.api.all(_path(number, part), fresh)
        except Absent as absent:
            raise self.missing(f"issue or pull request #{number}", absent) from None

    def one(self, path: str, what: str, fresh: bool = False) -> Any:
        """The JSON of an object. Raises Missing if it certainly does not exist, UserError."""
        try:
            return self.api.get(path, fresh)
        except Absent as absent:
            raise self.missing(what, absent) from None

    def missing(self, what: str, absent: Absent) -> UserError:
        """Missing, if the repository itself is readable; else the token lacks access."""
        self.repository()
        gone = {404: "there is no", 410: "somebody deleted"}.get(absent.status, "somebody moved away")
        return Missing(f"{gone} {what}", f"look at {self.api.place.page}")

    def repository(self) -> Mapping[str, Any]:
        """The repository's own data. Raises UserError if the token lacks access."""
        try:
            body = self.once("repository", lambda: self.api.get(""))
        except Absent:
            what = f"there is no repository {self.api.place.repository}, or the token may not see it"
            raise UserError(what, "check GITHUB_REPOSITORY and what the token may read") from None
        return reading.read(dict[str, Any], body)

    def _list_pages(self, path: str) -> Iterator[list[Any]]:
        try:
            yield from self.api.pages(path)
        except Absent as absent:
            self.repository()
            if absent.status == 410:
                what, hint = "issues are switched off", "Settings → General → Features → Issues"
            else:
                what, hint = f"GitHub has no list {path.partition('?')[0]} ({absent.status})", "check GITHUB_API_URL"
            raise UserError(what, hint) from None


NEWEST = "/issues?state=all&sort=updated&direction=desc&per_page=30"
TO_US = "/ralph"
OUR_LABELS = ("ralph:", "content:", "agent:")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A comment to us, with its `text`, or a review. `node`: its id for GraphQL."""

    thread: int
    node: str
    author: Actor
    of_pull: bool
    text: str = ""


@dataclass
class ThreadNews:
    """Whether a thread that concerns us changed since the last look: one conditional request, which GitHub does not
    count if nothing did."""

    api: Api
    _updates: dict[int, datetime] | None = None
    _newest: datetime | None = None  # the last change of any thread at the last look
    _changed: dict[int, tuple[IssueWire, datetime]] = field(default_factory=dict)  # and when they changed before that

    def look(self) -> bool:
        """Also whether somebody labelled a thread for us. At the first look all of them are news. Raises UserError."""
        self.api.forget()
        before, known, since, self._changed = self.api.counts.not_modified, self._updates, self._newest, {}
        try:
            wires = reading.read(tuple[IssueWire, ...], self.api.get(NEWEST))
        except Absent:
            return False
        if self.api.counts.not_modified > before:
            return False
        ours = {wire.number: wire for wire in wires if _concerns_us(wire)}
        self._updates = (known or {}) | {number: wire.updated_at for number, wire in ours.items()}
        self._newest = max((wire.updated_at for wire in wires), default=None)
        if known is None:  # somebody may have spoken since the last cycle
            return bool(ours)
        changed = (wire for wire in ours.values() if known.get(wire.number) != wire.updated_at)
        self._changed = {wire.number: (wire, known.get(wire.number, since or wire.created_at)) for wire in changed}
        return bool(self._changed)

    def find_words(self) -> Iterator[SpokenWord]:
        """The reviews and comments to us in the threads that changed at the last look, since then. Raises UserError."""
        for number, (wire, since) in self._changed.items():
            of_pull = wire.pull_request is not None
            query = urlencode({"since": since.strftime("%Y-%m-%dT%H:%M:%SZ"), "per_page": "100"})
            comments = reading.read(tuple[CommentWire, ...], self.api.all(f"/issues/{number}/comments?{query}"))
            for one in comments:
                if one.created_at > since and (one.body or "").startswith(TO_US):
                    yield SpokenWord(number, one.node_id, reading.actor(one.user), of_pull, one.body or "")
            reviews = self.api.all(_path(number, "reviews")) if of_pull else []
            for review in reading.read(tuple[ReviewWire, ...], reviews):
                if review.submitted_at and review.submitted_at > since:
                    yield SpokenWord(number, review.node_id, reading.actor(review.user), of_pull)


def _concerns_us(wire: IssueWire) -> bool:
    return bool(mark(wire.body or "")) or any(name.startswith(OUR_LABELS) for name in reading.names(wire.labels))


def label_path(number: int, name: str) -> str:
    """The API path of a thread's label."""
    return f"/issues/{number}/labels/{quote(name, safe='')}"


def _path(number: int, part: str) -> str:
    kind = "pulls" if part in ("reviews", "lines") else "issues"
    return f"/{kind}/{number}/{'comments' if part == 'lines' else part}?per_page=100"


Listed = TypeVar("Listed", IssueWire, PullWire)


def _by_number(wires: Iterable[Listed]) -> dict[int, Listed]:
    """By number: a thread that moved to another page during the read is on both."""
    return {wire.number: wire for wire in wires}
