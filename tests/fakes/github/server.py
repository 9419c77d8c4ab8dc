"""The fake as tests hold it: everything it can be told, and what it has to say."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType

from tests.fakes.github.bare import Bare
from tests.fakes.github.faults import Fault, Response, Script
from tests.fakes.github.http import Server
from tests.fakes.github.nouns import (
    ACTIONS_LOGIN,
    CheckRun,
    Clock,
    Comment,
    CommitStatus,
    Dispatch,
    Environment,
    Label,
    Protection,
    Request,
    Run,
    Runner,
    Settings,
    Thread,
    Token,
    Workflow,
)
from tests.fakes.github.people import Person
from tests.fakes.github.state import World

USUAL = {"contents": "write", "issues": "write", "pull_requests": "write", "actions": "read", "checks": "read",
         "statuses": "read", "deployments": "read"}  # fmt: skip
LOOP = ".github/workflows/ralph-loop.yml"


class FakeGitHub:
    """A GitHub with one repository on a loopback port; see the package for its whole interface."""

    def __init__(self, bare: Path, repository: str = "harbour/slackwater", *, default_branch: str = "main",
                 private: bool = False) -> None:  # fmt: skip
        self.repository, self.bare, self.default_branch = repository, bare, default_branch
        self.owner, self.name = repository.split("/")
        self._server = Server()
        self._server.fake = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.api_url, self.git_url = f"{self.url}/api/v3", f"{self.url}/{repository}.git"
        self.world = World(self.owner, self.name, default_branch, private, self.url, Bare(bare))
        self.world.account(self.owner).level = "admin"
        self.script = Script()
        self.journal: list[Request] = []
        self.unknown: list[str] = []
        self.validate = True
        self.closing, self._close = socket.socketpair()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)

    def __enter__(self) -> FakeGitHub:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._close.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.hang_up()
        self.closing.close()
        if self.unknown and kind is None:
            raise AssertionError("asked of the fake GitHub, which does not know it:\n" + "\n".join(self.unknown))

    # --- what stands in the world

    @property
    def clock(self) -> Clock:
        return self.world.clock

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

    # --- accounts

    def person(self, login: str, permission: str | None = None) -> Person:
        """A person; the permission is set when given, or when the person is new (then "write")."""
        known = login.lower() in self.world.accounts
        person = Person(self.world, self.world.account(login))
        if permission or not known:
            person.set_permission(permission or "write")
        return person

    def bot(self, login: str) -> Person:
        """An account of type Bot; its login ends in `[bot]`."""
        if not login.endswith("[bot]"):
            raise ValueError(f"a bot's login ends in [bot]: {login}")
        return Person(self.world, self.world.account(login))

    def token(
        self, login: str = ACTIONS_LOGIN, kind: str | None = None, permissions: Mapping[str, str] | None = None,
        scopes: tuple[str, ...] = ("repo", "workflow"),
    ) -> str:  # fmt: skip
        """A new token of an account, which is made (a person: with write permission) when it is new."""
        account = (self.bot(login) if login.endswith("[bot]") else self.person(login)).login
        kind = kind or ("installation" if login.endswith("[bot]") else "pat")
        if kind not in ("installation", "pat"):
            raise ValueError(f"no such kind of token: {kind}")
        value = {"installation": "ghs_", "pat": "ghp_"}[kind] + secrets.token_hex(18)
        allowed = dict(USUAL if permissions is None else permissions)
        self.world.tokens[value] = Token(value, self.world.account(account), kind, allowed, scopes)
        return value

    def revoke(self, token: str) -> None:
        """From now on 401."""
        del self.world.tokens[token]

    # --- the repository

    def push(self, branch: str, files: Mapping[str, bytes | None], base: str = "main", message: str = "Change") -> str:
        """Somebody's commit on top of a branch, made from base when there is none; its id."""
        return self.person("somebody").push(branch, files, base, message)

    def check(self, sha: str, name: str, conclusion: str | None, required: bool = False) -> None:
        """A check run; `required` adds it to what the default branch's protection asks for."""
        with self.world.lock:
            self.world.checks.append(CheckRun(next(self.world.ids), sha, name, conclusion, self.clock.tick()))
            rules = self.world.protections.get(self.default_branch) or Protection()
            if required and name not in rules.required_checks:
                rules.required_checks += (name,)
                self.world.protections[self.default_branch] = rules

    def status(self, sha: str, context: str, state: str) -> None:
        """A commit status: error, failure, pending or success."""
        with self.world.lock:
            self.world.statuses.append(CommitStatus(next(self.world.ids), sha, context, state, self.clock.tick()))

    def protect(self, branch: str, *, required_reviews: int = 0, required_checks: tuple[str, ...] = (),
                required_signatures: bool = False, restrict_pushes: bool = False, strict: bool = False,
                dismiss_stale: bool = False, enforce_admins: bool = True) -> None:  # fmt: skip
        """Protect a branch; these rules replace what there was."""
        self.world.protections[branch] = Protection(required_reviews, tuple(required_checks), required_signatures,
                                                    restrict_pushes, strict, dismiss_stale, enforce_admins)  # fmt: skip

    def unprotect(self, branch: str) -> None:
        """No rules any more."""
        self.world.protections.pop(branch, None)

    # --- actions

    def workflow(self, path: str, name: str | None = None, state: str = "active") -> int:
        """A workflow; its id. The same path again changes it."""
        with self.world.lock:
            known = self.world.workflows.get(path)
            number = known.id if known else next(self.world.ids)
            self.world.workflows[path] = Workflow(number, path, name or Path(path).stem, state, self.clock.present())
            return number

    def workflow_run(
        self, id: int, status: str, conclusion: str | None = None, event: str = "schedule",
        created_at: datetime | None = None, run_started_at: datetime | None = None, path: str = LOOP,
        head_sha: str | None = None, head_branch: str | None = None, attempt: int = 1,
    ) -> None:  # fmt: skip
        """A run of a workflow; the same id again replaces it."""
        with self.world.lock:
            if path not in self.world.workflows:
                self.workflow(path)
            known = self.world.runs.get(id)
            created = created_at or (known.created_at if known else self.clock.present())
            self.world.runs[id] = Run(
                id, known.number if known else len(self.world.runs) + 1, status, conclusion, event, created,
                run_started_at or created, max(created, self.clock.present()), path,
                head_sha or self.branch(self.default_branch), head_branch or self.default_branch,
                self.world.account(self.owner), attempt,
            )  # fmt: skip

    def environment(self, name: str, wait_minutes: int = 0, reviewers: tuple[str, ...] = ()) -> None:
        """A deployment environment."""
        people = tuple(self.world.account(login) for login in reviewers)
        self.world.environments[name] = Environment(
            next(self.world.ids), name, wait_minutes, people, self.clock.present()
        )

    def runner(self, name: str, status: str = "online", busy: bool = False,
               labels: tuple[str, ...] = ("self-hosted",)) -> None:  # fmt: skip
        """A self-hosted runner."""
        self.world.runners.append(Runner(next(self.world.ids), name, status, busy, labels))

    # --- what was received, and what goes wrong

    def received(self, request: Request) -> None:
        """One more line in the journal."""
        with self.world.lock:
            self.journal.append(request)

    def count(self, transport: str | None = None, method: str | None = None, below: str | None = None,
              status: int | None = None) -> int:  # fmt: skip
        """How many requests were received that are like this; `below` is an fnmatch pattern."""
        return sum(
            (transport in (None, request.transport)) and (method in (None, request.method))
            and (below is None or fnmatchcase(request.below, below)) and (status in (None, request.status))
            for request in list(self.journal)
        )  # fmt: skip

    @property
    def faults(self) -> list[Fault]:
        """The faults that are still to come."""
        return self.script.faults

    def fail(self, kind: str, match: tuple[str, str] = ("POST", "/issues"), times: int = 1, after: int = 0) -> Fault:
        """Let matching requests go wrong."""
        return self.script.add(str(kind), match, times, after)

    def before(self, call: Callable[[Request], object]) -> Callable[[], None]:
        """A hook ahead of every request; returns what removes it."""
        return self.script.before(call)

    def after(self, call: Callable[[Request, Response], object]) -> Callable[[], None]:
        """A hook after every request; returns what removes it."""
        return self.script.after(call)

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
