"""Silence must never mean death: three equal failures in a row open one issue, the next success closes it.

A story over ports that never raises and never touches memory, because memory may be what is broken.
What it must know from one run to the next is an `Episode`, kept outside the memory branch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from ralph_mission.mission.account import Outcome
from ralph_mission.mission.effects import CloseIssue, EditComment, OpenIssue, marker
from ralph_mission.mission.ledger import SETTLED, key_of
from ralph_mission.mission.ports import Forge
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import quote, said, sanitise
from ralph_mission.trouble import Lost, Missing, Trouble

EQUAL = 3  # failures in a row; as many as make a mission escalate (seed 003)
EARLIER = 20  # alarms of earlier episodes that are looked at when the counter was lost
MEND = "change what it names, or give a token that may"
TITLE = 100  # characters of the failure in a title
ACTORS = {
    "you": "a maintainer of this repository",
    "forge": "nobody, if the forge recovers by itself",
    "network": "nobody, if the network recovers by itself",
    "bug": "the authors of ralph",
}
_VARYING = re.compile(r"\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b|\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a cycle failed, who must act (you, forge, network, bug), and what to do next."""

    who: str
    what: str
    next_step: str

    @property
    def identity(self) -> str:
        """Equal failures have the same; numbers and object ids in the text do not count."""
        return key_of("failure", self.who, _VARYING.sub("0", self.what))


@dataclass(frozen=True, slots=True)
class Episode:
    """Failures since the last success. `number` counts alarms that are over; `issue` is the one that stands, or 0."""

    number: int = 0
    identity: str = ""
    count: int = 0
    since: datetime | None = None
    issue: int = 0
    told: str = ""  # the identity of the failure that the issue tells
    doubt: int = 0  # the count at which an alarm may have been sent; 0 for never


class Counter(Protocol):
    """Remembers the episode between runs, outside the memory branch."""

    def read(self) -> Episode:
        """The episode; a new one when nothing legible was kept."""
        ...

    def write(self, episode: Episode) -> None:
        """Keep it. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Bell:
    """What an alarm may touch. `forge` is None where none could be built; `say` writes a line on stderr."""

    counter: Counter
    forge: Forge | None
    now: datetime
    say: Callable[[str], None]
    secrets: tuple[str, ...] = field(default=(), repr=False)
    run: str = ""  # the address of the run that failed, "" when it has none


def hear(bell: Bell, outcome: Outcome | Exception, *, staged: bool = False) -> None:
    """Take note of how a whole cycle ended. Never raises.

    A cycle that left quietly (not_due, lost, paused) and a staged one count neither way.
    """
    if staged or isinstance(outcome, Lost) or outcome in ("not_due", "lost", "paused"):
        return
    try:
        episode = bell.counter.read()
        after = _after(bell, episode, outcome)
        if after != episode:
            bell.counter.write(after)
    except Exception as error:  # the alarm must not hide the failure that it is about
        bell.say(f"the alarm could not be seen to: {_why(bell, error)}")


def _after(bell: Bell, episode: Episode, outcome: Outcome | Exception) -> Episode:
    if outcome == "done":
        return _well(bell, _found_again(bell, episode))
    return _failed(bell, episode, failure_of(outcome))


def ended(outcome: Outcome, refusal: str) -> Outcome | Trouble:
    """How a cycle ended, in the words of whoever refused all that it tried (`telling.refusal`)."""
    return Trouble(f"nothing that was tried got through: {refusal}", MEND) if refusal else outcome


def failure_of(outcome: Outcome | Exception) -> Failure:
    """Why a cycle failed. A foreign error is a bug of ours and told by its type alone: its text may hold a secret."""
    if isinstance(outcome, Trouble):
        return Failure(outcome.who, outcome.what, outcome.next_step)
    if isinstance(outcome, Exception):
        what = f"ralph failed in a way it should not: {type(outcome).__name__}"
        return Failure("bug", what, "report it with what the failed run says")
    return Failure("you", "the cycle failed", "read what the failed run says")


# --- success --------------------------------------------------------------------------


def _well(bell: Bell, episode: Episode) -> Episode:
    if not episode.issue or (bell.forge and _is_closed(bell.forge, episode.issue)):
        return Episode(episode.number + bool(episode.issue))
    quiet = replace(episode, identity="", count=0, since=None, told="", doubt=0)
    if bell.forge is None:
        return quiet
    receipt = bell.forge.perform(CloseIssue(key_of("alarm", "close", str(episode.issue)), episode.issue, "completed"))
    if receipt.status in SETTLED:
        return Episode(episode.number + 1)
    bell.say(f"the alarm #{episode.issue} could not be closed: {_clean(bell, receipt.detail)}")
    return quiet


def _found_again(bell: Bell, episode: Episode) -> Episode:
    """The episode with the number of an alarm of which nobody knew whether it was sent."""
    if not episode.doubt or episode.issue or bell.forge is None:
        return episode
    there = bell.forge.find(_issue(bell, episode, Failure("you", "", "")))
    return replace(episode, issue=there.number) if there else episode


def _is_closed(forge: Forge, number: int) -> bool:
    """Whether it stands no longer: a person closed it, or deleted it."""
    try:
        return forge.issue(number).state != "open"
    except Missing:
        return True


# --- failure --------------------------------------------------------------------------


def _failed(bell: Bell, episode: Episode, failure: Failure) -> Episode:
    same = failure.identity == episode.identity
    since = episode.since if same and episode.since else bell.now
    episode = replace(episode, identity=failure.identity, count=episode.count + 1 if same else 1, since=since)
    if episode.count < EQUAL or episode.told == episode.identity:
        return episode
    bell.counter.write(episode)  # what was counted stays counted, whatever becomes of the alarm
    try:
        return _retold(bell, episode, failure) if episode.issue else _rung(bell, episode, failure)
    except Exception as error:  # a forge that cannot be reached is often the very reason
        bell.say(f"the alarm could not be sent: {_why(bell, error)}")
        return episode


def _rung(bell: Bell, episode: Episode, failure: Failure) -> Episode:
    """One issue, unless it is there already: another runner's, or from before the counter was lost."""
    if bell.forge is None:
        bell.say("the alarm could not be sent: there is no forge to send it to")
        return episode
    for number in range(episode.number, episode.number + EARLIER):
        alarm = _issue(bell, replace(episode, number=number), failure)
        there = bell.forge.find(alarm)
        if there is None:
            return _opened(bell, replace(episode, number=number), alarm)
        if not _is_closed(bell.forge, there.number):
            return replace(episode, number=number, issue=there.number, told=episode.identity, doubt=0)
    bell.say(f"the alarm could not be sent: {EARLIER} earlier ones are closed, and which is next is not known")
    return episode


