"""What a session is told: sections of ours around everything that files say. Nothing is remembered from before.

The objective is whole and always the same; everything else is bounded, so that the thousandth session reads as
much as the third. Text of others stands as a quotation (`framing`). DONE is there only when nobody wears a hat:
a hat says its one event and stops, and whoever wears none decides when to end (seed 000).
"""

from __future__ import annotations

import re

from ralph_mission.loop import contract, limits, situation
from ralph_mission.loop.framing import quote_text, section, whole_text
from ralph_mission.loop.model import Hat, RunSnapshot, RunState, Session
from ralph_mission.loop.order import RunSpec
from ralph_mission.loop.routing import COORDINATOR, PROMISE
from ralph_mission.safety.text import sanitise

SUMMARY = 500
"""Characters of a session's last words that are kept."""
OBJECTIVE = "Everything you do serves this. It was set once and nobody may change it:"


def session_prompt(order: RunSpec, state: RunState, board: RunSnapshot, hat: Hat | None, run_dir: str) -> Session:
    """The next session of a run, for `hat` or for nobody in particular."""
    worn = order.bound(hat or COORDINATOR)
    return Session(
        worn,
        state.iteration + 1,
        _text(order, state, board, worn if hat else None, run_dir.rpartition("/")[0] or "."),
        run_dir,
        worn.model or order.model,
        limits.seconds(order.limits, state),
        order.limits.turns,
        _money_left(order, state),
    )


def _money_left(order: RunSpec, state: RunState) -> float | None:
    """Money that is left of the run's, None without a limit."""
    return None if order.limits.usd is None else max(0.0, order.limits.usd - (state.usage.cost_usd or 0.0))


def summary(text: str) -> str:
    """An agent's last words in one line of at most 500 characters, without its event's and promise's marks."""
    words = re.sub(r"<promise>.*?</promise>|</?(?:promise|event)\b[^>]{0,200}>", " ", _without_promise(text[-8_000:]))
    words = " ".join(sanitise(words, "log").split())
    return words if len(words) <= SUMMARY else f"…{words[-SUMMARY + 1 :]}"


def _without_promise(text: str) -> str:
    """`text` without a promise that stands alone at its end."""
    rest, _, last = text.rstrip().rpartition("\n")
    return rest if PROMISE.fullmatch(last.strip()) else text


def _text(order: RunSpec, state: RunState, board: RunSnapshot, hat: Hat | None, home: str) -> str:
    sections = (
        situation.scratchpad(board, home),
        section("OBJECTIVE", OBJECTIVE, whole_text(order.objective)),
        situation.begin(order, state, board),
        situation.item(order, state, board),
        situation.standing(order, state, board),
        situation.memories_section(order, board, home),
        situation.last(state),
        situation.event(state.pending),
        situation.guidance(board, home),
        section(
            "FEEDBACK", "About the session before yours:" if state.feedback else "", quote_text(state.feedback, 4_000)
        ),
        situation.stuck_advice(order, state),
        contract.render_hat(hat) if hat else contract.callable_hats(order),
        contract.rules(order, hat, board.paths, situation.notes_at(board, home)),
        contract.ending(order, hat),
        "" if hat else contract.render_done(order),
    )
    return "\n\n".join(filter(None, sections)) + "\n"
