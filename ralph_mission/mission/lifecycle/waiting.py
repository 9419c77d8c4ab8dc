"""What waits for whom, told from the missions alone. Few imports: `ralph status` reads it at each start."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ralph_mission.mission.model.mission import FailureReason, Mission, Status

How = Callable[[str, int], str]
CLOSES_BY_ITSELF = "It closes once it is no longer found, or when a person closes it."
WAITS_FOR_AGENT = "An agent continues it in the next cycle."


def list_waiting(missions: Iterable[Mission], how: How) -> tuple[str, ...]:
    """What a person can do now, one line each, with the very words to type or the link to open."""
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
    """How a person looks at what it lives in."""
    return how("show_issue" if mission.issue else "show_pull", mission.thread)


def _review_lines(mission: Mission, how: How) -> tuple[str, ...]:
    look, yes = how("show_pull", mission.pull), how("approve_pull", mission.pull)
    if failure := review_failure(mission):
        return (f"failed:    {failure}", f"look:      {look}", f"approve:   {yes} (unless it is approved)")
    return (f"review it: {look}", f"approve:   {yes}")


def review_failure(mission: Mission) -> str:
    """What failed about a pull request that is in review, most often its merge, and what comes next; "" if nothing."""
    from ralph_mission.mission.proposals.wording import plain

    failure = plain(mission.progress.failure, 200)
    if mission.status is not Status.IN_REVIEW or mission.review.offered_until or not failure:
        return ""
    if mission.progress.failure_reason is FailureReason.NEEDS_PERSON:
        return f"{failure}; only a person can change that"
    if mission.progress.failure_reason is FailureReason.BEHIND:
        return f"{failure}; the next cycle merges the base into it"
    return f"{failure}; the next cycle tries again"


def waits_for_agent(mission: Mission) -> bool:
    """Whether nobody but an agent has anything to do about it."""
    return mission.next_step == WAITS_FOR_AGENT
