"""What ralph remembers: `ralph memory` shows, verifies and rebuilds it, `ralph journal` lists what was done.

Effects whose fate only a person can tell are settled by `ralph journal resolve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.adapters.report.progress import safe
from ralph_mission.adapters.report.summary import SHOWN
from ralph_mission.adapters.storage.memory.recovery import UNDERSTOOD
from ralph_mission.cli.mission.local import reveal_hidden
from ralph_mission.cli.options import (
    SharedGroup,
    at_repository,
    decide_again,
    json_option,
    open_app,
    print_json,
    print_outcome,
    recollection,
)
from ralph_mission.cli.spelling import type_commands
from ralph_mission.errors import UserError
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.operations.salvage import Check
from ralph_mission.safety.text import sanitise
from ralph_mission.words import stamp

if TYPE_CHECKING:
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.ledger import MemorySnapshot


@click.group(cls=SharedGroup)
def memory() -> None:
    """Show or recover Ralph's memory."""


@memory.command("show")
@at_repository
@json_option
def show_memory(repo: Path, config: Path | None, as_json: bool) -> None:
    """Print the memory file."""
    app = open_app(repo, config)
    if as_json:
        print_json(_document(app))
        return
    text = app.store.document()
    if not text:
        raise UserError("ralph has no memory of this repository yet", "run: ralph cycle")
    click.echo(reveal_hidden(text), nl=not text.endswith("\n"))


