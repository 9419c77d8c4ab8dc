"""Stories side by side: real clones and processes, what is merged, what passes, and what is left for one at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import World, world
from tests.helpers import git

APART = """
import re
found = re.search(r"^> (?:[^:]*: )?(US-\\d+): ", prompt, re.M) or re.search(r"(US-\\d+): Part", prompt)
id = found[1] if found and "RALPH_TASK" in os.environ else todo()[0]
def build(name=None, text="done"):
    pathlib.Path(name or f"{id}.txt").write_text(text + "\\n")
    print(f'<event topic="build.complete">{id}</event>' if "RALPH_TASK" in os.environ else "did it")
    if "RALPH_TASK" not in os.environ:
        flip(id)
with (here / "played").open("a") as file:
    file.write(f"{os.environ.get('RALPH_TASK', 'alone')} {id}\\n")
"""


def stories(here: World, needs: dict[str, list[str]]) -> None:
    listed = [{"id": id, "title": f"Part {id}", "priority": place, "passes": False, "needs": wanted}
              for place, (id, wanted) in enumerate(needs.items())]  # fmt: skip  # one list
    (here.repo / "prd.json").write_text(json.dumps({"branchName": "ralph/shop", "userStories": listed}, indent=2))


def played(here: World) -> list[str]:
    return (here.aside / "played").read_text().splitlines()


@pytest.mark.parametrize("check", [(), ("--verify", "test -f US-1.txt")])
def test_independent_stories_are_built_at_once_and_the_rest_after_what_it_needs(
    tmp_path: Path, check: tuple[str, ...]
) -> None:
    here = world(tmp_path)
    stories(here, {"US-1": [], "US-2": [], "US-3": ["US-1", "US-2"]})
    done = here.run("--prd", "--parallel", "2", *check, *here.agent(APART + "build()"))
    assert (done.code, done.json["sessions"]) == (0, 3), done.err
    assert sorted(played(here)) == ["alone US-3", "story-1 US-1", "story-2 US-2"]
    assert here.passing() == ["US-1", "US-2", "US-3"]
    assert {path.name for path in here.repo.glob("US-*.txt")} == {"US-1.txt", "US-2.txt", "US-3.txt"}
    built = {"feat: US-1: Part US-1", "feat: US-2: Part US-2", "feat: US-1, US-2 pass, built side by side"}
    assert built < set(here.messages())
    assert (here.repo / "progress.txt").read_text().count("US-") >= 3


def test_a_story_left_alone_is_claimed_by_the_same_event_as_those_side_by_side(tmp_path: Path) -> None:
    here = world(tmp_path)
    stories(here, {"US-1": [], "US-2": [], "US-3": ["US-1"], "US-4": ["US-3"]})
    does = "change()\nprint('<event topic=\"build.complete\">built</event>')"
    done = here.run("--prd", "--parallel", "2", *here.agent(does))
    assert (done.code, done.json["sessions"]) == (0, 4), done.err
    assert here.passing() == ["US-1", "US-2", "US-3", "US-4"]
    assert {"feat: US-3 - Part US-3", "feat: US-4 - Part US-4"} < set(here.messages())


def test_a_claim_of_a_story_left_alone_is_taken_back_by_red_checks(tmp_path: Path) -> None:
    here = world(tmp_path)
    stories(here, {"US-1": [], "US-2": ["US-1"]})
    does = "change()\nprint('<event topic=\"build.complete\">built</event>')"
    options = ("--verify", "test ! -f file-2.txt", "--max-iterations", "2")
    done = here.run("--prd", "--parallel", "2", *options, *here.agent(does))
    assert (done.code, here.passing()) == (2, ["US-1"]), done.err


def test_stories_that_pass_together_last_reach_the_checkout_and_the_report(tmp_path: Path) -> None:
    here = world(tmp_path)
    stories(here, {"US-1": [], "US-2": []})
    done = here.run("--prd", "--parallel", "2", *here.agent(APART + "build()"))
    assert (done.code, here.passing()) == (0, ["US-1", "US-2"]), done.err
    log = (here.repo / "progress.txt").read_text()
    assert all(f"- Passed in session {n} (builder)\n- Files changed: US-{n}.txt" in log for n in (1, 2)), log
    records = sorted((here.repo / ".ralph/loop/runs").glob("*/session-*.json"))
    made = [commit["hash"] for path in records for commit in json.loads(path.read_text())["commits"]]
    assert made == git(here.repo, "log", "-3", "--reverse", "--format=%H").splitlines()
    assert git(here.repo, "status", "--porcelain", "prd.json").strip() == ""


def test_a_story_built_apart_does_not_pass_by_its_mark_in_the_list(tmp_path: Path) -> None:
    here = world(tmp_path)
    stories(here, {"US-1": [], "US-2": []})
    git(here.repo, "add", "prd.json")
    git(here.repo, "commit", "-qm", "list")
    does = "flip('US-1', 'US-2')\nprint('<event topic=\"build.complete\">done</event>')"
    done = here.run("--prd", "--parallel", "2", "--max-iterations", "2", *here.agent(does))
    assert (done.code, here.passing(), here.messages()[0]) == (2, [], "list"), done.err
    both = here.agent(APART + "flip('US-1', 'US-2')\nbuild()")  # who also builds is not hindered by it
    done = here.run("--prd", "--parallel", "2", *both)
    assert (done.code, here.passing(), done.json["sessions"]) == (0, ["US-1", "US-2"], 2), done.err


@pytest.mark.long  # variations with several rounds
@pytest.mark.parametrize(
    ("does", "check", "together"),
    [
        ("build('same.txt', id)", (), 1),  # the second met the first, and is built on it
        ("build() if id != 'US-2' or 'RALPH_TASK' not in os.environ else print('I could not')", (), 1),
        ("build(text='done' if 'RALPH_TASK' not in os.environ else 'bad')", ("--verify", "! grep -q bad US-1.txt"), 0),
    ],
)
def test_what_cannot_be_done_together_is_done_one_by_one(
    tmp_path: Path, does: str, check: tuple[str, ...], together: int
) -> None:
    here = world(tmp_path)
    stories(here, {"US-1": [], "US-2": []})
    done = here.run("--prd", "--parallel", "4", *check, *here.agent(APART + does))
    assert (done.code, here.passing()) == (0, ["US-1", "US-2"]), done.err
    assert sum(line.startswith("story-") for line in played(here)) == 2
    assert sum(line.startswith("alone") for line in played(here)) == 2 - together


def test_what_parallel_cannot_mean_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    here = world(tmp_path)
    done = here.run("build it", "--parallel", "2", *here.agent("pass"))
    assert (done.code, "give it with --prd" in done.json["error"]["next"]) == (64, True)
