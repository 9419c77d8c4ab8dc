"""The tools of `ralph agent mcp`, asked by the protocol's own client within this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from ralph_mission.adapters import mcp
from ralph_mission.adapters.storage.loop import run_files, state
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.notes import Memories
from ralph_mission.adapters.storage.loop.stories import SessionStories
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.loop.model.state import RunState
from tests.helpers import make_repo

STORIES = """{"userStories": [
  {"id": "US-1", "title": "Schema", "acceptanceCriteria": ["it is there"], "passes": false},
  {"id": "US-2", "title": "API", "needs": ["US-1"], "passes": false}
]}
"""


class Asked:
    """A loop's files, and a client of the tools over them."""

    def __init__(self, repo: Path, item: str) -> None:
        self.folder, self.events = repo / ".ralph", list[tuple[str, str]]()
        run_files.prepare(self.folder)
        self.guidance = Guide(self.folder)
        stories = SessionStories(repo, lambda: item)
        self._files = mcp.RunFiles(
            Tasks(self.folder), Memories(self.folder), self.guidance, self._emit, "me", stories, 3
        )

    def _emit(self, topic: str, payload: str) -> None:
        self.events.append((topic, payload))

    def ask(self, question: Callable[[Client], Awaitable[None]]) -> None:
        async def main() -> None:
            async with Client(mcp.server(self._files, "1.0.0")) as client:
                await question(client)

        anyio.run(main)


async def given(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer
    return str(answer.content[0].text)  # type: ignore[union-attr]  # an error is a text


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    repo = make_repo(tmp_path / "repo", {"prd.json": STORIES})
    state.save(repo, RunState("r", "build", datetime(2026, 5, 4, tzinfo=UTC), item="US-1"))
    return Asked(repo, "US-1")


def test_a_session_is_told_its_story_and_works_through_tasks(asked: Asked) -> None:
    async def question(client: Client) -> None:
        current = await given(client, "work_current")
        assert (current["work"]["id"], current["session"], current["left"]) == ("US-1", 3, 2)
        await given(client, "work_add", title="Look at the index", id="t", priority=2)
        await given(client, "work_add", title="Write it down", needs=["t"], id="u")
        rows = (await given(client, "work_list"))["tasks"]
        assert {row["id"]: row["waits"] for row in rows if row["kind"] == "task"}["u"] == "waits for t (ready)"
        assert (await given(client, "work_claim", id="t"))["owner"] == "me"
        assert await given(client, "work_note", text="the port is 5433") == {"kept": "with US-1"}
        assert (await given(client, "work_done", id="t"))["status"] == "done"
        assert (await given(client, "work_fail", id="u", why="no disk"))["status"] == "failed"
        assert [row["id"] for row in (await given(client, "task_list", limit=1))["tasks"]] == ["US-1"]

    asked.ask(question)


def test_events_memories_and_guidance_go_through(asked: Asked) -> None:
    asked.guidance.say("use the new port")

    async def question(client: Client) -> None:
        assert await given(client, "event_emit", topic="build.done", payload={"a": 1}) == {
            "topic": "build.done", "payload": '{"a": 1}',
        }  # fmt: skip  # one value
        kept = await given(client, "memory_add", content="tests need a database", kind="fix", tags=["db"])
        found = await given(client, "memory_search", query="database")
        assert [one["id"] for one in found["memories"]] == [kept["id"]]
        assert [one["text"] for one in (await given(client, "guidance_read"))["guidance"]] == ["use the new port"]

    asked.ask(question)
    assert asked.events == [("build.done", '{"a": 1}')]


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("work_done", {"id": "nobody"}, "nobody"),
        ("work_done", {"id": "t", "now": 1}, "work_done has no argument 'now'; it takes id"),
        ("work_add", {}, "title is missing"),
        ("work_add", {"title": "a", "priority": 9}, "priority has to be at most 5"),
        ("work_add", {"title": "a\x07"}, "title: it holds a control character"),
        ("event_emit", {"topic": "9"}, "topic has to be a letter"),
        ("event_emit", {"topic": "a", "payload": "\x00"}, "the payload is too long, or holds control characters"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_in_our_words(
    asked: Asked, tool: str, arguments: dict[str, Any], complaint: str
) -> None:
    async def question(client: Client) -> None:
        assert complaint in await refusal(client, tool, **arguments)

    asked.ask(question)
