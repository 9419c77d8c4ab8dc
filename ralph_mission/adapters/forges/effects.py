"""What every forge does with an effect: look for it, then do it once. A forge adds its verbs, two for each kind.

`ForgeRefused` is a definite no: nothing was done, and why; the bot gets it as a failed receipt, a person as UserError.
"""

from __future__ import annotations

from ralph_mission.adapters.git.git import GitError
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.model.effects import AT_MOST_ONCE, KINDS, MARKER, Effect, Receipt, Ref
from ralph_mission.mission.model.mission import FailureReason


class ForgeRefused(Exception):
    """`what` is a rule's id or a line for people; `hint` says what would help, "" where nothing does."""

    def __init__(self, what: str, hint: str = "", reason: FailureReason | None = None) -> None:
        super().__init__(f"{what}: {hint}" if hint else what)
        self.what, self.hint, self.reason = what, hint, reason


def mark(body: str) -> str:
    """The key of the last marker in a text, "" without one: those before it may be quoted from anybody."""
    keys: list[str] = MARKER.findall(body)
    return keys[-1] if keys else ""


def is_work(body: str) -> bool:
    """Whether a text of ours belongs to a mission or a watch: an alarm of an older version is none."""
    found = MARKER.search(body)
    return found is not None and " alarm=" not in found[0]


class EffectVerbs:
    """`find_KIND` and `do_KIND` for every kind of effect that a forge knows, by its name in `KINDS`."""

    def find(self, effect: Effect) -> Receipt | None:
        """What of `effect` is there already: an adopted receipt. Raises ForgeRefused, Missing, UserError."""
        found: Receipt | None = getattr(self, f"find_{KINDS[type(effect)]}")(effect)
        return found

    def do(self, effect: Effect) -> Receipt:
        """Do what is not there yet. Raises ForgeRefused, UserError, and what else the forge says."""
        receipt: Receipt = getattr(self, f"do_{KINDS[type(effect)]}")(effect)
        return receipt


def require_ready(effect: Effect) -> None:
    """Raises ValueError for an effect that still waits for a number or lacks its marker: our bug."""
    if isinstance(getattr(effect, "issue", None), Ref):
        raise ValueError(f"effect {effect.key} still waits for a number")
    if isinstance(effect, AT_MOST_ONCE) and mark(effect.body) != effect.key:
        raise ValueError(f"effect {effect.key} does not carry its marker")


def find(effect: Effect, verbs: EffectVerbs) -> Receipt | None:
    """What of `effect` is there; None where what it is about is gone or refused, too.

    Raises ValueError as `require_ready` does, UserError.
    """
    require_ready(effect)
    try:
        return verbs.find(effect)
    except (ForgeRefused, Missing):
        return None
    except GitError as error:
        raise explain_damage(error) from None


def failed_receipt(effect: Effect, why: object, reason: FailureReason | None = None) -> Receipt:
    """The receipt of what was certainly not done; a refusal tells its reason itself."""
    return Receipt(
        effect.key, "failed", detail=str(why), reason=why.reason if isinstance(why, ForgeRefused) else reason
    )


def explain_damage(error: GitError) -> UserError:
    """A repository that git itself cannot work with."""
    return UserError(str(error), error.next_step("look at the repository with: git fsck"))
