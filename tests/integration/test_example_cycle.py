"""Seed 003's example cycle, on a GitHub, with a database, a feed, an agent and three networks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.integration.example_cycle import MISSPELT, SILENCED, acted, held, project, ranked, sources, stand

pytestmark = pytest.mark.long  # whole cycles with an agent in them

DAY, AT_ONCE = timedelta(days=1), timedelta(minutes=1)
AZTEC = "Add Aztec governance voting page"
SURGE = "Osmosis TVL surges 45% this week. Full metrics at validatorinfo.com"
MERGED = "Merged after 2 cycles: one more misspelling is gone."
FIX, MINTSCAN = "Correct 2 misspellings in docs/apr.md", "rivals: Mintscan added a validator risk score"


def test_an_example_cycle(tmp_path, monkeypatch):
    with project(tmp_path, monkeypatch) as ours:
        # Two weeks ago somebody asked for something that nobody took up, and mara wanted a page. The first look at all
        # sources remembers what is there already and tells nothing; the page becomes a mission.
        ours.locked("Osmosis", 100.0, ours.hub.now)
        ours.hub.person("olaf", "read").create_issue("Show slashed validators", "They are missing in the list.")
        ours.shop.wanted(AZTEC, "It should list proposals and votes.")
        assert stand(ours.cycle(AT_ONCE)[0]) == {AZTEC: "PLANNED"}

        # --- the cycle before: a small fix goes into a pull, and an agent begins with the page
        ours.pushed(MISSPELT)
        ours.shop.says("write(f'src/aztec{call}.ts', 'export const rows = 1;\\n')", done=False)
        report, _, _ = ours.cycle(13 * DAY)
        assert stand(report) == {AZTEC: "EXECUTING", FIX: "IN_REVIEW"}

        # --- what a day brings: a yes, and something new in each of the four sources
        ours.hub.person("mara").review(ours.fix, "approved")
        ours.pushed(SILENCED)
        ours.locked("Osmosis", 145.0, ours.hub.now)
        ours.told_by_rivals("Mintscan is five years old", "Mintscan added a validator risk score")
        wakes = len(ours.hub.fake.dispatches)
        report, cycle_summary, summary = ours.cycle(DAY)

        # CHECK ACTIVE MISSIONS: two of three. What mara approved is merged at that commit; the agent goes on.
        then = {AZTEC: "EXECUTING", FIX: "COMPLETED", MINTSCAN: "DISCOVERED"}
        assert stand(report) == then, (sources(report), report.decisions)
        assert ours.hub.merged(ours.fix)
        assert len(ours.shop.prompts) == 4

        # OBSERVE: one slot is free, so everything is looked at.
        assert {"code", "database", "web.rivals", "forge"} <= sources(report).keys()
        assert set(sources(report).values()) == {"ok"}

        # THINK: what rivals have comes first, and the report says why.
        assert ranked(report) == ["feature", "content", "ts-ignore", "stale-issue"]
        (why,) = (line for line in cycle_summary.why if line.startswith(MINTSCAN))
        assert "impact 4 of 10" in why
        assert why.endswith("number 1 of 4")

        # ACT: three actions are as many as a cycle may take, steps of missions included. So the data post waits
        # for the next cycle, and the announcement has to: the merge is no fact before memory has it.
        assert acted(report) == ["answer", "finish", "open-proposal", "monitor"]
        assert held(report) == [("content", ("action-cap",))]
        assert set(ours.research.labels) == {"ralph:mission", "ralph:research"}
        assert "Mintscan added a validator risk score" in ours.research.body
        assert ours.said == [[], [], []]

        # REFLECT: memory has all of it, and the next cycle is asked for at once, since work is ready.
        assert "**Status:** EXECUTING" in ours.under(f"### Mission #1: {AZTEC}")
        assert "**Status:** DISCOVERED" in ours.under(f"### Mission #3: {MINTSCAN}")
        assert "- Cycles to complete: 2\n- Outcome: merged" in ours.under("## Completed Missions (last 10)")
        assert "tvl: Osmosis went up by 45 %" in ours.under("### Cycle #3")
        assert "- **Urgency:** medium\n- **Next cycle:** 1h" in ours.under("### Cycle #3")
        assert "(spelling): people accepted 1 of 1" in ours.under("## Learnings")
        assert "due now" in summary.splitlines()[-1]
        assert [wake.event_type for wake in ours.hub.fake.dispatches[wakes:]] == ["ralph-loop-trigger"]

        # --- the cycle that was asked for: the page is finished, and all three networks are told, once
        ours.shop.says("write('src/aztec.ts', 'export const page = 1;\\n')")
        report, _, summary = ours.cycle(AT_ONCE)
        assert stand(report) == {AZTEC: "IN_REVIEW", MINTSCAN: "DISCOVERED"}
        assert acted(report) == ["open-fix", "publish", "publish"]
        assert ours.said == [[SURGE, MERGED]] * 3
        assert SURGE in summary

        # Then nothing is left, and nobody is told anything again.
        report, _, summary = ours.cycle(AT_ONCE)
        assert (acted(report), report.urgency.value, ours.said) == ([], "low", [[SURGE, MERGED]] * 3)
        assert "Next cycle: in 6 h" in summary.splitlines()[-1]
