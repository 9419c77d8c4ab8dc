"""Forges: they hold issues, pull requests and branches.

How each handles an effect: find it, else do it once. A forge adds two functions for each kind. `ForgeRefused` is a
definite refusal with its reason: nothing was done. The bot gets a failed receipt, a person a UserError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from ralph_mission.adapters.git.git import GitError
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle.approval import merge_objection, who_stops
from ralph_mission.mission.model.effects import AT_MOST_ONCE, KINDS, MARKER, Effect, MergePull, PushBranch, Receipt, Ref
from ralph_mission.mission.model.forge import Actor, Pull
from ralph_mission.mission.model.mission import FailureReason


def utc_now() -> datetime:
    """The present."""
    return datetime.now(UTC)


class ForgeRefused(Exception):
    """`what`: a rule's id or a line for people; `hint`: what would help, or ""."""

    def __init__(self, what: str, hint: str = "", reason: FailureReason | None = None) -> None:
        super().__init__(f"{what}: {hint}" if hint else what)
        self.what, self.hint, self.reason = what, hint, reason


def refused_push(effect: PushBranch) -> ForgeRefused:
    """The refusal where the branch is at another commit than it was to be pushed onto.

    A new branch's name is taken then, and stays so: trying again would not help. One that was ours is looked at again.
    """
    if effect.onto:
        return ForgeRefused("foreign-commit")
    what = f"the branch {effect.branch} exists already, with a commit that is not of this change"
    return ForgeRefused(what, "delete or rename that branch", FailureReason.NEEDS_PERSON)


def require_approval(pull: Pull, merge: MergePull, may_approve: Callable[[Actor], bool]) -> None:
    """Raise ForgeRefused if the approval of a merge no longer stands, or waits for somebody's request for changes."""
    rule = merge_objection(pull, merge, may_approve)
    if rule and (person := who_stops(pull, merge, may_approve)):
        what = f"{person.login} asks for changes: approve it once more when they agree, or dismiss their review before"
        raise ForgeRefused(what, reason=FailureReason.NEEDS_PERSON)
    if rule:
        raise ForgeRefused(rule)


def mark(body: str) -> str:
    """The key of the last marker in a text, or "": earlier ones may be quotes."""
    keys: list[str] = MARKER.findall(body)
    return keys[-1] if keys else ""


def is_work(body: str) -> bool:
    """Whether our text belongs to a mission or a watch; an older version's alarm does not."""
    found = MARKER.search(body)
    return found is not None and " alarm=" not in found[0]


class EffectVerbs:
    """`find_KIND` and `do_KIND` for every kind of effect that a forge performs, by its name in `KINDS`."""

    def find(self, effect: Effect) -> Receipt | None:
        """An adopted receipt if `effect` already exists. Raises ForgeRefused, Missing, UserError."""
        found: Receipt | None = getattr(self, f"find_{KINDS[type(effect)]}")(effect)
        return found and replace(found, status="adopted")

    def do(self, effect: Effect) -> Receipt:
        """Do what does not exist yet. Raises ForgeRefused, UserError, and the forge's other errors."""
        receipt: Receipt = getattr(self, f"do_{KINDS[type(effect)]}")(effect)
        return receipt


def require_ready(effect: Effect) -> None:
    """Raises ValueError for an effect without its number or marker: our bug."""
    if isinstance(getattr(effect, "issue", None), Ref):
        raise ValueError(f"effect {effect.key} still waits for a number")
    if isinstance(effect, AT_MOST_ONCE) and mark(effect.body) != effect.key:
        raise ValueError(f"effect {effect.key} does not carry its marker")


def find_receipt(effect: Effect, verbs: EffectVerbs) -> Receipt | None:
    """The receipt of an existing `effect`, or None; also None if its subject is gone or refused.

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
    """The receipt of an effect that certainly did not happen; a refusal carries its reason."""
    return Receipt(
        effect.key, "failed", detail=str(why), reason=why.reason if isinstance(why, ForgeRefused) else reason
    )


def explain_damage(error: GitError) -> UserError:
    """The error for a repository that git cannot use."""
    return UserError(str(error), error.next_step("look at the repository with: git fsck"))
