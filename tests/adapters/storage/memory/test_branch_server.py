"""Memory on a server: only the server's branch counts, and it moves by a push from what was read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.adapters.storage.memory import provenance
from ralph_mission.adapters.storage.memory.due import due_on_server
from ralph_mission.adapters.storage.memory.recovery import RecoverableStore
from ralph_mission.errors import Lost, UserError
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.mission.operations.salvage import Salvage
from tests.adapters.storage.memory.making import LINEAGE, LOG, batch, claim, on_server, server_store
from tests.fakes.github.server import FakeGitHub
from tests.helpers import NOON, git, make_repo

BRANCH = "ralph-memory"


@dataclass
class Server:
    """A server and its clones."""

    fake: FakeGitHub
    token: str
    repo: Path
    folder: Path

    def store(self, name: str = "one", **options: object) -> RecoverableStore:
        """The memory as a clone of its own sees it."""
        clone = self.folder / name
        if not clone.exists():
            shutil.copytree(self.repo, clone)
        return server_store(clone, self.fake, self.token, **options)

    def place(self) -> RepositoryPlace:
        return RepositoryPlace("harbour/slackwater", self.fake.api_url, self.fake.url, self.token)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    repo = make_repo(tmp_path / "repo")
    with on_server(repo, tmp_path / "server.git") as fake:
        yield Server(fake, fake.token(), repo, tmp_path)


def test_one_clone_reads_what_another_wrote(server):
    made = server.store("one").commit(batch(next_mission=7), None)
    found = server.store("two").recall()
    assert (found.oid, found.state.next_mission) == (made.oid, 7)
    assert server.fake.branch(BRANCH) == made.oid


def test_no_branch_of_the_clone_is_written_or_believed(server):
    clone = server.folder / "one"
    server.store().commit(batch(), None)
    assert git(clone, "branch", "--list", BRANCH) == ""
    git(clone, "branch", BRANCH, "HEAD")
    assert server.store().recall().memory.header.serial == 1


def test_a_clone_that_has_lost_what_the_server_has_is_to_be_made_anew(server):
    made = server.store("one").commit(batch(), None)
    oid = git(server.folder / "one", "rev-parse", f"{made.oid}:memory")
    (server.folder / "one/.git/objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(UserError) as problem:
        server.store("one").recall()
    assert "ralph memory recover" in problem.value.next_step
    with pytest.raises(UserError, match="the server has") as problem:
        server.store("one").repair()
    assert "make a new clone" in problem.value.next_step
    assert server.fake.branch(BRANCH) == made.oid


def test_of_two_clones_that_start_together_one_wins(server):
    one, two = server.store("one"), server.store("two")
    assert one.recall() is None and two.recall() is None
    one.commit(batch(), None)
    with pytest.raises(Lost):
        two.commit(batch(), None)


def test_of_two_clones_that_go_on_together_one_wins(server):
    one, two = server.store("one"), server.store("two")
    one.commit(batch(), None)
    here, there = one.recall(), two.recall()
    one.commit(batch(here), here)
    with pytest.raises(Lost):
        two.commit(batch(there), there)


@pytest.mark.attack(18)
def test_a_strangers_commit_on_the_server_stops_the_cycle(server):
    store = server.store()
    store.commit(batch(), None)
    server.fake.push(BRANCH, {"memory/open.json": b"{}\n"})
    with pytest.raises(UserError):
        store.recall()


def test_a_branch_that_vanished_from_the_server_is_not_made_anew(server):
    store = server.store()
    past = store.commit(batch(), None)
    git(server.fake.bare, "update-ref", "-d", f"refs/heads/{BRANCH}")
    with pytest.raises(UserError, match="missing"):
        store.recall()
    with pytest.raises(UserError, match="missing"):
        store.commit(batch(past), past)


def test_an_answer_lost_after_the_push_is_found_out(server):
    store = server.store()
    past = store.commit(batch(), None)
    server.fake.fail("502_applied", ("POST", "/git-receive-pack"))
    made = store.commit(batch(past), past)
    assert server.fake.branch(BRANCH) == made.oid == server.store().recall().oid


def test_a_push_that_did_not_arrive_is_trouble_and_the_next_goes_on(server):
    store = server.store()
    past = store.commit(batch(), None)
    server.fake.fail("502_not_applied", ("POST", "/git-receive-pack"))
    with pytest.raises(UserError, match="cannot reach"):
        store.commit(batch(past), past)
    again = server.store()
    past = again.recall()
    assert past.memory.header.serial == 1
    assert again.commit(batch(past), past).memory.header.serial == 2


def test_a_push_that_arrived_after_we_gave_up_is_recognised_as_ours(server):
    """The answer and the look afterwards were both lost, and the process died."""
    store = server.store()
    past = store.commit(batch(), None)
    server.fake.fail("502_applied", ("POST", "/git-receive-pack"))
    server.fake.fail("500", ("GET", "/info/refs?service=git-upload-pack"), times=3)
    with pytest.raises(UserError):
        store.commit(batch(past), past)
    server.fake.faults.clear()
    found = server.store().recall()
    assert found.memory.header.serial == 2
    assert found.human_edits == ()


def test_a_protected_memory_branch_names_the_setting(server):
    store = server.store()
    past = store.commit(batch(), None)
    server.fake.protect(BRANCH, restrict_pushes=True)
    with pytest.raises(UserError) as caught:
        store.commit(batch(past), past)
    assert "Settings" in caught.value.next_step
    server.fake.unprotect(BRANCH)
    assert store.commit(batch(past), past).memory.header.serial == 2


def test_a_server_that_cannot_be_asked_counts_as_paused(server):
    store = server.store()
    store.commit(batch(), None)
    server.fake.fail("500", ("*", "/info/refs*"), times=9)
    assert store.paused()
    server.fake.faults.clear()


class TestRunnersThatTakeTurns:
    """One clone's memory of the branch falls behind while another clone goes on."""

    def went_on(self, server, cycles: int) -> None:
        other = server.store("two")
        for _ in range(cycles):
            past = other.recall()
            other.commit(batch(past), past)

    def test_what_another_runner_wrote_is_its_own(self, server):
        here = server.store("one")
        here.commit(batch(), None)
        self.went_on(server, 2)
        found = server.store("one").recall()
        assert (found.memory.header.serial, found.human_edits) == (3, ())

    @pytest.mark.long  # a variation of what another runner wrote
    def test_what_the_forge_was_told_of_is_believed_however_long_it_took(self, server, monkeypatch):
        monkeypatch.setattr(provenance, "MAX_UNRECORDED", 3)
        server.store("one").commit(batch(), None)
        self.went_on(server, 4)
        with pytest.raises(UserError):
            server.store("one").recall()
        told = server.store("two").recall()
        anchor = Anchor(told.memory.header.lineage, told.memory.header.serial, told.oid)
        assert server.store("one", vouched=lambda: anchor).recall().oid == told.oid

    def told_of(self, server) -> Anchor:
        """The forge is told of the first commit, and of none since."""
        first = server.store("two").commit(batch(), None)
        return Anchor(first.memory.header.lineage, first.memory.header.serial, first.oid)

    @pytest.mark.long  # a variation of what another runner wrote
    @pytest.mark.parametrize("clone", ["two", "fresh"])
    def test_what_several_runs_wrote_that_died_before_they_could_tell_is_believed(self, server, clone):
        anchor = self.told_of(server)
        self.went_on(server, 12)
        assert server.store(clone, vouched=lambda: anchor).recall().memory.header.serial == 13

    @pytest.mark.long  # a variation of what another runner wrote
    def test_many_edits_of_people_do_not_hide_a_run_that_could_not_tell(self, server):
        anchor = self.told_of(server)
        for number in range(8):
            text = git(server.fake.bare, "show", f"{BRANCH}:{LOG}")
            said = text.replace("## Learnings\n", f"## Learnings\n\n- be kind, {number}\n")
            server.fake.push(BRANCH, {LOG: f"{said}\n".encode()})
        self.went_on(server, 1)
        assert server.store("fresh", vouched=lambda: anchor).recall().memory.header.serial == 2

    @pytest.mark.long  # a variation of what another runner wrote
    def test_a_memory_file_that_a_person_broke_and_mended_stops_nobody(self, server):
        anchor = self.told_of(server)
        whole = git(server.fake.bare, "show", f"{BRANCH}:{LOG}") + "\n"
        server.fake.push(BRANCH, {LOG: b"<<<<<<< mine\n" + whole.encode()})
        with pytest.raises(UserError):
            server.store("broken", vouched=lambda: anchor).recall()
        server.fake.push(BRANCH, {LOG: whole.encode()})
        assert server.store("fresh", vouched=lambda: anchor).recall().memory.header.serial == 1

    @pytest.mark.attack(18)
    def test_a_gap_in_what_was_not_told_stops_the_cycle(self, server):
        anchor = self.told_of(server)
        text = git(server.fake.bare, "show", f"{BRANCH}:{LOG}")
        server.fake.push(BRANCH, {LOG: text.replace("serial: 1", "serial: 3").encode() + b"\n"})
        with pytest.raises(UserError, match="someone else"):
            server.store("fresh", vouched=lambda: anchor).recall()

    @pytest.mark.attack(18)
    def test_a_strangers_change_on_top_of_it_still_stops_the_cycle(self, server):
        server.store("one").commit(batch(), None)
        self.went_on(server, 1)
        server.fake.push(BRANCH, {"memory/open.json": b"{}\n"})
        with pytest.raises(UserError):
            server.store("one").recall()

    def begun_anew(self, server) -> tuple[str, Anchor]:
        """The branch is deleted, and another clone recovers: a new lineage, at a new root."""
        server.store("one").commit(batch(), None)
        past = server.store("two").recall()
        git(server.fake.bare, "update-ref", "-d", f"refs/heads/{BRANCH}")
        header = replace(past.memory.header, lineage="begun-anew", serial=1)
        other = server.store("two")
        anew = replace(batch(past), memory=replace(past.memory, header=header))
        return past.oid, other.restart(anew, Salvage(""))

    @pytest.mark.long  # a variation of what another runner wrote
    def test_memory_that_another_clone_began_anew_is_believed_when_the_forge_was_told(self, server):
        _, anchor = self.begun_anew(server)
        here = server.store("one", vouched=lambda: anchor)
        found = here.recall()
        assert (found.oid, found.memory.header.lineage) == (anchor.oid, "begun-anew")
        assert here.commit(batch(found), found).memory.header.serial == 3
        assert server.store("one").recall().memory.header.serial == 3  # and is remembered from now on

    @pytest.mark.long  # a variation of what another runner wrote
    def test_what_another_runner_went_on_with_from_there_is_believed_too(self, server):
        _, anchor = self.begun_anew(server)
        self.went_on(server, 2)
        assert server.store("one", vouched=lambda: anchor).recall().memory.header.serial == 4

    @pytest.mark.long  # a variation of what another runner wrote
    def test_history_that_the_forge_was_not_told_of_stays_refused(self, server):
        old, anchor = self.begun_anew(server)
        for told in (None, replace(anchor, oid=old), replace(anchor, oid="f" * 40), replace(anchor, oid="")):
            with pytest.raises(UserError, match="rewritten"):
                server.store("one", vouched=lambda told=told: told).recall()

    @pytest.mark.long  # a variation of what another runner wrote
    @pytest.mark.attack(22)
    @pytest.mark.parametrize("odd", [{"lineage": LINEAGE}, {"serial": 1}])
    def test_neither_the_same_lineage_nor_an_older_position_excuses_a_rewritten_history(self, server, odd):
        _, anchor = self.begun_anew(server)
        with pytest.raises(UserError, match="rewritten"):
            server.store("one", vouched=lambda: replace(anchor, **odd)).recall()

    @pytest.mark.long  # a variation of what another runner wrote
    @pytest.mark.attack(18)
    def test_a_strangers_change_on_top_of_what_was_begun_anew_still_stops_the_cycle(self, server):
        _, anchor = self.begun_anew(server)
        server.fake.push(BRANCH, {"memory/open.json": b"{}\n"})
        with pytest.raises(UserError, match="someone else"):
            server.store("one", vouched=lambda: anchor).recall()

    @pytest.mark.long  # a variation of what another runner wrote
    def test_nobody_may_begin_anew_while_a_cycle_is_under_way(self, server):
        _, anchor = self.begun_anew(server)
        assert server.store("one", vouched=lambda: anchor).paused()

    def test_nobody_else_may_go_on_while_a_cycle_is_under_way(self, server):
        here = server.store("one")
        here.commit(batch(), None)
        self.went_on(server, 1)
        assert here.paused()


