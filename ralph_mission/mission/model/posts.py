"""What is said in public: a text for each network, and a small picture of what it is about.

A text is made once, before anything is judged: what is judged is what is sent.
"""

from __future__ import annotations

from datetime import datetime

from ralph_mission.values import dataclass

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

    `trouble`: why it says nothing, or nothing on one of them, with who has to mend what (a template that names a fact
    which is not there, a text that is too long).
    `ready`: a template of the owner's made it, so it may be said without asking; else a person reads it first.
    """

    fingerprint: str
    occurrence: str
    posts: tuple[Post, ...] = ()
    trouble: str = ""
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
    """What a network told of one of our posts."""

    key: str
    reactions: int
    views: int = 0


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """What an owner said in a chat that counts: a verb of `VERBS`, its words, and the number that it is about.

    `at` by the network's clock, `chat` the id it came from, `id` its own: the same one is never obeyed twice.
    """

    id: int
    at: datetime
    chat: int
    verb: str
    words: str = ""
    number: int = 0


VERBS = ("guidance", "status", "pause", "resume", "restart", "approve", "answer")
