"""Amp: `amp --execute --stream-json`, one message a line, the last of them a result as Claude Code prints it.

It needs Amp's own server, so that it was never run here: what is known of it is its manual.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import RUNS, WRITES, Client, Invocation, SessionPlace
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.loop.model.state import Session, SessionUsage

SETTINGS = ".config/amp/settings.json"
NAMES = {RUNS: "Bash", WRITES[0]: "edit_file", WRITES[1]: "create_file"}
"""Its names of the tools that hats deny."""


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    denied = [NAMES.get(tool, tool) for tool in session.hat.tools_denied]
    settings = {"amp.tools.disable": denied, "amp.updates.mode": "disabled", "amp.dangerouslyAllowAll": True}
    path = str(place.home.resolve() / SETTINGS)
    arguments = ("--execute", "--stream-json", "--no-notifications", "--settings-file", path)
    return Invocation(arguments, session.prompt, files={SETTINGS: json.dumps(settings)})


def _read(gave: Gave) -> AgentReply:
    said = reading.plain(gave)
    messages = [
        reading.inner(one, "message") for one in reading.documents(gave.stdout) if one.get("type") == "assistant"
    ]
    usage = sum((reading.tokens(message) for message in messages), SessionUsage())
    turns = len(messages)
    known = said.usage if said.usage.input_tokens else usage
    took = replace(known, sessions=0, cost_usd=said.usage.cost_usd, unpriced=0, turns=turns)
    return replace(said, usage=took, calls=tuple(_calls(messages)))


def _calls(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_use":
                yield reading.describe_call(reading.as_text(block.get("name")), block.get("input"))


CLIENT = Client(
    "amp", ("amp",), _invocation, _read,
    keys=("AMP_API_KEY",), endpoints=("AMP_URL",), fresh=(".config/amp",), obeys=(".amp", ".agents"),
    install="npm install --global @sourcegraph/amp",
)  # fmt: skip  # one value
