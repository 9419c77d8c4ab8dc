"""Our pages of HTML in a real browser: at every width they fit, so that nobody scrolls sideways, and all is shown."""

from __future__ import annotations

import html
import re
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.report.report_page import page
from ralph_mission.adapters.report.repository_report import collect_report
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.live import LiveRun
from ralph_mission.cli.loop.web import RunsServer
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.mission.lifecycle.waiting import find_waiting
from ralph_mission.mission.model.mission import Limits
from tests.adapters.report.samples import NOON, RECALLED, STATE, mission
from tests.helpers import make_repo
from tests.real.browser import BROWSER, browsing

pytestmark = [pytest.mark.real, pytest.mark.skipif(not BROWSER, reason="no Chromium here")]
FRAME = """<!doctype html><iframe width="{width}" height="2000" srcdoc="{page}"></iframe><pre id="told"></pre><script>
onload = () => {{ const inner = document.querySelector("iframe").contentDocument;
  document.getElementById("told").textContent = inner.documentElement.scrollWidth + " " + inner.body.innerText.length }}
</script>"""


@pytest.mark.parametrize("width", [390, 1280, 1600])
def test_the_page_of_a_repository_fits(tmp_path: Path, width: int) -> None:
    missions = (mission(title="`a_very_long_name` may be unset in " + "deep/" * 30 + "file.py:61"),)
    asks = find_waiting(
        missions, lambda action, number: f"/opt/tools/bin/ralph {action} {number} --repo ../a/{'b' * 60}"
    )
    past = replace(RECALLED, state=replace(STATE, missions=missions))
    text = page(collect_report("harbour", past, (), Limits(), NOON, asks))
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width, page=html.escape(text)))
    command = [BROWSER, "--headless", "--no-sandbox", "--virtual-time-budget=5000", "--dump-dom", frame.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    told = re.search(r'<pre id="told">(\d+) (\d+)</pre>', shown)
    assert told and int(told[1]) <= width and int(told[2]) > 300


def test_a_run_is_watched_and_held_on_its_page(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "shop", {"a": "a"})
    run = LiveRun(repo / ".ralph", "run")
    with RunsServer(Git.open(repo)) as server, browsing(tmp_path / "profile") as tab:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
        tab.call("Page.navigate", url=server.address)
        tab.until("document.body?.innerText.includes('Nothing has run here yet')")
        run.tell(RunEvent("session", "[1/9] builder", 1, "builder", "r1", 0, (1, 3)))
        tab.until("document.title == 'run-1 running' && !!document.querySelector('[value=stop]')")
        assert tab.run("document.documentElement.scrollWidth <= 390")
        tab.run("document.querySelector('[name=say]').value = 'Keep <b>it</b> short'")
        run.tell(RunEvent("text", "<b id=bold>I look first.</b>", 1))
        tab.until("document.body.innerText.includes('<b id=bold>I look first.</b>')")  # nobody reloaded the page
        assert tab.run("document.querySelector('[name=say]').value") == "Keep <b>it</b> short"
        assert tab.run("document.getElementById('bold') === null")

        tab.run("document.querySelector('[name=say] + button').click()")
        tab.until("document.readyState == 'complete' && document.querySelector('[name=say]')?.value === ''")
        assert [said.text for said in Guide(repo / ".ralph").pending()] == ["Keep <b>it</b> short"]
        tab.run("window.old = true; document.querySelector('[value=pause]').click()")
        tab.until("!window.old && !!document.querySelector('[value=pause]')")
        assert run.current_order() == "pause"

        server.shutdown()
        server.server_close()
        tab.until("document.getElementById('gone')?.hidden === false")
