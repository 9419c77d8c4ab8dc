"""Claude Code, by one of two interfaces.

By claude-agent-sdk, if installed: `claude_driver` runs it in its own process, judges every tool call and prints one
result. Else, or if a program is named, by the client's command line (`claude -p`): the client denies tools by its
rules, and forbidden changes that it lets through are reverted afterwards.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.claude_driver import request_of, rules
from ralph_mission.adapters.agents.client import Client, Invocation, Login, SessionPlace
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.extras import install_command
from ralph_mission.loop.model.state import Hat, Session, SessionUsage
from ralph_mission.safety.text import truncate

TOOLS = ("Bash", "Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep")
"""The tools of a session: none that asks a person, uses the web, or continues after the session."""
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",  # the loop waits and retries; a 401 would be retried for minutes
    "DISABLE_AUTOUPDATER": "1",
}
ENDED = {
    "error_max_turns": "it was not done within its turns",
    "error_max_budget_usd": "its budget is spent",
    "error_max_structured_output_retries": "it gave no answer of the wanted form",
    "error_no_structured_output": "it gave no answer of the wanted form",
}
"""The cause of the client ending a session, by its `subtype`."""


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    hat = session.hat
    request = {
        "prompt": session.prompt,
        "model": session.model,
        "turns": session.turns,
        "usd": session.usd,
        "schema": json.loads(session.schema) if session.schema else None,
        "tools": [tool for tool in TOOLS if tool not in hat.tools_denied],
        "trusted": place.trusted,
        **request_of(hat),
    }
    return Invocation(stdin=json.dumps(request), env=QUIET)


def read(output: Gave) -> AgentReply:
    """The last line is the result; without one the driver crashed, and no provider failure is known."""
    documents = list(reading.documents(output.stdout))
    calls = tuple(
        reading.describe_call(reading.as_text(one.get("tool")), one.get("input"))
        for one in documents
        if one.get("type") == "call"
    )
    found = [value for value in documents if value.get("type") == "result"]
    if not found:
        return AgentReply("", "" if output.code else "it ended without a result", calls=calls, recorded=True)
    return replace(_read_result(found[-1]), calls=calls, recorded=True)


def _read_result(result: Mapping[str, Any]) -> AgentReply:
    subtype, words = reading.as_text(result.get("subtype")), reading.as_text(result.get("result"))
    usage = replace(_usage(result), turns=reading.as_count(result.get("num_turns")))
    refused = reading.as_texts(result.get("refused"))
    if result.get("is_error") is not True and not subtype.startswith("error"):
        return AgentReply(words, usage=usage, refused=refused)
    ended = ENDED.get(subtype, "")
    what = ended or (subtype if subtype.startswith("error") else "")
    details = (what, *reading.as_texts(result.get("errors")), words, reading.as_text(result.get("limit")))
    failure = "exit" if ended else reading.by_status(result.get("api_error_status"))
    return AgentReply(words, "\n".join(filter(None, details)) or "error", usage, failure, refused)


def _usage(result: Mapping[str, Any]) -> SessionUsage:
    """By model if available: `usage` omits the last, unfinished answer."""
    models = [value for value in reading.inner(result, "model_usage").values() if isinstance(value, dict)]
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    cost = reading.as_cost(result.get("total_cost_usd"))
    if not models:
        return replace(reading.tokens(result), cost_usd=cost)
    return SessionUsage(
        0,
        sum(reading.as_count(model.get(name)) for model in models for name in read),
        sum(reading.as_count(model.get("outputTokens")) for model in models),
        cost,
    )


KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
LOGIN = Login(
    "CLAUDE_CONFIG_DIR",
    ".claude",
    ".credentials.json",
    "run `claude` and type /login, or run `claude setup-token`",
    "run `claude setup-token`, then set CLAUDE_CODE_OAUTH_TOKEN",
)
DRIVER = "ralph_mission.adapters.agents.claude_driver"
INSTALL = f"npm install --global @anthropic-ai/claude-code, or {install_command('claude')}"
CLIENT = Client(
    "claude",
    (
        sys.executable,
        "-I",
        "-m",
        DRIVER,
    ),  # -I: import no modules from the work tree
    _invocation,
    read,
    keys=KEYS,
    endpoints=("ANTHROPIC_BASE_URL",),
    fresh=(".claude", ".claude.json"),
    install=INSTALL,
    priced=True,
    login=LOGIN,
)


# --- its own command line -------------------------------------------------------------

ASKED_FIRST = ("Bash", "Edit", "Write", "NotebookEdit")
"""Tools for which the client would ask a person; reading within the work tree needs no permission."""


def _call(session: Session, place: SessionPlace) -> Invocation:
    hat, message = session.hat, {"type": "user", "message": {"role": "user", "content": session.prompt}}
    tools = [tool for tool in TOOLS if tool not in hat.tools_denied]
    arguments = ["--print", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"]
    arguments += [f"--tools={','.join(tools)}", f"--allowedTools={','.join(_allowed(hat, tools))}"]
    arguments += [f"--setting-sources={'project' if place.trusted else ''}", "--permission-mode=default"]
    arguments += [] if place.trusted else ["--strict-mcp-config"]
    denied = ",".join(rules(hat))
    named = {
        "--disallowedTools": denied,
        "--model": session.model,
        "--max-turns": session.turns,
        "--max-budget-usd": session.usd,
        "--json-schema": session.schema,
    }
    arguments += [f"{name}={value}" for name, value in named.items() if value]
    # `client_composed`: `@/some/file` in an issue's text is text
    return Invocation(tuple(arguments), json.dumps({**message, "client_composed": True}) + "\n", QUIET)


def _allowed(hat: Hat, tools: Sequence[str]) -> Iterator[str]:
    for tool in (tool for tool in ASKED_FIRST if tool in tools):
        if tool == "Bash" or hat.write_allowed is None:
            yield tool
    globs = hat.write_allowed or ()
    yield from (f"Edit({glob})" for glob in globs if "Edit" in tools and not set(glob) & set("(),"))


def _read_stream(output: Gave) -> AgentReply:
    documents = list(reading.documents(output.stdout))
    messages = [reading.inner(one, "message") for one in documents if one.get("type") == "assistant"]
    calls = tuple(reading.tool_calls(messages))
    found = [value for value in documents if value.get("type") == "result"]
    if not found:
        words = reading.words(output.stdout) or reading.words(output.stderr)
        error = words if output.code else ": ".join(filter(None, ("it gave no result", words)))
        # Its output before the model's first message is its own, not the session's.
        return AgentReply("", error, failure="exit" if messages else "", calls=calls, recorded=True)
    return replace(_read_result(_as_driver(found[-1])), calls=calls, recorded=True)


def _as_driver(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The client's own result with the driver's field names."""
    denials = result.get("permission_denials")
    refused = [
        f"{reading.as_text(one.get('tool_name'))}: {_target(reading.inner(one, 'tool_input'))} was denied"
        for one in (denials if isinstance(denials, list) else ())
        if isinstance(one, dict)
    ]
    answer = result.get("structured_output")
    document = {**result, "model_usage": reading.inner(result, "modelUsage"), "refused": list(dict.fromkeys(refused))}
    return document if answer is None else {**document, "result": json.dumps(answer, ensure_ascii=False)}


def _target(arguments: Mapping[str, Any]) -> str:
    return truncate(reading.as_text(arguments.get("file_path")) or reading.as_text(arguments.get("command")), 200)


COMMAND_LINE = replace(
    CLIENT,
    program=("claude",),
    invocation=_call,
    read=_read_stream,
)


def find_client(words: Sequence[str] = ()) -> Client:
    """The interface to use: a program in `words` is Claude Code's command line, whatever its name, except our driver;
    without one the SDK, else the `claude` on the PATH."""
    if words:
        return CLIENT if any(DRIVER in word for word in words) else COMMAND_LINE
    here = find_spec("claude_agent_sdk") is not None or not shutil.which("claude")
    return CLIENT if here else COMMAND_LINE
