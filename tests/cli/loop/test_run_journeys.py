"""`ralph run --prd` as a process: one story, one session, one commit; nothing passes that was not proven."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.loop import inbox, lock
from ralph_mission.cli.loop.hold import cancel
from tests.cli.loop.test_run_planning import TWO_SECTIONS
from tests.cli.loop.test_run_sandbox import at, run
from tests.cli.loop.test_run_teams import SAYS
from tests.cli.loop.test_work import labels, ready
from tests.cli.loop_world import ONE_STORY, World, until, works, world
from tests.helpers import git, make_repo
from tests.integration.isolation_attacks import level_or_skip, place

pytestmark = pytest.mark.long  # takes ten seconds or more

AT_ONCE = ("--prd", "--preset", "fresh")
"""As `--prd`, without its pause between two sessions."""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """Five stories."""
    here = world(tmp_path)
    here.stories(5)
    return here


@pytest.fixture
def two(tmp_path: Path) -> World:
    """Two stories."""
    here = world(tmp_path)
    here.stories(2)
    return here


def test_five_stories_take_five_sessions_and_five_commits(shop: World) -> None:
    done = shop.run("--prd", *shop.agent(ONE_STORY))
    assert done.code == 0, done.err
    assert done.json["stories"] == {"passing": 5, "total": 5}
    assert len(shop.calls) == 5
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in (5, 4, 3, 2, 1)] + ["Start"]
    assert git(shop.repo, "symbolic-ref", "--short", "HEAD") == "ralph/shop"
    assert (shop.repo / "progress.txt").read_text().count("- Passed in session") == 5


def test_a_kill_in_the_third_session_and_nothing_is_done_twice(shop: World) -> None:
    agent = shop.agent("if call == 3:\n    change()\n    time.sleep(600)\n" + ONE_STORY)
    process = shop.start(*AT_ONCE, *agent)
    until(lambda: (shop.clone / "file-3.txt").exists())
    shop.end(process)
    again = shop.run(*AT_ONCE, "--continue", *agent)
    assert again.code == 0, again.err
    assert again.json["sessions"] == 5
    assert len(shop.calls) == 6  # the one that was killed was given once more
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in (5, 4, 3, 2, 1)] + ["Start"]
    assert not (shop.repo / "file-3.txt").exists()
    assert [*shop.repo.glob(".ralph/aside/*.patch")] and not git(shop.repo, "for-each-ref", "refs/ralph")


def test_who_only_quotes_the_promise_never_completes(shop: World) -> None:
    quoting = (
        "change()\nprint('I must not say TASK_COMPLETE yet.\\nWhen done: <promise>TASK_COMPLETE</promise> comes last.')"
    )
    done = shop.run(*AT_ONCE, "--max-iterations", "2", *shop.agent(quoting))
    assert (done.code, done.json["stories"]["passing"]) == (2, 0)


def test_the_promise_alone_does_not_complete_stories(shop: World) -> None:
    script = "change()\nprint('<promise>TASK_COMPLETE</promise>')"
    done = shop.run(*AT_ONCE, "--max-iterations", "2", *shop.agent(script))
    assert (done.code, done.json["ending"]) == (2, "iterations")


def test_work_that_is_done_takes_no_session(two: World) -> None:
    agent = two.agent(ONE_STORY)
    assert two.run(*AT_ONCE, *agent).code == 0
    git(two.repo, "add", "-A")
    git(two.repo, "commit", "-qm", "The list")
    assert two.run(*AT_ONCE, *agent).json["sessions"] == 0
    assert len(two.calls) == 2


def test_a_persistent_loop_whose_hats_wait_to_be_called_is_resumed_without_one(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [build.asked]}}"
    here = world(tmp_path, {"ralph.yml": settings})
    agent = here.agent("open('log', 'a').write('x')\nprint('LOOP_COMPLETE')")
    done = here.run("build it", "--max-iterations", "2", *agent)
    assert (done.code, done.json["ending"], here.calls) == (2, "iterations", ["ralph"] * 2)
    assert "no hat listens to task.resume" in done.err and "EVENT: task.resume" in here.prompt(2)


def test_stories_in_omc_stay_there_and_its_state_follows(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, place=".omc/prd.json")
    flipping = ONE_STORY.replace("flip(todo()[0])", "os.chdir('.omc'); flip('US-001'); os.chdir('..')")
    done = here.run(*AT_ONCE, *here.agent(flipping))
    assert (done.code, here.passing(".omc/prd.json")) == (0, ["US-001"])
    handoff = json.loads((here.repo / ".omc/state/ralph-fresh-handoff.json").read_text())
    assert (handoff["completed"], handoff["prd"]["storiesCompleted"]) == (True, 1)
    assert json.loads((here.repo / ".omc/state/ralph-fresh-state.json").read_text())["active"] is False


def test_who_flips_all_stories_with_red_checks_never_completes(shop: World) -> None:
    agent = shop.agent("change()\nflip(*todo())\nprint('<promise>TASK_COMPLETE</promise>')")
    done = shop.run(*AT_ONCE, "--max-iterations", "2", "--verify", "false", *agent)
    assert (done.code, done.json["stories"]["passing"], shop.passing()) == (2, 0, [])


def test_who_flips_all_stories_with_green_checks_gets_one_at_a_time(shop: World) -> None:
    done = shop.run(*AT_ONCE, "--max-iterations", "2", "--verify", "true", *shop.agent("change()\nflip(*todo())"))
    assert (done.code, shop.passing()) == (2, ["US-001", "US-002"])


def test_an_empty_check_is_wrong_usage_and_never_a_green_one(shop: World) -> None:
    for empty in ("", " "):
        done = shop.run("build it", "--verify", "true", "--verify", empty, *shop.agent("print('LOOP_COMPLETE')"))
        assert (done.code, shop.calls) == (64, []) and "--verify is empty" in done.out


def test_the_stories_of_another_branch_put_the_former_ones_away(two: World) -> None:
    agent = two.agent(ONE_STORY)
    assert two.run(*AT_ONCE, *agent).code == 0
    two.stories(1, branch="ralph/cellar")
    assert two.run(*AT_ONCE, "--allow-dirty", *agent).code == 0
    archived = sorted(path.name for path in two.repo.glob("archive/*-shop/*"))
    assert archived == ["prd.json", "progress.txt"]
    put_away = next(two.repo.glob("archive/*-shop/prd.json"))
    assert len(two.passing(str(put_away.relative_to(two.repo)))) == 2


def test_required_tests_need_a_check(shop: World) -> None:
    done = shop.run("--prd", "--require-tests", *shop.agent(ONE_STORY))
    assert done.code == 64
    assert "--require-tests needs a check" in done.err
    assert shop.calls == []


@pytest.mark.parametrize(
    ("does", "passes"),
    [
        ("test.rename('tests/test_b.py')", []),
        ("test.write_text('# more\\n' + test.read_text() + '\\n')", []),
        ("test.with_name('test_b.py').write_text('def test_b():\\n    assert 2\\n')", ["US-001"]),
    ],
)
def test_a_required_test_is_neither_a_moved_one_nor_a_comment(tmp_path: Path, does: str, passes: list[str]) -> None:
    here = world(tmp_path, {"tests/test_a.py": "def test_a():\n    assert 1\n"})
    here.stories(1)
    script = f"change()\ntest = pathlib.Path('tests/test_a.py')\n{does}\nflip(todo()[0])"
    options = ("--require-tests", "--verify", "true", "--max-iterations", "1")
    done = here.run("--prd", *options, *here.agent(script))
    assert (done.code == 0, here.passing()) == (bool(passes), passes), done.err


def test_stories_of_the_user_interface_pass_the_browser_check_as_well(tmp_path: Path) -> None:
    here = world(tmp_path, {"ralph.yml": "loop: {browser_check: 'test -e browsed'}"})
    here.stories(2)
    prd = json.loads((here.repo / "prd.json").read_text())
    prd["userStories"][1]["acceptanceCriteria"].append("Verify in browser")
    (here.repo / "prd.json").write_text(json.dumps(prd))
    done = here.run(*AT_ONCE, "--max-iterations", "3", *here.agent(ONE_STORY))
    assert (done.code, here.passing()) == (2, ["US-001"])
    assert "test -e browsed" in here.prompt(3)


def test_progress_is_told_in_plain_lines_and_the_document_stands_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(2)
    done = here.run(*AT_ONCE, *here.agent(ONE_STORY))
    assert done.json["ending"] == "complete"
    assert "[1/20] US-001 Part 1, 0/2 stories" in done.err
    assert "passed US-001, file-1.txt, prd.json" in done.err
    assert "\x1b" not in done.err


def test_a_check_that_flips_stories_where_git_does_not_look_passes_none(tmp_path):
    shop, place = world(tmp_path), ".ralph/prd.json"
    shop.stories(3, place=place)
    script = f"change()\nlisted = pathlib.Path({place!r})\n"
    script += "listed.write_text(listed.read_text().replace('false', 'true', 1))\n"
    flips = ("--verify", f"test ! -e file-1.txt || sed -i s/false/true/g {place} {shop.repo / place}")
    done = shop.run("--prd", "--preset", "fresh", "--max-iterations", "1", *flips, *shop.agent(script))
    assert done.code == 2, done.err
    assert shop.passing(place) == ["US-001"]


# --- What `ralph run` was asked: a task, settings, hats, a pattern; and what makes no sense. ---


def test_prompt_md_is_the_task_by_default(tmp_path: Path) -> None:
    here = world(tmp_path, {"PROMPT.md": "Paint it blue"})
    assert here.run(*here.agent("change()\nprint('LOOP_COMPLETE')")).code == 0
    assert "> Paint it blue" in here.prompt(1)


def test_the_settings_of_ralph_orchestrator_are_obeyed(tmp_path: Path) -> None:
    settings = """