def _opened(bell: Bell, episode: Episode, alarm: OpenIssue) -> Episode:
    """Sent once. One in doubt is looked for again; not listed three failures later, another takes its place."""
    assert bell.forge is not None
    if episode.doubt:
        bell.say("it is not known whether the alarm was sent")
        lost = episode.count >= episode.doubt + EQUAL
        return replace(episode, number=episode.number + 1, doubt=0) if lost else episode
    receipt = bell.forge.perform(alarm)
    if receipt.status in SETTLED:
        return replace(episode, issue=receipt.number, told=episode.identity)
    bell.say(f"the alarm could not be sent: {_clean(bell, receipt.detail) or receipt.status}")
    return replace(episode, doubt=episode.count) if receipt.status == "unknown" else episode


def _retold(bell: Bell, episode: Episode, failure: Failure) -> Episode:
    """The issue stands and the failure is another one by now: the same issue says so."""
    if bell.forge is None:
        return episode
    alarm = _issue(bell, episode, failure)
    key = key_of("alarm", "tell", str(episode.issue), episode.identity)
    receipt = bell.forge.perform(EditComment(key, episode.issue, 0, alarm.body))
    if receipt.status in SETTLED:
        return replace(episode, told=episode.identity)
    bell.say(f"the alarm #{episode.issue} could not be brought up to date: {_clean(bell, receipt.detail)}")
    return episode


# --- words ----------------------------------------------------------------------------


def _issue(bell: Bell, episode: Episode, failure: Failure) -> OpenIssue:
    key = key_of("alarm", str(episode.number))
    title = sanitise(f"Ralph cannot work: {_clean(bell, failure.what)}", "commit", limit=TITLE)
    return OpenIssue(key, " ".join(title.split()), _body(bell, episode, failure, key))


def _body(bell: Bell, episode: Episode, failure: Failure, key: str) -> str:
    since = f"{episode.since:%Y-%m-%d %H:%M} UTC" if episode.since else "just now"
    facts = [
        f"- **Since:** {since}, {episode.count} times in a row when this was written",
        f"- **Who must act:** {ACTORS.get(failure.who, ACTORS['you'])}",
        f"- **What to do:** {said(_clean(bell, failure.next_step)) or 'read what the failed run says'}",
        *([f"- **The run:** {said(bell.run)}"] if bell.run else []),
    ]
    return "\n\n".join(
        (
            "Every cycle fails with the same error.",
            "**Why:** until it is mended, nothing here is looked after.",
            "**Evidence:**",
            quote(_clean(bell, failure.what), 1_000),
            "\n".join(facts),
            "Ralph keeps trying, and closes this issue itself when a cycle succeeds.",
            "**To say no:** close it yourself; this failure is then not told again before a cycle succeeds.",
            marker(key, alarm=str(episode.number)),
        )
    )


def _why(bell: Bell, error: Exception) -> str:
    return _clean(bell, error.what) if isinstance(error, Trouble) else type(error).__name__


def _clean(bell: Bell, text: str) -> str:
    return " ".join(sanitise(redact(text, bell.secrets), "log").split())
