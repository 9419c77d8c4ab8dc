"""Who is next: one event out of each session, and the hat that listens to it. Deterministic, no model asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from ralph_mission.loop.model.items import LoopEvent
from ralph_mission.loop.model.state import CONVERGED, PLANNED, START, VERDICT, Hat

COORDINATOR = Hat("ralph", description="nobody in particular: finds what to do next, does it, says when it is done")
ALIASES = {START: ("task.start",)}  # presets of ralph-orchestrator listen to its older name
EVENT = re.compile(r'<event\s+topic="([^"]{1,100})"\s*>(.*?)</event>', re.DOTALL)
QUOTED = re.compile(
    r"^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n.*?(?:^[ \t]*(?P=fence)|\Z)|^[ \t]*>[^\n]*|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
"""Where markdown shows text and does not say it: fences, quotations, code within a line."""
INDENTED = ("    ", "\t")
"""How markdown's other way of showing text begins."""
PROMISE = re.compile(r"(?:<promise>)?\s*([A-Z][A-Z_]{2,60})\s*(?:</promise>)?")


def find_hat(hats: Sequence[Hat], event: LoopEvent) -> Hat | None:
    """The hat that the event calls: an exact trigger before a pattern, then the order of definition."""
    topics = (event.topic, *ALIASES.get(event.topic, ()))
    exact = [hat for topic in topics for hat in hats if topic in hat.triggers]
    return next(iter(exact), None) or next((hat for hat in hats if _matches(hat, topics)), None)


def single_event(hat: Hat | None, said: Sequence[LoopEvent], promise: str) -> tuple[LoopEvent | None, str]:
    """The one event of a session, and what is wrong with what it said ("" when nothing is).

    Without a hat an event is welcome and not required. One that was said in two ways (`ralph emit` and the last
    message) is one: topic and payload tell events apart.
    """
    events = tuple({(event.topic, event.payload.strip()): event for event in reversed(said)}.values())[::-1]
    if len(events) > 1:
        names = ", ".join(event.topic for event in events)
        return None, f"one event ends a session, and {len(events)} were said ({names})"
    if not events:
        return _unsaid(hat)
    if hat is not None and hat.publishes and not _may_say(hat, events[0].topic, promise):
        return None, f"{hat.name} may say {' or '.join(hat.publishes)}, not {events[0].topic}"
    return events[0], ""


def events_in_text(text: str, promise: str = "") -> tuple[LoopEvent, ...]:
    """The events that an agent's last message says: not those it shows, and `promise` as its last word only."""
    found, at = [], 0
    while match := EVENT.search(text, at):
        quoted = _is_quoted(text, match.start())
        at = match.start() + 1 if quoted else match.end()
        if not quoted and (match[1].strip() != promise or not text[match.end() :].strip()):
            found.append(LoopEvent(match[1].strip(), match[2].strip()))
    return tuple(found)


def _is_quoted(text: str, at: int) -> bool:
    return any(span.start() <= at < span.end() for span in QUOTED.finditer(text))


def is_promised(text: str, promise: str) -> bool:
    """Whether the final non-empty line is the promise and nothing else; one that is quoted or mentioned is not."""
    whole = text.rstrip()
    at = whole.rfind("\n") + 1
    last = whole[at:]
    found = PROMISE.fullmatch(last.strip())
    return found is not None and found[1] == promise and not last.startswith(INDENTED) and not _is_quoted(text, at)


def is_converged(event: LoopEvent, threshold: int) -> bool:
    """Whether a verdict lets the loop end: nothing critical, and no more of the rest than the threshold."""
    critical = any(issue.severity == "critical" for issue in event.issues)
    return event.topic == VERDICT and not critical and len(event.issues) <= threshold


def next_event(event: LoopEvent, threshold: int) -> LoopEvent:
    """What an event leads to: a clean verdict is the end, everything else speaks for itself."""
    if is_converged(event, threshold):
        return LoopEvent(CONVERGED, event.payload, event.issues, event.hat, event.iteration, event.at)
    return event


def planner(hats: Sequence[Hat]) -> Hat | None:
    """Who makes another plan: the first hat that says one."""
    return next((hat for hat in hats if PLANNED in hat.publishes), None)


def has_reviewer(hats: Sequence[Hat]) -> bool:
    """Whether a reviewer decides when the loop ends."""
    return any(VERDICT in hat.publishes for hat in hats)


def _matches(hat: Hat, topics: Sequence[str]) -> bool:
    return any(fnmatchcase(topic, trigger) for topic in topics for trigger in hat.triggers)


def _may_say(hat: Hat, topic: str, promise: str) -> bool:
    return topic == promise or any(fnmatchcase(topic, allowed) for allowed in (*hat.publishes, hat.default_publishes))


def _unsaid(hat: Hat | None) -> tuple[LoopEvent | None, str]:
    if hat is None or not hat.publishes:
        return None, ""
    if hat.default_publishes:
        return LoopEvent(hat.default_publishes, "(nothing was said)"), ""
    return None, f"no event was said; {hat.name} ends with {' or '.join(hat.publishes)}"
