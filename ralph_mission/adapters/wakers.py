"""Ways of starting the next cycle. All of them send one `repository_dispatch`, whose run asks the same gate.

`heartbeat` is GitHub's cron: every 15 minutes, late under load, sometimes dropped, but never for good. `timer` is a
systemd timer on your own host: it checks every minute and dispatches in the minute that a cycle is due. Files alone
show which ways are set up.

A dispatch is sent once, without retries. Its payload is for people; the run that it starts asks the gate, which reads
only memory, so a forged, late or repeated dispatch changes nothing.

Memory grants and counts one wake per due time, for all ways (`count_granted_wakes`). Only the timer asks again after a
lost one, and counts these itself, up to their part of the daily cap. A wake is recorded before it is sent: if it cannot
be recorded, nothing is sent, and the cap holds.

The review of our own pull request is started by GitHub or by our dispatch: GitHub holds the runs of a pull request that
a workflow's token opened until a person approves them (before June 2026, and on self-hosted servers, it starts none),
but never a dispatch. The runs of a pull request by any other account, also an app's, start at once; a dispatch would
start a second review.
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
DAYS = 8  # counted days, by the last wakes: a clock that jumps back and forth finds its day again


@dataclass(frozen=True, slots=True)
class Calls:
    """The last wake (`generation`, `at` in ISO 8601) and the repeated ones by day (YYYY-MM-DD), the latest first."""

    generation: int = -1
    at: str = ""
    days: tuple[tuple[str, int], ...] = ()

    def on(self, day: str) -> int:
        """The number of repeated wakes on a day."""
        return dict(self.days).get(day, 0)


def objection(calls: Calls, header: Header, now: datetime, limit: int) -> str:
    """Why no wake is sent now, or "". `limit`: wakes in a day, by all ways together."""
    moment, who = _last_wake(calls, header, now)
    if moment and abs(now - moment) < AGAIN_AFTER:
        return f"{who} less than 10 minutes ago"
    today = schedule.day_of(header, now)
    left = _is_first(calls, header, today) or calls.on(today) < schedule.repeats(limit)
    if limit and left and schedule.may_wake(header, today):
        return ""
    return f"today's wakes are used up, the cap is {limit}"


def record_wake(calls: Calls, header: Header, now: datetime) -> Calls:
    """The calls with one more wake."""
    today = schedule.day_of(header, now)
    others = [(day, count) for day, count in calls.days if day != today]
    again = calls.on(today) + (not _is_first(calls, header, today))
    return Calls(header.generation, now.isoformat(), ((today, again), *others[: DAYS - 1]))


def _last_wake(calls: Calls, header: Header, now: datetime) -> tuple[datetime | None, str]:
    """When the present due time got its last wake, and from whom; None if it had none."""
    if calls.generation == header.generation:
        return _moment(calls.at, now), f"woken for generation {header.generation}"
    if schedule.asked_itself(header):
        return header.last_cycle_at, "the last cycle requested the next one"
    return None, ""


def _is_first(calls: Calls, header: Header, today: str) -> bool:
    """Whether memory still grants the present due time its one wake. A new day grants another."""
    if not header.today:  # before any memory nothing is granted
        return False
    sent = calls.generation == header.generation or schedule.asked_itself(header)
    return not sent or (header.today != today and calls.at[:10] != today)


def dump(calls: Calls) -> bytes:
    """The calls as the file's text."""
    return json.dumps(asdict(calls) | {"days": dict(calls.days)}).encode() + b"\n"


def load(content: bytes) -> Calls:
    """The calls in a file's text; an unreadable text counts as no calls."""
    try:
        document = json.loads(content)
        calls = Calls(**document | {"days": tuple(document["days"].items())})
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
"""The types of `repository_dispatch` that start a cycle, the issue agent, the reviewer and the publisher."""
WORKFLOWS = Path(".github") / "workflows"
_COMMENT = compile_regex(r"(?:^|(?<=\s))#.*$", re.M)


