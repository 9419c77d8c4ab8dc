"""One session of an agent that speaks the Agent Client Protocol: `python -I -m …acp_driver PROGRAM [ARGUMENT…]`.

Reads one JSON request (written by `acp.py`) from standard input, starts the program in the work tree, and prints a line
of JSON for each of its messages and calls, the result last. File reads and writes, and tools and files of calls that
need permission, are judged here by the hat's permissions; unknown tools are denied. Commands are refused by the guards
on its PATH.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ralph_mission.adapters.agents.claude_driver import hat_of, print_line, shorten_input, why_not
from ralph_mission.extras import install_command
from ralph_mission.safety.text import truncate

if TYPE_CHECKING:
    from acp.client import ClientSideConnection
    from acp.schema import PermissionOption, ReadTextFileResponse, RequestPermissionResponse, ToolCallUpdate

MISSING, AUTH_REQUIRED = 127, -32000
NEEDED = f"agent-client-protocol: not found: {install_command('acp')}"
TOOLS = {"read": "Read", "search": "Grep", "edit": "Edit", "delete": "Edit", "move": "Edit", "execute": "Bash"}
"""Kinds of calls by the names of tools that hats deny. Others (such as the web) are not available to sessions."""
HARMLESS = ("think", "switch_mode")
LONGEST_LINE = 50_000_000  # bytes of a message, which may contain a file
LONGEST = 4000  # characters of a tool's input
STACK = re.compile(r"\s+at \S|Node\.js v[\d.]+$|\s*$")  # lines of JavaScript's stack, which say nothing to a person
ENDS = {
    "max_turn_requests": "it was not done within its turns",
    "max_tokens": "its answer was cut off at the most tokens",
    "refusal": "it refused to go on",
    "cancelled": "it was cancelled",
}
"""The cause of an early end, by stop reason."""


def main(arguments: list[str]) -> int:
    """The exit code: always 0, as the outcome is in the result."""
    *words, last = arguments or [""]
    asked_version = last == "--version" and bool(words)
    program = words if asked_version else arguments
    if not shutil.which(program[0] if program else ""):
        print(f"{program[0] if program else 'a program'}: not found", file=sys.stderr)
        return MISSING
    try:
        if asked_version:
            print(f"{Path(program[0]).name} by agent-client-protocol {version('agent-client-protocol')}")
            return 0
        import acp  # noqa: F401  # whether it is there
    except ImportError:
        print(NEEDED, file=sys.stderr)
        return MISSING
    result = asyncio.run(_play(program, json.load(sys.stdin)))
    sys.unraisablehook = lambda _: None  # a pipe that the program's own children hold open is only closed by our end
    print_line({"type": "result", **result})
    return 0


async def _play(program: Sequence[str], request: Mapping[str, Any]) -> dict[str, Any]:
    from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
    from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation

    us = _Client(request, Path.cwd(), Path(os.environ["HOME"]))
    called = Implementation(name="ralph", version=version("ralph-mission"))
    able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=False)
    errors = tempfile.TemporaryFile()  # noqa: SIM115  # this process is the session
    transport = {"limit": LONGEST_LINE, "stderr": errors}
    try:
        async with spawn_agent_process(
            cast(Any, us),
            program[0],
            *program[1:],
            env=dict(os.environ),
            cwd=us.tree,
            transport_kwargs=transport,
            use_unstable_protocol=True,
        ) as (agent, _):
            known = await agent.initialize(PROTOCOL_VERSION, able, called)
            if method := _find_key_login(known.auth_methods or (), os.environ):
                await agent.authenticate(method)  # Codex asks for it even where its key is set
            session = await agent.new_session(cwd=str(us.tree), mcp_servers=[])
            if problem := await _choose_model(agent, session, request["model"]):
                return us.result(error=problem)
            ended = await agent.prompt(session_id=session.session_id, prompt=[text_block(request["prompt"])])
            return us.result(usage=ended.usage, error=ENDS.get(ended.stop_reason, ""))
    except RequestError as error:
        if error.code == AUTH_REQUIRED:
            return us.result(error=f"{str(error).rstrip('.')}: set its key, or log in with its own program", status=401)
        return us.result(error=_describe(error, errors))
    except (OSError, EOFError, ValueError) as error:  # also output that is not the protocol's
        return us.result(error=_describe(error, errors))


def _find_key_login(methods: Sequence[Any], environ: Mapping[str, str]) -> str:
    """The id of a way to log in by variables that are set, or ""."""
    found = (
        one for one in methods if (keys := getattr(one, "vars", None)) and all(environ.get(key.name) for key in keys)
    )
    return next((str(one.id) for one in found), "")


async def _choose_model(agent: ClientSideConnection, session: Any, model: str) -> str:
    """Set the session's model; returns why that is impossible, or ""."""
    if not model:
        return ""
    options = [one for one in session.config_options or () if getattr(one, "category", None) == "model"]
    if not options:
        return f"it offers no choice of models, but {model} is requested"
    await agent.set_config_option(config_id=options[0].id, session_id=session.session_id, value=model)
    return ""


