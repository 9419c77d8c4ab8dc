"""Commits that GitHub makes and signs: memory's and those of fixes, by the account of the token."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.errors import Lost, UserError
from ralph_mission.mission.model.effects import PushBranch
from ralph_mission.safety.patch import Edit, FileDelta
from tests.adapters.forges.github.making import new_branch
from tests.adapters.forges.github_world import GitHubWorld, clone_of
from tests.adapters.storage.memory.making import SteppingClock, batch
from tests.contract.forge_world import KEY, OTHER, WHEN, line, new_file, outcome, push_branch
from tests.fakes.github.bare import CommitInfo
from tests.fakes.github.nouns import Request

BOT = "41898282+github-actions[bot]@users.noreply.github.com"
MEMORY = "ralph-memory"
COMMIT = ("POST", "/git-receive-pack")  # by GraphQL too


def tip(world: GitHubWorld, branch: str) -> CommitInfo:
    return world.fake.world.bare.commit(world.fake.branch(branch))


def signatures_required(world: GitHubWorld) -> None:
    """On every branch that comes; the first commit of all was somebody's."""
    world.fake.ruleset("~ALL", required_signatures=True)


def store(world: GitHubWorld) -> RecoverableStore:
    forge = world.connected()
    git = Git.open(world.clone)
    return RecoverableStore(git, SteppingClock(), remote=forge.remote, author=forge.people.author)


def test_a_fix_is_a_verified_commit_of_the_account(world: GitHubWorld) -> None:
    receipt = world.forge.perform(push_branch(world, line("README.md", "# Better\n"), new_file("docs/é b.md", "x\n")))
    made = tip(world, "ralph/fix")
    assert (receipt.status, receipt.sha) == ("done", made.sha)
    assert (made.signed, made.author.email, made.committer.name) == (True, BOT, "GitHub")
    assert world.fake.count("graphql", below="/git-receive-pack") == 1
    assert world.connected().find(push_branch(world, line("README.md", "# Better\n"), new_file("docs/é b.md", "x\n")))


def test_a_fix_that_follows_its_branch_is_verified_and_found_elsewhere(world: GitHubWorld, tmp_path: Path) -> None:
    first = world.forge.perform(push_branch(world))
    base = world.forge.default_branch().sha
    effect = PushBranch(OTHER, "ralph/fix", base, "More\n\nWhy not.", WHEN, (new_file("b", "b\n"),), onto=first.sha)
    before = clone_of(world.fake.bare, tmp_path / "before")
    assert world.forge.perform(effect).status == "done"
    made = tip(world, "ralph/fix")
    assert (made.signed, made.parents, made.message) == (True, (first.sha,), "More\n\nWhy not.")
    world.clone = before  # as where a process died before it fetched the commit
    found = world.connected().find(effect)
    assert found and (found.status, found.sha) == ("adopted", made.sha)


@pytest.mark.parametrize("mode", ["100755", "120000"])
def test_what_the_api_cannot_make_is_pushed_in_the_accounts_name(world: GitHubWorld, mode: str) -> None:
    effect = push_branch(world, FileDelta("run", mode, (Edit(0, 0, ("x",)),)))
    assert world.forge.perform(effect).status == "done"
    made = tip(world, "ralph/fix")
    assert (made.signed, made.author.email, world.fake.count("graphql", below="/git-receive-pack")) == (False, BOT, 0)
    assert world.git.listing(made.sha, "run")[0].mode == mode


def test_a_merge_of_the_base_is_pushed(world: GitHubWorld) -> None:
    first = world.forge.perform(push_branch(world))
    base = world.push("main", {"other.txt": b"o\n"})
    effect = PushBranch(OTHER, "ralph/fix", base, "Merge main", WHEN, (), onto=first.sha)
    assert world.forge.perform(effect).status == "done"
    assert tip(world, "ralph/fix").parents == (first.sha, base)


@pytest.mark.parametrize("kind", ["reset_applied", "502_applied", "garbage"])
def test_an_answer_that_was_lost_is_found_by_what_the_commit_says(world: GitHubWorld, kind: str) -> None:
    effect = new_branch(world, "x")
    fault = world.fake.fail(kind, COMMIT, after=1)  # the first one makes the branch
    receipt = world.forge.perform(effect)
    assert (fault.used, receipt.status, receipt.sha) == (1, "done", world.fake.branch("ralph/x"))
    assert world.connected().perform(effect).status == "adopted"
    assert world.fake.count("graphql", below="/git-receive-pack") == 1


def test_a_commit_that_github_made_counts_even_if_it_cannot_be_fetched_afterwards(world: GitHubWorld) -> None:
    first = world.forge.perform(push_branch(world))
    forge = world.connected()
    base = forge.default_branch().sha
    effect = PushBranch(OTHER, "ralph/fix", base, "More\n\nWhy not.", WHEN, (new_file("b", "b\n"),), onto=first.sha)

    def made(request: Request, response: object) -> None:
        if request.below == COMMIT[1]:
            world.fake.fail("502_not_applied", ("GET", "/info/refs*"), times=99)

    world.fake.after(made)
    assert outcome(forge.perform(effect)) == ("done", "")
    assert tip(world, "ralph/fix").parents == (first.sha,)


