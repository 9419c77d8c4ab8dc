"""Our own keys of a loop: what counts as complete, what it may leave, which agent, what models cost.

`thinker:` in ralph.yml.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from ralph_mission.config.fields import OLD_LIMIT, Duration, ObserverSection, PathPattern, at_most

Count = Annotated[int, Field(strict=True, ge=0)]
Dollars = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
SandboxLevel = Literal["env", "bwrap"]
Line = Annotated[str, StringConstraints(max_length=2000)]


FixerName = Literal["typos", "ruff"]
FIXERS: tuple[FixerName, ...] = ("typos", "ruff")
RENAMED = {"codespell": "typos"}
"""Names of fixers in settings that were written earlier."""


def _rename_old(names: object) -> object:
    if not isinstance(names, list | tuple):
        return names
    return tuple(dict.fromkeys(RENAMED.get(name, name) if isinstance(name, str) else name for name in names))


class FixerSettings(ObserverSection):
    """The `hands` section of ralph.yml."""

    fixers: Annotated[tuple[FixerName, ...], BeforeValidator(_rename_old)] = Field(
        FIXERS, description="What may change files on its own."
    )
    verify: tuple[str, ...] = Field((), description="Commands that must pass before a change is proposed.")
    verify_timeout: Annotated[float, Field(gt=0), at_most(1_800), OLD_LIMIT] = 1_800
    """Seconds that each of them may take: suites that take longer are for a check of the forge."""


class Completion(ObserverSection):
    """When a loop counts as complete."""

    open_tasks: Literal["reject", "trust"] = Field(
        "reject", description="reject: not while tasks are pending, ready or active; trust: the agent knows."
    )


class Price(ObserverSection):
    """What a model costs, in USD per million tokens."""

    input: Dollars = Field(description="Tokens it reads.")
    output: Dollars = Field(description="Tokens it writes.")


def _read_price(value: object) -> object:
    """`3/15` as its two parts; anything else, such as older files' mappings, as it is."""
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


class Cost(ObserverSection):
    """What models cost, for agents that only tell their tokens and for `ralph cost`."""

    prices: dict[str, PriceText] = Field({}, description="By the model's name: what it reads/what it writes.")


class LoopSettings(ObserverSection):
    """How `ralph run` works in this repository."""

    stuck: Annotated[int, Field(strict=True, ge=1), at_most(3), OLD_LIMIT] = 3
    """Sessions on one story or task until it is warned."""
    browser_check: Line = Field("", description="A command that stories of the user interface must pass as well.")
    thresholds: dict[str, Count | Literal["learn"]] | Literal["learn"] = Field(
        {}, description="Issues short of critical that a verdict may leave, by pattern; learn: from people's verdicts."
    )
    hats: PathPattern | None = Field(None, description="Hat files, such as hats/*.toml.")


class WorkSettings(ObserverSection):
    """How `ralph work` goes about issues that are labelled `ralph-ready`."""

    usd_per_issue: Dollars = Field(
        5.0, description="Spent on one issue in one try, in USD; written down, it also ends sessions of unknown cost."
    )
    max_iterations: int = Field(50, strict=True, ge=1, le=10_000, description="Sessions of one try.")
    max_runtime: Annotated[Duration, at_most(timedelta(hours=4)), OLD_LIMIT] = timedelta(hours=4)
    """How long one try may take."""


def _known_level(value: object) -> object:
    if value == "uid":
        raise ValueError("the level uid is gone: write sandbox: bwrap, or env")
    return value


class AgentChoice(ObserverSection):
    """Which coding agent carries out larger changes, and plays the sessions of a loop."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")] = Field(
        "command", description="The agent; command: the program in `run`."
    )
    run: Line = Field("", description="The command line of kind command; it reads the prompt from standard input.")
    fallback: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")], ...] = Field(
        (), description="Agents that take over, in this order, when the first one is missing or down."
    )
    sandbox: Annotated[SandboxLevel, BeforeValidator(_known_level)] | None = Field(
        None, description="How far it is kept apart: bwrap, or env. Else bwrap, and where it cannot be had env; on "
        "GitHub env only where it is written here.",
    )  # fmt: skip  # one text
    wrap: Line = Field(
        "", description="A command of yours, put in front of the agent's program and of its checks, such as srt."
    )
    model: Line = Field("", description="The model of its sessions where a hat names none; empty: its usual one.")
    plan: Literal["none", "ralplan"] = Field(
        "none", description="ralplan: a mission is planned, criticised and approved by hats before it is built."
    )
    trust: bool = Field(
        False, description="Whether it may obey the repository's own settings for agents (hooks, servers, rules)."
    )


class CoderSettings(FixerSettings):
    """Who changes files, and how a change is checked."""

    agent: AgentChoice | None = Field(None, description="The coding agent.")


Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def _model(name: str) -> str:
    if not re.fullmatch(r"(anthropic|openai|openai-chat):[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}", name):
        raise ValueError("write anthropic:NAME, openai:NAME or openai-chat:NAME")
    return name


class ThinkerSettings(BaseModel):
    """Who ranks what was found. With `kind: llm`, rules go on answering whenever the model cannot."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    kind: Literal["rules", "llm"] = Field("rules", description="Who ranks findings; `rules` needs no model.")
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="Multiplies the impact of a finding kind: {spelling: 0.5, bug: 2}."
    )
    model: Annotated[str, AfterValidator(_model)] = Field(
        "", description="anthropic:NAME, openai:NAME, or openai-chat:NAME for servers that speak as OpenAI does."
    )
    max_findings: Annotated[int, Field(strict=True, ge=1), at_most(20), OLD_LIMIT] = 20
    """Findings that the model is asked about."""
    max_memory_chars: Annotated[int, Field(strict=True, ge=0), at_most(4_000), OLD_LIMIT] = 4_000
    """Characters of memory it reads."""
    max_tokens: Annotated[int, Field(strict=True, ge=500), at_most(4_000), OLD_LIMIT] = 4_000
    """Tokens of one answer, what it thinks to itself included."""
    seconds: Annotated[int, Field(strict=True, ge=1), at_most(90), OLD_LIMIT] = 90
    """How long it may take in a cycle, in all."""
    tries: Annotated[int, Field(strict=True, ge=1), at_most(2), OLD_LIMIT] = 2
    """Requests in a cycle: the second asks again after a bad answer."""
    usd: float = Field(
        1.0, strict=True, ge=0, le=2, allow_inf_nan=False, description="Spent on it in one cycle at most, in USD."
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.kind == "llm" and not self.model:
            raise ValueError("thinker of kind llm needs a model: name one, such as model: anthropic:claude-sonnet-4-5")
        return self
