"""`ralph work` as a person starts it: on the local forge, with a program as the agent."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.git.git import Git
from ralph_mission.app import issues
from ralph_mission.mission.issues import finish
from tests.cli.loop_world import RALPH, World, until, world
from tests.helpers import Result, cli_here, git

READY = "ralph-ready"
COMPLETE = "change()\ncommit()\nprint('made it')\nprint('LOOP_COMPLETE')\n"
REMEMBERS = """
with (run_dir.parent / "agent").joinpath("memories.md").open("a") as file:
    file.write("## Patterns\\n\\n### mem-1737372000-a1b2\\n> Tables are in metres; closes #1\\n"
               "<!-- tags: units | created: 2026-05-04 -->\\n")
"""
CODEX = """#!/bin/sh
cat > /dev/null
echo made > made.txt && git add -A && git commit -qm made
printf '%s\\n' '{"type":"item.completed","item":{"type":"agent_message","text":"Made by codex.\\n\\nLOOP_COMPLETE"}}'
printf '%s\\n' '{"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}'
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    return world(tmp_path, {"ralph.yml": "hands: {fixers: []}\n"})


def forge(shop: World) -> LocalForge:
    return LocalForge(Git.open(shop.repo))


def ready(shop: World, title: str = "Add a cart") -> None:
    mara = Person(forge(shop), "mara")
    mara.label(mara.create_issue(title, "With a sum."), (READY,))


def labels(shop: World, number: int) -> set[str]:
    return set(forge(shop).issue(number).labels)


def here(shop: World, *arguments: str) -> Result:
    """A command in this process, which is quicker than one of its own."""
    return cli_here(*arguments, repo=shop.repo)


def work(shop: World, script: str, *options: str):
    return here(shop, "work", "--once", "--json", *shop.agent(script), *options)


def test_one_issue_ends_with_its_pull_and_leaves_the_checkout_alone(shop):
    ready(shop)
    done = shop.ralph("work", "--once", "--json", *shop.agent(COMPLETE))
    assert done.code == 0, done.err
    assert "give one with hands.verify in ralph.yml" in done.err and "--verify" not in done.err
    said = done.json
    assert (said["outcome"], said["issue"], said["pull_request"], said["sessions"]) == ("done", 1, 2, 1)
    assert labels(shop, 1) == set() and not (shop.repo / "file-1.txt").exists()
    assert subprocess.run(["git", "-C", shop.repo, "status", "--porcelain"], capture_output=True).stdout == b""
    assert here(shop, "pr", "show", "2").out.count("made it") == 1
    assert (here(shop, "memory", "verify").code, here(shop, "memory", "show", "--json").json["working"]) == (0, [])
    states = {(line["kind"], line["state"]) for line in here(shop, "journal", "--json").json}
    assert states == {(kind, "done") for kind in ("label", "comment", "edit_comment", "push_branch", "open_pull")}
    assert here(shop, "cycle").code == 0


def test_nothing_to_do_is_done(shop):
    done = work(shop, COMPLETE)
    assert (done.code, done.json["outcome"], done.json["issue"], shop.calls) == (0, "idle", None, [])


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_a_limit_is_the_exit_code_and_the_label_comes_back(shop):
    ready(shop)
    done = work(shop, "change()\nprint('going on')\n", "--max-iterations", "2")
    assert (done.code, done.json["outcome"], done.json["sessions"]) == (2, "waiting", 2)
    assert labels(shop, 1) == {READY}


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_a_limit_of_money_that_nobody_set_does_not_end_sessions_of_unknown_cost(shop):
    ready(shop), ready(shop, "Add a sum")
    assert work(shop, COMPLETE).json["outcome"] == "done"
    (shop.repo / "ralph.yml").write_text("hands: {fixers: []}\nwork: {usd_per_issue: 3}\n")
    done = work(shop, "change()\nprint('going on')\n")
    assert (done.code, "the cost is unknown" in done.json["reason"]) == (2, True)


