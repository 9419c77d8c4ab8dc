"""The token's account, the people who may approve, and later edits of texts.

Identity is a number; a login only finds it. People with write access may edit others' texts: REST gives a comment's
update time, and nothing for a review's text, so GraphQL is used; an unexpected shape of its answer is a UserError. Pull
requests' commits are fetched here, and their changes computed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import AliasChoices, AliasPath, Field

from ralph_mission.adapters.forges import commits
from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent, Forbidden
from ralph_mission.adapters.forges.github.reading import GHOST, OwnedWire, PullWire, Stamp, WireModel, read
from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.adapters.git.remote import HEADS, Remote
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Actor, BodyEdit, BodyVersion, Branch, Pull
from ralph_mission.values import compile_regex, dataclass

NO_REF = compile_regex(r"couldn't find remote ref (\S+)")


@dataclass(frozen=True, slots=True)
class Heads:
    """Pull requests' commits in our clone; `note` receives those that are unavailable."""

    git: Git
    remote: Remote
    note: Callable[[str], None]
    us: Callable[[], Identity]
    _here: set[str] = field(default_factory=set)  # commits already seen in our clone

    def bring(self, wires: Iterable[PullWire], default: Branch) -> None:
        """Fetch missing commits at once. A deleted head only costs that pull request's details."""
        refs = {HEADS + default.name: default.sha}
        for wire in wires:
            refs[f"refs/pull/{wire.number}/head"] = wire.head.sha
            if wire.base.ref != default.name:
                refs[HEADS + wire.base.ref] = wire.base.sha
        self.fetch(self._find_missing(refs))

    def fetch(self, refs: Mapping[str, str]) -> None:
        """Fetch refs, except missing ones. Raises UserError."""
        remaining = dict(refs)
        while remaining:
            try:
                return self.remote.fetch(remaining)
            except UserError as problem:
                absent = NO_REF.search(problem.what)
                if absent is None or remaining.pop(absent[1], None) is None:
                    raise
                self.note(f"{absent[1]} cannot be fetched, and is left out")

    def pull(self, wire: PullWire, default: Branch, details: bool = False) -> Pull:
        """The pull request with touches and patch ids (`details`: and commits), if its commits are here."""
        pull = reading.pull(wire)
        head, base = self._commit(wire.head.sha), self._base(wire, default)
        if not head or not base:
            return pull
        return commits.with_changes(self.git, pull, base, head, self._may_touch(wire, default), details, self.us())

    def _base(self, wire: PullWire, default: Branch) -> str:
        """The commit to compare the head with: before the merge, if any."""
        merged = (wire.merge_commit_sha or "") if wire.merged_at else ""
        before = self.git.resolve(f"{merged}^1") if merged not in ("", wire.head.sha) else ""
        own = default.sha if wire.base.ref == default.name else wire.base.sha
        return before or self._commit(own) or self._commit(default.sha)

    def _commit(self, oid: str) -> str:
        """A commit's id if it is here, else ""; cached."""
        if oid not in self._here and self.git.resolve(oid) == oid:
            self._here.add(oid)
        return oid if oid in self._here else ""

    def _may_touch(self, wire: PullWire, default: Branch) -> bool:
        """Whether its lines are not on the known default branch so far."""
        if not wire.merged_at:
            return wire.state == "open"
        merged = self.git.resolve(wire.merge_commit_sha or "")
        return not merged or not commits.is_ancestor(self.git, merged, default.sha)

    def _find_missing(self, refs: Mapping[str, str]) -> dict[str, str]:
        """Those of `refs` (ref -> commit) whose commit is not here, in one git call at most."""
        oids = [oid for oid in dict.fromkeys(refs.values()) if oid not in self._here]
        if not oids:
            return {}
        output = self.git.text("cat-file", "--batch-check", stdin="".join(f"{oid}\n" for oid in oids).encode())
        self._here.update(line.split(" ")[0] for line in output.split("\n") if " commit " in line)
        absent = {line.split(" ")[0] for line in output.split("\n") if line.endswith(" missing")}
        return {ref: oid for ref, oid in refs.items() if oid in absent}


LOOPBACK = ("127.0.0.1", "::1", "localhost")  # a stand-in for the public server
WRITERS = frozenset({"admin", "maintain", "write"})


