"""Seed 003's world as `ralph init --preset explorer` writes it, on a real PostgreSQL: its example cycle, and a bad day.

`make test-explorer VALIDATORINFO=DIR` runs it on validatorinfo's own schema and migrations.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.projects.detection import detect_project
from ralph_mission.cli.setup.choices import preset_choices, survey
from ralph_mission.cli.setup.settings import render_settings
from tests.adapters.database.conftest import postgres as postgres
from tests.explorer_world import BAD_DAY, ExplorerDatabase, beginnings, schema_text
from tests.integration.coding import settings
from tests.integration.example_cycle import MISSPELT, SILENCED, acted, project, ranked, sources, stand

pytestmark = pytest.mark.long  # whole cycles with an agent in them

DAY, AT_ONCE = timedelta(days=1), timedelta(minutes=1)
AZTEC = "Add Aztec governance voting page"
FIX, MINTSCAN = "Correct 2 misspellings in docs/apr.md", "rivals: Mintscan added a validator risk score"
SURGE = "Osmosis TVL surges 45% this week. Full metrics at validatorinfo.com"
FILES = {
    "prisma/schema.prisma": schema_text(),
    "README.md": "# ValidatorInfo\n\n[The site](https://validatorinfo.com)\n",
}
BY_HAND = """\
  web:
    - {{name: rivals, kind: feed, url: '{feed}/rivals', finding: feature}}
"""
"""What a person writes beside what the preset wrote."""


def _settings_of(aside: Path, feed: str) -> str:
    """What init writes, with a scripted agent in the place of Claude, and the lines of a person."""
    found = survey(FILES, FILES.__getitem__, "validatorinfo")
    text = render_settings(
        (), (), "auto", detect_project(list(FILES), FILES.__getitem__), preset_choices("explorer", found), found
    )
    (agent,) = re.findall(r"agent: \{.*\}", settings(aside))
    text = text.replace("agent: {kind: claude}", agent)
    return text.replace("observers:\n", f"observers:\n{BY_HAND.format(feed=feed)}", 1) + "work: {max_iterations: 2}\n"


def test_the_example_cycle_of_an_explorer_and_a_bad_day(tmp_path, monkeypatch, postgres):
    assert len(BY_HAND.splitlines()) <= 10
    with project(tmp_path, monkeypatch, _settings_of, FILES) as ours:
        rows = ExplorerDatabase(postgres, "explorer_cycle", ours.hub.now)
        rows.build()
        monkeypatch.setenv("DATABASE_URL", rows.url)
        ours.hub.person("olaf", "read").create_issue("Show slashed validators", "They are missing in the list.")
        ours.shop.wanted(AZTEC, "It should list proposals and votes.")
        report, _, _ = ours.cycle(AT_ONCE)
        assert stand(report) == {AZTEC: "PLANNED"}
        assert not [one for one in report.findings if one.title.partition(":")[0] in ("jailed", "apr", "price-feed")]

        ours.pushed(MISSPELT)
        ours.shop.says("write(f'src/aztec{call}.ts', 'export const rows = 1;\\n')", done=False)
        report, _, _ = ours.cycle(13 * DAY)
        assert stand(report) == {AZTEC: "EXECUTING", FIX: "IN_REVIEW"}

        # --- the example cycle: what a day brings in each of the four sources
        ours.hub.person("mara").review(ours.fix, "approved")
        ours.pushed(SILENCED)
        rows.tvl_rises()
        ours.told_by_rivals("Mintscan is five years old", "Mintscan added a validator risk score")
        report, _, _ = ours.cycle(DAY)
        then = {AZTEC: "EXECUTING", FIX: "COMPLETED", MINTSCAN: "DISCOVERED"}
        assert stand(report) == then, (sources(report), report.decisions)
        assert sources(report)["database"] == "ok"
        assert ranked(report) == ["feature", "content", "ts-ignore", "stale-issue"]
        assert {"ralph:mission", "ralph:research"} == set(ours.research.labels)
        assert "tvl: Osmosis went up by 45 %" in ours.under("### Cycle #3")

        ours.shop.says("write('src/aztec.ts', 'export const page = 1;\\n')")
        report, _, _ = ours.cycle(AT_ONCE)
        assert stand(report) == {AZTEC: "IN_REVIEW", MINTSCAN: "DISCOVERED"}
        assert [SURGE in texts for texts in ours.said] == [True] * 3

        # --- a bad day: five causes, each told once
        rows.bad_day(ours.hub.now + DAY)
        report, _, _ = ours.cycle(DAY)
        told = [one.title for one in report.findings if one.kind == "anomaly"]
        assert beginnings(told) == BAD_DAY
        assert acted(report)
