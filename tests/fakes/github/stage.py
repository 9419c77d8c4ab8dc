"""The fake as a stage: what stands in the world, and what a test sets there without being anybody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.fakes.github.actions import pulls, refs
from tests.fakes.github.nouns import (
    Artifact,
    CheckRun,
    Clock,
    Comment,
    CommitStatus,
    Dispatch,
    Job,
    Label,
    Protection,
    Ruleset,
    Run,
    Settings,
    Thread,
    Workflow,
)
from tests.fakes.github.pushes import FORBIDDEN
from tests.fakes.github.state import World

LOOP = ".github/workflows/ralph-loop.yml"


class FakeRepository:
    """The world and its one repository; see the package for the whole interface."""

    world: World

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def default_branch(self) -> str:
        return self.world.default_branch

    @property
    def settings(self) -> Settings:
        return self.world.settings

    @property
    def threads(self) -> dict[int, Thread]:
        return self.world.threads

    @property
    def labels(self) -> dict[str, Label]:
        return self.world.labels

    @property
    def comments(self) -> dict[int, Comment]:
        return self.world.comments

    @property
    def dispatches(self) -> list[Dispatch]:
        return self.world.dispatches

    def issue(self, number: int) -> Thread:
        """What is really there under a number."""
        return self.world.threads[number]

    pull = issue

    def branch(self, name: str) -> str:
        """The commit at a branch, "" when there is none."""
        return self.world.bare.branch(name)

    # --- branches and what they ask for

    def check(self, sha: str, name: str, conclusion: str | None, required: bool = False, **more: Any) -> None:
        """A check run; `required` adds it to what the default branch's protection asks for.

        `more`: its app, title and summary, and its suite; that of a workflow run has the run's id. It is one of its
        jobs, unless it was made `by_api`.
        """
        with self.world.lock:
            self.world.checks.append(CheckRun(next(self.world.ids), sha, name, conclusion, self.clock.tick(), **more))
            rules = self.world.protections.get(self.default_branch) or Protection()
            if required and name not in rules.required_checks:
                rules.required_checks += (name,)
                self.world.protections[self.default_branch] = rules

    def status(self, sha: str, context: str, state: str) -> None:
        """A commit status: error, failure, pending or success."""
        with self.world.lock:
            self.world.statuses.append(CommitStatus(next(self.world.ids), sha, context, state, self.clock.tick()))

    def protect(self, branch: str, **rules: Any) -> None:
        """Protect a branch; these rules (fields of Protection) replace what there was."""
        self.world.protections[branch] = Protection(**rules)

    def unprotect(self, branch: str) -> None:
        """No rules any more."""
        self.world.protections.pop(branch, None)

    def ruleset(self, *branches: str, required_reviews: int | None = None, **rules: Any) -> int:
        """One more ruleset (fields of Ruleset); its id."""
        if unknown := set(rules.get("forbidden", ())) - set(FORBIDDEN):
            raise ValueError(f"the fake has no such rule: {', '.join(sorted(unknown))}")
        rules |= {"by_pull": required_reviews is not None, "required_reviews": required_reviews or 0}
        with self.world.lock:
            made = Ruleset(id=next(self.world.ids), branches=branches, **rules)
            self.world.rulesets.append(made)
            return made.id

    def leave_queue(self, number: int, reason: str = "") -> None:
        """The merge queue is done with a pull: merged, or removed for a reason ("failed_checks")."""
        with self.world.lock:
            pulls.leave_queue(
                self.world, self.world.account("github-merge-queue[bot]"), self.world.threads[number], reason
            )

    def rename_default(self, new: str) -> None:
        """The owner gives the default branch another name."""
        with self.world.lock:
            refs.rename_default(self.world, self.world.account(self.owner), new)

    # --- actions

    def workflow(self, path: str, name: str | None = None, state: str = "active") -> int:
        """A workflow; its id. The same path again changes it."""
        with self.world.lock:
            known = self.world.workflows.get(path)
            number = known.id if known else next(self.world.ids)
            self.world.workflows[path] = Workflow(number, path, name or Path(path).stem, state, self.clock.present())
            return number

    def workflow_run(
        self,
        id: int,
        status: str,
        conclusion: str | None = None,
        event: str = "schedule",
        created_at: datetime | None = None,
        run_started_at: datetime | None = None,
        path: str = LOOP,
        head_sha: str | None = None,
        head_branch: str | None = None,
        attempt: int = 1,
        from_fork: bool = False,
        repository: str = "",
    ) -> None:
        """A run of a workflow; the same id again replaces it, and keeps its jobs."""
        with self.world.lock:
            if path not in self.world.workflows:
                self.workflow(path)
            known = self.world.runs.get(id)
            created = created_at or (known.created_at if known else self.clock.present())
            self.world.runs[id] = Run(
                id,
                known.number if known else len(self.world.runs) + 1,
                status,
                conclusion,
                event,
                created,
                run_started_at or created,
                max(created, self.clock.present()),
                path,
                head_sha or self.branch(self.default_branch),
                self._branch_at(head_sha) if head_branch is None else head_branch,
                self.world.account(self.owner),
                attempt,
                from_fork,
                known.jobs if known else {},
                known.artifacts if known else [],
                repository,
            )

    def _branch_at(self, sha: str | None) -> str:
        """The branch of the open pull request at this commit, else the default one."""
        pulls = (one.pull for one in self.world.threads.values() if one.pull and one.state == "open")
        return next((pull.head for pull in pulls if sha and self.branch(pull.head) == sha), self.default_branch)

    def workflow_job(
        self,
        run: int,
        name: str,
        conclusion: str = "failure",
        steps: Sequence[tuple[str, str]] = (),
        log: bytes | None = None,
        attempt: int = 1,
    ) -> int:
        """One more job of an attempt of a run; its id."""
        with self.world.lock:
            made = Job(next(self.world.ids), name, conclusion, tuple(steps), log)
            self.world.runs[run].jobs.setdefault(attempt, []).append(made)
            return made.id

    def artifact(self, run: int, name: str, content: bytes, expired: bool = False) -> int:
        """Something that a run kept: an archive's bytes; its id."""
        with self.world.lock:
            made = Artifact(next(self.world.ids), name, content, expired)
            self.world.runs[run].artifacts.append(made)
            return made.id

    # --- how far it lags behind

    @property
    def list_lag(self) -> int:
        return self.world.list_lag

    @list_lag.setter
    def list_lag(self, requests: int) -> None:
        self.world.list_lag = requests

    @property
    def mergeable_lag(self) -> int:
        return self.world.mergeable_lag

    @mergeable_lag.setter
    def mergeable_lag(self, requests: int) -> None:
        self.world.mergeable_lag = requests

    @property
    def page_size_cap(self) -> int:
        return self.world.page_size_cap

    @page_size_cap.setter
    def page_size_cap(self, size: int) -> None:
        self.world.page_size_cap = size
