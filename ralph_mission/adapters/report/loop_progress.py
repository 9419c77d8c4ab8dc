"""The output of a loop's run: live on stderr for people, a JSON document for programs, whose keys are a contract.

A terminal gets a live line below the history; anything else (a log, a pipe) gets plain lines. A closed pipe never stops
a loop. Redaction is the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TextIO

from ralph_mission.adapters.report.progress import print_redacted, safe, shorten
from ralph_mission.loop.model.spec import UNWATCHED, RunEvent, RunResult, RunSpec, RunWatch
from ralph_mission.loop.model.state import HatOutput, RunSnapshot, RunState, Session, SessionUsage
from ralph_mission.safety.secrets import redact

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text


def account_document(
    account: RunResult,
    stories: tuple[int, int] | None,
    complaints: Sequence[str] = (),
    isolation: str = "",
    secrets: Sequence[str] = (),
) -> dict[str, object]:
    """The run as `ralph run --json` prints it; `stories`: passing and total number. It contains none of `secrets`.

    `complaints`: about files that changed since the previous run;
    `isolation`: how far sessions were isolated.
    """
    ending, usage = account.ending, account.state.usage
    reverted = [*((one.iteration, one.reverted) for one in account.outputs), (account.state.iteration + 1, account.cut)]
    document: dict[str, object] = {
        "ending": ending.reason,
        "code": ending.code,
        "detail": ending.detail,
        "next": ending.next_step,
        "run": account.state.run_id,
        "sessions": account.state.iteration,
        "isolation": isolation,
        "stories": {"passing": stories[0], "total": stories[1]} if stories else None,
        "usage": _usage(usage),
        "played": [
            {
                "session": output.iteration,
                "hat": output.hat,
                "agent": output.agent,
                "failure": output.failure,
                "calls": len(output.calls),
                "usage": _usage(output.usage),
            }
            for output in account.outputs
        ],
        "reverted": [
            {"session": session, "path": change.path, "how": change.how, "why": change.reverted}
            for session, changes in reverted
            for change in changes
        ],
        "refused": [{"session": output.iteration, "why": why} for output in account.outputs for why in output.refused],
        "left_running": [
            {"session": output.iteration, "command": command}
            for output in account.outputs
            for command in output.left_running
        ],
        "complaints": list(complaints),
    }
    return {name: redact_values(value, secrets) for name, value in document.items()}


def redact_values(value: object, secrets: Sequence[str]) -> object:
    """The same without secrets in its texts; field names are ours."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, dict):
        return {name: redact_values(inner, secrets) for name, inner in value.items()}
    return [redact_values(inner, secrets) for inner in value] if isinstance(value, list) else value


def _usage(usage: SessionUsage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "unpriced_sessions": usage.untold,
        "seconds": round(usage.seconds, 3),
        "turns": usage.turns,
    }


Kind = Literal["began", "session", "output", "ended"]
SHOWN = 5  # paths and refused commands named per session
WIDEST = 200  # characters of a command
LAST = 3  # lines of the agent's output, below the live one


@contextmanager
def show_progress(
    stream: TextIO, secrets: Sequence[str], now: Callable[[], datetime], watch: RunWatch = UNWATCHED
) -> Iterator[PlainRunProgress]:
    """Progress on `stream` during a run, live on a terminal, plain elsewhere, without `secrets`.
    `watch` receives all of it too."""
    if not stream.isatty():
        yield PlainRunProgress(stream, secrets, watch)
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    with console.status("starting") as status:
        yield LiveRunProgress(stream, secrets, watch, console=console, status=status, now=now)


