"""What runs here, in files that any terminal can read, and requests to it: no socket, no signal.

`.ralph/live/<id>/` (`run-3`, `cycle-4`, `work-5`) belongs to one process: `run.json` has its identity and state,
`events.jsonl` all events, and each session has a live transcript, `<run>-NNNN.jsonl` for programs and `.md` for people.
`order` holds a person's request. A process's start time proves that it is the one that wrote there; one that is gone
without an ending was killed. The last ones are kept.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ralph_mission.adapters import files
from ralph_mission.adapters.sandbox.inside import stat_fields
from ralph_mission.adapters.storage.loop import lock, run_files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import HoldOrder, RunEvent
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass

FOLDER, RECORD, EVENTS, ORDER, OUTPUT = "live", "run.json", "events.jsonl", "order", "output"
NAMED = "RALPH_LIVE"
"""Names the id for a process started by another one of ours."""
NOTICE = "RALPH_NOTIFY"
"""Names a command to run with a line about each ended loop. Only from the environment, not ralph.yml: a repository's
commands run in a sandbox and could not reach a desktop."""
ENDED_RUNS = 20  # ended runs that are kept
MOST = 8 * 1024 * 1024  # bytes of what an agent says in a session; hours of real ones take less than one
LOOK = 0.2  # seconds between polls
BEGINNING = 250  # tenths of that from the first event of a detached run to its loop, before it is left alone
CAP = 256 * 1024  # bytes of a record, and of events read at once
AGENTS = ("text", "tool", "usage")
ORDERS: Mapping[str, HoldOrder] = {"pause": "pause", "stop": "stop"}

LiveState = Literal["running", "paused", "ended", "killed"]


@dataclass(frozen=True, slots=True)
class LiveRecord:
    """A process: its identity and state. Times are ISO 8601, UTC; `usd` None: unknown.

    `started`: when the kernel started `pid`, in ticks. `run`: the loop's id. `root`: the repository. `code`: its exit
    code, None while it runs.
    """

    id: str
    kind: str
    command: str = ""
    pid: int = 0
    owner: str = ""
    started: str = ""
    root: str = ""
    began: str = ""
    doing: str = ""
    since: str = ""
    run: str = ""
    sessions: int = 0
    stories: tuple[int, int] | None = None
    tokens: int = 0
    usd: float | None = None
    paused: bool = False
    code: int | None = None

    @property
    def state(self) -> LiveState:
        """Its state: running, waiting, ended or killed."""
        if self.code is not None:
            return "ended"
        if lock.dead(self.owner) or (self.started and _started(self.pid) != self.started):
            return "killed"
        return "paused" if self.paused else "running"

    @property
    def alive(self) -> bool:
        """Whether its process is alive."""
        return self.state in ("running", "paused")


class LiveRun:
    """`ports.RunWatch` by files below `home`, the repository's `.ralph`; nothing is written before the first event.

    `command`: as typed. `name`: an id that is taken already. `notify`: a command to run with a line about each ended
    loop. `secrets` are redacted. Failed writes are ignored: a run does not end because it cannot be watched.
    """

    def __init__(
        self,
        home: Path,
        kind: str,
        command: Sequence[str] = (),
        secrets: Sequence[str] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        name: str = "",
        notify: str = "",
    ) -> None:
        self._home, self._secrets, self._now, self._name, self._notify = home, secrets, now, name, notify
        self._record = LiveRecord("", kind, redact(shlex.join(command), secrets), root=str(home.parent))
        self._guard, self._stopped, self._code = threading.RLock(), False, 0
        self._spoken: dict[int, int] = {}  # bytes, by session

    @property
    def record(self) -> LiveRecord:
        """The current record; without an id before the first event."""
        return self._record

    @property
    def name(self) -> str:
        """Its id; "" before the first event."""
        return self._record.id

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._home / FOLDER / self._record.id

    def tell(self, event: RunEvent, prompt: str = "") -> None:
        """Record an event; the first one publishes the run."""
        with self._guard, suppress(OSError, UserError):
            if not self._record.id:
                self._begin()
            if event.kind in ("text", "tool"):
                before = self._spoken.get(event.session, 0)
                self._spoken[event.session] = before + len(event.text)
                if before > MOST:
                    return
                if before + len(event.text) > MOST:
                    event = replace(event, kind="text", text="(the rest of this session is not recorded)")
            event = replace(event, at=self._now(), text=redact(event.text, self._secrets))
            line = json.dumps(_document(event), ensure_ascii=False).encode("utf-8", "replace")
            if event.kind in AGENTS:
                self._transcribe(event, line, prompt)
            if event.kind not in ("text", "tool"):
                self._record = self._standing(event)
                self._code = (event.code or 0) if event.kind == "ended" else self._code
                self._keep()
            run_files.add(self.folder / EVENTS, line, lasting=False)
            if event.kind == "ended" and self._notify:
                _start_notice(self._notify, f"{self._record.id} in {self._home.parent.name}: {event.text}")

    def current_order(self) -> HoldOrder:
        """A person's current request; a stop request stays in force once read."""
        if self._record.id and not self._stopped:
            order = read_order(self.folder)
            self._stopped = order == "stop"
            return order
        return "stop" if self._stopped else ""

    def end(self, code: int | None = None) -> None:
        """Record the end, with this exit code or its last loop's."""
        with self._guard, suppress(OSError, UserError):
            if self._record.id:
                self._record = replace(
                    self._record, code=self._code if code is None else code, paused=False, since=_iso(self._now())
                )
                self._keep()

    def _begin(self) -> None:
        run_files.prepare(self._home)
        now, pid = _iso(self._now()), os.getpid()
        name = self._name or take_id(self._home, self._record.kind)
        self._record = replace(
            self._record, id=name, pid=pid, owner=lock.place(pid), started=_started(pid), began=now, since=now
        )
        self._keep()
        _forget_old(self._home)

    def _keep(self) -> None:
        run_files.write(self.folder / RECORD, json.dumps(asdict(self._record)).encode(), lasting=False)

    def _standing(self, event: RunEvent) -> LiveRecord:
        known = self._record
        if event.kind == "usage":
            return replace(known, tokens=known.tokens + event.tokens, usd=_sum(known.usd, event.usd))
        if event.kind == "held":
            return replace(known, paused=bool(event.text))
        if event.sessions is not None:  # the engine's totals include what the agent reported
            known = replace(known, sessions=event.sessions, tokens=event.tokens, usd=event.usd)
        aside = event.kind == "note" and bool(known.run)  # before a loop begins, its notes are the only events
        doing, since = (known.doing, known.since) if aside else (event.text.strip(), _iso(self._now()))
        return replace(
            known, doing=doing, since=since,
            run=event.run or known.run, stories=event.stories or known.stories,
        )  # fmt: skip  # one value

    def _transcribe(self, event: RunEvent, line: bytes, prompt: str) -> None:
        place = self.folder / f"{self._record.run or 'session'}-{event.session:04d}"
        transcript = place.with_name(f"{place.name}.md")
        if not transcript.exists():
            head = f"# Session {event.session}{f', {event.hat}' if event.hat else ''}\n"
            quoted = "\n".join(f"> {one}" for one in redact(prompt, self._secrets).splitlines())
            run_files.add(transcript, f"{head}\n{quoted}\n".encode("utf-8", "replace"), lasting=False)
        run_files.add(place.with_name(f"{place.name}.jsonl"), line, lasting=False)
        if event.kind != "usage":
            words = f"- `{event.text}`" if event.kind == "tool" else f"\n{event.text}\n"
            run_files.add(transcript, words.encode("utf-8", "replace"), lasting=False)


