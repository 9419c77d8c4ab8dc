"""The repository, its branches, refs and files; being told to wake up."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

from tests.fakes.github.endpoints.accounts import NEVER, rights
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Dispatch, Protection
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.basics import node
from tests.fakes.github.shapes.commits import commit
from tests.fakes.github.shapes.repository import full
from tests.fakes.github.state import World

READ, WRITE = "contents:read", "contents:write"
MOST_KEYS, MOST_LETTERS, LONGEST_TYPE = 10, 65_535, 100


@route("GET", REPO, role="read")
def get_repository(call: Call) -> dict[str, Any]:
    assert call.token
    installation = call.token.kind == "installation"
    level = "write" if call.token.permissions.get("contents") == "write" else "read"
    return full(call.world, call.actor, level if installation else rights(call, call.actor))


# --- branches and refs


@route("GET", REPO + "/branches", needs=READ, role="read", query=("protected",), paged=True)
def list_branches(call: Call) -> Response:
    wanted = {"": (True, False), "true": (True,), "false": (False,)}[call.query.get("protected", "")]
    found = [name for name in sorted(call.world.bare.heads()) if bool(call.world.rules_of(name)) in wanted]
    return call.page(found, _short)


def _short(world: World, name: str) -> dict[str, Any]:
    sha = world.bare.branch(name)
    return {
        "name": name,
        "commit": {"sha": sha, "url": f"{world.here}/commits/{sha}"},
        "protected": bool(world.rules_of(name)),
    }


@route("GET", REPO + "/branches/{branch:path}/protection", needs=NEVER, role="read")
def get_protection(call: Call) -> dict[str, Any]:
    if not call.actor.at_least("admin"):  # who may not know is told that there is nothing
        raise Refusal(404, "Not Found")
    name = _branch(call)
    rules = call.world.protections.get(name)
    if rules is None:
        raise Refusal(404, "Branch not protected")
    return _protection(call.world, name, rules)


@route("GET", REPO + "/branches/{branch:path}", needs=READ, role="read")
def get_branch(call: Call) -> dict[str, Any]:
    name = _branch(call)
    here = f"{call.world.here}/branches/{name}"
    rules = call.world.protections.get(name)
    checks = list(rules.required_checks) if rules else []
    level = "off" if rules is None else "everyone" if rules.enforce_admins else "non_admins"
    required = {
        "enforcement_level": level,
        "contexts": checks,
        "checks": [{"context": check, "app_id": None} for check in checks],
    }
    return {
        "name": name,
        "commit": commit(call.world, call.world.bare.branch(name)),
        "_links": {"self": here, "html": f"{call.world.page}/tree/{name}"},
        "protected": bool(call.world.rules_of(name)),  # by a ruleset too, of which the rest here knows nothing
        "protection": {"enabled": rules is not None, "required_status_checks": required},
        "protection_url": f"{here}/protection",
    }


def _branch(call: Call) -> str:
    name = call.parts["branch"]
    if not call.world.bare.branch(name):
        raise Refusal(404, "Branch not found")
    return name


def _protection(world: World, name: str, rules: Protection) -> dict[str, Any]:
    here = f"{world.here}/branches/{quote(name, safe='')}/protection"
    shown: dict[str, Any] = {
        "url": here,
        "required_signatures": {"url": f"{here}/required_signatures", "enabled": rules.required_signatures},
        "enforce_admins": {"url": f"{here}/enforce_admins", "enabled": rules.enforce_admins},
        **{
            name: {"enabled": False}
            for name in (
                "required_linear_history",
                "allow_force_pushes",
                "allow_deletions",
                "block_creations",
                "required_conversation_resolution",
                "lock_branch",
                "allow_fork_syncing",
            )
        },
    }
    if rules.required_checks or rules.strict:
        shown["required_status_checks"] = {
            "url": f"{here}/required_status_checks",
            "strict": rules.strict,
            "contexts": list(rules.required_checks),
            "contexts_url": f"{here}/required_status_checks/contexts",
            "checks": [{"context": check, "app_id": None} for check in rules.required_checks],
        }
    if rules.required_reviews:
        shown["required_pull_request_reviews"] = {
            "url": f"{here}/required_pull_request_reviews",
            "dismiss_stale_reviews": rules.dismiss_stale,
            "require_code_owner_reviews": False,
            "require_last_push_approval": False,
            "required_approving_review_count": rules.required_reviews,
        }
    if rules.restrict_pushes:
        links = {
            key: f"{here}/restrictions{place}"
            for key, place in (("url", ""), ("users_url", "/users"), ("teams_url", "/teams"), ("apps_url", "/apps"))
        }
        shown["restrictions"] = links | {"users": [], "teams": [], "apps": []}
    return shown


@route("GET", REPO + "/git/ref/{ref:path}", needs=READ, role="read")
def get_ref(call: Call) -> dict[str, Any]:
    name = call.parts["ref"]
    sha = call.world.bare.line("rev-parse", "--verify", "--quiet", f"refs/{name}", ok=(0, 1, 128))
    if not sha or not name.startswith(("heads/", "tags/", "pull/")):
        raise Refusal(404, "Not Found")
    kind = call.world.bare.line("cat-file", "-t", sha)
    url = f"{call.world.here}/git/{kind}s/{sha}"
    return {
        "ref": f"refs/{name}",
        "node_id": node("REF", name),
        "url": f"{call.world.here}/git/refs/{name}",
        "object": {"sha": sha, "type": kind, "url": url},
    }


# --- files


@route("GET", REPO + "/contents", needs=READ, role="read", query=("ref",))
@route("GET", REPO + "/contents/", needs=READ, role="read", query=("ref",))
@route("GET", REPO + "/contents/{path:path}", needs=READ, role="read", query=("ref",))
def get_contents(call: Call) -> Any:
    world, path = call.world, call.parts.get("path", "").strip("/")
    ref = call.query.get("ref", world.default_branch)
    sha = world.bare.branch(ref) or world.bare.resolve(ref)
    if not sha:
        raise Refusal(404, f"No commit found for the ref {ref}")
    found = _listing(world, sha, "--", path) if path else ["040000 tree - -\t"]
    if not found:
        raise Refusal(404, "Not Found")
    mode, kind, oid, size = found[0].partition("\t")[0].split()
    if kind == "tree":
        folder = f"{path}/" if path else ""
        return [_entry(world, folder, line, ref) for line in _listing(world, f"{sha}:{path}")]
    content = world.bare.run("cat-file", "blob", oid).stdout if kind == "blob" else b""
    if "raw" in call.accept:
        return Response(200, {"Content-Type": "application/vnd.github.raw; charset=utf-8"}, content=content)
    shown = _entry(world, "", f"{mode} {kind} {oid} {size}\t{path}", ref)
    return shown | {"encoding": "base64", "content": base64.encodebytes(content).decode()}


def _listing(world: World, *arguments: str) -> list[str]:
    raw = world.bare.run("ls-tree", "-l", "-z", *arguments).stdout.decode("utf-8", "replace")
    return [line for line in raw.split("\0") if line]


def _entry(world: World, folder: str, line: str, ref: str) -> dict[str, Any]:
    fields, _, name = line.partition("\t")
    mode, kind, oid, size = fields.split()
    path = folder + name
    shown = {"blob": "symlink" if mode == "120000" else "file", "tree": "dir", "commit": "submodule"}[kind]
    here = f"{world.here}/contents/{quote(path)}?ref={quote(ref)}"
    tree = "trees" if kind == "tree" else "blobs"
    links = {"git": f"{world.here}/git/{tree}/{oid}", "html": f"{world.page}/blob/{quote(ref)}/{quote(path)}"}
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": oid,
        "size": int(size) if size.isdigit() else 0,
        "url": here,
        "html_url": links["html"],
        "git_url": links["git"],
        "download_url": f"{world.page}/raw/{quote(ref)}/{quote(path)}" if kind == "blob" else None,
        "type": shown,
        "_links": {"self": here, **links},
    }


# --- waking up


@route("POST", REPO + "/dispatches", needs=WRITE, role="write", body=("event_type", "client_payload"))
def dispatch(call: Call) -> Response:
    event, payload = call.text("event_type") or "", call.body.get("client_payload", {})
    if not 0 < len(event) <= LONGEST_TYPE:
        raise Refusal(422, f"Invalid request.\n\n{event!r} is not within 1 and {LONGEST_TYPE} characters.")
    if not isinstance(payload, dict):
        raise Refusal(422, f"Invalid request.\n\nFor 'properties/client_payload', {payload!r} is not an object.")
    if len(payload) > MOST_KEYS:
        what = f"No more than {MOST_KEYS} properties are allowed; {len(payload)} were supplied."
        raise Refusal(422, f"Invalid request.\n\n{what}")
    if len(json.dumps(payload)) > MOST_LETTERS:
        raise Refusal(422, "client_payload is too large.")
    call.world.dispatches.append(Dispatch(event, payload, call.world.clock.tick(), call.actor.login))
    return Response(204)
