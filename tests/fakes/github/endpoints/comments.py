"""Comments on issues and pulls."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.actions import threads
from tests.fakes.github.endpoints.issues import EITHER, EITHER_WRITE, ISSUE, since
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Comment
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import LIMIT, REPO, Call, route
from tests.fakes.github.shapes.issues import comment

COMMENT = REPO + "/issues/comments/{id:int}"


@route("GET", ISSUE + "/comments", needs=EITHER, role="read", query=("since",), paged=True)
def list_comments(call: Call) -> Response:
    found = [one for one in call.world.of(call.thread().number) if one.updated_at >= since(call)]
    return call.page(call.visible(found), comment)


@route("GET", REPO + "/issues/comments", needs=EITHER, role="read", query=("since", "sort", "direction"), paged=True)
def list_all_comments(call: Call) -> Response:
    key = call.choice("sort", ("created", "updated"), "created") + "_at"
    backwards = "sort" in call.query and call.choice("direction", ("asc", "desc"), "desc") == "desc"
    found = [
        one
        for one in call.world.comments.values()
        if one.updated_at >= since(call) and not call.world.threads[one.number].deleted
    ]
    found.sort(key=lambda one: (getattr(one, key), one.id), reverse=backwards)
    return call.page(call.visible(found), comment)


@route("POST", ISSUE + "/comments", needs=EITHER_WRITE, role="read", body=("body",))
def create_comment(call: Call) -> Response:
    made = threads.comment(call.world, call.actor, call.thread(), _text(call))
    return Response(201, {"Location": f"{call.world.here}/issues/comments/{made.id}"}, comment(call.world, made))


@route("GET", COMMENT, needs=EITHER, role="read")
def get_comment(call: Call) -> dict[str, Any]:
    return comment(call.world, _found(call))


@route("PATCH", COMMENT, needs=EITHER_WRITE, role="read", body=("body",))
def edit_comment(call: Call) -> dict[str, Any]:
    found = _mine(call)
    threads.edit_comment(call.world, found, _text(call))
    return comment(call.world, found)


def _found(call: Call) -> Comment:
    found = call.world.comments.get(int(call.parts["id"]))
    if found is None or call.world.threads[found.number].deleted:
        raise Refusal(404, "Not Found")
    return found


def _mine(call: Call) -> Comment:
    """One that this account may change: its own, or any when it may write (as installations may)."""
    found = _found(call)
    assert call.token
    if not (found.author is call.actor or call.token.kind == "installation" or call.actor.at_least("write")):
        raise Refusal(403, "Must have admin rights to Repository.")
    return found


def _text(call: Call) -> str:
    text = call.text("body") or ""
    problem = {"resource": "IssueComment", "code": "unprocessable", "field": "data"}
    if not text.strip():
        raise Refusal(422, "Validation Failed", [problem | {"message": "Body cannot be blank"}])
    if len(text) > LIMIT:
        message = f"Body is too long (maximum is {LIMIT} characters)"
        raise Refusal(422, "Validation Failed", [problem | {"message": message}])
    return text
