"""Ready issues as the list of one run: they are read before it, and a comment on each of them says how it ended.

`ralph work` makes a pull request of each issue; here they are stories on one branch. Who may ask for an issue, which
texts count and whose turn it is are the same, and so are the labels: while a run has an issue, `ralph work` leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ralph_mission.loop.model.state import Prd, UserStory
from ralph_mission.loop.stories.checklist import parse_checklist
from ralph_mission.mission.issues import tasks
from ralph_mission.mission.issues.agent import list_ready, look_at
from ralph_mission.mission.issues.record import KIND, WORK_RULES
from ralph_mission.mission.issues.tasks import READY, WORKING, WorkTask
from ralph_mission.mission.model.effects import Comment, Effect, Label, marker
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.mission import Action
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals.wording import person_name
from ralph_mission.mission.transaction import ExecutionRequest, Transaction, execute_plan
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline

Skipped = tuple[tuple[int, str], ...]
"""Ready issues that are not taken, and why."""


def take_issues(stack: ExitStack, tx: Transaction) -> tuple[Prd, Skipped]:
    """The issues that are ready, as stories, labelled as worked on; `stack` keeps other processes here from them."""
    stack.pop_all().close()  # of an attempt that somebody else was ahead of
    ready: list[WorkTask] = []
    skipped: list[tuple[int, str]] = []
    for issue in _sort_by_needs(list_ready(tx)):
        task, why = look_at(tx, issue, also=[one.issue.number for one in ready])
        if task and not stack.enter_context(tx.store.at_work(issue.number)):
            task, why = None, "another process here is at it"
        if task:
            ready.append(task)
        else:
            skipped.append((issue.number, why))
    if ready and not _carry_out(tx, "they are taken on", [_label(task.issue, add=(WORKING,)) for task in ready]):
        return Prd(), tuple((task.issue.number, "it could not be labelled") for task in ready)
    stories = tuple(_story(task, place) for place, task in enumerate(ready, 1))
    return Prd("", "", f"The issues that are labelled {READY}.", stories), tuple(skipped)


def answer_issue(story: UserStory, branch: str, tx: Transaction) -> bool:
    """Say on an open issue that is done where its change is; give another one back. Whether all of it was sent."""
    issue = tx.ports.forge.issue(int(story.id.removeprefix("#")))
    label = _label(issue, remove=(WORKING, READY) if story.passes else (WORKING,))
    taken = sum(event.added and event.label == WORKING for event in issue.events)  # the same once the label is off
    key = key_of("run", str(issue.number), "done", str(taken))
    sentence = f"**Done** by `ralph run` on the branch {inline(branch)}. Close this issue once the change is merged."
    comment = Comment(key, issue.number, f"{sentence}\n\n{marker(key)}")
    if story.passes and issue.state == "open":
        return _carry_out(tx, f"{story.id} is done", [label, comment])
    return _carry_out(tx, f"{story.id} is {'closed' if story.passes else 'given back'}", [label])


def _sort_by_needs(issues: Sequence[Issue]) -> list[Issue]:
    """The same, each after those of them that it needs; a circle as it comes."""
    unsorted, ordered = list(issues), list[Issue]()
    while unsorted:
        numbers = {issue.number for issue in unsorted}
        free = next((issue for issue in unsorted if numbers.isdisjoint(tasks.find_needs(issue))), unsorted[0])
        unsorted.remove(free)
        ordered.append(free)
    return ordered


def _story(task: WorkTask, place: int) -> UserStory:
    issue = task.issue
    comments = (f"{person_name(remark.author)}: {remark.body}" for remark in task.remarks)
    texts = (issue.body, *(f"{word.who}: {word.text}" for word in task.words), *comments)
    return UserStory(
        f"#{issue.number}",
        tasks.issue_title(issue),
        redact("\n\n".join(text.strip() for text in texts if text.strip())),
        tuple(redact(story.title) for story in parse_checklist(issue.body).stories),
        place,
        needs=tuple(f"#{number}" for number in tasks.find_needs(issue)),
    )


def _label(issue: Issue, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> Label:
    """A change of its labels; its key counts how often the issue was taken and given back, by the forge's own list."""
    slot = sum(event.label == WORKING for event in issue.events)
    return Label(key_of("run", str(issue.number), "label", str(slot)), issue.number, add=add, remove=remove)


def _carry_out(tx: Transaction, what: str, effects: Sequence[Effect]) -> bool:
    """Whether nothing spoke against it, or failed."""
    title = f"issues of this run: {what}"
    plan = Proposal(effects[0].key, Action.WORK, KIND, title, tuple(effects))
    done = execute_plan(tx, ExecutionRequest("run-issues", title, rules=WORK_RULES), plan)
    return not done.refused and not done.cut and all(one.status != "failed" for one in done.receipts.values())
