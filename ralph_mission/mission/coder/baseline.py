"""Whether an agent is asked while checks are red on the commit that work begins from, and what people are told. Pure.

A check that no change to the code turns green, or nothing but red checks, proves nothing about what an agent makes: it
is not asked until a person has put that right, and nothing is spent. Otherwise a check that is red already does not
hold the work up, as long as it makes no complaint more than before, and the pull request says that it is still red. A
check that the task names is what the task is about: it has to turn green.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.mission.model.agent_job import BaseChecks, RedCheck
from ralph_mission.mission.model.effects import marker
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words

SAID = 300  # characters of a check's own words
NEXT = "Correct the default branch, `hands.setup` or `hands.verify`; the agent is asked in the next round after that."
"""Who must act, and what follows."""


def why_not_asked(base: BaseChecks, task: str) -> str:
    """Why no agent is asked to do `task`, in a clause; "" when one is."""
    if base.problem:
        return inline_words(redact(base.problem), SAID)
    if broken := [check for check in base.red if check.broken]:
        return f"{inline(broken[0].command, 100)} cannot turn green: {inline_words(redact(broken[0].broken), SAID)}"
    if not base.red or base.green or any(is_named(check, task) for check in base.red):
        return ""
    first = base.red[0]
    what = "every check is" if len(base.red) > 1 else f"{inline(first.command, 100)} is"
    named = f"if this is about that, name the command {inline(first.command, 100)} in the issue"
    return f"{what} red before anything is changed{_words(first)}; {named}"


def tolerated(base: BaseChecks, task: str) -> tuple[RedCheck, ...]:
    """The checks that are red already and do not hold the task up."""
    return tuple(check for check in base.red if not is_named(check, task))


def is_named(check: RedCheck, task: str) -> bool:
    """Whether a task names a check by its command: then it is what the task is about."""
    return check.command.casefold() in " ".join(task.casefold().split())


def warn_of_red(red: Sequence[RedCheck]) -> str:
    """What an agent is told of checks that do not hold it up; "" for none. The same text for the same checks."""
    named = ", ".join(inline(check.command, 100) for check in red)
    return (
        f"Red before you began, so they need not turn green, but no complaint of theirs may be new: {named}."
        if red
        else ""
    )


def held_line(why: str) -> str:
    """For the story of a mission."""
    return f"no agent was asked and nothing was spent: {why}"


def held_comment(why: str, key: str) -> str:
    """For an issue that is ready: one comment, which is edited when there is something else to say."""
    return f"**No agent was asked, and nothing was spent:** {why}.\n\n{NEXT}\n\n{marker(key)}"


def standing_note(standing: Sequence[str]) -> str:
    """For a pull request: what is red in it that was red before; "" for nothing."""
    named = ", ".join(inline(command, 100) for command in standing)
    return (
        f"**Still red:** {named}, as on the commit that this begins from; it complains of nothing more than there."
        if standing
        else ""
    )


def _words(check: RedCheck) -> str:
    said = inline_words(redact(" ".join(check.said.split())), SAID)
    return f" ({said})" if said else ""
