"""Git's own objects, made one by one: as much of it as a first commit takes."""

from __future__ import annotations

from typing import Any

from tests.fakes.github import pushes
from tests.fakes.github.actions import pulls, refs
from tests.fakes.github.bare import NOBODY, Signature
from tests.fakes.github.faults import Response
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.routing import REPO, Call, route

GIT = REPO + "/git"


@route("POST", GIT + "/trees", needs="contents:write", role="write", body=("tree",))
def create_tree(call: Call) -> Response:
    rows = call.body["tree"]
    if any(set(row) != {"path", "mode", "type", "content"} or row["mode"] != "100644" for row in rows):
        raise Unknown("POST /git/trees: anything but plain files")
    sha = call.world.bare.write_files("", {row["path"]: row["content"].encode() for row in rows})
    return Response(201, {}, {"sha": sha, "url": _url(call, "trees", sha), "truncated": False, "tree": []})


@route("POST", GIT + "/commits", needs="contents:write", role="write", body=("message", "tree", "parents"))
def create_commit(call: Call) -> Response:
    """GitHub signs what an app commits in its own name, and nothing that a person does."""
    world, at = call.world, call.world.clock.tick()
    who, message = refs.signature(call.actor, at), call.text("message") or ""
    bot = bool(call.token and call.token.kind == "installation")
    by = Signature(*pulls.GITHUB, at) if bot else who
    sha = world.bare.commit_tree(call.body["tree"], call.body["parents"], message, who, by, signed=bot)
    people = {
        role: {"name": one.name, "email": one.email, "date": one.at.isoformat()}
        for role, one in (("author", who), ("committer", by))
    }
    verification: dict[str, Any] = {"verified": bot, "reason": "valid" if bot else "unsigned"}
    verification |= {"signature": None, "payload": None, "verified_at": None}
    told = {"sha": sha, "node_id": "C", "url": _url(call, "commits", sha), "html_url": _url(call, "commits", sha)}
    tree = {"sha": call.body["tree"], "url": _url(call, "trees", call.body["tree"])}
    return Response(
        201, {}, {**told, **people, "message": message, "tree": tree, "parents": [], "verification": verification}
    )


@route("POST", GIT + "/refs", needs="contents:write", role="write", body=("ref", "sha"))
def create_ref(call: Call) -> Response:
    world, ref, sha = call.world, str(call.body["ref"]), str(call.body["sha"])
    before = refs.follow(world, call.actor)
    if ref.removeprefix("refs/heads/") in before:
        raise Refusal(422, "Reference already exists")
    assert call.token
    if no := pushes.refusal(world, pushes.Command(NOBODY, sha, ref), call.token):
        raise Refusal(422, f"Repository rule violations found\n\n{no.remote or no.reason}")
    world.bare.set_ref(ref, sha, NOBODY)
    refs.after_push(world, call.actor, before, world.bare.heads())
    told = {"sha": sha, "type": "commit", "url": _url(call, "commits", sha)}
    return Response(201, {}, {"ref": ref, "node_id": "R", "url": _url(call, "refs", ref), "object": told})


def _url(call: Call, kind: str, name: str) -> str:
    return f"{call.root}/repos/{call.world.full_name}/git/{kind}/{name}"