def _describe(error: Exception, errors: IO[bytes]) -> str:
    """The error, with the end of the program's output."""
    data = getattr(error, "data", None)
    more = data if isinstance(data, str) else json.dumps(data) if data else ""
    errors.seek(max(errors.seek(0, os.SEEK_END) - LONGEST, 0))
    lines = errors.read().decode(errors="replace").split("\n")
    output = "\n".join(line for line in lines if not STACK.match(line)).strip()
    return truncate("\n".join(filter(None, (": ".join(filter(None, (str(error), more))), output))), LONGEST)


class _Client:
    """Our side of the protocol: reports messages, and decides requests."""

    def __init__(self, request: Mapping[str, Any], tree: Path, home: Path) -> None:
        self.tree, self._home, self._tools = tree, home, request["tools_denied"]
        self._hat = hat_of(request)
        self._words: list[str] = []
        self._answer, self._usd = "", None
        self._refused: dict[str, None] = {}
        self._calls: dict[str, Any] = {}

    def on_connect(self, conn: Any) -> None:
        """Does nothing: we send no requests from here."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Messages, calls and costs, live."""
        kind = update.session_update
        if kind == "agent_message_chunk" and update.content.type == "text":
            self._words.append(update.content.text)
            if update.content.text.endswith("\n"):
                self._flush()
        elif kind in ("tool_call", "tool_call_update"):
            self._call(update, kind == "tool_call")
        elif kind == "usage_update" and update.cost and update.cost.currency.upper() == "USD":
            self._usd = update.cost.amount

    def _call(self, update: Any, new: bool) -> None:
        before = self._calls.get(update.tool_call_id)
        known = {"kind": "other", "title": "", "input": None, "paths": (), **(before or {})}
        fields = {"kind": update.kind, "title": update.title, "input": update.raw_input}
        fields["paths"] = tuple(one.path for one in update.locations or ()) or None
        now = {**known, **{name: value for name, value in fields.items() if value}}
        self._calls[update.tool_call_id] = now
        if new or before is None:
            self._flush()
            self._answer = ""  # the text after the last call is the answer
            arguments = now["input"] if isinstance(now["input"], dict) else {"title": now["title"]}
            print_line({"type": "call", "tool": TOOLS.get(now["kind"], now["kind"]), "input": shorten_input(arguments)})

    def _flush(self) -> None:
        words, self._words = "".join(self._words), []
        self._answer += words
        if words.strip():
            print_line({"type": "assistant", "text": words})

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Allow once, or refuse without a reason: the protocol has none."""
        from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

        self._call(tool_call, False)
        why = self._why_not(self._calls[tool_call.tool_call_id])
        if why:
            self._refused[why] = None
        kinds = ("reject_once", "reject_always") if why else ("allow_once", "allow_always")
        chosen = next((one for kind in kinds for one in options if one.kind == kind), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    def _why_not(self, call: Mapping[str, Any]) -> str:
        kind = call["kind"]
        if kind in HARMLESS:
            return ""
        tool = TOOLS.get(kind, "")
        if not tool or tool in self._tools:
            return f"{kind}: {call['title']}: not a tool of this session"
        if not call["paths"] and tool == "Edit":
            return f"Edit: {call['title']}: it does not say which file"
        return next((f"{tool}: {why}" for path in call["paths"] if (why := self._judge(tool, path))), "")

    def _judge(self, tool: str, path: str) -> str:
        tool = "Read" if tool == "Grep" else tool
        return f"{tool} is not a tool of this session" if tool in self._tools else why_not(
            self._hat, tool, {"file_path": path}, self.tree, self._home
        )  # fmt: skip  # one value

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        """Write a file if the hat may. Raises RequestError."""
        self._require("Write", path)
        place = self.tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, "utf-8")

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> ReadTextFileResponse:
        """A file of the work tree, or some lines of it. Raises RequestError."""
        from acp import RequestError
        from acp.schema import ReadTextFileResponse

        self._require("Read", path)
        try:
            lines = (self.tree / path).read_text("utf-8", errors="replace").splitlines(keepends=True)
        except OSError:
            raise RequestError.resource_not_found(path) from None
        first = max((line or 1) - 1, 0)
        return ReadTextFileResponse(content="".join(lines[first : first + limit if limit else None]))

    def _require(self, tool: str, path: str) -> None:
        from acp import RequestError

        if why := self._judge(tool, path):
            self._refused[f"{tool}: {why}"] = None
            raise RequestError.invalid_params({"refused": why})

    def result(self, usage: Any = None, error: str = "", status: int | None = None) -> dict[str, Any]:
        """The result, in the form of `claude.read`."""
        self._flush()
        tokens = {} if usage is None else {
            "input_tokens": usage.input_tokens + (usage.cached_read_tokens or 0) + (usage.cached_write_tokens or 0),
            "output_tokens": usage.output_tokens + (usage.thought_tokens or 0),
        }  # fmt: skip  # one value
        return {
            "is_error": bool(error), "errors": [error] if error else [],
            "result": self._answer, "usage": tokens, "total_cost_usd": self._usd, "refused": [*self._refused],
            "api_error_status": status,
        }  # fmt: skip  # one value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
