"""Claude Code: what is asked of the driver, what that judges, how its result is read. The client: tests/real."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from ralph_mission.adapters.agents import claude, claude_driver, clients
from ralph_mission.adapters.agents.reading import Gave, turn
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import called, play, sample, seen

EVERYWHERE, WRITER = Hat("builder"), Hat("writer", write_allowed=("docs/**",), write_denied=("docs/api.md",))


def read_input(folder, **options):
    play(claude.CLIENT, folder, **options)
    return json.loads(seen(folder)["stdin"])


def read(**result):
    return claude.CLIENT.read(Gave(json.dumps({"type": "result", **result}).encode()))


@pytest.fixture
def judge(tmp_path):
    tree, home = tmp_path / "tree", tmp_path / "home"
    tree.mkdir()
    home.mkdir()
    return lambda hat, tool, **arguments: claude_driver.why_not(hat, tool, arguments, tree, home)


def test_limits_and_model_are_the_sessions(tmp_path):
    told = read_input(tmp_path, turns=7, usd=0.5, model="claude-opus-5", schema='{"type": "object"}')
    assert (told["turns"], told["usd"], told["model"]) == (7, 0.5, "claude-opus-5")
    assert told["schema"] == {"type": "object"} and told["trusted"] is False


def test_denied_tools_are_not_offered(tmp_path):
    told = read_input(tmp_path, hat=Hat("reviewer", tools_denied=("Edit", "MultiEdit", "Write", "NotebookEdit")))
    assert told["tools"] == ["Bash", "Read", "Glob", "Grep"]


def test_it_phones_nobody_and_does_not_retry_for_minutes(tmp_path):
    play(claude.CLIENT, tmp_path)
    env = seen(tmp_path)["env"]
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1" and env["CLAUDE_CODE_MAX_RETRIES"] == "1"


@pytest.mark.parametrize("path", ["a.py", "deep/er/a.py", "./a.py", "docs/../a.py"])
def test_a_hat_without_globs_writes_anywhere_in_the_tree(judge, path):
    assert judge(EVERYWHERE, "Write", file_path=path) == ""


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../a.py",
        "docs/../../a.py",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
    ],
)
def test_nobody_writes_outside_of_the_tree_or_what_git_obeys(judge, path):
    assert judge(EVERYWHERE, "Write", file_path=path)


def test_a_link_does_not_lead_out(judge, tmp_path):
    (tmp_path / "tree" / "out").symlink_to(tmp_path)
    (tmp_path / "tree" / "file").symlink_to("/etc/hosts")
    assert "outside" in judge(EVERYWHERE, "Write", file_path="out/a") and "outside" in judge(
        EVERYWHERE, "Edit", file_path="file"
    )


@pytest.mark.parametrize(
    ("path", "allowed"), [("docs/a.md", True), ("docs/api.md", False), ("src/a.py", False), ("docs/../src/a.py", False)]
)
@pytest.mark.parametrize(
    ("tool", "key"), [("Write", "file_path"), ("Edit", "file_path"), ("NotebookEdit", "notebook_path")]
)
def test_a_hats_globs_are_those_of_the_check_afterwards(judge, path, allowed, tool, key):
    assert (judge(WRITER, tool, **{key: path}) == "") is allowed


def test_a_link_within_the_tree_is_judged_by_where_it_leads(judge, tmp_path):
    (tmp_path / "tree" / "docs").mkdir()
    (tmp_path / "tree" / "docs" / "link").symlink_to("../src.py")
    assert "src.py" in judge(WRITER, "Write", file_path="docs/link")


def test_reading_stays_in_the_tree_and_the_home_of_the_run(judge, tmp_path):
    assert judge(EVERYWHERE, "Read", file_path="a.py") == judge(EVERYWHERE, "Grep", pattern="x") == ""
    assert judge(EVERYWHERE, "Read", file_path=str(tmp_path / "home" / "x")) == ""
    assert judge(EVERYWHERE, "Read", file_path="/proc/self/environ") and judge(EVERYWHERE, "Glob", path="/")


def test_denied_commands_and_files_are_the_clients_own_rules(judge):
    hat = Hat("builder", write_denied=("docs/**",), commands_denied=("git push", "Bash(npm publish:*)", "dd of=/dev/*"))
    rules = ["Edit(docs/**)", "Bash(git push:*)", "Bash(npm publish:*)", "Bash(dd of=/dev/*)"]
    assert list(claude_driver.rules(hat)) == rules and judge(hat, "Bash", command="make test") == ""


@pytest.mark.parametrize("tool", ["WebFetch", "Task", "mcp__evil__run"])
def test_a_tool_that_nobody_knows_is_denied(judge, tool):
    assert "not a tool" in judge(EVERYWHERE, tool, anything="x")


def test_what_cannot_be_judged_raises_which_the_client_takes_for_a_denial(judge):
    with pytest.raises(KeyError):
        judge(EVERYWHERE, "Write")


@pytest.mark.parametrize(("status", "failure"), [("401", "auth"), ("529", "server")])
def test_a_success_that_is_an_error_is_an_error(status, failure):
    said = claude.CLIENT.read(sample("claude", status))
    assert said.failure == failure and status in said.error and said.usage.cost_usd == 0


def test_denials_are_told():
    assert claude.CLIENT.read(sample("claude", "ok")).refused == ("Write: /etc/evil is outside of the work tree",)


@pytest.mark.parametrize(
    ("subtype", "words"),
    [
        ("error_max_turns", "within its turns"),
        ("error_max_budget_usd", "budget is spent"),
        ("error_max_structured_output_retries", "wanted form"),
        ("error_no_structured_output", "wanted form"),
    ],
)
def test_what_ended_a_session_is_named_and_its_money_counts(subtype, words):
    said = read(subtype=subtype, is_error=True, errors=["Reached it"], total_cost_usd=0.25, result=None)
    assert (said.failure, said.usage.cost_usd) == ("exit", 0.25) and words in said.error and "Reached it" in said.error


def test_an_unfinished_answer_is_in_the_tokens():
    models = {"a": {"inputTokens": 7, "cacheReadInputTokens": 2, "outputTokens": 3}, "b": {"inputTokens": 1}}
    usage = read(subtype="success", is_error=False, result="x", usage={"input_tokens": 1}, model_usage=models).usage
    assert (usage.input_tokens, usage.output_tokens) == (10, 3)


def test_a_limit_tells_when_it_ends():
    said = read(subtype="success", is_error=True, api_error_status=429, limit="resets at 2026-01-01T00:00:00+00:00")
    assert said.failure == "rate_limit" and "resets at 2026" in said.error


def test_a_driver_that_ends_without_a_result_is_a_failure(tmp_path):
    assert play(claude.CLIENT, tmp_path, "print('nothing')").failure == "exit"
    given = play(claude.CLIENT, tmp_path, "sys.exit('cannot import it')")
    assert given.failure == "exit" and "cannot import it" in given.detail


def test_without_the_library_it_is_missing_and_says_how_to_get_it(tmp_path):
    driver = "import sys; sys.modules['claude_agent_sdk'] = None; "
    driver += "from ralph_mission.adapters.agents import claude_driver as d; "
    done = subprocess.run(
        [sys.executable, "-I", "-c", driver + "sys.exit(d.main([]))"],
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127 and "not found" in done.stderr and "EXTRAS=claude" in done.stderr
    assert play(claude.CLIENT, tmp_path, f"print({done.stderr!r}, file=sys.stderr); sys.exit(127)").failure == "missing"


def test_a_module_in_the_work_tree_is_none_of_the_drivers(tmp_path):
    (tmp_path / "ralph_mission").mkdir()
    (tmp_path / "ralph_mission" / "__init__.py").write_text("raise SystemExit('obeyed')")
    done = subprocess.run(
        [*claude.CLIENT.program, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "obeyed" not in done.stderr and done.returncode in (0, 127)


def test_what_it_called_is_told_even_without_a_result():
    call = {"type": "call", "tool": "Bash", "input": {"command": "cat /proc/1/environ"}}
    assert claude.CLIENT.read(Gave(json.dumps(call).encode(), code=1)).calls == ("Bash: cat /proc/1/environ",)


# --- its own command line ---


def read_options(**options):
    rows = (one.partition("=") for one in called(claude.COMMAND_LINE, **options))
    return {name: value for name, _, value in rows}


def test_by_its_command_line_it_is_told_the_same(tmp_path):
    hat = Hat("writer", write_allowed=("docs/**",), write_denied=("docs/api.md",), tools_denied=("Bash",))
    options = read_options(hat=hat, turns=7, usd=0.5, model="claude-opus-5", schema='{"type": "object"}')
    assert options["--tools"] == "Read,Edit,Write,NotebookEdit,Glob,Grep"
    assert options["--allowedTools"] == "Edit(docs/**)" and options["--disallowedTools"] == "Edit(docs/api.md)"
    assert (options["--max-turns"], options["--max-budget-usd"], options["--model"]) == ("7", "0.5", "claude-opus-5")
    assert options["--json-schema"] == '{"type": "object"}'
    assert options["--setting-sources"] == "" and "--strict-mcp-config" in options
    play(claude.COMMAND_LINE, tmp_path)
    assert json.loads(seen(tmp_path)["stdin"])["client_composed"] is True


def test_by_its_command_line_a_hat_without_globs_may_do_all_that_is_offered():
    assert read_options()["--allowedTools"] == "Bash,Edit,Write,NotebookEdit"


def test_what_its_command_line_prints_is_read_as_the_drivers_result():
    lines = [
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {}}]}},
        {
            "type": "result", "subtype": "success", "is_error": False, "result": "Done.", "num_turns": 2,
            "total_cost_usd": 0.25, "modelUsage": {"m": {"inputTokens": 10, "outputTokens": 5}},
            "permission_denials": [{"tool_name": "Write", "tool_input": {"file_path": "/a"}}],
        },
    ]  # fmt: skip  # as it prints them
    reply = claude.COMMAND_LINE.read(Gave("\n".join(map(json.dumps, lines)).encode()))
    assert (reply.text, reply.usage.cost_usd, reply.usage.turns, reply.usage.input_tokens) == ("Done.", 0.25, 2, 10)
    assert reply.refused == ("Write: /a was denied",) and len(reply.calls) == 1
    answer = {"type": "result", "subtype": "success", "result": "", "structured_output": {"a": 1}}
    assert claude.COMMAND_LINE.read(Gave(json.dumps(answer).encode())).text == '{"a": 1}'
    assert claude.COMMAND_LINE.read(Gave(b"{}")).error == "it gave no result"


NOW = datetime(2026, 5, 4, tzinfo=UTC)
LOGGED_OUT = {"type": "result", "subtype": "success", "is_error": True, "result": "Not logged in · Please run /login"}
SAID = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Please run /login"}]}}


@pytest.mark.parametrize(
    ("gave", "failure", "detail"),
    [
        (
            Gave("Invalid API key · Please run /login\n".encode(), code=1),
            "auth",
            "Invalid API key · Please run /login (",
        ),
        (Gave(json.dumps(LOGGED_OUT).encode(), code=1), "auth", "Not logged in · Please run /login (exit code 1)"),
        (Gave(b"", b"error: unknown option '--tools'\n", 1), "exit", "error: unknown option '--tools' (exit code 1)"),
        (Gave(b"garbage\n"), "exit", "it gave no result: garbage"),
        (Gave(json.dumps(SAID).encode() + b"\nPlease run /login\n", code=1), "exit", "Please run /login (exit code 1)"),
    ],
    ids=["as text", "as a result", "unknown option", "garbage", "after its model spoke"],
)
def test_what_its_command_line_failed_by_comes_first(gave: Gave, failure: str, detail: str) -> None:
    given = turn(gave, NOW, claude.COMMAND_LINE.read)
    assert given.failure == failure and given.detail.startswith(detail)


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (("/opt/bin/claude",), True),
        (("node", "/x/node_modules/@anthropic-ai/claude-code/cli.js"), True),
        (("/opt/bin/my-wrapper", "--name=x"), True),
        (claude.CLIENT.program, False),
        ((sys.executable, "-c", "import ralph_mission.adapters.agents.claude_driver"), False),
    ],
)
def test_a_program_that_is_named_is_spoken_to_as_what_it_is(words, own):
    assert claude.find_client(words) is (claude.COMMAND_LINE if own else claude.CLIENT)


@pytest.mark.parametrize("there", [True, False])
def test_without_the_library_the_one_on_the_path_plays(tmp_path, monkeypatch, there):
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755 if there else 0o644)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(claude, "find_spec", lambda _: None)
    assert claude.find_client() is (claude.COMMAND_LINE if there else claude.CLIENT)


def test_a_login_counts_where_no_key_is_set(tmp_path):
    place = tmp_path / ".claude/.credentials.json"
    place.parent.mkdir()
    environ = {"HOME": str(tmp_path)}
    assert clients.find_login(claude.CLIENT, environ) is None
    place.write_text("{}")
    assert clients.find_login(claude.CLIENT, environ) == place.parent
    assert clients.find_login(claude.CLIENT, {**environ, "ANTHROPIC_API_KEY": "k"}) is None
    assert clients.find_login(clients.CLIENTS["codex"], environ) is None
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/auth.json").write_text("{}")
    assert clients.find_login(clients.CLIENTS["codex"], environ) == tmp_path / ".codex"


def test_a_login_stands_where_the_user_says(tmp_path):
    (tmp_path / ".credentials.json").write_text("{}")
    environ = {"HOME": str(tmp_path / "home"), "CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert clients.find_login(claude.COMMAND_LINE, environ) == tmp_path


def test_without_a_login_a_session_says_how_to_log_in(tmp_path):
    given = play(claude.COMMAND_LINE, tmp_path, "print('Not logged in'); sys.exit(1)")
    assert given.failure == "auth" and "\n" not in given.detail
    assert "run `claude` and type /login, or run `claude setup-token`, or set ANTHROPIC_API_KEY" in given.detail
