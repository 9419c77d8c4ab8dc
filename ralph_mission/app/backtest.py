"""`ralph backtest`: past cycles, replayed with today's settings in a temporary repository.

It borrows the real one's objects, and its default branch moves from commit to commit. Observing, ranking, judging and
opening use the normal code, with the past clock and the local forge; only sources that read nothing but git are used
and, with a token for a GitHub repository, past issues, pull requests and runs as today's lists show them. Issues are
never answered.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import cast

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.fixers import FIXERS
from ralph_mission.adapters.forges.local.branches import default_branch, tips
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import RepositoryPlace, place, read_shared
from ralph_mission.adapters.observers import OBSERVERS, Sources
from ralph_mission.adapters.observers.forge import AlertObserver
from ralph_mission.adapters.observers.looking import OneAtATime
from ralph_mission.adapters.storage.memory.recordings import Recordings, keep_out_of_git
from ralph_mission.app.cycle import cycle_settings, refuse_old_git
from ralph_mission.app.hosting import QuietProgress, on_this_machine
from ralph_mission.app.ports import ProgressObserver, build_ports, forge_watch
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.loop import CoderSettings, FixerName
from ralph_mission.config.reading import read
from ralph_mission.config.settings import Config, Observers, Publishers, TelegramControl
from ralph_mission.errors import UserError
from ralph_mission.mission.backtest.follow import (
    HistoryLook,
    HistoryStep,
    TrackedItem,
    follow,
    items_of,
    opened,
    plan_steps,
    stands_in,
)
from ralph_mission.mission.backtest.judge import (
    BacktestReport,
    OpenedThread,
    RankedStep,
    ReplayedHistory,
    judge_history,
    order_findings,
)
from ralph_mission.mission.backtest.past import ForgeHistory, HistoryDetails, PastForge, settle
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleSettings, Situation
from ralph_mission.mission.model.effects import OpenIssue, OpenPull
from ralph_mission.mission.model.mission import Action, Finding, Observation, Verdict
from ralph_mission.mission.model.proposal import Brief, Decision, ObservationContext, Proposal
from ralph_mission.mission.observe import redact_observation
from ralph_mission.mission.ports import NO_PUBLISHER, CyclePorts, CycleProgress, Forge, Observer
from ralph_mission.mission.proposals.wording import is_ours
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

GIT_ALONE = ("code", "docs", "releases")
"""Observers, besides the fixers, that only read a commit: the past input of others is unavailable."""
CALLED = {"forge": "issues and pull requests", "ci": "workflow runs"}
BRANCH = "refs/heads/main"
ROUNDS = 8
"""The maximum number of cycles per step; they end once one opens nothing."""
PROGRESS_LINES = 10  # progress lines


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """One command line. `since`: a date, or a time span before the last commit."""

    repo: Path = Path()
    config: Path | None = None
    since: datetime | timedelta = timedelta(days=365)
    every: timedelta = timedelta(weeks=1)


def backtest(options: BacktestOptions, progress: CycleProgress) -> BacktestReport:
    """Replay the history. Raises UserError for too little history, and for invalid settings."""
    started = time.monotonic()
    git = Git.open(options.repo)
    refuse_old_git(git)
    settings = read(git, read_shared, options.config)
    steps = _steps(git, options, quiet=_place(settings) is not None)
    with tempfile.TemporaryDirectory(prefix="ralph-backtest-", ignore_cleanup_errors=True) as folder:
        past = _borrow(git, Path(folder) / "history.git")
        github = _read_github(git, settings, steps[0].at, progress)
        history = _Replay(git, past, settings, progress, github).walk(steps)
    return judge_history(history, time.monotonic() - started)


def _steps(git: Git, options: BacktestOptions, quiet: bool) -> tuple[HistoryStep, ...]:
    head = default_branch(git, tips(git)).sha
    line = read_dated_line(git, head)
    until = max(at for at, _ in line)
    since = until - options.since if isinstance(options.since, timedelta) else options.since
    if since >= until:
        what = f"the last commit was made on {until:%Y-%m-%d}: there is nothing after {since:%Y-%m-%d}"
        raise UserError(what, "name an earlier day with --since", usage=True)
    steps = plan_steps(line, since, options.every, quiet)
    if len(steps) < 2:
        shallow = _is_shallow(git)
        there = f"{len(line)} commit{'s' * (len(line) != 1)} on the default branch"
        raise UserError(
            f"there is no history to replay: {there}{', a shallow clone' * shallow}",
            "fetch the rest: git fetch --unshallow" if shallow else _advise(line, since, until),
        )
    _refuse_partial(git, steps)
    return steps


def read_dated_line(git: Git, head: str) -> list[tuple[datetime, str]]:
    """A branch's commits with their times, oldest first. A time in the future becomes that of the next commit, or
    now."""
    rows = git.text("log", "--first-parent", "--format=%ct %H", head, "--").split("\n")
    now = latest = int(time.time())
    line: list[tuple[datetime, str]] = []
    for at, commit in (row.split(" ") for row in rows):
        latest = int(at) if 0 <= int(at) <= now else latest if int(at) > now else 0
        line.append((datetime.fromtimestamp(latest, UTC), commit))
    return line[::-1]


def _advise(line: Sequence[tuple[datetime, str]], since: datetime, until: datetime) -> str:
    """Advice for a history whose commits all have one time; a commit never counts as older than its parent."""
    span = until - line[0][0]
    if span < timedelta(days=1):
        return f"try again when there are some days of history: it begins on {line[0][0]:%Y-%m-%d}"
    return "name an earlier day with --since" if since > line[0][0] else f"choose a shorter --every than {span.days}d"


def _refuse_partial(git: Git, steps: Sequence[HistoryStep]) -> None:
    """Raises UserError for a partial clone: missing files would count as free of findings."""
    if not git.try_text("config", "--get-regexp", r"^remote\..*\.promisor$"):
        return
    commits = "\n".join(step.commit for step in steps).encode()
    named = git.text("rev-list", "--objects", "--no-walk", "--missing=print", "--stdin", stdin=commits)
    if missing := sum(name.startswith("?") for name in named.splitlines()):
        what = f"this clone is partial: {missing:,} files of earlier commits were never fetched"
        raise UserError(what, "fetch them: git fetch --refetch --no-filter")


def _borrow(git: Git, folder: Path) -> Git:
    """A bare repository without refs that borrows the objects of `git`, read-only."""
    folder.mkdir()
    algorithm = git.try_text("rev-parse", "--show-object-format") or "sha1"
    Git(folder, folder, None).run("init", "--bare", "--quiet", f"--object-format={algorithm}")
    borrowed = Git.open(folder)
    (folder / "objects/info").mkdir(parents=True, exist_ok=True)
    (folder / "objects/info/alternates").write_bytes(os.fsencode(git.common_dir / "objects") + b"\n")
    if _is_shallow(git):
        shutil.copyfile(git.common_dir / "shallow", folder / "shallow")
    if origin := git.try_text("config", "remote.origin.url"):
        borrowed.run("config", "remote.origin.url", origin)
    borrowed.run("symbolic-ref", "HEAD", BRANCH)
    return borrowed


def _replayable(settings: Config) -> Config:
    """Today's settings without anything outside the repository, or that would run its contents."""
    observers = settings.observers
    return settings.model_copy(
        update={
            "observers": Observers(**{name: getattr(observers, name) for name in GIT_ALONE}),
            "hands": CoderSettings(fixers=_own_fixers(settings)),
            "thinker": settings.thinker.model_copy(update={"kind": "rules"}),
            "publishers": Publishers(),
            "telegram": TelegramControl(),
            "extensions": (),
        }
    )