cli: {backend: custom, command: /bin/sh, args: [agent.sh], prompt_mode: stdin}
event_loop: {completion_promise: DEBUG_DONE, max_iterations: 7, starting_event: debug.start}
core: {guardrails: [Search first]}
hats:
  investigator: {triggers: [debug.start, fix.done], publishes: [fix.propose, DEBUG_DONE], instructions: Look.}
  fixer: {triggers: [fix.propose], publishes: [fix.done], default_publishes: fix.done}
"""
    script = """cat > prompt-$RALPH_ITERATION.txt
case $RALPH_ITERATION in
1) echo '<event topic="fix.propose">the lock</event>';;
3) echo '<event topic="DEBUG_DONE">fixed</event>';;
esac
"""
    here = world(tmp_path, {"ralph.yml": settings, "agent.sh": script})
    done = here.run("Find the cause")
    assert (done.code, done.json["sessions"]) == (0, 3), done.err
    runs = here.repo / ".ralph/loop/runs" / done.json["run"]
    hats = [json.loads((runs / f"session-000{number}.json").read_text())["hat"] for number in (1, 2, 3)]
    assert hats == ["investigator", "fixer", "investigator"]
    assert "Search first" in (here.repo / "prompt-1.txt").read_text()


def test_a_pattern_takes_turns_until_the_reviewer_is_content(tmp_path: Path) -> None:
    here = world(tmp_path)
    said = {"planner": "plan.complete", "builder": "build.complete", "fixer": "fix.complete"}
    playing = f"""
