"""Claude Code, by way of claude-agent-sdk: `claude_driver` runs it in a process of its own and prints one result."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import Client, Invocation, SessionPlace
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.extras import install_command
from ralph_mission.loop.model.state import Session, SessionUsage

TOOLS = ("Bash", "Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep")
"""All that a session is offered: nothing that asks a person, the web, or works on after the session."""
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",  # the loop waits and tries again; a 401 would be tried for minutes
    "DISABLE_AUTOUPDATER": "1",
}
ENDED = {
    "error_max_turns": "it was not done within its turns",
    "error_max_budget_usd": "its budget is spent",
    "error_max_structured_output_retries": "it gave no answer of the wanted form",
    "error_no_structured_output": "it gave no answer of the wanted form",
}
"""What ended a session that the client itself ended, by its `subtype`."""


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    hat = session.hat
    asked = {
        "prompt": session.prompt,
        "model": session.model,
        "turns": session.turns,
        "usd": session.usd,
        "schema": json.loads(session.schema) if session.schema else None,
        "tools": [tool for tool in TOOLS if tool not in hat.tools_denied],
        "hat": hat.name,
        "write_allowed": hat.write_allowed,
        "write_denied": hat.write_denied,
        "commands_denied": hat.commands_denied,
        "trusted": place.trusted,
    }
    return Invocation(stdin=json.dumps(asked), env=QUIET)


def _read(gave: Gave) -> AgentReply:
    """The last line is the result; without one the driver died, and nothing names a provider's failure."""
    told = list(reading.documents(gave.stdout))
    calls = tuple(
        reading.describe_call(reading.as_text(one.get("tool")), one.get("input"))
        for one in told
        if one.get("type") == "call"
    )
    found = [value for value in told if value.get("type") == "result"]
    if not found:
        return AgentReply("", "" if gave.code else "it ended without a result", calls=calls, recorded=True)
    return replace(_read_result(found[-1]), calls=calls, recorded=True)


def _read_result(result: Mapping[str, Any]) -> AgentReply:
    subtype, words = reading.as_text(result.get("subtype")), reading.as_text(result.get("result"))
    usage = replace(_usage(result), turns=reading.as_count(result.get("num_turns")))
    refused = reading.as_texts(result.get("refused"))
    if result.get("is_error") is not True and not subtype.startswith("error"):
        return AgentReply(words, usage=usage, refused=refused)
    ended = ENDED.get(subtype, "")
    details = (ended, *reading.as_texts(result.get("errors")), words, reading.as_text(result.get("limit")))
    failure = "exit" if ended else reading.by_status(result.get("api_error_status"))
    return AgentReply(words, "\n".join(filter(None, details)) or "error", usage, failure, refused)


def _usage(result: Mapping[str, Any]) -> SessionUsage:
    """By model where it tells that: `usage` leaves out what the last, unfinished answer took."""
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


CLIENT = Client(
    "claude",
    (
        sys.executable,
        "-I",
        "-m",
        "ralph_mission.adapters.agents.claude_driver",
    ),  # -I: the work tree is no place for modules
    _invocation,
    _read,
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    endpoints=("ANTHROPIC_BASE_URL",),
    fresh=(".claude", ".claude.json"),
    install=install_command("claude"),
    priced=True,
)
