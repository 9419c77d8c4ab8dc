"""Our branches of finished pull requests are deleted, also after a server did not answer, but no one else's commits."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.github import GitHubForge
from ralph_mission.adapters.forges.github.owed import OWED_DELETIONS, OWED_LABELS
from ralph_mission.adapters.git.remote import Remote
from tests.adapters.forges.github_world import GitHubWorld, kept_file
from tests.contract.dashboard import ANCHOR
from tests.contract.forge_world import Opened, merge_pull, pulled
from tests.helpers import git

UNANSWERED = [("GET", "/info/refs*"), ("GET", "/pulls"), ("POST", "/git-receive-pack")]


def end_cycle(forge: GitHubForge, *, paused: bool = False, quiet: bool = False) -> None:
    forge.delete_finished_branches(lambda: paused)
    forge.show_dashboard("Page", ANCHOR, quiet)


@pytest.mark.parametrize("call", UNANSWERED)
def test_a_deletion_without_an_answer_is_made_up_for_at_the_end_of_the_cycle(world: GitHubWorld, call) -> None:
    opened = pulled(world)
    world.human("mara").merge(opened.number)
    forge = world.connected()
    fault = world.fake.fail("502_not_applied", call, times=8)
    assert forge.perform(merge_pull(opened)).status == "adopted"
    assert fault.used and world.fake.branch("ralph/fix") == opened.sha
    world.fake.faults.clear()
    end_cycle(forge)
    assert world.fake.branch("ralph/fix") == ""


def owing(world: GitHubWorld, *, failed: bool = False) -> Opened:
    """A server that does not answer until the cycle is over, or has `failed` before its end."""
    opened = pulled(world)
    world.human("mara").merge(opened.number)
    forge = world.connected()
    fault = world.fake.fail("502_not_applied", ("GET", "/info/refs*"), times=99)
    assert forge.perform(merge_pull(opened)).status == "adopted" and fault.used
    if not failed:
        end_cycle(forge)
    world.fake.faults.clear()
    assert world.fake.branch("ralph/fix") == opened.sha
    return opened


@pytest.mark.parametrize("failed", [False, True])
def test_a_deletion_without_an_answer_is_made_up_for_by_a_later_cycle_once(world: GitHubWorld, failed: bool) -> None:
    owing(world, failed=failed)
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""
    later = world.connected()
    end_cycle(later, quiet=True)
    assert world.fake.count(below="/pulls/1") and later.requests.mutations == 0


class Killed(BaseException):
    """A kill, a cancelled job or Ctrl-C."""


@pytest.mark.parametrize("call", ["head", "delete"])
def test_a_kill_while_an_owed_deletion_is_made_up_for_leaves_it_owed(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def die(*_: object) -> None:
        raise Killed

    owing(world)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Remote, call, die)
        end_cycle(world.connected())
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""


def test_what_is_owed_outlasts_any_number_of_answers(world: GitHubWorld) -> None:
    owing(world)
    kept = world.connected().api.read_cache
    for number in range(90):
        kept.put(f"GET /{number}", "x" * 100_000)
    kept.save()
    kept.put_lasting(OWED_LABELS, {})
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""


def test_what_an_older_version_owed_is_made_up_for(world: GitHubWorld) -> None:
    opened = owing(world)
    kept = world.connected().api.read_cache
    kept_file(world).with_name("owed.json").unlink()
    kept.put(OWED_DELETIONS, {str(opened.number): opened.sha})
    kept.save()
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""
    assert world.connected().api.read_cache.get_lasting(OWED_DELETIONS) == {}


@pytest.mark.parametrize("lasting", [False, True])
def test_without_room_to_write_it_down_a_deletion_is_owed_until_there_is(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch, lasting: bool
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    opened = pulled(world)
    world.human("mara").merge(opened.number)
    forge = world.connected()
    world.fake.fail("502_not_applied", ("GET", "/info/refs*"), times=99)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        assert forge.perform(merge_pull(opened)).status == "adopted"
        if lasting:
            forge.close()
    world.fake.faults.clear()
    end_cycle(forge)
    assert world.fake.branch("ralph/fix") == ""


@pytest.mark.parametrize("login", ["mara", "other[bot]"])
def test_a_cycle_of_another_account_forgets_nothing_that_is_owed(world: GitHubWorld, login: str) -> None:
    opened = owing(world)
    theirs = world.connected(world.fake.token(login))
    theirs.api.read_cache.put_lasting(OWED_LABELS, {})
    end_cycle(theirs)
    assert world.fake.branch("ralph/fix") == opened.sha
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""


def test_what_another_account_owes_is_forgotten_once_the_branch_is_gone(world: GitHubWorld) -> None:
    owing(world)
    git(world.fake.bare, "update-ref", "-d", "refs/heads/ralph/fix")
    end_cycle(world.connected(world.fake.token("other[bot]")))
    assert world.connected().api.read_cache.get_lasting(OWED_DELETIONS) == {}


def test_what_is_owed_outlasts_the_token(world: GitHubWorld) -> None:
    world.forge = world.connected(world.fake.token("mara"))
    opened = pulled(world)
    world.human("bob").merge(opened.number)
    before = world.connected(world.fake.token("mara"))
    world.fake.fail("502_not_applied", ("GET", "/info/refs*"), times=99)
    assert before.perform(merge_pull(opened)).status == "adopted"
    world.fake.faults.clear()
    end_cycle(world.connected(world.fake.token("mara")))
    assert world.fake.branch("ralph/fix") == ""


def test_a_linked_folder_is_not_followed(world: GitHubWorld, tmp_path: Path) -> None:
    folder = kept_file(world).parent
    folder.mkdir(exist_ok=True)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    world.connected().api.read_cache.put_lasting(OWED_DELETIONS, {"1": "a" * 40})
    assert not (tmp_path / "elsewhere" / "owed.json").exists()
    assert world.connected().api.read_cache.get_lasting(OWED_DELETIONS) is None


def test_a_pull_request_that_was_stacked_meanwhile_keeps_the_branch(world: GitHubWorld) -> None:
    opened = owing(world)
    forge = world.connected()
    forge.threads.pulls_on("ralph/fix")
    assert not forge.threads.needed_by_others(forge.threads.pull(opened.number))
    world.push("eve", {"y.txt": b"y\n"})
    world.human("eve").open_pull("eve", "ralph/fix", "More", "On top.")
    end_cycle(forge)
    assert world.fake.branch("ralph/fix") == opened.sha


def test_what_is_no_plain_file_is_not_waited_for(world: GitHubWorld) -> None:
    place = kept_file(world).with_name("owed.json")
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    assert world.connected().api.read_cache.get_lasting(OWED_DELETIONS) is None


def test_those_that_wait_let_the_others_go_first(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.push("eve", {"y.txt": b"y\n"})
    world.human("eve").open_pull("eve", "ralph/fix", "More", "On top.")
    forge = world.connected()
    assert forge.perform(merge_pull(opened)).status == "done"
    debts = {str(opened.number): opened.sha, "77": "a" * 40, "78": "b" * 40, "79": "c" * 40}
    forge.api.read_cache.put_lasting(OWED_DELETIONS, debts)
    world.fake.fail("502_not_applied", ("GET", "/pulls/78"), times=9)
    end_cycle(forge)
    assert list(forge.api.read_cache.get_lasting(OWED_DELETIONS)) == [str(opened.number), "78"]


def test_a_branch_that_another_pull_request_needed_is_deleted_once_that_is_closed(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.push("eve", {"y.txt": b"y\n"})
    eve = world.human("eve")
    theirs = eve.open_pull("eve", "ralph/fix", "More", "On top.")
    forge = world.connected()
    assert forge.perform(merge_pull(opened)).status == "done"
    end_cycle(forge)
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == opened.sha
    eve.close_pull(theirs)
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""


def test_a_branch_that_moved_since_its_deletion_was_owed_stays(world: GitHubWorld) -> None:
    owing(world)
    theirs = world.push("ralph/fix", {"x.txt": b"x\n"})
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == theirs


def test_a_deletion_that_was_refused_for_now_is_owed(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.human("mara").merge(opened.number)
    forge = world.connected()
    fault = world.fake.fail("rate_secondary_429", ("POST", "/git-receive-pack"))
    assert forge.perform(merge_pull(opened)).status == "adopted" and fault.used
    assert forge.api.read_cache.get_lasting(OWED_DELETIONS) == {str(opened.number): opened.sha}
    end_cycle(forge)
    assert world.fake.branch("ralph/fix") == ""


def test_an_owed_deletion_waits_while_ralph_is_paused(world: GitHubWorld) -> None:
    opened = owing(world)
    end_cycle(world.connected(), paused=True)
    assert world.fake.branch("ralph/fix") == opened.sha
    end_cycle(world.connected())
    assert world.fake.branch("ralph/fix") == ""


def test_an_owed_deletion_never_takes_what_was_pushed_after_the_pull_request_was_closed(world: GitHubWorld) -> None:
    opened = owing(world)
    theirs = world.push("ralph/fix", {"x.txt": b"x\n"})
    forge = world.connected()
    forge.api.read_cache.put_lasting(OWED_DELETIONS, {str(opened.number): theirs})
    end_cycle(forge)
    assert (world.fake.branch("ralph/fix"), forge.api.read_cache.get_lasting(OWED_DELETIONS)) == (theirs, {})


@pytest.mark.parametrize("owed", [None, [1], "x", {"x": "a"}, {"1": 7}, {"9" * 5000: "a"}])
def test_an_owed_deletion_that_was_written_by_somebody_else_deletes_nothing(world: GitHubWorld, owed: object) -> None:
    opened = pulled(world)
    world.forge.api.read_cache.put_lasting(OWED_DELETIONS, owed or {"1": opened.sha})
    end_cycle(world.forge)
    assert world.fake.branch("ralph/fix") == opened.sha


def test_an_owed_deletion_of_a_deleted_pull_request_is_forgotten(world: GitHubWorld) -> None:
    world.forge.api.read_cache.put_lasting(OWED_DELETIONS, {"77": "a" * 40})
    end_cycle(world.forge)
    assert world.forge.api.read_cache.get_lasting(OWED_DELETIONS) == {}
