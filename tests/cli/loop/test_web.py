"""The page of `ralph ui --web`, asked by a plain client: what it shows, whom it obeys, whom it refuses."""

from __future__ import annotations

import html
import http.client
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.loop import live
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.live import LiveRun
from ralph_mission.cli.loop import web
from ralph_mission.cli.loop.runs import describe_commits
from ralph_mission.cli.loop.web import LARGEST, RunsServer
from ralph_mission.loop.model.spec import RunEvent
from tests.helpers import commit, make_repo


@dataclass(frozen=True, slots=True)
class Page:
    server: RunsServer
    home: Path

    def ask(self, path: str = "", said: str | None = None, **headers: str) -> tuple[int, str]:
        """The status and the body; `path` begins at the page, or at the server with a slash."""
        whole = path if path.startswith("/") else urlsplit(self.server.address).path + path
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port)
        connection.request("GET" if said is None else "POST", whole, said, headers)
        with connection.getresponse() as answer:
            if answer.status == 302:
                return self.ask(answer.headers["Location"], **headers)
            return answer.status, answer.read().decode()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    repo = make_repo(tmp_path / "repo", {"a": "a"})
    with RunsServer(Git.open(repo)) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield Page(server, repo / ".ralph")
        server.shutdown()
        serving.join()


@pytest.fixture
def run(page: Page) -> LiveRun:
    ended, run = LiveRun(page.home, "work"), LiveRun(page.home, "run")
    ended.tell(RunEvent("note", "looks for issues"))
    ended.end(0)
    run.tell(RunEvent("session", "[1/9] builder", 1, "builder", "r1", 0, (1, 3)))
    run.tell(RunEvent("tool", "Bash: <script>make()</script> test", 1))
    return run


def test_runs_and_the_steps_of_one_are_shown_as_text(page: Page, run: LiveRun) -> None:
    status, shown = page.ask()
    assert status == 200 and "<title>run-2 running</title>" in shown and ">work-1</a>" in shown and ">1/3<" in shown
    assert "&lt;script&gt;make()&lt;/script&gt; test" in shown and "<script>make" not in shown
    assert "looks for issues" in page.ask("work-1")[1]


def test_a_button_holds_the_run_it_stands_by(page: Page, run: LiveRun) -> None:
    assert page.ask("run-2", "order=pause")[0] == 303 and run.current_order() == "pause"
    assert page.ask("run-2", "order=resume")[0] == 303 and run.current_order() == ""
    assert page.ask("run", "order=stop")[0] == 400 and run.current_order() == ""  # a kind is no run
    assert page.ask("run-2", "order=all")[0] == 303 and run.current_order() == ""
    assert page.ask("run-2", "order=stop")[0] == 303
    assert page.ask("run-2", "order=pause")[0] == 303 and run.current_order() == "stop"
    assert ">running, stop asked for<" in page.ask("run-2")[1]
    status, told = page.ask("work-1", "order=pause")
    assert status == 400 and "work-1 no longer runs here" in told and 'href="work-1"' in told
    assert page.ask("run-2", "order=pause&a=1&b=2&c=3&d=4")[0] == 400


def test_an_address_without_a_run_leads_to_the_newest_and_a_page_stays_that_of_its_run(
    page: Page, run: LiveRun
) -> None:
    top = urlsplit(page.server.address).path
    for path in (top, top.rstrip("/"), f"{top}run-99"):
        connection = http.client.HTTPConnection("127.0.0.1", page.server.server_port)
        connection.request("HEAD", path)
        with connection.getresponse() as answer:
            assert answer.status == 302 and answer.headers["Location"] == f"{top}run-2"
    LiveRun(page.home, "cycle").tell(RunEvent("note", "looks"))
    shown = page.ask("run-2")[1]
    assert "<h1>run-2</h1>" in shown and re.search(r"<a [^>]*aria-current[^>]*>run-2<", shown)
    assert ">cycle-3</a>" in shown and "<h1>cycle-3</h1>" in page.ask()[1]


def test_guidance_is_left_for_the_next_session(page: Page, run: LiveRun) -> None:
    assert page.ask("run-2", "say=Keep+the+old+format")[0] == 303
    assert [said.text for said in Guide(page.home).pending()] == ["Keep the old format"]
    status, told = page.ask("run-2", "say=" + "a" * 4001)
    assert status == 400 and "guidance is too long" in told
    for over in ("work-1", "run-99", ""):
        assert page.ask(over, "say=Hello")[0] == 400 and len(Guide(page.home).pending()) == 1
    assert page.ask("run-2", "say=" + "a" * LARGEST)[0] == 413


def test_what_was_committed_since_it_began_is_shown_and_looked_up_once_a_commit(
    page: Page, run: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(web, "describe_commits", lambda *asked: looks.append("") or describe_commits(*asked))
    for text in ("<b>news</b>", "<b>more</b>"):
        commit(page.home.parent, {"b": text}, date=datetime.now(UTC))
        for _ in range(2):
            assert f"+{html.escape(text)}" in page.ask("run-2?diff")[1]
    assert len(looks) == 2


def test_before_anything_ran_the_page_says_so(page: Page) -> None:
    assert "Nothing has run here yet" in page.ask()[1]


@pytest.mark.parametrize("path", ["/", "/run-2", "/guess/run-2", "//run-2"])
def test_without_the_secret_nothing_is_shown_or_obeyed(page: Page, run: LiveRun, path: str) -> None:
    for said in (None, "order=stop"):
        status, shown = page.ask(path, said)
        assert status == 403 and "run-2" not in shown
    assert run.current_order() == ""


def test_a_foreign_name_that_leads_to_this_machine_is_refused(page: Page, run: LiveRun) -> None:
    port = page.server.server_port
    assert page.ask(Host=f"localhost:{port}")[0] == 200
    for host in (f"rebound.example:{port}", "127.0.0.1", ""):
        assert page.ask("run-2", "order=stop", Host=host)[0] == 403
    assert run.current_order() == "" and page.server.server_address[0] == "127.0.0.1"
    assert live.read_order(page.home / live.FOLDER / "run-2") == ""
