"""Runs the observers, and redacts secrets from whatever they return."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.mission.decide import keys_to_read, with_findings, with_fresh_findings
from ralph_mission.mission.gather import read_records
from ralph_mission.mission.memory.schedule import enough, spent_today
from ralph_mission.mission.model.cycle import Situation
from ralph_mission.mission.model.ledger import MemorySnapshot
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import CyclePorts, Observer, PaidObserver
from ralph_mission.safety.secrets import find_secrets, redact, redact_record
from ralph_mission.words import count_noun

SHARE = 0.5
"""Share of a cycle's budget that an observer may spend on a model; the rest is for the thinker and for missions."""


PlannedObservations = tuple[tuple[Observer, ObservationContext], ...]


def plan_observations(ports: CyclePorts, situation: Situation, scratch: str) -> PlannedObservations:
    """Pair every observer with its context. Only observers that would call a model now get money."""
    return tuple(
        (observer, _with_money(observer, _observation_context(observer.name, situation, scratch)))
        for observer in ports.observers
    )


def _with_money(observer: Observer, context: ObservationContext) -> ObservationContext:
    try:
        asks = isinstance(observer, PaidObserver) and context.usd > 0 and observer.asks(context)
    except Exception:  # it fails again when it looks, where that is reported
        asks = True
    return context if asks else replace(context, usd=0.0)


def observe(
    ports: CyclePorts,
    situation: Situation,
    planned: PlannedObservations,
    past: MemorySnapshot | None,
    secrets: tuple[str, ...],
) -> Situation:
    """Run every observer. One that fails is reported as unavailable and does not stop the others."""
    ports.progress.phase("observe")
    observations = tuple(redact_observation(ports, observation, secrets) for observation in ports.lookups(planned))
    situation = with_findings(replace(situation, observations=observations))
    asked_for = set(situation.records)
    while missing := keys_to_read(situation) - asked_for:  # what is left of a fix is a finding of its own
        asked_for |= missing
        situation = with_fresh_findings(replace(situation, records=read_records(ports, situation, missing, past)))
    return situation


def _observation_context(name: str, situation: Situation, scratch: str) -> ObservationContext:
    header, limits = situation.memory.header, situation.settings.limits
    usd = min(limits.usd_per_cycle, limits.usd_per_day - spent_today(header, situation.now)) * SHARE
    return ObservationContext(
        situation.world.default, situation.now, header.last_cycle_at, dict(header.cursors).get(name, ""), scratch,
        usd if enough(usd, limits.usd_per_cycle) else 0.0,
    )  # fmt: skip  # one value


def redact_observation(ports: CyclePorts, observation: Observation, secrets: tuple[str, ...]) -> Observation:
    """The observation without secrets that an observed text or an error contained."""
    # A redacted cursor would be useless: without one, the observer starts over.
    cursor = "" if "known-value" in find_secrets(observation.cursor, secrets) else observation.cursor
    unchecked = tuple(redact(one, secrets) for one in observation.unchecked)
    detail = redact(observation.detail, secrets)
    observation = replace(observation, detail=detail, cursor=cursor, unchecked=unchecked)
    ports.progress.note(f"{observation.name}: {observation.detail or count_noun(len(observation.signals), 'result')}")
    nameable = (signal for signal in observation.signals if not find_secrets(signal.path, secrets))
    signals = tuple(_without_secrets(signal, secrets) for signal in nameable)
    gone = tuple(tuple(redact(part, secrets) for part in essence) for essence in observation.gone)
    return replace(observation, signals=signals, gone=gone)


def _without_secrets(signal: Signal, secrets: tuple[str, ...]) -> Signal:
    """Secrets in observed texts must reach neither memory nor a report."""
    quotes = tuple(quote for quote in signal.quotes if not find_secrets(quote.path, secrets))
    redacted = redact_record(replace(signal, quotes=quotes, patch=None, parts=()), secrets)
    # Known again by its observer and its parts; a patch is judged as a change.
    return replace(redacted, observer=signal.observer, patch=signal.patch, parts=signal.parts)
