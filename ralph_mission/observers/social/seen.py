"""What one network told: numbers of our posts, signals, how many follow us. Words of strangers are quoted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.mission.model import Severity, Signal
from ralph_mission.mission.posts import Measured, Posted
from ralph_mission.observers.text import block, one_line
from ralph_mission.safety.hidden import without_invisible

MOST = 10  # questions told of one look, of each network
EXCERPT = 600  # characters of what somebody wrote
LARGEST = 10**12  # more reactions than people there are is no number
QUESTION = "?\uff1f\u061f"  # Latin and most others, Chinese and Japanese, Arabic
UNTRUSTED = "untrusted words of strangers, quoted"
MARKS = tuple(base * ten for ten in (10, 100, 1_000, 10_000, 100_000, 1_000_000) for base in (1, 2.5, 5))
JUMP, JUMP_SHARE = 10, 0.1  # followers since the last look: both so many and such a share of those there were


@dataclass(frozen=True, slots=True)
class NetworkNews:
    """`words` say it for people, without the network's name. `followers` None: not told."""

    words: str
    measured: tuple[Measured, ...] = ()
    signals: tuple[Signal, ...] = ()
    followers: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkQuestion:
    """Somebody's question: `id` is the network's, `url` where it can be answered, "" where it has no address."""

    id: str
    text: str
    at: datetime
    url: str = ""


def is_question(text: str) -> bool:
    """Whether it asks something, in any of the scripts that end a question with a mark of their own."""
    return any(mark in text for mark in QUESTION)


def questions(network: str, found: Iterable[NetworkQuestion], now: datetime) -> tuple[Signal, ...]:
    """Those that wait for an answer, newest first."""
    newest = sorted(found, key=lambda asked: asked.at, reverse=True)[:MOST]
    return tuple(_question_signal(network, asked, now) for asked in newest)


def _question_signal(network: str, asked: NetworkQuestion, now: datetime) -> Signal:
    said = without_invisible(asked.text)
    quoted = "\n".join(f"> {line}" for line in block(said, EXCERPT).split("\n"))
    where = f"{asked.url or network}, {asked.at:%Y-%m-%d %H:%M} UTC ({UNTRUSTED})"
    return Signal(
        observer="social",
        kind="question",
        title=one_line(f"{network}: {said}"),
        essence=("social", network, asked.id),
        confidence=0.6,
        detail=block(f"{where}:\n{quoted}"),
        age_days=max(0.0, (now - asked.at).total_seconds() / 86_400),
        facts=(("network", network),),
    )


def following(network: str, before: int | None, now: int | None, since: datetime | None) -> tuple[Signal, ...]:
    """How many follow us, told on unusual days: a round number that was passed, or a jump."""
    if before is None or now is None or since is None or now <= before:
        return ()
    gained, passed = now - before, [int(mark) for mark in MARKS if before < mark <= now]
    facts = (("network", network), ("followers", now), ("gained", gained), ("since", f"{since:%Y-%m-%d}"))
    if passed:
        essence, title = ("social", network, "followers", str(passed[-1])), f"{passed[-1]:,} people follow on {network}"
    elif gained >= max(JUMP, JUMP_SHARE * before):
        essence, title = ("social", network, "followers", "jump"), f"{gained:,} more people follow on {network}"
    else:
        return ()
    occurrence = "" if passed else f"{since:%Y-%m-%d}"
    return (Signal("social", "community", title, essence, occurrence, Severity.LOW, 0.9, facts=facts),)


def topics(network: str, names: Sequence[str], now: datetime) -> tuple[Signal, ...]:
    """What is talked about."""
    if not names:
        return ()
    said = "\n".join(f"> {one_line(without_invisible(name), 80)}" for name in names[:MOST])
    title = one_line(f"talked about on {network}: {', '.join(without_invisible(name) for name in names[:3])}")
    detail = block(f"{network}, {now:%Y-%m-%d} ({UNTRUSTED}):\n{said}")
    essence = ("social", network, "topics")
    return (Signal("social", "news", title, essence, f"{now:%Y-%m-%d}", Severity.LOW, 0.4, detail=detail,
                   facts=(("network", network),)),)  # fmt: skip  # one value


def ours(posted: Iterable[Posted], network: str) -> dict[str, Posted]:
    """Our posts on one network that can be asked about, by the network's id."""
    return {post.id: post for post in posted if post.network == network and post.id}


def number(found: object) -> int:
    """A count out of an answer; 0 for what is none."""
    return found if type(found) is int and 0 <= found <= LARGEST else 0