@dataclass(slots=True)
class People:
    """Accounts, each requested once."""

    api: Api
    _us: Actor | None = None
    _repository: Mapping[str, Any] | None = None
    _authority: dict[int, bool] = field(default_factory=dict)

    def us(self) -> Actor:
        """The account of the token. Raises UserError."""
        if self._us is None:
            self._us = self._user() or self._viewer()
        return self._us

    def owns(self, wire: OwnedWire) -> bool:
        """Whether the account of the token opened or wrote this. Raises UserError."""
        return reading.actor(wire.user).id == self.us().id

    def author(self) -> Identity:
        """The author of our commits: the account, with its GitHub e-mail address. Raises UserError."""
        host = urlsplit(self.api.place.server).hostname
        domain = "github.com" if host in LOOPBACK else host
        return Identity(self.us().login, f"{self.us().id}+{self.us().login}@users.noreply.{domain}")

    def may_write(self, actor: Actor, fresh: bool = False) -> bool:
        """Whether the account with this id may write. Never a bot, never ourselves. Raises UserError."""
        if fresh or actor.id not in self._authority:
            self._authority[actor.id] = self._ask_permission(actor, fresh)
        return self._authority[actor.id]

    def _ask_permission(self, actor: Actor, fresh: bool) -> bool:
        if actor.is_bot or actor.id == self.us().id:
            return False
        try:
            answer = self.api.get(f"/collaborators/{quote(actor.login, safe='')}/permission", fresh)
        except Absent:
            return False
        body = reading.read(dict[str, Any], answer)
        if body.get("user") is None:  # a deleted account
            return False
        user = reading.actor(reading.read(reading.UserWire, body["user"]))
        roles = {str(body.get("permission")), str(body.get("role_name"))}
        # A login can pass to another person; the number cannot.
        return user.id == actor.id and not user.is_bot and bool(roles & WRITERS)

    def _user(self) -> Actor | None:
        """The person a token belongs to; None for an app's token."""
        if self.api.place.of_app:
            return None
        try:
            return reading.actor(reading.read(reading.UserWire, self.api.get("//user")))
        except (Forbidden, Absent):
            return None

    def repository(self) -> Mapping[str, Any]:
        """The repository's `id` for GraphQL and its `stargazerCount`, if known. Raises Absent, UserError."""
        self.us()
        if self._repository is None:
            answer = reading.read(dict[str, Any], self.api.get(""))
            self._repository = {"id": answer.get("node_id"), "stargazerCount": answer.get("stargazers_count")}
        return self._repository

    def _viewer(self) -> Actor:
        """The bot of an app's token, as the REST API spells it: another spelling gives an empty list, not an error."""
        answer = self.api.ask(VIEWER % _place(self.api))
        self._repository = answer.get("repository")
        viewer = reading.read(dict[str, Any], answer.get("viewer"))
        login = str(viewer.get("login") or "").removesuffix("[bot]")
        return reading.actor(reading.read(reading.UserWire, {"id": viewer.get("databaseId"), "login": f"{login}[bot]"}))


_WHO = "{ login ... on User { databaseId } ... on Bot { databaseId } }"
_EDITED = (
    f"author {_WHO} lastEditedAt editor {_WHO} userContentEdits(first: 20) {{ totalCount nodes {{ editor {_WHO} }} }}"
)
_PLACE = "repository(owner: %s, name: %s)"
VIEWER = f"{{ viewer {{ login databaseId }} {_PLACE} {{ id stargazerCount }} }}"
ISSUE = (
    f"{{ {_PLACE} {{ %s(number: %d) {{ lastEditedAt editor {_WHO} "
    f"userContentEdits(first: 100) {{ nodes {{ editedAt editor {_WHO} }} }} "
    f"timelineItems(itemTypes: [RENAMED_TITLE_EVENT], last: 1) {{ nodes {{ ... on RenamedTitleEvent {{ createdAt "
    f"actor {_WHO} }} }} }} }} }} }}"
)
REVIEWS = (
    f"{{ {_PLACE} {{ pullRequest(number: %d) {{ reviews(last: 50) {{ nodes {{ fullDatabaseId {_EDITED} "
    f"comments(first: 50) {{ totalCount nodes {{ {_EDITED} }} }} }} }} }} }} }}"
)
VERSIONS = (
    f"{{ {_PLACE} {{ issue(number: %d) {{ "
    f"userContentEdits(first: 100) {{ nodes {{ editedAt diff editor {_WHO} }} }} }} }} }}"
)
COMMENTS = "{ nodes(ids: %s) { ... on IssueComment { id lastEditedAt } } }"
AT_ONCE = 100
"""Comments per query. The size of an answer is limited too, so the numbers above are low."""


