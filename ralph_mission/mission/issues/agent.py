"""The issue agent: claims and tries the next ready issue, and opens a pull request or returns its label.

Memory is only locked during transactions; between them the issue is claimed by its record, by a lock that ends with
this process, and visibly by its label. After a crash, the next process resumes from the record.

`ralph run` takes all ready issues at once, as stories on one branch: they are read before it, and a comment on each of
them says how it ended. Who may ask for an issue, which texts count and whose turn it is are the same, and so are the
labels: while a run has an issue, `ralph work` leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from typing import Protocol

from ralph_mission.errors import INTERRUPTED, UserError
from ralph_mission.loop.hats import ERROR_PAUSE, IDLE_PAUSE, ISSUE_PAUSE
from ralph_mission.loop.model.spec import RunLimits
from ralph_mission.loop.model.state import Guidance, Prd, UserStory
from ralph_mission.loop.stories.checklist import parse_checklist
from ralph_mission.mission import execute
from ralph_mission.mission.coder import conditions
from ralph_mission.mission.findings.identity import recent_pulls
from ralph_mission.mission.issues import finish, tasks
from ralph_mission.mission.issues import record as work
from ralph_mission.mission.issues.finish import carry_out_plan, note_record
from ralph_mission.mission.issues.record import KIND, WORK_RULES
from ralph_mission.mission.issues.tasks import READY, WORKING, GuidanceNote, WorkTask
from ralph_mission.mission.lifecycle import approval, ownership
from ralph_mission.mission.lifecycle.approval import may_decide
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult, BaseChecks, broken_job, failed_job
from ralph_mission.mission.model.effects import Comment, EditComment, Effect, Label, marker
from ralph_mission.mission.model.forge import Branch, Issue
from ralph_mission.mission.model.ledger import WorkRecord, key_of
from ralph_mission.mission.model.mission import Action
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals.wording import person_name
from ralph_mission.mission.transaction import (
    BRIEF,
    Busy,
    ExecutionRequest,
    Open,
    Sleep,
    Transaction,
    execute_plan,
    run_transaction,
)
from ralph_mission.safety.paths import branch_name_ok
from ralph_mission.safety.secrets import redact, without
from ralph_mission.safety.text import inline
from ralph_mission.values import dataclass

HERE = "Somebody on the machine that works on it"
SHORTEST = 60.0  # seconds needed to begin an attempt
USAGE = (2, 64)  # exit codes of mistakes that waiting cannot fix
Skipped = tuple[tuple[int, str], ...]
"""Ready issues that are not taken, and why."""


class IssueCoder(Protocol):
    """Runs an agent on an issue, in its own clone."""

    def why_not(self, agent: str) -> str:
        """Why this agent ("" for the default) cannot run here, or ""."""

    def conventions(self, base_sha: str) -> str:
        """The repository's own guides at a commit, as a section of a prompt, or ""."""

    def look_at_base(self, base_sha: str) -> BaseChecks:
        """The repository's own checks on a commit: cached, or by running them, which may take long."""

    def work(self, job: AgentJob, withdrawn: Callable[[], bool]) -> AgentResult:
        """Run the loop to its end, or resume one whose runner is gone; between sessions it ends once `withdrawn`. A
        problem, also an interrupt, is a result."""

    def spent(self, record: WorkRecord) -> float:
        """The cost of an attempt whose runner is gone, in USD: as its sessions reported; if unknown, everything
        reserved if its agent reports prices."""

    def tidy(self, issues: Collection[int]) -> None:
        """Delete the work on all other issues."""


class GuidanceQueue(Protocol):
    """People's guidance for the next session on this machine."""

    def pending(self) -> Sequence[Guidance]:
        """Undelivered guidance, oldest first."""

    def acknowledge(self, ids: Iterable[str]) -> None:
        """Mark as delivered."""


