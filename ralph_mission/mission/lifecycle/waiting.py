"""What waits for whom, by the missions alone. Few imports, as `ralph status` loads it at each start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ralph_mission.mission.model.forge import Pull
from ralph_mission.mission.model.mission import FailureReason, Mission, Status

How = Callable[[str, int], str]
CLOSES_BY_ITSELF = "It closes once it is no longer found, or when a person closes it."
WAITS_FOR_AGENT = "An agent continues it in the next cycle."
HELD_CHECKS = "its checks wait for a click on “Approve workflows to run”"


def list_waiting(missions: Iterable[Mission], how: How) -> tuple[str, ...]:
    """What a person can do now, one line each, with the command to type or the link to open."""
    lines: list[str] = []
    for mission in missions:
        if not mission.thread:
            continue  # a staged cycle opened nothing
        if mission.status is Status.IN_REVIEW and not mission.review.offered_until:
            lines += _review_lines(mission, how)
        elif mission.review.offered_until or (mission.status is Status.DISCOVERED and mission.question.proposal_hash):
            lines.append(f"read it:   {how('show_issue', mission.issue)}")
            if mission.next_step != CLOSES_BY_ITSELF:
                lines.append(f"approve:   {how('approve_issue', mission.issue)}")
        elif mission.status in (Status.ESCALATED, Status.PLANNED) and not waits_for_agent(mission):
            lines += [f"decide:    {show(mission, how)}"]
    return tuple(lines)


def show(mission: Mission, how: How) -> str:
    """How a person opens its thread."""
    return how("show_issue" if mission.issue else "show_pull", mission.thread)


def _review_lines(mission: Mission, how: How) -> tuple[str, ...]:
    look, yes = how("show_pull", mission.pull), how("approve_pull", mission.pull)
    if failure := review_failure(mission):
        return (f"failed:    {failure}", f"look:      {look}", f"approve:   {yes} (unless it is approved)")
    return (f"review it: {look}", f"approve:   {yes}")


def describe_checks(pull: Pull | None) -> str:
    """What a person should know of the checks of a pull request that is to be merged; "" while they are well or run."""
    if pull is None or pull.state != "open" or not (pull.held or pull.failed):
        return ""
    if pull.held:
        return f"{HELD_CHECKS}: {', '.join(pull.held[:3])}"
    job, more = pull.failed[0], len(pull.failed) - 1
    return f"{job.name} failed: {job.url}" + (f"; and {more} more" if more else "")


def waits_for_click(mission: Mission) -> bool:
    """Whether its checks are held until a person lets them start."""
    return mission.status is Status.IN_REVIEW and mission.review.checks.startswith(HELD_CHECKS)


def review_failure(mission: Mission, words: Callable[[str], str] | None = None) -> str:
    """What blocks a pull request in review (its merge or its checks), and what comes next; "" if nothing.

    `words` makes the reason one safe line.
    """
    from ralph_mission.mission.proposals.wording import plain

    checks, failure = mission.review.checks, mission.progress.failure
    if mission.status is not Status.IN_REVIEW or mission.review.offered_until or not (checks or failure):
        return ""
    words = words or partial(plain, limit=200)
    if waits_for_click(mission) or not failure:
        return words(checks)
    failure = words(failure)
    if mission.progress.failure_reason is FailureReason.NEEDS_PERSON:
        return f"{failure}; only a person can change that"
    if mission.progress.failure_reason is FailureReason.BEHIND:
        return f"{failure}; the next cycle merges the base into it"
    return f"{failure}; the next cycle tries again"


def waits_for_agent(mission: Mission) -> bool:
    """Whether only an agent has anything to do about it."""
    return mission.next_step == WAITS_FOR_AGENT