def test_a_commit_that_is_not_made_leaves_no_branch(world: GitHubWorld) -> None:
    effect = new_branch(world, "x")
    world.fake.fail("reset_not_applied", COMMIT, after=1)
    assert world.forge.perform(effect).status == "failed"
    assert world.fake.branch("ralph/x") == ""


def test_a_branch_that_a_dead_run_left_without_its_commit_goes_when_it_is_looked_for(world: GitHubWorld) -> None:
    effect = new_branch(world, "x")
    world.fake.world.bare.set_ref("refs/heads/ralph/x", effect.base_sha, "")
    assert world.connected().find(effect) is None
    assert world.fake.branch("ralph/x") == ""
    assert world.connected().perform(effect).status == "done"
    assert tip(world, "ralph/x").parents == (effect.base_sha,)


def test_somebody_elses_commit_in_between_is_left_alone(world: GitHubWorld) -> None:
    effect = new_branch(world, "x")
    world.fake.before(lambda r: r.transport == "graphql" and "ralph/x" in str(r.body) and _theirs(world))
    receipt = world.forge.perform(effect)
    assert (
        receipt.status == "failed" and "exists already, with a commit that is not of this change" in receipt.explanation
    )
    assert tip(world, "ralph/x").message == "Change"


def _theirs(world: GitHubWorld) -> None:
    if tip(world, "ralph/x").message != "Change":
        world.fake.push("ralph/x", {"t.txt": b"t\n"})


@pytest.mark.parametrize("token", ["installation", "pat"])
def test_memory_and_fixes_live_with_signatures_required_on_all_branches(world: GitHubWorld, token: str) -> None:
    if token == "pat":  # GitHub signs no first commit for a person: it was there before the rule
        world.token = world.fake.token("robin")
        past = store(world).commit(batch(), None)
        signatures_required(world)
    else:
        signatures_required(world)
        past = store(world).commit(batch(), None)
        assert tip(world, MEMORY).signed and not tip(world, MEMORY).parents
    made = store(world).commit(batch(past), past)
    assert made.oid == world.fake.branch(MEMORY) and tip(world, MEMORY).signed
    assert store(world).recall().memory.header.serial == 2
    assert world.connected().perform(new_branch(world, "x")).status == "done"
    assert tip(world, "ralph/x").signed


def test_a_first_commit_that_nobody_signs_names_the_setting(world: GitHubWorld) -> None:
    world.token = world.fake.token("robin")
    signatures_required(world)
    with pytest.raises(UserError, match="signed commits only") as caught:
        store(world).commit(batch(), None)
    assert "Require signed commits" in caught.value.next_step
    assert world.fake.branch(MEMORY) == ""


def test_what_cannot_be_pushed_unsigned_is_told_with_the_apis_reason(world: GitHubWorld) -> None:
    signatures_required(world)
    effect = PushBranch(
        KEY,
        "ralph/x",
        world.forge.default_branch().sha,
        "CI",
        WHEN,
        (FileDelta("run", "100755", (Edit(0, 0, ("x",)),)),),
    )
    receipt = world.forge.perform(effect)
    assert receipt.status == "failed" and "signed commits only" in receipt.detail


def test_memory_that_was_written_before_a_death_is_recognised_as_ours(world: GitHubWorld) -> None:
    """The commit was made, the answer was lost, and so was the look afterwards: then another cycle begins."""
    past = store(world).commit(batch(), None)
    world.fake.fail("502_applied", COMMIT)
    world.fake.fail("500", ("GET", "/info/refs?service=git-upload-pack"), times=3)
    with pytest.raises(UserError):
        store(world).commit(batch(past), past)
    world.fake.faults.clear()
    assert not store(world).paused()  # as it would be on somebody else's commit in the middle of a cycle
    found = store(world).recall()
    assert (found.memory.header.serial, found.human_edits) == (2, ())
    assert store(world).commit(batch(found), found).memory.header.serial == 3


def test_memory_is_pushed_while_the_api_is_limited(world: GitHubWorld) -> None:
    past = store(world).commit(batch(), None)
    world.fake.fail("rate_secondary", COMMIT)
    made = store(world).commit(batch(past), past)
    assert world.fake.branch(MEMORY) == made.oid and not tip(world, MEMORY).signed
    assert tip(world, MEMORY).author.email == BOT


def test_two_runners_move_memory_once(world: GitHubWorld) -> None:
    past = store(world).commit(batch(), None)
    other = store(world)
    store(world).commit(batch(past), past)
    with pytest.raises(Lost):
        other.commit(batch(past, next_mission=9), past)
    assert store(world).recall().memory.header.serial == 2
