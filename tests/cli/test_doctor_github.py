"""`ralph doctor` on GitHub: each thing that would stop it is found, said with its mend, and only then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.cli.doctor.github import asking, github
from ralph_mission.cli.doctor.line import mend
from ralph_mission.errors import UserError
from tests.adapters.forges.github_world import GitHubWorld
from tests.cli.doctor_place import Place, statuses
from tests.helpers import cli_here


def test_a_sound_repository_has_nothing_wrong(here: Place) -> None:
    checks = here.checks()
    assert statuses(checks) == {}
    assert checks["token"].found == "the workflow's or an app's own, as github-actions[bot]"


def test_it_only_reads_and_asks_little(here: Place) -> None:
    here.checks()
    assert {request.method for request in here.fake.journal} == {"GET"}
    assert len(here.asked) <= 4


def test_a_network_that_is_down_is_the_only_line(here: Place) -> None:
    def down(path: str) -> tuple[int, Any]:
        raise UserError("GitHub cannot be reached", "try again", who="network")

    assert [check.found for check in github(replace(here.hub(), get=down))] == ["GitHub cannot be reached"]


def test_one_check_that_cannot_be_made_says_so_and_the_others_go_on(here: Place) -> None:
    def limping(path: str) -> tuple[int, Any]:
        if path.startswith("/labels/"):
            raise UserError("GitHub answers 502", "try again", who="forge")
        return here.get(path)

    checks = {check.name: check for check in github(replace(here.hub(), get=limping))}
    assert checks["label ralph-ready"].found == "could not be checked: GitHub answers 502"
    assert checks["workflow"].status == "ok"


def test_the_forge_s_own_requests_give_the_same_lines(world: GitHubWorld, here: Place) -> None:
    ask: Callable[[str], tuple[int, Any]] = asking(world.forge.api)
    assert ask("/branches/nowhere") == (404, None)
    assert ask("/actions/permissions/workflow") == (403, None)
    assert github(replace(here.hub(), get=ask)) == github(here.hub())


def environment(world: GitHubWorld) -> dict[str, str]:
    """What a job on a runner has."""
    return {
        "GITHUB_TOKEN": world.token,
        "GITHUB_REPOSITORY": world.fake.repository,
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": world.fake.api_url,
        "GITHUB_SERVER_URL": world.fake.url,
        "RUNNER_ENVIRONMENT": "self-hosted",
    }


def test_the_command_says_all_of_it(world: GitHubWorld) -> None:
    told = cli_here("doctor", "--json", repo=world.clone, env=environment(world))
    assert told.code == 1
    wrong = {check["name"] for check in told.json["checks"] if check["status"] == "wrong"}
    assert wrong - {"isolation"} == {"runner", "waking"}, "what a machine offers agents is not GitHub's"
    assert {"forge", "token", "workflow", "memory"} <= {check["name"] for check in told.json["checks"]}
    assert {request.method for request in world.fake.journal if request.transport == "rest"} == {"GET"}
    assert world.token not in told.out + told.err


# --- when GitHub or the network fails ---------------------------------------------------

TODAY = "wait some minutes, then: ralph doctor (https://www.githubstatus.com tells of outages)"


def test_a_fault_of_github_s_says_what_to_do_now_and_not_what_a_cycle_would(world: GitHubWorld, here: Place) -> None:
    world.fake.fail("500", ("GET", "/labels/*"), times=9)
    checks = {check.name: check for check in github(replace(here.hub(), get=asking(world.forge.api)))}
    assert checks["label ralph-ready"].found.startswith("could not be checked: GitHub answers 500")
    assert checks["label ralph-ready"].mend == TODAY
    world.fake.fail("500", ("GET", "*"), times=9)
    (check,) = github(replace(here.hub(), get=asking(world.connected().api)))
    assert (check.status, check.mend) == ("wrong", TODAY)


def test_a_fault_before_the_first_check_says_so_too(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.forges.github.api.BACK_OFF", ())  # nobody waits
    world.fake.fail("500", ("POST", "/graphql"), times=9)
    world.fake.fail("500", ("GET", "/user"), times=9)
    told = cli_here("doctor", "--json", repo=world.clone, env=environment(world))
    wrong = [check for check in told.json["checks"] if check["status"] == "wrong"]
    assert wrong and all("next wake" not in check["mend"] for check in wrong)
    assert TODAY in {check["mend"] for check in wrong}


@pytest.mark.parametrize(
    ("who", "said", "mended"),
    [
        ("forge", "nothing was lost; the next wake tries again", TODAY),
        ("forge", "look at the API's address; the next wake tries again", f"look at the API's address; {TODAY}"),
        (
            "network",
            "nothing was lost; the next wake tries again",
            "look at the network, a proxy and GITHUB_API_URL, then: ralph doctor",
        ),
        ("forge", "try again after 12:00 UTC", "try again after 12:00 UTC"),
        ("you", "set GITHUB_TOKEN to a valid one", "set GITHUB_TOKEN to a valid one"),
    ],
)
def test_what_a_person_can_do_stays_and_waiting_for_a_wake_goes(who: str, said: str, mended: str) -> None:
    assert mend(UserError("x", said, who=who)) == mended
