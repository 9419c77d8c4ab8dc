"""The issue agent's next issue, the people who may request it, the agent's prompt and texts for people. Pure.

An issue's text is data for the agent, quoted with its author; the agent's text is data for people and sanitised here:
it cannot close an issue, notify people or command a runner.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from datetime import datetime

from ralph_mission.mission.coder.tasks import REMARK, REMARKS, quote_issue, read_guidance, task_prompt
from ralph_mission.mission.findings.identity import closed_issues
from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.lifecycle.approval import agent_of_label
from ralph_mission.mission.lifecycle.comment_commands import addresses_us, read_command
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.forge import Actor, BodyEdit, Issue, Pull, ThreadComment
from ralph_mission.mission.model.ledger import WorkRecord
from ralph_mission.mission.model.mission import Mission
from ralph_mission.mission.proposals.wording import person_name, plain
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words, quote
from ralph_mission.values import compile_regex, dataclass

READY, WORKING, FAILED = "ralph-ready", "ralph-working", "ralph-failed"
TRIES = 2
PRIORITY = compile_regex(r"(?:prio(?:rity)?[ :/_-]+)?((?<=[ :/_-])[a-z]+|p[0-4]|(?<=[ :/_-])[0-4])", re.IGNORECASE)
LEVELS = {"0": 0, "critical": 0, "urgent": 0, "1": 1, "highest": 1, "high": 1, "3": 3, "low": 3, "4": 4, "lowest": 4}
USUAL = 2
NEEDS = compile_regex(
    r"^[ \t]*(?:[-*+][ \t]+)?(?:\[ \][ \t]+)?[*_]{0,2}(?:needs|depends on|blocked by)[*_: \t]+"
    r"(#\d{1,9}(?:[,;& \t]+(?:and[ \t]+)?#\d{1,9})*)(?:[ \t]+\([^()\n]{1,200}\))?[. \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
SPARED = 5
"""Uncounted attempts on one issue while the agent cannot be reached: without a limit, a bad key would retry for
ever."""


@dataclass(frozen=True, slots=True)
class GuidanceNote:
    """A person's message to the next session, delivered once. `said_at`: a comment's time on the forge; otherwise `id`
    is set."""

    who: str
    text: str
    said_at: datetime | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class WorkTask:
    """An issue to work on, with the text by authorised people, and the label that requests it.

    `others` are labels that request it too. `words` is undelivered guidance. `altered` are the authors of comments that
    are left out, since somebody else may have changed them.
    """

    issue: Issue
    remarks: tuple[ThreadComment, ...]
    call: str = READY
    others: tuple[str, ...] = ()
    words: tuple[GuidanceNote, ...] = ()
    altered: tuple[Actor, ...] = ()

    @property
    def agent(self) -> str:
        """The agent that the label names, "" for any."""
        return agent_of_label(self.call)


def why_not_yet(issue: Issue, record: WorkRecord | None, missions: Sequence[Mission], pulls: Sequence[Pull]) -> str:
    """Why a listed ready issue is not read in full, or "". `pulls`: other people's pull requests."""
    if issue.state != "open":
        return "it is closed"
    mission = next((mission for mission in missions if mission.issue == issue.number), None)
    if mission and mission.status.active:
        return "it is a mission's, and one of the two works on it"
    if pull := (record.pull if record and record.state == "done" else mission.pull if mission else 0):
        return f"its pull request is #{pull}: say there what is missing"
    if WORKING in issue.labels:
        return f"it is labelled {WORKING} as well; if nobody works on it, remove that label"
    covering = next((pull.number for pull in pulls if issue.number in closed_issues(pull)), 0)
    return f"pull request #{covering} is about to close it" if covering else ""


def is_given_up(record: WorkRecord | None) -> bool:
    """Whether there is no further attempt unless somebody asks again."""
    return record is not None and (record.tries - record.spared >= TRIES or record.state == "failed")


def is_asked_anew(issue: Issue) -> bool:
    """Whether a label that requests work was set after the last attempt ended: in failure, or by a person."""
    ends = ((FAILED, True), (WORKING, False))
    ended_at = [event.at for event in issue.events if (event.label, event.added) in ends]
    requests = (
        approval.standing_label(issue, label) for label in issue.labels if label == READY or agent_of_label(label)
    )
    return bool(ended_at) and any(event is not None and event.at > max(ended_at) for event in requests)


def turn_of(issue: Issue, record: WorkRecord | None) -> tuple[int, int, int]:
    """The sort key of ready issues: first attempts before second ones, then by priority, then the oldest."""
    levels = (found[1].lower() for label in issue.labels if (found := PRIORITY.fullmatch(label)))
    priorities = (LEVELS.get(level.removeprefix("p"), USUAL) for level in levels)
    return record.tries - record.spared if record else 0, min(priorities, default=USUAL), issue.number