def _start_notice(command: str, line: str) -> None:
    """Run the notification command without waiting; failures are ignored."""
    with suppress(OSError, ValueError):
        silent = subprocess.DEVNULL
        words = [*shlex.split(command), line]
        subprocess.Popen(words, stdin=silent, stdout=silent, stderr=silent, start_new_session=True).returncode = 0


# --- from another terminal ------------------------------------------------------------


def list_runs(home: Path) -> tuple[LiveRecord, ...]:
    """Running and recent processes, newest last. Unreadable ones are skipped."""
    found = (_read_record(folder) for folder in (home / FOLDER).glob("*-*"))
    return tuple(sorted((one for one in found if one), key=lambda one: _number(one.id)))


def find_runs(home: Path, name: str = "", *, alive: bool = False) -> tuple[LiveRecord, ...]:
    """The runs matching `name`: an id, a kind (`work`) or a loop's id; all by default. Raises UserError if none
    match."""
    known = [one for one in list_runs(home) if one.alive or not alive]
    found = tuple(one for one in known if not name or name in (one.id, one.kind, one.run))
    if not found and name:
        names = ", ".join(one.id for one in known) or "nothing"
        which = "runs here" if alive else "is known here"
        raise UserError(f"no run {name!r} {which}", f"there is: {names}", usage=True)
    return found


def read_order(folder: Path) -> HoldOrder:
    """The request to a run, or ""."""
    try:
        word = run_files.read(folder / ORDER, 64) or b""
    except (UserError, OSError):
        return ""
    return ORDERS.get(word.decode(errors="replace").strip(), "")


def give_order(home: Path, record: LiveRecord, order: HoldOrder) -> None:
    """Ask a run to pause or stop at its next safe point; "" resumes it. One that is stopping is not paused.

    Raises OSError.
    """
    folder = home / FOLDER / record.id
    if order == "pause" and read_order(folder) == "stop":
        return
    if order:
        run_files.write(folder / ORDER, f"{order}\n".encode())
    else:
        run_files.remove(folder / ORDER)


