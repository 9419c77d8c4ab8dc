"""One reviewer's answer about one change: how it is asked for, and what counts as one.

No loop: a session, and another one that is told what was wrong when the first did not answer as asked. What it wrote
is nobody's; only its answer is read, and only in exactly the shape that was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ralph_mission.loop import session as waiting
from ralph_mission.loop.hats.patterns import REVIEWER
from ralph_mission.loop.model.items import LoopEvent, ReviewIssue
from ralph_mission.loop.model.order import RunLimits
from ralph_mission.loop.model.state import VERDICT, AgentTurn, Session, SessionUsage
from ralph_mission.loop.ports import Agent, LoopClock
from ralph_mission.loop.prompt import session as contract
from ralph_mission.loop.prompt.framing import line, section
from ralph_mission.loop.rules import routing, verdicts
from ralph_mission.loop.rules.verdicts import UnclearVerdict

HAT = replace(REVIEWER, triggers=(), publishes=(), payload=())
ANSWERS = 2
LONGEST, MOST = 200_000, 200
"""Characters of an answer, and issues in it: more is no answer."""
FIELDS: Mapping[str, type] = {
    "file": str, "line": int, "kind": str, "severity": str, "message": str, "suggestion": str,
}  # fmt: skip  # one table
SEVERITIES = ("critical", "major", "minor")
SCHEMA = json.dumps(
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["issues"],
        "properties": {
            "issues": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": list(FIELDS),
                    "properties": {
                        name: {"type": "integer" if kind is int else "string"}
                        | ({"enum": list(SEVERITIES)} if name == "severity" else {})
                        for name, kind in FIELDS.items()
                    },
                },
            }
        },
    }
)
"""The shape of an answer, as a JSON Schema."""
ASKED = section(
    "HOW TO END",
    "Your last message is one JSON document and nothing else:",
    '`{"issues": [{"file": "src/a.py", "line": 12, "kind": "race", "severity": "critical|major|minor", '
    '"message": "what is wrong and when", "suggestion": "what would mend it"}]}`',
    '`{"issues": []}` when you found none. `file` and `line` are of the changed side of the diff; "" and 0 where there '
    "is no such place. There are no other fields: whether it is approved or merged is for a person to say.",
)


@dataclass(frozen=True, slots=True)
class ReviewFinding:
    """An issue, and what its reviewer would do about it."""

    issue: ReviewIssue
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class ReviewerAnswer:
    """What came of asking. `found` None: no answer, and `why`."""

    found: tuple[ReviewFinding, ...] | None
    why: str = ""
    usage: SessionUsage = SessionUsage()  # noqa: RUF009  # frozen
    seconds: float = 0.0


def reviewer_prompt(material: str, why: str = "") -> str:
    """What a session is told; `why` says what was wrong with the answer before."""
    before = f"A reviewer before you did not answer as asked: {line(why, 300)}." if why else ""
    return "\n\n".join(filter(None, (contract.render_hat(HAT), material.strip(), before, ASKED))) + "\n"


def ask_reviewer(agent: Agent, material: str, first: Session, limits: RunLimits, clock: LoopClock) -> ReviewerAnswer:
    """The answer, after at most two sessions. `first` says where, by which model and how long."""
    began, usage, why = clock.now(), SessionUsage(), ""
    end = began + timedelta(seconds=limits.runtime)
    for attempt in range(1, ANSWERS + 1):
        session = replace(
            first, iteration=attempt, prompt=reviewer_prompt(material, why), usd=_money_left(limits, usage)
        )
        turn = _patiently(agent, session, limits, clock, end)
        usage += turn.usage
        found, why = _parse_answer(turn)
        if found is not None or turn.failure:
            break
        if over := _over(limits, usage, end - clock.now()):
            why = f"{why}, {over}"
            break
    return ReviewerAnswer(found, why, usage, (clock.now() - began).total_seconds())


def _parse_answer(turn: AgentTurn) -> tuple[tuple[ReviewFinding, ...] | None, str]:
    if turn.failure:
        return None, f"{turn.failure}: {turn.detail}" if turn.detail else turn.failure
    try:
        return parse_findings(turn.text), ""
    except UnclearVerdict as unclear:
        return None, f"no answer that can be used ({unclear})"


def _patiently(agent: Agent, session: Session, limits: RunLimits, clock: LoopClock, end: datetime) -> AgentTurn:
    """The turn, tried again after what only the provider can mend."""
    usage, attempt = SessionUsage(), 0
    while True:
        turn = agent.play(replace(session, seconds=_seconds(session, clock, end)), _never)
        usage, attempt = usage + turn.usage, attempt + 1
        pause = waiting.wait(limits, turn, attempt)
        if pause is None or clock.now() + timedelta(seconds=pause) > end:
            return replace(turn, usage=usage)
        clock.sleep(pause, _never)


def _seconds(session: Session, clock: LoopClock, end: datetime) -> float:
    return max(1.0, min(session.seconds, (end - clock.now()).total_seconds()))


def _never() -> bool:
    """Nobody says stop but by an interrupt."""
    return False


def _money_left(limits: RunLimits, usage: SessionUsage) -> float | None:
    return None if limits.usd is None else max(0.0, limits.usd - (usage.cost_usd or 0.0))


def _over(limits: RunLimits, usage: SessionUsage, left: timedelta) -> str:
    """Why there is no other session, "" when there may be one."""
    if left <= timedelta(0):
        return "and its time is up"
    if limits.usd is not None and (usage.cost_usd or 0.0) >= limits.usd:
        return f"and it cost ${usage.cost_usd or 0.0:.2f} of ${limits.usd:.2f}"
    return "and what it cost is unknown" if usage.untold and limits.usd is not None and not limits.unpriced else ""


# --- the answer -----------------------------------------------------------------------


def parse_findings(text: str) -> tuple[ReviewFinding, ...]:
    """What an answer says: JSON alone, in a fence, or in a `review.verdict`. Raises Unclear for any other shape."""
    if len(text) > LONGEST:
        raise UnclearVerdict(f"it has {len(text):,} characters")
    said = [event.payload for event in routing.events_in_text(text) if event.topic == VERDICT]
    rows = _rows(verdicts.parse_json(said[-1] if said else text))
    issues = verdicts.parse_issues(LoopEvent(VERDICT, json.dumps({"issues": rows})))
    return tuple(ReviewFinding(issue, row.get("suggestion") or "") for issue, row in zip(issues, rows, strict=True))


def _rows(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, dict) or set(value) != {"issues"} or not isinstance(value["issues"], list):
        raise UnclearVerdict('it is not {"issues": […]} and nothing else')
    if len(value["issues"]) > MOST:
        raise UnclearVerdict(f"it names {len(value['issues'])} issues")
    return [_row(row) for row in value["issues"]]


def _row(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, dict) or not set(row) <= set(FIELDS):
        raise UnclearVerdict(f"an issue has other fields than {', '.join(FIELDS)}")
    given = {name: value for name, value in row.items() if value is not None}
    if odd := [name for name, value in given.items() if type(value) is not FIELDS[name]]:
        raise UnclearVerdict(f"the {odd[0]} of an issue is not a {'number' if FIELDS[odd[0]] is int else 'text'}")
    if not given.get("message", "").strip() or given.get("severity") not in SEVERITIES or given.get("line", 0) < 0:
        raise UnclearVerdict(
            f"an issue has no message, or none of the severities {', '.join(SEVERITIES)}, or an odd line"
        )
    return given
