"""What is sent to GitHub is sent once, whatever comes back."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.forges.github.owed import OWED_DELETIONS
from ralph_mission.mission.model.effects import AT_MOST_ONCE, CloseIssue, Effect, OpenIssue, marker
from tests.adapters.forges.github.making import MAKING, Making, an_issue, new_branch
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import KEY, comment, open_issue, pulled
from tests.fakes.github.nouns import Request

pytestmark = pytest.mark.long  # takes ten seconds or more

NOT_DONE = ("401", "403", "404", "409", "422", "rate_primary", "rate_secondary", "rate_secondary_429", "redirect")
LOST = ("500", "502_not_applied", "timeout_not_applied", "reset_not_applied")
DONE = ("502_applied", "timeout_applied", "reset_applied", "garbage")


def expected(effect: Effect, kind: str) -> str:
    if kind in DONE:
        return "adopted"
    return "unknown" if kind in LOST and isinstance(effect, AT_MOST_ONCE) else "failed"


def sent(world: GitHubWorld, match: tuple[str, str]) -> int:
    return world.fake.count("rest", match[0], match[1])


@pytest.mark.parametrize("making", MAKING, ids=lambda making: making.__name__)
def test_mutation_is_sent_once_whatever_comes_back(world: GitHubWorld, making: Making) -> None:
    """Each kind of fault on each kind of effect: one request, and a receipt that says what is known."""
    world.human("mara")
    world.human("mara").create_issue("Labels", labels=("bug",))
    for kind in (*NOT_DONE, *LOST, *DONE):
        effect, match = making(world, kind)
        before = sent(world, match)
        fault = world.fake.fail(kind, match)
        forge = world.connected(timeout=0.5 if kind.startswith("timeout") else 300)
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
    assert refused.not_attempted and "12:01:" in refused.detail
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
    with mock.patch.object(world.fake, "api_url", "http://127.0.0.1:9/api/v3"):  # a port that nobody may have
        closed = world.connected()
    receipt = closed.perform(comment(number))
    assert receipt.not_attempted and receipt.detail.startswith("cannot reach")


def test_staged_forge_sends_and_keeps_nothing(world: GitHubWorld) -> None:
    forge = world.connected(staged=True)
    pulled(world)
    world.forge.api.read_cache.put_lasting(OWED_DELETIONS, {"77": "a" * 40})
    owed = (world.clone / ".git" / "ralph" / "owed.json").read_bytes()
    refs = world.forge.git.text("for-each-ref")
    forge.issues(), forge.pulls("all"), forge.anchor(), forge.has_our_work()
    with pytest.raises(RuntimeError, match="staged"):
        forge.perform(open_issue())
    forge.delete_finished_branches(lambda: False)
    forge.api.read_cache.put_lasting(OWED_DELETIONS, {})
    forge.close()
    assert forge.requests.mutations == 0
    assert world.forge.git.text("for-each-ref") == refs
    assert (world.clone / ".git" / "ralph" / "owed.json").read_bytes() == owed
    assert not (world.clone / ".git" / "ralph" / "github.json").exists()


@pytest.mark.parametrize("text", ["x" * 60_001, "a\0b", "a\ud800b"], ids=["long", "NUL", "surrogate"])
def test_text_that_github_would_not_keep_as_it_is_is_not_sent(world: GitHubWorld, text: str) -> None:
    receipt = world.forge.perform(OpenIssue(KEY, "Typo", f"{text}\n{marker(KEY)}"))
    assert receipt.status == "failed" and "bug" in receipt.detail
    assert world.fake.count(method="POST", below="/issues") == 0
