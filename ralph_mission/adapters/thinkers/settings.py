"""`thinker:` in ralph.yml."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def _model(name: str) -> str:
    if not re.fullmatch(r"(anthropic|openai|openai-chat):[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}", name):
        raise ValueError("write anthropic:NAME, openai:NAME or openai-chat:NAME")
    return name


class ThinkerSettings(BaseModel):
    """Who ranks what was found. With `kind: llm`, rules go on answering whenever the model cannot."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["rules", "llm"] = Field("rules", description="Who ranks findings; `rules` needs no model.")
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="Multiplies the impact of a finding kind: {spelling: 0.5, bug: 2}."
    )
    model: Annotated[str, AfterValidator(_model)] = Field(
        "", description="anthropic:NAME, openai:NAME, or openai-chat:NAME for servers that speak as OpenAI does."
    )
    max_findings: int = Field(20, strict=True, ge=1, le=50, description="Findings that the model is asked about.")
    max_memory_chars: int = Field(4_000, strict=True, ge=0, le=40_000, description="Characters of memory it reads.")
    max_tokens: int = Field(
        4_000, strict=True, ge=500, le=32_000, description="Tokens of one answer, what it thinks to itself included."
    )
    seconds: int = Field(90, strict=True, ge=1, le=600, description="How long it may take in a cycle, in all.")
    tries: int = Field(2, strict=True, ge=1, le=2, description="Requests in a cycle: 2 asks again after a bad answer.")
    usd: float = Field(
        1.0, strict=True, ge=0, le=2, allow_inf_nan=False, description="Spent on it in one cycle at most, in USD."
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.kind == "llm" and not self.model:
            raise ValueError("thinker of kind llm needs a model: name one, such as model: anthropic:claude-sonnet-4-5")
        return self
