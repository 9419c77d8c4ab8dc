"""One session of Claude Code: `python -I -m ralph_mission.adapters.agents.claude_driver` in the work tree.

Reads one JSON request (written by `claude.py`) from standard input and prints a line of JSON for each message, the
result last. It is a separate process, so that the library and the client end with the session, and only see what the
session may see. Every tool call that the client does not consider harmless is judged here; unknown ones are denied.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.sandbox.shims import parse_pattern
from ralph_mission.extras import install_command
from ralph_mission.loop.model.state import Hat
from ralph_mission.loop.rules.scope import why_outside
from ralph_mission.safety.text import truncate

if TYPE_CHECKING:
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        PermissionResultAllow,
        PermissionResultDeny,
        ResultMessage,
        ToolPermissionContext,
    )

MISSING = 127
WRITES = {"Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
READS = {"Read": "file_path", "Glob": "path", "Grep": "path"}
LINES = 20  # of the client's errors
LONGEST = 4000  # characters of a tool's input
NEEDED = f"claude-agent-sdk: not found: {install_command('claude')}"


def main(arguments: list[str]) -> int:
    """The exit code: always 0, as the outcome is in the result."""
    if "--version" in arguments:
        return _version()
    try:
        import claude_agent_sdk  # noqa: F401  # whether it is there; it takes half a second
    except ImportError:
        print(NEEDED, file=sys.stderr)
        return MISSING
    import asyncio  # not needed for just the rules of a hat

    result = asyncio.run(_Driver(json.load(sys.stdin)).play())
    print_line({"type": "result", **result})
    return 0


def why_not(hat: Hat, tool: str, arguments: Mapping[str, Any], tree: Path, home: Path) -> str:
    """Why a hat may not make this tool call in `tree`, or ""."""
    if tool in WRITES:
        return _unwritable(hat, Path(os.path.realpath(tree / str(arguments[WRITES[tool]]))), tree.resolve())
    if tool in READS:
        place = Path(os.path.realpath(tree / str(arguments.get(READS[tool]) or "")))
        known = any(place.is_relative_to(folder.resolve()) for folder in (tree, home))
        return "" if known else f"{place} is outside of the work tree"
    return "" if tool == "Bash" else f"{tool} is not a tool of this session"


def _unwritable(hat: Hat, place: Path, tree: Path) -> str:
    if not place.is_relative_to(tree):
        return f"{place} is outside of the work tree"
    path = place.relative_to(tree)
    if ".git" in (part.casefold() for part in path.parts):
        return f"{path} belongs to git"
    why = why_outside(hat, path.as_posix())
    return f"{path}: {why}" if why else ""


def rules(hat: Hat) -> Iterator[str]:
    """The client's own deny rules: files, and commands anywhere in a line."""
    words = (" ".join(parse_pattern(text)) for text in hat.commands_denied)
    commands = (text if text.endswith("*") else f"{text}:*" for text in words if text)
    rules = (("Edit", hat.write_denied), ("Bash", commands))
    yield from (f"{tool}({text})" for tool, texts in rules for text in texts if not set(text) & set("(),"))


def request_of(hat: Hat) -> dict[str, Any]:
    """What a driver's request says of its hat."""
    return {
        "hat": hat.name,
        "write_allowed": hat.write_allowed,
        "write_denied": hat.write_denied,
        "commands_denied": hat.commands_denied,
    }


def hat_of(request: Mapping[str, Any]) -> Hat:
    """The hat of a request."""
    allowed = request["write_allowed"]
    return Hat(
        request["hat"],
        write_allowed=None if allowed is None else tuple(allowed),
        write_denied=tuple(request["write_denied"]),
        commands_denied=tuple(request["commands_denied"]),
    )


