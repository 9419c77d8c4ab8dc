"""A mission's work in a clone: what was done is checked again before it is believed; what it cost is never unsaid."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from ralph_mission.adapters.fixers import coder
from ralph_mission.adapters.fixers import coder as module
from ralph_mission.adapters.fixers.coder import NOTE, AgentCoder
from ralph_mission.adapters.git.git import Git
from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.waiting import CORRECT_BASE, PICK_AGENT
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult, BaseChecks, RedCheck
from ralph_mission.mission.model.mission import Usage
from ralph_mission.mission.model.proposal import PatchVerification
from ralph_mission.mission.proof.claim import CodeClaim, Refusal
from ralph_mission.mission.proof.judge import ProofVerdict
from ralph_mission.safety.patch import Patch
from tests.helpers import NOON, make_repo
from tests.mission.build import loop_result

COST = Usage(1, cost_usd=0.25)
Action = Callable[[Path], object]


class Shop:
    """A coder whose agent does `action`; `checked` are the changes that the checks were asked about."""

    def __init__(self, folder: Path, files: Mapping[str, str] = {}) -> None:
        self.git = Git.open(make_repo(folder / "repo", {"README.md": "# Harbour\n", **files}))
        self.place, self.checks, self.checked, self.plays = folder / "missions", True, list[Patch](), 0
        self.action: Action = lambda tree: (tree / "table.py").write_text("TABLE = 1\n")
        self.played = loop_result(0, "complete", words="It is there.", sessions=1, usage=COST)
        self.base = BaseChecks()
        self.coder = AgentCoder(self.git, self.place, self._play, self._check, lambda _: self.base)

    def _play(self, tree: Path, commission: AgentJob) -> AgentResult:
        self.plays += 1
        self.red = [check.command for check in commission.red]
        self.action(tree)
        return self.played

    def _check(self, patch: Patch, red: Sequence[RedCheck]) -> PatchVerification:
        self.checked.append(patch)
        return PatchVerification(self.checks, standing=tuple(check.command for check in red))

    def commission(self, **more: object) -> AgentJob:
        head = self.git.resolve("HEAD")
        return AgentJob(1, "A table", head, "Do it", 2.0, 60.0, "ralph/mission-1", subject="abc", **more)  # type: ignore[arg-type]  # its fields

    def work(self, **more: object):
        return self.coder.work(self.commission(**more))

    @property
    def folder(self) -> Path:
        (only,) = self.place.iterdir()
        return only


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


# --- what was done before -------------------------------------------------------------


def test_what_was_done_before_a_crash_is_checked_again_and_sent_without_asking_the_agent(shop):
    first = shop.work()
    again = shop.work()
    assert (again.outcome, again.words, again.patch) == ("made", "It is there.", first.patch)
    assert shop.plays == 1 and shop.checked == [first.patch]
    assert again.usage.cost_usd == 0.0  # the cycle before paid for it


def test_a_note_that_a_session_forged_does_not_stand_for_the_checks(shop):
    """At the level `env` nothing keeps a session from the folder that its clone lies in."""
    forged = json.dumps({"words": "All checks pass.", "learned": [], "answered": ""})
    shop.action = lambda tree: ((tree / "table.py").write_text("broken"), (tree.parent / NOTE).write_text(forged))
    shop.played, shop.checks = loop_result(2, "iterations", sessions=1, usage=COST), False
    assert shop.work().outcome == "goes on"
    shop.action = lambda tree: None
    after = shop.work()
    assert (after.outcome, after.words, shop.plays) == ("goes on", "", 2)
    assert len(shop.checked) == 1 and not (shop.folder / NOTE).exists()


@pytest.mark.parametrize(
    "note", ["", "[]", "null", '{"words": 1}', "[" * 100_000, '{"words": "x", "learned": 3, "answered": ""}',
             '{"words": "x", "learned": [], "answered": "2999-01-01"}', "x" * 1_000_001],
)  # fmt: skip  # a list
def test_a_note_that_says_nothing_is_none(shop, note):
    shop.played = loop_result(2, "iterations")
    shop.work()
    (shop.folder / NOTE).write_text(note)
    assert shop.work(answers=NOON).outcome == "goes on" and shop.plays == 2


def test_a_note_cannot_say_that_reviews_to_come_were_answered(shop):
    shop.played = loop_result(2, "iterations")
    shop.work()
    forged = {"words": "x", "learned": [], "answered": (NOON + timedelta(days=900)).isoformat()}
    (shop.folder / NOTE).write_text(json.dumps(forged))
    assert shop.work(answers=NOON).answered_at == NOON
    (shop.folder / NOTE).write_text(json.dumps(forged))
    assert shop.work().answered_at is None


def test_three_empty_changes_are_three_tries(shop):
    shop.action = lambda tree: None
    for attempt in range(3):
        assert shop.work(attempt=attempt).patch.changes == ()
    assert shop.plays == 3


# --- what it cost ---------------------------------------------------------------------


def fails(error: Exception) -> Callable[..., object]:
    def call(*_: object, **__: object) -> object:
        raise error

    return call


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), UserError("it is odd", "look"), ValueError()]
)
def test_a_result_that_cannot_be_read_costs_what_it_cost(shop, monkeypatch, error):
    read = module.changed_since

    def later(*arguments: object) -> object:
        return fails(error)() if shop.plays else read(*arguments)

    monkeypatch.setattr(module, "changed_since", later)
    made = shop.work()
    assert (made.outcome, made.usage, made.sessions) == ("failed", COST, 1)
    assert made.reason.startswith("what it left cannot be read")


@pytest.mark.parametrize(
    ("owner", "name", "outcome"), [(module.files, "write", "made"), (module, "remove_folder", "failed")]
)
def test_a_full_disk_after_the_work_costs_what_it_cost(shop, monkeypatch, owner, name, outcome):
    monkeypatch.setattr(owner, name, fails(OSError(28, "No space left on device")))
    if outcome == "failed":
        shop.played = loop_result(1, "crashed", sessions=1, usage=COST)
    made = shop.work()
    assert (made.usage, made.outcome) == (COST, outcome)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), UserError("no commit", "fetch it")])
def test_a_clone_that_cannot_be_made_costs_nothing(shop, monkeypatch, error):
    monkeypatch.setattr(module, "check_out", fails(error))
    made = shop.work()
    assert (made.outcome, made.usage, shop.plays) == ("failed", Usage(), 0)


def test_a_repository_that_a_session_left_in_its_clone_costs_what_it_cost(shop):
    shop.action = lambda tree: make_repo(tree / "inner")
    made = shop.work()
    assert made.usage == COST


def never(*_: object) -> NoReturn:
    """No agent is asked, and no check."""
    raise AssertionError


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git.open(make_repo(tmp_path / "shop"))


def noted(folder: Path, answered: datetime) -> None:
    """What a session, or an earlier cycle, left beside its clone."""
    said = {"words": "done", "learned": [], "answered": answered.isoformat()}
    (folder / coder.NOTE).write_text(json.dumps(said))


def answering(moment: datetime) -> AgentJob:
    """As much of a commission as is asked of a note."""
    made = AgentJob.__new__(AgentJob)
    for name, value in {"number": 3, "answers": moment}.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.attack(60)
def test_what_steers_agents_and_what_a_loop_keeps_is_no_work() -> None:
    assert not any(map(coder.is_work, (".claude/settings.json", ".mcp.json", ".ralph/loop/state.json")))
    assert coder.is_work("src/tide.py")


@pytest.mark.attack(46)
def test_a_link_is_no_folder_of_a_clone(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert coder.is_own_folder(tmp_path / "real") and not coder.is_own_folder(tmp_path / "link")


@pytest.mark.attack(46)
def test_a_link_in_the_place_of_the_clones_has_nothing_tidied_away(git: Git, tmp_path: Path) -> None:
    (tmp_path / "theirs/project").mkdir(parents=True)
    git.state_dir.mkdir()
    (git.state_dir / "missions").symlink_to(tmp_path / "theirs")
    hands = coder.AgentCoder(git, git.state_dir / "missions", never, never)
    hands.tidy([1])
    assert (tmp_path / "theirs/project").is_dir()
    (git.state_dir / "missions").unlink()
    (tmp_path / "theirs").rename(git.state_dir / "missions")
    hands.tidy([1])
    assert not (git.state_dir / "missions/project").exists()


@pytest.mark.attack(56)
def test_a_note_of_any_length_says_nothing(tmp_path: Path) -> None:
    noted(tmp_path, NOON)
    assert coder.read_note(tmp_path, answering(NOON)) is not None
    with (tmp_path / coder.NOTE).open("a") as note:
        note.write(" " * coder.LONGEST)
    assert coder.read_note(tmp_path, answering(NOON)) is None


@pytest.mark.attack(19)
def test_a_note_answers_no_review_that_came_after_it_was_asked(tmp_path: Path) -> None:
    noted(tmp_path, NOON + timedelta(days=1))
    told = coder.read_note(tmp_path, answering(NOON))
    assert told is not None and told.answered_at == NOON


RED = RedCheck("make lint", "exit code 1\nE501 too long")


def test_an_agent_is_not_asked_where_nothing_can_turn_green(shop: Shop) -> None:
    shop.base = BaseChecks((RED,))
    told = shop.work()
    assert (told.outcome, told.blocked, shop.plays, told.usd) == ("held", CORRECT_BASE, 0, 0.0)
    assert "make lint" in told.reason and "E501 too long" in told.reason
    assert not shop.place.exists()


def test_an_agent_of_a_label_that_is_not_here_is_told_and_nobody_works(shop: Shop) -> None:
    here = replace(shop.coder, missing=lambda agent: f"is no agent that Ralph knows ({agent})")
    told = here.work(shop.commission(agent="foo"))
    assert (told.outcome, told.blocked, shop.plays) == ("held", PICK_AGENT, 0)
    assert told.reason == "its label asks for foo, which is no agent that Ralph knows (foo)"


def test_a_check_that_is_red_already_is_handed_on_as_one_that_may_stay_so(shop: Shop) -> None:
    shop.base = BaseChecks((RED,), green=1)
    assert shop.work().outcome == "made"
    assert (shop.plays, shop.red) == (1, ["make lint"])
    again = shop.work()  # found as it was done: it is checked once more by the same rule
    assert (shop.plays, again.standing) == (1, ("make lint",))


# --- a bug ----------------------------------------------------------------------------


def mend(tree: Path) -> None:
    (tree / "app.py").write_text("TABLE = 2\n")
    (tree / "tests").mkdir()
    (tree / "tests/test_app.py").write_text("from app import TABLE\n\n\ndef test_a():\n    assert TABLE == 2\n")


class BugShop(Shop):
    """`told` is what the gate says, of the `claims` that it was asked about."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {"app.py": "TABLE = 1\n"})
        self.action = mend
        self.claims: list[tuple[CodeClaim, str]] = []
        self.told: ProofVerdict | Exception = ProofVerdict(None)
        self.coder = replace(self.coder, prove=self.prove)

    def prove(self, claim: CodeClaim, base: str) -> ProofVerdict:
        self.claims.append((claim, base))
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.fixture
def bugs(tmp_path: Path) -> BugShop:
    return BugShop(tmp_path)


