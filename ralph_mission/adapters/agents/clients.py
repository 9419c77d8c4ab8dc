"""The agents of `--agent NAME` and `hands: {agent: {kind: …}}`, and lists of agents with fallbacks.

Amp (`amp --execute --stream-json`): one message a line, the last of them a result as Claude Code prints it. It needs
Amp's own server, so it was never run here: this follows its manual.

GitHub Copilot CLI (`copilot --output-format json`): one event a line. With your own model
(`COPILOT_PROVIDER_BASE_URL`) it needs no account and contacts no other server. With an account it needs
`COPILOT_GITHUB_TOKEN`, a token for Copilot only; it gets no other token.

Gemini CLI (`gemini -o json`): one document on standard output, or an error document at the end of standard error.

OpenCode (`opencode run --format json`): one event a line, tokens and cost of each step. `OPENAI_BASE_URL` names any
server with OpenAI's chat API; without it the model names its provider (`anthropic/…`), whose key has its usual name.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralph_mission.adapters.agents import acp, claude, codex, reading
from ralph_mission.adapters.agents.client import RUNS, WRITES, Client, Invocation, SessionPlace, may_write
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.loop.model.state import AgentTurn, Hat, Session, SessionUsage
from ralph_mission.loop.ports import Agent
from ralph_mission.values import dataclass

AMP_SETTINGS = ".config/amp/settings.json"
AMP_TOOLS = {RUNS: "Bash", WRITES[0]: "edit_file", WRITES[1]: "create_file"}
"""Its names for the tools that hats deny."""


def _call_amp(session: Session, place: SessionPlace) -> Invocation:
    denied = [AMP_TOOLS.get(tool, tool) for tool in session.hat.tools_denied]
    settings = {"amp.tools.disable": denied, "amp.updates.mode": "disabled", "amp.dangerouslyAllowAll": True}
    path = str(place.home.resolve() / AMP_SETTINGS)
    arguments = ("--execute", "--stream-json", "--no-notifications", "--settings-file", path)
    return Invocation(arguments, session.prompt, files={AMP_SETTINGS: json.dumps(settings)})


def _read_amp(output: Gave) -> AgentReply:
    reply = reading.plain(output)
    messages = [
        reading.inner(one, "message") for one in reading.documents(output.stdout) if one.get("type") == "assistant"
    ]
    usage = sum((reading.tokens(message) for message in messages), SessionUsage())
    turns = len(messages)
    known = reply.usage if reply.usage.input_tokens else usage
    took = replace(known, sessions=0, cost_usd=reply.usage.cost_usd, unpriced=0, turns=turns)
    return replace(reply, usage=took, calls=tuple(reading.tool_calls(messages)))


AMP = Client(
    "amp", ("amp",), _call_amp, _read_amp,
    keys=("AMP_API_KEY",), endpoints=("AMP_URL",), fresh=(".config/amp",), obeys=(".amp", ".agents"),
    install="npm install --global @sourcegraph/amp",
)  # fmt: skip  # one value


COPILOT_ADDRESS, COPILOT_KEY, COPILOT_ACCOUNT = (
    "COPILOT_PROVIDER_BASE_URL",
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_GITHUB_TOKEN",
)
COPILOT_TALLY = "copilot-usage.json"
COPILOT_OPTIONS = (
    "--output-format", "json", "--stream", "off", "--no-color", "--no-auto-update", "--no-ask-user", "--no-remote",
    "--disable-builtin-mcps", "--disallow-temp-dir", "--allow-all-tools", 
    f"--secret-env-vars={COPILOT_KEY},{COPILOT_ACCOUNT}",
)  # fmt: skip  # one list


def _call_copilot(session: Session, place: SessionPlace) -> Invocation:
    tally = f"--usage-output-file={place.home.resolve() / COPILOT_TALLY}"
    arguments = (*COPILOT_OPTIONS, tally, *_copilot_denied(session),
                 "--trust-folder" if place.trusted else "--no-custom-instructions")  # fmt: skip  # one list
    env = {"COPILOT_OFFLINE": "true"} if place.env.get(COPILOT_ADDRESS) else {}
    return Invocation(arguments, session.prompt, env | ({"COPILOT_MODEL": session.model} if session.model else {}))


def _copilot_denied(session: Session) -> Iterator[str]:
    if not may_write(session.hat):
        yield "--deny-tool=write"
    if RUNS in session.hat.tools_denied:
        yield "--deny-tool=shell"


def _read_copilot(output: Gave) -> AgentReply:
    text, error, status, refused, turns, written = "", "", None, [], 0, 0
    calls: list[str] = []
    for event in reading.documents(output.stdout):
        data = reading.inner(event, "data")
        match event.get("type"):
            case "assistant.message":
                turns += 1
                written += reading.as_count(data.get("outputTokens"))
                text = reading.as_text(data.get("content")) or text
                calls += _copilot_calls(data.get("toolRequests"))
            case "session.error":
                error, status = reading.as_text(data.get("message")) or "error", data.get("statusCode")
            case "tool.execution_complete":
                refused += _copilot_refusal(data)
    usage = _copilot_usage(reading.inner(reading.last_document(output.left), "modelMetrics"))
    spent = SessionUsage(0, usage.input_tokens, usage.output_tokens or written, turns=usage.turns or turns)
    return AgentReply(text, error, spent, reading.by_status(status), tuple(refused), tuple(calls), recorded=True)


def _copilot_calls(requests: object) -> Iterator[str]:
    for one in requests if isinstance(requests, list) else ():
        if isinstance(one, dict):
            yield reading.describe_call(reading.as_text(one.get("name")), one.get("arguments"))


def _copilot_refusal(data: Mapping[str, Any]) -> list[str]:
    message = reading.as_text(reading.inner(data, "error").get("message"))
    return [message] if "ermission" in message and "denied" in message.lower() else []


def _copilot_usage(models: Mapping[str, Any]) -> SessionUsage:
    """`inputTokens` includes cached ones."""
    used = [reading.inner(models, name, "usage") for name in models]
    return SessionUsage(
        0,
        sum(reading.as_count(counts.get("inputTokens")) for counts in used),
        sum(reading.as_count(counts.get("outputTokens")) for counts in used),
        turns=sum(reading.as_count(reading.inner(models, name, "requests").get("count")) for name in models),
    )


COPILOT = Client(
    "copilot", ("copilot",), _call_copilot, _read_copilot,
    keys=(COPILOT_KEY, COPILOT_ACCOUNT),
    endpoints=(COPILOT_ADDRESS, "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_WIRE_API"),
    fresh=(".copilot", ".config/copilot"), leaves=COPILOT_TALLY, install="npm install --global @github/copilot",
)  # fmt: skip  # one value


GEMINI_ADDRESS = "GOOGLE_GEMINI_BASE_URL"
GEMINI_GOOGLE = "https://generativelanguage.googleapis.com"
GEMINI_SETTINGS = ".gemini/settings.json"
GEMINI_TURNS_OVER = 53
"""Its exit code if it used up its turns."""
GEMINI_SHELL, GEMINI_WRITERS, GEMINI_WEB = (
    ("run_shell_command",),
    ("write_file", "replace"),
    ("web_fetch", "google_web_search"),
)


def _call_gemini(session: Session, place: SessionPlace) -> Invocation:
    arguments = ["-o", "json", "--approval-mode", "yolo", "--skip-trust"]
    arguments += ["-m", session.model] if session.model else []
    env = {
        GEMINI_ADDRESS: place.env.get(GEMINI_ADDRESS) or GEMINI_GOOGLE
    }  # set here, so that no file of the repository sets it
    if session.model:
        env["GEMINI_MODEL"] = session.model
    return Invocation(tuple(arguments), session.prompt, env, {GEMINI_SETTINGS: json.dumps(_gemini_settings(session))})


def _gemini_settings(session: Session) -> Mapping[str, Any]:
    denied = (*GEMINI_WEB, *(() if may_write(session.hat) else GEMINI_WRITERS))
    return {
        "advanced": {"ignoreLocalEnv": True},
        "general": {"enableAutoUpdate": False, "maxAttempts": 1},
        "hooksConfig": {"enabled": False},
        "model": {"maxSessionTurns": session.turns},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "tools": {"exclude": [*denied, *(GEMINI_SHELL if RUNS in session.hat.tools_denied else ())]},
    }


def _read_gemini(output: Gave) -> AgentReply:
    document = reading.last_document(output.stdout) or reading.last_document(output.stderr)
    error = reading.inner(document, "error")
    return AgentReply(
        reading.as_text(document.get("response")),
        "it was not done within its turns"
        if output.code == GEMINI_TURNS_OVER
        else reading.as_text(error.get("message")),
        _gemini_usage(reading.inner(document, "stats", "models")),
        reading.by_status(error.get("code")),
        calls=tuple(_gemini_calls(reading.inner(document, "stats", "tools", "byName"))),
        recorded=True,
    )


def _gemini_calls(tools: Mapping[str, Any]) -> Iterator[str]:
    """The tools, as often as they were called: it does not report arguments."""
    for name in tools:
        count = min(reading.as_count(reading.inner(tools, name).get("count")), reading.CALLS)
        yield from (reading.line(name) for _ in range(count))


def _gemini_usage(models: Mapping[str, Any]) -> SessionUsage:
    tokens = [reading.inner(models, name, "tokens") for name in models]
    return SessionUsage(
        0,
        sum(reading.as_count(counts.get("prompt")) for counts in tokens),
        sum(reading.as_count(counts.get(kind)) for counts in tokens for kind in ("candidates", "thoughts")),
        turns=sum(reading.as_count(reading.inner(models, name, "api").get("totalRequests")) for name in models),
    )


GEMINI = Client(
    "gemini", ("gemini",), _call_gemini, _read_gemini,
    keys=("GEMINI_API_KEY",), endpoints=(GEMINI_ADDRESS,), fresh=(".gemini", ".agents", ".env"), obeys=(".gemini",),
    install="npm install --global @google/gemini-cli", streams=False,
)  # fmt: skip  # one value


OPENCODE_ADDRESS, OPENCODE_KEY, OPENCODE_PROVIDER = "OPENAI_BASE_URL", "OPENAI_API_KEY", "ralph"
OPENCODE_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
OPENCODE_UNTRUSTED = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1", "OPENCODE_DISABLE_CLAUDE_CODE": "1"}
OPENCODE_ALONE = {"OPENCODE_DISABLE_MODELS_FETCH": "1"}
"""With your own server, it does not fetch the public list of models."""


def _call_opencode(session: Session, place: SessionPlace) -> Invocation:
    own = bool(place.env.get(OPENCODE_ADDRESS))
    model = f"{OPENCODE_PROVIDER}/{session.model}" if own and session.model else session.model
    arguments = ("run", "--format", "json", "--pure", *(("-m", model) if model else ()))
    settings = {"OPENCODE_CONFIG_CONTENT": json.dumps(_opencode_settings(session, place.env.get(OPENCODE_ADDRESS, "")))}
    env = {
        **OPENCODE_QUIET,
        **settings,
        **(OPENCODE_ALONE if own else {}),
        **({} if place.trusted else OPENCODE_UNTRUSTED),
    }
    return Invocation(arguments, session.prompt, env)


def _opencode_settings(session: Session, address: str) -> Mapping[str, Any]:
    document: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,  # it would create its own git repository
        "experimental": {"continue_loop_on_deny": True},  # else its first refused call ends the session
        "permission": {
            "edit": _opencode_edits(session.hat),
            "bash": "deny" if RUNS in session.hat.tools_denied else "allow",
            "webfetch": "deny",
            "external_directory": "deny",
            "question": "deny",
        },
    }
    if address and session.model:
        limits = {"context": 200_000, "output": 32_000}
        models = {session.model: {"name": session.model, "limit": limits, "tool_call": True}}
        options = {"baseURL": address, "apiKey": f"{{env:{OPENCODE_KEY}}}"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": OPENCODE_PROVIDER, "options": options, "models": models}
        document |= {
            "enabled_providers": [OPENCODE_PROVIDER],
            "provider": {OPENCODE_PROVIDER: provider},
            "model": f"{OPENCODE_PROVIDER}/{session.model}",
            "small_model": f"{OPENCODE_PROVIDER}/{session.model}",
        }
    return document


def _opencode_edits(hat: Hat) -> Mapping[str, str]:
    """Its patterns, of which the last match counts."""
    if not may_write(hat):
        return {"*": "deny"}
    allowed = (
        {"*": "allow"} if hat.write_allowed is None else {"*": "deny", **dict.fromkeys(hat.write_allowed, "allow")}
    )
    return {**allowed, **dict.fromkeys(hat.write_denied, "deny")}


def _read_opencode(output: Gave) -> AgentReply:
    text, error, status, usage = "", "", None, SessionUsage()
    calls: list[str] = []
    for event in reading.documents(output.stdout):
        part = reading.inner(event, "part")
        match event.get("type"):
            case "text":
                text = reading.as_text(part.get("text"))
            case "tool_use":
                calls.append(
                    reading.describe_call(reading.as_text(part.get("tool")), reading.inner(part, "state", "input"))
                )
            case "step_finish":
                usage += _opencode_usage(part)
            case "error":
                data = reading.inner(event, "error", "data")
                error, status = reading.as_text(data.get("message")) or "error", data.get("statusCode")
    cost = usage.cost_usd or None  # it reports 0 for a model of unknown price
    spent = SessionUsage(0, usage.input_tokens, usage.output_tokens, cost, turns=usage.turns)
    return AgentReply(text, error, spent, reading.by_status(status), calls=tuple(calls), recorded=True)


def _opencode_usage(part: Mapping[str, Any]) -> SessionUsage:
    counts, cached = reading.inner(part, "tokens"), reading.inner(part, "tokens", "cache")
    read = reading.as_count(counts.get("input")) + sum(reading.as_count(cached.get(name)) for name in ("read", "write"))
    written = reading.as_count(counts.get("output")) + reading.as_count(counts.get("reasoning"))
    return SessionUsage(0, read, written, reading.as_cost(part.get("cost")), turns=1)


OPENCODE = Client(
    "opencode", ("opencode",), _call_opencode, _read_opencode,
    keys=(OPENCODE_KEY, "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), endpoints=(OPENCODE_ADDRESS,),
    fresh=(".config/opencode", ".data/opencode", ".opencode"), obeys=(".opencode",),
    install="npm install --global opencode-ai",
)  # fmt: skip  # one value


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        claude.CLIENT,
        codex.CLIENT,
        GEMINI,
        COPILOT,
        OPENCODE,
        AMP,
    )
}


ACP_CLIENTS = acp.find_clients(CLIENTS)
"""Those that speak the Agent Client Protocol, by `acp:NAME`."""


def is_client(name: str) -> bool:
    """Whether a program exists for just this name."""
    return name in CLIENTS or name in ACP_CLIENTS


def find_client(name: str, words: Sequence[str] = ()) -> Client:
    """The client of that name, for the program in `words`."""
    if name == acp.NAME or (name in ACP_CLIENTS and words):
        return replace(ACP_CLIENTS.get(name, acp.ANY), program=(*acp.DRIVER, *words))
    found = claude.find_client(words) if name == claude.CLIENT.name else {**CLIENTS, **ACP_CLIENTS}[name]
    return replace(found, program=tuple(words)) if words else found


def find_login(client: Client, environ: Mapping[str, str]) -> Path | None:
    """A person's login, if no key is set that takes precedence."""
    if client.login is None or any(environ.get(name) for name in client.keys):
        return None
    return client.login.find(environ)


