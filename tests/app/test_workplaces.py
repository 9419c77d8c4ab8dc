"""From the settings to sandboxes: which hosts and files an agent gets at, and how a sandbox moves to a clone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.sandbox.bwrap import Endpoint
from ralph_mission.adapters.sandbox.isolation import Found, Sandbox, describe_level
from ralph_mission.app import workplaces
from ralph_mission.config.reading import load
from ralph_mission.errors import UserError
from tests.helpers import git, make_repo

ENV, BWRAP = Found("env"), Found("bwrap")


@pytest.fixture
def here(tmp_path: Path) -> Git:
    return Git.open(make_repo(tmp_path / "repo"))


def test_at_env_nothing_is_sandboxed(here: Git) -> None:
    assert (
        workplaces.agent_sandbox(ENV, here, ("OPENAI_API_KEY",), "x")
        == workplaces.checks_sandbox(ENV, here)
        == Sandbox()
    )
    assert workplaces.writable_elsewhere(Sandbox(), here) == Sandbox()


def test_the_hosts_are_those_of_the_keys_that_the_agent_sees(here: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "of-nobody")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    seen = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
    assert workplaces.agent_sandbox(BWRAP, here, seen, "x").endpoints == (Endpoint("127.0.0.1", 8080),)
    assert workplaces.agent_sandbox(BWRAP, here, (), "x").endpoints == ()
    assert workplaces.checks_sandbox(BWRAP, here).endpoints == ()


def test_an_address_that_only_bwrap_could_not_offer_is_no_matter_elsewhere(
    here: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-nobody")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://model.example/v1")
    assert workplaces.agent_sandbox(ENV, here, ("OPENAI_API_KEY", "OPENAI_BASE_URL"), "x").level == "env"


def test_what_a_command_names_by_its_full_path_can_be_read_and_nothing_around_it(here: Git, tmp_path: Path) -> None:
    script = tmp_path / "node_modules" / "@some" / "agent" / "bin" / "agent.js"
    script.parent.mkdir(parents=True)
    plain = tmp_path / "agent.py"
    for place in (script, plain):
        place.touch()
    packages = workplaces.agent_sandbox(BWRAP, here, (), ("node", str(script), "--dir", str(tmp_path))).readable
    assert packages == (script, tmp_path / "node_modules")
    assert workplaces.agent_sandbox(BWRAP, here, (), f"python3 {plain} 'x y'").readable == (plain,)
    assert workplaces.agent_sandbox(BWRAP, here, (), f"python3 {plain} 'unclosed").readable == ()


def test_a_sandbox_moves_to_a_clone_and_leaves_the_checkout_behind(here: Git, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(here.work_tree), str(clone))
    named = tmp_path / "agent.py"
    named.touch()
    moved = workplaces.writable_elsewhere(workplaces.agent_sandbox(BWRAP, here, (), f"sh {named}"), Git.open(clone))
    assert moved.writable == (clone, clone / ".git") and moved.readable == (named,) and moved.level == "bwrap"


def test_checks_of_a_change_are_sandboxed_where_an_agent_is_named(here: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(workplaces, "agent_level", lambda settings: asked.append("level") or BWRAP)
    assert workplaces.patch_sandbox(load("hands: {verify: [x]}\n"), here) == Sandbox() and asked == []
    assert workplaces.patch_sandbox(load("hands: {agent: {kind: claude}}\n"), here).level == "bwrap"


def test_the_owners_own_command_goes_wherever_the_agent_and_its_checks_go(here: Git, tmp_path: Path) -> None:
    wrapper, clone = tmp_path / "wrapper", tmp_path / "clone"
    wrapper.touch()
    git(tmp_path, "clone", "-q", str(here.work_tree), str(clone))
    settings = load(f"hands: {{agent: {{kind: claude, sandbox: env, wrap: '{wrapper} --quiet'}}}}\n")
    found = workplaces.agent_level(settings, {})
    assert (found.level, found.wrap) == ("env", (str(wrapper), "--quiet")) and str(wrapper) in describe_level(found)
    for level in (found, replace(found, level="bwrap")):
        made = (workplaces.agent_sandbox(level, here, (), "x"), workplaces.checks_sandbox(level, here))
        assert {
            sandbox.wrap for sandbox in (*made, *(workplaces.writable_elsewhere(one, Git.open(clone)) for one in made))
        } == {found.wrap}
        assert level.level == "env" or all(wrapper in sandbox.readable for sandbox in made)
    with pytest.raises(UserError, match=r"hands\.agent\.wrap cannot be read"):
        workplaces.agent_level(load('hands: {agent: {sandbox: env, wrap: "it\'s"}}\n'), {})


def test_a_level_that_is_gone_names_what_to_write_instead() -> None:
    with pytest.raises(UserError) as told:
        load("hands: {agent: {sandbox: uid}}\n")
    assert "hands.agent.sandbox is 'uid'" in told.value.what and "sandbox: bwrap" in told.value.next_step
