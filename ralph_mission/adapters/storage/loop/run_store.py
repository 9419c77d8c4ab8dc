"""The store of a loop (`ports.RunStore`): all files that it lives by, put together from what keeps each of them.

What cannot be read is as it last could be, with a complaint that the next session and a person see. What a session
destroyed is put back from what the running loop holds: agents delete `.ralph/`.
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
from ralph_mission.adapters.storage.loop.stories import Carried, Stories
from ralph_mission.adapters.storage.loop.tasks import All, Tasks
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunResult, RunSpec
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
from ralph_mission.loop.model.watch import HoldOrder
from ralph_mission.loop.prompt import session
from ralph_mission.loop.rules import completion

Value = TypeVar("Value")


class LastKnown:
    """What each named thing was when it last could be read. `doubts` are those of this look, for people to read."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.doubts: list[str] = []

    def look(self) -> None:
        """Begin a new look: earlier doubts were told."""
        self.doubts = []

    def read(self, what: str, read: Callable[[], Value], default: Value) -> Value:
        """What `read` gives, or gave when it last could; `default` where it never could."""
        try:
            self._known[what] = read()
        except UserError as problem:
            self.doubts.append(f"{problem.what}; what was known before is used")
        except OSError as error:
            reason = (error.strerror or "no reason given").lower()
            self.doubts.append(f"{what} cannot be read ({reason}); as known before")
        known: Value = self._known.get(what, default)
        return known


FRESH = timedelta(seconds=2)  # what a person commits between two sessions is seen, a moment later perhaps
CAP = 8 * 1024 * 1024  # bytes of the scratchpad