events = {said!r}
hat = os.environ["RALPH_HAT"]
issues = [] if call > 4 else [{{"file": "file-2.txt", "line": 1, "kind": "bug", "message": "no"}}]
payload = json.dumps({{"issues": issues}}) if hat == "reviewer" else "done"
if hat in ("builder", "fixer"):
    change()
print(f'<event topic="{{events.get(hat, "review.verdict")}}">{{payload}}</event>')
"""
    done = here.run("build it", "--pattern", "plan-build-review", *here.agent(playing))
    assert (done.code, here.calls) == (0, ["planner", "builder", "reviewer", "fixer", "reviewer"]), done.err


def test_hat_files_are_worn(tmp_path: Path) -> None:
    hat = '[hat]\nname = "scribe"\ntriggers = ["loop.start"]\n[files]\nwrite_allowed = ["docs/**"]\n' \
          '[exit]\nemit_event = "LOOP_COMPLETE"\n'  # fmt: skip  # one text
    here = world(tmp_path, {"ralph.yml": "loop: {hats: 'hats/*.toml'}", "hats/scribe.toml": hat})
    writes = "change()\npathlib.Path('docs').mkdir()\npathlib.Path('docs/a.md').write_text('a')\n"
    done = here.run("write it", *here.agent(f"{writes}print('<event topic=\"LOOP_COMPLETE\">done</event>')"))
    assert (done.code, here.calls) == (0, ["scribe"]), done.err
    assert [undone["path"] for undone in done.json["reverted"]] == ["file-1.txt"]
    assert not (here.repo / "file-1.txt").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["build it"], "--command"),
        (["build it", "--agent", "nobody"], "nobody"),
        (["--command", "true"], "PROMPT.md"),
        (["build it", "-P", "PROMPT.md", "--command", "true"], "two tasks"),
        (["--prd", "--command", "true"], "ralph plan"),
        (["build it", "--max-iterations", "0"], "--max-iterations"),
        (["build it", "--max-runtime", "soon"], "15m"),
        (["build it", "--no-such-option"], "--no-such-option"),
        (["build it", "--preset", "nothing", "--command", "true"], "nothing"),
        (["build it", "--pattern", "fresch", "--command", "true"], "fresh"),
        (["build it", "--pattern", "fresh", "--preset", "prd", "--command", "true"], "Leave --preset out"),
        (["-P", "gone.md", "--command", "true"], "gone.md"),
    ],
)
def test_wrong_usage_ends_with_64_and_says_what_is_right(tmp_path: Path, options: list[str], said: str) -> None:
    done = world(tmp_path).run(*options)
    assert done.code == 64
    assert said in done.err
    assert done.json["error"]["who"] == "you"


def test_a_persistent_loop_goes_on_after_completion_until_a_limit(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start, task.resume]}}"
    here = world(tmp_path, {"ralph.yml": settings})
    done = here.run("build it", "--max-iterations", "3", *here.agent("change()\nprint('LOOP_COMPLETE')"))
    assert (done.code, done.json["ending"], here.calls) == (2, "iterations", ["builder"] * 3)
    assert "failed" not in done.err


def test_a_task_without_stories_is_planned_first(tmp_path: Path) -> None:
    here = world(tmp_path)
    planning = """
