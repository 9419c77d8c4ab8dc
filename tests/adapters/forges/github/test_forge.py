"""The GitHub forge keeps the contract of every forge."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.github import GitHubForge
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.forge import Actor
from ralph_mission.mission.model.ledger import Anchor, key_of
from tests.adapters.forges.github.making import new_branch
from tests.adapters.forges.github_world import GitHubWorld, kept_file
from tests.contract.forge_contract import ForgeContract
from tests.contract.forge_world import open_issue, pulled


class TestGitHubForge(ForgeContract):
    """The fixture `world` of this folder is all that is needed."""


# --- What is read from GitHub is read completely and with few requests. ---


def cycle(forge: GitHubForge, missions: list[tuple[int, int]]) -> set[Actor]:
    """What a cycle asks when it finds nothing to do: lists, its missions, who spoke there, and the anchor."""
    forge.anchor()
    forge.issues(), forge.pulls("all"), forge.identity(), forge.default_branch()
    people: set[Actor] = set()
    for issue, pull in missions:
        people |= {event.actor for event in forge.issue(issue).events} | {r.author for r in forge.pull(pull).reviews}
    for person in people:
        forge.may_approve(person)
    forge.show_dashboard("Page", Anchor("lineage", 1 + forge.requests.total, "c" * 40), quiet=True)
    return people


def three_missions(world: GitHubWorld) -> list[tuple[int, int]]:
    mara, missions = world.human("mara"), []
    for place in range(3):
        number = world.forge.perform(open_issue(key_of(str(place)))).number
        world.fake.push(f"topic-{place}", {f"{place}.txt": b"x\n"})
        pull = mara.open_pull(f"topic-{place}", "main", "Mine")
        world.human("mara").comment(number, "Hm")
        mara.label(number, ("ralph:approved",))
        mara.review(pull, "changes_requested", "Wait.")
        missions.append((number, pull))
    return missions


def test_idle_cycle_with_three_missions_takes_six_requests_at_most(world: GitHubWorld) -> None:
    missions = three_missions(world)
    cycle(world.connected(), missions)
    for _ in range(2):
        world.fake.clock.advance(900)
        forge = world.connected()
        people = cycle(forge, missions)
        details = forge.requests
    assert {person.login for person in people} >= {"mara"}
    assert details.total <= 6, details
    assert details.mutations == 0 and details.not_modified >= 1  # nothing new is to be seen, so nothing is written


@pytest.mark.long  # ten seconds; tests/load asks the same of less
def test_cycle_among_300_issues_and_80_pulls_takes_less_than_40_requests(world: GitHubWorld) -> None:
    missions, jonas = three_missions(world), world.human("jonas")
    world.fake.clock.advance(3600)
    for place in range(300):
        jonas.create_issue(f"Issue {place}")
    tip = world.fake.branch("main")
    for place in range(80):
        world.git.move_ref(f"refs/heads/jonas-{place}", _commit(world, tip, place), "")
        jonas.open_pull(f"jonas-{place}", "main", f"Pull {place}")
    forge = world.connected()
    cycle(forge, missions)
    assert forge.requests.total < 40, forge.requests
    assert len(forge.issues()) == 303 and len(forge.pulls()) == 83
    assert all(len(pull.touches) == 1 for pull in forge.pulls())
    world.fake.clock.advance(900)
    later = world.connected()
    cycle(later, missions)
    assert later.requests.total <= 12, later.requests


def _commit(world: GitHubWorld, tip: str, place: int) -> str:
    tree = world.git.write_tree(tip, {f"{place}.txt": ("100644", b"x\n")})
    return world.git.commit_tree(tree, (tip,), f"{place}\n", world.fake.clock.now)


def test_requests_are_counted_by_kind(world: GitHubWorld) -> None:
    world.human("mara").create_issue("One")
    forge = world.connected()
    forge.issues()
    forge.threads.forget()
    forge.issues()
    assert (forge.requests.total, forge.requests.not_modified, forge.requests.mutations) == (2, 1, 0)


def test_lists_are_read_to_their_last_page(world: GitHubWorld) -> None:
    world.fake.page_size_cap = 2
    mara = world.human("mara")
    numbers = [mara.create_issue(f"Issue {place}") for place in range(7)]
    for place in range(5):
        mara.comment(numbers[0], f"Comment {place}")
    assert [issue.number for issue in world.forge.issues()] == numbers
    assert [remark.body for remark in world.forge.issue(numbers[0]).remarks] == [f"Comment {n}" for n in range(5)]


def test_open_pull_that_slept_for_long_is_listed_still(world: GitHubWorld) -> None:
    world.fake.page_size_cap = 2
    world.fake.push("old", {"old.txt": b"x\n"})
    old = world.human("mara").open_pull("old", "main", "Old")
    world.fake.clock.advance(30 * 86_400)
    for place in range(4):
        world.fake.push(f"new-{place}", {f"{place}.txt": b"x\n"})
        number = world.human("mara").open_pull(f"new-{place}", "main", "New")
        world.human("mara").close_pull(number)
    assert [pull.number for pull in world.forge.pulls()] == [old]
    world.forge.threads.forget()
    world.forge.issues()
    assert [pull.number for pull in world.forge.pulls("all")] == [old, 2, 3, 4, 5]


# --- The dashboard, workflow runs, and where people click. ---


def test_dashboard_is_no_work(world: GitHubWorld) -> None:
    world.forge.show_dashboard("Page", Anchor("lineage", 3, "c" * 40))
    assert world.forge.issues() == world.forge.issues("all") == ()
    assert not world.forge.has_our_work()
    body = world.fake.issue(1).body or ""
    assert body.splitlines()[-2:] == [
        f"<!-- ralph:anchor lineage=lineage serial=3 oid={'c' * 40} -->",
        marker(key_of("anchor")),
    ]
    assert body.startswith("Page\n") and world.fake.issue(1).title == "Ralph"


def test_dashboard_that_was_closed_is_used_and_never_reopened(world: GitHubWorld) -> None:
    world.forge.show_dashboard("Page", Anchor("lineage", 1, "c" * 40))
    world.human("mara").close_issue(1)
    kept_file(world).unlink()
    world.connected().show_dashboard("Page 2", Anchor("lineage", 2, "d" * 40))
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)
    assert len(world.fake.threads) == 1 and world.fake.issue(1).state == "closed"


def test_of_two_dashboards_that_a_race_made_the_younger_is_closed(world: GitHubWorld) -> None:
    ours = world.human(world.forge.identity().login)
    for _ in range(2):
        ours.create_issue("Ralph looks after this repository", marker(key_of("anchor")))
    assert [world.fake.issue(number).state for number in (1, 2)] == ["open", "open"]
    world.connected().show_dashboard("Page 2", Anchor("lineage", 2, "d" * 40))
    assert [world.fake.issue(number).state for number in (1, 2)] == ["open", "closed"]
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)


def test_dashboard_of_somebody_else_is_none(world: GitHubWorld) -> None:
    line = f"<!-- ralph:anchor lineage=x serial=9 oid={'c' * 40} -->"
    world.human("mara").create_issue("Mine", f"{line}\n{marker(key_of('anchor'))}")
    assert world.forge.anchor() is None
    assert [issue.number for issue in world.forge.issues()] == [1]


def test_dashboard_that_a_person_edited_on_the_page_is_read(world: GitHubWorld) -> None:
    world.forge.show_dashboard("Page", Anchor("lineage", 1, "c" * 40))
    body = world.fake.issue(1).body or ""
    world.human("mara").edit_issue(1, body=body.replace("\n", "\r\n") + "\r\n")  # as a browser sends it
    assert world.connected().anchor() == Anchor("lineage", 1, "c" * 40)


def test_dashboard_whose_last_line_a_person_deleted_gets_it_again(world: GitHubWorld) -> None:
    world.forge.show_dashboard("Page", Anchor("lineage", 1, "c" * 40))
    world.human("mara").edit_issue(1, body=f"Hello\n{marker(key_of('anchor'))}")
    forge = world.connected()
    assert forge.anchor() is None
    forge.show_dashboard("Page", Anchor("lineage", 2, "d" * 40))
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)
    assert [thread.number for thread in world.fake.threads.values()] == [1]


@pytest.mark.parametrize(
    ("holder", "over"),
    [
        ("{page}/actions/runs/7/attempts/1 (loop, box)", True),
        ("{page}/actions/runs/7/attempts/1", True),
        ("{page}/actions/runs/7/attempts/2 (loop, box)", False),
        ("{page}/actions/runs/8/attempts/1 (loop, box)", False),
        ("{page}/actions/runs/9/attempts/1 (loop, box)", False),
        ("{page}/actions/runs/7", False),
        ("{page}-as-it-was-called-before/actions/runs/7/attempts/1 (loop, box)", True),
        ("{page}/x/actions/runs/7/attempts/1 (loop, box)", False),
        ("https://elsewhere.example/harbour/slackwater/actions/runs/7/attempts/1", False),
        ("box 1234 5678", False),
        ("", False),
    ],
)
def test_run_is_over_when_github_says_so(world: GitHubWorld, holder: str, over: bool) -> None:
    world.fake.workflow_run(7, "completed", "success")
    world.fake.workflow_run(8, "in_progress")
    assert world.forge.run_is_over(holder.format(page=world.forge.api.place.page)) is over


def test_an_attempt_is_over_when_the_run_was_started_again(world: GitHubWorld) -> None:
    world.fake.workflow_run(8, "in_progress", attempt=2)
    page = f"{world.forge.api.place.page}/actions/runs/8/attempts"
    assert world.forge.run_is_over(f"{page}/1 (loop, box)")
    assert not world.forge.run_is_over(f"{page}/2 (loop, box)")


def test_people_are_told_where_to_click(world: GitHubWorld) -> None:
    page = f"{world.fake.url}/harbour/slackwater"
    told = f"approve {page}/pull/7 (Files changed, Review changes, Approve)"
    assert world.forge.how("approve_pull", 7) == told
    assert f"{page}/issues/7" in world.forge.how("approve_issue", 7)


# --- The token stays where it belongs. ---


@pytest.mark.attack(43)
def test_token_stands_in_no_receipt_error_note_log_file_or_argument(
    world: GitHubWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(1)
    arguments = _recorded_git(tmp_path, monkeypatch)
    told: list[object] = []
    for kind in ("401", "403", "422", "500", "timeout_not_applied", "reset_applied", "garbage", "redirect"):
        world.fake.fail(kind, ("*", "/issues"), times=5)
        world.fake.fail(kind.replace("timeout", "reset"), ("POST", "/git-receive-pack"))
        forge = world.connected(timeout=0.2)
        told += [repr(forge.api.place), repr(forge.remote), repr(vars(forge.threads))]
        told += [forge.perform(new_branch(world, kind)), forge.perform(open_issue(key_of(kind), labels=()))]
        told.append(_trouble(forge))
        forge.close()
        world.fake.faults.clear()
    kept = [path.read_bytes() for path in (world.clone / ".git").rglob("*") if path.is_file()]
    everything = " ".join([*map(str, told), *world.notes, caplog.text, arguments.read_text()])
    assert " push " in arguments.read_text() and "failed" in everything and "GET" in caplog.text
    for form in _forms(world.token):
        assert form not in everything
        assert not any(form.encode() in content for content in kept)


def _trouble(forge: GitHubForge) -> str:
    try:
        return str(forge.issues("all"))
    except UserError as problem:
        return f"{problem.what} {problem.next_step} {problem.__context__!r} {problem.__cause__!r}"


def _recorded_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git on the path that writes its arguments down first."""
    place, log = folder / "bin", folder / "arguments"
    place.mkdir()
    (place / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    (place / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return log


def _forms(token: str) -> tuple[str, ...]:
    return token, token[::-1], base64.b64encode(f"x-access-token:{token}".encode()).decode(), token.encode().hex()


@pytest.mark.parametrize("result", ["failure", "action_required", None])
def test_pull_whose_checks_did_not_end_well_is_not_ready(world: GitHubWorld, result: str | None) -> None:
    opened = pulled(world)
    assert world.forge.is_ready(opened.number)
    world.fake.check(opened.sha, "tests", result)
    world.forge.forget_lists()
    assert not world.forge.is_ready(opened.number)
