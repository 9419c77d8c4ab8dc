"""Settings of loops and of the model: ours (`loop:`, `thinker:`, prices), and the keys of ralph-orchestrator.

Its files have the same name as ours and must load unchanged, so keys without a meaning here only warn. Fields are
named and mean as there (`crates/ralph-core/src/config.rs` of version 2.10).
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ralph_mission.config.fields import OLD_LIMIT, Duration, PathPattern, SettingsSection, Slug, at_most

CHARACTERS_PER_TOKEN = 4  # of English text, roughly
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Lenient(BaseModel):
    """Takes what it knows; a key without a value is as good as none."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, value: Any) -> Any:
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""A list, or its single item."""


class HatKeys(Lenient):
    """One hat, as `loop.hats` reads it. The keys from `model` on are ours, as in a hat file."""

    description: str = Field("", description="What it is for.")
    triggers: Names = Field((), description="Topics that trigger it, such as build.*.")
    publishes: Names = Field((), description="Topics it may emit.")
    default_publishes: str = Field("", description="Emitted if a session emits none.")
    instructions: str = Field("", description="Its instructions.")
    disallowed_tools: Names = Field((), description="Tools it may not use.")
    agent: str = Field("", description="Its sessions' agent; empty: the run's.")
    backend: Annotated[Any, OLD_LIMIT] = None
    """As in ralph-orchestrator: the same, where it names an agent whose program is here."""
    model: str = Field("", description="Its sessions' model; empty: the run's.")
    write_allowed: Names | None = Field(None, description="Paths it may write; absent: all, empty: none.")
    write_denied: Names = Field((), description="Paths it may not write.")
    commands_denied: Names = Field((), description="Commands it may not run.")
    max_tokens: Annotated[Whole, Field(ge=0), OLD_LIMIT] = 0
    """Tokens that it is asked to keep within; 0: none is given."""


class EventLoop(Lenient):
    """When a loop starts and ends. Whatever is absent is as in the preset of the run."""

    prompt_file: str = Field("PROMPT.md", description="The file that holds the objective.")
    completion_promise: str = Field("", description="An agent's last line when the task is done.")
    max_iterations: Whole | None = Field(None, ge=1, description="Sessions.")
    max_runtime_seconds: Number | None = Field(None, gt=0, description="Seconds over the whole run.")
    max_cost_usd: Number | None = Field(None, ge=0, description="USD over the whole run.")
    max_consecutive_failures: Annotated[Whole | None, Field(ge=1), OLD_LIMIT] = None
    """Failed sessions in a row, where that is fewer than the preset of the run allows."""
    cooldown_delay_seconds: Number | None = Field(
        None, ge=0, le=86400, description="Seconds between two sessions; 0: none."
    )
    required_events: Names = Field((), description="Topics that must be emitted before the loop is done.")
    starting_event: str = Field("", description="Hats that listen to this topic begin.")
    persistent: bool = Field(False, description="Only limits and people end the loop.")


class Cli(Lenient):
    """Which agent plays the sessions when none is named on the command line."""

    backend: str = Field("", description="The agent's name; custom: `command` with `args`.")
    command: str = Field("", description="The program of a custom agent.")
    args: tuple[str, ...] = Field((), description="Its arguments, before the prompt.")


class Core(Lenient):
    """What every session also gets in its prompt."""

    guardrails: tuple[str, ...] = Field((), description="Rules in the prompt of every hat.")


class MemoryKeys(Lenient):
    """What is remembered between runs."""

    inject: Literal["auto", "manual", "none"] = Field("auto", description="auto: every session; else none.")
    budget: Annotated[Whole, Field(ge=0), OLD_LIMIT] = 0
    """Tokens of them in a prompt, where that is less than usual; 0: as many as are usual."""

    def characters(self, usual: int) -> int:
        """How many characters of memories a prompt may hold."""
        if self.inject != "auto":
            return 0
        return min(usual, self.budget * CHARACTERS_PER_TOKEN or usual)


SECTIONS: dict[str, type[Lenient]] = {
    "event_loop": EventLoop, "cli": Cli, "core": Core, "memories": MemoryKeys,
}  # fmt: skip  # one table
FLAT = {
    "prompt_file": "prompt_file", "completion_promise": "completion_promise", "max_iterations": "max_iterations",
    "max_runtime": "max_runtime_seconds", "max_cost": "max_cost_usd",
}  # fmt: skip  # one table
"""Top-level keys of its first version, and their present place in `event_loop`."""


OLDER = {
    ("hats", "*"): ("name", "subscribes_to", "extra_instructions"),
    ("cli",): ("prompt_mode", "prompt_flag"),
    ("memories",): ("enabled",),
    ("tasks",): ("enabled",),
    ("RObot",): ("enabled", "timeout_seconds"),
}
"""Other accepted spellings: `lift_old_keys` moves each to its present place."""


def is_understood(path: tuple[str | int, ...]) -> bool:
    """Whether a key of this namespace (a path in the file) has a meaning here."""
    *above, name = path
    older = OLDER.get(("hats", "*") if len(path) == 3 else tuple(map(str, above)), ())
    if name in older or path in (("RObot",), ("tasks",)):
        return True
    if path[0] == "hats":
        return len(path) < 3 or path[2] in HatKeys.model_fields
    model = SECTIONS.get(str(path[0]))
    return model is not None and (len(path) < 2 or path[1] in model.model_fields)


Keys = dict[str, Any]
WITH_PROMPT = ("-c", 'exec "$@" "$(cat)"', "sh")
"""Arguments of a shell that runs the following words with its standard input as the last argument."""


def lift_old_keys(value: Keys) -> Keys:
    """`value` with every older spelling in its present place; if both exist, the newer one wins."""
    flat = {FLAT[key]: item for key, item in value.items() if key in FLAT and item is not None}
    rest = {key: item for key, item in value.items() if key not in FLAT}
    section = rest.get("event_loop") or {}
    if flat and isinstance(section, dict):
        rest["event_loop"] = {**flat, **{key: item for key, item in section.items() if item is not None}}
    for name, lift in (("cli", _lift_prompt), ("memories", _lift_switch)):
        if isinstance(rest.get(name), dict):
            rest[name] = lift(rest[name])
    if isinstance(rest.get("hats"), dict):
        rest["hats"] = {
            name: _lift_hat(keys) if isinstance(keys, dict) else keys for name, keys in rest["hats"].items()
        }
    return _lift_robot(_lift_tasks(rest))


def _lift_hat(keys: Keys) -> Keys:
    """Convert older names of triggers, text after the instructions, and a name for people only."""
    lifted = {key: item for key, item in keys.items() if key not in OLDER["hats", "*"]}
    more = _several(keys.get("extra_instructions") or ())
    if keys.get("subscribes_to") and not keys.get("triggers"):
        lifted["triggers"] = keys["subscribes_to"]
    if keys.get("name") and not keys.get("description"):
        lifted["description"] = keys["name"]
    if isinstance(more, list | tuple) and more:
        lifted["instructions"] = "\n\n".join(map(str, (*filter(None, (keys.get("instructions"),)), *more)))
    return lifted


def _lift_prompt(cli: Keys) -> Keys:
    """A custom agent whose prompt is an argument, as is usual there, gets it through the shell."""
    lifted = {key: item for key, item in cli.items() if key not in OLDER[("cli",)]}
    command, args, flag = cli.get("command"), cli.get("args") or [], cli.get("prompt_flag")
    if not command or cli.get("prompt_mode") == "stdin" or not isinstance(args, list):
        return lifted
    return {**lifted, "command": "/bin/sh", "args": [*WITH_PROMPT, command, *args, *([flag] if flag else [])]}


def _is_on(value: object, otherwise: bool) -> bool:
    """Whether a switch is on: by default it is, `off` may be a text, and other values give `otherwise`."""
    try:
        return value is None or TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return otherwise


def _lift_switch(memories: Keys) -> Keys:
    """If memories are switched off, no session gets them."""
    lifted = {key: item for key, item in memories.items() if key != "enabled"}
    return {**lifted, "inject": "none"} if not _is_on(memories.get("enabled"), False) else lifted


def _lift_tasks(value: Keys) -> Keys:
    """If the list of tasks is switched off, it keeps no loop running."""
    tasks = value.get("tasks") or {}
    rest = {key: item for key, item in value.items() if key != "tasks"}
    completion = rest.get("completion") or {}
    if isinstance(tasks, dict) and not _is_on(tasks.get("enabled"), True) and isinstance(completion, dict):
        rest["completion"] = {"open_tasks": "trust", **completion}
    return rest


def _lift_robot(value: Keys) -> Keys:
    """A person in a chat: how long a question waits; switched off, nobody is listed."""
    robot = value.get("RObot") or {}
    rest = {key: item for key, item in value.items() if key != "RObot"}
    telegram = rest.get("telegram") or {}
    if not (isinstance(robot, dict) and isinstance(telegram, dict)):
        return rest
    if not _is_on(robot.get("enabled"), False):
        telegram = {**telegram, "chats": [], "users": []}
    if robot.get("timeout_seconds") is not None:
        telegram = {"timeout_seconds": robot["timeout_seconds"], **telegram}
    return {**rest, "telegram": telegram} if telegram else rest


Count = Annotated[int, Field(strict=True, ge=0)]
Dollars = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
SandboxLevel = Literal["env", "bwrap"]
Line = Annotated[str, StringConstraints(max_length=2000)]
CheckCommand = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""An empty one would always be green."""