@dataclass(slots=True)
class PlainRunProgress:
    """`ports.RunProgress` as lines, for logs and pipes. `secrets`: known values to redact from every line."""

    stream: TextIO
    secrets: Sequence[str]
    watch: RunWatch = UNWATCHED
    _stories: tuple[int, int] | None = field(default=None, init=False)

    def phase(self, name: str, note: str = "") -> None:
        """Nothing: the phases of a cycle are one step of a loop."""

    def note(self, text: str) -> None:
        """A separate line."""
        self._say(safe(text))
        self.watch.tell(RunEvent("note", safe(text)))

    def began(self, spec: RunSpec, state: RunState) -> None:
        """`run 20260504-120000-prd: at most 10 sessions`"""
        how = f"resumed after session {state.iteration}" if state.iteration else "started"
        dollars = f", ${spec.limits.usd:.2f}" if spec.limits.usd is not None else ""
        sessions = f"{spec.limits.iterations} session{'s'[: spec.limits.iterations != 1]}"
        limits = f"{sessions}, {clock(spec.limits.runtime)}{dollars}"
        self._tell("began", f"{how}: {safe(spec.objective)[:WIDEST]}", state)
        name = f"{self.watch.name} ({state.run_id})" if self.watch.name else f"run {state.run_id}"
        self._say(f"{name} {how}; limits: {limits}")

    def session(self, spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> None:
        """`[3/10] builder, US-003 Search, 2/5 stories, $0.12, 1m05s`"""
        self._say(self._begin_session(spec, state, hat, snapshot))

    def agent(self, session: Session, event: RunEvent) -> None:
        """Only passed to `watch`: a log does not need every step."""
        self.watch.tell(replace(event, session=session.iteration, hat=session.hat.name), session.prompt)

    def output(self, spec: RunSpec, state: RunState, output: HatOutput) -> None:
        """Its result, indented, and reverted files."""
        for line in came(output):
            self._say(f"  {line}")
        if self._stories:
            self._stories = self._stories[0] + len(output.passed), self._stories[1]
        self._tell("output", "\n".join(came(output)), state, output.iteration, output.hat)

    def waiting(self, seconds: float, why: str) -> None:
        """`  waiting 1m00s: rate limit`"""
        self._say(f"  waiting {clock(seconds)}: {safe(why)}")
        self.watch.tell(RunEvent("waiting", f"waits {clock(seconds)}: {safe(why)}"))

    def paused(self, since: datetime | None) -> None:
        """`  paused: ralph resume`"""
        self._say("  paused; to continue: ralph resume" if since else "  resumed")
        self.watch.tell(RunEvent("held", "paused" if since else ""))

    def ended(self, spec: RunSpec, account: RunResult) -> None:
        """`complete: 5 sessions, $0.40, 3m12s`"""
        ending, state = account.ending, account.state
        took = ", ".join(filter(None, (cost_text(state.usage, state.elapsed), *usage_parts(state.usage))))
        self._say(f"{ending.reason}: {safe(ending.detail)}; total {took}")
        if ending.next_step and not spec.no_agent_settings:  # issues and missions continue by themselves
            self._say(f"  {safe(ending.next_step)}")
        text = ": ".join(filter(None, (ending.reason, safe(ending.detail))))
        self._tell("ended", text, state, code=ending.code)

    def _begin_session(self, spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> str:
        listed = snapshot.prd.stories if snapshot.prd else ()
        self._stories = (sum(story.passes for story in listed), len(listed)) if listed else None
        line = standing(spec, state, hat, snapshot)
        self._tell("session", line, state, state.iteration + 1, hat)
        return line

    def _tell(
        self, kind: Kind, text: str, state: RunState, session: int = 0, hat: str = "", code: int | None = None
    ) -> None:
        usage = state.usage
        self.watch.tell(RunEvent(
            kind, text, session, hat, state.run_id, state.iteration, self._stories,
            usage.input_tokens + usage.output_tokens, usage.cost_usd, code,
        ))  # fmt: skip  # one value

    def _say(self, line: str) -> None:
        print_redacted(line, self.stream, self.secrets)


@dataclass(slots=True)
class LiveRunProgress(PlainRunProgress):
    """The same above a spinner, whose line shows the current step and its duration."""

    console: Console = field(kw_only=True)
    status: Status = field(kw_only=True)
    now: Callable[[], datetime] = field(kw_only=True)
    _doing: str = field(default="", init=False)
    _since: datetime | None = field(default=None, init=False)
    _last: list[str] = field(default_factory=list, init=False)

    def session(self, spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> None:
        """The line becomes the live one."""
        self._doing = redact(self._begin_session(spec, state, hat, snapshot), self.secrets)
        self._since, self._last = self.now(), []
        self.status.update(self)

    def agent(self, session: Session, event: RunEvent) -> None:
        """Its last lines are shown below the live one."""
        PlainRunProgress.agent(self, session, event)
        if event.text:
            line = redact(safe(event.text.strip().rpartition("\n")[2]), self.secrets)
            self._last = [*self._last[1 - LAST :], shorten(f"{'$ ' if event.kind == 'tool' else ''}{line}")]

    def output(self, spec: RunSpec, state: RunState, output: HatOutput) -> None:
        """The line joins the history, with the result below."""
        self._say(self._doing)
        self._doing, self._last = "between two sessions", []
        PlainRunProgress.output(self, spec, state, output)

    def ended(self, spec: RunSpec, account: RunResult) -> None:
        """Rings the bell, as the person may have looked away."""
        PlainRunProgress.ended(self, spec, account)
        self.console.bell()

    def __rich__(self) -> Text:
        """The live line, on every redraw."""
        from rich.text import Text

        running = clock((self.now() - self._since).total_seconds()) if self._since else ""
        return Text("\n    ".join((f"{self._doing} … {running}", *self._last)))

    def _say(self, line: str) -> None:
        from rich.text import Text

        with suppress(OSError, ValueError):
            self.console.print(Text(redact(line, self.secrets)), soft_wrap=True)


def standing(spec: RunSpec, state: RunState, hat: str, snapshot: RunSnapshot) -> str:
    """The run's state as a session begins: number, hat, item, stories, cost, time."""
    listed = snapshot.prd.stories if snapshot.prd else ()
    titles = {task.id: task.title for task in snapshot.tasks} | {story.id: story.title for story in listed}
    item = f"{state.item} {titles.get(state.item, '')}".strip()
    done = f"{sum(story.passes for story in listed)}/{len(listed)} stories" if snapshot.prd else ""
    spent = cost_text(state.usage, state.elapsed) if state.iteration else ""  # nothing yet
    parts = (hat, safe(item), done, spent)
    return f"[{state.iteration + 1}/{spec.limits.iterations}] {', '.join(filter(None, parts))}".rstrip()


def came(output: HatOutput) -> Iterator[str]:
    """A session's result, one line each: its verdict, changes, cost, reverted files."""
    parts = (_verdict(output), _event(output), _changed_paths(output), _checks(output), took(output.usage))
    yield ", ".join(filter(None, parts))
    for change in output.reverted:
        yield safe(f"undone: {change.path} ({change.how}): {change.reverted}")
    for why in output.refused[:SHOWN]:
        yield safe(f"refused: {why}")
    if len(output.refused) > SHOWN:
        yield f"refused: {len(output.refused) - SHOWN} more, in .ralph/loop/denied.jsonl"
    for command in output.left_running[:SHOWN]:
        yield safe(f"ended: {command[:WIDEST]} (left running)")


def cost_text(usage: SessionUsage, seconds: float) -> str:
    """`$0.12, 1m05s`; with `at least` if some sessions reported no cost, without dollars if none can."""
    least = "at least " if usage.untold else ""
    dollars = f"{least}${usage.cost_usd:.2f}, " if usage.cost_usd or (usage.cost_usd == 0 and not least) else ""
    return f"{dollars}{clock(seconds)}"


def took(usage: SessionUsage) -> str:
    """`$0.12, 3,400 tokens, 3 turns, 9s`: for one session, tokens in and out together; "" for unreported values."""
    dollars = "" if usage.cost_usd is None else f"{'at least ' if usage.untold else ''}${usage.cost_usd:.2f}"
    return ", ".join(filter(None, (dollars, *usage_parts(usage), clock(usage.seconds) if usage.seconds >= 1 else "")))


def usage_parts(usage: SessionUsage) -> Iterator[str]:
    """Tokens and turns, as far as agents reported them."""
    for number, noun in ((usage.input_tokens + usage.output_tokens, "token"), (usage.turns, "turn")):
        if number:
            yield f"{number:,} {noun}{'s'[: number != 1]}"


def clock(seconds: float) -> str:
    """`42s`, `1m05s`, `2h03m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02}m"


def _verdict(output: HatOutput) -> str:
    if output.passed:
        return f"passed {', '.join(output.passed)}"
    reason = safe(output.reason.splitlines()[0]) if output.reason else ""
    if output.failure:
        return f"failed ({output.failure}){f': {reason}' if reason else ''}"
    if reason or not output.progressed:
        return reason or "nothing changed"
    return "" if any(not change.reverted for change in output.changes) else "tasks changed"


def _event(output: HatOutput) -> str:
    return f"emitted {safe(output.event.topic)}" if output.event else ""


def _changed_paths(output: HatOutput) -> str:
    paths = [change.path for change in output.changes if not change.reverted]
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    commits = f"({len(output.commits)} commit{'s'[: len(output.commits) != 1]})" if output.commits else ""
    return safe(f"{', '.join(paths[:SHOWN])}{more} {commits}".strip())


def _checks(output: HatOutput) -> str:
    if not output.verification.ran or output.verification.green:
        return "checks green" if output.verification.ran else ""
    return f"checks red ({safe(output.verification.failing)})"
