"""A run of the loop as a JSON document for programs: the keys are a contract."""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.loop.model import SessionUsage
from ralph_mission.loop.order import RunResult
from ralph_mission.safety.secrets import redact


def account_document(
    account: RunResult,
    stories: tuple[int, int] | None,
    complaints: Sequence[str] = (),
    isolation: str = "",
    secrets: Sequence[str] = (),
) -> dict[str, object]:
    """The run as `ralph run --json` prints it; `stories`: how many pass, of how many. None of `secrets` is in it.

    `complaints` are about files that the run found otherwise than the one before had left them;
    `isolation` says how far sessions were kept apart.
    """
    ending, usage = account.ending, account.state.usage
    told: dict[str, object] = {
        "ending": ending.reason,
        "code": ending.code,
        "detail": ending.detail,
        "next": ending.next_step,
        "run": account.state.run_id,
        "sessions": account.state.iteration,
        "isolation": isolation,
        "stories": {"passing": stories[0], "total": stories[1]} if stories else None,
        "usage": _usage(usage),
        "played": [
            {
                "session": output.iteration,
                "hat": output.hat,
                "agent": output.agent,
                "failure": output.failure,
                "calls": len(output.calls),
                "usage": _usage(output.usage),
            }
            for output in account.outputs
        ],
        "reverted": [
            {"session": output.iteration, "path": change.path, "how": change.how, "why": change.reverted}
            for output in account.outputs
            for change in output.reverted
        ]
        + [
            {"session": account.state.iteration + 1, "path": change.path, "how": change.how, "why": change.reverted}
            for change in account.cut
        ],
        "refused": [{"session": output.iteration, "why": why} for output in account.outputs for why in output.refused],
        "left_running": [
            {"session": output.iteration, "command": command}
            for output in account.outputs
            for command in output.left_running
        ],
        "complaints": list(complaints),
    }
    return {name: redact_values(value, secrets) for name, value in told.items()}


def redact_values(value: object, secrets: Sequence[str]) -> object:
    """The same without secrets in its texts; names of fields are ours."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, dict):
        return {name: redact_values(inner, secrets) for name, inner in value.items()}
    return [redact_values(inner, secrets) for inner in value] if isinstance(value, list) else value


def _usage(usage: SessionUsage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "unpriced_sessions": usage.untold,
        "seconds": round(usage.seconds, 3),
        "turns": usage.turns,
    }
