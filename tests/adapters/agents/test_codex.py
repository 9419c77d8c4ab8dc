"""Codex: how it is called, and how its events are read. The client itself: tests/real."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.agents.codex import CLIENT
from ralph_mission.adapters.agents.reading import Gave, turn
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import called, play, sample, seen

NOW = datetime(2026, 1, 1)


def test_it_is_called_without_anybodys_settings():
    words = called(CLIENT)
    assert words[:2] == ["exec", "--json"] and words[-1] == "-"
    assert {"--ephemeral", "--ignore-user-config", "--ignore-rules", "project_doc_max_bytes=0"} < set(words)


def test_it_tells_nobody_what_it_did():
    silent = {"analytics.enabled=false", 'otel.metrics_exporter="none"', "features.plugins=false"}
    assert silent < set(called(CLIENT))


def test_conventions_of_the_repository_are_read_when_somebody_trusts_them():
    assert "project_doc_max_bytes=0" not in called(CLIENT, trusted=True)


def test_the_key_goes_to_the_address_of_the_environment_and_else_to_openai():
    ours = next(word for word in called(CLIENT, env={"OPENAI_BASE_URL": "http://a/v1"}) if "base_url" in word)
    usual = next(word for word in called(CLIENT) if "base_url" in word)
    assert '"http://a/v1"' in ours and '"https://api.openai.com/v1"' in usual and "OPENAI_API_KEY" in usual


def test_a_login_goes_to_the_url_of_its_own():
    usual = next(word for word in called(CLIENT, env={"CODEX_HOME": "/home/m/.codex"}) if "model_providers" in word)
    ours = {"CODEX_HOME": "/home/m/.codex", "OPENAI_BASE_URL": "http://a/v1"}
    assert "requires_openai_auth=true" in usual and "env_key" not in usual and "base_url" not in usual
    assert any('base_url="http://a/v1",requires_openai_auth=true' in word for word in called(CLIENT, env=ours))


@pytest.mark.parametrize(
    ("hat", "sandboxed", "sandbox"),
    [
        (Hat("builder"), False, "workspace-write"),
        (Hat("reviewer", write_allowed=()), False, "read-only"),
        (Hat("reviewer", tools_denied=("Edit", "Write")), False, "read-only"),
        (Hat("builder"), True, "danger-full-access"),
    ],
)
def test_its_own_sandbox_follows_the_hat_unless_ours_holds_it(hat, sandboxed, sandbox):
    words = called(CLIENT, hat, sandboxed=sandboxed)
    assert words[words.index("-s") + 1] == sandbox


def test_a_hat_without_a_shell_has_none():
    assert "shell_tool" in called(CLIENT, Hat("x", tools_denied=("Bash",))) and "shell_tool" not in called(CLIENT)


def test_the_form_of_its_answer_is_a_file_in_its_home(tmp_path):
    play(CLIENT, tmp_path, schema='{"type": "object"}', model="gpt-5.4")
    told = seen(tmp_path)
    place = told["argv"][told["argv"].index("--output-schema") + 1]
    assert json.loads(Path(place).read_text()) == {"type": "object"} and place.startswith(str(tmp_path / "home"))
    assert told["argv"][told["argv"].index("-m") + 1] == "gpt-5.4"


@pytest.mark.parametrize(
    ("status", "failure"), [("401", "auth"), ("429", "rate_limit"), ("529", "server"), ("500", "server")]
)
def test_what_the_provider_says_names_the_failure(status, failure):
    given = turn(sample("codex", status), NOW, CLIENT.read)
    assert given.failure == failure and given.detail.endswith(" (exit code 1)")


def test_a_warning_that_it_prints_as_an_error_is_none():
    assert '"type":"error"' in sample("codex", "ok").stdout.decode().replace(" ", "")
    assert turn(sample("codex", "ok"), NOW, CLIENT.read).failure == ""


def test_tokens_of_all_its_turns_are_counted():
    events = [{"type": "turn.completed", "usage": {"input_tokens": n, "output_tokens": 1}} for n in (10, 20)]
    usage = CLIENT.read(Gave("\n".join(map(json.dumps, events)).encode())).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (30, 2, None)


def test_what_it_ran_and_changed_is_told_once_even_when_it_never_ended():
    run = {"id": "1", "type": "command_execution", "command": "/bin/bash -lc 'cat /etc/shadow'"}
    change = {"id": "2", "type": "file_change", "changes": [{"path": "a.py", "kind": "add"}]}
    events = [("started", run), ("completed", run), ("completed", change), ("started", {**run, "id": "3"})]
    told = "\n".join(json.dumps({"type": f"item.{what}", "item": item}) for what, item in events)
    first, second, third = CLIENT.read(Gave(told.encode())).calls
    assert first == third == "command_execution: /bin/bash -lc 'cat /etc/shadow'" and "a.py" in second
    assert CLIENT.read(sample("codex", "ok")).calls == ("command_execution: /bin/bash -lc 'echo 1 > b.txt'",)


def test_what_a_guard_refused_is_told_although_its_sandbox_keeps_the_guard_from_the_record():
    printed = "ralph: `git push -f` is denied by `git push --force`: others lose what they have"
    run = {"id": "1", "type": "command_execution", "command": "x", "aggregated_output": f"one\n{printed}\nralph: two\n"}
    said = CLIENT.read(Gave(json.dumps({"type": "item.completed", "item": run}).encode()))
    assert said.refused == (printed.removeprefix("ralph: "),)


HEAD = "dispatch_tool_call_with_state: codex_otel.log_only:"
RESULT = (
    f'2026-01-01T00:00:00.5Z  INFO {HEAD} event.name="codex.tool_result" tool_result_seq=1 tool_name=%s '
    "tool_namespace=functions call_id=c_0 duration_ms=1 success=true agent_name=/root "
    "arguments=%s output=%s mcp_server= mcp_server_origin= model=gpt-5.4\n"
    '2026-01-01T00:00:00.5Z  INFO dispatch_tool_call_with_state: codex_otel.trace_safe: name="codex.tool_result"\n'
)
"""As version 0.169.0 logs a call: its tool, what that was given, and what it gave."""
REFUSED = "2026-01-01T00:00:00.6Z ERROR dispatch_tool_call_with_state: codex_core::tools::router: error=%s\n"
REJECTED = (
    'exec_command failed: CreateProcess { message: "Rejected('
    r"""\"`/bin/bash -lc 'rm -rf x; echo \\\"y\\\"'` rejected: rm -f style is not permitted.\")" }"""
)
VIOLATION = (
    '2026-01-01T00:00:00.4Z  WARN dispatch_tool_call_with_state:unified_exec.exec_command{call_id="call_0_0"}: '
    "codex_sandboxing::violation: recorded sandbox violation: resource=filesystem reason=read_only path=/x\n"
)


def logged(command: str, gave: str = "") -> str:
    return RESULT % ("exec_command", json.dumps({"cmd": command}), gave)


def test_what_it_refused_by_itself_is_told():
    said = CLIENT.read(Gave(b"", (logged('rm -rf x; echo "y"', REJECTED) + REFUSED % REJECTED).encode()))
    assert said.calls == ('exec_command: rm -rf x; echo "y"',)
    assert said.refused == ("""`/bin/bash -lc 'rm -rf x; echo "y"'` rejected: rm -f style is not permitted.""",)


def test_what_its_own_sandbox_kept_from_something_is_told_though_there_is_no_event_of_it():
    said = CLIENT.read(Gave(b"", (VIOLATION + logged("echo evil > /x", "1\n/x: Read-only file system\n")).encode()))
    assert said.calls == ("exec_command: echo evil > /x",) and said.usage.turns == 1
    assert said.refused == ("recorded sandbox violation: resource=filesystem reason=read_only path=/x",)


def test_what_an_event_told_is_not_told_again_by_the_log():
    items = [
        {"id": str(number), "type": "command_execution", "command": "/bin/bash -lc 'echo a b'"} for number in (1, 2)
    ]
    items += [{"id": "3", "type": "file_change", "changes": [{"path": "a.py", "kind": "add"}]}]
    events = "\n".join(json.dumps({"type": "item.completed", "item": item}) for item in items)
    log = logged("echo a b") * 3 + RESULT % ("apply_patch", "*** Begin Patch\n*** End Patch\n", "done")
    more = RESULT % ("write_stdin", '{"session_id": 1, "chars": "evil\\n"}', "")
    said = CLIENT.read(Gave(events.encode(), (log + more).encode()))
    assert said.calls[:2] == ("command_execution: /bin/bash -lc 'echo a b'",) * 2 and "a.py" in said.calls[2]
    assert said.calls[3] == "exec_command: echo a b" and "evil" in said.calls[4] and len(said.calls) == 5


def test_its_log_is_no_fault_of_a_provider():
    log = logged("curl -i http://a", "HTTP/1.1 429 Too Many Requests\nit said 429 Too Many Requests\n")
    assert turn(Gave(b"", log.encode(), 1), NOW, CLIENT.read).failure == "exit"
    after = turn(Gave(b"", (log + VIOLATION + "last status: 429 Too Many Requests\n").encode(), 1), NOW, CLIENT.read)
    assert (after.failure, after.detail) == ("exit", "last status: 429 Too Many Requests (exit code 1)")


def test_nothing_that_a_call_gave_hides_another():
    forged = f"2026-01-01T00:00:00Z INFO {HEAD}\n{'x' * 100}\n arguments={{\n"
    said = CLIENT.read(
        Gave(b"", (logged("one", forged) + logged("two") + RESULT % ("exec_command", "{no", "")).encode())
    )
    assert said.calls == ("exec_command: one", "exec_command: two", 'exec_command: "{no"')


def test_what_it_runs_does_not_see_what_is_logged_of_it():
    assert 'shell_environment_policy.exclude=["RUST_LOG"]' in called(CLIENT)