def _own_fixers(settings: Config) -> tuple[FixerName, ...]:
    """Read-only fixers: a command of the repository would run its past contents."""
    return tuple(name for name in settings.hands.fixers if isinstance(name, str) and name in FIXERS)


def _dated_tags(git: Git) -> dict[str, tuple[str, int]]:
    """Each tag's commit, and its time in seconds since 1970."""
    rows = git.text("for-each-ref", "--format=%(refname) %(objectname) %(creatordate:unix)", "refs/tags").splitlines()
    dated = (row.split(" ") for row in rows)
    return {name: (what, int(at)) for name, what, at in dated if at}


def _is_shallow(git: Git) -> bool:
    return (git.common_dir / "shallow").exists()


# --- GitHub ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GitHubPast:
    """GitHub's history, None without a repository there; `sources`: the observers that it suffices for."""

    history: ForgeHistory | None = None
    details: HistoryDetails | None = None
    sources: tuple[str, ...] = ()
    remarks: Callable[[], Iterable[str]] = tuple


def _read_github(git: Git, settings: Config, since: datetime, progress: CycleProgress) -> GitHubPast:
    """GitHub's lists since then. An unreadable list becomes a note, and the others are used."""
    where = _place(settings)
    if where is None:
        without = (
            "With GITHUB_TOKEN and GITHUB_REPOSITORY set, its issues, pull requests, runs and alerts are used too."
        )
        return GitHubPast(remarks=lambda: (without,))
    from ralph_mission.adapters.forges.github.history import GitHubHistory

    state = None
    with suppress(OSError):
        keep_out_of_git(git)
        state = git.state_dir / "cache" / "backtest"
    github = GitHubHistory(where, FileCache(state), since, progress.note)
    history, sources, problems = ForgeHistory(github.begin, {}, {}), [], []
    try:
        progress.phase("GitHub", f"issues and pull requests of {where.repository}")
        history = github.read_threads()
        sources.append("forge")
    except UserError as problem:
        problems.append(problem)
    try:
        progress.phase("GitHub", f"workflow runs of {where.repository}")
        history = replace(history, runs=github.read_runs())
        sources.append("ci")
    except UserError as problem:
        problems.append(problem)
    try:
        history = replace(history, alerts=github.read_alerts())
        sources += ["alerts"] if history.alerts else []
    except UserError as problem:
        problems.append(problem)
    left_out = dict.fromkeys(
        f"{one.what[:1].upper()}{one.what[1:]}; {'run it again' if one.who == 'network' else one.next_step}. "
        "What was read is kept."
        for one in problems
    )

    def remarks() -> Iterator[str]:
        if sources:
            yield from (*github.remarks(history), NOT_KNOWN)
        yield from left_out

    return GitHubPast(history, github, tuple(sources), remarks)


