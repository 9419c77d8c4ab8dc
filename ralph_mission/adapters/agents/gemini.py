"""Gemini CLI: `gemini -o json`, one document on standard output, or an error document at the end of the other one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import RUNS, Client, Invocation, SessionPlace, may_write
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.loop.model.state import Session, SessionUsage

ADDRESS = "GOOGLE_GEMINI_BASE_URL"
GOOGLE = "https://generativelanguage.googleapis.com"
SETTINGS = ".gemini/settings.json"
TURNS_OVER = 53
"""Its exit code when it was not done within its turns."""
SHELL, WRITERS, WEB = ("run_shell_command",), ("write_file", "replace"), ("web_fetch", "google_web_search")


def _invocation(session: Session, place: SessionPlace) -> Invocation:
    arguments = ["-o", "json", "--approval-mode", "yolo", "--skip-trust"]
    arguments += ["-m", session.model] if session.model else []
    env = {ADDRESS: place.env.get(ADDRESS) or GOOGLE}  # said here, so that no file of the repository says it
    return Invocation(tuple(arguments), session.prompt, env, {SETTINGS: json.dumps(_settings(session))})


def _settings(session: Session) -> Mapping[str, Any]:
    denied = (*WEB, *(() if may_write(session.hat) else WRITERS))
    return {
        "advanced": {"ignoreLocalEnv": True},
        "general": {"enableAutoUpdate": False, "maxAttempts": 1},
        "hooksConfig": {"enabled": False},
        "model": {"maxSessionTurns": session.turns},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "tools": {"exclude": [*denied, *(SHELL if RUNS in session.hat.tools_denied else ())]},
    }


def _read(gave: Gave) -> AgentReply:
    told = reading.last_document(gave.stdout) or reading.last_document(gave.stderr)
    error = reading.inner(told, "error")
    return AgentReply(
        reading.as_text(told.get("response")),
        "it was not done within its turns" if gave.code == TURNS_OVER else reading.as_text(error.get("message")),
        _usage(reading.inner(told, "stats", "models")),
        reading.by_status(error.get("code")),
        calls=tuple(_calls(reading.inner(told, "stats", "tools", "byName"))),
        recorded=True,
    )


def _calls(tools: Mapping[str, Any]) -> Iterator[str]:
    """The tools, as often as they were called: it does not tell with what."""
    for name in tools:
        count = min(reading.as_count(reading.inner(tools, name).get("count")), reading.CALLS)
        yield from (reading.line(name) for _ in range(count))


def _usage(models: Mapping[str, Any]) -> SessionUsage:
    tokens = [reading.inner(models, name, "tokens") for name in models]
    return SessionUsage(
        0,
        sum(reading.as_count(told.get("prompt")) for told in tokens),
        sum(reading.as_count(told.get(kind)) for told in tokens for kind in ("candidates", "thoughts")),
        turns=sum(reading.as_count(reading.inner(models, name, "api").get("totalRequests")) for name in models),
    )


CLIENT = Client(
    "gemini", ("gemini",), _invocation, _read,
    keys=("GEMINI_API_KEY",), endpoints=(ADDRESS,), fresh=(".gemini", ".agents", ".env"), obeys=(".gemini",),
    install="npm install --global @google/gemini-cli",
)  # fmt: skip  # one value