def find_needs(issue: Issue) -> tuple[int, ...]:
    """The issues that have to be done before, by a line such as `Needs #4, #5` or `Depends on #4`."""
    from ralph_mission.loop.stories.checklist import read_prose  # not needed by an idle cycle

    prose = "\n".join(line for _, line in read_prose(issue.body))
    numbers = " ".join(found[1] for found in NEEDS.finditer(prose))
    return tuple(dict.fromkeys(int(one) for one in re.findall(r"\d+", numbers) if int(one) != issue.number))


def requesting_labels(issue: Issue, agents: Collection[str]) -> tuple[str, ...]:
    """The labels on an issue that request work: `ralph-ready`, or one that names one of `agents`."""
    return tuple(label for label in sorted(issue.labels) if label == READY or agent_of_label(label) in agents)


def valid_label(issue: Issue, us: int, authorised: frozenset[int], agents: Collection[str]) -> str:
    """The label with which an authorised person requests work: of several, the newest that names an agent; "" for
    none."""
    valid = [label for label in requesting_labels(issue, agents) if _is_requested(issue, label, us, authorised)]
    return max(valid, key=lambda label: (label != READY, _set_at(issue, label)), default="")


def _is_requested(issue: Issue, label: str, us: int, authorised: frozenset[int]) -> bool:
    asker = approval.who_asked(issue, label, us)
    return asker is not None and asker.id in authorised


def _set_at(issue: Issue, label: str) -> datetime:
    event = approval.standing_label(issue, label)
    return event.at if event else issue.created_at


def why_not(
    issue: Issue, us: int, authorised: frozenset[int], agents: Collection[str] = (), edits: Sequence[BodyEdit] = ()
) -> str:
    """Why a ready issue is not taken, or "". `authorised`: the people who may request work.

    `edits`: who changed its text, if people may edit it who are not authorised.
    """
    asking = requesting_labels(issue, agents)
    if issue.state != "open" or not asking:
        return f"it is not labelled {READY}, or no longer"
    if not valid_label(issue, us, authorised, agents):
        return f"{' or '.join(asking)} was not set by someone who may decide here"
    if issue.author.id not in authorised:
        return "its author may not decide here, so its text does not count: write an issue of your own about it"
    if who := approval.find_altering_editor(edits, {*authorised, us}, approval.asked_at(issue, authorised, *asking)):
        return f"{person_name(who)} changed its text and has no say here: look at it, and set the label again"
    return ""


def find_participants(
    issue: Issue, us: int, agents: Collection[str] = (), edits: Sequence[BodyEdit] = ()
) -> frozenset[Actor]:
    """The people whose permissions decide whether it is taken."""
    askers = {asker for label in requesting_labels(issue, agents) if (asker := approval.who_asked(issue, label, us))}
    people = {issue.author, *(remark.author for remark in issue.remarks), *askers, *(edit.actor for edit in edits)}
    return frozenset(person for person in people if not person.is_bot and person.id != us)


def read_task(
    issue: Issue,
    us: int,
    authorised: frozenset[int],
    agents: Collection[str] = (),
    before: WorkRecord | None = None,
    some: bool = False,
) -> WorkTask:
    """The task with people's comments: new guidance is separate, and other commands are not for the agent.

    `some`: people may edit comments who are not authorised. A comment edited after the label was set is left out.
    """
    until = approval.asked_at(issue, authorised, *requesting_labels(issue, agents)) if some else None
    remarks = [remark for remark in issue.remarks if remark.author.id in authorised]
    unaltered = [remark for remark in remarks if approval.is_unaltered(remark, until)]
    altered = tuple(remark.author for remark in remarks if remark not in unaltered)
    fresh = {remark.id: word for remark in unaltered if (word := _read_guidance(remark, before))}
    call = valid_label(issue, us, authorised, agents)
    quoted = tuple(r for r in unaltered if _is_task(r.body) and r.id not in fresh)
    others = tuple(label for label in requesting_labels(issue, agents) if label != call)
    return WorkTask(issue, quoted, call, others, tuple(fresh.values()), altered)


def _read_guidance(remark: ThreadComment, before: WorkRecord | None) -> GuidanceNote | None:
    """A comment's guidance; None if it is none or was delivered to an earlier attempt."""
    text, until = read_guidance(remark.body), before.guided_at if before else None
    who = person_name(remark.author)
    lost = before is not None and before.away and guidance_summary(who, text) in before.heard  # with its runner
    if not text or (until is not None and remark.created_at <= until and not lost):
        return None
    return GuidanceNote(who, text, remark.created_at)


