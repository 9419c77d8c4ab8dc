"""A session, as a story: brief, run, read what changed, undo, verify, record.

Ralplan, Ultrawork and Team use the same call. After a failure of the provider it waits and runs again; never after a
time-out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.loop.model.spec import PLANNING, SIDE_BY_SIDE, RunLimits, RunSpec
from ralph_mission.loop.model.state import (
    AgentTurn,
    CheckResult,
    Hat,
    HatOutput,
    LoopEvent,
    NetChange,
    PathChange,
    RunSnapshot,
    RunState,
    Session,
    SessionCommit,
    SessionUsage,
    StopSignal,
)
from ralph_mission.loop.ports import Agent, LoopClock, RunPorts, SessionWork
from ralph_mission.loop.prompt import session as prompt
from ralph_mission.loop.prompt import situation
from ralph_mission.loop.rules import completion, routing, scope, verdicts
from ralph_mission.loop.stories import judge
from ralph_mission.safety.secrets import redact, redact_record, without

FIRST_LIMIT = 60.0  # seconds, as providers count requests and tokens by the minute


def wait(limits: RunLimits, turn: AgentTurn, attempt: int) -> float | None:
    """Seconds until the session is retried, or None; `attempt` counts from 1.

    A provider's own waiting time for a limit is respected up to `longest_wait`; without one the wait doubles. A fault
    is retried `retries` times, a limit as long as the run may last.
    """
    if turn.failure == "rate_limit":
        return min(turn.retry_after or FIRST_LIMIT * 2 ** min(attempt - 1, 10), limits.longest_wait)
    if turn.failure == "server" and attempt <= limits.retries:
        return max(turn.retry_after, limits.retry_pause)
    return None


TITLE = 60  # characters of the objective in a commit's title


def play_session(spec: RunSpec, state: RunState, snapshot: RunSnapshot, hat: Hat | None, ports: RunPorts) -> HatOutput:
    """Run the next session with `hat` (None: no hat), and keep what is allowed of its changes.

    An agent's mistakes are in the record; UserError and interrupts pass through.
    """
    session = prompt.session_prompt(spec, state, snapshot, hat, ports.store.run_dir)
    session = replace(session, prompt=without(session.prompt, ports.secrets))
    mark = ports.workplace.begin_session()
    state = completion.take_up(replace(state, mark=mark), mark)
    ports.store.keep(state, None)
    try:
        return _run_session(spec, state, snapshot, hat, ports, session, mark)
    except KeyboardInterrupt:
        raise CutOff((*ports.store.restore(), *put_aside(ports, mark))) from None


class CutOff(KeyboardInterrupt):  # an interrupt, and no error
    """The interrupt of a session; `changes` were undone or set aside, as after every session."""

    def __init__(self, changes: tuple[PathChange, ...]) -> None:
        super().__init__()
        self.changes = changes


def put_aside(ports: RunPorts, mark: str) -> tuple[PathChange, ...]:
    """Save a session's unfinished work where a person finds it: it was not judged, so it does not count."""
    return (*ports.workplace.set_aside(mark), *ports.store.put_back(ports.workplace.landed))


def _run_session(
    spec: RunSpec, state: RunState, snapshot: RunSnapshot, hat: Hat | None, ports: RunPorts, session: Session, mark: str
) -> HatOutput:
    ports.store.brief(session.prompt)
    end = ports.clock.now() + timedelta(seconds=spec.limits.runtime - state.elapsed)
    turn = play_patiently(
        ports.agent, session, spec.limits, ports.clock, end, ports.store.signal, ports.progress.waiting
    )
    if not turn.failure:  # else nobody may have read it
        ports.store.acknowledge(situation.pending_guidance(snapshot))
    changes, work = _keep_allowed(spec, ports, session.hat, mark, snapshot.paths.engine_files)
    promised = routing.says_promise(spec.hats, hat, turn.text, spec.preset.promise)
    event, wrong = _record_event(spec, ports, hat, turn, session, promised)
    promised = promised or (event is not None and event.topic == spec.preset.promise)
    output = HatOutput(
        session.hat.name,
        session.iteration,
        event,
        prompt.summary(redact(turn.text, ports.secrets)),
        changes,
        failure=turn.failure or ("event" if wrong else ""),
        reason=redact(turn.detail if turn.failure else wrong, ports.secrets),
        usage=turn.usage,
        promised=promised and not turn.failure and not wrong,
        refused=redact_record(turn.refused, ports.secrets),
        agent=turn.agent,
        calls=redact_record(turn.calls, ports.secrets),
        left_running=redact_record(turn.left_running, ports.secrets),
        mark=mark,
    )
    return _settle_session(spec, state, snapshot, ports, output, work.messages)


def play_patiently(
    agent: Agent, session: Session, limits: RunLimits, clock: LoopClock, end: datetime,
    signal: Callable[[], StopSignal] = lambda: "", announce: Callable[[float, str], None] = lambda *_: None,
) -> AgentTurn:  # fmt: skip  # as one reads it
    """The turn, retried after provider failures until `end`, unless there is a `signal`; `announce` tells each wait."""
    usage, attempt, before = SessionUsage(), 0, AgentTurn()
    while True:
        seconds = max(1.0, min(session.seconds, (end - clock.now()).total_seconds()))
        turn = agent.play(replace(session, seconds=seconds), lambda: signal() == "cancel").after(before)
        usage, attempt, before = usage + turn.usage, attempt + 1, turn
        pause = wait(limits, turn, attempt)
        if pause is None or signal() or clock.now() + timedelta(seconds=pause) > end:
            return replace(turn, usage=usage)
        announce(pause, turn.detail)
        clock.sleep(pause, lambda: bool(signal()))


