"""People, and what they and we have on the forge: issues, pulls, branches, runs of workflows, alerts, what was written.

Times are timezone-aware and in UTC. The text of an alert is untrusted, and never contains the value of a secret.

A public post is a text for each network, and a small picture of what it is about. It is made once, before
anything is judged: what is judged is what is sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ralph_mission.values import dataclass

PASSED = frozenset({"success"})
FAILED = frozenset({"failure", "timed_out", "startup_failure"})
WELL = frozenset({"success", "neutral", "skipped"})
"""How a check that does not stand in the way of a merge ends."""
ACTION_REQUIRED = "action_required"
"""The conclusion of a run that waits until a person lets it start."""
OWN = frozenset(
    f".github/workflows/ralph-{name}.yml" for name in ("loop", "work", "review", "publish", "fleet", "fleet-cycle")
)
"""The workflows that `ralph init` writes. Events of a pull request start some of them on the commit to be merged."""
AlertKind = Literal["dependency", "code", "secret"]
"""A vulnerable package, a code scanning result, a secret in the history."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something. Identity is `id`; the login is only for showing."""

    id: int
    login: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class ThreadComment:
    """A comment on an issue or pull, by anyone; its body is untrusted."""

    id: int
    author: Actor
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """A label set (`added`) or taken off, with who and when, from the forge's event log."""

    label: str
    actor: Actor
    at: datetime
    added: bool = True


@dataclass(frozen=True, slots=True)
class BodyEdit:
    """Who changed what an issue says, and when."""

    actor: Actor
    at: datetime