if os.environ["RALPH_HAT"] == "planner":
    story = {"id": "US-001", "title": "Show the cart", "priority": 1, "passes": False, "notes": "",
             "description": "As a buyer, I want to see what I chose so that I can pay for it.",
             "acceptanceCriteria": ["The cart lists each product with its price", "Typecheck passes",
                                    "Verify in browser"]}
    prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop.", "userStories": [story]}
    pathlib.Path("prd.json").write_text(json.dumps(prd))
    sys.exit(0)
"""
    done = here.run("a cart", "--prd", *here.agent(planning + ONE_STORY))
    assert done.code == 0, done.err
    assert here.calls == ["planner", "ralph"]
    assert here.passing() == ["US-001"]
    assert "the checkout is on ralph/shop now" in done.err


# --- What says what a run may do: no session writes it, and a restart obeys nothing that changed meanwhile. ---

HATS = """
loop: {hats: 'hats/*.toml'}
"""
BUILDER = """
[hat]
name = "builder"
triggers = ["loop.start"]
publishes = ["build.complete"]
[files]
write_denied = ["docs.md"]
"""
WIDER = BUILDER.replace("docs.md", "none.md")
RESTARTS = """
if call == 1:
    widen()
    (run_dir / "signal").write_text("restart")
else:
    pathlib.Path("docs.md").write_text("x")
    print("LOOP_COMPLETE")