@dataclass(frozen=True, slots=True)
class IssueWorker:
    """The issue agent's dependencies. `say` reports to a person; `role` is a person's text on how to work on issues.

    `agents` are those that a label may name; `only` is the one issue that may be taken, 0 for any; `seconds` are left.
    `checked`: whether there are checks; `base`: their results on the last examined commit. `tend` acts on people's
    comments on open pull requests and reports the results. `announce_pause` tells watchers of one, in seconds.
    """

    opened: Open
    hands: IssueCoder
    sleep: Sleep
    say: Callable[[str], None]
    now: Callable[[], datetime]
    usd_per_issue: float
    role: str = ""
    agents: tuple[str, ...] = ()
    store: GuidanceQueue | None = None
    only: int = 0
    seconds: float = inf
    checked: bool = False
    base: tuple[str, BaseChecks] = ("", BaseChecks())
    tend: Callable[[], Iterable[str]] = tuple
    announce_pause: Callable[[float], object] = str

    def rest(self, seconds: float) -> None:
        """The pause between two rounds."""
        self.announce_pause(seconds)
        self.sleep(seconds)


@dataclass(frozen=True, slots=True)
class WorkReport:
    """The result of one round. `outcome`: idle, lost, paused, held, done, waiting, failed, withdrawn, or an open state
    that could not be left. `skipped` are ready issues that were not taken, and why; `settled` is dead runners' finished
    work.
    """

    outcome: str
    code: int = 0
    record: WorkRecord | None = None
    title: str = ""
    reason: str = ""
    played: AgentResult | None = None
    skipped: tuple[tuple[int, str], ...] = ()
    settled: tuple[tuple[int, str], ...] = ()


def keep_working(worker: IssueWorker, limits: RunLimits | None = None) -> WorkReport:
    """Work on issue after issue, until interrupted or until the total `limits` are reached.

    Raises UserError for wrong usage or settings, which waiting cannot fix.
    """
    reported: set[tuple[int, str]] = set()
    began, sessions, usd = worker.now(), 0, 0.0
    while True:
        took = (worker.now() - began).total_seconds()
        if limits and (over := _over(limits, worker.usd_per_issue, sessions, usd, took)):
            return WorkReport("held", 2, reason=over)
        budget = limits.usd - usd if limits and limits.usd is not None else worker.usd_per_issue
        seconds = limits.runtime - took if limits else inf
        try:
            report = work_once(replace(worker, usd_per_issue=min(worker.usd_per_issue, budget), seconds=seconds))
        except UserError as problem:
            if problem.exit_code in USAGE:
                raise
            worker.say(f"{problem.what}; {problem.next_step}; trying again in {ERROR_PAUSE:.0f} s")
            worker.rest(ERROR_PAUSE)
            continue
        for line in work_lines(
            replace(report, skipped=tuple(issue for issue in report.skipped if issue not in reported))
        ):
            worker.say(line)
        reported |= set(report.skipped)
        if report.played:
            sessions, usd = sessions + report.played.sessions, usd + report.played.usd
        if report.code == INTERRUPTED:
            return report
        worker.rest(_pause(report))


def _pause(report: WorkReport) -> float:
    """Seconds until the next round: longer if the agent could not be reached."""
    if report.record is None or (report.played and report.played.away):
        return IDLE_PAUSE
    return ERROR_PAUSE if report.code else ISSUE_PAUSE


def _over(limits: RunLimits, per_issue: float, sessions: int, usd: float, seconds: float) -> str:
    """The total limit that is reached, or too near for another attempt."""
    if sessions >= limits.iterations:
        return f"{sessions} sessions in all"
    if limits.usd is not None and not schedule.enough(limits.usd - usd, per_issue):
        return f"${usd:.2f} in all"
    return f"{seconds:.0f} s in all" if limits.runtime - seconds < min(SHORTEST, limits.runtime) else ""