PRICED = frozenset(name for name, client in CLIENTS.items() if client.priced)
"""Failures for which a session without a price was cut off, so that its cost is unknown."""
VERSION_SECONDS = 20.0  # seconds for a program to print its version


@dataclass(frozen=True, slots=True)
class Presence:
    """An agent's availability here: its version ("" if not installed), which of its keys is set, the command that
    installs it, and a note on a login that replaces a key, with how to turn that into one (`token`)."""

    name: str
    version: str = ""
    key: str = ""
    needs: tuple[str, ...] = ()
    install: str = ""
    login: str = ""
    token: str = ""


def presence(client: Client, home: Path, environ: Mapping[str, str] = os.environ) -> Presence:
    """Get the program's version, in its own home; uses no model."""
    key, program = next((name for name in client.keys if environ.get(name)), ""), client.program
    if not shutil.which(program[0]):
        return Presence(client.name, "", key, client.keys, client.install)
    finished = run_foreign((*program, *client.version), cwd=home, home=home, timeout=VERSION_SECONDS, output_cap=20_000)
    lines = finished.stdout.decode(errors="replace").split("\n") if not finished.code else []
    found = find_login(client, environ)
    login = f"login in {found}" if found else ""
    version = lines[0].strip()[:80] if lines else ""
    token = client.login.token if client.login else ""
    return Presence(client.name, version, key, client.keys, client.install, login, token)


