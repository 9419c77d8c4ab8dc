"""Whether an agent may start if checks fail on the base commit, and the texts about it. Pure.

A check that no code change can turn green, or only failing checks, cannot verify an agent's work: no agent is started
and nothing is spent until a person has corrected that. Otherwise a check that fails already does not block the work if
it reports no new failure, and the pull request says that it still fails. A check that the task names is the task: it
has to pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.mission.lifecycle.waiting import CORRECT_BASE
from ralph_mission.mission.model.agent_job import BaseChecks, RedCheck
from ralph_mission.mission.model.effects import marker
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words

SAID = 300  # characters of a check's output


def why_not_asked(base: BaseChecks, task: str) -> str:
    """Why no agent may start on `task`, as a clause; "" if one may."""
    if base.problem:
        return inline_words(redact(base.problem), SAID)
    if broken := [check for check in base.red if check.broken]:
        return f"{inline(broken[0].command, 100)} cannot turn green: {inline_words(redact(broken[0].broken), SAID)}"
    if not base.red or base.green or any(is_named(check, task) for check in base.red):
        return ""
    first = base.red[0]
    what = "every check is" if len(base.red) > 1 else f"{inline(first.command, 100)} is"
    named = f"if this is about that, name the command {inline(first.command, 100)} in the issue"
    return f"{what} failing on the unchanged commit{_words(first)}; {named}"


def tolerated(base: BaseChecks, task: str) -> tuple[RedCheck, ...]:
    """The checks that fail already and do not block the task."""
    return tuple(check for check in base.red if not is_named(check, task))


def is_named(check: RedCheck, task: str) -> bool:
    """Whether a task names a check by its command."""
    return check.command.casefold() in " ".join(task.casefold().split())


def warn_of_red(red: Sequence[RedCheck]) -> str:
    """An agent's instruction about checks that fail already, or "". Equal for equal checks."""
    named = ", ".join(inline(check.command, 100) for check in red)
    return (
        f"These checks failed before you began. You need not fix them, but must not add failures: {named}."
        if red
        else ""
    )


def held_line(why: str) -> str:
    """The line in a mission's history."""
    return f"no agent was started and nothing was spent: {why}"


def held_comment(why: str, key: str) -> str:
    """The comment on a ready issue; it is edited if the reason changes."""
    return f"**No agent was started, and nothing was spent:** {why}.\n\n{CORRECT_BASE}\n\n{marker(key)}"


def standing_note(failing: Sequence[str]) -> str:
    """The note in a pull request about checks that failed before and still do, or ""."""
    named = ", ".join(inline(command, 100) for command in failing)
    whose = "its" if len(failing) == 1 else "their"
    return f"**Still failing:** {named}, as on the base commit; {whose} output names no new failure." if failing else ""


def _words(check: RedCheck) -> str:
    output = inline_words(redact(" ".join(check.said.split())), SAID)
    return f" ({output})" if output else ""
