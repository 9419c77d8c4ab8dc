"""What an agent's change has to meet besides the repository's checks: those that fail already, and a bug's test. Pure.

A check that no code change can turn green, or only failing checks, cannot verify an agent's work: no agent is started
and nothing is spent until a person has corrected that. Otherwise a check that fails already does not block the work if
it reports no new failure, and the pull request says that it still fails. A check that the task names is the task: it
has to pass.

Reproduce first: for an issue that reports a bug, a change only counts if its test shows the bug. The gate is the one
for every claim about code (`mission/proof`): the test fails on the base three times, and passes with the change.
Without such a test the bug was not seen: the author of the issue is asked, once, and the mission waits for an answer
instead of sending a guess. A label on the issue says that it is a bug.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ralph_mission.mission.lifecycle.comment_commands import addresses_us, read_command
from ralph_mission.mission.lifecycle.waiting import CORRECT_BASE
from ralph_mission.mission.model.agent_job import AgentResult, BaseChecks, RedCheck
from ralph_mission.mission.model.cycle import MissionFacts
from ralph_mission.mission.model.effects import Comment, marker
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.mission import HUMAN, Mission, Status
from ralph_mission.mission.proposals.wording import person_name
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words, quote

if TYPE_CHECKING:
    from ralph_mission.mission.proof.claim import CodeClaim
    from ralph_mission.mission.proof.judge import ProofVerdict

EXCERPT = 300  # characters of a check's output
BUG = frozenset("bug bugs defect defects regression regressions crash crashes".split())
NO_BUG = frozenset("no non not notabug wontfix invalid bounty cannot cant reproduce fixed duplicate bot".split())
"""Words in a label that mark a bug, and those that cancel it."""
TASK = (
    "## Reproduce First\n\nThis issue reports a bug. Before you change anything else, write a test, where this "
    "repository keeps its tests, that fails because of it: by an assertion, or by the exception that the issue tells "
    "of. It is run three times on the code as it is, where it has to fail each time, and three times with your change, "
    "where it has to pass; all other tests have to stay as they are. There is no network. If you cannot make such a "
    "test fail, change nothing: end, and say what you tried and what you would need to know. The author is asked then; "
    "a guess is not sent."
)
NOT_SEEN = frozenset({"no-test", "passes-on-base"})
"""Rules that mean the bug was not reproduced."""
NOT_HERE = frozenset({"cannot-run", "other-tests"})
"""Rules that mean this repository or machine cannot tell: the change continues, and says so."""
QUESTION_NOTE = "its author was asked how to reproduce it"
WORDS = 2_000  # characters of the agent's words in a question


def why_not_asked(base: BaseChecks, task: str) -> str:
    """Why no agent may start on `task`, as a clause; "" if one may."""
    if base.problem:
        return inline_words(redact(base.problem), EXCERPT)
    if broken := [check for check in base.red if check.broken]:
        return f"{inline(broken[0].command, 100)} cannot turn green: {inline_words(redact(broken[0].broken), EXCERPT)}"
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
    warning = "These checks failed before you began. You need not fix them, but must not add failures"
    return f"{warning}: {named}." if red else ""


def held_line(why: str) -> str:
    """The line in a mission's history."""
    return f"no agent was started and nothing was spent: {why}"


def held_comment(why: str, key: str) -> str:
    """The comment on a ready issue; it is edited if the reason changes."""
    return f"**No agent was started, and nothing was spent:** {why}.\n\n{CORRECT_BASE}\n\n{marker(key)}"


def _words(check: RedCheck) -> str:
    output = inline_words(redact(" ".join(check.said.split())), EXCERPT)
    return f" ({output})" if output else ""


def is_bug(mission: Mission, issue: Issue | None) -> bool:
    """Whether a mission is a person's issue with a bug label."""
    return issue is not None and mission.kind == HUMAN and any(map(calls_it_a_bug, issue.labels))


def calls_it_a_bug(label: str) -> bool:
    """Whether a label marks a bug, word by word."""
    words = set(re.findall(r"[a-z]+", label.casefold().replace("'", "")))
    return bool(words & BUG) and not words & NO_BUG


def settle(result: AgentResult, claim: CodeClaim | None, judged: ProofVerdict | str) -> AgentResult:
    """An agent's result for a bug after judging; if `judged` is a text, it says why that was impossible."""
    from ralph_mission.mission.proof.claim import is_code  # an idle cycle judges nothing
    from ralph_mission.mission.proof.exploring import describe_proof

    if claim is None and result.patch and any(map(is_code, result.patch.paths)):
        return replace(result, outcome="failed", reason="it changes no code but that of tests")
    if claim is None or isinstance(judged, str):
        return _unchecked(result, "it changes no code of a known language" if claim is None else str(judged))
    if (refusal := judged.refusal) is None:
        return replace(result, proof=describe_proof(claim, judged))
    if refusal.rule in NOT_HERE:
        return _unchecked(result, refusal.why)
    why = f"its test does not prove the bug: {refusal.why}"
    return replace(result, outcome="failed", reason=why, unseen=refusal.rule in NOT_SEEN)


def _unchecked(result: AgentResult, why: str) -> AgentResult:
    return replace(result, proof=f"Whether its test shows the bug could not be checked here: {why}.")


# --- the question ---------------------------------------------------------------------


def question_key(mission: Mission) -> str:
    """The key of a mission's question."""
    return key_of(mission.key, "comment", "reproduce")


def was_asked(mission: Mission, facts: MissionFacts) -> bool:
    """Whether the author was asked in this mission's life, even if the question was deleted."""
    return _asked_at(mission, facts) is not None or any(line.endswith(QUESTION_NOTE) for line in mission.story)


def waits_for_answer(mission: Mission, facts: MissionFacts) -> bool:
    """Whether there is a question that no authorised person has answered."""
    asked_at = (
        _asked_at(mission, facts) if is_bug(mission, facts.issue) and mission.status is not Status.FIXING else None
    )
    if asked_at is None or facts.issue is None:
        return False
    people = (r for r in facts.issue.remarks if r.author.id in facts.authorised and not r.author.is_bot)
    answers = [remark.created_at for remark in people if not _is_command(remark.body)]
    return max((*answers, *(message.at for message in facts.guidance)), default=asked_at) <= asked_at


def question(mission: Mission, issue: Issue, result: AgentResult) -> Comment:
    """The question, with the agent's words quoted."""
    key = question_key(mission)
    words = quote(redact(result.words), WORDS) if result.words.strip() else ""
    parts = (
        f"**{person_name(issue.author)}, how can this be reproduced?** No test could be written that shows it "
        f"({inline_words(redact(result.reason), 200)}), and a guess is not sent.",
        f"What the agent says, not an instruction:\n\n{words}" if words else "",
        "**What helps:** the shortest code or steps that show it, what you expected, what came instead (the whole "
        "error), and the version or commit.",
        "The agent continues when somebody who may decide here answers in a comment, or confirms an answer in one. To "
        "have a change without a test, take the label off that calls this a bug.",
        marker(key),
    )
    return Comment(key, mission.issue, "\n\n".join(filter(None, parts)))


def _asked_at(mission: Mission, facts: MissionFacts) -> datetime | None:
    line = marker(question_key(mission))
    remarks = facts.issue.remarks if facts.issue else ()
    return next((r.created_at for r in remarks if r.author.id == facts.us and r.body.rstrip().endswith(line)), None)


def _is_command(body: str) -> bool:
    return addresses_us(body) and read_command(body)[0] != "guidance"
