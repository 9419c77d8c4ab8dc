"""OpenCode: `opencode run --format json`, one event a line. It tells tokens and cost of each step.

`OPENAI_BASE_URL` names any server that speaks OpenAI's chat; without it the model names its provider
(`anthropic/…`), whose key it finds by its own name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import RUNS, Client, Invocation, SessionPlace, may_write
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.loop.model.state import Hat, Session, SessionUsage

ADDRESS, KEY, OURS = "OPENAI_BASE_URL", "OPENAI_API_KEY", "ralph"
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
OBEYING = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1", "OPENCODE_DISABLE_CLAUDE_CODE": "1"}
ALONE = {"OPENCODE_DISABLE_MODELS_FETCH": "1"}
"""With a server of one's own, no list of everybody's models is fetched."""


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    own = bool(place.env.get(ADDRESS))
    model = f"{OURS}/{session.model}" if own and session.model else session.model
    arguments = ("run", "--format", "json", "--pure", *(("-m", model) if model else ()))
    settings = {"OPENCODE_CONFIG_CONTENT": json.dumps(_settings(session, place.env.get(ADDRESS, "")))}
    env = {**QUIET, **settings, **(ALONE if own else {}), **({} if place.trusted else OBEYING)}
    return Invocation(arguments, session.prompt, env)


def _settings(session: Session, address: str) -> Mapping[str, Any]:
    made: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,  # it would keep a git repository of its own
        "permission": {
            "edit": _may_edit(session.hat),
            "bash": "deny" if RUNS in session.hat.tools_denied else "allow",
            "webfetch": "deny",
            "external_directory": "deny",
            "question": "deny",
        },
    }
    if address and session.model:
        limits = {"context": 200_000, "output": 32_000}
        models = {session.model: {"name": session.model, "limit": limits, "tool_call": True}}
        options = {"baseURL": address, "apiKey": f"{{env:{KEY}}}"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": OURS, "options": options, "models": models}
        made |= {"enabled_providers": [OURS], "provider": {OURS: provider}, "small_model": f"{OURS}/{session.model}"}
    return made


def _may_edit(hat: Hat) -> Mapping[str, str]:
    """Its patterns, of which the last one that fits counts."""
    if not may_write(hat):
        return {"*": "deny"}
    allowed = (
        {"*": "allow"} if hat.write_allowed is None else {"*": "deny", **dict.fromkeys(hat.write_allowed, "allow")}
    )
    return {**allowed, **dict.fromkeys(hat.write_denied, "deny")}


def _read(gave: Gave) -> AgentReply:
    text, error, status, usage = "", "", None, SessionUsage()
    calls: list[str] = []
    for event in reading.documents(gave.stdout):
        part = reading.inner(event, "part")
        match event.get("type"):
            case "text":
                text = reading.as_text(part.get("text"))
            case "tool_use":
                calls.append(
                    reading.describe_call(reading.as_text(part.get("tool")), reading.inner(part, "state", "input"))
                )
            case "step_finish":
                usage += _usage(part)
            case "error":
                data = reading.inner(event, "error", "data")
                error, status = reading.as_text(data.get("message")) or "error", data.get("statusCode")
    made = SessionUsage(0, usage.input_tokens, usage.output_tokens, _known_cost(usage), turns=usage.turns)
    return AgentReply(text, error, made, reading.by_status(status), calls=tuple(calls), recorded=True)


def _usage(part: Mapping[str, Any]) -> SessionUsage:
    told, cached = reading.inner(part, "tokens"), reading.inner(part, "tokens", "cache")
    read = reading.as_count(told.get("input")) + sum(reading.as_count(cached.get(name)) for name in ("read", "write"))
    written = reading.as_count(told.get("output")) + reading.as_count(told.get("reasoning"))
    return SessionUsage(0, read, written, reading.as_cost(part.get("cost")), turns=1)


def _known_cost(usage: SessionUsage) -> float | None:
    """Its cost; it tells 0 of a model whose price it does not know."""
    return usage.cost_usd or None


CLIENT = Client(
    "opencode", ("opencode",), _invocation, _read,
    keys=(KEY, "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), endpoints=(ADDRESS,),
    fresh=(".config/opencode", ".data/opencode", ".opencode"), obeys=(".opencode",),
    install="npm install --global opencode-ai",
)  # fmt: skip  # one value
