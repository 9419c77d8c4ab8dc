"""`ralph doctor` says in one line whether `ralph work` could take an issue, and else what is lacking first."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.cli.doctor.agents import work
from ralph_mission.cli.doctor.line import DoctorLine
from ralph_mission.config.reading import load
from ralph_mission.config.settings import Config
from tests.helpers import cli_here, make_repo

CLAUDE = load("hands: {agent: {kind: claude}}\n")
FINE = (DoctorLine("forge", "ok", "local"), DoctorLine("agent claude", "ok", "2.1.0, key ANTHROPIC_API_KEY"))


def test_with_an_agent_that_can_play_it_is_ready():
    said = work(CLAUDE, FINE)
    assert (said.status, said.mend) == ("ok", "") and said.found.startswith("ready: claude takes issues")


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (DoctorLine("agent claude", "wrong", "2.1.0, no key", "set ANTHROPIC_API_KEY"), "agent claude: 2.1.0, no key"),
        (DoctorLine("issues", "wrong", "they are switched off", "Settings"), "issues: they are switched off"),
        (DoctorLine("label ralph-ready", "note", "nobody can set it", "gh label create"), "label ralph-ready: "),
        (DoctorLine("isolation", "wrong", "bwrap cannot be had", "install bubblewrap"), "isolation: bwrap cannot"),
    ],
)
def test_what_is_lacking_is_named_with_its_mend(check: DoctorLine, found: str):
    said = work(CLAUDE, (check, *FINE[:1]))
    assert said.status == "note" and said.found.startswith(f"not ready: {found}") and said.mend == check.mend


def test_what_it_does_not_need_keeps_it_from_nothing():
    others = (DoctorLine("agent codex", "wrong", "not installed", "x"), DoctorLine("token", "note", "a person's", "y"))
    assert work(CLAUDE, (*FINE, *others)).status == "ok"


def test_without_an_agent_it_says_how_to_name_one():
    said = work(Config(), FINE)
    assert "none is named" in said.found and "hands: {agent:" in said.mend


def test_a_program_that_is_not_there_is_named(tmp_path: Path):
    config = load("hands: {agent: {kind: command, run: 'no-such-program-here --go'}}\n")
    assert "no-such-program-here is not installed" in work(config, FINE).found
    assert work(load("hands: {agent: {kind: command, run: 'sh -c true'}}\n"), FINE).status == "ok"


def test_the_doctor_says_it(tmp_path: Path):
    repo = make_repo(tmp_path / "repo", {"ralph.yml": "hands: {agent: {kind: command, run: 'sh agent.sh'}}\n"})
    told = cli_here("doctor", "--json", repo=repo).json["checks"]
    assert [check["status"] for check in told if check["name"] == "ralph work"] == ["ok"]