@dataclass(frozen=True, slots=True)
class WakeFacts:
    """`workflow`: the text (without comments) of the workflow that our dispatch starts, or "".

    `timers`: names of this host's enabled timers for wakes; `instance`: the part after the @ in this repository's.
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
    """One way of being woken. `needs` is what a person must provide; `writes` is what `ralph init` writes for it."""

    name: str
    needs: str
    writes: tuple[str, ...]
    set_up: Callable[[WakeFacts], WaySetUp]


def unit_places(home: Path) -> tuple[Path, ...]:
    """The folders of linked or installed units: this user's, the system's."""
    return home / ".config" / "systemd" / "user", Path("/etc/systemd/system")


def look(work_tree: Path | None, instance: str, places: Sequence[Path]) -> WakeFacts:
    """The facts about a repository on this host. Unreadable files count as absent."""
    return WakeFacts(listening(work_tree, EVENT), frozenset(_timers(places)), instance)


def listening(work_tree: Path | None, event: str) -> str:
    """The text (without comments) of the workflow that our dispatch starts, or ""."""
    return listener(work_tree, event)[1]


def listener(work_tree: Path | None, event: str) -> tuple[str, str]:
    """The same, preceded by its file's name."""
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
    """The header; an empty one if there is no memory yet or it is unreadable, which the cycle then reports.

    Raises UserError if the server cannot be reached.
    """
    with Remote.without_clone(place) as remote:
        content = remote.peek(branch, path) if remote.head(branch) else None
    try:
        return peek(content) if content is not None else Header()
    except UserError:
        return Header()


OF_WORKFLOWS = "github-actions[bot]"
"""The account of the token that each workflow gets."""


def by_dispatch(account: str, work_tree: Path | None, *, never: bool = False) -> WaySetUp:
    """Whether we dispatch the reviewer, and why or why not. `account` opens our pull requests; `never`: an older file
    forbids it."""
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
    """An answer: its HTTP status (0: none) and text."""

    status: int
    text: str = ""


Post = Callable[[str, dict[str, Any]], DispatchAnswer]
"""Sends a JSON document to a path of the API (`/repos/o/n/dispatches`), once. May raise UserError or OSError."""


@dataclass(frozen=True, slots=True)
class DispatchWaker:
    """`ports.Waker` over a forge's API."""

    repository: str  # owner/name
    post: Post

    def wake(self, due: datetime, generation: int) -> Receipt:
        """Ask for a cycle. `failed` says why; after a lost answer the event may have been sent, which does no harm."""
        return self._send_dispatch(key_of("dispatch", str(generation)), payload(due, generation))

    def review(self, pull: int) -> Receipt:
        """Ask for the review of a pull; as `wake`."""
        body = {"event_type": REVIEW, "client_payload": {"pull_request": pull}}
        return self._send_dispatch(key_of("call-review", str(pull)), body)

    def _send_dispatch(self, key: str, body: dict[str, Any]) -> Receipt:
        try:
            outcome = self.post(f"/repos/{self.repository}/dispatches", body)
        except UserError as problem:
            return Receipt(key, "failed", detail=f"{problem.what}: {problem.next_step}")
        except OSError as error:
            outcome = DispatchAnswer(0, type(error).__name__)  # its text is untrusted
        reason = _reason(outcome)
        return Receipt(key, "failed", detail=reason) if reason else Receipt(key, "done")


def payload(due: datetime, generation: int) -> dict[str, Any]:
    """The event's body: information for people, which no code reads."""
    moment = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"event_type": EVENT, "client_payload": {"not_before": moment, "generation": generation}}


def _reason(outcome: DispatchAnswer) -> str:
    """Why the event was not accepted, or ""."""
    if 200 <= outcome.status < 300:
        return ""
    words = " ".join(outcome.text.split())[:200]
    if outcome.status == 0:
        return f"GitHub did not answer ({words or 'no reason given'}): the next wake makes up for it"
    code = 429 if outcome.status == 403 and "rate limit" in words.lower() else outcome.status
    reason = REASONS.get(code, "the next wake makes up for it" if code >= 500 else "look at what it says")
    return f"HTTP {outcome.status}{f' ({words})' if words else ''}: {reason}"


WAKERS: dict[str, Way] = {way.name: way for way in (TIMER, HEARTBEAT)}
"""All ways by their names in `schedule.wake`, the most punctual first."""


def best(facts: WakeFacts) -> Way | None:
    """The way that `wake: auto` chooses: the most punctual one that is set up here, or None."""
    return next((way for way in WAKERS.values() if way.set_up(facts).ok), None)
