"""What happened to an issue or pull."""

from __future__ import annotations

from tests.fakes.github.endpoints.issues import EITHER, ISSUE
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Event
from tests.fakes.github.routing import Call, route
from tests.fakes.github.shapes.issues import event


@route("GET", ISSUE + "/events", needs=EITHER, role="read", paged=True)
def list_events(call: Call) -> Response:
    return call.page(call.visible(_events(call)), event)


def _events(call: Call) -> list[Event]:
    number = call.thread().number
    return [one for one in call.world.events if one.number == number]
