"""What happened to an issue or pull."""

from __future__ import annotations

from datetime import datetime

from tests.fakes.github.deeds import pulls
from tests.fakes.github.endpoints.issues import EITHER, ISSUE
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Comment, Event, Review
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.issues import event
from tests.fakes.github.shapes.pulls import commits_of
from tests.fakes.github.shapes.timeline import timeline


@route("GET", ISSUE + "/events", needs=EITHER, role="read", paged=True)
def list_events(call: Call) -> Response:
    return call.page(call.visible(_events(call)), event)


@route("GET", REPO + "/issues/events", needs=EITHER, role="read", paged=True)
def list_all_events(call: Call) -> Response:
    """Newest first, unlike those of one issue."""
    found = [one for one in call.world.events if not call.world.threads[one.number].deleted]
    return call.page(call.visible(reversed(found)), event)


@route("GET", ISSUE + "/timeline", needs=EITHER, role="read", paged=True)
def list_timeline(call: Call) -> Response:
    thread = call.thread()
    found: list[Event | Comment | Review] = [*call.visible(_events(call)), *call.visible(call.world.of(thread.number))]
    found += pulls.reviews(call.world, thread)
    commits: list[Event | Comment | Review | str] = list(commits_of(call.world, thread)) if thread.pull else []
    return call.page([*commits, *sorted(found, key=_when)], timeline)


def _events(call: Call) -> list[Event]:
    number = call.thread().number
    return [one for one in call.world.events if one.number == number]


def _when(found: Event | Comment | Review) -> tuple[datetime, int]:
    return (found.submitted_at if isinstance(found, Review) else found.created_at), found.id
