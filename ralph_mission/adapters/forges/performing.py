"""What finding and doing an effect have in common on every forge: when it may begin, and how a no is told."""

from __future__ import annotations

from collections.abc import Callable

from ralph_mission.adapters.forges.commits import ForgeRefused, mark
from ralph_mission.adapters.git.git import GitError
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.model.effects import AT_MOST_ONCE, Effect, Receipt, Ref
from ralph_mission.mission.model.mission import FailureReason


def require_ready(effect: Effect) -> None:
    """Raises ValueError for an effect that still waits for a number or lacks its marker: our bug."""
    if isinstance(getattr(effect, "issue", None), Ref):
        raise ValueError(f"effect {effect.key} still waits for a number")
    if isinstance(effect, AT_MOST_ONCE) and mark(effect.body) != effect.key:
        raise ValueError(f"effect {effect.key} does not carry its marker")


def find(effect: Effect, found: Callable[[Effect], Receipt | None]) -> Receipt | None:
    """What of `effect` is there as `found` tells it; None where what it is about is gone or refused, too.

    Raises ValueError as `require_ready` does, UserError.
    """
    require_ready(effect)
    try:
        return found(effect)
    except (ForgeRefused, Missing):
        return None
    except GitError as error:
        raise spoilt(error) from None


def failed_receipt(effect: Effect, why: object, reason: FailureReason | None = None) -> Receipt:
    """The receipt of what was certainly not done; a refusal tells its reason itself."""
    return Receipt(
        effect.key, "failed", detail=str(why), reason=why.reason if isinstance(why, ForgeRefused) else reason
    )


def spoilt(error: GitError) -> UserError:
    """A repository that git itself cannot work with."""
    return UserError(str(error), error.next_step("look at the repository with: git fsck"))