class _Driver:
    """One session: the request, and refused calls so far."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request, self._hat = request, hat_of(request)
        self._tree, self._home = Path.cwd(), Path(os.environ["HOME"])
        self._refused: dict[str, None] = {}
        self._errors: deque[str] = deque(maxlen=LINES)
        self._limit = ""

    async def play(self) -> dict[str, Any]:
        """The result, in any case. The library returns it first and then raises the same error."""
        from claude_agent_sdk import ClaudeSDKClient, ClaudeSDKError, ResultMessage

        result: ResultMessage | None = None
        failed = ""
        try:
            async with ClaudeSDKClient(self._options()) as client:
                await client.query(self._request["prompt"])
                async for message in client.receive_response():
                    result = message if isinstance(message, ResultMessage) else result
                    self._tell(message)
        except ClaudeSDKError as error:
            failed = str(error)
        return self._result(result) if result else self._format_death(failed)

    def _options(self) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        request, trusted = self._request, bool(self._request["trusted"])
        form = {"type": "json_schema", "schema": request["schema"]} if request["schema"] else None
        return ClaudeAgentOptions(
            tools=list(request["tools"]),
            disallowed_tools=list(rules(self._hat)),
            permission_mode="default",  # `_may` decides everything that is not harmless; nothing is allowed beforehand
            can_use_tool=self._may,
            system_prompt={"type": "preset", "preset": "claude_code"},
            setting_sources=["project"] if trusted else [],
            strict_mcp_config=not trusted,
            verbatim_prompts=True,  # `@/some/file` in an issue's text is text
            model=request["model"] or None,
            max_turns=request["turns"] or None,
            max_budget_usd=request["usd"],
            output_format=form,
            stderr=self._errors.append,
        )

    async def _may(
        self, tool: str, arguments: dict[str, Any], _: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

        why = why_not(self._hat, tool, arguments, self._tree, self._home)
        if not why:
            return PermissionResultAllow()
        self._refused[f"{tool}: {why}"] = None
        return PermissionResultDeny(message=why)

    def _tell(self, message: object) -> None:
        from claude_agent_sdk import AssistantMessage, RateLimitEvent, TextBlock, ToolUseBlock

        if isinstance(message, AssistantMessage):
            words = "".join(block.text for block in message.content if isinstance(block, TextBlock))
            if words:
                print_line({"type": "assistant", "text": words})
            for block in message.content:
                if isinstance(block, ToolUseBlock):
                    print_line({"type": "call", "tool": block.name, "input": shorten_input(block.input)})
        if isinstance(message, RateLimitEvent) and message.rate_limit_info.status == "rejected":
            at = message.rate_limit_info.resets_at
            self._limit = f"resets at {datetime.fromtimestamp(at, UTC).isoformat()}" if at else ""

    def _result(self, result: ResultMessage) -> dict[str, Any]:
        fields = asdict(result)
        # `_may` words its own refusals; only the client's rules refuse commands.
        denials = [
            one for one in result.permission_denials or () if one.get("tool_name") == "Bash" or not self._refused
        ]
        denied = (f"{one.get('tool_name')}: {_find_target(one)} was denied" for one in denials)
        refused = [*self._refused, *dict.fromkeys(denied)]
        keys = ("subtype", "is_error", "num_turns", "total_cost_usd", "usage", "model_usage", "errors")
        document = {key: fields[key] for key in (*keys, "result", "api_error_status")}
        if self._request["schema"] and not result.is_error:
            document |= self._format_result(result)
        return {**document, "refused": refused, "limit": self._limit}

    def _format_result(self, result: ResultMessage) -> dict[str, Any]:
        """The answer in the requested form; it may be missing even from a success."""
        if result.structured_output is None:
            return {"subtype": "error_no_structured_output", "is_error": True}
        return {"result": json.dumps(result.structured_output, ensure_ascii=False)}

    def _format_death(self, failed: str) -> dict[str, Any]:
        words = "\n".join((*self._errors, failed)) or "the client ended without a result"
        return {"subtype": "error_during_execution", "is_error": True, "errors": [words], "refused": [*self._refused]}


def shorten_input(arguments: Mapping[str, Any]) -> dict[str, str]:
    """A tool's input, without whole files."""
    return {name: truncate(str(value), LONGEST) for name, value in arguments.items()}


def _find_target(denial: Mapping[str, Any]) -> str:
    arguments = denial.get("tool_input") or {}
    return truncate(str(arguments.get("file_path") or arguments.get("command") or ""), 200)


def print_line(value: Mapping[str, Any]) -> None:
    """A message of the driver, as a line of JSON."""
    print(json.dumps(value, default=str), flush=True)


def _version() -> int:
    try:
        print(version("claude-agent-sdk"))
    except PackageNotFoundError:
        print(NEEDED, file=sys.stderr)
        return MISSING
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
