"""A model that answers what a test wrote down, and briefs to ask it about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ralph_mission.adapters.thinkers import RulesThinker
from ralph_mission.adapters.thinkers.llm import Bill, LlmThinker, ModelAnswer, ModelQuestion, Reply
from ralph_mission.config.loop import ThinkerSettings
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.model.mission import Acceptance, Finding, Limits, Severity
from ralph_mission.mission.model.proposal import Brief, Plan
from ralph_mission.mission.ports import THINKER
from tests.mission.build import NOW, finding

NONCE = "0011223344556677"


@dataclass
class Scripted:
    """`asking.Ask` that gives `replies` in order and keeps what it was asked."""

    replies: list[Reply]
    asked: list[ModelQuestion] = field(default_factory=list)

    def __call__(self, question: ModelQuestion) -> Reply:
        self.asked.append(question)
        return self.replies.pop(0)


def thing(name: str, **changes: Any) -> Finding:
    """A bug of its own."""
    return finding(
        **{"kind": "bug", "essence": (name,), "title": name, "path": "", "detail": f"{name} fails"} | changes
    )


WORST = thing("worst", severity=Severity.HIGH)
SECOND = thing("second", severity=Severity.MEDIUM)
LEAST = thing("least")


def brief(*findings: Finding, cursor: str = "", spent: float = 0.0, **changes: Any) -> Brief:
    """What a thinker may know, with what memory gives back."""
    header = Header(cursors=((THINKER, cursor),) if cursor else (), today=NOW.date().isoformat(), spend_usd=spent)
    made = Brief(findings, (), {"bug": Acceptance(2, 1)}, Limits(), Memory(header), NOW)
    return replace(made, **changes)


def ranked(one: Finding, **changes: Any) -> dict[str, Any]:
    """One line of an answer, as a model writes it."""
    return {"fingerprint": one.fingerprint, "kind": one.kind, "why": "because", **changes}


def answer(*ranking: dict[str, Any]) -> ModelAnswer:
    """A whole answer."""
    return ModelAnswer.model_validate({"ranking": ranking})


def reply(*ranking: dict[str, Any]) -> Reply:
    """A good reply, which took a little."""
    return Reply(answer(*ranking), requests=1, input_tokens=1000, output_tokens=100)


def thinker(*replies: Reply, price: float | None = 1.0, **settings: Any) -> tuple[LlmThinker, Scripted]:
    """A thinker and its model; `price` in USD per million tokens."""
    chosen = ThinkerSettings(kind="llm", model="anthropic:scripted", **settings)
    ask, bill = Scripted(list(replies)), Bill(lambda read, written: price and price * (read + written) / 1e6)
    return LlmThinker(chosen, RulesThinker(), ask, bill, lambda: NONCE), ask


def order(plan: Plan) -> list[str]:
    """The fingerprints, in the plan's order."""
    return [member for one in plan.ranked_findings for member in one.members]
