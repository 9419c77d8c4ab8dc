"""A coding agent's messages and calls during a run, from its output.

Every streaming client prints one JSON object per line, and no two of them use the same shape for different things: one
reader covers them all, also if a custom command starts one of them. Other output is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.reading import Json
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.loop.model.state import AgentTurn, SessionUsage
from ralph_mission.safety.text import sanitise, truncate

LONGEST_LINE = 1_000_000  # bytes: a longer one is not shown
WORDS = 4_000  # characters of an agent's single message


class AgentStream:
    """Passes an agent's steps to `tell`, from its standard output, live."""

    def __init__(self, tell: Callable[[RunEvent], None]) -> None:
        self._tell, self._rest, self._skipping = tell, b"", False
        self._last, self._counted, self.told = "", False, False

    def feed(self, chunk: bytes) -> None:
        """Process the next bytes; an incomplete line waits for its rest."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if lines and self._skipping:
            self._skipping = False
            del lines[0]
        self._read(lines)
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True

    def end(self, turn: AgentTurn) -> None:
        """Process the rest at the session's end, as some clients print everything then."""
        if self._rest and not self._skipping:
            self._read([self._rest])
        if not self.told:
            for call in turn.calls:
                self._tell(RunEvent("tool", call))
            if turn.text:
                self._tell(RunEvent("text", _words(turn.text)))

    def _read(self, lines: list[bytes]) -> None:
        """Tell plain lines that came together as one text: recording each of millions would hold the run up."""
        plain: list[bytes] = []
        size = 0
        for line in lines:
            document = next(reading.documents(line), None)
            if document is not None or size + len(line) >= WORDS:
                self._tell_text(plain)
                plain, size = [], 0
            if document is None:
                plain.append(line)
                size += len(line) + 1
                continue
            for event in _events(document):
                self._tell_event(self._uncounted(document, event) if event.kind == "usage" else event)
        self._tell_text(plain)

    def _tell_text(self, lines: list[bytes]) -> None:
        self._tell_event(RunEvent("text", _words(b"\n".join(lines).decode(errors="replace"))))

    def _tell_event(self, event: RunEvent) -> None:
        if event.text or event.tokens or event.usd:
            self._counted = self._counted or event.tokens > 0
            self.told = self.told or event.kind != "usage"
            self._tell(event)

    def _uncounted(self, document: Json, event: RunEvent) -> RunEvent:
        """Without tokens already reported: some clients print an answer in parts, and a sum at the end."""
        id = reading.as_text(reading.inner(document, "message").get("id"))
        again = bool(id) and id == self._last
        self._last = id or self._last
        return replace(event, tokens=0) if again or (document.get("type") == "result" and self._counted) else event


def _words(text: str) -> str:
    return sanitise(truncate(text.strip(), WORDS), "log")


def _events(document: Json) -> Iterator[RunEvent]:
    kind = document.get("type")
    if kind == "assistant":  # Claude Code, Amp; "text" is our driver's
        yield from _message(reading.inner(document, "message"))
        yield RunEvent("text", _words(reading.as_text(document.get("text"))))
    elif kind == "call":  # our driver of Claude Code
        yield _call(document.get("tool"), document.get("input"))
    elif kind == "result":
        yield _usage(reading.tokens(document))
    elif kind in ("item.started", "item.completed"):  # Codex
        yield from _item(reading.inner(document, "item"), kind == "item.started")
    elif kind == "turn.completed":
        yield _usage(reading.tokens(document))
    elif kind == "assistant.message":  # GitHub Copilot CLI
        yield from _copilot(reading.inner(document, "data"))
    elif kind in ("text", "tool_use", "step_finish"):  # OpenCode
        yield from _part(kind, reading.inner(document, "part"))


def _message(message: Json) -> Iterator[RunEvent]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            yield RunEvent("text", _words(reading.as_text(block.get("text"))))
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield _call(block.get("name"), block.get("input"))
    yield _usage(reading.tokens(message))


def _item(item: Json, started: bool) -> Iterator[RunEvent]:
    what = item.get("type")
    if what == "agent_message" and not started:
        yield RunEvent("text", _words(reading.as_text(item.get("text"))))
    elif what in ("command_execution", "mcp_tool_call", "web_search") and started:
        yield _call(what, {name: item[name] for name in ("command", "tool", "arguments", "query") if name in item})
    elif what == "file_change" and not started:
        yield _call(what, {"changes": item.get("changes")})


def _copilot(data: Json) -> Iterator[RunEvent]:
    yield RunEvent("text", _words(reading.as_text(data.get("content"))))
    requests = data.get("toolRequests")
    for one in requests if isinstance(requests, list) else ():
        if isinstance(one, dict):
            yield _call(one.get("name"), one.get("arguments"))
    yield _usage(SessionUsage(output_tokens=reading.as_count(data.get("outputTokens"))))


def _part(kind: str, part: Json) -> Iterator[RunEvent]:
    if kind == "text":
        yield RunEvent("text", _words(reading.as_text(part.get("text"))))
    elif kind == "tool_use":
        yield _call(part.get("tool"), reading.inner(part, "state", "input"))
    else:
        counts, cached = reading.inner(part, "tokens"), reading.inner(part, "tokens", "cache")
        read = reading.as_count(counts.get("input")) + reading.as_count(cached.get("read"))
        yield _usage(SessionUsage(0, read, reading.as_count(counts.get("output")), reading.as_cost(part.get("cost"))))


def _call(tool: Any, arguments: object) -> RunEvent:
    """A call with the first line of its most descriptive argument."""
    fields = arguments if isinstance(arguments, dict) else {}
    short = {
        name: text.strip().partition("\n")[0] if isinstance(text := fields[name], str) else text for name in fields
    }
    return RunEvent("tool", truncate(reading.describe_call(reading.as_text(tool), short or arguments), 300))


def _usage(usage: SessionUsage) -> RunEvent:
    return RunEvent("usage", tokens=usage.input_tokens + usage.output_tokens, usd=usage.cost_usd)
