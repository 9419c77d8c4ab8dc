"""Labels of the repository, and on issues and pulls."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.fakes.github.actions import threads
from tests.fakes.github.endpoints.issues import EITHER, EITHER_WRITE, ISSUE
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Label
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import LONGEST_LABEL, REPO, Call, route
from tests.fakes.github.shapes.issues import label, labels

LABEL = REPO + "/labels/{name}"


@route("GET", REPO + "/labels", needs=EITHER, role="read", paged=True)
def list_labels(call: Call) -> Response:
    return call.page(sorted(call.world.labels.values(), key=lambda found: found.name.lower()), label)


@route("POST", REPO + "/labels", needs=EITHER_WRITE, role="write", body=("name", "color", "description"))
def create_label(call: Call) -> Response:
    name = call.text("name", limit=LONGEST_LABEL, resource="Label")
    if not name:
        raise Refusal.invalid("Label", "name", "missing_field")
    if name.lower() in call.world.labels:
        raise Refusal.invalid("Label", "name", "already_exists")
    _check(call)
    made = call.world.label(name)
    _change(call, made)
    return Response(201, {"Location": f"{call.world.here}/labels/{quote(name, safe='')}"}, label(call.world, made))


@route("GET", LABEL, needs=EITHER, role="read")
def get_label(call: Call) -> dict[str, Any]:
    return label(call.world, _found(call))


def _found(call: Call) -> Label:
    found = call.world.labels.get(call.parts["name"].lower())
    if found is None:
        raise Refusal(404, "Not Found")
    return found


def _check(call: Call) -> None:
    color = call.text("color", resource="Label")
    if color is not None and (len(color) != 6 or set(color.lower()) - set("0123456789abcdef")):
        raise Refusal.invalid("Label", "color", "invalid")
    call.text("description", limit=100, resource="Label")


def _change(call: Call, found: Label) -> None:
    found.color = call.text("color") or found.color
    found.description = call.body.get("description", found.description)


# --- on an issue or pull


@route("POST", ISSUE + "/labels", needs=EITHER_WRITE, role="triage", body=("labels",))
def add_labels(call: Call) -> list[dict[str, Any]]:
    thread = call.thread()
    threads.label(call.world, call.actor, thread, _names(call))
    return labels(call.world, thread)


@route("DELETE", ISSUE + "/labels/{name}", needs=EITHER_WRITE, role="triage")
def remove_label(call: Call) -> list[dict[str, Any]]:
    thread = call.thread()
    if call.parts["name"].lower() not in {name.lower() for name in thread.labels}:
        raise Refusal(404, "Label does not exist")
    threads.unlabel(call.world, call.actor, thread, [call.parts["name"]])
    return labels(call.world, thread)


def _names(call: Call) -> list[str]:
    names = call.texts("labels") or []
    if any(not name.strip() for name in names):
        raise Refusal.invalid("Label", "name", "missing_field")
    return names
