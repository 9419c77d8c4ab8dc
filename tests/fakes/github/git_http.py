"""Smart HTTP over the bare repository: tokens, rights, and what GitHub refuses on its side of a push."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.fakes.github import pushes, rest
from tests.fakes.github.actions import refs
from tests.fakes.github.bare import environment
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Request, Token
from tests.fakes.github.refusal import Unknown
from tests.fakes.github.state import World

WRITING = ("/git-receive-pack", "/info/refs?service=git-receive-pack")
READING = ("/git-upload-pack", "/info/refs?service=git-upload-pack")


def respond(world: World, request: Request, headers: Mapping[str, str], raw: bytes) -> Response:
    """One request of git's smart HTTP protocol."""
    if request.below not in WRITING + READING:
        raise Unknown(f"git: {request.method} {request.below}")
    token = world.tokens.get(rest.credential(headers) or "")
    if refused := _refused(world, request, headers, token):
        return refused
    body = gzip.decompress(raw) if headers.get("Content-Encoding") == "gzip" else raw
    with world.lock:
        if token and request.below == "/git-receive-pack":
            return _receive(world, request, headers, body, token)
        return _read(world, request, headers, body)


def _refused(world: World, request: Request, headers: Mapping[str, str], token: Token | None) -> Response | None:
    writing = request.below in WRITING
    if token is None:
        if not (writing or world.private or headers.get("Authorization")):
            return None
        challenge = {"WWW-Authenticate": 'Basic realm="GitHub"'}
        return _plain(401, "Invalid username or token. Password authentication is not supported.", challenge)
    request.login = token.account.login
    if world.settings.disabled:
        return _plain(403, "Repository access blocked")
    if token.repository or not _may_read(world, token):
        return _plain(404, "Repository not found.")
    if writing and not _may_write(token):
        return _plain(403, f"Permission to {world.full_name}.git denied to {token.account.login}.")
    if writing and world.settings.archived:
        return _plain(403, "This repository was archived so it is read-only.")
    return None


def _may_read(world: World, token: Token) -> bool:
    if not world.private:
        return True
    if token.kind == "installation":
        return token.permissions.get("contents") in ("read", "write")
    return "repo" in token.scopes and token.account.at_least("read")


def _may_write(token: Token) -> bool:
    if token.kind == "installation":
        return token.permissions.get("contents") == "write"
    return "repo" in token.scopes and token.account.at_least("write")


def _receive(world: World, request: Request, headers: Mapping[str, str], body: bytes, token: Token) -> Response:
    before = refs.follow(world, world.account(world.owner))
    push = pushes.read(body)
    refusals = pushes.judge(world, push, token)
    if refusals:
        content = pushes.carry_out(world, push, refusals)
        headers_out = {"Content-Type": "application/x-git-receive-pack-result", "Cache-Control": "no-cache"}
        response = Response(200, headers_out, content=content)
    else:
        response = _serve(world, request, headers, body)
    refs.after_push(world, token.account, before, world.bare.heads())
    return response


def _read(world: World, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
    """What refs alone decide is asked of git once for each state of them: to look at them is most of what is asked."""
    if request.method == "POST" and b"command=ls-refs" not in body:
        return _serve(world, request, headers, body)
    protocol = headers.get("Git-Protocol") or ""
    said_alone = request.method == "GET" and "version=2" in protocol  # what git can do, and of refs nothing
    asked = (request.below, protocol, request.login, body, () if said_alone else _refs(world.bare.path))
    if asked not in world.bare.told:
        world.bare.told[asked] = _serve(world, request, headers, body)
    return replace(world.bare.told[asked])


def _refs(bare: Path) -> tuple[tuple[str, bytes], ...]:
    """All that says which refs there are."""
    files = (bare / "HEAD", bare / "packed-refs", *sorted((bare / "refs").rglob("*")))
    return tuple((str(file), file.read_bytes()) for file in files if file.is_file())


def _serve(world: World, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
    """What `git http-backend` would answer, by the program that it would start."""
    service = (READING if request.below in READING else WRITING)[0].removeprefix("/git-")
    advertised = request.method == "GET"
    protocol = headers.get("Git-Protocol") or ""
    command = ["git", "-c", "safe.directory=*", service, "--stateless-rpc"]
    command += [*(["--http-backend-info-refs"] if advertised else []), str(world.bare.path)]
    env = environment({"GIT_PROTOCOL": protocol})
    out = subprocess.run(command, input=body, env=env, capture_output=True, check=True).stdout
    if advertised and "version=2" not in protocol:
        head = f"# service=git-{service}\n"
        out = f"{len(head) + 4:04x}{head}0000".encode() + out
    kind = f"application/x-git-{service}-{'advertisement' if advertised else 'result'}"
    return Response(200, {"Content-Type": kind, "Cache-Control": "no-cache"}, content=out)


def _plain(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}, content=message.encode())