"""
ENV = {"RALPH_RESTART": "exit"}


def lines(*statements: str) -> str:
    """A function `widen` of the session."""
    return "\ndef widen():\n" + "".join(f"    {statement}\n" for statement in statements) + RESTARTS


@pytest.fixture
def shop_run_protected(tmp_path: Path) -> World:
    """A repository whose settings let everybody write everywhere, but for what is under test."""
    return world(tmp_path, {"ralph.yml": "completion: {open_tasks: trust}\n", "PROMPT.md": "build it\n"})


@pytest.fixture
def hats(tmp_path: Path) -> World:
    """A repository with a hat file."""
    return world(tmp_path, {"ralph.yml": HATS, "hats/builder.toml": BUILDER})


@pytest.mark.parametrize(
    "how",
    [
        ["pathlib.Path('ralph.yml').write_text('hands: {verify: [true]}')"],
        ["pathlib.Path('ralph.yml').write_text('hands: {verify: [true]}')", "commit()"],
        ["pathlib.Path('ralph.yml').unlink()"],
        ["pathlib.Path('ralph.yml').unlink()", "pathlib.Path('ralph.yml').symlink_to('other.yml')"],
        ["pathlib.Path('.gitignore').write_text('ralph.yml\\n')", "pathlib.Path('ralph.yml').write_text('{}')"],
    ],
    ids=["changed", "committed", "deleted", "linked", "ignored"],
)
def test_settings_are_put_back_in_every_run(shop_run_protected: World, how: list[str]) -> None:
    before = (shop_run_protected.repo / "ralph.yml").read_bytes()
    done = shop_run_protected.run("build it", *shop_run_protected.agent(lines(*how)), env=ENV)
    assert (done.code, done.json["ending"]) == (3, "restart"), done.err
    assert "ralph.yml" in [row["path"] for row in done.json["reverted"]]
    assert (shop_run_protected.repo / "ralph.yml").read_bytes() == before and not (
        shop_run_protected.repo / "ralph.yml"
    ).is_symlink()
    assert "You may not write `/ralph.yml`" in shop_run_protected.prompt(1)


@pytest.mark.parametrize(
    "how",
    [
        [f"pathlib.Path('hats/builder.toml').write_text({WIDER!r})"],
        [f"pathlib.Path('hats/zz.toml').write_text({WIDER!r})", "commit()"],
        ["import shutil", "shutil.move('hats', 'src')", "pathlib.Path('hats').symlink_to('src')",
         f"pathlib.Path('hats/builder.toml').write_text({WIDER!r})"],
    ],
    ids=["changed", "added", "folder linked"],
)  # fmt: skip  # one way after another
def test_a_session_cannot_widen_its_hat_by_a_restart(hats: World, how: list[str]) -> None:
    hats.repo.joinpath("hats/builder.toml").write_text(BUILDER)
    done = hats.run("build it", "--max-iterations", "2", *hats.agent(lines(*how)))
    assert done.code in (1, 2), done.err
    assert (hats.repo / "hats/builder.toml").read_text() == BUILDER
    assert [path.name for path in (hats.repo / "hats").iterdir()] == ["builder.toml"]
    assert not (hats.repo / "hats").is_symlink() and not (hats.repo / "docs.md").exists()


def test_a_file_with_the_objective_is_as_immutable_as_the_objective(shop_run_protected: World) -> None:
    done = shop_run_protected.run(
        *shop_run_protected.agent(lines("pathlib.Path('PROMPT.md').write_text('something else')")), env=ENV
    )
    assert (done.code, (shop_run_protected.repo / "PROMPT.md").read_text()) == (3, "build it\n"), done.err


def test_settings_that_git_ignores_say_nothing_from_within_a_clone(tmp_path: Path) -> None:
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    agent = shop.agent(lines("pathlib.Path('ralph.yml').write_text('hands: {verify: [true]}')"))
    done = shop.run_apart("build it", *agent)
    assert (done.code, len(shop.calls), (shop.repo / "ralph.yml").exists()) == (0, 2, False), done.err


@pytest.mark.parametrize("env", [{}, ENV], ids=["by itself", "by a supervisor"])
def test_nothing_restarts_by_settings_that_changed_in_the_checkout(tmp_path: Path, env: dict[str, str]) -> None:
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    agent = shop.agent(lines(f"pathlib.Path({str(shop.repo)!r}, 'ralph.yml').write_text('hands: {{verify: [true]}}')"))
    done = shop.run("build it", *agent, env=env)
    assert (done.code, len(shop.calls)) == (1, 1), done.err
    assert "ralph.yml" in done.err and "changed while the run was going" in done.err


def test_a_planner_cannot_widen_what_the_builders_may_do(tmp_path: Path) -> None:
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    writes = """
(run_dir.parents[1] / "ralph.yml").write_text("hands: {verify: [true]}")
story = {"id": "US-001", "title": "Count the shelf", "description": "As a keeper I see what is left.",
         "acceptanceCriteria": ["an empty shelf counts 0", "Typecheck passes"], "priority": 1, "passes": False}
prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop", "userStories": [story]}
pathlib.Path("prd.json").write_text(json.dumps(prd))
"""
    done = shop.run("a shop", "--prd", *shop.agent(writes))
    assert (done.code, shop.calls) == (1, ["planner"]), done.err


def test_who_plays_apart_cannot_write_them_either(tmp_path: Path) -> None:
    shop = world(tmp_path)
    writes = '    write("ralph.yml", "{}")\n    name ='
    agent = shop.agent(SAYS + TWO_SECTIONS.replace("    name =", writes))
    done = shop.run("a shop", "--pattern", "ralplan", "--build", *agent)
    assert done.code == 0, done.err
    assert [row["path"] for row in done.json["reverted"]] == ["ralph.yml"] * 2
    assert not (shop.repo / "ralph.yml").exists() and (shop.repo / "store.txt").exists()


# --- What a session leaves in the place of files that are read for the next one tells that one nothing. ---

ENVIRONMENT = {
    "GITHUB_TOKEN": "ghp_" + "a1B2" * 9, "DATABASE_URL": "postgres://u:dummy1pw@h/db",
    "TELEGRAM_BOT_TOKEN": "123456:dummytelegram", "PLAIN": "an-ordinary-canary",
}  # fmt: skip  # one environment
CANARIES = ("ghp_a1B2", "dummy1pw", "dummytelegram", "an-ordinary-canary", "PATH=", "CANARY")
MEMORY = "## Patterns\n\n### mem-1737372000-a1b2\n> CANARY of another\n<!-- tags: x | created: 2026-05-04 -->\n"
TEXTS = {
    ".ralph/agent/memories.md": MEMORY,
    ".ralph/agent/scratchpad.md": "CANARY\n",
    ".ralph/agent/tasks.jsonl": json.dumps({"id": "x", "title": "CANARY"}) + "\n",
    ".ralph/agent/said.jsonl": json.dumps({"topic": "CANARY", "payload": "CANARY"}) + "\n",
    ".ralph/loop/guidance.jsonl": json.dumps({"id": "x", "text": "CANARY"}) + "\n",
    "progress.txt": "## Codebase Patterns\n- CANARY\n\n---\n",
    "AGENTS.md": "## Codebase Patterns\n- CANARY\n\n---\n",
}
SEEN = "cat > prompt-$RALPH_ITERATION.txt; mkdir -p .ralph/agent .ralph/loop; S=/; "


@pytest.fixture
def here() -> Iterator[World]:
    with place() as made:
        yield world(made.root / "there")


@pytest.fixture(params=["env", "bwrap"])
def level(request: pytest.FixtureRequest, here: World) -> str:
    level_or_skip(request.param)
    at(here, request.param)
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "settings")
    return str(request.param)


def prompts(here: World) -> list[str]:
    return [path.read_text() for path in sorted(here.repo.glob("prompt-*.txt"))]


def hidden(here: World, name: str) -> Path:
    """A file that only its owner may read."""
    secret = here.aside / name.replace("/", "-")
    secret.write_text(TEXTS[name])
    secret.chmod(0o600)
    return secret


@pytest.mark.attack(42)
def test_our_environment_is_in_no_prompt(here: World, level: str) -> None:
    names = " ".join(name for name in TEXTS if name.startswith(".ralph"))
    script = f"for f in {names}; do rm -f $f; ln -s ${{S}}proc/self/environ $f; done; git add -A; git commit -qm x"
    run(here, SEEN + script, "build it", "--max-iterations", "3", env=ENVIRONMENT)
    assert len(prompts(here)) == 3
    assert [word for told in prompts(here) for word in CANARIES if word in told] == []


@pytest.mark.parametrize("way", ["file", "folder"])
def test_what_a_link_leads_to_is_in_no_prompt_and_in_none_of_our_files(here: World, level: str, way: str) -> None:
    here.stories(2)
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "stories")
    lines = [f"rm -f {name}; ln -s ${{S}}{str(hidden(here, name))[1:]} {name}" for name in TEXTS]
    if way == "folder":
        folder = here.aside / "agent"
        folder.mkdir()
        shutil.copy(hidden(here, ".ralph/agent/memories.md"), folder / "memories.md")
        (folder / "scratchpad.md").write_text("CANARY")
        lines = [f"rm -rf .ralph/agent; ln -s ${{S}}{str(folder)[1:]} .ralph/agent"]
    run(here, SEEN + "; ".join([*lines, "git add -A", "git commit -qm x"]), "--prd", "--max-iterations", "3")
    told = prompts(here)
    assert len(told) >= 2 and not any("CANARY" in one for one in told)
    ours = [path for path in (here.repo / ".ralph").rglob("*") if path.is_file() and not path.is_symlink()]
    assert all("CANARY" not in path.read_text(errors="replace") for path in ours if "session-" not in path.name)


@pytest.mark.attack(33)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what belongs to others")
def test_what_somebody_wrote_into_the_notes_of_a_secret_of_ours_is_cut_out(here: World, level: str) -> None:
    leave = "printf '%s' 'the token is '$(printf ghp_; for i in 1 2 3 4 5 6 7 8 9; do printf a1B2; done) "
    run(here, SEEN + leave + "> .ralph/agent/scratchpad.md; git add -A; git commit -qm x", "build it",
        "--max-iterations", "2", env=ENVIRONMENT)  # fmt: skip  # one call
    assert "the token is [redacted: known-value]" in prompts(here)[1] and "ghp_a1B2" not in prompts(here)[1]


LONG = """
folder = run_dir.parent / "agent"
folder.mkdir(exist_ok=True)
(folder / "memories.md").write_text(%s)
change(); commit()
print("LOOP_COMPLETE")
"""


@pytest.mark.parametrize(
    "text, kept, said",
    [
        ("'### mem-1737372000-a1b2\\n> ' + 'x' * 5000 + '\\n\\n### mem-1737372001-a1b2\\n> short\\n'", 1,
         "1 new memories are left out"),
        ("'x' * (9 * 1024 * 1024)", 0, "is larger than 8,388,608 bytes"),
        ("''.join(f'### mem-{i}-a1b2\\n> fact {i}\\n' for i in range(500))", 50, "450 new memories are left out"),
    ],
)  # fmt: skip  # one table
def test_no_memory_costs_the_work_of_whoever_had_it(here: World, text: str, kept: int, said: str) -> None:
    ready(here)
    done = here.ralph("work", "--once", "--json", *here.agent(LONG % text))
    assert done.code == 0 and done.json["outcome"] == "done", (done.out, done.err)
    assert labels(here, 1) == set() and said in done.err
    body = here.ralph("pr", "show", "2").out
    assert ("short" in body if kept == 1 else "xxxx" not in body) and body.count("fact ") <= kept


# --- A person's word to a run: Ctrl-C, `ralph agent cancel`, and who is not let in beside it. ---

STUBBORN = "import signal\nfor word in (signal.SIGTERM, signal.SIGINT):\n    signal.signal(word, signal.SIG_IGN)\n"
WAITS = """
change()
(here / "busy").write_text(str(os.getpid()))
if call == 1:
    time.sleep(600)
