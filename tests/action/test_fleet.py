"""The workflows of a fleet, run for real: a control repository, and three others on one GitHub of loopback."""

from __future__ import annotations

import http.client
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ralph_mission.cli.mission.fleet import TOKEN_ACTION, UPLOAD, render_fleet_workflows
from ralph_mission.mission.fleet.model import parse_state
from tests.action.conftest import FILES, serving
from tests.action.runner import INSTALLED, ROOT, Runner, bare_environment
from tests.fakes.fleet import FakeFleet
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git

pytestmark = pytest.mark.long  # four jobs on a runner

BROKEN = {**FILES, "ralph.yml": "limits: {active_missions: many}\n"}


@dataclass
class Front:
    """One address for all of them: by its path, and a GraphQL query by its token, a request finds its repository."""

    fleet: FakeFleet
    hubs: dict[str, FakeGitHub]
    control: FakeGitHub
    tokens: dict[str, str] = field(default_factory=dict)
    url: str = ""
    token: str = ""

    def __post_init__(self) -> None:
        self.token = self.control.token()

    def serve(self) -> ThreadingHTTPServer:
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                front.forward(self)

            do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
        return server

    def forward(self, call: BaseHTTPRequestHandler) -> None:
        body = call.rfile.read(int(call.headers.get("Content-Length") or 0))
        place = self._place(call)
        line = http.client.HTTPConnection(place.removeprefix("http://"), timeout=60)
        line.request(call.command, call.path, body, {**call.headers, "Host": "there", "Connection": "close"})
        answer = line.getresponse()
        content = answer.read()
        call.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                call.send_header(name, value.replace(place, self.url))
        call.send_header("Content-Length", str(len(content)))
        call.send_header("Connection", "close")
        call.end_headers()
        call.wfile.write(content)
        line.close()

    def _place(self, call: BaseHTTPRequestHandler) -> str:
        named = re.match(r"(?:/api/v3/repos)?/(acme/[\w-]+?)(?:\.git)?(?:/|$)", call.path)
        token = call.headers.get("Authorization", "").rpartition(" ")[2]
        name = named[1] if named else self.tokens.get(token, "")
        if name in self.hubs:
            return self.hubs[name].url
        if named:
            return self.control.url
        for known, hub in self.hubs.items():
            self._tell_memory(known, hub)
        return self.fleet.url

    def _tell_memory(self, name: str, hub: FakeGitHub) -> None:
        if hub.branch("ralph-memory"):
            repository = self.fleet.repositories[name]
            repository.memory = git(hub.bare, "show", "ralph-memory:memory/ralph-log.md")
            repository.moved_at = datetime.now(UTC)


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    with ExitStack() as stack:
        fleet = stack.enter_context(FakeFleet())
        hubs = {}
        for name, files in (("api", FILES), ("web", FILES), ("broken", BROKEN)):
            (tmp_path / name).mkdir()
            hubs[f"acme/{name}"] = stack.enter_context(serving(tmp_path / name, files, f"acme/{name}"))
            fleet.add(f"acme/{name}")
        (tmp_path / "control").mkdir()
        settings = "repositories: [acme/api, acme/web, acme/broken]\nrunner: [self-hosted]\n"
        files = {"fleet.yml": settings, **render_fleet_workflows(INSTALLED)}
        control = stack.enter_context(serving(tmp_path / "control", files, "acme/control"))
        front = Front(fleet, hubs, control)
        fleet.tokens[front.token] = "acme/control"
        (tmp_path / "tokens").mkdir()
        for name, hub in hubs.items():
            token = hub.token("ralph-app[bot]")
            front.tokens[token] = name
            (tmp_path / "tokens" / name.partition("/")[2]).write_text(token)
        (tmp_path / "tokens" / "scan").write_text("scan")
        server = front.serve()
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        yield front


def run(runner: Runner, front: Front, folder: Path) -> subprocess.CompletedProcess[str]:
    """One scan of the control repository, with all jobs that come of it."""
    results = folder / f"results-{len(list(folder.glob('results-*')))}"
    results.mkdir()
    control = results / "repository"
    git(folder, "clone", "--quiet", str(front.control.bare), str(control))
    git(control, "remote", "set-url", "origin", "https://github.com/acme/control")
    (results / "event.json").write_text("{}")
    extra = [
        *("--platform", "ubuntu-latest=-self-hosted"),
        *("--var", "RALPH_APP_CLIENT_ID=Iv1", "--secret", "RALPH_APP_PRIVATE_KEY=app-key"),
        *("--local-repository", f"{TOKEN_ACTION.partition(' ')[0]}={ROOT / 'tests' / 'action' / 'app_token'}"),
        *("--local-repository", f"{UPLOAD.partition(' ')[0]}={ROOT / 'tests' / 'action' / 'upload'}"),
        *("--env", f"TOKENS={folder / 'tokens'}", "--workflows", ".github/workflows/ralph-fleet.yml"),
    ]
    command = runner.act_command("schedule", front.token, front.url, results)
    return subprocess.run(
        [*command, *extra],
        cwd=control,
        env=bare_environment(runner.home),
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )


def test_two_due_repositories_get_a_cycle_each_and_a_broken_one_costs_them_nothing(
    cold: Runner, front: Front, tmp_path: Path
) -> None:
    runner = Runner(cold.home, cold.action, repository="acme/control")
    runner.seed()
    runner.seed(files={"ralph.yml": BROKEN["ralph.yml"]})
    done = run(runner, front, tmp_path)
    (tmp_path / "log").write_text(done.stdout)
    assert done.returncode == 1, done.stdout  # the broken one's
    moved = {name for name, hub in front.hubs.items() if hub.branch("ralph-memory")}
    assert moved == {"acme/api", "acme/web"}, done.stdout
    assert all(any(thread.pull for thread in front.hubs[name].threads.values()) for name in moved)
    assert set(parse_state(front.fleet.state[-1]).bookings) == set(front.hubs)
    scans = len(front.fleet.state)
    again = run(runner, front, tmp_path)  # nobody is due, and the broken one is not over for the plan
    assert again.returncode == 0, again.stdout
    assert len(front.fleet.state) == scans
    pages = [front.fleet.pages[0]["body"]]
    if "no page in HTML, as MarkupSafe is not installed" not in done.stdout:
        pages.append((tmp_path / "tokens" / "fleet.html").read_text())
    for page in pages:
        assert all(name in page for name in front.hubs)