def _keep_allowed(
    spec: RunSpec, ports: RunPorts, hat: Hat, mark: str, kept_by_us: tuple[str, ...]
) -> tuple[tuple[PathChange, ...], SessionWork]:
    """The session's changes, and what was undone."""
    restored = ports.store.restore()
    work = ports.workplace.changed(mark)
    wide = replace(hat, write_allowed=spec.scope)  # a hat's own globs may lie outside the run's scope
    found = (*scope.outside(hat, work.changes, kept_by_us), *scope.outside(wide, work.changes, kept_by_us))
    outside = tuple({change.path: change for change in reversed(found)}.values())
    gone = {change.path for change in outside}
    inside = tuple(change for change in work.changes if change.path not in gone)
    if outside:
        ports.workplace.undo(mark, sorted(gone))
        work = replace(ports.workplace.changed(mark), foreign=work.foreign)
    return (*inside, *outside, *work.foreign, *restored), work


def _record_event(
    spec: RunSpec, ports: RunPorts, hat: Hat | None, turn: AgentTurn, session: Session, promised: bool
) -> tuple[LoopEvent | None, str]:
    """Record the session's event; returns it, and what was wrong with what it emitted."""
    emitted = (*ports.store.read_events(), *routing.events_in_text(turn.text, spec.preset.promise))
    if turn.failure:
        return None, ""
    event, wrong = routing.single_event(hat, emitted, spec.preset.promise, promised)
    if event is None:
        silent = spec.persistent and not emitted  # its hats return when they find no work
        return None, "" if silent else wrong
    full = replace(event, hat=session.hat.name, iteration=session.iteration, at=ports.clock.now())
    full = redact_record(replace(full, issues=event.issues or verdicts.parse_issues(event)), ports.secrets)
    ports.store.record(full)
    return full, wrong


def _settle_session(
    spec: RunSpec, state: RunState, snapshot: RunSnapshot, ports: RunPorts, output: HatOutput, messages: tuple[str, ...]
) -> HatOutput:
    """Complete the record by the state files: passing stories, what landed, whether anything moved."""
    after = ports.store.snapshot()
    touched = tuple(
        change.path
        for change in output.changes
        if not change.reverted and not scope.ours(change.path, snapshot.paths.engine_files)
    )
    listed = judge.mark_story(spec, state.item, output.event, after.prd)
    flipped = judge.flipped_stories(snapshot.prd, listed)
    checked = ports.workplace.verify() if flipped or touched else CheckResult()
    net = _net_change(spec, snapshot, ports, state.taken)
    judged = judge.judge_stories(spec, state.item, snapshot.prd, listed, checked, net, state.built)
    # A check runs the session's code, and could flip stories that git ignores.
    if judged.prd is not None and (checked.ran or judged.prd != after.prd):
        ports.store.stories(judged.prd)
    message = judge.commit_message(judged.passed[0]) if judged.passed else _commit_message(spec, output, messages)
    if spec.kind == SIDE_BY_SIDE and not messages:
        message = f"feat: {judge.one_line(state.pending.payload.splitlines()[0])}"
    whole = net if state.begun in ("", state.taken) else _net_change(spec, snapshot, ports, state.begun)
    message = redact(without(message, ports.secrets))
    landed = _land_work(spec, ports, bool(judged.passed), message)
    passed = tuple(story.id for story in judged.passed)
    complete = replace(
        output,
        changes=redact_record((*output.changes, *checked.undone), ports.secrets),
        commits=redact_record(landed, ports.secrets),
        passed=passed,
        verification=redact_record(checked, ports.secrets),
        reason="\n".join(filter(None, (output.reason, *judged.complaints))),
        progressed=bool(passed or touched or snapshot.tasks != after.tasks),
        changed=bool(whole.paths) if state.begun else True,
        built=judged.built,
    )
    if entry := judge.log_entry(spec, state.item, complete, after.notes, ports.clock.now()):
        ports.store.note(entry)
    return complete


def _net_change(spec: RunSpec, snapshot: RunSnapshot, ports: RunPorts, mark: str) -> NetChange:
    """The difference from `mark`, without the engine's files; if no stories are worked on, a list of stories counts as
    an ordinary file."""
    net = ports.workplace.since(mark)
    free = () if spec.preset.stories else (snapshot.paths.prd,)
    paths = tuple(path for path in net.paths if path in free or not scope.ours(path, snapshot.paths.engine_files))
    return NetChange(paths, tuple(path for path in net.tests if path in paths))


def _land_work(spec: RunSpec, ports: RunPorts, passed: bool, message: str) -> tuple[SessionCommit, ...]:
    """Land the judged change. Lists of stories are included if a story passes, or if they are ordinary files."""
    lists = passed or not (spec.preset.stories or spec.kind in (PLANNING, SIDE_BY_SIDE))
    announce = ports.store.judged if passed else lambda _: None
    commit = ports.workplace.land(message, lists, announce)
    return (SessionCommit(commit, message.partition("\n")[0]),) if commit else ()


def _commit_message(spec: RunSpec, output: HatOutput, messages: tuple[str, ...]) -> str:
    """The session's own commit messages, else its purpose."""
    if messages:
        return "\n\n".join(messages)
    who = f"{output.hat}, session" if output.hat else "session"
    return f"{judge.one_line(spec.objective, TITLE)} ({who} {output.iteration})"
