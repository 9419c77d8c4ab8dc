"""The ways of being called again. All of them end in one `repository_dispatch`, and behind it in the same gate.

`heartbeat` is GitHub's cron: every 15 minutes, late under load, sometimes dropped, always there in the end. `timer` is
a systemd timer on a host of your own: it asks every minute and dispatches in the minute a cycle is due. What is set up
is seen from files alone.

A dispatch is sent once and never again on its own. Its payload tells people what it was for; whoever is woken by it
asks the gate, which reads memory alone, so a forged, late or repeated one changes nothing.

Memory grants each due time one wake and counts it, for all who wake (`schedule.granted`). Asking again after one got
lost is the timer's alone: those it counts itself, up to what the day's cap keeps for them. A wake is remembered before
it is sent: when that cannot be written down, nothing is sent, and the cap holds.

The review of a pull request of ours is started by GitHub itself, or by a dispatch of our own: GitHub holds the runs of
a pull request that the token of a workflow opened until a person approves them (before June 2026, and on servers of
one's own, it starts none), but never a dispatch. What any other account opens, an app's too, starts its runs at once; a
dispatch would be a second one then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ralph_mission.adapters.git.remote import Remote, RepositoryPlace
from ralph_mission.errors import UserError
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.memory.text import peek
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.ledger import key_of
from ralph_mission.mission.model.memory import Header
from ralph_mission.values import compile_regex, dataclass

AGAIN_AFTER = timedelta(minutes=10)  # a dispatch may get lost; one for the same generation is then repeated
DAYS = 8  # that are counted, those of the last wakes: a clock that jumps back and forth finds its day again


@dataclass(frozen=True, slots=True)
class Calls:
    """The last wake (`generation`, `at` in ISO 8601) and the repeated ones by day (YYYY-MM-DD), the latest first."""

    generation: int = -1
    at: str = ""
    days: tuple[tuple[str, int], ...] = ()

    def on(self, day: str) -> int:
        """How many wakes were repeated on a day."""
        return dict(self.days).get(day, 0)


def objection(calls: Calls, header: Header, now: datetime, limit: int) -> str:
    """Why no wake is sent now, "" when nothing speaks against it. `limit`: wakes in a day, everybody's."""
    asked, who = _last_wake(calls, header, now)
    if asked and abs(now - asked) < AGAIN_AFTER:
        return f"{who} less than 10 minutes ago"
    today = schedule.day_of(header, now)
    left = _is_first(calls, header, today) or calls.on(today) < schedule.repeats(limit)
    if limit and left and schedule.may_wake(header, today):
        return ""
    return f"today's wakes are used up, the cap is {limit}"


def record_wake(calls: Calls, header: Header, now: datetime) -> Calls:
    """With one more wake."""
    today = schedule.day_of(header, now)
    others = [(day, count) for day, count in calls.days if day != today]
    again = calls.on(today) + (not _is_first(calls, header, today))
    return Calls(header.generation, now.isoformat(), ((today, again), *others[: DAYS - 1]))


def _last_wake(calls: Calls, header: Header, now: datetime) -> tuple[datetime | None, str]:
    """When the present due time was last woken for, and by whom; None when it was not."""
    if calls.generation == header.generation:
        return _moment(calls.at, now), f"woken for generation {header.generation}"
    if schedule.asked_itself(header):
        return header.last_cycle_at, "the last cycle asked for the next one"
    return None, ""


def _is_first(calls: Calls, header: Header, today: str) -> bool:
    """Whether it would be the one wake that memory grants the present due time. A new day grants another."""
    if not header.today:  # before any memory nothing is granted
        return False
    sent = calls.generation == header.generation or schedule.asked_itself(header)
    return not sent or (header.today != today and calls.at[:10] != today)


def dump(calls: Calls) -> bytes:
    """As it stands in the file."""
    return json.dumps(asdict(calls) | {"days": dict(calls.days)}).encode() + b"\n"


def load(content: bytes) -> Calls:
    """What a file says; one that says nothing sensible counts as never called."""
    try:
        told = json.loads(content)
        calls = Calls(**told | {"days": tuple(told["days"].items())})
        datetime.fromisoformat(calls.at)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Calls()
    sound = type(calls.generation) is int and all(type(count) is int for _, count in calls.days)
    return calls if sound else Calls()


def _moment(text: str, now: datetime) -> datetime:
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=now.tzinfo)


