"""An agent that follows a script: for a hat's n-th call, what to write, run and say. Deterministic.

It works like the command agent: each session is a fresh process (a shell that executes one step), with the same
environment, limits and parsing of its output. A script is TOML or JSON:

    [[hats.builder]]                      # the first call; the last step stays for every call after it
    write = {"src/a.py" = "print(1)\\n"}   # also append, and delete = ["old.py"]
    run = ["git add -A", "git commit -qm step"]
    event = {topic = "build.complete", payload = "done"}
    text = "what it says before the event"
    delay = 0.5                           # seconds, before anything is done
    failure = "rate_limit"                # or server, timeout, exit: what a provider or a crash looks like
    exit = 0
    usage = {input_tokens = 10, output_tokens = 2, cost_usd = 0.01}

`hats."*"` is for every hat without steps of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ralph_mission.adapters import files
from ralph_mission.adapters.agents.client import CommandAgent
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import AgentTurn, Session
from ralph_mission.values import dataclass

ANY = "*"
FOREVER = 1_000_000  # seconds: longer than any time limit
LONGEST = 1_000_000  # bytes
FAILURES = {
    "rate_limit": ("API Error: 429 rate_limit_error. Retry-After: 1", 1),
    "server": ("API Error: 529 overloaded_error", 1),
    "timeout": ("", 0),
    "exit": ("it crashed", 1),
}


class ScriptPart(BaseModel):
    """Rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Saying(ScriptPart):
    """The event at the end of a session."""

    topic: str = Field(min_length=1)
    payload: str = ""


class ScriptedUsage(ScriptPart):
    """A session's claimed usage."""

    input_tokens: int = Field(0, ge=0)
    output_tokens: int = Field(0, ge=0)
    cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)


class ScriptStep(ScriptPart):
    """A session's actions, in this order: wait, write, append, delete, run, say, end."""

    write: dict[str, str] = {}
    append: dict[str, str] = {}
    delete: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    event: Saying | None = None
    text: str = ""
    delay: float = Field(0.0, ge=0, allow_inf_nan=False)
    failure: Literal["", "rate_limit", "server", "timeout", "exit"] = ""
    exit: int = Field(0, ge=0, le=255)
    usage: ScriptedUsage | None = None

    @field_validator("event", mode="before")
    @classmethod
    def _by_topic(cls, value: object) -> object:
        return {"topic": value} if isinstance(value, str) else value


class CallCount(ScriptPart):
    """The calls of each hat up to that session number."""

    iteration: int = 0
    calls: dict[str, int] = {}


class Play(ScriptPart):
    """A whole script."""

    hats: dict[str, Annotated[tuple[ScriptStep, ...], Field(min_length=1)]] = Field(min_length=1)


Script = Mapping[str, tuple[ScriptStep, ...]]
"""A hat's name, or "*", and its steps in the order of its calls."""


@dataclass(frozen=True, slots=True)
class ScriptedAgent:
    """Runs `script` through `agent`, whose command does not matter.

    The file `counts` has the call numbers: it belongs to the run, and outlives the home.
    """

    script: Script
    agent: CommandAgent
    counts: Path
    name: str = "scripted"

    def apart(self, agent: CommandAgent, task: str) -> ScriptedAgent:
        """The same through another agent, with its own task: its calls are counted separately."""
        return replace(self, agent=agent, counts=self.counts.with_suffix("") / f"{task}.json")

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session: the due step, as a process. A hat without steps is a failed turn."""
        steps = self.script.get(session.hat.name) or self.script.get(ANY) or ()
        if not steps:
            return AgentTurn(failure="exit", detail=f"the script has no step for {session.hat.name}")
        call = _count_call(self.counts, session)
        self.agent.home.mkdir(parents=True, exist_ok=True)
        place = self.agent.home / "step.sh"
        files.replace_text(place, shell(steps[min(call, len(steps)) - 1]))
        player = replace(self.agent, command=("/bin/sh", str(place.resolve())), name=self.name)
        return player.play(session, stopped)


def load(place: Path) -> Script:
    """The script in a file (.json, else TOML). Raises UserError that names the file and the key."""
    try:
        text = place.read_text("utf-8")
        value = json.loads(text) if place.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{place} cannot be read as a script: {error}", "see docs/agents.md", usage=True) from None
    return script(value, str(place))


def script(value: object, where: str = "the script") -> Script:
    """A script from parsed TOML or JSON: `{"hats": {name: [step, …]}}`. Raises UserError for anything else."""
    try:
        return Play.model_validate(value).hats
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "hats"
        raise UserError(f"{where}: {key}: {first['msg']}", _hint(str(first["loc"][-1:])), usage=True) from None


def shell(step: ScriptStep) -> str:
    """The step as a shell script. A command that fails ends it with that command's code."""
    message, code = FAILURES.get(step.failure, ("", step.exit))
    lines = [
        "set -e",
        "cat >/dev/null",  # the prompt
        f"sleep {step.delay:g}" if step.delay else "",
        *(_write_command(path, text, ">") for path, text in step.write.items()),
        *(_write_command(path, text, ">>") for path, text in step.append.items()),
        *(f"rm -rf -- {shlex.quote(path)}" for path in step.delete),
        *(f"( {command}\n) >&2" for command in step.run),
        f"sleep {FOREVER}" if step.failure == "timeout" else "",
        f"printf %s {shlex.quote(_reply_text(step))}" if not step.failure else "",
        f"printf '%s\\n' {shlex.quote(message)} >&2" if message else "",
        f"exit {code}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _write_command(path: str, text: str, how: str) -> str:
    prefix = f"mkdir -p -- {shlex.quote(os.path.dirname(path))}\n" if os.path.dirname(path) else ""
    return f"{prefix}printf %s {shlex.quote(text)} {how} {shlex.quote(path)}"


def _reply_text(step: ScriptStep) -> str:
    """The text, then the event, then its usage in the form of `claude -p --output-format json`."""
    parts = [step.text, f'<event topic="{step.event.topic}">{step.event.payload}</event>' if step.event else ""]
    words = "\n".join(filter(None, parts))
    if not step.usage:
        return words
    document = {"type": "result", "subtype": "success", "is_error": False, "result": words}
    tokens = step.usage.model_dump(exclude={"cost_usd"})
    return json.dumps({**document, "usage": tokens, "total_cost_usd": step.usage.cost_usd})


def _count_call(place: Path, session: Session) -> int:
    """The number of this call, recorded before it runs: a resumed run continues counting.

    A session with a smaller number than the previous belongs to a new run, which counts from the start.
    """
    count = _read_count(place)
    calls = dict(count.calls) if session.iteration >= count.iteration else {}
    calls[session.hat.name] = calls.get(session.hat.name, 0) + 1
    top = files.top_of(place)
    files.unlink(top, (str(place.parent.relative_to(top)),))
    place.parent.mkdir(parents=True, exist_ok=True)
    files.replace_text(place, CallCount(iteration=session.iteration, calls=calls).model_dump_json())
    return calls[session.hat.name]


def _read_count(place: Path) -> CallCount:
    """The counts; none if a session overwrote the file."""
    try:
        return CallCount.model_validate_json(files.content(place, LONGEST) or b"{}")
    except ValidationError:
        return CallCount()


def _hint(key: str) -> str:
    near = get_close_matches(
        key.strip("(',)"), (*ScriptStep.model_fields, *Saying.model_fields, *ScriptedUsage.model_fields), 1
    )
    return f"did you mean {near[0]}? See docs/agents.md" if near else "see docs/agents.md"
