"""The second namespace of `ralph.yml`: the keys of ralph-orchestrator that a loop here understands.

Its files have the same name as ours and must load unchanged, so keys without a meaning here only warn. Fields are
named and mean as there (`crates/ralph-core/src/config.rs` of version 2.10).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
CHARACTERS_PER_TOKEN = 4  # of English text, roughly; budgets there count tokens, ours characters


class Lenient(BaseModel):
    """Takes what it knows; a key without a value is as good as none."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, value: Any) -> Any:
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


def _path_of(value: object) -> object:
    return value.get("path", "") if isinstance(value, dict) else value


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""A list, or the one thing that would be in it."""


class HatKeys(Lenient):
    """One hat, as `loop.hats` reads it. The keys from `model` on are ours, as in a hat file."""

    name: str = Field("", description="What people call it; routing uses the key it stands under.")
    description: str = Field("", description="What it is for.")
    triggers: Names = Field((), description="Topics that call it; build.* is every topic of build.")
    subscribes_to: Names = Field((), description="An older name of triggers.")
    publishes: Names = Field((), description="Topics it may end with.")
    default_publishes: str = Field("", description="Said for a session that said nothing.")
    instructions: str = Field("", description="What it is told.")
    extra_instructions: Names = Field((), description="Told after the instructions.")
    disallowed_tools: Names = Field((), description="Tools that its sessions may not use.")
    model: str = Field("", description="The model of its sessions; empty: that of the run.")
    write_allowed: Names | None = Field(None, description="Paths it may write; absent: all, empty: none.")
    write_denied: Names = Field((), description="Paths it may not write.")
    commands_denied: Names = Field((), description="Commands its sessions may not run.")
    context: Names = Field((), description="Files to read first.")
    payload: Names = Field((), description="What its event has to say.")
    max_tokens: Whole = Field(0, ge=0, description="Tokens it should keep within; 0: not said.")


class EventLoop(Lenient):
    """When a loop starts and ends. Whatever is absent is as in the preset of the run."""

    prompt: str = Field("", description="The objective itself.")
    prompt_file: str = Field("PROMPT.md", description="The file that holds the objective.")
    completion_promise: str = Field("", description="What an agent says on its last line when all is done.")
    max_iterations: Whole | None = Field(None, ge=1, description="Sessions.")
    max_runtime_seconds: Number | None = Field(None, gt=0, description="Seconds over the whole run.")
    max_cost_usd: Number | None = Field(None, ge=0, description="USD over the whole run.")
    max_consecutive_failures: Whole | None = Field(None, ge=1, description="Failed sessions in a row.")
    cooldown_delay_seconds: Number = Field(0, ge=0, le=86400, description="Seconds between two sessions.")
    starting_event: str = Field("", description="Whoever listens to this topic begins.")
    starting_hat: str = Field("", description="Who begins.")
    persistent: bool = Field(False, description="Completion becomes task.resume; only limits and people end the loop.")


class Cli(Lenient):
    """Which agent plays the sessions when none is named on the command line."""

    backend: str = Field("", description="The agent's name; custom: `command` with `args`.")
    command: str = Field("", description="The program of a custom agent.")
    args: tuple[str, ...] = Field((), description="Its arguments.")
    prompt_mode: Literal["arg", "stdin"] = Field("arg", description="How a custom agent gets its prompt.")
    prompt_flag: str = Field("", description="What stands before the prompt when it is an argument.")


class Core(Lenient):
    """What every session is told besides."""

    scratchpad: Annotated[str, BeforeValidator(_path_of)] = Field(
        "",
        description="Where agents keep notes within a run; empty: .ralph/agent/scratchpad.md.",
        json_schema_extra={"type": ["string", "object"]},
    )
    guardrails: tuple[str, ...] = Field((), description="Rules that every hat is told.")


class MemoryKeys(Lenient):
    """What is remembered between runs."""

    enabled: bool = Field(True, description="Whether sessions are given memories.")
    inject: Literal["auto", "manual", "none"] = Field("auto", description="auto: every session; else none.")
    budget: Whole = Field(0, ge=0, description="Tokens of them in a prompt; 0: as many as are usual here.")

    def characters(self, usual: int) -> int:
        """How many characters of memories a prompt may hold."""
        if not self.enabled or self.inject != "auto":
            return 0
        return self.budget * CHARACTERS_PER_TOKEN or usual


class TaskKeys(Lenient):
    """The task list that agents keep."""

    enabled: bool = Field(True, description="Whether open tasks are shown to sessions and keep a loop running.")


class RObot(Lenient):
    """A person in a chat; who that is stands in `telegram`, where it is ours."""

    enabled: bool = Field(True, description="false: no orders are taken, whoever is listed.")
    timeout_seconds: Whole = Field(600, ge=1, description="Seconds that an agent's question waits for a person.")
    checkin_interval_seconds: Whole = Field(300, ge=1, description="Seconds between two words on how a loop is doing.")


SECTIONS: dict[str, type[Lenient]] = {
    "event_loop": EventLoop, "cli": Cli, "core": Core, "memories": MemoryKeys, "tasks": TaskKeys, "RObot": RObot,
}  # fmt: skip  # one table
FLAT = {
    "prompt_file": "prompt_file", "completion_promise": "completion_promise", "max_iterations": "max_iterations",
    "max_runtime": "max_runtime_seconds", "max_cost": "max_cost_usd",
}  # fmt: skip  # one table
"""Keys of its first version, which stood at the top, and where they stand now in `event_loop`."""


def is_understood(path: tuple[str | int, ...]) -> bool:
    """Whether a key of this namespace (a path in the file) has a meaning here."""
    if path[0] == "hats":
        return len(path) < 3 or path[2] in HatKeys.model_fields
    model = SECTIONS.get(str(path[0]))
    return model is not None and (len(path) < 2 or path[1] in model.model_fields)


def lift_old_keys(value: dict[str, Any]) -> dict[str, Any]:
    """`value` with the keys of the first version where the second has them; the newer place wins."""
    flat = {FLAT[key]: item for key, item in value.items() if key in FLAT and item is not None}
    rest = {key: item for key, item in value.items() if key not in FLAT}
    section = rest.get("event_loop") or {}
    return {**rest, "event_loop": {**flat, **section}} if flat and isinstance(section, dict) else rest
