"""The timeline: events, comments, reviews and commits in one list."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.nouns import Comment, Event, Review
from tests.fakes.github.shapes.basics import user
from tests.fakes.github.shapes.commits import commit
from tests.fakes.github.shapes.issues import comment, event
from tests.fakes.github.shapes.pulls import review
from tests.fakes.github.state import World


def timeline(world: World, found: Event | Comment | Review | str) -> dict[str, Any]:
    """One line. A commit (its id) has no actor and no time of its own there."""
    match found:
        case Event():
            return event(world, found)
        case Comment():
            return comment(world, found) | {"event": "commented", "actor": user(world, found.author)}
        case Review():
            return review(world, found) | {"event": "reviewed", "state": found.state.lower()}
        case sha:
            return _committed(world, sha)


def _committed(world: World, sha: str) -> dict[str, Any]:
    shown = commit(world, sha)
    inner = {key: shown["commit"][key] for key in ("author", "committer", "tree", "message", "verification")}
    outer = {key: shown[key] for key in ("sha", "node_id", "html_url", "parents")}
    return {**outer, **inner, "url": shown["commit"]["url"], "event": "committed"}
