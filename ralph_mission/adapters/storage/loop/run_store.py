"""The store of a loop (`ports.RunStore`), composed of the modules for each file.

An unreadable file counts as last read, with a complaint that the next session and a person see. Whatever a session
destroyed is restored from the running loop's copy: agents delete `.ralph/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import archive, events, inbox, lock, run_files, state
from ralph_mission.adapters.storage.loop.events import EventLog
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.notes import Memories, ProgressLog
from ralph_mission.adapters.storage.loop.run_files import PUT_BACK
from ralph_mission.adapters.storage.loop.state import SCRATCHPAD, TASKS, Records, Shared
from ralph_mission.adapters.storage.loop.stories import CopiedLists, Stories
from ralph_mission.adapters.storage.loop.tasks import All, Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import HoldOrder, RunResult, RunSpec
from ralph_mission.loop.model.state import (
    CheckoutState,
    Guidance,
    HatOutput,
    LoopEvent,
    PathChange,
    Prd,
    ProgressNotes,
    RunPaths,
    RunSnapshot,
    RunState,
    StopSignal,
    UserStory,
)
from ralph_mission.loop.prompt import session
from ralph_mission.loop.rules import completion

Value = TypeVar("Value")


class LastKnown:
    """The last readable value of each file. `doubts`: complaints of this snapshot, for people."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.doubts: list[str] = []

    def look(self) -> None:
        """Start a new snapshot, without earlier doubts."""
        self.doubts = []

    def read(self, what: str, read: Callable[[], Value], default: Value) -> Value:
        """The result of `read`, or its last successful one, or `default`."""
        try:
            self._known[what] = read()
        except UserError as problem:
            self.doubts.append(f"{problem.what}; what was known before is used")
        except OSError as error:
            reason = (error.strerror or "no reason given").lower()
            self.doubts.append(f"{what} cannot be read ({reason}); as known before")
        known: Value = self._known.get(what, default)
        return known


FRESH = timedelta(seconds=2)  # seconds; a person's commit between sessions may be seen a moment later
CAP = 8 * 1024 * 1024  # bytes of the scratchpad