@memory.command(hidden=True)
@at_repository
@json_option
def verify(repo: Path, config: Path | None, as_json: bool) -> int:
    """Check the memory; exit code 1 if anything is wrong."""
    app = open_app(repo, config)
    checks = _verify(app)
    lines = (reveal_hidden(f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}") for check in checks)
    print_outcome("\n".join(lines), [asdict(check) for check in checks], as_json)
    return 0 if all(check.ok for check in checks) else 1


@memory.command()
@click.option("--take-over", is_flag=True, help="Lift a dead runner's claim.")
@at_repository
@json_option
def recover(take_over: bool, repo: Path, config: Path | None, as_json: bool) -> None:
    """Rebuild memory from the forge and what can still be read. Nothing is sent; healthy memory stays as it is."""
    from ralph_mission.mission.operations.recover import recover_memory as rebuild

    app = open_app(repo, config)
    if not take_over and _healthy(app):
        _tell_healthy(app, as_json)
        return
    done = rebuild(app.store, app.forge, app.clock.now(), take_over)
    if as_json:
        print_json(
            {
                "lineage": done.anchor.lineage,
                "serial": done.anchor.serial,
                "commit": done.anchor.oid,
                "kept": list(done.recovered),
                "lost": list(done.lost),
            }
        )
        return
    lines = [f"kept: {line}" for line in done.recovered] + [f"lost: {line}" for line in done.lost]
    lines.append(f"memory starts over as lineage {done.anchor.lineage}, serial {done.anchor.serial}; next: ralph cycle")
    click.echo("\n".join(map(reveal_hidden, lines)))


def _verify(app: App) -> list[Check]:
    return [*app.store.checks(), *_of_forge(app), *_against_forge(app)]


def _healthy(app: App) -> bool:
    """Whether a cycle would resume from it. A person has to fix an unclear line of Do Not Repeat."""
    from ralph_mission.mission.gather import check_anchor

    if not all(check.ok for check in _verify(app) if check.name != UNDERSTOOD):
        return False
    try:
        check_anchor(app.forge, app.store.recall())
    except UserError as problem:
        if problem.who != "you":  # the forge could not be asked
            raise
        return False
    return True


def _tell_healthy(app: App, as_json: bool) -> None:
    recalled = app.store.recall()
    header, oid = (recalled.memory.header, recalled.oid) if recalled else (Header(), "")
    claims = _claim_lines(app, recalled)
    if as_json:
        print_json({"lineage": header.lineage, "serial": header.serial, "commit": oid, "kept": [], "lost": claims})
    elif recalled is None:
        click.echo("there is no memory yet and nothing to recover it from; next: ralph cycle")
    else:
        click.echo(
            "\n".join([f"memory is healthy (serial {header.serial}): nothing was done", *map(reveal_hidden, claims)])
        )


def _claim_lines(app: App, recalled: MemorySnapshot | None) -> list[str]:
    """The claim that prevents cycles from starting, and what to do about it."""
    claim = recalled.state.claim if recalled else None
    with app.store.exclusive():
        if claim is None or app.store.proven_dead(claim.holder):
            return []
    return [
        f"{claim.holder} may still be in cycle {claim.cycle} and keeps its claim; "
        "once you know that it is dead, run `ralph memory recover --take-over`"
    ]


def _document(app: App) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    recalled = recollection(app)
    return {
        "front_matter": to_jsonable_python(recalled.memory.header),
        "missions": to_jsonable_python(recalled.state.missions),
        "working": list(recalled.state.working),
    }


def _of_forge(app: App) -> list[Check]:
    """Each unreadable file of the local forge."""
    if not isinstance(app.forge, LocalForge):
        return []
    return [Check("forge files", False, problem.what) for problem in app.forge.problems()]


def _against_forge(app: App) -> list[Check]:
    from ralph_mission.mission.gather import anchor_of, check_anchor
    from ralph_mission.mission.memory.text import check_position

    try:
        recalled = app.store.recall()
    except UserError:
        return []
    position = anchor_of(recalled) if recalled else None
    try:
        anchor = app.forge.anchor()
        check_position(position, [anchor], app.store.contains)
        if recalled is not None:
            check_anchor(app.forge, recalled)
    except UserError as problem:
        if problem.who != "you":  # the forge could not be asked
            raise
        return [Check("forge", False, problem.what)]
    return [Check("forge", True, f"agrees up to serial {anchor.serial}" if anchor else "remembers nothing")]


@click.group(cls=SharedGroup, invoke_without_command=True)
@at_repository
@json_option
@click.pass_context
def journal(context: click.Context, repo: Path, config: Path | None, as_json: bool) -> None:
    """List what was done, by cycle; with --json every effect."""
    if context.invoked_subcommand is None:
        _list_effects(repo, config, as_json)


@journal.command("list", hidden=True)
@at_repository
@json_option
def list_journal(repo: Path, config: Path | None, as_json: bool) -> None:
    """The same as `ralph journal`."""
    _list_effects(repo, config, as_json)


NOTHING_DONE = "no issue or pull request was opened yet; what a cycle saw: ralph journal show NUMBER"


def _list_effects(repo: Path, config: Path | None, as_json: bool) -> None:
    from ralph_mission.mission.operations import control

    entries = control.journal(open_app(repo, config).store)
    lines = type_commands("\n".join(filter(None, map(_line, entries))), repo)
    print_outcome(lines or NOTHING_DONE, entries, as_json)


@journal.command()
@click.argument("key")
@click.option("--sent/--not-sent", default=None, required=True, help="Whether it arrived.")
@click.option("--number", type=click.IntRange(0), default=0, help="The issue or comment it made.")
@at_repository
@json_option
def resolve(key: str, sent: bool, number: int, repo: Path, config: Path | None, as_json: bool) -> None:
    """Settle the unknown effect KEY: say whether it happened. Ralph never resends it."""
    from ralph_mission.mission.operations import control

    app = open_app(repo, config)
    control.resolve(app.store, key, sent, number)
    print_outcome(f"{key}: {'sent' if sent else 'not sent'}, settled", {"key": key, "sent": sent}, as_json)


@journal.command("show")
@click.argument("cycle_id", metavar="CYCLE")
@click.option("--replay", is_flag=True, help="Decide it again by today's rules; exit code 1 if that differs.")
@at_repository
@json_option
def show_journal(cycle_id: str, replay: bool, repo: Path, config: Path | None, as_json: bool) -> int:
    """Show what a cycle saw, found, did and held back. CYCLE is its number or name."""
    app = open_app(repo, config, staged=replay)
    every = list(app.store.journal())
    documents = [one for one in every if cycle_id in (one["report"]["cycle_id"], str(one["report"]["cycle"]))]
    found = documents[-1] if documents else None  # of two of one number, one is of a memory that was lost
    if replay:
        return _replay(app, found["report"]["cycle_id"] if found else cycle_id, as_json)
    if found is None:
        raise UserError(f"the journal knows no cycle {cycle_id!r}", "see: ralph journal", usage=True)
    if as_json:
        print_json(found["report"])
    else:
        from pydantic import TypeAdapter

        from ralph_mission.adapters.report.summary import Standpoint, summary
        from ralph_mission.mission.model.cycle import CycleReport, CycleSummary

        report = TypeAdapter(CycleReport).validate_python(found["report"])
        told_then = TypeAdapter(CycleSummary).validate_python(found["telling"])
        at, past = Standpoint(partial(type_commands, repo=repo)), found is not every[-1]
        click.echo(f"{stamp(report.started_at)}\n{summary(report, told_then, at=at, whole=True, past=past)}")
    return 0


def _replay(app: App, cycle_id: str, as_json: bool) -> int:
    differences = decide_again(app, cycle_id)
    facts = {"cycle_id": cycle_id, "same": not differences, "differences": differences}
    print_outcome("\n".join(differences) or f"{cycle_id}: the same decisions", facts, as_json)
    return 1 if differences else 0


@journal.command(hidden=True)
@at_repository
@json_option
@click.pass_context
def count(context: click.Context, repo: Path, config: Path | None, as_json: bool) -> None:
    """Recompute Learnings from the journal; exit code 1 if they differ."""
    from ralph_mission.mission.memory.learning import recount_learnings

    store = open_app(repo, config).store
    past, documents = store.recall(), tuple(store.journal())
    lines = recount_learnings(documents)
    same = lines == (past.memory.measured if past else ())
    verdict = "Learnings agrees" if same else f"Learnings differs{_gap(past, documents)}"
    text = "\n".join(sanitise(line, "log") for line in (*lines, verdict))
    print_outcome(text, {"lines": list(lines), "same": same}, as_json)
    if not same:
        context.exit(1)


def _gap(past: MemorySnapshot | None, documents: Sequence[dict[str, Any]]) -> str:
    """Why Learnings may contain more than the journal: entries that a recovery could not find."""
    known, cycles = len({one["report"]["cycle"] for one in documents}), past.memory.header.cycle if past else 0
    return f": the journal holds {known} of {cycles} cycles, the others were lost" if known < cycles else ""


def _line(entry: dict[str, Any]) -> str:
    """An effect as a person tells it; "" for steps of another one, such as the branch of a pull request."""
    at = f"{entry['at'][:16].replace('T', ' ')} cycle {entry['cycle']}"
    done = SHOWN.get(entry["kind"], entry["kind"].replace("_", " "))
    if entry["state"] == "unknown":
        return f"{at}: perhaps {done}; settle it: ralph journal resolve {entry['key']} --sent|--not-sent"
    if entry["kind"] not in SHOWN:
        return ""
    if entry["state"] not in ("done", "adopted"):
        verb = entry["kind"].replace("_", " ").replace("pull", "pull request")
        done = f"could not {verb}" if entry["state"] == "failed" else f"{verb}: {entry['state']}"
    number = f" #{entry['number']}" if entry["number"] else ""
    place = (
        "" if number and "://" not in entry["url"] else entry["url"]
    )  # `ralph issue show` finds a file by its number
    return safe(f"{at}: {', '.join(filter(None, (f'{done}{number}', entry['title'], place)))}")