print("LOOP_COMPLETE")
"""
CHECK = (  # it hangs once, of what a session made
    "test -e file-1.txt && test ! -e {0} || exit 0; trap '' TERM INT; echo $$ > {0}.new; mv {0}.new {0}; sleep 600"
)
BUSY = {
    "an agent": (WAITS, False),
    "an agent that ignores it": (STUBBORN + WAITS, False),
    "a check that ignores it": ("change()\nprint('LOOP_COMPLETE')", True),
}
"""Who is at work when the word comes: for ten minutes, if nobody ends it."""


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", BUSY)
def test_an_interrupt_leaves_nothing_running_and_the_run_goes_on(
    tmp_path: Path, busy: str, word: signal.Signals
) -> None:
    here = world(tmp_path)
    script, checked = BUSY[busy]
    mark = here.aside / "busy"
    asked = [*here.agent(script), *(["--verify", CHECK.format(shlex.quote(str(mark)))] if checked else [])]
    process = here.start("build it", *asked)
    until(mark.exists)
    process.send_signal(word)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["ending"]) == (130, "interrupted"), err
    assert not works(int(mark.read_text()))
    done = here.run("--continue", *asked)
    assert (done.code, done.json["sessions"]) == (0, 1)


def test_cancel_ends_the_session_at_once_and_the_run_is_not_continued(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.clone / "file-1.txt").exists())
    told = here.ralph("cancel", "--json")
    out, _ = process.communicate(timeout=300)
    assert (told.code, told.json["running"]) == (0, True)
    assert (process.returncode, json.loads(out)["ending"]) == (1, "cancel")
    again = here.run("--continue", *here.agent("pass"))
    assert again.code == 64
    assert "there is no task" in again.err
    fresh = here.run("build it", "--continue", *here.agent("change()\nprint('LOOP_COMPLETE')"))
    assert fresh.code == 0 and "no run of this objective is left to continue" in fresh.err


def test_a_state_that_is_no_file_is_said_before_any_other_task_is_taken(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / ".ralph" / "loop" / "state.json").mkdir(parents=True)
    again = here.run("--continue", *here.agent("pass"))
    assert (again.code, "state.json is not a regular file" in again.err) == (1, True)


def test_cancel_lets_the_session_end_when_asked_to_stop(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start(
        "build it", *here.agent("change()\nwhile not (here / 'go').exists():\n    time.sleep(0.02)\nprint('half way')")
    )
    until(lambda: (here.clone / "file-1.txt").exists())
    assert here.ralph("cancel", "--stop").code == 0
    (here.aside / "go").touch()
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["ending"], json.loads(out)["sessions"]) == (1, "stop", 1)


def test_cancel_reaches_a_run_that_begins_only_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the lock after the first look, and forgets what was asked of an earlier run after that."""
    git_dir, home = make_repo(tmp_path) / ".git", tmp_path / ".ralph"
    held, lookups = ExitStack(), list[str]()

    def goes_on(_seconds: float) -> None:
        lookups.append(inbox.read(home))
        if len(lookups) == 1:
            held.enter_context(lock.exclusive(git_dir, tmp_path, "prd", datetime.now(UTC)))
        if len(lookups) == 2:
            inbox.clear(home)

    clock = SimpleNamespace(sleep=goes_on, monotonic=count(0, 0.1).__next__)
    monkeypatch.setattr("ralph_mission.cli.loop.hold.time", clock)
    with held:
        told = CliRunner().invoke(cancel, ["--repo", str(tmp_path)])
    assert "was asked to cancel" in told.output, told.output
    assert (lookups[:2], inbox.read(home)) == (["", "cancel"], "cancel")