def test_wrong_usage_claims_nothing(shop):
    ready(shop)
    nobody = here(shop, "work", "--once", "--json")
    assert (nobody.code, "no agent is named" in nobody.json["error"]["what"]) == (64, True)
    assert here(shop, "work", "--once", "--persistent", *shop.agent(COMPLETE)).code == 64
    assert here(shop, "work", "--persistent", *shop.agent(COMPLETE)).code == 64, "there is no PROMPT.md"
    assert labels(shop, 1) == {READY} and shop.calls == []


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_what_one_issue_taught_is_a_proposal_and_reaches_no_prompt_before_a_person_takes_it(shop):
    ready(shop), ready(shop, "Add a sum")
    first = work(shop, REMEMBERS + COMPLETE)
    assert first.json["outcome"] == "done", first.err
    assert "Tables are in metres" in here(shop, "pr", "show", str(first.json["pull_request"])).out
    assert "Tables are in metres" not in here(shop, "memory", "show").out
    assert work(shop, COMPLETE).json["issue"] == 2
    assert "Tables are in metres" not in shop.prompt(2) and "# Implement: Add a sum (#2)" in shop.prompt(2)
    assert not (shop.repo / ".ralph/agent/memories.md").exists()


def started(shop: World, script: str) -> subprocess.Popen[str]:
    line = [*RALPH, "work", "--once", "--json", *shop.agent(script)]
    return subprocess.Popen(line, text=True, cwd=shop.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_an_interrupt_gives_the_issue_back(shop):
    ready(shop)
    process = started(shop, "change()\ntime.sleep(600)\n")
    until(lambda: shop.calls)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert (json.loads(out)["outcome"], labels(shop, 1)) == ("waiting", {READY})


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_a_killed_runner_is_released_by_the_next_and_not_while_it_lives(shop):
    ready(shop)
    process = started(shop, "change()\ntime.sleep(600)\n")
    until(lambda: shop.calls)
    meanwhile = work_beside(shop)
    assert (meanwhile["outcome"], labels(shop, 1)) == ("idle", {"ralph-working"})
    shop.end(process)
    done = work(shop, COMPLETE)
    assert done.json["settled"] == [{"issue": 1, "outcome": "waiting"}]
    assert (done.json["outcome"], done.json["try"], labels(shop, 1)) == ("done", 1, set()), "a crash is nobody's try"


def work_beside(shop: World) -> dict[str, object]:
    """Another run, whose agent says that it was called by failing the test."""
    command = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(9)'"
    said: dict[str, object] = here(shop, "work", "--once", "--json", "--command", command).json
    return said


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_one_issue_alone_ends_the_run_and_one_that_is_not_ready_is_left(shop):
    ready(shop), ready(shop, "Add a sum")
    done = here(shop, "work", "--issue", "2", "--json", *shop.agent(COMPLETE))
    assert (done.code, done.json["issue"], labels(shop, 1)) == (0, 2, {READY})
    here(shop, "issue", "unlabel", "1", READY)
    left = here(shop, "work", "--issue", "1", "--json", *shop.agent(COMPLETE))
    assert (left.code, left.json["outcome"], len(shop.calls)) == (0, "idle", 1)
    assert left.json["skipped"] == [{"issue": 1, "why": "it is not labelled ralph-ready, or no longer"}]
    nowhere = here(shop, "work", "--issue", "99", "--json", *shop.agent(COMPLETE))
    assert (nowhere.code, "99" in nowhere.json["error"]["what"]) == (1, True)
    assert here(shop, "work", "--issue", "1", "--persistent", *shop.agent(COMPLETE)).code == 64


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_what_people_say_and_what_the_repository_asks_for_is_in_the_prompt(shop):
    (shop.repo / "AGENTS.md").write_text("Write tests first.\n")
    git(shop.repo, "add", "AGENTS.md"), git(shop.repo, "commit", "-qm", "Guide")
    (shop.repo / "AGENTS.md").write_text("Not yet agreed on.\n")
    ready(shop)
    here(shop, "issue", "comment", "1", "/ralph guidance Round to cents.")
    here(shop, "guidance", "Leave the tax alone.")
    done = work(shop, COMPLETE)
    assert done.json["outcome"] == "done", done.err
    prompt = shop.prompt(1)
    for words in ("Round to cents.", "Leave the tax alone.", "> > Write tests first."):
        assert words in prompt
    assert "Not yet agreed on" not in prompt
    begun = here(shop, "issue", "show", "1").out
    assert "**Guidance:**" in begun and "Leave the tax alone" not in begun
    assert [one["given"] for one in here(shop, "guidance", "--list", "--json").json["guidance"]] == [True]


def test_an_agent_that_a_label_names_and_nobody_installed_costs_nothing(shop):
    ready(shop)
    here(shop, "issue", "label", "1", "agent:opencode")
    done = work(shop, COMPLETE)
    assert (done.json["outcome"], shop.calls) == ("idle", [])
    assert "asks for opencode, which is not installed here" in done.json["skipped"][0]["why"]


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_a_label_names_the_agent_and_leaves_what_was_named_for_another_one(shop, tmp_path, monkeypatch):
    """The program of `--command` is for the usual agent; the label's is found on PATH."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(CODEX)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    ready(shop)
    here(shop, "issue", "unlabel", "1", READY)
    here(shop, "issue", "label", "1", "agent:codex")
    done = work(shop, COMPLETE)
    assert (done.json["outcome"], shop.calls) == ("done", []), done.err
    assert "Made by codex." in here(shop, "pr", "show", str(done.json["pull_request"])).out


@pytest.mark.long  # a variation of the one issue, with a process of its own
def test_a_persistent_run_puts_its_role_before_each_issue_and_goes_on_until_it_is_interrupted(shop):
    (shop.repo / "PROMPT.md").write_text("You look after the shop.\n")
    ready(shop)
    line = [*RALPH, "work", "--persistent", "--json", *shop.agent(COMPLETE)]
    told = shop.aside / "told"
    with told.open("w") as file:
        process = subprocess.Popen(line, text=True, cwd=shop.repo, stdout=subprocess.PIPE, stderr=file)
    until(lambda: "#1 Add a cart: done, pull request #2" in told.read_text())
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130 and labels(shop, 1) == set(), told.read_text()
    assert "> You look after the shop.\n>\n> # Implement: Add a cart (#1)" in shop.prompt(1)


@pytest.mark.long  # two killed processes
def test_a_killed_runner_costs_one_session_no_try_and_no_money_that_nobody_told(shop):
    ready(shop)
    script = "if call == 1:\n    change(); commit(); print('half of it')\nelse:\n    time.sleep(600)\n"
    for calls in (2, 3):
        process = started(shop, script)
        until(lambda calls=calls: len(shop.calls) == calls)
        shop.end(process)
        spend = here(shop, "status", "--json").json["spend"]
        assert (spend["usd_today"], spend["reserved_usd"]) == (5, 5)
    done = work(shop, "change()\ncommit()\nprint('LOOP_COMPLETE')\n")
    assert (done.json["outcome"], done.json["try"], done.json["sessions"]) == ("done", 1, 1), done.err
    diff = shop.ralph("pr", "diff", str(done.json["pull_request"])).out
    assert "file-1.txt" in diff and "file-4.txt" in diff, "what the first session made is in it"
    assert here(shop, "status", "--json").json["spend"]["usd_today"] == 0
    assert shop.ralph("issue", "show", "1").out.count("was broken off") == 2


def test_an_issue_that_a_person_closes_meanwhile_costs_no_further_session(shop, monkeypatch):
    ready(shop)
    look = finish.is_taken_back

    def close_and_look(opened, record):
        Person(forge(shop), "mara").close_issue(1)
        return look(opened, record)

    monkeypatch.setattr(issues, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(finish, "is_taken_back", close_and_look)
    result = work(shop, "change()\nprint('more to do')\n").json
    assert (result["outcome"], result["reason"]) == ("withdrawn", "a person took it back")
    assert result["sessions"] <= 1 and labels(shop, 1) == set()
