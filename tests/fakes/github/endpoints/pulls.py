"""Pulls: listing, opening, looking into, editing."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.actions import pulls
from tests.fakes.github.actions.refs import follow
from tests.fakes.github.endpoints.issues import change
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import ACTIONS_LOGIN, Thread
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import LIMIT, REPO, Call, route
from tests.fakes.github.shapes.pulls import pull, pull_alone

PULL = REPO + "/pulls/{number:int}"
NEEDS, WRITE = "pull_requests:read", "pull_requests:write"
MOST_COMMITS, MOST_FILES = 250, 3000  # GitHub lists no more


FILTERS = ("state", "head", "base", "sort", "direction")


@route("GET", REPO + "/pulls", needs=NEEDS, role="read", query=FILTERS, paged=True)
def list_pulls(call: Call) -> Response:
    return call.page(call.visible([thread for thread in _sorted(call) if _wanted(call, thread)]), pull)


def _sorted(call: Call) -> list[Thread]:
    sort = call.choice("sort", ("created", "updated"), "created")
    direction = call.choice("direction", ("asc", "desc"), "desc")
    found = [thread for thread in call.world.threads.values() if thread.pull and not thread.deleted]
    return sorted(found, key=lambda thread: (getattr(thread, f"{sort}_at"), thread.number), reverse=direction == "desc")


def _wanted(call: Call, thread: Thread) -> bool:
    part, query = thread.pull, call.query
    assert part
    head = query.get("head", "")
    return (
        call.choice("state", ("open", "closed", "all"), "open") in ("all", thread.state)
        # GitHub takes no notice of a head without its owner.
        and (":" not in head or head.lower() == f"{call.world.owner}:{part.head}".lower())
        and query.get("base", part.base) == part.base
    )


@route(
    "POST",
    REPO + "/pulls",
    needs=WRITE,
    role="read",
    body=("title", "body", "head", "base"),
)
def create_pull(call: Call) -> Response:
    if call.actor.login == ACTIONS_LOGIN and not call.world.settings.actions_can_create_pulls:
        raise Refusal(403, "GitHub Actions is not permitted to create or approve pull requests.")
    title = call.text("title", limit=256, resource="PullRequest")
    head, base = call.text("head"), call.text("base")
    for name, value in (("title", title), ("head", head), ("base", base)):
        if not value or not value.strip():
            raise Refusal.invalid("PullRequest", name, "missing_field")
    assert title and head and base
    body = call.text("body", limit=LIMIT, resource="PullRequest")
    made = pulls.create(call.world, call.actor, _branch(call, head), base, title, body)
    return Response(201, {"Location": f"{call.world.here}/pulls/{made.number}"}, pull_alone(call.world, made))


def _branch(call: Call, head: str) -> str:
    owner, found, branch = head.rpartition(":")
    if found and owner.lower() != call.world.owner.lower():
        raise Refusal.invalid("PullRequest", "head", "invalid")
    return branch


@route("GET", PULL, needs=NEEDS, role="read")
def get_pull(call: Call) -> dict[str, Any]:
    return pull_alone(call.world, call.thread(pull=True))


@route("PATCH", PULL, needs=WRITE, role="read", body=("body", "state"))
def edit_pull(call: Call) -> dict[str, Any]:
    thread = call.thread(pull=True)
    assert thread.pull and call.token
    if not (call.token.kind == "installation" or call.actor.at_least("write") or call.actor is thread.author):
        raise Refusal(403, "Must have admin rights to Repository.")
    change(call, thread)
    follow(call.world, call.actor)
    return pull_alone(call.world, thread)
