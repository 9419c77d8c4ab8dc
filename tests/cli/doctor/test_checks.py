"""`ralph doctor` on the workflows in which agents act, and on what starts a review."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.wakers import WakeFacts
from ralph_mission.cli.doctor import DoctorLine, hint_of
from ralph_mission.cli.doctor.github import asking, far_off, github, parked_ahead, present, reviewing, wakes, waking
from ralph_mission.cli.doctor.sources import work
from ralph_mission.cli.setup.files import PLACES, ActionReference, render_workflow
from ralph_mission.config.reading import load
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.mission import Action, Mission, Status, Tier
from tests.adapters.forges.github_world import GitHubWorld
from tests.cli.doctor_place import WORKFLOW, Place, statuses
from tests.helpers import NOON, cli_here, make_repo

JOB = "github-actions[bot]"


def written(folder: Path, mode: str) -> Path:
    """A checkout with the workflow of a mode as `init` writes it."""
    text = render_workflow(mode, ActionReference("mara/ralph", "a" * 40), ("self-hosted", "gpu"))
    (folder / PLACES[mode]).parent.mkdir(parents=True, exist_ok=True)
    (folder / PLACES[mode]).write_text(text)
    return folder


@pytest.mark.parametrize("mode", ["work", "review", "publish"])
def test_a_self_hosted_runner_for_agents_of_a_public_repository_is_wrong(
    here: Place, tmp_path: Path, mode: str
) -> None:
    agents = present(written(tmp_path, mode))
    checks = here.checks(workflow=WORKFLOW, agents=agents)
    assert "the workflow asks for a self-hosted one, and the repository is public" in checks["runner"].found
    here.changes = {"private": True}
    assert "runner" not in here.checks(workflow=WORKFLOW, agents=agents)


def test_a_workflow_that_was_not_pushed_or_is_switched_off_is_found(here: Place, tmp_path: Path) -> None:
    agents = present(written(tmp_path, "review"))
    here.fake.workflow(".github/workflows/ralph-loop.yml")
    assert here.checks(agents=agents)["workflow"].found == "the default branch has no ralph-review.yml"
    here.fake.workflow(".github/workflows/ralph-review.yml", state="disabled_fork")
    assert here.checks(agents=agents)["workflow"].found.startswith("ralph-review.yml: GitHub switches")
    here.fake.workflow(".github/workflows/ralph-review.yml")
    assert here.checks(agents=agents)["workflow"].status == "ok"


@pytest.mark.parametrize(("account", "found"), [(JOB, "by a dispatch"), ("ralph-app[bot]", "by GitHub")])
def test_what_starts_a_review_is_named(tmp_path: Path, account: str, found: str) -> None:
    (check,) = reviewing(account, written(tmp_path, "review"))
    assert (check.name, check.status, found in check.found) == ("review", "ok", True), check


def test_without_a_workflow_people_review_alone(tmp_path: Path) -> None:
    (check,) = reviewing(JOB, tmp_path)
    assert (check.status, check.found) == ("ok", "by people alone; ralph init --review has an agent look first")


# --- `ralph doctor` on GitHub: each thing that would stop it is found, told with what helps, and only then. ---


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
    assert ask("//user") == (403, None)
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


@pytest.mark.parametrize("kind", ["auto", "local"])
def test_a_token_and_a_repository_in_the_environment_have_github_asked(world: GitHubWorld, kind: str) -> None:
    (world.clone / "ralph.yml").write_text(f"forge: {{kind: {kind}}}\n")
    env = environment(world) | {"GITHUB_ACTIONS": ""}
    told = cli_here("doctor", "--json", repo=world.clone, env=env)
    (forge,) = [check["found"] for check in told.json["checks"] if check["name"] == "forge"]
    assert forge.startswith("github, as ")
    assert {"token", "workflow"} <= {check["name"] for check in told.json["checks"]}


# --- when GitHub or the network fails ---------------------------------------------------

TODAY = "wait some minutes, then: ralph doctor (https://www.githubstatus.com lists outages)"


def test_a_fault_of_github_s_says_what_to_do_now_and_not_what_a_cycle_would(world: GitHubWorld, here: Place) -> None:
    world.fake.fail("500", ("GET", "/labels/*"), times=9)
    checks = {check.name: check for check in github(replace(here.hub(), get=asking(world.forge.api)))}
    assert checks["label ralph-ready"].found.startswith("could not be checked: GitHub answers 500")
    assert checks["label ralph-ready"].hint == TODAY
    world.fake.fail("500", ("GET", "*"), times=9)
    (check,) = github(replace(here.hub(), get=asking(world.connected().api)))
    assert (check.status, check.hint) == ("wrong", TODAY)


def test_a_fault_before_the_first_check_says_so_too(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.forges.github.api.BACK_OFF", ())  # nobody waits
    world.fake.fail("500", ("POST", "/graphql"), times=9)
    world.fake.fail("500", ("GET", "/user"), times=9)
    told = cli_here("doctor", "--json", repo=world.clone, env=environment(world))
    wrong = [check for check in told.json["checks"] if check["status"] == "wrong"]
    assert wrong and all("next wake" not in check["hint"] for check in wrong)
    assert TODAY in {check["hint"] for check in wrong}


@pytest.mark.parametrize(
    ("who", "said", "mended"),
    [
        ("forge", "nothing was lost; the next wake tries again", TODAY),
        ("forge", "look at the API's address; the next wake tries again", f"look at the API's address; {TODAY}"),
        (
            "network",
            "nothing was lost; the next wake tries again",
            "check the network, the proxy, and GITHUB_API_URL if you set it, then: ralph doctor",
        ),
        ("forge", "try again after 12:00 UTC", "try again after 12:00 UTC"),
        ("you", "set GITHUB_TOKEN to a valid one", "set GITHUB_TOKEN to a valid one"),
    ],
)
def test_what_a_person_can_do_stays_and_waiting_for_a_wake_goes(who: str, said: str, mended: str) -> None:
    assert hint_of(UserError("x", said, who=who)) == mended


# --- `ralph doctor` on what keeps it awake: runner, workflow, schedule, and the way it is woken. ---


@pytest.mark.parametrize(
    ("kind", "private", "status"),
    [("self-hosted", False, "wrong"), ("self-hosted", True, "ok"), ("github-hosted", False, "ok"), ("", False, None)],
)
def test_a_self_hosted_runner_of_a_public_repository_is_wrong(
    here: Place, kind: str, private: bool, status: str | None
) -> None:
    here.environment = {"RUNNER_ENVIRONMENT": kind}
    here.changes = {"private": private}
    check = here.checks().get("runner")
    assert (check.status if check else None) == status
    if check and status == "wrong":
        assert check.hint.startswith("never use a self-hosted runner on a public repository")


@pytest.mark.parametrize(
    ("runs_on", "private", "status"),
    [
        ("self-hosted", False, "wrong"),
        ("[Self-Hosted, linux]", False, "wrong"),
        ("{group: ours, labels: [self-hosted]}", False, "wrong"),
        ("self-hosted", True, None),
        ("ubuntu-latest", False, None),
        ("[", False, None),
        pytest.param("[" * 500, False, None, id="nested"),
    ],
)
def test_a_clone_of_a_public_repository_whose_workflow_asks_for_a_self_hosted_runner_is_wrong(
    here: Place, runs_on: str, private: bool, status: str | None
) -> None:
    here.changes = {"private": private}
    check = here.checks(workflow=f"jobs:\n  lint: {{}}\n  cycle:\n    runs-on: {runs_on}\n").get("runner")
    assert (check.status if check else None) == status
    if check:
        assert "the workflow asks for a self-hosted one, and the repository is public" in check.found


@pytest.mark.parametrize(
    ("state", "status"),
    [("active", "ok"), ("disabled_inactivity", "wrong"), ("disabled_fork", "wrong"), ("disabled_manually", "note")],
)
def test_a_workflow_that_is_switched_off_is_found(here: Place, state: str, status: str) -> None:
    here.fake.workflow(".github/workflows/ralph-loop.yml", state=state)
    assert here.checks()["workflow"].status == status


def test_a_workflow_that_is_missing_is_wrong(here: Place) -> None:
    here.fake.world.workflows.clear()
    here.fake.workflow(".github/workflows/ci.yml")
    assert here.checks()["workflow"].found == "the default branch has no ralph-loop.yml"


@pytest.mark.parametrize(("days", "private", "status"), [(44, False, "ok"), (46, False, "note"), (300, True, None)])
def test_a_public_repository_that_falls_asleep_is_told_in_time(
    here: Place, days: int, private: bool, status: str | None
) -> None:
    at = here.fake.clock.now - timedelta(days=days)
    here.changes = {"pushed_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "private": private}
    check = here.checks().get("schedule")
    assert (check.status if check else None) == status


@pytest.mark.parametrize(("drifts", "status"), [((), None), ((0, 40, 9_000), "ok"), ((9_000, 9_000, 0), "note")])
def test_how_late_the_last_wakes_were(drifts: tuple[int, ...], status: str | None) -> None:
    found = list(wakes([(NOON, drift) for drift in drifts]))
    assert [check.status for check in found] == ([status] if status else [])
    if status:
        assert "2 h 30 min" in found[0].found


def test_the_way_of_waking_that_is_in_force_is_named() -> None:
    cron = 'types: [ralph-loop-trigger]\n  schedule:\n    - cron: "7 * * * *"\n'
    (check,) = waking("auto", WakeFacts(cron))
    assert (check.status, check.found) == ("ok", "heartbeat: 1 cron line in the workflow")
    (check,) = waking("timer", WakeFacts(cron, instance="srv-repo"))
    assert check.status == "wrong" and "ralph init --wake timer" in check.hint
    (check,) = waking("auto", WakeFacts())
    assert check.found.startswith("nothing wakes it")


# --- the next cycle ---------------------------------------------------------------------


def next_cycle(repo: Path) -> dict[str, str]:
    checks = cli_here("doctor", "--json", repo=repo).json["checks"]
    return next((check for check in checks if check["name"] == "next cycle"), {})


@pytest.mark.parametrize(
    ("wrong", "settings"), [(timedelta(days=3), "schedule: {low: 2h, medium: 30m}\n"), (timedelta(days=400), "")]
)
def test_a_clock_that_was_ahead_silences_nothing(tmp_path: Path, wrong: timedelta, settings: str) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text(settings + "observers:\n  code: {markers: {}}\n")
    ahead = datetime.now(UTC) + wrong
    assert cli_here("cycle", "--now", ahead.isoformat(), repo=repo).code == 0
    check = next_cycle(repo)
    assert check["status"] == "note"
    assert "a clock that was ahead wrote it" in check["found"]
    assert "ralph cycle" in check["hint"]
    assert cli_here("due", repo=repo).code == 0
    assert cli_here("status", "--json", repo=repo).json["due"] is True
    assert cli_here("cycle", repo=repo).code == 0
    assert next_cycle(repo) == {}
    assert cli_here("due", repo=repo).code == 10


def test_a_mission_that_such_a_clock_has_parked_is_named() -> None:
    parked = Mission(3, "k", "t", "todo", Action.OPEN_PROPOSAL, Tier.LOW, Status.PARKED, 0, NOON, NOON, issue=7)
    (check,) = parked_ahead([parked, replace(parked, status=Status.IN_REVIEW)], NOON - timedelta(days=1))
    assert "#3" in check.found
    assert "issue #7" in check.hint
    assert list(parked_ahead([parked], NOON)) == []


@pytest.mark.parametrize(("hours", "notes"), [(-1, 0), (7, 0), (7.01, 1)])
def test_only_what_no_pause_explains_is_a_note(hours: float, notes: int) -> None:
    assert len(list(far_off(NOON + timedelta(hours=hours), NOON, Rhythm()))) == notes
    longer = Rhythm(medium=timedelta(hours=8))
    assert list(far_off(NOON + timedelta(hours=hours), NOON, longer)) == []


def test_memory_without_a_next_time_promises_nothing() -> None:
    assert list(far_off(None, NOON, Rhythm())) == []


# --- `ralph doctor` on GitHub: the repository's own settings. ---


def test_an_archived_repository_is_wrong(here: Place) -> None:
    here.fake.settings.archived = True
    assert here.checks()["repository on GitHub"].status == "wrong"


def test_issues_that_are_switched_off_are_wrong(here: Place) -> None:
    here.fake.settings.has_issues = False
    checks = here.checks()
    assert checks["issues"].hint == "Settings → General → Features → Issues"


def test_a_label_that_people_set_has_to_be_there_before_they_can(here: Place) -> None:
    assert "label ralph-ready" not in here.checks()
    del here.fake.world.labels["ralph-ready"]
    check = here.checks()["label ralph-ready"]
    assert check.status == "note" and "gh label create ralph-ready" in check.hint


# --- `ralph doctor` on GitHub: whose token it is, and what it may do. ---


def test_a_token_that_is_not_valid_is_the_only_line(here: Place) -> None:
    hub = here.hub()
    here.fake.revoke(here.token)
    assert [(check.name, check.status) for check in github(hub)] == [("token", "wrong")]


def test_a_repository_that_the_token_may_not_see_is_the_only_line(here: Place) -> None:
    here.token = here.fake.token("joe")
    here.fake.person("joe", "none")
    assert here.get("")[0] == 200  # it is public
    hub = replace(here.hub(), get=lambda path: (404, {"message": "Not Found"}))
    assert [check.name for check in github(hub)] == ["repository on GitHub"]


def test_a_person_s_token_opens_pulls_that_the_person_cannot_approve(here: Place) -> None:
    here.token = here.fake.token("mara")
    check = here.checks()["token"]
    assert (check.status, check.found) == ("note", "classic, as mara, whose own pull requests mara cannot approve")


def test_no_line_holds_the_token(here: Place) -> None:
    assert here.token not in repr(here.checks())
    assert here.token not in repr(replace(here.hub(), get=print))


# --- `ralph doctor` says in one line whether `ralph work` could take an issue, and else what is lacking first. ---

CLAUDE = load("hands: {agent: {kind: claude}}\n")
FINE = (DoctorLine("forge", "ok", "local"), DoctorLine("agent claude", "ok", "2.1.0, key ANTHROPIC_API_KEY"))


def test_with_an_agent_that_can_play_it_is_ready():
    said = work(CLAUDE, FINE)
    assert (said.status, said.hint) == ("ok", "") and said.found.startswith("ready: claude takes issues")


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
    assert said.status == "note" and said.found.startswith(f"not ready: {found}") and said.hint == check.hint


def test_what_it_does_not_need_keeps_it_from_nothing():
    others = (DoctorLine("agent codex", "wrong", "not installed", "x"), DoctorLine("token", "note", "a person's", "y"))
    assert work(CLAUDE, (*FINE, *others)).status == "ok"


def test_without_an_agent_it_says_how_to_name_one():
    said = work(Config(), FINE)
    assert said.unused and "hands: {agent:" in said.hint


def test_a_program_that_is_not_there_is_named(tmp_path: Path):
    config = load("hands: {agent: {kind: command, run: 'no-such-program-here --go'}}\n")
    assert "no-such-program-here is not installed" in work(config, FINE).found
    assert work(load("hands: {agent: {kind: command, run: 'sh -c true'}}\n"), FINE).status == "ok"


def test_the_doctor_says_it(tmp_path: Path):
    repo = make_repo(tmp_path / "repo", {"ralph.yml": "hands: {agent: {kind: command, run: 'sh agent.sh'}}\n"})
    told = cli_here("doctor", "--json", repo=repo).json["checks"]
    assert [check["status"] for check in told if check["name"] == "ralph work"] == ["ok"]