def of_thread(api: Api, number: int, pull: bool = False) -> tuple[BodyEdit, ...]:
    """The last change of an issue's or pull request's title and the changes of its text. Raises UserError.

    A later editor keeps most of a text, and may only have ticked a box.
    """
    thread = read(_OfIssue, api.ask(ISSUE % (*_place(api), "issue: pullRequest" if pull else "issue", number))).issue
    changes = (*thread.timelineItems.nodes, *thread.userContentEdits.nodes)
    last = [BodyEdit(_actor(thread.editor), thread.lastEditedAt)] if thread.lastEditedAt else []
    return (*(BodyEdit(_actor(one.editor), one.at) for one in changes), *last)


def versions(api: Api, number: int) -> tuple[BodyVersion, ...]:
    """An issue's text after each of its last edits: GitHub's `diff` is the whole text. Raises UserError.

    The first version counts as an edit once there is another.
    """
    edits = read(_OfIssue, api.ask(VERSIONS % (*_place(api), number))).issue.userContentEdits.nodes
    return tuple(BodyVersion(_actor(one.editor), one.at, one.diff) for one in reversed(edits))


def own_reviews(api: Api, number: int) -> frozenset[int]:
    """Those of a pull request's last 50 reviews that only their authors wrote, including line comments. Raises
    UserError."""
    reviews = read(_OfPull, api.ask(REVIEWS % (*_place(api), number))).reviews
    return frozenset(
        one.fullDatabaseId for one in reviews if _own(one) and one.comments.whole and all(map(_own, one.comments.nodes))
    )


def never_edited(api: Api, nodes: Sequence[str]) -> frozenset[str]:
    """Those of these comments (node ids) that were never edited. Raises UserError."""
    return frozenset(
        one for start in range(0, len(nodes), AT_ONCE) for one in _unedited_nodes(api, nodes[start : start + AT_ONCE])
    )


def _unedited_nodes(api: Api, nodes: Sequence[str]) -> Iterator[str]:
    comments = read(_Comments, api.ask(COMMENTS % json.dumps(list(nodes)))).nodes  # in the order of the query
    return (node for node, one in zip(nodes, comments, strict=False) if one and one.id and one.lastEditedAt is None)


def _place(api: Api) -> tuple[str, str]:
    owner, _, name = api.place.repository.partition("/")
    return json.dumps(owner), json.dumps(name)


def _own(words: _Words) -> bool:
    """Whether only the author changed them, and every change is known."""
    edits = words.userContentEdits or _Nodes[_Edited](nodes=())
    editors: Iterable[_Editor | None] = (
        *(one.editor for one in edits.nodes),
        *([words.editor] if words.lastEditedAt else ()),
    )
    author = _actor(words.author).id
    return edits.whole and author != GHOST.id and all(_actor(one).id == author for one in editors)


def _actor(who: _Editor | None) -> Actor:
    return GHOST if who is None or who.databaseId is None else Actor(who.databaseId, who.login)


# --- shapes ---------------------------------------------------------------------------

N = TypeVar("N")


class _Nodes(WireModel, Generic[N]):
    nodes: tuple[N, ...]
    totalCount: int = 0

    @property
    def whole(self) -> bool:
        return self.totalCount <= len(self.nodes)


class _Editor(WireModel):
    login: str
    databaseId: int | None = None


class _Edited(WireModel):
    editor: _Editor | None = Field(None, validation_alias=AliasChoices("editor", "actor"))


class _Change(_Edited):
    at: Stamp = Field(validation_alias=AliasChoices("editedAt", "createdAt"))
    diff: str | None = None


class _Issue(_Edited):
    lastEditedAt: Stamp | None = None
    userContentEdits: _Nodes[_Change] = _Nodes(nodes=())
    timelineItems: _Nodes[_Change] = _Nodes(nodes=())


class _OfIssue(WireModel):
    issue: _Issue = Field(validation_alias=AliasPath("repository", "issue"))


class _Words(WireModel):
    author: _Editor | None
    lastEditedAt: Stamp | None
    editor: _Editor | None
    userContentEdits: _Nodes[_Edited] | None


class _Review(_Words):
    fullDatabaseId: int
    comments: _CountedWords


class _CountedWords(_Nodes[_Words]):
    totalCount: int


class _OfPull(WireModel):
    reviews: tuple[_Review, ...] = Field(validation_alias=AliasPath("repository", "pullRequest", "reviews", "nodes"))


class _Comment(WireModel):
    id: str = ""
    lastEditedAt: Stamp | None = None


class _Comments(WireModel):
    nodes: tuple[_Comment | None, ...]
