"""The folder: one lock, one count, nothing in git's way, nothing lost."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.errors import UserError
from tests.adapters.forges.conftest import LocalWorld
from tests.contract.forge_world import KEY, comment, open_issue, push_branch
from tests.helpers import git, make_repo


def create_some(repo: str, login: str) -> list[int]:
    """In a process of its own: ten issues."""
    person = Person(LocalForge(Git.open(Path(repo))), login)
    return [person.create_issue(f"Issue {n} of {login}") for n in range(10)]


@pytest.mark.long  # four processes; the lock has a test of its own
def test_issues_created_by_four_processes_have_distinct_numbers(repo: Path, world: LocalWorld) -> None:
    logins = ["ada", "ben", "cleo", "dan"]
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        numbers = [n for some in pool.starmap(create_some, [(str(repo), login) for login in logins]) for n in some]
    assert sorted(numbers) == list(range(1, 41))
    assert {issue.author.login for issue in world.forge.issues()} == set(logins)


def test_number_of_a_deleted_issue_is_not_given_again(repo: Path, world: LocalWorld) -> None:
    number = world.human("mara").create_issue("Gone soon")
    (repo / f".ralph/forge/issues/{number:04d}.md").unlink()
    assert world.human("mara").create_issue("Next") == number + 1


def test_forge_is_kept_out_of_git_once(repo: Path, world: LocalWorld) -> None:
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("*.swp")
    for title in ("One", "Two"):
        world.human("mara").create_issue(title)
    assert (repo / ".git/info/exclude").read_text() == "*.swp\n/.ralph/\n"
    assert git(repo, "status", "--porcelain") == ""


def test_reading_leaves_nothing_behind(repo: Path, world: LocalWorld) -> None:
    assert (world.forge.issues("all"), world.forge.pulls("all"), world.forge.anchor()) == ((), (), None)
    assert not (repo / ".ralph").exists()


def test_addresses_are_relative_to_the_repository(repo: Path, world: LocalWorld) -> None:
    receipt = world.forge.perform(open_issue())
    assert receipt.url == ".ralph/forge/issues/0001.md"
    assert (repo / receipt.url).is_file()
    assert world.forge.perform(comment(1)).url == ".ralph/forge/issues/0001.md#comment-1"


def test_linked_work_tree_shares_the_forge(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    world.human("mara").create_issue("Seen from both")
    linked = LocalWorld.at(tmp_path / "linked")
    assert [issue.title for issue in linked.forge.issues()] == ["Seen from both"]
    assert linked.human("mara").create_issue("Next") == 2


def test_bare_repository_has_its_forge_inside(repo: Path, tmp_path: Path) -> None:
    git(repo, "clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare.git"))
    world = LocalWorld.at(tmp_path / "bare.git")
    url = world.forge.perform(open_issue()).url
    assert Path(url) == tmp_path / "bare.git/ralph/forge/issues/0001.md" and Path(url).is_file()


def test_edit_by_hand_is_seen(repo: Path, world: LocalWorld) -> None:
    number = world.human("mara").create_issue("Old title", "Text")
    path = repo / world.forge.issue(number).url
    path.write_text(path.read_text().replace("Old title", "New title"))
    assert world.forge.issue(number).title == "New title"


def test_mangled_file_is_trouble_and_stays_as_it_is(repo: Path, world: LocalWorld) -> None:
    mara = world.human("mara")
    number, other = mara.create_issue("One"), mara.create_issue("Two")
    path = repo / world.forge.issue(number).url
    path.write_text(path.read_text().replace("state: open", "state: [open"))
    mangled = path.read_bytes()
    attempts = (lambda: mara.comment(number, "Hi"), world.forge.issues, lambda: world.forge.issue(number))
    for attempt in attempts:
        with pytest.raises(UserError, match=r"^\.ralph/forge/issues/0001\.md, line \d+: "):
            attempt()
    assert path.read_bytes() == mangled
    assert world.forge.issue(other).title == "Two"


def test_what_could_not_be_read_again_is_not_written(repo: Path, world: LocalWorld) -> None:
    number = world.human("mara").create_issue("One")
    with pytest.raises(UserError, match="cannot be kept"):
        world.human("mara").label(number, ("x" * 300_000,))
    assert not world.forge.issue(number).labels


def test_undecodable_bytes_in_a_title_or_label_do_no_harm(world: LocalWorld) -> None:
    number = world.human("mara").create_issue("T\udcff", "B\udcff", ("l\udcff",))
    issue = world.forge.issue(number)
    assert (issue.title, issue.body, issue.labels) == ("T?", "B\udcff", {"l?"})


def test_file_that_is_not_text_is_trouble(repo: Path, world: LocalWorld) -> None:
    number = world.human("mara").create_issue("One")
    path = repo / world.forge.issue(number).url
    path.write_bytes(path.read_bytes() + b"fine\n\xff\n")
    with pytest.raises(UserError, match=r"0001\.md, line \d+: not UTF-8"):
        world.forge.issue(number)


def test_file_under_another_number_is_trouble(repo: Path, world: LocalWorld) -> None:
    number = world.human("mara").create_issue("One")
    path = repo / world.forge.issue(number).url
    path.with_name("0009.md").write_bytes(path.read_bytes())
    with pytest.raises(UserError, match="says it is issue 1"):
        world.forge.issue(9)


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/forge", ".ralph/forge/issues", ".ralph/forge/lock"])
def test_nothing_is_written_where_a_link_leads(repo: Path, world: LocalWorld, tmp_path: Path, link: str) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    (repo / link).parent.mkdir(parents=True, exist_ok=True)
    (repo / link).symlink_to(theirs / "nothing" if link.endswith("lock") else theirs)
    with pytest.raises(UserError, match=f"{repo / link} is a link") as caught:
        world.human("mara").create_issue("One")
    assert caught.value.exit_code == 1 and list(theirs.iterdir()) == []


@pytest.mark.parametrize("damaged", ["", "many", "\u0661", "-7", "9" * 13])
def test_a_damaged_note_of_the_last_number_is_trouble_rather_than_a_number_given_twice(
    repo: Path, world: LocalWorld, damaged: str
) -> None:
    mara = world.human("mara")
    mara.create_issue("One")
    (repo / ".ralph/forge/last-number").write_text(damaged)
    with pytest.raises(UserError, match="last-number is damaged"):
        mara.create_issue("Two")


def test_what_is_no_file_in_the_place_of_the_last_number_is_neither_followed_nor_waited_for(
    repo: Path, world: LocalWorld, tmp_path: Path
) -> None:
    mara, note = world.human("mara"), repo / ".ralph/forge/last-number"
    mara.create_issue("One")
    (tmp_path / "theirs").write_text("7")
    for stand in (lambda: note.symlink_to(tmp_path / "theirs"), lambda: os.mkfifo(note)):
        note.unlink()
        stand()
        with pytest.raises(UserError, match="last-number is damaged"):
            mara.create_issue("Two")


def test_a_copy_by_links_is_no_harm(repo: Path, world: LocalWorld, tmp_path: Path) -> None:
    mara = world.human("mara")
    mara.create_issue("One")
    for name in ("lock", "last-number"):
        os.link(repo / ".ralph/forge" / name, tmp_path / name)
    (repo / ".ralph/forge/issues/0001.md").unlink()
    assert mara.create_issue("Two") == 2


@pytest.mark.parametrize("damaged", ["{", pytest.param("[" * 200_000, id="nested")])
def test_damaged_anchor_is_trouble(repo: Path, world: LocalWorld, damaged: str) -> None:
    world.human("mara").create_issue("One")
    (repo / ".ralph/forge/anchor.json").write_text(damaged)
    with pytest.raises(UserError, match="anchor"):
        world.forge.anchor()


def test_other_files_in_the_folder_are_left_alone(repo: Path, world: LocalWorld) -> None:
    world.human("mara").create_issue("One")
    (repo / ".ralph/forge/issues/notes.md").write_text("mine")
    (repo / ".ralph/forge/issues/.0002.md.new").write_text("half a fi")
    assert [issue.number for issue in world.forge.issues()] == [1]
    assert world.human("mara").create_issue("Two") == 2


def test_times_never_run_backwards(repo: Path) -> None:
    from tests.helpers import NOON

    forge = LocalForge(Git.open(repo), now=lambda: NOON)
    mara = Person(forge, "mara")
    number = mara.create_issue("One")
    mara.comment(number, "Two")
    mara.label(number, ("three",))
    issue = forge.issue(number)
    assert issue.created_at < issue.remarks[0].created_at < issue.events[0].at


@pytest.mark.parametrize("login", ["ralph[bot]", "Ralph[BOT]", "", "a b", "x\ny", "[x]"])
def test_odd_logins_are_refused(world: LocalWorld, login: str) -> None:
    with pytest.raises(UserError):
        world.human(login)


def test_identity_is_not_taken_from_the_environment(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Eve")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "eve@example.org")
    sha = world.forge.perform(push_branch(world, key=KEY)).sha
    assert git(world.git.git_dir, "log", "-1", "--format=%an %cn %ce", sha) == "Ralph Ralph ralph@localhost"


def test_default_branch_is_found_without_a_checkout(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", branch="trunk")
    git(repo, "switch", "--quiet", "--detach")
    git(repo, "branch", "ralph/fix")
    git(repo, "branch", "ralph-memory")
    assert LocalForge(Git.open(repo)).default_branch().name == "trunk"
    git(repo, "branch", "topic")
    git(repo, "branch", "master")
    assert LocalForge(Git.open(repo)).default_branch().name == "master"
    git(repo, "update-ref", "refs/remotes/origin/trunk", "HEAD")
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert LocalForge(Git.open(repo)).default_branch().name == "trunk"


def test_detached_head_is_never_the_default_branch(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", branch="one")
    git(repo, "branch", "two")
    assert LocalForge(Git.open(repo)).default_branch().name == "one"
    git(repo, "switch", "--quiet", "--detach")
    with pytest.raises(UserError, match="not clear"):
        LocalForge(Git.open(repo)).default_branch()


def test_repository_without_commits_is_trouble(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    git(tmp_path / "r", "init", "--quiet")
    with pytest.raises(UserError, match="no commits"):
        LocalForge(Git.open(tmp_path / "r")).default_branch()
