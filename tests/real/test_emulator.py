"""The GitHub forge beside an emulator of GitHub that others wrote: issues, comments, labels, closing, people.

What it shows is that the forge and our own fake do not merely share one misunderstanding. What cannot
run here stands in `ELSEWHERE` with its reason, and the reasons are tested too, so that the table is
looked at again when the emulator changes. emulator.md tells who is right.
"""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest

from ralph_mission.adapters.forges.github import threads
from ralph_mission.errors import Missing
from ralph_mission.mission.model.effects import EditComment, Label
from ralph_mission.mission.model.forge import Actor
from tests.contract.forge_contract import ForgeContract
from tests.contract.forge_world import KEY, OTHER, World, comment, open_issue, push_branch
from tests.real.conftest import EmulatedWorld
from tests.real.emulator import BOT, OWNER, Emulator

pytestmark = pytest.mark.real  # needs large software

GIT_ALONE = "branches are read and written by git alone, which the emulator does not serve"
NO_PULL_AS_ISSUE = "a pull is not told as an issue too, and has no events"
NO_COMMITS = "what was pushed is unknown to its pulls: head, commits, merges are of its own making"
NO_LABEL_EVENT = "labels given while an issue is opened leave no event"
NO_ASSIGNEES = "whether somebody can be assigned is not told"

ELSEWHERE: dict[str, tuple[str, ...]] = {
    GIT_ALONE: (
        "test_branch_has_one_commit_on_its_base",
        "test_pushing_twice_is_pushing_once",
        "test_branch_with_somebody_elses_commit_is_left_alone",
        "test_odd_branch_name_is_refused",
        "test_default_branch_is_never_pushed",
        "test_edit_that_does_not_fit_fails_and_leaves_no_branch",
        "test_file_is_deleted",
        "test_any_path_goes_into_the_commit",
        "test_branch_follows_its_base_by_a_merge",
        "test_branch_that_conflicts_with_its_base_stays",
        "test_branch_that_somebody_pushed_to_is_not_moved_on",
    ),
    NO_PULL_AS_ISSUE: (
        "test_pull_is_labelled_too",
        "test_pull_reads_back_with_touches_and_commits",
        "test_touches_name_any_path",
        "test_closing_a_pull_twice_is_closing_it_once",
        "test_review_names_the_commit_that_was_reviewed",
        "test_review_comments_on_a_commit_and_decides_nothing",
        "test_reviewing_twice_is_reviewing_once",
        "test_marker_in_a_review_of_somebody_else_is_ignored",
        "test_edited_review_keeps_its_place_and_commit",
        "test_review_of_somebody_else_is_not_edited",
        "test_review_survives_as_it_is",
        "test_review_that_its_author_alone_worded_is_told_as_such",
        "test_review_with_remarks_on_lines_is_sent_once",
        "test_branch_that_somebodys_open_pull_builds_on_stays",
    ),
    NO_COMMITS: (
        "test_pull_without_a_branch_fails",
        "test_pull_without_commits_fails",
        "test_same_change_by_others_has_the_same_patch_id",
        "test_merged_pull_is_listed_with_its_patch_id_and_touches_nothing_any_more",
        "test_pulse_counts_what_happened_since",
        "test_pull_of_a_person_is_listed",
        "test_merge_brings_the_change_to_the_base",
        "test_review_does_not_stand_in_the_way_of_a_merge",
        "test_merged_pull_says_so",
        "test_merging_twice_is_merging_once",
        "test_head_that_moved_is_not_merged",
        "test_base_that_moved_is_merged_when_there_is_no_conflict",
        "test_merge_whose_approval_stands_goes_through",
        "test_merge_without_the_approval_it_rests_on_is_refused",
        "test_merge_into_another_base_than_approved_is_refused",
        "test_conflict_is_not_merged",
        "test_closed_pull_is_not_merged",
        "test_merged_pull_is_not_closed",
        "test_invalid_utf8_name_on_the_base_survives_a_merge",
        "test_pull_is_ready_while_it_is_open_and_merges_without_conflicts",
    ),
    NO_LABEL_EVENT: ("test_label_that_is_there_already_is_no_event",),
    NO_ASSIGNEES: ("test_labelling_twice_is_labelling_once",),
}
"""Tests of the contract that cannot run here, by the reason."""