def work_once(worker: IssueWorker) -> WorkReport:
    """Finish dead runners' work, act on people's comments on open pull requests, then work on one issue if one is
    ready. Raises UserError."""
    try:
        settled = tuple(finish.leftovers(worker.opened, worker.sleep, worker.hands.spent))
    except Busy as busy:
        return WorkReport("lost", reason=f"{busy.what}; {busy.next_step}")
    for line in worker.tend():
        worker.say(line)
    with ExitStack() as stack:
        claim = _take_issue(worker, stack)
        while claim.unknown:  # no lock is held while the checks run
            base = worker.hands.look_at_base(claim.unknown)
            claim = _take_issue(replace(worker, base=(claim.unknown, base)), stack)
        if claim.record is None or claim.job is None:
            return WorkReport(
                claim.outcome, claim.code, None, reason=claim.reason, skipped=claim.skipped, settled=settled
            )
        played = _work_on(worker, claim.record, claim.job)
        if worker.store and played.sessions and not played.away:  # otherwise they may be unread
            with suppress(UserError, OSError):  # at worst it is delivered twice; no work is lost
                worker.store.acknowledge(claim.words)
        record = finish.finish_work(worker.opened, worker.sleep, claim.record, played)
    code = played.code or int(record.state not in ("done", "withdrawn"))
    code = 0 if record.state == "withdrawn" and code != INTERRUPTED else code
    return WorkReport(record.state, code, record, claim.job.title, record.reason, played, claim.skipped, settled)


def work_lines(report: WorkReport) -> Iterator[str]:
    """A round for people."""
    for number, state in report.settled:
        yield f"#{number}, which a runner had left: {state}"
    for number, why in report.skipped:
        yield f"#{number} is not taken: {why}"
    if report.record is None:
        yield {"idle": "no issue to work on", "paused": "paused"}.get(report.outcome, report.reason)
    elif report.outcome == "done":
        yield f"#{report.record.issue} {report.title}: done, pull request #{report.record.pull}"
    else:
        why = f" ({report.reason})" if report.reason else ""
        yield f"#{report.record.issue} {report.title}: exit code {report.code}, {report.outcome}{why}"


def _take_issue(worker: IssueWorker, stack: ExitStack) -> TakenIssue:
    try:
        claim = run_transaction(worker.opened, worker.sleep, partial(_take_next, worker, stack), BRIEF)
        if claim.record and claim.job is None:
            run_transaction(worker.opened, worker.sleep, partial(_cancel_try, claim.record), BRIEF)
        return claim
    except Busy as busy:
        return TakenIssue("lost", reason=f"{busy.what}; {busy.next_step}")


# --- taking ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakenIssue:
    """The claimed issue, or why there is none; a record without a job is of an attempt that never began.

    `words` are the ids of local guidance passed to it. `unknown`: a commit whose checks have to be run first.
    """

    outcome: str
    record: WorkRecord | None = None
    job: AgentJob | None = None
    reason: str = ""
    skipped: tuple[tuple[int, str], ...] = ()
    code: int = 0
    words: tuple[str, ...] = ()
    unknown: str = ""


def _take_next(worker: IssueWorker, stack: ExitStack, tx: Transaction) -> TakenIssue:
    stack.pop_all().close()  # of an attempt that somebody else claimed first
    if execute.is_stopped(tx.ports):
        return TakenIssue("paused")
    usd = schedule.allowance(tx.memory.header, tx.now, tx.settings.limits, worker.usd_per_issue)
    skipped: list[tuple[int, str]] = []
    for issue in _list_due(worker, tx):
        task, why = look_at(tx, issue, worker.agents)
        if task and task.agent:
            why = worker.hands.why_not(task.agent)
        if not why and not schedule.enough(usd, worker.usd_per_issue):
            why = schedule.describe_spent(tx.memory.header, tx.now, tx.settings.limits)
            return TakenIssue("held", reason=why, skipped=tuple(skipped), code=1)
        if task and not why and not task.agent and (absent := worker.hands.why_not("")):
            return TakenIssue("held", reason=absent, skipped=tuple(skipped), code=1)
        if task and not why:
            sha = tx.ports.forge.default_branch().sha
            if worker.checked and worker.base[0] != sha:
                return TakenIssue("idle", skipped=tuple(skipped), unknown=sha)
            if red := conditions.why_not_asked(worker.base[1], _task_text(worker, tx, task)):
                why = _tell_red(tx, task.issue, red)
        if not why and not stack.enter_context(tx.store.at_work(issue.number)):
            why = "another process here is at it"
        if why or task is None:
            skipped.append((issue.number, why))
            continue
        claimed = _claim_issue(worker, tx, task, usd)
        if claimed.outcome != "refused":
            return replace(claimed, skipped=tuple(skipped))
        skipped.append((issue.number, claimed.reason))
    return TakenIssue("idle", skipped=tuple(skipped))


