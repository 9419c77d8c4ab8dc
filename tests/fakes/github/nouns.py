"""The nouns of the fake: what GitHub would keep in its database, mutable and plain."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
START = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ACTIONS_LOGIN, ACTIONS_ID = "github-actions[bot]", 41898282
LEVELS = ("none", "read", "triage", "write", "maintain", "admin")
REPOSITORY_ID = 723_001


@dataclass(slots=True)
class Clock:
    """GitHub's clock. It never stands still between two mutations, whatever `now` is set to."""

    now: datetime = START
    last: datetime = LONG_AGO

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def present(self) -> datetime:
        """The time that headers tell; nothing is dated later than it."""
        return max(self.now.astimezone(UTC).replace(microsecond=0), self.last)

    def tick(self) -> datetime:
        """The time of a new mutation."""
        now = self.now.astimezone(UTC).replace(microsecond=0)
        self.last = max(now, self.last + timedelta(seconds=1))
        return self.last


@dataclass(slots=True, eq=False)
class Account:
    """A person or a bot."""

    id: int
    login: str
    level: str = "none"
    created_at: datetime = START

    @property
    def is_bot(self) -> bool:
        return self.login.endswith("[bot]")

    def at_least(self, level: str) -> bool:
        return LEVELS.index(self.level) >= LEVELS.index(level)


@dataclass(slots=True)
class Token:
    """What a client shows; an installation has permissions, a PAT the rights of its person within scopes."""

    value: str
    account: Account
    kind: str
    permissions: dict[str, str]
    scopes: tuple[str, ...]
    used: int = 0
    hour: int = 0  # in which `used` were used
    repository: str = ""  # owner/name of another one that it is good for, instead of this one

    def allows(self, permission: str, level: str) -> bool:
        """Whether an installation has a permission; "write" includes "read"."""
        held = self.permissions.get(permission)
        return held == "write" or (level == "read" and held == "read")

    @property
    def limit(self) -> int:
        return 1000 if self.kind == "installation" else 5000


@dataclass(slots=True, eq=False)
class App:
    """A GitHub App. What its tokens live counts by the clock of this machine, by which clients renew them."""

    id: str
    account: Account
    public_key: str
    permissions: dict[str, str]
    installation: int
    lives: timedelta = timedelta(hours=1)
    installed: bool = True
    suspended: bool = False


@dataclass(slots=True)
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True, eq=False)
class Comment:
    id: int
    number: int
    author: Account
    body: str
    created_at: datetime
    updated_at: datetime
    lag: int = 0
    edited_at: datetime | None = None


@dataclass(slots=True, eq=False)
class Event:
    """One line of an issue's history. `extra` is merged into the JSON as it is."""

    id: int
    number: int
    name: str
    actor: Account
    created_at: datetime
    commit_id: str | None = None
    label: str = ""
    assignee: Account | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    lag: int = 0


@dataclass(slots=True, eq=False)
class Review:
    id: int
    number: int
    author: Account
    state: str  # APPROVED | CHANGES_REQUESTED | COMMENTED | DISMISSED
    body: str
    sha: str
    submitted_at: datetime
    lines: tuple[tuple[int, str, int, str], ...] = ()  # id, path, line, words
    edits: dict[int, list[tuple[Account, datetime]]] = field(default_factory=dict)  # of the text (0) and of each line


@dataclass(slots=True)
class PullPart:
    """What a pull has that an issue has not. `head_sha` follows the branch while the pull is open."""

    head: str
    base: str
    head_sha: str
    base_sha: str
    merged_at: datetime | None = None
    merged_by: Account | None = None
    merge_sha: str | None = None
    draft: bool = False
    queued: str = ""  # the state of its entry in the merge queue
    tried: tuple[str, str] = ("", "")  # base and head of the last trial merge
    lag: int = 0  # GETs that still say `mergeable: null`


@dataclass(slots=True, eq=False)
class Thread:
    """An issue, or a pull when it has a `pull`."""

    id: int
    number: int
    title: str
    body: str | None
    author: Account
    created_at: datetime
    updated_at: datetime
    state: str = "open"
    state_reason: str | None = None
    labels: list[str] = field(default_factory=list)
    assignees: list[Account] = field(default_factory=list)
    closed_at: datetime | None = None
    closed_by: Account | None = None
    pull: PullPart | None = None
    deleted: bool = False
    lag: int = 0
    edits: list[tuple[Account, datetime]] = field(default_factory=list)
    pinned: bool = False
    versions: list[str | None] = field(default_factory=list)  # what it said first, and after each edit