def _is_task(comment: str) -> bool:
    return not addresses_us(comment) or read_command(comment)[0] == "guidance"


HEARD = 200  # characters of a guidance in our comment
GUIDED = (
    "**Guidance.** People say this to you now, once, and it goes before your own plans. "
    "Say at the end what became of it:"
)
OURS = ("ralph-", "ralph:", "agent:")


def issue_title(issue: Issue) -> str:
    """The issue's title in plain text."""
    return plain(issue.title, 100) or f"Issue {issue.number}"


def issue_branch(issue: Issue) -> str:
    """The branch of every attempt, unless somebody else uses the name: `ralph/issue-42-add-retry-logic`."""
    words = unicodedata.normalize("NFKD", issue_title(issue)).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", words)[:40].strip("-")
    return f"ralph/issue-{issue.number}" + (f"-{slug}" if slug else "")


# --- for the agent --------------------------------------------------------------------


def issue_prompt(
    issue: Issue, remarks: Sequence[ThreadComment], learnings: str, role: str = "", before: str = "",
    guidance: Sequence[tuple[str, str]] = (),
) -> str:  # fmt: skip  # as one reads it
    """The loop's objective: the issue as a task.

    `remarks` are comments of authorised people, `learnings` people's notes in memory, `role` a person's text on how to
    work on issues here, `before` why an earlier attempt ended, `guidance` people's messages (who, text) to this
    attempt.
    """
    labels = ", ".join(inline(name, 60) for name in sorted(issue.labels) if not name.startswith(OURS))
    sections = [
        quote_issue(issue),
        f"**From issue labels:** {labels}" if labels else "",
        GUIDED if guidance else "",
        *(f"**{plain(who, 60)}:**\n\n{quote(redact(text), REMARK)}" for who, text in guidance[:REMARKS]),
    ]
    head = f"Implement: {issue_title(issue)} (#{issue.number})"
    prompt = task_prompt(head, sections, remarks, learnings, before)
    return f"{role.strip()}\n\n{prompt}" if role.strip() else prompt


# --- for people -----------------------------------------------------------------------


def begin_comment(record: WorkRecord, tries: int, key: str, named: str = "") -> str:
    """The one comment at the start of an attempt; at its end it names the change that is sent.

    Text from memory is kept on one line: a line of its own could name a different change.
    """
    how = f"**At work on this**, try {record.number} of {tries}, on the branch {inline(record.branch)}."
    parts = [
        how,
        "What comes of it is a pull request that waits for a review; nothing is merged without a person.",
        "**Guidance:**\n\n" + "\n".join(f"- {' '.join(line.split())}" for line in record.heard) if record.heard else "",
        "**To reject:** close this issue or take the label `ralph-working` off; what is made is then not sent.",
        named,
        marker(key),
    ]
    return "\n\n".join(filter(None, parts))


def guidance_summary(who: str, text: str, id: str = "") -> str:
    """Guidance in short for our comment; only the `id` of guidance that was not public."""
    if id:
        return f"{inline(id, 60)} of `ralph agent guidance`"
    return f"{inline_words(who, 60)}: {inline_words(redact(text), HEARD)}"


def describe_altered(author: Actor) -> str:
    """A comment withheld from the agent, for our comment."""
    return f"not a comment of {person_name(author)} that was edited since, by an unknown person: repeat it"


def done_comment(record: WorkRecord, key: str) -> str:
    """The comment at the end of a successful attempt."""
    return f"**Done:** #{record.pull} holds the change and waits for a review.{_cost(record)}\n\n{marker(key)}"


def release_comment(record: WorkRecord, tries: int, key: str) -> str:
    """The comment at the end of a failed attempt."""
    reason = inline_words(record.reason, 600)
    ended = "was broken off" if record.away else "came to nothing"
    how = f"**Try {record.number} of {tries} {ended}** (exit code {record.code}): {reason}."
    if record.final:
        then = (
            f"It is labelled `{FAILED}` and needs a person: there is no further attempt until somebody who may decide "
            f"here sets `{READY}` again, once the cause is gone."
        )
    elif record.away:
        then = "This does not count as a try; remove the label to prevent another one."
    elif record.call == "ralph-ready":
        then = "It is labelled `ralph-ready` again for a second try; remove that label to prevent it."
    else:
        then = f"The label {inline(record.call, 60)} asks for a second try; remove that label to prevent it."
    return f"{how}{_cost(record)}\n\n{then}\n\n{marker(key)}"


def _cost(record: WorkRecord) -> str:
    return f" It cost ${record.usd:.2f} so far." if record.usd else ""