def test_the_change_for_a_bug_is_judged_by_its_test_on_the_commit_where_it_began(bugs):
    made = bugs.work(bug=True)
    assert made.outcome == "made" and "3 of 3 runs" in made.proof
    ((claim, base),) = bugs.claims
    assert (claim.path, claim.test_files, base) == ("app.py", ("tests/test_app.py",), bugs.git.resolve("HEAD"))
    assert bugs.work(bug=True).proof == made.proof and bugs.plays == 1  # what an earlier cycle left is judged again


def test_any_other_change_is_not_judged_by_a_test(bugs):
    assert bugs.work().outcome == "made" and bugs.claims == []


def test_a_change_that_shows_no_bug_is_not_made_and_the_next_try_begins_anew(bugs):
    bugs.told = ProofVerdict(Refusal("passes-on-base", "its test does not fail on the base"))
    made = bugs.work(bug=True)
    assert (made.outcome, made.unseen) == ("failed", True)
    assert bugs.work(bug=True).outcome == "failed" and bugs.plays == 2


def test_an_agent_that_changes_nothing_did_not_see_the_bug(bugs):
    bugs.action = lambda tree: None
    assert bugs.work(bug=True).unseen and bugs.claims == []


def test_code_without_a_test_shows_no_bug_and_what_no_test_runs_needs_none(bugs):
    bugs.action = lambda tree: (tree / "new.py").write_text("TABLE = 2\n")
    assert bugs.work(bug=True).unseen
    bugs.action = lambda tree: (tree / "table.css").write_text("table {}\n")
    assert bugs.work(bug=True).outcome == "made" and bugs.claims == []


@pytest.mark.parametrize("problem", [UserError("bwrap is missing", "install it"), OSError(28, "No space left")])
def test_a_gate_that_cannot_be_asked_holds_nothing_up(bugs, problem):
    bugs.told = problem
    made = bugs.work(bug=True)
    assert made.outcome == "made" and "could not be checked here" in made.proof
