"""`ralph agent cost`: what the sessions of loops cost here, and a calculator over the user's own prices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import at_repository, json_option, print_json
from ralph_mission.errors import UserError
from ralph_mission.loop import cost as costs

if TYPE_CHECKING:
    from ralph_mission.config.settings import Config
    from ralph_mission.loop.model.state import SessionUsage

Prices = dict[str, dict[str, object]]
WIDTHS = "{:<24} {:>9} {:>13} {:>13} {:>14}"


@click.command()
@at_repository
@click.option("--estimate", metavar="HAT=N,…", help="Estimate this many sessions of each hat.")
@click.option("--tokens-in", type=click.IntRange(0), default=40_000, show_default=True, help="Tokens read per session.")
@click.option(
    "--tokens-out", type=click.IntRange(0), default=4_000, show_default=True, help="Tokens written per session."
)
@click.option("--models", default="", metavar="HAT=MODEL,…", help="The model of each hat in the estimate.")
@click.option("--model", default="", help="The model of every other hat; prices sessions that report only tokens.")
@click.option(
    "--price", multiple=True, metavar="MODEL=IN/OUT", help="USD per million tokens, in addition to ralph.yml."
)
@json_option
def cost(
    repo: Path, config: Path | None, estimate: str | None, tokens_in: int, tokens_out: int, models: str, model: str,
    price: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip  # one option after another
    """Show sessions, tokens and dollars by hat and by story or task.

    With --estimate, calculate instead: prices come from ralph.yml (cost: prices:) and --price; none is built in.
    """
    settings = _settings(repo, config)
    configured = {name: price.model_dump() for name, price in settings.cost.prices.items()}
    prices = {**configured, **dict(_price(text) for text in price)}
    model = model or (settings.hands.agent.model if settings.hands.agent else "")
    if estimate is None:
        table = costs.table(_runs(repo), model, prices)
        return print_json(_table(table)) if as_json else click.echo("\n".join(_table_lines(table)))
    sessions = {hat: _count(hat, number) for hat, number in _pairs(estimate, "--estimate").items()}
    reckoned = costs.estimate(sessions, _pairs(models, "--models"), model, (tokens_in, tokens_out), prices)
    return print_json(_estimate(reckoned)) if as_json else click.echo("\n".join(_estimate_lines(reckoned)))


# --- reading ------------------------------------------------------------------------


def _settings(repo: Path, config: Path | None) -> Config:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.config.reading import read

    return read(Git.open(repo), config)


def _runs(repo: Path) -> Iterator[costs.RunCost]:
    """The runs of this checkout: earlier ones first. An unreadable one is reported and skipped."""
    from ralph_mission.adapters.storage.loop import run_files, state

    root = run_files.folder(repo, os.environ).parent
    current = _or_told(state.STATE, lambda: state.load(root))
    for folder in sorted((root / state.RUNS).glob("*/")):
        if not current or folder.name != current.run_id:
            last = state.of_run(root, folder.name)
            sessions = sorted(folder.glob("session-*.json"))
            yield costs.of_state(last) if last else costs.of_sessions(filter(None, map(_session, sessions)))
    if current:
        yield costs.of_state(current)


def _session(path: Path) -> Any:
    from ralph_mission.adapters.storage.memory import codec
    from ralph_mission.loop.model.state import HatOutput

    return _or_told(str(path), lambda: codec.load(HatOutput, path.read_bytes()))


def _or_told(name: str, read: Any) -> Any:
    from ralph_mission.adapters.storage.memory.codec import UnreadableDocument

    try:
        return read()
    except (UnreadableDocument, OSError) as error:
        click.echo(f"{name} is not counted: it cannot be read ({error})", err=True)
        return None


def _pairs(text: str, option: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not (name.strip() and value.strip()) for name, _, value in pairs):
        raise UserError(f"{option} cannot be read: {text}", f"write it as {option} planner=…,builder=…", usage=True)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _count(hat: str, number: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise UserError(
            f"{number} is not a number of sessions of {hat}", "write it as --estimate planner=5", usage=True
        )
    return int(number)


def _price(text: str) -> tuple[str, dict[str, object]]:
    name, _, amounts = text.rpartition("=")
    try:
        read, written = (float(amount) for amount in amounts.split("/"))
    except ValueError:
        raise UserError(f"--price cannot be read: {text}", "write it as --price MODEL=3/15", usage=True) from None
    return name, {"input": read, "output": written}


# --- telling ------------------------------------------------------------------------


def _table(table: costs.CostTable) -> dict[str, object]:
    return {
        "runs": table.runs,
        "hats": [{"hat": name, **_usage(usage)} for name, usage in table.hats],
        "items": [{"item": name, **_usage(usage)} for name, usage in table.items],
        "total": _usage(table.total),
    }


def _usage(usage: SessionUsage) -> dict[str, object]:
    keys = ("sessions", "input_tokens", "output_tokens", "cost_usd", "seconds")
    return {key: getattr(usage, key) for key in keys} | {"unpriced": usage.untold}


def _table_lines(table: costs.CostTable) -> Iterator[str]:
    if not table.runs:
        yield "No loop has run here yet."
        return
    for heading, rows in (("hat", table.hats), ("story or task", table.items)):
        if rows:
            yield WIDTHS.format(heading, "sessions", "tokens in", "tokens out", "USD")
            yield from (_row(name, usage) for name, usage in rows)
            yield ""
    yield _row(f"total of {table.runs} run{'' if table.runs == 1 else 's'}", table.total)


def _row(name: str, usage: SessionUsage) -> str:
    from ralph_mission.safety.text import sanitise

    least = "at least " if usage.untold else ""
    dollars = f"{least}{usage.cost_usd or 0:.2f}" if usage.cost_usd or not usage.untold else "unknown"
    plain = " ".join(sanitise(name, "log").split())
    label = plain if len(plain) <= 24 else f"{plain[:23]}…"
    return WIDTHS.format(label, usage.sessions, f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", dollars)


def _estimate(estimate: costs.CostEstimate) -> dict[str, object]:
    shares = [{"hat": s.hat, "sessions": s.sessions, "model": s.model, "cost_usd": s.usd} for s in estimate.shares]
    alone = [{"model": name, "cost_usd": usd, "saving": estimate.saving(name)} for name, usd in estimate.alone]
    return {"hats": shares, "cost_usd": estimate.usd, "one_model": alone}


def _estimate_lines(estimate: costs.CostEstimate) -> Iterator[str]:
    for share in estimate.shares:
        yield f"{share.hat:<24} {share.sessions:>9} x {share.model:<28} {share.usd:>10.2f}"
    yield f"{'total':<65} {estimate.usd:>10.2f}"
    if len(estimate.alone) > 1:
        for name, usd in estimate.alone:
            saved = estimate.saving(name)
            word = "saved" if saved >= 0 else "more spent"
            yield f"{name} everywhere: {usd:.2f} ({abs(saved):.0%} {word} by the mix)"