class TestHolders:
    def test_another_clones_process_is_never_proven_dead(self, server):
        one, two = server.store("one"), server.store("two")
        with one.exclusive(), two.exclusive():
            assert not two.proven_dead(one.holder())
            assert two.proven_dead(two.holder())

    def test_an_earlier_process_of_this_clone_is(self, server):
        held = server.store().holder().rpartition(":")[0] + ":1"
        with server.store().exclusive() as ours:
            assert ours
        store = server.store()
        with store.exclusive():
            assert store.proven_dead(held)

    @pytest.mark.parametrize("over", [True, False])
    def test_a_workflow_run_is_dead_when_the_forge_says_it_is_over(self, server, over):
        asked: list[str] = []
        store = server.store(run_is_over=lambda url: bool(asked.append(url)) or over)
        url = "https://github.com/harbour/slackwater/actions/runs/7/attempts/1"
        assert not store.proven_dead(url)
        with store.exclusive():
            assert store.proven_dead(url) is over
        assert asked == [url]


class TestDue:
    def due(self, server: Server, now=NOON) -> tuple[bool, str]:
        due, _, reason = due_on_server(server.place(), server.folder / "kept", now)
        return due, reason

    def test_without_memory_a_cycle_is_due(self, server):
        assert self.due(server) == (True, "due: there is no memory yet")

    def test_it_is_due_from_the_due_minute_on_and_asks_once_per_commit(self, server):
        store = server.store()
        made = batch(claim=claim("me"))
        header = replace(made.memory.header, next_due_at=NOON)
        store.commit(replace(made, memory=replace(made.memory, header=header)), None)
        assert self.due(server, NOON - timedelta(minutes=1))[0] is False
        before = server.fake.count("git")
        assert self.due(server)[0] is True
        assert server.fake.count("git", below="/git-upload-pack") > 0
        assert server.fake.count("git") - before <= 2

    def test_memory_that_cannot_be_read_is_due_so_that_the_cycle_says_why(self, server):
        server.fake.push(BRANCH, {LOG: b"nonsense"})
        assert self.due(server) == (True, "due: memory cannot be read")
