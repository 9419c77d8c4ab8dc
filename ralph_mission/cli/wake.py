"""`ralph wake`: for a timer. Asks the gate and, when a cycle is due, dispatches once for each due time.

`ralph wake --review`, for a workflow, dispatches once for each head that we proposed.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from ralph_mission.cli.gate import NOT_DUE, Plain, cache_folder, longest_pause, memory_place
from ralph_mission.cli.moment import iso, moment
from ralph_mission.cli.options import at_repository, json_option, now_option, print_json
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.place import RepositoryPlace, place
from ralph_mission.mission.memory import Header
from ralph_mission.mission.schedule import is_due
from ralph_mission.trouble import UserError


@click.command()
@click.option("--review", is_flag=True, help="Wake the review of what ralph proposed, where GitHub does not.")
@at_repository
@now_option
@json_option
def wake(repo: Path, config: Path | None, now: str | None, review: bool, as_json: bool) -> int:
    """Wake the loop on GitHub when a cycle is due: exit code 0 when one is, 10 when not.

    Sends one dispatch for each due time, and the same again after 10 minutes while nothing has come of it.
    GITHUB_REPOSITORY and GITHUB_TOKEN say where.
    """
    if review:
        return _review(repo, config, now, as_json)
    from ralph_mission.stores import layout
    from ralph_mission.stores.due import due_on_server
    from ralph_mission.wakers.reading import header_on_server

    server, asked = place(os.environ), Plain(str(repo), str(config) if config else None)
    memory = {"branch": layout.BRANCH, "path": layout.MEMORY, **memory_place(asked)}
    when = moment(now) or datetime.now(UTC)
    longest = partial(longest_pause, asked)
    due, next_due_at, reason = due_on_server(server, cache_folder(server.git_url), when, **memory, longest=longest)
    if due:
        header = header_on_server(server, **memory)
        due, next_due_at = not header.paused and is_due(header.next_due_at, when, longest()), header.next_due_at
        sent, reason = _send(repo, config, server, header, when) if due else (False, "not due: another was first")
    else:
        sent = False
    if as_json:
        print_json({"due": due, "next_due_at": iso(next_due_at), "sent": sent, "reason": reason})
    else:
        click.echo(reason)
    return 0 if due else NOT_DUE


def _review(repo: Path, config: Path | None, now: str | None, as_json: bool) -> int:
    """Wake the review of our open pulls, each head once. Raises Trouble when GitHub refused it."""
    from ralph_mission.bootstrap.calling import call_reviews

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
    """Whether a dispatch was sent, and what to say. Raises Trouble when GitHub refused it."""
    from ralph_mission.bootstrap.cycle import refuse_links
    from ralph_mission.bootstrap.hosting import poster
    from ralph_mission.config.reading import read
    from ralph_mission.gateways.files import atomic, locks
    from ralph_mission.wakers import calls
    from ralph_mission.wakers.dispatch import DispatchWaker

    git = Git.open(repo)
    refuse_links(git)
    notes = git.common_dir / "ralph" / "wake.json"
    with locks.hold_file(notes.with_name("waking")) as ours:
        if not ours:
            return False, "another wake is at it"
        past = calls.load(notes.read_bytes() if notes.exists() else b"")
        limit = read(git, config).limits.dispatches_per_day
        objection = calls.objection(past, header, now, limit)
        if objection:
            return False, objection
        atomic.write(notes, calls.dump(calls.record_wake(past, header, now)))
        waker = DispatchWaker(server.repository, poster(server))
        receipt = waker.wake(header.next_due_at or now, header.generation)
    if receipt.status != "done":
        raise UserError(f"nobody was woken: {receipt.detail}", "the timer tries again in 10 minutes", who="forge")
    return True, f"woke {server.repository} for generation {header.generation}"
