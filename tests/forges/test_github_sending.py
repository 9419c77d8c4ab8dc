"""What is sent to GitHub is sent once, whatever comes back; reads are patient, within limits."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.forges.github import GitHubForge
from ralph_mission.mission.effects import (
    AT_MOST_ONCE,
    CloseIssue,
    ClosePull,
    EditComment,
    Effect,
    Label,
    MergePull,
    OpenIssue,
    OpenPull,
    PushBranch,
    marker,
)
from ralph_mission.mission.ledger import NEEDS_PERSON, NOT_ATTEMPTED, Anchor, key_of
from ralph_mission.mission.trouble import Trouble
from tests.contract.forge_contract import (
    KEY,
    WHEN,
    comment,
    merge_pull,
    new_file,
    open_issue,
    open_pull,
    pulled,
)
from tests.fakes.github import Request
from tests.forges.github_world import GitHubWorld, github

NOT_DONE = ("401", "403", "404", "409", "422", "rate_primary", "rate_secondary", "rate_secondary_429", "redirect")
LOST = ("500", "502_not_applied", "timeout_not_applied", "reset_not_applied")
DONE = ("502_applied", "timeout_applied", "reset_applied", "garbage")
ANCHOR = Anchor("lineage", 1, "c" * 40)

Making = Callable[[GitHubWorld, str], tuple[Effect, tuple[str, str]]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubWorld]:
    """Its forge as GitHub Actions' own account."""
    with github(tmp_path) as made:
        yield made


def new_branch(world: GitHubWorld, kind: str) -> PushBranch:
    base = world.forge.default_branch().sha
    return PushBranch(key_of(kind), f"ralph/{kind}", base, "Fix", WHEN, (new_file(f"{kind}.txt", f"{kind}\n"),))


def new_pull(world: GitHubWorld, kind: str) -> OpenPull:
    assert world.forge.perform(new_branch(world, kind)).status == "done"
    key = key_of(kind, "pull")
    return OpenPull(key, "Fix", f"Why not.\n\n{marker(key)}", f"ralph/{kind}", "main", 1)


def opened_pull(world: GitHubWorld, kind: str) -> int:
    """A pull of ours, made without asking the forge: how it makes them is another test's."""
    world.fake.push(f"ralph/{kind}", {f"{kind}.txt": f"{kind}\n".encode()})
    return world.fake.bot("github-actions[bot]").open_pull(f"ralph/{kind}", "main", "Fix", f"x\n\n{marker(KEY)}")


def an_issue(world: GitHubWorld) -> int:
    return world.human("mara").create_issue("Question", labels=("old",))