NOT_KNOWN = (
    "GitHub does not report past labels, conflicts and checks: conflicting and approved pull requests are left out, "
    "and so are stale issues with an assignee today. What appeared and vanished between two steps is missed."
)


def _place(settings: Config) -> RepositoryPlace | None:
    """The repository that the environment names, if GitHub is to be used."""
    if settings.forge.kind == "local":
        return None
    try:
        return place(os.environ)
    except UserError:
        return None


def _remarks(settings: Config, git: Git, steps: Sequence[HistoryStep], observers: Collection[str]) -> Iterator[str]:
    times = git.text("log", "--first-parent", "--format=%ct", steps[-1].commit, "--").split()
    if ahead := sum(int(at) > time.time() for at in times):
        what = "1 commit is" if ahead == 1 else f"{ahead} commits are"
        yield f"{what} dated in the future, and counted as made no later than the next one, or now."
    if _is_shallow(git):
        yield f"This clone is shallow: its history begins on {steps[0].at:%Y-%m-%d} (git fetch --unshallow)."
    others = (name for name in OBSERVERS if name not in (*GIT_ALONE, *observers, "briefs"))
    names = [CALLED.get(name, name) for name in others if getattr(settings.observers, name, None)]
    names += [f"extension {one.use}" for one in settings.extensions]
    yield f"Only sources that can be replayed were used; left out: {', '.join(dict.fromkeys(names))}."
    yield "No issue is answered and no pull request is merged here, so what was opened waits until it is parked."
    if settings.thinker.kind != "rules":
        yield "Findings are ranked by rules here, not by your model."


def _failure_remark(name: str, failures: Sequence[str], steps: int) -> str:
    if len(failures) < steps:
        return f"{name} failed at {failures[0]}"
    return f"{name} failed at every step ({failures[0].partition(': ')[2]}), so an empty result means nothing."


class _PastClock:
    """The simulated time."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC)

    def now(self) -> datetime:
        """The simulated time."""
        return self.moment


class _CycleRecorder:
    """A recorder that returns a cycle's input and decisions."""

    def __init__(self) -> None:
        self.situation: Situation | None = None
        self.allowed: list[Proposal] = []

    def record(self, name: str, value: object) -> None:
        """Keep the last situation, and its allowed actions."""
        if isinstance(value, Situation):
            self.situation = value
        elif name == "decisions" and isinstance(value, tuple):
            verdicts = (one for one in value if isinstance(one, Decision))
            self.allowed = [one.proposal for one in verdicts if one.verdict is Verdict.ALLOW]


