"""Replies without measure: too large, unpacked or not, and too slow. A read is UserError, a deed is in doubt."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ralph_mission.adapters.forges.github import wire
from ralph_mission.adapters.forges.github.api import Api, ReadCache
from ralph_mission.adapters.forges.github.limits import Doubt
from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.errors import UserError
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import open_issue

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def swollen(world: GitHubWorld, size: int, packed: bool) -> None:
    """Every answer about issues is so large from now on."""

    def grown(request: Any, response: Any) -> None:
        if request.below == "/issues":
            content = b"[" + b" " * (size - 2) + b"]"
            response.content = gzip.compress(content) if packed else content
            response.headers |= {"Content-Encoding": "gzip"} if packed else {}

    world.fake.after(grown)


@pytest.mark.parametrize("packed", [False, True])
def test_answer_without_measure_is_trouble_with_the_forge_and_not_asked_for_again(
    world: GitHubWorld, packed: bool
) -> None:
    swollen(world, wire.LARGEST + 1, packed)
    with pytest.raises(UserError, match="answers with more than 33,554,432 bytes") as caught:
        world.forge.issues()
    assert caught.value.who == "forge" and "GITHUB_API_URL" in caught.value.next_step
    assert world.fake.count(below="/issues") == 1


@pytest.mark.parametrize("packed", [False, True])
def test_largest_answer_is_read(world: GitHubWorld, packed: bool) -> None:
    swollen(world, wire.LARGEST, packed)
    assert world.forge.issues() == ()


def test_deed_whose_answer_has_no_measure_is_in_doubt_and_looked_for(world: GitHubWorld) -> None:
    def grown(request: Any, response: Any) -> None:
        if (request.method, request.below) == ("POST", "/issues"):
            response.content = json.dumps(response.payload).encode() + b" " * wire.LARGEST

    world.fake.after(grown)
    assert world.forge.perform(open_issue(labels=())).status == "adopted"
    assert world.fake.count(method="POST", below="/issues") == 1


def test_connection_is_used_again_but_for_one_whose_answer_was_given_up(world: GitHubWorld) -> None:
    for _ in range(3):
        world.forge.api.get("/labels")
    assert len(world.fake._server.connections) == 1
    swollen(world, wire.LARGEST + 1, packed=False)
    with pytest.raises(UserError):
        world.forge.issues()
    assert world.forge.api.get("/labels") == []


@pytest.fixture(params=["headers", "body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server whose answers never end, though none of their bytes keeps one waiting for long."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            client.sendall(HEAD + (b"X-Slow: " if request.param == "headers" else b"Content-Length: 2000\r\n\r\n"))
            for _ in range(2000):
                if over.wait(0.01):
                    return
                client.sendall(b" ")

    def serve() -> None:
        with suppress(OSError):
            while True:  # each at once: one that was given up may still be open
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    over.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_answer_that_drips_is_given_up(dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SLOWEST", 0.2)
    api = Api(RepositoryPlace("o/r", dripping, dripping, "t"), ReadCache(None, ""), sleep=lambda seconds: None, pace=0)
    with pytest.raises(UserError, match="did not answer in time") as caught:
        api.get("/issues")
    assert (caught.value.who, api.counts.total) == ("forge", 1)
    with pytest.raises(Doubt, match="did not answer in time"):
        api.send("POST", "/issues", {})
