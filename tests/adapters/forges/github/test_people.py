"""Who somebody is on GitHub, and who may say yes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.mission.model.forge import Actor
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import merge_pull, open_issue, pulled


def test_installation_and_person_know_themselves(world: GitHubWorld) -> None:
    assert world.forge.identity() == Actor(41898282, "github-actions[bot]", is_bot=True)
    person = world.connected(world.fake.token("robin"))
    assert person.identity() == world.human("robin").actor
    assert world.fake.count("graphql") == 1


def test_account_of_a_person_does_all_that_the_bot_does(world: GitHubWorld) -> None:
    world.token = world.fake.token("robin")
    world.forge = world.connected()
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    assert world.forge.pull(opened.number).author == world.human("robin").actor
    merge = replace(merge_pull(opened), approver=mara.id, base="main")
    assert world.forge.perform(merge).status == "done"
    number = world.forge.perform(open_issue("c3" * 8)).number
    assert world.forge.find(open_issue("c3" * 8)) and world.forge.has_our_work()
    assert [issue.number for issue in world.forge.issues()] == [number]


def test_token_of_an_app_without_its_usual_prefix_has_a_viewer(world: GitHubWorld) -> None:
    token = world.fake.token()
    world.fake.world.tokens["v1.abc"] = world.fake.world.tokens.pop(token)
    assert world.connected("v1.abc").identity().login == "github-actions[bot]"


@pytest.mark.parametrize(
    ("level", "may"),
    [("none", False), ("read", False), ("triage", False), ("write", True), ("maintain", True), ("admin", True)],
)
def test_who_may_write_may_approve(world: GitHubWorld, level: str, may: bool) -> None:
    person = world.fake.person("kim", level)
    assert world.forge.may_approve(person.actor) is may


@pytest.mark.attack(14)
def test_bot_that_may_write_may_not_approve(world: GitHubWorld) -> None:
    bot = world.fake.bot("renovate[bot]")
    bot.set_permission("write")
    assert not world.forge.may_approve(bot.actor)


@pytest.mark.attack(14)
def test_account_that_github_itself_calls_a_bot_may_not_approve(world: GitHubWorld) -> None:
    mara = world.human("mara")

    def turned(request: Any, response: Any) -> None:
        if request.below.endswith("/permission"):
            response.content = json.dumps(
                response.payload | {"user": {"id": mara.id, "login": "m", "type": "Bot"}}
            ).encode()

    world.fake.after(turned)
    assert not world.forge.may_approve(mara.actor)


def test_own_account_of_a_person_may_not_approve(world: GitHubWorld) -> None:
    robin = world.fake.person("robin", "admin")
    assert not world.connected(world.fake.token("robin")).may_approve(robin.actor)


@pytest.mark.attack(13)
def test_login_taken_over_by_somebody_else_gives_no_authority(world: GitHubWorld) -> None:
    mara = world.human("mara")
    before = mara.actor
    mara.rename("mara-quint")
    assert not world.forge.may_approve(before)
    impostor = world.fake.person("mara", "admin")
    assert not world.connected().may_approve(before)
    assert world.connected().may_approve(impostor.actor)
    assert world.connected().may_approve(mara.actor)


@pytest.mark.attack(13)
@pytest.mark.parametrize("login", ["m\u0430ra", "mara\u200b", "../mara", "mara%2F", "mara?x=1"])
def test_login_that_only_looks_alike_gives_no_authority(world: GitHubWorld, login: str) -> None:
    mara = world.human("mara")
    world.fake.person(login.replace("/", "").replace("?", ""), "none")
    world.fake.world.private = True
    assert not world.forge.may_approve(Actor(mara.id + 1, login))
    world.fake.unknown.clear()  # `../mara` is no path that GitHub knows
