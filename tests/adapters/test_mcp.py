"""`ralph agent mcp` as a real client finds it: a process of its own, asked over standard input and output."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from pydantic import TypeAdapter, ValidationError

from ralph_mission.adapters import mcp
from ralph_mission.adapters.storage.loop import events, state
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import RunState
from tests.adapters.test_mcp_tools import STORIES, given, refusal
from tests.helpers import RALPH, cli_here, make_repo

pytestmark = pytest.mark.long  # takes ten seconds or more

TOOLS = [
    "work_current", "work_list", "work_add", "work_claim", "work_done", "work_fail", "work_note",
    "event_emit", "memory_add", "memory_search", "guidance_read",
]  # fmt: skip  # one list
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip  # one message


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@asynccontextmanager
async def _client(repo: Path, env: dict[str, str]) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=RALPH, args=["agent", "mcp", "--repo", str(repo)], env=dict(os.environ) | env
    )
    async with Client(stdio_client(server)) as client:
        yield client


def _with_client(repo: Path, action: Callable[[Client], Awaitable[None]], **env: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with _client(repo, env) as client:
                await action(client)

    anyio.run(main)


def test_stories_and_tasks_are_one_list_that_a_session_reads_and_claims(repo: Path) -> None:
    (repo / "prd.json").write_text(STORIES)
    state.save(repo, RunState("r", "build", datetime(2026, 5, 4, tzinfo=UTC), item="US-1"))

    async def action(client: Client) -> None:
        current = await given(client, "work_current")
        work = current["work"]
        assert (current["session"], current["left"]) == (3, 2)
        assert (work["id"], work["kind"], work["criteria"]) == ("US-1", "story", ["it is there"])
        await given(client, "work_add", title="Look at the index", id="t")
        rows = (await given(client, "work_list"))["tasks"]
        assert [(row["id"], row["status"]) for row in rows] == [("US-1", "ready"), ("US-2", "pending"), ("t", "ready")]
        assert await given(client, "work_note", text="the port is 5433") == {"kept": "with US-1"}
        mistyped = await client.call_tool("work_note", {"text": "the port is 5433", "id": "US-11"})
        assert mistyped.is_error and "there is no task 'US-11'" in str(mistyped.content)
        assert (await given(client, "work_done", id="US-1"))["status"] == "done"
        assert (await given(client, "work_done", id="t"))["status"] == "done"
        assert (await given(client, "work_current"))["left"] == 1

    _with_client(repo, action, RALPH_ITERATION="3")
    first, second = json.loads((repo / "prd.json").read_text())["userStories"]
    assert (first["passes"], first["notes"], second["passes"]) == (True, "the port is 5433", False)


def test_the_tools_are_there_with_their_schemas(repo: Path) -> None:
    async def action(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        assert all(tool.description and tool.output_schema for tool in tools)
        add = next(tool for tool in tools if tool.name == "work_add").input_schema
        assert add["required"] == ["title"]
        assert add["properties"]["needs"]["items"] == {"type": "string", "maxLength": 64}
        assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
        reads = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
        assert reads == {"work_current", "work_list", "memory_search"}
        assert (add["properties"]["priority"]["minimum"], add["properties"]["priority"]["maximum"]) == (1, 5)

    _with_client(repo, action)


def test_a_task_lives_from_pending_to_done_on_the_file_that_the_command_line_uses(repo: Path) -> None:
    async def action(client: Client) -> None:
        await given(client, "task_add", title="Schema", id="a")
        waiting = await given(client, "task_add", title="API", needs=["a"], id="b", description="Ports")
        assert (waiting["status"], waiting["waits"]) == ("pending", "waits for a (ready)")
        assert [task["id"] for task in (await given(client, "task_ready"))["tasks"]] == ["a"]
        claimed = await given(client, "task_claim")
        assert (claimed["id"], claimed["status"]) == ("a", "active")
        assert (
            cli_here("agent", "task", "list", "--status", "active", "--json", repo=repo).json["tasks"][0]["id"] == "a"
        )
        await given(client, "task_done", id="a")
        failed = await given(client, "task_fail", id="b", why="no port")
        assert failed["status"] == "failed"
        assert [task["status"] for task in (await given(client, "task_list"))["tasks"]] == ["done", "failed"]
        assert (await given(client, "task_list", status="done"))["tasks"][0]["id"] == "a"

    _with_client(repo, action)
    assert json.loads(Tasks(repo / ".ralph").path.read_text().splitlines()[1])["why"] == "no port"


def test_a_long_list_comes_in_parts_that_say_how_much_is_left(repo: Path) -> None:
    tasks = Tasks(repo / ".ralph")
    for number in range(12):
        tasks.add(f"Task {number}")

    async def action(client: Client) -> None:
        for tool in ("task_ready", "task_list"):
            page = await given(client, tool, limit=10)
            assert (len(page["tasks"]), page["more"]) == (10, 2)

    _with_client(repo, action)


def test_a_task_that_another_process_claimed_is_not_given_again(repo: Path) -> None:
    async def action(client: Client) -> None:
        assert cli_here("agent", "task", "add", "One", "--id", "a", repo=repo).code == 0
        assert cli_here("agent", "task", "claim", "a", repo=repo).code == 0
        assert "no task is ready" in await refusal(client, "task_claim")

    _with_client(repo, action)


def test_what_a_server_claimed_can_be_claimed_when_it_is_gone(repo: Path) -> None:
    async def action(client: Client) -> None:
        await given(client, "task_add", title="One", id="a")
        await given(client, "task_claim")
        assert cli_here("agent", "task", "claim", repo=repo).code == 1

    _with_client(repo, action)
    assert cli_here("agent", "task", "claim", "--json", repo=repo).json["id"] == "a"


def test_a_loop_says_who_claims(repo: Path) -> None:
    async def action(client: Client) -> None:
        await given(client, "task_add", title="One")
        assert (await given(client, "task_claim"))["owner"] == "host:boot:7:session-3"

    _with_client(repo, action, RALPH_OWNER="host:boot:7:session-3")


def test_an_event_carries_who_said_it(repo: Path) -> None:
    async def action(client: Client) -> None:
        await given(client, "event_emit", topic="build.complete", payload={"files": 2})
        await given(client, "event_emit", topic="build.note", payload="text")

    _with_client(repo, action, RALPH_HAT="builder", RALPH_ITERATION="4")
    first, second = events.read_events(repo / ".ralph")
    assert (first.topic, first.payload, first.hat, first.iteration) == ("build.complete", '{"files": 2}', "builder", 4)
    assert second.payload == "text"


def test_memories_are_added_and_found(repo: Path) -> None:
    async def action(client: Client) -> None:
        for number in range(3):
            await given(client, "memory_add", content=f"Start the database, way {number}", kind="fix", tags=["docker"])
        found = await given(client, "memory_search", query="database docker", limit=2)
        assert (len(found["memories"]), found["more"]) == (2, 1)
        assert found["memories"][0]["kind"] == "fix"

    _with_client(repo, action)


def test_guidance_waits_until_it_is_acknowledged(repo: Path) -> None:
    async def action(client: Client) -> None:
        assert (await given(client, "guidance_read"))["guidance"] == []
        cli_here("agent", "guidance", "Wrap it", repo=repo)
        for acknowledge in (False, True):
            (one,) = (await given(client, "guidance_read", acknowledge=acknowledge))["guidance"]
            assert one["text"] == "Wrap it"
        assert (await given(client, "guidance_read"))["guidance"] == []

    _with_client(repo, action)
    assert Guide(repo / ".ralph").pending() == ()


def test_wrong_arguments_are_errors_of_the_tool_and_the_server_goes_on(repo: Path) -> None:
    async def action(client: Client) -> None:
        assert "title" in await refusal(client, "task_add", title=5)
        assert await refusal(client, "task_add") == "title is missing"
        assert "work_add has no argument 'titel'; it takes title, needs" in await refusal(
            client, "task_add", title="x", titel="y"
        )
        assert "pydantic" not in await refusal(client, "task_add", title="x", priority=9)
        assert "priority" in await refusal(client, "task_add", title="x", priority=9)
        assert "no task 'zz'" in await refusal(client, "task_add", title="x", needs=["zz"])
        assert "no task 'zz'. see: work_list" in await refusal(client, "task_done", id="zz")
        await given(client, "task_add", title="x", id="first")
        await given(client, "task_add", title="y", id="second", needs=["first"])
        assert (await refusal(client, "work_claim", id="second")).endswith("see what can be claimed: work_list (ready)")
        assert "topic" in await refusal(client, "event_emit", topic="no topic")
        assert "kind" in await refusal(client, "memory_add", content="x", kind="rumour")
        assert "Unknown tool" in await refusal(client, "task_burn")
        assert [row["id"] for row in (await given(client, "task_list"))["tasks"]] == ["first", "second"]

    _with_client(repo, action)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("work_add", {}, "title is missing"),
        ("work_add", {"title": 7}, "title has to be text"),
        ("work_add", {"title": "x" * 2000}, "title is longer than "),
        ("work_add", {"title": "x", "needs": "a"}, "needs has to be a list"),
        ("work_add", {"title": "x", "needs": [7]}, "needs.0 has to be text"),
        ("work_add", {"title": "x", "priority": "high"}, "priority has to be a whole number"),
        ("work_add", {"title": "x", "priority": 9}, "priority has to be at most 5"),
        ("work_list", {"status": "open"}, "status has to be one of 'pending', "),
        ("work_list", {"ready": "perhaps"}, "ready has to be true or false"),
        ("work_list", {"limit": 0}, "limit has to be at least 1"),
        ("event_emit", {"topic": "x y"}, "topic has to be a letter, then at most 99 letters, digits and any of _ . :"),
        ("work_done", {"id": "zz"}, "there is no task 'zz'"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said_in_plain_words(
    repo: Path, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async def action(client: Client) -> None:
        assert (await refusal(client, tool, **arguments)).startswith(words)

    _with_client(repo, action)


def test_no_value_of_any_argument_is_answered_in_words_of_the_library(repo: Path) -> None:
    odd = (
        None,
        "",
        "x y",
        "a\nb",
        "\0",
        "9" * 5000,
        0,
        -1,
        1.5,
        10**30,
        1e400,
        True,
        [1],
        [None],
        ["x"] * 2000,
        {"a": 1},
    )
    strange = re.compile(r"should|pydantic|Input|Value error|Error executing")

    async def action(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            usual = dict.fromkeys(tool.input_schema.get("required", ()), "build.complete")
            for name, value in itertools.product(tool.input_schema["properties"], odd):
                answer = await client.call_tool(tool.name, {**usual, name: value})
                if answer.is_error:
                    assert not strange.search(str(answer.content)), (tool.name, name, value)

    _with_client(repo, action)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("task_add", {"title": "x" * 1_000_000}),
        ("task_add", {"title": "one\ntwo"}),
        ("task_add", {"title": "a\0b"}),
        ("task_add", {"title": "x", "description": "\x1b[2J"}),
        ("task_add", {"title": "x", "needs": ["y" * 1_000_000]}),
        ("task_done", {"id": "x" * 1_000_000}),
        ("task_fail", {"id": "a", "why": "x" * 1_000_000}),
        ("event_emit", {"topic": "a.b", "payload": "x" * 1_000_000}),
        ("event_emit", {"topic": "a.b\n"}),
        ("memory_add", {"content": "a\0b"}),
        ("memory_add", {"content": "a", "tags": ["x" * 1_000_000]}),
        ("memory_search", {"query": "x" * 1_000_000}),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_what_is_no_text_or_too_much_of_it_is_refused_in_few_words(
    repo: Path, tool: str, arguments: dict[str, Any]
) -> None:
    answer = _asked_raw(repo, json.dumps({"name": tool, "arguments": arguments}))
    assert answer["isError"]
    assert len(answer["content"][0]["text"]) < 1000
    assert Tasks(repo / ".ralph").all() == ()
    assert events.read_events(repo / ".ralph") == ()


def test_a_whole_pair_of_surrogates_and_an_escaped_backslash_are_text(repo: Path) -> None:
    arguments = r'{"title": "\ud83d\ude00 \\ud800 \u00e9", "id": "a"}'
    assert not _asked_raw(repo, f'{{"name": "task_add", "arguments": {arguments}}}')["isError"]
    assert Tasks(repo / ".ralph").all()[0].title == "\U0001f600 \\ud800 \u00e9"


def _asked_raw(repo: Path, params: str) -> Any:
    """The result of one call whose parameters no client would send."""
    call = f'{{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {params}}}'
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with subprocess.Popen(
        [RALPH, "agent", "mcp", "--repo", str(repo)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin and server.stdout
        try:
            server.stdin.write("\n".join((json.dumps(HELLO), json.dumps(ready), call, "")).encode())
            server.stdin.flush()
            answers = (json.loads(server.stdout.readline()) for _ in range(2))
            return {answer["id"]: answer["result"] for answer in answers}[2]
        finally:
            server.kill()


def test_a_list_that_cannot_be_read_is_an_error_that_says_what_to_do(repo: Path) -> None:
    async def action(client: Client) -> None:
        (repo / ".ralph" / "agent" / "tasks.jsonl").mkdir(parents=True)
        assert "move it away" in await refusal(client, "task_list")
        (repo / ".ralph" / "agent" / "tasks.jsonl").rmdir()
        await given(client, "task_list")

    _with_client(repo, action)


def test_an_agent_that_deletes_the_folder_does_not_stop_the_server(repo: Path) -> None:
    async def action(client: Client) -> None:
        await given(client, "task_add", title="One")
        os.rename(repo / ".ralph", repo.parent / "gone")
        assert (await given(client, "task_list"))["tasks"] == []
        await given(client, "task_add", title="Two")

    _with_client(repo, action)


def start_server(repo: Path) -> subprocess.Popen[bytes]:
    line, pipe = [RALPH, "agent", "mcp", "--repo", str(repo)], subprocess.PIPE
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, None])
def test_it_ends_quietly(repo: Path, end: signal.Signals | None) -> None:
    with start_server(repo) as server:
        assert server.stdin and server.stdout and server.stderr
        server.stdin.write(b"garbage\n\xff\n" + json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        assert b'"ralph"' in server.stdout.readline()
        if end:
            server.send_signal(end)
        else:
            server.stdin.close()
        assert server.wait(300) == (130 if end else 0)
        assert server.stderr.read() == b""


def test_whoever_closes_its_streams_gets_no_report_of_a_bug(repo: Path) -> None:
    with start_server(repo) as server:
        assert server.stdin and server.stdout and server.stderr
        server.stdout.close()
        long = [
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
        server.stdin.write("".join(f"{json.dumps(said)}\n" for said in (HELLO, *long)).encode())
        server.stdin.close()
        assert (server.wait(300), server.stderr.read()) == (0, b"")
    line = ["/bin/sh", "-c", 'exec "$0" agent mcp <&-', RALPH]
    closed = subprocess.run(line, cwd=repo, capture_output=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_tasks_of_several_agents_are_given_once_each(repo: Path) -> None:
    claimed: list[str] = []

    async def agent() -> None:
        async with _client(repo, {}) as client:
            for _ in range(10):
                claimed.append((await given(client, "task_claim"))["id"])

    async def main() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(agent)

    tasks = Tasks(repo / ".ralph")
    wanted = {tasks.add(f"Task {number}").id for number in range(80)}
    anyio.run(main)
    assert len(claimed) == 80
    assert set(claimed) == wanted


@pytest.mark.attack(38)
@pytest.mark.parametrize("text", ["a\x1b[2J", "a\x00", "a\x07b", "\ufffd"])
def test_a_text_and_a_payload_hold_nothing_that_steers_a_terminal(text: str) -> None:
    for kind in (mcp.Text, mcp.Line, mcp.Name):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(text)
    with pytest.raises(UserError, match="control characters"):
        mcp.check_payload(text)


@pytest.mark.attack(37)
@pytest.mark.parametrize("line", ["a\n::set-output name=x::y", "a\rb"])
def test_a_line_and_a_name_are_one_line(line: str) -> None:
    for kind in (mcp.Line, mcp.Name):
        with pytest.raises(ValidationError, match="one line"):
            TypeAdapter(kind).validate_python(line)


@pytest.mark.attack(56)
def test_a_text_and_a_payload_are_no_books() -> None:
    assert TypeAdapter(mcp.Text).validate_python("a" * mcp.LONG)
    with pytest.raises(ValidationError):
        TypeAdapter(mcp.Text).validate_python("a" * (mcp.LONG + 1))
    assert mcp.check_payload("a" * mcp.PAYLOAD)
    with pytest.raises(UserError, match="too long"):
        mcp.check_payload("a" * (mcp.PAYLOAD + 1))
