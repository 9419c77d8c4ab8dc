"""`ralph due`, `ralph wake` and `ralph watch`: whether a cycle is due, a dispatch when it is, cycles one after another.

`ralph wake` is for a timer: it asks the gate and dispatches once for each due time. With `--review`, for a workflow, it
dispatches once for each head that we proposed. `cli.gate` answers `ralph due` without click.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import RepositoryPlace, place, read_shared
from ralph_mission.cli.gate import (
    EYES,
    LONGEST_WAIT,
    NOT_DUE,
    DueQuestion,
    answer,
    ask,
    cache_folder,
    choose_reaction,
    longest_pause,
    memory_place,
    name_reaction,
)
from ralph_mission.cli.options import (
    at_repository,
    json_option,
    now_option,
    open_app,
    print_json,
    print_moment,
    print_outcome,
    read_settings,
    watched_run,
)
from ralph_mission.cli.spelling import iso, moment
from ralph_mission.errors import UserError
from ralph_mission.mission.memory.schedule import is_due
from ralph_mission.mission.model.memory import Header

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.github.api import Api
    from ralph_mission.adapters.forges.github.threads import SpokenWord
    from ralph_mission.adapters.storage.loop.live import LiveRun
    from ralph_mission.mission.cycle import CycleRequest, CycleResult
    from ralph_mission.mission.model.cycle import CycleReport


@click.command()
@now_option
@click.option(
    "--wait",
    type=click.IntRange(0, LONGEST_WAIT),
    default=0,
    metavar="SECONDS",
    help=f"When a cycle is due within that many seconds (at most {LONGEST_WAIT}), wait until it is.",
)
@at_repository
@json_option
def due(now: str | None, wait: int, repo: Path, config: Path | None, as_json: bool) -> int:
    """Check whether a cycle is due: exit code 0 if so, 10 if not."""
    return answer(DueQuestion(str(repo), str(config) if config else None, now, as_json, wait))


@click.command()
@click.option("--review", is_flag=True, help="Wake the review of what ralph proposed, where GitHub does not.")
@now_option
@at_repository
@json_option
def wake(review: bool, now: str | None, repo: Path, config: Path | None, as_json: bool) -> int:
    """Wake the loop on GitHub if a cycle is due: exit code 0 if so, 10 if not.

    Sends one dispatch for each due time, and the same again after 10 minutes while nothing has come of it.
    GITHUB_REPOSITORY and GITHUB_TOKEN say where.
    """
    if review:
        return _review(repo, config, now, as_json)
    from ralph_mission.adapters.storage.memory.due import due_on_server
    from ralph_mission.adapters.wakers import header_on_server
    from ralph_mission.mission import memory as layout

    server, question = place(os.environ), DueQuestion(str(repo), str(config) if config else None)
    memory = {"branch": layout.BRANCH, "path": layout.MEMORY, **memory_place(question)}
    when = moment(now) or datetime.now(UTC)
    longest = partial(longest_pause, question)
    due, next_due_at, reason = due_on_server(server, cache_folder(server.git_url), when, **memory, longest=longest)
    if due:
        header = header_on_server(server, **memory)
        due, next_due_at = not header.paused and is_due(header.next_due_at, when, longest()), header.next_due_at
        sent, reason = _send(repo, config, server, header, when) if due else (False, "not due: another was first")
    else:
        sent = False
    print_outcome(reason, {"due": due, "next_due_at": iso(next_due_at), "sent": sent, "reason": reason}, as_json)
    return 0 if due else NOT_DUE


def _review(repo: Path, config: Path | None, now: str | None, as_json: bool) -> int:
    """Wake the review of our open pull requests, each head once. Raises UserError if GitHub refuses."""
    from ralph_mission.app.reviews import call_reviews

    called = call_reviews(repo, config, moment(now))
    if called.refusal:
        raise UserError(f"the review was not woken: {called.refusal}", "the next cycle tries again", who="forge")
    woken = f"woke the review of {', '.join(f'#{pull}' for pull in called.pulls)}" if called.pulls else ""
    reason = "; ".join(text for text in (woken, called.reason) if text)
    if as_json:
        print_json({"pulls": list(called.pulls), "reason": reason})
    click.echo(reason, err=as_json)  # in a workflow, a person reads it in the log
    return 0


def _send(repo: Path, config: Path | None, server: RepositoryPlace, header: Header, now: datetime) -> tuple[bool, str]:
    """Whether a dispatch was sent, and a message. Raises UserError if GitHub refuses."""
    from ralph_mission.adapters import files, wakers
    from ralph_mission.adapters.wakers import DispatchWaker
    from ralph_mission.app.cycle import refuse_links
    from ralph_mission.app.hosting import poster
    from ralph_mission.config.reading import read

    git = Git.open(repo)
    refuse_links(git)
    notes = git.common_dir / "ralph" / "wake.json"
    with files.hold_file(notes.with_name("waking")) as ours:
        if not ours:
            return False, "another wake is at it"
        past = wakers.load(notes.read_bytes() if notes.exists() else b"")
        limit = read(git, read_shared, config).limits.dispatches_per_day
        objection = wakers.objection(past, header, now, limit)
        if objection:
            return False, objection
        files.write(notes, wakers.dump(wakers.record_wake(past, header, now)))
        waker = DispatchWaker(server.repository, poster(server))
        receipt = waker.wake(header.next_due_at or now, header.generation)
    if receipt.status != "done":
        raise UserError(f"nothing was started: {receipt.detail}", "the timer tries again in 10 minutes", who="forge")
    return True, f"woke {server.repository} for generation {header.generation}"


@click.command()
@at_repository
@click.option("--once", is_flag=True, help="End after one cycle, which starts when due; fail if it fails.")
def watch(repo: Path, config: Path | None, once: bool) -> None:
    """Run cycles whenever one is due, until Ctrl-C or SIGTERM (exit code 130).

    Every minute it reads memory, and on GitHub what people approved, commented, labelled or ticked.
    After a failure the pause grows from 1 to 60 minutes.
    """
    from ralph_mission.adapters.report.progress import rest
    from ralph_mission.app.hosting import SystemClock
    from ralph_mission.loop.model.spec import RunEvent
    from ralph_mission.mission.cycle import CycleRequest
    from ralph_mission.mission.operations.control import WatchSetup
    from ralph_mission.mission.operations.control import watch_cycles as keep_watch

    for warning in read_settings(repo, config).warnings:  # a mistake in the settings ends it here
        print_moment(f"note: {warning}", repo)
    question = DueQuestion(str(repo), str(config) if config else None)
    with watched_run(repo, "watch") as live:

        def say(line: str) -> None:
            live.tell(RunEvent("phase", line))
            print_moment(line, repo)

        def cycle() -> CycleReport:
            return _run(repo, config, live, CycleRequest("watch"))[0]

        answer = _nothing_said if once else answer_people(repo, config, live)
        keep_watch(WatchSetup(SystemClock(), partial(rest, live), partial(ask, question), cycle, say, answer), once)


def _nothing_said() -> None:
    return None


def answer_people(repo: Path, config: Path | None, live: LiveRun) -> Callable[[], CycleReport | None]:
    """Acts on what people said on GitHub since it was last called: one conditional request if nobody said anything."""
    from ralph_mission.app.hosting import QuietProgress
    from ralph_mission.mission.cycle import CycleRequest, is_word_waiting
    from ralph_mission.mission.transaction import TransactionContext

    github = open_app(repo, config, progress=QuietProgress(live)).github
    if github is None:
        return _nothing_said

    from ralph_mission.adapters.forges.github.api import Api, ReadCache
    from ralph_mission.adapters.forges.github.threads import ThreadNews

    news = ThreadNews(Api(github.api.place, ReadCache(None, "")))

    words: list[SpokenWord] = []
    unanswered = False  # what was seen before may not be acted on yet: that failed, or another runner had memory

    def answer() -> CycleReport | None:
        nonlocal unanswered
        if not (news.look() or unanswered):
            return None
        unanswered = True
        app = open_app(repo, config, progress=QuietProgress(live))
        heard: list[SpokenWord] = []
        with _courtesy():
            heard.extend(word for word in news.find_words() if app.github and app.github.may_approve(word.author))
        for word in heard:
            _react(github.api, word, "add", EYES)
        words.extend(heard)
        waits = is_word_waiting(TransactionContext(app.ports, app.settings, app.secrets))
        request = CycleRequest("person", steering=True)  # that acts on people's words alone
        report, summary = _run(repo, config, live, request) if waits else (None, None)
        if report and report.outcome == "lost":
            return report
        unanswered = False
        answers = dict(summary.answers) if summary else {}
        for word in words:
            reaction = choose_reaction(word.text, answers.get(word.thread), word.of_pull)
            if reaction != EYES:
                _react(github.api, word, "remove", EYES)
                _react(github.api, word, "add", reaction)
        words.clear()
        return report

    return answer


def _react(api: Api, word: SpokenWord, action: str, content: str) -> None:
    with _courtesy():
        api.change(*name_reaction(word.node, action, content))


def _courtesy() -> suppress:
    """A reaction is a courtesy: what goes wrong with it, or with finding what to react to, is no error."""
    from ralph_mission.adapters.forges import ForgeRefused
    from ralph_mission.adapters.forges.github.limits import Absent, Doubt

    return suppress(UserError, Absent, Doubt, ForgeRefused)


def _run(repo: Path, config: Path | None, live: LiveRun, request: CycleRequest) -> CycleResult:
    """One cycle with the present settings. It sends no wake, as `ralph watch` checks by itself."""
    from ralph_mission.app.cycle import refuse_links
    from ralph_mission.app.hosting import NobodyToWake, QuietProgress
    from ralph_mission.mission.cycle import run_cycle

    app = open_app(repo, config, progress=QuietProgress(live))
    refuse_links(app.git)
    ports = replace(app.ports, waker=NobodyToWake())
    return run_cycle(ports, app.settings, request, app.secrets)