@dataclass(frozen=True, slots=True)
class BodyVersion:
    """How a text read after somebody's edit; `text` None: that version was deleted from its history."""

    editor: Actor
    at: datetime
    text: str | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A box of the dashboard that a person ticked; `actor` None: nobody can tell who did. `box` is what it orders."""

    box: str
    actor: Actor | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Review:
    """A verdict on a pull at commit `sha`, or only words about it.

    `state` is one of approved, changes_requested, commented, dismissed. `id` is filled by `Forge.pull` only.
    """

    author: Actor
    state: str
    body: str
    sha: str
    at: datetime
    id: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as the forge tells it. `remarks` and `events` are filled by `Forge.issue` only."""

    number: int
    title: str
    body: str
    state: str  # open | closed
    author: Actor
    created_at: datetime
    updated_at: datetime
    url: str
    labels: frozenset[str] = frozenset()
    assignees: tuple[str, ...] = ()
    state_reason: str = ""  # completed | not_planned | ""
    closed_by: Actor | None = None
    closed_at: datetime | None = None
    remarks: tuple[ThreadComment, ...] = ()
    events: tuple[LabelEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Touch:
    """Lines `first`..`last` (1-based, inclusive, on the base side) of `path` that a pull changes."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request as the forge tells it; details as in `Issue` are filled by `Forge.pull` only."""

    number: int
    title: str
    body: str
    state: str  # open | closed | merged
    author: Actor
    head: str  # branch name
    head_sha: str
    base: str  # branch name
    created_at: datetime
    updated_at: datetime
    url: str
    labels: frozenset[str] = frozenset()
    reviews: tuple[Review, ...] = ()
    remarks: tuple[ThreadComment, ...] = ()
    events: tuple[LabelEvent, ...] = ()
    touches: tuple[Touch, ...] = ()
    commits: tuple[str, ...] = ()  # object ids on head that are not on base, oldest first
    own: frozenset[str] = frozenset()  # those of them that have our name, as author and as committer
    merged_sha: str = ""
    merged_by: Actor | None = None
    closed_by: Actor | None = None
    closed_at: datetime | None = None
    draft: bool = False
    failed: tuple[FailedJob, ...] = ()  # at its head, of one of ours that is open; logs are cut to what says why
    passed: bool = False  # whether all that ran there ended well, of the same
    unchecked: bool = False  # whether it is certain that nothing ran there, of the same
    held: tuple[str, ...] = ()  # the pages of runs there that wait until a person lets them start, of the same
    newcomer: bool = False  # whether nothing of its author was ever merged here
    patch_ids: frozenset[str] = frozenset()  # of each file's change, as `safety.patch.patch_id` makes them

    def as_issue(self) -> Issue:
        """What it has in common with an issue: a mission without one lives in its pull."""
        return Issue(
            self.number, self.title, self.body, "open" if self.state == "open" else "closed", self.author,
            self.created_at, self.updated_at, self.url, self.labels, closed_by=self.closed_by, closed_at=self.closed_at,
            remarks=self.remarks, events=self.events,
        )  # fmt: skip  # one value

    def merged_after(self, since: datetime) -> bool:
        """Whether it was merged, and later than that."""
        return self.state == "merged" and self.closed_at is not None and self.closed_at > since


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and the commit it points at."""

    name: str
    sha: str


@dataclass(frozen=True, slots=True)
class Pulse:
    """How the project fared between two looks. Counts are those of the window, `stars` is the total now.

    None: the forge does not know such a thing, or did not look. If it did not look at closed issues, those opened and
    closed in the window are not counted as opened either.
    """

    stars: int | None = None
    merged: tuple[Pull, ...] = ()
    opened: int = 0  # issues
    closed: int | None = 0  # issues


OUTBOX = "outbox"
"""The network that is a folder: files for a person to read and send."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A watched value over time; `alt` says in words what it shows. Points in the order of time."""

    title: str
    unit: str
    points: tuple[tuple[datetime, float], ...]
    alt: str


@dataclass(frozen=True, slots=True)
class Post:
    """What one network gets: the parts of a thread in order, mostly one, exactly as they are sent.

    `lengths` are what the network counts of each part, `limit` what it allows.
    """

    network: str
    parts: tuple[str, ...]
    lengths: tuple[int, ...]
    limit: int
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """What one occurrence of a finding would say, on each network that takes it.

    `problem`: why it says nothing, or nothing on one of them, with who has to fix what (a template that names a fact
    which is not there, a text that is too long).
    `ready`: a template of the owner's made it, so it may be posted without asking; else a person reads it first.
    """

    fingerprint: str
    occurrence: str
    posts: tuple[Post, ...] = ()
    problem: str = ""
    ready: bool = False


@dataclass(frozen=True, slots=True)
class Posted:
    """A post that went out: how it can be asked about, and what came of it when it was last asked.

    `reactions` are likes, reposts, replies and the like together; `views` 0 where the network does not tell.
    """

    key: str
    network: str
    kind: str
    at: datetime
    id: str = ""
    url: str = ""
    reactions: int = 0
    views: int = 0
    measured_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a network reported about one of our posts."""

    key: str
    reactions: int
    views: int = 0


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """What an owner wrote in a chat that counts: a verb of `VERBS`, its words, and the number that it is about.

    `at` by the network's clock, `chat` the id it came from, `id` its own: the same one is never obeyed twice.
    """

    id: int
    at: datetime
    chat: int
    verb: str
    words: str = ""
    number: int = 0


VERBS = ("guidance", "status", "pause", "resume", "restart", "approve", "answer")


def is_own(path: str) -> bool:
    """Whether a workflow is one of Ralph's own, by its path as GitHub tells it: perhaps with `@` and a ref."""
    return path.partition("@")[0] in OWN


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """The newest attempt of a workflow run. Names and paths are untrusted.

    `conclusion` is "" until it ends. A cancelled, skipped or waiting run neither passed nor failed.
    """

    id: int
    workflow: int
    name: str
    path: str  # of the workflow's file
    event: str  # what started it: push, schedule, workflow_dispatch, ...
    sha: str
    conclusion: str
    created_at: datetime
    started_at: datetime  # of this attempt
    url: str
    attempt: int = 1
    ended_at: datetime | None = None  # when it last changed, if it is over

    @property
    def passed(self) -> bool:
        """Whether it succeeded."""
        return self.conclusion in PASSED

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.conclusion in FAILED


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A failed job in one attempt of a run; `step` is its first failed step, "" if unknown.

    `log` is the job's output, as far as it could be read. Untrusted.
    """

    name: str
    step: str
    url: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class SecurityAlert:
    """One alert. `severity` is low, medium, high, critical or "". One is closed as fixed, or dismissed by a person.

    Of a dependency: its ecosystem as the forge names it, its name, the file that asks for it, the range of versions
    that are affected, the first that is not ("" when there is none), and the advisory with its other names.
    """

    kind: AlertKind
    number: int
    url: str
    title: str
    severity: str = ""
    rule: str = ""
    ecosystem: str = ""
    package: str = ""
    path: str = ""
    affected: str = ""
    fixed: str = ""
    advisory: str = ""
    aliases: tuple[str, ...] = ()
    created_at: datetime | None = None
    closed_at: datetime | None = None
    dismissed: bool = False