EVENT, WORK, REVIEW = "ralph-loop-trigger", "ralph-work-trigger", "ralph-review-trigger"
PUBLISH = "ralph-publish-trigger"
"""What wakes the loop, the issue agent, the reviewer and the publisher: types of `repository_dispatch`."""
WORKFLOWS = Path(".github") / "workflows"
_COMMENT = compile_regex(r"(?:^|(?<=\s))#.*$", re.M)


@dataclass(frozen=True, slots=True)
class WakeFacts:
    """`workflow`: the text (without comments) of the workflow that listens to our dispatch, "" when there is none.

    `timers`: names of the enabled wake timers of this host; `instance`: what this repository's is called after
    the @.
    """

    workflow: str = ""
    timers: frozenset[str] = frozenset()
    instance: str = ""


@dataclass(frozen=True, slots=True)
class WaySetUp:
    """Whether a way is set up here, and why."""

    ok: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way of being woken. `needs` is what a person must see to; `writes` is what `ralph init` writes for it."""

    name: str
    needs: str
    writes: tuple[str, ...]
    set_up: Callable[[WakeFacts], WaySetUp]


def unit_places(home: Path) -> tuple[Path, ...]:
    """Where units stand that are linked or installed: those of this user, those of the system."""
    return home / ".config" / "systemd" / "user", Path("/etc/systemd/system")


def look(work_tree: Path | None, instance: str, places: Sequence[Path]) -> WakeFacts:
    """The facts of a repository on this host. What cannot be read counts as absent."""
    return WakeFacts(listening(work_tree, EVENT), frozenset(_timers(places)), instance)


def listening(work_tree: Path | None, event: str) -> str:
    """The text (without comments) of the workflow that listens to a dispatch of ours, "" when there is none."""
    return listener(work_tree, event)[1]


def listener(work_tree: Path | None, event: str) -> tuple[str, str]:
    """The same with the name of its file before it."""
    for place in sorted((work_tree / WORKFLOWS).glob("*.y*ml")) if work_tree else ():
        with suppress(OSError, UnicodeDecodeError):
            text = _COMMENT.sub("", place.read_text(encoding="utf-8"))
            if event in text:
                return place.name, text
    return "", ""


def _timers(places: Sequence[Path]) -> list[str]:
    found: list[str] = []
    for place in places:
        with suppress(OSError):
            found += [path.name for path in (place / "timers.target.wants").glob("ralph-wake@*.timer")]
    return found


_CRON = compile_regex(r"^\s*-\s*cron:\s*\S", re.M)


def _heartbeat_set_up(facts: WakeFacts) -> WaySetUp:
    if not facts.workflow:
        return WaySetUp(False, "no workflow here listens to ralph-loop-trigger")
    crons = len(_CRON.findall(facts.workflow))
    lines = "no cron line" if not crons else "1 cron line" if crons == 1 else f"{crons} cron lines"
    return WaySetUp(crons > 0, f"{lines} in the workflow")


HEARTBEAT = Way(
    "heartbeat",
    "the workflow on the default branch; nothing else",
    (".github/workflows/ralph-loop.yml",),
    _heartbeat_set_up,
)


def header_on_server(place: RepositoryPlace, branch: str, path: str) -> Header:
    """The header; an empty one when there is no memory yet or nobody can read it: the cycle then says what is wrong.

    Raises UserError when the server cannot be asked.
    """
    with Remote.without_clone(place) as remote:
        content = remote.peek(branch, path) if remote.head(branch) else None
    try:
        return peek(content) if content is not None else Header()
    except UserError:
        return Header()


OF_WORKFLOWS = "github-actions[bot]"
"""The account of every workflow's own token."""


def by_dispatch(account: str, work_tree: Path | None, *, never: bool = False) -> WaySetUp:
    """Whether we wake it, and why or why not. `account` opens our pulls; `never`: an older file forbids it."""
    if not listening(work_tree, REVIEW):
        return WaySetUp(False, f"no workflow here listens to {REVIEW}")
    if never:
        return WaySetUp(False, "schedule.review: never")
    if account == OF_WORKFLOWS:
        return WaySetUp(True, "by a dispatch: runs of what a workflow's own token opens wait for a person")
    return WaySetUp(False, f"by GitHub: what {account} opens starts workflows")


UNITS = ("ralph-wake@.service", "ralph-wake@.timer")


