"""What waits for whom, by the missions alone. Few imports, as `ralph status` loads it at each start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from functools import partial

from ralph_mission.mission.model.forge import Pull
from ralph_mission.mission.model.ledger import HeldFix, RedBase
from ralph_mission.mission.model.mission import FailureReason, Mission, Status, WaitingLine
from ralph_mission.values import compile_regex

How = Callable[[str, int], str]
CLOSES_BY_ITSELF = "It closes once it is no longer found, or when a person closes it."
CLOSED_BY_PEOPLE = "It closes when a person closes it."
UNASKED = (CLOSES_BY_ITSELF, CLOSED_BY_PEOPLE)
"""The next step of an issue that asks for no approval, as nobody could go ahead with it."""
FIX_IT = "fix it, or name an agent (hands.agent); once fixed, it closes by itself"
AGAIN = "to try again now: ralph cycle --force"
NO_AGENT = "No agent is configured (`hands.agent`) to make the change."
DO_IT = "no agent is set up for it: name one (hands.agent), or make the change and close this as completed"
WAITS_FOR_AGENT = "An agent continues it in the next cycle."
ANSWER_QUESTION = "Answer the question on the issue; the agent continues after that."
CORRECT_BASE = (
    "Correct the default branch, `hands.setup` or `hands.verify`; the agent starts in the next round after that."
)
PICK_AGENT = "Set the label of an agent that is installed here, or take its label off: the usual agent continues then."
RULE = compile_regex(r"[a-z]+(?:-[a-z]+)+")
HELD_CHECKS = "its checks wait for a click on “Approve workflows to run”"


def find_waiting(missions: Iterable[Mission], how: How, answered: Collection[int] = ()) -> tuple[WaitingLine, ...]:
    """What a person can do now, mission by mission, held checks first.

    The missions in `answered` (their ids) wait for the next cycle.
    """
    return tuple(
        line
        for mission in sorted(missions, key=waits_for_click, reverse=True)
        if mission.thread and mission.id not in answered  # a staged cycle opened nothing
        for line in _waiting_line(mission, how)
    )


def list_waiting(missions: Iterable[Mission], how: How, answered: Collection[int] = ()) -> tuple[str, ...]:
    """The same, one line for each thing that can be done."""
    return tuple(
        f"{f'{word}:':<10} {command}"
        for line in find_waiting(missions, how, answered)
        for word, command in ((("failed" if line.pull else "note", line.note),) if line.note else ()) + line.ways
    )


def _waiting_line(mission: Mission, how: How) -> Iterator[WaitingLine]:
    issue, pull = (mission.issue, False, mission.title), (mission.pull, True, mission.title)
    if mission.status is Status.IN_REVIEW and not mission.review.offered_until:
        look, yes = how("show_pull", mission.pull), how("approve_pull", mission.pull)
        if failure := review_failure(mission):
            yield WaitingLine(*pull, (("look", look), ("approve", f"{yes} (if it is not approved yet)")), failure)
        else:
            yield WaitingLine(*pull, (("review it", look), ("approve", yes)))
    elif mission.review.offered_until or (mission.status is Status.DISCOVERED and mission.question.proposal_hash):
        read = ("read it", how("show_issue", mission.issue))
        if mission.next_step == CLOSED_BY_PEOPLE:
            yield WaitingLine(*issue, (read, ("once done", how("complete_issue", mission.issue))), DO_IT)
        elif mission.next_step == CLOSES_BY_ITSELF:
            yield WaitingLine(*issue, (read, ("close it", how("close_issue", mission.issue))), FIX_IT)
        else:
            yield WaitingLine(*issue, (read, ("approve", how("approve_issue", mission.issue))))
    elif is_stuck(mission.status, mission.next_step):
        from ralph_mission.mission.proposals.wording import plain

        ways = (("read it", show(mission, how)),)
        unmade = not mission.next_step or mission.next_step.startswith(NO_AGENT)
        if mission.status is Status.PLANNED and mission.issue and unmade:
            yield WaitingLine(*issue, (*ways, ("once done", how("complete_issue", mission.issue))), DO_IT)
        else:
            again = (("then", how("retry", mission.thread)),) if "/ralph retry" in mission.next_step else ()
            note = plain(mission.next_step, limit=300)
            yield WaitingLine(mission.thread, not mission.issue, mission.title, (*ways, *again), note)


def needs_person(waiting: Sized, unknown: Sized, red: Sized, fixes: Sized) -> bool:
    """Whether anything needs a person: what waits, what is in doubt, a red check, or a fix that is held back.

    Where this is true, no text says that nothing does.
    """
    return any(map(len, (waiting, unknown, red, fixes)))


def describe_red(red: RedBase) -> Iterator[str]:
    """The repository's own checks that fail without any change of ours."""
    if red.checks:
        named, one = " and ".join(f"`{' '.join(check.split())}`" for check in red.checks), len(red.checks) == 1
        yield f"your {'check' if one else 'checks'} {named} {'is' if one else 'are'} red on {red.branch}"


def describe_held(fixes: Sequence[HeldFix]) -> Iterator[str]:
    """Fixes that are not proposed, why, and how they are tried again."""
    yield from (f"{one.title}: {one.why}" for one in fixes)
    if fixes:
        otherwise = "; otherwise on the next commit" if any(one.ran for one in fixes) else ""
        yield f"{AGAIN}{otherwise}"


def show(mission: Mission, how: How) -> str:
    """How a person opens its thread."""
    return how("show_issue" if mission.issue else "show_pull", mission.thread)


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
    failure = words(_in_words(failure))
    if mission.progress.failure_reason is FailureReason.NEEDS_PERSON:
        return f"{failure}; only a person can change that"
    if mission.progress.failure_reason is FailureReason.BEHIND:
        return f"{failure}; the next cycle merges the base into it"
    return f"{failure}; the next cycle tries again"


def _in_words(failure: str) -> str:
    """A rule that refused a merge, as what lifts it; any other failure as it is."""
    if not RULE.fullmatch(failure):
        return failure
    from ralph_mission.mission.policy import LIFTED_BY

    return f"the merge needs {LIFTED_BY[failure]}" if failure in LIFTED_BY else failure


def is_stuck(status: Status, next_step: str) -> bool:
    """Whether only a person can go on with a mission that was approved."""
    decides = status in (Status.ESCALATED, Status.PLANNED) and next_step != WAITS_FOR_AGENT
    return decides or (status.active and next_step in (ANSWER_QUESTION, CORRECT_BASE, PICK_AGENT))


def waits_for_agent(mission: Mission) -> bool:
    """Whether only an agent has anything to do about it."""
    return mission.next_step == WAITS_FOR_AGENT