class FileRunStore:
    """The files of the work tree `root` with git directory `git_dir`; `tree` returns the state of the checkout.

    `go_on`: continue the previous run. `archive_previous`: archive stories of another branch when a run begins.
    `restarts`: a signal may restart the run. `clone`: where sessions work and have stories and log, if not in the work
    tree. `owner`: the owner of sessions' task claims, released when a session ends. `hold`: returns a person's request
    from elsewhere. `news`: return digests of files and issues. `ready`: prepares the checkout once nobody else works
    there, or raises UserError.
    """

    def __init__(
        self, root: Path, git_dir: Path, tree: Callable[[], CheckoutState], now: Callable[[], datetime],
        *, go_on: bool = False, archive_previous: bool = True, restarts: bool = True,
        prd: Path | None = None, owner: str = "",
        ready: Callable[[RunSpec], None] = lambda spec: None,
        clone: Path | None = None,
        hold: Callable[[], HoldOrder] = lambda: "",
        news: tuple[Callable[[], str], ...] = (),
    ) -> None:  # fmt: skip  # as one reads it
        self._root, self._home, self._git_dir = root, root / ".ralph", git_dir
        self._tree, self._now, self._ready = tree, now, ready
        self._held_by, self._news = hold, news
        self._go_on, self._archive_previous, self._restarts = go_on, archive_previous, restarts
        self._clone = clone or root
        self._copies = CopiedLists(root, self._clone, prd)
        in_clone = self._copies.stories if clone and (self._copies.listed or prd) else prd
        self._stories = Stories(self._clone, in_clone, root / ".ralph/loop", going_on=go_on)
        self._log = ProgressLog(self._stories.folder, self._clone)
        self._bringing = True
        self._events = EventLog(self._home, now)
        self._tasks, self._guide = Tasks(self._home, now), Guide(self._home, now)
        self._owner = owner
        self._order: RunSpec | None = None
        self._board = RunSnapshot()
        self._signal: StopSignal = ""
        self._state: RunState | None = None
        self._known, self._shared = LastKnown(), Shared(self._home)
        self._stood: tuple[datetime, CheckoutState] | None = None
        self._records = Records(root)
        self.complaints: list[str] = []

    @property
    def run_dir(self) -> str:
        """`.ralph/loop`, absolute."""
        return str(self._home / "loop")

    @contextmanager
    def exclusive(self, spec: RunSpec) -> Iterator[None]:
        """A lock held while a loop runs in this checkout. Requests to the run end with it."""
        run_files.prepare(self._home)
        for name in ("agent", "loop/runs"):  # where sessions may write, and where not
            (self._home / name).mkdir(parents=True, exist_ok=True)
        if spec.preset.stories:
            self._refuse_elsewhere(self._copies.folder)
        with lock.exclusive(self._git_dir, self._root, spec.preset.name, self._now()):
            self._order = spec
            try:
                self._ready(spec)
                yield
            finally:
                lock.inactive(self._root)
                inbox.clear(self._home)

    # --- beginning -------------------------------------------------------------------

    def resumed(self, spec: RunSpec) -> RunState | None:
        """The state of a run of the same objective, ours or another tool's; None starts a new one.

        Continuing implies that a person looked at the ending, so the run gets another chance.
        """
        if not self._go_on:
            return None
        found, complaint = state.rescue(self._root)
        self._complain(complaint)
        previous = found or self._left_by_others(spec)
        if previous is None or previous.objective != spec.objective:
            return None
        inbox.clear(self._home)
        again = replace(previous, failures=0, redispatches=0, idle=0, claims=0)
        self._bringing = not previous.mark  # else the session's claims would be reported first
        stuck = completion.find_dead_end(spec, again, self.snapshot())
        self._stood = None
        return replace(again, skipped=frozenset(), stale=0) if stuck else again

    def open(self, spec: RunSpec, now: datetime) -> RunState:
        """Start a new run: archive the previous one, except memories."""
        previous, complaint = state.rescue(self._root)
        self._complain(complaint)
        archive.archive_run(self._root, previous, self._events, now)
        self._shared.forget()
        if spec.preset.stories and self._archive_previous:
            self._archive(now)
        begun = RunState(archive.fresh_id(self._root, str(spec.preset.name), now), spec.objective, now, kind=spec.kind,
                         changed=False)  # fmt: skip  # one value
        self._stood = None
        state.save(self._root, begun)
        return begun

    def _archive(self, now: datetime) -> None:
        ours = Stories(self._root, self._copies.named, going_on=self._go_on)
        if prd := ours.read():
            archive.turn(ours, ProgressLog(ours.folder, self._root), prd, now)

    def _left_by_others(self, spec: RunSpec) -> RunState | None:
        previous = lock.left_by_others(self._root)
        if previous is None:
            return None
        now = self._now()
        name = archive.fresh_id(self._root, str(spec.preset.name), now)
        return RunState(
            name, previous.objective, previous.started_at or now, previous.iteration,
            item=previous.item, stale=previous.stale, feedback=previous.feedback, kind=spec.kind,
        )  # fmt: skip  # one value

    # --- before a session ------------------------------------------------------------

    def snapshot(self) -> RunSnapshot:
        """Everything a session may know."""
        stories = bool(self._order and self._order.preset.stories)
        self._known.look()
        if self._bringing:
            self._copies.bring()
        read = self._known.read
        snapshot = RunSnapshot(
            read("stories", self._stories.read, None) if stories else None,
            read("tasks", self._tasks.all, ()),
            read("memories", Memories(self._home).text, ""),
            read("scratchpad", self._notes_of_run, ""),
            read("guidance", self._guide.pending, ()),
            read("progress", self._log.read, ProgressNotes()) if stories else ProgressNotes(),
            read("git", self._readable_tree, CheckoutState(readable=False)),
            paths=self.paths,
        )
        complaints = (self._stories.complaint if stories else "", self._log.complaint if stories else "")
        self._board = replace(snapshot, complaints=(*filter(None, complaints), *self._known.doubts))
        self._shared.hold()
        return self._board

    def signal(self) -> StopSignal:
        """A person's request. Once read it holds, even if a session deletes the file."""
        found = inbox.read(self._home)
        if found != "restart" or self._restarts:
            self._signal = found or self._signal
        if not self._signal and self._held_by() == "stop":
            self._signal = "stop"
        return self._signal

    def heard(self) -> bool:
        """Whether there is an unhandled signal or guidance."""
        return bool(self.signal() or self._guide.pending())

    def look(self) -> str:
        """A digest of what people and other programs may have changed. Calls no model."""
        read, names = self._known.read, ("files", "issues")
        answers = [read(name, look, "") for name, look in zip(names, self._news, strict=False)]
        tasks: All = read("tasks", self._tasks.all, ())
        return repr((answers, tasks))

    def brief(self, prompt: str) -> None:
        """Store the prompt of the session that is about to start."""
        run_files.write(self._home / "loop/prompt.txt", prompt.encode("utf-8", "replace"))
        if self._is_mirrored:
            lock.brief(self._root, prompt)

    # --- after a session -------------------------------------------------------------

    def read_events(self) -> tuple[LoopEvent, ...]:
        """The events agents emitted through files since the last call, oldest first."""
        return events.read_events(self._home)

    def record(self, event: LoopEvent) -> None:
        """Append an event to the log."""
        self._events.record(event)

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """Mark guidance as given to a session."""
        if guidance:
            self._guide.acknowledge(one.id for one in guidance)

    def stories(self, prd: Prd) -> None:
        """Write which stories pass, leaving the rest of the file as it is."""
        self._tell(self._stories.write(prd))

    def judged(self, commit: str) -> None:
        """Record that the current stories were checked; once HEAD contains this commit, a kill cannot undo it."""
        self._copies.judged(commit)

    def note(self, entry: str) -> None:
        """Append an iteration's result to progress.txt, repairing a truncated log first."""
        self._tell(self._log.append(entry, self._now()))

    def restore(self) -> tuple[PathChange, ...]:
        """Restore what a session must not remove: folders, stories, logs, records, and shared files."""
        names = files.unlink(self._root, run_files.FOLDERS)
        linked = (*(PathChange(name, "made a link", PUT_BACK) for name in names), *self._shared.unstrange())
        stories = bool(self._order and self._order.preset.stories)
        lists = (*self._stories.restore(), *self._log.restore()) if stories else ()
        restored = (*linked, *lists, *self._events.restore(), *self._shared.restore(), *self._records.restore())
        if self._owner and self._tasks.path.exists():
            self._tasks.release(self._owner)
        return restored

    def keep(self, state_now: RunState, output: HatOutput | None) -> None:
        """Store state, handoff, the session's record, and the other tool's files, if any."""
        self._state = state_now
        if state_now.mark:
            self._copies.begin()
        if output:
            self._complain(*self._copies.take_back())
        state.save(self._root, state_now)
        if output:
            self._records.keep(state_now.run_id, output)
            self._stood = None
        assert self._order is not None  # `exclusive` came first
        # Without stories nothing was written since the files were last read.
        snapshot = self.snapshot() if output and self._order.preset.stories else self._board
        document = session.handoff_document(self._order, state_now, snapshot)
        text = json.dumps(document, indent=2).encode() + b"\n"
        run_files.write(self._home / "loop/handoff.json", text, lasting=False)  # it only repeats the state
        if self._is_mirrored:
            lock.mirror(self._root, state_now, document, active=True)

    def tidy(self) -> None:
        """Between issues of a persistent loop: clear the scratchpad and archive tasks into the run's folder."""
        assert self._state is not None  # a session ran
        where = self._root / state.RUNS / self._state.run_id
        if files.stays(self._home / "agent", self._root):  # nothing was read from anywhere else
            archive.move_file(self._home / SCRATCHPAD, where)
        if self._tasks.archive(where / f"tasks-{self._state.iteration:04d}.jsonl", keep_open=True):
            self._shared.forget(TASKS)

    def put_back(self, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        """Restore stories and log to the start of the session that died; its versions go to the run's folder."""
        previous, _ = state.rescue(self._root)
        self._stood = None
        self._bringing = True
        if previous is None:
            return ()
        return self._copies.put_back(self._root / state.RUNS / previous.run_id, landed)

    def close(self, account: RunResult) -> None:
        """End the run; a cancelled one cannot be continued. Raises OSError."""
        if account.ending.reason == "cancel" and self._state:
            archive.retire(self._root, self._state)

    def counted(self) -> tuple[int, int] | None:
        """The number of passing stories and of all; None without stories."""
        stories = self._board.prd.stories if self._board.prd else ()
        return (sum(story.passes for story in stories), len(stories)) if self._board.prd else None

    def item(self) -> UserStory | None:
        """The story being worked on, or None."""
        stories = self._board.prd.stories if self._board.prd and self._state else ()
        return next((story for story in stories if self._state and story.id == self._state.item), None)

    @property
    def paths(self) -> RunPaths:
        """The paths of the shared files."""
        return RunPaths(self._name_from_clone(self._stories.place), self._name_from_clone(self._log.path))

    # --- inside ----------------------------------------------------------------------

    def _refuse_elsewhere(self, folder: Path) -> None:
        """Refuse links a person made; those a session makes later are removed and reported."""
        if folder.is_relative_to(self._root) and not files.stays(folder, self._root):
            raise UserError(f"{folder} leads out of the work tree", run_files.STRANGE)

    def _name_from_clone(self, path: Path) -> str:
        return path.relative_to(self._clone).as_posix() if path.is_relative_to(self._clone) else str(path)

    @property
    def _is_mirrored(self) -> bool:
        """Whether the stories are where the other tool keeps its own, in the work tree."""
        return self._copies.folder == self._root / ".omc" and files.stays(self._root / lock.FOLDER, self._root)

    def _notes_of_run(self) -> str:
        return (run_files.read(self._home / SCRATCHPAD, CAP, self._root) or b"").decode(errors="replace")

    def _readable_tree(self) -> CheckoutState:
        """The state of the checkout, cached for moments and until the next `keep`."""
        now = self._now()
        if self._stood is None or now - self._stood[0] > FRESH:
            tree = self._tree()
            if not tree.readable:
                raise UserError("git gives no answer about the checkout", "run git status")
            self._stood = (now, tree)
        return self._stood[1]

    def _tell(self, restored: Sequence[PathChange]) -> None:
        """Report what was restored after judging: checks changed it."""
        self._complain(*(f"{change.path} was {change.how}; {change.reverted}" for change in restored))

    def _complain(self, *complaints: str) -> None:
        self.complaints += filter(None, complaints)
