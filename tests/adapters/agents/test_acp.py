"""Programs that speak the Agent Client Protocol: a scripted one, made with the SDK's own agent side."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ralph_mission.adapters.agents import clients
from ralph_mission.adapters.agents.clients import find_client, presence
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.loop.model.state import Hat

PROGRAM = (sys.executable, str(Path(__file__).with_name("acp_agent.py")))
REVIEWER = Hat(
    "reviewer", tools_denied=("Write",), commands_denied=("git push",), write_allowed=("docs/**",), write_denied=()
)


@pytest.fixture
def script(play):
    """Play these steps."""

    def played(*steps, **options):
        client = find_client("acp", PROGRAM)
        return play(client.program, prompt=json.dumps(steps), client=client, name="acp", **options)

    return played


def test_words_calls_tokens_and_cost_are_told_and_the_last_message_is_the_answer(script, tree):
    heard: list[RunEvent] = []
    given = script(
        {"say": "I look around."}, {"ask": ["execute", "ls", {"command": "ls -l"}, ""]}, {"cost": 0.5},
        {"write": [str(tree / "a.txt"), "done"]}, {"read": str(tree / "a.txt")}, {"say": "with MODEL LOOP_COMPLETE"},
        tell=lambda _, event: heard.append(event),
    )  # fmt: skip  # one session
    assert given.failure == "" and given.text.split() == "ls: yes; read: done with some-model LOOP_COMPLETE".split()
    assert (given.usage.input_tokens, given.usage.output_tokens, given.usage.cost_usd) == (9, 3, 0.5)
    assert given.calls == ("Bash: ls -l",) and given.refused == ()
    assert [(event.kind, event.text.strip()) for event in heard][:2] == [
        ("text", "I look around."), ("tool", "Bash: ls -l"),
    ]  # fmt: skip  # as it came
    assert (tree / "a.txt").read_text() == "done"


def test_what_a_hat_may_not_do_is_refused_by_us_and_on_record(script, tree):
    (tree.parent / "run").mkdir()  # a loop's, where guards keep their record
    given = script(
        {"ask": ["edit", "a", {}, str(tree / "src/a.py")]}, {"ask": ["edit", "b", {}, str(tree / "docs/a")]},
        {"ask": ["execute", "push", {"command": "touch made; git push origin; touch after"}, ""]},
        {"ask": ["execute", "quoted", {"command": "sh -c 'git push elsewhere'"}, ""]},
        {"ask": ["execute", "force", {"command": "sudo ls"}, ""]}, {"ask": ["fetch", "web", {}, ""]},
        {"ask": ["read", "passwd", {}, "/etc/passwd"]}, {"ask": ["edit", "blind", {}, ""]},
        {"write": [str(tree / "docs/b.md"), "no"]}, {"say": "LOOP_COMPLETE"}, hat=REVIEWER,
    )  # fmt: skip  # one session
    assert given.failure == "" and len(given.refused) == 8, given
    told = " ".join(given.refused)
    for part in (
        "src/a.py",
        "git push origin",
        "elsewhere",
        "sudo ls",
        "fetch",
        "/etc/passwd",
        "blind",
        "Write is not",
    ):
        assert part in told
    assert (tree / "made").exists() and (tree / "after").exists()
    assert not (tree / "docs/b.md").exists()


@pytest.mark.long  # starts two programs
def test_one_that_wants_a_login_says_so(script):
    given = script({"say": "never"}, hat="nobody")
    assert (given.failure, "log in with its own program" in given.detail) == ("auth", True)


@pytest.mark.long  # starts two programs
def test_one_that_dies_has_failed_with_its_own_words(script):
    given = script({"say": "half"}, {"die": 3})
    assert given.failure == "exit" and "it crashed" in given.detail, given


def test_one_that_is_not_there_is_missing(play):
    client = find_client("acp", ("no-such-agent", "--acp"))
    given = play(client.program, client=client, name="acp")
    assert (given.failure, "no-such-agent: not found" in given.detail) == ("missing", True)


def test_each_of_the_table_is_started_by_its_own_program_and_sees_its_own_keys(tmp_path):
    assert {name: client.program[4:] for name, client in clients.ACP_CLIENTS.items()} == {
        "acp:claude": ("claude-agent-acp",), "acp:codex": ("codex-acp",), "acp:gemini": ("gemini", "--acp"),
        "acp:copilot": ("copilot", "--acp", "--stdio"), "acp:opencode": ("opencode", "acp"),
    }  # fmt: skip  # a table
    assert find_client("acp:gemini").keys == find_client("gemini").keys
    assert find_client("acp:gemini", PROGRAM).program[4:] == PROGRAM
    assert presence(find_client("acp", PROGRAM), tmp_path, {}).version.startswith("python")
    assert presence(find_client("acp", ("no-such-agent",)), tmp_path, {}).version == ""