@dataclass(slots=True)
class CheckRun:
    id: int
    sha: str
    name: str
    conclusion: str | None
    at: datetime
    suite: int = 1
    app: str = "github-actions"
    by_api: bool = False  # made by a step, as test reporters do, which GitHub puts in any suite of the commit
    title: str | None = None
    summary: str | None = None


@dataclass(slots=True)
class CommitStatus:
    id: int
    sha: str
    context: str
    state: str  # error | failure | pending | success
    at: datetime


@dataclass(slots=True, kw_only=True)
class Rules:
    """What a branch asks for before it moves, wherever that is written down."""

    required_reviews: int = 0
    required_checks: tuple[str, ...] = ()
    required_signatures: bool = False
    strict: bool = False
    dismiss_stale: bool = False


@dataclass(slots=True, kw_only=True)
class Protection(Rules):
    """The classic protection of one branch."""

    restrict_pushes: bool = False
    enforce_admins: bool = True


@dataclass(slots=True, kw_only=True)
class Ruleset(Rules):
    """An active ruleset that nobody bypasses. `branches` are patterns, `forbidden` rules without parameters."""

    id: int
    branches: tuple[str, ...]
    by_pull: bool = False
    merge_queue: bool = False
    forbidden: tuple[str, ...] = ()

    def covers(self, branch: str, default: str) -> bool:
        """Whether it is about that branch, there or not."""
        named = ("~ALL", *(("~DEFAULT_BRANCH",) if branch == default else ()))
        return any(pattern in named or _pathname(pattern).fullmatch(branch) for pattern in self.branches)


def _pathname(pattern: str) -> re.Pattern[str]:
    """As Ruby's fnmatch with FNM_PATHNAME has it: `*` stays between slashes, `**/` crosses them."""
    parts = re.split(r"(\*\*/|\*+|\?)", pattern)
    wild = {"**/": "(?:[^/]+/)*", "?": "[^/]"}
    return re.compile("".join("[^/]*" if set(part) == {"*"} else wild.get(part, re.escape(part)) for part in parts))


@dataclass(slots=True)
class Workflow:
    id: int
    path: str
    name: str
    state: str
    at: datetime


@dataclass(slots=True)
class Job:
    """One job of an attempt; `steps` are (name, conclusion). A `log` of None is gone."""

    id: int
    name: str
    conclusion: str
    steps: tuple[tuple[str, str], ...] = ()
    log: bytes | None = None


@dataclass(slots=True)
class Artifact:
    id: int
    name: str
    content: bytes
    expired: bool = False


@dataclass(slots=True)
class Run:
    id: int
    number: int
    status: str
    conclusion: str | None
    event: str
    created_at: datetime
    run_started_at: datetime
    updated_at: datetime
    path: str
    head_sha: str
    head_branch: str
    actor: Account
    attempt: int = 1
    from_fork: bool = False
    jobs: dict[int, list[Job]] = field(default_factory=dict)  # by attempt
    artifacts: list[Artifact] = field(default_factory=list)
    repository: str = ""  # owner/name of another one, whose workflow it is


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A `repository_dispatch` that was received."""

    event_type: str
    client_payload: dict[str, Any]
    at: datetime
    login: str


@dataclass(slots=True)
class Settings:
    actions_can_create_pulls: bool = True
    allow_squash_merge: bool = True
    allow_merge_commit: bool = True
    has_issues: bool = True
    archived: bool = False
    disabled: bool = False


@dataclass(slots=True)
class Request:
    """Something that was received. `status` is 0 until it is answered, and for good when it was dropped."""

    method: str
    path: str
    query: dict[str, str]
    login: str = ""
    conditional: bool = False
    transport: str = "rest"  # rest | graphql | git
    body: Any = None
    status: int = 0
    below: str = ""
    quoted: str = ""  # the path as it was sent, so that %2F is no slash

    def matches(self, method: str, pattern: str) -> bool:
        return method in ("*", self.method) and fnmatchcase(self.below, pattern)
