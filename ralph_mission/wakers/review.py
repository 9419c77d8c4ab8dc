"""How the review of a pull of ours is started: by GitHub itself, or by a dispatch of our own.

GitHub starts no workflow for what was done with the token of a workflow, but for a dispatch. What any other account
does, an app's too, it does start one for; a dispatch would be a second one then.
"""

from __future__ import annotations

from pathlib import Path

from ralph_mission.wakers.facts import REVIEW, WaySetUp, listening

OF_WORKFLOWS = "github-actions[bot]"
"""The account of every workflow's own token."""


def by_dispatch(wanted: str, account: str, work_tree: Path | None) -> WaySetUp:
    """Whether we wake it, and why or why not. `wanted` is `schedule.review`; `account` opens our pulls."""
    if not listening(work_tree, REVIEW):
        return WaySetUp(False, f"no workflow here listens to {REVIEW}")
    if wanted == "never":
        return WaySetUp(False, "schedule.review: never")
    if wanted == "always":
        return WaySetUp(True, "by a dispatch (schedule.review: always)")
    if account == OF_WORKFLOWS:
        return WaySetUp(True, "by a dispatch: what a workflow's own token opens starts no other workflow")
    return WaySetUp(False, f"by GitHub: what {account} opens starts workflows")
