"""The fake's world: everything GitHub would keep in its database, and the one lock around it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from tests.fakes.github.bare import Bare
from tests.fakes.github.nouns import (
    ACTIONS_ID,
    ACTIONS_LOGIN,
    START,
    Account,
    App,
    CheckRun,
    Clock,
    Comment,
    CommitStatus,
    Dispatch,
    Event,
    Label,
    Protection,
    Review,
    Rules,
    Ruleset,
    Run,
    Settings,
    Thread,
    Token,
    Workflow,
)


@dataclass(slots=True, eq=False)
class World:
    """Everything that is kept, and the one lock around it."""

    owner: str
    name: str
    default_branch: str
    private: bool
    url: str
    bare: Bare
    lock: threading.RLock = field(default_factory=threading.RLock)
    clock: Clock = field(default_factory=Clock)
    settings: Settings = field(default_factory=Settings)
    accounts: dict[str, Account] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)  # by the number of the app
    tokens: dict[str, Token] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)  # by lower-case name
    threads: dict[int, Thread] = field(default_factory=dict)
    reactions: set[tuple[str, str]] = field(default_factory=set)  # ours, by node and content
    comments: dict[int, Comment] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    reviews: dict[int, Review] = field(default_factory=dict)
    checks: list[CheckRun] = field(default_factory=list)
    statuses: list[CommitStatus] = field(default_factory=list)
    protections: dict[str, Protection] = field(default_factory=dict)
    rulesets: list[Ruleset] = field(default_factory=list)
    workflows: dict[str, Workflow] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)  # logs and archives, by the end of their address
    dispatches: list[Dispatch] = field(default_factory=list)
    alerts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by kind; none of a kind that is off
    ids: Iterator[int] = field(default_factory=lambda: count(3001))
    list_lag: int = 0
    mergeable_lag: int = 0
    page_size_cap: int = 100
    heads: dict[str, str] = field(default_factory=dict)  # as they were last seen
    pushed_at: datetime = START

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def api(self) -> str:
        """The address of the API."""
        return f"{self.url}/api/v3"

    @property
    def here(self) -> str:
        """The address of the repository in the API."""
        return f"{self.api}/repos/{self.full_name}"

    @property
    def page(self) -> str:
        """The address of the repository for people."""
        return f"{self.url}/{self.full_name}"

    def account(self, login: str) -> Account:
        """The account of that name; made, without rights, when there is none."""
        if login.lower() not in self.accounts:
            number = ACTIONS_ID if login == ACTIONS_LOGIN else 100_000 + next(self.ids)
            self.accounts[login.lower()] = Account(number, login)
        return self.accounts[login.lower()]

    def rulesets_of(self, branch: str) -> list[Ruleset]:
        """The rulesets that are about a branch."""
        return [rules for rules in self.rulesets if rules.covers(branch, self.default_branch)]

    def rules_of(self, branch: str) -> list[Rules]:
        """All that is asked of a branch: its own protection and its rulesets."""
        own = self.protections.get(branch)
        return [*([own] if own else []), *self.rulesets_of(branch)]

    def number(self) -> int:
        """The next number of the one sequence for issues and pulls."""
        return max(self.threads, default=0) + 1

    def label(self, name: str) -> Label:
        """The label of that name, made when there is none; case does not count."""
        return self.labels.setdefault(name.lower(), Label(next(self.ids), name))

    def of(self, number: int) -> list[Comment]:
        """The comments of an issue or pull, oldest first."""
        return [comment for comment in self.comments.values() if comment.number == number]
