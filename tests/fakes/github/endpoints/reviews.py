"""Reviews of pulls."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.actions import pulls
from tests.fakes.github.endpoints.pulls import NEEDS, PULL, WRITE
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import ACTIONS_LOGIN, Review, Thread
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.routing import LIMIT, Call, route
from tests.fakes.github.shapes.pulls import line_comment, review

STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
REVIEW = PULL + "/reviews/{id:int}"


@route("GET", PULL + "/reviews", needs=NEEDS, role="read", paged=True)
def list_reviews(call: Call) -> Response:
    return call.page(pulls.reviews(call.world, call.thread(pull=True)), review)


@route("GET", PULL + "/comments", needs=NEEDS, role="read", paged=True)
def list_line_comments(call: Call) -> Response:
    thread = call.thread(pull=True)
    said = [(one, line) for one in pulls.reviews(call.world, thread) for line in one.lines]
    return call.page(said, lambda world, pair: line_comment(world, *pair))


@route("POST", PULL + "/reviews", needs=WRITE, role="read", body=("body", "event", "commit_id", "comments"))
def create_review(call: Call) -> dict[str, Any]:
    thread = call.thread(pull=True)
    event, text = call.text("event") or "", call.text("body", limit=LIMIT, resource="PullRequestReview") or ""
    if event not in STATES:
        raise Unknown(f"a review with event {event!r}")
    _may_review(call, thread, event)
    if not text and event != "APPROVE":
        raise Refusal(422, "Unprocessable Entity", ["Review cannot be blank"])
    sha = call.text("commit_id") or ""
    if sha and not call.world.bare.resolve(sha):
        raise Refusal(422, "Unprocessable Entity", ["commit_id is not part of the pull request"])
    lines = _lines(call, thread)
    return review(call.world, pulls.review(call.world, call.actor, thread, STATES[event], text, sha, lines))


def _lines(call: Call, thread: Thread) -> list[tuple[str, int, str]]:
    """Remarks on lines; as on GitHub one that is not of the diff refuses the whole review."""
    given = call.body.get("comments") or []
    for one in given:
        if set(one) != {"path", "line", "side", "body"} or one["side"] != "RIGHT":
            raise Unknown(f"a remark on a line with {sorted(one)}")
        if one["line"] not in pulls.shown_lines(call.world, thread, one["path"]):
            raise Refusal(422, "Unprocessable Entity", ["Line could not be resolved"])
    return [(one["path"], one["line"], one["body"]) for one in given]


def _may_review(call: Call, thread: Thread, event: str) -> None:
    actions = {"APPROVE": "approve", "REQUEST_CHANGES": "request changes on"}
    if call.actor is thread.author and event in actions:
        raise Refusal(422, "Unprocessable Entity", [f"Can not {actions[event]} your own pull request"])
    if event == "APPROVE" and call.actor.login == ACTIONS_LOGIN and not call.world.settings.actions_can_create_pulls:
        raise Refusal(422, "Unprocessable Entity", ["GitHub Actions is not permitted to approve pull requests."])


@route("GET", REVIEW, needs=NEEDS, role="read")
def get_review(call: Call) -> dict[str, Any]:
    return review(call.world, _found(call))


@route("PUT", REVIEW, needs=WRITE, role="read", body=("body",))
def edit_review(call: Call) -> dict[str, Any]:
    found = _found(call)
    if found.author is not call.actor:
        raise Refusal(403, "Must have admin rights to Repository.")
    text = call.text("body", limit=LIMIT, resource="PullRequestReview") or ""
    if not text.strip():
        raise Refusal(422, "Unprocessable Entity", ["Review cannot be blank"])
    pulls.edit_review(call.world, call.actor, found, text)
    return review(call.world, found)


def _found(call: Call) -> Review:
    found = call.world.reviews.get(int(call.parts["id"]))
    if found is None or found.number != call.thread(pull=True).number:
        raise Refusal(404, "Not Found")
    return found