def opening_issue(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return open_issue(key_of(kind), kind, ()), ("POST", "/issues")


def commenting(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return comment(an_issue(world), key_of(kind)), ("POST", "/issues/*/comments")


def editing_comment(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number = an_issue(world)
    made = world.forge.perform(comment(number, key_of(kind)))
    return EditComment(KEY, number, made.number, "Anew"), ("PATCH", "/issues/comments/*")


def editing_opening(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number = world.forge.perform(open_issue(key_of(kind), kind, ())).number
    return EditComment(KEY, number, 0, "Anew"), ("PATCH", "/issues/*")


def labelling(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return Label(KEY, an_issue(world), ("old", "bug")), ("POST", "/issues/*/labels")


def unlabelling(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return Label(KEY, an_issue(world), (), ("old",)), ("DELETE", "/issues/*/labels/*")


def assigning(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return Label(KEY, an_issue(world), assign=("mara",)), ("POST", "/issues/*/assignees")


def closing_issue(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return CloseIssue(KEY, an_issue(world), "completed"), ("PATCH", "/issues/*")


def opening_pull(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return new_pull(world, kind), ("POST", "/pulls")


def closing_pull(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    return ClosePull(KEY, opened_pull(world, kind)), ("PATCH", "/pulls/*")


def merging(world: GitHubWorld, kind: str) -> tuple[Effect, tuple[str, str]]:
    number = opened_pull(world, kind)
    return MergePull(KEY, number, world.forge.pull(number).head_sha, "squash", "Fix"), ("PUT", "/pulls/*/merge")


MAKING = (opening_issue, commenting, editing_comment, editing_opening, labelling, unlabelling, assigning,
          closing_issue, opening_pull, closing_pull, merging)  # fmt: skip


def expected(effect: Effect, kind: str) -> str:
    if kind in DONE:
        return "adopted"
    return "unknown" if kind in LOST and isinstance(effect, AT_MOST_ONCE) else "failed"


def sent(world: GitHubWorld, match: tuple[str, str]) -> int:
    return world.fake.count("rest", match[0], match[1])


# --- mutations


@pytest.mark.parametrize("making", MAKING, ids=lambda making: making.__name__)
def test_mutation_is_sent_once_whatever_comes_back(world: GitHubWorld, making: Making) -> None:
    """Each kind of fault on each kind of effect: one request, and a receipt that says what is known."""
    world.human("mara")
    world.human("mara").create_issue("Labels", labels=("bug",))
    for kind in (*NOT_DONE, *LOST, *DONE):
        effect, match = making(world, kind)
        before = sent(world, match)
        fault = world.fake.fail(kind, match)
        forge = world.connected(timeout=0.5 if kind.startswith("timeout") else 5)
        receipt = forge.perform(effect)
        assert (kind, fault.used, sent(world, match) - before) == (kind, 1, 1)
        assert (kind, receipt.status) == (kind, expected(effect, kind)), receipt
        assert (kind, world.connected().find(effect) is not None) == (kind, kind in DONE)


@pytest.mark.parametrize("kind", ["500", "502_not_applied", "reset_not_applied", "401", "403", "reset_applied"])
def test_push_whose_fate_is_unclear_is_looked_up(world: GitHubWorld, kind: str) -> None:
    effect = new_branch(world, "x")
    fault = world.fake.fail(kind, ("POST", "/git-receive-pack"))
    receipt = world.forge.perform(effect)
    assert fault.used == 1
    assert receipt.status == ("done" if kind == "reset_applied" else "failed"), receipt
    assert world.connected().perform(effect).status == ("adopted" if kind == "reset_applied" else "done")
    assert world.fake.branch("ralph/x")


def test_crash_between_opening_a_pull_and_labelling_it_is_repaired(world: GitHubWorld) -> None:
    effect = open_pull()
    world.forge.perform(
        PushBranch(KEY, "ralph/fix", world.forge.default_branch().sha, "Fix", WHEN, (new_file("a", "a\n"),))
    )
    world.fake.fail("reset_not_applied", ("POST", "/issues/*/labels"))
    assert world.forge.perform(effect).status == "done"
    assert not world.fake.threads[1].labels
    found = world.connected().find(effect)
    assert found and found.status == "adopted"
    assert world.fake.threads[1].labels == ["ralph:auto-fix"]
    assert world.fake.count(method="POST", below="/pulls") == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirected_mutation_is_not_sent_on(world: GitHubWorld, status: int) -> None:
    def elsewhere(request: Request, response: Any) -> None:
        if request.method == "POST" and request.below == "/issues":
            response.status, response.content = status, b"{}"
            response.headers["Location"] = f"{world.fake.api_url}/repositories/723001/issues"

    world.fake.after(elsewhere)
    receipt = world.forge.perform(open_issue(labels=()))
    assert receipt.status == "failed" and "moved" in receipt.detail
    assert world.fake.count(method="POST", below="/issues") == 1


def test_nothing_is_sent_into_a_rate_limit(world: GitHubWorld) -> None:
    number = an_issue(world)
    world.fake.fail("rate_secondary", ("POST", "/issues/*/comments"))
    refused = world.forge.perform(comment(number))
    assert refused.status == "failed" and refused.detail.startswith(NOT_ATTEMPTED) and "12:01:" in refused.detail
    writes = sum(world.fake.count(method=method) for method in ("POST", "PATCH"))
    assert world.forge.perform(CloseIssue(KEY, number, "completed")).status == "failed"
    assert sum(world.fake.count(method=method) for method in ("POST", "PATCH")) == writes


def test_mutations_keep_their_distance(world: GitHubWorld) -> None:
    forge, number = world.connected(pace=1), an_issue(world)
    for key in ("aa" * 8, "bb" * 8):
        assert forge.perform(comment(number, key)).status == "done"
    assert [round(seconds, 1) for seconds in world.slept] != [] and max(world.slept) <= 1


def test_network_that_is_down_sends_nothing_for_certain(world: GitHubWorld) -> None:
    number = an_issue(world)
    world.forge.identity()
    closed = world.connected()
    closed.api._wire.api_url = "http://127.0.0.1:9/api/v3"
    receipt = closed.perform(comment(number))
    assert receipt.status == "failed" and receipt.detail.startswith(f"{NOT_ATTEMPTED}cannot reach")


def test_staged_forge_sends_and_keeps_nothing(world: GitHubWorld) -> None:
    forge = world.connected(staged=True)
    pulled(world)
    refs = world.forge.git.text("for-each-ref")
    forge.issues(), forge.pulls("all"), forge.anchor(), forge.has_our_work()
    with pytest.raises(RuntimeError, match="staged"):
        forge.perform(open_issue())
    forge.close()
    assert forge.requests.mutations == 0
    assert world.forge.git.text("for-each-ref") == refs
    assert not (world.clone / ".git" / "ralph" / "github.json").exists()


@pytest.mark.parametrize("text", ["x" * 60_001, "a\0b", "a\ud800b"], ids=["long", "NUL", "surrogate"])
def test_text_that_github_would_not_keep_as_it_is_is_not_sent(world: GitHubWorld, text: str) -> None:
    receipt = world.forge.perform(OpenIssue(KEY, "Typo", f"{text}\n{marker(KEY)}"))
    assert receipt.status == "failed" and "bug" in receipt.detail
    assert world.fake.count(method="POST", below="/issues") == 0


# --- late lists


def test_issue_that_no_list_shows_yet_is_unknown_and_never_sent_again(world: GitHubWorld) -> None:
    world.fake.list_lag = 50
    world.fake.fail("timeout_applied", ("POST", "/issues"))
    assert world.connected(timeout=0.5).perform(open_issue(labels=())).status == "unknown"
    assert world.fake.count(method="POST", below="/issues") == 1


def test_issue_that_a_list_shows_a_little_later_is_adopted(world: GitHubWorld) -> None:
    world.fake.list_lag = 3
    world.fake.fail("reset_applied", ("POST", "/issues"))
    assert world.forge.perform(open_issue(labels=())).status == "adopted"
    assert world.fake.count(method="POST", below="/issues") == 1


def test_pull_that_no_list_shows_yet_is_not_opened_twice(world: GitHubWorld) -> None:
    effect = new_pull(world, "x")
    world.fake.list_lag = 4
    assert world.forge.perform(effect).status == "done"
    assert world.connected().perform(effect).status == "failed"
    world.fake.list_lag = 0
    for _ in range(4):
        receipt = world.connected().perform(effect)
    assert receipt.status == "adopted"
    assert len([thread for thread in world.fake.threads.values() if thread.pull]) == 1


def test_anchor_is_made_once_even_when_lists_are_late(world: GitHubWorld) -> None:
    world.fake.list_lag = 100
    for serial in (1, 2):
        world.forge.set_anchor(Anchor("lineage", serial, "c" * 40))
        world.connected().set_anchor(Anchor("lineage", serial, "d" * 40))
    assert len(world.fake.threads) == 1
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)


def test_anchor_whose_making_is_in_doubt_is_left_to_the_next_cycle(world: GitHubWorld) -> None:
    world.fake.fail("reset_applied", ("POST", "/issues"))
    world.forge.set_anchor(ANCHOR)
    assert "could not be noted" in world.notes[-1]
    world.connected().set_anchor(ANCHOR)
    assert len(world.fake.threads) == 1 and world.connected().anchor() == ANCHOR


# --- reads


def test_read_is_tried_again(world: GitHubWorld) -> None:
    number = an_issue(world)
    fault = world.fake.fail("502_not_applied", ("GET", "/issues/*"), times=3)
    assert world.forge.issue(number).number == number
    assert (fault.used, world.slept) == (3, [1, 2, 4])


@pytest.mark.parametrize(("kind", "who"), [("502_not_applied", "forge"), ("reset_not_applied", "network"),
                                           ("500", "forge"), ("garbage", "forge")])  # fmt: skip
def test_read_that_keeps_failing_is_one_line(world: GitHubWorld, kind: str, who: str) -> None:
    fault = world.fake.fail(kind, ("GET", "/issues"), times=9)
    with pytest.raises(Trouble) as caught:
        world.forge.issues()
    assert (caught.value.who, fault.used) == (who, 4)
    assert "\n" not in caught.value.what
    world.fake.faults.clear()


@pytest.mark.parametrize("kind", ["rate_secondary", "rate_secondary_429"])
def test_read_waits_for_a_rate_limit_within_a_cap(world: GitHubWorld, kind: str) -> None:
    world.fake.fail(kind, ("GET", "/issues"), times=2)
    assert world.forge.issues() == ()
    assert world.slept == [60, 60] and world.notes == ["GitHub's rate limit: waiting 60 s"] * 2
    world.fake.fail(kind, ("GET", "/labels"))
    with pytest.raises(Trouble, match="rate limit") as caught:
        world.forge.api.get("/labels")
    assert caught.value.who == "forge" and "12:03 UTC" in caught.value.next_step
    assert world.slept == [60, 60]


def test_limit_that_lifts_too_late_is_told_with_its_time(world: GitHubWorld) -> None:
    world.fake.fail("rate_primary", ("GET", "/issues"))
    with pytest.raises(Trouble) as caught:
        world.forge.issues()
    assert "12:30 UTC" in caught.value.next_step and world.slept == []


def test_token_that_is_not_accepted_is_the_users_to_mend(world: GitHubWorld) -> None:
    world.fake.revoke(world.token)
    with pytest.raises(Trouble, match="does not accept the token") as caught:
        world.forge.issues()
    assert (caught.value.who, world.slept) == ("you", [])


# --- refusals that a person must lift


def refusal(world: GitHubWorld, effect: Effect, forge: GitHubForge | None = None) -> str:
    receipt = (forge or world.forge).perform(effect)
    assert receipt.status == "failed" and receipt.detail.startswith(NEEDS_PERSON), receipt
    return receipt.detail.removeprefix(NEEDS_PERSON)


def test_actions_that_may_not_open_pulls_name_the_setting(world: GitHubWorld) -> None:
    effect = new_pull(world, "x")
    world.fake.settings.actions_can_create_pulls = False
    setting = "Settings → Actions → General → Allow GitHub Actions to create and approve pull requests"
    assert refusal(world, effect) == setting


@pytest.mark.parametrize(("missing", "making"), [("issues", opening_issue), ("pull_requests", opening_pull)])
def test_missing_permission_is_named(world: GitHubWorld, missing: str, making: Making) -> None:
    effect, _ = making(world, "x")
    rights = {"contents": "write", "issues": "write", "pull_requests": "write", missing: "read"}
    token = world.fake.token(permissions=rights)
    assert f"permissions: {missing.replace('_', '-')}: write" in refusal(world, effect, world.connected(token))


def test_missing_right_to_merge_is_named(world: GitHubWorld) -> None:
    opened = pulled(world)
    token = world.fake.token(permissions={"contents": "read", "pull_requests": "write", "issues": "write"})
    assert "permissions: contents: write" in refusal(world, merge_pull(opened), world.connected(token))


def test_missing_right_to_read_is_named(world: GitHubWorld) -> None:
    forge = world.connected(world.fake.token(permissions={"contents": "read", "issues": "write"}))
    with pytest.raises(Trouble) as caught:
        forge.pulls()
    assert caught.value.who == "you" and "pull-requests: read" in caught.value.next_step


def test_protected_branch_names_the_rule(world: GitHubWorld) -> None:
    world.fake.protect("ralph/x", restrict_pushes=True)
    detail = refusal(world, new_branch(world, "x"))
    assert "ralph/x is protected" in detail and "Settings, Rules" in detail


def test_required_signatures_are_named(world: GitHubWorld) -> None:
    world.fake.protect("ralph/x", required_signatures=True)
    detail = refusal(world, new_branch(world, "x"))
    assert "signed commits only" in detail and "Require signed commits" in detail


def test_workflow_files_need_their_own_permission(world: GitHubWorld) -> None:
    base = world.forge.default_branch().sha
    effect = PushBranch(KEY, "ralph/x", base, "CI", WHEN, (new_file(".github/workflows/ci.yml", "on: push\n"),))
    assert "workflow` permission" in refusal(world, effect)


def test_archived_repository_is_named(world: GitHubWorld) -> None:
    world.forge.identity()
    world.fake.settings.archived = True
    assert "Unarchive" in refusal(world, open_issue(labels=()))


def test_merge_method_that_is_not_allowed_names_the_setting(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.settings.allow_squash_merge = False
    assert "forge.merge_method" in refusal(world, merge_pull(opened))


# --- the token stays where it belongs


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
    except Trouble as trouble:
        return f"{trouble.what} {trouble.next_step} {trouble.__context__!r} {trouble.__cause__!r}"


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