FixerName = Literal["typos", "ruff", "project"]
FIXERS: tuple[FixerName, ...] = ("typos", "ruff", "project")
RENAMED = {"codespell": "typos"}
"""Earlier names of fixers."""


def _rename_old(names: object) -> object:
    if not isinstance(names, list | tuple):
        return names
    renamed = [RENAMED.get(name, name) if isinstance(name, str) else name for name in names]
    return tuple(name for place, name in enumerate(renamed) if name not in renamed[:place])  # commands have no hash


class FixerCommand(SettingsSection):
    """A command of the owner's that puts files right."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")] = Field(description="In reports.")
    run: Line = Field(description="The command; if `observers.commands` has its name, after that failed.")


class FixerSettings(SettingsSection):
    """The `hands` section of ralph.yml."""

    fixers: Annotated[tuple[FixerName | FixerCommand, ...], BeforeValidator(_rename_old)] = Field(
        FIXERS, description="What may change files without an agent."
    )
    setup: Literal["auto"] | tuple[str, ...] = Field(
        "auto",
        description="Commands that install what checks and agents need, run once with the network and no credential; "
        "auto: as the lock files say; []: none.",
    )
    verify: tuple[CheckCommand, ...] = Field((), description="Commands that must pass before a change is proposed.")
    verify_timeout: Annotated[float, Field(gt=0), at_most(1_800), OLD_LIMIT] = 1_800
    """Seconds that each of them may take: suites that take longer are for a check of the forge."""


class Completion(SettingsSection):
    """When a loop counts as complete."""

    open_tasks: Literal["reject", "trust"] = Field(
        "reject", description="reject: not while tasks are pending, ready or active; trust: the agent knows."
    )


class Price(SettingsSection):
    """What a model costs, in USD per million tokens."""

    input: Dollars = Field(description="Tokens it reads.")
    output: Dollars = Field(description="Tokens it writes.")


def _read_price(value: object) -> object:
    """The two parts of `3/15`; anything else, such as older files' mappings, unchanged."""
    if not isinstance(value, str):
        return value
    read, slash, written = value.partition("/")
    if not slash or not all(re.fullmatch(r"\d+(\.\d+)?", part.strip()) for part in (read, written)):
        raise ValueError("write USD per million tokens read/written, such as 3/15")
    return {"input": float(read), "output": float(written)}


