"""Where `ralph run` works: a clean checkout, a branch of the stories' own, a linked work tree."""

from __future__ import annotations

from pathlib import Path

from tests.cli.loop_world import ONE_STORY, until, world
from tests.helpers import git


def test_a_dirty_checkout_is_refused_and_named(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("build it", *here.agent("pass"))
    assert (done.code, here.calls) == (1, [])
    assert "mine.txt" in done.err
    assert "--worktree" in done.err and not (here.repo / ".ralph/workspace").exists()


def test_who_still_allows_a_dirty_checkout_is_told_that_it_has_no_effect(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("build it", "--allow-dirty", *here.agent("pass"))
    assert (done.code, here.calls) == (1, []) and "--allow-dirty has no effect" in done.err


def test_what_sessions_do_lands_and_the_checkout_is_clean(tmp_path: Path) -> None:
    here = world(tmp_path)
    done = here.run("build it", *here.agent("change()\nif call == 2: print('LOOP_COMPLETE')\nelse: commit('Mine')"))
    assert (done.code, here.messages()) == (0, ["build it (ralph, session 2)", "Mine", "Start"]), done.err
    assert git(here.repo, "status", "--porcelain") == "" and (here.repo / "file-2.txt").read_text() == "2"
    assert git(here.repo, "log", "-2", "--format=%an") == "Mara Quint\nMara Quint"


def test_a_session_works_in_a_clone_and_reaches_the_engines_files_from_there(tmp_path: Path) -> None:
    here = world(tmp_path)
    script = "(here / 'cwd').write_text(os.getcwd())\nsubprocess.run(['ralph', 'task', 'add', 'More'], check=True)\n"
    more = "pathlib.Path('.ralph/agent/scratchpad.md').write_text('a note')"
    done = here.run("build it", "--max-iterations", "1", *here.agent(script + more))
    assert done.code == 2, done.err
    assert (here.aside / "cwd").read_text() == str(here.repo / ".ralph/workspace/tree")
    assert "More" in (here.repo / ".ralph/agent/tasks.jsonl").read_text()
    assert (here.repo / ".ralph/agent/scratchpad.md").read_text() == "a note"


def test_without_its_repository_a_clone_is_no_part_of_the_checkout(tmp_path: Path) -> None:
    here = world(tmp_path)
    gone = "import shutil\nshutil.rmtree('.git')\nchange()\nsubprocess.run(['git', 'commit', '-aqm', 'x'])\n"
    branch = "subprocess.run(['git', 'branch', 'evil'])"
    assert here.run("build it", "--max-iterations", "1", *here.agent(gone + branch)).code == 2
    assert here.messages() == ["build it (ralph, session 1)", "Start"] and git(here.repo, "branch") == "* main"


def test_a_file_of_mine_that_stands_in_the_way_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    here = world(tmp_path)
    script = f"change()\npathlib.Path({str(here.repo)!r}, 'file-1.txt').write_text('mine')"
    done = here.run("build it", *here.agent(script))
    assert done.code == 1 and "cannot be taken over" in done.err and here.messages() == ["Start"]
    assert (here.repo / "file-1.txt").read_text() == "mine" and len([*here.repo.glob(".ralph/aside/*.patch")]) == 1
    (here.repo / "file-1.txt").unlink()
    again = here.run("build it", "--continue", "--max-iterations", "1", *here.agent("change()"))
    assert again.code == 2 and here.messages() == ["build it (ralph, session 1)", "Start"], again.err


def test_the_engines_own_files_do_not_make_it_dirty(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1)
    for name in ("progress.txt", "PROMPT.md", "ralph.yml", "archive/2026-01-01-old/prd.json"):
        (here.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (here.repo / name).write_text("" if name == "ralph.yml" else "# notes\n")
    assert here.run("--prd", *here.agent(ONE_STORY)).code == 0


def test_a_linked_work_tree_leaves_the_checkout_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("--prd", "--worktree", *here.agent(ONE_STORY))
    assert done.code == 0, done.err
    assert git(here.repo, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(here.repo, "log", "-1", "--format=%s", "ralph/shop") == "feat: US-001 - Part 1"
    assert here.passing() == []
    assert here.passing(".ralph/worktrees/ralph-shop/prd.json") == ["US-001"]


def test_a_named_list_of_stories_goes_along_into_a_linked_work_tree(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, place="tasks/prd.json")
    flipping = ONE_STORY.replace("flip(todo()[0])", "os.chdir('tasks'); flip('US-001'); os.chdir('..')")
    done = here.run("--prd-file", "tasks/prd.json", "--worktree", *here.agent(flipping))
    assert done.code == 0, done.err
    assert here.passing("tasks/prd.json") == []
    assert here.passing(".ralph/worktrees/ralph-shop/tasks/prd.json") == ["US-001"]


def test_the_branch_of_the_stories_is_gone_back_to(tmp_path: Path) -> None:
    here = world(tmp_path)
    git(here.repo, "branch", "ralph/shop")
    here.stories(1)
    assert here.run("--prd", *here.agent(ONE_STORY)).code == 0
    assert git(here.repo, "log", "-1", "--format=%s", "ralph/shop") == "feat: US-001 - Part 1"


def test_a_branch_name_that_is_none_is_refused(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, branch="--upload-pack=x")
    done = here.run("--prd", *here.agent(ONE_STORY))
    assert (done.code, here.calls) == (64, [])
    assert "branchName" in done.err


def test_a_linked_work_tree_says_how_its_work_gets_here_and_is_gone_on_in(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("change()\ncommit()")
    first = here.run("build it", "--worktree", "--max-iterations", "1", *agent)
    assert "git merge ralph-run/build-it" in first.err and ".ralph/worktrees/" in first.err
    again = here.run("--worktree", "--continue", "--max-iterations", "2", *agent)
    assert again.json["sessions"] == 2, again.err
    assert not (here.repo / "file-1.txt").exists()


def test_what_stands_where_the_engine_keeps_its_files_is_for_a_person_to_move(tmp_path: Path) -> None:
    here = world(tmp_path)
    place = here.repo / ".ralph"
    ways = {": file exists.": lambda: place.write_text("mine"), " is a link.": lambda: place.symlink_to(tmp_path)}
    for why, make in ways.items():
        make()
        done = here.run("build it", *here.agent("pass"))
        assert (done.code, here.calls) == (1, [])
        (error,) = [line for line in done.err.splitlines() if not line.startswith("isolation: ")]
        assert error.startswith(f"error: {place}{why}"), done.err
        place.unlink()


def test_what_a_killed_session_left_is_in_no_commit(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1)
    staging = "pathlib.Path('half.py').write_text('half')\nsubprocess.run(['git', 'add', '-A'])\nflip('US-001')\n"
    process = here.start("--prd", *here.agent(f"{staging}(here / 'staged').touch()\ntime.sleep(60)"))
    until((here.aside / "staged").exists)
    here.end(process)
    assert git(here.repo, "status", "--porcelain") == "?? .last-branch\n?? prd.json"
    assert here.passing() == []
    done = here.run("--prd", "--continue", *here.agent("change(); flip('US-001'); commit()"))
    assert done.code == 0, done.err
    assert {one["path"] for one in done.json["reverted"]} == {"half.py", "prd.json"}
    named = git(here.repo, "log", "--format=", "--name-only", "main..ralph/shop").split()
    assert sorted(named) == ["file-2.txt", "prd.json"] and here.passing() == ["US-001"]
    [patch] = here.repo.glob(".ralph/aside/*.patch")
    assert "half.py" in patch.read_text()
