"""`ralph memory`: show it, verify it, rebuild it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.adapters.forges.local.forge import LocalForge
from ralph_mission.adapters.storage.memory.recovery import UNDERSTOOD
from ralph_mission.cli.mission.local import reveal_hidden
from ralph_mission.cli.options import SharedGroup, at_repository, json_option, print_json
from ralph_mission.cli.wiring import household, recollection
from ralph_mission.errors import UserError
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.operations.salvage import Check

if TYPE_CHECKING:
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.ledger import MemorySnapshot


@click.group(cls=SharedGroup)
def memory() -> None:
    """Show or recover ralph's memory."""


@memory.command("show")
@at_repository
@json_option
def show_memory(repo: Path, config: Path | None, as_json: bool) -> None:
    """Print the memory file; with --json its front matter, the missions and the issues at work."""
    house = household(repo, config)
    if as_json:
        print_json(_document(house))
        return
    text = house.store.document()
    if not text:
        raise UserError("ralph has no memory of this repository yet", "run: ralph cycle")
    click.echo(reveal_hidden(text), nl=not text.endswith("\n"))


@memory.command(hidden=True)
@at_repository
@json_option
def verify(repo: Path, config: Path | None, as_json: bool) -> int:
    """Check everything about memory that can be checked; exit code 1 when anything is wrong."""
    house = household(repo, config)
    checks = _verify(house)
    if as_json:
        print_json([{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks])
    else:
        for check in checks:
            click.echo(reveal_hidden(f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}"))
    return 0 if all(check.ok for check in checks) else 1


@memory.command()
@click.option("--take-over", is_flag=True, help="Lift the claim of a runner that you know is dead.")
@at_repository
@json_option
def recover(take_over: bool, repo: Path, config: Path | None, as_json: bool) -> None:
    """Rebuild memory from the forge and from what can still be read of it. Nothing is sent.

    Memory that is healthy stays as it is, unless a claim is to be lifted.
    """
    from ralph_mission.mission.operations.recover import recover_memory as rebuild

    house = household(repo, config)
    if not take_over and _healthy(house):
        _tell_healthy(house, as_json)
        return
    done = rebuild(house.store, house.forge, house.clock.now(), take_over)
    if as_json:
        print_json(
            {
                "lineage": done.anchor.lineage,
                "serial": done.anchor.serial,
                "commit": done.anchor.oid,
                "kept": list(done.kept),
                "lost": list(done.lost),
            }
        )
        return
    lines = [f"kept: {line}" for line in done.kept] + [f"lost: {line}" for line in done.lost]
    lines.append(f"memory starts over as lineage {done.anchor.lineage}, serial {done.anchor.serial}; next: ralph cycle")
    click.echo("\n".join(map(reveal_hidden, lines)))


def _verify(house: App) -> list[Check]:
    return [*house.store.checks(), *_of_forge(house), *_against_forge(house)]


def _healthy(house: App) -> bool:
    """Whether a cycle would go on from it. A line of Do Not Repeat that is not understood is for a person to fix."""
    from ralph_mission.mission.gather import check_anchor

    if not all(check.ok for check in _verify(house) if check.name != UNDERSTOOD):
        return False
    try:
        check_anchor(house.forge, house.store.recall())
    except UserError as trouble:
        if trouble.who != "you":  # the forge could not be asked
            raise
        return False
    return True


def _tell_healthy(house: App, as_json: bool) -> None:
    recalled = house.store.recall()
    header, oid = (recalled.memory.header, recalled.oid) if recalled else (Header(), "")
    held = _claim_lines(house, recalled)
    if as_json:
        print_json({"lineage": header.lineage, "serial": header.serial, "commit": oid, "kept": [], "lost": held})
    elif recalled is None:
        click.echo("there is no memory yet and nothing to recover it from; next: ralph cycle")
    else:
        click.echo(
            "\n".join([f"memory is healthy (serial {header.serial}): nothing was done", *map(reveal_hidden, held)])
        )


def _claim_lines(house: App, recalled: MemorySnapshot | None) -> list[str]:
    """Whose claim keeps cycles from starting, and what to do about it."""
    claim = recalled.state.claim if recalled else None
    with house.store.exclusive():
        if claim is None or house.store.proven_dead(claim.holder):
            return []
    return [
        f"{claim.holder} may still be in cycle {claim.cycle} and keeps its claim; "
        "once you know that it is dead, run `ralph memory recover --take-over`"
    ]


def _document(house: App) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    recalled = recollection(house)
    return {
        "front_matter": to_jsonable_python(recalled.memory.header),
        "missions": to_jsonable_python(recalled.state.missions),
        "working": list(recalled.state.working),
    }


def _of_forge(house: App) -> list[Check]:
    """Each file of the local forge that cannot be read."""
    if not isinstance(house.forge, LocalForge):
        return []
    return [Check("forge files", False, trouble.what) for trouble in house.forge.troubles()]


def _against_forge(house: App) -> list[Check]:
    from ralph_mission.mission.gather import anchor_of, check_anchor
    from ralph_mission.mission.memory.position import check_position

    try:
        recalled = house.store.recall()
    except UserError:
        return []
    position = anchor_of(recalled) if recalled else None
    try:
        anchor = house.forge.anchor()
        check_position(position, [anchor], house.store.contains)
        if recalled is not None:
            check_anchor(house.forge, recalled)
    except UserError as trouble:
        if trouble.who != "you":  # the forge could not be asked
            raise
        return [Check("forge", False, trouble.what)]
    return [Check("forge", True, f"agrees up to serial {anchor.serial}" if anchor else "remembers nothing")]
