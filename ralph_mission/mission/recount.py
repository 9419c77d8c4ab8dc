"""What was learned, counted again from the journal alone: anybody can check the numbers in Learnings. Pure.

Documents are those of `memory/journal`, as read from JSON, in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ralph_mission.mission.ledger import KEPT_POSTS
from ralph_mission.mission.model import Acceptance
from ralph_mission.mission.posts import Posted
from ralph_mission.mission.reflect import count_verdict, learnings

Documents = Iterable[Mapping[str, Any]]


def acceptance(documents: Documents) -> dict[str, Acceptance]:
    """Every kind's verdicts."""
    tallies: dict[str, Acceptance] = {}
    for document in documents:
        for lesson in document.get("counted", ()):
            tallies[lesson["kind"]] = count_verdict(tallies.get(lesson["kind"], Acceptance()), lesson["verdict"])
    return tallies


def posts(documents: Documents) -> tuple[Posted, ...]:
    """Every post that still counts, newest first, with what the network told of it last."""
    known: dict[str, Posted] = {}
    for document in documents:
        known |= {post["key"]: _post(post) for post in document.get("posts", ())}
    return tuple(sorted(known.values(), key=lambda post: post.at, reverse=True))[:KEPT_POSTS]


def _post(told: Mapping[str, Any]) -> Posted:
    at, measured = datetime.fromisoformat(told["at"]), told["measured_at"]
    return Posted(**{**told, "at": at, "measured_at": datetime.fromisoformat(measured) if measured else None})


def recount_learnings(documents: Documents) -> tuple[str, ...]:
    """The lines that stand under `### Measured by Ralph`, if nobody made them up."""
    documents = tuple(documents)
    return learnings(acceptance(documents), posts(documents))
