"""Whether the model that ranks findings can be asked: its library, its key, its price, and one free look at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config

NAME = "thinker"
PATIENCE = 10.0  # seconds


def thinker(settings: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it; then a line for a price that nobody knows."""
    from ralph_mission.bootstrap.thinking import price

    chosen = settings.thinker
    if chosen.kind == "rules":
        yield Check(NAME, "ok", "rules, which need no model")
        return
    yield _model(chosen.model, environ)
    if price(settings, 1, 1) is None:
        words = f"no price is known for {chosen.model}: a careful one is assumed"
        yield Check(NAME, "note", words, "set cost.prices in ralph.yml (docs/thinking.md)")


def _model(model: str, environ: Mapping[str, str]) -> Check:
    from ralph_mission.thinkers import models, wire

    try:
        access = wire.access(model, environ)
    except Trouble as trouble:
        return Check(NAME, "wrong", f"broken: {trouble.what}", mend(trouble))
    if find_spec("pydantic_ai") is None or find_spec(access.provider.partition("-")[0]) is None:
        return Check(NAME, "wrong", "broken: the part of ralph that asks models is not installed", models.EXTRA)
    if said := models.reached(access, PATIENCE):
        what, _, step = said.partition(": ")
        return Check(NAME, "wrong", f"broken: {what}", step or "look at its address in the environment")
    return Check(NAME, "ok", f"ready: {model}")