class _Replay:
    """A replay. Observers cache their results for files from step to step."""

    def __init__(self, git: Git, past: Git, settings: Config, progress: CycleProgress, github: GitHubPast) -> None:
        self.git, self.past, self.progress, self.config, self.github = git, past, progress, settings, github
        self.settings = _replayable(settings)
        self.clock, self.recorder = _PastClock(), _CycleRecorder()
        self.name = (git.work_tree or git.git_dir).resolve().name.removesuffix(".git")
        self.cursors: dict[str, str] = {}
        self.tracked: tuple[TrackedItem, ...] = ()
        self.threads: list[OpenedThread] = []
        self.failures: dict[str, list[str]] = {}
        self.tags = _dated_tags(git)

    @cached_property
    def ports(self) -> CyclePorts:
        """The ports of the temporary repository."""
        host = on_this_machine(self.past, self.settings, self.clock, str)
        quiet = QuietProgress()
        ports = build_ports(self.past, host, None, self.clock, quiet, recordings=Recordings(self.past))
        names = (*GIT_ALONE, *_own_fixers(self.settings))
        return replace(
            ports,
            observers=(*(one for one in ports.observers if one.name in names), *self._of_github()),
            recorder=self.recorder,
            publisher=NO_PUBLISHER,
            coder=None,
            inbox=None,
            switch=lambda: False,
        )

    def _of_github(self) -> Iterator[Observer]:
        """Observers of GitHub's history at that time."""
        if self.github.history is None or self.github.details is None:
            return
        then = PastForge(self.github.history, self.github.details, self.clock.now)
        sources = Sources(self.past, cast("Forge", OneAtATime(then)), self.past.state_dir / "cache")
        sections = {"forge": forge_watch(self.config), "ci": self.config.observers.ci}
        if "alerts" in self.github.sources:
            yield ProgressObserver(AlertObserver(sources.forge))
        for name, section in sections.items():
            if name in self.github.sources:
                yield ProgressObserver(OBSERVERS[name](section, sources))

    def walk(self, steps: Sequence[HistoryStep]) -> ReplayedHistory:
        """All steps, oldest first."""
        ranked: list[RankedStep] = []
        before, printed = "", -1
        for number, step in enumerate(steps):
            if (share := number * PROGRESS_LINES // len(steps)) > printed:
                printed = share
                self.progress.phase(f"{step.at:%Y-%m-%d}", f"step {number + 1} of {len(steps)}, {self._so_far()}")
            self._stand_at(step)
            self._look(step, before)
            self._cycle(step)
            gc.collect()  # the command line rarely does: looks leave whole trees in reference cycles
            ranked.append(order_findings(self.tracked, step.at, self._rank))
            before = step.commit
        if self.github.history and self.github.details:
            self.tracked = settle(self.tracked, self.github.history, self.github.details)
        commits = int(self.git.text("rev-list", "--count", f"{steps[0].commit}..{steps[-1].commit}", "--"))
        failed = (_failure_remark(name, failures, len(steps)) for name, failures in self.failures.items())
        remarks = (*_remarks(self.config, self.git, steps, self.github.sources), *self.github.remarks(), *failed)
        return ReplayedHistory(
            self.name, tuple(steps), commits, self.tracked, tuple(self.threads), tuple(ranked), remarks
        )

    def _so_far(self) -> str:
        return f"{count_noun(len(self.threads), 'thread')} opened, {count_noun(len(self.tracked), 'finding')}"

    def _stand_at(self, step: HistoryStep) -> None:
        names = [name for name, (_, at) in self.tags.items() if at <= step.at.timestamp()]
        tags = (f"update {name} {self.tags.pop(name)[0]}" for name in names)
        refs = "\n".join(("option no-deref", f"update {BRANCH} {step.commit}", *tags, ""))
        self.past.run("update-ref", "--stdin", stdin=refs.encode())
        self.clock.moment = step.at

    def _look(self, step: HistoryStep, before: str) -> None:
        """Run every observer, due or not."""
        look = _look_of(self.past, step, before)
        secrets = environment_secrets()
        with self.ports.scratch() as scratch:
            head = self.ports.forge.default_branch()
            pairs = [
                (one, ObservationContext(head, step.at, None, self.cursors.get(one.name, ""), scratch))
                for one in self.ports.observers
            ]
            for result in self.ports.lookups(pairs):
                observation = redact_observation(self.ports, result, secrets)
                self._note_failure(observation, step)
                self.cursors[observation.name] = observation.cursor or self.cursors.get(observation.name, "")
                self.tracked = follow(self.tracked, observation, look)

    def _note_failure(self, observation: Observation, step: HistoryStep) -> None:
        if observation.status == "unavailable":
            self.failures.setdefault(observation.name, []).append(f"{step.commit[:12]}: {observation.detail}")

    def _cycle(self, step: HistoryStep) -> None:
        """Run cycles one after the other, as long as they open something."""
        settings: CycleSettings = cycle_settings(self.settings, self.name)
        for _ in range(ROUNDS):
            self.recorder.allowed = []
            run_cycle(self.ports, settings, CycleRequest(force=True), environment_secrets())
            new = [proposal for proposal in self.recorder.allowed if proposal.members and not proposal.before]
            for proposal in new:
                self._open(proposal, step)
            if not any(proposal.new_mission or _opens(proposal) for proposal in new):
                return
            self.clock.moment += settings.rhythm.low

    def _open(self, proposal: Proposal, step: HistoryStep) -> None:
        signals = [member.signal for member in proposal.members]
        if _opens(proposal):
            named = {(s.kind, item.path, item.identity) for s in signals for item in items_of(s)}
            places = tuple(
                place
                for place, one in enumerate(self.tracked)
                if not one.ending and (one.kind, one.item.path, one.item.identity) in named
            )
            counted = sum(int(dict(s.facts).get("count", 0)) for s in signals if not items_of(s))
            action = "list" if proposal.action is Action.MONITOR else str(proposal.action)
            self.threads.append(
                OpenedThread(step.at, step.commit, action, proposal.kind, proposal.title, proposal.why, places, counted)
            )
        self.tracked = opened(self.tracked, signals, step.at)

    def _rank(self, findings: tuple[Finding, ...]) -> Iterable[str]:
        situation = self.recorder.situation
        if situation is None:
            return ()
        brief = Brief(
            findings,
            (),
            dict(situation.state.acceptance),
            situation.settings.limits,
            situation.memory,
            situation.now,
        )
        return [member for ranked in self.ports.thinker.think(brief).ranked_findings for member in ranked.members]


def _opens(proposal: Proposal) -> bool:
    return any(isinstance(effect, OpenIssue | OpenPull) for effect in proposal.effects)


def _look_of(git: Git, step: HistoryStep, before: str) -> HistoryLook:
    names = git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", step.commit).split(b"\0")
    files = frozenset(name.decode("utf-8", "surrogateescape") for name in names if name)

    @cache
    def stands(path: str, text: str) -> bool:
        found: Mapping[str, bytes] = git.blobs([f"{step.commit}:{path}", f"{before}:{path}"])
        now, then = (found.get(f"{at}:{path}", b"").decode("utf-8", "replace") for at in (step.commit, before))
        return stands_in(now, text, then)

    def changed(path: str, texts: Sequence[str]) -> str:
        lines = (text.strip().split("\n")[0] for text in texts)
        queries = (*((f"-S{line}",) for line in lines if line and "\0" not in line), ())
        query = ("log", "-1", "--first-parent", "-m", "--format=%H")
        found = (git.try_text(*query, *how, f"{before}..{step.commit}", "--", path) for how in queries)
        return next((commit for commit in found if commit), "")

    moved = git.run("diff-tree", "-r", "-z", "--name-only", before, step.commit).split(b"\0") if before else ()
    touched = files & {name.decode("utf-8", "surrogateescape") for name in moved}

    def rewritten(path: str) -> str:
        name = f"{step.commit}:{path}"
        return git.blobs([name])[name].decode("utf-8", "replace") if path in touched else ""

    def own(commit: str) -> bool:
        return is_ours(git.text("log", "-1", "--format=%B", commit, "--"))

    return HistoryLook(step.at, files, stands, changed, rewritten, own)
