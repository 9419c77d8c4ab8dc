"""GitHub, or a GitHub Enterprise server: issues and pull requests by its REST API, branches by git over HTTPS.

One issue is the dashboard, which people read and tick. Its last lines hold the memory position.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ralph_mission.adapters.forges import (
    ForgeRefused,
    failed_receipt,
    find_receipt,
    is_work,
    mark,
    require_ready,
    utc_now,
)
from ralph_mission.adapters.forges.github import findings, people, reading
from ralph_mission.adapters.forges.github.api import PACE, Api, Counts, ReadCache, scope_of
from ralph_mission.adapters.forges.github.checks import require_green
from ralph_mission.adapters.forges.github.committing import VerifiedRemote
from ralph_mission.adapters.forges.github.dashboard import KEY, DashboardIssue
from ralph_mission.adapters.forges.github.effects import GitHubEffects
from ralph_mission.adapters.forges.github.limits import Absent, Doubt
from ralph_mission.adapters.forges.github.people import Heads, People
from ralph_mission.adapters.forges.github.reading import IssueWire, PullWire
from ralph_mission.adapters.forges.github.threads import RECENT, Threads
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.git.remote import HEADS, Remote, RepositoryPlace
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.lifecycle.checkboxes import hear_in_issue, hear_in_pull
from ralph_mission.mission.lifecycle.table import SET_ASIDE
from ralph_mission.mission.model import forge as model
from ralph_mission.mission.model.effects import AT_MOST_ONCE, Effect, OpenPull, Receipt
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.mission.model.mission import FailureReason

LONGEST = 60_000  # characters of a body; GitHub takes 65,536
LOOKS = (0.0, 2.0, 5.0)  # seconds before each check for the result of an unanswered mutation
HOW = {
    "show_pull": "see {page}/pull/{number}/files",
    "approve_pull": "approve {page}/pull/{number} (Files changed, Review changes, Approve)",
    "show_issue": "see {page}/issues/{number}",
    "approve_issue": "label {page}/issues/{number} with ralph:approved",
    "close_issue": "close {page}/issues/{number} as not planned",
    "complete_issue": "close {page}/issues/{number} as completed",
    "retry": "comment /ralph retry on {page}/issues/{number}",
}


class GitHubForge:
    """A repository on GitHub, for one cycle: lists are cached until an effect is done."""

    def __init__(
        self,
        git: Git,
        remote: Remote,
        api: Api,
        now: Callable[[], datetime] = utc_now,
        required_checks_only: bool = False,
    ) -> None:
        self.git, self.remote, self.api, self.now = git, remote, api, now
        self.threads = Threads(api, now)
        self.people = People(api)
        self.heads = Heads(git, remote, api.note, self.people.author)
        self.dashboard = DashboardIssue(self.threads, self.people.us)
        self._paid = False
        self.verbs = GitHubEffects(
            self.threads, self.heads, self.people, self.default_branch, self.ticks, required_checks_only
        )

    # --- who

    def identity(self) -> model.Actor:
        """The account of the token. Raises UserError."""
        return self.people.us()

    def may_approve(self, actor: model.Actor) -> bool:
        """Whether the account with this id may write. Never a bot, never ourselves. Raises UserError."""
        return self.people.may_write(actor)

    # --- branches

    def default_branch(self) -> model.Branch:
        """The branch that pull requests are merged into; its commit is fetched. Raises UserError."""
        return self.threads.once("default branch", self._default)

    def _default(self) -> model.Branch:
        name, sha = self.remote.default()
        self.remote.fetch({HEADS + name: sha})
        return model.Branch(name, sha)

    def branch(self, name: str) -> str:
        """The commit a branch points at now; "" if it does not exist. Raises UserError."""
        return self.remote.head(name)

    # --- issues and pulls

    def issues(self, state: str = "open", labels: Sequence[str] = ()) -> tuple[model.Issue, ...]:
        """Issues that have all of `labels`, lowest number first, without the dashboard. Raises UserError."""
        required = frozenset(labels)
        wires = sorted(self._issues(state, required), key=lambda wire: wire.number)
        return tuple(reading.issue(wire) for wire in wires if required <= reading.names(wire.labels))

    def _issues(self, state: str, labels: frozenset[str]) -> list[IssueWire]:
        if state == "open":
            return self._work(self.threads.open().values())
        filters = {"labels": ",".join(sorted(labels))} if labels and not any("," in name for name in labels) else {}
        name = f"issues {state} {filters.get('labels', '')}"
        return self.threads.once(name, lambda: self._work(self.threads.issues(state=state, direction="asc", **filters)))

    def _work(self, wires: Iterable[IssueWire]) -> list[IssueWire]:
        """The issues among threads, without the dashboard."""
        found = {wire.number: wire for wire in wires if wire.pull_request is None}
        return [wire for wire in found.values() if not self.dashboard.is_it(wire)]

    def issue(self, number: int) -> model.Issue:
        """An issue with its comments and label events. Raises Missing, UserError."""
        wire = self.threads.thread(number)
        if wire.pull_request is not None:
            raise Missing(f"there is no issue #{number}: it is a pull request", "look at it as a pull request")
        details = self.threads.details(number, wire.updated_at, wire.comments)
        return hear_in_issue(reading.issue(wire, details.remarks, details.events), self.ticks())

    def edits(self, number: int) -> tuple[model.BodyEdit, ...]:
        """The last change of an issue's or pull request's title and the changes of its text. Raises UserError."""
        return people.of_thread(self.api, number, pull=self.threads.thread(number).pull_request is not None)

    def own_reviews(self, number: int) -> frozenset[int]:
        """The reviews of a pull request that only their authors wrote and edited. Raises UserError."""
        return people.own_reviews(self.api, number)

    def pulls(self, state: str = "open") -> tuple[model.Pull, ...]:
        """Pull requests, lowest number first: open ones, and at least those closed in the last 7 days. Raises
        UserError."""
        wires = [
            wire
            for _, wire in sorted(self.threads.pulls().items())
            if state == "all" or (wire.state == "open") == (state == "open")
        ]
        recent = [wire for wire in wires if self._is_recent(wire)]
        default = self.default_branch()
        self.heads.bring(recent, default)
        numbers = {wire.number for wire in recent}
        return tuple(self.heads.pull(w, default) if w.number in numbers else reading.pull(w) for w in wires)

    def _is_recent(self, wire: PullWire) -> bool:
        return wire.closed_at is None or self.now() - wire.closed_at <= RECENT

    def pull(self, number: int) -> model.Pull:
        """A pull request with reviews, comments, commits and events. Raises Missing, UserError."""
        listed: PullWire | None = self.threads.memory.get("pulls", {}).get(number)
        wire = listed if listed is not None and listed.state == "open" else self.threads.pull(number)
        default = self.default_branch()
        self.heads.bring([wire], default)
        thread: IssueWire | None = self.threads.memory.get("open", {}).get(number)
        details = self.threads.details(number, wire.updated_at, thread.comments if thread else None, reviewed=True)
        pull = replace(
            self.heads.pull(wire, default, details=True),
            reviews=details.reviews,
            remarks=details.remarks,
            events=details.events,
            closed_by=self._closer(wire),
            **self._runs(wire),
        )
        return hear_in_pull(pull, self.ticks())

    def _runs(self, wire: PullWire) -> dict[str, Any]:
        """How checks stand at the head of our waiting pull request; nothing if not visible."""
        own = wire.ours and self.people.owns(wire)
        if wire.state != "open" or not own or SET_ASIDE & reading.names(wire.labels):
            return {}
        try:
            runs = findings.runs_at(self.api, wire)
            waiting = tuple(run.url for run in runs if run.conclusion == model.ACTION_REQUIRED)
            red, services, everything = findings.services_at(self.api, wire.head.sha)
            well = (*(run.conclusion in model.WELL for run in runs), *services)
            failed = (*findings.failed_at(self.api, wire.head.sha, runs), *red)
            passed, unchecked = bool(well) and all(well), everything and not well
            return {"held": waiting, "failed": failed, "passed": passed, "unchecked": unchecked}
        except (Absent, UserError):
            return {}

    def is_ready(self, number: int) -> bool:
        """Whether GitHub would merge it now, with every check of its head passed. Raises Missing, UserError."""
        wire = self.threads.pull(number)
        if wire.state != "open" or wire.mergeable_state not in ("clean", "has_hooks"):
            return False
        try:
            require_green(self.threads, wire)
        except ForgeRefused:
            return False
        return True

    def _closer(self, wire: PullWire) -> model.Actor | None:
        """The account that closed a pull request; only its issue has it."""
        if wire.state == "open":
            return None
        if wire.merged_at:
            return reading.actor(wire.merged_by) if wire.merged_by else None
        issue = self.threads.one(f"/issues/{wire.number}", f"pull request #{wire.number}")
        closer = reading.read(IssueWire, issue).closed_by
        return reading.actor(closer) if closer else None

    def forget_lists(self) -> None:
        """As in the port: the next read goes to GitHub."""
        self.threads.forget()

    def pulse(self, since: datetime, few: int = 0) -> model.Pulse:
        """Stars now; since then, pull requests merged (of the last 7 days), issues opened and closed. Raises
        UserError."""
        stars = self.people.repository().get("stargazerCount")
        found = {wire.number: wire for wire in self._work(self.threads.open().values()) if wire.created_at > since}
        many = len(found) >= few
        closed = self._closed_since(since) if many else []
        found |= {wire.number: wire for wire in closed if wire.created_at > since}
        return model.Pulse(
            stars=stars if isinstance(stars, int) else None,
            merged=tuple(pull for pull in self.pulls("closed") if pull.merged_after(since)),
            opened=len(found),
            closed=sum(wire.closed_at is not None and wire.closed_at > since for wire in closed) if many else None,
        )

    def _closed_since(self, since: datetime) -> list[IssueWire]:
        when = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = self.threads.issues(state="closed", since=when, direction="asc")
        return self.threads.once(f"closed since {when}", lambda: self._work(found))

    # --- workflows

    def workflow_runs(
        self, workflow: int = 0, event: str = "", ended: str = "", most: int = 100
    ) -> tuple[model.WorkflowRun, ...]:
        """The newest runs on the default branch, newest first. Raises UserError."""
        return findings.workflow_runs(self.api, self.default_branch().name, workflow, event, ended, most)

    def failed_jobs(self, run: model.WorkflowRun, log: bool = False) -> tuple[model.FailedJob, ...]:
        """The failed jobs of a run's attempt. Raises UserError."""
        return findings.failed_jobs(self.api, run, log)

    def test_reports(self, run: model.WorkflowRun) -> tuple[bytes, ...]:
        """A run's test reports. Raises UserError."""
        return findings.test_reports(self.api, run)

    def security_alerts(self, kind: model.AlertKind) -> tuple[model.SecurityAlert, ...] | None:
        """Open alerts of a kind; None if the token may not read them. Raises UserError."""
        return findings.security_alerts(self.api, kind, self.now())

    # --- our own things

    def anchor(self) -> Anchor | None:
        """The dashboard's memory position. Raises UserError."""
        return self.dashboard.read()

    def ticks(self) -> tuple[model.Tick, ...]:
        """The boxes that people ticked on the dashboard, by its history. Raises UserError."""
        return self.threads.once("ticks", self.dashboard.ticks)

    def delete_finished_branches(self, stopped: Callable[[], bool]) -> None:
        """As in the port."""
        if not self.api.staged:
            self.verbs.branches.pay(stopped)

    def show_dashboard(self, page: str, anchor: Anchor, quiet: bool = False) -> None:
        """Update the dashboard if it differs; as this ends a cycle, the cache is saved for the next."""
        try:
            self.dashboard.show(page, anchor, quiet)
        finally:
            self.threads.forget()
            self.close()

    def close(self) -> None:
        """Save the cache for the next cycle. Harmless at any time, and never an error."""
        if not self.api.staged:
            self.api.read_cache.save()

    def has_our_work(self) -> bool:
        """Whether an issue or pull request with our marker by our account exists, besides the dashboard."""
        return any(is_work(one.body or "") and mark(one.body or "") != KEY for one in self.threads.by(self.identity()))

    @property
    def lists_at_once(self) -> bool:
        """Never: a list may be seconds late."""
        return False

    @property
    def usual_reason(self) -> str:
        """The reason of a closing without one."""
        return "completed"

    def how(self, action: str, number: int) -> str:
        """Where a person clicks. Raises KeyError for an unknown action."""
        return HOW[action].format(page=self.api.place.page, number=number)

    @property
    def requests(self) -> Counts:
        """This cycle's API requests, without git's."""
        return self.api.counts

    def run_is_over(self, holder: str) -> bool:
        """Whether the workflow run that a claim names is certainly over; False if uncertain."""
        return is_run_over(self.api, holder)

    # --- doing

    def find(self, effect: Effect) -> Receipt | None:
        """The receipt of an existing `effect`, or None. Our pull request gets missing labels; a branch of ours
        without a commit of ours is removed.

        This settles what an ended run left behind, so a pull request is found even if no list shows it yet.
        """
        found = find_receipt(effect, self.verbs)
        if found is None and isinstance(effect, OpenPull):
            return self.verbs.find_unlisted_pull(effect)
        return found

    def perform(self, effect: Effect) -> Receipt:
        """Do it once, or adopt an existing one. A refusal is `failed`; doubt is checked, then failed or `unknown`.

        Raises ValueError for an effect without its number or marker: our bug.
        """
        require_ready(effect)
        self.threads.forget()
        try:
            if not self._paid:  # labels that an earlier cycle could not set: once, along with another effect
                self._paid = True
                self.verbs.labelling.pay()
            return self._perform_effect(effect)
        finally:
            self.threads.forget()
            for number in (getattr(effect, "issue", 0), getattr(effect, "pull", 0)):
                self.api.read_cache.drop(f"details {number}")  # outdated knowledge may cause a refusal

    def _perform_effect(self, effect: Effect) -> Receipt:
        try:
            _require_sendable(effect)
            return self.verbs.find(effect) or self._send_effect(effect)
        except ForgeRefused as refused:
            return failed_receipt(effect, refused)
        except Missing as missing:
            return failed_receipt(effect, missing.what)
        except (UserError, GitError) as error:
            return failed_receipt(effect, error, FailureReason.NOT_ATTEMPTED)

    def _send_effect(self, effect: Effect) -> Receipt:
        try:
            return self.verbs.do(effect)
        except Doubt as doubt:
            return self._looked_for(effect, str(doubt))

    def _looked_for(self, effect: Effect, why: str) -> Receipt:
        """Check whether it happened, repeatedly, as lists are late."""
        for seconds in LOOKS:
            self.api.sleep(seconds)
            self.threads.forget()
            try:
                if found := self.find(effect):
                    return found
            except UserError as problem:
                why = f"{why}; then {problem.what}"
                break
        if isinstance(effect, AT_MOST_ONCE):
            return Receipt(effect.key, "unknown", detail=why)
        return failed_receipt(effect, why, FailureReason.NOT_FOUND)


