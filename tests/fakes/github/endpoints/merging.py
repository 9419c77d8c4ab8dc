"""Merging pulls, and bringing them up to date."""

from __future__ import annotations

from typing import Any

from tests.fakes.github import pushes
from tests.fakes.github.actions import pulls
from tests.fakes.github.endpoints.pulls import PULL
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.routing import Call, route


@route(
    "PUT",
    PULL + "/merge",
    needs="contents:write",
    role="write",
    body=("sha", "merge_method", "commit_title", "commit_message"),
)
def merge(call: Call) -> dict[str, Any]:
    thread, method = call.thread(pull=True), call.text("merge_method") or "merge"
    if method not in ("squash", "merge"):
        raise Unknown(f"merge_method {method}")
    assert call.token and thread.pull
    base = call.world.bare.branch(thread.pull.base)
    if no := pushes.workflow(call.world, call.token, thread.pull.head_sha, base):
        raise Refusal(403, no.reason)
    sha = pulls.merge(
        call.world, call.actor, thread, method, call.text("sha"), call.text("commit_title"), call.text("commit_message")
    )
    return {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}
