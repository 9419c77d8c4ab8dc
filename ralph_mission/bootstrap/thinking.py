"""The composition root of the thinker: rules, or a model with rules behind it."""

from __future__ import annotations

import os
import secrets
from functools import partial
from pathlib import Path

from ralph_mission.bootstrap.known import environment_secrets
from ralph_mission.config.settings import Config
from ralph_mission.loop import cost
from ralph_mission.loop.model import SessionUsage
from ralph_mission.mission.ports import Thinker
from ralph_mission.thinkers.rules import RulesThinker


def thinker(settings: Config, cache: Path | None) -> Thinker:
    """Who ranks findings here. Without a place for caches the cycle is a staged one, which asks no model."""
    rules = RulesThinker(dict(settings.thinker.weights))
    if settings.thinker.kind == "rules":
        return rules
    from ralph_mission.thinkers import wire
    from ralph_mission.thinkers.asking import Bill
    from ralph_mission.thinkers.llm import LlmThinker
    from ralph_mission.thinkers.models import ModelAsk

    chosen = settings.thinker
    bill = Bill(partial(price, settings), chosen.max_tokens)
    access = partial(wire.access, chosen.model, os.environ)
    ask = ModelAsk(access, chosen.seconds, chosen.tries, chosen.max_tokens) if cache else None
    return LlmThinker(chosen, rules, ask, bill, partial(secrets.token_hex, 8), environment_secrets(), cache)


def price(settings: Config, read: int, written: int) -> float | None:
    """USD for tokens of the thinker's model: by the owners' prices, then by what is listed; None: nobody knows."""
    from ralph_mission.thinkers import prices

    own = {name: one.model_dump() for name, one in settings.cost.prices.items()}
    dollars = cost.price(SessionUsage(1, read, written), settings.thinker.model, own)
    if dollars is not None:
        return dollars
    provider, _, name = settings.thinker.model.partition(":")
    return prices.listed_price(provider, name, read, written)
