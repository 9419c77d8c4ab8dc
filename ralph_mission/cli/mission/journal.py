"""`ralph journal`: what was done, cycle by cycle, and the effects whose fate only a person can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import SharedGroup, at_repository, json_option, print_json
from ralph_mission.cli.wiring import decide_again, household
from ralph_mission.errors import UserError
from ralph_mission.safety.text import sanitise

if TYPE_CHECKING:
    from ralph_mission.mission.model.ledger import MemorySnapshot


@click.group(cls=SharedGroup, invoke_without_command=True)
@at_repository
@json_option
@click.pass_context
def journal(context: click.Context, repo: Path, config: Path | None, as_json: bool) -> None:
    """List every effect with its cycle, its state and what came of it."""
    if context.invoked_subcommand is not None:
        return
    from ralph_mission.mission.operations import control

    entries = control.journal(household(repo, config).store)
    if as_json:
        print_json(entries)
    else:
        click.echo("\n".join(_line(entry) for entry in entries) or "nothing was done yet")


@journal.command()
@click.argument("key")
@click.option("--sent/--not-sent", default=None, required=True, help="Whether it arrived.")
@click.option("--number", type=click.IntRange(0), default=0, help="The issue or remark it made, when it was sent.")
@at_repository
@json_option
def resolve(key: str, sent: bool, number: int, repo: Path, config: Path | None, as_json: bool) -> None:
    """Say whether the effect KEY, whose fate is unknown, did happen. It is never sent again by itself."""
    from ralph_mission.mission.operations import control

    house = household(repo, config)
    control.resolve(house.store, key, sent, number)
    if as_json:
        print_json({"key": key, "sent": sent})
    else:
        click.echo(f"{key}: {'sent' if sent else 'not sent'}, settled")


@journal.command("show")
@click.argument("cycle_id")
@click.option("--replay", is_flag=True, help="Decide it again by today's rules; exit code 1 when anything differs.")
@at_repository
@json_option
def show_journal(cycle_id: str, replay: bool, repo: Path, config: Path | None, as_json: bool) -> int:
    """Show what the cycle CYCLE_ID found, decided and did; with --json its report."""
    if replay:
        return _replay(cycle_id, repo, config, as_json)
    house = household(repo, config)
    found = next((d for d in house.store.journal() if d["report"]["cycle_id"] == cycle_id), None)
    if found is None:
        raise UserError(f"the journal knows no cycle {cycle_id!r}", "see: ralph journal", usage=True)
    if as_json:
        print_json(found["report"])
    else:
        lines = (*_page(found), *_post_lines(found["telling"]), *_summary_lines(found["telling"]))
        click.echo("\n".join(sanitise(line, "log") for line in lines))
    return 0


def _replay(cycle_id: str, repo: Path, config: Path | None, as_json: bool) -> int:
    differences = decide_again(household(repo, config, staged=True), cycle_id)
    if as_json:
        print_json({"cycle_id": cycle_id, "same": not differences, "differences": differences})
    else:
        click.echo("\n".join(differences) or f"{cycle_id}: the same decisions")
    return 1 if differences else 0


@journal.command(hidden=True)
@at_repository
@json_option
@click.pass_context
def count(context: click.Context, repo: Path, config: Path | None, as_json: bool) -> None:
    """Count what was learned again, from the journal alone, and compare it with Learnings; exit 1 where they differ."""
    from ralph_mission.mission.memory.learning import recount_learnings

    store = household(repo, config).store
    past, documents = store.recall(), tuple(store.journal())
    lines = recount_learnings(documents)
    same = lines == (past.memory.measured if past else ())
    if as_json:
        print_json({"lines": list(lines), "same": same})
    else:
        verdict = "Learnings says the same" if same else f"Learnings says something else{_gap(past, documents)}"
        click.echo("\n".join(sanitise(line, "log") for line in (*lines, verdict)))
    if not same:
        context.exit(1)


def _gap(past: MemorySnapshot | None, documents: Sequence[dict[str, Any]]) -> str:
    """Why Learnings may know more than the journal: what a recovery could not find of it."""
    known, cycles = len({one["report"]["cycle"] for one in documents}), past.memory.header.cycle if past else 0
    return f": the journal holds {known} of {cycles} cycles, the others were lost" if known < cycles else ""


def _page(document: dict[str, Any]) -> Iterator[str]:
    told = document["report"]
    receipts = {receipt["key"]: receipt for _, receipt in document.get("deeds", ())}
    yield f"cycle {told['cycle']}: {told['outcome']}, {told['started_at']}"
    for look in told["observers"]:
        yield f"observer  {look['name']}  {look['status']}  {look['detail']}"
    for finding in told["findings"]:
        word = "known" if finding["known"] else "finding"
        yield f"{word}  {finding['kind']}  {finding['score']:.2f}  {finding['title']}"
    for decision in told["decisions"]:
        rules = ", ".join(decision["rules"])
        yield f"{decision['verdict']}  {decision['action']}  {decision['kind']}{f'  ({rules})' if rules else ''}"
    for effect in told["effects"]:
        why = _reason(receipts.get(effect["key"], {})) if effect["status"] in ("failed", "unknown") else ""
        yield f"{effect['status']}  {effect['kind']}  {effect['url'] or effect['key']}{f'  {why}' if why else ''}"


def _reason(receipt: dict[str, Any]) -> str:
    return ": ".join(word for word in (receipt.get("reason"), receipt.get("detail")) if word)


def _summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    for name, word in (("why", "why"), ("held", "held"), ("remarks", "note")):
        yield from (f"{word}  {line}" for line in summary.get(name, ()))


def _post_lines(telling: dict[str, Any]) -> Iterator[str]:
    """What went out in public, or would have, word for word."""
    for post in telling.get("posts", ()):
        for part, length in zip(post["parts"], post["lengths"], strict=True):
            words = " ".join(part.split())
            yield f"{post['status']}  {post['network']}  {length} of {post['limit']}  {words}"


def _line(entry: dict[str, Any]) -> str:
    known = ("cycle", "at", "key", "kind", "state", "url")
    return sanitise("  ".join(str(entry[name]) for name in known if entry.get(name)), "log")