class TestForgeBesideTheEmulator(ForgeContract):
    """The contract, but for what stands in `ELSEWHERE`, for merges, and for the blank comments, which GitHub refuses as
    well."""

    @pytest.mark.parametrize("end", ["closed", "merged by a person", "closed by a person"])
    def test_branch_of_a_pull_that_is_over_is_deleted_once(self, world: World, end: str) -> None:
        super().test_branch_of_a_pull_that_is_over_is_deleted_once(world, end)

    @pytest.mark.parametrize("text", ["a\r\nb\rc", "---\nnumber: 9\n---", "===== comment 1", "\x00\u202e\x1b[31m"])
    def test_comment_survives_as_it_is(self, world: World, text: str) -> None:
        super().test_comment_survives_as_it_is(world, text)


@pytest.fixture(autouse=True)
def _edits_at_once_are_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator tells milliseconds and has no GraphQL, and the contract edits at once."""
    monkeypatch.setattr(threads, "NEAR", timedelta(0))


for _name in (name for names in ELSEWHERE.values() for name in names):
    assert callable(getattr(ForgeContract, _name)), f"{_name} left the contract: look at ELSEWHERE"
    setattr(TestForgeBesideTheEmulator, _name, None)


# --- what the contract leaves out, and an emulator can tell


def test_lists_of_several_pages_are_read_whole(world: EmulatedWorld) -> None:
    mara = world.human("mara")
    numbers = [mara.create_issue(f"Question {i}") for i in range(101)]
    mine = world.forge.perform(open_issue()).number
    remark = world.forge.perform(comment(mine)).number
    remarks = [remark, *(mara.comment(mine, f"Hm {i}") for i in range(101))]
    assert [issue.number for issue in world.forge.issues()] == [*numbers, mine]
    assert [told.id for told in world.forge.issue(mine).remarks] == remarks
    found = world.forge.find(comment(mine))
    assert found and found.number == remark
    assert world.forge.find(comment(mine, OTHER)) is None


def test_issue_of_ours_is_found_behind_a_hundred_newer_ones(world: EmulatedWorld) -> None:
    first = world.forge.perform(open_issue()).number
    for i in range(101):
        world.human(BOT).create_issue(f"Other {i}")
    world.human("mara").close_issue(first)
    found = world.forge.find(open_issue())
    assert found and (found.status, found.number) == ("adopted", first)


@pytest.mark.parametrize("name", ["a/b c", "50%", "q?#&=", "ümläut", "content:review"])
def test_label_of_any_name_is_set_and_taken_off(world: EmulatedWorld, name: str) -> None:
    number = world.human("mara").create_issue("Question")
    assert world.forge.perform(Label(KEY, number, (name,), ())).status == "done"
    assert world.forge.issue(number).labels == {name}
    assert [issue.number for issue in world.forge.issues("all", (name,))] == [number]
    assert world.forge.perform(Label(KEY, number, (), (name,))).status == "done"
    assert world.forge.issue(number).labels == set()


@pytest.mark.parametrize(
    ("permission", "may"), [("pull", False), ("triage", False), ("push", True), ("maintain", True), ("admin", True)]
)
def test_who_may_write_may_approve(world: EmulatedWorld, permission: str, may: bool) -> None:
    world.human(OWNER).do("PUT", "./collaborators/jonas", {"permission": permission})
    assert world.forge.may_approve(world.human("jonas").actor) is may


def test_stranger_and_somebody_with_a_login_that_was_given_up_may_not_approve(world: EmulatedWorld) -> None:
    world.human(OWNER).do("DELETE", "./collaborators/jonas")
    mara = world.human("mara").actor
    assert not world.forge.may_approve(world.human("jonas").actor)
    assert not world.forge.may_approve(Actor(mara.id + 1000, "mara"))


def test_text_of_another_issue_is_not_edited_under_a_wrong_number(world: EmulatedWorld) -> None:
    one, two = (world.human("mara").create_issue(title) for title in ("One", "Two"))
    made = world.forge.perform(comment(one)).number
    assert world.forge.perform(EditComment(KEY, two, made, "x")).status == "failed"


# --- why some of the contract cannot run here


def status(emulator: Emulator, method: str, path: str, body: object = None, login: str = "mara") -> int:
    return emulator.ask(login, method, path, body).status


def test_emulator_listens_to_this_machine_alone(world: EmulatedWorld) -> None:
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", world.emulator.port), timeout=5):
        pass


def test_emulator_serves_no_git_and_no_graphql(world: EmulatedWorld) -> None:
    git = f"/{world.emulator.repository}.git/info/refs?service=git-upload-pack"
    assert status(world.emulator, "GET", git) == 404
    assert status(world.emulator, "POST", "/graphql", {"query": "query { viewer { login } }"}) == 404


def test_emulator_tells_no_pull_as_an_issue(world: EmulatedWorld) -> None:
    number = world.human("mara").open_pull("topic", "main", "Mine")
    assert status(world.emulator, "GET", f"./pulls/{number}") == 200
    assert status(world.emulator, "GET", f"./issues/{number}") == 404
    assert status(world.emulator, "GET", f"./issues/{number}/events") == 404
    assert world.emulator.ask("mara", "GET", "./issues").body == []
    with pytest.raises(Missing):
        world.forge.issue(number)


def test_emulator_makes_up_branches_and_takes_a_pull_twice(world: EmulatedWorld) -> None:
    order = {"head": "no-such-branch", "base": "main", "title": "Mine"}
    pulls = [world.emulator.ask("mara", "POST", "./pulls", order) for _ in range(2)]
    assert [pull.status for pull in pulls] == [201, 201]
    pushed = world.forge.perform(push_branch(world))
    made = world.human(BOT).open_pull("ralph/fix", "main", "Ours")
    assert world.emulator.ask("mara", "GET", f"./pulls/{made}").body["head"]["sha"] != pushed.sha


def test_emulator_keeps_no_event_of_labels_given_while_opening(world: EmulatedWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question", labels=("bug",))
    mara.label(number, ("bug",))
    mara.label(number, ("more",))
    assert [event.label for event in world.forge.issue(number).events] == ["more"]


def test_emulator_does_not_tell_who_can_be_assigned(world: EmulatedWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("old",))
    assert status(world.emulator, "GET", "./assignees/mara") == 404
    effect = Label(KEY, number, ("new",), ("old",), ("mara",))
    assert [world.forge.perform(effect).status for _ in range(2)] == ["done", "adopted"]
    issue = world.forge.issue(number)
    assert (issue.labels, issue.assignees) == ({"new"}, ())


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_emulator_refuses_a_blank_comment_as_github_does(world: EmulatedWorld, text: str) -> None:
    number = world.human("mara").create_issue("Question", text)
    assert world.forge.issue(number).body == text
    assert status(world.emulator, "POST", f"./issues/{number}/comments", {"body": text}) == 422


def test_emulator_tells_labels_apart_by_case(world: EmulatedWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("Bug", "bug"))
    assert world.forge.issue(number).labels == {"Bug", "bug"}


def test_emulator_keeps_no_answer_apart_from_the_one_before(world: EmulatedWorld) -> None:
    assert world.emulator.ask("mara", "GET", "./issues").headers["ETag"] is None


def test_emulator_takes_any_token_for_the_first_account(world: EmulatedWorld) -> None:
    assert world.emulator.ask("nobody", "GET", "/user").body["login"] == OWNER
