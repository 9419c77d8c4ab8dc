"""The store: memory on the branch `ralph-memory`, one commit per batch, only by git plumbing.

Never touches checkout, index, stash or configuration. The ref moves by compare-and-swap from the commit that was read;
`provenance` decides what is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from ralph_mission.adapters import files as durable_files
from ralph_mission.adapters.git.git import Git, GitError, Identity, pack_loose
from ralph_mission.adapters.git.remote import Denied, Remote
from ralph_mission.adapters.storage.memory import codec, provenance, recordings
from ralph_mission.adapters.storage.memory.provenance import Anchorage, AnchorMark, MemoryBranch, reason
from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.memory.text import NEXT, merge_edits, parse_memory, people_edits, refuse, with_people_of
from ralph_mission.mission.model.ledger import Anchor, MemoryBatch, MemorySnapshot, OpenState, Record
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.ports import CycleClock
from ralph_mission.safety.secrets import texts
from ralph_mission.values import compile_regex

ATTEMPTS = 5  # people do not edit faster
PACKED = 500  # memory commits after which their objects are packed: nothing else does so on a runner
SKIP_CI = "[skip ci]"
BOOM = (GitError, Denied, OSError)
READING = "read memory"
AGAIN = "fix that, then run again; memory is as it was"
LOCKED = compile_regex(r"\.lock': File exists")
LOCK_STEP = "wait until the git that holds it has ended; an abandoned one is removed by: ralph memory recover"


class BranchStore:
    """`ports.Store`."""

    def __init__(
        self,
        git: Git,
        clock: CycleClock,
        *,
        branch: str = layout.BRANCH,
        path: str = layout.MEMORY,
        holder: str = "",
        remote: Remote | None = None,
        run_is_over: Callable[[str], bool] = lambda holder: False,
        vouched: Callable[[], Anchor | None] = lambda: None,
        secrets: tuple[str, ...] = (),
        author: Callable[[], Identity] = Identity,
    ) -> None:
        self.branch = MemoryBranch(git, branch, path, remote, vouched)
        self.anchorage = Anchorage(git.common_dir / "ralph")
        self.git, self._clock, self._holder, self._run_is_over = git, clock, holder, run_is_over
        self._working, self._secrets, self._author = False, secrets, author
        self._paused = ("", False)

    # --- who is at work ---

    def holder(self) -> str:
        """Our identity in a claim: the run's URL, or host + boot id + pid."""
        self._holder = self._holder or provenance.this_holder(self._clone())
        return self._holder

    def _clone(self) -> str:
        # On a server several clones share one memory, and each has its own lock.
        return self.anchorage.clone() if self.branch.remote else ""

    def proven_dead(self, holder: str) -> bool:
        """True for a finished workflow run, and for a process of this clone while we hold its lock."""
        if not self._working:
            return False
        if holder == self.holder():
            return True
        return self._run_is_over(holder) if "://" in holder else provenance.same_place(holder, self._clone())

    @contextmanager
    def at_work(self, issue: int) -> Iterator[bool]:
        """Held during work on an issue; yields False if another process of this clone holds it. A lock of this clone
        and its linked work trees, one per issue."""
        with ExitStack() as lock:
            with explain_errors("lock an issue"):
                success = lock.enter_context(durable_files.hold_file(self.anchorage.folder / f"work-{issue}"))
            yield success

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Held during a cycle; yields False if another runner on this machine holds it. A lock of this clone and its
        linked work trees."""
        with ExitStack() as lock:
            with explain_errors("lock memory"):
                success = lock.enter_context(self.anchorage.working())
            self._working = self._working or success
            try:
                yield success
            finally:
                self._working = self._working and not success

    # --- reading ---

    def recall(self) -> MemorySnapshot | None:
        """Memory, open keys and claim at one commit; None without memory."""
        return self._read_snapshot(alone=False)

    def _read_snapshot(self, alone: bool) -> MemorySnapshot | None:
        with explain_errors(READING):
            head, mark = self.branch.head(), self.anchorage.read()
            if not head:
                self._refuse_gone(mark)
                return None
            self.git.refuse_lost(head)
            ours = self.branch.ours(head, mark, alone)
            memory, state = self.read(head)
            edits: tuple[str, ...] = ()
            if ours != head:
                memory, edits = self._merge_edit(self.read(ours)[0], memory)
            self._paused = (head, memory.header.paused)
            return MemorySnapshot(memory, state, head, edits)

    def records(self, keys: Iterable[str], at: MemorySnapshot | None) -> Mapping[str, Record]:
        """The ledger's records for `keys` at the recalled commit, without missing keys. One git process for any number
        of keys."""
        if at is None:
            return {}
        paths = {key: layout.record(key) for key in keys}
        with explain_errors(READING):
            found = self.git.blobs((f"{at.oid}:{path}" for path in paths.values()), strict=True)
        named = {key: (path, found[f"{at.oid}:{path}"]) for key, path in paths.items() if f"{at.oid}:{path}" in found}
        return {key: _record(key, path, data) for key, (path, data) in named.items()}

    def paused(self) -> bool:
        """Whether memory is `paused` *now* (re-read). Also True if memory is invalid."""
        try:
            head = self.branch.head()
            if not head or head != self._paused[0]:
                found = self._read_snapshot(alone=True)
                self._paused = (head, bool(found and found.memory.header.paused))
            return self._paused[1]
        except (UserError, *BOOM):
            return True

    def read(self, commit: str) -> tuple[Memory, OpenState]:
        """Memory and open state of any commit. Raises UserError."""
        names = (f"{commit}:{self.branch.path}", f"{commit}:{layout.OPEN}")
        found = self.git.blobs(names)
        for name in names:
            if name not in found:
                raise refuse(f"{name.partition(':')[2]} is missing on the branch {self.branch.name}")
        memory = parse_memory(found[names[0]])
        try:
            return memory, codec.load(OpenState, found[names[1]])
        except codec.UnreadableDocument as error:
            raise codec.unreadable(layout.OPEN, error) from None

    def contains(self, commit: str) -> bool:
        """Whether `commit` is the branch's head or an ancestor of it: for `check_position`."""
        head = self.branch.head()
        return bool(head) and self.git.contains(commit, head)

    def _refuse_gone(self, mark: AnchorMark | None) -> None:
        if mark is not None and mark.oid:
            raise refuse(f"the branch {self.branch.name} is missing, though it had reached serial {mark.serial}")

    def _merge_edit(self, before: Memory, theirs: Memory) -> tuple[Memory, tuple[str, ...]]:
        edits = people_edits(before, theirs)
        if edits is None:
            raise refuse(f"someone else changed more than people's sections of {self.branch.path}")
        return merge_edits(before, before, theirs), edits

    # --- writing ---

    def commit(self, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot:
        """One commit on top of `after`. People's sections and `paused` always come from the parent commit.

        Raises ValueError if a first commit names no lineage, or a later one a different lineage.
        """
        lineage = batch.memory.header.lineage
        if not lineage or (after and lineage != after.memory.header.lineage):
            raise ValueError("a commit needs the lineage of the memory it follows")
        batch = self.redact_batch(batch, after)
        with explain_errors("write memory"), self.anchorage.moving():
            for attempt in range(ATTEMPTS):
                # A server checks itself whether its branch is unchanged.
                known = after.oid if after and self.branch.remote and not attempt else ""
                head = known or self.branch.head()
                if not head:
                    self._begin_branch(after)
                if head != (after.oid if after else ""):
                    after = self._merge_head(after, head)
                new = self._advance(batch, after)
                if new is not None:
                    return new
        raise Lost

    def redact_batch(self, batch: MemoryBatch, existing: object) -> MemoryBatch:
        """A batch without this runner's secret values, by any author.

        Existing texts and our identity are kept: otherwise our crash would not be recognisable.
        """
        same = frozenset((*texts(existing), self.holder()))
        return recordings.redact_batch(batch, self._secrets, same)

    def _begin_branch(self, after: MemorySnapshot | None) -> None:
        self._refuse_gone(self.anchorage.read())
        if after is not None:
            raise refuse(f"the branch {self.branch.name} is missing")
        self.branch.refuse_unborn_checkout()

    def _merge_head(self, after: MemorySnapshot | None, head: str) -> MemorySnapshot:
        """The recalled state, with a person's later edit; raises Lost for any other commit."""
        if after is None or not self.git.contains(after.oid, head):
            raise Lost
        if not self.branch.only_memory_changed(after.oid, head):
            raise Lost
        before, (theirs, state) = self.read(after.oid)[0], self.read(head)
        edits = people_edits(before, theirs)
        if edits is None:
            raise Lost
        return MemorySnapshot(merge_edits(after.memory, before, theirs), state, head, (*after.human_edits, *edits))

    def _advance(self, batch: MemoryBatch, after: MemorySnapshot | None) -> MemorySnapshot | None:
        """One commit on top of `after`; None if the branch moved meanwhile."""
        memory = with_people_of(batch.memory, after.memory) if after else batch.memory
        if batch.paused is not None:
            memory = replace(memory, header=replace(memory.header, paused=batch.paused))
        serial = (after or batch).memory.header.serial + 1
        memory = replace(memory, header=replace(memory.header, serial=serial))
        head = after.oid if after else ""
        oid = self.move(head, self.files(replace(batch, memory=memory), head), batch.message, memory)
        if not oid:
            return None
        return MemorySnapshot(memory, batch.state, oid, after.human_edits if after else ())

    def edit(self, memory: Memory, after: MemorySnapshot, message: str) -> None:
        """Commit a person's edit: people's sections and `paused` of `memory`, nothing else, no new serial.

        A running cycle adopts it at its next commit.
        """
        with explain_errors("write memory"), self.anchorage.moving():
            for _ in range(ATTEMPTS):
                head = self.branch.head()
                if not head:
                    raise refuse(f"the branch {self.branch.name} is missing")
                now = self.read(head)[0]
                text = recordings.render_file(merge_edits(now, after.memory, memory))
                new = self.git.commit_files(
                    head, {self.branch.path: text}, _skipping_ci(message), self._clock.now(), self._author()
                )
                if self.branch.move(new, head):
                    return
        raise Lost

    def move(self, head: str, files: Mapping[str, bytes | None], message: str, memory: Memory) -> str:
        """Commit `files` on `head` and move the branch from it; "" if it moved meanwhile."""
        before = self._caught_up(head)
        new = self.git.commit_files(head, files, _skipping_ci(message), self._clock.now(), self._author())
        mark = before or AnchorMark(memory.header.lineage, memory.header.serial - 1, head)
        self.anchorage.write(replace(mark, pending=new))
        try:
            moved = self.branch.move(new, head)
        except (GitError, Denied):
            self._restore(before)
            raise
        # A UserError is doubt: it may have moved, and then `pending` shows that it is ours.
        if not moved:
            self._restore(before)
            return ""
        # The commit is final from here: if the last write fails, head == pending shows it is ours.
        with suppress(OSError):
            self.anchorage.write(AnchorMark(memory.header.lineage, memory.header.serial, moved))
        self._paused = (moved, memory.header.paused)
        if memory.header.serial % PACKED == 0:
            pack_loose(self.git)
        return moved

    def _caught_up(self, head: str) -> AnchorMark | None:
        """The mark, updated with a commit that a crash left pending."""
        mark = self.anchorage.read()
        commit = self.branch.landed(mark.pending, head) if mark and head else ""
        if not commit:
            return mark
        header = self.read(commit)[0].header
        return AnchorMark(header.lineage, header.serial, commit)

    def _restore(self, before: AnchorMark | None) -> None:
        if before is None:
            self.anchorage.forget()
        else:
            self.anchorage.write(before)

    def files(self, batch: MemoryBatch, head: str) -> dict[str, bytes | None]:
        """The files of a batch on top of `head`, by path. Raises UserError if it could not be read back."""
        return recordings.batch_files(self.git, self.branch.path, batch, head)


def _record(key: str, path: str, data: bytes) -> Record:
    try:
        record: Record = codec.load(Record, data)
    except codec.UnreadableDocument as error:
        raise codec.unreadable(path, error) from None
    if record.key != key:
        raise refuse(f"{path} on the memory branch holds another record ({record.key})")
    return record


def _skipping_ci(message: str) -> str:
    subject, newline, body = message.partition("\n")
    return message if SKIP_CI in message else f"{subject} {SKIP_CI}{newline}{body}"


@contextmanager
def explain_errors(what: str) -> Iterator[None]:
    """Git's and the system's errors as one line with advice; memory stays unchanged. Raises UserError."""
    try:
        yield
    except Denied as error:
        raise UserError(f"cannot {what}: {error.what}", error.setting) from None
    except GitError as error:
        raise UserError(f"cannot {what}: {reason(error)}", _next_step(what, error)) from None
    except OSError as error:
        detail = f"{error.filename or 'a file'}: {(error.strerror or type(error).__name__).lower()}"
        raise UserError(f"cannot {what}: {detail}", AGAIN) from None


def _next_step(what: str, error: GitError) -> str:
    if LOCKED.search(error.detail):
        return LOCK_STEP
    return error.next_step(NEXT if what == READING else AGAIN)