PriceText = Annotated[
    Price, BeforeValidator(_read_price), WithJsonSchema({"type": "string", "examples": ["3/15", "0.25/1.25"]})
]
"""`3/15`: what a million tokens cost that a model reads, and that it writes."""


class Cost(SettingsSection):
    """What models cost, for agents that only tell their tokens and for `ralph agent cost`."""

    prices: dict[str, PriceText] = Field({}, description="By model: USD per million tokens in/out.")


class LoopSettings(SettingsSection):
    """How `ralph run` works in this repository."""

    stuck: Annotated[int, Field(strict=True, ge=1), at_most(3), OLD_LIMIT] = 3
    """Sessions on one story or task until it is warned."""
    browser_check: Line = Field("", description="A command that visible stories must pass as well.")
    thresholds: dict[str, Count | Literal["learn"]] | Literal["learn"] = Field(
        {}, description="Non-critical issues that a verdict may leave, by pattern; learn: from people's verdicts."
    )
    hats: PathPattern | None = Field(None, description="Hat files, such as hats/*.toml.")


class WorkSettings(SettingsSection):
    """How `ralph work` goes about issues that are labelled `ralph-ready`."""

    usd_per_issue: Dollars = Field(5.0, description="USD for one attempt; if set, sessions of unknown cost end too.")
    max_iterations: int = Field(50, strict=True, ge=1, le=10_000, description="Sessions of one attempt.")
    max_runtime: Annotated[Duration, at_most(timedelta(hours=4)), OLD_LIMIT] = timedelta(hours=4)
    """Time limit of one attempt."""


