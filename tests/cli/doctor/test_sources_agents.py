"""`ralph doctor` says which agents could play here, and how far they are really kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.agents.clients import CLIENTS, Presence
from ralph_mission.adapters.sandbox import bwrap
from ralph_mission.adapters.sandbox.bwrap import INSTALL, MISSING, Attempt
from ralph_mission.cli.doctor import DoctorLine
from ralph_mission.cli.doctor import sources as checks_agents
from ralph_mission.cli.doctor.sources import agents, isolation, line
from ralph_mission.config.reading import load
from ralph_mission.config.settings import Config


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Attempt]]:
    """What comes of trying bubblewrap on this machine, as a test has it."""
    comes = [Attempt()]
    monkeypatch.setattr(bwrap, "attempt", lambda: comes[0])
    yield comes


def choosing(said: str) -> Config:
    return load(f"hands: {{agent: {{{said}}}}}\n")


def test_every_agent_has_a_line_and_isolation_one(machine: list[Attempt], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_agents.clients, "presence", lambda client, *_, **__: Presence(client.name))
    names = [check.name for check in agents(Config(), {})]
    assert names == [*(f"agent {name}" for name in CLIENTS), "isolation"]


def test_a_program_is_asked_for_its_version_without_our_environment(
    machine: list[Attempt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "codex"
    program.write_text('#!/bin/sh\necho "codex-cli 0.169.0 ${OPENAI_API_KEY:-none}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    found = {check.name: check for check in agents(Config(), {"OPENAI_API_KEY": "secret"})}
    assert found["agent codex"] == DoctorLine("agent codex", "ok", "codex-cli 0.169.0 none, key OPENAI_API_KEY")
    assert found["agent gemini"].found == "not installed, and not asked for"


@pytest.mark.parametrize(
    ("found", "wanted", "status", "words"),
    [
        (Presence("codex", "0.1", "OPENAI_API_KEY", ("OPENAI_API_KEY",)), ("codex",), "ok", "0.1, key OPENAI_API_KEY"),
        (Presence("codex", "0.1", "", ("OPENAI_API_KEY",)), ("codex",), "wrong", "0.1, no key"),
        (Presence("codex", "0.1", "", ("OPENAI_API_KEY",)), ("claude", "codex"), "note", "0.1, no key"),
        (Presence("codex", "0.1", "", ("OPENAI_API_KEY",)), (), "ok", "0.1, no key"),
        (Presence("codex"), ("codex",), "wrong", "not installed"),
        (Presence("codex"), ("claude", "codex"), "note", "not installed"),
        (Presence("codex"), (), "ok", "not installed"),
    ],
)
def test_what_is_lacking_is_wrong_for_the_agent_that_is_asked_for(
    found: Presence, wanted: tuple[str, ...], status: str, words: str
) -> None:
    said = line(found, wanted)
    assert said.status == status and said.found.startswith(words)
    assert bool(said.hint) == (status != "ok")


def test_a_login_that_the_asked_for_level_hides_is_no_way_in() -> None:
    found = Presence("claude", "2.1", "", ("ANTHROPIC_API_KEY",), "", "login in /home/x/.claude", "run it")
    assert line(found, ("claude",), hides_login=True).status == "wrong"
    assert line(found, ("claude",), hides_login=True).hint == "run it, or take sandbox: bwrap out of ralph.yml"
    assert line(found, ("claude",)).status == line(found, (), hides_login=True).status == "ok"


def test_whoever_lacks_an_agent_is_told_what_brings_it() -> None:
    assert all(client.install for client in CLIENTS.values())
    found = Presence("codex", install=CLIENTS["codex"].install)
    assert line(found, ("codex",)).hint == "npm install --global @openai/codex"


@pytest.mark.parametrize(("said", "found"), [("{folder}/mine", "mine 7, no key"), ("'unclosed", "not installed")])
def test_the_program_that_the_settings_name_is_the_one_that_is_asked(
    machine: list[Attempt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, found: str
) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\necho mine 7\n")
    (tmp_path / "mine").chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    settings = choosing(f'kind: codex, run: "{said.format(folder=tmp_path)}"')
    checks = {check.name: check for check in agents(settings, {})}
    assert (checks["agent codex"].status, checks["agent codex"].found.partition(",")[0]) == (
        "wrong",
        found.partition(",")[0],
    )


def test_an_agent_that_nobody_knows_is_wrong(machine: list[Attempt], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_agents.clients, "presence", lambda client, *_, **__: Presence(client.name))
    wrong = [check for check in agents(choosing("kind: cladue"), {}) if check.status == "wrong"]
    assert [check.name for check in wrong] == ["agent cladue"] and "claude" in wrong[0].hint


# --- isolation -----------------------------------------------------------------------


def test_what_is_asked_for_and_there_is_in_force(machine: list[Attempt]) -> None:
    said = isolation(choosing("kind: claude, sandbox: bwrap"), {})
    assert said.status == "ok" and said.found.startswith("bwrap: ") and "model host only" in said.found


def test_an_agent_that_has_only_a_login_runs_at_the_level_that_sees_it(machine: list[Attempt]) -> None:
    logged_in = Presence("claude", "2.1", login="login in /home/x/.claude", token="run `claude setup-token`")
    said = isolation(choosing("kind: claude"), {}, logged_in)
    assert (said.status, said.hint) == ("note", "for bwrap: run `claude setup-token`")
    assert said.found.startswith("env: ") and said.found.endswith("claude has only your login, which bwrap hides")
    for settings, agent in (
        ("kind: claude, sandbox: bwrap", logged_in),
        ("kind: claude", Presence("claude", "2.1", "ANTHROPIC_API_KEY", login="login in /home/x/.claude")),
    ):
        assert isolation(choosing(settings), {}, agent).found.startswith("bwrap: ")


def test_what_is_asked_for_and_missing_is_wrong(machine: list[Attempt]) -> None:
    machine[0] = Attempt(MISSING)
    said = isolation(choosing("kind: claude, sandbox: bwrap"), {})
    assert said.status == "wrong" and "bwrap is not available" in said.found and INSTALL in said.hint


def test_where_nothing_is_asked_for_bwrap_is_in_force(machine: list[Attempt]) -> None:
    for environ in ({}, {"GITHUB_ACTIONS": "true"}):
        said = isolation(Config(), environ)
        assert (said.status, said.found.split(":")[0]) == ("ok", "bwrap")


def test_less_than_could_be_had_is_a_note(machine: list[Attempt]) -> None:
    said = isolation(choosing("kind: claude, sandbox: env"), {"GITHUB_ACTIONS": "true"})
    assert (said.status, said.found.split(":")[0]) == ("note", "env") and "hands.agent.sandbox" in said.hint
    wrapped = isolation(choosing("kind: claude, sandbox: env, wrap: srt"), {})
    assert wrapped.status == "ok" and "srt" in wrapped.found


def test_where_bwrap_cannot_be_had_that_is_a_note_with_what_brings_it(machine: list[Attempt]) -> None:
    machine[0] = Attempt(MISSING)
    said = isolation(Config(), {})
    assert (said.status, said.hint) == ("note", INSTALL) and MISSING in said.found


def test_on_github_nothing_at_all_is_wrong_until_an_owner_accepts_it(machine: list[Attempt]) -> None:
    machine[0] = Attempt(MISSING)
    github = {"GITHUB_ACTIONS": "true"}
    said = isolation(Config(), github)
    assert said.status == "wrong" and "sandbox: env" in said.hint
    accepted = isolation(choosing("kind: claude, sandbox: env"), github)
    assert (accepted.status, accepted.found.split(":")[0]) == ("ok", "env")