def _list_due(worker: IssueWorker, tx: Transaction) -> list[Issue]:
    """Issues that request work, in order; or the named one. Raises Missing if it does not exist."""
    if worker.only:
        return [tx.ports.forge.issue(worker.only)]
    asked_for = list_ready(tx, worker.agents)
    worker.hands.tidy({*tx.state.working, *(issue.number for issue in asked_for)})
    return asked_for


def list_ready(tx: Transaction, agents: Collection[str] = ()) -> list[Issue]:
    """Open issues that are labelled ready, or with one of the `agents`, in order."""
    asked_for = [issue for issue in tx.ports.forge.issues("open") if tasks.requesting_labels(issue, agents)]
    records = {issue.number: tx.work_record(issue.number) for issue in asked_for}
    return sorted(asked_for, key=lambda issue: tasks.turn_of(issue, records[issue.number]))


def look_at(
    tx: Transaction, issue: Issue, agents: Collection[str] = (), also: Collection[int] = ()
) -> tuple[WorkTask | None, str]:
    """An issue's task, or why it has none. `also`: issues that are worked on before it, so that it may need them."""
    forge, us = tx.ports.forge, tx.ports.forge.identity().id
    if issue.number in tx.state.working:
        return None, "another runner is at it"
    pulls = recent_pulls(forge.pulls(), us)
    before = tx.work_record(issue.number)
    if why := tasks.why_not_yet(issue, before, tx.state.missions, pulls):
        return None, why
    whole = forge.issue(issue.number)
    if tasks.is_given_up(before) and not tasks.is_asked_anew(whole):
        return None, f"it had its {tasks.TRIES} tries: to ask for more, take the label off and set it again"
    open_now = {one.number for one in forge.issues("open")} if (needs := tasks.find_needs(whole)) else set[int]()
    if waits := [number for number in needs if number in open_now and number not in also]:
        return None, f"it needs #{waits[0]}, which is still open"
    owners, may = tx.settings.owners, forge.may_approve
    edits = forge.edits(issue.number) if owners else ()
    people = tasks.find_participants(whole, us, agents, edits)
    authorised = frozenset(person.id for person in people if may_decide(person, owners, may))
    why = tasks.why_not(whole, us, authorised, agents, edits)
    return None if why else tasks.read_task(whole, us, authorised, agents, before, some=bool(owners)), why