def _known_level(value: object) -> object:
    if value == "uid":
        raise ValueError("the level uid was removed: write sandbox: bwrap, or env")
    return value


AgentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}(:[a-z][a-z0-9-]{0,39})?$")]


class AgentChoice(SettingsSection):
    """Which coding agent carries out larger changes, and plays the sessions of a loop."""

    kind: AgentName = Field("command", description="The agent; command, or acp: the program in `run`.")
    run: Line = Field("", description="Its command line; `command` reads the prompt from standard input.")
    fallback: tuple[AgentName, ...] = Field(
        (), description="Agents that take over, in order, if it is missing or down."
    )
    sandbox: Annotated[SandboxLevel, BeforeValidator(_known_level)] | None = Field(
        None,
        description="Isolation: bwrap or env. Default: bwrap if available, else env; on GitHub env only if set here.",
    )
    wrap: Line = Field("", description="A command put in front of the agent's program and its checks, such as srt.")
    model: Line = Field("", description="Its model if a hat names none; empty: its usual one.")
    plan: Literal["none", "ralplan"] = Field(
        "none", description="ralplan: hats plan, criticise and approve a mission first."
    )
    trust: bool = Field(
        False, description="Whether it obeys the repository's settings for agents (hooks, servers, rules)."
    )


class CoderSettings(FixerSettings):
    """What changes files, and how changes are checked."""

    agent: AgentChoice | None = Field(None, description="The coding agent.")
    auto: tuple[Literal["proven-bug"], ...] = Field(
        (), description="Kinds that ask a person, but whose fix under the limits is a pull request at once."
    )


Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def _model(name: str) -> str:
    if not re.fullmatch(r"(anthropic|openai|openai-chat):[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}", name):
        raise ValueError("write anthropic:NAME, openai:NAME or openai-chat:NAME")
    return name


class ThinkerSettings(SettingsSection):
    """Who ranks what was found. With `kind: llm`, rules go on answering whenever the model cannot."""

    kind: Literal["rules", "llm"] = Field("rules", description="What ranks findings; `rules` needs no model.")
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="Multiplies the impact of a finding kind: {spelling: 0.5, bug: 2}."
    )
    watch_only: tuple[Slug, ...] = Field((), description="Kinds that are only counted in reports.")
    model: Annotated[str, AfterValidator(_model)] = Field(
        "", description="anthropic:NAME, openai:NAME, or openai-chat:NAME for compatible servers."
    )
    max_findings: Annotated[int, Field(strict=True, ge=1), at_most(20), OLD_LIMIT] = 20
    """Number of findings that the model ranks."""
    max_memory_chars: Annotated[int, Field(strict=True, ge=0), at_most(4_000), OLD_LIMIT] = 4_000
    """Characters of memory it reads."""
    max_tokens: Annotated[int, Field(strict=True, ge=500), at_most(4_000), OLD_LIMIT] = 4_000
    """Tokens of one answer, what it thinks to itself included."""
    seconds: Annotated[int, Field(strict=True, ge=1), at_most(90), OLD_LIMIT] = 90
    """How long it may take in a cycle, in all."""
    tries: Annotated[int, Field(strict=True, ge=1), at_most(2), OLD_LIMIT] = 2
    """Requests in a cycle: the second asks again after a bad answer."""
    usd: float = Field(1.0, strict=True, ge=0, le=2, allow_inf_nan=False, description="USD per cycle.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.kind == "llm" and not self.model:
            raise ValueError("thinker of kind llm needs a model: name one, such as model: anthropic:claude-sonnet-4-5")
        return self
