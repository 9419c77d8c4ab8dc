"""Who changed words that stand on GitHub after they were written: only GraphQL tells. Another shape is UserError.

Whoever may write may edit what others wrote. REST tells of a comment when it was updated, of a review's text nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.reading import GHOST, Stamp, WireModel, read
from ralph_mission.mission.model.forge import Actor, BodyEdit

_WHO = "{ login ... on User { databaseId } ... on Bot { databaseId } }"
_EDITED = (
    f"author {_WHO} lastEditedAt editor {_WHO} userContentEdits(first: 20) {{ totalCount nodes {{ editor {_WHO} }} }}"
)
_PLACE = "repository(owner: %s, name: %s)"
ISSUE = (
    f"{{ {_PLACE} {{ issue(number: %d) {{ lastEditedAt editor {_WHO} "
    f"userContentEdits(first: 100) {{ nodes {{ editedAt editor {_WHO} }} }} "
    f"timelineItems(itemTypes: [RENAMED_TITLE_EVENT], last: 1) {{ nodes {{ ... on RenamedTitleEvent {{ createdAt "
    f"actor {_WHO} }} }} }} }} }} }}"
)
REVIEWS = (
    f"{{ {_PLACE} {{ pullRequest(number: %d) {{ reviews(last: 50) {{ nodes {{ fullDatabaseId {_EDITED} "
    f"comments(first: 50) {{ totalCount nodes {{ {_EDITED} }} }} }} }} }} }} }}"
)
COMMENTS = "{ nodes(ids: %s) { ... on IssueComment { id lastEditedAt } } }"
AT_ONCE = 100
"""Comments that one question may name. What an answer could hold is limited too, so the numbers above are low."""


def of_issue(api: Api, number: int) -> tuple[BodyEdit, ...]:
    """The last change of an issue's title and those of its text. Raises UserError.

    Whoever changes a text after somebody else keeps most of it, and may only have ticked a box.
    """
    told = read(_OfIssue, api.ask(ISSUE % (*_place(api), number))).repository.issue
    renamed = [BodyEdit(_actor(one.actor), one.createdAt) for one in told.timelineItems.nodes]
    changed = [BodyEdit(_actor(one.editor), one.editedAt) for one in told.userContentEdits.nodes]
    return (*renamed, *changed, *([BodyEdit(_actor(told.editor), told.lastEditedAt)] if told.lastEditedAt else []))


def own_reviews(api: Api, number: int) -> frozenset[int]:
    """The reviews of a pull, of the last 50, whose every word, on lines too, is their author's. Raises UserError."""
    told = read(_OfPull, api.ask(REVIEWS % (*_place(api), number))).repository.pullRequest.reviews.nodes
    return frozenset(
        one.fullDatabaseId for one in told if _own(one) and one.comments.whole and all(map(_own, one.comments.nodes))
    )


def never_edited(api: Api, nodes: Sequence[str]) -> frozenset[str]:
    """Which of these comments (node ids) nobody ever edited. Raises UserError."""
    return frozenset(
        one for start in range(0, len(nodes), AT_ONCE) for one in _unedited_nodes(api, nodes[start : start + AT_ONCE])
    )


def _unedited_nodes(api: Api, nodes: Sequence[str]) -> Iterator[str]:
    told = read(_Comments, api.ask(COMMENTS % json.dumps(list(nodes)))).nodes  # in the order of the question
    return (node for node, one in zip(nodes, told, strict=False) if one and one.id and one.lastEditedAt is None)


def _place(api: Api) -> tuple[str, str]:
    owner, _, name = api.place.repository.partition("/")
    return json.dumps(owner), json.dumps(name)


def _own(words: _Words) -> bool:
    """Whether nobody but the author changed them, as far as every change is told."""
    edits = words.userContentEdits or _Edits()
    editors: Iterable[_Editor | None] = (
        *(one.editor for one in edits.nodes),
        *([words.editor] if words.lastEditedAt else ()),
    )
    author = _actor(words.author).id
    return edits.whole and author != GHOST.id and all(_actor(one).id == author for one in editors)


def _actor(who: _Editor | None) -> Actor:
    return GHOST if who is None or who.databaseId is None else Actor(who.databaseId, who.login)


# --- shapes ---------------------------------------------------------------------------


class _Editor(WireModel):
    login: str
    databaseId: int | None = None


class _Renamed(WireModel):
    createdAt: Stamp
    actor: _Editor | None = None


class _Renames(WireModel):
    nodes: tuple[_Renamed, ...] = ()


class _Changed(WireModel):
    editedAt: Stamp
    editor: _Editor | None = None


class _Changes(WireModel):
    nodes: tuple[_Changed, ...] = ()


class _Told(WireModel):
    lastEditedAt: Stamp | None = None
    editor: _Editor | None = None
    userContentEdits: _Changes = _Changes()
    timelineItems: _Renames = _Renames()


class _Issue(WireModel):
    issue: _Told


class _OfIssue(WireModel):
    repository: _Issue


class _Edited(WireModel):
    editor: _Editor | None = None


class _Edits(WireModel):
    totalCount: int = 0
    nodes: tuple[_Edited, ...] = ()

    @property
    def whole(self) -> bool:
        return self.totalCount <= len(self.nodes)


class _Words(WireModel):
    author: _Editor | None
    lastEditedAt: Stamp | None
    editor: _Editor | None
    userContentEdits: _Edits | None


class _Lines(WireModel):
    totalCount: int
    nodes: tuple[_Words, ...]

    @property
    def whole(self) -> bool:
        return self.totalCount <= len(self.nodes)


class _Review(_Words):
    fullDatabaseId: int
    comments: _Lines


class _Reviews(WireModel):
    nodes: tuple[_Review, ...]


class _Pull(WireModel):
    reviews: _Reviews


class _Pulls(WireModel):
    pullRequest: _Pull


class _OfPull(WireModel):
    repository: _Pulls


class _Comment(WireModel):
    id: str = ""
    lastEditedAt: Stamp | None = None


class _Comments(WireModel):
    nodes: tuple[_Comment | None, ...]
