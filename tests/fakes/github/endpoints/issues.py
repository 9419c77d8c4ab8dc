"""Issues, which pulls are too."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.fakes.github.actions import threads
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Thread
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import LIMIT, REPO, Call, route
from tests.fakes.github.shapes.issues import issue, issue_alone

ISSUE = REPO + "/issues/{number:int}"
FILTERS = ("state", "labels", "creator", "since", "sort", "direction")
EITHER = "issues:read|pull_requests:read"
EITHER_WRITE = "issues:write|pull_requests:write"


@route("GET", REPO + "/issues", needs="issues:read", role="read", query=FILTERS, paged=True)
def list_issues(call: Call) -> Response:
    if not call.world.settings.has_issues:
        raise Refusal(410, "Issues are disabled for this repo")
    shown = [thread for thread in _sorted(call) if _wanted(call, thread)]
    return call.page(call.visible(shown), issue)


def _sorted(call: Call) -> list[Thread]:
    key = call.choice("sort", ("created", "updated"), "created") + "_at"
    newest_first = call.choice("direction", ("asc", "desc"), "desc") == "desc"
    return sorted(
        call.world.threads.values(), key=lambda thread: (getattr(thread, key), thread.number), reverse=newest_first
    )


def _wanted(call: Call, thread: Thread) -> bool:
    query = call.query
    state = call.choice("state", ("open", "closed", "all"), "open")
    names = {name.lower() for name in thread.labels}
    return (
        not thread.deleted
        and state in ("all", thread.state)
        and all(name.strip().lower() in names for name in query.get("labels", "").split(",") if name.strip())
        and query.get("creator", thread.author.login).lower() == thread.author.login.lower()
        and thread.updated_at >= since(call)
    )


def since(call: Call) -> datetime:
    """The earliest time of interest."""
    return datetime.fromisoformat(call.query.get("since", "0001-01-01T00:00:00Z"))


@route(
    "POST",
    REPO + "/issues",
    needs="issues:write",
    role="read",
    body=("title", "body", "labels"),
)
def create_issue(call: Call) -> Response:
    if not call.world.settings.has_issues:
        raise Refusal(410, "Issues are disabled for this repo")
    title, body = _title(call), call.text("body", limit=LIMIT)
    if not title:
        raise Refusal.invalid("Issue", "title", "missing_field")
    labels = call.texts("labels") or []
    if not _may_triage(call):  # GitHub drops them silently
        labels = []
    made = threads.create(call.world, call.actor, title, body, labels)
    return Response(201, {"Location": f"{call.world.here}/issues/{made.number}"}, issue_alone(call.world, made))


def _title(call: Call) -> str | None:
    title = call.text("title", limit=256)
    if title is not None and not title.strip():
        raise Refusal.invalid("Issue", "title", "missing_field")
    return title


def _may_triage(call: Call) -> bool:
    assert call.token
    return call.token.kind == "installation" or call.actor.at_least("triage")


@route("GET", ISSUE, needs=EITHER, role="read")
def get_issue(call: Call) -> dict[str, Any]:
    return issue_alone(call.world, call.thread())


@route(
    "PATCH",
    ISSUE,
    needs=EITHER_WRITE,
    role="read",
    body=("title", "body", "state", "state_reason"),
)
def edit_issue(call: Call) -> dict[str, Any]:
    thread = call.thread()
    if not (_may_triage(call) or call.actor is thread.author):
        raise Refusal(403, "Must have admin rights to Repository.")
    change(call, thread)
    return issue_alone(call.world, thread)


def change(call: Call, thread: Thread) -> None:
    """What issues and pulls have in common: text and state."""
    title, body = _title(call), call.text("body", limit=LIMIT)
    if "body" in call.body and call.body["body"] is None:
        body = ""
    state, reason = call.text("state"), call.text("state_reason")
    if state not in (None, "open", "closed"):
        raise Refusal.invalid("Issue", "state", "invalid")
    if reason not in (None, "completed", "not_planned", "duplicate", "reopened"):
        raise Refusal.invalid("Issue", "state_reason", "invalid")
    if title is not None or body is not None:
        threads.edit(call.world, call.actor, thread, title, body)
    if state == "closed":
        threads.close(call.world, call.actor, thread, None if thread.pull else reason or "completed")
    elif state == "open":
        threads.reopen(call.world, call.actor, thread)


@route("GET", REPO + "/assignees/{login}", needs=EITHER, role="read")
def may_be_assigned(call: Call) -> Response:
    account = call.world.accounts.get(call.parts["login"].lower())
    if account is None or not account.at_least("read"):
        raise Refusal(404, "Not Found")
    return Response(204)


@route("POST", ISSUE + "/assignees", needs=EITHER_WRITE, role="triage", body=("assignees",))
def add_assignees(call: Call) -> Response:
    thread = call.thread()
    threads.assign(call.world, call.actor, thread, call.texts("assignees") or [])
    return Response(201, {}, issue(call.world, thread))