def is_run_over(api: Api, holder: str) -> bool:
    """Whether a workflow run of this API's repository is certainly over; False if uncertain."""
    # Under any name: the repository may have been renamed, and run numbers are unique.
    page = rf"{re.escape(api.place.server)}/[\w.-]+/[\w.-]+"
    found = re.match(rf"{page}/actions/runs/([0-9]{{1,20}})/attempts/([0-9]{{1,6}})(?:\s|$)", holder, re.IGNORECASE)
    if not found:
        return False
    try:
        body = api.get(f"/actions/runs/{found[1]}", fresh=True)
    except (Absent, UserError):
        return False
    attempt = body.get("run_attempt") if isinstance(body, dict) else None
    if not isinstance(attempt, int) or attempt < int(found[2]) or str(body.get("id")) != found[1]:
        return False
    return attempt > int(found[2]) or body.get("status") == "completed"


def _require_sendable(effect: Effect) -> None:
    """Texts that GitHub would refuse or store differently than they were judged are our bug; nothing is sent."""
    for text in (getattr(effect, name, "") for name in ("title", "body", "message")):
        if len(text) > LONGEST:
            raise ForgeRefused(f"the text has {len(text)} characters, more than {LONGEST}", "this is a bug of ralph")
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ForgeRefused("the text holds a character that GitHub does not take", "this is a bug of ralph")


def connect(
    git: Git,
    place: RepositoryPlace,
    *,
    now: Callable[[], datetime] = utc_now,
    note: Callable[[str], None] = lambda text: None,
    staged: bool = False,
    required_checks_only: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    pace: float = PACE,
    timeout: float = 30,
) -> GitHubForge:
    """The forge of a clone. Sends no request yet. `staged`: changes neither GitHub nor a ref or file here.

    `required_checks_only`: a merge only waits for the checks that GitHub requires.
    """
    read_cache = ReadCache(None if staged else git.common_dir / "ralph" / "github.json", scope_of(place))
    api = Api(place, read_cache, note=note, sleep=sleep, pace=pace, timeout=timeout, staged=staged)
    remote = VerifiedRemote(git, place.git_url, place.credential, keep=not staged, api=api)
    return GitHubForge(git, remote, api, now, required_checks_only)
