"""GitHub Copilot CLI: `copilot --output-format json`, one event a line.

With a model of one's own (`COPILOT_PROVIDER_BASE_URL`) it needs no account and talks to nobody else. With an account
it needs `COPILOT_GITHUB_TOKEN`, a token that may ask Copilot and nothing else; no other token is given to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import RUNS, Client, Invocation, SessionPlace, may_write
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.loop.model.state import Session, SessionUsage

ADDRESS, KEY, ACCOUNT = "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_API_KEY", "COPILOT_GITHUB_TOKEN"
TALLY = "copilot-usage.json"
OPTIONS = (
    "--output-format", "json", "--stream", "off", "--no-color", "--no-auto-update", "--no-ask-user", "--no-remote",
    "--disable-builtin-mcps", "--disallow-temp-dir", "--allow-all-tools", f"--secret-env-vars={KEY},{ACCOUNT}",
)  # fmt: skip  # one list


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    tally = f"--usage-output-file={place.home.resolve() / TALLY}"
    arguments = (*OPTIONS, tally, *_denied_tools(session), *_obeying(place.trusted))
    env = {"COPILOT_OFFLINE": "true"} if place.env.get(ADDRESS) else {}
    return Invocation(arguments, session.prompt, env | ({"COPILOT_MODEL": session.model} if session.model else {}))


def _denied_tools(session: Session) -> Iterator[str]:
    if not may_write(session.hat):
        yield "--deny-tool=write"
    if RUNS in session.hat.tools_denied:
        yield "--deny-tool=shell"


def _obeying(trusted: bool) -> tuple[str, ...]:
    return ("--trust-folder",) if trusted else ("--no-custom-instructions",)


def _read(gave: Gave) -> AgentReply:
    text, error, status, refused, turns, written = "", "", None, [], 0, 0
    calls: list[str] = []
    for event in reading.documents(gave.stdout):
        data = reading.inner(event, "data")
        match event.get("type"):
            case "assistant.message":
                turns += 1
                written += reading.as_count(data.get("outputTokens"))
                text = reading.as_text(data.get("content")) or text
                calls += _calls(data.get("toolRequests"))
            case "session.error":
                error, status = reading.as_text(data.get("message")) or "error", data.get("statusCode")
            case "tool.execution_complete":
                refused += _refusal(data)
    usage = _usage(reading.inner(reading.last_document(gave.left), "modelMetrics"))
    made = SessionUsage(0, usage.input_tokens, usage.output_tokens or written, turns=usage.turns or turns)
    return AgentReply(text, error, made, reading.by_status(status), tuple(refused), tuple(calls), recorded=True)


def _calls(asked: object) -> Iterator[str]:
    for one in asked if isinstance(asked, list) else ():
        if isinstance(one, dict):
            yield reading.describe_call(reading.as_text(one.get("name")), one.get("arguments"))


def _refusal(data: Mapping[str, Any]) -> list[str]:
    said = reading.as_text(reading.inner(data, "error").get("message"))
    return [said] if "ermission" in said and "denied" in said.lower() else []


def _usage(models: Mapping[str, Any]) -> SessionUsage:
    """`inputTokens` counts those that were cached."""
    used = [reading.inner(models, name, "usage") for name in models]
    return SessionUsage(
        0,
        sum(reading.as_count(told.get("inputTokens")) for told in used),
        sum(reading.as_count(told.get("outputTokens")) for told in used),
        turns=sum(reading.as_count(reading.inner(models, name, "requests").get("count")) for name in models),
    )


CLIENT = Client(
    "copilot", ("copilot",), _invocation, _read,
    keys=(KEY, ACCOUNT), endpoints=(ADDRESS, "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_WIRE_API"),
    fresh=(".copilot", ".config/copilot"), leaves=TALLY, install="npm install --global @github/copilot",
)  # fmt: skip  # one value
