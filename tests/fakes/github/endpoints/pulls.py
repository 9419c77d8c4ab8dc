"""Pulls: listing, opening, looking into, editing."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.deeds import pulls
from tests.fakes.github.deeds.refs import follow
from tests.fakes.github.endpoints.issues import change
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import ACTIONS_LOGIN, Thread
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import LIMIT, REPO, Call, route
from tests.fakes.github.shapes.commits import commit, file_change
from tests.fakes.github.shapes.pulls import commits_of, files_of, pull, pull_alone

PULL = REPO + "/pulls/{number:int}"
NEEDS, WRITE = "pull_requests:read", "pull_requests:write"
MOST_COMMITS, MOST_FILES = 250, 3000  # GitHub lists no more


@route(
    "GET", REPO + "/pulls", needs=NEEDS, role="read", query=("state", "head", "base", "sort", "direction"), paged=True
)
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
    body=("title", "body", "head", "base", "draft", "maintainer_can_modify"),
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
    made = pulls.create(call.world, call.actor, _branch(call, head), base, title, body, bool(call.body.get("draft")))
    return Response(201, {"Location": f"{call.world.here}/pulls/{made.number}"}, pull_alone(call.world, made))


def _branch(call: Call, head: str) -> str:
    owner, found, branch = head.rpartition(":")
    if found and owner.lower() != call.world.owner.lower():
        raise Refusal.invalid("PullRequest", "head", "invalid")
    return branch


@route("GET", PULL, needs=NEEDS, role="read")
def get_pull(call: Call) -> dict[str, Any]:
    return pull_alone(call.world, call.thread(pull=True))


@route("PATCH", PULL, needs=WRITE, role="read", body=("title", "body", "state", "base", "maintainer_can_modify"))
def edit_pull(call: Call) -> dict[str, Any]:
    thread = call.thread(pull=True)
    assert thread.pull and call.token
    if not (call.token.kind == "installation" or call.actor.at_least("write") or call.actor is thread.author):
        raise Refusal(403, "Must have admin rights to Repository.")
    if call.body.get("state") == "open" and thread.state == "closed":
        _may_reopen(call, thread)
    if base := call.text("base"):
        if not call.world.bare.branch(base):
            raise Refusal.invalid("PullRequest", "base", "invalid")
        thread.pull.base, thread.pull.base_sha = base, call.world.bare.branch(base)
    change(call, thread)
    follow(call.world, call.actor)
    return pull_alone(call.world, thread)


def _may_reopen(call: Call, thread: Thread) -> None:
    assert thread.pull
    if thread.pull.merged_at or not call.world.bare.branch(thread.pull.head):
        message = "state cannot be changed. The pull request cannot be reopened."
        raise Refusal.custom("PullRequest", message, "state")
    same = [
        one
        for one in call.world.threads.values()
        if one.pull and one.state == "open" and (one.pull.head, one.pull.base) == (thread.pull.head, thread.pull.base)
    ]
    if same:
        message = f"state cannot be changed. There is already an open pull request from {thread.pull.head}."
        raise Refusal.custom("PullRequest", message, "state")


@route("GET", PULL + "/commits", needs=NEEDS, role="read", paged=True)
def list_commits(call: Call) -> Response:
    return call.page(commits_of(call.world, call.thread(pull=True))[:MOST_COMMITS], commit)


@route("GET", PULL + "/files", needs=NEEDS, role="read", paged=True)
def list_files(call: Call) -> Response:
    thread = call.thread(pull=True)
    assert thread.pull
    sha = thread.pull.head_sha
    return call.page(files_of(call.world, thread)[:MOST_FILES], lambda world, found: file_change(world, found, sha))