def test_cancel_clears_up_after_a_loop_that_was_killed(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.clone / "file-1.txt").exists())
    here.end(process)
    told = here.ralph("cancel", "--json")
    assert (told.code, told.json["running"]) == (0, False)
    assert "the state of " in told.json["said"]
    assert here.ralph("cancel").out == "Nothing runs here.\n"


def test_a_second_loop_in_the_same_checkout_is_refused(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.clone / "file-1.txt").exists())
    other = here.run("build that", "--command", "true")
    process.terminate()
    process.communicate(timeout=300)
    assert other.code == 1
    assert f"process {process.pid}" in other.err
    assert "ralph agent cancel" in other.err


# --- What an agent says of a secret that the runner knows is in no line of ours: as processes, on both streams. ---

SECRET = "violet-Kettle-41-harbour"
FAILS = f"sys.stderr.write('bad key {SECRET}\\n')\nsys.exit(1)\n"


@pytest.fixture
def shop_secrets_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("MY_API_TOKEN", SECRET)
    return world(tmp_path, {"ralph.yml": "hands: {fixers: []}\n"})


@pytest.mark.attack(33)
@pytest.mark.parametrize("command", ["run", "work"])
def test_why_a_session_failed_is_told_without_the_secret_in_it(shop_secrets_said: World, command: str) -> None:
    mara = Person(LocalForge(Git.open(shop_secrets_said.repo)), "mara")
    mara.label(mara.create_issue("Add a cart", "With a sum."), ("ralph-ready",))
    options = ["build it"] if command == "run" else ["--once"]
    done = shop_secrets_said.ralph(command, *options, "--json", *shop_secrets_said.agent(FAILS))
    assert done.code == 1 and "bad key [redacted: known-value]" in done.err
    assert SECRET not in done.err + done.out