def instance(repo: Path) -> str:
    """The name of a repository in a unit template, as `systemd-escape --path` makes it; `%f` gives the path back."""
    text = "/".join(part for part in str(repo).split("/") if part) or "/"
    escaped = re.sub(r"[^A-Za-z0-9:_./]", lambda odd: "".join(f"\\x{byte:02x}" for byte in odd[0].encode()), text)
    return re.sub(r"^\.", r"\\x2e", escaped).replace("/", "-")


def _timer_set_up(facts: WakeFacts) -> WaySetUp:
    if not facts.workflow:
        return WaySetUp(False, "no workflow here listens to ralph-loop-trigger")
    ours = f"ralph-wake@{facts.instance}.timer"
    if ours in facts.timers:
        return WaySetUp(True, f"{ours} is enabled")
    others = f"; those here are for other folders: {', '.join(sorted(facts.timers))}" if facts.timers else ""
    return WaySetUp(False, f"{ours} is not enabled for this user or the system{others}")


TIMER = Way(
    "timer",
    "a host with systemd that is always on, a clone there, and a token of its own with `contents: write`",
    (*UNITS, ".ralph/ralph.env"),
    _timer_set_up,
)


MOVED = "the repository was renamed or moved: set GITHUB_REPOSITORY to its new name"
REASONS = {
    **dict.fromkeys((301, 302, 307, 308), MOVED),
    401: "the token is not valid: give GITHUB_TOKEN one that is",
    403: "the token may not dispatch: give it `permissions: contents: write`",
    404: "there is no such repository, or the token cannot see it: check GITHUB_REPOSITORY and the token",
    429: "GitHub's rate limit is reached: the next wake makes up for it",
}


@dataclass(frozen=True, slots=True)
class DispatchAnswer:
    """An answer: its HTTP status (0: there was none) and what was said."""

    status: int
    said: str = ""


Post = Callable[[str, dict[str, Any]], DispatchAnswer]
"""Sends a JSON document to a path of the API (`/repos/o/n/dispatches`), once. May raise UserError or OSError."""


@dataclass(frozen=True, slots=True)
class DispatchWaker:
    """`ports.Waker` over a forge's API."""

    repository: str  # owner/name
    post: Post

    def wake(self, due: datetime, generation: int) -> Receipt:
        """Ask for a cycle. `failed` says why; after a lost answer the event may have been sent, which does no harm."""
        return self._asked(key_of("dispatch", str(generation)), payload(due, generation))

    def review(self, pull: int) -> Receipt:
        """Ask for the review of a pull; as `wake`."""
        body = {"event_type": REVIEW, "client_payload": {"pull_request": pull}}
        return self._asked(key_of("call-review", str(pull)), body)

    def _asked(self, key: str, body: dict[str, Any]) -> Receipt:
        try:
            outcome = self.post(f"/repos/{self.repository}/dispatches", body)
        except UserError as problem:
            return Receipt(key, "failed", detail=f"{problem.what}: {problem.next_step}")
        except OSError as error:
            outcome = DispatchAnswer(0, type(error).__name__)  # its text may hold anything
        reason = _reason(outcome)
        return Receipt(key, "failed", detail=reason) if reason else Receipt(key, "done")


def payload(due: datetime, generation: int) -> dict[str, Any]:
    """The event's whole body: what a person may want to know, and nothing that anybody obeys."""
    moment = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"event_type": EVENT, "client_payload": {"not_before": moment, "generation": generation}}


def _reason(outcome: DispatchAnswer) -> str:
    """Why nobody was woken, "" when the event was accepted."""
    if 200 <= outcome.status < 300:
        return ""
    said = " ".join(outcome.said.split())[:200]
    if outcome.status == 0:
        return f"GitHub did not answer ({said or 'no reason given'}): the next wake makes up for it"
    code = 429 if outcome.status == 403 and "rate limit" in said.lower() else outcome.status
    reason = REASONS.get(code, "the next wake makes up for it" if code >= 500 else "look at what it says")
    return f"HTTP {outcome.status}{f' ({said})' if said else ''}: {reason}"


WAKERS: dict[str, Way] = {way.name: way for way in (TIMER, HEARTBEAT)}
"""Every way by its name in `schedule.wake`, the most punctual first."""


def best(facts: WakeFacts) -> Way | None:
    """What `wake: auto` takes: the most punctual way that is set up here; None when none is."""
    return next((way for way in WAKERS.values() if way.set_up(facts).ok), None)