def read_events(home: Path, id: str, skip: int = 0) -> tuple[list[RunEvent], int]:
    """The events of a run after the first `skip` bytes, and the new offset."""
    place, found = home / FOLDER / id / EVENTS, list[RunEvent]()
    try:
        with open(files.open_plain(place, files.top_of(place)), "rb") as file:
            file.seek(skip)
            lines = file.read(CAP)
    except OSError:
        return [], skip
    whole = lines[: lines.rfind(b"\n") + 1]
    for line in whole.split(b"\n"):
        with suppress(ValueError, TypeError, RecursionError):
            found.append(_event(json.loads(line)))
    return found, skip + len(whole)


def follow_events(
    home: Path, record: LiveRecord, follow: bool, sleep: Callable[[float], None] = time.sleep
) -> Iterator[RunEvent]:
    """The events of a run; with `follow`, also future ones until it ends."""
    at = 0
    while True:
        over = not follow or not (now := _read_record(home / FOLDER / record.id)) or not now.alive
        found, after = read_events(home, record.id, at)
        while found or after > at:
            yield from found
            at = after
            found, after = read_events(home, record.id, at)
        if over:
            return
        sleep(LOOK)


def last_words(home: Path, id: str, count: int) -> list[str]:
    """The last lines of a run's agents, newest last."""
    events = last_events(home, id, CAP // 8)
    lines = [event.text.strip().rpartition("\n")[2] for event in events if event.kind in ("text", "tool")]
    return [line for line in lines if line][-count:]


def last_events(home: Path, id: str, size: int) -> list[RunEvent]:
    """The events in the last `size` bytes, at most `CAP`, newest last."""
    try:
        end = (home / FOLDER / id / EVENTS).stat().st_size
    except OSError:
        return []
    return read_events(home, id, max(0, end - size))[0]


def start_detached(home: Path, kind: str, arguments: Sequence[str]) -> tuple[str, int | None]:
    """Start ourselves with `arguments` as a process that outlives this terminal; returns its id, and its exit code if
    it ended before its loop began. A loop that checks its base for longer is not waited for. Raises UserError, OSError.
    """
    run_files.prepare(home)
    name = take_id(home, kind)
    folder = home / FOLDER / name
    with open(folder / OUTPUT, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, env={**os.environ, NAMED: name},
        )  # fmt: skip  # one call
    looks = 0
    while looks < BEGINNING:
        code, record = process.poll(), _read_record(folder)  # in this order: nothing is written after the end
        if record and record.run:
            break
        if code is not None:
            return name, code
        looks += (folder / EVENTS).exists()
        time.sleep(LOOK / 10)
    process.returncode = 0  # nobody waits for it any more
    return name, None


def read_output(home: Path, id: str) -> str:
    """The output of a detached run so far."""
    return (run_files.read(home / FOLDER / id / OUTPUT, CAP * 16) or b"").decode(errors="replace")


def take_id(home: Path, kind: str) -> str:
    """A new id with its folder. Raises OSError."""
    top = home / FOLDER
    top.mkdir(parents=True, exist_ok=True)
    number = max((_number(folder.name) for folder in top.iterdir()), default=0)
    while True:
        number += 1
        with suppress(FileExistsError):
            (top / f"{kind}-{number}").mkdir()
            return f"{kind}-{number}"


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else 0


def _forget_old(home: Path) -> None:
    over = [one for one in list_runs(home) if not one.alive]
    for one in over[: max(0, len(over) - ENDED_RUNS)]:
        shutil.rmtree(home / FOLDER / one.id, ignore_errors=True)


def _read_record(folder: Path) -> LiveRecord | None:
    try:
        fields: dict[str, Any] = json.loads(run_files.read(folder / RECORD, CAP) or b"{}")
        stories = tuple(fields.get("stories") or ()) or None
        return LiveRecord(**{**fields, "stories": stories})
    except (ValueError, TypeError, RecursionError, UserError, OSError):
        return None


def _started(pid: int) -> str:
    """A process's start time in ticks since boot, or ""."""
    return b"".join(stat_fields(pid)[19:20]).decode()


def _document(event: RunEvent) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(event).items() if value not in (None, "", 0) or name == "kind"}
    return {**fields, "at": _iso(event.at)} if event.at else fields


def _event(fields: Mapping[str, Any]) -> RunEvent:
    stories, at = fields.get("stories"), fields.get("at")
    moment = datetime.fromisoformat(at) if isinstance(at, str) else None
    return RunEvent(**{**fields, "stories": tuple(stories) if stories else None, "at": moment})


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else (one or 0.0) + other


def _iso(when: datetime) -> str:
    return when.isoformat(timespec="seconds")