def describe_missing(agent: str, command: tuple[str, ...] | str = "") -> str:
    """What an agent lacks here, as the end of a sentence, or ""; for a command of one's own, its program alone. What
    those lack that speak a protocol or are of one's own is found out when they start."""
    if agent not in CLIENTS:
        known = agent in ("", "command", "scripted", acp.NAME) or is_client(agent)
        return "" if known else f"is no agent that Ralph knows ({', '.join((*CLIENTS, *ACP_CLIENTS))})"
    if command:
        program = next(iter(shlex.split(command) if isinstance(command, str) else command), "")
        return "" if shutil.which(program) else "is not installed here"
    with tempfile.TemporaryDirectory(prefix="ralph-agent-") as home:
        found = presence(find_client(agent), Path(home))
    return "is not installed here" if not found.version else "has no key here" if not (found.key or found.login) else ""


PATIENCE = 300.0  # seconds of a limit to wait for rather than change the agent
GONE = ("missing", "auth", "server")


@dataclass(frozen=True, slots=True)
class FallbackAgent:
    """`agents`, at least one, the preferred first; each session starts with that one again."""

    agents: tuple[Agent, ...]
    patience: float = PATIENCE

    @property
    def name(self) -> str:
        """The preferred agent's."""
        return self.agents[0].name

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session of the first available agent. The last one's failure is the turn's."""
        usage, passed, turn = SessionUsage(), list[str](), AgentTurn()
        for agent in self.agents:
            turn = agent.play(session if agent is self.agents[0] else replace(session, model=""), stopped).after(turn)
            usage += turn.usage
            if stopped() or agent is self.agents[-1] or not down(turn, self.patience):
                break
            passed.append(f"{agent.name}: {turn.failure}: {turn.detail}")
        detail = "\n".join((*passed, turn.detail)) if turn.failure else turn.detail
        return replace(turn, detail=detail, usage=replace(usage, sessions=1), agent=turn.agent or agent.name)


@dataclass(frozen=True, slots=True)
class HatAgents:
    """`agent`, except for hats that name one of `others`, which runs with the hat's own model or none."""

    agent: Agent
    others: Mapping[str, Agent]

    @property
    def name(self) -> str:
        """The default agent's."""
        return self.agent.name

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session of the agent that the hat names."""
        other = self.others.get(session.hat.agent)
        if other is None:
            return self.agent.play(session, stopped)
        turn = other.play(replace(session, model=session.hat.model), stopped)
        return replace(turn, agent=turn.agent or other.name)


def down(turn: AgentTurn, patience: float) -> bool:
    """Whether another agent has to run. A limit without a time is assumed to end soon."""
    if turn.failure == "rate_limit":
        return turn.retry_after > patience
    return turn.failure in GONE