class FileRunStore:
    """The files of one work tree `root`, whose git directory is `git_dir`; `tree` says where the checkout stands.

    `go_on`: continue the run that was left. `archive_previous`: put the stories of another branch away when a run
    begins. `restarts`: a signal may ask the run to start anew.
    `clone` is where sessions work and have the stories and their log, where that is not the work tree itself.
    `owner` is what sessions claim tasks as: what one leaves active is given back when it is over.
    `asked` is what a person asks of the run from elsewhere; `news` say how files and issues stand, in any words
    that stay while they do.
    `ready` makes the checkout ready for an order once nobody else works there, or raises UserError.
    """

    def __init__(
        self, root: Path, git_dir: Path, tree: Callable[[], CheckoutState], now: Callable[[], datetime],
        *, go_on: bool = False, archive_previous: bool = True, restarts: bool = True,
        prd: Path | None = None, owner: str = "",
        ready: Callable[[RunSpec], None] = lambda spec: None,
        clone: Path | None = None,
        asked: Callable[[], HoldOrder] = lambda: "",
        news: tuple[Callable[[], str], ...] = (),
    ) -> None:  # fmt: skip  # as one reads it
        self._root, self._home, self._git_dir = root, root / ".ralph", git_dir
        self._tree, self._now, self._ready = tree, now, ready
        self._held_by, self._news = asked, news
        self._go_on, self._archive_previous, self._restarts = go_on, archive_previous, restarts
        self._clone = clone or root
        self._carried = Carried(root, self._clone, prd)
        in_clone = self._carried.stories if clone and (self._carried.listed or prd) else prd
        self._stories = Stories(self._clone, in_clone, root / ".ralph/loop", going_on=go_on)
        self._log = ProgressLog(self._stories.folder, self._clone)
        self._bringing = True
        self._events = EventLog(self._home, now)
        self._tasks, self._guide = Tasks(self._home, now), Guide(self._home, now)
        self._owner = owner
        self._order: RunSpec | None = None
        self._board, self._asked = RunSnapshot(), ""
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
        """Held while a loop runs in this checkout. What was asked of this run is forgotten with it."""
        run_files.prepare(self._home)
        for name in ("agent", "loop/runs"):  # where sessions write, and where none of them may
            (self._home / name).mkdir(parents=True, exist_ok=True)
        if spec.preset.stories:
            self._refuse_elsewhere(self._carried.folder)
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
        """The state of the same objective's run, ours or one that another tool left. None starts a new one.

        Whoever continues has looked at what ended the run: it gets another chance.
        """
        if not self._go_on:
            return None
        found, complaint = state.rescue(self._root)
        self._complain(complaint)
        left = found or self._left_by_others(spec)
        if left is None or left.objective != spec.objective:
            return None
        inbox.clear(self._home)
        again = replace(left, failures=0, redispatches=0, idle=0, claims=0)
        self._bringing = not left.mark  # else what that session claimed is told first
        stuck = completion.find_dead_end(spec, again, self.snapshot())
        self._stood = None
        return replace(again, skipped=frozenset(), stale=0) if stuck else again

    def open(self, spec: RunSpec, now: datetime) -> RunState:
        """A new run: what the former one left is put away, memories stay."""
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
        ours = Stories(self._root, self._carried.named, going_on=self._go_on)
        if prd := ours.read():
            archive.turn(ours, ProgressLog(ours.folder, self._root), prd, now)

    def _left_by_others(self, spec: RunSpec) -> RunState | None:
        left = lock.left_by_others(self._root)
        if left is None:
            return None
        now = self._now()
        name = archive.fresh_id(self._root, str(spec.preset.name), now)
        return RunState(name, left.objective, left.started_at or now, left.iteration, item=left.item, stale=left.stale,
                     feedback=left.feedback, kind=spec.kind)  # fmt: skip  # one value

    # --- before a session ------------------------------------------------------------

    def snapshot(self) -> RunSnapshot:
        """Everything a session may know."""
        stories = bool(self._order and self._order.preset.stories)
        self._known.look()
        if self._bringing:
            self._carried.bring()
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
        told = (self._stories.complaint if stories else "", self._log.complaint if stories else "")
        self._board = replace(snapshot, complaints=(*filter(None, told), *self._known.doubts))
        self._shared.hold()
        return self._board

    def signal(self) -> StopSignal:
        """What a person asks of the running loop. Once heard it holds, even if a session deletes the file."""
        found = inbox.read(self._home)
        if found != "restart" or self._restarts:
            self._asked = found or self._asked
        if not self._asked and self._held_by() == "stop":
            self._asked = "stop"
        return self._asked  # type: ignore[return-value]  # only what `read` gave is ever kept

    def heard(self) -> bool:
        """Whether a person has said something (a signal, guidance) that nobody has dealt with."""
        return bool(self.signal() or self._guide.pending())

    def look(self) -> str:
        """What people and other programs may have changed (files, issues). Asks no model."""
        read, names = self._known.read, ("files", "issues")
        told = [read(name, look, "") for name, look in zip(names, self._news, strict=False)]
        tasks: All = read("tasks", self._tasks.all, ())
        return repr((told, tasks))

    def brief(self, prompt: str) -> None:
        """Keep the prompt of the session that is about to start."""
        run_files.write(self._home / "loop/prompt.txt", prompt.encode("utf-8", "replace"))
        if self._is_mirrored:
            lock.brief(self._root, prompt)

    # --- after a session -------------------------------------------------------------

    def said(self) -> tuple[LoopEvent, ...]:
        """The events agents said through files since the last call, oldest first."""
        return events.read_events(self._home)

    def record(self, event: LoopEvent) -> None:
        """Append one to the event log."""
        self._events.record(event)

    def acknowledge(self, guidance: Sequence[Guidance]) -> None:
        """These were given to a session: not given again."""
        if guidance:
            self._guide.acknowledge(one.id for one in guidance)

    def stories(self, prd: Prd) -> None:
        """Write which stories pass, where the file was found, leaving the rest of it as it is."""
        self._tell(self._stories.write(prd))

    def judged(self, commit: str) -> None:
        """What stands in the stories now was checked; once HEAD has this commit behind it, no kill takes it back."""
        self._carried.judged(commit)

    def note(self, entry: str) -> None:
        """Append to progress.txt what an iteration did or failed at; a log that was cut short is made whole first."""
        self._tell(self._log.append(entry, self._now()))

    def restore(self) -> tuple[PathChange, ...]:
        """Put back what a session may not take away: our own files, the log's past. Folders, stories, the logs,
        records, and what sessions share."""
        names = files.unlink(self._root, run_files.FOLDERS)
        linked = (*(PathChange(name, "made a link", PUT_BACK) for name in names), *self._shared.unstrange())
        stories = bool(self._order and self._order.preset.stories)
        lists = (*self._stories.restore(), *self._log.restore()) if stories else ()
        restored = (*linked, *lists, *self._events.restore(), *self._shared.restore(), *self._records.restore())
        if self._owner and self._tasks.path.exists():
            self._tasks.release(self._owner)
        return restored

    def keep(self, state_now: RunState, output: HatOutput | None) -> None:
        """The state between two sessions and the handoff of it. State, handoff, the session's record, and the other
        tool's files, if any."""
        self._state = state_now
        if state_now.mark:
            self._carried.begin()
        if output:
            self._complain(*self._carried.take_back())
        state.save(self._root, state_now)
        if output:
            self._records.keep(state_now.run_id, output)
            self._stood = None
        assert self._order is not None  # `exclusive` came first
        # Without stories nothing was written since the files were last read.
        snapshot = self.snapshot() if output and self._order.preset.stories else self._board
        document = session.handoff_document(self._order, state_now, snapshot)
        shown = json.dumps(document, indent=2).encode() + b"\n"
        run_files.write(self._home / "loop/handoff.json", shown, lasting=False)  # it only shows what the state holds
        if self._is_mirrored:
            lock.mirror(self._root, state_now, document, active=True)

    def tidy(self) -> None:
        """Between two issues of a persistent loop: scratchpad cleared, tasks archived. What belongs to the issue
        that is done goes to the run's folder."""
        assert self._state is not None  # a session was played
        where = self._root / state.RUNS / self._state.run_id
        if files.stays(self._home / "agent", self._root):  # nothing was read from anywhere else
            archive.move_file(self._home / SCRATCHPAD, where)
        if self._tasks.archive(where / f"tasks-{self._state.iteration:04d}.jsonl", keep_open=True):
            self._shared.forget(TASKS)

    def put_back(self, landed: Callable[[str], bool]) -> tuple[PathChange, ...]:
        """The stories and their log as when the session began that died: what it claimed nobody has checked. What
        stood there goes to the run's folder."""
        left, _ = state.rescue(self._root)
        self._stood = None
        self._bringing = True
        if left is None:
            return ()
        return self._carried.put_back(self._root / state.RUNS / left.run_id, landed)

    def close(self, account: RunResult) -> None:
        """The run is over, nobody else works here yet; a cancelled one is not continued. Raises OSError."""
        if account.ending.reason == "cancel" and self._state:
            archive.retire(self._root, self._state)

    def counted(self) -> tuple[int, int] | None:
        """How many stories pass, of how many; None without stories."""
        stories = self._board.prd.stories if self._board.prd else ()
        return (sum(story.passes for story in stories), len(stories)) if self._board.prd else None

    def item(self) -> UserStory | None:
        """The story that is being worked on, None when it is none."""
        stories = self._board.prd.stories if self._board.prd and self._state else ()
        return next((story for story in stories if self._state and story.id == self._state.item), None)

    @property
    def paths(self) -> RunPaths:
        """Where the shared files stand."""
        return RunPaths(self._name_from_clone(self._stories.place), self._name_from_clone(self._log.path))

    # --- inside ----------------------------------------------------------------------

    def _refuse_elsewhere(self, folder: Path) -> None:
        """A person's link is theirs: what a session makes one later is taken away, and told."""
        if folder.is_relative_to(self._root) and not files.stays(folder, self._root):
            raise UserError(f"{folder} leads out of the work tree", run_files.STRANGE)

    def _name_from_clone(self, path: Path) -> str:
        return path.relative_to(self._clone).as_posix() if path.is_relative_to(self._clone) else str(path)

    @property
    def _is_mirrored(self) -> bool:
        """Whether the stories are kept where the other tool keeps its own, in the work tree."""
        return self._carried.folder == self._root / ".omc" and files.stays(self._root / lock.FOLDER, self._root)

    def _notes_of_run(self) -> str:
        return (run_files.read(self._home / SCRATCHPAD, CAP, self._root) or b"").decode(errors="replace")

    def _readable_tree(self) -> CheckoutState:
        """Where the checkout stands; asked anew after each session (`keep`), and not again within moments."""
        now = self._now()
        if self._stood is None or now - self._stood[0] > FRESH:
            tree = self._tree()
            if not tree.readable:
                raise UserError("git gives no answer about the checkout", "run git status")
            self._stood = (now, tree)
        return self._stood[1]

    def _tell(self, restored: Sequence[PathChange]) -> None:
        """Say what was put back after the session was judged: what the checks ran did it."""
        self._complain(*(f"{change.path} was {change.how}; {change.reverted}" for change in restored))

    def _complain(self, *complaints: str) -> None:
        self.complaints += filter(None, complaints)