def _claim_issue(worker: IssueWorker, tx: Transaction, task: WorkTask, usd: float) -> TakenIssue:
    issue, base = task.issue, tx.ports.forge.default_branch().sha
    guides = worker.hands.conventions(base)
    pending = tuple(worker.store.pending()) if worker.store else ()
    task = replace(task, words=(*task.words, *(GuidanceNote(HERE, word.text, id=word.id) for word in pending)))
    before = tx.work_record(issue.number)
    at = Branch(work.free_branch(issue, before, partial(_stands, tx)), base)
    record = work.begin_try(task, before, at, tx.store.holder(), usd, tx.now)
    plan = work.work_proposal(record, issue, work.begin_effects(record, task.others))
    done = carry_out_plan(tx, record, plan, usd)
    if done.refused:  # nothing was begun: another issue may be taken
        return TakenIssue("refused", reason=f"rules refuse the comment that would follow: {', '.join(done.rules)}")
    if done.paused:
        return TakenIssue("paused")
    if done.execution.cut:
        announced = any(not receipt.not_attempted for receipt in done.execution.receipts.values())
        return TakenIssue("paused", work.cancel_try(record, before, announced))
    red = conditions.tolerated(worker.base[1], _task_text(worker, tx, task, record.reason))
    sections = (_task_text(worker, tx, task, record.reason), conditions.warn_of_red(red), guides)
    prompt = without("\n".join(filter(None, sections)), tx.secrets)
    title = tasks.issue_title(issue)
    return TakenIssue(
        "taken",
        done.record,
        AgentJob(
            issue.number,
            title,
            base,
            prompt,
            usd,
            worker.seconds,
            record.branch,
            agent=task.agent,
            red=red,
            attempt=record.number,
            subject=approval.content_hash(issue.title, issue.body),
        ),
        words=tuple(word.id for word in pending),
    )


def _cancel_try(record: WorkRecord, tx: Transaction) -> None:
    """Record that a claimed attempt never began, and release its reserved money."""
    found = tx.work_record(record.issue)
    if found and (found.state, found.tries) == ("working", record.tries):
        note_record(tx, record, schedule.settle_reserve(found.reserved, found.at, 0.0, tx.now))


def _stands(tx: Transaction, branch: str) -> bool:
    """Whether a branch of this name exists, or had a pull request: our push would be refused."""
    forge = tx.ports.forge
    heads = [pull.head for pull in forge.pulls("all")]
    return branch in heads or not branch_name_ok(branch, heads) or bool(forge.branch(branch))


def _task_text(worker: IssueWorker, tx: Transaction, task: WorkTask, failed: str = "") -> str:
    words = tuple((word.who, word.text) for word in task.words)
    return tasks.issue_prompt(task.issue, task.remarks, tx.memory.learnings, worker.role, failed, words)


def _tell_red(tx: Transaction, issue: Issue, why: str) -> str:
    """Say on an issue why no agent starts, in one comment that is edited if the reason changes; returns it."""
    key = key_of("work", str(issue.number), "red base")
    text = conditions.held_comment(why, key)
    us, whole = tx.ports.forge.identity().id, tx.ports.forge.issue(issue.number)
    ours = ownership.own_remarks(whole, key, us)
    effect: Comment | EditComment = Comment(key, issue.number, text)
    if ours:
        effect = EditComment(key_of(key, text), issue.number, ours[-1].id, text)
    if not ours or ours[-1].body.strip() != text.strip():
        title = f"#{issue.number} {tasks.issue_title(issue)}, held by its checks"
        plan = Proposal(key_of(key, text), Action.WORK, work.KIND, title, (effect,))
        execute_plan(
            tx, ExecutionRequest(f"work-{issue.number}", f"issue {issue.number}: held", rules=WORK_RULES), plan
        )
    return why


def _work_on(worker: IssueWorker, record: WorkRecord, job: AgentJob) -> AgentResult:
    if record.state != "working":
        return failed_job(job, record.reason, code=record.code)
    worker.say(f"#{job.number} {job.title}: try {record.number} of {tasks.TRIES}")
    if job.usd < worker.usd_per_issue:
        worker.say(f"it may cost ${job.usd:.2f} of the ${worker.usd_per_issue:.2f}: limits.usd_per_day leaves no more")
    try:
        return worker.hands.work(job, partial(finish.is_taken_back, worker.opened, record))
    except Exception as error:  # whatever it is, the issue is released and the next one is taken
        worker.say(f"#{job.number}: failed unexpectedly ({type(error).__name__}: {error})")
        return broken_job(job, error)


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
