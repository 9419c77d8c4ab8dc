"""Our pages of HTML in a real browser: at every width they fit, so that nobody scrolls sideways, and all is shown."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.report.report_page import page
from ralph_mission.adapters.report.repository_report import collect_report
from ralph_mission.mission.lifecycle.waiting import find_waiting
from ralph_mission.mission.model.mission import Limits
from tests.adapters.report.samples import NOON, RECALLED, STATE, mission

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""
pytestmark = [pytest.mark.real, pytest.mark.skipif(not BROWSER, reason="no Chromium here")]
FRAME = """<!doctype html><iframe width="{width}" height="2000" srcdoc="{page}"></iframe><pre id="told"></pre><script>
onload = () => {{ const inner = document.querySelector("iframe").contentDocument;
  document.getElementById("told").textContent = inner.documentElement.scrollWidth + " " + inner.body.innerText.length }}
</script>"""


@pytest.mark.parametrize("width", [390, 1280, 1600])
def test_the_page_of_a_repository_fits(tmp_path: Path, width: int) -> None:
    missions = (mission(title="`a_very_long_name` may be unset in " + "deep/" * 30 + "file.py:61"),)
    asks = find_waiting(missions, lambda deed, number: f"/opt/tools/bin/ralph {deed} {number} --repo ../a/{'b' * 60}")
    past = replace(RECALLED, state=replace(STATE, missions=missions))
    text = page(collect_report("harbour", past, (), Limits(), NOON, asks))
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width, page=html.escape(text)))
    command = [BROWSER, "--headless", "--no-sandbox", "--virtual-time-budget=5000", "--dump-dom", frame.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    told = re.search(r'<pre id="told">(\d+) (\d+)</pre>', shown)
    assert told and int(told[1]) <= width and int(told[2]) > 300
