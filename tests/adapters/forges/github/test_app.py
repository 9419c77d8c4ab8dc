"""A GitHub App signs in by its key, and nobody renews a token by hand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from ralph_mission.adapters.forges.github import GitHubForge, connect
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import RepositoryPlace, place
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command
from ralph_mission.safety.secrets import find_secrets
from tests.adapters.forges.github_world import GitHubWorld, kept_file
from tests.contract.forge_world import open_issue

TOKENS = "/app/installations/*/access_tokens"


def settings(world: GitHubWorld, **known: Any) -> dict[str, str]:
    app, key = world.fake.app("slackwater-ralph[bot]", **known)
    return {
        "GITHUB_REPOSITORY": world.fake.repository,
        "GITHUB_API_URL": world.fake.api_url,
        "GITHUB_SERVER_URL": world.fake.url,
        "GITHUB_TOKEN": world.token,
        "GITHUB_APP_ID": app.id,
        "GITHUB_APP_PRIVATE_KEY": key,
    }


def connected(world: GitHubWorld, environ: Mapping[str, str]) -> GitHubForge:
    return connect(Git.open(world.clone), place(environ), now=lambda: world.fake.clock.now, pace=0)


def made(world: GitHubWorld) -> int:
    return sum(request.method == "POST" and request.path.endswith("/access_tokens") for request in world.fake.journal)


def test_an_app_acts_as_its_bot_by_rest_graphql_and_git_with_one_token(world: GitHubWorld) -> None:
    forge = connected(world, settings(world))
    number = forge.perform(open_issue("a1" * 8)).number
    assert forge.identity().login == "slackwater-ralph[bot]"
    assert number and world.fake.issue(number).author.login == "slackwater-ralph[bot]"
    head = world.fake.branch("main")
    assert forge.remote.push("ralph/x", head, "") == head
    assert made(world) == 1 and world.fake.count(method="GET", below="/installation") == 1


def test_one_process_keeps_one_token_for_all_its_cycles(world: GitHubWorld) -> None:
    environ = settings(world)
    for _ in range(3):
        connected(world, environ).issues()
    assert made(world) == 1


def test_a_token_that_is_over_is_renewed_before_the_next_request(world: GitHubWorld) -> None:
    forge = connected(world, settings(world, lives=timedelta(seconds=5)))
    number = forge.perform(open_issue("a2" * 8)).number
    head = world.fake.branch("main")
    assert number and forge.remote.push("ralph/y", head, "") == head
    assert made(world) > 2 and world.fake.count(status=401) == 0


def test_a_mutation_whose_token_cannot_be_renewed_was_not_sent(world: GitHubWorld) -> None:
    environ = settings(world, lives=timedelta(seconds=5))
    forge = connected(world, environ)
    forge.identity()
    world.fake.world.apps[environ["GITHUB_APP_ID"]].suspended = True
    receipt = forge.perform(open_issue("a3" * 8))
    assert receipt.status == "failed" and "suspended" in receipt.detail
    assert not world.fake.threads


def test_a_failing_server_is_asked_again_for_a_token(world: GitHubWorld) -> None:
    world.fake.fail("502_not_applied", ("POST", TOKENS))
    assert connected(world, settings(world)).identity() and made(world) == 2


@pytest.mark.parametrize(
    ("known", "changed", "what", "who"),
    [
        ({"installed": False}, {}, "is not installed in harbour/slackwater", "you"),
        ({"suspended": True}, {}, "gives the app", "you"),
        ({}, {"GITHUB_APP_ID": "1"}, "does not accept the key of the app 1", "you"),
        ({}, {"GITHUB_APP_PRIVATE_KEY": "nonsense"}, "is not a private key", "you"),
        ({}, {"GITHUB_APP_PRIVATE_KEY": ""}, "GITHUB_APP_PRIVATE_KEY is not set", "you"),
        ({}, {"GITHUB_APP_ID": ""}, "GITHUB_APP_ID is not set", "you"),
    ],
)
def test_what_is_wrong_with_an_app_is_one_line_without_its_key(
    world: GitHubWorld, known: dict[str, Any], changed: dict[str, str], what: str, who: str
) -> None:
    environ = settings(world, **known)
    with pytest.raises(UserError) as caught:
        connected(world, environ | changed).issues()
    assert what in caught.value.what and caught.value.who == who
    assert "PRIVATE KEY-" not in str(caught.value) and "nonsense" not in str(caught.value)


def test_the_extra_that_is_missing_is_named_with_its_command(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = settings(world)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UserError, match="a GitHub App needs cryptography") as caught:
        connected(world, environ).issues()
    assert caught.value.next_step == install_command("app")


def test_a_key_on_one_line_is_read_as_well(world: GitHubWorld) -> None:
    environ = settings(world)
    environ["GITHUB_APP_PRIVATE_KEY"] = environ["GITHUB_APP_PRIVATE_KEY"].replace("\n", "\\n")
    assert connected(world, environ).identity()


def test_neither_key_nor_token_is_kept_or_shown(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = settings(world)
    monkeypatch.setattr(os, "environ", environ)
    key = environ["GITHUB_APP_PRIVATE_KEY"]
    where: RepositoryPlace = place(environ)
    forge = connected(world, environ)
    forge.perform(open_issue("a4" * 8))
    forge.close()
    lines = key.splitlines()[1:-1]
    shown = repr(where) + repr(forge.remote) + json.dumps(kept_file(world).read_text())
    assert not [line for line in lines if line in shown] and "ghs_" not in shown
    for given in (key, key.replace("\n", "\\n")):
        environ["GITHUB_APP_PRIVATE_KEY"] = given
        known = environment_secrets()
        assert all(find_secrets(f"it printed {line} there", known) for line in lines[:-1])


def test_a_token_that_github_refuses_is_given_up_and_the_effect_is_tried_with_another(world: GitHubWorld) -> None:
    forge = connected(world, settings(world))
    forge.identity()
    world.fake.fail("401", ("POST", "/issues"))
    refused = forge.perform(open_issue("a4" * 8))
    assert refused.not_attempted and "does not accept the token now" in refused.detail
    assert forge.perform(open_issue("a4" * 8)).status == "done" and made(world) == 2
